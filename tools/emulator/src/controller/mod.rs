//! The controller proper: registers, queues, and the way of a command through them.
#![forbid(unsafe_code)]

pub(crate) mod cells;
pub(crate) mod complete;
mod doorbell;
mod fetch;
pub(crate) mod flight;
mod instant;
pub(crate) mod memory_buffer;
pub(crate) mod queue;
pub(crate) mod registers;
pub(crate) mod shadow;
pub(crate) mod status;
