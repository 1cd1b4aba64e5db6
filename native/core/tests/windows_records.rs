//! The bytes of `NtQuerySystemInformation` and of a token's user: captured, hostile and random.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::as_conversions
)]

mod nt;

use nt::{EPOCH, RUNNING, SUSPENDED, WAITING, write_record, write_user};
use proc_safe_core::windows::record::{
    Activity, HEAD, Record, THREAD, micros_since_epoch, parse_list,
};
use proc_safe_core::windows::user::parse_user;
use proptest::prelude::{ProptestConfig, any, prop, proptest};
use std::time::{Duration, Instant};

const AT: u64 = 0x7ff0_0000_1000;

/// An address and what the kernel wrote there: wine 8.0's answer to a console program.
const CAPTURED: &[u8] = include_bytes!("data/wine-8.0.processes");

fn captured() -> (u64, &'static [u8]) {
    let (address, list) = CAPTURED.split_at(8);
    (u64::from_le_bytes(address.try_into().unwrap()), list)
}

fn utf16(text: &str) -> Vec<u16> {
    text.encode_utf16().collect()
}

/// Two records, the second at the returned offset.
fn two() -> (Vec<u8>, usize) {
    let mut list = write_record(8, 4, EPOCH, &[WAITING], Some(&utf16("first.exe")), AT);
    let second = list.len();
    list[..4].copy_from_slice(&(second as u32).to_le_bytes());
    let name = utf16("second.exe");
    list.extend(write_record(12, 8, EPOCH + 10, &[RUNNING], Some(&name), AT + second as u64));
    (list, second)
}

fn patched(offset: usize, bytes: &[u8]) -> Option<Vec<Record>> {
    let (mut list, _) = two();
    list[offset..offset + bytes.len()].copy_from_slice(bytes);
    parse_list(&list, AT)
}

fn name_of(units: &[u16]) -> Option<String> {
    let list = write_record(8, 4, EPOCH, &[WAITING], Some(units), AT);
    let name = parse_list(&list, AT).unwrap().remove(0).name.unwrap();
    Some(String::from_utf8(name.to_vec()).unwrap())
}

#[test]
fn a_captured_list_is_read() {
    let (address, list) = captured();
    let records = parse_list(list, address).unwrap();
    let seen: Vec<_> = records
        .iter()
        .map(|it| {
            (it.pid, it.parent_pid, std::str::from_utf8(it.name.as_deref().unwrap()).unwrap())
        })
        .collect();
    let expected = [
        (32, 0, "dump.exe"),
        (48, 40, "services.exe"),
        (76, 40, "explorer.exe"),
        (100, 48, "winedevice.exe"),
        (168, 48, "svchost.exe"),
        (188, 48, "plugplay.exe"),
        (232, 48, "winedevice.exe"),
    ];
    assert_eq!(seen, expected);
    assert!(records.iter().all(|it| it.activity == Activity::Active));
    assert_eq!(records[0].created, 134_405_615_490_274_150);
    assert_eq!(records[0].start_micros, Some(1_796_087_949_027_415));
    // Cut anywhere before its last name, or at another address, it is no list.
    let end = 4246 + 816 + 28;
    for length in 0..end {
        assert_eq!(parse_list(&list[..length], address), None, "{length}");
    }
    assert!(parse_list(&list[..end], address).is_some());
    for shift in [1, 8, 1 << 32] {
        assert_eq!(parse_list(list, address + shift), None);
    }
}

#[test]
fn both_records_of_a_list_are_read() {
    let (list, _) = two();
    let [first, second] = &parse_list(&list, AT).unwrap()[..] else { panic!() };
    assert_eq!((first.pid, first.parent_pid, first.created), (8, 4, EPOCH));
    assert_eq!((second.pid, second.parent_pid, second.created), (12, 8, EPOCH + 10));
    assert_eq!(second.name.as_deref(), Some(&b"second.exe"[..]));
}

#[test]
fn every_next_entry_offset_is_checked() {
    let (list, second) = two();
    let length = list.len();
    // Into itself, into its threads, into its name, behind the end, backwards.
    for bad in [1, 8, HEAD, HEAD + THREAD, HEAD + THREAD + 4, length, length + 1, 0x7fff_fff8] {
        assert_eq!(patched(0, &(bad as u32).to_le_bytes()), None, "{bad}");
    }
    for back in 1..=64_u32 {
        assert_eq!(patched(second, &0_u32.wrapping_sub(back * 8).to_le_bytes()), None);
    }
    assert_eq!(patched(0, &[0; 4]).unwrap().len(), 1);
    // What looks like a record among the threads of another is none.
    let mut list = write_record(8, 4, EPOCH, &[(0, 0); 4], None, AT);
    assert!(parse_list(&list, AT).is_some());
    list[..4].copy_from_slice(&(HEAD as u32).to_le_bytes());
    list.resize(4 * HEAD, 0);
    assert_eq!(parse_list(&list, AT), None);
}

#[test]
fn threads_stand_in_their_record() {
    let (_, second) = two();
    for bad in [2, 3, 1000, 0x0333_3333, 0x0333_3334, u32::MAX] {
        assert_eq!(patched(4, &bad.to_le_bytes()), None, "{bad}");
        assert_eq!(patched(second + 4, &bad.to_le_bytes()), None, "{bad}");
    }
}

#[test]
fn names_stand_behind_the_threads_of_their_record() {
    let (list, second) = two();
    let name = (HEAD + THREAD) as u64;
    let bad = [1, AT - 1, AT, AT + 0x38, AT + name - 1, AT + second as u64, AT + list.len() as u64];
    for pointer in bad.into_iter().chain([u64::MAX, u64::MAX - 1, 1 << 63]) {
        assert_eq!(patched(0x40, &pointer.to_le_bytes()), None, "{pointer:#x}");
    }
    // Lengths: odd, longer than the capacity, longer than the record, of no text.
    for (length, capacity) in [(17, 20), (18, 17), (40, 40), (u16::MAX - 1, u16::MAX)] {
        let lengths = [length.to_le_bytes(), u16::to_le_bytes(capacity)].concat();
        assert_eq!(patched(0x38, &lengths), None, "{length} {capacity}");
    }
    assert_eq!(patched(0x40, &[0; 8]), None);
    // The last record ends with the list.
    assert_eq!(patched(second + 0x38, &[60, 0, 60, 0]), None);
    // No text at all is no name; an empty one is.
    let list = write_record(8, 4, EPOCH, &[WAITING], None, AT);
    assert_eq!(parse_list(&list, AT).unwrap()[0].name, None);
    assert_eq!(name_of(&[]).as_deref(), Some(""));
}

#[test]
fn names_are_decoded_as_text_decoder_does() {
    assert_eq!(name_of(&utf16("größe-진-🦀.exe")).as_deref(), Some("größe-진-🦀.exe"));
    assert_eq!(name_of(&[0xd83e]).as_deref(), Some("\u{fffd}"));
    assert_eq!(name_of(&[0xdd80, 0x41]).as_deref(), Some("\u{fffd}A"));
    assert_eq!(name_of(&[0xd83e, 0xd83e, 0xdd80]).as_deref(), Some("\u{fffd}🦀"));
    assert_eq!(name_of(&[0xfeff, 0x41, 0, 0x42]).as_deref(), Some("\u{feff}A\0B"));
}

#[test]
fn stopped_is_every_thread_suspended_and_at_least_one() {
    let activity = |threads: &[(u32, u32)]| {
        parse_list(&write_record(8, 4, EPOCH, threads, None, AT), AT).unwrap()[0].activity
    };
    assert_eq!(activity(&[]), Activity::NoThread);
    assert_eq!(activity(&[SUSPENDED]), Activity::Suspended);
    assert_eq!(activity(&[SUSPENDED, SUSPENDED]), Activity::Suspended);
    // Waiting for something else; suspended last time and running now; the reason of another wait.
    for other in [WAITING, RUNNING, (2, 5), (5, 12), (0, 0)] {
        assert_eq!(activity(&[SUSPENDED, other]), Activity::Active, "{other:?}");
        assert_eq!(activity(&[other, SUSPENDED]), Activity::Active, "{other:?}");
    }
}

#[test]
fn pids_are_as_wide_as_pids() {
    for offset in [0x50, 0x58] {
        assert_eq!(patched(offset, &(1_u64 << 32).to_le_bytes()), None);
        assert_eq!(patched(offset, &u64::MAX.to_le_bytes()), None);
        assert!(patched(offset, &u64::from(u32::MAX).to_le_bytes()).is_some());
    }
}

#[test]
fn births_are_times() {
    assert_eq!(micros_since_epoch(116_444_736_000_000_000), Some(0));
    assert_eq!(micros_since_epoch(116_444_736_000_000_019), Some(1));
    assert_eq!(micros_since_epoch(0), Some(-11_644_473_600_000_000));
    assert_eq!(micros_since_epoch(-1), None);
    assert_eq!(micros_since_epoch(i64::MAX), None);
    let birth = |created: i64| Some(patched(0x20, &created.to_le_bytes())?[0].start_micros);
    assert_eq!(birth(0), Some(None));
    // Wine says 0x5555… of a process that it is making. Such a birth is unknown, and the list is none the worse.
    for no_time in [-1, i64::MAX, 0x5555_5555_5555_5555] {
        assert_eq!(birth(no_time), Some(None));
    }
    assert_eq!(birth(EPOCH), Some(micros_since_epoch(EPOCH)));
}

#[test]
fn a_hundred_thousand_entries_are_read_in_linear_time() {
    let name = utf16("one-of-many.exe");
    let mut list = Vec::new();
    for pid in 1..=100_000_u32 {
        let at = AT + list.len() as u64;
        let mut record = write_record(pid * 4, 4, EPOCH, &[WAITING; 10], Some(&name), at);
        if pid < 100_000 {
            let length = record.len() as u32;
            record[..4].copy_from_slice(&length.to_le_bytes());
        }
        list.extend(record);
    }
    let begun = Instant::now();
    let records = parse_list(&list, AT).unwrap();
    assert_eq!((records.len(), records[99_999].pid), (100_000, 400_000));
    assert!(begun.elapsed() < Duration::from_secs(5));
    // The last one points behind the end.
    let last = list.len() - (HEAD + 10 * THREAD + 32);
    list[last..last + 4].copy_from_slice(&8_u32.to_le_bytes());
    assert_eq!(parse_list(&list, AT), None);
}

#[test]
fn a_user_is_a_whole_sid_behind_its_head() {
    let parse = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut answer = write_user(7, AT);
        change(&mut answer);
        parse_user(&answer, AT)
    };
    let user = parse(&|_| ()).unwrap();
    assert_eq!(&user[..], [1, 2, 0, 0, 0, 0, 0, 5, 21, 0, 0, 0, 7, 0, 0, 0]);
    assert_ne!(parse_user(&write_user(8, AT), AT), Some(user));
    for length in 0..write_user(7, AT).len() {
        assert_eq!(parse(&|answer| answer.truncate(length)), None, "{length}");
    }
    assert_eq!(parse(&|answer| answer[16] = 2), None); // another revision
    assert_eq!(parse(&|answer| answer[17] = 3), None); // longer than the answer
    let long = |answer: &mut Vec<u8>, count: u8| {
        answer[17] = count;
        answer.resize(200, 0);
    };
    assert_eq!(parse(&|answer| long(answer, 15)).unwrap().len(), 68);
    assert_eq!(parse(&|answer| long(answer, 16)), None); // longer than any SID
    // The attributes in front of it are no SID, whatever they look like.
    let inside = |answer: &mut Vec<u8>| {
        answer[..8].copy_from_slice(&(AT + 8).to_le_bytes());
        answer[8..10].copy_from_slice(&[1, 1]);
    };
    assert_eq!(parse(&inside), None);
    for pointer in [0, AT - 1, AT, AT + 15, AT + 17, AT + 1000, u64::MAX] {
        let found = parse(&|answer| answer[..8].copy_from_slice(&pointer.to_le_bytes()));
        assert_eq!(found, None, "{pointer:#x}");
    }
}

/// Whatever was parsed stood in the bytes.
fn check(bytes: &[u8], address: u64) {
    if let Some(records) = parse_list(bytes, address) {
        assert!(!records.is_empty() && records.len() * HEAD <= bytes.len());
        for record in records {
            assert!(record.name.is_none_or(|name| std::str::from_utf8(&name).is_ok()));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_damage_of_a_captured_list_is_more_than_malformed(
        damage in prop::collection::vec((0..5172_usize, any::<u8>()), 1..8),
        length in 0..=5172_usize,
        whole in any::<bool>(),
    ) {
        let (address, list) = captured();
        let mut list = list.to_vec();
        for (at, byte) in damage {
            list[at] = byte;
        }
        check(&list[..if whole { list.len() } else { length }], address);
    }

    #[test]
    fn no_field_of_any_value_is_more_than_malformed(
        fields in prop::collection::vec((0..4_usize, 0..0x60_usize, any::<u32>(), 0..4_u32), 1..6),
    ) {
        let (address, list) = captured();
        let mut list = list.to_vec();
        for (record, field, value, shape) in fields {
            let at = [0, 434, 1676, 2118][record] + field / 4 * 4;
            // Small numbers, near ends and large ones.
            let value = match shape { 0 => value % 64, 1 => value % 6000, 2 => u32::MAX - value % 6000, _ => value };
            list[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        check(&list, address);
    }

    #[test]
    fn no_bytes_are_more_than_malformed(bytes in prop::collection::vec(any::<u8>(), 0..2048), address in any::<u64>()) {
        check(&bytes, address);
        drop(parse_user(&bytes, address));
    }
}
