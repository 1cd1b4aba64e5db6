//! The list of all pids, and how one that was cut short is known. Reads no process.

use super::Kernel;
use crate::census::Deadline;
use crate::error::{Errno, Error};

/// Room beyond the estimate, which itself is twenty above the number of processes.
const SLACK: usize = 64;
/// Lists before a host that forks faster than it can be listed is given up.
const ATTEMPTS: usize = 8;
const PROC_LISTALLPIDS: &str = "proc_listallpids";
const KERNEL_TASK: u32 = 0;

/// Every pid of the host, of one instant, in ascending order.
///
/// # Errors
/// A refusal, [`Error::Timeout`], or a list that was cut short at every try.
pub fn list_all<K: Kernel>(kernel: &K, deadline: Deadline) -> Result<Vec<u32>, Error> {
    let own_pid = kernel.own_pid();
    let mut cut = true;
    for _ in 0..ATTEMPTS {
        deadline.check()?;
        let before = estimate(kernel)?;
        let mut pids = vec![0; before.saturating_add(SLACK)];
        let count = answer(kernel.list_pids(&mut pids))?;
        let after = estimate(kernel)?;
        let full = count >= pids.len() || count >= before || count >= after;
        pids.truncate(count);
        let mut pids = convert(&pids)?;
        pids.sort_unstable();
        // The kernel cuts without a word: exiting processes and zombies first, which are known only
        // by the count, then the oldest of the live, of which kernel_task is the last.
        cut = full || pids.first() != Some(&KERNEL_TASK);
        if !cut && pids.binary_search(&own_pid).is_ok() {
            return Ok(pids);
        }
    }
    Err(if cut { Error::CutShort } else { Error::OwnPidMissing { pid: own_pid } })
}

fn estimate<K: Kernel>(kernel: &K) -> Result<usize, Error> {
    answer(kernel.estimate_processes())
}

/// No process at all is a failure: kernel_task always is.
fn answer(count: Result<usize, Errno>) -> Result<usize, Error> {
    match count {
        Ok(0) => Err(malformed()),
        Ok(count) => Ok(count),
        Err(errno) => Err(Error::System { syscall: PROC_LISTALLPIDS, errno, pid: None }),
    }
}

fn convert(pids: &[i32]) -> Result<Vec<u32>, Error> {
    pids.iter().map(|&pid| u32::try_from(pid).map_err(|_| malformed())).collect()
}

fn malformed() -> Error {
    Error::Malformed { what: "the list of processes", pid: None }
}
