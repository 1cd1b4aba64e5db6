//! The Windows census: one list of all processes with topology, birth and threads in one answer, and a
//! handle of each process for its owner and its command.
//!
//! The form of the list is in [`record`], its reading in [`list`], that of a user in [`user`]; what a
//! handle and the list say together is in [`process`]. A command is read in [`command`], out of memory
//! whose form is in [`parameters`], and split in [`arguments`].

pub mod arguments;
pub mod bytes;
pub mod command;
pub mod list;
pub mod parameters;
pub mod process;
pub mod record;
pub mod user;

use crate::census::{Deadline, Host, Visibility};
use crate::command::{Described, DescribingHost, Keys};
use crate::error::{Error, FailedRead, WindowsCode};
use crate::facts::{Command, Identity, Snapshot};
use list::Room;
use process::Reader;

/// What a handle is to be good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// `PROCESS_QUERY_LIMITED_INFORMATION`.
    Query,
    /// The same and `SYNCHRONIZE`.
    QueryAndWait,
    /// The same as the first and `PROCESS_VM_READ`.
    QueryAndRead,
}

/// A text that the kernel tells of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Text {
    /// `ProcessCommandLineInformation`.
    CommandLine,
    /// `ProcessImageFileNameWin32`.
    Win32Path,
    /// `ProcessImageFileName`.
    NativePath,
}

/// Two of the times of `GetProcessTimes`, in units of 100 ns since 1601.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// Birth.
    pub created: i64,
    /// When its last thread began to end; 0 before.
    pub exited: i64,
}

/// Three of the numbers of `PROCESS_BASIC_INFORMATION`, as wide as they are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Basic {
    /// `PebBaseAddress`; 0 for a process without a user part.
    pub peb: u64,
    /// `UniqueProcessId`.
    pub pid: u64,
    /// `InheritedFromUniqueProcessId`.
    pub parent_pid: u64,
}

/// The system calls that the census is made of, each of them one call.
pub trait Kernel {
    /// A handle of a process; dropping it is `CloseHandle`.
    type Process;
    /// A handle of a token; dropping it is `CloseHandle`.
    type Token;

    /// `GetCurrentProcessId`.
    fn own_pid(&self) -> u32;

    /// `NtQuerySystemInformation(SystemProcessInformation)`: how many bytes were written, or why none
    /// were and how many it would have taken.
    fn query_processes(&self, buffer: &mut [u8]) -> Result<usize, (WindowsCode, usize)>;

    /// `OpenProcess`.
    fn open(&self, pid: u32, access: Access) -> Result<Self::Process, FailedRead>;

    /// `GetProcessTimes`.
    fn times(&self, process: &Self::Process) -> Result<Times, FailedRead>;

    /// `NtQueryInformationProcess(ProcessBasicInformation)`.
    fn basic(&self, process: &Self::Process) -> Result<Basic, FailedRead>;

    /// `NtQueryInformationProcess` after a text: the length of the answer.
    fn text(
        &self,
        process: &Self::Process,
        text: Text,
        answer: &mut [u8],
    ) -> Result<usize, FailedRead>;

    /// `NtQueryInformationProcess(ProcessWow64Information)`: the 32-bit PEB; 0 for a 64-bit process.
    fn peb32(&self, process: &Self::Process) -> Result<u64, FailedRead>;

    /// `ReadProcessMemory`: all of it.
    fn read_memory(
        &self,
        process: &Self::Process,
        address: u64,
        into: &mut [u8],
    ) -> Result<(), FailedRead>;

    /// `WaitForSingleObject` without waiting: whether the object says that its process has ended.
    fn has_ended(&self, process: &Self::Process) -> Result<bool, FailedRead>;

    /// `OpenProcessToken`; of the caller's own process without one.
    fn open_token(&self, process: Option<&Self::Process>) -> Result<Self::Token, FailedRead>;

    /// `GetTokenInformation(TokenUser)`: the length of the answer.
    fn token_user(&self, token: &Self::Token, answer: &mut [u8]) -> Result<usize, FailedRead>;
}

/// One call's view of Windows.
#[derive(Debug)]
pub struct Windows<K> {
    kernel: K,
    room: &'static Room,
}

impl<K: Kernel> Windows<K> {
    /// The view of a call that learns from others how large a list is.
    pub const fn new(kernel: K, room: &'static Room) -> Self {
        Self { kernel, room }
    }

    const fn reader(&self, deadline: Deadline) -> Reader<'_, K> {
        Reader { kernel: &self.kernel, room: self.room, deadline }
    }
}

impl<K: Kernel> DescribingHost for Windows<K> {
    fn describe(&self, pid: u32, keys: &Keys) -> Result<Option<Described>, Error> {
        self.reader(Deadline::after(None)).describe(pid, keys)
    }

    fn describe_row(&self, row: Snapshot, keys: &Keys) -> Result<Option<Described>, Error> {
        self.reader(Deadline::after(None)).describe_row(row, keys)
    }

    fn describe_alone(&self, pid: u32, keys: &Keys) -> Result<Option<Command>, Error> {
        self.reader(Deadline::after(None)).read_command(pid, keys)
    }
}

impl<K: Kernel> Host for Windows<K> {
    /// The kernel names the creator for ever, also where it has ended: nothing becomes truer by another
    /// look.
    const PARENTS_MOVE: bool = false;

    fn own_pid(&self) -> u32 {
        self.kernel.own_pid()
    }

    /// Nothing hides processes from the list: what is refused is the owner.
    fn read_all(&self, _: Visibility, deadline: Deadline) -> Result<Vec<Snapshot>, Error> {
        self.reader(deadline).read_rows(None)
    }

    fn read_selected(&self, pids: &[u32], deadline: Deadline) -> Result<Vec<Snapshot>, Error> {
        self.reader(deadline).read_rows(Some(pids))
    }

    fn read_one(&self, pid: u32, deadline: Deadline) -> Result<Option<Snapshot>, Error> {
        Ok(self.read_selected(&[pid], deadline)?.pop())
    }

    fn read_identity(&self, pid: u32) -> Result<Option<Identity>, Error> {
        self.reader(Deadline::after(None)).read_identity(pid)
    }
}
