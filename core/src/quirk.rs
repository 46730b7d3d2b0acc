//! What particular controllers need.
//!
//! A quirk is known by the PCI vendor and device. The table holds facts that at least one other driver carries for the
//! device; a quirk says what to do differently, and what is lost by it where something is. A device that is not in the
//! table has none: [`of`] gives the empty set.
#![forbid(unsafe_code)]

use ::core::fmt;
use ::core::ops::BitOr;

/// A set of quirks.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Quirks(u32);

macro_rules! quirks {
    ($($(#[doc = $doc:literal])+ $bit:literal $name:ident $text:literal;)+) => {
        impl Quirks {
            $( $(#[doc = $doc])+ pub const $name: Self = Self(1 << $bit); )+

            /// All quirks: the set of one, and what it is in a few words.
            pub const ALL: &'static [(Self, &'static str)] = &[$( (Self::$name, $text) ),+];
        }
    };
}
quirks! {
    /// Wait after EN is cleared before RDY is read: the device does not answer in between.
    0 DELAY_BEFORE_READY_CHECK "delay before RDY is read";
    /// The deepest power state must not be used: the device does not come back from it.
    1 NO_DEEPEST_POWER_STATE "no deepest power state";
    /// The list of namespace identification descriptors is not to be asked for.
    2 NO_DESCRIPTOR_LIST "no namespace identification descriptors";
    /// The identifiers of namespaces are not unique.
    3 BOGUS_NAMESPACE_IDENTIFIERS "namespace identifiers are not unique";
    /// Write Zeroes is not to be used although it is offered.
    4 NO_WRITE_ZEROES "no Write Zeroes";
    /// The device reaches only 48 bits of addresses.
    5 DMA_48_BITS "48-bit addresses";
    /// Submission queue entries of the I/O queues are 128 bytes apart.
    6 SQE_128_BYTES "submission queue entries of 128 bytes";
    /// Admin and I/O queue share one set of command identifiers.
    7 SHARED_TAGS "command identifiers shared by admin and I/O queue";
    /// A command identifier must be a small number: no generation in its upper bits, so that a late completion of an
    /// aborted command cannot be told from that of the next command in its slot.
    8 PLAIN_CID "plain command identifiers: late completions are not told apart";
    /// One interrupt vector serves all queues.
    9 SINGLE_VECTOR "one interrupt vector";
    /// Identify knows only CNS 00h and 01h.
    10 IDENTIFY_CNS_01_ONLY "Identify knows only CNS 00h and 01h";
    /// Wait 100 microseconds after a queue is created before its doorbell is rung.
    11 DELAY_AFTER_QUEUE_CREATION "delay after queue creation";
    /// The shutdown status never becomes complete.
    12 SHUTDOWN_NEVER_COMPLETES "shutdown status never completes";
    /// Transfers that cross a stripe of 128 KiB are slow: split there.
    13 STRIPED "split at the stripe size";
}

impl Quirks {
    /// No quirk.
    pub const NONE: Self = Self(0);

    /// Whether all of `other` are in the set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The quirks of both sets.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOr for Quirks {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.with(other)
    }
}

impl fmt::Display for Quirks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (_, text) in Self::ALL.iter().filter(|(quirk, _)| self.contains(*quirk)) {
            write!(f, "{separator}{text}")?;
            separator = ", ";
        }
        if self.is_empty() { f.write_str("none") } else { Ok(()) }
    }
}

impl fmt::Debug for Quirks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// PCI vendor, PCI device, quirks.
#[rustfmt::skip]
const TABLE: &[(u16, u16, Quirks)] = &[
    (0x1c58, 0x0003, Quirks::DELAY_BEFORE_READY_CHECK),
    (0x1c58, 0x0023, Quirks::DELAY_BEFORE_READY_CHECK),
    (0x1c5f, 0x0540, Quirks::DELAY_BEFORE_READY_CHECK),
    (0x144d, 0xa821, Quirks::DELAY_BEFORE_READY_CHECK),
    (0x144d, 0xa822, Quirks::DELAY_BEFORE_READY_CHECK),
    (0x144d, 0xa826, Quirks::DELAY_BEFORE_READY_CHECK),
    (0x1bb1, 0x0100, Quirks::DELAY_BEFORE_READY_CHECK.with(Quirks::NO_DESCRIPTOR_LIST)),
    (0x8086, 0xf1a5, Quirks::NO_DEEPEST_POWER_STATE),
    (0x1cc1, 0x8201, Quirks::NO_DEEPEST_POWER_STATE),
    (0x2646, 0x2262, Quirks::NO_DEEPEST_POWER_STATE),
    (0x2646, 0x2263, Quirks::NO_DEEPEST_POWER_STATE),
    (0x126f, 0x2263, Quirks::NO_DESCRIPTOR_LIST),
    (0x1b4b, 0x1092, Quirks::NO_DESCRIPTOR_LIST),
    (0x8086, 0x5845, Quirks::BOGUS_NAMESPACE_IDENTIFIERS.with(Quirks::IDENTIFY_CNS_01_ONLY)),
    (0x1b36, 0x0010, Quirks::BOGUS_NAMESPACE_IDENTIFIERS),
    (0x1e4b, 0x1002, Quirks::BOGUS_NAMESPACE_IDENTIFIERS),
    (0x1e4b, 0x1202, Quirks::BOGUS_NAMESPACE_IDENTIFIERS),
    (0x1c5c, 0x1504, Quirks::NO_WRITE_ZEROES),
    (0x15b7, 0x2001, Quirks::NO_WRITE_ZEROES),
    (0x1d97, 0x2263, Quirks::NO_WRITE_ZEROES),
    (0x1d0f, 0x0061, Quirks::DMA_48_BITS),
    (0x1d0f, 0x0065, Quirks::DMA_48_BITS),
    (0x1d0f, 0x8061, Quirks::DMA_48_BITS),
    (0x1d0f, 0xcd00, Quirks::DMA_48_BITS),
    (0x1d0f, 0xcd01, Quirks::DMA_48_BITS),
    (0x1d0f, 0xcd02, Quirks::DMA_48_BITS),
    (0x106b, 0x2005,
        Quirks::SQE_128_BYTES.with(Quirks::SHARED_TAGS).with(Quirks::PLAIN_CID).with(Quirks::SINGLE_VECTOR)),
    (0x1d1d, 0x1f1f, Quirks::IDENTIFY_CNS_01_ONLY),
    (0x80ee, 0x4e56, Quirks::DELAY_AFTER_QUEUE_CREATION),
    (0x15ad, 0x07f0, Quirks::SHUTDOWN_NEVER_COMPLETES),
    (0x8086, 0x0953, Quirks::STRIPED),
    (0x8086, 0x0a53, Quirks::STRIPED),
    (0x8086, 0x0a54, Quirks::STRIPED),
    (0x8086, 0x0a55, Quirks::STRIPED),
];

/// The quirks of the device with these PCI identifiers.
pub fn of(vendor: u16, device: u16) -> Quirks {
    TABLE.iter().find(|row| (row.0, row.1) == (vendor, device)).map_or(Quirks::NONE, |row| row.2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c25_every_device_of_two_independent_lists_has_its_quirk() {
        assert!(of(0x1bb1, 0x0100).contains(Quirks::DELAY_BEFORE_READY_CHECK | Quirks::NO_DESCRIPTOR_LIST));
        assert!(of(0x144d, 0xa822).contains(Quirks::DELAY_BEFORE_READY_CHECK));
        assert!(of(0x2646, 0x2263).contains(Quirks::NO_DEEPEST_POWER_STATE));
        assert!(of(0x1b36, 0x0010).contains(Quirks::BOGUS_NAMESPACE_IDENTIFIERS));
        assert!(of(0x1d97, 0x2263).contains(Quirks::NO_WRITE_ZEROES));
        assert!(of(0x1d0f, 0xcd01).contains(Quirks::DMA_48_BITS));
        assert!(of(0x106b, 0x2005).contains(Quirks::SQE_128_BYTES | Quirks::PLAIN_CID | Quirks::SINGLE_VECTOR));
        assert!(of(0x1d1d, 0x1f1f).contains(Quirks::IDENTIFY_CNS_01_ONLY));
        assert!(of(0x80ee, 0x4e56).contains(Quirks::DELAY_AFTER_QUEUE_CREATION));
        assert!(of(0x15ad, 0x07f0).contains(Quirks::SHUTDOWN_NEVER_COMPLETES));
        assert!(of(0x8086, 0x0a54).contains(Quirks::STRIPED));
        assert_eq!(of(0x144d, 0xa80a), Quirks::NONE);
    }

    #[test]
    fn a_device_has_one_row() {
        for (index, row) in TABLE.iter().enumerate() {
            assert!(TABLE[..index].iter().all(|other| (other.0, other.1) != (row.0, row.1)), "{row:x?}");
        }
    }

    #[test]
    fn a_set_of_quirks_says_what_it_holds() {
        assert_eq!((Quirks::DMA_48_BITS | Quirks::STRIPED).to_string(), "48-bit addresses, split at the stripe size");
        assert_eq!(Quirks::NONE.to_string(), "none");
    }
}
