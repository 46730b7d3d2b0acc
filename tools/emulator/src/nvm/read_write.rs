//! Read, Write, Compare, Verify: commands that move or look at blocks.
#![forbid(unsafe_code)]

use nvmetal_core::command::SubmissionEntry;
use nvmetal_core::status::Status;

use super::blocks;
use crate::controller::flight::Flight;
use crate::controller::status as code;
use crate::emulator::Emulator;
use crate::guest_memory::Access;
use crate::media::{Media, Piece};
use crate::namespace::{Metadata, Namespace};

/// Whether all blocks can be read.
pub(super) fn readable(namespace: &Namespace, first: u64, count: u64) -> Result<(), Status> {
    if namespace.unreadable.is_empty() {
        return Ok(());
    }
    let broken = if count > namespace.unreadable.len() as u64 {
        namespace.unreadable.iter().any(|block| (first..first + count).contains(block))
    } else {
        (first..first + count).any(|block| namespace.unreadable.contains(&block))
    };
    if broken { Err(code::UNRECOVERED_READ_ERROR) } else { Ok(()) }
}

/// The blocks in runs that are moved at once: all of them, or where they have metadata, one by one.
fn runs(metadata: &Metadata, first: u64, count: u64) -> impl Iterator<Item = (u64, u64)> + use<> {
    let each = if metadata.bytes() == 0 { count } else { 1 };
    (first..first + count).step_by(each.max(1) as usize).map(move |block| (block, each))
}

fn same(same: bool) -> Result<(), Status> {
    if same { Ok(()) } else { Err(code::COMPARE_FAILURE) }
}

impl Emulator {
    fn resolve_data(&mut self, flight: &Flight, access: &Access<'_>) -> Result<(), Status> {
        self.pieces.resolve(&flight.entry, flight.bytes, self.registers.page_bytes(), access)
    }

    pub(super) fn read_blocks(&mut self, flight: &Flight, access: &Access<'_>) -> Result<(), Status> {
        self.resolve_data(flight, access)?;
        let (first, count) = blocks(&flight.entry);
        let nsid = flight.entry.nsid();
        let Self { namespaces, pieces, health, .. } = self;
        let namespace = namespaces.iter_mut().find(|n| n.nsid == nsid).ok_or(code::INVALID_NAMESPACE)?;
        readable(namespace, first, count)?;
        let Namespace { lbads, media, metadata, .. } = namespace;
        if let Media::Sparse(media) = media {
            for (block, count) in runs(metadata, first, count) {
                media.read(block << *lbads, count << *lbads, |piece| match piece {
                    Piece::Bytes(bytes) => pieces.send(bytes, access),
                    Piece::Zeros(count) => pieces.send_zeros(count as u64, access),
                })?;
                if metadata.extended {
                    pieces.send(metadata.of(block), access)?;
                } else if let Some(iova) = metadata.separate_iova(flight.entry.mptr(), block - first) {
                    access.write(iova, metadata.of(block)).map_err(|_| code::DATA_TRANSFER_ERROR)?;
                }
            }
        }
        health.read_commands += 1;
        health.read_bytes += flight.bytes;
        Ok(())
    }

    pub(super) fn write_blocks(&mut self, flight: &Flight, access: &Access<'_>) -> Result<(), Status> {
        self.resolve_data(flight, access)?;
        let (first, count) = blocks(&flight.entry);
        let nsid = flight.entry.nsid();
        let Self { namespaces, pieces, health, .. } = self;
        let namespace = namespaces.iter_mut().find(|n| n.nsid == nsid).ok_or(code::INVALID_NAMESPACE)?;
        if !namespace.unreadable.is_empty() {
            namespace.unreadable.retain(|block| !(first..first + count).contains(block));
        }
        let Namespace { lbads, media, metadata, .. } = namespace;
        if let Media::Sparse(media) = media {
            for (block, count) in runs(metadata, first, count) {
                media.write(block << *lbads, count << *lbads, |place| pieces.fetch(place, access))?;
                if metadata.extended {
                    pieces.fetch(metadata.of_mut(block), access)?;
                } else if let Some(iova) = metadata.separate_iova(flight.entry.mptr(), block - first) {
                    access.read(iova, metadata.of_mut(block)).map_err(|_| code::DATA_TRANSFER_ERROR)?;
                }
            }
        }
        health.write_commands += 1;
        health.written_bytes += flight.bytes;
        Ok(())
    }

    pub(super) fn compare_blocks(&mut self, flight: &Flight, access: &Access<'_>) -> Result<(), Status> {
        self.resolve_data(flight, access)?;
        let (first, count) = blocks(&flight.entry);
        let nsid = flight.entry.nsid();
        let moves_data = self.moves_data();
        let Self { namespaces, pieces, health, .. } = self;
        let namespace = namespaces.iter_mut().find(|n| n.nsid == nsid).ok_or(code::INVALID_NAMESPACE)?;
        readable(namespace, first, count)?;
        let Namespace { lbads, media, metadata, .. } = namespace;
        if let (Media::Sparse(media), true) = (media, moves_data) {
            let mut host = [0; 4096];
            for (block, count) in runs(metadata, first, count) {
                media.read(block << *lbads, count << *lbads, |piece| {
                    let length = match piece {
                        Piece::Bytes(bytes) => bytes.len(),
                        Piece::Zeros(count) => count,
                    };
                    let host = host.get_mut(..length).ok_or(code::INVALID_FIELD)?;
                    pieces.fetch(host, access)?;
                    same(match piece {
                        Piece::Bytes(bytes) => bytes == host,
                        Piece::Zeros(_) => host.iter().all(|&byte| byte == 0),
                    })
                })?;
                let host = host.get_mut(..metadata.bytes() as usize).ok_or(code::INVALID_FIELD)?;
                if metadata.extended {
                    pieces.fetch(host, access)?;
                    same(host == metadata.of(block))?;
                } else if let Some(iova) = metadata.separate_iova(flight.entry.mptr(), block - first) {
                    access.read(iova, host).map_err(|_| code::DATA_TRANSFER_ERROR)?;
                    same(host == metadata.of(block))?;
                }
            }
        }
        health.read_commands += 1;
        Ok(())
    }

    pub(super) fn verify_blocks(&mut self, entry: &SubmissionEntry) -> Result<(), Status> {
        let (first, count) = blocks(entry);
        let namespace = self.namespace(entry.nsid()).ok_or(code::INVALID_NAMESPACE)?;
        readable(namespace, first, count)
    }
}
