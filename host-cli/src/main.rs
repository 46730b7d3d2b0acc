//! The command line, and nothing but it.
#![forbid(unsafe_code)]

fn main() {}
