//! The kernel record, and how a call with a deadline reads one.
//!
//! A record read can sleep in the kernel, uninterruptibly, while its target is inside fork(2) or
//! execve(2). With a deadline it therefore runs on a helper thread, which is left behind if it does
//! not answer in time. How many can be left behind in one process is bounded by [`Gate`].

use super::Kernel;
use super::info::ZOMBIE;
use crate::census::Deadline;
use crate::error::{Errno, Error};
use crate::facts::Name;
use crate::guard::guarded;
use crate::helpers::{self, Gate, Stay, ended};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};

/// One `kinfo_proc`: topology, state and birth of one process from one answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// `e_ppid`: the debugger while the process is traced.
    pub parent_pid: u32,
    /// `p_oppid`: the real parent while the process is traced, else 0.
    pub original_parent_pid: u32,
    /// `e_pgid`.
    pub process_group: u32,
    /// The effective user.
    pub uid: u32,
    /// `p_stat`.
    pub status: u32,
    /// `P_WEXIT`: exit has begun.
    pub exiting: bool,
    /// `p_comm`.
    pub name: Name,
    /// `p_starttime`, in microseconds since the Unix epoch.
    pub start_micros: i64,
}

impl Record {
    /// The parent, also while a debugger is attached, and after its death until the debugger has
    /// let go of it.
    #[must_use]
    pub const fn real_parent(&self) -> u32 {
        if self.original_parent_pid == 0 { self.parent_pid } else { self.original_parent_pid }
    }

    /// Dead and not yet reaped.
    #[must_use]
    pub const fn is_zombie(&self) -> bool {
        self.status == ZOMBIE
    }

    /// It says itself why libproc has no such process: the reason must be one of these two.
    #[must_use]
    pub const fn explains_absence(&self) -> bool {
        self.is_zombie() || self.exiting
    }
}

/// What one record read says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordAnswer {
    /// The record.
    Present(Record),
    /// Success without a record. Also of a process that is being born (SIDL), which libproc
    /// describes.
    Absent,
    /// Not one record of the known size, or another pid's.
    Malformed,
}

type Answer = Result<RecordAnswer, Errno>;

/// Helpers that may be inside the kernel at once in one process, so that no more than these can ever
/// be left behind.
pub const MOST_HELPERS: usize = 2;

/// One read that a helper makes.
#[derive(Debug)]
struct Question {
    pid: u32,
    stay: Stay,
}

/// The record reads of one call.
#[derive(Debug)]
pub struct Records<K> {
    kernel: K,
    gate: &'static Gate,
    helper: RefCell<Option<Helper>>,
}

#[derive(Debug)]
struct Helper {
    questions: Sender<Arc<Question>>,
    answers: Receiver<Result<Answer, Error>>,
}

impl<K: Kernel> Records<K> {
    /// No helper is started before a read needs one.
    pub const fn new(kernel: K, gate: &'static Gate) -> Self {
        Self { kernel, gate, helper: RefCell::new(None) }
    }

    /// Reads the record of one process; waits for it no longer than until the deadline.
    ///
    /// # Errors
    /// [`Error::Timeout`], a record of another form, or no thread to be had.
    pub fn read(
        &self,
        pid: u32,
        deadline: Deadline,
    ) -> Result<Result<Option<Record>, Errno>, Error> {
        let answer = match deadline.remaining()? {
            None => self.kernel.kernel_record(pid),
            Some(_) => self.read_helped(pid, deadline)?,
        };
        match answer {
            Ok(RecordAnswer::Present(record)) => Ok(Ok(Some(record))),
            Ok(RecordAnswer::Absent) => Ok(Ok(None)),
            Ok(RecordAnswer::Malformed) => {
                Err(Error::Malformed { what: "the kernel record of a process", pid: Some(pid) })
            }
            Err(errno) => Ok(Err(errno)),
        }
    }

    fn read_helped(&self, pid: u32, deadline: Deadline) -> Result<Answer, Error> {
        self.gate.enter(deadline)?;
        let question = Arc::new(Question { pid, stay: Stay::new() });
        let helper = match self.helper.take() {
            Some(helper) => Ok(helper),
            None => Helper::start(self.kernel.clone(), self.gate),
        };
        let asked = helper.and_then(|helper| {
            let sent = helper.questions.send(Arc::clone(&question));
            sent.map(|()| helper).map_err(|_| ended())
        });
        let helper = match asked {
            Ok(helper) => helper,
            Err(error) => {
                self.gate.leave(&question.stay);
                return Err(error);
            }
        };
        // From here on the helper has the place at the gate, and gives it back.
        let left = deadline.remaining().ok().flatten().unwrap_or_default();
        match helper.answers.recv_timeout(left) {
            Ok(answer) => {
                self.helper.replace(Some(helper));
                answer
            }
            Err(RecvTimeoutError::Timeout) => {
                self.gate.abandon(&question.stay);
                Err(Error::Timeout)
            }
            Err(RecvTimeoutError::Disconnected) => Err(ended()),
        }
    }
}

impl Helper {
    /// A thread that ends when its call does, or when the read that it was left with returns.
    fn start<K: Kernel>(kernel: K, gate: &'static Gate) -> Result<Self, Error> {
        let (questions, asked) = mpsc::channel::<Arc<Question>>();
        let (answer, answers) = mpsc::channel();
        let serve = move || {
            while let Ok(question) = asked.recv() {
                let outcome = guarded(|| Ok(kernel.kernel_record(question.pid)));
                gate.leave(&question.stay);
                if answer.send(outcome).is_err() {
                    break; // nobody waits any more
                }
            }
        };
        helpers::start(serve)?;
        Ok(Self { questions, answers })
    }
}
