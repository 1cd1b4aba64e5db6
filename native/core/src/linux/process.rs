//! How one process is read so that every fact belongs to it, and what its facts mean.

use super::Kernel;
use super::stat::{Stat, parse_stat};
use crate::error::{Errno, Error, Meaning};
use crate::facts::State;
use std::mem::discriminant;

/// What a reader is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// A row of a census.
    Row,
    /// An identity that decides: with the pidfs inode, where the kernel has one.
    Identity,
}

/// What was found at a pid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// One process, every fact its own.
    Present(Process),
    /// The kernel proved that no process has this pid.
    Absent,
    /// A process has this pid and the kernel refuses to describe it.
    Refused {
        /// Its effective uid, where the directory shows it.
        uid: Option<u32>,
        /// The system call that was refused.
        syscall: &'static str,
        /// Its errno.
        errno: Errno,
    },
    /// A process has this pid and procfs denies it.
    Hidden,
    /// The pid changed hands at every try.
    Unstable,
}

/// The facts of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// The leader's stat, last read.
    pub stat: Stat,
    /// The effective uid, where the directory shows it.
    pub uid: Option<u32>,
    /// The pidfs inode.
    pub unique_id: Option<u64>,
    /// What the scheduler may do with it; `None` for a letter that no manual names.
    pub state: Option<State>,
    /// Every thread has begun to exit.
    pub exiting: bool,
    /// Every thread is dead.
    pub exited: bool,
}

/// Tries before a pid that never holds still is given up.
pub const ATTEMPTS: usize = 16;
/// More than any stat file: a name of 63 bytes and 52 fields of at most 20 digits.
pub const STAT_BUFFER: usize = 1280;

/// Reads one process.
///
/// # Errors
/// A read whose failure says nothing about the process.
pub fn read_process<K: Kernel>(kernel: &K, pid: u32, want: Want) -> Result<Reading, Error> {
    let mut outcome = read_once(kernel, pid, want)?;
    for _ in 1..ATTEMPTS {
        let before = match outcome {
            Outcome::Settled(reading) => return Ok(reading),
            again => again,
        };
        outcome = match (before, read_once(kernel, pid, want)?) {
            (_, settled @ Outcome::Settled(_)) => settled,
            (before, after) if discriminant(&before) == discriminant(&after) => after,
            _ => Outcome::Unstable, // two kinds of trouble are a pid that changes hands
        };
    }
    match outcome {
        Outcome::Settled(reading) => Ok(reading),
        Outcome::Hidden => Ok(Reading::Hidden),
        Outcome::Unstable => Ok(Reading::Unstable),
        Outcome::Misnumbered => Err(malformed_stat(pid)),
    }
}

enum Outcome {
    Settled(Reading),
    // Read again by path; each counts only if every try ends so.
    /// procfs denies a process that the null signal finds.
    Hidden,
    /// The pid changed hands, or its task is being released.
    Unstable,
    /// The file is another number's. For an instant of execve(2) by another thread, a path can lead
    /// to the number of that thread; otherwise this is no stat file.
    Misnumbered,
}

/// The sandwich: open the stat file, look at the directory, read the stat file. The open file is
/// bound to one process, and a read of it fails once that process was reaped; so a read that
/// succeeds proves that the number was that process's all the time between, and the directory's
/// owner its owner. Any other order mixes two processes under pid reuse.
fn read_once<K: Kernel>(kernel: &K, pid: u32, want: Want) -> Result<Outcome, Error> {
    let file = match kernel.open_stat(pid) {
        Ok(file) => file,
        Err(errno) => return without_stat(kernel, pid, "openat", errno),
    };
    let uid = match kernel.directory_uid(pid) {
        Ok(uid) => Some(uid),
        Err(errno) if errno.meaning() == Meaning::Failed => return fail(pid, "fstatat", errno),
        Err(_) => None,
    };
    let unique_id = match want {
        Want::Row => None,
        Want::Identity => match kernel.open_pidfd(pid) {
            Ok(pidfd) => kernel.pidfs_inode(&pidfd),
            Err(errno) if errno.is_shortage() => return fail(pid, "pidfd_open", errno),
            // Whatever else a kernel or a sandbox answers says nothing about the process.
            Err(_) => None,
        },
    };
    let first = match read_stat(kernel, &file, pid)? {
        Ok(stat) => stat,
        Err(errno) => return without_stat(kernel, pid, "read", errno),
    };
    if let Some(outcome) = reject(kernel, pid, &first)? {
        return Ok(outcome);
    }
    if !first.is_dead() && !first.has_exiting_flag() {
        let state = live_state(first.state);
        let process = Process { stat: first, uid, unique_id, state, exiting: false, exited: false };
        return Ok(Outcome::Settled(Reading::Present(process)));
    }
    // One sample is no proof of death: while a thread that does not lead executes a program, the
    // dying leader shows through. The same open file again is the same process again.
    let exiting_threads = match first.threads {
        1 => None,
        _ => count_if_all_exit(kernel, pid, &file)?,
    };
    let second = match read_stat(kernel, &file, pid)? {
        Ok(stat) => stat,
        Err(errno) => return without_stat(kernel, pid, "read", errno),
    };
    if let Some(outcome) = reject(kernel, pid, &second)? {
        return Ok(outcome);
    }
    if first.is_dead() != second.is_dead() || (first.threads > 1) != (second.threads > 1) {
        return Ok(Outcome::Unstable);
    }
    let alone = second.threads == 1;
    let exited = second.is_dead() && alone;
    let begun = second.is_dead() || second.has_exiting_flag();
    let all = alone || exiting_threads.is_some_and(|count| second.threads <= count);
    let exiting = begun && all && !exited;
    let state = match (second.is_dead(), alone) {
        (true, true) => Some(State::Zombie),
        (true, false) => Some(State::Running), // the leader is dead, the process is not
        (false, _) => live_state(second.state),
    };
    let process = Process { stat: second, uid, unique_id, state, exiting, exited };
    Ok(Outcome::Settled(Reading::Present(process)))
}

/// What no row may be made of: a task that is being released, or a thread that leads no process.
fn reject<K: Kernel>(kernel: &K, pid: u32, stat: &Stat) -> Result<Option<Outcome>, Error> {
    if stat.pid != pid {
        return Ok(Some(Outcome::Misnumbered));
    }
    if stat.is_torn() {
        return Ok(Some(Outcome::Unstable));
    }
    if stat.is_leader() {
        return Ok(None);
    }
    // For an instant of execve(2) by another thread, the leader of a live process shows this too.
    Ok(Some(match kernel.null_signal(pid) {
        Err(Errno::ESRCH) => Outcome::Settled(Reading::Absent),
        _ => Outcome::Unstable,
    }))
}

/// procfs has no stat for us: gone, hidden or refused? The null signal does not depend on procfs.
fn without_stat<K: Kernel>(
    kernel: &K,
    pid: u32,
    syscall: &'static str,
    errno: Errno,
) -> Result<Outcome, Error> {
    let meaning = errno.meaning();
    if meaning == Meaning::Failed {
        return fail(pid, syscall, errno);
    }
    if kernel.null_signal(pid) == Err(Errno::ESRCH) {
        return Ok(Outcome::Settled(Reading::Absent));
    }
    if meaning == Meaning::Absent {
        return Ok(Outcome::Hidden);
    }
    // hidepid=1 shows the directory and its owner, and nothing in it. Only a pidfd that is good
    // before and after binds that owner to one process.
    let refused = |uid| Reading::Refused { uid, syscall, errno };
    let pidfd = match kernel.open_pidfd(pid) {
        Ok(pidfd) => pidfd,
        Err(Errno::ESRCH) => return Ok(Outcome::Unstable),
        Err(_) => return Ok(Outcome::Settled(refused(None))),
    };
    let uid = kernel.directory_uid(pid).ok();
    Ok(match kernel.null_signal_pidfd(&pidfd) {
        Err(Errno::ESRCH) => Outcome::Unstable,
        _ => Outcome::Settled(refused(uid)),
    })
}

fn live_state(letter: u8) -> Option<State> {
    match letter {
        // proc_pid_stat(5): running, sleeping, disk sleep, waking, wakekill, paging, parked, idle.
        b'R' | b'S' | b'D' | b'W' | b'K' | b'P' | b'I' => Some(State::Running),
        b'T' | b't' => Some(State::Stopped),
        _ => None,
    }
}

/// Passes over the threads; one that is missed by the first was made by a thread that was not yet
/// exiting then, and the second sees it.
const THREAD_PASSES: usize = 2;

/// How many threads a process with a dying or dead leader has, if all of them have begun to exit. A
/// thread that has cannot make another, so two whole passes without a live thread prove it. Anything
/// else that happens meanwhile is no proof.
fn count_if_all_exit<K: Kernel>(
    kernel: &K,
    pid: u32,
    file: &K::StatFile,
) -> Result<Option<u32>, Error> {
    let mut count = None;
    for _ in 0..THREAD_PASSES {
        let Ok(leader) = read_stat(kernel, file, pid)? else { return Ok(None) };
        let ids = match kernel.thread_ids(pid) {
            Ok(ids) => ids,
            Err(failed) if failed.meaning() == Meaning::Failed => {
                return Err(failed.into_error(Some(pid)));
            }
            Err(_) => return Ok(None),
        };
        if u32::try_from(ids.len()) != Ok(leader.threads) {
            return Ok(None);
        }
        for tid in ids {
            if !thread_exits(kernel, pid, tid)? {
                return Ok(None);
            }
        }
        count = Some(leader.threads);
    }
    Ok(count)
}

/// The file must be this thread's own: while another thread executes a program, the two swap numbers,
/// and a path that was looked up meanwhile leads to the old leader for as long as it is cached.
fn thread_exits<K: Kernel>(kernel: &K, pid: u32, tid: u32) -> Result<bool, Error> {
    let mut buffer = [0; STAT_BUFFER];
    match kernel.read_thread_stat(pid, tid, &mut buffer) {
        Ok(length) => {
            let stat = parse_whole(&buffer, length).ok_or_else(|| malformed_stat(pid))?;
            let own = stat.pid == tid && stat.is_leader() == (tid == pid);
            Ok(own && (stat.is_dead() || stat.has_exiting_flag()))
        }
        Err(failed) if failed.meaning() == Meaning::Failed => Err(failed.into_error(Some(pid))),
        Err(_) => Ok(false),
    }
}

fn read_stat<K: Kernel>(
    kernel: &K,
    file: &K::StatFile,
    pid: u32,
) -> Result<Result<Stat, Errno>, Error> {
    let mut buffer = [0; STAT_BUFFER];
    match kernel.read_stat(file, &mut buffer) {
        Ok(length) => parse_whole(&buffer, length).map(Ok).ok_or_else(|| malformed_stat(pid)),
        Err(errno) => Ok(Err(errno)),
    }
}

/// A read that filled the buffer may have been cut.
fn parse_whole(buffer: &[u8], length: usize) -> Option<Stat> {
    if length >= buffer.len() {
        return None;
    }
    parse_stat(buffer.get(..length)?)
}

/// The error for a stat file without the documented form.
#[must_use]
pub fn malformed_stat(pid: u32) -> Error {
    Error::Malformed { what: "the stat file of a process", pid: Some(pid) }
}

fn fail<T>(pid: u32, syscall: &'static str, errno: Errno) -> Result<T, Error> {
    Err(Error::System { syscall, errno, pid: Some(pid) })
}
