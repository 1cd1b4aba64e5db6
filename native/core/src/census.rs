//! What every platform's census shares: selection, deadline, order, the caller's own row, parents
//! that left while the list was read. Knows no platform.

use crate::error::Error;
use crate::facts::{Identity, Snapshot};
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// Which processes a census is about.
#[derive(Clone, Debug)]
pub enum Selection {
    /// Every process that the caller's pid namespace holds.
    All(Visibility),
    /// These pids; a pid that is absent yields no row.
    Pids(Vec<u32>),
}

/// What a full census does where a policy hides processes from the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// Fail: the census would not be whole.
    All,
    /// Answer with the processes that the caller may see.
    Visible,
}

/// The instant after which a call fails with [`Error::Timeout`].
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    /// A deadline this far from now; `None`, or a time beyond what the clock can count, is none.
    #[must_use]
    pub fn after(timeout: Option<Duration>) -> Self {
        Self(timeout.and_then(|timeout| Instant::now().checked_add(timeout)))
    }

    /// # Errors
    /// [`Error::Timeout`] when it has passed.
    pub fn check(self) -> Result<(), Error> {
        self.remaining().map(drop)
    }

    /// The time that is left, if it is bounded.
    ///
    /// # Errors
    /// [`Error::Timeout`] when none is left.
    pub fn remaining(self) -> Result<Option<Duration>, Error> {
        let Some(end) = self.0 else { return Ok(None) };
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(Error::Timeout) } else { Ok(Some(left)) }
    }
}

/// One platform, ready to be asked. Rows are true at some instant of the call that returns them.
pub trait Host {
    /// Whether a process has another parent once its parent has ended. Where it has not, the pid that
    /// it names says who created it, and another look says the same.
    const PARENTS_MOVE: bool = true;

    /// By the clock of births, in their microseconds since the Unix epoch: who was born before this instant
    /// was born before the call. `None` without such a clock.
    fn began(&self) -> Option<i64> {
        None
    }

    /// The caller's pid.
    fn own_pid(&self) -> u32;

    /// Every process that the platform lists, each read once, in any order.
    ///
    /// # Errors
    /// Whatever makes the list less than whole.
    fn read_all(&self, visibility: Visibility, deadline: Deadline) -> Result<Vec<Snapshot>, Error>;

    /// These processes, given once each, in any order; an absent one yields no row.
    ///
    /// # Errors
    /// Those of [`Host::read_one`].
    fn read_selected(&self, pids: &[u32], deadline: Deadline) -> Result<Vec<Snapshot>, Error> {
        let mut rows = Vec::new();
        for &pid in pids {
            deadline.check()?;
            rows.extend(self.read_one(pid, deadline)?);
        }
        Ok(rows)
    }

    /// One process; `None` only if it was proved absent.
    ///
    /// # Errors
    /// A read that says nothing about the process, or one that did not return in time.
    fn read_one(&self, pid: u32, deadline: Deadline) -> Result<Option<Snapshot>, Error>;

    /// The strongest identity that one process has; `None` only if it was proved absent.
    ///
    /// # Errors
    /// A refusal, or a read that says nothing about the process.
    fn read_identity(&self, pid: u32) -> Result<Option<Identity>, Error>;
}

/// Takes a census: rows in ascending order of pid, one a process.
///
/// # Errors
/// Those of the host, [`Error::Timeout`], [`Error::OwnPidMissing`]. There is no partial census.
pub fn take(
    host: &impl Host,
    selection: Selection,
    deadline: Deadline,
) -> Result<Vec<Snapshot>, Error> {
    deadline.check()?;
    match selection {
        Selection::All(visibility) => take_all(host, visibility, deadline),
        Selection::Pids(pids) => take_selected(host, pids, deadline),
    }
}

fn take_selected(
    host: &impl Host,
    mut pids: Vec<u32>,
    deadline: Deadline,
) -> Result<Vec<Snapshot>, Error> {
    pids.sort_unstable();
    pids.dedup();
    let mut rows = host.read_selected(&pids, deadline)?;
    rows.sort_by_key(|row| row.pid);
    Ok(rows)
}

fn take_all<H: Host>(
    host: &H,
    visibility: Visibility,
    deadline: Deadline,
) -> Result<Vec<Snapshot>, Error> {
    let mut rows = host.read_all(visibility, deadline)?;
    rows.sort_by_key(|row| row.pid);
    rows.dedup_by_key(|row| row.pid);
    if H::PARENTS_MOVE {
        settle_parents(host, &mut rows, deadline)?;
    }
    let pid = host.own_pid();
    if find(&rows, pid).is_err() {
        return Err(Error::OwnPidMissing { pid });
    }
    Ok(rows)
}

/// Rounds of [`settle_parents`]; each one only follows processes that moved during the one before.
const PARENT_ROUNDS: usize = 4;

/// A list is read while processes come and go, so a row can name a parent that was reaped before
/// the list ended, whose pid may even be another process's by then, or one that was born behind the
/// reader. Such a row is read once more; a parent that it still names gets its own row if it is
/// there. A parent that was read before a child that was born during the call is read again as well: its
/// pid may have been given to the true parent between the two.
fn settle_parents(
    host: &impl Host,
    rows: &mut Vec<Snapshot>,
    deadline: Deadline,
) -> Result<(), Error> {
    // Parents that exist but have no row to give: hidden ones.
    let mut settled = HashSet::new();
    let mut looks = Looks { began: host.began(), last: 0, of: HashMap::new() };
    for _ in 0..PARENT_ROUNDS {
        let orphans = orphans_of(rows, &settled);
        let quiet = orphans.is_empty();
        for pid in orphans {
            deadline.check()?;
            looks.note(pid);
            let again = host.read_one(pid, deadline)?;
            let parent = again.as_ref().and_then(|row| row.parent_pid);
            put(rows, pid, again);
            let Some(parent) = parent.filter(|&parent| parent != 0) else { continue };
            if row_of(rows, parent).is_some() || settled.contains(&parent) {
                continue; // a parent born too late is judged again in the next round
            }
            looks.note(parent);
            match host.read_one(parent, deadline)? {
                Some(row) if row.parent_pid.is_some() => put(rows, parent, Some(row)),
                Some(_) => drop(settled.insert(parent)),
                None => {} // reaped since: the next round reads the child again
            }
        }
        let doubted = looks.doubted(rows);
        if quiet && doubted.is_empty() {
            break;
        }
        for pid in doubted {
            deadline.check()?;
            looks.note(pid);
            let again = host.read_one(pid, deadline)?;
            put(rows, pid, again);
        }
    }
    Ok(())
}

/// In which order rows were read again after the list. A parent that was read after its child, and born no
/// later, had its pid when the child named it; so had one that lives and whose child was born before the call.
struct Looks {
    began: Option<i64>,
    last: usize,
    of: HashMap<u32, usize>,
}

impl Looks {
    fn note(&mut self, pid: u32) {
        self.last = self.last.saturating_add(1);
        self.of.insert(pid, self.last);
    }

    fn of(&self, pid: u32) -> usize {
        self.of.get(&pid).copied().unwrap_or(0)
    }

    /// Pids of parents that were not read after a child that was born during the call; the youngest first, so
    /// that their own parents are read after them.
    fn doubted(&self, rows: &[Snapshot]) -> Vec<u32> {
        let Some(began) = self.began else { return Vec::new() };
        let mut found = HashMap::new();
        for row in rows.iter().filter(|row| birth_of(row).is_some_and(|birth| birth >= began)) {
            let parent = row.parent_pid.and_then(|parent| row_of(rows, parent));
            if let Some(parent) = parent.filter(|parent| self.of(parent.pid) <= self.of(row.pid)) {
                found.insert(parent.pid, birth_of(parent));
            }
        }
        let mut doubted: Vec<_> = found.into_iter().collect();
        doubted.sort_unstable_by_key(|&(pid, birth)| Reverse((birth, pid)));
        doubted.into_iter().map(|(pid, _)| pid).collect()
    }
}

fn birth_of(row: &Snapshot) -> Option<i64> {
    row.identity.map(|identity| identity.start_time_micros)
}

/// Pids of the rows whose parent has no row, or one that was born after the child: then the number
/// of a dead parent is another process's now.
fn orphans_of(rows: &[Snapshot], settled: &HashSet<u32>) -> Vec<u32> {
    let mut orphans = Vec::new();
    let mut known = None; // siblings stand together: most parents were found a row before
    for row in rows {
        let Some(parent) = row.parent_pid.filter(|&parent| parent != 0) else { continue };
        if settled.contains(&parent) {
            continue;
        }
        if known.is_none_or(|found: &Snapshot| found.pid != parent) {
            known = row_of(rows, parent);
        }
        if !known.is_some_and(|found| was_born_before(found, row)) {
            orphans.push(row.pid);
        }
    }
    orphans
}

/// By the kernel's own count where it has one; else by time, where births tie within a tick: then the
/// child's word stands.
fn was_born_before(parent: &Snapshot, child: &Snapshot) -> bool {
    let (Some(parent), Some(child)) = (&parent.identity, &child.identity) else { return true };
    match (parent.unique_id, child.unique_id) {
        (Some(parent), Some(child)) => parent <= child,
        _ => parent.start_time_micros <= child.start_time_micros,
    }
}

fn row_of(rows: &[Snapshot], pid: u32) -> Option<&Snapshot> {
    find(rows, pid).ok().and_then(|at| rows.get(at))
}

fn find(rows: &[Snapshot], pid: u32) -> Result<usize, usize> {
    rows.binary_search_by_key(&pid, |row| row.pid)
}

/// Sets, replaces or removes the row of `pid`, keeping the order.
fn put(rows: &mut Vec<Snapshot>, pid: u32, row: Option<Snapshot>) {
    match (find(rows, pid), row) {
        (Ok(at), Some(row)) => drop(rows.splice(at..=at, [row])),
        (Ok(at), None) => drop(rows.remove(at)),
        (Err(at), Some(row)) => rows.insert(at, row),
        (Err(_), None) => {}
    }
}
