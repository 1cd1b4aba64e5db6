//! The Darwin census at its edges: what a hostile reader found, and mutations that the other tests let live.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]
#[allow(dead_code)] // what the other file uses
mod xnu;
use proc_safe_core::census::{Deadline, Host as _, Selection, Visibility, take};
use proc_safe_core::darwin::Darwin;
use proc_safe_core::darwin::info::{self, Flavor};
use proc_safe_core::darwin::record::{MOST_HELPERS, Record, RecordAnswer};
use proc_safe_core::error::{Code, Errno, Error};
use proc_safe_core::facts::{Identity, Owner, Snapshot, State};
use proc_safe_core::helpers::Gate;
use std::time::Duration;
use xnu::{Call, Instead, Model, OWN_PID, Phase, World, birth, short, unique};
const PID: u32 = 300;
const EPERM: Instead = Instead::Fail(Errno::EPERM);
fn gate() -> &'static Gate {
    Box::leak(Box::new(Gate::new(MOST_HELPERS)))
}
fn sel(m: &Model, pid: u32) -> Result<Option<Snapshot>, Error> {
    take(&Darwin::new(m.clone(), gate()), Selection::Pids(vec![pid]), Deadline::after(None))
        .map(|mut r| r.pop())
}
fn row(m: &Model) -> Option<Snapshot> {
    sel(m, PID).unwrap()
}
fn id(m: &Model) -> Result<Option<Identity>, Error> {
    Darwin::new(m.clone(), gate()).read_identity(PID)
}
fn own(phase: Phase) -> World {
    let mut w = World::new();
    w.spawn(PID, OWN_PID);
    w.change(PID, |p| p.phase = phase);
    w
}
fn foreign(phase: Phase) -> World {
    let mut w = World::new();
    w.spawn(PID - 1, OWN_PID);
    w.spawn(PID, OWN_PID);
    w.change(PID, |p| p.phase = phase);
    w
}

const START_OWN: fn(Phase) -> World = own;
const STARTS: [fn(Phase) -> World; 2] = [own, foreign];

#[test]
fn flavor_3_alone_gives_an_identity() {
    let mut w = own(Phase::Live);
    w.instead.insert(short(PID), EPERM);
    w.instead.insert(Call::Record(PID), EPERM);
    let p = w.processes[&PID].clone();
    let m = Model::new(w);
    assert_eq!(id(&m).unwrap().unwrap().start_time_micros, p.start_micros());
}
#[test]
fn parent_behind_debugger_with_both_refused() {
    for at in 0..8 {
        let mut w = own(Phase::Live);
        w.spawn(400, 1);
        w.change(PID, |p| p.debugger = Some(400));
        w.instead.insert(unique(PID), EPERM);
        w.instead.insert(short(PID), EPERM);
        let m = Model::scripted(w, move |w, n, _| {
            if n == at {
                w.reap(PID);
                w.spawn(PID, 1);
                w.change(PID, |p| p.debugger = Some(OWN_PID));
            }
        });
        let f = id(&m).unwrap().unwrap();
        let w = m.world();
        let b = w
            .history
            .values()
            .filter_map(|f| f.last())
            .find(|o| o.start_micros() == f.start_time_micros)
            .unwrap();
        assert_eq!(f.parent_pid, b.parent, "{at}");
    }
}
#[test]
fn absent_record_names_no_debugger() {
    let mut w = own(Phase::Live);
    w.spawn(400, 1);
    w.change(PID, |p| p.debugger = Some(400));
    w.instead.insert(Call::Record(PID), Instead::Record(RecordAnswer::Absent));
    assert_ne!(row(&Model::new(w)).unwrap().parent_pid, Some(400));
}
#[test]
fn an_unproved_parent_is_asked_again() {
    let mut w = own(Phase::Live);
    w.spawn(400, 1);
    w.change(PID, |p| p.debugger = Some(400));
    let r = Record { original_parent_pid: 0, ..w.processes[&PID].record() };
    let m = Model::scripted(w, move |w, n, _| {
        if n == 0 {
            w.instead.insert(Call::Record(PID), Instead::Record(RecordAnswer::Present(r.clone())));
        }
        if n == 4 {
            w.instead.clear();
        }
    });
    assert_eq!(row(&m).unwrap().parent_pid, Some(OWN_PID));
}
#[test]
fn untold_then_told() {
    for ph in [Phase::Live, Phase::Exiting] {
        let mut w = own(ph);
        w.instead.insert(unique(PID), EPERM);
        let p = w.processes[&PID].birth;
        let m = Model::scripted(w, |w, n, _| {
            if n == 1 {
                w.instead.clear();
            }
        });
        if ph == Phase::Exiting {
            assert_eq!(row(&m).unwrap().identity.unwrap().unique_id, Some(p.into()));
        } else {
            row(&m);
        }
    }
}
#[test]
fn untold_then_gone() {
    for at in 1..6 {
        let mut w = own(Phase::Exiting);
        w.instead.insert(unique(PID), EPERM);
        let m = Model::scripted(w, move |w, n, _| {
            if n == at {
                w.instead.clear();
                if at >= 3 {
                    w.reap(PID);
                }
            }
        });
        let r = row(&m);
        assert_eq!(r.is_none(), at == 3, "{at}");
    }
}
#[test]
fn born_and_gone_between_the_ids() {
    let m = Model::scripted(own(Phase::Reserved), |w, n, _| {
        if n == 2 {
            w.enter_phase(PID, Phase::Zombie);
        }
        if n == 3 {
            w.reap(PID);
        }
    });
    assert_eq!(row(&m), None);
}
#[test]
fn refused_at_the_trailing_call() {
    let m = Model::scripted(own(Phase::Live), |w, n, _| {
        if n == 3 {
            w.instead.insert(unique(PID), EPERM);
        }
    });
    let i = row(&m).unwrap().identity.unwrap();
    assert_eq!(i.unique_id, None);
}
#[test]
fn one_birth_known_is_no_bracket() {
    // before unknown, after another birth's
    let mut w = foreign(Phase::Live);
    w.instead.insert(unique(PID), EPERM);
    w.instead.insert(Call::Record(PID), EPERM);
    let m = Model::scripted(w, |w, n, _| {
        if n == 4 {
            w.instead.remove(&Call::Record(PID));
            w.recycle(PID);
            w.recycle(PID);
        }
    });
    let r = row(&m).unwrap();
    let b: u32 = std::str::from_utf8(&r.name.unwrap()[1..]).unwrap().parse().unwrap();
    assert_eq!(r.identity.unwrap().start_time_micros, m.world().history[&b][0].start_micros());
    // after refused once
    let mut w = foreign(Phase::Live);
    w.instead.insert(unique(PID), EPERM);
    let m = Model::scripted(w, |w, n, _| {
        if n == 4 {
            w.instead.insert(Call::Record(PID), EPERM);
        }
        if n == 5 {
            w.instead.remove(&Call::Record(PID));
        }
    });
    assert!(row(&m).unwrap().identity.is_some());
}
#[test]
fn other_errnos_are_errors() {
    let no = [2, 12, 22, 23, 35, 45];
    for e in no {
        for (call, w) in [
            (short(PID), START_OWN),
            (birth(PID), own),
            (Call::Record(PID), foreign),
            (unique(PID), own),
        ] {
            if call == unique(PID) && (e == 22 || e == 12) {
                continue;
            }
            let mut w = w(Phase::Live);
            w.instead.insert(call, Instead::Fail(Errno(e)));
            let m = Model::new(w);
            for err in [sel(&m, PID).map(drop).err(), id(&m).map(drop).err()] {
                assert_eq!(err.map(|e| e.code()), Some(Code::OperationFailed), "{call:?} {e}");
            }
        }
    }
    // the record says ESRCH
    let mut w = foreign(Phase::Live);
    w.instead.insert(Call::Record(PID), Instead::Fail(Errno::ESRCH));
    assert_eq!(sel(&Model::new(w), PID).unwrap_err().code(), Code::OperationFailed);
    let mut w = own(Phase::Live);
    w.change(PID, |p| p.debugger = Some(1));
    w.instead.insert(Call::Record(PID), Instead::Fail(Errno(5)));
    assert_eq!(sel(&Model::new(w), PID).unwrap_err().code(), Code::OperationFailed);
}
#[test]
fn exited_in_a_birth() {
    for w in STARTS {
        for ph in [Phase::Live, Phase::ExitBegun, Phase::Exiting, Phase::Zombie] {
            let mut w = w(ph);
            w.instead.insert(short(PID), EPERM);
            w.instead.insert(Call::Info(PID, Flavor::Short, true), EPERM);
            let m = Model::new(w);
            // the model answers an Instead before it looks: refused, as a MAC policy refuses the dead too
            if let Ok(Some(i)) = id(&m) {
                assert_eq!(i.exited, ph == Phase::Zombie, "{ph:?}");
            } else {
                panic!("{ph:?}")
            }
        }
    }
}
#[test]
fn the_greatest_pid_is_asked_for() {
    let m = Model::new(World::new());
    assert_eq!(sel(&m, i32::MAX.cast_unsigned()), Ok(None));
    assert!(!m.world().log.is_empty());
}
#[test]
fn deadline_between_reads() {
    for (which, most) in [(Call::Estimate, 0), (short(0), 1)] {
        let m = Model::scripted(own(Phase::Live), move |w, _, c| {
            if c == which {
                std::thread::sleep(Duration::from_millis(60));
            }
            if which == Call::Estimate {
                w.kernel_room = Some(1);
            }
        });
        let h = Darwin::new(m.clone(), gate());
        assert_eq!(
            take(
                &h,
                Selection::All(Visibility::All),
                Deadline::after(Some(Duration::from_millis(40)))
            ),
            Err(Error::Timeout)
        );
        let w = m.world();
        if which == Call::Estimate {
            assert_eq!(w.log.iter().filter(|&&c| c == Call::List).count(), 1);
        }
        let n = w.log.iter().filter(|c| matches!(c, Call::Info(1 | OWN_PID | PID, ..))).count();
        assert!(n == 0, "{n} {most}");
    }
}
#[test]
fn sixteen_tries_and_no_more() {
    let m = Model::scripted(own(Phase::Live), |w, _, c| {
        if c == unique(PID) {
            w.recycle(PID);
        }
    });
    assert_eq!(row(&m), Some(Snapshot::bare(PID)));
    assert_eq!(m.world().log.iter().filter(|&&c| c == short(PID)).count(), 16);
    let m = Model::scripted(own(Phase::Live), |w, n, c| {
        if c == unique(PID) && n < 15 * 4 {
            w.recycle(PID);
        }
    });
    assert_ne!(row(&m), Some(Snapshot::bare(PID)));
}
#[test]
fn bytes_at_their_limits() {
    assert_eq!(&info::name_of(b"sixteen-letters!\0")[..], b"sixteen-letters");
    for s in [0, 6, 7, 255] {
        assert_eq!(info::state_of(s), None);
    }
    for s in [1, 2, 3] {
        assert_eq!(info::state_of(s), Some(State::Running));
    }
    assert_eq!(info::micros_since_epoch(-1, 0), None);
    assert_eq!(info::micros_since_epoch(0, -1), None);
    assert_eq!(info::micros_since_epoch(0, 1_000_000), None);
    assert_eq!(info::micros_since_epoch(1, 999_999), Some(1_999_999));
}
#[test]
fn untold_short_and_absent_id() {
    for w in STARTS {
        let mut w = w(Phase::Live);
        w.instead.insert(short(PID), EPERM);
        w.instead.insert(unique(PID), Instead::Fail(Errno::ESRCH));
        let p = w.processes[&PID].clone();
        assert_eq!(
            id(&Model::new(w)).map(|i| i.map(|i| i.start_time_micros)),
            Ok(Some(p.start_micros()))
        );
    }
}
#[test]
fn traced_with_absent_record_keeps_its_topology() {
    let mut w = own(Phase::Live);
    w.spawn(400, 1);
    w.change(PID, |p| p.debugger = Some(400));
    w.instead.insert(Call::Record(PID), Instead::Record(RecordAnswer::Absent));
    assert!(row(&Model::new(w)).unwrap().process_group_id.is_some());
}
#[test]
fn two_doubts_of_different_kinds() {
    // A foreign embryo (doubt 1) is reaped; its successor is exiting when looked at and replaced by a live one before its record (doubt 2).
    let m = Model::scripted(foreign(Phase::Embryo), |w, n, _| match n {
        4 => {
            w.recycle(PID);
            w.enter_phase(PID, Phase::Exiting);
        }
        6 => {
            w.recycle(PID);
        }
        _ => {}
    });
    assert_ne!(row(&m), Some(Snapshot::bare(PID)), "{:?}", m.world().log);
}
#[test]
fn a_cut_list_is_not_called_own_pid_missing() {
    let mut w = World::new();
    for p in 1000..1040 {
        w.spawn(p, OWN_PID);
    }
    w.kernel_room = Some(5);
    assert_eq!(
        take(
            &Darwin::new(Model::new(w), gate()),
            Selection::All(Visibility::All),
            Deadline::after(None)
        ),
        Err(Error::CutShort)
    );
}

#[test]
fn a_number_that_can_be_no_pid_is_no_group_and_no_parent() {
    for group in [u32::MAX, 0xdead_dead] {
        let mut answer = vec![0; 64];
        answer[..4].copy_from_slice(&PID.to_le_bytes());
        answer[8..12].copy_from_slice(&group.to_le_bytes());
        assert_eq!(info::parse_short(&answer, PID).unwrap().process_group, 0);
        answer[4..8].copy_from_slice(&group.to_le_bytes());
        assert_eq!(info::parse_short(&answer, PID), None);
    }
}

#[test]
fn answers_that_never_agree_on_the_parent_leave_what_libproc_says() {
    let mut world = foreign(Phase::Live);
    let record = Record { parent_pid: 1, ..world.processes[&PID].record() };
    let answer = Instead::Record(RecordAnswer::Present(record));
    world.instead.insert(Call::Record(PID), answer);
    let found = row(&Model::new(world)).unwrap();
    assert_eq!((found.parent_pid, found.identity), (Some(OWN_PID), None));
    assert!(found.process_group_id.is_some() && found.state == Some(State::Running));
}

#[test]
fn a_traced_child_of_launchd_is_launchds() {
    let mut world = World::new();
    world.spawn(400, 1);
    world.spawn(PID, 1);
    world.change(PID, |process| process.debugger = Some(400));
    for phase in [Phase::Live, Phase::Exiting] {
        world.enter_phase(PID, phase);
        let mut again = World::new();
        again.put(world.processes[&400].clone());
        again.put(world.processes[&PID].clone());
        assert_eq!(row(&Model::new(again)).unwrap().parent_pid, Some(1));
    }
}

#[test]
fn root_is_asked_for_the_record_and_owns_only_its_own() {
    let mut world = own(Phase::Live);
    world.as_root = true;
    let process = world.processes[&PID].clone();
    let found = row(&Model::new(world)).unwrap();
    assert_eq!((found.owner, found.uid), (Owner::Different, Some(process.uid())));
    assert_eq!(found.identity.unwrap().start_time_micros, process.start_micros());
}

#[test]
fn the_deadline_is_looked_at_between_rows() {
    // The caller's own processes need no record, so no helper looks at it.
    let model = Model::scripted(own(Phase::Live), |_, _, call| {
        if call == birth(OWN_PID) {
            std::thread::sleep(Duration::from_millis(300));
        }
    });
    let host = Darwin::new(model.clone(), gate());
    let soon = Deadline::after(Some(Duration::from_millis(200)));
    let taken = take(&host, Selection::Pids(vec![OWN_PID, PID]), soon);
    assert_eq!(taken, Err(Error::Timeout));
    assert!(!model.world().log.contains(&short(PID)));
    let all = take(
        &host,
        Selection::All(Visibility::All),
        Deadline::after(Some(Duration::from_millis(200))),
    );
    assert_eq!(all, Err(Error::Timeout));
    assert!(!model.world().log.contains(&short(PID)));
}

#[test]
fn a_birth_of_another_length_or_pid_is_none() {
    let mut answer = vec![0; 136];
    answer[12..16].copy_from_slice(&PID.to_le_bytes());
    answer[120] = 9;
    assert_eq!(info::parse_bsd(&answer, PID).unwrap().start_micros, 9_000_000);
    assert_eq!(info::parse_bsd(&answer, PID + 1), None);
    for length in [0, 135] {
        assert_eq!(info::parse_bsd(&answer[..length], PID), None);
    }
    answer.push(0);
    assert_eq!(info::parse_bsd(&answer, PID), None);
}
