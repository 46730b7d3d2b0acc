//! Admin commands by meaning: who the controller is, which namespaces it has, what its log pages say.
//!
//! [`Admin`] is whoever takes an admin command and brings its answer: the admin queue of our own [`Controller`], or the
//! kernel's driver on a drive that the kernel holds (`crate::kernel`). Those two give five things each; everything that
//! has a meaning is built on them once, here, and works on `&dyn Admin`.
//!
//! [`Controller`]: super::Controller
#![forbid(unsafe_code)]

use core::fmt;

use nvmetal_core::command::admin::{AdminOpcode, Cns, GetLogPage, Identify};
use nvmetal_core::command::{Command, SubmissionEntry};
use nvmetal_core::identify::{self, ActiveNamespaceList};
use nvmetal_core::log::{LogId, Smart};
use nvmetal_core::number::ZeroBasedU32;
use nvmetal_core::register::Version;
use zerocopy::{FromZeros, IntoBytes};

use super::{Namespace, tally};
use crate::error::DriverError;

/// Where the list of active namespaces cannot be had, at most this many are asked one by one (B-17).
const MOST_WALKED: u32 = 1024;
/// The lists of active namespaces that are read at most: a device must not keep us reading.
const MOST_LISTS: usize = 1024;

/// The data of an admin command.
#[derive(Debug)]
pub enum AdminData<'a> {
    /// None.
    None,
    /// The controller sends this much.
    FromDevice(&'a mut [u8]),
    /// The controller takes this.
    ToDevice(&'a [u8]),
}

impl AdminData<'_> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::FromDevice(data) => data.len(),
            Self::ToDevice(data) => data.len(),
        }
    }
}

/// What a successful command says besides its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completed {
    /// Dword 0 of the completion.
    pub dword0: u32,
    /// Dword 1 of the completion.
    pub dword1: u32,
}

/// A controller that takes admin commands, whichever way they go.
pub trait Admin: Send + Sync + fmt::Debug {
    /// How the device is called in messages.
    fn address(&self) -> &str;

    /// The version of the specification that the controller complies with.
    fn version(&self) -> Version;

    /// Identify Controller, as it was when the controller was opened.
    fn identify(&self) -> &identify::Controller;

    /// The most data of one admin command.
    fn max_admin_bytes(&self) -> usize;

    /// Sends an entry and waits for its end; a status other than success is [`DriverError::Command`]. Command id and,
    /// with data, the data pointer are filled in.
    fn admin_entry(&self, entry: SubmissionEntry, data: AdminData<'_>) -> Result<Completed, DriverError>;

    /// Sends an admin command and waits for its end; a status other than success is [`DriverError::Command`].
    fn admin<C: Command>(&self, command: &C, data: AdminData<'_>) -> Result<Completed, DriverError>
    where
        Self: Sized,
    {
        self.admin_entry(command.entry(), data)
    }

    /// Asks for Identify Controller (again). The one of [`Admin::identify`] is as old as the connection.
    fn identify_controller(&self) -> Result<Box<identify::Controller>, DriverError> {
        // B-19: with namespace 0; some drives log an error for any other.
        let mut data = Box::new(identify::Controller::new_zeroed());
        let identify = Identify { cns: Cns::CONTROLLER, ..Default::default() };
        self.admin_entry(identify.entry(), AdminData::FromDevice(data.as_mut_bytes()))?;
        Ok(data)
    }

    /// Identify Namespace. An inactive namespace is all zeros, or the error Invalid Namespace (B-16).
    fn identify_namespace(&self, nsid: u32) -> Result<Box<identify::Namespace>, DriverError> {
        let mut data = Box::new(identify::Namespace::new_zeroed());
        let identify = Identify { nsid, cns: Cns::NAMESPACE, ..Default::default() };
        self.admin_entry(identify.entry(), AdminData::FromDevice(data.as_mut_bytes()))?;
        Ok(data)
    }

    /// The log page `lid` from `offset`: as many bytes as `into` has, a multiple of four, read in pieces as large as the
    /// controller takes. The event that announced it is retained.
    fn log_page(&self, lid: LogId, nsid: u32, offset: u64, into: &mut [u8]) -> Result<(), DriverError> {
        if into.is_empty() || !into.len().is_multiple_of(4) {
            return Err(DriverError::Request(format!("a log page is read in dwords, not in {} bytes", into.len())));
        }
        let piece_bytes = self.max_admin_bytes() & !3;
        let mut lpo = offset;
        for piece in into.chunks_mut(piece_bytes.max(4)) {
            let dwords = piece.len() as u64 / 4;
            let numd = ZeroBasedU32::from_count(dwords).unwrap_or_default();
            let get = GetLogPage { nsid, lid, rae: true, numd, lpo, ..Default::default() };
            lpo += piece.len() as u64;
            self.admin_entry(get.entry(), AdminData::FromDevice(piece))?;
        }
        Ok(())
    }

    /// SMART / Health Information of the controller (A-32: asked for with the namespace FFFFFFFFh).
    fn smart(&self) -> Result<Box<Smart>, DriverError> {
        let mut data = Box::new(Smart::new_zeroed());
        self.log_page(LogId::SMART, 0xffff_ffff, 0, data.as_mut_bytes())?;
        Ok(data)
    }

    /// The identifiers of the active namespaces, rising.
    fn active_namespaces(&self) -> Result<Vec<u32>, DriverError> {
        let since_1_1 = Version::from_bits(0x0001_0100).into_bits();
        if self.version().into_bits() >= since_1_1 {
            match self.active_list() {
                Err(error) if error.status().is_some() => {}
                answer => return answer,
            }
        }
        // Before 1.1, or refused: one by one, a bounded number.
        let mut found = Vec::new();
        for nsid in 1..=self.identify().nn.get().min(MOST_WALKED) {
            match self.identify_namespace(nsid) {
                Ok(data) if data.nsze.get() != 0 => found.push(nsid),
                Ok(_) => {}
                Err(error) if error.status().is_some() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// Identify, Active Namespace ID list, as many of them as there are.
    ///
    /// # Errors
    /// The status of a controller that has no such list; [`Admin::active_namespaces`] knows another way.
    fn active_list(&self) -> Result<Vec<u32>, DriverError> {
        let mut found: Vec<u32> = Vec::new();
        for _ in 0..MOST_LISTS {
            let after = found.last().copied().unwrap_or(0);
            let mut list = Box::new(ActiveNamespaceList::new_zeroed());
            let identify = Identify { nsid: after, cns: Cns::ACTIVE_NAMESPACES, ..Default::default() };
            self.admin_entry(identify.entry(), AdminData::FromDevice(list.as_mut_bytes()))?;
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
    fn namespace(&self, nsid: u32) -> Result<Namespace, DriverError> {
        let data = self.identify_namespace(nsid)?;
        Namespace::from_identify(self.address(), nsid, &data)?
            .ok_or_else(|| DriverError::Request(format!("{}: namespace {nsid} is not active", self.address())))
    }
}

/// A command's name with what tells it from others of its kind.
pub(crate) fn describe(entry: &SubmissionEntry) -> String {
    let name = tally::name(true, entry.opcode());
    match AdminOpcode::from_bits(entry.opcode()) {
        AdminOpcode::IDENTIFY => {
            let identify = Identify::from_entry(entry);
            format!("{name} ({}, namespace {:#x})", identify.cns, identify.nsid)
        }
        AdminOpcode::GET_LOG_PAGE => {
            let get = GetLogPage::from_entry(entry);
            format!("{name} ({}, offset {}, {} dwords)", get.lid, get.lpo, get.numd)
        }
        AdminOpcode::GET_FEATURES | AdminOpcode::SET_FEATURES => {
            format!("{name} (feature {:02X}h)", entry.cdw10() & 0xff)
        }
        _ => name,
    }
}
