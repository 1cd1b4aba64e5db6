//! Streams /proc: pids are read as they are listed, by one thread or by a few.

use super::{Kernel, dirents, failed};
use crate::error::Error;
use crate::facts::Snapshot;
use crate::guard::guarded;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// A small buffer keeps the numbers fresh: about forty pids are listed, then read at once. Listing
/// all first and reading then misses processes that fork in a chain in most censuses.
const BATCH: usize = 1024;
/// Rows that the caller reads before it asks for help, so that a small pid namespace on a large host
/// needs none.
const ROWS_ALONE: usize = 80;
/// Processes on the host below which a thread costs more than it saves (docs/performance.md).
const WORTH_HELP: usize = 500;
/// Rows to make room for at once; a host can have more processes than the caller may see.
const MOST_EXPECTED: usize = 1024;
/// More gain nothing: what they wait for is in the kernel.
const MOST_THREADS: usize = 4;
/// A helper's frames are small; its reads need 2 KiB of buffer.
const HELPER_STACK: usize = 128 << 10;

/// Reads every listed pid with `read_row`, in batches that any thread of the call may take next.
/// The threads end with the call.
///
/// # Errors
/// The first failure of any thread; there is no partial list.
pub fn read_listed<K: Kernel>(
    kernel: &K,
    read_row: impl Fn(&K, u32) -> Result<Option<Snapshot>, Error> + Sync,
) -> Result<Vec<Snapshot>, Error> {
    match read_helped(kernel, MOST_THREADS, &read_row) {
        // Helpers need descriptors of their own; a census must not fail for the want of those.
        Err(Error::System { errno, .. }) if errno.is_shortage() => {
            read_helped(kernel, 1, &read_row)
        }
        outcome => outcome,
    }
}

fn read_helped<K: Kernel>(
    kernel: &K,
    most_threads: usize,
    read_row: &(impl Fn(&K, u32) -> Result<Option<Snapshot>, Error> + Sync),
) -> Result<Vec<Snapshot>, Error> {
    let listing = kernel.open_listing().map_err(|errno| failed("openat", errno, None))?;
    let batches = Batches { listing: Mutex::new(listing), stopped: AtomicBool::new(false) };
    let expected = kernel.count_processes();
    let mut rows = Vec::with_capacity(expected.min(MOST_EXPECTED));
    let mut pids = Vec::new();
    let worth_help = most_threads > 1 && expected >= WORTH_HELP;
    while !worth_help || rows.len() < ROWS_ALONE {
        if !batches.read_next(kernel, &mut pids, &mut rows, read_row)? {
            return Ok(rows);
        }
    }
    let helpers = kernel.processors().min(most_threads).saturating_sub(1);
    let help = || {
        let own = kernel.for_helper();
        batches.read_rest(own.as_ref().unwrap_or(kernel), read_row)
    };
    thread::scope(|scope| {
        // Where the system grants no thread, the census takes longer and is the same.
        let helpers: Vec<_> = (0..helpers)
            .map_while(|_| {
                let helper =
                    thread::Builder::new().name("proc-safe".into()).stack_size(HELPER_STACK);
                helper.spawn_scoped(scope, || guarded(help)).ok()
            })
            .collect();
        let own = batches.read_rest(kernel, read_row);
        rows.extend(own?);
        for helper in helpers {
            let theirs = helper.join().unwrap_or_else(|_| Err(Error::Panic("a helper".into())));
            rows.extend(theirs?);
        }
        Ok(rows)
    })
}

/// What is left of one listing.
struct Batches<K: Kernel> {
    listing: Mutex<K::Listing>,
    /// A thread has failed: the others need not go on.
    stopped: AtomicBool,
}

impl<K: Kernel> Batches<K> {
    fn read_rest(
        &self,
        kernel: &K,
        read_row: &impl Fn(&K, u32) -> Result<Option<Snapshot>, Error>,
    ) -> Result<Vec<Snapshot>, Error> {
        let mut rows = Vec::new();
        let mut pids = Vec::new();
        while self.read_next(kernel, &mut pids, &mut rows, read_row)? {}
        Ok(rows)
    }

    /// Lists one batch and reads it; `false` at the end.
    fn read_next(
        &self,
        kernel: &K,
        pids: &mut Vec<u32>,
        rows: &mut Vec<Snapshot>,
        read_row: &impl Fn(&K, u32) -> Result<Option<Snapshot>, Error>,
    ) -> Result<bool, Error> {
        let outcome = self.list_next(kernel, pids).and_then(|more| {
            for &pid in pids.iter() {
                if self.stopped.load(Ordering::Relaxed) {
                    return Ok(false);
                }
                rows.extend(read_row(kernel, pid)?);
            }
            Ok(more)
        });
        if outcome.is_err() {
            self.stopped.store(true, Ordering::Relaxed);
        }
        outcome
    }

    fn list_next(&self, kernel: &K, pids: &mut Vec<u32>) -> Result<bool, Error> {
        let mut buffer = [0; BATCH];
        let length = {
            let mut listing = self.listing.lock().unwrap_or_else(PoisonError::into_inner);
            kernel.read_listing(&mut listing, &mut buffer)
        };
        let length = length.map_err(|errno| failed("getdents64", errno, None))?;
        pids.clear();
        let entries = buffer.get(..length).and_then(|bytes| dirents::parse_ids(bytes, pids));
        entries.ok_or(Error::Malformed { what: "the listing of /proc", pid: None })?;
        Ok(length > 0)
    }
}
