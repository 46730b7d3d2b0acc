//! NVM Express in types: registers, commands, queues and data structures.
//!
//! No operating system, no standard library, no allocator: memory is the caller's, time is told, and nothing in here
//! performs an access that the caller did not hand it.
#![cfg_attr(not(test), no_std)]
#![deny(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::std_instead_of_core, clippy::alloc_instead_of_core))]

pub mod command;
pub mod completion;
pub mod data_pointer;
pub mod describe;
pub mod feature;
pub mod identify;
pub mod lifecycle;
pub mod log;
pub mod number;
pub mod nvme_cli;
pub mod queue;
pub mod quirk;
pub mod register;
pub mod status;
