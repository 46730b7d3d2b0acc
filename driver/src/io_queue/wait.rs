//! Three ways to wait for completions, and how long the third one polls before it sleeps.
//!
//! *Polling* sees a completion as soon as it is there and takes a whole processor. *Interrupts* cost a system call and a
//! wake-up for each wait, and leave the processor to others. A *hybrid* polls first and sleeps only if nothing came: with
//! many commands in flight, where the next completion is always near, it is polling; with a slow drive and few commands,
//! where a processor would turn for a tenth of a millisecond for nothing, it is interrupts.
//!
//! **How long it polls** follows what it sees ([`Adaptive`]). Polling for longer than a sleep and a wake-up would cost is
//! never worth it, which is what [`MOST_NS`] is. Below that it polls for twice as long as recent waits took. A wait that
//! was slept through says nothing about that (its length has the wake-up in it, which in a deep idle state takes longer
//! than many a drive), so each one halves the time, down to none; and because a drive may have become faster meanwhile,
//! every [`PROBE_EVERY`]th wait polls for the full time and looks.
#![forbid(unsafe_code)]

use core::cell::Cell;

/// The longest that a hybrid polls: about what a sleep and a wake-up cost.
pub const MOST_NS: u64 = 50_000;
/// One wait in so many polls for [`MOST_NS`], however short the time has become.
pub const PROBE_EVERY: u32 = 64;
/// A polling time below this is none.
const LEAST_NS: u64 = 500;

/// How a queue waits for completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Wait {
    /// Looks again and again.
    #[default]
    Poll,
    /// Sleeps until the queue's interrupt comes.
    Interrupt,
    /// Looks again and again for a while, then sleeps.
    Hybrid,
}

impl Wait {
    /// Whether the queue needs an interrupt vector.
    pub fn needs_interrupts(self) -> bool {
        self != Self::Poll
    }

    /// What it is in a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Poll => "poll",
            Self::Interrupt => "interrupt",
            Self::Hybrid => "hybrid",
        }
    }
}

/// The polling time of a hybrid, and where it is in the current wait.
///
/// A queue tells it of every empty look, with how far its completions have come; two looks with the same are of one wait.
#[derive(Debug)]
pub(super) struct Adaptive {
    /// For so long the next wait polls.
    poll_ns: Cell<u64>,
    /// Waits so far; wraps.
    waits: Cell<u32>,
    /// The completion queue's head in the current wait.
    head: Cell<u32>,
    since_ns: Cell<u64>,
    /// The last look of the current wait: when it ended, if it has.
    looked_ns: Cell<u64>,
    /// For so long the current wait polls.
    budget_ns: Cell<u64>,
    slept: Cell<bool>,
}

/// What to do about an empty look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Look again, until this moment at the longest.
    Poll { until_ns: u64 },
    /// Sleep until the interrupt.
    Sleep,
}

impl Adaptive {
    pub(super) fn new() -> Self {
        Self {
            poll_ns: Cell::new(MOST_NS),
            waits: Cell::new(0),
            head: Cell::new(u32::MAX),
            since_ns: Cell::new(0),
            looked_ns: Cell::new(0),
            budget_ns: Cell::new(0),
            slept: Cell::new(false),
        }
    }

    /// Nothing was found at `now_ns`, with the completion queue's head at `head`.
    pub(super) fn empty(&self, head: u32, now_ns: u64) -> Next {
        if self.head.replace(head) != head {
            self.learn();
            self.begin(now_ns);
        }
        self.looked_ns.set(now_ns);
        let until_ns = self.since_ns.get().saturating_add(self.budget_ns.get());
        if now_ns < until_ns {
            return Next::Poll { until_ns };
        }
        self.slept.set(true);
        Next::Sleep
    }

    fn begin(&self, now_ns: u64) {
        let waits = self.waits.get().wrapping_add(1);
        self.waits.set(waits);
        self.since_ns.set(now_ns);
        self.slept.set(false);
        self.budget_ns.set(if waits.is_multiple_of(PROBE_EVERY) { MOST_NS } else { self.poll_ns.get() });
    }

    /// A wait has ended.
    fn learn(&self) {
        let poll_ns = self.poll_ns.get();
        let next_ns = if self.slept.get() {
            if poll_ns / 2 < LEAST_NS { 0 } else { poll_ns / 2 }
        } else {
            let waited_ns = self.looked_ns.get().saturating_sub(self.since_ns.get());
            let wanted_ns = (2 * waited_ns).clamp(LEAST_NS, MOST_NS);
            // Up at once, down slowly: polling a little too long costs less than a sleep too many.
            if wanted_ns > poll_ns { wanted_ns } else { poll_ns - (poll_ns - wanted_ns) / 8 }
        };
        self.poll_ns.set(next_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits for a drive that answers after `answer_ns`, looking every 100 ns; gives how many of `waits` were slept.
    fn slept(adaptive: &Adaptive, now_ns: &mut u64, head: &mut u32, answer_ns: u64, wake_ns: u64, waits: u32) -> u32 {
        let mut slept = 0;
        for _ in 0..waits {
            *head += 1;
            let there_ns = *now_ns + answer_ns;
            while *now_ns < there_ns {
                match adaptive.empty(*head, *now_ns) {
                    Next::Poll { until_ns } => {
                        assert!(until_ns > *now_ns);
                        *now_ns += 100;
                    }
                    Next::Sleep => {
                        slept += 1;
                        *now_ns = there_ns + wake_ns;
                    }
                }
            }
            *now_ns += 1000;
        }
        slept
    }

    #[test]
    fn a_quick_drive_is_polled_and_a_slow_one_slept_for() {
        let (adaptive, mut now_ns, mut head) = (Adaptive::new(), 0, 0);
        assert_eq!(slept(&adaptive, &mut now_ns, &mut head, 10_000, 5_000, 500), 0);
        assert_eq!(slept(&adaptive, &mut now_ns, &mut head, 90_000, 5_000, 500), 500);
        assert_eq!(adaptive.poll_ns.get(), 0, "it does not even begin to poll any more");
    }

    #[test]
    fn a_drive_that_has_become_quick_is_found_out_although_waking_up_takes_longer_than_its_answer() {
        let (adaptive, mut now_ns, mut head) = (Adaptive::new(), 0, 0);
        slept(&adaptive, &mut now_ns, &mut head, 90_000, 200_000, 500);
        let until_found = slept(&adaptive, &mut now_ns, &mut head, 10_000, 200_000, 500);
        assert!(until_found <= PROBE_EVERY, "{until_found}");
    }

    #[test]
    fn the_polling_time_is_about_twice_the_wait_and_never_above_the_most() {
        for answer_ns in [200, 1_000, 10_000, 24_000, 40_000] {
            let (adaptive, mut now_ns, mut head) = (Adaptive::new(), 0, 0);
            slept(&adaptive, &mut now_ns, &mut head, answer_ns, 5_000, 300);
            let poll_ns = adaptive.poll_ns.get();
            assert!(poll_ns <= MOST_NS);
            let wanted_ns = (2 * answer_ns).clamp(LEAST_NS, MOST_NS);
            assert!(poll_ns.abs_diff(wanted_ns) <= 400, "{answer_ns}: {poll_ns}");
        }
    }
}
