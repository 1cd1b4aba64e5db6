//! The real kernel reads behind the platforms' traits: the only unsafe Rust of the core, and the
//! only place that asks for which operating system it was compiled.
#![allow(unsafe_code)] // each block states its reason

#[cfg(target_os = "macos")]
mod darwin;
#[cfg(target_os = "macos")]
use darwin as platform;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
use linux as platform;

#[cfg(all(target_os = "windows", target_pointer_width = "64"))]
mod windows;
#[cfg(all(target_os = "windows", target_pointer_width = "64"))]
use windows as platform;

#[cfg(not(any(
    target_os = "linux",
    target_os = "macos",
    all(target_os = "windows", target_pointer_width = "64")
)))]
mod unsupported;
#[cfg(not(any(
    target_os = "linux",
    target_os = "macos",
    all(target_os = "windows", target_pointer_width = "64")
)))]
use unsupported as platform;

use crate::census::{self, Deadline, Host as _, Selection};
use crate::error::Error;
use crate::facts::{Identity, Origin, Snapshot};

/// Whether this operating system has a backend.
pub const HAS_BACKEND: bool = platform::HAS_BACKEND;

/// Takes a census of the real host.
///
/// # Errors
/// Whatever makes it less than whole.
pub fn take_census(
    selection: Selection,
    deadline: Deadline,
) -> Result<(Vec<Snapshot>, &'static Origin), Error> {
    let (host, origin) = platform::host()?;
    Ok((census::take(&host, selection, deadline)?, origin))
}

/// Reads one identity on the real host; `None` only if the process was proved absent.
///
/// # Errors
/// A refusal, or a read that says nothing about the process.
pub fn read_identity(pid: u32) -> Result<Option<(Identity, &'static Origin)>, Error> {
    let (host, origin) = platform::host()?;
    Ok(host.read_identity(pid)?.map(|identity| (identity, origin)))
}

/// What the identities of this process's host share.
///
/// # Errors
/// A ground that cannot be believed, or no backend.
pub fn read_origin() -> Result<&'static Origin, Error> {
    platform::host().map(|(_, origin)| origin)
}
