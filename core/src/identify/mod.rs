//! What Identify returns.
#![forbid(unsafe_code)]

mod controller;
mod controller_bits;
mod list;
mod namespace;
mod namespace_bits;
mod power;
pub use controller::Controller;
pub use controller_bits::*;
pub use list::{ActiveNamespaceList, NamespaceList};
pub use namespace::{LbaFormat, Namespace};
pub use namespace_bits::*;
pub use power::*;

/// Size of every structure that Identify returns, in bytes.
pub const SIZE: usize = 4096;
