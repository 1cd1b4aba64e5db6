//! The list of all processes: one kernel answer, in a buffer that grows until it fits. Opens no process.

use super::Kernel;
use super::record::{ALIGNMENT, Record, parse_list};
use crate::census::Deadline;
use crate::error::{Error, WindowsCode};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Room for some four hundred processes with ten threads each.
const LEAST: usize = 512 * 1024;
/// A hundred thousand processes with twenty threads each need less. No more is ever asked for.
pub const MOST: usize = 256 * 1024 * 1024;
/// Lists before a host whose processes outgrow every buffer is given up.
const ATTEMPTS: usize = 8;

/// The call that lists.
pub const NT_QUERY_SYSTEM_INFORMATION: &str = "NtQuerySystemInformation";

/// How large a buffer sufficed: a size, which says nothing of any process. It grows at once, with
/// room to spare, and shrinks by half where a list needs less than a quarter: so a host whose number
/// of processes wavers asks the kernel once a census.
#[derive(Debug)]
pub struct Room(AtomicUsize);

impl Room {
    /// The first guess.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicUsize::new(LEAST))
    }

    fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed).clamp(LEAST, MOST)
    }

    fn learn(&self, size: usize, used: usize) {
        let wasteful = used < size / 4;
        self.0.store(if wasteful { size / 2 } else { size }, Ordering::Relaxed);
    }
}

impl Default for Room {
    fn default() -> Self {
        Self::new()
    }
}

/// Every process of the host in ascending order of pid, one each.
///
/// # Errors
/// A refusal or failure, [`Error::Timeout`], [`Error::Malformed`], or [`Error::CutShort`] where no
/// buffer was large enough.
pub fn list_all<K: Kernel>(
    kernel: &K,
    room: &Room,
    deadline: Deadline,
) -> Result<Vec<Record>, Error> {
    let mut size = room.get();
    for _ in 0..ATTEMPTS {
        deadline.check()?;
        let mut storage = vec![0; size.saturating_add(ALIGNMENT)];
        let buffer = aligned(&mut storage, size);
        match kernel.query_processes(buffer) {
            Ok(length) => {
                let records = parse(buffer, length)?;
                room.learn(size, length);
                return Ok(unique(records));
            }
            Err((WindowsCode::INFO_LENGTH_MISMATCH, _)) if size >= MOST => break,
            Err((WindowsCode::INFO_LENGTH_MISMATCH, needed)) => size = grown(size, needed),
            Err((code, _)) => {
                let syscall = NT_QUERY_SYSTEM_INFORMATION;
                return Err(Error::Windows { syscall, code, pid: None });
            }
        }
    }
    Err(Error::CutShort)
}

/// What the kernel says it needs and a quarter more, and in any case twice as much: it says what it
/// needed a moment ago, or nothing.
fn grown(size: usize, needed: usize) -> usize {
    let wanted = needed.saturating_add(needed / 4);
    wanted.max(size.saturating_mul(2)).min(MOST)
}

/// The kernel refuses a buffer that is not aligned.
pub(super) fn aligned(storage: &mut [u8], size: usize) -> &mut [u8] {
    let skip = storage.as_ptr().align_offset(ALIGNMENT);
    let end = skip.saturating_add(size);
    storage.get_mut(skip..end).unwrap_or_default()
}

fn parse(buffer: &[u8], length: usize) -> Result<Vec<Record>, Error> {
    let list = buffer.get(..length);
    let address = u64::try_from(buffer.as_ptr().addr()).ok();
    list.zip(address)
        .and_then(|(list, address)| parse_list(list, address))
        .ok_or(Error::Malformed { what: "the list of processes", pid: None })
}

/// The kernel walks its processes one by one, so a pid that changes hands meanwhile may be there
/// twice; who was born later is who has it.
fn unique(mut records: Vec<Record>) -> Vec<Record> {
    records.sort_by_key(|record| (record.pid, record.created));
    records.reverse();
    records.dedup_by_key(|record| record.pid);
    records.reverse();
    records
}
