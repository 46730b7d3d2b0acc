//! The one clock of a run: nanoseconds since some fixed point, cheap enough to be read for every batch of commands.
//!
//! Deadlines, latencies and rates all come from the transport's [`Clock`], never from `Instant::now`: a run against the
//! stepped emulator lives in virtual time, where an hour may pass in a second and the same run gives the same figures
//! each time. On hardware the clock is the processor's time stamp counter where that counter is invariant and its rate
//! could be measured, and else the kernel's monotonic clock through the vDSO.
//!
//! Reading the counter costs one instruction and a multiplication; reading the vDSO about twenty times that.
#![allow(unsafe_code)] // `_rdtsc` and `cpuid` are intrinsics that the language marks as unsafe.
#![allow(clippy::disallowed_methods)] // This is the place where real time enters.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Nanoseconds in a millisecond.
pub const MILLISECOND_NS: u64 = 1_000_000;
/// Nanoseconds in a second.
pub const SECOND_NS: u64 = 1_000_000_000;

/// A source of nanoseconds. Cloning gives another handle on the same clock.
#[derive(Debug, Clone)]
pub enum Clock {
    /// The processor's time stamp counter, scaled: `ns = ticks * multiplier >> 32`.
    Counter {
        /// Nanoseconds per tick, as a 32.32 fixed-point number.
        multiplier: u64,
        /// The counter's value at the clock's origin.
        origin: u64,
    },
    /// The kernel's monotonic clock.
    Monotonic {
        /// The clock's origin.
        origin: Instant,
    },
    /// Virtual time: it stands still until the emulator moves it.
    Virtual(Arc<AtomicU64>),
}

impl Clock {
    /// The best clock of this machine.
    pub fn real() -> Self {
        static RATE: OnceLock<Option<u64>> = OnceLock::new();
        match *RATE.get_or_init(counter::multiplier) {
            Some(multiplier) => Self::Counter { multiplier, origin: counter::ticks() },
            None => Self::Monotonic { origin: Instant::now() },
        }
    }

    /// A clock that only moves when its cell is written.
    pub fn virtual_at(now_ns: u64) -> (Self, Arc<AtomicU64>) {
        let cell = Arc::new(AtomicU64::new(now_ns));
        (Self::Virtual(Arc::clone(&cell)), cell)
    }

    /// Nanoseconds since this clock's origin.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        match self {
            Self::Counter { multiplier, origin } => {
                let ticks = counter::ticks().wrapping_sub(*origin);
                ((u128::from(ticks) * u128::from(*multiplier)) >> 32) as u64
            }
            Self::Monotonic { origin } => origin.elapsed().as_nanos() as u64,
            Self::Virtual(now_ns) => now_ns.load(Ordering::Acquire),
        }
    }

    /// Whether this clock is the emulator's.
    pub fn is_virtual(&self) -> bool {
        matches!(self, Self::Virtual(_))
    }

    /// What kind of clock it is, for a result's record.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Counter { .. } => "time stamp counter",
            Self::Monotonic { .. } => "monotonic clock",
            Self::Virtual(_) => "virtual time",
        }
    }
}

/// Lets real time pass, for the few waits that have no transport yet (sysfs, a process that should end).
pub fn sleep(duration: Duration) {
    std::thread::sleep(duration);
}

/// The moment `after` from now in real time, for waits that have no transport yet.
pub fn deadline(after: Duration) -> Instant {
    Instant::now() + after
}

/// Whether a [`deadline`] has passed.
pub fn passed(deadline: Instant) -> bool {
    Instant::now() >= deadline
}

#[cfg(target_arch = "x86_64")]
mod counter {
    use super::{Duration, Instant};
    use core::arch::x86_64::{__cpuid, _rdtsc};

    #[inline]
    pub(super) fn ticks() -> u64 {
        // SAFETY: every x86-64 processor has the counter, and Linux leaves it readable from user mode.
        unsafe { _rdtsc() }
    }

    /// CPUID 8000_0007h EDX bit 8: the counter runs at one rate in every power state.
    fn is_invariant() -> bool {
        __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & (1 << 8) != 0
    }

    /// Measures nanoseconds per tick against the monotonic clock over 20 ms; `None` where the counter cannot be relied
    /// on (rate changes with the power state, or two measurements differ by more than a thousandth).
    pub(super) fn multiplier() -> Option<u64> {
        if !is_invariant() {
            return None;
        }
        let (first, second) = (measure(), measure());
        let difference = first.abs_diff(second);
        (first > 0 && difference < first / 1000).then_some(second)
    }

    fn measure() -> u64 {
        let (start, from) = (Instant::now(), ticks());
        while start.elapsed() < Duration::from_millis(10) {
            core::hint::spin_loop();
        }
        let (elapsed_ns, passed) = (start.elapsed().as_nanos(), u128::from(ticks().wrapping_sub(from)));
        (elapsed_ns << 32).checked_div(passed).unwrap_or(0) as u64
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod counter {
    pub(super) fn ticks() -> u64 {
        0
    }

    pub(super) fn multiplier() -> Option<u64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_clock_moves_forward() {
        let clock = Clock::real();
        let first = clock.now_ns();
        sleep(Duration::from_millis(2));
        let second = clock.now_ns();
        assert!(second >= first + MILLISECOND_NS, "{first} -> {second} on {}", clock.name());
    }

    #[test]
    fn a_virtual_clock_stands_until_it_is_moved() {
        let (clock, cell) = Clock::virtual_at(7);
        assert_eq!(clock.now_ns(), 7);
        cell.store(9, Ordering::Release);
        assert_eq!(clock.now_ns(), 9);
        assert!(clock.is_virtual());
    }
}
