//! Write Zeroes, Write Uncorrectable and Dataset Management: commands that tell the media about blocks.
#![forbid(unsafe_code)]

use nvmetal_core::command::SubmissionEntry;
use nvmetal_core::status::Status;

use super::blocks;
use crate::controller::flight::Flight;
use crate::controller::status as code;
use crate::emulator::Emulator;
use crate::guest_memory::Access;
use crate::media::Media;

/// Dataset Management's attribute: deallocate.
const DEALLOCATE: u32 = 1 << 2;

impl Emulator {
    pub(super) fn write_zeroes(&mut self, entry: &SubmissionEntry) -> Result<(), Status> {
        let (first, count) = blocks(entry);
        self.zero(entry.nsid(), first, count)?;
        self.health.write_commands += 1;
        Ok(())
    }

    /// The blocks cannot be read until they are written again.
    pub(super) fn write_uncorrectable(&mut self, entry: &SubmissionEntry) -> Result<(), Status> {
        let (first, count) = blocks(entry);
        let namespace = self.namespace(entry.nsid()).ok_or(code::INVALID_NAMESPACE)?;
        namespace.unreadable.extend(first..first + count);
        self.health.write_commands += 1;
        Ok(())
    }

    pub(super) fn dataset_management(&mut self, flight: &Flight, access: &Access<'_>) -> Result<(), Status> {
        let entry = &flight.entry;
        let ranges = self.fetch_data(flight, access)?;
        let ranges: Vec<(u64, u64)> = ranges
            .as_chunks::<16>()
            .0
            .iter()
            .map(|raw| u128::from_le_bytes(*raw))
            .map(|raw| ((raw >> 64) as u64, (raw >> 32) as u64 & 0xffff_ffff))
            .collect();
        let namespace = self.namespace(entry.nsid()).ok_or(code::INVALID_NAMESPACE)?;
        if !ranges.iter().all(|&(first, count)| namespace.contains(first, count)) {
            return Err(code::LBA_OUT_OF_RANGE);
        }
        if entry.cdw11() & DEALLOCATE != 0 {
            for (first, count) in ranges {
                self.zero(entry.nsid(), first, count)?;
            }
        }
        Ok(())
    }

    fn zero(&mut self, nsid: u32, first: u64, count: u64) -> Result<(), Status> {
        let namespace = self.namespace(nsid).ok_or(code::INVALID_NAMESPACE)?;
        namespace.unreadable.retain(|block| !(first..first + count).contains(block));
        namespace.metadata.forget(first, count);
        let lbads = namespace.lbads;
        if let Media::Sparse(media) = &mut namespace.media {
            media.deallocate(first << lbads, count << lbads);
        }
        Ok(())
    }
}
