//! A userspace NVMe driver over Linux VFIO.
#![deny(unsafe_code)]

pub mod clock;
pub mod dma;
pub mod transport;

pub mod pci;
#[cfg(test)]
mod testing;
