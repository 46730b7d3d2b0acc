//! Namespaces: how blocks map to the media's bytes, and what is known of each.
#![forbid(unsafe_code)]

use std::collections::HashSet;

use crate::media::{Media, Sparse};
use crate::model::MediaKind;
use crate::options::Options;

/// One namespace.
#[derive(Debug)]
pub(crate) struct Namespace {
    pub(crate) nsid: u32,
    /// Size in logical blocks.
    pub(crate) blocks: u64,
    /// A logical block has 2^lbads bytes.
    pub(crate) lbads: u8,
    pub(crate) media: Media,
    /// Blocks that cannot be read until they are written again.
    pub(crate) unreadable: HashSet<u64>,
}

impl Namespace {
    /// The first namespace of a drive with these options.
    pub(crate) fn new(nsid: u32, options: &Options) -> Self {
        let lba_bytes = u64::from(options.model.lba);
        let blocks = options.model.capacity / lba_bytes;
        let media = match options.model.media {
            MediaKind::Null => Media::Null,
            MediaKind::Memory => {
                Media::Sparse(Sparse::new(blocks * lba_bytes, options.written.then_some(options.seed)))
            }
        };
        Self { nsid, blocks, lbads: lba_bytes.trailing_zeros() as u8, media, unreadable: HashSet::new() }
    }

    /// Bytes of a logical block.
    pub(crate) fn lba_bytes(&self) -> u64 {
        1 << self.lbads
    }

    /// Blocks that are allocated.
    pub(crate) fn used_blocks(&self) -> u64 {
        match &self.media {
            Media::Sparse(sparse) => sparse.allocated_bytes().div_ceil(self.lba_bytes()).min(self.blocks),
            Media::Null => self.blocks,
        }
    }

    /// Whether `count` blocks from `first` on exist.
    pub(crate) fn contains(&self, first: u64, count: u64) -> bool {
        first.checked_add(count).is_some_and(|end| end <= self.blocks)
    }
}
