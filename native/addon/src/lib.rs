//! The Node-API face of the core: exports, argument and row packing, the panic guard. No policy.
//!
//! What crosses is numbers, strings and typed arrays. A failed call returns an object instead of
//! throwing, so that the error class stays in TypeScript.

mod pack;

use napi::Env;
use napi::bindgen_prelude::{Either, Uint32Array};
use napi_derive::napi;
use pack::{Failure, Outcome};
use proc_safe_core::census::{Deadline, Selection, Visibility};
use proc_safe_core::error::Error;
use proc_safe_core::facts::{Origin, Snapshot};
use proc_safe_core::guard::guarded;
use proc_safe_core::sys;
use std::time::Duration;

/// The shape of what crosses; the TypeScript side accepts exactly one.
const CONTRACT: u32 = 1;

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

/// Takes a census of the pids, or of all processes. Arguments are checked by the caller.
#[napi(catch_unwind)]
pub fn take_census<'env>(
    env: &'env Env,
    pids: Option<Uint32Array>,
    timeout_ms: Option<f64>,
    visible_only: bool,
) -> napi::Result<Outcome<'env>> {
    let outcome = guarded(|| {
        let selection = match pids {
            Some(pids) => Selection::Pids(pids.to_vec()),
            None if visible_only => Selection::All(Visibility::Visible),
            None => Selection::All(Visibility::All),
        };
        sys::take_census(selection, Deadline::after(timeout_ms.and_then(duration)))
    });
    answer(env, outcome)
}

/// Reads one identity: a census of one row, or of none if the process was proved absent.
#[napi(catch_unwind)]
pub fn read_identity<'env>(env: &'env Env, pid: u32) -> napi::Result<Outcome<'env>> {
    let outcome = guarded(|| {
        let Some((identity, origin)) = sys::read_identity(pid)? else {
            return Ok(Default::default());
        };
        let parent_pid = Some(identity.parent_pid);
        let row = Snapshot { parent_pid, identity: Some(identity), ..Snapshot::bare(pid) };
        Ok((vec![row], origin))
    });
    answer(env, outcome)
}

fn answer<'env>(
    env: &'env Env,
    outcome: Result<(Vec<Snapshot>, Origin), Error>,
) -> napi::Result<Outcome<'env>> {
    match outcome {
        Ok((rows, origin)) => pack::pack(env, &rows, &origin),
        Err(error) => Ok(Either::B(Failure::from(&error))),
    }
}

/// `None` is no deadline: more milliseconds than a clock can count never pass.
fn duration(milliseconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(milliseconds / 1000.0).ok()
}

/// Panics, so that a test can see what becomes of it.
#[cfg(feature = "test-faults")]
#[napi(catch_unwind)]
pub fn panic_now(env: &Env) -> napi::Result<Outcome<'_>> {
    #[allow(clippy::panic)] // the purpose of this function
    let outcome = guarded(|| panic!("a panic that a test asked for"));
    answer(env, outcome)
}
