//! What the fuzz targets do: one module for each, whose `run` takes the fuzzer's bytes.
//!
//! Two kinds of things are looked for. No input may make the code panic, overflow, or run for ever; that alone is what
//! the parsers promise. And where there is something to compare with, the result has to be right: a list that a builder
//! wrote is read back as a controller reads it, a buffer comes back from a queue exactly once.
//!
//! | target | the fuzzer is |
//! |---|---|
//! | `describe` | any structure's bytes, of any length, told as text, JSON and hex |
//! | `pages` | what Identify and Get Log Page returned, walked with the typed structures |
//! | `command` | submission and completion entries, statuses, feature values |
//! | `prp`, `sgl` | pieces of memory, for the data pointer builders |
//! | `lifecycle` | the registers' values while a controller is brought up and shut down |
//! | `queue` | the device behind a queue pair |
//! | `emulator` | the driver in front of the emulated controller |
//! | `driver` | the device behind the whole driver |
//! | `vfio_client` | the server that our vfio-user client has connected to |
//! | `vfio_server` | the client that our vfio-user server has taken, with its descriptors |
#![forbid(unsafe_code)]

pub mod command;
pub mod describe;
pub mod driver;
pub mod emulator;
pub mod lifecycle;
mod list;
pub mod pages;
pub mod prp;
pub mod queue;
pub mod sgl;
pub mod vfio_client;
pub mod vfio_server;
