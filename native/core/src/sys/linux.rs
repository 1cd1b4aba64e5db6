//! The Linux system calls behind [`Kernel`]. Mechanism only: no policy, no parsing of processes.

use crate::command::LONGEST;
use crate::error::{Errno, Error, FailedCall, Reason};
use crate::facts::Origin;
use crate::linux::birth::ClockSample;
use crate::linux::command::Part;
use crate::linux::dirents::parse_ids;
use crate::linux::ground::Ground;
use crate::linux::{Kernel, Linux};
use std::ffi::{CStr, CString, OsString};
use std::fs::File;
use std::io::Read as _;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

pub const HAS_BACKEND: bool = true;

/// The checked /proc that all calls of this process share. A later umount or chroot does not change
/// what its descriptor names.
static HELD: Mutex<Option<&'static Held>> = Mutex::new(None);

struct Held {
    procfs: Procfs,
    ground: Ground,
    file: FileId,
}

/// Device and inode.
type FileId = (u64, u64);

/// The host as one call sees it.
pub type CallHost = Linux<'static, Procfs>;

/// It, and what all its identities share.
pub fn host() -> Result<(CallHost, &'static Origin), Error> {
    let held = hold()?;
    Ok((Linux::new(&held.procfs, &held.ground)?, &held.ground.origin))
}

fn hold() -> Result<&'static Held, Error> {
    let mut shared = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(held) = *shared {
        // Someone in this process may have closed a descriptor that is not theirs, and the number
        // may be another file's now. It is not ours to close then.
        if file_id(held.procfs.directory.as_raw_fd()) == Ok(held.file) {
            return Ok(held);
        }
    }
    let directory = open(libc::AT_FDCWD, c"/proc", libc::O_PATH | libc::O_DIRECTORY);
    let directory = directory.map_err(no_procfs)?;
    let file = file_id(directory.as_raw_fd()).map_err(|errno| failed("fstat", errno))?;
    let procfs = Procfs { directory };
    let ground = Ground::check(&procfs)?;
    let held: &'static Held = Box::leak(Box::new(Held { procfs, ground, file }));
    *shared = Some(held);
    Ok(held)
}

fn no_procfs(errno: Errno) -> Error {
    match errno.0 {
        libc::ENOENT | libc::ENOTDIR => {
            let what = "there is no process file system at /proc";
            Error::NoGround { what, reason: Reason::ProcfsUnavailable }
        }
        _ => failed("openat", errno),
    }
}

fn failed(syscall: &'static str, errno: Errno) -> Error {
    Error::System { syscall, errno, pid: None }
}

/// An `O_PATH` descriptor of /proc.
#[derive(Debug)]
pub struct Procfs {
    directory: OwnedFd,
}

impl Procfs {
    fn open(&self, path: &CStr, flags: i32) -> Result<OwnedFd, Errno> {
        open(self.directory.as_raw_fd(), path, flags)
    }

    fn open_path(&self, path: &Path, flags: i32) -> Result<OwnedFd, Errno> {
        self.open(path.as_c_str()?, flags)
    }
}

impl Kernel for Procfs {
    type StatFile = StatFile;
    type PartFile = File;
    type Listing = OwnedFd;
    type PidFd = OwnedFd;

    fn for_helper(&self) -> Option<Self> {
        let flags = libc::O_PATH | libc::O_DIRECTORY;
        self.open(c".", flags).ok().map(|directory| Self { directory })
    }

    fn own_pid(&self) -> u32 {
        std::process::id()
    }

    fn effective_uid(&self) -> u32 {
        // SAFETY: geteuid(2) takes nothing and cannot fail.
        unsafe { libc::geteuid() }
    }

    fn effective_capabilities(&self) -> Result<u64, Errno> {
        /// `_LINUX_CAPABILITY_VERSION_3` of linux/capability.h: two halves of 32 bits.
        const VERSION_3: u32 = 0x2008_0522;
        let mut header = [VERSION_3, 0]; // version, and 0 for the calling thread
        let mut sets = [0_u32; 6]; // effective, permitted, inheritable; lower half, then upper
        let (call, header, set) = (libc::SYS_capget, header.as_mut_ptr(), sets.as_mut_ptr());
        // SAFETY: capget(2) of this version reads two u32 and writes six; both outlive the call.
        check(unsafe { libc::syscall(call, header, set) })?;
        let [lower, _, _, upper, _, _] = sets;
        Ok(u64::from(upper) << 32 | u64::from(lower))
    }

    fn ticks_per_second(&self) -> u64 {
        // SAFETY: sysconf(3) takes a number and touches no memory of ours.
        let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
        u64::try_from(ticks).unwrap_or(100)
    }

    fn processors(&self) -> usize {
        // The standard library would read the cgroup's quota too, at the price of ten processes.
        let mut set = MaybeUninit::<libc::cpu_set_t>::zeroed();
        let size = std::mem::size_of::<libc::cpu_set_t>();
        // SAFETY: the kernel writes at most size bytes into set, which outlives the call.
        if check(unsafe { libc::sched_getaffinity(0, size, set.as_mut_ptr()) }).is_err() {
            return 1;
        }
        // SAFETY: sched_getaffinity(2) succeeded, and what it did not fill is zero.
        let set = unsafe { set.assume_init() };
        // SAFETY: CPU_COUNT(3) reads the set that it is given.
        let count = unsafe { libc::CPU_COUNT(&set) };
        usize::try_from(count).unwrap_or(1)
    }

    fn sample_clocks(&self) -> Result<ClockSample, Errno> {
        Ok(ClockSample {
            boot_before: clock_nanos(libc::CLOCK_BOOTTIME)?,
            real: clock_nanos(libc::CLOCK_REALTIME)?,
            boot_after: clock_nanos(libc::CLOCK_BOOTTIME)?,
        })
    }

    fn file_system_magic(&self) -> Result<u64, Errno> {
        file_system_magic(self.directory.as_raw_fd())
    }

    fn device(&self) -> Result<(u32, u32), Errno> {
        let device = fstat(self.directory.as_raw_fd())?.st_dev;
        Ok((libc::major(device), libc::minor(device)))
    }

    fn read_file(&self, path: &str) -> Result<Vec<u8>, FailedCall> {
        /// A hundred thousand mounts (the kernel's default limit) with long paths.
        const GREATEST_FILE: u64 = 64 << 20;
        let path =
            CString::new(path).map_err(|_| Errno(libc::EINVAL)).map_err(in_call("openat"))?;
        let file = File::from(self.open(&path, libc::O_RDONLY).map_err(in_call("openat"))?);
        let mut bytes = Vec::with_capacity(4096);
        let read = file.take(GREATEST_FILE).read_to_end(&mut bytes);
        read.map_err(errno_of).map_err(in_call("read"))?;
        if u64::try_from(bytes.len()) == Ok(GREATEST_FILE) {
            return Err(Errno(libc::EFBIG)).map_err(in_call("read"));
        }
        Ok(bytes)
    }

    fn read_link(&self, path: &str) -> Result<String, Errno> {
        let path = CString::new(path).map_err(|_| Errno(libc::EINVAL))?;
        let target = readlink(self.directory.as_raw_fd(), &path, 64)?;
        OsString::from_vec(target).into_string().map_err(|_| Errno(libc::EILSEQ))
    }

    fn count_processes(&self) -> usize {
        // The number's width differs between machines.
        let links = fstat(self.directory.as_raw_fd()).map(|stat| usize::try_from(stat.st_nlink));
        links.map_or(0, |count| count.unwrap_or(usize::MAX))
    }

    fn open_listing(&self) -> Result<OwnedFd, Errno> {
        self.open(c".", libc::O_RDONLY | libc::O_DIRECTORY)
    }

    fn read_listing(&self, listing: &mut OwnedFd, buffer: &mut [u8]) -> Result<usize, Errno> {
        getdents(listing, buffer)
    }

    fn open_stat(&self, pid: u32) -> Result<StatFile, Errno> {
        let mut path = Path::new();
        path.number(pid);
        path.text(b"/stat");
        let (directory, path) = (self.directory.as_raw_fd(), path.as_ptr());
        let (call, flags) = (libc::SYS_openat, libc::O_RDONLY | libc::O_CLOEXEC);
        // SAFETY: path ends in NUL and outlives the call; no mode is read without O_CREAT.
        let fd = unsafe { libc::syscall(call, directory, path, flags) };
        check(fd)?;
        Ok(StatFile { fd: RawFd::try_from(fd).map_err(|_| Errno(libc::EBADF))? })
    }

    fn read_stat(&self, file: &StatFile, buffer: &mut [u8]) -> Result<usize, Errno> {
        let (call, start) = (libc::SYS_pread64, 0_i64); // a seq_file rebuilds its text at the start
        // SAFETY: the kernel writes at most buffer.len() bytes into buffer, which outlives the call.
        let read =
            unsafe { libc::syscall(call, file.fd, buffer.as_mut_ptr(), buffer.len(), start) };
        usize::try_from(read).map_err(|_| last_errno())
    }

    fn directory_uid(&self, pid: u32) -> Result<u32, Errno> {
        let mut path = Path::new();
        path.number(pid);
        let mut stat = MaybeUninit::<libc::stat>::uninit();
        let (directory, flags) = (self.directory.as_raw_fd(), libc::AT_SYMLINK_NOFOLLOW);
        let path = path.as_ptr();
        // SAFETY: path ends in NUL and stat is large enough; both outlive the call.
        check(unsafe { libc::fstatat(directory, path, stat.as_mut_ptr(), flags) })?;
        // SAFETY: fstatat(2) succeeded, so it filled the struct.
        Ok(unsafe { stat.assume_init() }.st_uid)
    }

    fn null_signal(&self, pid: u32) -> Result<(), Errno> {
        let pid = i32::try_from(pid).map_err(|_| Errno::ESRCH)?;
        // SAFETY: tgkill(2) takes three integers; signal 0 is never delivered. The callers never
        // pass a pid of 0, and tgkill gives it no meaning.
        check(unsafe { libc::syscall(libc::SYS_tgkill, pid, pid, 0) })
    }

    fn thread_ids(&self, pid: u32) -> Result<Vec<u32>, FailedCall> {
        let flags = libc::O_RDONLY | libc::O_DIRECTORY;
        let mut path = Path::new();
        path.number(pid);
        path.text(b"/task");
        let listing = self.open_path(&path, flags).map_err(in_call("openat"))?;
        let mut buffer = vec![0; 32 << 10];
        let mut ids = Vec::new();
        loop {
            let length = getdents(&listing, &mut buffer).map_err(in_call("getdents64"))?;
            if length == 0 {
                return Ok(ids);
            }
            let entries = buffer.get(..length).and_then(|bytes| parse_ids(bytes, &mut ids));
            entries.ok_or(Errno(libc::EBADMSG)).map_err(in_call("getdents64"))?;
        }
    }

    fn read_thread_stat(&self, pid: u32, tid: u32, buffer: &mut [u8]) -> Result<usize, FailedCall> {
        let mut path = Path::new();
        path.number(pid);
        path.text(b"/task/");
        path.number(tid);
        path.text(b"/stat");
        let file = self.open_path(&path, libc::O_RDONLY).map_err(in_call("openat"))?;
        File::from(file).read_at(buffer, 0).map_err(errno_of).map_err(in_call("read"))
    }

    fn read_part_link(
        &self,
        pid: u32,
        tid: Option<u32>,
        part: Part,
    ) -> Result<Vec<u8>, FailedCall> {
        let path = Path::of_part(pid, tid, part);
        let path = path.as_c_str().map_err(in_call("readlinkat"))?;
        // The kernel gives no link of /proc/P that is as long as a page.
        readlink(self.directory.as_raw_fd(), path, 4096).map_err(in_call("readlinkat"))
    }

    fn open_part(&self, pid: u32, tid: Option<u32>, part: Part) -> Result<File, FailedCall> {
        let path = Path::of_part(pid, tid, part);
        self.open_path(&path, libc::O_RDONLY).map(File::from).map_err(in_call("openat"))
    }

    fn read_part(&self, file: &File) -> Result<Option<Vec<u8>>, FailedCall> {
        for size in [4096, LONGEST.saturating_add(1)] {
            let mut bytes = vec![0; size];
            let length = file.read_at(&mut bytes, 0).map_err(errno_of).map_err(in_call("read"))?;
            if length < size {
                bytes.truncate(length);
                return Ok(Some(bytes));
            }
        }
        Ok(None)
    }

    fn has_byte(&self, file: &File, place: u64) -> Result<bool, FailedCall> {
        let length = file.read_at(&mut [0], place).map_err(errno_of).map_err(in_call("read"))?;
        Ok(length > 0)
    }

    fn open_pidfd(&self, pid: u32) -> Result<OwnedFd, Errno> {
        let pid = i32::try_from(pid).map_err(|_| Errno::ESRCH)?;
        // SAFETY: pidfd_open(2) takes two integers.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        check(fd)?;
        let fd = RawFd::try_from(fd).map_err(|_| Errno(libc::EBADF))?;
        // SAFETY: the kernel has just returned this descriptor to us, close-on-exec, as its owner.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    fn pidfs_inode(&self, pidfd: &OwnedFd) -> Option<u64> {
        /// `PID_FS_MAGIC` of linux/magic.h. Before Linux 6.9 all pidfds share one anonymous inode.
        const PIDFS_MAGIC: u64 = 0x5049_4446;
        // A device number is one file system's as long as the kernel runs: it is asked once. 0 is none's.
        static PIDFS: AtomicU64 = AtomicU64::new(0);
        if usize::BITS < 64 {
            return None; // such a kernel has room for half of the number only
        }
        let pidfd = pidfd.as_raw_fd();
        let (device, inode) = file_id(pidfd).ok()?;
        if PIDFS.load(Ordering::Relaxed) != device || device == 0 {
            if file_system_magic(pidfd) != Ok(PIDFS_MAGIC) {
                return None;
            }
            PIDFS.store(device, Ordering::Relaxed);
        }
        Some(inode)
    }

    fn null_signal_pidfd(&self, pidfd: &OwnedFd) -> Result<(), Errno> {
        let no_info = std::ptr::null::<libc::siginfo_t>();
        let (call, fd) = (libc::SYS_pidfd_send_signal, pidfd.as_raw_fd());
        // SAFETY: pidfd_send_signal(2) takes a null siginfo; signal 0 is never delivered.
        check(unsafe { libc::syscall(call, fd, 0, no_info, 0) })
    }
}

/// The open stat file of one process. It is opened, read and closed by bare system calls: in a process
/// with threads, which Node always is, each wrapper of glibc would also take two atomic steps to be a
/// cancellation point.
#[derive(Debug)]
pub struct StatFile {
    fd: RawFd,
}

impl Drop for StatFile {
    fn drop(&mut self) {
        // SAFETY: the descriptor came from openat(2) and is this struct's alone.
        let _closed = unsafe { libc::syscall(libc::SYS_close, self.fd) };
    }
}

/// A path below /proc with numbers in it, spelt in its place without allocation, copies or the formatting
/// machinery: two are made for each process.
struct Path {
    /// Ends in zeros; the longest path here has 38 bytes.
    bytes: [u8; 48],
    length: usize,
}

impl Path {
    const fn new() -> Self {
        Self { bytes: [0; 48], length: 0 }
    }

    fn of_part(pid: u32, tid: Option<u32>, part: Part) -> Self {
        let mut path = Self::new();
        path.number(pid);
        if let Some(tid) = tid {
            path.text(b"/task/");
            path.number(tid);
        }
        path.text(match part {
            Part::Executable => b"/exe",
            Part::WorkingDirectory => b"/cwd",
            Part::Arguments => b"/cmdline",
            Part::Environment => b"/environ",
        });
        path
    }

    fn text(&mut self, text: &[u8]) {
        if let Some(room) = self.room(text.len()) {
            room.copy_from_slice(text);
        }
    }

    fn number(&mut self, mut number: u32) {
        let width = number.checked_ilog10().map_or(1, |log| log.saturating_add(1));
        let room = usize::try_from(width).ok().and_then(|width| self.room(width));
        for digit in room.into_iter().flatten().rev() {
            let [value, ..] = (number % 10).to_le_bytes();
            *digit = b'0'.wrapping_add(value);
            number /= 10;
        }
    }

    /// The next bytes; the last of all stays zero.
    fn room(&mut self, size: usize) -> Option<&mut [u8]> {
        let start = self.length;
        let (_nul, room) = self.bytes.split_last_mut()?;
        let room = room.get_mut(start..start.saturating_add(size))?;
        self.length = start.saturating_add(size);
        Some(room)
    }

    /// Ends in NUL.
    const fn as_ptr(&self) -> *const libc::c_char {
        self.bytes.as_ptr().cast()
    }

    fn as_c_str(&self) -> Result<&CStr, Errno> {
        CStr::from_bytes_until_nul(&self.bytes).map_err(|_| Errno(libc::ENAMETOOLONG))
    }
}

fn open(directory: RawFd, path: &CStr, flags: i32) -> Result<OwnedFd, Errno> {
    // SAFETY: path ends in NUL and outlives the call; no mode is read without O_CREAT.
    let fd = unsafe { libc::openat(directory, path.as_ptr(), flags | libc::O_CLOEXEC) };
    check(fd)?;
    // SAFETY: the kernel has just returned this descriptor to us as its owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn readlink(directory: RawFd, path: &CStr, size: usize) -> Result<Vec<u8>, Errno> {
    let mut target = vec![0_u8; size];
    // SAFETY: path ends in NUL, target has the length that is passed, both outlive the call.
    let length = unsafe {
        libc::readlinkat(directory, path.as_ptr(), target.as_mut_ptr().cast(), target.len())
    };
    let length = usize::try_from(length).map_err(|_| last_errno())?;
    if length >= target.len() {
        return Err(Errno(libc::ENAMETOOLONG)); // may have been cut
    }
    target.truncate(length);
    Ok(target)
}

fn getdents(listing: &OwnedFd, buffer: &mut [u8]) -> Result<usize, Errno> {
    let (call, fd) = (libc::SYS_getdents64, listing.as_raw_fd());
    // SAFETY: the kernel writes at most buffer.len() bytes into buffer, which outlives the call.
    let length = unsafe { libc::syscall(call, fd, buffer.as_mut_ptr(), buffer.len()) };
    usize::try_from(length).map_err(|_| last_errno())
}

fn file_system_magic(fd: RawFd) -> Result<u64, Errno> {
    let mut stat = MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: stat is large enough and outlives the call.
    check(unsafe { libc::fstatfs(fd, stat.as_mut_ptr()) })?;
    // SAFETY: fstatfs(2) succeeded, so it filled the struct.
    let stat = unsafe { stat.assume_init() };
    // The field has a sign in one C library and none in another.
    u64::try_from(i128::from(stat.f_type)).map_err(|_| Errno(libc::EBADMSG))
}

fn file_id(fd: RawFd) -> Result<FileId, Errno> {
    fstat(fd).map(|stat| (stat.st_dev, stat.st_ino))
}

fn fstat(fd: RawFd) -> Result<libc::stat, Errno> {
    let mut stat = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: stat is large enough and outlives the call.
    check(unsafe { libc::fstat(fd, stat.as_mut_ptr()) })?;
    // SAFETY: fstat(2) succeeded, so it filled the struct.
    Ok(unsafe { stat.assume_init() })
}

fn clock_nanos(clock: libc::clockid_t) -> Result<i64, Errno> {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: time is large enough and outlives the call.
    check(unsafe { libc::clock_gettime(clock, time.as_mut_ptr()) })?;
    // SAFETY: clock_gettime(2) succeeded, so it filled the struct.
    let time = unsafe { time.assume_init() };
    Ok(time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec))
}

fn in_call(syscall: &'static str) -> impl Fn(Errno) -> FailedCall {
    move |errno| FailedCall { syscall, errno }
}

fn check(result: impl Into<i64>) -> Result<(), Errno> {
    if result.into() < 0 { Err(last_errno()) } else { Ok(()) }
}

fn last_errno() -> Errno {
    errno_of(std::io::Error::last_os_error())
}

fn errno_of(error: std::io::Error) -> Errno {
    Errno(error.raw_os_error().unwrap_or(libc::EIO))
}
