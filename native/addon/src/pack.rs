//! Rows as columns: creating an object for each row through Node-API costs ten times as much as
//! creating it in JavaScript. `src/decode.ts` is the other half and must change together with this.

use napi::Env;
use napi::bindgen_prelude::{Float64ArraySlice, Uint32ArraySlice};
use napi_derive::napi;
use proc_safe_core::error::Error;
use proc_safe_core::facts::{Origin, Owner, Snapshot, State};

// `bits` of a row. Owner and state are numbers, the others say that a fact is there.
const OWNER_SAME: u32 = 1;
const OWNER_DIFFERENT: u32 = 2;
const STATE_RUNNING: u32 = 1 << 2;
const STATE_STOPPED: u32 = 2 << 2;
const STATE_ZOMBIE: u32 = 3 << 2;
const EXITING: u32 = 1 << 4;
const PARENT: u32 = 1 << 5;
const GROUP: u32 = 1 << 6;
const SESSION: u32 = 1 << 7;
const UID: u32 = 1 << 8;
const NAME: u32 = 1 << 9;
const IDENTITY: u32 = 1 << 10;
const EXITED: u32 = 1 << 11;
const SINCE_BOOT: u32 = 1 << 12;
const UNIQUE_ID: u32 = 1 << 13;

/// A census, or why there is none.
#[napi(object, object_from_js = false)]
pub struct Census<'env> {
    /// Why there is no census.
    pub failure: Option<Failure>,
    /// Nine a row: pid, bits, parent pid, process group, session, uid, end of the name in `names`,
    /// upper and lower half of the unique id.
    pub numbers: Option<Uint32ArraySlice<'env>>,
    /// Two a row: start in microseconds since the epoch, and since boot.
    pub times: Option<Float64ArraySlice<'env>>,
    /// All names, one behind the other.
    pub names: Option<String>,
    /// Microseconds.
    pub start_time_resolution: Option<u32>,
    /// The boot.
    pub boot_id: Option<String>,
    /// The caller's pid namespace.
    pub pid_namespace: Option<String>,
    /// The caller's time namespace.
    pub time_namespace: Option<String>,
}

impl<'env> Census<'env> {
    /// The answer of a call that succeeded.
    pub fn pack(env: &'env Env, rows: &[Snapshot], origin: &Origin) -> napi::Result<Self> {
        let columns = Columns::of(rows);
        let text = |text: &Option<String>| text.clone();
        Ok(Self {
            failure: None,
            numbers: Some(Uint32ArraySlice::copy_from(env, columns.numbers)?),
            times: Some(Float64ArraySlice::copy_from(env, columns.times)?),
            names: Some(columns.names),
            start_time_resolution: Some(origin.start_time_resolution_micros),
            boot_id: text(&origin.boot_id),
            pid_namespace: text(&origin.pid_namespace),
            time_namespace: text(&origin.time_namespace),
        })
    }

    /// The answer of a call that failed.
    pub fn failed(error: &Error) -> Self {
        Self {
            failure: Some(Failure::from(error)),
            numbers: None,
            times: None,
            names: None,
            start_time_resolution: None,
            boot_id: None,
            pid_namespace: None,
            time_namespace: None,
        }
    }
}

#[derive(Default)]
struct Columns {
    numbers: Vec<u32>,
    times: Vec<f64>,
    names: String,
    /// The length of `names` as JavaScript counts it.
    names_length: u32,
}

impl Columns {
    fn of(rows: &[Snapshot]) -> Self {
        let mut columns = Self {
            numbers: Vec::with_capacity(rows.len().saturating_mul(9)),
            times: Vec::with_capacity(rows.len().saturating_mul(2)),
            ..Self::default()
        };
        for row in rows {
            columns.add(row);
        }
        columns
    }

    fn add(&mut self, row: &Snapshot) {
        if let Some(name) = &row.name {
            self.add_name(name);
        }
        let unique_id = row.identity.and_then(|identity| identity.unique_id);
        let (upper, lower) = halves(unique_id.unwrap_or(0));
        self.numbers.extend([
            row.pid,
            bits(row),
            row.parent_pid.unwrap_or(0),
            row.process_group_id.unwrap_or(0),
            row.session_id.unwrap_or(0),
            row.uid.unwrap_or(0),
            self.names_length,
            upper,
            lower,
        ]);
        let start = row.identity.map_or(0, |identity| identity.start_time_micros);
        let since_boot = row.identity.and_then(|identity| identity.start_time_since_boot_micros);
        self.times.extend([number(start), number(since_boot.unwrap_or(0))]);
    }

    /// Bytes that are not UTF-8 become U+FFFD as the Encoding Standard says.
    fn add_name(&mut self, name: &[u8]) {
        let text = String::from_utf8_lossy(name);
        let length = text.chars().map(char::len_utf16).sum::<usize>();
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        self.names_length = self.names_length.saturating_add(length);
        self.names.push_str(&text);
    }
}

fn bits(row: &Snapshot) -> u32 {
    let owner = match row.owner {
        Owner::Unknown => 0,
        Owner::Same => OWNER_SAME,
        Owner::Different => OWNER_DIFFERENT,
    };
    let state = match row.state {
        None => 0,
        Some(State::Running) => STATE_RUNNING,
        Some(State::Stopped) => STATE_STOPPED,
        Some(State::Zombie) => STATE_ZOMBIE,
    };
    let identity = row.identity.as_ref();
    [
        (row.exiting, EXITING),
        (row.parent_pid.is_some(), PARENT),
        (row.process_group_id.is_some(), GROUP),
        (row.session_id.is_some(), SESSION),
        (row.uid.is_some(), UID),
        (row.name.is_some(), NAME),
        (identity.is_some(), IDENTITY),
        (identity.is_some_and(|identity| identity.exited), EXITED),
        (identity.is_some_and(|id| id.start_time_since_boot_micros.is_some()), SINCE_BOOT),
        (identity.is_some_and(|identity| identity.unique_id.is_some()), UNIQUE_ID),
    ]
    .into_iter()
    .filter_map(|(holds, bit)| holds.then_some(bit))
    .fold(owner | state, |bits, bit| bits | bit)
}

fn halves(number: u64) -> (u32, u32) {
    let [a, b, c, d, e, f, g, h] = number.to_be_bytes();
    (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]))
}

/// Exact for 285 years around zero, in microseconds.
#[allow(clippy::as_conversions, clippy::cast_precision_loss)] // there is no other conversion
const fn number(micros: i64) -> f64 {
    micros as f64
}

/// A failed call.
#[napi(object, object_from_js = false)]
pub struct Failure {
    /// The public code.
    pub code: &'static str,
    /// What went wrong, for a person.
    pub message: String,
    /// The process that was asked for.
    pub pid: Option<u32>,
    /// The system call that failed.
    pub syscall: Option<&'static str>,
    /// Its raw errno.
    pub errno: Option<i32>,
    /// The public reason.
    pub reason: Option<&'static str>,
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        Self {
            code: error.code().as_str(),
            message: error.to_string(),
            pid: error.pid(),
            syscall: error.system().map(|(syscall, _)| syscall),
            errno: error.system().map(|(_, errno)| errno.0),
            reason: error.reason().map(|reason| reason.as_str()),
        }
    }
}
