//! The Node-API face of the core: exports, argument and row packing, the panic guard. No policy.
//!
//! What crosses is numbers, strings and typed arrays. A failed call returns an object instead of
//! throwing, so that the error class stays in TypeScript.

mod pack;

use napi::Env;
use napi::bindgen_prelude::{Either, Float64ArraySlice, Uint32Array};
use napi_derive::napi;
use pack::{Census, Commands, Failure};
use proc_safe_core::census::{Deadline, Selection, Visibility};
use proc_safe_core::error::Error;
use proc_safe_core::guard::guarded;
use proc_safe_core::sys;
use std::time::Duration;

/// The shape of what crosses; the TypeScript side accepts exactly one.
const CONTRACT: u32 = 4;

/// What was loaded.
#[napi(object, object_from_js = false)]
pub struct Binding {
    /// The package version that the binding was built from.
    pub version: &'static str,
    /// The shape of what crosses.
    pub contract: u32,
    /// Whether this operating system has a backend.
    pub supported: bool,
}

/// Describes the binding.
#[napi]
pub fn describe_binding() -> Binding {
    Binding { version: env!("CARGO_PKG_VERSION"), contract: CONTRACT, supported: sys::HAS_BACKEND }
}

/// Takes a census of the pids, or of all processes; with `keys`, names of variables with a NUL
/// behind each, rows have their commands. Arguments are checked by the caller.
#[napi(catch_unwind)]
pub fn take_census<'env>(
    env: &'env Env,
    pids: Option<Uint32Array>,
    timeout_ms: Option<f64>,
    visible_only: bool,
    keys: Option<String>,
) -> napi::Result<Either<Census<'env>, Failure>> {
    let outcome = guarded(|| {
        let selection = match pids {
            Some(pids) => Selection::Pids(pids.to_vec()),
            None if visible_only => Selection::All(Visibility::Visible),
            None => Selection::All(Visibility::All),
        };
        sys::take_census(
            selection,
            keys.as_deref().map(split_keys),
            Deadline::after(timeout_ms.and_then(duration)),
        )
    });
    Ok(match outcome {
        Ok((rows, origin)) => Either::A(pack::pack(env, &rows, origin)?),
        Err(error) => Either::B(Failure::from(&error)),
    })
}

/// Reads one command; null if there is no such process or it has no memory image left.
#[napi(catch_unwind)]
pub fn read_command<'env>(
    env: &'env Env,
    pid: u32,
    timeout_ms: f64,
    keys: String,
) -> napi::Result<Either<Option<Commands<'env>>, Failure>> {
    let deadline = Deadline::after(duration(timeout_ms));
    Ok(match guarded(|| sys::read_command(pid, split_keys(&keys), deadline)) {
        Ok(None) => Either::A(None),
        Ok(Some(command)) => Either::A(Some(pack::pack_commands(env, [(0, &command)])?)),
        Err(error) => Either::B(Failure::from(&error)),
    })
}

/// The names that [`take_census`] and [`read_command`] were given, each with a NUL behind it.
fn split_keys(keys: &str) -> Vec<Vec<u8>> {
    keys.split_terminator('\0').map(|key| key.as_bytes().to_vec()).collect()
}

/// Reads one identity into the columns of a row; null if the process was proved absent. The text is empty
/// if it is of the origin that the row was of before.
#[napi(catch_unwind)]
pub fn read_identity(pid: u32, mut row: Float64ArraySlice<'_>) -> Either<Option<String>, Failure> {
    #[allow(unsafe_code)] // the only way to an array that JavaScript made
    // SAFETY: src/native.ts makes this array for itself, not shared, and its thread waits here.
    let into = unsafe { row.as_mut() };
    let outcome = guarded(|| {
        let identity = sys::read_identity(pid)?;
        Ok(identity.map(|(identity, origin)| pack::describe(&identity, origin, into)))
    });
    either(outcome)
}

/// Reads what all identities share.
#[napi(catch_unwind)]
pub fn read_origin() -> Either<String, Failure> {
    either(guarded(|| sys::read_origin().map(pack::join)))
}

fn either<T>(outcome: Result<T, Error>) -> Either<T, Failure> {
    match outcome {
        Ok(value) => Either::A(value),
        Err(error) => Either::B(Failure::from(&error)),
    }
}

/// `None` is no deadline: more milliseconds than a clock can count never pass.
fn duration(milliseconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(milliseconds / 1000.0).ok()
}

/// Panics, so that a test can see what becomes of it.
#[cfg(feature = "test-faults")]
#[napi(catch_unwind)]
pub fn panic_now() -> Either<Option<String>, Failure> {
    #[allow(clippy::panic)] // the purpose of this function
    let outcome = guarded(|| panic!("a panic that a test asked for"));
    either(outcome)
}
