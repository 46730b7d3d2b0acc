//! Workloads: what is to be read and written, at what depth, for how long, and what came of it.
//!
//! | file | holds |
//! |---|---|
//! | [`job`] | the description of a run, and its translation into blocks of a namespace |
//! | [`random`] | numbers for offsets and data |
//! | [`histogram`] | latencies, kept in logarithmic classes |
//! | [`result`] | what a run gives |
//! | [`place`] | where I/Os go in jobs that do more than draw or walk |
//! | [`pattern`] | what is written, and whether it comes back |
//! | `course` | latencies by the tenth of a second |
//! | `runner` | one queue's loop: submit, ring, poll, record; the hot path of a benchmark |
//! | `general` | the same loop for everything beyond plain reads and writes: paces, sizes, trims, verification |
//! | `crew` | the threads of a run, who watches them, and what their records add up to |
//! | [`engine`] | all queues of a run, on threads of their own or, in virtual time, on one |
#![forbid(unsafe_code)]

mod course;
pub(crate) mod crew;
pub mod engine;
mod general;
pub mod histogram;
pub mod job;
pub mod pattern;
pub mod place;
pub mod random;
pub mod result;
mod runner;

pub use crew::{Observer, Tick};
pub use engine::run;
pub use histogram::Histogram;
pub(crate) use job::Space;
pub use job::{Access, Action, Data, Distribution, Job, JobError, Limits, Rate, SizeShare, Think};
pub use pattern::Miscompare;
pub use result::{Cause, Direction, EndReason, ProcessorUse, RunResult, Verified};
pub(crate) use runner::threshold;
