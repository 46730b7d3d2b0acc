//! Namespaces: how their blocks are made.
#![forbid(unsafe_code)]

use nvmetal_core::identify;

use crate::error::DriverError;

/// A namespace that can be read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Namespace {
    /// Its identifier.
    pub nsid: u32,
    /// Its size in logical blocks.
    pub blocks: u64,
    /// Blocks that are allocated (NUSE): where fewer than `blocks`, some were never written or were deallocated.
    pub used_blocks: u64,
    /// A block's data is 2 to this power bytes.
    pub lba_shift: u8,
    /// A block's metadata, in bytes.
    pub metadata_bytes: u16,
    /// The metadata follows the data of each block, instead of lying in a place of its own.
    pub metadata_extended: bool,
    /// Protection information type, 0 for none.
    pub protection_type: u8,
    /// Transfers should not cross multiples of this many blocks; 0 if not reported.
    pub optimal_boundary_blocks: u16,
    /// What reading a deallocated block gives (DLFEAT bits 2:0): 1 is zeros, 2 is FFh, 0 is not reported.
    pub deallocated_reads: u8,
}

impl Namespace {
    /// Bytes of data in a block.
    pub fn lba_bytes(&self) -> u64 {
        1 << self.lba_shift
    }

    /// Its size in bytes of data.
    pub fn bytes(&self) -> u128 {
        u128::from(self.blocks) << self.lba_shift
    }

    /// From what Identify Namespace says; `None` for an inactive one.
    pub(super) fn from_identify(
        address: &str,
        nsid: u32,
        data: &identify::Namespace,
    ) -> Result<Option<Self>, DriverError> {
        if data.nsze.get() == 0 {
            return Ok(None);
        }
        let unusable = |detail| DriverError::Unusable { address: address.to_owned(), detail };
        let index = data.format_index();
        let Some(format) = data.format() else {
            return Err(unusable(format!("namespace {nsid}: LBA format {index} is not one of those that it offers")));
        };
        // B-16: less than 512 bytes is no block size; two gigabytes and more is no drive's.
        if format.data_bytes().is_none() {
            let detail = format!("namespace {nsid}: LBA format {index} has a block of 2^{} bytes", format.lbads);
            return Err(unusable(detail));
        }
        Ok(Some(Self {
            nsid,
            blocks: data.nsze.get(),
            used_blocks: data.nuse.get(),
            lba_shift: format.lbads,
            metadata_bytes: format.ms.get(),
            metadata_extended: data.flbas.extended() && format.ms.get() > 0,
            protection_type: data.dps.kind().into_bits(),
            optimal_boundary_blocks: data.noiob.get(),
            deallocated_reads: data.dlfeat.into_bits() & 7,
        }))
    }
}
