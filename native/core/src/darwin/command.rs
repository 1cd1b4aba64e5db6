//! How the command of one Darwin process is read so that it is one program's, and the form of what
//! `KERN_PROCARGS2` answers.

use super::Kernel;
use super::info::{Directory, Flavor, Program, parse_directory, parse_program};
use super::process::{ATTEMPTS, Process, Reader, Reading, Want};
use crate::command::{Keys, pick};
use crate::error::{Errno, Error, Meaning};
use crate::facts::{Command, State};

/// The longest answer that the kernel gives: how many arguments, and `ARG_MAX`. It refuses to be offered
/// more room than that, and where it is too little, it leaves out the beginning.
pub const ROOM: usize = 4 + (1 << 20);

/// A reading, and the command of the same process.
pub type Described = (Reading, Result<Option<Command>, Error>);

const SYSCTL: &str = "sysctl";
const PROC_PIDINFO: &str = "proc_pidinfo";

/// `PROC_PIDPATHINFO_MAXSIZE`.
const LONGEST_PATH: usize = 4_096;

/// Of arguments: the target's memory could not be read.
const EIO: Errno = Errno(5);
/// That a file has no path, or one that is too long, or lies on a volume that is gone or does not answer:
/// EIO, ENXIO, ENOTDIR, EINVAL, ENOSPC, ETIMEDOUT, ENAMETOOLONG, ESTALE.
const PATHLESS: [Errno; 8] =
    [EIO, Errno(6), Errno(20), Errno::EINVAL, Errno(28), Errno(60), Errno(63), Errno(70)];

/// What one try says of a command.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Settled(Result<Option<Command>, Error>),
    /// A process that should have one has none; and what is said if it is so at every try.
    Missing(Error),
}

/// What the kernel says of a file that a process has.
enum Told {
    /// Its path, where there is one that is true.
    Path(Option<Vec<u8>>),
    /// The exit of the process has begun.
    Exiting,
}

fn pathless(pid: u32, syscall: &'static str, errno: Errno) -> Result<Told, Error> {
    match errno.meaning() {
        _ if errno == Errno::ESRCH => Ok(Told::Exiting),
        Meaning::Failed if !PATHLESS.contains(&errno) => {
            Err(Error::System { syscall, errno, pid: Some(pid) })
        }
        _ => Ok(Told::Path(None)),
    }
}

impl<K: Kernel> Reader<'_, K> {
    /// Reads one process and its command.
    ///
    /// # Errors
    /// A read whose failure says nothing about the process.
    pub fn describe(&self, pid: u32, keys: &Keys) -> Result<Described, Error> {
        let mut seen = (Reading::Unexplained, Err(Error::Unstable { pid }));
        for _ in 0..ATTEMPTS {
            match self.describe_once(pid, keys)? {
                Ok(described) => return Ok(described),
                Err(described) => seen = described,
            }
        }
        Ok(seen)
    }

    /// The kernel notes where the arguments are before it reads them, so that one answer can be of two
    /// programs; and the row is another answer. The same program before and after all of it binds it.
    /// `Err` is what is said if every try ends so.
    fn describe_once(&self, pid: u32, keys: &Keys) -> Result<Result<Described, Described>, Error> {
        let before = self.program(pid)?;
        let process = match self.read(pid, Want::Row)? {
            Reading::Present(process) => process,
            Reading::Absent => return Ok(Ok((Reading::Absent, Ok(None)))),
            other => {
                let why = match &other {
                    Reading::Refused { syscall, errno } => {
                        Error::Refused { pid, syscall, errno: *errno }
                    }
                    _ => Error::Unstable { pid },
                };
                return Ok(Ok((other, Err(why))));
            }
        };
        let command = self.read_command(pid, &process, keys)?;
        let bound = match (before, self.program(pid)?) {
            (Some(before), Some(after)) => before == after,
            // Nothing tells programs apart: the same process and the same answers once more must do.
            (None, None) => {
                self.read(pid, Want::Row)? == Reading::Present(process.clone())
                    && self.read_command(pid, &process, keys)? == command
            }
            _ => false,
        };
        let reading = Reading::Present(process);
        Ok(match command {
            Answer::Settled(command) if bound => Ok((reading, command)),
            Answer::Missing(why) if bound => Err((reading, Err(why))),
            _ => Err((reading, Err(Error::Unstable { pid }))),
        })
    }

    fn read_command(&self, pid: u32, process: &Process, keys: &Keys) -> Result<Answer, Error> {
        if pid == 0 {
            return Ok(Answer::Settled(Ok(Some(Command::default())))); // the kernel itself
        }
        if process.state == Some(State::Zombie) {
            return Ok(Answer::Settled(Ok(None)));
        }
        let mut command = match self.read_arguments(pid, process, keys)? {
            Answer::Settled(Ok(Some(command))) => command,
            other => return Ok(other),
        };
        // Exit has begun since: the next try says so.
        let exiting = Ok(Answer::Missing(Error::Unstable { pid }));
        let Told::Path(executable) = self.executable(pid)? else { return exiting };
        let Told::Path(directory) = self.working_directory(pid)? else { return exiting };
        command.executable = executable;
        command.working_directory = directory;
        Ok(Answer::Settled(Ok(Some(command))))
    }

    fn read_arguments(&self, pid: u32, process: &Process, keys: &Keys) -> Result<Answer, Error> {
        let refused = |errno| Error::Refused { pid, syscall: SYSCTL, errno };
        let cut = Error::CommandCut { what: "argument list", pid };
        let mut room = vec![0; ROOM];
        let length = match self.kernel.arguments(pid, &mut room) {
            Ok(length) => length,
            // Exit, another user's process, and a few more look the same.
            Err(Errno::EINVAL) => {
                let theirs = process.uid != self.effective_uid && self.effective_uid != 0;
                return Ok(if process.exiting {
                    Answer::Settled(Ok(None))
                } else if theirs {
                    Answer::Settled(Err(refused(Errno::EINVAL)))
                } else {
                    Answer::Missing(self.unless_translated(pid, refused(Errno::EINVAL))?)
                });
            }
            Err(EIO) => return Ok(Answer::Settled(Err(self.unless_translated(pid, cut)?))),
            Err(errno) if errno.meaning() == Meaning::Refused => {
                return Ok(Answer::Settled(Err(refused(errno))));
            }
            Err(errno) => return Err(Error::System { syscall: SYSCTL, errno, pid: Some(pid) }),
        };
        if length >= ROOM {
            return Ok(Answer::Settled(Err(Error::TooLong { what: "argument list", pid })));
        }
        let answer = room.get(..length).unwrap_or_default();
        if is_made_up(answer) {
            return Ok(Answer::Settled(Err(refused(Errno::EPERM))));
        }
        let arguments = parse_arguments(answer).ok_or(cut);
        Ok(Answer::Settled(arguments.and_then(|arguments| arguments.command(pid, keys).map(Some))))
    }

    /// An error, or that it is Rosetta's: a kernel may know no way to the arguments through it.
    fn unless_translated(&self, pid: u32, error: Error) -> Result<Error, Error> {
        let translated = self.is_translated(pid)? || self.is_translated(self.kernel.own_pid())?;
        Ok(if translated { Error::Translated { pid } } else { error })
    }

    /// The file of the program. The kernel builds its path and finds a file there, in the caller's sight.
    fn executable(&self, pid: u32) -> Result<Told, Error> {
        let mut room = vec![0; LONGEST_PATH];
        match self.kernel.program_path(pid, &mut room) {
            Ok(length) => {
                let path = room.get(..length).filter(|path| path.starts_with(b"/"));
                Ok(Told::Path(path.map(<[u8]>::to_vec)))
            }
            Err(errno) => pathless(pid, "proc_pidpath", errno),
        }
    }

    /// The working directory, if the path that the kernel has for it leads there.
    fn working_directory(&self, pid: u32) -> Result<Told, Error> {
        let mut room = [0; Flavor::Directories.size()];
        let length = match self.kernel.process_info(pid, Flavor::Directories, false, &mut room) {
            Ok(length) => length,
            Err(errno) => return pathless(pid, PROC_PIDINFO, errno),
        };
        let what = "an answer of proc_pidinfo";
        let Directory { file, path } = room
            .get(..length)
            .and_then(parse_directory)
            .ok_or(Error::Malformed { what, pid: Some(pid) })?;
        if !path.starts_with(b"/") {
            return Ok(Told::Path(None));
        }
        match self.kernel.file_at(&path) {
            Ok(found) => Ok(Told::Path(Some(path).filter(|_| found == file))),
            Err(errno) => pathless(pid, "stat", errno),
        }
    }

    /// `None` where the kernel does not tell.
    fn program(&self, pid: u32) -> Result<Option<Program>, Error> {
        let mut buffer = [0; Flavor::UniqueId.size()];
        match self.kernel.process_info(pid, Flavor::UniqueId, true, &mut buffer) {
            Ok(length) => Ok(buffer.get(..length).and_then(parse_program)),
            Err(errno) if errno.meaning() == Meaning::Failed && errno != Errno::EINVAL => {
                Err(Error::System { syscall: PROC_PIDINFO, errno, pid: Some(pid) })
            }
            Err(_) => Ok(None),
        }
    }
}

/// The answer of `KERN_PROCARGS2`. The path that exec was given is left out: it may be relative, and a link.
#[derive(Debug, PartialEq, Eq)]
struct Arguments<'a> {
    words: Vec<&'a [u8]>,
    /// The environment, and strings of the kernel's for the program's start behind it.
    rest: &'a [u8],
}

/// How many arguments; the path that exec was given and zeroes up to a multiple of eight; the arguments;
/// the environment. `None` for what has another form, as a program can write over it.
fn parse_arguments(answer: &[u8]) -> Option<Arguments<'_>> {
    let (count, strings) = answer.split_first_chunk()?;
    let count = usize::try_from(i32::from_le_bytes(*count)).ok()?;
    let path = strings.iter().position(|&byte| byte == 0)?;
    let padded = path.checked_add(1)?.checked_next_multiple_of(8)?;
    let (padded, mut rest) = strings.split_at_checked(padded)?;
    if padded.get(path..)?.iter().any(|&byte| byte != 0) {
        return None;
    }
    let mut words = Vec::new();
    for _ in 0..count {
        let end = rest.iter().position(|&byte| byte == 0)?;
        words.push(rest.get(..end)?);
        rest = rest.get(end.checked_add(1)?..)?;
    }
    Some(Arguments { words, rest })
}

/// What later kernels say of a program that keeps its arguments to itself by the entitlement
/// `com.apple.private.no-read-procargs`: one argument, and for it the path again behind a single zero. Where
/// the padding is a single zero anyway, nothing tells this from the truth.
fn is_made_up(answer: &[u8]) -> bool {
    let Some((count, strings)) = answer.split_first_chunk() else { return false };
    let Some(path) = strings.iter().position(|&byte| byte == 0) else { return false };
    let (path, rest) = strings.split_at(path);
    let again = rest.strip_prefix(b"\0\0").and_then(|rest| rest.strip_suffix(b"\0"));
    i32::from_le_bytes(*count) == 1 && again == Some(path) && !(path.len() + 2).is_multiple_of(8)
}

impl Arguments<'_> {
    fn command(&self, pid: u32, keys: &Keys) -> Result<Command, Error> {
        // Where the environment is kept from the caller, the answer ends with the arguments. Elsewhere
        // something always follows.
        if self.rest.is_empty() && !keys.is_empty() {
            return Err(Error::Refused { pid, syscall: SYSCTL, errno: Errno::EPERM });
        }
        Ok(Command {
            executable: None,
            arguments: self.words.iter().map(|word| word.to_vec()).collect(),
            line: None,
            working_directory: None,
            environment: pick(self.rest.split(|&byte| byte == 0), keys),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{is_made_up, parse_arguments};
    use proptest::prelude::{any, prop, proptest};

    #[test]
    fn empty_words_are_words_and_padding_is_none() {
        for (path, padded) in [("/a", 8), ("/bin/se", 8), ("/bin/zsh", 16)] {
            let mut answer = 3_i32.to_le_bytes().to_vec();
            answer.extend(path.as_bytes());
            answer.resize(4 + padded, 0);
            answer.extend(b"\0b\n\0\0A=1\0");
            let parsed = parse_arguments(&answer).unwrap();
            let parsed_words = [&b""[..], b"b\n", b""];
            assert_eq!(parsed.words, parsed_words);
            assert_eq!(parsed.rest, b"A=1\0");
            // Fewer words than it says, or a path over the padding, are no shorter list.
            for cut in 0..4 + padded + 4 {
                assert_eq!(parse_arguments(&answer[..cut]), None, "cut at {cut}");
            }
            answer[4 + padded - 1] = b'x';
            assert!(parse_arguments(&answer).is_none_or(|other| other.words != parsed_words));
        }
        assert_eq!(parse_arguments(&[0xff; 40]), None);
    }

    #[test]
    fn one_argument_that_the_kernel_makes_up_is_known_where_it_can_be() {
        for length in 1..20 {
            let path = "p".repeat(length);
            let answer = |text: String| [&1_i32.to_le_bytes()[..], text.as_bytes()].concat();
            let made_up = answer(format!("{path}\0\0{path}\0"));
            assert_eq!(is_made_up(&made_up), length % 8 != 6, "{length}");
            let zeroes = "\0".repeat((length + 1).next_multiple_of(8) - length);
            for rest in ["", "A=1\0"] {
                let told = answer(format!("{path}{zeroes}{path}\0{rest}"));
                assert!(!is_made_up(&told), "{length}");
                assert_eq!(parse_arguments(&told).unwrap().words, [path.as_bytes()]);
            }
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..100), count in 0_u8..9) {
            let answer = [&[count, 0, 0, 0], &bytes[..]].concat();
            let _ = (parse_arguments(&answer), is_made_up(&answer), is_made_up(&bytes));
        }
    }
}
