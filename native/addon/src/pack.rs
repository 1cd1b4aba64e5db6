//! Rows as columns: creating an object for each row through Node-API costs ten times as much as
//! creating it in JavaScript. `src/decode.ts` is the other half and must change together with this.

use napi::Env;
use napi::bindgen_prelude::{Float64ArraySlice, Uint32ArraySlice};
use napi_derive::napi;
use proc_safe_core::error::Error;
use proc_safe_core::facts::{Command, Identity, Origin, Owner, Snapshot, State};

/// An array, which costs less than an object: the rows as [`COLUMNS`] numbers each, all names one
/// behind the other, what all identities share, and the commands where they were asked for.
#[napi(array, object_from_js = false)]
pub struct Census<'env>(
    pub Float64ArraySlice<'env>,
    pub String,
    pub String,
    pub Option<Commands<'env>>,
);

/// Commands: for each the number of its row, which of [`EXECUTABLE`], [`LINE`] and [`WORKING_DIRECTORY`]
/// are there, how many arguments, how many variables, the length of each of the three that is there, the
/// length of each argument, and of each variable the number of its key and the length of its value; and
/// all these texts one behind the other.
#[napi(array, object_from_js = false)]
pub struct Commands<'env>(pub Uint32ArraySlice<'env>, pub String);

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
    /// Its raw errno, where systems have errnos.
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
            syscall: error.syscall(),
            errno: error.system().map(|(_, errno)| errno.0),
            reason: error.reason().map(|reason| reason.as_str()),
        }
    }
}

/// Writes the row of one identity into an array of the caller's, which costs less than to make one; in the
/// place of the name, which it has not, it says which origin it is of. Returns what [`join`] says, or
/// nothing if the row before was of the same origin.
pub fn describe(identity: &Identity, origin: &'static Origin, into: &mut [f64]) -> String {
    let parent_pid = Some(identity.parent_pid);
    let bare = Snapshot::bare(identity.pid);
    let mut row = columns_of(&Snapshot { parent_pid, identity: Some(*identity), ..bare }, 0);
    let place = i64::try_from(std::ptr::from_ref(origin).addr()).map_or(f64::NAN, number);
    if let Some(name) = row.get_mut(NAME_END) {
        *name = place;
    }
    let known = into.get(NAME_END) == Some(&place);
    for (place, number) in into.iter_mut().zip(row) {
        *place = number;
    }
    if known { String::new() } else { join(origin) }
}

/// The answer of a census that succeeded.
pub fn pack<'env>(
    env: &'env Env,
    rows: &[Snapshot],
    origin: &Origin,
) -> napi::Result<Census<'env>> {
    let columns = Columns::of(rows);
    let numbers = Float64ArraySlice::copy_from(env, columns.numbers)?;
    let mut commands = rows
        .iter()
        .enumerate()
        .filter_map(|(index, row)| Some((u32::try_from(index).ok()?, row.command.as_deref()?)))
        .peekable();
    let commands = match commands.peek() {
        None => None,
        Some(_) => Some(pack_commands(env, commands)?),
    };
    Ok(Census(numbers, columns.names.text, join(origin), commands))
}

/// Commands, each with the number of its row.
pub fn pack_commands<'a, 'env>(
    env: &'env Env,
    commands: impl IntoIterator<Item = (u32, &'a Command)>,
) -> napi::Result<Commands<'env>> {
    let mut packed = PackedCommands::default();
    for (row, command) in commands {
        packed.add(row, command);
    }
    Ok(Commands(Uint32ArraySlice::copy_from(env, packed.numbers)?, packed.texts.text))
}

// `bits` of a command.
const EXECUTABLE: u32 = 1;
const LINE: u32 = 1 << 1;
const WORKING_DIRECTORY: u32 = 1 << 2;

#[derive(Default)]
struct PackedCommands {
    numbers: Vec<u32>,
    texts: Texts,
}

impl PackedCommands {
    fn add(&mut self, row: u32, command: &Command) {
        let Command { executable, line, working_directory, arguments, environment } = command;
        let single =
            [(executable, EXECUTABLE), (line, LINE), (working_directory, WORKING_DIRECTORY)];
        let there = single.iter().filter(|(text, _)| text.is_some());
        let bits = there.fold(0, |bits, (_, bit)| bits | bit);
        self.numbers.extend([row, bits, count(arguments.len()), count(environment.len())]);
        for text in single.iter().filter_map(|(text, _)| text.as_ref()).chain(arguments) {
            let length = self.texts.add(text);
            self.numbers.push(length);
        }
        for (key, value) in environment {
            let length = self.texts.add(value);
            self.numbers.extend([count(*key), length]);
        }
    }
}

/// No list here has as many.
fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Texts one behind the other.
#[derive(Default)]
struct Texts {
    text: String,
}

impl Texts {
    /// Adds one and returns its length as JavaScript counts it. Bytes that are not UTF-8 become U+FFFD as
    /// the Encoding Standard says.
    fn add(&mut self, bytes: &[u8]) -> u32 {
        let text = String::from_utf8_lossy(bytes);
        let length = if text.is_ascii() { text.len() } else { text.encode_utf16().count() };
        self.text.push_str(&text);
        count(length)
    }
}

/// Lines: resolution in microseconds, boot, pid namespace, time namespace; an absent fact is empty.
pub fn join(origin: &Origin) -> String {
    let mut lines = origin.start_time_resolution_micros.to_string();
    for text in [&origin.boot_id, &origin.pid_namespace, &origin.time_namespace] {
        lines.push('\n');
        lines.push_str(text.as_deref().unwrap_or_default());
    }
    lines
}

/// Numbers of a row: pid, bits, parent pid, process group, session, uid, end of the name in the
/// names, start in microseconds since the epoch and since boot, upper and lower half of the unique
/// id.
const COLUMNS: usize = 11;
/// The place of the end of the name.
const NAME_END: usize = 6;

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

#[derive(Default)]
struct Columns {
    numbers: Vec<f64>,
    names: Texts,
    /// Their length as JavaScript counts it.
    names_length: u32,
}

impl Columns {
    fn of(rows: &[Snapshot]) -> Self {
        let numbers = Vec::with_capacity(rows.len().saturating_mul(COLUMNS));
        let mut columns = Self { numbers, ..Self::default() };
        for row in rows {
            columns.add(row);
        }
        columns
    }

    fn add(&mut self, row: &Snapshot) {
        if let Some(name) = &row.name {
            self.names_length = self.names_length.saturating_add(self.names.add(name));
        }
        self.numbers.extend(columns_of(row, self.names_length));
    }
}

fn columns_of(row: &Snapshot, name_end: u32) -> [f64; COLUMNS] {
    let (mut start, mut since_boot, mut unique_id) = (0, 0, 0);
    if let Some(identity) = &row.identity {
        start = identity.start_time_micros;
        since_boot = identity.start_time_since_boot_micros.unwrap_or(0);
        unique_id = identity.unique_id.unwrap_or(0);
    }
    let (upper, lower) = halves(unique_id);
    [
        row.pid.into(),
        bits(row).into(),
        row.parent_pid.unwrap_or(0).into(),
        row.process_group_id.unwrap_or(0).into(),
        row.session_id.unwrap_or(0).into(),
        row.uid.unwrap_or(0).into(),
        name_end.into(),
        number(start),
        number(since_boot),
        upper.into(),
        lower.into(),
    ]
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
