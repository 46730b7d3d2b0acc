//! Bringing a controller up and down, as state machines that do no I/O.
//!
//! A machine here never touches a register and never waits. It is asked for its next [`Step`], does what a device
//! driver would do next in its head, and is told the outcome: the value that was read, and the time. So the same code
//! runs over VFIO, over a socket, in an interrupt handler of a firmware, and in tests where sixty seconds pass in none;
//! and every order, lateness and lie of a device is a unit test.
//!
//! The loop around a machine is the same for all of them:
//!
//! ```
//! # use nvmetal_core::lifecycle::{BringUp, BringUpOptions, Machine, Step};
//! # fn read32(_: u64) -> u32 { u32::MAX } fn read64(_: u64) -> u64 { u64::MAX }
//! # fn write32(_: u64, _: u32) {} fn write64(_: u64, _: u64) {} fn idle(_: u64) {} fn now_ns() -> u64 { 0 }
//! let mut machine = BringUp::new(BringUpOptions::new(0x1000, 0x2000));
//! let mut value = 0;
//! let outcome = loop {
//!     match machine.next(now_ns(), value) {
//!         Ok(Step::Read32(offset)) => value = u64::from(read32(offset)),
//!         Ok(Step::Read64(offset)) => value = read64(offset),
//!         Ok(Step::Write32(offset, data)) => write32(offset, data),
//!         Ok(Step::Write64(offset, data)) => write64(offset, data),
//!         Ok(Step::Wait { until_ns }) => idle(until_ns),
//!         Ok(Step::Done(outcome)) => break Ok(outcome),
//!         Err(fault) => break Err(fault),
//!     }
//! };
//! assert!(outcome.is_err()); // This device reads all ones.
//! ```
//!
//! Every wait has a deadline, and every value is checked for all ones (a device that is gone) before a bit of it is
//! believed.
#![forbid(unsafe_code)]

mod bring_up;
pub mod recovery;
mod shutdown;
#[cfg(test)]
mod tests;

pub use bring_up::{BringUp, BringUpOptions, BroughtUp};
pub use recovery::Recovery;
pub use shutdown::{Disable, Shutdown, ShutdownOutcome};

use crate::register::{Configuration, ControllerStatus, is_all_ones};

/// Nanoseconds between two looks at a register that should change.
const LOOK_EVERY_NS: u64 = 100_000;
/// Nanoseconds in a millisecond.
const MS: u64 = 1_000_000;

/// What the caller has to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<T> {
    /// Read the 32-bit register at this offset, and hand its value to the next call.
    Read32(u64),
    /// Read the 64-bit register at this offset, and hand its value to the next call.
    Read64(u64),
    /// Write this value to the 32-bit register at this offset.
    Write32(u64, u32),
    /// Write this value to the 64-bit register at this offset.
    Write64(u64, u64),
    /// Let time pass, at most until then.
    Wait {
        /// The latest moment for the next call.
        until_ns: u64,
    },
    /// The end, and what came out.
    Done(T),
}

/// A sequence of steps.
pub trait Machine {
    /// What comes out at the end.
    type Outcome;

    /// The next step. `now_ns` is the time; `value` is what was read, if the last step was a read, and else ignored.
    ///
    /// After an error or [`Step::Done`] the machine is at its end and repeats that.
    fn next(&mut self, now_ns: u64, value: u64) -> Result<Step<Self::Outcome>, LifecycleError>;
}

/// What a machine was waiting for when its time ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Awaited {
    /// CSTS.RDY = 1 after CC.EN was set.
    Ready,
    /// CSTS.RDY = 1 on a controller that was found enabled but not ready, before it may be disabled.
    ReadyBeforeDisable,
    /// CSTS.RDY = 0 after CC.EN was cleared.
    NotReady,
}

impl Awaited {
    /// For people.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Ready => "becoming ready (CSTS.RDY = 1)",
            Self::ReadyBeforeDisable => "finishing an enable that somebody else began (CSTS.RDY = 1)",
            Self::NotReady => "becoming disabled (CSTS.RDY = 0)",
        }
    }
}

/// Why a machine could not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LifecycleError {
    /// A register read all ones: the device does not answer.
    NotAccessible {
        /// The register's offset.
        offset: u64,
    },
    /// CSTS.CFS is set.
    FatalStatus {
        /// The status register.
        csts: ControllerStatus,
    },
    /// The deadline passed.
    Timeout {
        /// For what.
        awaited: Awaited,
        /// How long was waited.
        waited_ms: u64,
        /// The status register as it was last read.
        csts: ControllerStatus,
        /// The configuration register as it was last written or read.
        cc: Configuration,
    },
    /// CAP.MQES is 0; the least that is allowed is 1 (two entries).
    NoQueueEntries,
    /// The controller needs larger memory pages than the host offers.
    PageSize {
        /// The least that the controller takes.
        minimum_bytes: u64,
        /// The most that the host offers.
        host_bytes: u64,
    },
    /// The controller offers no I/O command set.
    NoCommandSet,
}

impl core::fmt::Display for LifecycleError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NotAccessible { offset } => {
                write!(f, "the register at {offset:#x} reads all ones: the device does not answer")
            }
            Self::FatalStatus { csts } => {
                write!(f, "the controller reports a fatal error (CSTS {:#010x}: CFS)", csts.into_bits())
            }
            Self::Timeout { awaited, waited_ms, csts, cc } => write!(
                f,
                "the controller is still not {} after {waited_ms} ms (CSTS {:#010x}, CC {:#010x})",
                awaited.text(),
                csts.into_bits(),
                cc.into_bits()
            ),
            Self::NoQueueEntries => write!(f, "CAP.MQES is 0: the controller claims queues of a single entry"),
            Self::PageSize { minimum_bytes, host_bytes } => write!(
                f,
                "the controller needs memory pages of {} KiB, this host offers {} KiB",
                minimum_bytes >> 10,
                host_bytes >> 10
            ),
            Self::NoCommandSet => write!(f, "the controller offers no I/O command set (CAP.CSS), only admin commands"),
        }
    }
}

impl core::error::Error for LifecycleError {}

/// Believes a 32-bit register's value, unless it is all ones.
fn believe(offset: u64, value: u64) -> Result<u32, LifecycleError> {
    let value = value as u32;
    if is_all_ones(value) { Err(LifecycleError::NotAccessible { offset }) } else { Ok(value) }
}
