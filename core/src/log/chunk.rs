//! Reading a log page in pieces that the controller takes.
//!
//! A length must be a multiple of four and at least four; the dword count that Get Log Page carries is one less than a
//! quarter of it, over 32 bits. Every piece starts where the one before ended, from the offset that was asked for, and
//! all but the last keep the event (RAE), so that the page does not change in between.
#![forbid(unsafe_code)]

use super::LogId;
use crate::command::admin::GetLogPage;
use crate::number::ZeroBasedU32;
use ::core::fmt;

/// Why a log page cannot be read with these lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LengthError {
    /// The length is not a multiple of four, or is zero.
    Length(u64),
    /// The piece is not a multiple of four, is zero, or has more dwords than the command can name.
    Piece(u64),
    /// The offset is not a multiple of four.
    Offset(u64),
    /// Offset and length reach beyond 64 bits.
    End,
}

impl fmt::Display for LengthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(bytes) => {
                write!(f, "a log page is read in dwords: the length {bytes} is not a multiple of 4, or is 0")
            }
            Self::Piece(bytes) => write!(f, "a log page cannot be read in pieces of {bytes} bytes"),
            Self::Offset(bytes) => write!(f, "a log page is read from a multiple of 4, not from the offset {bytes}"),
            Self::End => f.write_str("offset and length of the log page reach beyond 64 bits"),
        }
    }
}

impl ::core::error::Error for LengthError {}

/// One piece of a log page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The command that reads it.
    pub command: GetLogPage,
    /// Where it begins in the caller's buffer.
    pub start: u64,
    /// Its length in bytes.
    pub bytes: u32,
}

/// The pieces of a log page, in order.
#[derive(Clone, Debug)]
pub struct Chunks {
    template: GetLogPage,
    start: u64,
    length: u64,
    piece: u32,
    retain: bool,
}

impl Chunks {
    /// The pieces of the log page `lid`: `bytes` bytes from `offset` on, at most `piece_bytes` at a time.
    ///
    /// With `retain`, the last piece keeps the event, too.
    ///
    /// ```
    /// use nvmetal_core::log::{Chunks, LogId};
    /// let pieces: Vec<u32> = Chunks::new(LogId::PERSISTENT_EVENT, u32::MAX, 0, 893_320, 131_072, false)
    ///     .unwrap()
    ///     .map(|chunk| chunk.bytes)
    ///     .collect();
    /// assert_eq!(pieces, [131_072, 131_072, 131_072, 131_072, 131_072, 131_072, 106_888]);
    /// ```
    pub fn new(
        lid: LogId,
        nsid: u32,
        offset: u64,
        bytes: u64,
        piece_bytes: u64,
        retain: bool,
    ) -> Result<Self, LengthError> {
        if bytes == 0 || !bytes.is_multiple_of(4) {
            return Err(LengthError::Length(bytes));
        }
        if piece_bytes == 0 || !piece_bytes.is_multiple_of(4) || piece_bytes > u64::from(u32::MAX) {
            return Err(LengthError::Piece(piece_bytes));
        }
        if !offset.is_multiple_of(4) {
            return Err(LengthError::Offset(offset));
        }
        if offset.checked_add(bytes).is_none() {
            return Err(LengthError::End);
        }
        let template = GetLogPage { nsid, lid, lpo: offset, ..GetLogPage::default() };
        Ok(Self { template, start: 0, length: bytes, piece: piece_bytes as u32, retain })
    }
}

impl Iterator for Chunks {
    type Item = Chunk;

    fn next(&mut self) -> Option<Chunk> {
        let left = self.length.checked_sub(self.start).filter(|left| *left > 0)?;
        let bytes = u64::from(self.piece).min(left);
        let numd = ZeroBasedU32::from_count(bytes / 4)?;
        let rae = self.retain || bytes < left;
        let lpo = self.template.lpo + self.start;
        let chunk =
            Chunk { command: GetLogPage { numd, rae, lpo, ..self.template }, start: self.start, bytes: bytes as u32 };
        self.start += bytes;
        Some(chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Command;

    fn first(lid: LogId, bytes: u64) -> (u32, u32) {
        let chunk = Chunks::new(lid, u32::MAX, 0, bytes, 1 << 30, false).unwrap().next().unwrap();
        let entry = chunk.command.entry();
        (entry.cdw10(), entry.cdw11())
    }

    #[test]
    fn a23_a_length_that_is_not_of_dwords_is_refused_before_anything_is_sent() {
        for bytes in [0, 1, 2, 3, 5, 511] {
            assert_eq!(
                Chunks::new(LogId::PERSISTENT_EVENT, 0, 0, bytes, 4096, false).err(),
                Some(LengthError::Length(bytes))
            );
        }
        assert_eq!(Chunks::new(LogId::SMART, 0, 2, 4, 4096, false).err(), Some(LengthError::Offset(2)));
        assert_eq!(Chunks::new(LogId::SMART, 0, 0, 4, 6, false).err(), Some(LengthError::Piece(6)));
        assert_eq!(Chunks::new(LogId::SMART, 0, u64::MAX - 3, 8, 4, false).err(), Some(LengthError::End));
    }

    #[test]
    fn a24_the_dword_count_has_all_its_bits() {
        assert_eq!(first(LogId::TELEMETRY_HOST, 65_536), (0x3fff_0007, 0));
        assert_eq!(first(LogId::TELEMETRY_HOST, 524_288), (0xffff_0007, 1));
        assert_eq!(first(LogId::SMART, 512), (0x007f_0002, 0));
    }

    #[test]
    fn a26_every_piece_starts_where_the_one_before_ended() {
        let offsets: Vec<_> = Chunks::new(LogId::TELEMETRY_HOST, 0, 0x1000, 0x2000, 0x1000, false)
            .unwrap()
            .map(|chunk| (chunk.start, chunk.command.lpo))
            .collect();
        assert_eq!(offsets, [(0, 0x1000), (0x1000, 0x2000)]);
    }

    #[test]
    fn a27_a_long_log_comes_in_pieces_and_keeps_its_event_until_the_last() {
        let chunks: Vec<_> = Chunks::new(LogId::PERSISTENT_EVENT, 0, 0, 893_320, 131_072, false).unwrap().collect();
        assert_eq!(chunks.len(), 7);
        assert!(chunks[..6].iter().all(|chunk| chunk.bytes == 131_072 && chunk.command.rae));
        assert_eq!(
            (chunks[6].bytes, chunks[6].command.numd.into_bits(), chunks[6].command.rae),
            (106_888, 26_721, false)
        );
        assert!(Chunks::new(LogId::ERROR, 0, 0, 64, 4096, true).unwrap().all(|chunk| chunk.command.rae));
    }
}
