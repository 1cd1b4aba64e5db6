//! The Darwin system calls behind [`Kernel`]. Mechanism only: no policy, no layouts but the shim's.

use crate::darwin::info::{File, Flavor, micros_since_epoch, name_of};
use crate::darwin::record::{MOST_HELPERS, Record, RecordAnswer};
use crate::darwin::{Darwin, Kernel};
use crate::error::{Errno, Error};
use crate::facts::Origin;
use crate::helpers::Gate;
use std::ffi::{CStr, CString, c_char, c_int};
use std::mem::{MaybeUninit, size_of};
use std::ptr;
use std::sync::{Mutex, PoisonError};

pub const HAS_BACKEND: bool = true;

/// Helpers that a call left behind are the process's, whichever Worker made the call.
static GATE: Gate = Gate::new(MOST_HELPERS);
/// The boot does not change.
static ORIGIN: Mutex<Option<&'static Origin>> = Mutex::new(None);

/// The host as one call sees it.
pub type CallHost = Darwin<Xnu>;

/// It, and what all its identities share.
pub fn host() -> Result<(CallHost, &'static Origin), Error> {
    Ok((Darwin::new(Xnu, &GATE), origin()?))
}

fn origin() -> Result<&'static Origin, Error> {
    let mut shared = ORIGIN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(origin) = *shared {
        return Ok(origin);
    }
    let boot_id = boot_session()?;
    let origin: &'static Origin = Box::leak(Box::new(Origin {
        start_time_resolution_micros: 1,
        boot_id,
        ..Origin::default()
    }));
    pin_image();
    *shared = Some(origin);
    Ok(origin)
}

/// `kern.bootsessionuuid`; `None` where a sandbox refuses it.
fn boot_session() -> Result<Option<String>, Error> {
    let mut text = [0_u8; 64]; // a UUID has 36 and a NUL
    let mut length = text.len();
    let name = c"kern.bootsessionuuid".as_ptr();
    // SAFETY: sysctlbyname(3) writes at most length bytes into text; name ends in NUL; nothing is set.
    let result = unsafe {
        libc::sysctlbyname(name, text.as_mut_ptr().cast(), &raw mut length, ptr::null_mut(), 0)
    };
    if result != 0 {
        return match last_errno() {
            Errno::EPERM | Errno::EACCES | Errno::ENOENT => Ok(None),
            errno => Err(Error::System { syscall: "sysctlbyname", errno, pid: None }),
        };
    }
    let text = CStr::from_bytes_until_nul(&text).ok().and_then(|text| text.to_str().ok());
    let text = text.filter(|text| !text.is_empty());
    let what = "kern.bootsessionuuid";
    text.map(|text| Some(text.into())).ok_or(Error::Malformed { what, pid: None })
}

/// Node unloads an addon with the last Worker that loaded it; a helper that was left behind must not
/// find its code gone. Darwin's linker has no flag for it, dlopen(3) has. It fails where the file was
/// replaced meanwhile; no census must fail for that.
fn pin_image() {
    let mut info = MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: the address is this image's own; info is large enough and outlives the call.
    if unsafe { libc::dladdr((&raw const GATE).cast(), info.as_mut_ptr()) } == 0 {
        return;
    }
    // SAFETY: dladdr(3) succeeded, so it filled the struct.
    let path = unsafe { info.assume_init() }.dli_fname;
    // SAFETY: dladdr's path ends in NUL and lives as long as the image; NOLOAD runs no code.
    let _kept = unsafe { libc::dlopen(path, libc::RTLD_NOLOAD | libc::RTLD_NODELETE) };
}

/// The running kernel.
#[derive(Clone, Copy, Debug)]
pub struct Xnu;

impl Kernel for Xnu {
    fn own_pid(&self) -> u32 {
        std::process::id()
    }

    fn effective_uid(&self) -> u32 {
        // SAFETY: geteuid(2) takes nothing and cannot fail.
        unsafe { libc::geteuid() }
    }

    fn estimate_processes(&self) -> Result<usize, Errno> {
        clear_errno();
        // SAFETY: proc_listallpids takes a null buffer of no size as the question how many there are.
        positive(unsafe { libc::proc_listallpids(ptr::null_mut(), 0) })
    }

    fn list_pids(&self, pids: &mut [i32]) -> Result<usize, Errno> {
        let bytes = c_int::try_from(size_of_val(pids)).map_err(|_| Errno::ENOMEM)?;
        clear_errno();
        // SAFETY: the kernel writes at most that many bytes into pids, which outlives the call.
        positive(unsafe { libc::proc_listallpids(pids.as_mut_ptr().cast(), bytes) })
    }

    fn process_info(
        &self,
        pid: u32,
        flavor: Flavor,
        exiting_too: bool,
        buffer: &mut [u8],
    ) -> Result<usize, Errno> {
        let pid = c_int::try_from(pid).map_err(|_| Errno::ESRCH)?;
        let size = c_int::try_from(buffer.len()).map_err(|_| Errno::ENOMEM)?;
        let (flavor, argument) = (flavor.number(), u64::from(exiting_too));
        clear_errno();
        // SAFETY: the kernel writes at most size bytes into buffer, which outlives the call.
        positive(unsafe {
            libc::proc_pidinfo(pid, flavor, argument, buffer.as_mut_ptr().cast(), size)
        })
    }

    fn kernel_record(&self, pid: u32) -> Result<RecordAnswer, Errno> {
        let pid = c_int::try_from(pid).map_err(|_| Errno::ESRCH)?;
        let mut record = MaybeUninit::<ShimRecord>::uninit();
        // SAFETY: the shim fills the whole struct, which is as large as its own (asserted below).
        let status = unsafe { proc_safe_read_kernel_record(pid, record.as_mut_ptr()) };
        // SAFETY: the shim has filled it, and every bit pattern is a value of it.
        let record = unsafe { record.assume_init() };
        match status {
            PRESENT => Ok(record.decode().map_or(RecordAnswer::Malformed, RecordAnswer::Present)),
            ABSENT => Ok(RecordAnswer::Absent),
            FAILED => Err(Errno(record.errno_value)),
            _ => Ok(RecordAnswer::Malformed),
        }
    }

    fn arguments(&self, pid: u32, buffer: &mut [u8]) -> Result<usize, Errno> {
        let pid = c_int::try_from(pid).map_err(|_| Errno::ESRCH)?;
        let mut name = [libc::CTL_KERN, KERN_PROCARGS2, pid];
        let mut length = buffer.len();
        let (name, into) = (name.as_mut_ptr(), buffer.as_mut_ptr().cast());
        // SAFETY: sysctl(3) reads three numbers and writes at most length bytes into buffer, which outlives
        // the call; nothing is set.
        let result = unsafe { libc::sysctl(name, 3, into, &raw mut length, ptr::null_mut(), 0) };
        if result == 0 { Ok(length) } else { Err(last_errno()) }
    }

    fn program_path(&self, pid: u32, buffer: &mut [u8]) -> Result<usize, Errno> {
        let pid = c_int::try_from(pid).map_err(|_| Errno::ESRCH)?;
        let size = u32::try_from(buffer.len()).map_err(|_| Errno::ENOMEM)?;
        clear_errno();
        // SAFETY: the kernel writes at most size bytes into buffer, which outlives the call.
        positive(unsafe { libc::proc_pidpath(pid, buffer.as_mut_ptr().cast(), size) })
    }

    fn file_at(&self, path: &[u8]) -> Result<File, Errno> {
        let path = CString::new(path).map_err(|_| Errno::ENOENT)?;
        let mut status = MaybeUninit::<libc::stat>::uninit();
        // SAFETY: stat(2) reads a path that ends in NUL and fills the struct, which outlives the call.
        if unsafe { libc::stat(path.as_ptr(), status.as_mut_ptr()) } != 0 {
            return Err(last_errno());
        }
        // SAFETY: stat(2) succeeded, so it filled the struct.
        let status = unsafe { status.assume_init() };
        Ok(File { number: status.st_ino, birth: (status.st_birthtime, status.st_birthtime_nsec) })
    }
}

/// `KERN_PROCARGS2` of sys/sysctl.h.
const KERN_PROCARGS2: c_int = 49;

const PRESENT: i32 = 0;
const ABSENT: i32 = 1;
const FAILED: i32 = 3;

/// `struct proc_safe_record` of shim/kernel_record.h, where its fields are explained.
#[repr(C)]
struct ShimRecord {
    start_seconds: i64,
    start_micros: i32,
    errno_value: i32,
    pid: i32,
    parent_pid: i32,
    original_parent_pid: i32,
    process_group: i32,
    uid: u32,
    status: u8,
    exiting: u8,
    name: [c_char; 17],
    reserved: u8,
}

const _: () = assert!(size_of::<ShimRecord>() == 56, "the shim has another layout");

// SAFETY: the declaration is that of shim/kernel_record.h, which this build compiled.
unsafe extern "C" {
    fn proc_safe_read_kernel_record(pid: i32, record: *mut ShimRecord) -> i32;
}

impl ShimRecord {
    /// `None` for a number that no process can have.
    fn decode(&self) -> Option<Record> {
        Some(Record {
            parent_pid: u32::try_from(self.parent_pid).ok()?,
            original_parent_pid: u32::try_from(self.original_parent_pid).ok()?,
            process_group: u32::try_from(self.process_group).unwrap_or(0), // no group
            uid: self.uid,
            status: self.status.into(),
            exiting: self.exiting != 0,
            name: name_of(&self.name.map(i8::cast_unsigned)),
            start_micros: micros_since_epoch(self.start_seconds, self.start_micros.into())?,
        })
    }
}

/// libproc's wrappers return 0 for an error, never −1, and leave errno alone where there is none.
fn positive(result: c_int) -> Result<usize, Errno> {
    match usize::try_from(result) {
        Ok(0) | Err(_) if last_errno() != Errno(0) => Err(last_errno()),
        Ok(count) => Ok(count),
        Err(_) => Err(Errno(libc::EIO)),
    }
}

fn clear_errno() {
    // SAFETY: __error(3) returns the address of the calling thread's errno.
    let errno = unsafe { libc::__error() };
    // SAFETY: the address is valid for as long as the thread lives, which is ours.
    unsafe { *errno = 0 };
}

fn last_errno() -> Errno {
    Errno(std::io::Error::last_os_error().raw_os_error().unwrap_or(0))
}
