//! Commands: what every platform's reading of them shares. Their form, their bounds, and how long a
//! target that does not answer is waited for. Knows no platform.

use crate::census::{Deadline, Host, Visibility};
use crate::error::{Code, Error};
use crate::facts::{Command, Identity, Snapshot};
use crate::helpers::{Errand, Gate};
use std::cell::RefCell;
use std::time::Duration;

/// The bytes of an argument list, and of an environment, that are read: the most that execve(2) takes
/// under the usual limit of the stack, on Linux; on Darwin twice of what it ever takes.
pub const LONGEST: usize = 2 << 20;

/// The bytes of all commands of one census; a command beyond is not in its row.
pub const MOST_IN_CENSUS: usize = 128 << 20;

/// Helpers that may be inside the kernel at once in one process.
pub const MOST_HELPERS: usize = 4;

/// How long a target may take to answer.
pub const PATIENCE: Duration = Duration::from_secs(1);

/// What a row and its command are read for: the names of variables, none twice.
pub type Keys = Vec<Vec<u8>>;

/// A row and the command of the same process. `Ok(None)` for one that has no memory image left; an error
/// says why there is no command, and leaves the row as it is.
pub type Described = (Snapshot, Result<Option<Command>, Error>);

/// One platform that can read commands.
pub trait DescribingHost {
    /// One process and its command, both of one birth; `None` only if it was proved absent. May block
    /// on a lock of the target's.
    ///
    /// # Errors
    /// A read that says nothing about the process.
    fn describe(&self, pid: u32, keys: &Keys) -> Result<Option<Described>, Error>;

    /// The same of a process whose row was just read. Where a command can be bound to that row, it stands.
    ///
    /// # Errors
    /// Those of [`DescribingHost::describe`].
    fn describe_row(&self, row: Snapshot, keys: &Keys) -> Result<Option<Described>, Error> {
        self.describe(row.pid, keys)
    }

    /// The command alone; `None` if the process was proved absent or has no memory image left.
    ///
    /// # Errors
    /// Those of [`DescribingHost::describe`], and why there is no command.
    fn describe_alone(&self, pid: u32, keys: &Keys) -> Result<Option<Command>, Error> {
        match self.describe(pid, keys)? {
            Some((_, command)) => command,
            None => Ok(None),
        }
    }
}

/// Reads one command; `None` if the process was proved absent or has no memory image left.
///
/// # Errors
/// A refusal, [`Error::Timeout`], a command that is too long, or a read that failed.
pub fn read<D: DescribingHost>(
    gate: &'static Gate,
    pid: u32,
    keys: Keys,
    deadline: Deadline,
    open: impl FnOnce() -> Result<D, Error> + Send + 'static,
) -> Result<Option<Command>, Error> {
    let prepare = move || open().map(|host| move |pid| host.describe_alone(pid, &keys));
    Errand::start(gate, deadline, vec![pid], prepare)?.next(deadline)
}

/// A host whose rows have their commands, where those could be read.
#[derive(Debug)]
pub struct WithCommands<'a, H, O> {
    host: &'a H,
    open: O,
    keys: Keys,
    gate: &'static Gate,
    /// Bytes that further commands may have.
    room: RefCell<usize>,
}

impl<'a, H, O, D> WithCommands<'a, H, O>
where
    H: Host,
    O: Fn() -> Result<D, Error> + Clone + Send + 'static,
    D: DescribingHost,
{
    /// `open` makes the same host for a helper; `room` is for the bytes of all commands.
    pub const fn new(host: &'a H, gate: &'static Gate, keys: Keys, room: usize, open: O) -> Self {
        Self { host, open, keys, gate, room: RefCell::new(room) }
    }

    /// Each row with its command, read together or bound to it; the row as it is where that takes too
    /// long.
    fn describe(&self, rows: Vec<Snapshot>, deadline: Deadline) -> Result<Vec<Snapshot>, Error> {
        let mut described = Vec::with_capacity(rows.len());
        let mut errand = None;
        let mut rest = rows.into_iter();
        while let Some(row) = rest.next() {
            let patience = patience(deadline)?;
            let current = match errand.take() {
                Some(current) => Ok(current),
                None => self.send(&row, rest.as_slice(), patience),
            };
            let answer = current.and_then(|current| {
                let answer = current.next(patience)?;
                errand = Some(current);
                Ok(answer)
            });
            match answer {
                Ok(Some((row, command))) => {
                    described.push(Snapshot { command: self.admit(command)?, ..row });
                }
                Ok(None) => {} // gone since
                Err(Error::Timeout) => described.push(row),
                Err(error) => return Err(error),
            }
        }
        Ok(described)
    }

    fn send(
        &self,
        row: &Snapshot,
        rest: &[Snapshot],
        patience: Deadline,
    ) -> Result<Errand<Option<Described>>, Error> {
        let rows = std::iter::once(row).chain(rest).cloned().collect();
        let (open, keys) = (self.open.clone(), self.keys.clone());
        Errand::start(self.gate, patience, rows, move || {
            open().map(|host| move |row| host.describe_row(row, &keys))
        })
    }

    /// What a row says of a command that could not be read: nothing. A failure that says nothing about
    /// the process is the census's.
    fn admit(
        &self,
        command: Result<Option<Command>, Error>,
    ) -> Result<Option<Box<Command>>, Error> {
        match command {
            Ok(None) => Ok(None),
            Ok(Some(command)) => {
                let mut room = self.room.borrow_mut();
                let left = room.checked_sub(command.size());
                Ok(left.map(|left| {
                    *room = left;
                    Box::new(command)
                }))
            }
            Err(error) if is_of_the_process(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Whether it says why this process has no command, and nothing of others.
#[must_use]
pub fn is_of_the_process(error: &Error) -> bool {
    error.code() == Code::AccessDenied
        || matches!(
            error,
            Error::TooLong { .. }
                | Error::CommandCut { .. }
                | Error::Translated { .. }
                | Error::Unstable { .. }
        )
}

/// Until when one target of a census may take: a few that never answer must not use up the deadline.
fn patience(deadline: Deadline) -> Result<Deadline, Error> {
    let part = deadline.remaining()?.map_or(PATIENCE, |left| PATIENCE.min(left / 8));
    Ok(Deadline::after(Some(part)))
}

impl<H, O, D> Host for WithCommands<'_, H, O>
where
    H: Host,
    O: Fn() -> Result<D, Error> + Clone + Send + 'static,
    D: DescribingHost,
{
    const PARENTS_MOVE: bool = H::PARENTS_MOVE;

    fn began(&self) -> Option<i64> {
        self.host.began()
    }

    fn own_pid(&self) -> u32 {
        self.host.own_pid()
    }

    fn read_all(&self, visibility: Visibility, deadline: Deadline) -> Result<Vec<Snapshot>, Error> {
        self.describe(self.host.read_all(visibility, deadline)?, deadline)
    }

    fn read_selected(&self, pids: &[u32], deadline: Deadline) -> Result<Vec<Snapshot>, Error> {
        self.describe(self.host.read_selected(pids, deadline)?, deadline)
    }

    fn read_one(&self, pid: u32, deadline: Deadline) -> Result<Option<Snapshot>, Error> {
        let row = self.host.read_one(pid, deadline)?;
        Ok(self.describe(row.into_iter().collect(), deadline)?.pop())
    }

    fn read_identity(&self, pid: u32) -> Result<Option<Identity>, Error> {
        self.host.read_identity(pid)
    }
}

/// The arguments in a block of strings that each end in NUL; the last may lack it.
#[must_use]
pub fn split_strings(block: &[u8]) -> Vec<Vec<u8>> {
    if block.is_empty() {
        return Vec::new();
    }
    let block = block.strip_suffix(b"\0").unwrap_or(block);
    block.split(|&byte| byte == 0).map(<[u8]>::to_vec).collect()
}

/// The values of `keys` in the strings of an environment, by the place of the key; the first of several
/// counts, as for getenv(3).
pub fn pick<'a>(strings: impl Iterator<Item = &'a [u8]>, keys: &Keys) -> Vec<(usize, Vec<u8>)> {
    let mut found: Vec<Option<&[u8]>> = vec![None; keys.len()];
    for string in strings {
        for (value, key) in found.iter_mut().zip(keys).filter(|(value, _)| value.is_none()) {
            *value = string.strip_prefix(key.as_slice()).and_then(|rest| rest.strip_prefix(b"="));
        }
    }
    let known = found.into_iter().enumerate();
    known.filter_map(|(place, value)| Some((place, value?.to_vec()))).collect()
}

#[cfg(test)]
mod tests {
    use super::{pick, split_strings};

    #[test]
    fn strings_end_in_nul_but_for_the_last_perhaps() {
        let split = |block: &[u8]| split_strings(block);
        assert_eq!(split(b""), Vec::<Vec<u8>>::new());
        assert_eq!(split(b"\0"), [b""]);
        assert_eq!(split(b"\0\0"), [b"", b""]);
        assert_eq!(split(b"a"), [b"a"]);
        assert_eq!(split(b"a\0\0b\nc\0"), [&b"a"[..], b"", b"b\nc"]);
        assert_eq!(split(b"a\0b\xff"), [&b"a"[..], b"b\xff"]);
    }

    #[test]
    fn the_first_of_several_counts_and_a_prefix_is_no_key() {
        let strings: [&[u8]; 6] = [b"AB=1", b"A", b"A=\xff=x", b"A=2", b"", b"=B=3"];
        let keys = ["A", "B", "AB"].map(|key| key.as_bytes().to_vec()).to_vec();
        let found = pick(strings.into_iter(), &keys);
        assert_eq!(found, [(0, b"\xff=x".to_vec()), (2, b"1".to_vec())]);
    }
}
