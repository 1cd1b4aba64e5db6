//! The Linux census: one procfs, read so that no two processes can share a row.
//!
//! The order of reads is in [`process`], the listing in [`listing`], the form of the bytes in [`stat`]
//! and [`dirents`], time in [`birth`], and what /proc must be before it is believed in [`ground`].

pub mod birth;
pub mod command;
pub mod dirents;
pub mod ground;
pub mod listing;
pub mod process;
pub mod stat;

use self::command::{Part, describe_process};
use crate::census::{Deadline, Host, Visibility};
use crate::command::{Described, DescribingHost, Keys};
use crate::error::{Errno, Error, FailedCall};
use crate::facts::{Identity, Owner, Snapshot};
use birth::ClockSample;
use ground::Ground;
use process::{Process, Reading, Want, read_process};
use std::sync::OnceLock;

/// The kernel reads that the census is made of. Paths are relative to the checked /proc. The threads
/// of one call share it.
pub trait Kernel: Sync + Sized {
    /// An open /proc/pid/stat: it stays bound to one process, whatever becomes of the number.
    type StatFile;
    /// An open part of a command. Of the environment: it stays bound to the memory image that the process
    /// had, and is empty once the process has executed another program.
    type PartFile;
    /// An open listing of /proc.
    type Listing: Send;
    /// An open pidfd: it stays bound to one process, whatever becomes of the number.
    type PidFd;

    /// The same /proc through a descriptor of its own, for another thread of the call: threads that
    /// count their uses of one open file wait for each other's caches. `None` where there is none to
    /// be had.
    fn for_helper(&self) -> Option<Self> {
        None
    }

    /// getpid(2).
    fn own_pid(&self) -> u32;
    /// geteuid(2).
    fn effective_uid(&self) -> u32;
    /// The effective set of capget(2), one bit a capability, of the calling thread.
    fn effective_capabilities(&self) -> Result<u64, Errno>;
    /// sysconf(_SC_CLK_TCK).
    fn ticks_per_second(&self) -> u64;
    /// How many threads can run at once.
    fn processors(&self) -> usize;
    /// CLOCK_REALTIME between two reads of CLOCK_BOOTTIME.
    fn sample_clocks(&self) -> Result<ClockSample, Errno>;

    /// `f_type` of fstatfs(2).
    fn file_system_magic(&self) -> Result<u64, Errno>;
    /// Major and minor number of the mounted file system.
    fn device(&self) -> Result<(u32, u32), Errno>;
    /// A whole file.
    fn read_file(&self, path: &str) -> Result<Vec<u8>, FailedCall>;
    /// The target of a link.
    fn read_link(&self, path: &str) -> Result<String, Errno>;

    /// The number of links of /proc, which counts the host's processes, also those of other pid
    /// namespaces; 0 where it cannot be read.
    fn count_processes(&self) -> usize;
    /// Opens /proc itself for listing.
    fn open_listing(&self) -> Result<Self::Listing, Errno>;
    /// getdents64(2); 0 at the end.
    fn read_listing(&self, listing: &mut Self::Listing, buffer: &mut [u8]) -> Result<usize, Errno>;

    /// openat(2) of `pid/stat`.
    fn open_stat(&self, pid: u32) -> Result<Self::StatFile, Errno>;
    /// The whole stat file, from its start, as it is now.
    fn read_stat(&self, file: &Self::StatFile, buffer: &mut [u8]) -> Result<usize, Errno>;
    /// The owner of the directory `pid`: the effective uid. (The owner of the stat file is not: it
    /// is 0 for every zombie and every process that is not dumpable.)
    fn directory_uid(&self, pid: u32) -> Result<u32, Errno>;
    /// tgkill(pid, pid, 0): ESRCH exactly if no process has this pid, also where procfs hides it.
    fn null_signal(&self, pid: u32) -> Result<(), Errno>;

    /// The ids under `pid/task`.
    fn thread_ids(&self, pid: u32) -> Result<Vec<u32>, FailedCall>;
    /// The whole of `pid/task/tid/stat`.
    fn read_thread_stat(&self, pid: u32, tid: u32, buffer: &mut [u8]) -> Result<usize, FailedCall>;

    /// The target of the link of a part below `pid`, or below `pid/task/tid`.
    fn read_part_link(&self, pid: u32, tid: Option<u32>, part: Part)
    -> Result<Vec<u8>, FailedCall>;
    /// openat(2) of a part that is a file.
    fn open_part(
        &self,
        pid: u32,
        tid: Option<u32>,
        part: Part,
    ) -> Result<Self::PartFile, FailedCall>;
    /// A whole part in one read, which makes it one program's; `None` if it is longer than
    /// [`crate::command::LONGEST`]. Can block on a lock of the target's.
    fn read_part(&self, file: &Self::PartFile) -> Result<Option<Vec<u8>>, FailedCall>;
    /// Whether a part has a byte at this place. Can block as well.
    fn has_byte(&self, file: &Self::PartFile, place: u64) -> Result<bool, FailedCall>;

    /// pidfd_open(2).
    fn open_pidfd(&self, pid: u32) -> Result<Self::PidFd, Errno>;
    /// The inode of a pidfd, where it is one of a pidfs (Linux 6.9).
    fn pidfs_inode(&self, pidfd: &Self::PidFd) -> Option<u64>;
    /// pidfd_send_signal(pidfd, 0): ESRCH exactly if the process was reaped.
    fn null_signal_pidfd(&self, pidfd: &Self::PidFd) -> Result<(), Errno>;
}

/// One call's view of Linux.
#[derive(Debug)]
pub struct Linux<'a, K> {
    kernel: &'a K,
    ground: &'a Ground,
    epoch_offset_micros: i64,
    /// When the call began, as births are counted.
    began: i64,
    /// Read with the first row: an identity has no owner.
    caller: OnceLock<Caller>,
}

/// Most clock samples a call: the tightest of them is hardly ever an interrupted one.
const CLOCK_SAMPLES: usize = 3;
/// Above the range of pid_t the kernel cannot be asked.
const GREATEST_PID: u32 = i32::MAX.cast_unsigned();

impl<'a, K: Kernel> Linux<'a, K> {
    /// Reads what one call needs once.
    ///
    /// # Errors
    /// A read that failed.
    pub fn new(kernel: &'a K, ground: &'a Ground) -> Result<Self, Error> {
        let mut tightest = ClockSample::WIDEST;
        for _ in 0..CLOCK_SAMPLES {
            let sample = kernel.sample_clocks();
            let sample = sample.map_err(|errno| failed("clock_gettime", errno, None))?;
            tightest = tightest.tighter(sample);
            if tightest.is_tight() {
                break;
            }
        }
        let epoch_offset_micros = ground.epoch_offset_micros(tightest);
        // Births are rounded down to a tick, and one more allows for ticks that are no whole microseconds.
        let slack = 2 * i64::from(ground.ticks.micros());
        let began = (tightest.boot_before / 1000).saturating_sub(slack);
        let began = began.saturating_add(epoch_offset_micros);
        Ok(Self { kernel, ground, epoch_offset_micros, began, caller: OnceLock::new() })
    }

    fn caller(&self) -> Result<Caller, Error> {
        if let Some(caller) = self.caller.get() {
            return Ok(*caller);
        }
        let effective_uid = self.kernel.effective_uid();
        let meaningless_uid = self.ground.meaningless_uid(self.kernel)?;
        Ok(*self.caller.get_or_init(|| Caller { effective_uid, meaningless_uid }))
    }

    fn read(&self, pid: u32, want: Want) -> Result<Reading, Error> {
        if pid == 0 || pid > GREATEST_PID {
            return Ok(Reading::Absent);
        }
        read_process(self.kernel, pid, want)
    }

    /// The row of a reading; `None` if the process is proved absent.
    fn row(&self, pid: u32, reading: Reading) -> Result<Option<Snapshot>, Error> {
        let bare = Snapshot::bare(pid);
        Ok(match reading {
            Reading::Present(process) => Some(self.row_of(pid, process)?),
            Reading::Refused { uid, .. } => {
                let (uid, owner) = self.caller()?.owner(uid);
                Some(Snapshot { uid, owner, ..bare })
            }
            Reading::Hidden | Reading::Unstable => Some(bare),
            Reading::Absent => None,
        })
    }

    fn row_of(&self, pid: u32, process: Process) -> Result<Snapshot, Error> {
        let (uid, owner) = self.caller()?.owner(process.uid);
        Ok(Snapshot {
            pid,
            owner,
            parent_pid: Some(process.stat.parent_pid),
            process_group_id: positive(process.stat.process_group),
            session_id: positive(process.stat.session),
            uid,
            state: process.state,
            exiting: process.exiting,
            identity: Some(self.identity_of(pid, &process)?),
            name: Some(process.stat.name),
            command: None,
        })
    }

    fn identity_of(&self, pid: u32, process: &Process) -> Result<Identity, Error> {
        let micros = self.ground.ticks.since_boot_micros(process.stat.start_ticks);
        let micros = micros.ok_or_else(|| process::malformed_stat(pid))?;
        Ok(Identity {
            pid,
            parent_pid: process.stat.parent_pid,
            start_time_micros: micros.saturating_add(self.epoch_offset_micros),
            start_time_since_boot_micros: Some(micros),
            unique_id: process.unique_id,
            exited: process.exited,
        })
    }

    fn refuse_hidden(&self, visibility: Visibility) -> Result<(), Error> {
        match visibility {
            Visibility::All if self.ground.hides_processes(self.kernel)? => Err(Error::NotWhole),
            _ => Ok(()),
        }
    }
}

impl<K: Kernel> Host for Linux<'_, K> {
    fn began(&self) -> Option<i64> {
        Some(self.began)
    }

    fn own_pid(&self) -> u32 {
        self.kernel.own_pid()
    }

    fn read_all(&self, visibility: Visibility, deadline: Deadline) -> Result<Vec<Snapshot>, Error> {
        // Asked before and after: whatever one remount does meanwhile, one of the two sees it.
        self.refuse_hidden(visibility)?;
        let rows = listing::read_listed(self.kernel, |kernel, pid| {
            deadline.check()?;
            self.row(pid, read_process(kernel, pid, Want::Row)?)
        })?;
        self.refuse_hidden(visibility)?;
        Ok(rows)
    }

    fn read_one(&self, pid: u32, _: Deadline) -> Result<Option<Snapshot>, Error> {
        self.row(pid, self.read(pid, Want::Row)?)
    }

    fn read_identity(&self, pid: u32) -> Result<Option<Identity>, Error> {
        match self.read(pid, Want::Identity)? {
            Reading::Present(process) => self.identity_of(pid, &process).map(Some),
            Reading::Absent => Ok(None),
            Reading::Refused { syscall, errno, .. } => Err(Error::Refused { pid, syscall, errno }),
            Reading::Hidden => Err(Error::Hidden { pid }),
            Reading::Unstable => Err(Error::Unstable { pid }),
        }
    }
}

impl<K: Kernel> DescribingHost for Linux<'_, K> {
    fn describe(&self, pid: u32, keys: &Keys) -> Result<Option<Described>, Error> {
        if pid == 0 || pid > GREATEST_PID {
            return Ok(None);
        }
        let (reading, command) = describe_process(self.kernel, pid, keys)?;
        Ok(self.row(pid, reading)?.map(|row| (row, command)))
    }
}

/// The user that rows are compared with.
#[derive(Clone, Copy, Debug)]
struct Caller {
    effective_uid: u32,
    /// Stands for every user without a number in the caller's user namespace, so it is no fact.
    meaningless_uid: Option<u32>,
}

impl Caller {
    fn owner(self, uid: Option<u32>) -> (Option<u32>, Owner) {
        let uid = uid.filter(|&uid| Some(uid) != self.meaningless_uid);
        let owner = match uid {
            None => Owner::Unknown,
            Some(uid) if uid == self.effective_uid => Owner::Same,
            Some(_) => Owner::Different,
        };
        (uid, owner)
    }
}

/// A process group or session of 0 is outside the caller's pid namespace, or a kernel thread's.
fn positive(id: i32) -> Option<u32> {
    u32::try_from(id).ok().filter(|&id| id != 0)
}

fn failed(syscall: &'static str, errno: Errno, pid: Option<u32>) -> Error {
    Error::System { syscall, errno, pid }
}
