//! How a read can fail, and the only table from a system's codes to meaning. No I/O.

use std::fmt;

/// A raw errno of the platform that was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

impl Errno {
    /// Operation not permitted.
    pub const EPERM: Self = Self(1);
    /// No such file or directory.
    pub const ENOENT: Self = Self(2);
    /// No such process.
    pub const ESRCH: Self = Self(3);
    /// Out of memory.
    pub const ENOMEM: Self = Self(12);
    /// Permission denied.
    pub const EACCES: Self = Self(13);
    /// Invalid argument.
    pub const EINVAL: Self = Self(22);
    /// Too many open files in the system.
    pub const ENFILE: Self = Self(23);
    /// Too many open files in the process.
    pub const EMFILE: Self = Self(24);

    /// Something ran out that another moment may have: descriptors or memory.
    #[must_use]
    pub const fn is_shortage(self) -> bool {
        matches!(self, Self::ENOMEM | Self::ENFILE | Self::EMFILE)
    }

    /// What this errno says about the process that was asked for. The numbers are the same on
    /// Linux and Darwin.
    #[must_use]
    pub const fn meaning(self) -> Meaning {
        match self {
            Self::ENOENT | Self::ESRCH => Meaning::Absent,
            Self::EPERM | Self::EACCES => Meaning::Refused,
            _ => Meaning::Failed,
        }
    }
}

/// A failed system call, where a read is made of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedCall {
    /// The system call.
    pub syscall: &'static str,
    /// Its errno.
    pub errno: Errno,
}

impl FailedCall {
    /// What it says about the process that was asked for.
    #[must_use]
    pub const fn meaning(self) -> Meaning {
        self.errno.meaning()
    }

    /// The error of a call that cannot go on.
    #[must_use]
    pub const fn into_error(self, pid: Option<u32>) -> Error {
        Error::System { syscall: self.syscall, errno: self.errno, pid }
    }
}

/// A code of Windows, where there are no errnos.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WindowsCode {
    /// `NTSTATUS`, of the calls of ntdll.
    NtStatus(u32),
    /// Of `GetLastError`.
    Win32(u32),
}

impl WindowsCode {
    /// `STATUS_INFO_LENGTH_MISMATCH`: the buffer is too small.
    pub const INFO_LENGTH_MISMATCH: Self = Self::NtStatus(0xc000_0004);
    /// `STATUS_ACCESS_DENIED`.
    pub const STATUS_ACCESS_DENIED: Self = Self::NtStatus(0xc000_0022);
    /// `STATUS_PROCESS_IS_TERMINATING`.
    pub const PROCESS_IS_TERMINATING: Self = Self::NtStatus(0xc000_010a);
    /// `ERROR_ACCESS_DENIED`.
    pub const ACCESS_DENIED: Self = Self::Win32(5);
    /// `STATUS_INVALID_INFO_CLASS`: this system has no such question.
    pub const INVALID_INFO_CLASS: Self = Self::NtStatus(0xc000_0003);
    /// `ERROR_INVALID_PARAMETER`: from `OpenProcess`, that nobody has the pid.
    pub const INVALID_PARAMETER: Self = Self::Win32(87);

    /// What it says about the process that was asked for. Absence is a word of `OpenProcess` alone.
    #[must_use]
    pub const fn meaning(self) -> Meaning {
        match self {
            Self::INVALID_PARAMETER => Meaning::Absent,
            Self::ACCESS_DENIED | Self::STATUS_ACCESS_DENIED => Meaning::Refused,
            _ => Meaning::Failed,
        }
    }
}

impl WindowsCode {
    /// Whether it says that a part of the target's own memory cannot be read: `STATUS_PARTIAL_COPY`,
    /// `STATUS_ACCESS_VIOLATION`, `STATUS_NOT_FOUND` (from a question after something that stands there),
    /// `ERROR_PARTIAL_COPY`, `ERROR_NOACCESS`.
    #[must_use]
    pub const fn is_of_memory(self) -> bool {
        matches!(
            self,
            Self::NtStatus(0x8000_000d | 0xc000_0005 | 0xc000_0225) | Self::Win32(299 | 998)
        )
    }
}

impl fmt::Display for WindowsCode {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NtStatus(code) => write!(to, "NTSTATUS 0x{code:08X}"),
            Self::Win32(code) => write!(to, "Windows error {code}"),
        }
    }
}

/// A failed call of Windows, where a read is made of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedRead {
    /// The call.
    pub syscall: &'static str,
    /// What it said.
    pub code: WindowsCode,
}

impl FailedRead {
    /// What it says about the process that was asked for.
    #[must_use]
    pub const fn meaning(self) -> Meaning {
        self.code.meaning()
    }

    /// The error of a call that cannot go on.
    #[must_use]
    pub const fn into_error(self, pid: Option<u32>) -> Error {
        Error::Windows { syscall: self.syscall, code: self.code, pid }
    }
}

/// What a failed read says about its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The kernel has no such process (or hides it: the caller must find out which).
    Absent,
    /// The kernel refuses to tell.
    Refused,
    /// The read itself failed and says nothing about the process.
    Failed,
}

/// The closed set of error codes that users see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// No backend, or no ground on which its answers would be true.
    UnsupportedPlatform,
    /// The kernel or a policy refuses the fact.
    AccessDenied,
    /// A census that cannot be trusted to be whole, or a pid that did not hold still.
    Incomplete,
    /// The deadline passed.
    Timeout,
    /// A read failed.
    OperationFailed,
}

impl Code {
    /// The public name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UnsupportedPlatform => "unsupported-platform",
            Self::AccessDenied => "access-denied",
            Self::Incomplete => "incomplete",
            Self::Timeout => "timeout",
            Self::OperationFailed => "operation-failed",
        }
    }
}

/// The closed set of reasons behind a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A mount option hides processes from the caller.
    VisibilityPolicy,
    /// The caller's own process is not in the list.
    OwnPidMissing,
    /// The kernel's list was cut short at every try.
    CutShort,
    /// The pid changed hands at every try.
    UnstablePid,
    /// What the kernel returned does not have the documented form.
    MalformedRecord,
    /// An argument list or an environment is longer than what is read of one.
    TooLong,
    /// Rosetta translates the caller or the process, and its arguments cannot be read.
    Translated,
    /// There is no process file system to ask.
    ProcfsUnavailable,
    /// The process file system belongs to another pid namespace.
    ForeignProcfs,
    /// A defect in this library.
    Panic,
}

impl Reason {
    /// The public name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::VisibilityPolicy => "visibility-policy",
            Self::OwnPidMissing => "own-pid-missing",
            Self::CutShort => "cut-short",
            Self::UnstablePid => "unstable-pid",
            Self::MalformedRecord => "malformed-record",
            Self::TooLong => "too-long",
            Self::Translated => "translated",
            Self::ProcfsUnavailable => "procfs-unavailable",
            Self::ForeignProcfs => "foreign-procfs",
            Self::Panic => "panic",
        }
    }
}

/// A failed census or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A kernel read failed with an errno that says nothing about its target.
    #[error("{syscall} failed")]
    System {
        /// The system call.
        syscall: &'static str,
        /// Its errno.
        errno: Errno,
        /// The process that was asked for.
        pid: Option<u32>,
    },
    /// The kernel refused every fact of the process.
    #[error("the kernel refuses to describe process {pid}")]
    Refused {
        /// The process.
        pid: u32,
        /// The system call that was refused.
        syscall: &'static str,
        /// Its errno.
        errno: Errno,
    },
    /// A call of Windows failed with a code that says nothing about its target.
    #[error("{syscall} failed: {code}")]
    Windows {
        /// The call.
        syscall: &'static str,
        /// What it said.
        code: WindowsCode,
        /// The process that was asked for.
        pid: Option<u32>,
    },
    /// Windows refuses to open the process.
    #[error("the kernel refuses to describe process {pid}: {code}")]
    WindowsRefused {
        /// The process.
        pid: u32,
        /// The call that was refused.
        syscall: &'static str,
        /// What it said.
        code: WindowsCode,
    },
    /// The process is there and the kernel keeps no birth of it: the idle process of Windows.
    #[error("the kernel keeps no birth of process {pid}")]
    NoBirth {
        /// The process.
        pid: u32,
    },
    /// The process exists and a policy hides it.
    #[error("process {pid} exists but is hidden from the caller")]
    Hidden {
        /// The process.
        pid: u32,
    },
    /// A policy hides processes, so a full census cannot be whole.
    #[error("the mount options of /proc hide processes from the caller")]
    NotWhole,
    /// The caller is missing from a full census.
    #[error("the caller's own pid {pid} is missing from the list of processes")]
    OwnPidMissing {
        /// The caller's pid.
        pid: u32,
    },
    /// The kernel's list of processes was cut short at every try.
    #[error("the list of processes was cut short at every try")]
    CutShort,
    /// The arguments or the environment of a process are longer than what is read of them.
    #[error("the {what} of process {pid} is longer than what is read of one")]
    TooLong {
        /// Which of the two.
        what: &'static str,
        /// The process.
        pid: u32,
    },
    /// The kernel gave a part of the arguments or the environment of a process: the rest cannot be read.
    #[error("the kernel cut the {what} of process {pid} short")]
    CommandCut {
        /// Which of the two.
        what: &'static str,
        /// The process.
        pid: u32,
    },
    /// The arguments of a live process of the caller's cannot be read, and Rosetta translates one of the two.
    #[error(
        "the arguments of process {pid} cannot be read through Rosetta: use a native arm64 Node"
    )]
    Translated {
        /// The process.
        pid: u32,
    },
    /// The pid changed hands, or its process executed another program, at every try.
    #[error("pid {pid} did not hold still at any try")]
    Unstable {
        /// The pid.
        pid: u32,
    },
    /// A kernel answer without the documented form.
    #[error("{what} does not have the documented form")]
    Malformed {
        /// The answer.
        what: &'static str,
        /// The process that was asked for.
        pid: Option<u32>,
    },
    /// Answers would be about other processes than the caller's, or there are none to be had.
    #[error("{what}")]
    NoGround {
        /// What is wrong.
        what: &'static str,
        /// Its public reason.
        reason: Reason,
    },
    /// No backend for this operating system.
    #[error("this operating system has no backend")]
    NoBackend,
    /// The deadline passed.
    #[error("the deadline passed before the answer was whole")]
    Timeout,
    /// A defect in this library.
    #[error("internal error: {0}")]
    Panic(String),
}

impl Error {
    /// The public code.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::System { errno, .. } => match errno.meaning() {
                Meaning::Refused => Code::AccessDenied,
                Meaning::Absent | Meaning::Failed => Code::OperationFailed,
            },
            Self::Windows { code, .. } => match code.meaning() {
                Meaning::Refused => Code::AccessDenied,
                Meaning::Absent | Meaning::Failed => Code::OperationFailed,
            },
            Self::Refused { .. }
            | Self::WindowsRefused { .. }
            | Self::NoBirth { .. }
            | Self::Hidden { .. } => Code::AccessDenied,
            Self::NotWhole
            | Self::OwnPidMissing { .. }
            | Self::CutShort
            | Self::Unstable { .. } => Code::Incomplete,
            Self::Malformed { .. }
            | Self::TooLong { .. }
            | Self::CommandCut { .. }
            | Self::Panic(_) => Code::OperationFailed,
            Self::NoGround { .. } | Self::Translated { .. } | Self::NoBackend => {
                Code::UnsupportedPlatform
            }
            Self::Timeout => Code::Timeout,
        }
    }

    /// The public reason, where the code alone does not say it.
    #[must_use]
    pub const fn reason(&self) -> Option<Reason> {
        match self {
            Self::Hidden { .. } | Self::NotWhole => Some(Reason::VisibilityPolicy),
            Self::OwnPidMissing { .. } => Some(Reason::OwnPidMissing),
            Self::CutShort | Self::CommandCut { .. } => Some(Reason::CutShort),
            Self::TooLong { .. } => Some(Reason::TooLong),
            Self::Translated { .. } => Some(Reason::Translated),
            Self::Unstable { .. } => Some(Reason::UnstablePid),
            Self::Malformed { .. } => Some(Reason::MalformedRecord),
            Self::NoGround { reason, .. } => Some(*reason),
            Self::Panic(_) => Some(Reason::Panic),
            Self::System { .. }
            | Self::Refused { .. }
            | Self::Windows { .. }
            | Self::WindowsRefused { .. }
            | Self::NoBirth { .. }
            | Self::NoBackend
            | Self::Timeout => None,
        }
    }

    /// The process that was asked for, if it was one.
    #[must_use]
    pub const fn pid(&self) -> Option<u32> {
        match self {
            Self::System { pid, .. } | Self::Windows { pid, .. } | Self::Malformed { pid, .. } => {
                *pid
            }
            Self::Refused { pid, .. }
            | Self::WindowsRefused { pid, .. }
            | Self::NoBirth { pid }
            | Self::Hidden { pid }
            | Self::OwnPidMissing { pid }
            | Self::TooLong { pid, .. }
            | Self::CommandCut { pid, .. }
            | Self::Translated { pid }
            | Self::Unstable { pid } => Some(*pid),
            _ => None,
        }
    }

    /// The system call that failed, on any system.
    #[must_use]
    pub const fn syscall(&self) -> Option<&'static str> {
        match self {
            Self::Windows { syscall, .. } | Self::WindowsRefused { syscall, .. } => Some(*syscall),
            _ => match self.system() {
                Some((syscall, _)) => Some(syscall),
                None => None,
            },
        }
    }

    /// The system call that failed and its errno, where systems have errnos.
    #[must_use]
    pub const fn system(&self) -> Option<(&'static str, Errno)> {
        match self {
            Self::System { syscall, errno, .. } | Self::Refused { syscall, errno, .. } => {
                Some((*syscall, *errno))
            }
            _ => None,
        }
    }
}
