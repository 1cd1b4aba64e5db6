//! How one process is read so that every fact belongs to it, and what the kernel's two faces mean
//! together: libproc, which loses a process when its exit begins, and the kernel record, which keeps
//! it until it is reaped.

use super::Kernel;
use super::info::{self, Bsd, Flavor, LONGEST_ANSWER, Short};
use super::record::{Record, Records};
use crate::census::Deadline;
use crate::error::{Errno, Error, Meaning};
use crate::facts::{Identity, Name, State};

/// What a reader is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// A row of a census.
    Row,
    /// Which process it is.
    Identity,
}

/// What was found at a pid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// One process, every fact its own.
    Present(Process),
    /// Which process it is, where the rest is refused.
    Identified(Identity),
    /// Neither face of the kernel has such a process.
    Absent,
    /// The kernel refuses to describe it.
    Refused {
        /// The system call that was refused.
        syscall: &'static str,
        /// Its errno.
        errno: Errno,
    },
    /// libproc has no such process and the record does not say why; or the pid changed hands at
    /// every try.
    Unexplained,
}

/// The facts of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// The real parent; `None` where a debugger hides it and the record is refused.
    pub parent_pid: Option<u32>,
    /// The process group; 0 where the kernel says so.
    pub process_group: u32,
    /// The effective user.
    pub uid: u32,
    /// The kernel's short name.
    pub name: Name,
    /// What the scheduler may do with it; `None` for a number that no header names.
    pub state: Option<State>,
    /// Exit has begun.
    pub exiting: bool,
    /// When it was born, where that could be read.
    pub start_micros: Option<i64>,
    /// `p_uniqueid`, where it was the same before and after.
    pub unique_id: Option<u64>,
}

impl Process {
    /// Which process it is, if both its parent and its birth were read.
    #[must_use]
    pub fn identity(&self, pid: u32) -> Option<Identity> {
        Some(Identity {
            pid,
            parent_pid: self.parent_pid?,
            start_time_micros: self.start_micros?,
            start_time_since_boot_micros: None,
            unique_id: self.unique_id,
            exited: self.state == Some(State::Zombie),
        })
    }
}

/// The birth of a process, and what the same answer says of its parent and its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Birth {
    /// In microseconds since the Unix epoch.
    pub start_micros: i64,
    /// The parent as it is told: the debugger while one is attached.
    pub told_parent: u32,
    /// The real parent, unless a debugger hides it.
    pub real_parent: Option<u32>,
    /// Dead and not yet reaped.
    pub exited: bool,
}

impl From<Bsd> for Birth {
    fn from(bsd: Bsd) -> Self {
        Self {
            start_micros: bsd.start_micros,
            told_parent: bsd.parent_pid,
            real_parent: (!bsd.traced).then_some(bsd.parent_pid),
            exited: bsd.status == info::ZOMBIE,
        }
    }
}

impl From<&Record> for Birth {
    fn from(record: &Record) -> Self {
        Self {
            start_micros: record.start_micros,
            told_parent: record.parent_pid,
            real_parent: Some(record.real_parent()),
            exited: record.is_zombie(),
        }
    }
}

/// Tries before a pid that never holds still is given up.
pub const ATTEMPTS: usize = 16;

const PROC_PIDINFO: &str = "proc_pidinfo";
const SYSCTL: &str = "sysctl";

/// One call's way to read processes.
#[derive(Debug)]
pub struct Reader<'a, K> {
    /// The kernel.
    pub kernel: &'a K,
    /// Its records.
    pub records: &'a Records<K>,
    /// The caller's effective user, whose processes libproc describes wholly.
    pub effective_uid: u32,
    /// Until when a record may be waited for.
    pub deadline: Deadline,
}

/// What one question to libproc says about its process.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer<T> {
    Here(T),
    /// ESRCH.
    Gone,
    /// EPERM or EACCES.
    Refused(Errno),
}

/// Whether a question may be answered for a process whose exit has begun: `arg` of `proc_pidinfo`.
/// Not in its manual: the kernel looks among the exiting and the zombies too where it is not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Among {
    TheLive,
    All,
}

/// `p_uniqueid`, which binds what is read between two equal answers to one birth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UniqueId {
    Known(u64),
    /// No process, live or dead, has the pid.
    Gone,
    /// Refused, or of another size: this kernel or sandbox does not tell.
    Untold,
}

enum BirthAnswer {
    Known(Birth),
    /// Of no source; also of an embryo that is another user's.
    Absent,
    /// By every source.
    Refused {
        syscall: &'static str,
        errno: Errno,
    },
}

enum Outcome {
    Settled(Reading),
    /// Believed if the next try says the same again: answers of the kernel contradict each other, as
    /// they do for an instant when a pid changes hands or its process its parent.
    Doubtful(Reading),
    /// The pid changed hands, or its process its parent.
    Again,
}

impl<K: Kernel> Reader<'_, K> {
    /// Reads one process.
    ///
    /// # Errors
    /// A read whose failure says nothing about the process, a refused record of a process that
    /// libproc has lost, or a deadline that passed at the record.
    pub fn read(&self, pid: u32, want: Want) -> Result<Reading, Error> {
        let mut doubted = None;
        for _ in 0..ATTEMPTS {
            match self.read_once(pid, want)? {
                Outcome::Settled(reading) => return Ok(reading),
                Outcome::Doubtful(reading) if doubted.as_ref() == Some(&reading) => {
                    return Ok(reading);
                }
                Outcome::Doubtful(reading) => doubted = Some(reading),
                Outcome::Again => doubted = None,
            }
        }
        Ok(Reading::Unexplained)
    }

    /// Unique id, short record, birth, unique id. The short record alone judges the topology of a
    /// process that libproc has; the kernel record that of one that it has lost.
    fn read_once(&self, pid: u32, want: Want) -> Result<Outcome, Error> {
        let before = self.unique_id(pid)?;
        match (self.short(pid, Among::TheLive)?, before) {
            (Answer::Here(short), UniqueId::Known(id)) => self.bind_by_id(pid, want, short, id),
            (Answer::Here(short), UniqueId::Untold) => self.bind_by_birth(pid, want, &short),
            (Answer::Here(short), UniqueId::Gone) => {
                // Born meanwhile; or, if it happens again, the id is no witness.
                Ok(match self.bind_by_birth(pid, want, &short)? {
                    Outcome::Settled(reading) => Outcome::Doubtful(reading),
                    other => other,
                })
            }
            (Answer::Gone, _) => self.read_lost(pid, want, before),
            (Answer::Refused(errno), _) => match want {
                Want::Row => Ok(refused(PROC_PIDINFO, errno)),
                Want::Identity => self.identify_untold(pid, before, errno),
            },
        }
    }

    /// The same unique id before and after: all between is one birth's.
    fn bind_by_id(&self, pid: u32, want: Want, short: Short, id: u64) -> Result<Outcome, Error> {
        let birth = self.birth(pid, Some(short.uid))?;
        let parent = self.parent_of(pid, &short, &birth)?;
        if self.unique_id(pid)? != UniqueId::Known(id) {
            return Ok(Outcome::Again);
        }
        Ok(finish(want, short, &birth, parent, Some(id)))
    }

    /// Without unique ids, equal births before and after the short record bind it.
    fn bind_by_birth(&self, pid: u32, want: Want, first: &Short) -> Result<Outcome, Error> {
        let before = self.birth(pid, Some(first.uid))?;
        let Answer::Here(short) = self.short(pid, Among::TheLive)? else {
            return Ok(Outcome::Again);
        };
        let parent = self.parent_of(pid, &short, &before)?;
        let after = self.birth(pid, Some(short.uid))?;
        let bound = match (&before, &after) {
            (BirthAnswer::Known(before), BirthAnswer::Known(after)) => {
                before.start_micros == after.start_micros
            }
            (BirthAnswer::Known(_), _) | (_, BirthAnswer::Known(_)) => false,
            _ => true, // one answer is one process's, and there is no birth to mix in
        };
        if !bound {
            return Ok(Outcome::Again);
        }
        Ok(finish(want, short, &after, parent, None))
    }

    /// libproc has lost it: the record says whether it is dying, dead or gone. One answer carries
    /// topology and birth together, so the record needs no second witness.
    fn read_lost(&self, pid: u32, want: Want, before: UniqueId) -> Result<Outcome, Error> {
        let record = self.record(pid)?.map_err(|errno| system(SYSCTL, errno, pid))?;
        let Some(record) = record else { return self.confirm_absence(pid, before) };
        if !record.explains_absence() && want == Want::Row {
            return Ok(Outcome::Doubtful(Reading::Unexplained));
        }
        let settled = record.explains_absence();
        let (unique_id, bound) = match (before, self.unique_id(pid)?) {
            (UniqueId::Known(before), UniqueId::Known(after)) if before == after => {
                (Some(before), settled)
            }
            (UniqueId::Untold, UniqueId::Untold) => (None, settled),
            // The record has a process and the id has none: reaped meanwhile, unless it stays so.
            (UniqueId::Gone, UniqueId::Gone) => (None, false),
            _ => return Ok(Outcome::Again),
        };
        let reading = Reading::Present(process_of(record, unique_id));
        Ok(if bound { Outcome::Settled(reading) } else { Outcome::Doubtful(reading) })
    }

    /// The record has no such process. An embryo has none either, so libproc must say so too, of the
    /// dead as of the living.
    fn confirm_absence(&self, pid: u32, before: UniqueId) -> Result<Outcome, Error> {
        let gone = match (before, self.unique_id(pid)?) {
            (_, UniqueId::Gone) => true,
            (UniqueId::Known(_), _) | (_, UniqueId::Known(_)) => false,
            _ => self.short(pid, Among::All)? == Answer::Gone,
        };
        Ok(if gone {
            Outcome::Settled(Reading::Absent)
        } else {
            Outcome::Doubtful(Reading::Unexplained)
        })
    }

    /// The short record is refused: an identity needs only a birth, which carries its own parent.
    fn identify_untold(&self, pid: u32, before: UniqueId, short: Errno) -> Result<Outcome, Error> {
        let birth = match self.birth(pid, None)? {
            BirthAnswer::Known(birth) => birth,
            BirthAnswer::Refused { syscall, errno } => return Ok(refused(syscall, errno)),
            BirthAnswer::Absent => {
                return Ok(match self.unique_id(pid)? {
                    UniqueId::Gone => Outcome::Settled(Reading::Absent),
                    _ => refused(PROC_PIDINFO, short),
                });
            }
        };
        let parent = match birth.real_parent {
            Some(parent) => Parent::Real(parent),
            None => self.traced_parent(pid, birth)?,
        };
        let (parent_pid, told) = match parent {
            Parent::Real(parent) => (parent, true),
            Parent::Unproved(parent) => (parent, false),
            Parent::Refused(errno) => return Ok(refused(SYSCTL, errno)),
            Parent::Unknown | Parent::Changed => return Ok(Outcome::Again),
        };
        let (unique_id, bound) = match (before, self.unique_id(pid)?) {
            (UniqueId::Known(before), UniqueId::Known(after)) if before == after => {
                (Some(before), true)
            }
            (UniqueId::Untold, UniqueId::Untold) => (None, true),
            (UniqueId::Gone, UniqueId::Gone) => (None, false),
            _ => return Ok(Outcome::Again),
        };
        let reading = Reading::Identified(Identity {
            pid,
            parent_pid,
            start_time_micros: birth.start_micros,
            start_time_since_boot_micros: None,
            unique_id,
            exited: birth.exited,
        });
        Ok(if told && bound { Outcome::Settled(reading) } else { Outcome::Doubtful(reading) })
    }

    /// The birth by the cheapest source that tells it: libproc for the caller's own processes, else
    /// the kernel record.
    fn birth(&self, pid: u32, uid: Option<u32>) -> Result<BirthAnswer, Error> {
        if uid.is_none_or(|uid| uid == self.effective_uid) {
            let answer =
                self.ask(pid, Flavor::Bsd, Among::All, |answer| info::parse_bsd(answer, pid))?;
            if let Answer::Here(bsd) = answer {
                return Ok(BirthAnswer::Known(bsd.into()));
            }
        }
        Ok(match self.record(pid)? {
            Ok(Some(record)) => BirthAnswer::Known(Birth::from(&record)),
            Ok(None) => BirthAnswer::Absent,
            Err(errno) if errno.meaning() == Meaning::Refused => {
                BirthAnswer::Refused { syscall: SYSCTL, errno }
            }
            Err(errno) => return Err(system(SYSCTL, errno, pid)),
        })
    }

    fn parent_of(&self, pid: u32, short: &Short, birth: &BirthAnswer) -> Result<Parent, Error> {
        match birth {
            BirthAnswer::Known(birth) if birth.told_parent != short.parent_pid => {
                Ok(Parent::Changed)
            }
            _ if !short.traced => Ok(Parent::Real(short.parent_pid)),
            BirthAnswer::Known(birth) => self.traced_parent(pid, *birth),
            BirthAnswer::Refused { errno, .. } => Ok(Parent::Refused(*errno)),
            BirthAnswer::Absent => Ok(Parent::Unknown),
        }
    }

    /// The parent behind a debugger, which the record alone has.
    fn traced_parent(&self, pid: u32, birth: Birth) -> Result<Parent, Error> {
        Ok(match self.record(pid)? {
            Ok(Some(record)) if record.start_micros != birth.start_micros => Parent::Changed,
            Ok(Some(record)) if record.original_parent_pid == 0 => {
                Parent::Unproved(record.parent_pid)
            }
            Ok(Some(record)) => Parent::Real(record.original_parent_pid),
            Ok(None) => Parent::Unknown,
            Err(errno) if errno.meaning() == Meaning::Refused => Parent::Refused(errno),
            Err(errno) => return Err(system(SYSCTL, errno, pid)),
        })
    }

    fn record(&self, pid: u32) -> Result<Result<Option<Record>, Errno>, Error> {
        self.records.read(pid, self.deadline)
    }

    fn short(&self, pid: u32, among: Among) -> Result<Answer<Short>, Error> {
        self.ask(pid, Flavor::Short, among, |answer| info::parse_short(answer, pid))
    }

    /// Whether the kernel says that Rosetta translates its program.
    pub(super) fn is_translated(&self, pid: u32) -> Result<bool, Error> {
        let short = self.short(pid, Among::TheLive)?;
        Ok(matches!(short, Answer::Here(short) if short.translated))
    }

    fn unique_id(&self, pid: u32) -> Result<UniqueId, Error> {
        /// The kernel does not know the flavor, or has a longer answer: layout drift of a structure
        /// that is not in the public SDK.
        const UNKNOWN_FORM: [Errno; 2] = [Errno::EINVAL, Errno::ENOMEM];
        let mut buffer = [0; Flavor::UniqueId.size()];
        match self.kernel.process_info(pid, Flavor::UniqueId, true, &mut buffer) {
            Ok(length) => {
                let id = buffer.get(..length).and_then(info::parse_unique_id);
                Ok(id.map_or(UniqueId::Untold, UniqueId::Known))
            }
            Err(Errno::ESRCH) => Ok(UniqueId::Gone),
            Err(errno) if errno.meaning() == Meaning::Refused || UNKNOWN_FORM.contains(&errno) => {
                Ok(UniqueId::Untold)
            }
            Err(errno) => Err(system(PROC_PIDINFO, errno, pid)),
        }
    }

    /// An answer without the known form is an error: layout drift is never read as facts.
    fn ask<T>(
        &self,
        pid: u32,
        flavor: Flavor,
        among: Among,
        parse: impl FnOnce(&[u8]) -> Option<T>,
    ) -> Result<Answer<T>, Error> {
        let mut buffer = [0; LONGEST_ANSWER];
        let buffer = buffer.get_mut(..flavor.size()).unwrap_or_default();
        match self.kernel.process_info(pid, flavor, among == Among::All, buffer) {
            Ok(length) => {
                let facts = buffer.get(..length).and_then(parse);
                let what = "an answer of proc_pidinfo";
                facts.map(Answer::Here).ok_or(Error::Malformed { what, pid: Some(pid) })
            }
            Err(Errno::ESRCH) => Ok(Answer::Gone),
            Err(errno) if errno.meaning() == Meaning::Refused => Ok(Answer::Refused(errno)),
            Err(errno) => Err(system(PROC_PIDINFO, errno, pid)),
        }
    }
}

enum Parent {
    Real(u32),
    /// A debugger is attached and the record names no parent behind it: it is the parent, or it has
    /// just let go.
    Unproved(u32),
    /// A debugger is attached and there is no record.
    Unknown,
    Refused(Errno),
    /// Two answers name another parent each, so they are of two instants.
    Changed,
}

/// The facts of a process that libproc has.
fn finish(
    want: Want,
    short: Short,
    birth: &BirthAnswer,
    parent: Parent,
    unique_id: Option<u64>,
) -> Outcome {
    let start_micros = match (birth, want) {
        (BirthAnswer::Known(birth), _) => Some(birth.start_micros),
        (_, Want::Row) => None,
        (BirthAnswer::Refused { syscall, errno }, Want::Identity) => {
            return refused(syscall, *errno);
        }
        (BirthAnswer::Absent, Want::Identity) => return Outcome::Again, // an embryo will be born
    };
    // An embryo has its birth in a moment; if it has none then either, the row goes without.
    let mut proved = !matches!(birth, BirthAnswer::Absent);
    let parent_pid = match (&parent, want) {
        (Parent::Real(parent), _) => Some(*parent),
        (Parent::Unproved(parent), _) => {
            proved = false;
            Some(*parent)
        }
        (Parent::Refused(_), Want::Row) => None,
        (Parent::Refused(errno), Want::Identity) => return refused(SYSCTL, *errno),
        (Parent::Unknown | Parent::Changed, Want::Identity) => return Outcome::Again,
        (Parent::Unknown | Parent::Changed, Want::Row) => {
            proved = false;
            (!short.traced).then_some(short.parent_pid) // which alone judges topology
        }
    };
    // An identity names the parent too, so there is none while that is in dispute.
    let start_micros = start_micros.filter(|_| !matches!(parent, Parent::Changed));
    let state = info::state_of(short.status);
    let reading = Reading::Present(Process {
        parent_pid,
        process_group: short.process_group,
        uid: short.uid,
        name: short.name,
        state,
        exiting: short.exiting && state != Some(State::Zombie),
        start_micros,
        unique_id,
    });
    if proved { Outcome::Settled(reading) } else { Outcome::Doubtful(reading) }
}

/// The facts of a process that libproc has lost.
fn process_of(record: Record, unique_id: Option<u64>) -> Process {
    Process {
        parent_pid: Some(record.real_parent()),
        process_group: record.process_group,
        uid: record.uid,
        state: info::state_of(record.status),
        exiting: record.exiting && !record.is_zombie(),
        start_micros: Some(record.start_micros),
        name: record.name,
        unique_id,
    }
}

const fn refused(syscall: &'static str, errno: Errno) -> Outcome {
    Outcome::Settled(Reading::Refused { syscall, errno })
}

const fn system(syscall: &'static str, errno: Errno, pid: u32) -> Error {
    Error::System { syscall, errno, pid: Some(pid) }
}
