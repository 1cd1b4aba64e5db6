//! The commands of Windows processes: against the model of its kernel, and hostile and random bytes.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::as_conversions
)]

mod nt;

use nt::{
    Call, DIRECTORY, ENVIRONMENT, LINE, Model, OWN_PID, PARAMETERS, PARTIAL_COPY, PEB, PID, Phase,
    World, bytes_of, utf16, with, world, write_text,
};
use proc_safe_core::census::{Deadline, Selection, Visibility, take};
use proc_safe_core::command::{
    self, Described, DescribingHost as _, Keys, LONGEST, MOST_IN_CENSUS, WithCommands,
};
use proc_safe_core::error::{Code, Error, Reason, WindowsCode};
use proc_safe_core::facts::{Command, Snapshot, State};
use proc_safe_core::helpers::Gate;
use proc_safe_core::windows::list::Room;
use proc_safe_core::windows::parameters::{
    NATIVE, WOW64, parse_directory, parse_environment, parse_text,
};
use proc_safe_core::windows::process::ATTEMPTS;
use proc_safe_core::windows::{Access, Text, Windows};
use proptest::prelude::{ProptestConfig, any, prop, proptest};
use std::sync::atomic::{AtomicUsize, Ordering};

const BROKEN: WindowsCode = WindowsCode::Win32(1450); // ERROR_NO_SYSTEM_RESOURCES
const OPEN: Call = Call::Open(PID, Access::QueryAndRead);
const CLOSE: Call = Call::Close;

fn host(model: &Model) -> Windows<Model> {
    Windows::new(model.clone(), Box::leak(Box::new(Room::new())))
}

fn keys(names: &[&str]) -> Keys {
    names.iter().map(|name| name.as_bytes().to_vec()).collect()
}

fn read(model: &Model, names: &[&str]) -> Result<Option<Command>, Error> {
    host(model).describe_alone(PID, &keys(names))
}

fn command(model: &Model, names: &[&str]) -> Command {
    read(model, names).unwrap().unwrap()
}

/// As a census does it: the row, and then the command of that row.
fn described(model: &Model, row: Snapshot, names: &[&str]) -> Option<Described> {
    host(model).describe_row(row, &keys(names)).unwrap()
}

fn row(model: &Model) -> Snapshot {
    let selection = Selection::Pids(vec![PID]);
    take(&host(model), selection, Deadline::after(None)).unwrap().remove(0)
}

fn failing(calls: &[(Call, WindowsCode)]) -> Model {
    let mut world = world();
    world.fail.extend(calls.iter().copied());
    Model::new(world)
}

/// What the model shows of the process of one birth, with `Name` asked for.
fn of_birth(birth: u32) -> Command {
    let argument = format!("a{birth}").into_bytes();
    Command {
        executable: Some(format!(r"C:\b{birth}.exe").into_bytes()),
        arguments: vec![format!("b{birth}.exe").into_bytes(), argument, Vec::new()],
        line: Some(format!("\"b{birth}.exe\" a{birth} \"\"").into_bytes()),
        working_directory: Some(format!(r"C:\d{birth}").into_bytes()),
        environment: vec![(0, format!("b{birth}").into_bytes())],
    }
}

fn bare(birth: u32) -> Command {
    Command { environment: Vec::new(), ..of_birth(birth) }
}

// What is asked, and how often.

#[test]
fn six_calls_for_a_command_six_for_the_directory_two_for_variables() {
    let model = Model::new(world());
    assert_eq!(command(&model, &[]), bare(2));
    let told = [Call::Text(PID, Text::CommandLine), Call::Text(PID, Text::Win32Path)];
    let before = [&[OPEN, Call::Basic(PID), Call::Times(PID)], &told[..]].concat();
    let glimpse = [Call::Read(PID, PARAMETERS), Call::Read(PID, DIRECTORY)];
    let memory =
        [&[Call::Peb32(PID), Call::Read(PID, PEB + 0x20)], &glimpse[..], &glimpse].concat();
    assert_eq!(model.world().log, [&before[..], &memory, &[CLOSE]].concat());
    assert_eq!((before.len() + 1, memory.len()), (6, 6));

    let model = Model::new(world());
    assert_eq!(command(&model, &["Name"]), of_birth(2));
    assert_eq!(model.world().log.len(), 14);

    // The row of a census is not read again.
    let model = Model::new(world());
    let row = row(&model);
    model.world().log.clear();
    let (same, command) = described(&model, row.clone(), &[]).unwrap();
    assert_eq!((same, command), (row, Ok(Some(bare(2)))));
    assert_eq!(model.world().log.len(), 12);
}

#[test]
fn a_census_with_commands_asks_for_the_list_once() {
    static LISTS: AtomicUsize = AtomicUsize::new(0);
    static GATE: Gate = Gate::new(1);
    // The helper sees the same world through a host of its own.
    let counted = || {
        let count = |_: &mut World, _, call| {
            if call == Call::Query {
                LISTS.fetch_add(1, Ordering::Relaxed);
            }
        };
        Model::scripted(world(), count)
    };
    let ours = host(&counted());
    let open = move || Ok(host(&counted()));
    let host = WithCommands::new(&ours, &GATE, keys(&["Name"]), MOST_IN_CENSUS, open);
    let rows = take(&host, Selection::All(Visibility::All), Deadline::after(None)).unwrap();
    let commands = rows.into_iter().map(|row| *row.command.unwrap());
    assert!(commands.eq([Command::default(), of_birth(1), of_birth(2)]));
    assert_eq!(LISTS.load(Ordering::Relaxed), 1);
}

#[test]
fn a_system_without_the_question_after_a_line_has_it_in_memory() {
    let mut world = world();
    world.is_old = true;
    let model = Model::new(world);
    assert_eq!(command(&model, &["Name"]), of_birth(2));
    assert_eq!(model.calls(|call| call == Call::Read(PID, LINE)), 2);
    // Then its refusal is a refusal of the command.
    model.world().change(PID, |process| process.read_refused = true);
    assert_eq!(read(&model, &[]).unwrap_err().code(), Code::AccessDenied);
}

#[test]
fn every_handle_is_closed() {
    for (call, code) in [
        (Call::Basic(PID), BROKEN),
        (Call::Times(PID), BROKEN),
        (Call::Text(PID, Text::CommandLine), BROKEN),
        (Call::Peb32(PID), BROKEN),
        (Call::Read(PID, ENVIRONMENT), PARTIAL_COPY),
    ] {
        let model = failing(&[(call, code)]);
        read(&model, &["Name"]).unwrap_err();
        assert_eq!(model.calls(|call| call == CLOSE), 1, "{call:?}");
        assert_eq!(model.world().find(PID).unwrap().handles, 0);
    }
}

// What memory says.

#[test]
fn a_32_bit_process_is_asked_for_the_parameters_that_it_uses() {
    for is_old in [false, true] {
        let mut world = with(|process| process.image.wow64 = true);
        world.is_old = is_old;
        assert_eq!(command(&Model::new(world), &["Name"]), of_birth(2));
    }
}

#[test]
fn a_process_without_a_user_part_has_no_arguments_and_no_program() {
    let model = Model::new(with(|process| process.image.peb = false));
    assert_eq!(command(&model, &["Name"]), Command::default());
    assert_eq!(model.world().log.len(), 4);
}

#[test]
fn without_the_right_to_read_memory_line_and_program_are_told() {
    let model = Model::new(with(|process| process.read_refused = true));
    assert_eq!(command(&model, &[]), Command { working_directory: None, ..bare(2) });
    assert_eq!(model.world().log.len(), 7);
    // What may not be read must not read as not set.
    let error = read(&model, &["Name"]).unwrap_err();
    assert_eq!(error.code(), Code::AccessDenied);
    assert_eq!((error.pid(), error.syscall()), (Some(PID), Some("OpenProcess")));
    assert!(described(&model, row(&model), &["Name"]).unwrap().1.is_err());
}

#[test]
fn refused_is_not_gone_and_gone_is_not_refused() {
    let model = Model::new(with(|process| process.refused = true));
    assert_eq!(read(&model, &[]).unwrap_err().code(), Code::AccessDenied);
    let row = row(&model);
    let (same, command) = described(&model, row.clone(), &[]).unwrap();
    assert_eq!((same, command.unwrap_err().code()), (row, Code::AccessDenied));

    let mut world = world();
    world.end(PID);
    assert_eq!(read(&Model::new(world), &[]), Ok(None));
    for pid in [PID + 1, PID + 3, 8] {
        assert_eq!(host(&Model::new(self::world())).describe_alone(pid, &keys(&[])), Ok(None));
        let refusing = Model::new(with(|process| process.refused = true));
        assert_eq!(host(&refusing).describe_alone(pid, &keys(&["Name"])), Ok(None));
    }
}

#[test]
fn the_idle_process_is_the_kernels_and_never_opened() {
    let model = Model::new(world());
    assert_eq!(host(&model).describe_alone(0, &keys(&[])), Ok(Some(Command::default())));
    let row = Snapshot { parent_pid: Some(0), state: Some(State::Running), ..Snapshot::bare(0) };
    let described = host(&model).describe(0, &keys(&[])).unwrap().unwrap();
    assert_eq!(described, (row, Ok(Some(Command::default()))));
    assert_eq!(model.calls(|call| matches!(call, Call::Open(..))), 0);
    model.world().idle = false;
    assert_eq!(host(&model).describe_alone(0, &keys(&[])), Ok(None));
}

#[test]
fn an_exit_that_has_begun_or_begins_meanwhile_leaves_no_command() {
    for phase in [Phase::Ending, Phase::Ended] {
        let model = Model::new(with(|process| {
            process.handles = 1;
            process.phase = phase;
        }));
        assert_eq!(read(&model, &["Name"]), Ok(None));
        let (_, command) = host(&model).describe(PID, &keys(&[])).unwrap().unwrap();
        assert_eq!(command, Ok(None));
        // Also where nothing would fail.
        model.world().change(PID, |process| process.image.peb = false);
        assert_eq!(read(&model, &[]), Ok(None));
    }
    // Between any two calls. Whatever fails then is no refusal.
    for number in 0..14 {
        let model = Model::scripted(world(), move |world, now, _| {
            if now == number {
                world.change(PID, |process| process.phase = Phase::Ending);
            }
        });
        let found = read(&model, &["Name"]).unwrap();
        assert!(found.is_none() || found == Some(of_birth(2)), "{number}: {found:?}");
        assert_eq!(found.is_some(), number > 12, "{number}");
    }
}

#[test]
fn the_kernels_word_that_it_ends_is_enough() {
    let code = WindowsCode::PROCESS_IS_TERMINATING;
    let model = failing(&[(Call::Text(PID, Text::CommandLine), code)]);
    assert_eq!(read(&model, &[]), Ok(None));
}

#[test]
fn a_row_and_a_command_are_of_one_birth() {
    let model = Model::new(world());
    let row = row(&model);
    model.world().end(PID);
    model.world().spawn(PID, 8);
    let (again, command) = described(&model, row.clone(), &["Name"]).unwrap();
    assert_eq!(again, model.world().find(PID).unwrap().row());
    assert_eq!(command, Ok(Some(of_birth(3))));
    // Gone: there is no row.
    model.world().end(PID);
    assert!(described(&model, row.clone(), &[]).is_none());
    // Another at every look.
    let model = Model::scripted(world(), |world, _, call| {
        if call == OPEN {
            world.end(PID);
            world.spawn(PID, 8);
        }
    });
    let (bare, command) = described(&model, row, &[]).unwrap();
    assert_eq!((bare, command), (Snapshot::bare(PID), Err(Error::Unstable { pid: PID })));
    assert_eq!(model.calls(|call| call == OPEN), ATTEMPTS);
}

#[test]
fn a_program_on_a_volume_without_a_letter_has_the_path_of_the_kernel() {
    let not_found = WindowsCode::NtStatus(0xc000_003a); // STATUS_OBJECT_PATH_NOT_FOUND
    let model = failing(&[(Call::Text(PID, Text::Win32Path), not_found)]);
    let native = br"\Device\C:\b2.exe".to_vec();
    assert_eq!(command(&model, &[]), Command { executable: Some(native), ..bare(2) });
    let both = [Text::Win32Path, Text::NativePath].map(|text| (Call::Text(PID, text), BROKEN));
    assert_eq!(read(&failing(&both), &[]).unwrap_err().code(), Code::OperationFailed);
    let denied = WindowsCode::STATUS_ACCESS_DENIED;
    let model = failing(&[(Call::Text(PID, Text::Win32Path), denied)]);
    assert_eq!(command(&model, &[]), Command { executable: None, ..bare(2) });
    let model = Model::new(with(|process| process.image.program = Vec::new()));
    assert_eq!(command(&model, &[]).executable, None);
}

#[test]
fn memory_that_cannot_be_read_costs_the_directory_or_the_variables() {
    for part in [PEB + 0x20, PARAMETERS, DIRECTORY] {
        for code in [PARTIAL_COPY, WindowsCode::Win32(998), WindowsCode::ACCESS_DENIED] {
            let model = failing(&[(Call::Read(PID, part), code)]);
            assert_eq!(command(&model, &[]), Command { working_directory: None, ..bare(2) });
            assert!(read(&model, &["Name"]).is_err());
        }
        // A failure that says nothing about the process is the call's.
        let error = read(&failing(&[(Call::Read(PID, part), BROKEN)]), &[]).unwrap_err();
        assert!(!command::is_of_the_process(&error), "{error:?}");
    }
    let model = failing(&[(Call::Read(PID, ENVIRONMENT), PARTIAL_COPY)]);
    assert_eq!(command(&model, &[]), bare(2));
    assert_eq!(read(&model, &["Name"]).unwrap_err().reason(), Some(Reason::CutShort));
    // No parameters yet.
    let model = Model::new(with(|process| process.image.parameters = false));
    assert_eq!(command(&model, &[]).working_directory, None);
    assert_eq!(read(&model, &["Name"]).unwrap_err().reason(), Some(Reason::CutShort));
    // A line that the kernel cannot read there.
    for code in [0x8000_000d, 0xc000_0005, 0xc000_0225] {
        let code = WindowsCode::NtStatus(code);
        let model = failing(&[(Call::Text(PID, Text::CommandLine), code)]);
        assert_eq!(read(&model, &[]).unwrap_err().reason(), Some(Reason::CutShort));
    }
}

#[test]
fn an_environment_is_bounded_and_has_an_end() {
    let padded = |bytes: usize| {
        Model::new(with(|process| {
            let name = utf16("Name=b2\0P=");
            process.image.environment = name.clone();
            let fill = bytes / 2 - 2 - name.len();
            process.image.environment.extend(std::iter::repeat_n(0x70, fill));
            process.image.environment.push(0);
        }))
    };
    assert_eq!(command(&padded(LONGEST), &["Name"]), of_birth(2));
    let long = padded(LONGEST + 2);
    assert_eq!(read(&long, &["Name"]).unwrap_err().reason(), Some(Reason::TooLong));
    assert_eq!(command(&long, &[]), bare(2));
    let endless = Model::new(with(|process| process.image.environment = utf16("Name=b2")));
    assert_eq!(read(&endless, &["Name"]).unwrap_err().reason(), Some(Reason::CutShort));
}

#[test]
fn what_is_written_while_it_is_read_is_read_again() {
    // The directory and its length change in two steps, and the glimpse between them is of neither.
    let model = Model::scripted(world(), |world, number, call| {
        let directory = match number {
            8 => r"C:\torn\d",
            9 => r"C:\new\",
            _ => return,
        };
        assert!(matches!(call, Call::Read(..)));
        world.change(PID, |process| process.image.directory = utf16(directory));
    });
    assert_eq!(command(&model, &[]).working_directory, Some(br"C:\new".to_vec()));
    // One that writes without end is given up.
    let model = Model::scripted(world(), |world, number, _| {
        world.change(PID, |process| {
            process.image.environment = utf16(&format!("Name={number:09}\0"))
        });
    });
    assert_eq!(read(&model, &["Name"]), Err(Error::Unstable { pid: PID }));
    assert_eq!(command(&model, &[]), bare(2));
}

#[test]
fn the_longest_line_and_an_empty_one() {
    let set = |line: Vec<u16>| Model::new(with(|process| process.image.line = line));
    let longest = std::iter::repeat_n(0x61, 32_767).collect();
    assert_eq!(command(&set(longest), &[]).arguments, [vec![b'a'; 32_767]]);
    let empty = command(&set(Vec::new()), &[]);
    assert_eq!((empty.line, empty.arguments), (Some(Vec::new()), Vec::new()));
    let odd = command(&set(vec![0x70, 0x20, 0xd800, 0xe4]), &[]);
    assert_eq!(odd.arguments, ["p".as_bytes(), "\u{fffd}ä".as_bytes()]);
}

#[test]
fn a_call_that_fails_is_no_fact() {
    for call in [OPEN, Call::Basic(PID), Call::Times(PID), Call::Text(PID, Text::CommandLine)] {
        let error = read(&failing(&[(call, BROKEN)]), &[]).unwrap_err();
        assert_eq!((error.code(), error.system()), (Code::OperationFailed, None), "{call:?}");
    }
}

// The bytes.

const AT: u64 = 0x7ff0_0000_1000;

#[test]
fn a_text_stands_behind_its_head() {
    let answer = write_text(&utf16("ab"), AT);
    assert_eq!(parse_text(&answer, AT), Some(utf16("ab")));
    assert_eq!(parse_text(&write_text(&[], AT), AT), Some(Vec::new()));
    for cut in 0..20 {
        assert_eq!(parse_text(&answer[..cut], AT), None, "cut at {cut}");
    }
    for address in [AT - 1, AT + 1, AT + 15, AT + 20, u64::MAX, 0] {
        let mut hostile = answer.clone();
        hostile[8..16].copy_from_slice(&address.to_le_bytes());
        assert_eq!(parse_text(&hostile, AT), None, "{address:#x}");
    }
    for length in [3_u16, 5, 0xffff] {
        let mut hostile = answer.clone();
        hostile[..2].copy_from_slice(&length.to_le_bytes());
        assert_eq!(parse_text(&hostile, AT), None, "{length}");
    }
}

#[test]
fn a_pointer_at_nothing_is_no_place() {
    for layout in [NATIVE, WOW64] {
        assert_eq!(layout.parameters(&[0; 8]), None);
        assert_eq!(layout.parameters(&[0x10]), None);
        assert_eq!(layout.parameters(&0x10_u64.to_le_bytes()).unwrap().address, 0x10);
        assert_eq!(layout.pointer(u64::MAX - 1), None);
    }
}

#[test]
fn a_directory_ends_as_getcurrentdirectory_says_it() {
    let parse =
        |text: &str| parse_directory(&utf16(text)).map(|path| String::from_utf8(path).unwrap());
    assert_eq!(parse(r"C:\a\").unwrap(), r"C:\a");
    assert_eq!(parse(r"C:\").unwrap(), r"C:\");
    assert_eq!(parse(r"\\s\t\").unwrap(), r"\\s\t");
    assert_eq!(parse(r"C:\ä").unwrap(), r"C:\ä");
    assert_eq!([parse(""), parse("a\0b"), parse(r"\")], [None, None, None]);
}

#[test]
fn names_of_variables_have_no_case() {
    let block =
        bytes_of(&utf16("=C:=x\0Path=1=2\0PATH=3\0pat=4\0äÖ=5\0ıs=6\0odd\0empty=\0\0x=7\0"));
    let asked = ["PATH", "path", "Äö", "IS", "EMPTY", "odd", "x", "C:", "ſ"];
    let found = parse_environment(&block, &keys(&asked)).unwrap();
    let found: Vec<_> = found
        .into_iter()
        .map(|(at, value)| (asked[at], String::from_utf8(value).unwrap()))
        .collect();
    let wanted = [("PATH", "1=2"), ("path", "1=2"), ("Äö", "5"), ("EMPTY", "")];
    assert_eq!(found, wanted.map(|(key, value)| (key, value.to_owned())));
    for empty in ["\0", "\0\0"] {
        assert_eq!(parse_environment(&bytes_of(&utf16(empty)), &keys(&asked)), Some(Vec::new()));
    }
    for endless in ["", "a=b", "a=b\0"] {
        assert_eq!(parse_environment(&bytes_of(&utf16(endless)), &keys(&asked)), None);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROC_SAFE_MODEL_CASES").map_or(5_000, |cases| cases.parse().unwrap()),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_bytes_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..1200),
        address in any::<u64>(),
        offset in 0..2000_u64,
    ) {
        let _ = parse_text(&bytes, address);
        let _ = parse_environment(&bytes, &keys(&["A"]));
        let mut near = bytes.clone();
        if near.len() > 16 {
            near[8..16].copy_from_slice(&AT.wrapping_add(offset).to_le_bytes());
        }
        if let Some(text) = parse_text(&near, AT) {
            assert!(text.len() * 2 + 16 <= near.len() || text.is_empty());
        }
        for layout in [NATIVE, WOW64] {
            let _ = layout.pointer(address);
            let _ = layout.parameters(&bytes);
            let _ = layout.parse(&bytes);
        }
    }

    /// Pids change hands, exits begin and rights go at any call; what is told is of one birth that was there.
    #[test]
    fn no_interleaving_mixes_commands(
        during in prop::collection::vec(any::<u8>(), 0..60),
        is_old in any::<bool>(),
        wow64 in any::<bool>(),
        alone in any::<bool>(),
    ) {
        let mut world = with(|process| process.image.wow64 = wow64);
        world.is_old = is_old;
        let model = Model::scripted(world, move |world, number, _| {
            happen(world, during.get(number).copied().unwrap_or(255));
        });
        let rows = take(&host(&model), Selection::All(Visibility::All), Deadline::after(None)).unwrap();
        let row = rows.into_iter().find(|row| row.pid == PID);
        let (row, command) = if alone {
            (None, read(&model, &["Name"]))
        } else {
            let Some(row) = row else { return Ok(()) };
            match described(&model, row, &["Name"]) {
                None => return Ok(()),
                Some((row, command)) => (Some(row), command),
            }
        };
        let world = model.world();
        match command {
            Ok(Some(found)) => {
                let birth = (1..=world.births).find(|&birth| found == of_birth(birth)).expect("of one birth");
                if let Some(identity) = row.and_then(|row| row.identity) {
                    assert_eq!(identity, world.history[&birth][0].row().identity.unwrap());
                }
            }
            Ok(None) => {
                let whole = world.births == 2 && world.history[&2].iter().all(|it| it.phase == Phase::Live);
                assert!(!whole, "it was there all the while");
            }
            Err(error) => {
                assert!(command::is_of_the_process(&error), "{error:?}");
                let refused = world.history.values().flatten().any(|it| it.refused || it.read_refused);
                assert!(refused || error.code() == Code::Incomplete, "{error:?}");
            }
        }
    }
}

fn happen(world: &mut World, dice: u8) {
    let there = world.find(PID).is_some();
    match dice & 31 {
        0..=2 if !there => drop(world.spawn(PID, OWN_PID)),
        _ if !there => {}
        3 => world.end(PID),
        4 => {
            world.end(PID);
            if world.find(PID).is_none() {
                world.spawn(PID, 8);
            }
        }
        5 => world.change(PID, |process| process.phase = process.phase.max(Phase::Ending)),
        6 => world.change(PID, |process| process.refused = true),
        7 => world.change(PID, |process| process.read_refused = true),
        _ => {}
    }
}
