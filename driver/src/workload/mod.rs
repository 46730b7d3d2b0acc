//! Workloads: what is to be read and written, at what depth, for how long, and what came of it.
//!
//! | file | holds |
//! |---|---|
//! | [`job`] | the description of a run, and its translation into blocks of a namespace |
//! | [`random`] | numbers for offsets and data |
//! | [`histogram`] | latencies, kept in logarithmic classes |
//! | [`result`] | what a run gives |
//! | `runner` | one queue's loop: submit, ring, poll, record; the hot path of a benchmark |
//! | `crew` | the threads of a run, who watches them, and what their records add up to |
//! | [`engine`] | all queues of a run, on threads of their own or, in virtual time, on one |
#![forbid(unsafe_code)]

pub(crate) mod crew;
pub mod engine;
pub mod histogram;
pub mod job;
pub mod random;
pub mod result;
mod runner;

pub use crew::{Observer, Tick};
pub use engine::run;
pub use histogram::Histogram;
pub(crate) use job::Space;
pub use job::{Access, Job, JobError, Limits};
pub use result::{Cause, Direction, EndReason, ProcessorUse, RunResult};
pub(crate) use runner::threshold;
