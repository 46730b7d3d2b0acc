//! Data in several pieces for one command.
//!
//! A [`ScatterList`] is made of whole buffers and describes them to the controller in one of two ways. A *PRP list* is
//! what every controller takes, but its entries are pages: all inner borders have to be page borders. A *scatter gather
//! list* allows any length at any place, on the controllers that have it (Identify Controller, SGLS). Both lie in a
//! buffer that the list owns, so they are written once and go with the pieces into a queue and out again.
#![forbid(unsafe_code)]

use nvmetal_core::data_pointer::prp::{self, Prp};
use nvmetal_core::data_pointer::{DataPointerError, ListMemory, PageSize, Segment, sgl};
use nvmetal_core::identify::SglSupport;

use super::{Buffer, DmaError};

/// One piece: the beginning of a buffer.
#[derive(Debug)]
pub struct ScatterPiece {
    /// The memory.
    pub buffer: Buffer,
    /// So many bytes from its beginning on.
    pub bytes: usize,
}

/// The two words of a command's data pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataPointer {
    /// PRP1 and PRP2.
    Prp([u64; 2]),
    /// An SGL descriptor.
    Sgl([u64; 2]),
}

/// Several pieces of memory as the data of one command.
#[derive(Debug)]
pub struct ScatterList {
    /// Never empty.
    pieces: Vec<ScatterPiece>,
    list: Buffer,
    described: Described,
    bytes: usize,
}

#[derive(Debug)]
enum Described {
    Prp(Prp),
    Sgl([u64; 2]),
}

/// Pieces that cannot be described so, and their memory.
#[derive(Debug)]
pub struct NotScattered {
    /// Why.
    pub error: DmaError,
    /// The caller's again.
    pub pieces: Vec<ScatterPiece>,
    /// The caller's again.
    pub list: Buffer,
}

impl ScatterList {
    /// Describes `pieces` by a PRP list in `list`, whose length is at least a page where there are more than two pages.
    ///
    /// # Errors
    /// An inner border that is not one of pages; a list that does not fit; a piece that is longer than its buffer.
    pub fn prp(pieces: Vec<ScatterPiece>, list: Buffer) -> Result<Self, NotScattered> {
        Self::new(pieces, list, |segments, list, page| {
            prp::build(segments.iter().copied(), page, list).map(Described::Prp)
        })
    }

    /// Describes `pieces` by a scatter gather list in `list`, for controllers that take one.
    ///
    /// # Errors
    /// A list that does not fit; a piece that is longer than its buffer.
    pub fn sgl(pieces: Vec<ScatterPiece>, list: Buffer) -> Result<Self, NotScattered> {
        Self::new(pieces, list, |segments, list, page| {
            let pieces: Vec<sgl::Piece> = segments.iter().copied().map(sgl::Piece::Data).collect();
            let per_segment = (page.bytes() / 16) as usize;
            sgl::build(&pieces, per_segment, list).map(|descriptor| Described::Sgl(descriptor.words()))
        })
    }

    fn new(
        pieces: Vec<ScatterPiece>,
        mut list: Buffer,
        describe: impl FnOnce(&[Segment], &mut ListPages<'_>, PageSize) -> Result<Described, DataPointerError>,
    ) -> Result<Self, NotScattered> {
        let described = segments(&pieces).and_then(|segments| {
            let page = list.page();
            let mut pages = ListPages { page, list: &mut list, written: Ok(()) };
            let described = describe(&segments, &mut pages, page)?;
            pages.written.map(|()| described)
        });
        match described {
            Ok(described) => {
                let bytes = pieces.iter().map(|piece| piece.bytes).sum();
                Ok(Self { pieces, list, described, bytes })
            }
            Err(error) => Err(NotScattered { error, pieces, list }),
        }
    }

    /// Bytes of all pieces together.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Never true; what has no byte cannot be described.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The pieces, in their order.
    pub fn pieces(&self) -> &[ScatterPiece] {
        &self.pieces
    }

    /// The buffers, to write into; where they are and how long cannot be changed.
    pub fn buffers_mut(&mut self) -> impl Iterator<Item = BufferMut<'_>> {
        self.pieces.iter_mut().map(|piece| BufferMut(&mut piece.buffer))
    }

    /// Takes it apart: the pieces, and the buffer that the list was in.
    pub fn into_parts(self) -> (Vec<ScatterPiece>, Buffer) {
        (self.pieces, self.list)
    }

    /// The first piece's buffer.
    pub(crate) fn first(&self) -> &Buffer {
        self.pieces.first().map_or(&self.list, |piece| &piece.buffer)
    }

    /// The data pointer of a transfer of `bytes` bytes; `None` if these pieces do not describe one.
    pub(crate) fn pointer(&self, bytes: usize) -> Option<DataPointer> {
        match &self.described {
            Described::Prp(prp) if bytes <= self.bytes => {
                prp.shortened(bytes as u64).map(|prp| DataPointer::Prp([prp.prp1, prp.prp2]))
            }
            Described::Sgl(words) if bytes == self.bytes => Some(DataPointer::Sgl(*words)),
            _ => None,
        }
    }

    /// Whether a controller with this support for scatter gather lists takes these pieces in one.
    pub(crate) fn suits(&self, support: SglSupport) -> bool {
        match support {
            SglSupport::BYTE => true,
            // Buffers begin at dwords.
            SglSupport::DWORD => self.pieces.iter().all(|piece| piece.bytes.is_multiple_of(4)),
            _ => false,
        }
    }
}

/// A buffer whose bytes may be written while a list points to it.
#[derive(Debug)]
pub struct BufferMut<'a>(&'a mut Buffer);

impl BufferMut<'_> {
    /// As [`Buffer::copy_in`].
    pub fn copy_in(&mut self, offset: usize, from: &[u8]) -> Result<(), DmaError> {
        self.0.copy_in(offset, from)
    }

    /// As [`Buffer::metadata_in`].
    pub fn metadata_in(&mut self, offset: usize, from: &[u8]) -> Result<(), DmaError> {
        self.0.metadata_in(offset, from)
    }
}

/// The pieces as the device sees them.
fn segments(pieces: &[ScatterPiece]) -> Result<Vec<Segment>, DmaError> {
    let segment = |piece: &ScatterPiece| {
        let length = piece.buffer.len();
        if piece.bytes == 0 || piece.bytes > length {
            return Err(DmaError::OutOfRange { offset: 0, bytes: piece.bytes, length });
        }
        Ok(Segment { iova: piece.buffer.iova(), bytes: piece.bytes as u64 })
    };
    pieces.iter().map(segment).collect()
}

/// The pages of a list's buffer.
struct ListPages<'a> {
    list: &'a mut Buffer,
    page: PageSize,
    /// Whether every word found its place.
    written: Result<(), DmaError>,
}

impl ListMemory for ListPages<'_> {
    fn unit_iova(&self, unit: usize) -> Option<u64> {
        let (page_bytes, iova) = (self.page.bytes(), self.list.iova());
        let end = (unit as u64 + 1).checked_mul(page_bytes)?;
        (self.page.offset(iova) == 0 && end <= self.list.len() as u64).then(|| iova + end - page_bytes)
    }

    fn put(&mut self, unit: usize, index: usize, value: u64) {
        let place = unit * self.page.bytes() as usize + index * 8;
        if let Err(error) = self.list.copy_in(place, &value.to_le_bytes()) {
            self.written = Err(error);
        }
    }
}
