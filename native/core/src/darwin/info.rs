//! The answers of `proc_pidinfo` as bytes, and the facts in them: pure. The layouts are those of
//! bsd/sys/proc_info.h, the same from macOS 11 to 26 on both architectures.

use crate::facts::{Name, State};

/// Which question is put to `proc_pidinfo`, and what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flavor {
    /// `PROC_PIDTBSDINFO`: with the birth; refused for another effective user's process.
    Bsd,
    /// `PROC_PIDT_SHORTBSDINFO`: for every user, without the birth.
    Short,
    /// `PROC_PIDUNIQIDENTIFIERINFO`: for every user. Not in the public SDK; the kernel's own source
    /// asserts its size.
    UniqueId,
    /// `PROC_PIDVNODEPATHINFO`: the working and the root directory; refused for another effective user's
    /// process, and never of one whose exit has begun.
    Directories,
}

impl Flavor {
    /// The number that the kernel knows it by.
    #[must_use]
    pub const fn number(self) -> i32 {
        match self {
            Self::Bsd => 3,
            Self::Short => 13,
            Self::UniqueId => 17,
            Self::Directories => 9,
        }
    }

    /// The length of its answer.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::Bsd => 136,
            Self::Short => 64,
            Self::UniqueId => 56,
            Self::Directories => 2_352,
        }
    }
}

/// Room for the answer of each flavor that tells which process it is.
pub const LONGEST_ANSWER: usize = Flavor::Bsd.size();

/// `PROC_FLAG_TRACED`: the parent that is told is the debugger.
const TRACED: u32 = 2;
/// `PROC_FLAG_INEXIT`: exit has begun.
const IN_EXIT: u32 = 4;
/// `PROC_FLAG_ROSETTA`, since macOS 12: it runs a program of the other architecture.
const TRANSLATED: u32 = 0x0200_0000;

/// `struct proc_bsdshortinfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Short {
    /// The parent; the debugger while it is traced.
    pub parent_pid: u32,
    /// The process group; 0 where there is none.
    pub process_group: u32,
    /// `p_stat`.
    pub status: u32,
    /// `p_comm`, at most 15 bytes.
    pub name: Name,
    /// A debugger is attached.
    pub traced: bool,
    /// Exit has begun.
    pub exiting: bool,
    /// Rosetta translates its program.
    pub translated: bool,
    /// The effective user.
    pub uid: u32,
}

/// Parses the answer about `pid`; `None` for one of another form or about another pid.
#[must_use]
pub fn parse_short(answer: &[u8], pid: u32) -> Option<Short> {
    if answer.len() != Flavor::Short.size() || u32_at(answer, 0)? != pid {
        return None;
    }
    let flags = u32_at(answer, 32)?;
    Some(Short {
        parent_pid: pid_at(answer, 4)?,
        process_group: pid_at(answer, 8).unwrap_or(0),
        status: u32_at(answer, 12)?,
        name: name_of(answer.get(16..32)?),
        traced: flags & TRACED != 0,
        exiting: flags & IN_EXIT != 0,
        translated: flags & TRANSLATED != 0,
        uid: u32_at(answer, 36)?,
    })
}

/// What `struct proc_bsdinfo` adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bsd {
    /// The parent; the debugger while it is traced.
    pub parent_pid: u32,
    /// A debugger is attached.
    pub traced: bool,
    /// `p_stat`.
    pub status: u32,
    /// `p_start`, in microseconds since the Unix epoch.
    pub start_micros: i64,
}

/// Parses the answer about `pid`; `None` for one of another form or about another pid.
#[must_use]
pub fn parse_bsd(answer: &[u8], pid: u32) -> Option<Bsd> {
    if answer.len() != Flavor::Bsd.size() || u32_at(answer, 12)? != pid {
        return None;
    }
    let (seconds, micros) = (u64_at(answer, 120)?, u64_at(answer, 128)?);
    Some(Bsd {
        parent_pid: pid_at(answer, 16)?,
        traced: u32_at(answer, 0)? & TRACED != 0,
        status: u32_at(answer, 4)?,
        start_micros: micros_since_epoch(
            i64::try_from(seconds).ok()?,
            i64::try_from(micros).ok()?,
        )?,
    })
}

/// `p_uniqueid` of `struct proc_uniqidentifierinfo`; `None` for an answer of another size.
#[must_use]
pub fn parse_unique_id(answer: &[u8]) -> Option<u64> {
    if answer.len() != Flavor::UniqueId.size() {
        return None;
    }
    u64_at(answer, 16)
}

/// Which program a process runs: `p_uniqueid`, and `p_idversion`, which each exec changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    /// `p_uniqueid`.
    pub unique_id: u64,
    /// `p_idversion`.
    pub version: u32,
}

/// Which program it is; `None` for an answer of another size.
#[must_use]
pub fn parse_program(answer: &[u8]) -> Option<Program> {
    Some(Program { unique_id: parse_unique_id(answer)?, version: u32_at(answer, 32)? })
}

/// Which file it is: no two have the same number and birth, on whichever volumes they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct File {
    /// `st_ino`.
    pub number: u64,
    /// `st_birthtimespec`.
    pub birth: (i64, i64),
}

/// A working directory, and the path that the kernel has for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    /// Which directory it is.
    pub file: File,
    /// The path. Where the kernel cannot build all of it, it gives the end, or nothing, and does not say so.
    pub path: Vec<u8>,
}

/// `pvi_cdir` of `struct proc_vnodepathinfo`; `None` for an answer of another form.
#[must_use]
pub fn parse_directory(answer: &[u8]) -> Option<Directory> {
    if answer.len() != Flavor::Directories.size() {
        return None;
    }
    let number = |offset| u64_at(answer, offset);
    let birth = (number(72)?.cast_signed(), number(80)?.cast_signed());
    let path = answer.get(152..1_176)?;
    let end = path.iter().position(|&byte| byte == 0)?;
    Some(Directory { file: File { number: number(8)?, birth }, path: path.get(..end)?.to_vec() })
}

/// A birth in microseconds since the Unix epoch. No visible process but kernel_task is born at zero,
/// and no fraction has a million.
#[must_use]
pub fn micros_since_epoch(seconds: i64, micros: i64) -> Option<i64> {
    if seconds < 0 || !(0..1_000_000).contains(&micros) {
        return None;
    }
    seconds.checked_mul(1_000_000)?.checked_add(micros)
}

/// Longest name of a row. The record has one byte more, but a name must not grow when its process
/// begins to exit.
const LONGEST_NAME: usize = 15;

/// A name that ends in NUL or with its field.
#[must_use]
pub fn name_of(field: &[u8]) -> Name {
    field.iter().copied().take(LONGEST_NAME).take_while(|&byte| byte != 0).collect()
}

/// `SZOMB` of sys/proc.h.
pub const ZOMBIE: u32 = 5;

/// What `p_stat` says; `None` for a number that no header names. `SSLEEP` is never set: every process
/// that is not stopped or dead reads `SRUN`.
#[must_use]
pub const fn state_of(status: u32) -> Option<State> {
    match status {
        1..=3 => Some(State::Running), // SIDL, SRUN, SSLEEP
        4 => Some(State::Stopped),
        ZOMBIE => Some(State::Zombie),
        _ => None,
    }
}

/// Both architectures of macOS are little-endian.
fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    let end = offset.checked_add(4)?;
    bytes.get(offset..end)?.try_into().ok().map(u32::from_le_bytes)
}

/// A number that can be a pid; `None` for one that is negative to the kernel.
fn pid_at(bytes: &[u8], offset: usize) -> Option<u32> {
    u32_at(bytes, offset).filter(|&pid| i32::try_from(pid).is_ok())
}

fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    let end = offset.checked_add(8)?;
    bytes.get(offset..end)?.try_into().ok().map(u64::from_le_bytes)
}
