//! A model of the Windows kernel as far as the census asks it: objects that handles keep, pids that come
//! again, a list that leaves out whoever is ending. It may change before any call.
#![allow(dead_code)] // each test program uses a part

use proc_safe_core::error::{FailedRead, WindowsCode};
use proc_safe_core::facts::{Owner, Snapshot, State};
use proc_safe_core::windows::record::{HEAD, THREAD, micros_since_epoch};
use proc_safe_core::windows::{Access, Basic, Kernel, Text, Times};
use std::cell::{RefCell, RefMut};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

pub const OWN_PID: u32 = 100;
/// The process that most tests are about, a child of the caller's.
pub const PID: u32 = 300;
pub const OWN_USER: u8 = 1;
pub const EPOCH: i64 = 134_000_000_000_000_000;
pub const RUNNING: (u32, u32) = (2, 0);
pub const WAITING: (u32, u32) = (5, 6);
pub const SUSPENDED: (u32, u32) = (5, 5);

/// How far a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    Live,
    /// Its last thread is ending: no longer listed, not signalled.
    Ending,
    /// Signalled; there as long as somebody has a handle.
    Ended,
}

/// A process object.
#[derive(Clone, Debug)]
pub struct Process {
    pub birth: u32,
    pub pid: u32,
    pub parent: u32,
    pub user: u8,
    pub threads: Vec<(u32, u32)>,
    pub phase: Phase,
    /// Of others.
    pub handles: u32,
    pub refused: bool,
    pub wait_refused: bool,
    pub read_refused: bool,
    pub created: i64,
    pub image: Image,
}

/// What a process was started with, and where that stands in its memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    pub line: Vec<u16>,
    pub program: Vec<u16>,
    pub directory: Vec<u16>,
    /// Strings, without the end.
    pub environment: Vec<u16>,
    /// Of 32 bits.
    pub wow64: bool,
    /// Whether there is a user part.
    pub peb: bool,
    /// Whether the PEB points at parameters yet.
    pub parameters: bool,
}

pub const PEB: u64 = 0x7_0000_1000;
pub const PEB32: u64 = 0x5000;
pub const PARAMETERS: u64 = 0x2_0000;
pub const DIRECTORY: u64 = 0x3_0000;
pub const LINE: u64 = 0x4_0000;
pub const ENVIRONMENT: u64 = 0x10_0000;

pub fn utf16(text: &str) -> Vec<u16> {
    text.encode_utf16().collect()
}

pub fn bytes_of(units: &[u16]) -> Vec<u8> {
    units.iter().flat_map(|unit| unit.to_le_bytes()).collect()
}

impl Image {
    pub fn of(birth: u32) -> Self {
        Self {
            line: utf16(&format!("\"b{birth}.exe\" a{birth} \"\"")),
            program: utf16(&format!(r"C:\b{birth}.exe")),
            directory: utf16(&format!(r"C:\d{birth}\")),
            environment: utf16(&format!("=C:=C:\\\0Name=b{birth}\0PATH=p\0")),
            wow64: false,
            peb: true,
            parameters: true,
        }
    }

    /// The parts of its memory. What a 32-bit process keeps in the 64-bit parameters is old.
    pub fn memory(&self) -> Vec<(u64, Vec<u8>)> {
        let environment = [&self.environment[..], &[0]].concat();
        let texts = [&self.directory, &self.line, &environment].map(|text| bytes_of(text));
        let mut parts = if self.wow64 {
            let old = b"\xff\xff".repeat(0x200);
            vec![
                (PEB, vec![0xff; 0x400]),
                (PARAMETERS + 0x8000, old),
                (PEB32, write_pointer(self.parameters, 0x10, 4)),
                (PARAMETERS, write_parameters([0x24, 0x40, 0x48, 0x290], 4, &texts)),
            ]
        } else {
            vec![
                (PEB, write_pointer(self.parameters, 0x20, 8)),
                (PARAMETERS, write_parameters([0x38, 0x70, 0x80, 0x3f0], 8, &texts)),
            ]
        };
        parts.extend([DIRECTORY, LINE, ENVIRONMENT].into_iter().zip(texts));
        parts
    }
}

fn write_pointer(there: bool, at: usize, width: usize) -> Vec<u8> {
    let mut peb = vec![0xee; at];
    peb.extend(&(if there { PARAMETERS } else { 0 }).to_le_bytes()[..width]);
    peb.extend([0xee; 0x100]);
    peb
}

fn write_parameters(offsets: [usize; 4], width: usize, texts: &[Vec<u8>; 3]) -> Vec<u8> {
    let mut parameters = vec![0xee; offsets[3] + 0x40];
    let mut put = |at: usize, value: u64, size: usize| {
        parameters[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
    };
    for (at, address, text) in [(offsets[0], DIRECTORY, &texts[0]), (offsets[1], LINE, &texts[1])] {
        put(at, text.len() as u64, 2);
        put(at + 2, text.len() as u64 + 2, 2);
        put(at + width, address, width);
    }
    put(offsets[2], ENVIRONMENT, width);
    put(offsets[3], texts[2].len() as u64, width);
    parameters
}

impl Process {
    pub fn name(&self) -> String {
        format!("b{}.exe", self.birth)
    }

    fn is_object(&self) -> bool {
        self.phase < Phase::Ended || self.handles > 0
    }

    /// The row of one that is listed and may be opened.
    pub fn row(&self) -> Snapshot {
        let suspended = self.threads.iter().all(|&thread| thread == SUSPENDED);
        Snapshot {
            owner: if self.user == OWN_USER { Owner::Same } else { Owner::Different },
            parent_pid: Some(self.parent),
            name: Some(self.name().as_bytes().into()),
            state: Some(if suspended { State::Stopped } else { State::Running }),
            identity: Some(proc_safe_core::facts::Identity {
                pid: self.pid,
                parent_pid: self.parent,
                start_time_micros: micros_since_epoch(self.created).unwrap(),
                start_time_since_boot_micros: None,
                unique_id: None,
                exited: false,
            }),
            ..Snapshot::bare(self.pid)
        }
    }
}

/// A call, by the pid of the handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    Query,
    Open(u32, Access),
    Times(u32),
    Basic(u32),
    Text(u32, Text),
    Peb32(u32),
    Read(u32, u64),
    Wait(u32),
    Token(Option<u32>),
    User,
    Close,
}

/// What runs before each call, with its number.
pub type Script = dyn Fn(&mut World, usize, Call);

#[derive(Default)]
pub struct World {
    pub objects: BTreeMap<u32, Process>,
    /// Every form that each birth had.
    pub history: BTreeMap<u32, Vec<Process>>,
    pub births: u32,
    pub log: Vec<Call>,
    pub fail: HashMap<Call, WindowsCode>,
    /// The list is in this order of births reversed, and holds these bytes more.
    pub padding: usize,
    pub idle: bool,
    /// Listed once more as it was: it ended while the list was made.
    pub ghost: Option<Process>,
    /// Bytes that the kernel says it needs; 0 says nothing.
    pub says_needed: Option<usize>,
    pub largest_buffer: usize,
    /// Whether there is no question after a command line.
    pub is_old: bool,
}

impl World {
    pub fn new() -> Self {
        let mut world = Self { idle: true, ..Self::default() };
        world.spawn(OWN_PID, 8);
        world
    }

    pub fn spawn(&mut self, pid: u32, parent: u32) -> u32 {
        assert!(self.find(pid).is_none(), "pid {pid} is taken");
        self.births += 1;
        let birth = self.births;
        let process = Process {
            birth,
            pid,
            parent,
            user: if pid == OWN_PID || birth.is_multiple_of(2) { OWN_USER } else { 2 },
            threads: vec![WAITING, SUSPENDED],
            phase: Phase::Live,
            handles: 0,
            refused: false,
            wait_refused: false,
            read_refused: false,
            image: Image::of(birth),
            created: EPOCH + i64::from(birth) * 10,
        };
        self.objects.insert(birth, process);
        self.record(birth);
        birth
    }

    pub fn find(&self, pid: u32) -> Option<&Process> {
        self.objects.values().find(|process| process.pid == pid)
    }

    pub fn change(&mut self, pid: u32, change: impl FnOnce(&mut Process)) {
        let birth = self.find(pid).unwrap().birth;
        change(self.objects.get_mut(&birth).unwrap());
        self.record(birth);
        self.objects.retain(|_, process| process.is_object());
    }

    /// Its last thread ends, and the object with the last handle.
    pub fn end(&mut self, pid: u32) {
        self.change(pid, |process| process.phase = Phase::Ended);
    }

    fn record(&mut self, birth: u32) {
        let process = self.objects[&birth].clone();
        self.history.entry(birth).or_default().push(process);
    }

    fn listed(&self) -> Vec<Process> {
        let mut listed: Vec<_> =
            self.objects.values().filter(|it| it.phase == Phase::Live).cloned().collect();
        listed.reverse();
        listed.extend(self.ghost.clone());
        listed
    }
}

/// The kernel, whose handles keep its objects.
#[derive(Clone)]
pub struct Model {
    world: Rc<RefCell<World>>,
    script: Rc<Script>,
}

impl Model {
    pub fn new(world: World) -> Self {
        Self::scripted(world, |_, _, _| {})
    }

    pub fn scripted(world: World, script: impl Fn(&mut World, usize, Call) + 'static) -> Self {
        Self { world: Rc::new(RefCell::new(world)), script: Rc::new(script) }
    }

    pub fn world(&self) -> RefMut<'_, World> {
        self.world.borrow_mut()
    }

    pub fn calls(&self, wanted: impl Fn(Call) -> bool) -> usize {
        self.world().log.iter().filter(|&&call| wanted(call)).count()
    }

    fn begin(&self, call: Call) -> Result<RefMut<'_, World>, WindowsCode> {
        let mut world = self.world();
        let number = world.log.len();
        (self.script)(&mut world, number, call);
        world.log.push(call);
        match world.fail.get(&call) {
            Some(&code) => Err(code),
            None => Ok(world),
        }
    }

    fn token(&self, pid: Option<u32>, user: u8) -> Handle {
        Handle {
            model: self.clone(),
            birth: None,
            pid: pid.unwrap_or(OWN_PID),
            user,
            may_read: false,
        }
    }
}

/// Of a process or a token.
pub struct Handle {
    model: Model,
    birth: Option<u32>,
    pid: u32,
    user: u8,
    may_read: bool,
}

impl Handle {
    fn process(&self, world: &World) -> Process {
        world.objects[&self.birth.unwrap()].clone()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let mut world = self.model.world();
        world.log.push(Call::Close);
        if self.birth.is_some() {
            world.change(self.pid, |process| process.handles -= 1);
        }
    }
}

fn failed(syscall: &'static str) -> impl Fn(WindowsCode) -> FailedRead {
    move |code| FailedRead { syscall, code }
}

impl Kernel for Model {
    type Process = Handle;
    type Token = Handle;

    fn own_pid(&self) -> u32 {
        OWN_PID
    }

    fn query_processes(&self, buffer: &mut [u8]) -> Result<usize, (WindowsCode, usize)> {
        let mut world = self.begin(Call::Query).map_err(|code| (code, 0))?;
        world.largest_buffer = world.largest_buffer.max(buffer.len());
        assert_eq!(buffer.as_ptr().addr() % 8, 0);
        let address = buffer.as_ptr().addr() as u64;
        let list = write_list(&world.listed(), world.idle, address);
        let needed = list.len() + world.padding;
        if needed > buffer.len() {
            let says = world.says_needed.unwrap_or(needed);
            return Err((WindowsCode::INFO_LENGTH_MISMATCH, says));
        }
        buffer[..list.len()].copy_from_slice(&list);
        buffer[list.len()..needed].fill(0xee);
        Ok(needed)
    }

    fn open(&self, pid: u32, access: Access) -> Result<Handle, FailedRead> {
        let failed = failed("OpenProcess");
        let mut world = self.begin(Call::Open(pid, access)).map_err(&failed)?;
        let found = world.find(pid & !3).cloned().filter(|_| pid != 0);
        let process = found.ok_or(failed(WindowsCode::INVALID_PARAMETER))?;
        let refused = match access {
            Access::Query => false,
            Access::QueryAndWait => process.wait_refused,
            Access::QueryAndRead => process.read_refused,
        };
        if process.refused || refused {
            return Err(failed(WindowsCode::ACCESS_DENIED));
        }
        world.change(process.pid, |process| process.handles += 1);
        drop(world);
        Ok(Handle {
            model: self.clone(),
            birth: Some(process.birth),
            pid: process.pid,
            user: process.user,
            may_read: access == Access::QueryAndRead,
        })
    }

    fn times(&self, process: &Handle) -> Result<Times, FailedRead> {
        let world = self.begin(Call::Times(process.pid)).map_err(failed("GetProcessTimes"))?;
        let Process { created, phase, .. } = process.process(&world);
        let exited = if phase == Phase::Live { 0 } else { created + 1000 };
        Ok(Times { created, exited })
    }

    fn basic(&self, process: &Handle) -> Result<Basic, FailedRead> {
        let world =
            self.begin(Call::Basic(process.pid)).map_err(failed("NtQueryInformationProcess"))?;
        let Process { pid, parent, image, .. } = process.process(&world);
        let peb = if image.peb { PEB } else { 0 };
        Ok(Basic { peb, pid: pid.into(), parent_pid: parent.into() })
    }

    fn text(&self, process: &Handle, text: Text, answer: &mut [u8]) -> Result<usize, FailedRead> {
        let failed = failed("NtQueryInformationProcess");
        let world = self.begin(Call::Text(process.pid, text)).map_err(&failed)?;
        let Process { image, phase, .. } = process.process(&world);
        let units = match text {
            Text::CommandLine if world.is_old => {
                return Err(failed(WindowsCode::INVALID_INFO_CLASS));
            }
            Text::CommandLine if phase > Phase::Live => {
                return Err(failed(WindowsCode::PROCESS_IS_TERMINATING));
            }
            Text::CommandLine => image.line,
            Text::Win32Path => image.program,
            Text::NativePath => [utf16(r"\Device\"), image.program].concat(),
        };
        assert_eq!(answer.as_ptr().addr() % 8, 0);
        let written = write_text(&units, answer.as_ptr().addr() as u64);
        answer[..written.len()].copy_from_slice(&written);
        Ok(written.len())
    }

    fn peb32(&self, process: &Handle) -> Result<u64, FailedRead> {
        let failed = failed("NtQueryInformationProcess");
        let world = self.begin(Call::Peb32(process.pid)).map_err(failed)?;
        Ok(if process.process(&world).image.wow64 { PEB32 } else { 0 })
    }

    fn read_memory(
        &self,
        process: &Handle,
        address: u64,
        into: &mut [u8],
    ) -> Result<(), FailedRead> {
        let failed = failed("ReadProcessMemory");
        let world = self.begin(Call::Read(process.pid, address)).map_err(&failed)?;
        let Process { image, phase, .. } = process.process(&world);
        if !process.may_read || phase > Phase::Live {
            return Err(failed(WindowsCode::ACCESS_DENIED));
        }
        let parts = image.memory();
        let found = parts.iter().find_map(|(start, part)| {
            let from = usize::try_from(address.checked_sub(*start)?).ok()?;
            part.get(from..from.checked_add(into.len())?)
        });
        into.copy_from_slice(found.ok_or(failed(PARTIAL_COPY))?);
        Ok(())
    }

    fn has_ended(&self, process: &Handle) -> Result<bool, FailedRead> {
        let world = self.begin(Call::Wait(process.pid)).map_err(failed("WaitForSingleObject"))?;
        Ok(process.process(&world).phase == Phase::Ended)
    }

    fn open_token(&self, process: Option<&Handle>) -> Result<Handle, FailedRead> {
        let pid = process.map(|process| process.pid);
        drop(self.begin(Call::Token(pid)).map_err(failed("OpenProcessToken"))?);
        Ok(self.token(pid, process.map_or(OWN_USER, |process| process.user)))
    }

    fn token_user(&self, token: &Handle, answer: &mut [u8]) -> Result<usize, FailedRead> {
        drop(self.begin(Call::User).map_err(failed("GetTokenInformation"))?);
        assert_eq!(answer.as_ptr().addr() % 8, 0);
        let address = answer.as_ptr().addr() as u64;
        let user = write_user(token.user, address);
        answer[..user.len()].copy_from_slice(&user);
        Ok(user.len())
    }
}

/// `ERROR_PARTIAL_COPY`.
pub const PARTIAL_COPY: WindowsCode = WindowsCode::Win32(299);

/// A `UNICODE_STRING` and its text, as at `address`.
pub fn write_text(units: &[u16], address: u64) -> Vec<u8> {
    let length = u16::try_from(units.len() * 2).unwrap();
    let mut answer = [length.to_le_bytes(), (length.saturating_add(2)).to_le_bytes()].concat();
    answer.extend([0; 4]);
    answer.extend((address + 16).to_le_bytes());
    answer.extend(bytes_of(units));
    answer.extend([0; 2]);
    answer
}

/// `TOKEN_USER` of S-1-5-21-`user`, as at `address`.
pub fn write_user(user: u8, address: u64) -> Vec<u8> {
    let mut answer = (address + 16).to_le_bytes().to_vec();
    answer.extend([0; 8]);
    answer.extend([1, 2, 0, 0, 0, 0, 0, 5, 21, 0, 0, 0, user, 0, 0, 0]);
    answer
}

/// `SYSTEM_PROCESS_INFORMATION` of the processes, as at `address`.
pub fn write_list(processes: &[Process], idle: bool, address: u64) -> Vec<u8> {
    let mut list = Vec::new();
    let mut last = 0;
    if idle {
        list.extend(write_record(0, 0, 0, &[RUNNING], None, address));
    }
    for process in processes {
        let at = list.len();
        if at > 0 {
            let offset = u32::try_from(at - last).unwrap();
            list[last..last + 4].copy_from_slice(&offset.to_le_bytes());
        }
        last = at;
        let Process { pid, parent, created, ref threads, .. } = *process;
        let name: Vec<u16> = process.name().encode_utf16().collect();
        let here = address + at as u64;
        list.extend(write_record(pid, parent, created, threads, Some(&name), here));
    }
    list
}

/// One record without a next.
pub fn write_record(
    pid: u32,
    parent: u32,
    created: i64,
    threads: &[(u32, u32)],
    name: Option<&[u16]>,
    address: u64,
) -> Vec<u8> {
    let mut record = vec![0; HEAD + THREAD * threads.len()];
    let mut put = |at: usize, bytes: &[u8]| record[at..at + bytes.len()].copy_from_slice(bytes);
    put(0x04, &u32::try_from(threads.len()).unwrap().to_le_bytes());
    put(0x20, &created.to_le_bytes());
    put(0x50, &u64::from(pid).to_le_bytes());
    put(0x58, &u64::from(parent).to_le_bytes());
    for (index, (state, reason)) in threads.iter().enumerate() {
        put(HEAD + THREAD * index + 0x44, &state.to_le_bytes());
        put(HEAD + THREAD * index + 0x48, &reason.to_le_bytes());
    }
    if let Some(name) = name {
        let length = u16::try_from(name.len() * 2).unwrap();
        let end = (HEAD + THREAD * threads.len()) as u64;
        put(0x38, &length.to_le_bytes());
        put(0x3a, &(length + 2).to_le_bytes());
        put(0x40, &(address + end).to_le_bytes());
        record.extend(name.iter().flat_map(|unit| unit.to_le_bytes()));
        record.extend([0; 2]);
        record.resize(record.len().next_multiple_of(8), 0);
    }
    record
}

/// A world with it.
pub fn world() -> World {
    let mut world = World::new();
    world.spawn(PID, OWN_PID);
    world
}

/// The same where it is as a test wants it.
pub fn with(change: impl FnOnce(&mut Process)) -> World {
    let mut world = world();
    world.change(PID, change);
    world
}
