//! A userspace NVMe driver over Linux VFIO.
#![deny(unsafe_code)]

pub mod blocking;
pub mod clock;
pub mod controller;
pub mod dma;
pub mod error;
pub mod future;
pub mod io_queue;
pub mod kernel;
pub mod pci;
pub mod transport;
pub mod vfio;
pub mod workload;

pub use controller::{Admin, Controller, ControllerOptions, Namespace};
pub use error::DriverError;
pub use io_queue::Wait;

#[cfg(test)]
mod testing;
