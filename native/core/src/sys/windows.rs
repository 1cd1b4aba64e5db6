//! The Windows system calls behind [`Kernel`]. Mechanism only: no policy, no layouts but those of the
//! calls that are made here.

use crate::error::{Error, FailedRead, WindowsCode};
use crate::facts::Origin;
use crate::windows::list::Room;
use crate::windows::{Access, Basic, Kernel, Text, Times, Windows};
use std::mem::size_of_val;
use std::ptr;
use std::sync::Once;
use windows_sys::Wdk::System::SystemInformation::{
    NtQuerySystemInformation, SystemProcessInformation,
};
use windows_sys::Wdk::System::Threading::{
    NtQueryInformationProcess, PROCESSINFOCLASS, ProcessBasicInformation,
    ProcessCommandLineInformation, ProcessImageFileName, ProcessImageFileNameWin32,
    ProcessWow64Information,
};
use windows_sys::Win32::Foundation::{
    CloseHandle, FILETIME, GetLastError, HANDLE, WAIT_OBJECT_0, WAIT_TIMEOUT,
};
use windows_sys::Win32::Security::{GetTokenInformation, TOKEN_QUERY, TokenUser};
use windows_sys::Win32::System::Diagnostics::Debug::ReadProcessMemory;
use windows_sys::Win32::System::LibraryLoader::{
    GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS, GET_MODULE_HANDLE_EX_FLAG_PIN, GetModuleHandleExW,
};
use windows_sys::Win32::System::Threading::{
    GetCurrentProcess, GetCurrentProcessId, GetProcessTimes, OpenProcess, OpenProcessToken,
    PROCESS_QUERY_LIMITED_INFORMATION, PROCESS_SYNCHRONIZE, PROCESS_VM_READ, WaitForSingleObject,
};

pub const HAS_BACKEND: bool = true;

static ROOM: Room = Room::new();
/// Windows names no boot and has no pid namespaces.
static ORIGIN: Origin = Origin {
    start_time_resolution_micros: 1,
    boot_id: None,
    pid_namespace: None,
    time_namespace: None,
};

/// What one call asks.
pub type CallHost = Windows<Nt>;

/// The host as one call sees it, and what all its identities share.
#[allow(clippy::unnecessary_wraps)] // other platforms can lack a ground
pub fn host() -> Result<(Windows<Nt>, &'static Origin), Error> {
    static PIN: Once = Once::new();
    PIN.call_once(pin_image);
    Ok((Windows::new(Nt, &ROOM), &ORIGIN))
}

/// Node unloads an addon with the last Worker that loaded it, and thread-local destructors of other
/// threads would find their code gone. No census must fail where this fails.
fn pin_image() {
    let mut image = ptr::null_mut();
    let flags = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN;
    // SAFETY: with FROM_ADDRESS the name is any address inside the image, which a static is; image outlives the call.
    let _pinned = unsafe { GetModuleHandleExW(flags, (&raw const ROOM).cast(), &raw mut image) };
}

/// The running kernel.
#[derive(Clone, Copy, Debug)]
pub struct Nt;

/// An open handle, owned.
#[derive(Debug)]
pub struct Handle(HANDLE);

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the handle was returned open, is not copied out of here and is closed once.
        let _closed = unsafe { CloseHandle(self.0) };
    }
}

/// `PROCESS_BASIC_INFORMATION` of 64-bit Windows: a status, two pointers, a priority, two pids.
type BasicInformation = [u64; 6];

impl Kernel for Nt {
    type Process = Handle;
    type Token = Handle;

    fn own_pid(&self) -> u32 {
        // SAFETY: takes nothing and cannot fail.
        unsafe { GetCurrentProcessId() }
    }

    fn query_processes(&self, buffer: &mut [u8]) -> Result<usize, (WindowsCode, usize)> {
        let size = u32::try_from(buffer.len()).unwrap_or(u32::MAX);
        let mut length = 0_u32;
        let into = buffer.as_mut_ptr().cast();
        // SAFETY: the kernel writes at most size bytes, which the buffer has, and one length.
        let status = unsafe {
            NtQuerySystemInformation(SystemProcessInformation, into, size, &raw mut length)
        };
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if status == 0 { Ok(length) } else { Err((status_of(status), length)) }
    }

    fn open(&self, pid: u32, access: Access) -> Result<Handle, FailedRead> {
        let rights = match access {
            Access::Query => PROCESS_QUERY_LIMITED_INFORMATION,
            Access::QueryAndWait => PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_SYNCHRONIZE,
            Access::QueryAndRead => PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_VM_READ,
        };
        // SAFETY: takes numbers only; the handle is not to be inherited.
        let handle = unsafe { OpenProcess(rights, 0, pid) };
        if handle.is_null() { Err(last_error("OpenProcess")) } else { Ok(Handle(handle)) }
    }

    fn times(&self, process: &Handle) -> Result<Times, FailedRead> {
        let zero = FILETIME { dwLowDateTime: 0, dwHighDateTime: 0 };
        let [mut created, mut exited, mut kernel, mut user] = [zero; 4];
        let (created_at, exited_at) = (&raw mut created, &raw mut exited);
        let (kernel_at, user_at) = (&raw mut kernel, &raw mut user);
        // SAFETY: the handle is open, and the four times outlive the call.
        let done = unsafe { GetProcessTimes(process.0, created_at, exited_at, kernel_at, user_at) };
        if done == 0 {
            return Err(last_error("GetProcessTimes"));
        }
        Ok(Times { created: number_of(created), exited: number_of(exited) })
    }

    fn basic(&self, process: &Handle) -> Result<Basic, FailedRead> {
        let mut answer: BasicInformation = [0; 6];
        query(process, ProcessBasicInformation, &mut answer)?;
        let [_, peb, _, _, pid, parent_pid] = answer;
        Ok(Basic { peb, pid, parent_pid })
    }

    fn text(&self, process: &Handle, text: Text, answer: &mut [u8]) -> Result<usize, FailedRead> {
        let class = match text {
            Text::CommandLine => ProcessCommandLineInformation,
            Text::Win32Path => ProcessImageFileNameWin32,
            Text::NativePath => ProcessImageFileName,
        };
        query(process, class, answer)
    }

    fn peb32(&self, process: &Handle) -> Result<u64, FailedRead> {
        let mut answer = [0_u64];
        query(process, ProcessWow64Information, &mut answer)?;
        let [peb] = answer;
        Ok(peb)
    }

    fn read_memory(
        &self,
        process: &Handle,
        address: u64,
        into: &mut [u8],
    ) -> Result<(), FailedRead> {
        // An address of another process: never one of ours.
        let from = ptr::without_provenance(usize::try_from(address).unwrap_or(0));
        let (to, length) = (into.as_mut_ptr().cast(), into.len());
        // SAFETY: the process is open; the kernel writes at most length bytes, which the buffer has. It fails unless it can write all.
        let done = unsafe { ReadProcessMemory(process.0, from, to, length, ptr::null_mut()) };
        if done == 0 { Err(last_error("ReadProcessMemory")) } else { Ok(()) }
    }

    fn has_ended(&self, process: &Handle) -> Result<bool, FailedRead> {
        // SAFETY: the handle is open and was asked for with the right to wait; 0 waits for nothing.
        match unsafe { WaitForSingleObject(process.0, 0) } {
            WAIT_OBJECT_0 => Ok(true),
            WAIT_TIMEOUT => Ok(false),
            _ => Err(last_error("WaitForSingleObject")),
        }
    }

    fn open_token(&self, process: Option<&Handle>) -> Result<Handle, FailedRead> {
        let process = match process {
            Some(process) => process.0,
            // SAFETY: takes nothing and returns a constant, which is not closed.
            None => unsafe { GetCurrentProcess() },
        };
        let mut token = ptr::null_mut();
        // SAFETY: the process is open, and token outlives the call.
        if unsafe { OpenProcessToken(process, TOKEN_QUERY, &raw mut token) } == 0 {
            return Err(last_error("OpenProcessToken"));
        }
        Ok(Handle(token))
    }

    fn token_user(&self, token: &Handle, answer: &mut [u8]) -> Result<usize, FailedRead> {
        let size = u32::try_from(answer.len()).unwrap_or(u32::MAX);
        let mut length = 0_u32;
        let into = answer.as_mut_ptr().cast();
        // SAFETY: the token is open; the call writes at most size bytes, which the answer has, and one length.
        let done = unsafe { GetTokenInformation(token.0, TokenUser, into, size, &raw mut length) };
        if done == 0 {
            return Err(last_error("GetTokenInformation"));
        }
        Ok(usize::try_from(length).unwrap_or(usize::MAX))
    }
}

/// What the kernel may write any bits to.
trait Plain {}
impl Plain for u8 {}
impl Plain for u64 {}

/// The length of the answer.
fn query<T: Plain>(
    process: &Handle,
    class: PROCESSINFOCLASS,
    answer: &mut [T],
) -> Result<usize, FailedRead> {
    let size = u32::try_from(size_of_val(answer)).unwrap_or(0);
    let mut length = 0_u32;
    let into = answer.as_mut_ptr().cast();
    // SAFETY: the handle is open; the kernel writes at most size bytes, which the answer has, and one length.
    let status =
        unsafe { NtQueryInformationProcess(process.0, class, into, size, &raw mut length) };
    if status != 0 {
        let syscall = "NtQueryInformationProcess";
        return Err(FailedRead { syscall, code: status_of(status) });
    }
    Ok(usize::try_from(length).unwrap_or(usize::MAX))
}

fn number_of(time: FILETIME) -> i64 {
    i64::from(time.dwHighDateTime.cast_signed()) << 32 | i64::from(time.dwLowDateTime)
}

const fn status_of(status: i32) -> WindowsCode {
    WindowsCode::NtStatus(status.cast_unsigned())
}

/// Right behind the call that failed: the next one overwrites it.
fn last_error(syscall: &'static str) -> FailedRead {
    // SAFETY: takes nothing and cannot fail.
    FailedRead { syscall, code: WindowsCode::Win32(unsafe { GetLastError() }) }
}
