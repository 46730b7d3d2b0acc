//! Where a command's data is: PRP entries and lists, and scatter gather lists.
//!
//! A command has sixteen bytes to say where its data lies. They hold either two *physical region page* entries
//! ([`prp`]), which every controller takes, or one *scatter gather list* descriptor ([`sgl`]), which is optional and
//! allows any length at any place. Data that does not fit into two entries or one descriptor needs a list in memory; the
//! caller gives that memory, and the builders only say what to write where ([`ListMemory`]).
//!
//! Both builders take the data as [`Segment`]s: pieces, each contiguous for the device.
#![forbid(unsafe_code)]

pub mod prp;
pub mod sgl;

#[cfg(test)]
mod tests;

/// A piece of memory that is contiguous for the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// The address at which the device sees it.
    pub iova: u64,
    /// Its length.
    pub bytes: u64,
}

/// Memory for a list, in units that the controller follows from one to the next: pages for PRP lists, segments for
/// scatter gather lists.
pub trait ListMemory {
    /// The address at which the device sees unit `unit`, if there are that many.
    fn unit_iova(&self, unit: usize) -> Option<u64>;
    /// Writes `value` as the 64-bit word `index` of unit `unit`, in little-endian byte order.
    fn put(&mut self, unit: usize, index: usize, value: u64);
    /// Writes `count` words from `index` on, all in one unit: `first`, and each `step` more than the one before.
    ///
    /// The pages of a buffer follow each other, so nearly all of a list is written through this; memory that can do better
    /// than word by word does.
    fn put_run(&mut self, unit: usize, index: usize, first: u64, step: u64, count: usize) {
        let mut value = first;
        for index in index..index.saturating_add(count) {
            self.put(unit, index, value);
            value = value.wrapping_add(step);
        }
    }
}

/// No list memory: what needs a list is refused.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoList;

impl ListMemory for NoList {
    fn unit_iova(&self, _unit: usize) -> Option<u64> {
        None
    }

    fn put(&mut self, _unit: usize, _index: usize, _value: u64) {}
}

/// The controller's memory page size (CC.MPS): a power of two from 4 KiB to 128 MiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageSize {
    shift: u8,
}

impl PageSize {
    /// 4 KiB, which every host can offer.
    pub const MINIMUM: Self = Self { shift: 12 };

    /// From the four-bit field of CAP.MPSMIN, CAP.MPSMAX or CC.MPS: 2 to the power of (12 + field) bytes.
    pub const fn from_field(field: u8) -> Self {
        Self { shift: 12 + (field & 0xf) }
    }

    /// The page size of `bytes` bytes, if there is one.
    pub const fn from_bytes(bytes: u64) -> Option<Self> {
        if bytes.is_power_of_two() && bytes >= 1 << 12 && bytes <= 1 << 27 {
            Some(Self { shift: bytes.trailing_zeros() as u8 })
        } else {
            None
        }
    }

    /// The value for CC.MPS.
    pub const fn field(self) -> u8 {
        self.shift - 12
    }

    /// Its length.
    pub const fn bytes(self) -> u64 {
        1 << self.shift
    }

    /// The power of two.
    pub const fn shift(self) -> u8 {
        self.shift
    }

    /// How far `iova` lies behind the start of its page.
    pub const fn offset(self, iova: u64) -> u64 {
        iova & (self.bytes() - 1)
    }
}

/// Why no data pointer could be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataPointerError {
    /// There is no data.
    Empty,
    /// The first address is not a multiple of four ("PRP Entry", offset; SGL: see SGLS).
    NotDwordAligned {
        /// The address.
        iova: u64,
    },
    /// Two pieces meet inside a page: PRP entries can only describe data whose inner borders are page borders.
    InnerBorder {
        /// The address that is not on a page border.
        iova: u64,
    },
    /// The list needs more memory than the caller gave.
    ListTooShort {
        /// Units given.
        units: usize,
    },
    /// A piece ends behind the last address there is, or is longer than its descriptor can say.
    TooLong {
        /// Its start.
        iova: u64,
        /// Its length.
        bytes: u64,
    },
}

impl core::fmt::Display for DataPointerError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Empty => write!(f, "there is no data to point to"),
            Self::NotDwordAligned { iova } => write!(f, "data at {iova:#x} does not start on a dword"),
            Self::InnerBorder { iova } => {
                write!(f, "two pieces of data meet at {iova:#x}, which is not the border of a page")
            }
            Self::ListTooShort { units } => write!(f, "{units} units of list memory are too few for this data"),
            Self::TooLong { iova, bytes } => write!(f, "{bytes} bytes at {iova:#x} are more than can be described"),
        }
    }
}

impl core::error::Error for DataPointerError {}
