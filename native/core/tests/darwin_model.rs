//! The Darwin census against a model of XNU: each line of the table, and random interleavings.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod xnu;

use proc_safe_core::census::{Deadline, Host as _, Selection, Visibility, take};
use proc_safe_core::command::{self, Described, DescribingHost as _, MOST_IN_CENSUS, WithCommands};
use proc_safe_core::darwin::Darwin;
use proc_safe_core::darwin::command::ROOM;
use proc_safe_core::darwin::info::Flavor;
use proc_safe_core::darwin::record::{MOST_HELPERS, Record, RecordAnswer};
use proc_safe_core::error::{Code, Errno, Error, Reason};
use proc_safe_core::facts::{Command, Identity, Owner, Snapshot, State};
use proc_safe_core::helpers::Gate;
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop, prop_oneof, proptest};
use std::time::{Duration, Instant};
use xnu::{Call, Instead, Model, OWN_PID, OWN_UID, Phase, Process, World, birth, short, unique};

const PID: u32 = 300;
const ESRCH: Instead = Instead::Fail(Errno::ESRCH);
const EPERM: Instead = Instead::Fail(Errno::EPERM);
const EIO: Errno = Errno(5);

fn gate() -> &'static Gate {
    Box::leak(Box::new(Gate::new(MOST_HELPERS)))
}

fn census(model: &Model, selection: Selection) -> Result<Vec<Snapshot>, Error> {
    take(&Darwin::new(model.clone(), gate()), selection, Deadline::after(None))
}

fn full(model: &Model) -> Result<Vec<Snapshot>, Error> {
    census(model, Selection::All(Visibility::All))
}

fn selected(model: &Model, pid: u32) -> Result<Option<Snapshot>, Error> {
    census(model, Selection::Pids(vec![pid])).map(|mut rows| rows.pop())
}

fn row(model: &Model, pid: u32) -> Option<Snapshot> {
    selected(model, pid).unwrap()
}

fn identity(model: &Model, pid: u32) -> Result<Option<Identity>, Error> {
    Darwin::new(model.clone(), gate()).read_identity(pid)
}

/// A process of the caller's own user.
fn world_with(phase: Phase) -> World {
    let mut world = World::new();
    world.spawn(PID, OWN_PID);
    world.change(PID, |process| process.phase = phase);
    world
}

/// A process of another user.
fn foreign_world(phase: Phase) -> World {
    let mut world = World::new();
    world.spawn(PID - 1, OWN_PID);
    world.spawn(PID, OWN_PID);
    world.change(PID, |process| process.phase = phase);
    assert_ne!(world.processes[&PID].uid(), OWN_UID);
    world
}

/// Both.
const STARTS: [fn(Phase) -> World; 2] = [world_with, foreign_world];

fn instead(mut world: World, answers: &[(Call, Instead)]) -> Model {
    world.instead.extend(answers.iter().cloned());
    Model::new(world)
}

/// The row of a process as the model has it.
fn expected(process: &Process) -> Snapshot {
    let uid = process.uid();
    let zombie = process.phase == Phase::Zombie;
    Snapshot {
        pid: process.pid,
        owner: if uid == OWN_UID { Owner::Same } else { Owner::Different },
        parent_pid: Some(process.parent),
        process_group_id: Some(process.group()),
        session_id: None,
        uid: Some(uid),
        name: Some(process.name().as_bytes().into()),
        state: Some(match process.status() {
            5 => State::Zombie,
            4 => State::Stopped,
            _ => State::Running,
        }),
        exiting: process.phase >= Phase::ExitBegun && !zombie,
        identity: Some(Identity {
            pid: process.pid,
            parent_pid: process.parent,
            start_time_micros: process.start_micros(),
            start_time_since_boot_micros: None,
            unique_id: Some(process.birth.into()),
            exited: zombie,
        }),
        command: None,
    }
}

fn without_identity(row: Snapshot) -> Snapshot {
    Snapshot { identity: None, ..row }
}

fn without_unique_id(mut row: Snapshot) -> Snapshot {
    row.identity = row.identity.map(|identity| Identity { unique_id: None, ..identity });
    row
}

/// The row says what one birth in the history said at one instant.
fn assert_unmixed(world: &World, row: &Snapshot) {
    let Some(name) = row.name.as_deref() else {
        assert_eq!(row, &Snapshot::bare(row.pid));
        return;
    };
    let birth: u32 = std::str::from_utf8(&name[1..]).unwrap().parse().unwrap();
    let forms = &world.history[&birth];
    let like = |form: &Process| {
        let mut one = expected(form);
        // A parent that changes during the read is a fact of another instant than the state.
        one.parent_pid = row.parent_pid;
        one.identity = row.identity.map(|identity| Identity {
            parent_pid: identity.parent_pid,
            unique_id: identity.unique_id.and(Some(form.birth.into())),
            ..one.identity.unwrap()
        });
        &one == row
    };
    assert!(forms.iter().any(like), "{row:?} is none of {forms:?}");
    if let Some(parent) = row.parent_pid {
        assert!(forms.iter().any(|form| form.parent == parent), "{parent} was never its parent");
    }
    if let Some(identity) = row.identity {
        assert_eq!(row.parent_pid, Some(identity.parent_pid));
    }
}

// The table of darwin.md, line by line.

#[test]
fn a_process_that_libproc_has_is_described_by_it() {
    for world in [world_with(Phase::Live), foreign_world(Phase::Live)] {
        let process = world.processes[&PID].clone();
        let model = Model::new(world);
        assert_eq!(row(&model, PID), Some(expected(&process)));
        assert_eq!(identity(&model, PID).unwrap(), expected(&process).identity);
    }
}

#[test]
fn the_order_of_reads() {
    let log = |world: World| {
        let model = Model::new(world);
        row(&model, PID).unwrap();
        model.world().log.clone()
    };
    let (id, brief, record) = (unique(PID), short(PID), Call::Record(PID));
    assert_eq!(log(world_with(Phase::Live)), [id, brief, birth(PID), id]);
    assert_eq!(log(foreign_world(Phase::Live)), [id, brief, record, id]);
    assert_eq!(log(world_with(Phase::Exiting)), [id, brief, record, id]);
    assert_eq!(log(foreign_world(Phase::Zombie)), [id, brief, record, id]);
}

#[test]
fn exit_that_has_begun_is_said_while_libproc_still_has_the_process() {
    let world = world_with(Phase::ExitBegun);
    let process = world.processes[&PID].clone();
    let found = row(&Model::new(world), PID).unwrap();
    assert!(found.exiting);
    assert_eq!(found, expected(&process));
}

#[test]
fn the_exit_window_keeps_every_fact() {
    for stopped in [false, true] {
        for mut world in [world_with(Phase::Exiting), foreign_world(Phase::Exiting)] {
            world.change(PID, |process| process.stopped = stopped);
            let process = world.processes[&PID].clone();
            let model = Model::new(world);
            let found = row(&model, PID).unwrap();
            assert_eq!((found.exiting, found.identity.unwrap().exited), (true, false));
            assert_eq!(found, expected(&process));
            assert_eq!(full(&model).unwrap().last(), Some(&found));
            assert_eq!(identity(&model, PID).unwrap(), found.identity);
        }
    }
}

#[test]
fn a_zombie_keeps_every_fact_and_is_not_exiting() {
    for world in [world_with(Phase::Zombie), foreign_world(Phase::Zombie)] {
        let process = world.processes[&PID].clone();
        let model = Model::new(world);
        let found = row(&model, PID).unwrap();
        assert_eq!((found.state, found.exiting), (Some(State::Zombie), false));
        assert_eq!(found, expected(&process));
        assert_eq!(identity(&model, PID).unwrap(), found.identity);
    }
}

#[test]
fn a_record_that_does_not_explain_the_absence_is_tried_again_and_left_bare() {
    // libproc denies a process that the record calls running, and goes on to.
    let model = instead(world_with(Phase::Live), &[(short(PID), ESRCH)]);
    assert_eq!(row(&model, PID), Some(Snapshot::bare(PID)));
    let asked = model.world().log.iter().filter(|&&call| call == short(PID)).count();
    assert_eq!(asked, 2);
    // Its birth is in one kernel answer all the same.
    let process = model.world().processes[&PID].clone();
    assert_eq!(identity(&model, PID).unwrap(), expected(&process).identity);
    // A pid that changed hands between the two is described at the second try.
    let model = Model::scripted(world_with(Phase::Live), |world, number, call| match call {
        _ if call == short(PID) && number < 4 => world.reap(PID),
        Call::Record(PID) if number < 4 => drop(world.spawn(PID, OWN_PID)),
        _ => {}
    });
    assert_eq!(row(&model, PID), Some(expected(&model.world().processes[&PID])));
}

#[test]
fn a_refused_record_of_a_lost_process_is_an_error() {
    for errno in [Errno::EPERM, Errno::EACCES] {
        let world = world_with(Phase::Exiting);
        let model = instead(world, &[(Call::Record(PID), Instead::Fail(errno))]);
        for error in [
            selected(&model, PID).unwrap_err(),
            full(&model).unwrap_err(),
            identity(&model, PID).unwrap_err(),
        ] {
            assert_eq!(error.code(), Code::AccessDenied);
            assert_eq!((error.pid(), error.system()), (Some(PID), Some(("sysctl", errno))));
        }
    }
}

#[test]
fn a_refused_process_is_bare_and_its_record_is_not_asked_for() {
    for errno in [Errno::EPERM, Errno::EACCES] {
        for phase in [Phase::Live, Phase::Exiting, Phase::Zombie] {
            let no = Instead::Fail(errno);
            let denied = [(unique(PID), no.clone()), (short(PID), no.clone()), (birth(PID), no)];
            let model = instead(world_with(phase), &denied);
            assert_eq!(row(&model, PID), Some(Snapshot::bare(PID)));
            assert!(!model.world().log.contains(&Call::Record(PID)));
        }
    }
}

#[test]
fn every_other_errno_is_an_error() {
    let calls = [short(PID), birth(PID), unique(PID), Call::Record(PID)];
    for call in calls {
        // Of another user, or of the caller's, so that each call is made.
        let world =
            if call == birth(PID) { world_with(Phase::Live) } else { foreign_world(Phase::Live) };
        let model = instead(world, &[(call, Instead::Fail(EIO))]);
        for error in [selected(&model, PID).unwrap_err(), identity(&model, PID).unwrap_err()] {
            assert_eq!((error.code(), error.pid()), (Code::OperationFailed, Some(PID)), "{call:?}");
            assert_eq!(error.system().unwrap().1, EIO);
        }
    }
}

#[test]
fn an_answer_of_another_form_is_an_error() {
    let malformed = |model: &Model| {
        let error = selected(model, PID).unwrap_err();
        assert_eq!(error.code(), Code::OperationFailed);
        assert_eq!(error.reason(), Some(Reason::MalformedRecord));
    };
    for cut in [0, 1, 32, 63] {
        malformed(&instead(world_with(Phase::Live), &[(short(PID), Instead::Cut(cut))]));
        malformed(&instead(world_with(Phase::Live), &[(birth(PID), Instead::Cut(cut))]));
    }
    let other = Instead::Record(RecordAnswer::Malformed);
    malformed(&instead(world_with(Phase::Exiting), &[(Call::Record(PID), other)]));
    // An answer about another pid.
    let model = Model::scripted(world_with(Phase::Live), |world, _, call| {
        if call == short(PID) {
            world.change(PID, |process| process.pid = PID + 1);
            let stranger = world.processes.remove(&(PID + 1)).unwrap();
            world.processes.insert(PID, stranger);
        }
    });
    malformed(&model);
}

// What libproc and the record say of the unborn and the gone.

#[test]
fn gone_is_what_both_faces_of_the_kernel_say() {
    let mut world = world_with(Phase::Zombie);
    world.reap(PID);
    let model = Model::new(world);
    assert_eq!(row(&model, PID), None);
    assert_eq!(identity(&model, PID), Ok(None));
    let (id, record) = (unique(PID), Call::Record(PID));
    assert_eq!(model.world().log[..4], [id, short(PID), record, id]);
    // The number of an unfinished fork is nobody's.
    assert_eq!(row(&Model::new(world_with(Phase::Reserved)), PID), None);
}

#[test]
fn an_absent_record_alone_proves_nothing() {
    let absent = (Call::Record(PID), Instead::Record(RecordAnswer::Absent));
    // libproc has lost it, the record has none, and the unique id is still there.
    let model = instead(world_with(Phase::Exiting), std::slice::from_ref(&absent));
    assert_eq!(row(&model, PID), Some(Snapshot::bare(PID)));
    assert_eq!(identity(&model, PID), Err(Error::Unstable { pid: PID }));
    // Without unique ids the short record is asked among the dead.
    let model = instead(world_with(Phase::Exiting), &[absent.clone(), (unique(PID), EPERM)]);
    assert_eq!(row(&model, PID), Some(Snapshot::bare(PID)));
    assert!(model.world().log.contains(&Call::Info(PID, Flavor::Short, true)));
    model.world().reap(PID);
    assert_eq!(row(&model, PID), None);
    // A refusal is no absence.
    let dead = Call::Info(PID, Flavor::Short, true);
    let answers = [absent, (unique(PID), EPERM), (short(PID), ESRCH), (dead, EPERM)];
    assert_eq!(row(&instead(world_with(Phase::Live), &answers), PID), Some(Snapshot::bare(PID)));
}

#[test]
fn an_embryo_keeps_what_libproc_says_of_it() {
    let world = world_with(Phase::Embryo);
    let process = world.processes[&PID].clone();
    assert_eq!(row(&Model::new(world), PID), Some(expected(&process)));
    // The record, which has the birth of other users' processes, does not have embryos.
    let world = foreign_world(Phase::Embryo);
    let process = world.processes[&PID].clone();
    let model = Model::new(world);
    assert_eq!(row(&model, PID), Some(without_identity(expected(&process))));
    assert_eq!(identity(&model, PID), Err(Error::Unstable { pid: PID }));
    // A row has a moment for it too.
    let model = Model::scripted(foreign_world(Phase::Embryo), |world, number, _| {
        if number == 4 {
            world.enter_phase(PID, Phase::Live);
        }
    });
    assert_eq!(row(&model, PID), Some(expected(&model.world().processes[&PID])));
    // A single read waits for its birth.
    let model = Model::scripted(foreign_world(Phase::Embryo), |world, number, _| {
        if number == 9 {
            world.enter_phase(PID, Phase::Live);
        }
    });
    assert_eq!(identity(&model, PID).unwrap().unwrap().pid, PID);
}

#[test]
fn no_row_stands_for_a_process_that_was_gone_when_its_identity_was_read() {
    for phase in [Phase::Live, Phase::ExitBegun, Phase::Exiting, Phase::Zombie] {
        for world in STARTS {
            for at in 0..4 {
                let model = Model::scripted(world(phase), move |world, number, _| {
                    if number == at {
                        world.reap(PID);
                    }
                });
                assert_eq!(row(&model, PID), None, "{phase:?} reaped before read {at}");
                let model = Model::scripted(world(phase), move |world, number, _| {
                    if number == at {
                        world.reap(PID);
                    }
                });
                assert_eq!(identity(&model, PID), Ok(None), "{phase:?} reaped before read {at}");
            }
        }
    }
}

#[test]
fn a_pid_that_changes_hands_before_any_read_gives_the_row_of_its_holder() {
    for phase in [Phase::Live, Phase::ExitBegun, Phase::Exiting, Phase::Zombie] {
        for next in [Phase::Live, Phase::Exiting, Phase::Zombie] {
            for world in STARTS {
                for at in 0..4 {
                    let change = move |world: &mut World, number: usize, _: Call| {
                        if number == at {
                            world.recycle(PID);
                            world.enter_phase(PID, next);
                        }
                    };
                    let model = Model::scripted(world(phase), change);
                    let found = row(&model, PID).unwrap();
                    let holder = model.world().processes[&PID].clone();
                    assert_eq!(found, expected(&holder), "{phase:?} to {next:?} before read {at}");
                    let model = Model::scripted(world(phase), change);
                    assert_eq!(identity(&model, PID).unwrap(), expected(&holder).identity);
                }
            }
        }
    }
}

#[test]
fn a_process_that_dies_before_any_read_keeps_every_fact() {
    for phase in [Phase::ExitBegun, Phase::Exiting, Phase::Zombie] {
        for world in STARTS {
            for at in 0..4 {
                let model = Model::scripted(world(Phase::Live), move |world, number, _| {
                    if number == at {
                        world.enter_phase(PID, phase);
                    }
                });
                let found = row(&model, PID).unwrap();
                assert_unmixed(&model.world(), &found);
                assert!(found.identity.is_some(), "{phase:?} before read {at}: {found:?}");
            }
        }
    }
}

// Births where the unique id is no witness.

#[test]
fn without_unique_ids_equal_births_bind_a_row() {
    let untold =
        [EPERM, Instead::Fail(Errno::EINVAL), Instead::Fail(Errno::ENOMEM), Instead::Cut(48)];
    for answer in untold {
        for phase in [Phase::Live, Phase::Exiting, Phase::Zombie] {
            for world in [world_with(phase), foreign_world(phase)] {
                let process = world.processes[&PID].clone();
                let model = instead(world, &[(unique(PID), answer.clone())]);
                let wanted = without_unique_id(expected(&process));
                assert_eq!(row(&model, PID).as_ref(), Some(&wanted));
                assert_eq!(identity(&model, PID).unwrap(), wanted.identity);
            }
        }
    }
    for world in STARTS {
        for at in 0..5 {
            let mut start = world(Phase::Live);
            start.instead.insert(unique(PID), EPERM);
            let model = Model::scripted(start, move |world, number, _| {
                if number == at {
                    world.recycle(PID);
                }
            });
            let holder = |model: &Model| model.world().processes[&PID].clone();
            assert_eq!(row(&model, PID), Some(without_unique_id(expected(&holder(&model)))));
        }
    }
}

#[test]
fn an_id_that_is_absent_while_its_process_is_not_is_no_witness() {
    for phase in [Phase::Live, Phase::Exiting, Phase::Zombie] {
        for world in [world_with(phase), foreign_world(phase)] {
            let process = world.processes[&PID].clone();
            let model = instead(world, &[(unique(PID), ESRCH)]);
            assert_eq!(row(&model, PID), Some(without_unique_id(expected(&process))));
        }
    }
    // A fork that finishes behind the first read has an id at the second try.
    let model = Model::scripted(world_with(Phase::Reserved), |world, number, _| {
        if number == 1 {
            world.enter_phase(PID, Phase::Live);
        }
    });
    assert_eq!(row(&model, PID), Some(expected(&model.world().processes[&PID])));
}

#[test]
fn a_birth_that_is_refused_takes_the_identity_and_nothing_else() {
    let no_record = (Call::Record(PID), EPERM);
    let world = foreign_world(Phase::Live);
    let process = world.processes[&PID].clone();
    let model = instead(world, std::slice::from_ref(&no_record));
    assert_eq!(row(&model, PID), Some(without_identity(expected(&process))));
    let error = identity(&model, PID).unwrap_err();
    assert_eq!(
        (error.code(), error.system()),
        (Code::AccessDenied, Some(("sysctl", Errno::EPERM)))
    );
    // The caller's own: the record where libproc refuses, an error where both do.
    let model = instead(world_with(Phase::Live), &[(birth(PID), EPERM)]);
    let process = model.world().processes[&PID].clone();
    assert_eq!(row(&model, PID), Some(expected(&process)));
    let model = instead(world_with(Phase::Live), &[(birth(PID), EPERM), no_record.clone()]);
    assert_eq!(row(&model, PID), Some(without_identity(expected(&process))));
    assert_eq!(identity(&model, PID).unwrap_err().code(), Code::AccessDenied);
    // And without any witness.
    let model = instead(foreign_world(Phase::Live), &[(unique(PID), EPERM), no_record]);
    assert_eq!(row(&model, PID).unwrap().identity, None);
}

#[test]
fn an_identity_needs_only_a_birth() {
    // The short record is refused; the birth carries its own parent.
    for world in [world_with(Phase::Live), foreign_world(Phase::Live)] {
        let process = world.processes[&PID].clone();
        let model = instead(world, &[(short(PID), EPERM)]);
        assert_eq!(identity(&model, PID).unwrap(), expected(&process).identity);
        assert_eq!(row(&model, PID), Some(Snapshot::bare(PID)));
        for at in 0..4 {
            let mut world = foreign_world(Phase::Live);
            world.instead.insert(short(PID), EPERM);
            let model = Model::scripted(world, move |world, number, _| {
                if number == at {
                    world.recycle(PID);
                }
            });
            let holder = model.world().processes[&PID].birth + u32::from(at < 4);
            let found = identity(&model, PID).unwrap().unwrap();
            assert_eq!(found.unique_id, Some(holder.into()));
        }
    }
    let all = [(short(PID), EPERM), (birth(PID), EPERM), (unique(PID), EPERM)];
    let mut denied = instead(world_with(Phase::Live), &all);
    let process = denied.world().processes[&PID].clone();
    let wanted = without_unique_id(expected(&process)).identity;
    assert_eq!(identity(&denied, PID).unwrap(), wanted);
    denied.world().instead.insert(Call::Record(PID), EPERM);
    assert_eq!(identity(&denied, PID).unwrap_err().code(), Code::AccessDenied);
    // Nothing but refusals: no absence, whatever the record says.
    denied = instead(world_with(Phase::Live), &all);
    denied.world().instead.insert(Call::Record(PID), Instead::Record(RecordAnswer::Absent));
    assert_eq!(identity(&denied, PID).unwrap_err().code(), Code::AccessDenied);
    // Absent to all that answer.
    denied = instead(world_with(Phase::Live), &[(short(PID), EPERM)]);
    denied.world().reap(PID);
    assert_eq!(identity(&denied, PID), Ok(None));
}

// Parents.

#[test]
fn the_parent_is_the_real_one_under_a_debugger() {
    for phase in [Phase::Live, Phase::ExitBegun, Phase::Exiting, Phase::Zombie] {
        for mut world in [world_with(phase), foreign_world(phase)] {
            world.spawn(400, 1);
            world.change(PID, |process| process.debugger = Some(400));
            let process = world.processes[&PID].clone();
            assert_eq!(process.record().parent_pid, 400);
            let model = Model::new(world);
            assert_eq!(row(&model, PID), Some(expected(&process)), "{phase:?}");
            assert_eq!(identity(&model, PID).unwrap(), expected(&process).identity);
        }
    }
    // Where the record is refused, nobody knows the parent.
    let mut world = world_with(Phase::Live);
    world.change(PID, |process| process.debugger = Some(1));
    let process = world.processes[&PID].clone();
    let model = instead(world, &[(Call::Record(PID), EPERM)]);
    let unknown = Snapshot { parent_pid: None, identity: None, ..expected(&process) };
    assert_eq!(row(&model, PID), Some(unknown));
    assert_eq!(identity(&model, PID).unwrap_err().code(), Code::AccessDenied);
    // A debugger that is the parent.
    let mut world = world_with(Phase::Live);
    world.change(PID, |process| process.debugger = Some(OWN_PID));
    let record = Record { original_parent_pid: 0, ..world.processes[&PID].record() };
    let process = world.processes[&PID].clone();
    let answer = Instead::Record(RecordAnswer::Present(record));
    let model = instead(world, &[(Call::Record(PID), answer)]);
    assert_eq!(row(&model, PID), Some(expected(&process)));
}

#[test]
fn a_debugger_that_comes_or_goes_is_never_the_parent() {
    for comes in [true, false] {
        for start in STARTS {
            for at in 0..6 {
                let mut world = start(Phase::Live);
                world.spawn(400, 1);
                world.change(PID, |process| process.debugger = (!comes).then_some(400));
                let model = Model::scripted(world, move |world, number, _| {
                    if number == at {
                        world.change(PID, |process| process.debugger = comes.then_some(400));
                    }
                });
                assert_eq!(row(&model, PID).unwrap().parent_pid, Some(OWN_PID));
            }
        }
    }
}

#[test]
fn the_parent_behind_a_debugger_is_no_strangers() {
    for refused in [unique(PID), short(PID)] {
        for at in 0..8 {
            let mut world = world_with(Phase::Live);
            world.spawn(400, 1);
            world.change(PID, |process| process.debugger = Some(400));
            world.instead.insert(refused, EPERM);
            let model = Model::scripted(world, move |world, number, _| {
                if number == at {
                    world.reap(PID);
                    world.spawn(PID, 1);
                    world.change(PID, |process| process.debugger = Some(OWN_PID));
                }
            });
            let found = identity(&model, PID).unwrap().unwrap();
            let world = model.world();
            let mut holders = world.history.values().filter_map(|forms| forms.last());
            let born = holders.find(|one| one.start_micros() == found.start_time_micros).unwrap();
            assert_eq!(found.parent_pid, born.parent, "{refused:?}, before read {at}");
        }
    }
}

#[test]
fn a_record_torn_by_a_detaching_debugger_names_it_nowhere() {
    // The parent is copied before the flags: for an instant it is the debugger and not traced.
    for start in STARTS {
        let mut world = start(Phase::Live);
        world.spawn(400, 1);
        world.change(PID, |process| process.debugger = Some(400));
        let model = Model::scripted(world, |world, _, call| {
            let gone = world.processes[&PID].detached;
            world.change(PID, |process| {
                process.detached = gone || call == short(PID);
                process.debugger = process.debugger.filter(|_| !gone);
            });
        });
        assert_eq!(row(&model, PID).unwrap().parent_pid, Some(OWN_PID));
    }
}

#[test]
fn an_orphan_has_one_parent_in_all_its_facts() {
    for phase in [Phase::Live, Phase::Exiting] {
        for start in STARTS {
            for at in 0..5 {
                let mut world = start(phase);
                world.spawn(400, OWN_PID);
                world.change(PID, |process| process.parent = 400);
                let model = Model::scripted(world, move |world, number, _| {
                    if number == at {
                        world.enter_phase(400, Phase::Exiting);
                    }
                });
                let found = row(&model, PID).unwrap();
                assert_unmixed(&model.world(), &found);
                assert_eq!(found.parent_pid, found.identity.map(|identity| identity.parent_pid));
            }
        }
    }
}

#[test]
fn a_row_names_no_stranger_that_took_its_dead_parents_pid() {
    let mut world = World::new();
    world.spawn(400, OWN_PID);
    world.spawn(PID, 400);
    let model = Model::scripted(world, |world, _, call| {
        if call == unique(400) && world.processes[&PID].parent == 400 {
            world.recycle(400);
        }
    });
    let rows = full(&model).unwrap();
    assert_eq!(rows.iter().find(|row| row.pid == PID).unwrap().parent_pid, Some(1));
}

#[test]
fn nobody_stands_below_a_stranger_that_had_the_pid_of_its_parent_before() {
    // The stranger is read first; by the time the reader comes to the other pid, both have changed hands.
    let mut world = World::new();
    world.spawn(PID, OWN_PID);
    world.spawn(60, OWN_PID);
    let mut once = Some(());
    let model = Model::scripted(world, move |world, _, call| {
        if matches!(call, Call::Info(PID, ..)) && once.take().is_some() {
            world.births = 200_000_000; // after the beginning of the call
            world.recycle(60);
            world.reap(PID);
            world.spawn(PID, 60);
        }
    });
    let rows = full(&model).unwrap();
    let find = |pid| rows.iter().find(|row| row.pid == pid).unwrap();
    assert_eq!(find(PID).parent_pid, Some(60));
    assert_eq!(find(60), &row(&model, 60).unwrap());
}

// The list.

#[test]
fn kernel_task_and_launchd_are_rows() {
    let rows = full(&Model::new(World::new())).unwrap();
    assert_eq!(rows.iter().map(|row| row.pid).collect::<Vec<_>>(), [0, 1, OWN_PID]);
    let kernel_task = &rows[0];
    assert_eq!(kernel_task.process_group_id, Some(0));
    assert_eq!(kernel_task.identity.unwrap().unique_id, Some(0));
    // Of anybody else a group of 0 is no fact.
    let record = Record { process_group: 0, ..world_with(Phase::Exiting).processes[&PID].record() };
    let answer = Instead::Record(RecordAnswer::Present(record));
    let model = instead(world_with(Phase::Exiting), &[(Call::Record(PID), answer)]);
    assert_eq!(row(&model, PID).unwrap().process_group_id, None);
}

#[test]
fn a_list_that_was_cut_is_taken_again() {
    let crowd = || {
        let mut world = World::new();
        for pid in 1_000..1_040 {
            world.spawn(pid, OWN_PID);
        }
        world.enter_phase(1_001, Phase::Zombie);
        world
    };
    let everyone = crowd().processes.len();
    // Dead ones first, then the oldest: kernel_task, launchd, the caller.
    for room in [everyone - 3, everyone - 2, everyone - 1] {
        let mut world = crowd();
        world.kernel_room = Some(room);
        let model = Model::scripted(world, |world, _, call| {
            if call == Call::List && world.log.contains(&Call::List) {
                world.kernel_room = None;
            }
        });
        let rows = full(&model).unwrap();
        // One zombie that is missing cannot be seen by its absence.
        assert!(rows.len() == everyone || room == everyone - 1, "{room}");
        let mut world = crowd();
        world.kernel_room = Some(room);
        let error = full(&Model::new(world)).map(|_| ()).err();
        assert_eq!(
            error.map(|error| error.code()),
            (room < everyone - 1).then_some(Code::Incomplete)
        );
    }
}

#[test]
fn a_list_is_whole_only_below_both_estimates() {
    // The kernel has room for twenty more than it had when it looked.
    for which in [0, 1] {
        let mut estimates = 0;
        let model = Model::scripted(world_with(Phase::Live), move |world, _, call| {
            if call == Call::Estimate {
                let count = if estimates % 2 == which { 4 } else { 24 };
                world.instead.insert(call, Instead::Pids(count));
                estimates += 1;
            }
        });
        let error = full(&model).unwrap_err();
        assert_eq!((error.code(), error.reason()), (Code::Incomplete, Some(Reason::CutShort)));
    }
    // Eight fresh tries, each with its own estimates.
    let model = instead(World::new(), &[(Call::List, Instead::Pids(10_000))]);
    assert_eq!(full(&model), Err(Error::OwnPidMissing { pid: OWN_PID }).or(Err(Error::CutShort)));
    assert_eq!(model.world().log.iter().filter(|&&call| call == Call::List).count(), 8);
}

#[test]
fn the_callers_own_pid_must_be_listed() {
    let model = Model::new(World::new());
    model.world().processes.remove(&OWN_PID);
    assert_eq!(full(&model), Err(Error::OwnPidMissing { pid: OWN_PID }));
    // A list without it is taken again.
    let mut lists = 0;
    let model = Model::scripted(World::new(), move |world, _, call| {
        lists += u32::from(call == Call::List);
        world.unlisted = (lists == 1).then_some(OWN_PID);
    });
    assert_eq!(full(&model).unwrap().len(), 3);
    assert_eq!(model.world().log.iter().filter(|&&call| call == Call::List).count(), 2);
}

#[test]
fn a_refused_list_is_no_empty_census() {
    for call in [Call::Estimate, Call::List] {
        let error = full(&instead(World::new(), &[(call, EPERM)])).unwrap_err();
        assert_eq!(error.code(), Code::AccessDenied);
        assert_eq!(error.system(), Some(("proc_listallpids", Errno::EPERM)));
        let error = full(&instead(World::new(), &[(call, Instead::Fail(EIO))])).unwrap_err();
        assert_eq!(error.code(), Code::OperationFailed);
        // No processes and no error is no answer either.
        let error = full(&instead(World::new(), &[(call, Instead::Pids(0))])).unwrap_err();
        assert_eq!(error.reason(), Some(Reason::MalformedRecord));
    }
}

#[test]
fn numbers_that_no_process_can_have_are_absent_without_a_call() {
    let model = Model::new(World::new());
    assert_eq!(census(&model, Selection::Pids(vec![1 << 31, u32::MAX])), Ok(vec![]));
    assert_eq!(identity(&model, u32::MAX), Ok(None));
    assert_eq!(model.world().log, []);
}

// Deadlines.

fn within(model: &Model, gate: &'static Gate, pid: u32, timeout: Duration) -> Result<bool, Error> {
    let host = Darwin::new(model.clone(), gate);
    let rows = take(&host, Selection::Pids(vec![pid]), Deadline::after(Some(timeout)))?;
    Ok(rows.len() == 1)
}

const SOON: Duration = Duration::from_millis(30);
const LONG: Duration = Duration::from_secs(30);

#[test]
fn a_record_that_is_held_by_exec_ends_with_the_deadline() {
    let mut world = foreign_world(Phase::Live);
    world.held.insert(PID);
    let model = Model::new(world);
    let gate = gate();
    for _ in 0..2 {
        assert_eq!(within(&model, gate, PID, SOON), Err(Error::Timeout));
    }
    // Two helpers are left behind; nobody waits for a third.
    let begun = Instant::now();
    assert_eq!(within(&model, gate, PID, LONG), Err(Error::Timeout));
    assert!(begun.elapsed() < LONG / 2);
    let records = || model.world().log.iter().filter(|&&call| call == Call::Record(PID)).count();
    while records() < 2 {
        assert!(begun.elapsed() < LONG / 2, "the helpers do not get there");
        std::thread::yield_now();
    }
    assert_eq!(within(&model, gate, PID, LONG), Err(Error::Timeout));
    assert_eq!(records(), 2);
    // What needs no record goes on, and so does everything when the exec is over.
    assert_eq!(within(&model, gate, OWN_PID, LONG), Ok(true));
    model.release();
    let begun = Instant::now();
    while within(&model, gate, PID, LONG) != Ok(true) {
        assert!(begun.elapsed() < LONG / 2, "the helpers do not come back");
        std::thread::yield_now();
    }
    share_helpers(&model, gate);
}

#[test]
fn calls_with_deadlines_share_the_helpers_and_none_is_lost() {
    share_helpers(&Model::new(foreign_world(Phase::Live)), gate());
}

fn share_helpers(model: &Model, gate: &'static Gate) {
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                for _ in 0..50 {
                    assert_eq!(within(model, gate, PID, LONG), Ok(true));
                }
            });
        }
    });
}

#[test]
fn a_passed_deadline_is_no_census() {
    let model = Model::new(World::new());
    let host = Darwin::new(model, gate());
    let now = Deadline::after(Some(Duration::ZERO));
    for selection in [Selection::All(Visibility::All), Selection::Pids(vec![1])] {
        assert_eq!(take(&host, selection, now), Err(Error::Timeout));
    }
}

// Commands.

fn keys() -> Vec<Vec<u8>> {
    vec![b"WHO".to_vec(), b"NONE".to_vec()]
}

fn describe(model: &Model, pid: u32) -> Result<Option<Described>, Error> {
    Darwin::new(model.clone(), gate()).describe(pid, &keys())
}

fn command_of(model: &Model) -> Result<Option<Command>, Error> {
    describe(model, PID).unwrap().unwrap().1
}

fn expected_command(process: &Process) -> Command {
    let who = process.who().into_bytes();
    Command {
        executable: Some(process.program_path()),
        arguments: vec![vec![], who.clone()],
        working_directory: Some(process.directory().path),
        environment: vec![(0, who)],
        line: None,
    }
}

/// Row and command are of one birth, and the command of one program that it ran.
fn assert_one_program(world: &World, (row, command): &Described) {
    if row.name.is_some() {
        assert_unmixed(world, row);
    }
    let Ok(Some(command)) = command else { return };
    let named = |form: &&Process| form.name().as_bytes() == row.name.as_deref().unwrap();
    let forms = || world.history.values().flatten().filter(named);
    // Its directory is refused while it is another user's.
    let refused = forms().any(|form| form.uid() != OWN_UID);
    let told = |form: &Process| {
        let whole = expected_command(form);
        command == &whole || (refused && command == &Command { working_directory: None, ..whole })
    };
    assert!(forms().any(told), "{command:?} {row:?}");
}

#[test]
fn a_command_is_one_programs_and_one_births() {
    for recycle in [false, true] {
        for from in 0..14 {
            for every in 1..5 {
                let mut programs = 0;
                let model = Model::scripted(world_with(Phase::Live), move |world, number, _| {
                    if number >= from && (number - from) % every == 0 && programs < 5 {
                        programs += 1;
                        if recycle { world.recycle(PID) } else { world.execute(PID, programs % 2) }
                    }
                });
                let described = describe(&model, PID).unwrap().unwrap();
                assert!(recycle || described.1.is_ok(), "{described:?}");
                assert_one_program(&model.world(), &described);
            }
        }
    }
    // Where nothing tells programs apart, the answer is read twice.
    for recycle in [false, true] {
        for from in 0..14 {
            for most in 1..4 {
                let mut changes = 0;
                let mut world = world_with(Phase::Live);
                world.instead.insert(unique(PID), EPERM);
                let model = Model::scripted(world, move |world, number, _| {
                    if number >= from && changes < most {
                        changes += 1;
                        world.execute(PID, changes);
                        if recycle {
                            world.recycle(PID);
                            world.recycle(PID); // every other birth is the caller's
                        }
                    }
                });
                let described = describe(&model, PID).unwrap().unwrap();
                assert!(recycle || described.1.is_ok());
                assert_one_program(&model.world(), &described);
            }
        }
    }
}

#[test]
fn an_exec_between_the_row_and_the_command_is_seen() {
    let model = Model::scripted(world_with(Phase::Live), |world, _, call| {
        if call == Call::Arguments(PID) {
            world.execute(PID, 1);
        }
    });
    assert_eq!(command_of(&model), Err(Error::Unstable { pid: PID }));
}

#[test]
fn null_is_for_the_gone_the_dead_and_the_exiting() {
    assert_eq!(describe(&Model::new(World::new()), PID), Ok(None));
    assert_eq!(describe(&Model::new(World::new()), u32::MAX), Ok(None));
    for phase in [Phase::Exiting, Phase::Zombie] {
        assert_eq!(command_of(&Model::new(world_with(phase))), Ok(None));
        assert_eq!(command_of(&Model::new(foreign_world(phase))), Ok(None));
    }
    let world = world_with(Phase::ExitBegun);
    let process = world.processes[&PID].clone();
    assert_eq!(command_of(&Model::new(world)), Ok(Some(expected_command(&process))));
    let (_, kernel) = describe(&Model::new(World::new()), 0).unwrap().unwrap();
    assert_eq!(kernel, Ok(Some(Command::default())));
}

#[test]
fn a_refusal_is_no_absence() {
    let refused = |errno| Err(Error::Refused { pid: PID, syscall: "sysctl", errno });
    assert_eq!(command_of(&Model::new(foreign_world(Phase::Live))), refused(Errno::EINVAL));
    let ours = |instead| command_of(&live_instead(instead));
    assert_eq!(ours(EPERM), refused(Errno::EPERM));
    assert_eq!(ours(Instead::Fail(Errno::EINVAL)), refused(Errno::EINVAL));
    // The answer ends with the arguments where the environment is kept from the caller.
    assert_eq!(ours(Instead::Cut(4 + 8 + 1 + 7)), refused(Errno::EPERM));
    // One argument that the kernel makes up for a program that keeps its own to itself.
    let made_up = Instead::Arguments(b"\x01\0\0\0/bin/se\0\0/bin/se\0");
    assert_eq!(ours(made_up), refused(Errno::EPERM));
}

fn live_instead(instead: Instead) -> Model {
    let world = world_with(Phase::Live);
    assert_eq!(world.processes[&PID].who(), "b101p0", "its path fills eight bytes");
    self::instead(world, &[(Call::Arguments(PID), instead)])
}

#[test]
fn a_command_without_the_paths_that_nobody_can_tell() {
    const DIRECTORIES: Call = Call::Info(PID, Flavor::Directories, false);
    let world = world_with(Phase::Live);
    let whole = expected_command(&world.processes[&PID]);
    let with = |call, answer| command_of(&instead(world_with(Phase::Live), &[(call, answer)]));
    let without_executable = Command { executable: None, ..whole.clone() };
    let without_directory = Command { working_directory: None, ..whole };
    // Refused; removed; no directory any more; no path; too long; its volume is gone or silent.
    for errno in [1, 13, 2, 20, 22, 28, 63, 5, 6, 60, 70] {
        let fail = || Instead::Fail(Errno(errno));
        assert_eq!(with(Call::ProgramPath(PID), fail()), Ok(Some(without_executable.clone())));
        assert_eq!(with(DIRECTORIES, fail()), Ok(Some(without_directory.clone())), "{errno}");
        assert_eq!(with(Call::File, fail()), Ok(Some(without_directory.clone())), "{errno}");
    }
    // The end of a path leads elsewhere; what is no path, nowhere.
    for path in ["/b101p0", "", "srv/b101p0"] {
        assert_eq!(with(DIRECTORIES, Instead::Path(path)), Ok(Some(without_directory.clone())));
    }
    for path in ["", "bin/b101p0"] {
        let answer = with(Call::ProgramPath(PID), Instead::Path(path));
        assert_eq!(answer, Ok(Some(without_executable.clone())), "{path}");
    }
    for call in [Call::ProgramPath(PID), DIRECTORIES, Call::File] {
        let model = instead(world_with(Phase::Live), &[(call, Instead::Fail(Errno::ENOMEM))]);
        assert_eq!(describe(&model, PID).unwrap_err().code(), Code::OperationFailed, "{call:?}");
    }
    let cut = instead(world_with(Phase::Live), &[(DIRECTORIES, Instead::Cut(2_351))]);
    assert_eq!(describe(&cut, PID).unwrap_err().reason(), Some(Reason::MalformedRecord));
}

#[test]
fn a_process_that_begins_to_exit_at_any_read_has_no_command_or_a_whole_one() {
    for phase in [Phase::Exiting, Phase::Zombie] {
        let mut commands = 0;
        for at in 0..12 {
            let model = Model::scripted(world_with(Phase::Live), move |world, number, _| {
                if number == at {
                    world.enter_phase(PID, phase);
                }
            });
            let command = command_of(&model).unwrap();
            let process = model.world().processes[&PID].clone();
            assert!(command.is_none() || command == Some(expected_command(&process)), "{at}");
            commands += usize::from(command.is_some());
        }
        assert!((1..12).contains(&commands), "{commands}");
    }
    // Not even where the kernel never says that it exits.
    let gone = Instead::Fail(Errno::ESRCH);
    let never = instead(world_with(Phase::Live), &[(Call::ProgramPath(PID), gone)]);
    assert_eq!(command_of(&never), Err(Error::Unstable { pid: PID }));
}

#[test]
fn rosetta_is_no_refusal() {
    let silent = |translated: &[u32], errno| {
        let mut world = world_with(Phase::Live);
        world.translated.extend(translated);
        let whole = expected_command(&world.processes[&PID]);
        assert_eq!(command_of(&Model::new(world)), Ok(Some(whole)), "it can be read");
        let mut world = world_with(Phase::Live);
        world.translated.extend(translated);
        let model = instead(world, &[(Call::Arguments(PID), Instead::Fail(errno))]);
        let rows = with_commands(&model, gate(), LONG).unwrap();
        assert!(rows.iter().any(|row| row.pid == PID && row.command.is_none()));
        command_of(&model).unwrap_err()
    };
    for translated in [PID, OWN_PID] {
        for errno in [Errno::EINVAL, EIO] {
            let error = silent(&[translated], errno);
            assert_eq!(error, Error::Translated { pid: PID });
            assert_eq!(error.code(), Code::UnsupportedPlatform);
        }
    }
    assert_eq!(silent(&[1], Errno::EINVAL).code(), Code::AccessDenied);
    assert_eq!(silent(&[1], EIO).reason(), Some(Reason::CutShort));
    // Another user's is refused whoever translates it.
    let mut world = foreign_world(Phase::Live);
    world.translated.insert(PID);
    assert_eq!(command_of(&Model::new(world)).unwrap_err().code(), Code::AccessDenied);
}

#[test]
fn what_is_cut_is_no_shorter_list() {
    let reason = |instead| command_of(&live_instead(instead)).unwrap_err().reason();
    assert_eq!(reason(Instead::Cut(ROOM)), Some(Reason::TooLong));
    for length in 0..4 + 8 + 1 + 7 {
        assert_eq!(reason(Instead::Cut(length)), Some(Reason::CutShort), "{length}");
    }
    assert_eq!(reason(Instead::Fail(EIO)), Some(Reason::CutShort));
    let shortage = live_instead(Instead::Fail(Errno::ENOMEM));
    assert_eq!(describe(&shortage, PID).unwrap_err().code(), Code::OperationFailed);
}

fn with_commands(
    model: &Model,
    gate: &'static Gate,
    time: Duration,
) -> Result<Vec<Snapshot>, Error> {
    let host = Darwin::new(model.clone(), self::gate());
    let theirs = model.clone();
    let open = move || Ok(Darwin::new(theirs.clone(), self::gate()));
    let host = WithCommands::new(&host, gate, keys(), MOST_IN_CENSUS, open);
    take(&host, Selection::All(Visibility::All), Deadline::after(Some(time)))
}

#[test]
fn the_commands_of_a_census_have_a_bound_together() {
    let mut world = world_with(Phase::Live);
    world.spawn(PID + 1, OWN_PID);
    world.spawn(PID + 2, OWN_PID);
    let one = expected_command(&world.processes[&PID]).size();
    let model = Model::new(world);
    let host = Darwin::new(model.clone(), gate());
    let pids = Selection::Pids(vec![PID, PID + 1, PID + 2]);
    for (room, expected) in [(one - 1, 0), (one, 1), (2 * one - 1, 1), (2 * one, 2)] {
        let theirs = model.clone();
        let open = move || Ok(Darwin::new(theirs.clone(), gate()));
        let host = WithCommands::new(&host, gate(), keys(), room, open);
        let rows = take(&host, pids.clone(), Deadline::after(None)).unwrap();
        assert_eq!(rows.len(), 3);
        assert_eq!(rows.iter().filter(|row| row.command.is_some()).count(), expected);
    }
}

#[test]
fn a_census_has_the_commands_that_can_be_read_and_every_row() {
    let mut world = world_with(Phase::Live);
    world.spawn(PID + 1, OWN_PID);
    let expected = expected_command(&world.processes[&PID]);
    let rows = with_commands(&Model::new(world), gate(), LONG).unwrap();
    let command = |pid| rows.iter().find(|row| row.pid == pid).unwrap().command.as_deref();
    assert_eq!(command(PID), Some(&expected));
    assert_eq!(command(0), Some(&Command::default()));
    assert_eq!(command(PID + 1), None, "another user's");
    assert_eq!(rows.len(), 5);
    let failing = live_instead(Instead::Fail(Errno::ENOMEM));
    assert_eq!(with_commands(&failing, gate(), LONG).unwrap_err().code(), Code::OperationFailed);
}

#[test]
fn a_process_that_does_not_answer_is_a_row_without_a_command() {
    let mut world = world_with(Phase::Live);
    world.spawn(PID + 1, OWN_PID);
    world.spawn(PID + 2, OWN_PID);
    world.held.insert(PID);
    let later = expected_command(&world.processes[&(PID + 2)]);
    let model = Model::new(world);
    let gate: &'static Gate = Box::leak(Box::new(Gate::new(command::MOST_HELPERS)));
    // More places are lost than there are: the second census finds none.
    for place in 0..=command::MOST_HELPERS {
        let rows = with_commands(&model, gate, Duration::from_secs(2)).unwrap();
        assert_eq!(rows.len(), 6);
        let row = |pid| rows.iter().find(|row| row.pid == pid).unwrap();
        assert_eq!(row(PID).command, None);
        assert!(row(PID).parent_pid.is_some());
        if place < command::MOST_HELPERS - 1 {
            assert_eq!(row(PID + 2).command.as_deref(), Some(&later));
        }
    }
    let theirs = model.clone();
    let open = move || Ok(Darwin::new(theirs, self::gate()));
    let begun = Instant::now();
    let single = command::read(gate, PID, keys(), Deadline::after(Some(LONG)), open);
    assert_eq!(single, Err(Error::Timeout));
    assert!(begun.elapsed() < LONG / 2);
    model.release();
    while with_commands(&model, gate, LONG).unwrap().iter().all(|row| row.command.is_none()) {
        assert!(begun.elapsed() < LONG / 2, "the helpers do not come back");
    }
}

// Random worlds.

/// How many random worlds; a slow proof asks for more.
fn cases() -> u32 {
    std::env::var("PROC_SAFE_MODEL_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(20_000)
}

/// What can happen between two reads.
#[derive(Clone, Debug)]
enum Event {
    Spawn(u32, u32, Phase),
    Advance(u32, Phase),
    Reap(u32),
    Recycle(u32),
    Stop(u32),
    Debug(u32, u32),
    Detach(u32),
    ChangeUser(u32),
    Execute(u32, u32),
}

const PIDS: std::ops::Range<u32> = 100..108;

fn phase() -> impl Strategy<Value = Phase> {
    prop_oneof![
        Just(Phase::Embryo),
        Just(Phase::Live),
        Just(Phase::ExitBegun),
        Just(Phase::Exiting),
        Just(Phase::Zombie),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let pid = || PIDS;
    prop_oneof![
        (pid(), pid(), prop_oneof![Just(Phase::Reserved), phase()])
            .prop_map(|(pid, parent, phase)| Event::Spawn(pid, parent, phase)),
        (pid(), phase()).prop_map(|(pid, phase)| Event::Advance(pid, phase)),
        pid().prop_map(Event::Reap),
        pid().prop_map(Event::Recycle),
        pid().prop_map(Event::Stop),
        (pid(), pid()).prop_map(|(pid, debugger)| Event::Debug(pid, debugger)),
        pid().prop_map(Event::Detach),
        pid().prop_map(Event::ChangeUser),
        (pid(), 0_u32..2).prop_map(|(pid, program)| Event::Execute(pid, program)),
    ]
}

impl Event {
    fn happen(&self, world: &mut World) {
        let is_live = |world: &World, pid: u32| {
            world
                .processes
                .get(&pid)
                .is_some_and(|process| (Phase::Live..=Phase::ExitBegun).contains(&process.phase))
        };
        match *self {
            Self::Spawn(pid, parent, phase) => {
                let parent = if is_live(world, parent) { parent } else { 1 };
                if !world.processes.contains_key(&pid) {
                    world.was_absent.insert(pid);
                    world.spawn(pid, parent);
                    world.change(pid, |process| process.phase = phase);
                }
            }
            Self::Advance(pid, phase) => world.enter_phase(pid, phase),
            Self::Reap(pid) => world.reap(pid),
            Self::Recycle(pid) if world.processes.contains_key(&pid) => world.recycle(pid),
            Self::Stop(pid) if is_live(world, pid) => {
                world.change(pid, |process| process.stopped = true);
            }
            Self::Debug(pid, debugger)
                if pid != debugger && is_live(world, pid) && is_live(world, debugger) =>
            {
                world.change(pid, |process| process.debugger = Some(debugger));
            }
            Self::Execute(pid, program) if is_live(world, pid) => world.execute(pid, program),
            Self::Detach(pid) => world.change(pid, |process| process.debugger = None),
            Self::ChangeUser(pid) if is_live(world, pid) => {
                world.change(pid, |process| process.uid_change += 5_000);
            }
            _ => {}
        }
    }
}

/// What a sandbox or another release may refuse, for the whole of a census.
fn refusals() -> impl Strategy<Value = Vec<(Flavor, u32)>> {
    let flavor = prop_oneof![Just(Flavor::Bsd), Just(Flavor::UniqueId), Just(Flavor::Short)];
    prop_oneof![3 => Just(vec![]), 1 => prop::collection::vec((flavor, PIDS), 1..6)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_interleaving_breaks_a_census(
        start in prop::collection::vec((PIDS, phase()), 0..6),
        events in prop::collection::vec((0_usize..5, event()), 0..60),
        refusals in refusals(),
        selection in any::<bool>(),
        helped in prop_oneof![9 => Just(false), 1 => Just(true)],
    ) {
        let mut world = World::new();
        for (pid, phase) in start {
            if !world.processes.contains_key(&pid) {
                world.spawn(pid, OWN_PID);
                world.change(pid, |process| process.phase = phase);
            }
        }
        for &(flavor, pid) in &refusals {
            for exiting_too in [false, true] {
                world.instead.insert(Call::Info(pid, flavor, exiting_too), EPERM);
            }
        }
        let before: Vec<Process> = world.processes.values().cloned().collect();
        world.was_absent.clear();
        let mut queue = events.into_iter();
        let mut wait = 0;
        let model = Model::scripted(world, move |world, _, _| {
            if wait > 0 {
                wait -= 1;
            } else if let Some((pause, event)) = queue.next() {
                wait = pause;
                event.happen(world);
            }
        });
        let chosen = if selection {
            Selection::Pids(PIDS.chain([0, 1, OWN_PID, 100]).collect())
        } else {
            Selection::All(Visibility::All)
        };
        let deadline = Deadline::after(helped.then_some(LONG));
        let rows = take(&Darwin::new(model.clone(), gate()), chosen, deadline).unwrap();
        let world = model.world();
        assert!(rows.is_sorted_by(|a, b| a.pid < b.pid), "one row a pid, in order");
        let refused = |pid: u32| refusals.iter().any(|&(_, other)| other == pid);
        for row in &rows {
            if !refused(row.pid) {
                assert_unmixed(&world, row);
            }
            if row.exiting || row.state == Some(State::Zombie) {
                assert!(row.parent_pid.is_some() && row.process_group_id.is_some());
                assert!(row.owner != Owner::Unknown && row.identity.is_some());
            }
        }
        for process in &before {
            let pid = process.pid;
            let row = rows.iter().find(|row| row.pid == pid);
            // Whoever was there through the call is in it.
            let now = world.processes.get(&pid);
            if now.is_some_and(|now| now.birth == process.birth) {
                assert!(row.is_some(), "{process:?} is missing");
            }
            // Whoever did not change is described wholly, but for an embryo's birth.
            if world.history[&process.birth].last() == Some(process) && now == Some(process) {
                let forms = world.history[&process.birth].iter();
                let unchanged = forms.filter(|&form| form != process).all(|form| form.phase == Phase::Live);
                if unchanged && !refused(pid) && process.phase != Phase::Embryo {
                    assert_eq!(row, Some(&expected(process)));
                }
            }
        }
        // Absence needs an instant of absence.
        if selection {
            for pid in PIDS {
                let was_there = before.iter().any(|process| process.pid == pid);
                let missing = !rows.iter().any(|row| row.pid == pid);
                assert!(!missing || !was_there || world.was_absent.contains(&pid));
            }
        }
    }

    #[test]
    fn no_interleaving_mixes_a_command(
        events in prop::collection::vec((0_usize..5, event()), 0..60),
        untold in any::<bool>(),
    ) {
        let mut world = World::new();
        world.spawn(100, OWN_PID);
        world.was_absent.clear();
        if untold {
            world.instead.insert(unique(100), EPERM);
        }
        let mut queue = events.into_iter();
        let mut wait = 0;
        let model = Model::scripted(world, move |world, _, _| {
            if wait > 0 {
                wait -= 1;
            } else if let Some((pause, event)) = queue.next() {
                wait = pause;
                event.happen(world);
            }
        });
        let described = describe(&model, 100).unwrap();
        let world = model.world();
        match described {
            None => assert!(world.was_absent.contains(&100)),
            Some(described) => {
                if described.1 == Ok(None) {
                    let dead = |form: &Process| form.pid == 100 && form.phase >= Phase::ExitBegun;
                    assert!(world.history.values().flatten().any(dead));
                }
                if !untold {
                    assert_one_program(&world, &described);
                }
            }
        }
    }
}
