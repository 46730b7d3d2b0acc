//! An NVMe controller in software, with media, a link, a temperature and faults on demand.
//!
//! It is what runs without hardware and without root, and what proves the driver: every register, every command and every
//! fault goes through the same driver code as a drive behind VFIO.
//!
//! # How it lives
//!
//! An [`Emulator`] does nothing by itself. It is told the time: register accesses and doorbells arrive at the time it
//! knows of, and [`Emulator::advance`] runs what is due until a new one. Everything that takes time is an event in a queue
//! ([`event`]), so that a *stepped* emulator jumps from one to the next (virtual time: an hour passes in a second, and the
//! same run gives the same figures), and a *threaded* one follows the clock of the machine with the same code.
//!
//! What it needs from outside is named here and given to it: [`GuestMemory`], the memory it may reach, and [`Irq`], whom it
//! tells of interrupts.
//!
//! Who drives it is in the same process (and gives it these), or in another: [`serve`] puts it behind a socket.
//!
//! # The path of a command
//!
//! | step | file |
//! |---|---|
//! | a doorbell is written | `controller/doorbell.rs` |
//! | the entry is fetched in its turn | `controller/fetch.rs` |
//! | it is checked, and its time on media and link is worked out | `nvm/`, `nand.rs`, `link.rs` |
//! | data moves and the command takes effect | `nvm/`, `admin/`, `data.rs`, `media/` |
//! | its completion is written, an interrupt raised | `controller/complete.rs` |
#![deny(unsafe_code)]

mod admin;
mod controller;
mod data;
mod emulator;
pub mod event;
pub mod fault;
mod guest_memory;
mod health;
pub mod link;
mod media;
pub mod model;
mod namespace;
mod nand;
mod nvm;
pub mod options;
pub mod pci_config;
pub mod serve;
mod thermal;
pub mod trace;
mod value;

pub use emulator::{Emulator, Irq, NoIrq};
pub use fault::{Fault, FaultKind};
pub use guest_memory::{Access, DmaFault, GuestMemory, MapError, SharedWords};
pub use model::{ClockKind, MediaKind, Model};
pub use options::{Options, OptionsError};
