//! /proc/pid/stat: its bytes and what they mean (proc_pid_stat(5)). Pure.

/// What one read of a stat file says of one task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Field 1: the pid, or the thread id.
    pub pid: u32,
    /// Field 2: the name, unescaped by the kernel; at most 63 bytes.
    pub name: Box<[u8]>,
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

/// The longest name that the kernel prints is 63 bytes, behind a pid of at most ten digits and ` (`.
const NAME_WINDOW: usize = 128;

/// Reads the bytes of one stat file; `None` if they do not have the documented form.
///
/// The name may hold anything but NUL, `)` and newline included, so the fields begin behind the
/// last `)`: no field can hold one. Every field up to 38 must be a number in the range that the
/// kernel prints; those behind it are not read, and a newer kernel may append more.
#[must_use]
pub fn parse_stat(bytes: &[u8]) -> Option<Stat> {
    let bytes = bytes.strip_suffix(b"\n")?;
    let window = bytes.get(..NAME_WINDOW).unwrap_or(bytes);
    let close = window.iter().rposition(|&byte| byte == b')')?;
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
        name: name.into(),
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

/// Fields with one space behind each but the last.
struct Fields<'a> {
    rest: &'a [u8],
}

impl Fields<'_> {
    /// Digits, without a sign.
    fn number(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        let mut length = 0_usize;
        for &byte in self.rest {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            // Nineteen digits cannot overflow.
            value = if length < 19 {
                value.wrapping_mul(10).wrapping_add(digit.into())
            } else {
                value.checked_mul(10)?.checked_add(digit.into())?
            };
            length = length.wrapping_add(1);
        }
        if length == 0 {
            return None;
        }
        self.advance(length)?;
        Some(value)
    }

    fn unsigned(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

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

    /// Passes over numbers.
    fn skip(&mut self, count: usize) -> Option<()> {
        for _ in 0..count {
            self.minus();
            let length = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if length == 0 {
                return None;
            }
            self.advance(length)?;
        }
        Some(())
    }

    fn minus(&mut self) -> bool {
        match self.rest.strip_prefix(b"-") {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn advance(&mut self, length: usize) -> Option<()> {
        let rest = self.rest.get(length..)?;
        self.rest = if rest.is_empty() { rest } else { rest.strip_prefix(b" ")? };
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Stat, parse_stat};
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
            name: (*b"d2").into(),
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
            (" 2400256 ", " 24.5 "),
            ("5946 ", "-5946 "),
            ("5946 ", "4294967296 "),
        ] {
            let changed = text.replacen(from, to, 1);
            assert_ne!(changed, text, "{from} is not in the sample");
            assert_eq!(parse_stat(changed.as_bytes()), None, "{from} → {to}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

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
