//! Namespaces: how blocks map to the media's bytes, and what is known of each.
#![forbid(unsafe_code)]

use std::collections::{HashMap, HashSet};

use crate::media::{Media, Sparse};
use crate::model::MediaKind;
use crate::options::Options;

/// The metadata of the blocks: as it was written, or zeros.
#[derive(Debug)]
pub(crate) struct Metadata {
    /// It follows the data of each block.
    pub(crate) extended: bool,
    /// What was written, by block.
    written: HashMap<u64, Box<[u8]>>,
    /// A block's metadata where nothing was written.
    zeros: Box<[u8]>,
}

impl Metadata {
    fn new(bytes: u16, extended: bool) -> Self {
        let zeros = vec![0; bytes.into()].into_boxed_slice();
        Self { extended: extended && !zeros.is_empty(), written: HashMap::new(), zeros }
    }

    /// Bytes of a block's metadata; 0 for none.
    pub(crate) fn bytes(&self) -> u64 {
        self.zeros.len() as u64
    }

    /// Where a command's metadata is for the `index`th of its blocks, if it has a place of its own.
    pub(crate) fn separate_iova(&self, mptr: u64, index: u64) -> Option<u64> {
        (!self.extended && !self.zeros.is_empty()).then(|| mptr.wrapping_add(index * self.bytes()))
    }

    /// A block's metadata.
    pub(crate) fn of(&self, block: u64) -> &[u8] {
        self.written.get(&block).unwrap_or(&self.zeros)
    }

    /// A block's metadata, to be overwritten.
    pub(crate) fn of_mut(&mut self, block: u64) -> &mut [u8] {
        self.written.entry(block).or_insert_with(|| self.zeros.clone())
    }

    /// Zeros from now on.
    pub(crate) fn forget(&mut self, first: u64, count: u64) {
        self.written.retain(|block, _| !(first..first + count).contains(block));
    }
}

/// One namespace.
#[derive(Debug)]
pub(crate) struct Namespace {
    pub(crate) nsid: u32,
    /// Size in logical blocks.
    pub(crate) blocks: u64,
    /// A logical block has 2^lbads bytes.
    pub(crate) lbads: u8,
    pub(crate) media: Media,
    pub(crate) metadata: Metadata,
    /// Blocks that cannot be read until they are written again.
    pub(crate) unreadable: HashSet<u64>,
}

impl Namespace {
    /// The first namespace of a drive with these options.
    pub(crate) fn new(nsid: u32, options: &Options) -> Self {
        let lba_bytes = u64::from(options.model.lba);
        let blocks = options.model.capacity / lba_bytes;
        let media = match options.model.media {
            _ if !options.data => Media::Null,
            MediaKind::Null => Media::Null,
            MediaKind::Memory => {
                Media::Sparse(Sparse::new(blocks * lba_bytes, options.written.then_some(options.seed)))
            }
        };
        Self {
            nsid,
            blocks,
            lbads: lba_bytes.trailing_zeros() as u8,
            media,
            metadata: Metadata::new(options.metadata_bytes, options.metadata_extended),
            unreadable: HashSet::new(),
        }
    }

    /// A format: all data is gone, and the blocks of `bytes` bytes are 2^lbads bytes long from now on.
    pub(crate) fn format(&mut self, bytes: u64, lbads: u8, metadata_bytes: u16, extended: bool) {
        self.erase();
        self.lbads = lbads;
        self.blocks = bytes >> lbads;
        self.metadata = Metadata::new(metadata_bytes, extended);
    }

    /// All blocks are deallocated and can be read.
    pub(crate) fn erase(&mut self) {
        if let Media::Sparse(media) = &mut self.media {
            media.deallocate(0, u64::MAX);
        }
        self.metadata.written.clear();
        self.unreadable.clear();
    }

    /// Bytes of a logical block.
    pub(crate) fn lba_bytes(&self) -> u64 {
        1 << self.lbads
    }

    /// Bytes that cross the link for `count` blocks, without metadata that lies in a place of its own.
    pub(crate) fn transfer_bytes(&self, count: u64) -> u64 {
        (count << self.lbads) + if self.metadata.extended { count * self.metadata.bytes() } else { 0 }
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
