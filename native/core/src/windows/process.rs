//! What the list and a handle together say of a process. A record of the list is one kernel answer: its
//! topology and its birth are of one process. What a handle says is of the same one only if it was born
//! at the same time; else the record is of another moment, and the list is read again.

use super::list::{Room, aligned, list_all};
use super::record::{ALIGNMENT, Activity, Record, micros_since_epoch};
use super::user::{LONGEST_ANSWER, User, parse_user};
use super::{Access, Kernel};
use crate::census::Deadline;
use crate::error::{Error, FailedRead, Meaning};
use crate::facts::{Identity, Owner, Snapshot, State};
use std::collections::HashMap;

/// Lists before a pid that changes hands at every look is left unexplained.
pub const ATTEMPTS: usize = 16;

/// The idle process: a record without an object that could be opened.
pub(super) const IDLE: u32 = 0;

/// One call's way to read processes.
#[derive(Debug)]
pub struct Reader<'a, K> {
    /// The kernel.
    pub kernel: &'a K,
    /// How large a list is.
    pub room: &'a Room,
    /// Until when.
    pub deadline: Deadline,
}

/// How far the exit of a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    NotBegun,
    /// Its last thread is ending: no user code runs, files and locks may still be held.
    Begun,
    /// The object is signalled: only handles keep it.
    Complete,
}

/// What a handle adds to a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Witness {
    /// Of the process of the record.
    Same(Owner, Exit),
    Refused(FailedRead),
    /// No process has the pid any more.
    Gone,
    /// Another has it.
    Other,
}

/// What there is of a pid that the list does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unlisted {
    Absent,
    Refused(FailedRead),
    /// Its exit has begun or is complete.
    Ending {
        owner: Owner,
        exit: Exit,
        identity: Identity,
    },
    /// It lives: born since the list was read.
    Again,
}

/// What one look at a pid settled.
enum Sight {
    Row(Box<Snapshot>),
    NoRow,
    /// Another look is needed.
    Unsettled,
}

impl<K: Kernel> Reader<'_, K> {
    /// The rows of all processes, or of these pids, in any order. A pid that changes hands at every
    /// look has a bare row.
    ///
    /// # Errors
    /// A call whose failure says nothing about its process, or a passed deadline.
    pub fn read_rows(&self, pids: Option<&[u32]>) -> Result<Vec<Snapshot>, Error> {
        let mut looks = Looks { reader: self, own_user: self.own_user()?, seen: HashMap::new() };
        let mut last = (Vec::new(), Vec::new());
        for _ in 0..ATTEMPTS {
            last = looks.take(pids)?;
            if last.1.is_empty() {
                break;
            }
        }
        let (mut rows, unsettled) = last;
        rows.extend(unsettled.into_iter().map(Snapshot::bare));
        Ok(rows)
    }

    /// The identity of one process; `None` only if it was proved absent. A process with threads needs
    /// the list alone.
    ///
    /// # Errors
    /// A refusal, a birth that the kernel does not keep, or a call whose failure says nothing.
    pub fn read_identity(&self, pid: u32) -> Result<Option<Identity>, Error> {
        for _ in 0..ATTEMPTS {
            let list = list_all(self.kernel, self.room, self.deadline)?;
            let Some(record) = record_of(&list, pid) else {
                match self.read_unlisted(pid, &list, None)? {
                    Unlisted::Absent => return Ok(None),
                    Unlisted::Ending { identity, .. } => return Ok(Some(identity)),
                    Unlisted::Refused(failed) => return Err(refused(failed, pid)),
                    Unlisted::Again => continue,
                }
            };
            let exit = match record.activity {
                Activity::Active | Activity::Suspended => Exit::NotBegun,
                Activity::NoThread => match self.witness(record, None)? {
                    Witness::Same(_, exit) => exit,
                    Witness::Refused(failed) => return Err(refused(failed, pid)),
                    Witness::Gone => return Ok(None),
                    Witness::Other => continue,
                },
            };
            return identity_of(record, exit).map(Some).ok_or(Error::NoBirth { pid });
        }
        Err(Error::Unstable { pid })
    }

    /// The caller's user; `None` where its own token is refused to it, as it can be to a thread that
    /// acts for somebody else.
    fn own_user(&self) -> Result<Option<User>, Error> {
        self.user_of(None, self.kernel.own_pid())
    }

    fn user_of(&self, process: Option<&K::Process>, pid: u32) -> Result<Option<User>, Error> {
        let Ok(token) = granted(self.kernel.open_token(process), pid)? else { return Ok(None) };
        let mut storage = [0; LONGEST_ANSWER + ALIGNMENT];
        let answer = aligned(&mut storage, LONGEST_ANSWER);
        let length = self.kernel.token_user(&token, answer);
        let Ok(length) = granted(length, pid)? else { return Ok(None) };
        let address = u64::try_from(answer.as_ptr().addr()).ok();
        let user = answer.get(..length).zip(address).and_then(|(user, at)| parse_user(user, at));
        let what = "the user of a token";
        user.map(Some).ok_or(Error::Malformed { what, pid: Some(pid) })
    }

    /// Six calls: the process opened, its times, its token opened, the user, both closed. Where its
    /// exit has begun, four more.
    fn witness(&self, record: &Record, own_user: Option<&User>) -> Result<Witness, Error> {
        let Record { pid, created, .. } = *record;
        let process = match self.kernel.open(pid, Access::Query) {
            Ok(process) => process,
            Err(failed) => {
                return Ok(match failed.meaning() {
                    Meaning::Absent => Witness::Gone,
                    Meaning::Refused => Witness::Refused(failed),
                    Meaning::Failed => return Err(failed.into_error(Some(pid))),
                });
            }
        };
        let times = match granted(self.kernel.times(&process), pid)? {
            Ok(times) => times,
            Err(failed) => return Ok(Witness::Refused(failed)),
        };
        if times.created != created {
            return Ok(Witness::Other);
        }
        let owner = self.owner_of(&process, pid, own_user)?;
        drop(process);
        let exit = if times.exited == 0 { Exit::NotBegun } else { self.exit_of(pid, created)? };
        Ok(Witness::Same(owner, exit))
    }

    fn owner_of(
        &self,
        process: &K::Process,
        pid: u32,
        own_user: Option<&User>,
    ) -> Result<Owner, Error> {
        let Some(own_user) = own_user else { return Ok(Owner::Unknown) };
        Ok(match self.user_of(Some(process), pid)? {
            None => Owner::Unknown,
            Some(user) if user == *own_user => Owner::Same,
            Some(_) => Owner::Different,
        })
    }

    /// Of a process whose last thread began to end. The right to wait is asked for only here, because
    /// it may be refused where the other is granted.
    fn exit_of(&self, pid: u32, created: i64) -> Result<Exit, Error> {
        let process = match self.kernel.open(pid, Access::QueryAndWait) {
            Ok(process) => process,
            Err(failed) => {
                return match failed.meaning() {
                    Meaning::Absent => Ok(Exit::Complete), // its last handle is closed
                    Meaning::Refused => Ok(Exit::Begun),   // that much is known
                    Meaning::Failed => Err(failed.into_error(Some(pid))),
                };
            }
        };
        let Ok(times) = granted(self.kernel.times(&process), pid)? else { return Ok(Exit::Begun) };
        if times.created != created {
            return Ok(Exit::Complete); // its pid is another's
        }
        let ended = granted(self.kernel.has_ended(&process), pid)? == Ok(true);
        Ok(if ended { Exit::Complete } else { Exit::Begun })
    }

    /// The list leaves out a process whose last thread is ending or has ended; while somebody has a
    /// handle of it, it can be opened, and its pid is nobody else's.
    fn read_unlisted(
        &self,
        pid: u32,
        list: &[Record],
        own_user: Option<&User>,
    ) -> Result<Unlisted, Error> {
        let rounded = pid & !3; // OpenProcess rounds down to a multiple of four
        let process = match self.kernel.open(pid, Access::Query) {
            Ok(process) => process,
            Err(failed) => {
                return Ok(match failed.meaning() {
                    Meaning::Absent => Unlisted::Absent,
                    // The refusal is that of the process with the other pid.
                    Meaning::Refused if rounded != pid && record_of(list, rounded).is_some() => {
                        Unlisted::Absent
                    }
                    Meaning::Refused => Unlisted::Refused(failed),
                    Meaning::Failed => return Err(failed.into_error(Some(pid))),
                });
            }
        };
        let basic = match granted(self.kernel.basic(&process), pid)? {
            Ok(basic) => basic,
            Err(failed) => return Ok(Unlisted::Refused(failed)),
        };
        if basic.pid != u64::from(pid) {
            return Ok(Unlisted::Absent);
        }
        let times = match granted(self.kernel.times(&process), pid)? {
            Ok(times) => times,
            Err(failed) => return Ok(Unlisted::Refused(failed)),
        };
        if times.exited == 0 {
            return Ok(Unlisted::Again);
        }
        let what = "the answer about a process that has ended";
        let malformed = Error::Malformed { what, pid: Some(pid) };
        let parent_pid = u32::try_from(basic.parent_pid).map_err(|_| malformed.clone())?;
        let start_time_micros = micros_since_epoch(times.created).ok_or(malformed)?;
        let owner = self.owner_of(&process, pid, own_user)?;
        drop(process);
        let exit = self.exit_of(pid, times.created)?;
        let identity = Identity {
            pid,
            parent_pid,
            start_time_micros,
            start_time_since_boot_micros: None,
            unique_id: None,
            exited: exit == Exit::Complete,
        };
        Ok(Unlisted::Ending { owner, exit, identity })
    }
}

/// The looks of one call. What was once seen of a pid and a birth is of one process, so a later list
/// does not make it untrue.
struct Looks<'a, K> {
    reader: &'a Reader<'a, K>,
    own_user: Option<User>,
    seen: HashMap<(u32, i64), Witness>,
}

impl<K: Kernel> Looks<'_, K> {
    /// Rows, and pids that need another look.
    fn take(&mut self, pids: Option<&[u32]>) -> Result<(Vec<Snapshot>, Vec<u32>), Error> {
        let Reader { kernel, room, deadline } = *self.reader;
        let list = list_all(kernel, room, deadline)?;
        let listed = list.iter().map(|record| (record.pid, Some(record)));
        let asked = pids.unwrap_or_default().iter().map(|&pid| (pid, record_of(&list, pid)));
        let (mut rows, mut unsettled) = (Vec::new(), Vec::new());
        for (pid, record) in listed.filter(|_| pids.is_none()).chain(asked) {
            deadline.check()?;
            let sight = match record {
                Some(record) => self.look_at(record)?,
                None => self.look_for(pid, &list)?,
            };
            match sight {
                Sight::Row(row) => rows.push(*row),
                Sight::NoRow => {}
                Sight::Unsettled => unsettled.push(pid),
            }
        }
        Ok((rows, unsettled))
    }

    fn look_at(&mut self, record: &Record) -> Result<Sight, Error> {
        let key = (record.pid, record.created);
        let witness = match self.seen.get(&key) {
            Some(&witness) => witness,
            None if record.pid == IDLE => return Ok(row_of(record, Owner::Unknown, None)),
            None => self.reader.witness(record, self.own_user.as_ref())?,
        };
        Ok(match witness {
            Witness::Same(owner, exit) => {
                self.seen.insert(key, witness);
                row_of(record, owner, Some(exit))
            }
            Witness::Refused(_) => row_of(record, Owner::Unknown, None),
            Witness::Gone => Sight::NoRow,
            Witness::Other => Sight::Unsettled,
        })
    }

    fn look_for(&self, pid: u32, list: &[Record]) -> Result<Sight, Error> {
        Ok(match self.reader.read_unlisted(pid, list, self.own_user.as_ref())? {
            Unlisted::Absent => Sight::NoRow,
            Unlisted::Refused(_) => Sight::Row(Box::new(Snapshot::bare(pid))),
            Unlisted::Again => Sight::Unsettled,
            Unlisted::Ending { owner, exit, identity } => Sight::Row(Box::new(Snapshot {
                owner,
                parent_pid: Some(identity.parent_pid),
                state: (exit == Exit::Complete).then_some(State::Zombie),
                exiting: exit == Exit::Begun,
                identity: Some(identity),
                ..Snapshot::bare(pid)
            })),
        })
    }
}

/// The row of a record. Without a handle the threads alone say whether it may have exited.
fn row_of(record: &Record, owner: Owner, exit: Option<Exit>) -> Sight {
    let told = match record.activity {
        Activity::NoThread => None,
        Activity::Suspended => Some(State::Stopped),
        Activity::Active => Some(State::Running),
    };
    let known = exit.or_else(|| told.map(|_| Exit::NotBegun));
    Sight::Row(Box::new(Snapshot {
        pid: record.pid,
        owner,
        parent_pid: Some(record.parent_pid),
        process_group_id: None, // Windows has none
        session_id: None,       // its sessions are no pids
        uid: None,
        name: record.name.clone(),
        state: if exit == Some(Exit::Complete) { Some(State::Zombie) } else { told },
        exiting: exit == Some(Exit::Begun),
        identity: known.and_then(|exit| identity_of(record, exit)),
        command: None,
    }))
}

fn identity_of(record: &Record, exit: Exit) -> Option<Identity> {
    Some(Identity {
        pid: record.pid,
        parent_pid: record.parent_pid,
        start_time_micros: record.start_micros?,
        start_time_since_boot_micros: None,
        unique_id: None,
        exited: exit == Exit::Complete,
    })
}

fn record_of(list: &[Record], pid: u32) -> Option<&Record> {
    let found = list.binary_search_by_key(&pid, |record| record.pid);
    found.ok().and_then(|at| list.get(at))
}

pub(super) const fn refused(failed: FailedRead, pid: u32) -> Error {
    Error::WindowsRefused { pid, syscall: failed.syscall, code: failed.code }
}

/// A refusal is an answer, also to a question about an open handle: drivers take rights from handles.
/// Every other failure is the call's, for then absence is no word of the kernel's.
fn granted<T>(answer: Result<T, FailedRead>, pid: u32) -> Result<Result<T, FailedRead>, Error> {
    match answer {
        Err(failed) if failed.meaning() != Meaning::Refused => Err(failed.into_error(Some(pid))),
        answer => Ok(answer),
    }
}
