//! Copy: blocks from several ranges of a namespace, one after the other, to one place in it.
//!
//! Everything is looked at before the first block is written, so a copy that fails has copied nothing, and dword 0 of its
//! completion, the first range that was not copied, is 0. The command ends when the controller has taken it up; the dies
//! do their part behind its back, and what follows waits for them.
#![forbid(unsafe_code)]

use nvmetal_core::command::io::{Copy, CopyRange};
use nvmetal_core::command::{Command, SubmissionEntry};
use nvmetal_core::status::Status;
use zerocopy::FromBytes;

use super::read_write::readable;
use crate::controller::flight::Flight;
use crate::controller::status as code;
use crate::emulator::Emulator;
use crate::guest_memory::Access;
use crate::media::{Media, Piece};
use crate::namespace::Namespace;

/// MSSRL: blocks of one source range at most.
pub(crate) const RANGE_BLOCKS_MOST: u16 = 2048;
/// MCL: blocks of all source ranges at most.
pub(crate) const BLOCKS_MOST: u32 = 8192;
/// MSRC: source ranges at most, 0's based.
pub(crate) const RANGES_MOST: u8 = 63;
/// Bytes of a source range's description.
const RANGE_BYTES: u64 = 32;

/// What can be said of the command itself: the bytes of its list of ranges.
pub(super) fn list_bytes(entry: &SubmissionEntry) -> Result<u64, Status> {
    let command = Copy::from_entry(entry);
    // The only form of ranges without protection information; no command extension and no directive.
    if command.desfmt.get() != 0 || command.cetype.get() != 0 || command.dtype.get() != 0 {
        return Err(code::INVALID_FIELD);
    }
    if command.nr.count() > u16::from(RANGES_MOST) + 1 {
        return Err(code::COMMAND_SIZE_LIMIT_EXCEEDED);
    }
    Ok(u64::from(command.nr.count()) * RANGE_BYTES)
}

/// Whether both the sources exist, can be read, are no more than allowed, and do not overlap the destination.
fn check(namespace: &Namespace, ranges: &[(u64, u64)], to: u64) -> Result<(), Status> {
    let total: u64 = ranges.iter().map(|range| range.1).sum();
    let too_long = ranges.iter().any(|range| range.1 > u64::from(RANGE_BLOCKS_MOST));
    if too_long || total > u64::from(BLOCKS_MOST) {
        return Err(code::COMMAND_SIZE_LIMIT_EXCEEDED);
    }
    if !namespace.contains(to, total) || !ranges.iter().all(|&(first, count)| namespace.contains(first, count)) {
        return Err(code::LBA_OUT_OF_RANGE);
    }
    if ranges.iter().any(|&(first, count)| first < to + total && to < first + count) {
        return Err(code::OVERLAPPING_IO_RANGE);
    }
    ranges.iter().try_for_each(|&(first, count)| readable(namespace, first, count))
}

impl Emulator {
    pub(super) fn copy_blocks(&mut self, flight: &Flight, access: &Access<'_>) -> Result<(), Status> {
        let command = Copy::from_entry(&flight.entry);
        let list = self.fetch_data(flight, access)?;
        let ranges: Vec<(u64, u64)> = list
            .as_chunks::<{ RANGE_BYTES as usize }>()
            .0
            .iter()
            .filter_map(|raw| CopyRange::read_from_bytes(raw).ok())
            .map(|range| (range.slba.get(), u64::from(range.nlb.count())))
            .collect();
        let now_ns = self.now_ns;
        let Self { namespaces, nand, health, .. } = self;
        let namespace = namespaces.iter_mut().find(|n| n.nsid == command.nsid).ok_or(code::INVALID_NAMESPACE)?;
        check(namespace, &ranges, command.sdlba)?;
        let lbads = namespace.lbads;
        let mut to = command.sdlba;
        for (first, count) in ranges {
            copy_range(namespace, first, count, to)?;
            let read_ns = nand.read(now_ns, first << lbads, count << lbads);
            nand.write(read_ns, count << lbads);
            to += count;
        }
        health.write_commands += 1;
        Ok(())
    }

    /// The data that a command sends with it.
    pub(super) fn fetch_data(&mut self, flight: &Flight, access: &Access<'_>) -> Result<Vec<u8>, Status> {
        self.pieces.resolve(&flight.entry, flight.bytes, self.registers.page_bytes(), access)?;
        let mut data = vec![0; flight.bytes as usize];
        self.pieces.fetch(&mut data, access)?;
        Ok(data)
    }
}

/// Copies one range; it is short enough to be held in memory.
fn copy_range(namespace: &mut Namespace, first: u64, count: u64, to: u64) -> Result<(), Status> {
    namespace.unreadable.retain(|block| !(to..to + count).contains(block));
    let Namespace { lbads, media, metadata, .. } = namespace;
    if let Media::Sparse(media) = media {
        let mut data = Vec::with_capacity((count << *lbads) as usize);
        media.read(first << *lbads, count << *lbads, |piece| {
            match piece {
                Piece::Bytes(bytes) => data.extend_from_slice(bytes),
                Piece::Zeros(zeros) => data.resize(data.len() + zeros, 0),
            }
            Ok::<(), Status>(())
        })?;
        let mut rest = data.as_slice();
        media.write(to << *lbads, count << *lbads, |place| {
            let (now, later) = rest.split_at_checked(place.len()).ok_or(code::DATA_TRANSFER_ERROR)?;
            place.copy_from_slice(now);
            rest = later;
            Ok::<(), Status>(())
        })?;
    }
    if metadata.bytes() != 0 {
        for index in 0..count {
            let source = metadata.of(first + index).to_vec();
            metadata.of_mut(to + index).copy_from_slice(&source);
        }
    }
    Ok(())
}
