//! An NVMe controller in software.
#![deny(unsafe_code)]
