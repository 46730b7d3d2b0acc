//! The controller memory buffer: whether there is one that submission queues may lie in, and its switching on and off.
//!
//! NVM Express Base Specification, "Controller Memory Buffer". A controller of version 1.4 or later says that it has one
//! (CAP.CMBS), describes it once CMBMSC.CRE is set, and takes addresses for it once CMBMSC.CMSE is set with a base address.
//! Earlier controllers take the address that the bus has given to the BAR. The host's memory might have the same one on its
//! side of the IOMMU, so those are left alone.
//!
//! It is an experiment: a submission entry in the device saves the controller its fetch across the bus, and costs the
//! processor eight stores that cross it one after the other, because a BAR is mapped uncached.
#![forbid(unsafe_code)]

use std::sync::Arc;

use nvmetal_core::register::{CmbLocation, CmbMemorySpaceControl, CmbSize, CmbStatus, offset};

use crate::dma::{DEVICE_MEMORY_BASE, DeviceMemory};
use crate::error::DriverError;
use crate::transport::{Transport, TransportError};

/// Switches the buffer on; `None` where there is none for submission queues.
pub(super) fn enable(transport: &Arc<dyn Transport>) -> Result<Option<Arc<DeviceMemory>>, DriverError> {
    let describe = CmbMemorySpaceControl::new().with_cre(true);
    transport.write64(offset::CMBMSC, describe.into_bits())?;
    let location = CmbLocation::from_bits(transport.read32(offset::CMBLOC)?);
    let size = CmbSize::from_bits(transport.read32(offset::CMBSZ)?);
    let Some(place) = place(location, size) else {
        disable(transport)?;
        return Ok(None);
    };
    let mapping = match transport.map_bar(location.bir(), place) {
        Ok(mapping) => mapping,
        Err(TransportError::Unsupported { .. }) => {
            disable(transport)?;
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    };
    let enable = describe.with_cmse(true).with_cba(DEVICE_MEMORY_BASE >> 12);
    transport.write64(offset::CMBMSC, enable.into_bits())?;
    if CmbStatus::from_bits(transport.read32(offset::CMBSTS)?).cbai() {
        disable(transport)?;
        return Err(DriverError::Unusable {
            address: transport.info().address.clone(),
            detail: format!(
                "the controller memory buffer cannot have the address {DEVICE_MEMORY_BASE:#x} (CMBSTS.CBAI)"
            ),
        });
    }
    Ok(Some(DeviceMemory::new(mapping)))
}

/// Switches it off: the controller takes no address for it any more. Only for a controller without queues.
pub(super) fn disable(transport: &Arc<dyn Transport>) -> Result<(), TransportError> {
    transport.write64(offset::CMBMSC, 0)
}

/// Where in its BAR the buffer lies, if submission queues may.
fn place(location: CmbLocation, size: CmbSize) -> Option<core::ops::Range<u64>> {
    let (unit_bytes, bytes) = (size.unit_bytes()?, size.size_bytes()?);
    let start = u64::from(location.ofst()).checked_mul(unit_bytes)?;
    let whole = size.into_bits() != u32::MAX && size.sqs() && bytes > 0;
    whole.then_some(start..start.checked_add(bytes)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_and_offset_are_in_the_same_unit() {
        let location = CmbLocation::new().with_bir(2).with_ofst(3);
        let size = CmbSize::new().with_sqs(true).with_szu(1).with_sz(2);
        assert_eq!(place(location, size), Some(0x3_0000..0x5_0000));
    }

    #[test]
    fn a_buffer_without_room_or_support_for_submission_queues_is_none() {
        let location = CmbLocation::new().with_bir(2);
        assert_eq!(place(location, CmbSize::new()), None);
        assert_eq!(place(location, CmbSize::new().with_cqs(true).with_sz(16)), None);
        assert_eq!(place(location, CmbSize::new().with_sqs(true)), None);
        assert_eq!(place(location, CmbSize::new().with_sqs(true).with_szu(7).with_sz(1)), None);
        assert_eq!(place(CmbLocation::from_bits(u32::MAX), CmbSize::from_bits(u32::MAX)), None);
    }
}
