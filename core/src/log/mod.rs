//! What Get Log Page returns.
#![forbid(unsafe_code)]

mod smart;
pub use smart::{CriticalWarning, Smart};
