//! Births: from clock ticks to microseconds since boot and since the Unix epoch. Pure.

const MICROS_PER_SECOND: u64 = 1_000_000;
const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// CLOCK_REALTIME read between two reads of CLOCK_BOOTTIME, all in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockSample {
    /// CLOCK_BOOTTIME before.
    pub boot_before: i64,
    /// CLOCK_REALTIME.
    pub real: i64,
    /// CLOCK_BOOTTIME after.
    pub boot_after: i64,
}

impl ClockSample {
    /// What any sample is tighter than.
    pub const WIDEST: Self = Self { boot_before: 0, real: 0, boot_after: i64::MAX };
    /// The clocks are read in a hundred nanoseconds where no interrupt comes between, in a thousand where
    /// each read is a system call.
    const TIGHT: i64 = 1_000;

    const fn width(self) -> i64 {
        self.boot_after.saturating_sub(self.boot_before)
    }

    /// The one of two that says more.
    #[must_use]
    pub const fn tighter(self, other: Self) -> Self {
        if other.width() < self.width() { other } else { self }
    }

    /// Nothing came between its reads.
    #[must_use]
    pub const fn is_tight(self) -> bool {
        self.width() <= Self::TIGHT
    }

    /// CLOCK_REALTIME − CLOCK_BOOTTIME, and how far the truth may be from it, in nanoseconds. It needs no
    /// /proc/stat, whose btime is in whole seconds.
    #[must_use]
    pub const fn offset_nanos(self) -> (i64, u64) {
        let half = self.width() / 2;
        let offset = self.real.saturating_sub(self.boot_before.saturating_add(half));
        (offset, half.unsigned_abs())
    }
}

/// The clock ticks of /proc/pid/stat: `sysconf(_SC_CLK_TCK)` a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticks {
    per_second: u64,
}

impl Ticks {
    /// Ticks of this rate; 0 reads as 1.
    #[must_use]
    pub fn new(per_second: u64) -> Self {
        Self { per_second: per_second.max(1) }
    }

    /// The length of a tick in whole microseconds.
    #[must_use]
    pub fn micros(self) -> u32 {
        u32::try_from(MICROS_PER_SECOND / self.per_second).unwrap_or(u32::MAX).max(1)
    }

    /// Microseconds since boot; `None` for a number that the kernel cannot have printed.
    ///
    /// In a time namespace the kernel adds the namespace's offset to an unsigned count of
    /// nanoseconds before it divides, so a birth before the namespace's zero wraps around 2⁶⁴ ns; it
    /// is returned as the negative number that it is.
    #[must_use]
    pub fn since_boot_micros(self, ticks: u64) -> Option<i64> {
        let nanos = u128::from(ticks) * u128::from(NANOS_PER_SECOND) / u128::from(self.per_second);
        let nanos = u64::try_from(nanos).ok()?.cast_signed();
        Some(nanos.div_euclid(1000))
    }

    /// Nanoseconds in whole ticks, in microseconds.
    #[must_use]
    pub fn round_down_micros(self, nanos: i64) -> i64 {
        let tick = i64::try_from(NANOS_PER_SECOND / self.per_second).unwrap_or(1).max(1);
        nanos.div_euclid(tick).saturating_mul(tick) / 1000
    }
}

#[cfg(test)]
mod tests {
    use super::{ClockSample, Ticks};

    const HUNDRED: u64 = 100;

    fn sample(offset: i64, error: i64, width: i64) -> ClockSample {
        ClockSample {
            boot_before: 5_000_000_000,
            real: 5_000_000_000 + offset + width / 2 + error,
            boot_after: 5_000_000_000 + width,
        }
    }

    #[test]
    fn the_tightest_sample_decides_and_is_rounded_down_to_a_tick() {
        let offset = 1_796_062_244_123_456_789;
        let loose = sample(offset, 400_000_000, 1_000_000_000);
        let tightest = [loose, sample(offset, 3, 90), loose]
            .into_iter()
            .fold(ClockSample::WIDEST, ClockSample::tighter);
        assert_eq!(tightest.offset_nanos(), (offset + 3, 45));
        assert_eq!([tightest.is_tight(), loose.is_tight()], [true, false]);
        assert_eq!(Ticks::new(HUNDRED).round_down_micros(offset), 1_796_062_244_120_000);
        assert_eq!(Ticks::new(HUNDRED).round_down_micros(-15_000_001), -20_000);
    }

    #[test]
    fn a_birth_before_the_zero_of_a_time_namespace_is_negative() {
        let ticks = Ticks::new(HUNDRED);
        // Pid 1, born 0.3 s after boot, seen from a namespace whose boottime is 1,000 s behind.
        assert_eq!(ticks.since_boot_micros(1_844_674_307_401), Some(-999_699_552));
        assert_eq!(ticks.since_boot_micros(922_337_203_685), Some(9_223_372_036_850_000));
        assert_eq!(ticks.since_boot_micros(30), Some(300_000));
        assert_eq!(ticks.since_boot_micros(1_844_674_407_370), Some(-9_552));
        assert_eq!(ticks.since_boot_micros(1_844_674_407_371), None);
        assert_eq!(ticks.since_boot_micros(u64::MAX), None);
    }

    #[test]
    fn other_tick_rates() {
        assert_eq!(Ticks::new(HUNDRED).micros(), 10_000);
        assert_eq!(Ticks::new(1024).micros(), 976);
        assert_eq!(Ticks::new(1024).since_boot_micros(1024), Some(1_000_000));
        assert_eq!(Ticks::new(0).micros(), 1_000_000);
    }
}
