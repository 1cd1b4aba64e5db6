//! How the command of one process is read. A handle is of one process as long as it is open, and a process
//! runs one program in its life: what is read through one handle of the right birth is of one program.

use super::list::aligned;
use super::parameters::{
    LONGEST_TEXT, Layout, NATIVE, Place, TEXT_ROOM, WOW64, parse_directory, parse_environment,
    parse_text,
};
use super::process::{ATTEMPTS, IDLE, Reader, refused};
use super::record::{ALIGNMENT, micros_since_epoch};
use super::{Access, Kernel, Text, arguments, bytes};
use crate::command::{Described, Keys, LONGEST, is_of_the_process};
use crate::error::{Error, FailedRead, Meaning, WindowsCode};
use crate::facts::{Command, Snapshot};

/// What a handle of a pid tells.
enum Told {
    Command(Result<Option<Command>, Error>),
    /// Nobody has the pid.
    Absent,
    /// It is of another birth.
    Other,
}

impl<K: Kernel> Reader<'_, K> {
    /// One process and its command.
    ///
    /// # Errors
    /// A call whose failure says nothing about the process.
    pub fn describe(&self, pid: u32, keys: &Keys) -> Result<Option<Described>, Error> {
        match self.read_rows(Some(&[pid]))?.pop() {
            Some(row) => self.describe_row(row, keys),
            None => Ok(None),
        }
    }

    /// A row and the command of the process of its birth; the row is read again if the pid has changed
    /// hands.
    ///
    /// # Errors
    /// A call whose failure says nothing about the process.
    pub fn describe_row(&self, row: Snapshot, keys: &Keys) -> Result<Option<Described>, Error> {
        let pid = row.pid;
        let mut row = Some(row);
        for _ in 0..ATTEMPTS {
            let Some(current) = row else { return Ok(None) };
            if pid == IDLE {
                return Ok(Some((current, Ok(Some(Command::default())))));
            }
            let Some(identity) = current.identity else {
                return Ok(Some((current, Err(Error::Unstable { pid }))));
            };
            match self.ask(pid, Some(identity.start_time_micros), keys) {
                Told::Command(command) => return Ok(Some((current, command))),
                Told::Absent => return Ok(None),
                Told::Other => row = self.read_rows(Some(&[pid]))?.pop(),
            }
        }
        Ok(Some((Snapshot::bare(pid), Err(Error::Unstable { pid }))))
    }

    /// The command alone; `None` if the process was proved absent or its exit has begun. Needs no list.
    ///
    /// # Errors
    /// A refusal, a command that is too long or cannot be read, or a call that failed.
    pub fn read_command(&self, pid: u32, keys: &Keys) -> Result<Option<Command>, Error> {
        if pid == IDLE {
            let there = self.read_rows(Some(&[pid]))?.pop();
            return Ok(there.map(|_| Command::default()));
        }
        match self.ask(pid, None, keys) {
            Told::Command(Err(Error::WindowsRefused { .. }))
                if !pid.is_multiple_of(4) && self.read_rows(Some(&[pid]))?.is_empty() =>
            {
                Ok(None) // it was the process of the rounded pid that refused
            }
            Told::Command(command) => command,
            Told::Absent | Told::Other => Ok(None),
        }
    }

    fn ask(&self, pid: u32, birth: Option<i64>, keys: &Keys) -> Told {
        match self.look(pid, birth, keys) {
            Ok(told) => told,
            Err(failed) => Told::Command(Err(error_of(failed, pid))),
        }
    }

    /// An error is of the handle, not of the command.
    fn look(&self, pid: u32, birth: Option<i64>, keys: &Keys) -> Result<Told, FailedRead> {
        let (process, refusal) = match self.open_to_read(pid) {
            Err(failed) if failed.meaning() == Meaning::Absent => return Ok(Told::Absent),
            opened => opened?,
        };
        let basic = self.kernel.basic(&process)?;
        if basic.pid != u64::from(pid) {
            return Ok(Told::Absent); // OpenProcess rounds down to a multiple of four
        }
        let times = self.kernel.times(&process)?;
        if birth.is_some_and(|birth| micros_since_epoch(times.created) != Some(birth)) {
            return Ok(Told::Other);
        }
        if times.exited != 0 {
            return Ok(Told::Command(Ok(None)));
        }
        let target = Target { kernel: self.kernel, process, pid, peb: basic.peb, refusal };
        let command = target.command(keys).map(Some);
        // The end of a process fails its reads in many ways, refusal being one.
        let ended = match &command {
            Ok(_) => false,
            Err(error) if is_end(error) => true,
            Err(_) => self.kernel.times(&target.process)?.exited != 0,
        };
        Ok(Told::Command(if ended { Ok(None) } else { command }))
    }

    /// With the right to read its memory, or why that is refused.
    fn open_to_read(&self, pid: u32) -> Result<(K::Process, Option<FailedRead>), FailedRead> {
        match self.kernel.open(pid, Access::QueryAndRead) {
            Err(refusal) if refusal.meaning() == Meaning::Refused => {
                self.kernel.open(pid, Access::Query).map(|process| (process, Some(refusal)))
            }
            opened => opened.map(|process| (process, None)),
        }
    }
}

/// A process that has not begun to exit.
struct Target<'a, K: Kernel> {
    kernel: &'a K,
    process: K::Process,
    pid: u32,
    /// 0 for the kernel's own processes.
    peb: u64,
    /// Why its memory may not be read.
    refusal: Option<FailedRead>,
}

/// What stands in the memory of a process at one moment, if it held still meanwhile.
#[derive(PartialEq)]
struct Glimpse {
    directory: Vec<u8>,
    line: Vec<u8>,
    environment: Vec<u8>,
}

/// What of it is wanted besides the directory.
#[derive(Clone, Copy)]
struct Wanted {
    line: bool,
    environment: bool,
}

impl<K: Kernel> Target<'_, K> {
    fn command(&self, keys: &Keys) -> Result<Command, Error> {
        if self.peb == 0 {
            return Ok(Command::default());
        }
        let told = self.command_line()?;
        let executable = self.executable()?;
        let wanted = Wanted { line: told.is_none(), environment: !keys.is_empty() };
        let memory = match self.memory(wanted) {
            Err(error) if is_of_the_process(&error) && !wanted.line && !wanted.environment => None,
            memory => Some(memory?),
        };
        let line = match (told, &memory) {
            (Some(line), _) => line,
            (None, memory) => memory.as_ref().map_or_else(Vec::new, |it| bytes::units(&it.line)),
        };
        let environment = match &memory {
            Some(memory) if wanted.environment => {
                let parsed = parse_environment(&memory.environment, keys);
                parsed.ok_or_else(|| self.cut("environment"))?
            }
            _ => Vec::new(),
        };
        Ok(Command {
            executable,
            arguments: arguments::split(&line).iter().map(|word| bytes::decode(word)).collect(),
            line: Some(bytes::decode(&line)),
            working_directory: memory
                .and_then(|memory| parse_directory(&bytes::units(&memory.directory))),
            environment,
        })
    }

    /// `None` from a system that does not know the question.
    fn command_line(&self) -> Result<Option<Vec<u16>>, Error> {
        match self.text(Text::CommandLine) {
            Err(failed) if failed.code == WindowsCode::INVALID_INFO_CLASS => Ok(None),
            Err(failed) => Err(self.failed(failed, ARGUMENTS)),
            Ok(line) => line.map(Some).ok_or_else(|| self.malformed("a command line")),
        }
    }

    /// The path of Win32's, and where its volume has none, the kernel's own.
    fn executable(&self) -> Result<Option<Vec<u8>>, Error> {
        let path = match self.text(Text::Win32Path) {
            Err(failed) if failed.meaning() != Meaning::Refused => self.text(Text::NativePath),
            path => path,
        };
        match path {
            Ok(Some(path)) => Ok(Some(bytes::decode(&path)).filter(|path| !path.is_empty())),
            Ok(None) => Err(self.malformed("the path of a program")),
            Err(failed) if failed.meaning() == Meaning::Refused => Ok(None),
            Err(failed) => Err(error_of(failed, self.pid)),
        }
    }

    /// The inner `None` is an answer of another form.
    fn text(&self, text: Text) -> Result<Option<Vec<u16>>, FailedRead> {
        let mut storage = vec![0; TEXT_ROOM.saturating_add(ALIGNMENT)];
        let buffer = aligned(&mut storage, TEXT_ROOM);
        let length = self.kernel.text(&self.process, text, buffer)?;
        let address = u64::try_from(buffer.as_ptr().addr()).ok();
        let answer = buffer.get(..length).zip(address);
        Ok(answer.and_then(|(answer, address)| parse_text(answer, address)))
    }

    /// The process may write while it is read, so what counts is the same answer twice.
    fn memory(&self, wanted: Wanted) -> Result<Glimpse, Error> {
        if let Some(refusal) = self.refusal {
            return Err(refused(refusal, self.pid));
        }
        let (layout, peb) = self.layout()?;
        let pointer = self.read(layout.pointer(peb), ARGUMENTS)?;
        let parameters = layout.parameters(&pointer);
        let mut last = self.glimpse(layout, parameters, wanted);
        for _ in 0..ATTEMPTS {
            let now = self.glimpse(layout, parameters, wanted);
            if now == last {
                return now;
            }
            last = now;
        }
        Err(Error::Unstable { pid: self.pid })
    }

    /// A 32-bit process works with a PEB and parameters of its own.
    fn layout(&self) -> Result<(Layout, u64), Error> {
        match self.kernel.peb32(&self.process) {
            Ok(0) => Ok((NATIVE, self.peb)),
            Ok(peb) => Ok((WOW64, peb)),
            Err(failed) => Err(error_of(failed, self.pid)),
        }
    }

    fn glimpse(
        &self,
        layout: Layout,
        parameters: Option<Place>,
        wanted: Wanted,
    ) -> Result<Glimpse, Error> {
        let parameters = self.read(parameters, ARGUMENTS)?;
        let parameters = layout.parse(&parameters).ok_or_else(|| self.cut(ARGUMENTS))?;
        let mut glimpse = Glimpse {
            directory: self.read(Some(parameters.directory), "working directory")?,
            line: Vec::new(),
            environment: Vec::new(),
        };
        if wanted.line {
            glimpse.line = self.read(Some(parameters.line), ARGUMENTS)?;
        }
        if wanted.environment {
            glimpse.environment = self.read(Some(parameters.environment), "environment")?;
        }
        Ok(glimpse)
    }

    /// All of a place: a part is none.
    fn read(&self, place: Option<Place>, what: &'static str) -> Result<Vec<u8>, Error> {
        let place = place.ok_or_else(|| self.cut(what))?;
        if place.length > LONGEST {
            return Err(Error::TooLong { what, pid: self.pid });
        }
        let mut bytes = vec![0; place.length];
        if !bytes.is_empty() {
            let read = self.kernel.read_memory(&self.process, place.address, &mut bytes);
            read.map_err(|failed| self.failed(failed, what))?;
        }
        Ok(bytes)
    }

    const fn failed(&self, failed: FailedRead, what: &'static str) -> Error {
        if failed.code.is_of_memory() { self.cut(what) } else { error_of(failed, self.pid) }
    }

    const fn cut(&self, what: &'static str) -> Error {
        Error::CommandCut { what, pid: self.pid }
    }

    const fn malformed(&self, what: &'static str) -> Error {
        Error::Malformed { what, pid: Some(self.pid) }
    }
}

const ARGUMENTS: &str = "argument list";

/// A refusal, or a failure that says nothing about the process.
const fn error_of(failed: FailedRead, pid: u32) -> Error {
    match failed.meaning() {
        Meaning::Refused => refused(failed, pid),
        Meaning::Absent | Meaning::Failed => failed.into_error(Some(pid)),
    }
}

const fn is_end(error: &Error) -> bool {
    matches!(error, Error::Windows { code: WindowsCode::PROCESS_IS_TERMINATING, .. })
}

/// Texts are shorter than what is read of one place.
const _: () = assert!(LONGEST_TEXT < LONGEST);
