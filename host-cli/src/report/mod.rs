//! How results look to people.
#![forbid(unsafe_code)]

pub mod bench;
pub mod diff;
pub mod doctor;
pub mod fio;
pub mod profile;
pub mod text;
pub mod validate;
