//! What stands in front of every message: its number, what it is, how long it is, and how it ended.
//!
//! vfio-user specification, "Message format" and "Commands".
#![forbid(unsafe_code)]

use core::fmt;

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::WireError;

/// Bytes of a header.
pub const HEADER_BYTES: usize = 16;

/// Bits 0 to 3 of the flags: a reply, else a command.
const REPLY: u32 = 1;
const KIND: u32 = 0xf;
/// The sender wants no reply.
const NO_REPLY: u32 = 1 << 4;
/// The reply says that the command failed; the error number says why.
const ERROR: u32 = 1 << 5;

/// What a message asks for. Numbers that are not known survive as numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Command(pub u16);

macro_rules! commands {
    ($( $(#[doc = $doc:literal])+ $name:ident = $number:literal; )+) => {
        impl Command {
            $( $(#[doc = $doc])+ pub const $name: Self = Self($number); )+

            /// The specification's name of it; `None` where it has none.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 { $( $number => Some(stringify!($name)), )+ _ => None }
            }
        }
    };
}

commands! {
    /// The first exchange: version and limits.
    VERSION = 1;
    /// Memory of the client becomes reachable for the device.
    DMA_MAP = 2;
    /// Memory of the client is taken back.
    DMA_UNMAP = 3;
    /// How many regions and interrupts there are.
    DEVICE_GET_INFO = 4;
    /// What one region is.
    DEVICE_GET_REGION_INFO = 5;
    /// Descriptors with which parts of a region signal writes.
    DEVICE_GET_REGION_IO_FDS = 6;
    /// What one kind of interrupt is.
    DEVICE_GET_IRQ_INFO = 7;
    /// Interrupts are set up, masked or triggered.
    DEVICE_SET_IRQS = 8;
    /// A part of a region is read.
    REGION_READ = 9;
    /// A part of a region is written.
    REGION_WRITE = 10;
    /// The device reads memory of the client that it cannot map.
    DMA_READ = 11;
    /// The device writes memory of the client that it cannot map.
    DMA_WRITE = 12;
    /// The device is reset.
    DEVICE_RESET = 13;
    /// Several small parts of regions are written.
    REGION_WRITE_MULTI = 15;
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => write!(f, "command {}", self.0),
        }
    }
}

/// Whether a message asks or answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageKind {
    /// It asks.
    Command,
    /// It answers.
    Reply,
}

/// The first 16 bytes of every message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Header {
    message_id: U16,
    command: U16,
    message_bytes: U32,
    flags: U32,
    error: U32,
}

const _: () = assert!(size_of::<Header>() == HEADER_BYTES);

impl Header {
    /// A command with `payload_bytes` behind the header.
    pub fn command(message_id: u16, command: Command, payload_bytes: usize) -> Self {
        Self::new(message_id, command, payload_bytes, 0, 0)
    }

    /// The answer to `asked`, with `payload_bytes` behind the header.
    pub fn reply(asked: &Self, payload_bytes: usize) -> Self {
        Self::new(asked.message_id.get(), asked.what(), payload_bytes, REPLY, 0)
    }

    /// The answer that `asked` failed with an error number of the system's.
    pub fn failure(asked: &Self, errno: i32) -> Self {
        Self::new(asked.message_id.get(), asked.what(), 0, REPLY | ERROR, errno.unsigned_abs())
    }

    fn new(message_id: u16, command: Command, payload_bytes: usize, flags: u32, error: u32) -> Self {
        // Senders keep to PAYLOAD_BYTES_MOST; what would not fit in the field is told as what no receiver takes.
        let bytes = u32::try_from(payload_bytes.saturating_add(HEADER_BYTES)).unwrap_or(u32::MAX);
        Self {
            message_id: message_id.into(),
            command: command.0.into(),
            message_bytes: bytes.into(),
            flags: flags.into(),
            error: error.into(),
        }
    }

    /// The message's number; its reply has the same.
    pub fn message_id(&self) -> u16 {
        self.message_id.get()
    }

    /// What it asks for, or what was asked.
    pub fn what(&self) -> Command {
        Command(self.command.get())
    }

    /// Whether it asks or answers.
    ///
    /// # Errors
    /// It is neither.
    pub fn kind(&self) -> Result<MessageKind, WireError> {
        match self.flags.get() & KIND {
            0 => Ok(MessageKind::Command),
            REPLY => Ok(MessageKind::Reply),
            _ => Err(WireError::Impossible { what: "message flags", value: self.flags.get().into() }),
        }
    }

    /// Whether the sender of a command wants no reply.
    pub fn wants_no_reply(&self) -> bool {
        self.flags.get() & NO_REPLY != 0
    }

    /// The error number of a reply that says that the command failed; never 0.
    pub fn failed_with(&self) -> Option<i32> {
        (self.flags.get() & ERROR != 0).then(|| i32::try_from(self.error.get()).unwrap_or(i32::MAX).max(1))
    }

    /// Bytes behind the header.
    ///
    /// # Errors
    /// The message would be shorter than its header, or its payload longer than `most`.
    pub fn payload_bytes(&self, most: usize) -> Result<usize, WireError> {
        let bytes = self.message_bytes.get() as usize;
        let payload = bytes.checked_sub(HEADER_BYTES).ok_or(WireError::TooShort {
            what: "a message",
            bytes,
            needed: HEADER_BYTES,
        })?;
        if payload > most {
            return Err(WireError::TooLong { bytes: payload as u64, most: most as u64 });
        }
        Ok(payload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_lies_in_its_16_bytes_as_the_specification_has_it() {
        let header = Header::command(0x1234, Command::REGION_READ, 16);
        assert_eq!(header.as_bytes(), [0x34, 0x12, 9, 0, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let failure = Header::failure(&header, 22);
        assert_eq!(failure.as_bytes(), [0x34, 0x12, 9, 0, 16, 0, 0, 0, 0x21, 0, 0, 0, 22, 0, 0, 0]);
        assert_eq!(failure.failed_with(), Some(22));
        assert_eq!(failure.kind(), Ok(MessageKind::Reply));
    }

    #[test]
    fn a_length_is_believed_only_within_limits() {
        let of = |bytes: u32| {
            let mut raw = [0; HEADER_BYTES];
            raw[4..8].copy_from_slice(&bytes.to_le_bytes());
            Header::read_from_bytes(&raw).unwrap().payload_bytes(100)
        };
        assert_eq!(of(16), Ok(0));
        assert_eq!(of(116), Ok(100));
        assert!(matches!(of(15), Err(WireError::TooShort { bytes: 15, .. })));
        assert!(matches!(of(117), Err(WireError::TooLong { .. })));
        assert!(matches!(of(u32::MAX), Err(WireError::TooLong { .. })));
    }

    #[test]
    fn an_error_reply_without_a_number_is_an_error_still() {
        let mut raw = [0; HEADER_BYTES];
        raw[8] = 0x21;
        assert_eq!(Header::read_from_bytes(&raw).unwrap().failed_with(), Some(1));
    }

    #[test]
    fn a_message_that_neither_asks_nor_answers_is_impossible() {
        let mut raw = [0; HEADER_BYTES];
        raw[8] = 2;
        assert!(Header::read_from_bytes(&raw).unwrap().kind().is_err());
    }
}
