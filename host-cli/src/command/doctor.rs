//! `nvmetal doctor`: what stands between this machine and a run, and what to do about it.
//!
//! The looking is done by the driver's [`Environment`]; here it is asked about the machine once and about each drive in
//! turn, and what belongs to a drive alone is told with that drive. Nothing is opened and nothing is changed.
#![forbid(unsafe_code)]

use clap::Args;
use nvmetal_driver::pci::Sysfs;
use nvmetal_driver::pci::enumerate::NvmeFunction;
use nvmetal_driver::pci::environment::{Environment, Finding, Question, Status};
use nvmetal_driver::vfio::memlock::{Accounting, LockedMemory};
use serde::Serialize;
use serde_json::{Value, json};

use crate::command::list;
use crate::device::{Device, not_in_a_slot};
use crate::error::{Error, Kind, Result};
use crate::exit::Exit;
use crate::output::{Format, Output};
use crate::provenance::{self, HostFacts};
use crate::report::doctor as text;

/// Memory that `validate` locks at the most: the buffers of 32 reads of 128 KiB, and 1 MiB in which all queues and PRP
/// lists have room.
const NEEDED_BYTES: u64 = (32 * (128 << 10)) + (1 << 20);

/// Which drive is meant.
#[derive(Debug, Args)]
pub struct Arguments {
    /// PCI address or kernel name of the drive; all drives if not given
    device: Option<String>,
}

/// Everything that was found.
#[derive(Debug)]
pub struct Diagnosis {
    /// The emulator, as it was asked for, where it is the drive.
    pub emulated: Option<String>,
    /// Whether one drive was named.
    pub asked_for_one: bool,
    /// What holds for all drives.
    pub machine: Vec<Finding>,
    /// The drives, each with what holds for it alone.
    pub drives: Vec<Drive>,
}

/// One drive.
#[derive(Debug, Serialize)]
pub struct Drive {
    /// Its PCI address.
    pub address: String,
    /// Its model, while the kernel's driver holds it and tells.
    pub model: Option<String>,
    /// What was found about it.
    pub findings: Vec<Finding>,
}

/// Looks and tells.
pub fn run(arguments: &Arguments, out: &mut Output) -> Result<Exit> {
    out.only("doctor", &[Format::Human, Format::Json])?;
    let diagnosis = match arguments.device.as_deref().map(Device::find).transpose()? {
        Some(Device::Emulated(text)) => Diagnosis::of_emulator(text),
        Some(Device::VfioUser(_)) => return Err(not_in_a_slot("doctor", "a controller behind a socket")),
        Some(Device::Pci(resolved)) => {
            let sysfs = Sysfs::host();
            let function = NvmeFunction::read(&sysfs, resolved.address).ok_or_else(|| {
                Error::new(Kind::UnknownDevice, format!("{} is no NVMe controller", resolved.address))
                    .remedy("`nvmetal list` shows the drives of this machine.")
            })?;
            Diagnosis::read(&sysfs, &[function], true)
        }
        None => {
            let sysfs = Sysfs::host();
            Diagnosis::read(&sysfs, &list::functions(&sysfs)?, false)
        }
    };
    out.result(&diagnosis.to_json(), || text::human(&diagnosis))?;
    Ok(if diagnosis.is_ready() { Exit::Pass } else { Exit::Environment })
}

/// Whether none of these keeps a run from happening.
pub fn is_clear(findings: &[Finding]) -> bool {
    findings.iter().all(|finding| finding.status != Status::Blocker)
}

impl Diagnosis {
    fn read(sysfs: &Sysfs, functions: &[NvmeFunction], asked_for_one: bool) -> Self {
        // iommufd is taken where it is there, and counts locked memory by user.
        let accounting = if sysfs.dev("iommu").exists() { Accounting::User } else { Accounting::Process };
        let locked_memory = LockedMemory::now(accounting);
        let ask = |function| {
            Environment::read(sysfs, &Question { function, locked_memory, needed_bytes: NEEDED_BYTES }).findings
        };
        let machine = ask(None);
        let drives = functions.iter().map(|function| Drive {
            address: function.address.to_string(),
            model: function.controller.as_ref().and_then(|controller| controller.model.clone()),
            findings: without(ask(Some(function)), &machine),
        });
        let drives = drives.collect();
        Self { emulated: None, asked_for_one, machine, drives }
    }

    /// The emulator is ready wherever nvmetal runs.
    fn of_emulator(text: String) -> Self {
        let finding = Finding {
            what: "emulator",
            status: Status::Ok,
            evidence: "a drive in software: it needs no hardware, no IOMMU and no root".to_owned(),
            remedy: None,
        };
        let drive = Drive { address: text.clone(), model: None, findings: vec![finding] };
        Self { emulated: Some(text), asked_for_one: true, machine: Vec::new(), drives: vec![drive] }
    }

    /// Whether nothing stands between the machine and a run on the drive, or on one of the drives.
    pub fn is_ready(&self) -> bool {
        is_clear(&self.machine) && self.drives.iter().any(|drive| is_clear(&drive.findings))
    }

    fn to_json(&self) -> Value {
        let drives: Vec<Value> = self
            .drives
            .iter()
            .map(|drive| {
                json!({
                    "address": drive.address,
                    "model": drive.model,
                    "ready": is_clear(&self.machine) && is_clear(&drive.findings),
                    "findings": drive.findings,
                })
            })
            .collect();
        json!({
            "schema": "nvmetal.doctor/1",
            "emulated": self.emulated.is_some(),
            "nvmetal": env!("CARGO_PKG_VERSION"),
            "time": provenance::now(),
            "host": HostFacts::here(),
            "ready": self.is_ready(),
            "machine": { "ready": is_clear(&self.machine), "findings": self.machine },
            "drives": drives,
        })
    }
}

/// What was found about a drive, less what holds for the machine anyway.
fn without(findings: Vec<Finding>, machine: &[Finding]) -> Vec<Finding> {
    findings.into_iter().filter(|finding| !machine.iter().any(|other| other.what == finding.what)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::doctor::tests::{diagnosis, finding};

    #[test]
    fn a_machine_is_ready_when_one_of_its_drives_is() {
        let free = || vec![finding("usage", Status::Ok)];
        let used = || vec![finding("usage", Status::Blocker)];
        let good = || vec![finding("iommu", Status::Ok), finding("hugepages", Status::Warn)];
        let bad = || vec![finding("iommu", Status::Blocker)];
        assert!(diagnosis(good(), vec![free()]).is_ready());
        assert!(diagnosis(good(), vec![used(), free()]).is_ready());
        assert!(!diagnosis(good(), vec![used()]).is_ready());
        assert!(!diagnosis(bad(), vec![free()]).is_ready());
        assert!(!diagnosis(good(), vec![]).is_ready(), "no drive, no run");
    }

    #[test]
    fn what_holds_for_the_machine_is_not_told_again_with_each_drive() {
        let machine = [finding("iommu", Status::Ok), finding("cores", Status::Ok)];
        let all = vec![finding("iommu", Status::Ok), finding("usage", Status::Ok), finding("cores", Status::Ok)];
        assert_eq!(without(all, &machine), [finding("usage", Status::Ok)]);
    }

    #[test]
    fn in_json_every_drive_says_whether_it_is_ready() {
        let machine = vec![finding("iommu", Status::Ok)];
        let drives = vec![vec![finding("usage", Status::Ok)], vec![finding("usage", Status::Blocker)]];
        let json = diagnosis(machine, drives).to_json();
        assert_eq!(json["schema"], "nvmetal.doctor/1");
        assert_eq!(json["ready"], true);
        assert_eq!(json["drives"][0]["ready"], true);
        assert_eq!(json["drives"][1]["ready"], false);
        assert_eq!(json["drives"][1]["findings"][0]["status"], "blocker");
        assert_eq!(json["drives"][1]["findings"][0]["remedy"], "do this");
    }

    #[test]
    fn the_emulator_is_always_ready_and_said_to_be_one() {
        let diagnosis = Diagnosis::of_emulator("emulated:null".to_owned());
        assert!(diagnosis.is_ready());
        assert_eq!(diagnosis.to_json()["emulated"], true);
    }
}
