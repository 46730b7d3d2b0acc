//! A userspace NVMe driver over Linux VFIO.
#![deny(unsafe_code)]

pub mod clock;
pub mod dma;
pub mod transport;

#[cfg(test)]
mod testing;
