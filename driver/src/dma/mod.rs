//! Memory that the device may reach.
//!
//! Four types, from the outside in. A [`DmaMemory`] is one allocation that a transport has mapped for the device: queues,
//! pools and the host memory buffer are made of it. A [`BufferPool`] cuts one such allocation into equal [`Buffer`]s, and
//! a buffer is what travels with one command: it knows its IOVA and has its PRP list ready, so that submitting it again
//! costs nothing but storing two words. Several buffers become the data of one command as a [`ScatterList`].
//!
//! Why a memfd and not plain anonymous memory: a device in another process (vfio-user) can only reach memory that has a
//! descriptor to be sent, and with one kind of memory for all transports there is one kind of bug. It is sealed against
//! shrinking, so no peer that was given the descriptor can pull pages away under us.
//!
//! Why only copies in and out: while a command runs, the device may write into its buffer at any moment, and a `&[u8]`
//! of memory that changes is undefined behaviour in Rust even if nobody looks. So no slice of this memory ever exists.
//! Who needs an address (a ring, whose every word goes through the queue's barriers) asks for the pointer.
//!
//! Memory goes back to the system only after the transport has said that the device cannot reach it any more. Where it
//! cannot say so, the memory is leaked on purpose and counted ([`leaked_bytes`]): a few megabytes lost are an annoyance,
//! a device that writes into somebody else's page is not.
#![deny(unsafe_code)]

mod buffer;
mod device_memory;
mod memory;
mod prp;
mod ring;
mod scatter;

pub use buffer::{Buffer, BufferPool};
pub use device_memory::{BASE as DEVICE_MEMORY_BASE, DeviceMapping, DeviceMemory};
pub use memory::{DmaMemory, PageKind, leaked_bytes};
pub use prp::PrpPair;
pub use ring::RingBuffer;
pub use scatter::{BufferMut, DataPointer, NotScattered, ScatterList, ScatterPiece};

use crate::transport::TransportError;

/// Why there is no memory for the device, or why an access to it was refused.
#[derive(Debug, thiserror::Error)]
pub enum DmaError {
    /// The system did not give the memory.
    #[error("cannot allocate {bytes} bytes of memory for the device: {what}: {source}")]
    Allocate {
        /// The length asked for.
        bytes: usize,
        /// The step that failed.
        what: &'static str,
        /// The system's answer.
        source: std::io::Error,
    },
    /// The transport could not map it.
    #[error(transparent)]
    Map(#[from] TransportError),
    /// A pool of this shape cannot be made.
    #[error("no pool of {count} buffers of {bytes_each} bytes: {reason}")]
    Shape {
        /// Buffers asked for.
        count: usize,
        /// Bytes of each.
        bytes_each: usize,
        /// What is wrong with that.
        reason: &'static str,
    },
    /// An access would leave the memory.
    #[error("offset {offset} (+{bytes}) is outside the {length} bytes of this memory")]
    OutOfRange {
        /// Where the access begins.
        offset: usize,
        /// How long it is.
        bytes: usize,
        /// What there is.
        length: usize,
    },
    /// No data pointer can describe the buffer.
    #[error("no PRP list for this buffer: {0}")]
    DataPointer(#[from] nvmetal_core::data_pointer::DataPointerError),
    /// A buffer cannot begin there.
    #[error("a buffer cannot begin at offset {offset}: offsets are multiples of 4 below its {length} bytes")]
    Offset {
        /// The offset asked for.
        offset: usize,
        /// The buffer's length.
        length: usize,
    },
}
