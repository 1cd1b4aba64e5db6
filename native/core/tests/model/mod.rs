//! A model of Linux whose processes are born, exit, are reaped and reused between any two reads.
//! Every fact of a process is derived from its birth number, so a row that mixes two shows.
#![allow(missing_docs, clippy::expect_used)] // a test's own

use proc_safe_core::error::{Errno, FailedCall};
use proc_safe_core::linux::Kernel;
use proc_safe_core::linux::birth::ClockSample;
use proc_safe_core::linux::command::Part;
use proc_safe_core::linux::dirents::encode_entry;
use proc_safe_core::linux::ground::Ground;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard};

pub const OWN_PID: u32 = 50;
pub const OWN_UID: u32 = 1000;
const PF_EXITING: u32 = 4;
const PF_FORKNOEXEC: u32 = 0x40;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    pub tid: u32,
    pub exiting: bool,
    pub dead: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub birth: u32,
    pub pid: u32,
    pub parent: u32,
    pub letter: char,
    /// The leader is the first.
    pub threads: Vec<Thread>,
    /// What it runs.
    pub program: u32,
    /// Counts its images: each execve(2) makes one.
    pub image: u32,
    /// Where it runs, and with which variable, at the same program and arguments.
    pub run: u32,
}

impl Process {
    pub fn uid(&self) -> u32 {
        let other = self.birth.is_multiple_of(2) && self.pid != OWN_PID;
        OWN_UID + if other { self.birth } else { 0 }
    }
    pub fn name(&self) -> String {
        format!("b{}) R 1 (", self.birth)
    }
    pub fn group(&self) -> u32 {
        7_000 + self.birth
    }
    pub fn session(&self) -> u32 {
        8_000 + self.birth
    }
    /// Pairs of births share a tick.
    pub fn ticks(&self) -> u64 {
        u64::from(self.birth / 2 + 100)
    }
    pub fn inode(&self) -> u64 {
        900_000 + u64::from(self.birth)
    }
    pub fn executable(&self) -> Vec<u8> {
        format!("/b{}p{}", self.birth, self.program).into_bytes()
    }
    pub fn arguments(&self) -> Vec<u8> {
        format!("b{}p{}\0\0", self.birth, self.program).into_bytes()
    }
    pub fn environment(&self) -> Vec<u8> {
        format!("RUN={}\0WHO=b{}p{}\0", self.run, self.birth, self.program).into_bytes()
    }
    pub fn directory(&self) -> Vec<u8> {
        format!("/{}", self.run).into_bytes()
    }
    pub fn is_own(&self) -> bool {
        self.uid() == OWN_UID
    }
    /// Fields 26 to 28 and 45 to 51 of its stat.
    fn places(&self, fixed: bool) -> [u64; 10] {
        if !self.is_own() {
            return [1, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        }
        let image = if fixed { 0 } else { self.image };
        let start = u64::from(self.birth) << 40 | u64::from(image) << 20;
        let arguments = u64::try_from(self.arguments().len()).expect("a length");
        let environment = u64::try_from(self.environment().len()).expect("a length");
        let end = start + arguments;
        [start + 2, start + 3, start + 4, 5, 6, 7, start, end, end, end + environment]
    }
    pub fn leader(&self) -> &Thread {
        &self.threads[0]
    }
    pub fn is_zombie(&self) -> bool {
        self.threads.len() == 1 && self.leader().dead
    }
    pub fn is_exiting(&self) -> bool {
        !self.is_zombie() && self.threads.iter().all(|thread| thread.exiting || thread.dead)
    }
}

/// What the next read of one process's stat shows for an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Glitch {
    /// execve(2) by another thread: exit_signal −1.
    NotLeading,
    /// execve(2) by another thread: the old leader, dead.
    DeadLeader(char),
    /// execve(2) by another thread: a path that leads to that thread's number.
    OtherNumber,
    /// The task is being released.
    Torn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    List,
    Open(u32),
    Directory(u32),
    Read(u32),
    Signal(u32),
    Threads(u32),
    ThreadStat(u32, u32),
    PidFd(u32),
    PidFdSignal(u32),
    Part(u32, Part),
    ReadPart(u32, Part),
    HasByte(u32),
}

#[derive(Default)]
pub struct World {
    pub processes: BTreeMap<u32, Process>,
    /// Every process that ever was, in every form that it had.
    pub history: HashMap<u32, Vec<Process>>,
    /// Pids that were free at some instant.
    pub was_absent: HashSet<u32>,
    /// Births that a reaper has let go while a reader still sees their task.
    pub releasing: HashSet<u32>,
    glitches: HashMap<u32, Glitch>,
    /// Whose last read showed a glitch: an instant is not seen twice.
    glimpsed: HashSet<u32>,
    /// Thread numbers whose cached path leads to another of the process's threads.
    pub aliases: HashMap<u32, u32>,
    /// Pids that hidepid=invisible hides.
    pub hidden: HashSet<u32>,
    /// Pids that hidepid=noaccess closes.
    pub closed: HashSet<u32>,
    /// Errors to answer with, instead of an answer.
    pub errors: HashMap<Call, Errno>,
    pub no_pidfd: bool,
    /// Address space randomisation is switched off: an execve(2) may choose the same places.
    pub fixed_places: bool,
    /// Parts that are longer than what is read of them.
    pub endless: HashSet<Part>,
    /// Parts of which the kernel gives so many bytes.
    pub cut: HashMap<Part, usize>,
    pub files: HashMap<String, Vec<u8>>,
    pub links: HashMap<String, String>,
    /// CLOCK_BOOTTIME when a call begins; births are of the first minutes.
    pub boot_nanos: i64,
    pub magic: u64,
    pub capabilities: u64,
    pub processors: usize,
    pub host_processes: usize,
    pub log: Vec<Call>,
    births: u32,
}

impl World {
    pub fn new() -> Self {
        Self::with_processors(1)
    }

    pub fn with_processors(processors: usize) -> Self {
        let mut world = Self {
            magic: 0x9fa0,
            processors,
            host_processes: 1_000,
            births: 1,
            boot_nanos: 1_000_000_000_000,
            ..Self::default()
        };
        for (path, text) in [
            ("self/status", "Name:\tmodel\nNSpid:\t50\n"),
            ("self/uid_map", "0 0 4294967295\n"),
            ("self/mountinfo", "22 1 0:21 / /proc rw - proc proc rw\n"),
            ("sys/kernel/random/boot_id", "d9a0c4de-0000-4000-8000-000000000000\n"),
            ("sys/kernel/overflowuid", "65534\n"),
            ("thread-self/status", "Gid:\t5\t5\t5\t5\nGroups:\t7 \n"),
        ] {
            world.files.insert(path.into(), text.into());
        }
        for (path, target) in [
            ("self", "50"),
            ("self/ns/pid", "pid:[4026531836]"),
            ("self/ns/time", "time:[4026531834]"),
            ("self/ns/user", "user:[4026531837]"),
        ] {
            world.links.insert(path.into(), target.into());
        }
        world.spawn(1, 0);
        world.spawn(OWN_PID, 1);
        world
    }

    pub fn spawn(&mut self, pid: u32, parent: u32) -> u32 {
        self.births += 1;
        let leader = Thread { tid: pid, exiting: false, dead: false };
        let birth = self.births;
        let process = Process {
            birth,
            pid,
            parent,
            letter: 'S',
            threads: vec![leader],
            program: 0,
            image: 0,
            run: 0,
        };
        self.put(process);
        birth
    }

    pub fn put(&mut self, process: Process) {
        self.history.entry(process.birth).or_default().push(process.clone());
        self.processes.insert(process.pid, process);
    }

    pub fn change(&mut self, pid: u32, change: impl FnOnce(&mut Process)) {
        if let Some(mut process) = self.processes.get(&pid).cloned() {
            change(&mut process);
            self.put(process);
        }
    }

    /// The parent has reaped it; its children become pid 1's.
    pub fn reap(&mut self, pid: u32) {
        if self.processes.remove(&pid).is_some() {
            self.was_absent.insert(pid);
            let orphans: Vec<u32> = self
                .processes
                .values()
                .filter(|child| child.parent == pid)
                .map(|c| c.pid)
                .collect();
            for orphan in orphans {
                self.change(orphan, |child| child.parent = 1);
            }
        }
    }

    /// The same program again is another image.
    pub fn execute(&mut self, pid: u32, program: u32) {
        self.change(pid, |process| {
            process.program = program;
            process.image += 1;
            process.threads.truncate(1);
            process.threads[0].dead = false;
        });
    }

    pub fn recycle(&mut self, pid: u32) {
        let parent = self.processes.get(&pid).map_or(1, |process| process.parent);
        self.reap(pid);
        self.spawn(pid, parent);
    }

    pub fn glitch(&mut self, pid: u32, glitch: Glitch) {
        self.glitches.insert(pid, glitch);
    }

    fn take_glitch(&mut self, tid: u32) -> Option<Glitch> {
        let glitch = self.glitches.remove(&tid);
        let repeats = matches!(glitch, Some(Glitch::Torn | Glitch::OtherNumber));
        if self.glimpsed.remove(&tid) && !repeats {
            return None;
        }
        if glitch.is_some() {
            self.glimpsed.insert(tid);
        }
        glitch
    }

    fn tasks(&self, pid: u32, tid: Option<u32>) -> Option<(&Process, &Thread)> {
        match tid {
            None => self.thread_of(pid),
            Some(tid) => self.thread_of(tid).filter(|(process, _)| process.pid == pid),
        }
    }

    fn image_of(&self, pid: u32, tid: Option<u32>) -> Option<&Process> {
        let (process, thread) = self.tasks(pid, tid)?;
        (!thread.dead && !thread.exiting).then_some(process)
    }

    fn thread_of(&self, id: u32) -> Option<(&Process, &Thread)> {
        self.processes.values().find_map(|process| {
            process.threads.iter().find(|thread| thread.tid == id).map(|thread| (process, thread))
        })
    }

    fn stat_text(&self, process: &Process, thread: &Thread, glitch: Option<Glitch>) -> Vec<u8> {
        let fixed = self.fixed_places;
        let (pid, name) = (thread.tid, process.name());
        let (parent, group, session) = (process.parent, process.group(), process.session());
        let (mut letter, mut threads) = (process.letter, process.threads.len());
        if thread.dead {
            letter = 'Z';
        }
        let mut exit_signal = if thread.tid == process.pid { 17 } else { -1 };
        let exiting = if thread.exiting || thread.dead { PF_EXITING } else { 0 };
        let flags = PF_FORKNOEXEC | exiting;
        match glitch {
            Some(Glitch::Torn) => return Self::torn_text(process, pid),
            Some(Glitch::NotLeading) => exit_signal = -1,
            Some(Glitch::OtherNumber) => {
                let other = Thread { tid: pid + 1, ..thread.clone() };
                return self.stat_text(process, &other, None);
            }
            Some(Glitch::DeadLeader(shown)) => (letter, threads) = (shown, 1),
            None => {}
        }
        // exit_mm comes after the flag, and by the time of the last read here.
        let image = !thread.dead && !thread.exiting;
        let (size, places) = if image { (4096, process.places(fixed)) } else { (0, [0; 10]) };
        let [code, code_end, stack, rest @ ..] = places;
        let rest = rest.map(|place| place.to_string()).join(" ");
        format!(
            "{pid} ({name}) {letter} {parent} {group} {session} 0 -1 {flags} 0 0 0 0 0 0 0 0 20 0 \
             {threads} 0 {ticks} {size} 1 18446744073709551615 {code} {code_end} {stack} 0 0 0 0 0 0 0 \
             0 0 {exit_signal} 1 0 0 0 0 0 {rest} 0\n",
            ticks = process.ticks(),
        )
        .into_bytes()
    }

    fn torn_text(process: &Process, id: u32) -> Vec<u8> {
        format!(
            "{} ({}) X 0 -1 -1 0 -1 4194380 0 0 0 0 0 0 0 0 20 0 0 0 {} 0 0 18446744073709551615 0 0 \
             0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
            id,
            process.name(),
            process.ticks(),
        )
        .into_bytes()
    }
}

fn in_readlinkat(errno: Errno) -> FailedCall {
    FailedCall { syscall: "readlinkat", errno }
}

fn in_openat(errno: Errno) -> FailedCall {
    FailedCall { syscall: "openat", errno }
}

fn in_read(errno: Errno) -> FailedCall {
    FailedCall { syscall: "read", errno }
}

type Script<'a> = Box<dyn FnMut(&mut World, usize, Call) + Send + 'a>;

/// The world behind the reads; the script runs before each of them.
pub struct Model<'a> {
    world: Mutex<World>,
    script: Mutex<Script<'a>>,
}

impl<'a> Model<'a> {
    pub fn new(world: World) -> Self {
        Self::scripted(world, |_, _, _| {})
    }

    pub fn scripted(world: World, script: impl FnMut(&mut World, usize, Call) + Send + 'a) -> Self {
        Self { world: Mutex::new(world), script: Mutex::new(Box::new(script)) }
    }

    pub fn ground(&self) -> Ground {
        Ground::check(self).expect("the model's ground")
    }

    /// The world, which no read can enter meanwhile.
    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().expect("the world")
    }

    fn enter(&self, call: Call) -> Result<MutexGuard<'_, World>, Errno> {
        let mut world = self.world();
        let number = world.log.len();
        (self.script.lock().expect("the script"))(&mut world, number, call);
        world.log.push(call);
        match world.errors.get(&call) {
            Some(errno) => Err(*errno),
            None => Ok(world),
        }
    }

    fn write(text: &[u8], buffer: &mut [u8]) -> usize {
        let length = text.len().min(buffer.len());
        buffer[..length].copy_from_slice(&text[..length]);
        length
    }
}

impl Kernel for Model<'_> {
    /// The process, or the thread, that the file was opened for.
    type StatFile = (u32, u32);
    /// The birth, and for an environment the image, that the file was opened on.
    type PartFile = (u32, u32, Option<u32>, Part, u32);
    /// The greatest pid that was returned.
    type Listing = u32;
    type PidFd = (u32, u32);

    fn own_pid(&self) -> u32 {
        OWN_PID
    }

    fn effective_uid(&self) -> u32 {
        OWN_UID
    }

    fn effective_capabilities(&self) -> Result<u64, Errno> {
        Ok(self.world().capabilities)
    }

    fn ticks_per_second(&self) -> u64 {
        100
    }

    fn processors(&self) -> usize {
        self.world().processors
    }

    fn sample_clocks(&self) -> Result<ClockSample, Errno> {
        let boot = self.world().boot_nanos;
        let real = 1_000_000_000_000_000_000 + boot;
        Ok(ClockSample { boot_before: boot, real, boot_after: boot })
    }

    fn file_system_magic(&self) -> Result<u64, Errno> {
        Ok(self.world().magic)
    }

    fn device(&self) -> Result<(u32, u32), Errno> {
        Ok((0, 21))
    }

    fn read_file(&self, path: &str) -> Result<Vec<u8>, FailedCall> {
        self.world().files.get(path).cloned().ok_or(Errno::ENOENT).map_err(in_openat)
    }

    fn read_link(&self, path: &str) -> Result<String, Errno> {
        self.world().links.get(path).cloned().ok_or(Errno::ENOENT)
    }

    fn count_processes(&self) -> usize {
        self.world().host_processes
    }

    fn open_listing(&self) -> Result<u32, Errno> {
        Ok(0)
    }

    fn read_listing(&self, last: &mut u32, buffer: &mut [u8]) -> Result<usize, Errno> {
        let world = self.enter(Call::List)?;
        let mut bytes = if *last == 0 { encode_entry("sys") } else { Vec::new() };
        for &pid in world.processes.keys().filter(|pid| !world.hidden.contains(pid)) {
            let entry = encode_entry(&pid.to_string());
            // Small batches, so that scripts act between them.
            if pid <= *last || bytes.len() + entry.len() > 96 {
                continue;
            }
            bytes.extend(entry);
            *last = pid;
        }
        Ok(Self::write(&bytes, buffer))
    }

    fn open_stat(&self, pid: u32) -> Result<(u32, u32), Errno> {
        let world = self.enter(Call::Open(pid))?;
        if world.closed.contains(&pid) {
            return Err(Errno::EPERM);
        }
        match world.thread_of(pid) {
            Some((process, _)) if !world.hidden.contains(&pid) => Ok((process.birth, pid)),
            _ => Err(Errno::ENOENT),
        }
    }

    fn read_stat(&self, &(birth, tid): &(u32, u32), buffer: &mut [u8]) -> Result<usize, Errno> {
        let mut world = self.enter(Call::Read(tid))?;
        let glitch = world.take_glitch(tid);
        if let Some(process) = world.processes.values().find(|process| process.birth == birth) {
            let thread = process.threads.iter().find(|thread| thread.tid == tid);
            let text = thread.map(|thread| world.stat_text(process, thread, glitch));
            return text.map(|text| Self::write(&text, buffer)).ok_or(Errno::ESRCH);
        }
        let last = world.history.get(&birth).and_then(|forms| forms.last()).cloned();
        match last.filter(|_| world.releasing.remove(&birth)) {
            Some(process) => Ok(Self::write(&World::torn_text(&process, tid), buffer)),
            None => Err(Errno::ESRCH),
        }
    }

    fn directory_uid(&self, pid: u32) -> Result<u32, Errno> {
        let world = self.enter(Call::Directory(pid))?;
        match world.thread_of(pid) {
            Some((process, _)) if !world.hidden.contains(&pid) => Ok(process.uid()),
            _ => Err(Errno::ENOENT),
        }
    }

    fn null_signal(&self, pid: u32) -> Result<(), Errno> {
        let world = self.enter(Call::Signal(pid))?;
        match world.processes.get(&pid) {
            None => Err(Errno::ESRCH),
            Some(process) if process.uid() == OWN_UID => Ok(()),
            Some(_) => Err(Errno::EPERM),
        }
    }

    fn thread_ids(&self, pid: u32) -> Result<Vec<u32>, FailedCall> {
        let world = self.enter(Call::Threads(pid)).map_err(in_openat)?;
        let process = world.processes.get(&pid).ok_or(Errno::ENOENT).map_err(in_openat)?;
        Ok(process.threads.iter().map(|thread| thread.tid).collect())
    }

    fn read_thread_stat(&self, pid: u32, tid: u32, buffer: &mut [u8]) -> Result<usize, FailedCall> {
        let world = self.enter(Call::ThreadStat(pid, tid)).map_err(in_openat)?;
        let process = world.processes.get(&pid).ok_or(Errno::ENOENT).map_err(in_openat)?;
        let tid = world.aliases.get(&tid).copied().unwrap_or(tid);
        let thread = process.threads.iter().find(|thread| thread.tid == tid);
        let thread = thread.ok_or(Errno::ENOENT).map_err(in_openat)?;
        Ok(Self::write(&world.stat_text(process, thread, None), buffer))
    }

    fn read_part_link(
        &self,
        pid: u32,
        tid: Option<u32>,
        part: Part,
    ) -> Result<Vec<u8>, FailedCall> {
        let world = self.enter(Call::Part(pid, part)).map_err(in_readlinkat)?;
        let process = world.image_of(pid, tid).ok_or(Errno::ENOENT).map_err(in_readlinkat)?;
        if !process.is_own() {
            return Err(in_readlinkat(Errno::EACCES));
        }
        Ok(if part == Part::Executable { process.executable() } else { process.directory() })
    }

    fn open_part(
        &self,
        pid: u32,
        tid: Option<u32>,
        part: Part,
    ) -> Result<Self::PartFile, FailedCall> {
        let world = self.enter(Call::Part(pid, part)).map_err(in_openat)?;
        let (process, _) = world.tasks(pid, tid).ok_or(in_openat(Errno::ENOENT))?;
        let open = part != Part::Environment || process.is_own();
        // Without an image the file is there and empty.
        if world.image_of(pid, tid).is_some() && !open {
            return Err(in_openat(Errno::EACCES));
        }
        Ok((process.birth, pid, tid, part, process.image))
    }

    fn read_part(
        &self,
        &(birth, pid, tid, part, image): &Self::PartFile,
    ) -> Result<Option<Vec<u8>>, FailedCall> {
        let world = self.enter(Call::ReadPart(pid, part)).map_err(in_read)?;
        if world.endless.contains(&part) {
            return Ok(None);
        }
        let process = world.image_of(pid, tid).filter(|process| process.birth == birth);
        let mut text = match (part, process) {
            (Part::Environment, Some(process)) if process.image == image => process.environment(),
            (Part::Arguments, Some(process)) => process.arguments(),
            (Part::Arguments, None) if world.tasks(pid, tid).is_none() => {
                return Err(in_read(Errno::ESRCH));
            }
            _ => Vec::new(),
        };
        text.truncate(world.cut.get(&part).copied().unwrap_or(usize::MAX));
        Ok(Some(text))
    }

    fn has_byte(
        &self,
        &(birth, pid, tid, part, image): &Self::PartFile,
        place: u64,
    ) -> Result<bool, FailedCall> {
        assert_eq!(part, Part::Environment);
        let world = self.enter(Call::HasByte(pid)).map_err(in_read)?;
        let process = world.image_of(pid, tid);
        let process = process.filter(|process| (process.birth, process.image) == (birth, image));
        let there = process.map_or(0, |process| process.environment().len());
        let there = there.min(world.cut.get(&part).copied().unwrap_or(usize::MAX));
        Ok(usize::try_from(place).expect("a place") < there)
    }

    fn open_pidfd(&self, pid: u32) -> Result<(u32, u32), Errno> {
        let world = self.enter(Call::PidFd(pid))?;
        if world.no_pidfd {
            return Err(Errno(38)); // ENOSYS
        }
        let process = world.processes.get(&pid).ok_or(Errno::ESRCH)?;
        Ok((process.birth, pid))
    }

    fn pidfs_inode(&self, &(birth, _): &(u32, u32)) -> Option<u64> {
        self.world().history.get(&birth).and_then(|forms| forms.first()).map(Process::inode)
    }

    fn null_signal_pidfd(&self, &(birth, pid): &(u32, u32)) -> Result<(), Errno> {
        let world = self.enter(Call::PidFdSignal(pid))?;
        let alive = world.processes.values().any(|process| process.birth == birth);
        if alive { Ok(()) } else { Err(Errno::ESRCH) }
    }
}
