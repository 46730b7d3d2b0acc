//! A userspace NVMe driver over Linux VFIO.
#![deny(unsafe_code)]

pub mod clock;
pub mod transport;
