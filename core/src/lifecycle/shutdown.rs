//! From a running controller to one that holds still.
//!
//! [`Shutdown`] is the orderly way, after the queues have been deleted: it notifies the controller (so that it saves its
//! tables and does not count an unsafe shutdown), waits for it, and disables it. A controller that never reports the end
//! of its shutdown is known to exist, in emulators above all; that is a note, not a failure. [`Disable`] is the other
//! way, for a controller whose queues do not answer any more: EN = 0, and RDY = 0 is the proof that it touches no memory.
#![forbid(unsafe_code)]

use super::{Awaited, LOOK_EVERY_NS, LifecycleError, MS, Machine, Step, believe};
use crate::register::{Configuration, ControllerStatus, ShutdownNotification, ShutdownStatus, offset};

/// The least time that a controller gets for its shutdown, whatever RTD3E says.
const SHUTDOWN_AT_LEAST_MS: u64 = 5_000;
/// The most.
const SHUTDOWN_AT_MOST_MS: u64 = 60_000;

/// How a shutdown ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShutdownOutcome {
    /// The controller reported that its shutdown is complete.
    pub complete: bool,
    /// From the notification until that report, or until it was given up.
    pub waited_ns: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Start,
    Notify,
    WaitComplete,
    Complete,
    ClearEnable,
    WaitNotReady,
    NotReady,
    Done,
    Failed(LifecycleError),
}

/// The machine for an orderly shutdown.
#[derive(Debug, Clone)]
pub struct Shutdown {
    state: State,
    cc: Configuration,
    shutdown_ns: u64,
    disable_ns: u64,
    since_ns: u64,
    outcome: ShutdownOutcome,
}

impl Shutdown {
    /// A shutdown that takes at most `rtd3e_us` (Identify Controller, RTD3 Entry Latency; 0 if not reported) or five
    /// seconds, whichever is longer, and then `disable_ms` (CAP.TO) for the disabling.
    pub fn new(rtd3e_us: u32, disable_ms: u32) -> Self {
        let shutdown_ms = (u64::from(rtd3e_us) / 1000).clamp(SHUTDOWN_AT_LEAST_MS, SHUTDOWN_AT_MOST_MS);
        Self {
            state: State::Start,
            cc: Configuration::new(),
            shutdown_ns: shutdown_ms * MS,
            disable_ns: u64::from(disable_ms.max(500)) * MS,
            since_ns: 0,
            outcome: ShutdownOutcome { complete: false, waited_ns: 0 },
        }
    }

    fn step(&mut self, now_ns: u64, value: u64) -> Result<Step<ShutdownOutcome>, LifecycleError> {
        let csts = ControllerStatus::from_bits(value as u32);
        let waited_ns = now_ns.saturating_sub(self.since_ns);
        let wait = Step::Wait { until_ns: now_ns + LOOK_EVERY_NS };
        let (next, step) = match self.state {
            State::Start => (State::Notify, Step::Read32(offset::CC)),
            State::Notify => {
                self.cc = Configuration::from_bits(believe(offset::CC, value)?);
                self.since_ns = now_ns;
                if !self.cc.en() {
                    self.state = State::WaitNotReady;
                    return self.step(now_ns, value);
                }
                self.cc = self.cc.with_shn(ShutdownNotification::NORMAL);
                (State::WaitComplete, Step::Write32(offset::CC, self.cc.into_bits()))
            }
            State::WaitComplete => (State::Complete, Step::Read32(offset::CSTS)),
            State::Complete => {
                believe(offset::CSTS, value)?;
                let complete = csts.shst() == ShutdownStatus::COMPLETE;
                if complete || csts.cfs() || waited_ns >= self.shutdown_ns {
                    self.outcome = ShutdownOutcome { complete, waited_ns };
                    self.state = State::ClearEnable;
                    return self.step(now_ns, value);
                }
                (State::WaitComplete, wait)
            }
            State::ClearEnable => {
                self.since_ns = now_ns;
                self.cc = self.cc.with_en(false).with_shn(ShutdownNotification::NONE);
                (State::WaitNotReady, Step::Write32(offset::CC, self.cc.into_bits()))
            }
            State::WaitNotReady => (State::NotReady, Step::Read32(offset::CSTS)),
            State::NotReady => {
                believe(offset::CSTS, value)?;
                if !csts.rdy() {
                    (State::Done, Step::Done(self.outcome))
                } else if waited_ns >= self.disable_ns {
                    return Err(LifecycleError::Timeout {
                        awaited: Awaited::NotReady,
                        waited_ms: waited_ns / MS,
                        csts,
                        cc: self.cc,
                    });
                } else {
                    (State::WaitNotReady, wait)
                }
            }
            State::Done => (State::Done, Step::Done(self.outcome)),
            State::Failed(error) => return Err(error),
        };
        self.state = next;
        Ok(step)
    }
}

impl Machine for Shutdown {
    type Outcome = ShutdownOutcome;

    fn next(&mut self, now_ns: u64, value: u64) -> Result<Step<ShutdownOutcome>, LifecycleError> {
        let step = self.step(now_ns, value);
        if let Err(error) = step {
            self.state = State::Failed(error);
        }
        step
    }
}

/// The machine that disables a controller at once: the proof of quiet is its [`Step::Done`].
#[derive(Debug, Clone)]
pub struct Disable(Shutdown);

impl Disable {
    /// Disables within `disable_ms` (CAP.TO).
    pub fn new(disable_ms: u32) -> Self {
        Self(Shutdown { state: State::Start, ..Shutdown::new(0, disable_ms) })
    }
}

impl Machine for Disable {
    type Outcome = ();

    fn next(&mut self, now_ns: u64, value: u64) -> Result<Step<()>, LifecycleError> {
        // The same road from `ClearEnable` on; only the notification is left out.
        if self.0.state == State::Notify {
            self.0.cc = Configuration::from_bits(believe(offset::CC, value)?);
            self.0.state = State::ClearEnable;
        }
        Ok(match self.0.next(now_ns, value)? {
            Step::Read32(offset) => Step::Read32(offset),
            Step::Read64(offset) => Step::Read64(offset),
            Step::Write32(offset, value) => Step::Write32(offset, value),
            Step::Write64(offset, value) => Step::Write64(offset, value),
            Step::Wait { until_ns } => Step::Wait { until_ns },
            Step::Done(_) => Step::Done(()),
        })
    }
}
