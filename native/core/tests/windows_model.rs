//! The Windows census against a model of its kernel: what the list and a handle say together, and
//! random interleavings.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::as_conversions
)]

mod nt;

use nt::{Call, Model, OWN_PID, PID, Phase, Process, SUSPENDED, World, with, world};
use proc_safe_core::census::{Deadline, Host as _, Selection, Visibility, take};
use proc_safe_core::error::{Code, Error, Reason, WindowsCode};
use proc_safe_core::facts::{Identity, Owner, Snapshot, State};
use proc_safe_core::windows::list::{MOST, Room};
use proc_safe_core::windows::process::ATTEMPTS;
use proc_safe_core::windows::{Access, Windows};
use proptest::prelude::{ProptestConfig, any, prop, proptest};
use std::time::Duration;

const OPEN: Call = Call::Open(PID, Access::Query);
const BROKEN: WindowsCode = WindowsCode::Win32(1450); // ERROR_NO_SYSTEM_RESOURCES

fn host(model: &Model) -> Windows<Model> {
    Windows::new(model.clone(), Box::leak(Box::new(Room::new())))
}

fn census(model: &Model, selection: Selection) -> Result<Vec<Snapshot>, Error> {
    take(&host(model), selection, Deadline::after(None))
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

fn row_in_full(model: &Model, pid: u32) -> Option<Snapshot> {
    full(model).unwrap().into_iter().find(|row| row.pid == pid)
}

fn identity(model: &Model, pid: u32) -> Result<Option<Identity>, Error> {
    host(model).read_identity(pid)
}

fn failing(call: Call, code: WindowsCode) -> Model {
    let mut world = world();
    world.fail.insert(call, code);
    Model::new(world)
}

fn expected(world: &World, pid: u32) -> Snapshot {
    world.find(pid).unwrap().row()
}

fn exited(row: Snapshot) -> Snapshot {
    let identity = row.identity.map(|identity| Identity { exited: true, ..identity });
    Snapshot { state: Some(State::Zombie), identity, ..row }
}

/// What the handle of somebody who is not listed tells.
fn without_list(row: Snapshot) -> Snapshot {
    let state = row.state.filter(|&state| state == State::Zombie);
    Snapshot { name: None, state, ..row }
}

// What is asked, and how often.

#[test]
fn the_order_of_calls() {
    let model = Model::new(world());
    assert_eq!(row(&model, PID), Some(expected(&model.world(), PID)));
    let own_user = [Call::Token(None), Call::User, Call::Close];
    let owner = [Call::Token(Some(PID)), Call::User, Call::Close, Call::Close];
    let expected = [&own_user[..], &[Call::Query, OPEN, Call::Times(PID)], &owner].concat();
    assert_eq!(model.world().log, expected);
}

#[test]
fn a_census_asks_for_the_list_once_and_at_most_six_times_for_an_owner() {
    let mut world = world();
    for index in 1..=200 {
        world.spawn(PID + 4 * index, PID);
    }
    let model = Model::new(world);
    assert_eq!(full(&model).unwrap().len(), 203); // with the idle process and the caller
    assert_eq!(model.calls(|call| call == Call::Query), 1);
    assert_eq!(model.world().log.len(), 3 + 1 + 6 * 202);
    // A selection asks for the list once, too.
    let model = Model::new(World::new());
    let pids = (0..100).chain([OWN_PID]).collect();
    assert_eq!(census(&model, Selection::Pids(pids)).unwrap().len(), 2);
    assert_eq!(model.calls(|call| call == Call::Query), 1);
}

#[test]
fn an_identity_needs_the_list_alone() {
    let model = Model::new(world());
    assert_eq!(identity(&model, PID).unwrap(), expected(&model.world(), PID).identity);
    assert_eq!(model.world().log, [Call::Query]);
}

#[test]
fn a_process_whose_exit_has_begun_costs_four_calls_more() {
    let model = Model::scripted(world(), |world, _, call| {
        if call == OPEN {
            world.change(PID, |process| process.phase = Phase::Ending);
        }
    });
    row(&model, PID).unwrap();
    assert_eq!(model.world().log.len(), 3 + 1 + 6 + 4);
}

// The list and a handle together.

#[test]
fn owners_are_told_by_the_token_of_the_same_process() {
    for (user, owner) in [(1, Owner::Same), (2, Owner::Different), (3, Owner::Different)] {
        let model = Model::new(with(|process| process.user = user));
        assert_eq!(row(&model, PID).unwrap().owner, owner);
        assert_eq!(row_in_full(&model, PID), row(&model, PID));
    }
}

#[test]
fn a_handle_of_another_birth_says_nothing_of_the_record() {
    // Between the list and the handle the pid changes hands, to another user.
    let reuse = |call: Call, from: usize| {
        Model::scripted(with(|process| process.user = 1), move |world, number, now| {
            if now == call && number < from {
                world.end(PID);
                world.spawn(PID, 8);
                world.change(PID, |process| process.user = 2);
            }
        })
    };
    for read in [row, row_in_full] {
        let model = reuse(OPEN, 20);
        let found = read(&model, PID);
        assert_eq!(found, Some(expected(&model.world(), PID)));
        assert_eq!(found.unwrap().owner, Owner::Different);
        assert!(model.calls(|call| call == Call::Query) > 1);
    }
    // At every look: nothing is known but that somebody has the pid.
    for read in [row, row_in_full] {
        let model = reuse(OPEN, usize::MAX);
        assert_eq!(read(&model, PID), Some(Snapshot::bare(PID)));
        assert_eq!(model.calls(|call| call == Call::Query), ATTEMPTS);
    }
}

#[test]
fn a_second_list_does_not_ask_again_for_what_a_handle_said() {
    let model = Model::scripted(world(), |world, number, call| {
        if call == OPEN && number < 12 {
            world.end(PID);
            world.spawn(PID, OWN_PID);
        }
    });
    full(&model).unwrap();
    assert_eq!(model.calls(|call| call == Call::Query), 2);
    assert_eq!(model.calls(|call| matches!(call, Call::Open(OWN_PID, _))), 1);
    assert_eq!(model.calls(|call| call == OPEN), 2);
}

#[test]
fn no_row_for_a_process_that_is_gone() {
    for read in [row, row_in_full] {
        let model = Model::scripted(world(), |world, _, call| {
            if call == OPEN && world.find(PID).is_some() {
                world.end(PID);
            }
        });
        assert_eq!(read(&model, PID), None);
    }
    let mut world = world();
    world.end(PID);
    let model = Model::new(world);
    assert_eq!((row(&model, PID), identity(&model, PID)), (None, Ok(None)));
}

#[test]
fn a_process_that_may_not_be_opened_keeps_every_fact_of_the_list() {
    let model = Model::new(with(|process| process.refused = true));
    let all = expected(&model.world(), PID);
    assert_eq!(row(&model, PID), Some(Snapshot { owner: Owner::Unknown, ..all.clone() }));
    assert_eq!(row_in_full(&model, PID), row(&model, PID));
    assert_eq!(identity(&model, PID).unwrap(), all.identity);
}

#[test]
fn without_threads_and_without_a_handle_nobody_knows_whether_it_has_exited() {
    let change = |process: &mut Process| (process.threads, process.refused) = (vec![], true);
    let model = Model::new(with(change));
    let found = row(&model, PID).unwrap();
    assert_eq!((found.state, found.identity, found.parent_pid), (None, None, Some(OWN_PID)));
    let error = identity(&model, PID).unwrap_err();
    assert_eq!((error.code(), error.pid()), (Code::AccessDenied, Some(PID)));
    // With a handle it is known.
    let model = Model::new(with(|process| process.threads = vec![]));
    let found = row(&model, PID).unwrap();
    assert_eq!(found, Snapshot { state: None, ..expected(&model.world(), PID) });
    assert_eq!(identity(&model, PID).unwrap(), found.identity);
}

#[test]
fn a_refused_token_is_an_unknown_owner() {
    for call in [Call::Token(Some(PID)), Call::Token(None)] {
        let model = failing(call, WindowsCode::ACCESS_DENIED);
        let all = expected(&model.world(), PID);
        assert_eq!(row(&model, PID), Some(Snapshot { owner: Owner::Unknown, ..all }));
    }
    let model = failing(Call::User, WindowsCode::ACCESS_DENIED);
    assert_eq!(row(&model, PID).unwrap().owner, Owner::Unknown);
}

#[test]
fn a_handle_that_has_lost_its_rights_is_a_refusal() {
    let denied = WindowsCode::ACCESS_DENIED;
    let model = failing(Call::Times(PID), denied);
    let all = expected(&model.world(), PID);
    let wanted = Some(Snapshot { owner: Owner::Unknown, ..all.clone() });
    assert_eq!((row(&model, PID), row_in_full(&model, PID)), (wanted.clone(), wanted));
    // Of one that the list leaves out nothing is known then.
    for call in [Call::Basic(PID), Call::Times(PID)] {
        let model = failing(call, denied);
        model.world().change(PID, |process| process.phase = Phase::Ending);
        assert_eq!(row(&model, PID), Some(Snapshot::bare(PID)));
        let error = identity(&model, PID).unwrap_err();
        assert_eq!((error.code(), error.pid()), (Code::AccessDenied, Some(PID)));
        assert!(error.syscall().is_some());
    }
    // That it has exited is not known either, but that its exit has begun.
    let model = failing(Call::Wait(PID), denied);
    model.world().change(PID, |process| (process.phase, process.handles) = (Phase::Ended, 1));
    assert_eq!(row(&model, PID), Some(Snapshot { exiting: true, ..without_list(all) }));
}

#[test]
fn suspended_is_stopped() {
    let model = Model::new(with(|process| process.threads = vec![SUSPENDED, SUSPENDED]));
    assert_eq!(row(&model, PID).unwrap().state, Some(State::Stopped));
    let model = Model::new(with(|process| process.threads.push(SUSPENDED)));
    assert_eq!(row(&model, PID).unwrap().state, Some(State::Running));
}

#[test]
fn every_other_code_is_an_error_and_no_errno() {
    for call in [OPEN, Call::Times(PID), Call::Token(Some(PID)), Call::User] {
        let error = selected(&failing(call, BROKEN), PID).unwrap_err();
        assert_eq!(error.code(), Code::OperationFailed, "{call:?}");
        assert!(error.pid().is_some() && error.syscall().is_some());
        assert_eq!((error.system(), error.reason()), (None, None));
        assert!(error.to_string().contains("1450"), "{error}");
    }
    let broken = WindowsCode::NtStatus(0xc000_009a);
    for error in [
        full(&failing(Call::Query, broken)).unwrap_err(),
        identity(&failing(Call::Query, broken), PID).unwrap_err(),
    ] {
        assert_eq!((error.code(), error.pid()), (Code::OperationFailed, None));
        assert_eq!(error.syscall(), Some("NtQuerySystemInformation"));
        assert!(error.to_string().contains("0xC000009A"), "{error}");
    }
    let denied = failing(Call::Query, WindowsCode::STATUS_ACCESS_DENIED);
    assert_eq!(full(&denied).unwrap_err().code(), Code::AccessDenied);
    // Absence is a word of OpenProcess alone.
    let absent = failing(Call::Times(PID), WindowsCode::INVALID_PARAMETER);
    assert_eq!(selected(&absent, PID).unwrap_err().code(), Code::OperationFailed);
}

// Exits.

#[test]
fn an_exit_that_begins_behind_the_list_is_seen_by_the_handle() {
    for phase in [Phase::Ending, Phase::Ended] {
        for read in [row, row_in_full] {
            let world = with(|process| process.handles = 1);
            let all = expected(&world, PID);
            let model = Model::scripted(world, move |world, _, call| {
                if call == OPEN {
                    world.change(PID, |process| process.phase = phase);
                }
            });
            let ended = phase == Phase::Ended;
            let wanted = if ended { exited(all) } else { Snapshot { exiting: true, ..all } };
            assert_eq!(read(&model, PID), Some(wanted));
        }
    }
}

#[test]
fn the_exit_may_complete_while_it_is_looked_at() {
    // Its last handle but ours is closed, and then its pid is another's: either way it has exited.
    for reused in [false, true] {
        let world = world();
        let all = expected(&world, PID);
        let model = Model::scripted(world, move |world, _, call| match call {
            OPEN => world.change(PID, |process| process.phase = Phase::Ending),
            Call::Open(PID, Access::QueryAndWait) => {
                world.end(PID);
                if reused {
                    world.spawn(PID, 8);
                }
            }
            _ => {}
        });
        assert_eq!(row(&model, PID), Some(exited(all)));
    }
}

#[test]
fn where_waiting_is_refused_the_exit_has_begun_at_least() {
    let world = with(|process| (process.handles, process.wait_refused) = (1, true));
    let all = without_list(expected(&world, PID));
    let model = Model::new(world);
    model.world().end(PID);
    assert_eq!(row(&model, PID), Some(Snapshot { exiting: true, ..all }));
}

#[test]
fn a_single_read_finds_whom_the_list_leaves_out() {
    for phase in [Phase::Ending, Phase::Ended] {
        let world = with(|process| process.handles = 1);
        let all = expected(&world, PID);
        let model = Model::new(world);
        model.world().change(PID, |process| process.phase = phase);
        let ended = phase == Phase::Ended;
        let wanted = if ended { exited(all) } else { Snapshot { exiting: true, ..all } };
        let wanted = without_list(wanted);
        assert_eq!(row(&model, PID), Some(wanted.clone()));
        assert_eq!(identity(&model, PID).unwrap(), wanted.identity);
        assert_eq!(wanted.identity.unwrap().exited, ended);
        // The list does not have it, so a full census has not.
        assert_eq!(row_in_full(&model, PID), None);
    }
}

#[test]
fn whom_the_list_leaves_out_and_nobody_may_open_is_no_absence() {
    let model = Model::new(with(|process| (process.handles, process.refused) = (1, true)));
    model.world().end(PID);
    assert_eq!(row(&model, PID), Some(Snapshot::bare(PID)));
    assert_eq!(identity(&model, PID).unwrap_err().code(), Code::AccessDenied);
}

#[test]
fn a_process_born_behind_the_list_is_in_the_next() {
    for number_of_births in [1, 2] {
        let births = std::cell::Cell::new(0);
        let model = Model::scripted(World::new(), move |world, _, call| {
            if call == OPEN && births.get() < number_of_births {
                births.set(births.get() + 1);
                if world.find(PID).is_some() {
                    world.end(PID);
                }
                world.spawn(PID, 8);
            }
        });
        assert_eq!(row(&model, PID), Some(expected(&model.world(), PID)));
    }
    // A process that lives and is never listed is not described, and not denied.
    let model = Model::scripted(world(), |world, _, call| {
        if world.find(PID).is_some() {
            let live = call != Call::Query;
            let phase = if live { Phase::Live } else { Phase::Ending };
            world.change(PID, |process| process.phase = phase);
        }
    });
    assert_eq!(row(&model, PID), Some(Snapshot::bare(PID)));
    assert_eq!(identity(&model, PID), Err(Error::Unstable { pid: PID }));
}

#[test]
fn a_pid_that_openprocess_rounds_is_nobodys() {
    for pid in [PID + 1, PID + 2, PID + 3] {
        let model = Model::new(world());
        assert_eq!((row(&model, pid), identity(&model, pid)), (None, Ok(None)));
        assert!(model.world().log.contains(&Call::Basic(PID)));
        // Its neighbour's refusal is no word of it.
        let model = Model::new(with(|process| process.refused = true));
        assert_eq!((row(&model, pid), identity(&model, pid)), (None, Ok(None)));
        // Unless the neighbour is not listed: then the refusal is all that is known.
        let model = Model::new(with(|process| (process.handles, process.refused) = (1, true)));
        model.world().end(PID);
        assert_eq!(row(&model, pid), Some(Snapshot::bare(pid)));
    }
}

// Parents, the idle process, the caller.

#[test]
fn the_pid_of_a_dead_or_replaced_parent_stays() {
    let mut world = world();
    world.spawn(PID + 4, PID);
    world.spawn(PID + 8, PID + 4);
    world.end(PID);
    world.end(PID + 4);
    world.spawn(PID + 4, OWN_PID); // younger than the child that names it
    let model = Model::new(world);
    let rows = full(&model).unwrap();
    let parents: Vec<_> = rows.iter().map(|row| (row.pid, row.parent_pid.unwrap())).collect();
    assert_eq!(parents, [(0, 0), (OWN_PID, 8), (PID + 4, OWN_PID), (PID + 8, PID + 4)]);
    let born = |at: usize| rows[at].identity.unwrap().start_time_micros;
    assert!(born(2) > born(3));
    // Nothing is read twice for it.
    assert_eq!(model.calls(|call| call == Call::Query), 1);
}

#[test]
fn the_idle_process_has_a_row_without_a_birth_and_is_never_opened() {
    let model = Model::new(world());
    let idle = Snapshot { parent_pid: Some(0), state: Some(State::Running), ..Snapshot::bare(0) };
    assert_eq!(row(&model, 0), Some(idle.clone()));
    assert_eq!(full(&model).unwrap()[0], idle);
    assert_eq!(identity(&model, 0), Err(Error::NoBirth { pid: 0 }));
    assert_eq!(Error::NoBirth { pid: 0 }.code(), Code::AccessDenied);
    assert_eq!(model.calls(|call| matches!(call, Call::Open(0, _))), 0);
    // Wine has none.
    let mut world = world();
    world.idle = false;
    let model = Model::new(world);
    assert_eq!((row(&model, 0), identity(&model, 0)), (None, Ok(None)));
}

#[test]
fn a_birth_that_is_no_time_leaves_a_row_without_identity() {
    let expected = Snapshot { identity: None, ..expected(&world(), PID) };
    let model = Model::new(with(|process| process.created = 0x5555_5555_5555_5555));
    assert_eq!(row(&model, PID), Some(expected.clone()));
    assert_eq!(row_in_full(&model, PID), Some(expected));
    assert_eq!(identity(&model, PID), Err(Error::NoBirth { pid: PID }));
}

#[test]
fn a_census_without_the_caller_is_incomplete() {
    let mut world = world();
    world.end(OWN_PID);
    assert_eq!(full(&Model::new(world)), Err(Error::OwnPidMissing { pid: OWN_PID }));
}

// The list.

#[test]
fn of_two_records_of_one_pid_the_later_birth_has_it() {
    let mut world = world();
    let ghost = world.find(PID).unwrap().clone();
    world.end(PID);
    world.spawn(PID, 8);
    world.ghost = Some(ghost);
    let model = Model::new(world);
    let wanted = Some(expected(&model.world(), PID));
    assert_eq!((row(&model, PID), row_in_full(&model, PID)), (wanted.clone(), wanted));
    assert_eq!(identity(&model, PID).unwrap(), expected(&model.world(), PID).identity);
}

#[test]
fn the_buffer_grows_until_the_list_fits_and_is_remembered() {
    for says_needed in [None, Some(0)] {
        let mut world = world();
        (world.padding, world.says_needed) = (3_000_000, says_needed);
        let model = Model::new(world);
        let host = host(&model);
        let queries = |most: usize| {
            model.world().log.clear();
            take(&host, Selection::All(Visibility::All), Deadline::after(None)).unwrap();
            let queries = model.calls(|call| call == Call::Query);
            assert!(queries <= most, "{queries}");
        };
        queries(4);
        queries(1);
        // A list that wavers asks once; only a much smaller one gives the room back.
        for padding in [3_000_000, 2_000_000, 1_500_000, 3_000_000] {
            model.world().padding = padding;
            queries(1);
        }
        model.world().padding = 0;
        for _ in 0..4 {
            queries(1);
        }
        model.world().largest_buffer = 0;
        queries(1);
        assert!(model.world().largest_buffer < 1_000_000);
    }
}

#[test]
fn a_list_that_outgrows_every_buffer_is_cut_short() {
    for (padding, says_needed) in [(MOST, None), (MOST, Some(0)), (MOST, Some(usize::MAX))] {
        let mut world = world();
        (world.padding, world.says_needed) = (padding, says_needed);
        let model = Model::new(world);
        let error = full(&model).unwrap_err();
        assert_eq!((error.code(), error.reason()), (Code::Incomplete, Some(Reason::CutShort)));
        assert!(model.world().largest_buffer <= MOST);
        assert!(model.calls(|call| call == Call::Query) <= 12);
    }
}

#[test]
fn a_passed_deadline_is_a_timeout() {
    let late = Deadline::after(Some(Duration::ZERO));
    for selection in [Selection::All(Visibility::All), Selection::Pids(vec![PID])] {
        assert_eq!(take(&host(&Model::new(world())), selection, late), Err(Error::Timeout));
    }
    // Between two processes, too.
    let model = Model::scripted(world(), |_, _, call| {
        if call == Call::Open(OWN_PID, Access::Query) {
            std::thread::sleep(Duration::from_millis(60)); // a slow kernel
        }
    });
    let soon = Deadline::after(Some(Duration::from_millis(50)));
    assert_eq!(take(&host(&model), Selection::All(Visibility::All), soon), Err(Error::Timeout));
}

// Random interleavings.

const PIDS: [u32; 4] = [300, 304, 308, 312];

/// What happens before a call, by chance.
fn happen(world: &mut World, dice: u8) {
    let pid = PIDS[usize::from(dice >> 6)];
    let there = world.find(pid).is_some();
    match dice & 15 {
        0 | 1 if !there => drop(world.spawn(pid, OWN_PID)),
        _ if !there => {}
        2 => world.end(pid),
        3 | 4 => world.change(pid, |process| process.phase = process.phase.max(Phase::Ending)),
        5 => world.change(pid, |process| process.handles += 1),
        6 => world.change(pid, |process| process.threads = vec![SUSPENDED]),
        7 => world.change(pid, |process| process.threads = vec![(2, 0)]),
        8 => world.change(pid, |process| process.wait_refused = true),
        9 => world.change(pid, |process| process.refused = true),
        10 => world.change(pid, |process| process.threads = vec![]),
        _ => {}
    }
}

/// The row is of one birth that was there during the call, and no later than that birth ever was.
fn assert_true(world: &World, row: &Snapshot, births_before: &[u32], next_birth: u32) {
    let Some(identity) = row.identity else {
        let told = (row.state, row.exiting, row.owner);
        assert_eq!(told, (None, false, Owner::Unknown), "{row:?}");
        return;
    };
    let told = |form: &Process| {
        form.pid == row.pid
            && form.row().identity.unwrap() == Identity { exited: false, ..identity }
    };
    let (birth, forms) = world.history.iter().find(|(_, forms)| told(&forms[0])).unwrap();
    assert!(births_before.contains(birth) || *birth >= next_birth, "{row:?} was over before");
    assert_eq!(row.parent_pid, Some(identity.parent_pid));
    if let Some(name) = &row.name {
        assert_eq!(&name[..], forms[0].name().as_bytes());
    }
    assert!(row.owner == Owner::Unknown || row.owner == forms[0].row().owner, "{row:?}");
    let last = forms.last().unwrap().phase;
    assert!(!identity.exited || last == Phase::Ended, "{row:?} has not exited");
    assert!(!row.exiting || last >= Phase::Ending, "{row:?} does not exit");
    assert!(row.state != Some(State::Stopped) || forms.iter().any(|it| it.threads == [SUSPENDED]));
    assert_eq!(row.state == Some(State::Zombie), identity.exited);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROC_SAFE_MODEL_CASES").map_or(20_000, |cases| cases.parse().unwrap()),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_interleaving_mixes_loses_or_invents(
        before in prop::collection::vec(any::<u8>(), 0..12),
        during in prop::collection::vec(any::<u8>(), 0..60),
        which in 0..3_u8,
    ) {
        let mut world = World::new();
        for &dice in &before {
            happen(&mut world, dice);
        }
        world.log.clear();
        let there: Vec<u32> = world.objects.keys().copied().collect();
        let listed: Vec<u32> =
            world.objects.values().filter(|it| it.phase == Phase::Live).map(|it| it.birth).collect();
        let next_birth = world.births + 1;
        let model = Model::scripted(world, move |world, number, _| {
            if let Some(&dice) = during.get(number) {
                happen(world, dice);
            }
        });
        if which == 0 {
            for pid in PIDS {
                match identity(&model, pid) {
                    Ok(Some(identity)) => {
                        let exited = identity.exited;
                        let row = Snapshot {
                            parent_pid: Some(identity.parent_pid),
                            state: exited.then_some(State::Zombie),
                            identity: Some(identity),
                            ..Snapshot::bare(pid)
                        };
                        assert_true(&model.world(), &row, &there, next_birth);
                    }
                    Ok(None) => {
                        let world = model.world();
                        let stayed = |birth: &&u32| world.objects.get(birth).is_some_and(|it| it.pid == pid);
                        assert_eq!(there.iter().find(stayed), None);
                    }
                    Err(error) => assert!(matches!(
                        error.code(),
                        Code::AccessDenied | Code::Incomplete,
                    )),
                }
            }
            return Ok(());
        }
        let rows = if which == 1 {
            full(&model)
        } else {
            census(&model, Selection::Pids(PIDS.to_vec()))
        };
        let rows = rows.unwrap();
        let world = model.world();
        for row in rows.iter().filter(|row| row.pid != 0) {
            assert_true(&world, row, &there, next_birth);
        }
        // Who was there all the while has a row: of its birth, or a bare one.
        let stayed = if which == 1 { &listed } else { &there };
        for birth in stayed {
            let Some(process) = world.objects.get(birth) else { continue };
            if process.pid == OWN_PID && which == 2 || process.phase != Phase::Live && which == 1 {
                continue;
            }
            let row = rows.iter().find(|row| row.pid == process.pid);
            assert!(row.is_some(), "{process:?} has no row");
        }
        for row in &rows {
            assert!(rows.iter().filter(|other| other.pid == row.pid).count() == 1);
        }
    }
}
