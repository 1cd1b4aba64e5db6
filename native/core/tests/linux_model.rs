//! The Linux census against a scripted kernel: each design rule, and random interleavings.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod model;

use model::{Call, Glitch, Model, OWN_PID, OWN_UID, Process, Thread, World};
use proc_safe_core::census::{Deadline, Host as _, Selection, Visibility, take};
use proc_safe_core::command::{Described, DescribingHost as _};
use proc_safe_core::error::{Code, Errno, Error, Reason};
use proc_safe_core::facts::{Command, Owner, Snapshot, State};
use proc_safe_core::guard::guarded;
use proc_safe_core::linux::Linux;
use proc_safe_core::linux::birth::ClockSample;
use proc_safe_core::linux::command::Part;
use proc_safe_core::linux::ground::Ground;
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop, prop_oneof, proptest};
use std::collections::HashSet;
use std::time::Duration;

const PID: u32 = 300;

fn census(model: &Model<'_>, selection: Selection) -> Result<Vec<Snapshot>, Error> {
    let ground = model.ground();
    let host = Linux::new(model, &ground)?;
    take(&host, selection, Deadline::after(None))
}

fn full(model: &Model<'_>) -> Result<Vec<Snapshot>, Error> {
    census(model, Selection::All(Visibility::All))
}

fn row(model: &Model<'_>, pid: u32) -> Option<Snapshot> {
    census(model, Selection::Pids(vec![pid])).unwrap().pop()
}

fn identity(model: &Model<'_>, pid: u32) -> Result<Option<proc_safe_core::facts::Identity>, Error> {
    let ground = model.ground();
    Linux::new(model, &ground)?.read_identity(pid)
}

fn identity_error(model: &Model<'_>) -> Error {
    identity(model, PID).unwrap_err()
}

fn world_with(pid: u32) -> World {
    let mut world = World::new();
    world.spawn(pid, OWN_PID);
    world
}

/// The row says what one birth in the history said at one instant.
fn assert_unmixed(world: &World, row: &Snapshot) {
    let Some(name) = row.name.as_deref() else {
        assert_eq!(row, &Snapshot { uid: row.uid, owner: row.owner, ..Snapshot::bare(row.pid) });
        return;
    };
    let name = std::str::from_utf8(name).unwrap();
    let birth: u32 = name[1..name.find(')').unwrap()].parse().unwrap();
    let forms = &world.history[&birth];
    let one = &forms[0];
    assert_eq!(row.pid, one.pid);
    if let Some(uid) = row.uid {
        assert_eq!(uid, one.uid(), "owner of another process");
        let same = if uid == OWN_UID { Owner::Same } else { Owner::Different };
        assert_eq!(row.owner, same);
    }
    assert_eq!(row.process_group_id, Some(one.group()));
    assert_eq!(row.session_id, Some(one.session()));
    let identity = row.identity.unwrap();
    let micros = i64::try_from(one.ticks() * 10_000).unwrap();
    assert_eq!(identity.start_time_since_boot_micros, Some(micros));
    assert_eq!(row.parent_pid, Some(identity.parent_pid));
    assert!(forms.iter().any(|form| row.parent_pid == Some(form.parent)));
    let zombie = forms.iter().any(Process::is_zombie);
    assert_eq!(identity.exited, row.state == Some(State::Zombie));
    assert!(zombie || !identity.exited, "a live process is called dead");
    assert!(!row.exiting || forms.iter().any(Process::is_exiting), "exiting was not observed");
    assert!(!(row.exiting && identity.exited));
    if let Some(inode) = identity.unique_id {
        assert_eq!(inode, one.inode());
    }
}

#[test]
fn a_pid_that_changes_hands_before_any_read_gives_an_unmixed_row() {
    for from in 0..12 {
        for every in 1..4 {
            let model = Model::scripted(world_with(PID), |world, number, _| {
                if number >= from && (number - from) % every == 0 && number < from + 8 {
                    world.recycle(PID);
                }
            });
            let row = row(&model, PID).expect("the pid is never free at a read");
            assert_unmixed(&model.world(), &row);
        }
    }
}

#[test]
fn an_identity_is_one_birth_down_to_the_pidfs_inode() {
    for from in 0..12 {
        let model = Model::scripted(world_with(PID), |world, number, _| {
            if number >= from && number < from + 5 {
                world.recycle(PID);
            }
        });
        let identity = identity(&model, PID).unwrap().unwrap();
        let inode = identity.unique_id.unwrap();
        let world = model.world();
        let birth = world.history.values().map(|forms| &forms[0]).find(|p| p.inode() == inode);
        let micros = i64::try_from(birth.unwrap().ticks() * 10_000).unwrap();
        assert_eq!(identity.start_time_since_boot_micros, Some(micros));
    }
}

#[test]
fn the_owner_is_read_between_open_and_read() {
    let model = Model::new(world_with(PID));
    row(&model, PID).unwrap();
    assert_eq!(model.world().log, [Call::Open(PID), Call::Directory(PID), Call::Read(PID)]);
}

#[test]
fn each_batch_is_read_before_the_next_is_listed() {
    let mut world = World::new();
    for pid in 100..120 {
        world.spawn(pid, OWN_PID);
    }
    let model = Model::new(world);
    full(&model).unwrap();
    let world = model.world();
    let longest = world.log.split(|call| matches!(call, Call::Open(_))).map(<[_]>::len).max();
    let lists = world.log.iter().filter(|call| **call == Call::List).count();
    assert!(lists > 4 && longest.unwrap() <= 4, "listed ahead of the reads: {:?}", world.log);
}

fn crowd(processors: usize) -> World {
    let mut world = World::with_processors(processors);
    for pid in 100..400 {
        world.spawn(pid, OWN_PID);
    }
    world
}

#[test]
fn helpers_come_only_where_they_pay() {
    let threads = |host_processes, listed: std::ops::Range<u32>| {
        let mut world = World::with_processors(3);
        world.host_processes = host_processes;
        for pid in listed {
            world.spawn(pid, OWN_PID);
        }
        let seen = std::sync::Mutex::new(HashSet::new());
        let model = Model::scripted(world, |_, _, _| {
            seen.lock().unwrap().insert(std::thread::current().id());
            // Time for the others: a model answers faster than a thread starts.
            std::thread::sleep(Duration::from_micros(100));
        });
        full(&model).unwrap();
        drop(model);
        seen.into_inner().unwrap().len()
    };
    assert_eq!(threads(400, 100..400), 1, "on a small host");
    assert_eq!(threads(1_000, 100..120), 1, "in a small namespace on a large host");
    assert_eq!(threads(1_000, 100..400), 3);
}

#[test]
fn helpers_read_every_process_once() {
    for processors in 1..6 {
        let model = Model::new(crowd(processors));
        let pids: Vec<u32> = full(&model).unwrap().iter().map(|row| row.pid).collect();
        let all: Vec<u32> = [1, OWN_PID].into_iter().chain(100..400).collect();
        assert_eq!(pids, all);
        let opened = model.world().log.iter().filter(|call| matches!(call, Call::Open(_))).count();
        assert_eq!(opened, all.len());
    }
}

#[test]
fn a_shortage_that_helpers_make_fails_no_census() {
    // Every thread but the caller finds no descriptor.
    let caller = std::thread::current().id();
    let model = Model::scripted(crowd(3), move |world, _, call| {
        if matches!(call, Call::Open(_)) {
            world.errors.remove(&call);
            if std::thread::current().id() != caller {
                world.errors.insert(call, Errno::EMFILE);
            }
        }
    });
    assert_eq!(full(&model).unwrap().len(), 302);
}

#[test]
fn a_failure_or_panic_of_any_thread_is_the_calls() {
    for pid in [101, 250, 399] {
        let model = Model::new(crowd(3));
        model.world().errors.insert(Call::Open(pid), Errno(12));
        let error = full(&model).unwrap_err();
        assert_eq!((error.code(), error.pid()), (Code::OperationFailed, Some(pid)));

        let model = Model::scripted(crowd(3), move |_, _, call| {
            assert_ne!(call, Call::Open(pid), "a defect");
        });
        let error = guarded(|| full(&model)).unwrap_err();
        assert_eq!((error.code(), error.reason()), (Code::OperationFailed, Some(Reason::Panic)));
    }
}

#[test]
fn a_task_that_is_being_released_is_read_again() {
    let mut world = world_with(PID);
    world.glitch(PID, Glitch::Torn);
    let model = Model::new(world);
    let whole = row(&model, PID).unwrap();
    assert_unmixed(&model.world(), &whole);

    let model = Model::scripted(world_with(PID), |world, _, call| {
        if call == Call::Read(PID) && world.processes.contains_key(&PID) {
            let birth = world.processes[&PID].birth;
            world.releasing.insert(birth);
            world.reap(PID);
        }
    });
    assert_eq!(row(&model, PID), None, "still torn and then absent is gone");
}

#[test]
fn a_pid_that_never_holds_still_is_no_fact() {
    let always_torn = || {
        Model::scripted(world_with(PID), |world, _, call| {
            if call == Call::Read(PID) {
                world.glitch(PID, Glitch::Torn);
            }
        })
    };
    assert_eq!(row(&always_torn(), PID), Some(Snapshot::bare(PID)));
    let error = identity(&always_torn(), PID).unwrap_err();
    assert_eq!((error.code(), error.reason()), (Code::Incomplete, Some(Reason::UnstablePid)));
}

#[test]
fn a_dead_leader_with_live_threads_is_a_live_process() {
    let mut world = world_with(PID);
    world.change(PID, |process| {
        process.threads[0].dead = true;
        process.threads.push(Thread { tid: 301, exiting: false, dead: false });
    });
    let model = Model::new(world);
    let row = row(&model, PID).unwrap();
    assert_eq!((row.state, row.exiting), (Some(State::Running), false));
    assert!(!row.identity.unwrap().exited);
}

#[test]
fn a_dead_leader_whose_threads_all_exit_is_exiting() {
    let mut world = world_with(PID);
    world.change(PID, |process| {
        process.threads[0].dead = true;
        process.threads.push(Thread { tid: 301, exiting: true, dead: false });
    });
    let model = Model::new(world);
    let row = row(&model, PID).unwrap();
    assert_eq!((row.state, row.exiting), (Some(State::Running), true));
    assert!(!row.identity.unwrap().exited);
}

#[test]
fn a_thread_made_during_the_first_pass_is_no_exit() {
    // The worker makes a thread after it was listed, and begins to exit before it is read.
    let mut world = world_with(PID);
    world.change(PID, |process| {
        process.threads[0].exiting = true;
        process.threads.push(Thread { tid: 301, exiting: false, dead: false });
    });
    let model = Model::scripted(world, |world, _, call| {
        if call == Call::ThreadStat(PID, 301) && world.processes[&PID].threads.len() == 2 {
            world.change(PID, |process| {
                process.threads[1].exiting = true;
                process.threads.push(Thread { tid: 302, exiting: false, dead: false });
            });
        }
    });
    assert!(!row(&model, PID).unwrap().exiting);
}

#[test]
fn a_threads_path_that_leads_to_the_dead_leader_is_no_exit() {
    // Captured: while thread 301 executed a program, /proc/300/task/301/stat read as thread 300's.
    for world_changes in [false, true] {
        let mut world = world_with(PID);
        world.change(PID, |process| {
            process.threads[0].dead = true;
            process.threads.push(Thread { tid: 301, exiting: world_changes, dead: false });
        });
        world.aliases.insert(301, PID);
        assert!(!row(&Model::new(world), PID).unwrap().exiting);
    }
}

#[test]
fn a_file_of_another_number_is_read_again_and_never_believed() {
    let mut once = Some(());
    let model = Model::scripted(world_with(PID), move |world, _, call| {
        if call == Call::Read(PID) && once.take().is_some() {
            world.glitch(PID, Glitch::OtherNumber);
        }
    });
    assert_eq!(row(&model, PID).unwrap().state, Some(State::Running));
    let model = Model::scripted(world_with(PID), |world, _, call| {
        if call == Call::Read(PID) {
            world.glitch(PID, Glitch::OtherNumber);
        }
    });
    let error = full(&model).unwrap_err();
    assert_eq!(error.reason(), Some(Reason::MalformedRecord));
}

#[test]
fn a_pid_that_is_now_hidden_and_now_torn_is_unstable() {
    let model = Model::scripted(world_with(PID), |world, _, call| {
        if call == Call::Open(PID) && !world.hidden.remove(&PID) {
            world.hidden.insert(PID);
        }
        if call == Call::Read(PID) {
            world.glitch(PID, Glitch::Torn);
        }
    });
    let error = identity(&model, PID).unwrap_err();
    assert_eq!(error.reason(), Some(Reason::UnstablePid));
}

#[test]
fn births_do_not_move_with_the_noise_of_the_clocks() {
    let model = Model::new(world_with(PID));
    let ground = model.ground();
    let sample = |nanos: i64| ClockSample { boot_before: 0, real: nanos, boot_after: 0 };
    let edge = 1_796_062_244_120_000_000; // a whole tick
    let first = ground.epoch_offset_micros(sample(edge));
    // A sample that was interrupted knows too little to tell a step.
    let late = ClockSample { boot_before: 0, real: edge + 30_000_000, boot_after: 60_000_000 };
    assert_eq!(ground.epoch_offset_micros(late), first);
    let early = ClockSample { real: edge, ..late };
    assert_eq!(ground.epoch_offset_micros(early), first);
    for noise in [-1, 1, -30, 30, -4_000_000, 4_000_000] {
        assert_eq!(ground.epoch_offset_micros(sample(edge + noise)), first);
    }
    let stepped = ground.epoch_offset_micros(sample(edge + 3_600_000_000_000));
    assert_eq!(stepped, first + 3_600_000_000);
    assert_eq!(ground.epoch_offset_micros(sample(edge + 3_600_000_000_000 - 1)), stepped);
}

#[test]
fn the_leaders_flag_alone_is_no_exit() {
    let mut world = world_with(PID);
    world.change(PID, |process| {
        process.threads[0].exiting = true;
        process.threads.push(Thread { tid: 301, exiting: false, dead: false });
    });
    let model = Model::new(world);
    assert!(!row(&model, PID).unwrap().exiting);
}

#[test]
fn an_exiting_process_keeps_every_fact() {
    let mut world = world_with(PID);
    world.change(PID, |process| process.threads[0].exiting = true);
    let model = Model::new(world);
    let row = row(&model, PID).unwrap();
    assert!(row.exiting && row.state == Some(State::Running) && !row.identity.unwrap().exited);
    assert_unmixed(&model.world(), &row);
}

#[test]
fn an_instant_of_exec_by_another_thread_is_no_death() {
    for glitch in [Glitch::NotLeading, Glitch::DeadLeader('Z'), Glitch::DeadLeader('X')] {
        let mut world = world_with(PID);
        world.change(PID, |process| {
            process.threads.push(Thread { tid: 301, exiting: false, dead: false });
        });
        world.glitch(PID, glitch);
        let model = Model::new(world);
        let row = row(&model, PID).expect("it lives");
        assert_eq!(row.state, Some(State::Running), "{glitch:?}");
        assert!(!row.identity.unwrap().exited && !row.exiting);
    }
}

#[test]
fn one_sample_of_death_is_none_also_behind_an_exiting_leader() {
    let mut world = world_with(PID);
    world.change(PID, |process| {
        process.threads[0].exiting = true;
        process.threads.push(Thread { tid: 301, exiting: false, dead: false });
    });
    let model = Model::scripted(world, |world, _, call| {
        let reads = world.log.iter().filter(|call| **call == Call::Read(PID)).count();
        if call == Call::Read(PID) && reads == 2 {
            world.glitch(PID, Glitch::DeadLeader('Z'));
        }
    });
    let row = row(&model, PID).unwrap();
    assert!(model.world().log.len() > 6, "the glimpse was not seen");
    assert_eq!(row.state, Some(State::Running));
    assert!(!row.identity.unwrap().exited);
}

#[test]
fn a_zombie_is_seen_twice_and_keeps_its_facts() {
    let mut world = world_with(PID);
    world.change(PID, |process| process.threads[0].dead = true);
    let model = Model::new(world);
    let row = row(&model, PID).unwrap();
    assert_eq!(row.state, Some(State::Zombie));
    assert!(row.identity.unwrap().exited && !row.exiting);
    let reads = model.world().log.iter().filter(|call| **call == Call::Read(PID)).count();
    assert_eq!(reads, 2);
}

#[test]
fn the_letters_of_the_manual_and_no_other() {
    for (letter, state) in [
        ('R', Some(State::Running)),
        ('S', Some(State::Running)),
        ('D', Some(State::Running)),
        ('I', Some(State::Running)),
        ('P', Some(State::Running)),
        ('T', Some(State::Stopped)),
        ('t', Some(State::Stopped)),
        ('q', None),
    ] {
        let mut world = world_with(PID);
        world.change(PID, |process| process.letter = letter);
        assert_eq!(row(&Model::new(world), PID).unwrap().state, state, "{letter}");
    }
}

#[test]
fn a_thread_is_no_process() {
    let mut world = world_with(PID);
    world.change(PID, |process| {
        process.threads.push(Thread { tid: 301, exiting: false, dead: false });
    });
    let model = Model::new(world);
    assert_eq!(row(&model, 301), None);
    assert_eq!(identity(&model, 301), Ok(None));
    // Nor where procfs closes it: the null signal decides.
    model.world().closed.insert(301);
    assert_eq!(row(&model, 301), None);
}

#[test]
fn a_listed_pid_that_became_a_thread_is_no_row() {
    let mut world = world_with(PID);
    world.spawn(400, OWN_PID);
    let model = Model::scripted(world, |world, _, call| {
        if call == Call::Open(400) && world.processes.contains_key(&400) {
            world.reap(400);
            world.change(PID, |process| {
                process.threads.push(Thread { tid: 400, exiting: false, dead: false });
            });
        }
    });
    let pids: Vec<u32> = full(&model).unwrap().iter().map(|row| row.pid).collect();
    assert_eq!(pids, [1, OWN_PID, PID]);
}

#[test]
fn hidden_is_not_gone() {
    let mut world = world_with(PID);
    world.hidden.insert(PID);
    let model = Model::new(world);
    assert_eq!(row(&model, PID), Some(Snapshot::bare(PID)));
    let error = identity(&model, PID).unwrap_err();
    assert_eq!(
        (error.code(), error.reason()),
        (Code::AccessDenied, Some(Reason::VisibilityPolicy))
    );
    model.world().reap(PID);
    assert_eq!(row(&model, PID), None);
    assert_eq!(identity(&model, PID), Ok(None));
}

#[test]
fn closed_is_not_hidden_and_shows_its_owner() {
    let mut world = world_with(PID);
    let uid = world.processes[&PID].uid();
    world.closed.insert(PID);
    let model = Model::new(world);
    let expected = Snapshot { uid: Some(uid), owner: Owner::Different, ..Snapshot::bare(PID) };
    assert_eq!(row(&model, PID), Some(expected));
    let error = identity(&model, PID).unwrap_err();
    assert_eq!((error.code(), error.reason()), (Code::AccessDenied, None));
    assert_eq!(error.system(), Some(("openat", Errno::EPERM)));
    // Without a pidfd nothing binds the directory's owner to a process.
    model.world().no_pidfd = true;
    assert_eq!(row(&model, PID), Some(Snapshot::bare(PID)));
}

#[test]
fn the_owner_of_a_closed_process_is_not_its_predecessors() {
    for from in 0..8 {
        let mut world = world_with(PID);
        world.closed.insert(PID);
        let model = Model::scripted(world, |world, number, _| {
            if number == from {
                world.recycle(PID);
            }
        });
        let row = row(&model, PID).unwrap();
        let world = model.world();
        let owners: HashSet<u32> = world
            .history
            .values()
            .map(|p| &p[0])
            .filter(|p| p.pid == PID)
            .map(Process::uid)
            .collect();
        assert!(row.uid.is_none_or(|uid| owners.contains(&uid)));
    }
}

#[test]
fn a_full_census_under_a_hiding_policy_is_not_whole() {
    let mut world = world_with(PID);
    world.hidden.insert(1);
    let model = Model::new(world);
    let options = |options: &str| {
        let line = format!("22 1 0:21 / /proc rw - proc proc rw,{options}\n");
        model.world().files.insert("self/mountinfo".into(), line.into_bytes());
        full(&model).map(|rows| rows.len())
    };
    assert_eq!(options("hidepid=invisible"), Err(Error::NotWhole));
    assert_eq!(options("hidepid=ptraceable"), Err(Error::NotWhole));
    assert_eq!(options("hidepid=invisible,gid=7"), Ok(2));
    assert_eq!(options("hidepid=ptraceable,gid=7"), Err(Error::NotWhole));
    assert_eq!(options("hidepid=noaccess"), Ok(2));
    assert_eq!(options("hidepid=2"), Err(Error::NotWhole));
    let visible = census(&model, Selection::All(Visibility::Visible));
    assert_eq!(visible.map(|rows| rows.len()), Ok(2));
    // A capability of another user namespace than the initial one proves nothing.
    model.world().capabilities = 1 << 19;
    model.world().hidden.clear();
    assert_eq!(options("hidepid=2"), Ok(3));
    model.world().links.insert("self/ns/user".into(), "user:[4026532000]".into());
    assert_eq!(options("hidepid=2"), Err(Error::NotWhole));
}

#[test]
fn a_capability_counts_only_if_it_shows_pid_1() {
    let world = |change: fn(&mut World)| {
        let mut world = world_with(PID);
        let line = b"22 1 0:21 / /proc rw - proc proc rw,hidepid=invisible,gid=9\n".to_vec();
        world.files.insert("self/mountinfo".into(), line);
        world.capabilities = 1 << 19;
        change(&mut world);
        full(&Model::new(world)).map(|rows| rows.len())
    };
    assert_eq!(world(|_| ()), Ok(3));
    // A security module that confines the caller to its own processes.
    let confined = world(|world| {
        world.hidden.insert(1);
    });
    assert_eq!(confined, Err(Error::NotWhole));
    // The sight of pid 1 alone proves nothing: its user namespace may be the caller's.
    assert_eq!(world(|world| world.capabilities = 0), Err(Error::NotWhole));
}

#[test]
fn a_mount_that_is_not_listed_may_hide_anything() {
    let mut world = world_with(PID);
    world.hidden.insert(1);
    world.files.insert("self/mountinfo".into(), b"23 1 0:22 / /sys rw - sysfs sysfs rw\n".into());
    assert_eq!(full(&Model::new(world)), Err(Error::NotWhole));
}

#[test]
fn a_remount_during_the_census_is_noticed() {
    let model = Model::scripted(world_with(PID), |world, _, call| {
        if call == Call::Open(PID) {
            let line = b"22 1 0:21 / /proc rw - proc proc rw,hidepid=invisible\n".to_vec();
            world.files.insert("self/mountinfo".into(), line);
            world.hidden.insert(1);
        }
    });
    assert_eq!(full(&model), Err(Error::NotWhole));
}

#[test]
fn a_users_number_that_stands_for_all_unmapped_users_is_no_fact() {
    let mut world = world_with(PID);
    let uid = world.processes[&PID].uid();
    world.files.insert("self/uid_map".into(), b"0 1000 1\n".to_vec());
    world.files.insert("sys/kernel/overflowuid".into(), uid.to_string().into_bytes());
    let model = Model::new(world);
    let shown = row(&model, PID).unwrap();
    assert_eq!((shown.uid, shown.owner), (None, Owner::Unknown));
    assert_eq!(row(&model, OWN_PID).unwrap().owner, Owner::Same);
    let whole = b"0 0 4294967295\n".to_vec();
    model.world().files.insert("self/uid_map".into(), whole);
    assert_eq!(row(&model, PID).unwrap().uid, Some(uid));
}

#[test]
fn a_row_names_no_parent_that_was_gone_before_the_census_ended() {
    // The child is read, then its parent, which has a greater pid, is reaped.
    let mut world = World::new();
    world.spawn(400, OWN_PID);
    world.spawn(PID, 400);
    let model = Model::scripted(world, |world, _, call| {
        if call == Call::Open(400) {
            world.reap(400);
        }
    });
    let rows = full(&model).unwrap();
    let child = rows.iter().find(|row| row.pid == PID).unwrap();
    assert_eq!(child.parent_pid, Some(1));
    assert_eq!(child.identity.unwrap().parent_pid, 1);
}

#[test]
fn a_row_names_no_stranger_that_took_its_dead_parents_pid() {
    // The child is read, its parent is reaped, and the pid is another's before the list comes to it.
    let mut world = World::new();
    world.spawn(400, OWN_PID);
    world.spawn(PID, 400);
    let mut once = Some(());
    let model = Model::scripted(world, move |world, _, call| {
        if call == Call::Open(400) && once.take().is_some() {
            world.reap(400);
            for _ in 0..4 {
                world.spawn(399, OWN_PID); // time passes
                world.reap(399);
            }
            world.spawn(400, OWN_PID);
        }
    });
    let rows = full(&model).unwrap();
    assert!(rows.iter().any(|row| row.pid == 400), "the stranger has its own row");
    let child = rows.iter().find(|row| row.pid == PID).unwrap();
    assert_eq!(child.parent_pid, Some(1));
}

#[test]
fn nobody_stands_below_a_stranger_that_had_the_pid_of_its_parent_before() {
    // The stranger is read and reaped, and its pid is another's, who has a child by the time the list comes to it.
    let mut world = World::new();
    for pid in [200, 250, 251, 252, 253] {
        world.spawn(pid, OWN_PID);
    }
    let stranger = world.processes[&200].clone();
    world.boot_nanos = i64::try_from(stranger.ticks() + 2).unwrap() * 10_000_000;
    let mut once = Some(());
    let model = Model::scripted(world, move |world, _, call| {
        if call == Call::Open(250) && once.take().is_some() {
            world.recycle(200);
            world.recycle(200);
            world.spawn(PID, 200);
        }
    });
    let rows = full(&model).unwrap();
    let find = |pid| rows.iter().find(|row| row.pid == pid).unwrap();
    assert_eq!(find(PID).parent_pid, Some(200));
    assert_eq!(find(200), &row(&model, 200).unwrap());
    assert_ne!(find(200).name.as_deref(), Some(stranger.name().as_bytes()));
}

#[test]
fn a_parent_born_behind_the_reader_gets_its_row() {
    let model = Model::scripted(world_with(PID), |world, _, call| {
        if call == Call::Open(PID) && !world.processes.contains_key(&60) {
            world.spawn(60, OWN_PID);
            world.change(PID, |process| process.parent = 60);
        }
    });
    let pids: Vec<u32> = full(&model).unwrap().iter().map(|row| row.pid).collect();
    assert_eq!(pids, [1, OWN_PID, 60, PID]);
}

#[test]
fn the_callers_own_pid_must_be_there() {
    let model = Model::new(world_with(PID));
    model.world().processes.remove(&OWN_PID);
    assert_eq!(full(&model), Err(Error::OwnPidMissing { pid: OWN_PID }));
}

#[test]
fn failures_are_errors_and_not_rows() {
    const EMFILE: Errno = Errno(24);
    for call in [Call::Open(PID), Call::Directory(PID), Call::Read(PID), Call::List] {
        let model = Model::new(world_with(PID));
        model.world().errors.insert(call, EMFILE);
        let error = full(&model).unwrap_err();
        assert_eq!(error.code(), Code::OperationFailed, "{call:?}");
        assert_eq!(error.system().unwrap().1, EMFILE);
        assert_eq!(error.pid(), (call != Call::List).then_some(PID));
    }
    // A sandbox that refuses pidfd_open takes the unique id and nothing else.
    let model = Model::new(world_with(PID));
    model.world().errors.insert(Call::PidFd(PID), Errno::EPERM);
    let identity = identity(&model, PID).unwrap().unwrap();
    assert_eq!((identity.unique_id, identity.exited), (None, false));
    // A shortage is another matter: the next call may have it.
    let model = Model::new(world_with(PID));
    model.world().errors.insert(Call::PidFd(PID), EMFILE);
    let error = identity_error(&model);
    assert_eq!(error.system(), Some(("pidfd_open", EMFILE)));
    // An owner that is refused is absent.
    let model = Model::new(world_with(PID));
    model.world().errors.insert(Call::Directory(PID), Errno::EACCES);
    let row = row(&model, PID).unwrap();
    assert_eq!((row.uid, row.owner, row.state), (None, Owner::Unknown, Some(State::Running)));
}

#[test]
fn bytes_of_another_form_are_an_error() {
    let model = Model::scripted(world_with(PID), |world, _, call| {
        if call == Call::Read(PID) {
            world.change(PID, |process| process.letter = '7');
        }
    });
    let error = full(&model).unwrap_err();
    assert_eq!(
        (error.code(), error.reason()),
        (Code::OperationFailed, Some(Reason::MalformedRecord))
    );
}

#[test]
fn numbers_that_no_process_can_have_are_absent_without_a_call() {
    let model = Model::new(World::new());
    let pids = vec![0, 1 << 31, u32::MAX];
    assert_eq!(census(&model, Selection::Pids(pids)), Ok(vec![]));
    assert_eq!(identity(&model, 0), Ok(None));
    assert_eq!(model.world().log, []);
}

#[test]
fn a_passed_deadline_is_no_census() {
    let model = Model::new(world_with(PID));
    let ground = model.ground();
    let host = Linux::new(&model, &ground).unwrap();
    let now = Deadline::after(Some(Duration::ZERO));
    for selection in [Selection::All(Visibility::All), Selection::Pids(vec![PID])] {
        assert_eq!(take(&host, selection, now), Err(Error::Timeout));
    }
    let endless = Deadline::after(Some(Duration::MAX));
    assert_eq!(take(&host, Selection::Pids(vec![PID]), endless).unwrap().len(), 1);
}

#[test]
fn ground_that_is_not_ours_is_refused() {
    let refuse = |change: fn(&mut World)| {
        let mut world = World::new();
        change(&mut world);
        Ground::check(&Model::new(world)).unwrap_err().reason().unwrap()
    };
    assert_eq!(refuse(|world| world.magic = 0x0102_1994), Reason::ProcfsUnavailable);
    let foreign = Reason::ForeignProcfs;
    assert_eq!(refuse(|world| drop(world.links.insert("self".into(), "8679".into()))), foreign);
    assert_eq!(refuse(|world| drop(world.links.remove("self"))), foreign);
    // With set_tid a process can have the same number in two namespaces.
    let nested = |world: &mut World| {
        world.files.insert("self/status".into(), b"NSpid:\t50\t50\n".to_vec());
    };
    assert_eq!(refuse(nested), foreign);
    assert_eq!(
        refuse(|world| drop(world.files.insert("self/status".into(), vec![]))),
        Reason::ProcfsUnavailable
    );
}

#[test]
fn what_the_mount_lacks_is_absent() {
    let model = Model::new(World::new());
    let whole = model.ground();
    assert_eq!(whole.origin.boot_id.as_deref(), Some("d9a0c4de-0000-4000-8000-000000000000"));
    assert_eq!(whole.origin.pid_namespace.as_deref(), Some("4026531836"));
    assert_eq!(whole.origin.time_namespace, None);
    model.world().files.remove("sys/kernel/random/boot_id");
    model.world().links.insert("self/ns/time".into(), "time:[4026532001]".into());
    let ground = model.ground();
    assert_eq!(ground.origin.boot_id, None);
    assert_eq!(ground.origin.time_namespace.as_deref(), Some("4026532001"));
}

// Commands.

fn keys() -> Vec<Vec<u8>> {
    vec![b"WHO".to_vec(), b"NONE".to_vec()]
}

fn describe(model: &Model<'_>, pid: u32) -> Result<Option<Described>, Error> {
    let ground = model.ground();
    Linux::new(model, &ground)?.describe(pid, &keys())
}

fn command(model: &Model<'_>) -> Result<Option<Command>, Error> {
    describe(model, PID).unwrap().unwrap().1
}

/// A process of the caller's own user.
fn own_world() -> World {
    let mut world = World::new();
    world.spawn(PID - 1, OWN_PID);
    if world.processes[&(PID - 1)].is_own() {
        world.spawn(PID - 2, OWN_PID);
    }
    world.spawn(PID, OWN_PID);
    assert!(world.processes[&PID].is_own());
    world
}

fn foreign_world() -> World {
    let mut world = own_world();
    world.spawn(PID + 1, OWN_PID);
    world.reap(PID);
    world.spawn(PID, OWN_PID);
    if world.processes[&PID].is_own() {
        world.recycle(PID);
    }
    assert!(!world.processes[&PID].is_own());
    world
}

fn expected_command(process: &Process) -> Command {
    let who = format!("b{}p{}", process.birth, process.program).into_bytes();
    let open = process.is_own();
    Command {
        executable: open.then(|| process.executable()),
        arguments: vec![who.clone(), vec![]],
        working_directory: open.then(|| b"/0".to_vec()),
        environment: if open { vec![(0, who)] } else { vec![] },
        line: None,
    }
}

/// Row and command are of one birth, and the command of one program that it ran.
fn assert_one_program(world: &World, (row, command): &Described) {
    assert_unmixed(world, row);
    let Ok(Some(command)) = command else { return };
    let who = std::str::from_utf8(&command.arguments[0]).unwrap();
    let (birth, program) = who[1..].split_once('p').unwrap();
    let forms = &world.history[&birth.parse().unwrap()];
    let program = program.parse().unwrap();
    let form = forms.iter().find(|form| form.program == program).unwrap();
    assert_eq!(command, &expected_command(form));
    let name = row.name.as_deref().unwrap();
    assert_eq!(name, form.name().as_bytes(), "the command of another process");
}

#[test]
fn a_command_is_one_programs_whatever_is_executed_between_any_two_reads() {
    for from in 0..24 {
        for every in 1..6 {
            let mut programs = 0;
            let model = Model::scripted(own_world(), |world, number, _| {
                if number >= from && (number - from) % every == 0 && programs < 7 {
                    programs += 1;
                    // There and back: only the places of the image tell it from no execve(2).
                    world.execute(PID, programs % 2);
                }
            });
            let described = describe(&model, PID).unwrap().unwrap();
            assert!(described.1.is_ok(), "{described:?}");
            assert_one_program(&model.world(), &described);
        }
    }
}

#[test]
fn without_random_places_the_program_and_its_arguments_are_looked_at_twice() {
    for at in 0..24 {
        let mut world = own_world();
        world.fixed_places = true;
        let model = Model::scripted(world, |world, number, _| {
            if number == at {
                world.execute(PID, 1);
            }
        });
        let described = describe(&model, PID).unwrap().unwrap();
        assert!(described.1.is_ok(), "{described:?}");
        assert_one_program(&model.world(), &described);
    }
}

#[test]
fn without_random_places_the_memory_tells_two_runs_of_one_program_apart() {
    for from in 0..30 {
        // No two execve(2) are as close as three reads.
        for every in 4..16 {
            let mut runs = 1;
            let mut world = own_world();
            world.fixed_places = true;
            world.change(PID, |process| process.run = 1);
            let model = Model::scripted(world, |world, number, _| {
                if number >= from && (number - from) % every == 0 && runs < 7 {
                    runs += 1;
                    world.execute(PID, 0);
                    world.change(PID, |process| process.run = runs);
                }
            });
            let ground = model.ground();
            let keys = vec![b"RUN".to_vec()];
            let described = Linux::new(&model, &ground).unwrap().describe(PID, &keys).unwrap();
            let command = described.unwrap().1.unwrap().unwrap();
            let run = std::str::from_utf8(&command.environment[0].1).unwrap();
            assert_eq!(command.working_directory, Some(format!("/{run}").into_bytes()));
        }
    }
}

#[test]
fn a_glimpse_of_an_exec_is_no_cut() {
    for part in [Part::Arguments, Part::Environment] {
        for from in 0..30 {
            for until in from + 1..from + 12 {
                let mut world = own_world();
                world.fixed_places = true;
                let model = Model::scripted(world, |world, number, _| {
                    if (from..until).contains(&number) {
                        world.cut.insert(part, 0);
                    } else {
                        world.cut.clear();
                    }
                });
                let described = describe(&model, PID).unwrap().unwrap();
                assert!(described.1.is_ok(), "{described:?}");
                assert_one_program(&model.world(), &described);
            }
        }
    }
}

#[test]
fn an_environment_that_cannot_be_read_does_not_hide_the_rest_of_a_command() {
    for bytes in [0, 5] {
        let mut world = own_world();
        world.cut.insert(Part::Environment, bytes);
        let process = world.processes[&PID].clone();
        let model = Model::new(world);
        let ground = model.ground();
        let host = Linux::new(&model, &ground).unwrap();
        let (_, told) = host.describe(PID, &vec![]).unwrap().unwrap();
        let expected = Command { environment: vec![], ..expected_command(&process) };
        assert_eq!(told, Ok(Some(expected)));
    }
}

#[test]
fn the_birth_is_proved_after_the_command_was_read() {
    // Its leader is dead, and whoever has the pid next has a thread of the same number.
    let by_thread = |world: &mut World| {
        world.change(PID, |process| {
            process.threads.push(Thread { tid: PID + 7, exiting: false, dead: false });
            process.threads[0].dead = true;
        });
    };
    for threaded in [false, true] {
        for from in 0..24 {
            for (every, most) in [(1, 1), (1, 7), (2, 2), (3, 7), (4, 3)] {
                let mut left = most;
                let mut world = own_world();
                if threaded {
                    by_thread(&mut world);
                }
                let model = Model::scripted(world, |world, number, _| {
                    if number >= from && (number - from) % every == 0 && left > 0 {
                        left -= 1;
                        world.recycle(PID);
                        world.recycle(PID); // every other birth is the caller's
                        if threaded {
                            by_thread(world);
                        }
                    }
                });
                let described = describe(&model, PID).unwrap().unwrap();
                assert_one_program(&model.world(), &described);
            }
        }
    }
}

#[test]
fn a_process_that_never_holds_still_is_unstable_and_keeps_its_row() {
    let mut programs = 0;
    let model = Model::scripted(own_world(), |world, _, call| {
        if matches!(call, Call::Part(..)) {
            programs += 1;
            world.execute(PID, programs);
        }
    });
    let (row, command) = describe(&model, PID).unwrap().unwrap();
    assert_eq!(command, Err(Error::Unstable { pid: PID }));
    assert_unmixed(&model.world(), &row);
}

#[test]
fn null_is_for_the_gone_the_dead_and_those_without_an_image() {
    assert_eq!(describe(&Model::new(World::new()), PID), Ok(None));
    assert_eq!(describe(&Model::new(World::new()), 0), Ok(None));
    let mut world = own_world();
    world.change(PID, |process| process.threads[0].dead = true);
    assert_eq!(command(&Model::new(world)), Ok(None));
    let mut world = own_world();
    world.change(PID, |process| process.threads[0].exiting = true);
    assert_eq!(command(&Model::new(world)), Ok(None));
    // A dead leader says nothing of the process that its threads are.
    let mut world = own_world();
    world.change(PID, |process| {
        process.threads.push(Thread { tid: PID + 7, exiting: false, dead: false });
        process.threads[0].dead = true;
    });
    let process = world.processes[&PID].clone();
    assert_eq!(command(&Model::new(world)), Ok(Some(expected_command(&process))));
    let mut world = own_world();
    world.change(PID, |process| {
        process.threads.push(Thread { tid: PID + 7, exiting: true, dead: false });
        process.threads[0].dead = true;
    });
    assert_eq!(command(&Model::new(world)), Ok(None));
}

#[test]
fn what_is_refused_is_not_called_unset() {
    let model = Model::new(foreign_world());
    let refused = Error::Refused { pid: PID, syscall: "openat", errno: Errno::EACCES };
    assert_eq!(command(&model), Err(refused));
    let ground = model.ground();
    let host = Linux::new(&model, &ground).unwrap();
    let (_, told) = host.describe(PID, &vec![]).unwrap().unwrap();
    let process = model.world().processes[&PID].clone();
    assert_eq!(told, Ok(Some(expected_command(&process))));
    // Our own, where something confines us.
    let mut world = own_world();
    world.errors.insert(Call::Part(PID, Part::Environment), Errno::EACCES);
    assert_eq!(command(&Model::new(world)).unwrap_err().code(), Code::AccessDenied);
    let mut world = own_world();
    world.errors.insert(Call::Part(PID, Part::Arguments), Errno::EPERM);
    assert_eq!(command(&Model::new(world)).unwrap_err().code(), Code::AccessDenied);
    let mut world = own_world();
    world.errors.insert(Call::Part(PID, Part::WorkingDirectory), Errno::EACCES);
    let process = world.processes[&PID].clone();
    let without = Command { working_directory: None, ..expected_command(&process) };
    assert_eq!(command(&Model::new(world)), Ok(Some(without)));
}

#[test]
fn an_empty_list_of_another_user_may_be_a_glimpse_of_an_exec() {
    let empty = |letter| {
        let mut world = foreign_world();
        world.cut.insert(Part::Arguments, 0);
        world.change(PID, |process| process.letter = letter);
        let model = Model::new(world);
        let ground = model.ground();
        let (_, told) =
            Linux::new(&model, &ground).unwrap().describe(PID, &vec![]).unwrap().unwrap();
        told
    };
    assert_eq!(empty('S'), Ok(Some(Command::default())));
    for letter in ['R', 'D'] {
        assert_eq!(empty(letter), Err(Error::Unstable { pid: PID }));
    }
}

#[test]
fn a_read_that_says_nothing_about_the_process_is_an_error_of_the_call() {
    const EIO: Errno = Errno(5);
    for part in [Part::Executable, Part::WorkingDirectory, Part::Arguments, Part::Environment] {
        let mut world = own_world();
        world.errors.insert(Call::Part(PID, part), EIO);
        let error = describe(&Model::new(world), PID).unwrap_err();
        assert_eq!((error.code(), error.pid()), (Code::OperationFailed, Some(PID)));
    }
    let mut opens = 0;
    let model = Model::scripted(own_world(), |world, _, call| {
        opens += u32::from(call == Call::Open(PID));
        world.errors.clear();
        if opens == 1 {
            world.errors.insert(Call::Open(PID), Errno::EMFILE);
        }
    });
    assert_eq!(describe(&model, PID).unwrap_err().system(), Some(("openat", Errno::EMFILE)));
}

#[test]
fn too_long_and_cut_are_errors_and_never_shorter_lists() {
    for part in [Part::Arguments, Part::Environment] {
        let mut world = own_world();
        world.endless.insert(part);
        assert_eq!(command(&Model::new(world)).unwrap_err().reason(), Some(Reason::TooLong));
        for bytes in 0..6 {
            // Behind its first NUL a list of two could be a title.
            let mut world = own_world();
            world.cut.insert(part, if part == Part::Arguments { 0 } else { bytes });
            let error = command(&Model::new(world)).unwrap_err();
            assert_eq!(error.reason(), Some(Reason::CutShort), "{part:?} {bytes}");
        }
    }
}

/// How many random worlds; a slow proof asks for more.
fn cases() -> u32 {
    std::env::var("PROC_SAFE_MODEL_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(20_000)
}

/// What can happen between two reads.
#[derive(Clone, Debug)]
enum Event {
    Spawn(u32, u32),
    BeginExit(u32),
    Die(u32),
    Reap(u32, bool),
    Recycle(u32),
    AddThread(u32, u32),
    LeaderDies(u32),
    ThreadExits(u32),
    Stop(u32),
    Glitch(u32, Glitch),
    Execute(u32, u32),
}

fn event() -> impl Strategy<Value = Event> {
    let pid = || 100_u32..108;
    prop_oneof![
        (pid(), pid()).prop_map(|(pid, parent)| Event::Spawn(pid, parent)),
        pid().prop_map(Event::BeginExit),
        pid().prop_map(Event::Die),
        (pid(), any::<bool>()).prop_map(|(pid, torn)| Event::Reap(pid, torn)),
        pid().prop_map(Event::Recycle),
        (pid(), pid()).prop_map(|(pid, tid)| Event::AddThread(pid, tid)),
        pid().prop_map(Event::LeaderDies),
        pid().prop_map(Event::ThreadExits),
        pid().prop_map(Event::Stop),
        (pid(), 0_u32..2).prop_map(|(pid, program)| Event::Execute(pid, program)),
        (
            pid(),
            prop_oneof![
                Just(Glitch::NotLeading),
                Just(Glitch::DeadLeader('Z')),
                Just(Glitch::DeadLeader('X')),
            ]
        )
            .prop_map(|(pid, glitch)| Event::Glitch(pid, glitch)),
    ]
}

impl Event {
    fn happen(&self, world: &mut World) {
        match *self {
            Self::Spawn(pid, parent) => {
                let free =
                    !world.processes.values().any(|p| p.threads.iter().any(|t| t.tid == pid));
                let parent = if world.processes.contains_key(&parent) { parent } else { 1 };
                if free && parent != pid {
                    world.was_absent.insert(pid);
                    world.spawn(pid, parent);
                }
            }
            Self::BeginExit(pid) => world.change(pid, |process| {
                process.threads.iter_mut().for_each(|thread| thread.exiting = true);
            }),
            Self::Die(pid) => world.change(pid, |process| {
                process.threads.truncate(1);
                process.threads[0].dead = true;
            }),
            Self::Reap(pid, torn) => {
                if let Some(process) = world.processes.get(&pid) {
                    if torn {
                        let birth = process.birth;
                        world.releasing.insert(birth);
                    }
                    world.reap(pid);
                }
            }
            Self::Recycle(pid) => {
                if world.processes.contains_key(&pid) {
                    world.recycle(pid);
                }
            }
            Self::AddThread(pid, tid) => {
                let free =
                    !world.processes.values().any(|p| p.threads.iter().any(|t| t.tid == tid));
                world.change(pid, |process| {
                    if free && process.threads.iter().any(|thread| !thread.exiting && !thread.dead)
                    {
                        process.threads.push(Thread { tid, exiting: false, dead: false });
                    }
                });
                world.was_absent.insert(tid);
            }
            Self::LeaderDies(pid) => world.change(pid, |process| {
                if process.threads.len() > 1 {
                    process.threads[0].dead = true;
                }
            }),
            Self::ThreadExits(pid) => world.change(pid, |process| {
                if let Some(thread) = process.threads.last_mut() {
                    thread.exiting = true;
                }
            }),
            Self::Stop(pid) => world.change(pid, |process| process.letter = 'T'),
            Self::Execute(pid, program) => {
                let live = |process: &Process| {
                    process.threads.iter().any(|thread| !thread.dead && !thread.exiting)
                };
                if world.processes.get(&pid).is_some_and(live) {
                    world.change(pid, |process| process.threads[0].exiting = false);
                    world.execute(pid, program);
                }
            }
            Self::Glitch(pid, glitch) => {
                // Only a process with other threads can execute a program by one of them.
                if world.processes.get(&pid).is_some_and(|process| process.threads.len() > 1) {
                    world.glitch(pid, glitch);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_interleaving_breaks_a_census(
        start in prop::collection::vec(100_u32..108, 0..6),
        events in prop::collection::vec((0_usize..4, event()), 0..60),
        selected in any::<bool>(),
        helped in any::<bool>(),
    ) {
        let mut world = World::with_processors(if helped { 3 } else { 1 });
        for pid in start {
            if !world.processes.contains_key(&pid) {
                world.spawn(pid, OWN_PID);
            }
        }
        let before: Vec<Process> = world.processes.values().cloned().collect();
        world.was_absent.clear();
        let mut queue = events.into_iter();
        let mut wait = 0;
        let model = Model::scripted(world, |world, _, _| {
            if wait > 0 {
                wait -= 1;
                return;
            }
            if let Some((pause, event)) = queue.next() {
                wait = pause;
                event.happen(world);
            }
        });
        let rows = if selected {
            let mut pids: Vec<u32> = (100..108).collect();
            pids.extend([1, OWN_PID, 100]);
            census(&model, Selection::Pids(pids)).unwrap()
        } else {
            full(&model).unwrap()
        };
        let world = model.world();
        assert!(rows.is_sorted_by(|a, b| a.pid < b.pid), "one row a pid, in order");
        for row in &rows {
            assert_unmixed(&world, row);
        }
        // Whoever lived through the call is in it.
        for process in &before {
            let lives = world.processes.get(&process.pid).is_some_and(|p| p.birth == process.birth);
            if lives {
                assert!(rows.iter().any(|row| row.pid == process.pid), "{process:?} is missing");
            }
        }
        // Absence needs an instant of absence.
        if selected {
            for pid in 100..108 {
                let was_there = before.iter().any(|process| process.pid == pid);
                let missing = !rows.iter().any(|row| row.pid == pid);
                assert!(!missing || !was_there || world.was_absent.contains(&pid));
            }
        }
    }

    #[test]
    fn no_interleaving_mixes_a_command(
        events in prop::collection::vec((0_usize..4, event()), 0..60),
        own in any::<bool>(),
    ) {
        let mut world = World::new();
        if own {
            world.spawn(107, OWN_PID);
        }
        world.spawn(100, OWN_PID);
        world.was_absent.clear();
        let mut queue = events.into_iter();
        let mut wait = 0;
        let model = Model::scripted(world, |world, _, _| {
            if wait > 0 {
                wait -= 1;
            } else if let Some((pause, event)) = queue.next() {
                wait = pause;
                event.happen(world);
            }
        });
        let ground = model.ground();
        let keys = if own { keys() } else { vec![] };
        let described = Linux::new(&model, &ground).unwrap().describe(100, &keys).unwrap();
        let world = model.world();
        let Some(described) = described else {
            assert!(world.was_absent.contains(&100));
            return Ok(());
        };
        if described.1 == Ok(None) {
            // Nothing but death or exit takes an image away.
            let forms = world.history.values().flatten().filter(|form| form.pid == 100);
            let mut forms = forms.filter(|form| form.is_zombie() || form.is_exiting());
            assert!(forms.next().is_some());
        }
        assert_commanded(&world, &described, own);
    }
}

/// Like [`assert_one_program`], also for those whose environment was not asked for.
fn assert_commanded(world: &World, (row, command): &Described, asked: bool) {
    let Ok(Some(command)) = command else { return assert_unmixed(world, row) };
    let mut whole = command.clone();
    if !asked && whole.executable.is_some() {
        whole.environment = vec![(0, whole.arguments[0].clone())];
    }
    assert_one_program(world, &(row.clone(), Ok(Some(whole))));
}
