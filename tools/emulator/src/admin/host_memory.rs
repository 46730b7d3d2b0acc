//! The host memory buffer: memory of the host that the controller may use as its own.
//!
//! When it is given one, the controller writes a mark to the beginning and the end of each piece, so that a host that
//! gives memory which it has not mapped gets a DMA fault report, and one that still uses it finds it changed.
//!
//! NVM Express Base Specification, "Host Memory Buffer".
#![forbid(unsafe_code)]

use nvmetal_core::command::SubmissionEntry;
use nvmetal_core::command::admin::FeatureSelect;
use nvmetal_core::feature::{HostMemoryBuffer, HostMemoryBufferAttributes, HostMemoryDescriptor};
use nvmetal_core::status::Status;
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, IntoBytes};

use crate::controller::status as code;
use crate::emulator::Emulator;
use crate::guest_memory::Access;

/// HMMAXD: pieces at most.
pub(super) const DESCRIPTORS_MOST: u16 = 256;
/// What the controller writes where it may.
const MARK: &[u8; 8] = b"nvmetalH";

/// The buffer as it was given.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostMemory {
    pages: u32,
    list: u64,
    descriptors: u32,
}

impl Emulator {
    pub(super) fn set_host_memory(&mut self, entry: &SubmissionEntry, access: &Access<'_>) -> Result<u64, Status> {
        let [.., value, pages, list_low, list_high, descriptors] = entry.dwords();
        if self.options.hmb_bytes == 0 || value >> 2 != 0 {
            return Err(code::INVALID_FIELD); // There is none, or a bit that is reserved or not supported.
        }
        if !HostMemoryBuffer::from_bits(value).ehm() {
            self.features.host_memory = None;
            return Ok(0);
        }
        if self.features.host_memory.is_some() {
            return Err(code::COMMAND_SEQUENCE_ERROR);
        }
        let page_bytes = self.registers.page_bytes();
        if descriptors == 0
            || descriptors > u32::from(DESCRIPTORS_MOST)
            || list_low & 0xf != 0
            || u64::from(pages) * page_bytes < self.options.hmb_min_bytes
        {
            return Err(code::INVALID_FIELD);
        }
        let list = u64::from(list_low) | u64::from(list_high) << 32;
        let mut raw = vec![0; descriptors as usize * size_of::<HostMemoryDescriptor>()];
        access.read(list, &mut raw).map_err(|_| code::DATA_TRANSFER_ERROR)?;
        let pieces: Vec<(u64, u64)> = raw
            .as_chunks::<{ size_of::<HostMemoryDescriptor>() }>()
            .0
            .iter()
            .filter_map(|raw| HostMemoryDescriptor::read_from_bytes(raw).ok())
            .map(|piece| (piece.badd.get(), u64::from(piece.bsize.get())))
            .collect();
        let good = |&(iova, pages): &(u64, u64)| {
            iova & (page_bytes - 1) == 0 && pages != 0 && iova.checked_add(pages * page_bytes).is_some()
        };
        if !pieces.iter().all(good) || pieces.iter().map(|piece| piece.1).sum::<u64>() != u64::from(pages) {
            return Err(code::INVALID_FIELD);
        }
        for (iova, pages) in pieces {
            for at in [iova, iova + pages * page_bytes - MARK.len() as u64] {
                access.write(at, MARK).map_err(|_| code::DATA_TRANSFER_ERROR)?;
            }
        }
        self.features.host_memory = Some(HostMemory { pages, list, descriptors });
        Ok(0)
    }

    pub(super) fn get_host_memory(
        &mut self,
        entry: &SubmissionEntry,
        select: FeatureSelect,
        access: &Access<'_>,
    ) -> Result<u64, Status> {
        let buffer = self.features.host_memory.filter(|_| select == FeatureSelect::CURRENT);
        let attributes = buffer.map_or_else(HostMemoryBufferAttributes::default, |buffer| HostMemoryBufferAttributes {
            hsize: U32::new(buffer.pages),
            hmdlal: U32::new(buffer.list as u32),
            hmdlau: U32::new((buffer.list >> 32) as u32),
            hmdlec: U32::new(buffer.descriptors),
            ..HostMemoryBufferAttributes::default()
        });
        self.send_admin(entry, attributes.as_bytes(), access)?;
        Ok(u64::from(HostMemoryBuffer::default().with_ehm(buffer.is_some()).into_bits()))
    }

    /// Bytes of the host memory buffer that the controller has at the moment.
    pub fn host_memory_bytes(&self) -> u64 {
        self.features.host_memory.map_or(0, |buffer| u64::from(buffer.pages) * self.registers.page_bytes())
    }
}
