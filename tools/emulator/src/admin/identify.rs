//! Identify.
//!
//! NVM Express Base Specification, "Identify command"; NVM Command Set Specification for the namespace's structures.
#![forbid(unsafe_code)]

use nvmetal_core::command::admin::Identify;
use nvmetal_core::command::{Command, SubmissionEntry};
use nvmetal_core::identify::{
    ActiveNamespaceList, Cdfs, Controller, ControllerType, Dlfeat, Dsto, EntrySize, Fna, FormattedLbaSize, Frmw,
    LbaFormat, Lpa, Mc, Namespace as NamespaceData, NoDeallocateModifies, Oacs, Oncs, Sanicap, Sgls, Vwc,
};
use nvmetal_core::number::ZeroBasedU8;
use nvmetal_core::status::Status;
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U16, U32, U64, U128};

use super::events::REQUESTS_MOST;
use super::{host_memory, self_test};
use crate::controller::status as code;
use crate::emulator::Emulator;
use crate::guest_memory::Access;
use crate::health::ERROR_ENTRIES;
use crate::namespace::Namespace;
use crate::nvm::copy;

/// Firmware revision.
pub(super) const FIRMWARE: &[u8; 8] = b"EMU1.0  ";
/// The bytes of an identify data structure.
const BYTES: usize = 4096;
/// Identification descriptor types.
const NIDT_EUI64: u8 = 1;
const NIDT_NGUID: u8 = 2;
const NIDT_CSI: u8 = 4;

impl Emulator {
    pub(super) fn identify(&mut self, entry: &SubmissionEntry, access: &Access<'_>) -> Result<u64, Status> {
        let command = Identify::from_entry(entry);
        let nsid = entry.nsid();
        let data = match command.cns.into_bits() {
            0x00 | 0x11 => self.identify_namespace(nsid)?.as_bytes().to_vec(),
            0x01 => self.identify_controller().as_bytes().to_vec(),
            0x02 | 0x10 => self.namespace_list(nsid)?,
            0x03 => self.namespace_descriptors(nsid)?,
            0x05 | 0x06 if command.csi.into_bits() != 0 => return Err(code::INVALID_FIELD),
            // The NVM command set's own part: nothing beyond what CNS 00h says.
            0x05 => {
                self.namespace(nsid).ok_or(code::INVALID_NAMESPACE)?;
                vec![0; BYTES]
            }
            0x06 => vec![0; BYTES],
            0x08 => self.namespace_independent(nsid)?,
            0x1c => {
                let mut data = vec![0; BYTES];
                if let Some(first) = data.first_mut() {
                    *first = 1; // One combination: the NVM command set.
                }
                data
            }
            _ => return Err(code::INVALID_FIELD),
        };
        self.send_admin(entry, &data, access)?;
        Ok(0)
    }

    fn identify_controller(&self) -> Controller {
        let model = &self.options.model;
        let mut data = Controller {
            vid: U16::new(crate::pci_config::VENDOR),
            ssvid: U16::new(crate::pci_config::VENDOR),
            fr: *FIRMWARE,
            mdts: self.options.mdts,
            ver: self.registers.vs,
            rtd3r: U32::new((model.ready / 1000) as u32),
            rtd3e: U32::new((model.shutdown / 1000) as u32),
            cntrltype: ControllerType::from_bits(1),
            oacs: Oacs::default()
                .with_format_nvm(true)
                .with_self_test(true)
                .with_doorbell_buffer(self.options.shadow_doorbells),
            acl: ZeroBasedU8::from_bits(3),
            aerl: ZeroBasedU8::from_bits(REQUESTS_MOST),
            frmw: Frmw::default().with_slots(1).with_slot_1_read_only(true),
            lpa: Lpa::default().with_effects(true).with_extended_data(true).with_supported_pages(true),
            elpe: ZeroBasedU8::from_bits((ERROR_ENTRIES - 1) as u8),
            wctemp: U16::new(model.warning_temperature),
            cctemp: U16::new(model.critical_temperature),
            hmpre: U32::new((self.options.hmb_bytes / 4096) as u32),
            hmmin: U32::new((self.options.hmb_min_bytes / 4096) as u32),
            hmmaxd: U16::new(if self.options.hmb_bytes == 0 { 0 } else { host_memory::DESCRIPTORS_MOST }),
            edstt: U16::new(self_test::EXTENDED_MINUTES),
            dsto: Dsto::default().with_one_per_subsystem(true),
            sanicap: Sanicap::default()
                .with_crypto_erase(true)
                .with_block_erase(true)
                .with_overwrite(true)
                .with_no_deallocate_inhibited(true)
                .with_no_deallocate_modifies(NoDeallocateModifies::from_bits(1)),
            fna: Fna::default().with_crypto_erase(true),
            tnvmcap: U128::new(u128::from(model.capacity)),
            sqes: EntrySize::from_bits(0x66),
            cqes: EntrySize::from_bits(0x44),
            nn: U32::new(1),
            oncs: Oncs::default()
                .with_compare(true)
                .with_write_uncorrectable(true)
                .with_copy(true)
                .with_dataset_management(true)
                .with_write_zeroes(true)
                .with_save_select(true)
                .with_timestamp(true)
                .with_verify(true),
            cdfs: Cdfs::from_bits(1), // Format 0h.
            vwc: Vwc::default().with_present(true),
            sgls: Sgls::from_bits(0x0001_0001), // SGLs and bit buckets, any alignment.
            ..Controller::default()
        };
        text(&mut data.sn, &self.serial());
        text(&mut data.mn, &self.model_number());
        text(&mut data.subnqn, &format!("nqn.2026-01.org.nvmetal:emulated:{}", self.serial()));
        if let Some(state) = data.psd.first_mut() {
            state.mp = U16::new(850);
        }
        data
    }

    /// The serial number: it says what it is, and differs with the seed.
    pub fn serial(&self) -> String {
        format!("EMU{:012}", self.options.seed)
    }

    /// The model number: it says what it is.
    pub fn model_number(&self) -> String {
        format!("nvmetal EMULATED {}", self.options.model.name)
    }

    fn identify_namespace(&mut self, nsid: u32) -> Result<NamespaceData, Status> {
        if nsid == u32::MAX {
            // Capabilities that all namespaces share: the formats.
            let mut data = NamespaceData::default();
            formats(&mut data, self.options.metadata_bytes);
            return Ok(data);
        }
        if nsid == 0 {
            return Err(code::INVALID_NAMESPACE);
        }
        let seed = self.options.seed;
        match self.namespace(nsid) {
            Some(namespace) => Ok(describe(namespace, seed)),
            // A namespace that could be and is not: all zeros.
            None if nsid <= 1 => Ok(NamespaceData::default()),
            None => Err(code::INVALID_NAMESPACE),
        }
    }

    fn namespace_list(&self, after: u32) -> Result<Vec<u8>, Status> {
        if after >= 0xffff_fffe {
            return Err(code::INVALID_NAMESPACE);
        }
        let mut list = ActiveNamespaceList::default();
        let ids = self.namespaces.iter().map(|namespace| namespace.nsid).filter(|&nsid| nsid > after);
        for (place, nsid) in list.nsid.iter_mut().zip(ids) {
            *place = U32::new(nsid);
        }
        Ok(list.as_bytes().to_vec())
    }

    fn namespace_descriptors(&mut self, nsid: u32) -> Result<Vec<u8>, Status> {
        let seed = self.options.seed;
        let namespace = self.namespace(nsid).ok_or(code::INVALID_NAMESPACE)?;
        let mut data = Vec::with_capacity(BYTES);
        let mut descriptor = |kind: u8, value: &[u8]| {
            data.extend_from_slice(&[kind, value.len() as u8, 0, 0]);
            data.extend_from_slice(value);
        };
        descriptor(NIDT_EUI64, &eui64(namespace.nsid, seed));
        descriptor(NIDT_NGUID, &nguid(namespace.nsid, seed));
        descriptor(NIDT_CSI, &[0]);
        data.resize(BYTES, 0);
        Ok(data)
    }

    /// Identify Namespace independent of the command set: ready, and nothing special.
    fn namespace_independent(&mut self, nsid: u32) -> Result<Vec<u8>, Status> {
        self.namespace(nsid).ok_or(code::INVALID_NAMESPACE)?;
        let mut data = vec![0; BYTES];
        if let Some(nstat) = data.get_mut(14) {
            *nstat = 1; // Namespace Ready.
        }
        Ok(data)
    }
}

/// Fills a text field, padded with blanks.
fn text(field: &mut [u8], value: &str) {
    field.fill(b' ');
    for (place, byte) in field.iter_mut().zip(value.bytes()) {
        *place = byte;
    }
}

/// The formats: 2^n bytes of data, and bytes of metadata.
pub(super) fn format_list(metadata_bytes: u16) -> impl Iterator<Item = (u8, u16)> {
    let formats = [(9, 0), (12, 0), (9, metadata_bytes), (12, metadata_bytes)];
    formats.into_iter().take(if metadata_bytes == 0 { 2 } else { 4 })
}

/// Blocks of both sizes, and where the drive has metadata, the same with it.
fn formats(data: &mut NamespaceData, metadata_bytes: u16) {
    data.nlbaf = ZeroBasedU8::from_bits(format_list(metadata_bytes).count() as u8 - 1);
    for (format, (lbads, ms)) in data.lbaf.iter_mut().zip(format_list(metadata_bytes)) {
        *format = LbaFormat { lbads, ms: U16::new(ms), ..LbaFormat::default() };
    }
    if metadata_bytes != 0 {
        data.mc = Mc::default().with_extended(true).with_separate(true);
    }
}

fn describe(namespace: &Namespace, seed: u64) -> NamespaceData {
    let metadata_bytes = namespace.metadata.bytes() as u16;
    let mut data = NamespaceData {
        nsze: U64::new(namespace.blocks),
        ncap: U64::new(namespace.blocks),
        nuse: U64::new(namespace.used_blocks()),
        flbas: FormattedLbaSize::default()
            .with_index_low(u8::from(namespace.lbads == 12) + if metadata_bytes == 0 { 0 } else { 2 })
            .with_extended(namespace.metadata.extended),
        dlfeat: Dlfeat::from_bits(0b1001), // Deallocated blocks read as zeros.
        mssrl: U16::new(copy::RANGE_BLOCKS_MOST),
        mcl: U32::new(copy::BLOCKS_MOST),
        msrc: ZeroBasedU8::from_bits(copy::RANGES_MOST),
        nvmcap: U128::new(u128::from(namespace.blocks) * u128::from(namespace.lba_bytes())),
        nguid: nguid(namespace.nsid, seed),
        eui64: eui64(namespace.nsid, seed),
        ..NamespaceData::default()
    };
    formats(&mut data, metadata_bytes);
    data
}

fn eui64(nsid: u32, seed: u64) -> [u8; 8] {
    (0x0245_4d55_0000_0000 | (seed & 0xffff) << 16 | u64::from(nsid) & 0xffff).to_be_bytes()
}

fn nguid(nsid: u32, seed: u64) -> [u8; 16] {
    (0x0245_4d55_u128 << 96 | u128::from(seed) << 32 | u128::from(nsid)).to_be_bytes()
}
