//! /proc/pid/stat: its bytes and what they mean (proc_pid_stat(5)). Pure.

use crate::facts::Name;

/// What one read of a stat file says of one task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Field 1: the pid, or the thread id.
    pub pid: u32,
    /// Field 2: the name, unescaped by the kernel; at most 63 bytes.
    pub name: Name,
    /// Field 3: the scheduler's letter.
    pub state: u8,
    /// Field 4: the real parent's process; 0 outside the reader's pid namespace.
    pub parent_pid: u32,
    /// Field 5: the process group; −1 while the task is being released.
    pub process_group: i32,
    /// Field 6: the session; −1 while the task is being released.
    pub session: i32,
    /// Field 9: `PF_*` flags of this task.
    pub flags: u32,
    /// Field 20: threads of the process; 0 while the task is being released.
    pub threads: u32,
    /// Field 22: birth in clock ticks since boot, unsigned: a time namespace can wrap it.
    pub start_ticks: u64,
    /// Field 38: −1 exactly for a thread that does not lead its group.
    pub exit_signal: i32,
}

/// What a stat file says of the memory image of its task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image {
    /// The task is a kernel thread.
    pub kernel_thread: bool,
    /// Neither running nor in a sleep that no signal ends, as a task inside execve(2) is.
    pub asleep: bool,
    /// Field 23: bytes of virtual memory; 0 without an image.
    pub size: u64,
    /// Fields 26 to 28 and 45 to 51: where code, stack, data, arguments and environment begin and end. For a
    /// reader who may not look into the process they are 0 or 1; for others each execve(2) sets them anew.
    pub places: [u64; 10],
}

impl Image {
    /// The caller may look into the process, and it is not inside execve(2), which sets the end of the
    /// environment and of the code last.
    #[must_use]
    pub const fn is_ready(&self) -> bool {
        let [_, code_end, stack, .., environment_end] = self.places;
        code_end > 1 && stack != 0 && environment_end != 0
    }

    /// The length of the arguments and of the environment.
    #[must_use]
    pub const fn lengths(&self) -> (u64, u64) {
        let [.., arguments, arguments_end, environment, environment_end] = self.places;
        (arguments_end.saturating_sub(arguments), environment_end.saturating_sub(environment))
    }
}

/// Reads the fields of the image out of the bytes of one stat file.
#[must_use]
pub fn parse_image(bytes: &[u8]) -> Option<Image> {
    /// `PF_KTHREAD` of linux/sched.h.
    const PF_KTHREAD: u64 = 0x0020_0000;
    let close = bytes.iter().rposition(|&byte| byte == b')')?;
    let text = std::str::from_utf8(bytes.get(close.checked_add(2)?..)?).ok()?;
    let fields: Vec<&str> = text.split_ascii_whitespace().collect();
    // The first of them is field 3.
    let field = |number: usize| fields.get(number.checked_sub(3)?)?.parse::<u64>().ok();
    let mut places = [0; 10];
    for (place, number) in places.iter_mut().zip([26, 27, 28, 45, 46, 47, 48, 49, 50, 51]) {
        *place = field(number)?;
    }
    let asleep = !matches!(fields.first(), Some(&("R" | "D")));
    Some(Image { asleep, kernel_thread: field(9)? & PF_KTHREAD != 0, size: field(23)?, places })
}

/// `PF_EXITING` of linux/sched.h: the task is in do_exit() and will not return to user code.
const PF_EXITING: u32 = 0x4;

impl Stat {
    /// The kernel is releasing the task: it had no signal lock any more, so parent, group, session
    /// and threads are the initial values of do_task_stat() and no facts.
    #[must_use]
    pub const fn is_torn(&self) -> bool {
        self.threads == 0 || self.process_group < 0 || self.session < 0
    }

    /// The task leads its thread group.
    #[must_use]
    pub const fn is_leader(&self) -> bool {
        self.exit_signal != -1
    }

    /// The task has begun to exit.
    #[must_use]
    pub const fn has_exiting_flag(&self) -> bool {
        self.flags & PF_EXITING != 0
    }

    /// The task is dead; the process is too, unless other threads live.
    #[must_use]
    pub const fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }
}

/// Where the name has ended, in whole words: it has 63 bytes at most, behind a pid of ten digits at most
/// and ` (`.
const NAME_WINDOW: usize = (10 + 2 + 63 + 1_usize).next_multiple_of(8);

/// Reads the bytes of one stat file; `None` if they do not have the documented form.
///
/// The name may hold anything but NUL, `)` and newline included, so the fields begin behind the
/// last `)`: no field can hold one. Each field of [`Stat`] must be a number in the range that the
/// kernel prints; others are passed over, and a newer kernel may append more.
#[must_use]
pub fn parse_stat(bytes: &[u8]) -> Option<Stat> {
    let bytes = bytes.strip_suffix(b"\n")?;
    let close = last_close(bytes.get(..NAME_WINDOW).unwrap_or(bytes))?;
    let mut head = Fields { rest: bytes };
    let pid = head.unsigned()?;
    let name = head.rest.strip_prefix(b"(")?;
    let skipped = bytes.len().checked_sub(name.len())?;
    let name = bytes.get(skipped..close)?;
    let mut fields = Fields { rest: bytes.get(close.checked_add(1)?..)?.strip_prefix(b" ")? };
    let state = fields.letter()?;
    let parent_pid = fields.unsigned()?;
    let process_group = fields.signed()?;
    let session = fields.signed()?;
    fields.skip(2)?; // tty_nr, tpgid
    let flags = fields.unsigned()?;
    fields.skip(10)?; // minflt … nice
    let threads = fields.unsigned()?;
    fields.skip(1)?; // itrealvalue
    let start_ticks = fields.number()?;
    fields.skip(15)?; // vsize … cnswap
    let exit_signal = fields.signed()?;
    Some(Stat {
        pid,
        name: Name::from_slice(name),
        state,
        parent_pid,
        process_group,
        session,
        flags,
        threads,
        start_ticks,
        exit_signal,
    })
}

fn checked_number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0_u64, |value, &byte| {
        value.checked_mul(10)?.checked_add(byte.wrapping_sub(b'0').into())
    })
}

/// Where the last `)` is.
fn last_close(text: &[u8]) -> Option<usize> {
    text.chunks(8).enumerate().rev().find_map(|(index, chunk)| {
        let tops = Word::at(chunk)?.equal(b')'); // the last is at the highest
        let behind = usize::try_from(tops.leading_zeros() / 8).ok()?;
        index.checked_mul(8)?.checked_add(7_usize.checked_sub(behind)?)
    })
}

/// Fields with one space behind each but the last.
struct Fields<'a> {
    rest: &'a [u8],
}

impl Fields<'_> {
    /// Digits, without a sign.
    #[inline]
    fn number(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        let mut length = 0_usize;
        for &byte in self.rest {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            value = value.wrapping_mul(10).wrapping_add(digit.into());
            length = length.wrapping_add(1);
        }
        if length == 0 {
            return None;
        }
        if length > 19 {
            value = checked_number(self.rest.get(..length)?)?; // nineteen digits cannot overflow
        }
        self.advance(length)?;
        Some(value)
    }

    #[inline]
    fn unsigned(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    #[inline]
    fn signed(&mut self) -> Option<i32> {
        let negative = self.minus();
        let value = i64::try_from(self.number()?).ok()?;
        i32::try_from(if negative { -value } else { value }).ok()
    }

    fn letter(&mut self) -> Option<u8> {
        let letter = self.rest.first().copied().filter(u8::is_ascii_alphabetic)?;
        self.advance(1)?;
        Some(letter)
    }

    /// Passes over fields, eight bytes at a time: they are most of the text, and one branch a byte would
    /// cost as much as all the rest of a row. What they hold is not looked at.
    fn skip(&mut self, count: u32) -> Option<()> {
        let mut left = count;
        let mut rest = self.rest;
        loop {
            let spaces = Word::at(rest)?.equal(b' ');
            let here = count_tops(spaces);
            if here >= left {
                self.rest = rest.get(nth_byte(spaces, left).saturating_add(1)..)?;
                return Some(());
            }
            left = left.saturating_sub(here);
            rest = rest.get(8..)?;
        }
    }

    #[inline]
    fn minus(&mut self) -> bool {
        match self.rest.strip_prefix(b"-") {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    #[inline]
    fn advance(&mut self, length: usize) -> Option<()> {
        let rest = self.rest.get(length..)?;
        self.rest = if rest.is_empty() { rest } else { rest.strip_prefix(b" ")? };
        Some(())
    }
}

/// The top bit of each byte of a word.
const TOPS: u64 = 0x8080_8080_8080_8080;

/// Eight bytes of text, the first lowest.
#[derive(Clone, Copy)]
struct Word(u64);

impl Word {
    /// The first eight bytes; what is missing of them reads as digits.
    fn at(text: &[u8]) -> Option<Self> {
        if let Some(bytes) = text.first_chunk() {
            return Some(Self(u64::from_le_bytes(*bytes)));
        }
        let mut bytes = [b'0'; 8];
        bytes.get_mut(..text.len())?.copy_from_slice(text);
        Some(Self(u64::from_le_bytes(bytes)))
    }

    const fn all(byte: u8) -> u64 {
        u64::from_le_bytes([byte; 8])
    }

    /// The top bits of the bytes that are this one.
    const fn equal(self, byte: u8) -> u64 {
        let difference = self.0 ^ Self::all(byte);
        let low = (difference & !TOPS).wrapping_add(!TOPS);
        !(low | difference) & TOPS
    }
}

/// How many top bits are set, of top bits only. (Processors without an instruction for it count all
/// 64 bits at four times the price.)
const fn count_tops(tops: u64) -> u32 {
    let [.., count] = (tops >> 7).wrapping_mul(Word::all(1)).to_le_bytes();
    u32::from_le_bytes([count, 0, 0, 0])
}

/// The index of the byte whose top bit is the `count`-th that is set.
fn nth_byte(mut tops: u64, count: u32) -> usize {
    for _ in 1..count {
        tops &= tops.wrapping_sub(1);
    }
    usize::try_from(tops.trailing_zeros() / 8).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{Name, Stat, TOPS, Word, count_tops, last_close, nth_byte, parse_stat};
    use proptest::prelude::{ProptestConfig, any, prop, prop_assert, prop_assert_eq, proptest};

    const TAIL: &str = "S 5933 5933 2816 34816 5933 4194304 36 0 0 0 1 2 0 0 20 0 3 0 293733 2400256 \
        114 18446744073709551615 1 1 0 0 0 0 0 4096 0 1 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n";

    fn with_name(name: &[u8]) -> Vec<u8> {
        [b"5946 (", name, b") ", TAIL.as_bytes()].concat()
    }

    #[test]
    fn fields_stand_where_the_manual_says() {
        let expected = Stat {
            pid: 5946,
            name: Name::from_slice(b"d2"),
            state: b'S',
            parent_pid: 5933,
            process_group: 5933,
            session: 2816,
            flags: 4_194_304,
            threads: 3,
            start_ticks: 293_733,
            exit_signal: 17,
        };
        assert_eq!(parse_stat(&with_name(b"d2")), Some(expected));
    }

    #[test]
    fn hostile_names_shift_nothing() {
        for name in [
            &b"evil ) Z 1 (x"[..],
            b"",
            b")",
            b"(",
            b") ",
            b"a\nb",
            b"  ",
            &[0xff; 15],
            b"\x1b[2J)) R",
        ] {
            let stat = parse_stat(&with_name(name)).unwrap();
            assert_eq!((&*stat.name, stat.parent_pid, stat.start_ticks), (name, 5933, 293_733));
        }
    }

    #[test]
    fn a_wrapped_start_is_kept_whole() {
        let bytes = String::from_utf8(with_name(b"x")).unwrap();
        let wrapped = bytes.replace(" 293733 ", " 1844674307401 ");
        assert_eq!(parse_stat(wrapped.as_bytes()).unwrap().start_ticks, 1_844_674_307_401);
        let greatest = bytes.replace(" 293733 ", " 18446744073709551615 ");
        assert_eq!(parse_stat(greatest.as_bytes()).unwrap().start_ticks, u64::MAX);
        let beyond = bytes.replace(" 293733 ", " 18446744073709551616 ");
        assert_eq!(parse_stat(beyond.as_bytes()), None);
    }

    #[test]
    fn torn_rows_as_captured() {
        // Bytes of tasks that were being released (linux.md, section 4).
        let torn = b"10197 (d7) X 0 -1 -1 0 -1 4194380 17 0 0 0 0 0 0 0 20 0 0 0 318346 0 0 \
            18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
        let stat = parse_stat(torn).unwrap();
        assert!(stat.is_torn() && stat.is_leader() && stat.is_dead());
        assert!(!parse_stat(&with_name(b"d2")).unwrap().is_torn());
    }

    #[test]
    fn anything_else_is_refused() {
        let whole = with_name(b"d2");
        for cut in 0..whole.len() {
            assert_eq!(parse_stat(&whole[..cut]), None, "cut at {cut}");
        }
        let text = String::from_utf8(whole).unwrap();
        for (from, to) in [
            (" 5933 5933", " +5933 5933"),
            (" 5933 5933", "  5933 5933"),
            (" 5933 5933", " 0x10 5933"),
            (") S ", ") SS "),
            (") S ", ") 5 "),
            (" 17 1 ", " 17x 1 "),
            (" 17 1 ", " - 1 "),
            ("5946 ", "-5946 "),
            ("5946 ", "4294967296 "),
        ] {
            let changed = text.replacen(from, to, 1);
            assert_ne!(changed, text, "{from} is not in the sample");
            assert_eq!(parse_stat(changed.as_bytes()), None, "{from} → {to}");
        }
    }

    #[test]
    fn words_know_their_bytes() {
        for byte in 0..=u8::MAX {
            for at in 0..8 {
                let mut bytes = *b"0 )9x (*";
                bytes[at] = byte;
                let word = Word(u64::from_le_bytes(bytes));
                for (index, &one) in bytes.iter().enumerate() {
                    let top = |tops: u64| tops >> (8 * index + 7) & 1 == 1;
                    assert_eq!(top(word.equal(b' ')), one == b' ');
                    assert_eq!(top(word.equal(b')')), one == b')');
                }
            }
        }
        assert_eq!([1, 2, 3].map(|count| nth_byte(0x8000_0080_0000_8000, count)), [1, 4, 7]);
        assert_eq!([0, 0x8000, 0x8000_0080_0000_8000, TOPS].map(count_tops), [0, 1, 3, 8]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn the_last_close_is_found(text in prop::collection::vec(prop::sample::select(b"() )x".as_slice()), 0..90)) {
            prop_assert_eq!(last_close(&text), text.iter().rposition(|&byte| byte == b')'));
        }

        #[test]
        fn fields_of_any_width_are_found(widths in prop::collection::vec(0_usize..20, 49)) {
            let number = |width: usize| "9".repeat(width.max(1));
            let mut fields: Vec<String> = widths.iter().map(|&width| number(width)).collect();
            for (index, value) in [(0, "11"), (1, "12"), (2, "13"), (5, "14"), (16, "15"), (18, "16"), (34, "-1")] {
                fields[index] = value.into();
            }
            let text = format!("7 (n) R {}\n", fields.join(" "));
            let stat = parse_stat(text.as_bytes()).unwrap();
            let numbers = (stat.parent_pid, stat.process_group, stat.session, stat.flags, stat.threads);
            prop_assert_eq!(numbers, (11, 12, 13, 14, 15));
            prop_assert_eq!((stat.start_ticks, stat.exit_signal), (16, -1));
        }

        #[test]
        fn any_name_is_returned_as_it_is(name in prop::collection::vec(any::<u8>(), 0..64)) {
            let stat = parse_stat(&with_name(&name));
            prop_assert!(stat.is_some());
            prop_assert_eq!(stat.unwrap().name.into_vec(), name);
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = parse_stat(&bytes);
        }
    }
}
