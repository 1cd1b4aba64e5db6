//! The Darwin census: libproc, and the kernel record for what libproc has lost.
//!
//! A process that has begun to exit vanishes from libproc while the kernel still describes it. The
//! order of reads and the meaning of the two answers together is in [`process`], the list in
//! [`list`], the form of the bytes in [`info`], the record and its deadline in [`record`].

pub mod command;
pub mod info;
pub mod list;
pub mod process;
pub mod record;

use crate::census::{Deadline, Host, Visibility};
use crate::command::{Described, DescribingHost, Keys};
use crate::error::{Errno, Error};
use crate::facts::{Identity, Owner, Snapshot};
use crate::helpers::Gate;
use info::{File, Flavor};
use process::{Process, Reader, Reading, Want};
use record::{RecordAnswer, Records};
use std::time::{SystemTime, UNIX_EPOCH};

/// The kernel reads that the census is made of. A record read may be left behind on a thread of its
/// own, which keeps a clone.
pub trait Kernel: Clone + Send + 'static {
    /// getpid(2).
    fn own_pid(&self) -> u32;
    /// geteuid(2).
    fn effective_uid(&self) -> u32;

    /// `proc_listallpids(NULL, 0)`: the number of processes and twenty.
    fn estimate_processes(&self) -> Result<usize, Errno>;
    /// `proc_listallpids`: how many pids of one instant were written. The kernel cuts silently.
    fn list_pids(&self, pids: &mut [i32]) -> Result<usize, Errno>;

    /// `proc_pidinfo`: the length of the answer. ESRCH for a process whose exit has begun unless
    /// `exiting_too`, which is its undocumented argument.
    fn process_info(
        &self,
        pid: u32,
        flavor: Flavor,
        exiting_too: bool,
        buffer: &mut [u8],
    ) -> Result<usize, Errno>;

    /// sysctl(3) `KERN_PROC_PID`, of every user's processes, also of exiting ones and zombies. Waits
    /// while its target is inside fork(2) or execve(2).
    fn kernel_record(&self, pid: u32) -> Result<RecordAnswer, Errno>;

    /// sysctl(3) `KERN_PROCARGS2`: how many bytes were written; all of the room if there are more. EINVAL
    /// for a process that exits, for another user's, and for more room than [`command::ROOM`]. Can wait
    /// for the target's memory.
    fn arguments(&self, pid: u32, buffer: &mut [u8]) -> Result<usize, Errno>;

    /// `proc_pidpath`: the length of the path at which the kernel finds the file of its program now. ESRCH
    /// for a process whose exit has begun, ENOENT where the file has no path any more.
    fn program_path(&self, pid: u32, buffer: &mut [u8]) -> Result<usize, Errno>;
    /// stat(2).
    fn file_at(&self, path: &[u8]) -> Result<File, Errno>;
}

/// One call's view of Darwin.
#[derive(Debug)]
pub struct Darwin<K> {
    kernel: K,
    records: Records<K>,
    effective_uid: u32,
    /// When the call began, as births are counted.
    began: Option<i64>,
}

/// Above the range of pid_t the kernel cannot be asked.
const GREATEST_PID: u32 = i32::MAX.cast_unsigned();
/// Its process group is 0 in truth.
const KERNEL_TASK: u32 = 0;

impl<K: Kernel> Darwin<K> {
    /// The view of a call whose helpers go through `gate`.
    pub fn new(kernel: K, gate: &'static Gate) -> Self {
        let effective_uid = kernel.effective_uid();
        let began = SystemTime::now().duration_since(UNIX_EPOCH);
        let began = began.ok().and_then(|time| i64::try_from(time.as_micros()).ok());
        Self { records: Records::new(kernel.clone(), gate), kernel, effective_uid, began }
    }

    fn read(&self, pid: u32, want: Want, deadline: Deadline) -> Result<Reading, Error> {
        if pid > GREATEST_PID {
            return Ok(Reading::Absent);
        }
        self.reader(deadline).read(pid, want)
    }

    const fn reader(&self, deadline: Deadline) -> Reader<'_, K> {
        let (kernel, records) = (&self.kernel, &self.records);
        Reader { kernel, records, effective_uid: self.effective_uid, deadline }
    }

    fn row(&self, pid: u32, reading: Reading) -> Option<Snapshot> {
        match reading {
            Reading::Present(process) => Some(self.row_of(pid, process)),
            Reading::Absent => None,
            Reading::Refused { .. } | Reading::Unexplained | Reading::Identified(_) => {
                Some(Snapshot::bare(pid))
            }
        }
    }

    fn row_of(&self, pid: u32, process: Process) -> Snapshot {
        let owner = if process.uid == self.effective_uid { Owner::Same } else { Owner::Different };
        let group = Some(process.process_group);
        Snapshot {
            pid,
            owner,
            parent_pid: process.parent_pid,
            process_group_id: group.filter(|&group| group != 0 || pid == KERNEL_TASK),
            session_id: None, // no read of these has it
            uid: Some(process.uid),
            state: process.state,
            exiting: process.exiting,
            identity: process.identity(pid),
            name: Some(process.name),
            command: None,
        }
    }
}

impl<K: Kernel> Host for Darwin<K> {
    fn began(&self) -> Option<i64> {
        self.began
    }

    fn own_pid(&self) -> u32 {
        self.kernel.own_pid()
    }

    /// Nothing hides processes from the list: whatever is refused is a bare row.
    fn read_all(&self, _: Visibility, deadline: Deadline) -> Result<Vec<Snapshot>, Error> {
        let pids = list::list_all(&self.kernel, deadline)?;
        let mut rows = Vec::with_capacity(pids.len());
        for pid in pids {
            deadline.check()?;
            rows.extend(self.read_one(pid, deadline)?);
        }
        Ok(rows)
    }

    fn read_one(&self, pid: u32, deadline: Deadline) -> Result<Option<Snapshot>, Error> {
        Ok(self.row(pid, self.read(pid, Want::Row, deadline)?))
    }

    fn read_identity(&self, pid: u32) -> Result<Option<Identity>, Error> {
        match self.read(pid, Want::Identity, Deadline::after(None))? {
            Reading::Present(process) => {
                process.identity(pid).map(Some).ok_or(Error::Unstable { pid })
            }
            Reading::Identified(identity) => Ok(Some(identity)),
            Reading::Absent => Ok(None),
            Reading::Refused { syscall, errno } => Err(Error::Refused { pid, syscall, errno }),
            Reading::Unexplained => Err(Error::Unstable { pid }),
        }
    }
}

impl<K: Kernel> DescribingHost for Darwin<K> {
    /// Waits for records itself: it runs where waiting is bounded.
    fn describe(&self, pid: u32, keys: &Keys) -> Result<Option<Described>, Error> {
        if pid > GREATEST_PID {
            return Ok(None);
        }
        let (reading, command) = self.reader(Deadline::after(None)).describe(pid, keys)?;
        Ok(self.row(pid, reading).map(|row| (row, command)))
    }
}
