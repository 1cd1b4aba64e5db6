//! How the command of one Linux process is read so that no two processes and no two programs share it.

use super::Kernel;
use super::process::{ATTEMPTS, Process, Reading, STAT_BUFFER, Want, malformed_stat, read_process};
use super::stat::{Image, parse_image, parse_stat};
use crate::command::{Keys, pick, split_strings};
use crate::error::{Error, FailedCall, Meaning};
use crate::facts::Command;

/// A reading, and the command of the same process.
pub type Described = (Reading, Result<Option<Command>, Error>);

/// A file or a link below /proc/P that tells of the memory image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// `exe`.
    Executable,
    /// `cwd`.
    WorkingDirectory,
    /// `cmdline`.
    Arguments,
    /// `environ`.
    Environment,
}

/// What a read of a part says.
enum Told<T> {
    Here(T),
    /// There is no such process, or it has no image.
    Absent,
    Refused(FailedCall),
}

/// Reads one process and its command.
///
/// # Errors
/// A read whose failure says nothing about the process.
pub fn describe_process<K: Kernel>(kernel: &K, pid: u32, keys: &Keys) -> Result<Described, Error> {
    let (mut seen, mut cuts) = (None, 0);
    for _ in 0..ATTEMPTS {
        match describe_once(kernel, pid, keys)? {
            // Inside execve(2) nothing is shown; its places, if it chose the same, do not tell.
            Ok((reading, Err(Error::CommandCut { .. }))) if cuts < 2 => {
                cuts += 1;
                seen = Some(reading);
            }
            Ok(described) => return Ok(described),
            Err(reading) => seen = Some(reading),
        }
    }
    let reading = seen.unwrap_or(Reading::Unstable);
    Ok((reading, Err(Error::Unstable { pid })))
}

/// A second sandwich around the first: the stat file is opened before the process is read and read after
/// its command was, through one open file. That succeeds only if the process has not been reaped, so all
/// that was read by its number between is its own. `Err` is a reading whose command did not hold still.
fn describe_once<K: Kernel>(
    kernel: &K,
    pid: u32,
    keys: &Keys,
) -> Result<Result<Described, Reading>, Error> {
    let opened = kernel.open_stat(pid);
    let process = match read_process(kernel, pid, Want::Row)? {
        Reading::Present(process) => process,
        other => {
            let why = explain(pid, &other);
            return Ok(Ok((other, why)));
        }
    };
    let file = match opened {
        Ok(file) => file,
        Err(errno) if errno.meaning() == Meaning::Failed => {
            return Err(Error::System { syscall: "openat", errno, pid: Some(pid) });
        }
        Err(_) => return Ok(Err(Reading::Present(process))), // born meanwhile
    };
    let command = read_command(kernel, pid, &process, &file, keys)?;
    let mut buffer = [0; STAT_BUFFER];
    let still = match kernel.read_stat(&file, &mut buffer) {
        Ok(length) => {
            buffer.get(..length).and_then(parse_stat).ok_or_else(|| malformed_stat(pid))?
        }
        Err(errno) if errno.meaning() == Meaning::Failed => {
            return Err(Error::System { syscall: "read", errno, pid: Some(pid) });
        }
        Err(_) => return Ok(Err(Reading::Unstable)), // reaped: the next try tells
    };
    let bound = still.pid == pid && still.is_leader() && !still.is_torn();
    Ok(match command {
        Some(command) if bound => Ok((Reading::Present(process), command)),
        _ if bound => Err(Reading::Present(process)),
        _ => Err(Reading::Unstable),
    })
}

fn explain(pid: u32, reading: &Reading) -> Result<Option<Command>, Error> {
    match reading {
        Reading::Refused { syscall, errno, .. } => {
            Err(Error::Refused { pid, syscall, errno: *errno })
        }
        Reading::Hidden => Err(Error::Hidden { pid }),
        Reading::Unstable => Err(Error::Unstable { pid }),
        Reading::Absent | Reading::Present(_) => Ok(None),
    }
}

type Answer = Option<Result<Option<Command>, Error>>;

/// The command through one live thread of the process; `None` if it did not hold still.
fn read_command<K: Kernel>(
    kernel: &K,
    pid: u32,
    process: &Process,
    file: &K::StatFile,
    keys: &Keys,
) -> Result<Answer, Error> {
    if process.exited {
        return Ok(Some(Ok(None)));
    }
    // The files of a leader that is dead say nothing about the process that its threads are.
    let source = if process.stat.is_dead() {
        match live_thread(kernel, pid)? {
            Some(tid) => Source { kernel, pid, tid: Some(tid), file },
            None if process.exiting => return Ok(Some(Ok(None))),
            None => return Ok(None),
        }
    } else {
        Source { kernel, pid, tid: None, file }
    };
    let Some(image) = source.image()? else { return Ok(None) };
    if image.kernel_thread {
        return Ok(Some(Ok(Some(Command::default()))));
    }
    if image.size == 0 {
        // Its threads may have one yet, if it is the first alone that exits.
        return Ok(process.exiting.then_some(Ok(None)));
    }
    source.read_of(&image, keys)
}

/// A thread that has not begun to exit.
fn live_thread<K: Kernel>(kernel: &K, pid: u32) -> Result<Option<u32>, Error> {
    let ids = match kernel.thread_ids(pid) {
        Ok(ids) => ids,
        Err(failed) if failed.meaning() == Meaning::Failed => {
            return Err(failed.into_error(Some(pid)));
        }
        Err(_) => return Ok(None),
    };
    for tid in ids.into_iter().filter(|&tid| tid != pid) {
        let mut buffer = [0; STAT_BUFFER];
        if let Ok(length) = kernel.read_thread_stat(pid, tid, &mut buffer) {
            let stat = buffer.get(..length).and_then(parse_stat);
            let stat = stat.ok_or_else(|| malformed_stat(pid))?;
            if stat.pid == tid && !stat.is_dead() && !stat.has_exiting_flag() && !stat.is_torn() {
                return Ok(Some(tid));
            }
        }
    }
    Ok(None)
}

/// Where the parts of one command are read.
struct Source<'a, K: Kernel> {
    kernel: &'a K,
    pid: u32,
    /// `None` is the leader.
    tid: Option<u32>,
    file: &'a K::StatFile,
}

impl<K: Kernel> Source<'_, K> {
    /// `None` if there is no such thread any more.
    fn image(&self) -> Result<Option<Image>, Error> {
        let mut buffer = [0; STAT_BUFFER];
        let read = match self.tid {
            None => self
                .kernel
                .read_stat(self.file, &mut buffer)
                .map_err(|errno| FailedCall { syscall: "read", errno }),
            Some(tid) => self.kernel.read_thread_stat(self.pid, tid, &mut buffer),
        };
        match read {
            Ok(length) => {
                let image = buffer.get(..length).and_then(parse_image);
                image.map(Some).ok_or_else(|| malformed_stat(self.pid))
            }
            Err(failed) if failed.meaning() == Meaning::Failed => {
                Err(failed.into_error(Some(self.pid)))
            }
            Err(_) => Ok(None),
        }
    }

    /// Each part is one program's, being one answer. Two of them are one program's if nothing was executed
    /// between: then the same program and arguments stand there before and after, at the same places, in the
    /// same memory.
    fn read_of(&self, image: &Image, keys: &Keys) -> Result<Answer, Error> {
        let executable = self.link(Part::Executable)?;
        let arguments = match self.text(Part::Arguments)? {
            Ok(Told::Here(arguments)) => arguments,
            Ok(Told::Absent) => return Ok(None),
            Ok(Told::Refused(failed)) => return Ok(Some(Err(self.refused(failed)))),
            Err(error) => return Ok(Some(Err(error))),
        };
        let executable = match executable {
            Told::Here(path) if image.is_ready() => path,
            Told::Refused(_) => return self.read_closed(arguments, keys),
            Told::Here(_) | Told::Absent => return Ok(None), // inside execve(2)
        };
        // What was read so far must be there again, so the memory counts from here on.
        let held = match self.open(Part::Environment)? {
            Told::Here(file) => Ok(file),
            Told::Refused(failed) => Err(failed),
            Told::Absent => return Ok(None),
        };
        let bound = match &held {
            Ok(file) => self.shows_image(file, image)?,
            Err(_) => false,
        };
        let working_directory = match self.link(Part::WorkingDirectory)? {
            Told::Here(path) => Some(path),
            Told::Absent | Told::Refused(_) => None,
        };
        let environment = self.environment(&held, image, keys)?;
        let again = (self.link(Part::Executable)?, self.text(Part::Arguments)?);
        let same = match again {
            (Told::Here(program), Ok(Told::Here(words))) => {
                program == executable && words == arguments
            }
            _ => false,
        };
        let after = self.image()?;
        if !same || after.is_none_or(|after| after.places != image.places) {
            return Ok(None);
        }
        if let Ok(file) = &held
            && bound
            && !self.has_end(file, image)?
        {
            return Ok(None);
        }
        if !is_whole(&arguments, image.lengths().0) {
            return Ok(Some(Err(Error::CommandCut { what: "argument list", pid: self.pid })));
        }
        Ok(Some(environment.map(|environment| {
            Some(Command {
                executable: Some(executable),
                arguments: split_strings(&arguments),
                line: None,
                working_directory,
                environment,
            })
        })))
    }

    /// Whether an open environment shows by its end that the process still has the memory in which it was opened.
    /// The places alone do not say so where address space randomisation is switched off: an execve(2) may choose
    /// the same. `false` where there is nothing to be read in whatever memory it has.
    fn shows_image(&self, file: &K::PartFile, image: &Image) -> Result<bool, Error> {
        if self.has_end(file, image)? {
            return Ok(true);
        }
        let Told::Here(now) = self.open(Part::Environment)? else { return Ok(false) };
        self.has_end(&now, image)
    }

    /// The last byte of an environment is a NUL.
    fn has_end(&self, file: &K::PartFile, image: &Image) -> Result<bool, Error> {
        let Some(last) = image.lengths().1.checked_sub(1) else { return Ok(false) };
        let there = self.kernel.has_byte(file, last);
        there.map_err(|failed| failed.into_error(Some(self.pid)))
    }

    /// Where the kernel lets the caller see the arguments alone.
    fn read_closed(&self, arguments: Vec<u8>, keys: &Keys) -> Result<Answer, Error> {
        if !keys.is_empty() {
            // What cannot be read must not read as not set.
            return Ok(match self.text(Part::Environment)? {
                Ok(Told::Refused(failed)) => Some(Err(self.refused(failed))),
                _ => None, // it opened itself meanwhile
            });
        }
        let Some(after) = self.image()?.filter(|after| after.size > 0) else { return Ok(None) };
        if arguments.is_empty() && !(after.asleep && self.is_empty_still()?) {
            return Ok(None); // perhaps a glimpse of an execve(2)
        }
        let arguments = split_strings(&arguments);
        Ok(Some(Ok(Some(Command { arguments, ..Command::default() }))))
    }

    fn is_empty_still(&self) -> Result<bool, Error> {
        let empty =
            matches!(self.text(Part::Arguments)?, Ok(Told::Here(words)) if words.is_empty());
        Ok(empty && self.image()?.is_some_and(|image| image.asleep && image.size > 0))
    }

    /// The inner error says why this program's is not told.
    #[allow(clippy::type_complexity)] // said once
    fn environment(
        &self,
        held: &Result<K::PartFile, FailedCall>,
        image: &Image,
        keys: &Keys,
    ) -> Result<Result<Vec<(usize, Vec<u8>)>, Error>, Error> {
        if keys.is_empty() {
            return Ok(Ok(Vec::new()));
        }
        let file = match held {
            Ok(file) => file,
            Err(failed) => return Ok(Err(self.refused(*failed))),
        };
        Ok(match self.read(file, Part::Environment)? {
            Ok(Told::Here(block)) if u64::try_from(block.len()) == Ok(image.lengths().1) => {
                Ok(pick(block.split(|&byte| byte == 0), keys))
            }
            Ok(Told::Here(_) | Told::Absent) => {
                Err(Error::CommandCut { what: "environment", pid: self.pid })
            }
            Ok(Told::Refused(failed)) => Err(self.refused(failed)),
            Err(error) => Err(error),
        })
    }

    fn link(&self, part: Part) -> Result<Told<Vec<u8>>, Error> {
        self.told(self.kernel.read_part_link(self.pid, self.tid, part))
    }

    fn open(&self, part: Part) -> Result<Told<K::PartFile>, Error> {
        self.told(self.kernel.open_part(self.pid, self.tid, part))
    }

    /// The inner error says that it is too long.
    fn text(&self, part: Part) -> Result<Result<Told<Vec<u8>>, Error>, Error> {
        match self.open(part)? {
            Told::Here(file) => self.read(&file, part),
            Told::Absent => Ok(Ok(Told::Absent)),
            Told::Refused(failed) => Ok(Ok(Told::Refused(failed))),
        }
    }

    fn read(&self, file: &K::PartFile, part: Part) -> Result<Result<Told<Vec<u8>>, Error>, Error> {
        Ok(match self.kernel.read_part(file) {
            Ok(None) => {
                let what = if part == Part::Arguments { "argument list" } else { "environment" };
                Err(Error::TooLong { what, pid: self.pid })
            }
            Ok(Some(bytes)) => Ok(Told::Here(bytes)),
            Err(failed) => Ok(self.told(Err(failed))?),
        })
    }

    fn told<T>(&self, answer: Result<T, FailedCall>) -> Result<Told<T>, Error> {
        match answer {
            Ok(value) => Ok(Told::Here(value)),
            Err(failed) => match failed.meaning() {
                Meaning::Absent => Ok(Told::Absent),
                Meaning::Refused => Ok(Told::Refused(failed)),
                Meaning::Failed => Err(failed.into_error(Some(self.pid))),
            },
        }
    }

    const fn refused(&self, FailedCall { syscall, errno }: FailedCall) -> Error {
        Error::Refused { pid: self.pid, syscall, errno }
    }
}

/// The kernel shows the whole argument list, or, where its last byte is no NUL any more, one string: the
/// title that the program has written over it (proc_pid_cmdline(5)). Anything else was cut.
fn is_whole(arguments: &[u8], length: u64) -> bool {
    let shown = u64::try_from(arguments.len());
    let title = arguments.strip_suffix(b"\0").unwrap_or(arguments);
    shown == Ok(length) || (!arguments.is_empty() && !title.contains(&0))
}
