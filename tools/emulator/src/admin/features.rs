//! Features: settings of the controller, as a table of what each is and holds.
//!
//! NVM Express Base Specification, "Get Features command", "Set Features command", "Feature Specific Information".
#![forbid(unsafe_code)]

use nvmetal_core::command::admin::{FeatureSelect, GetFeatures, SetFeatures};
use nvmetal_core::command::{Command, SubmissionEntry};
use nvmetal_core::status::Status;

use super::host_memory::HostMemory;
use crate::controller::status as code;
use crate::emulator::Emulator;
use crate::guest_memory::Access;
use crate::model::Model;

/// Feature identifiers.
mod fid {
    pub(super) const ARBITRATION: u8 = 0x01;
    pub(super) const POWER_MANAGEMENT: u8 = 0x02;
    pub(super) const TEMPERATURE_THRESHOLD: u8 = 0x04;
    pub(super) const ERROR_RECOVERY: u8 = 0x05;
    pub(super) const VOLATILE_WRITE_CACHE: u8 = 0x06;
    pub(super) const NUMBER_OF_QUEUES: u8 = 0x07;
    pub(super) const INTERRUPT_COALESCING: u8 = 0x08;
    pub(super) const INTERRUPT_VECTOR_CONFIGURATION: u8 = 0x09;
    pub(super) const WRITE_ATOMICITY: u8 = 0x0a;
    pub(super) const ASYNC_EVENT_CONFIGURATION: u8 = 0x0b;
    pub(super) const HOST_MEMORY_BUFFER: u8 = 0x0d;
    pub(super) const TIMESTAMP: u8 = 0x0e;
}

/// A feature: which bits of it may be set, and what it holds.
#[derive(Debug, Clone, Copy)]
struct Feature {
    fid: u8,
    /// Bits of dword 11 that can be set; others must be zero.
    settable: u32,
    namespace_specific: bool,
    default: u32,
    current: u32,
}

/// All features that hold one dword.
#[derive(Debug)]
pub(crate) struct Features {
    table: Vec<Feature>,
    /// I/O queue pairs that were asked for and granted, once they were.
    granted: Option<u16>,
    /// The timestamp's value and when it was set.
    timestamp: (u64, u64),
    /// The host memory buffer, while the controller has it.
    pub(super) host_memory: Option<HostMemory>,
}

impl Features {
    pub(crate) fn new(model: &Model) -> Self {
        let feature = |fid, settable, namespace_specific, default| Feature {
            fid,
            settable,
            namespace_specific,
            default,
            current: default,
        };
        Self {
            table: vec![
                feature(fid::ARBITRATION, 0xffff_ff07, false, 0),
                feature(fid::POWER_MANAGEMENT, 0x0000_00ff, false, 0),
                feature(fid::TEMPERATURE_THRESHOLD, 0x003f_ffff, false, u32::from(model.warning_temperature)),
                feature(fid::ERROR_RECOVERY, 0x0001_ffff, true, 0),
                feature(fid::VOLATILE_WRITE_CACHE, 0x0000_0001, false, 1),
                feature(fid::INTERRUPT_COALESCING, 0x0000_ffff, false, 0),
                feature(fid::INTERRUPT_VECTOR_CONFIGURATION, 0x0001_ffff, false, 0),
                feature(fid::WRITE_ATOMICITY, 0x0000_0001, false, 0),
                feature(fid::ASYNC_EVENT_CONFIGURATION, 0x0000_7fff, false, 0),
            ],
            granted: None,
            timestamp: (0, 0),
            host_memory: None,
        }
    }

    /// The values after a controller reset: nothing is saved, so the defaults.
    pub(crate) fn reset(&mut self) {
        self.granted = None;
        self.host_memory = None;
        for feature in &mut self.table {
            feature.current = feature.default;
        }
    }

    /// The largest queue identifier that may be created.
    pub(crate) fn queues(&self, offered: u16) -> u16 {
        self.granted.unwrap_or(offered)
    }

    fn find(&mut self, fid: u8) -> Result<&mut Feature, Status> {
        self.table.iter_mut().find(|feature| feature.fid == fid).ok_or(code::INVALID_FIELD)
    }
}

/// The count of queues as the feature tells it: both kinds, 0's based.
fn queue_counts(queues: u16) -> u64 {
    let count = u64::from(queues.saturating_sub(1));
    count | count << 16
}

impl Emulator {
    pub(super) fn set_features(&mut self, entry: &SubmissionEntry, access: &Access<'_>) -> Result<u64, Status> {
        let command = SetFeatures::from_entry(entry);
        let id = command.fid.into_bits();
        if command.sv {
            return Err(code::FEATURE_NOT_SAVEABLE);
        }
        match id {
            fid::NUMBER_OF_QUEUES => return self.set_number_of_queues(command.value),
            fid::HOST_MEMORY_BUFFER => return self.set_host_memory(entry, access),
            fid::TIMESTAMP => {
                let data = self.fetch_admin(entry, 8, access)?;
                let mut value = [0; 8];
                for (to, &from) in value.iter_mut().zip(data.iter().take(6)) {
                    *to = from;
                }
                self.features.timestamp = (u64::from_le_bytes(value), self.now_ns);
                return Ok(0);
            }
            _ => {}
        }
        let nsid = entry.nsid();
        let known = self.namespace(nsid).is_some();
        let feature = self.features.find(id)?;
        if nsid != 0 && nsid != u32::MAX {
            if !known {
                return Err(code::INVALID_NAMESPACE);
            }
            if !feature.namespace_specific {
                return Err(code::FEATURE_NOT_NAMESPACE_SPECIFIC);
            }
        }
        if command.value & !feature.settable != 0 {
            return Err(code::INVALID_FIELD);
        }
        // There is one power state, number 0.
        if id == fid::POWER_MANAGEMENT && command.value & 0x1f != 0 {
            return Err(code::INVALID_FIELD);
        }
        feature.current = command.value;
        if id == fid::ASYNC_EVENT_CONFIGURATION {
            self.tell_events(access);
        }
        Ok(0)
    }

    /// How many queues there may be. Only before the first of them exists.
    fn set_number_of_queues(&mut self, value: u32) -> Result<u64, Status> {
        let (submission, completion) = (value as u16, (value >> 16) as u16);
        if submission == u16::MAX || completion == u16::MAX {
            return Err(code::INVALID_FIELD);
        }
        if self.queues.submission_ids().any(|qid| qid != 0) {
            return Err(code::COMMAND_SEQUENCE_ERROR);
        }
        let asked = submission.max(completion).saturating_add(1);
        let granted = asked.min(self.options.queues);
        self.features.granted = Some(granted);
        Ok(queue_counts(granted))
    }

    pub(super) fn get_features(&mut self, entry: &SubmissionEntry, access: &Access<'_>) -> Result<u64, Status> {
        let command = GetFeatures::from_entry(entry);
        let id = command.fid.into_bits();
        match (id, command.sel) {
            (_, select) if select.into_bits() > FeatureSelect::SUPPORTED.into_bits() => {
                return Err(code::INVALID_FIELD);
            }
            (fid::HOST_MEMORY_BUFFER, _) if self.options.hmb_bytes == 0 => return Err(code::INVALID_FIELD),
            (fid::NUMBER_OF_QUEUES | fid::TIMESTAMP | fid::HOST_MEMORY_BUFFER, FeatureSelect::SUPPORTED) => {
                return Ok(0b100);
            }
            (fid::HOST_MEMORY_BUFFER, select) => return self.get_host_memory(entry, select, access),
            (fid::NUMBER_OF_QUEUES, _) => return Ok(queue_counts(self.features.queues(self.options.queues))),
            (fid::TIMESTAMP, _) => {
                let (value, set_ns) = self.features.timestamp;
                let now = value + (self.now_ns - set_ns) / 1_000_000;
                let attributes = if set_ns == 0 { 0 } else { 1 << 49 };
                self.send_admin(entry, &(now & 0xffff_ffff_ffff | attributes).to_le_bytes(), access)?;
                return Ok(0);
            }
            _ => {}
        }
        let feature = self.features.find(id)?;
        Ok(match command.sel {
            FeatureSelect::CURRENT => u64::from(feature.current),
            // Bit 2: changeable; bit 1: of a namespace; bit 0: saveable, which none is.
            FeatureSelect::SUPPORTED => 0b100 | u64::from(feature.namespace_specific) << 1,
            _ => u64::from(feature.default),
        })
    }
}
