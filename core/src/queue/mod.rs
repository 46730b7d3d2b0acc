//! Queues: where commands go in and completions come out.
#![deny(unsafe_code)]

pub mod doorbell;
