//! The answer of `NtQuerySystemInformation(SystemProcessInformation)` as bytes, and the facts in them:
//! pure. The layout is that of 64-bit Windows, the same from Windows 7 to 11 and on both architectures.
//! Nothing in a buffer is trusted: what does not have the documented form is no list.

use super::bytes::{decode, u16_at, u32_at, u64_at, units};
use crate::facts::Name;

/// `sizeof(SYSTEM_PROCESS_INFORMATION)`: what stands before the threads of a record.
pub const HEAD: usize = 256;
/// `sizeof(SYSTEM_THREAD_INFORMATION)`.
pub const THREAD: usize = 80;
/// The kernel refuses a buffer that is not aligned to it. (Wine does not align the records in it.)
pub const ALIGNMENT: usize = 8;

/// `Waiting` of `KTHREAD_STATE`.
const WAITING: u32 = 5;
/// `Suspended` of `KWAIT_REASON`.
const SUSPENDED: u32 = 5;

/// What the threads of a process were doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// There are none: not yet, no more, or it is one of the kernel's own.
    NoThread,
    /// Every thread waits for its resumption.
    Suspended,
    /// At least one may run.
    Active,
}

/// One process in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The pid.
    pub pid: u32,
    /// The pid that the creator had; the kernel keeps it for ever.
    pub parent_pid: u32,
    /// Creation in units of 100 ns since 1601, as the kernel keeps it; 0 for none.
    pub created: i64,
    /// Creation in microseconds since the Unix epoch; `None` where the kernel keeps none, and for what is
    /// no time: wine's, of a process that it is making.
    pub start_micros: Option<i64>,
    /// The image name as UTF-8, unpaired surrogates as U+FFFD; `None` where there is no text at all.
    pub name: Option<Name>,
    /// What its threads were doing.
    pub activity: Activity,
}

/// Parses a list that the kernel wrote to `address`; `None` if any of it is malformed. Every record
/// ends behind where it begins, so that a list is as long as its buffer allows at most.
#[must_use]
pub fn parse_list(bytes: &[u8], address: u64) -> Option<Vec<Record>> {
    let mut records = Vec::new();
    let mut at = 0_usize;
    loop {
        let rest = bytes.get(at..)?;
        let next = usize::try_from(u32_at(rest, 0)?).ok()?;
        let extent = if next == 0 { rest } else { rest.get(..next)? };
        let start = address.checked_add(u64::try_from(at).ok()?)?;
        records.push(parse_record(extent, start)?);
        if next == 0 {
            return Some(records);
        }
        at = at.checked_add(next)?;
    }
}

/// Parses the record that alone has `extent`, written to `address`.
fn parse_record(extent: &[u8], address: u64) -> Option<Record> {
    let threads = usize::try_from(u32_at(extent, 4)?).ok()?;
    let body = extent.get(HEAD..)?;
    let threads = body.get(..threads.checked_mul(THREAD)?)?;
    let created = i64::from_le_bytes(extent.get(0x20..0x28)?.try_into().ok()?);
    Some(Record {
        pid: pid_at(extent, 0x50)?,
        parent_pid: pid_at(extent, 0x58)?,
        created,
        start_micros: Some(created).filter(|&time| time != 0).and_then(micros_since_epoch),
        name: parse_name(extent, address, HEAD.checked_add(threads.len())?)?,
        activity: activity_of(threads)?,
    })
}

/// A `UNICODE_STRING` whose text stands in the same record, behind the threads.
fn parse_name(extent: &[u8], address: u64, least: usize) -> Option<Option<Name>> {
    let (length, capacity) = (u16_at(extent, 0x38)?, u16_at(extent, 0x3a)?);
    let pointer = u64_at(extent, 0x40)?;
    if length % 2 != 0 || length > capacity {
        return None;
    }
    if pointer == 0 {
        return (length == 0).then_some(None);
    }
    let start = usize::try_from(pointer.checked_sub(address)?).ok()?;
    if start < least {
        return None;
    }
    let end = start.checked_add(usize::from(length))?;
    Some(Some(Name::from_slice(&decode(&units(extent.get(start..end)?)))))
}

fn activity_of(threads: &[u8]) -> Option<Activity> {
    let (threads, _) = threads.as_chunks::<THREAD>();
    let mut activity = Activity::NoThread;
    for thread in threads {
        if (u32_at(thread, 0x44)?, u32_at(thread, 0x48)?) != (WAITING, SUSPENDED) {
            return Some(Activity::Active);
        }
        activity = Activity::Suspended;
    }
    Some(activity)
}

/// 1970 in microseconds since 1601.
const UNIX_EPOCH: i64 = 11_644_473_600_000_000;
/// 2⁵³, beyond which JavaScript has no exact numbers: the year 2255.
const LATEST: i64 = 9_007_199_254_740_992;

/// A time in units of 100 ns since 1601 as whole microseconds since the Unix epoch. Births keep their
/// order. `None` for what is no time: negative, or after the year 2255.
#[must_use]
pub fn micros_since_epoch(filetime: i64) -> Option<i64> {
    if filetime < 0 {
        return None;
    }
    let micros = filetime.checked_div(10)?.checked_sub(UNIX_EPOCH)?;
    (micros < LATEST).then_some(micros)
}

/// A pid has 32 bits in an interface of 64.
fn pid_at(bytes: &[u8], offset: usize) -> Option<u32> {
    u32::try_from(u64_at(bytes, offset)?).ok()
}
