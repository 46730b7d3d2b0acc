//! Queues: where commands go in and completions come out. The hot path lives here and nowhere else.
//!
//! | file | holds |
//! |---|---|
//! | [`barrier`] | the three orders that matter between processor and device |
//! | [`doorbell`] | the write that tells the controller |
//! | [`ring`] | submission and completion entries in shared memory, tail, head, phase tag |
//! | [`shadow`] | doorbells in memory, rung only when the controller asks for it |
//! | [`slot`] | command ids with generations, and who owns the buffers |
//! | [`pair`] | the path of a command: submit, ring, poll |
#![deny(unsafe_code)]

pub mod barrier;
pub mod doorbell;
pub mod pair;
pub mod ring;
pub mod shadow;
pub mod slot;

pub use doorbell::Doorbell;
pub use pair::{DeviceFault, DeviceFaultKind, Done, Parts, QueuePair, Refused, RefusedReason};
pub use ring::{CompletionRing, IoWords, RawCompletion, RingError, RingMemory, SubmissionRing};
pub use slot::{DeviceQuiet, Generations, Slot, SlotTable};

#[cfg(all(test, not(loom)))]
mod tests;
