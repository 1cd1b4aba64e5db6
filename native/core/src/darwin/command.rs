//! How the command of one Darwin process is read so that it is one program's, and the form of what
//! `KERN_PROCARGS2` answers.

use super::Kernel;
use super::info::{Flavor, Program, parse_program};
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
/// A target whose memory could not be read.
const EIO: Errno = Errno(5);

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
            // Nothing tells programs apart: the same process and the same answer once more must do.
            (None, None) => {
                self.read(pid, Want::Row)? == Reading::Present(process.clone())
                    && self.read_command(pid, &process, keys)? == command
            }
            _ => false,
        };
        let reading = Reading::Present(process);
        Ok(match command {
            Some(command) if bound => Ok((reading, command)),
            // The kernel does not answer for a live process of the caller's: it refuses.
            None if bound => {
                Err((reading, Err(Error::Refused { pid, syscall: SYSCTL, errno: Errno::EINVAL })))
            }
            _ => Err((reading, Err(Error::Unstable { pid }))),
        })
    }

    /// `None` where the kernel has none for a process that should have one.
    fn read_command(
        &self,
        pid: u32,
        process: &Process,
        keys: &Keys,
    ) -> Result<Option<Result<Option<Command>, Error>>, Error> {
        if pid == 0 {
            return Ok(Some(Ok(Some(Command::default())))); // the kernel itself
        }
        if process.state == Some(State::Zombie) {
            return Ok(Some(Ok(None)));
        }
        let mut room = vec![0; ROOM];
        let length = match self.kernel.arguments(pid, &mut room) {
            Ok(length) => length,
            // Exit, another user's process, and a few more look the same.
            Err(Errno::EINVAL) => {
                let theirs = process.uid != self.effective_uid && self.effective_uid != 0;
                return Ok(if process.exiting {
                    Some(Ok(None))
                } else if theirs {
                    Some(Err(Error::Refused { pid, syscall: SYSCTL, errno: Errno::EINVAL }))
                } else {
                    None
                });
            }
            Err(EIO) => return Ok(Some(Err(Error::CommandCut { what: "argument list", pid }))),
            Err(errno) if errno.meaning() == Meaning::Refused => {
                return Ok(Some(Err(Error::Refused { pid, syscall: SYSCTL, errno })));
            }
            Err(errno) => return Err(Error::System { syscall: SYSCTL, errno, pid: Some(pid) }),
        };
        if length >= ROOM {
            return Ok(Some(Err(Error::TooLong { what: "argument list", pid })));
        }
        let answer = room.get(..length).and_then(parse_arguments);
        let answer = answer.ok_or(Error::CommandCut { what: "argument list", pid });
        Ok(Some(answer.and_then(|answer| answer.command(pid, keys).map(Some))))
    }

    /// `None` where the kernel does not tell.
    fn program(&self, pid: u32) -> Result<Option<Program>, Error> {
        let mut buffer = [0; Flavor::UniqueId.size()];
        match self.kernel.process_info(pid, Flavor::UniqueId, true, &mut buffer) {
            Ok(length) => Ok(buffer.get(..length).and_then(parse_program)),
            Err(errno) if errno.meaning() == Meaning::Failed && errno != Errno::EINVAL => {
                Err(Error::System { syscall: "proc_pidinfo", errno, pid: Some(pid) })
            }
            Err(_) => Ok(None),
        }
    }
}

/// The answer of `KERN_PROCARGS2`.
#[derive(Debug, PartialEq, Eq)]
struct Arguments<'a> {
    executable: &'a [u8],
    words: Vec<&'a [u8]>,
    /// The environment, and strings of the kernel's for the program's start behind it.
    rest: &'a [u8],
}

/// How many arguments; the path that exec was given and zeroes up to a multiple of eight; the arguments;
/// the environment. `None` for what has another form, as a program can write over it.
fn parse_arguments(answer: &[u8]) -> Option<Arguments<'_>> {
    let (count, strings) = answer.split_first_chunk()?;
    let count = usize::try_from(i32::from_le_bytes(*count)).ok()?;
    let executable = strings.split(|&byte| byte == 0).next()?;
    let path = executable.len().checked_add(1)?.checked_next_multiple_of(8)?;
    let (path, mut rest) = strings.split_at_checked(path)?;
    if path.get(executable.len()..)?.iter().any(|&byte| byte != 0) {
        return None;
    }
    let mut words = Vec::new();
    for _ in 0..count {
        let end = rest.iter().position(|&byte| byte == 0)?;
        words.push(rest.get(..end)?);
        rest = rest.get(end.checked_add(1)?..)?;
    }
    Some(Arguments { executable, words, rest })
}

impl Arguments<'_> {
    fn command(&self, pid: u32, keys: &Keys) -> Result<Command, Error> {
        // Where the environment is kept from the caller, the answer ends with the arguments. Elsewhere
        // something always follows.
        if self.rest.is_empty() && !keys.is_empty() {
            return Err(Error::Refused { pid, syscall: SYSCTL, errno: Errno::EPERM });
        }
        Ok(Command {
            executable: Some(self.executable.to_vec()).filter(|path| !path.is_empty()),
            arguments: self.words.iter().map(|word| word.to_vec()).collect(),
            line: None,
            working_directory: None,
            environment: pick(self.rest.split(|&byte| byte == 0), keys),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::parse_arguments;
    use proptest::prelude::{any, prop, proptest};

    #[test]
    fn empty_words_are_words_and_padding_is_none() {
        for (path, padded) in [("/a", 8), ("/bin/se", 8), ("/bin/zsh", 16)] {
            let mut answer = 3_i32.to_le_bytes().to_vec();
            answer.extend(path.as_bytes());
            answer.resize(4 + padded, 0);
            answer.extend(b"\0b\n\0\0A=1\0");
            let parsed = parse_arguments(&answer).unwrap();
            assert_eq!(parsed.executable, path.as_bytes());
            assert_eq!(parsed.words, [&b""[..], b"b\n", b""]);
            assert_eq!(parsed.rest, b"A=1\0");
            // Fewer words than it says, or a path over the padding, are no shorter list.
            for cut in 0..4 + padded + 4 {
                assert_eq!(parse_arguments(&answer[..cut]), None, "cut at {cut}");
            }
            answer[4 + padded - 1] = b'x';
            assert!(parse_arguments(&answer).is_none_or(|other| other.executable.len() >= padded));
        }
        assert_eq!(parse_arguments(&[0xff; 40]), None);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..100), count in 0_u8..9) {
            let _ = parse_arguments(&[&[count, 0, 0, 0], &bytes[..]].concat());
        }
    }
}
