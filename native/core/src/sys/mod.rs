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
use crate::command::{self, Keys, MOST_HELPERS, MOST_IN_CENSUS, WithCommands};
use crate::error::Error;
use crate::facts::{Command, Identity, Origin, Snapshot};
use crate::helpers::Gate;

/// Whether this operating system has a backend.
pub const HAS_BACKEND: bool = platform::HAS_BACKEND;

/// Helpers that read commands are the process's, whichever Worker made the call.
static COMMANDS: Gate = Gate::new(MOST_HELPERS);

/// Takes a census of the real host; with `keys`, rows have their commands and these variables.
///
/// # Errors
/// Whatever makes it less than whole.
pub fn take_census(
    selection: Selection,
    keys: Option<Keys>,
    deadline: Deadline,
) -> Result<(Vec<Snapshot>, &'static Origin), Error> {
    let (host, origin) = platform::host()?;
    let rows = match keys {
        None => census::take(&host, selection, deadline)?,
        Some(keys) => {
            let host = WithCommands::new(&host, &COMMANDS, keys, MOST_IN_CENSUS, open_host);
            census::take(&host, selection, deadline)?
        }
    };
    Ok((rows, origin))
}

/// Reads one command on the real host; `None` if the process was proved absent or has no memory image.
///
/// # Errors
/// A refusal, a deadline that passed, or a read that failed.
pub fn read_command(pid: u32, keys: Keys, deadline: Deadline) -> Result<Option<Command>, Error> {
    platform::host()?; // the ground is checked where nobody waits for a helper
    command::read(&COMMANDS, pid, keys, deadline, open_host)
}

fn open_host() -> Result<platform::CallHost, Error> {
    platform::host().map(|(host, _)| host)
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
