//! The messages of vfio-user, and a socket that carries them.
//!
//! vfio-user is VFIO's interface to a device as messages over a Unix socket: the *server* has the device, the *client*
//! drives it. Memory and interrupts travel as file descriptors beside the messages. This crate is what both ends have in
//! common and knows nothing of NVMe:
//!
//! | module | holds |
//! |---|---|
//! | [`header`] | the 16 bytes in front of every message, and the commands |
//! | [`message`] | the fixed structures behind them |
//! | [`region`] | a region's description, with the capability that lists what of it may be mapped |
//! | [`version`] | the first exchange, and the limits that it sets |
//! | [`channel`] | a socket: whole messages with their descriptors, each by a deadline |
//!
//! **The other end is not trusted.** Every length is checked against the bytes that are there before it is believed, no
//! allocation is larger than a limit of ours, numbers that are not known survive as numbers, and no input panics. All
//! numbers are little-endian, wherever they are read.
#![forbid(unsafe_code)]

pub mod channel;
pub mod header;
pub mod message;
pub mod region;
pub mod version;

pub use channel::{Channel, ChannelError, Message, Ready};
pub use header::{Command, Header, MessageKind};

/// The most data that one REGION_READ or REGION_WRITE may move.
pub const DATA_BYTES_MOST: u32 = 1 << 20;
/// The most bytes that any message of ours has behind its header: data, and what describes it.
pub const PAYLOAD_BYTES_MOST: usize = DATA_BYTES_MOST as usize + 4096;
/// The most descriptors that are taken with one message.
pub const FILES_MOST: usize = 64;

/// Why bytes are no message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// It ends before its structure does.
    #[error("{what} of {bytes} bytes, where {needed} are needed")]
    TooShort {
        /// The structure.
        what: &'static str,
        /// What there is.
        bytes: usize,
        /// What it takes.
        needed: usize,
    },
    /// It is longer than any message needs to be.
    #[error("a message of {bytes} bytes, where at most {most} are taken")]
    TooLong {
        /// What it says of itself.
        bytes: u64,
        /// The limit.
        most: u64,
    },
    /// A number in it contradicts another, or cannot be.
    #[error("{what} of {value:#x}, which cannot be")]
    Impossible {
        /// The number's name.
        what: &'static str,
        /// The number.
        value: u64,
    },
    /// The text of a VERSION message is no JSON in the form that is agreed on.
    #[error("capabilities that cannot be read: {detail}")]
    Capabilities {
        /// Where and why.
        detail: String,
    },
}
