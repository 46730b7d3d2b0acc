//! Namespaces: which there are, and how their blocks are made.
#![forbid(unsafe_code)]

use nvmetal_core::command::admin::{Cns, Identify};
use nvmetal_core::identify::{self, ActiveNamespaceList};
use nvmetal_core::register::Version;
use zerocopy::{FromZeros, IntoBytes};

use super::{AdminData, Controller};
use crate::error::DriverError;

/// Where the list of active namespaces cannot be had, at most this many are asked one by one (B-17).
const MOST_WALKED: u32 = 1024;
/// The lists of active namespaces that are read at most: a device must not keep us reading.
const MOST_LISTS: usize = 1024;

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
        let format = data.format();
        // B-16: less than 512 bytes is no block size; more than a gigabyte is no drive's.
        if !(9..=30).contains(&format.lbads) {
            let index = data.format_index();
            return Err(unusable(format!(
                "namespace {nsid}: LBA format {index} has a block of 2^{} bytes",
                format.lbads
            )));
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

impl Controller {
    /// The identifiers of the active namespaces, rising.
    pub fn active_namespaces(&self) -> Result<Vec<u32>, DriverError> {
        let since_1_1 = Version::from_bits(0x0001_0100).into_bits();
        if self.brought_up.vs.into_bits() >= since_1_1 {
            match self.active_list() {
                Err(error) if error.status().is_some() => {}
                answer => return answer,
            }
        }
        // Before 1.1, or refused: one by one, a bounded number.
        let mut found = Vec::new();
        for nsid in 1..=self.identify.nn.get().min(MOST_WALKED) {
            match self.identify_namespace(nsid) {
                Ok(data) if data.nsze.get() != 0 => found.push(nsid),
                Ok(_) => {}
                Err(error) if error.status().is_some() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    fn active_list(&self) -> Result<Vec<u32>, DriverError> {
        let mut found: Vec<u32> = Vec::new();
        for _ in 0..MOST_LISTS {
            let after = found.last().copied().unwrap_or(0);
            let mut list = Box::new(ActiveNamespaceList::new_zeroed());
            let identify = Identify { nsid: after, cns: Cns::ACTIVE_NAMESPACES, ..Default::default() };
            self.admin(&identify, AdminData::FromDevice(list.as_mut_bytes()))?;
            let before = found.len();
            // Only rising identifiers are taken, so that a list that repeats itself ends.
            for nsid in list.iter() {
                if found.last().is_none_or(|&last| nsid > last) && nsid < 0xffff_fffe {
                    found.push(nsid);
                }
            }
            if found.len() - before < list.nsid.len() {
                break;
            }
        }
        Ok(found)
    }

    /// The namespace `nsid`.
    ///
    /// # Errors
    /// [`DriverError::Request`] if it is not active; [`DriverError::Unusable`] if its block size makes no sense.
    pub fn namespace(&self, nsid: u32) -> Result<Namespace, DriverError> {
        let data = self.identify_namespace(nsid)?;
        Namespace::from_identify(self.address(), nsid, &data)?
            .ok_or_else(|| DriverError::Request(format!("{}: namespace {nsid} is not active", self.address())))
    }
}
