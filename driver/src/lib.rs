//! A userspace NVMe driver over Linux VFIO.
#![deny(unsafe_code)]
