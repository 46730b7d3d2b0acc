//! How results look to people.
#![forbid(unsafe_code)]

pub mod text;
