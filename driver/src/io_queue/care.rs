//! The commands that need more than the fast path has.
//!
//! [`IoQueue::submit`] stores five words and makes three comparisons. What does not fit that comes here: a command that
//! begins so near the end of the namespace that its end must be looked at, a namespace whose blocks have metadata, and
//! data in several pieces. One comparison on the fast path leads here for the first two: for a namespace with metadata
//! every block counts as near the end.
//!
//! **Metadata** lies between the blocks of data (then the data is that much longer), or in a place of its own, of which
//! the controller is told by MPTR (NVM Express NVM Command Set Specification, "Metadata Handling"). A controller that is
//! told nothing takes MPTR for 0 and goes there, so a buffer without room for the metadata is refused. That is also asked
//! of a command for which the controller makes the metadata itself (PRACT) and nothing of it moves.
#![forbid(unsafe_code)]

use nvmetal_core::command::io::IoOpcode;
use nvmetal_core::data_pointer::sgl::PSDT_SGL;
use nvmetal_core::queue::{Doorbell, IoWords, Refused, RefusedReason};

use super::{Io, IoQueue, MOST_BLOCKS, Payload, Rejected, RejectedReason};
use crate::dma::{Buffer, DataPointer, ScatterList};

/// Bytes that describe a range of blocks to Dataset Management.
const DSM_RANGE_BYTES: usize = 16;

/// The description of a range for Dataset Management: attributes, length, first block
/// (NVM Express NVM Command Set Specification, "Dataset Management command").
pub fn describe_range(lba: u64, blocks: u32) -> [u8; 16] {
    let mut range = [0; DSM_RANGE_BYTES];
    range[4..8].copy_from_slice(&blocks.to_le_bytes());
    range[8..].copy_from_slice(&lba.to_le_bytes());
    range
}

/// A payload whose data lies in several pieces.
pub trait ScatterPayload: Payload {
    /// The pieces.
    fn scatter_list(&self) -> &ScatterList;
}

impl Payload for ScatterList {
    fn buffer(&self) -> &Buffer {
        self.first()
    }
}

impl ScatterPayload for ScatterList {
    fn scatter_list(&self) -> &ScatterList {
        self
    }
}

impl<D: Doorbell, P: Payload> IoQueue<D, P> {
    /// Takes a read or write whose data lies in the pieces of the payload's [`ScatterList`], one after the other.
    /// Separate metadata is that of the first piece's buffer.
    ///
    /// Nothing reaches the controller before [`IoQueue::ring`].
    ///
    /// # Errors
    /// [`RejectedReason::Sgl`] for a scatter gather list on a controller that takes none, or none so aligned;
    /// [`RejectedReason::Buffer`] if the pieces do not describe exactly so many bytes (a PRP list may be longer). Else as
    /// [`IoQueue::submit`].
    pub fn submit_scattered(&mut self, io: Io, payload: P, stamp_ns: u64) -> Result<u16, Rejected<P>>
    where
        P: ScatterPayload,
    {
        let list = payload.scatter_list();
        let pointer = self.check(&io).and_then(|bytes| match list.pointer(bytes).ok_or(RejectedReason::Buffer)? {
            DataPointer::Sgl(_) if !list.suits(self.controller.identify().sgls.support()) => Err(RejectedReason::Sgl),
            pointer => Ok(pointer),
        });
        self.submit_whole(&io, pointer, payload, stamp_ns)
    }

    /// Takes a Dataset Management command that deallocates `blocks` blocks from `lba` on. The payload's buffer, of at
    /// least 16 bytes, begins with their description ([`describe_range`]).
    ///
    /// # Errors
    /// [`RejectedReason::Length`] for no blocks, [`RejectedReason::Range`] for blocks beyond the end,
    /// [`RejectedReason::Buffer`] for a buffer that is too short. Else as [`IoQueue::submit`].
    pub fn submit_deallocate(&mut self, lba: u64, blocks: u32, payload: P, stamp_ns: u64) -> Result<u16, Rejected<P>> {
        /// Dword 11, bit 2: Attribute - Deallocate.
        const DEALLOCATE: u64 = 1 << 2;
        let reason = match payload.buffer().prp(DSM_RANGE_BYTES) {
            _ if blocks == 0 => RejectedReason::Length,
            _ if lba.checked_add(blocks.into()).is_none_or(|end_lba| end_lba > self.namespace.blocks) => {
                RejectedReason::Range
            }
            None => RejectedReason::Buffer,
            Some(prp) => {
                let opcode = u16::from(IoOpcode::DATASET_MANAGEMENT.into_bits());
                let command = IoWords::command(opcode, self.namespace.nsid);
                // One range: dword 10 is 0.
                let words = [command, 0, 0, prp.prp1, prp.prp2, DEALLOCATE << 32, 0, 0];
                return self.pair.submit(&words, payload, stamp_ns).map_err(rejected);
            }
        };
        Err(Rejected { reason, payload })
    }

    /// As [`IoQueue::submit`], with everything looked at. It takes the command in registers: as a structure it would be
    /// put together in memory for each, also for those that do not come here.
    #[cold]
    #[inline(never)]
    pub(super) fn submit_with_care(
        &mut self,
        lba: u64,
        blocks: u32,
        flags: u32,
        opcode: IoOpcode,
        payload: P,
        stamp_ns: u64,
    ) -> Result<u16, Rejected<P>> {
        let io = Io { opcode, lba, blocks, flags };
        let pointer = self.check(&io).and_then(|bytes| {
            payload.buffer().prp(bytes).map(|prp| DataPointer::Prp([prp.prp1, prp.prp2])).ok_or(RejectedReason::Buffer)
        });
        self.submit_whole(&io, pointer, payload, stamp_ns)
    }

    /// Writes all words of the entry.
    fn submit_whole(
        &mut self,
        io: &Io,
        pointer: Result<DataPointer, RejectedReason>,
        payload: P,
        stamp_ns: u64,
    ) -> Result<u16, Rejected<P>> {
        let checked = pointer.and_then(|pointer| Ok((pointer, self.metadata_iova(io, payload.buffer())?)));
        let (pointer, mptr) = match checked {
            Ok(checked) => checked,
            Err(reason) => return Err(Rejected { reason, payload }),
        };
        let (psdt, [low, high]) = match pointer {
            DataPointer::Prp(words) => (0, words),
            DataPointer::Sgl(words) => (PSDT_SGL, words),
        };
        let command = IoWords::command(u16::from(io.opcode.into_bits()), self.namespace.nsid) | u64::from(psdt);
        let dword12 = io.blocks.wrapping_sub(1) | io.flags;
        let words = [command, 0, mptr, low, high, io.lba, u64::from(dword12), 0];
        self.pair.submit(&words, payload, stamp_ns).map_err(rejected)
    }

    /// The bytes that the command moves through its data pointer.
    fn check(&self, io: &Io) -> Result<usize, RejectedReason> {
        let blocks = u64::from(io.blocks);
        if blocks == 0 || blocks > MOST_BLOCKS {
            return Err(RejectedReason::Length);
        }
        if io.lba.checked_add(blocks).is_none_or(|end_lba| end_lba > self.namespace.blocks) {
            return Err(RejectedReason::Range);
        }
        let between = if self.namespace.metadata_extended { u64::from(self.namespace.metadata_bytes) } else { 0 };
        usize::try_from(blocks * (self.namespace.lba_bytes() + between)).map_err(|_| RejectedReason::Buffer)
    }

    /// Where the metadata of the command goes; 0 if it has no place of its own.
    fn metadata_iova(&self, io: &Io, buffer: &Buffer) -> Result<u64, RejectedReason> {
        if self.namespace.metadata_extended || self.namespace.metadata_bytes == 0 {
            return Ok(0);
        }
        let bytes = io.blocks as usize * usize::from(self.namespace.metadata_bytes);
        buffer.metadata_iova().filter(|_| buffer.metadata_len() >= bytes).ok_or(RejectedReason::Metadata)
    }
}

/// What the queue pair did not take.
pub(super) fn rejected<P>(refused: Refused<P>) -> Rejected<P> {
    let reason = match refused.reason {
        RefusedReason::Full => RejectedReason::Full,
        RefusedReason::Stopped => RejectedReason::Stopped,
    };
    Rejected { reason, payload: refused.buffer }
}
