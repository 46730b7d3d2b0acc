//! Where a command's data lies in the host's memory: the walk over PRP lists and SGLs.
//!
//! NVM Express Base Specification, "Physical Region Page Entry and List" and "Scatter Gather List". The result is a row of
//! pieces of memory, neighbouring ones joined, kept in one vector that is used again for each command.
#![forbid(unsafe_code)]

use nvmetal_core::command::SubmissionEntry;
use nvmetal_core::status::Status;

use crate::controller::status as code;
use crate::guest_memory::Access;

/// The most SGL segments that are followed, so that a chain without an end ends.
const SEGMENTS_MOST: usize = 1024;

/// A piece of the host's memory; `iova` of `None` is a bit bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    iova: Option<u64>,
    bytes: u64,
}

/// The memory of a command's data, and how far it has been used.
#[derive(Debug, Default)]
pub(crate) struct DataPieces {
    pieces: Vec<Piece>,
    at: usize,
    offset: u64,
}

impl DataPieces {
    /// Finds the memory for `bytes` bytes that `entry` points to.
    pub(crate) fn resolve(
        &mut self,
        entry: &SubmissionEntry,
        bytes: u64,
        page_bytes: u64,
        access: &Access<'_>,
    ) -> Result<(), Status> {
        self.pieces.clear();
        self.at = 0;
        self.offset = 0;
        match entry.psdt() {
            0 => self.prp(entry.prp1(), entry.prp2(), bytes, page_bytes, access),
            1 | 2 => self.sgl(entry.prp1(), entry.prp2(), bytes, access),
            _ => Err(code::INVALID_FIELD),
        }
    }

    fn push(&mut self, iova: Option<u64>, bytes: u64) {
        if let Some(last) = self.pieces.last_mut()
            && let (Some(start), Some(next)) = (last.iova, iova)
            && start.checked_add(last.bytes) == Some(next)
        {
            last.bytes += bytes;
        } else if bytes != 0 {
            self.pieces.push(Piece { iova, bytes });
        }
    }

    fn prp(&mut self, prp1: u64, prp2: u64, bytes: u64, page: u64, access: &Access<'_>) -> Result<(), Status> {
        if bytes == 0 {
            return Ok(());
        }
        if prp1 & 3 != 0 {
            return Err(code::PRP_OFFSET_INVALID);
        }
        let first = (page - (prp1 & (page - 1))).min(bytes);
        self.push(Some(prp1), first);
        let rest = bytes - first;
        if rest == 0 {
            return Ok(());
        }
        if rest <= page {
            if prp2 & (page - 1) != 0 {
                return Err(code::PRP_OFFSET_INVALID);
            }
            self.push(Some(prp2), rest);
            return Ok(());
        }
        self.prp_list(prp2, rest, page, access)
    }

    /// Follows a list whose first entry is at `list`; the last entry of a list page points on if more are needed.
    fn prp_list(&mut self, mut list: u64, mut rest: u64, page: u64, access: &Access<'_>) -> Result<(), Status> {
        if list & 7 != 0 {
            return Err(code::PRP_OFFSET_INVALID);
        }
        let mut raw = [0; 4096];
        while rest != 0 {
            let in_page = (page - (list & (page - 1))) / 8;
            let needed = rest.div_ceil(page);
            let entries = in_page.min(needed);
            let mut next = None;
            let mut done = 0;
            while done < entries {
                let now = (entries - done).min(512) as usize;
                let part = raw.get_mut(..now * 8).unwrap_or_default();
                access.read(list + done * 8, part).map_err(|_| code::DATA_TRANSFER_ERROR)?;
                for (index, word) in part.as_chunks::<8>().0.iter().enumerate() {
                    let entry = u64::from_le_bytes(*word);
                    if done + index as u64 + 1 == in_page && needed > in_page {
                        next = Some(entry);
                        break;
                    }
                    if entry & (page - 1) != 0 {
                        return Err(code::PRP_OFFSET_INVALID);
                    }
                    let piece = rest.min(page);
                    self.push(Some(entry), piece);
                    rest -= piece;
                }
                done += now as u64;
            }
            match next {
                Some(pointer) if pointer & (page - 1) == 0 => list = pointer,
                Some(_) => return Err(code::PRP_OFFSET_INVALID),
                None => break,
            }
        }
        Ok(())
    }

    fn sgl(&mut self, low: u64, high: u64, bytes: u64, access: &Access<'_>) -> Result<(), Status> {
        let mut rest = bytes;
        let mut next = match (high >> 60) as u8 {
            0 | 1 => {
                self.sgl_data(low, high, &mut rest)?;
                None
            }
            2 | 3 => Some((low, high)),
            _ => return Err(code::SGL_DESCRIPTOR_TYPE_INVALID),
        };
        let mut segments = 0;
        while let Some((address, kind)) = next.take() {
            segments += 1;
            let length = kind & 0xffff_ffff;
            if segments > SEGMENTS_MOST || length == 0 || length % 16 != 0 {
                return Err(code::INVALID_SGL_SEGMENT);
            }
            let last = kind >> 60 == 3;
            let count = length / 16;
            for index in 0..count {
                let mut raw = [0; 16];
                access.read(address.wrapping_add(index * 16), &mut raw).map_err(|_| code::DATA_TRANSFER_ERROR)?;
                let raw = u128::from_le_bytes(raw);
                let (low, high) = (raw as u64, (raw >> 64) as u64);
                match (high >> 60) as u8 {
                    0 | 1 => self.sgl_data(low, high, &mut rest)?,
                    2 | 3 if !last && index + 1 == count => next = Some((low, high)),
                    2 | 3 => return Err(code::INVALID_SGL_SEGMENT),
                    _ => return Err(code::SGL_DESCRIPTOR_TYPE_INVALID),
                }
                if rest == 0 {
                    return Ok(());
                }
            }
        }
        if rest == 0 { Ok(()) } else { Err(code::DATA_SGL_LENGTH_INVALID) }
    }

    fn sgl_data(&mut self, low: u64, high: u64, rest: &mut u64) -> Result<(), Status> {
        let (kind, subtype, length) = (high >> 60, high >> 56 & 0xf, (high & 0xffff_ffff).min(*rest));
        if subtype != 0 {
            return Err(code::SGL_DESCRIPTOR_TYPE_INVALID);
        }
        self.push((kind == 0).then_some(low), length);
        *rest -= length;
        Ok(())
    }

    /// The next piece of at most `bytes`.
    #[inline]
    fn next(&mut self, bytes: u64) -> Result<Piece, Status> {
        let piece = self.pieces.get(self.at).ok_or(code::DATA_TRANSFER_ERROR)?;
        let length = (piece.bytes - self.offset).min(bytes);
        let iova = piece.iova.map(|iova| iova.wrapping_add(self.offset));
        self.offset += length;
        if self.offset == piece.bytes {
            self.at += 1;
            self.offset = 0;
        }
        Ok(Piece { iova, bytes: length })
    }

    /// Sends `from` to the host.
    pub(crate) fn send(&mut self, mut from: &[u8], access: &Access<'_>) -> Result<(), Status> {
        while !from.is_empty() {
            let piece = self.next(from.len() as u64)?;
            let (now, later) = from.split_at(piece.bytes as usize);
            if let Some(iova) = piece.iova {
                access.write(iova, now).map_err(|_| code::DATA_TRANSFER_ERROR)?;
            }
            from = later;
        }
        Ok(())
    }

    /// Sends `count` zeros to the host.
    pub(crate) fn send_zeros(&mut self, mut count: u64, access: &Access<'_>) -> Result<(), Status> {
        while count != 0 {
            let piece = self.next(count)?;
            if let Some(iova) = piece.iova {
                access.fill(iova, 0, piece.bytes as usize).map_err(|_| code::DATA_TRANSFER_ERROR)?;
            }
            count -= piece.bytes;
        }
        Ok(())
    }

    /// Fetches from the host into `into`.
    pub(crate) fn fetch(&mut self, mut into: &mut [u8], access: &Access<'_>) -> Result<(), Status> {
        while !into.is_empty() {
            let piece = self.next(into.len() as u64)?;
            let (now, later) = into.split_at_mut(piece.bytes as usize);
            match piece.iova {
                Some(iova) => access.read(iova, now).map_err(|_| code::DATA_TRANSFER_ERROR)?,
                None => return Err(code::SGL_DESCRIPTOR_TYPE_INVALID),
            }
            into = later;
        }
        Ok(())
    }
}
