//! The fixed structures behind the header. Most are those of `linux/vfio.h`, with the same flags.
//!
//! vfio-user specification, one section per command.
#![forbid(unsafe_code)]

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::{DATA_BYTES_MOST, WireError};

/// Index of BAR0 among the regions.
pub const REGION_BAR0: u32 = 0;
/// Index of PCI configuration space among the regions.
pub const REGION_CONFIG: u32 = 7;
/// Regions that a PCI device has: six BARs, expansion ROM, configuration space, VGA.
pub const PCI_REGIONS: u32 = 9;

/// Index of MSI among the interrupts.
pub const IRQ_MSI: u32 = 1;
/// Index of MSI-X among the interrupts.
pub const IRQ_MSIX: u32 = 2;
/// Kinds of interrupt that a PCI device has: INTx, MSI, MSI-X, error, removal request.
pub const PCI_IRQS: u32 = 5;

/// [`DeviceInfo`]: the device can be reset.
pub const DEVICE_RESET: u32 = 1;
/// [`DeviceInfo`]: it is a PCI device.
pub const DEVICE_PCI: u32 = 1 << 1;

/// [`IrqInfo`]: it is signalled through an eventfd.
pub const IRQ_EVENTFD: u32 = 1;
/// [`IrqInfo`]: the number of vectors cannot be changed while some are set up.
pub const IRQ_NORESIZE: u32 = 1 << 3;

/// [`SetIrqs`]: no data.
pub const IRQ_DATA_NONE: u32 = 1;
/// [`SetIrqs`]: a byte for each vector.
pub const IRQ_DATA_BOOL: u32 = 1 << 1;
/// [`SetIrqs`]: a descriptor for each vector.
pub const IRQ_DATA_EVENTFD: u32 = 1 << 2;
/// [`SetIrqs`]: mask the vectors.
pub const IRQ_ACTION_MASK: u32 = 1 << 3;
/// [`SetIrqs`]: unmask the vectors.
pub const IRQ_ACTION_UNMASK: u32 = 1 << 4;
/// [`SetIrqs`]: trigger the vectors, or set up how they are.
pub const IRQ_ACTION_TRIGGER: u32 = 1 << 5;

/// [`DmaMap`]: the device may read.
pub const DMA_READ: u32 = 1;
/// [`DmaMap`]: the device may write.
pub const DMA_WRITE: u32 = 1 << 1;
/// [`DmaUnmap`]: a bitmap of dirty pages is asked for, too.
pub const UNMAP_DIRTY: u32 = 1;
/// [`DmaUnmap`]: everything.
pub const UNMAP_ALL: u32 = 1 << 1;

macro_rules! structures {
    ($( $(#[doc = $doc:literal])+ $name:ident, $bytes:literal { $( $(#[doc = $field_doc:literal])+ $field:ident: $ty:ty, )+ } )+) => {
        $(
            $(#[doc = $doc])+
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
            #[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
            #[repr(C)]
            pub struct $name {
                $( $(#[doc = $field_doc])+ pub $field: $ty, )+
            }

            const _: () = assert!(size_of::<$name>() == $bytes);

            impl $name {
                /// Reads it from the beginning of a payload, and gives what follows.
                ///
                /// # Errors
                /// The payload is shorter.
                pub fn take(payload: &[u8]) -> Result<(Self, &[u8]), WireError> {
                    Self::read_from_prefix(payload).map_err(|_| WireError::TooShort {
                        what: stringify!($name),
                        bytes: payload.len(),
                        needed: $bytes,
                    })
                }
            }
        )+
    };
}

structures! {
    /// The beginning of VERSION; a text follows (see [`crate::version`]).
    Version, 4 {
        /// Incompatible with other numbers.
        major: U16,
        /// Compatible with lower ones.
        minor: U16,
    }
    /// DEVICE_GET_INFO, both ways.
    DeviceInfo, 16 {
        /// How long an answer may be; in the answer, how long it would be.
        argsz: U32,
        /// `DEVICE_*`.
        flags: U32,
        /// Number of regions.
        regions: U32,
        /// Number of interrupt kinds.
        irqs: U32,
    }
    /// The fixed part of DEVICE_GET_REGION_INFO, both ways.
    RegionHead, 32 {
        /// How long an answer may be; in the answer, how long it would be.
        argsz: U32,
        /// See [`crate::region`].
        flags: U32,
        /// Which region.
        index: U32,
        /// Where in the answer the first capability begins; 0 for none.
        cap_offset: U32,
        /// Bytes of the region; 0 where there is none.
        bytes: U64,
        /// Where the region begins in the descriptor that comes with the answer.
        file_offset: U64,
    }
    /// DEVICE_GET_IRQ_INFO, both ways.
    IrqInfo, 16 {
        /// How long an answer may be.
        argsz: U32,
        /// `IRQ_*`.
        flags: U32,
        /// Which kind.
        index: U32,
        /// How many vectors it has.
        count: U32,
    }
    /// DEVICE_SET_IRQS; data or descriptors follow.
    SetIrqs, 20 {
        /// Length of this and the data behind it.
        argsz: U32,
        /// `IRQ_DATA_*` and `IRQ_ACTION_*`.
        flags: U32,
        /// Which kind.
        index: U32,
        /// The first vector.
        start: U32,
        /// How many vectors.
        count: U32,
    }
    /// REGION_READ and REGION_WRITE, both ways; data follows where there is some.
    RegionAccess, 16 {
        /// Where in the region.
        offset: U64,
        /// Which region.
        region: U32,
        /// How many bytes.
        count: U32,
    }
    /// DMA_MAP; one descriptor comes with it.
    DmaMap, 32 {
        /// Length of this.
        argsz: U32,
        /// `DMA_*`.
        flags: U32,
        /// Where the memory begins in the descriptor.
        file_offset: U64,
        /// Where the device sees it.
        iova: U64,
        /// Its length.
        bytes: U64,
    }
    /// DMA_UNMAP, both ways.
    DmaUnmap, 24 {
        /// Length of this.
        argsz: U32,
        /// `UNMAP_*`.
        flags: U32,
        /// Where the device sees the memory.
        iova: U64,
        /// Its length.
        bytes: U64,
    }
}

impl RegionAccess {
    /// An access to `count` bytes.
    pub fn new(region: u32, offset: u64, count: u32) -> Self {
        Self { offset: offset.into(), region: region.into(), count: count.into() }
    }

    /// Reads a REGION_READ command.
    ///
    /// # Errors
    /// It is cut short, or asks for more than [`DATA_BYTES_MOST`].
    pub fn take_read(payload: &[u8]) -> Result<Self, WireError> {
        let (access, _) = Self::take(payload)?;
        access.check()?;
        Ok(access)
    }

    /// Reads an access with its data: a REGION_WRITE command, or the reply to a REGION_READ.
    ///
    /// # Errors
    /// It is cut short, has more than [`DATA_BYTES_MOST`], or less data than it says.
    pub fn take_with_data(payload: &[u8]) -> Result<(Self, &[u8]), WireError> {
        let (access, rest) = Self::take(payload)?;
        let count = access.check()?;
        let data = rest.get(..count).ok_or(WireError::TooShort {
            what: "the data of a region access",
            bytes: rest.len(),
            needed: count,
        })?;
        Ok((access, data))
    }

    fn check(&self) -> Result<usize, WireError> {
        let count = self.count.get();
        if count > DATA_BYTES_MOST {
            return Err(WireError::TooLong { bytes: count.into(), most: DATA_BYTES_MOST.into() });
        }
        Ok(count as usize)
    }
}

impl SetIrqs {
    /// The vectors that are meant.
    ///
    /// # Errors
    /// They wrap around.
    pub fn vectors(&self) -> Result<core::ops::Range<u32>, WireError> {
        let (start, count) = (self.start.get(), self.count.get());
        let end =
            start.checked_add(count).ok_or(WireError::Impossible { what: "vector count", value: count.into() })?;
        Ok(start..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_access_does_not_claim_data_that_is_not_there() {
        let mut payload = RegionAccess::new(0, 0x1c, 4).as_bytes().to_vec();
        assert!(matches!(RegionAccess::take_with_data(&payload), Err(WireError::TooShort { needed: 4, bytes: 0, .. })));
        payload.extend([1, 2, 3, 4, 5]);
        assert_eq!(RegionAccess::take_with_data(&payload).unwrap().1, [1, 2, 3, 4]);
        let huge = RegionAccess::new(0, 0, u32::MAX);
        assert!(matches!(RegionAccess::take_read(huge.as_bytes()), Err(WireError::TooLong { .. })));
        assert!(RegionAccess::take_with_data(huge.as_bytes()).is_err());
    }

    #[test]
    fn vectors_do_not_wrap_around() {
        let set = |start: u32, count: u32| SetIrqs { start: start.into(), count: count.into(), ..Default::default() };
        assert_eq!(set(1, 2).vectors(), Ok(1..3));
        assert!(set(u32::MAX, 1).vectors().is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(payload in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = Version::take(&payload);
            let _ = DeviceInfo::take(&payload);
            let _ = RegionHead::take(&payload);
            let _ = IrqInfo::take(&payload);
            let _ = SetIrqs::take(&payload).and_then(|(set, _)| set.vectors());
            let _ = DmaMap::take(&payload);
            let _ = DmaUnmap::take(&payload);
            let _ = RegionAccess::take_read(&payload);
            if let Ok((access, data)) = RegionAccess::take_with_data(&payload) {
                prop_assert_eq!(data.len(), access.count.get() as usize);
                prop_assert!(data.len() + size_of::<RegionAccess>() <= payload.len());
            }
        }
    }
}
