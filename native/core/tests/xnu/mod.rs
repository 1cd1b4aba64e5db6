//! A model of XNU whose processes fork, exit through the exit window, become zombies, are reaped and
//! reused between any two reads. Every fact of a process is derived from its birth number, so a row
//! that mixes two shows. What it answers follows bsd/kern of xnu-11417.101.15.
#![allow(missing_docs, clippy::expect_used, clippy::indexing_slicing)] // a test's own

use proc_safe_core::darwin::Kernel;
use proc_safe_core::darwin::command::ROOM;
use proc_safe_core::darwin::info::{Directory, File, Flavor};
use proc_safe_core::darwin::record::{Record, RecordAnswer};
use proc_safe_core::error::Errno;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

pub const OWN_PID: u32 = 50;
pub const OWN_UID: u32 = 501;

const STOPPED: u32 = 4;
const ZOMBIE: u32 = 5;
/// The kernel's allowance above the number of processes.
const ALLOWANCE: usize = 20;

/// How far a process is, as far as an observer can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// fork(2) has reserved the number and not finished.
    Reserved,
    /// Visible, SIDL: libproc has it, the record has not.
    Embryo,
    Live,
    /// Exit has begun and the process is still listed as live.
    ExitBegun,
    /// The exit window: libproc has lost it.
    Exiting,
    Zombie,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub birth: u32,
    pub pid: u32,
    pub parent: u32,
    /// While it is set the told parent is this one.
    pub debugger: Option<u32>,
    /// The debugger lets go just now: still the told parent, no longer tracing.
    pub detached: bool,
    pub phase: Phase,
    pub stopped: bool,
    /// Added by exec of a set-user-id file.
    pub uid_change: u32,
    /// What it runs.
    pub program: u32,
    /// `p_idversion`.
    pub version: u32,
}

impl Process {
    pub fn uid(&self) -> u32 {
        let other = self.birth.is_multiple_of(2) && self.pid != OWN_PID;
        OWN_UID + self.uid_change + if other { 1_000 + self.birth } else { 0 }
    }
    pub fn name(&self) -> String {
        format!("b{}", self.birth)
    }
    pub fn who(&self) -> String {
        format!("b{}p{}", self.birth, self.program)
    }
    pub fn group(&self) -> u32 {
        if self.pid == 0 { 0 } else { 7_000 + self.birth }
    }
    pub fn start(&self) -> (u64, u32) {
        (1_700_000_000 + u64::from(self.birth), 1_000 + self.birth % 100_000)
    }
    pub fn start_micros(&self) -> i64 {
        let (seconds, micros) = self.start();
        i64::try_from(seconds).expect("a date") * 1_000_000 + i64::from(micros)
    }
    pub fn told_parent(&self) -> u32 {
        self.debugger.unwrap_or(self.parent)
    }
    /// `P_LTRACED`, which the exit window clears.
    pub fn is_traced(&self) -> bool {
        self.debugger.is_some() && !self.detached && self.phase < Phase::Exiting
    }
    pub fn status(&self) -> u32 {
        match self.phase {
            Phase::Embryo | Phase::Reserved => 1,
            Phase::Zombie => ZOMBIE,
            _ if self.stopped => STOPPED,
            _ => 2,
        }
    }
    fn flags(&self) -> u32 {
        let exiting = if self.phase >= Phase::ExitBegun { 4 } else { 0 };
        0x4010 | exiting | if self.is_traced() { 2 } else { 0 }
    }

    fn short(&self, translated: bool) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        let mut put =
            |at: usize, value: u32| bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        put(0, self.pid);
        put(4, self.told_parent());
        put(8, self.group());
        put(12, self.status());
        put(32, self.flags() | if translated { 0x200_0000 } else { 0 });
        put(36, self.uid());
        put(44, 99_999); // the real user is nobody's fact here
        bytes[16..16 + self.name().len()].copy_from_slice(self.name().as_bytes());
        bytes
    }

    fn bsd(&self) -> Vec<u8> {
        let mut bytes = vec![0; 136];
        let mut put =
            |at: usize, value: u32| bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        put(0, self.flags());
        put(4, self.status());
        put(12, self.pid);
        put(16, self.told_parent());
        put(20, self.uid());
        put(100, self.group());
        let (seconds, micros) = self.start();
        bytes[120..128].copy_from_slice(&seconds.to_le_bytes());
        bytes[128..136].copy_from_slice(&u64::from(micros).to_le_bytes());
        bytes
    }

    fn unique_id(&self) -> Vec<u8> {
        let mut bytes = vec![0xee; 56];
        bytes[16..24].copy_from_slice(&u64::from(self.birth).to_le_bytes());
        bytes[32..36].copy_from_slice(&self.version.to_le_bytes());
        bytes
    }

    fn arguments(&self) -> Vec<u8> {
        let path = format!("/{}", self.who());
        let mut bytes = 2_i32.to_le_bytes().to_vec();
        bytes.extend(path.as_bytes());
        bytes.resize(4 + (path.len() + 1).next_multiple_of(8), 0);
        bytes.extend(format!("\0{0}\0OTHER=\0WHO={0}\0ptr_munge=\0", self.who()).as_bytes());
        bytes
    }

    /// What the kernel finds the program at; exec was given another path.
    pub fn program_path(&self) -> Vec<u8> {
        format!("/bin/{}", self.who()).into_bytes()
    }

    pub fn directory(&self) -> Directory {
        let path = format!("/srv/{}", self.who()).into_bytes();
        Directory { file: file_at(&path), path }
    }

    fn directories(&self) -> Vec<u8> {
        let Directory { file, path } = self.directory();
        let mut bytes = vec![0; 2_352];
        bytes[8..16].copy_from_slice(&file.number.to_le_bytes());
        bytes[72..80].copy_from_slice(&file.birth.0.to_le_bytes());
        bytes[80..88].copy_from_slice(&file.birth.1.to_le_bytes());
        bytes[152..152 + path.len()].copy_from_slice(&path);
        bytes[1_176 + 152] = b'/'; // the root directory is nobody's fact here
        bytes
    }

    pub fn record(&self) -> Record {
        Record {
            parent_pid: self.told_parent(),
            original_parent_pid: self.debugger.map_or(0, |_| self.parent),
            process_group: self.group(),
            uid: self.uid(),
            status: self.status(),
            exiting: self.phase >= Phase::ExitBegun,
            name: self.name().as_bytes().into(),
            start_micros: self.start_micros(),
        }
    }
}

/// Each path leads to a file of its own.
fn file_at(path: &[u8]) -> File {
    let number = path.iter().fold(7, |sum: u64, &byte| sum.wrapping_mul(31) + u64::from(byte));
    File { number, birth: (1_600_000_000, number.cast_signed() % 1_000) }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    Estimate,
    List,
    /// Pid, flavor, and whether exiting processes are asked for too.
    Info(u32, Flavor, bool),
    Record(u32),
    Arguments(u32),
    ProgramPath(u32),
    /// stat(2), of any path.
    File,
}

pub const fn short(pid: u32) -> Call {
    Call::Info(pid, Flavor::Short, false)
}
pub const fn birth(pid: u32) -> Call {
    Call::Info(pid, Flavor::Bsd, true)
}
pub const fn unique(pid: u32) -> Call {
    Call::Info(pid, Flavor::UniqueId, true)
}

/// What a call answers instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instead {
    Fail(Errno),
    /// An answer of this length only.
    Cut(usize),
    /// A path instead of another; of a directory, the directory is the same.
    Path(&'static str),
    /// These arguments.
    Arguments(&'static [u8]),
    /// A record of another form, or none.
    Record(RecordAnswer),
    /// As many pids, whatever the kernel has.
    Pids(usize),
}

#[derive(Default)]
pub struct World {
    pub processes: BTreeMap<u32, Process>,
    /// Every process that ever was, in every form that it had.
    pub history: HashMap<u32, Vec<Process>>,
    /// Pids that were free, or reserved only, at some instant.
    pub was_absent: HashSet<u32>,
    pub instead: HashMap<Call, Instead>,
    /// Processes inside exec: a read of their record waits.
    pub held: HashSet<u32>,
    /// Beyond this many pids the kernel cuts.
    pub kernel_room: Option<usize>,
    /// The caller is root.
    pub as_root: bool,
    /// Rosetta translates their programs.
    pub translated: HashSet<u32>,
    /// Missing from the list.
    pub unlisted: Option<u32>,
    pub log: Vec<Call>,
    pub births: u32,
}

impl World {
    pub fn new() -> Self {
        let mut world = Self { births: u32::MAX, ..Self::default() };
        for (pid, parent) in [(0, 0), (1, 0)] {
            world.spawn(pid, parent); // births 0 and 1, as their unique ids are
        }
        world.births = 99;
        world.spawn(OWN_PID, 1);
        world
    }

    pub fn spawn(&mut self, pid: u32, parent: u32) -> u32 {
        self.births = self.births.wrapping_add(1);
        let birth = self.births;
        let process = Process {
            birth,
            pid,
            parent,
            debugger: None,
            detached: false,
            phase: Phase::Live,
            stopped: false,
            uid_change: 0,
            program: 0,
            version: 0,
        };
        self.put(process);
        birth
    }

    pub fn put(&mut self, process: Process) {
        self.history.entry(process.birth).or_default().push(process.clone());
        if process.phase == Phase::Reserved {
            self.was_absent.insert(process.pid);
        }
        self.processes.insert(process.pid, process);
    }

    pub fn change(&mut self, pid: u32, change: impl FnOnce(&mut Process)) {
        if let Some(mut process) = self.processes.get(&pid).cloned() {
            change(&mut process);
            self.put(process);
        }
    }

    pub fn enter_phase(&mut self, pid: u32, phase: Phase) {
        self.change(pid, |process| process.phase = process.phase.max(phase));
        if phase >= Phase::Exiting {
            self.give_children_away(pid);
        }
    }

    fn give_children_away(&mut self, pid: u32) {
        let children =
            self.processes.values().filter(|child| child.parent == pid && child.pid != 0);
        for child in children.map(|child| child.pid).collect::<Vec<_>>() {
            self.change(child, |child| child.parent = 1);
        }
        let traced = self.processes.values().filter(|process| process.debugger == Some(pid));
        for process in traced.map(|process| process.pid).collect::<Vec<_>>() {
            self.change(process, |process| process.debugger = None);
        }
    }

    pub fn reap(&mut self, pid: u32) {
        if self.processes.remove(&pid).is_some() {
            self.was_absent.insert(pid);
            self.give_children_away(pid);
        }
    }

    /// The same program again is another version.
    pub fn execute(&mut self, pid: u32, program: u32) {
        self.change(pid, |process| {
            process.program = program;
            process.version += 1;
        });
    }

    pub fn recycle(&mut self, pid: u32) {
        let parent = self.processes.get(&pid).map_or(1, |process| process.parent);
        let parent = if self.processes.contains_key(&parent) { parent } else { 1 };
        self.reap(pid);
        self.spawn(pid, parent);
    }

    /// The live from the newest to kernel_task, then the exiting and zombies from the newest.
    fn listed(&self) -> Vec<i32> {
        let mut pids: Vec<&Process> =
            self.processes.values().filter(|process| process.phase > Phase::Reserved).collect();
        pids.retain(|process| Some(process.pid) != self.unlisted);
        pids.sort_by_key(|process| (process.phase >= Phase::Exiting, u32::MAX - process.birth));
        pids.iter().map(|process| process.pid.cast_signed()).collect()
    }

    fn visible(&self, pid: u32, exiting_too: bool) -> Option<&Process> {
        let last = if exiting_too { Phase::Zombie } else { Phase::ExitBegun };
        let process = self.processes.get(&pid)?;
        (Phase::Embryo..=last).contains(&process.phase).then_some(process)
    }
}

type Script = Box<dyn FnMut(&mut World, usize, Call) + Send>;

/// The world behind the reads; the script runs before each of them.
#[derive(Clone)]
pub struct Model(Arc<Inner>);

struct Inner {
    world: Mutex<World>,
    released: Condvar,
    script: Mutex<Script>,
}

impl Model {
    pub fn new(world: World) -> Self {
        Self::scripted(world, |_, _, _| {})
    }

    pub fn scripted(
        world: World,
        script: impl FnMut(&mut World, usize, Call) + Send + 'static,
    ) -> Self {
        let script: Script = Box::new(script);
        let (world, script) = (Mutex::new(world), Mutex::new(script));
        Self(Arc::new(Inner { world, released: Condvar::new(), script }))
    }

    /// The world, which no read can enter meanwhile.
    pub fn world(&self) -> MutexGuard<'_, World> {
        self.0.world.lock().expect("the world")
    }

    /// The exec of every held process is over.
    pub fn release(&self) {
        self.world().held.clear();
        self.0.released.notify_all();
    }

    fn enter(&self, call: Call) -> (MutexGuard<'_, World>, Option<Instead>) {
        let mut world = self.world();
        let number = world.log.len();
        (self.0.script.lock().expect("the script"))(&mut world, number, call);
        world.log.push(call);
        let instead = world.instead.get(&call).cloned();
        (world, instead)
    }
}

impl Kernel for Model {
    fn own_pid(&self) -> u32 {
        OWN_PID
    }

    fn effective_uid(&self) -> u32 {
        if self.world().as_root { 0 } else { OWN_UID }
    }

    fn estimate_processes(&self) -> Result<usize, Errno> {
        match self.enter(Call::Estimate) {
            (_, Some(Instead::Fail(errno))) => Err(errno),
            (_, Some(Instead::Pids(count))) => Ok(count),
            (world, _) => Ok(world.processes.len() + ALLOWANCE),
        }
    }

    fn list_pids(&self, pids: &mut [i32]) -> Result<usize, Errno> {
        let (world, instead) = self.enter(Call::List);
        let mut listed = world.listed();
        match instead {
            Some(Instead::Fail(errno)) => return Err(errno),
            Some(Instead::Pids(count)) => listed.resize(count, 9_999),
            _ => {}
        }
        listed.truncate(world.kernel_room.unwrap_or(usize::MAX).min(pids.len()));
        pids[..listed.len()].copy_from_slice(&listed);
        Ok(listed.len())
    }

    fn process_info(
        &self,
        pid: u32,
        flavor: Flavor,
        exiting_too: bool,
        buffer: &mut [u8],
    ) -> Result<usize, Errno> {
        let (world, instead) = self.enter(Call::Info(pid, flavor, exiting_too));
        if let Some(Instead::Fail(errno)) = instead {
            return Err(errno);
        }
        let process = world.visible(pid, exiting_too).ok_or(Errno::ESRCH)?;
        let own_only = matches!(flavor, Flavor::Bsd | Flavor::Directories);
        if own_only && process.uid() != OWN_UID && !world.as_root {
            return Err(Errno::EPERM);
        }
        let mut bytes = match flavor {
            Flavor::Bsd => process.bsd(),
            Flavor::Short => process.short(world.translated.contains(&pid)),
            Flavor::UniqueId => process.unique_id(),
            Flavor::Directories => process.directories(),
        };
        match instead {
            Some(Instead::Cut(length)) => bytes.truncate(length),
            Some(Instead::Path(path)) => {
                bytes[152..1_176].fill(0);
                bytes[152..152 + path.len()].copy_from_slice(path.as_bytes());
            }
            _ => {}
        }
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }

    fn kernel_record(&self, pid: u32) -> Result<RecordAnswer, Errno> {
        let (mut world, instead) = self.enter(Call::Record(pid));
        while world.held.contains(&pid) {
            world = self.0.released.wait(world).expect("the world");
        }
        match instead {
            Some(Instead::Fail(errno)) => Err(errno),
            Some(Instead::Record(answer)) => Ok(answer),
            _ => Ok(match world.visible(pid, true) {
                Some(process) if process.phase > Phase::Embryo => {
                    RecordAnswer::Present(process.record())
                }
                _ => RecordAnswer::Absent,
            }),
        }
    }

    fn arguments(&self, pid: u32, buffer: &mut [u8]) -> Result<usize, Errno> {
        let (mut world, instead) = self.enter(Call::Arguments(pid));
        while world.held.contains(&pid) {
            world = self.0.released.wait(world).expect("the world");
        }
        assert_eq!(buffer.len(), ROOM, "the kernel refuses more room, and less may be too little");
        match instead {
            Some(Instead::Fail(errno)) => return Err(errno),
            Some(Instead::Cut(length)) if length >= buffer.len() => return Ok(buffer.len()),
            Some(Instead::Arguments(bytes)) => {
                buffer[..bytes.len()].copy_from_slice(bytes);
                return Ok(bytes.len());
            }
            _ => {}
        }
        let process = world.visible(pid, false).filter(|process| process.phase > Phase::Embryo);
        let process = process.filter(|process| process.uid() == OWN_UID && pid != 0);
        let mut bytes = process.ok_or(Errno::EINVAL)?.arguments();
        if let Some(Instead::Cut(length)) = instead {
            bytes.truncate(length);
        }
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }
    fn program_path(&self, pid: u32, buffer: &mut [u8]) -> Result<usize, Errno> {
        let (world, instead) = self.enter(Call::ProgramPath(pid));
        assert_eq!(buffer.len(), 4_096, "libproc refuses more room and less than 1,024 bytes");
        let path = match instead {
            Some(Instead::Fail(errno)) => return Err(errno),
            Some(Instead::Path(path)) => path.as_bytes().to_vec(),
            _ => world.visible(pid, false).ok_or(Errno::ESRCH)?.program_path(),
        };
        buffer[..path.len()].copy_from_slice(&path);
        Ok(path.len())
    }

    fn file_at(&self, path: &[u8]) -> Result<File, Errno> {
        match self.enter(Call::File) {
            (_, Some(Instead::Fail(errno))) => Err(errno),
            _ => Ok(file_at(path)),
        }
    }
}
