//! What Identify returns.
#![forbid(unsafe_code)]

mod controller;
mod list;
mod namespace;
mod power;
pub use controller::{Controller, Frmw, Lpa, Oacs, Oncs, VolatileWriteCache};
pub use list::ActiveNamespaceList;
pub use namespace::{FormattedLbaSize, LbaFormat, Namespace};
pub use power::{PowerState, PowerStateFlags};

/// Size of every structure that Identify returns, in bytes.
pub const SIZE: usize = 4096;
