//! Births: from clock ticks to microseconds since boot and since the Unix epoch. Pure.

const MICROS_PER_SECOND: u64 = 1_000_000;
const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// CLOCK_REALTIME read between two reads of CLOCK_BOOTTIME, all in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockSample {
    /// CLOCK_BOOTTIME before.
    pub boot_before: i64,
    /// CLOCK_REALTIME.
    pub real: i64,
    /// CLOCK_BOOTTIME after.
    pub boot_after: i64,
}

/// Turns the ticks of one call into times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BirthClock {
    ticks_per_second: u64,
    epoch_offset_micros: i64,
}

impl BirthClock {
    /// A clock from some samples and `sysconf(_SC_CLK_TCK)`.
    ///
    /// The offset between the two clocks moves only when the wall clock is stepped. The tightest
    /// sample knows it to well under a microsecond; rounded down to a tick it is the same in every
    /// call, so that one process has one `startTimeMicros`. It needs no /proc/stat, whose btime is
    /// in whole seconds.
    #[must_use]
    pub fn new(samples: &[ClockSample], ticks_per_second: u64) -> Self {
        let ticks_per_second = ticks_per_second.max(1);
        let tightest = samples
            .iter()
            .min_by_key(|sample| sample.boot_after.saturating_sub(sample.boot_before));
        let offset_nanos = tightest.map_or(0, |sample| {
            let half = sample.boot_after.saturating_sub(sample.boot_before) / 2;
            sample.real.saturating_sub(sample.boot_before.saturating_add(half))
        });
        let tick_nanos = i64::try_from(NANOS_PER_SECOND / ticks_per_second).unwrap_or(1).max(1);
        let whole_ticks = offset_nanos.div_euclid(tick_nanos);
        Self {
            ticks_per_second,
            epoch_offset_micros: whole_ticks.saturating_mul(tick_nanos) / 1000,
        }
    }

    /// The length of a tick.
    #[must_use]
    pub fn resolution_micros(&self) -> u32 {
        u32::try_from(MICROS_PER_SECOND / self.ticks_per_second).unwrap_or(u32::MAX).max(1)
    }

    /// Microseconds since boot; `None` for a number that the kernel cannot have printed.
    ///
    /// In a time namespace the kernel adds the namespace's offset to an unsigned count of
    /// nanoseconds before it divides, so a birth before the namespace's zero wraps around 2⁶⁴ ns; it
    /// is returned as the negative number that it is.
    #[must_use]
    pub fn since_boot_micros(&self, ticks: u64) -> Option<i64> {
        let nanos =
            u128::from(ticks) * u128::from(NANOS_PER_SECOND) / u128::from(self.ticks_per_second);
        let nanos = u64::try_from(nanos).ok()?.cast_signed();
        Some(nanos.div_euclid(1000))
    }

    /// Microseconds since the Unix epoch, for microseconds since boot.
    #[must_use]
    pub fn since_epoch_micros(&self, since_boot_micros: i64) -> i64 {
        since_boot_micros.saturating_add(self.epoch_offset_micros)
    }
}

#[cfg(test)]
mod tests {
    use super::{BirthClock, ClockSample};

    fn sample(offset: i64, error: i64, width: i64) -> ClockSample {
        ClockSample {
            boot_before: 5_000_000_000,
            real: 5_000_000_000 + offset + width / 2 + error,
            boot_after: 5_000_000_000 + width,
        }
    }

    #[test]
    fn the_tightest_sample_decides() {
        let offset = 1_796_062_244_123_456_789;
        let loose = sample(offset, 400_000_000, 1_000_000_000);
        let clock = BirthClock::new(&[loose, sample(offset, 3, 90), loose], 100);
        assert_eq!(clock.since_epoch_micros(0), 1_796_062_244_120_000);
        assert_eq!(clock.since_epoch_micros(3_112_770_000), 1_796_062_244_120_000 + 3_112_770_000);
        assert_eq!(clock.resolution_micros(), 10_000);
    }

    #[test]
    fn jitter_below_a_tick_does_not_move_a_birth() {
        let offset = 1_796_062_244_123_456_789;
        let births: std::collections::HashSet<i64> = (-500..500)
            .map(|error| {
                BirthClock::new(&[sample(offset, error, 60)], 100).since_epoch_micros(770_000)
            })
            .collect();
        assert_eq!(births.len(), 1);
    }

    #[test]
    fn a_birth_before_the_zero_of_a_time_namespace_is_negative() {
        let clock = BirthClock::new(&[], 100);
        // Pid 1, born 0.3 s after boot, seen from a namespace whose boottime is 1,000 s behind.
        assert_eq!(clock.since_boot_micros(1_844_674_307_401), Some(-999_699_552));
        assert_eq!(clock.since_boot_micros(922_337_203_685), Some(9_223_372_036_850_000));
        assert_eq!(clock.since_boot_micros(30), Some(300_000));
        assert_eq!(clock.since_boot_micros(u64::MAX), None);
        assert_eq!(clock.since_boot_micros(1_844_674_407_370), Some(-9_552));
        assert_eq!(clock.since_boot_micros(1_844_674_407_371), None);
    }

    #[test]
    fn other_tick_rates() {
        let clock = BirthClock::new(&[], 1024);
        assert_eq!(clock.resolution_micros(), 976);
        assert_eq!(clock.since_boot_micros(1024), Some(1_000_000));
        assert_eq!(BirthClock::new(&[], 0).resolution_micros(), 1_000_000);
    }

    #[test]
    fn before_the_epoch() {
        let clock = BirthClock::new(&[sample(-15_000_001, 0, 10)], 100);
        assert_eq!(clock.since_epoch_micros(0), -20_000);
    }
}
