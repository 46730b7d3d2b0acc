//! Numbers whose meaning differs from their bits.
//!
//! NVMe counts many things from zero: a field of 0 means one queue entry, one logical block, one queue. Mixing such a
//! field with a count is the classic mistake of this field, so the two have different types here: a [`ZeroBased`] only
//! comes from a count ([`ZeroBased::from_count`]) or from raw bits, and only gives a count ([`ZeroBased::count`]).
//! [`UInt`] is a number of fewer bits than its storage, so that a command cannot be built with a field out of range.
#![forbid(unsafe_code)]

use ::core::fmt;
use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Whatever fits in a bit field of a register, a command or a structure, and knows how many bits it needs.
pub trait BitValue: Copy {
    /// Bits that the value can occupy.
    const WIDTH: u32;
    /// The bits, right-aligned.
    fn to_raw(self) -> u64;
    /// The value with these bits; bits above [`WIDTH`](Self::WIDTH) are ignored.
    fn from_raw(raw: u64) -> Self;
}

/// A 0's based number: the raw value 0 means one.
#[derive(
    Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(transparent)]
pub struct ZeroBased<T>(T);

/// An 8-bit 0's based number, 1 to 256.
pub type ZeroBasedU8 = ZeroBased<u8>;
/// A 16-bit 0's based number, 1 to 65,536.
pub type ZeroBasedU16 = ZeroBased<u16>;
/// A 32-bit 0's based number, 1 to 4,294,967,296.
pub type ZeroBasedU32 = ZeroBased<u32>;
/// A 16-bit 0's based number as it lies in a structure.
pub type ZeroBasedLe16 = ZeroBased<U16>;
/// A 32-bit 0's based number as it lies in a structure.
pub type ZeroBasedLe32 = ZeroBased<U32>;

macro_rules! number {
    ($raw:ident, $count:ident) => {
        impl ZeroBased<$raw> {
            /// The value with these raw bits.
            pub const fn from_bits(raw: $raw) -> Self {
                Self(raw)
            }

            /// The raw bits, one less than the count.
            pub const fn into_bits(self) -> $raw {
                self.0
            }

            /// The number of things meant, one more than the raw bits.
            pub const fn count(self) -> $count {
                self.0 as $count + 1
            }

            /// The field for `count` things, or `None` where `count` is 0 or does not fit.
            pub const fn from_count(count: $count) -> Option<Self> {
                if count == 0 || count - 1 > $raw::MAX as $count { None } else { Some(Self((count - 1) as $raw)) }
            }
        }

        impl BitValue for ZeroBased<$raw> {
            const WIDTH: u32 = $raw::BITS;
            fn to_raw(self) -> u64 {
                self.0 as u64
            }
            fn from_raw(raw: u64) -> Self {
                Self(raw as $raw)
            }
        }

        impl fmt::Debug for ZeroBased<$raw> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{} (raw {:#x})", self.count(), self.0)
            }
        }

        impl fmt::Display for ZeroBased<$raw> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.count(), f)
            }
        }

        impl BitValue for $raw {
            const WIDTH: u32 = $raw::BITS;
            fn to_raw(self) -> u64 {
                self as u64
            }
            fn from_raw(raw: u64) -> Self {
                raw as $raw
            }
        }
    };
}
number!(u8, u16);
number!(u16, u32);
number!(u32, u64);

macro_rules! wire_number {
    ($le:ident, $raw:ident, $count:ident) => {
        impl ZeroBased<$le> {
            /// The value with these raw bits.
            pub const fn from_bits(raw: $raw) -> Self {
                Self($le::new(raw))
            }

            /// The raw bits, one less than the count.
            pub const fn into_bits(self) -> $raw {
                self.0.get()
            }

            /// The number of things meant, one more than the raw bits.
            pub const fn count(self) -> $count {
                self.0.get() as $count + 1
            }

            /// The field for `count` things, or `None` where `count` is 0 or does not fit.
            pub const fn from_count(count: $count) -> Option<Self> {
                match ZeroBased::<$raw>::from_count(count) {
                    Some(value) => Some(Self($le::new(value.0))),
                    None => None,
                }
            }
        }

        impl fmt::Debug for ZeroBased<$le> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&ZeroBased(self.0.get()), f)
            }
        }
    };
}
wire_number!(U16, u16, u32);
wire_number!(U32, u32, u64);

impl BitValue for u64 {
    const WIDTH: u32 = 64;
    fn to_raw(self) -> u64 {
        self
    }
    fn from_raw(raw: u64) -> Self {
        raw
    }
}

impl BitValue for bool {
    const WIDTH: u32 = 1;
    fn to_raw(self) -> u64 {
        u64::from(self)
    }
    fn from_raw(raw: u64) -> Self {
        raw & 1 != 0
    }
}

/// An unsigned number of at most `BITS` bits (1 to 64).
///
/// ```
/// use nvmetal_core::number::UInt;
/// assert_eq!(UInt::<7>::new(127).map(UInt::get), Some(127));
/// assert_eq!(UInt::<7>::new(128), None);
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(transparent)]
pub struct UInt<const BITS: u32>(u64);

impl<const BITS: u32> UInt<BITS> {
    /// The largest value.
    pub const MAX: Self = Self(u64::MAX >> (64 - BITS));

    /// The number, or `None` where it needs more than `BITS` bits.
    pub const fn new(value: u64) -> Option<Self> {
        if value > Self::MAX.0 { None } else { Some(Self(value)) }
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl<const BITS: u32> BitValue for UInt<BITS> {
    const WIDTH: u32 = BITS;
    fn to_raw(self) -> u64 {
        self.0
    }
    fn from_raw(raw: u64) -> Self {
        Self(raw & Self::MAX.0)
    }
}

impl<const BITS: u32> fmt::Display for UInt<BITS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zero_based_field_counts_from_one_and_reaches_its_whole_range() {
        assert_eq!(ZeroBased::<u16>::from_bits(0).count(), 1);
        assert_eq!(ZeroBased::<u16>::from_bits(0xffff).count(), 65_536);
        assert_eq!(ZeroBased::<u16>::from_count(65_536).map(ZeroBased::<u16>::into_bits), Some(0xffff));
        assert_eq!(ZeroBased::<u16>::from_count(0), None);
        assert_eq!(ZeroBased::<u16>::from_count(65_537), None);
        assert_eq!(ZeroBased::<u32>::from_bits(u32::MAX).count(), 1 << 32);
    }
}
