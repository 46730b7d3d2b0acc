//! Taking a drive from the kernel, and giving it back.
//!
//! A function is handed to vfio-pci by its own `driver_override`, `unbind` and a write of its address to
//! `drivers_probe`: this names one function and nothing else. (`new_id` would name a vendor and a device, and pull in
//! every drive of that kind; it is never written.) Before anything is changed, all that could make it fail or do harm is
//! looked at: another process's lock, the IOMMU group, the driver, and who uses the drive.
//!
//! Giving back needs no memory of how it was: the override is cleared and the kernel asked to probe, and whatever driver
//! would have taken the drive at boot takes it now. So [`release`] can repair what a killed process left behind. Before
//! that it looks who still holds the drive, since unbinding a held one blocks; and since even that look can miss
//! somebody, every write has a deadline.
//!
//! An override is cleared by writing a single newline; an empty write never reaches the kernel.
#![forbid(unsafe_code)]

mod error;
mod holders;
mod lock;
#[cfg(test)]
mod tests;
mod viability;
mod write;

use std::time::Duration;

use serde::Serialize;

use super::enumerate::{IommuGroup, KernelController, NvmeFunction, driver_override};
use super::iommu;
use super::usage::Claim;
use super::{PciAddress, Sysfs};

pub use error::{BindError, BindErrorKind};
pub use holders::{VfioNodes, holders};
pub use lock::{Lock, LockError};
pub use viability::Viability;
pub use write::WriteError;

/// VFIO's driver for PCI functions.
const VFIO_PCI: &str = "vfio-pci";
/// The kernel's own driver.
const NVME: &str = "nvme";
/// What clears an override.
const NO_OVERRIDE: &str = "\n";
/// How often, after a drive was given back, the kernel's controller is looked at until it is ready.
const READY_TRIES: usize = 50;
/// How long to wait between.
const READY_PAUSE: Duration = Duration::from_millis(100);

/// How a drive is taken and given back.
#[derive(Clone, Copy, Debug)]
pub struct BindOptions {
    /// How long each write may take. A driver that lets go of a drive which no longer answers takes tens of seconds.
    pub deadline: Duration,
    /// Whether a group of VFIO's no-IOMMU mode will do.
    pub allow_no_iommu: bool,
}

impl Default for BindOptions {
    fn default() -> Self {
        Self { deadline: Duration::from_secs(60), allow_no_iommu: false }
    }
}

/// A drive that is on vfio-pci and locked for this process.
///
/// When dropped it goes back to the kernel if it was taken from there; if it was on vfio-pci before, it stays. All VFIO
/// descriptors of the drive must be closed before: a held drive is not unbound, and stays on vfio-pci with a logged
/// error.
#[derive(Debug)]
#[must_use = "the drive goes back to the kernel when this is dropped"]
pub struct Handover {
    sysfs: Sysfs,
    address: PciAddress,
    options: BindOptions,
    /// Whether it must go back.
    taken: bool,
    _lock: Lock,
}

/// How a drive was given back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GivenBack {
    /// The drive.
    pub address: PciAddress,
    /// The driver it was on before.
    pub driver_before: Option<String>,
    /// The driver it is on now.
    pub driver: String,
    /// The override that was cleared.
    pub override_cleared: Option<String>,
    /// The kernel's controller, when there is one.
    pub controller: Option<String>,
    /// Whether that controller is ready.
    pub is_live: bool,
}

impl Handover {
    /// Takes a drive for user space. A drive that is on vfio-pci already is only locked, nothing is unbound.
    pub fn take(sysfs: &Sysfs, address: PciAddress, options: BindOptions) -> Result<Self, BindError> {
        let lock = Lock::take(sysfs, address)?;
        let function = NvmeFunction::read(sysfs, address).ok_or(BindError::NotNvme { address })?;
        let handover = |taken| Self { sysfs: sysfs.clone(), address, options, taken, _lock: lock };
        match function.driver.as_deref() {
            Some(VFIO_PCI) => {
                check_group(&function, sysfs, options)?;
                let holders = holders(sysfs, address);
                if !holders.is_empty() {
                    return Err(BindError::Held { address, holders });
                }
                return Ok(handover(false));
            }
            None | Some(NVME) => {}
            Some(driver) => return Err(BindError::OtherDriver { address, driver: driver.to_owned() }),
        }
        check_group(&function, sysfs, options)?;
        ensure_driver(sysfs, VFIO_PCI)?;
        let claim = Claim::take(sysfs, &function)?;
        bind_to_vfio(sysfs, &function, claim, options)?;
        Ok(handover(true))
    }

    /// Where the drive is.
    pub fn address(&self) -> PciAddress {
        self.address
    }

    /// Whether the drive was taken from the kernel, and goes back to it.
    pub fn is_taken(&self) -> bool {
        self.taken
    }

    /// The nodes through which the drive can be opened now.
    pub fn nodes(&self) -> VfioNodes {
        VfioNodes::of(&self.sysfs, self.address)
    }

    /// Gives the drive back, if it was taken; `None` when it was on vfio-pci before.
    pub fn give_back(mut self) -> Result<Option<GivenBack>, BindError> {
        if !core::mem::take(&mut self.taken) {
            return Ok(None);
        }
        hand_back(&self.sysfs, self.address, self.options).map(Some)
    }

    /// Leaves the drive on vfio-pci when this is dropped.
    pub fn keep(mut self) {
        self.taken = false;
    }
}

impl Drop for Handover {
    fn drop(&mut self) {
        if core::mem::take(&mut self.taken)
            && let Err(error) = hand_back(&self.sysfs, self.address, self.options)
        {
            log::error!("{} was not given back: {error}. {}", self.address, error.remedy());
        }
    }
}

/// Gives a drive back to the kernel, whatever state it was left in.
pub fn release(sysfs: &Sysfs, address: PciAddress, options: BindOptions) -> Result<GivenBack, BindError> {
    let _lock = Lock::take(sysfs, address)?;
    hand_back(sysfs, address, options)
}

/// The drives that look as if a killed process had left them: kept for vfio-pci by an override, or without a driver.
///
/// A drive that vfio-pci has without an override was given to it by ID, which is somebody's set-up and not ours.
pub fn left_behind(sysfs: &Sysfs) -> Result<Vec<PciAddress>, BindError> {
    let is_left =
        |function: &NvmeFunction| function.driver.is_none() || function.driver_override.as_deref() == Some(VFIO_PCI);
    Ok(NvmeFunction::all(sysfs)?.iter().filter(|function| is_left(function)).map(|function| function.address).collect())
}

/// Whether a function's IOMMU group will do.
fn check_group(function: &NvmeFunction, sysfs: &Sysfs, options: BindOptions) -> Result<(), BindError> {
    let address = function.address;
    let Some(group) = &function.iommu_group else {
        // In the no-IOMMU mode the group appears only when vfio-pci takes the function.
        return match iommu::State::read(sysfs) {
            _ if options.allow_no_iommu => Ok(()),
            iommu::State::Off => Err(BindError::IommuOff { address }),
            iommu::State::On { .. } => Err(BindError::NoGroup { address }),
        };
    };
    if group.no_iommu && !options.allow_no_iommu {
        return Err(BindError::NoIommuMode { address, group: group.node_name() });
    }
    let viability = Viability::of(group, address);
    if viability.is_viable() { Ok(()) } else { Err(BindError::NotViable { address, viability }) }
}

/// Makes sure that a driver is there, loading its module when it is not.
fn ensure_driver(sysfs: &Sysfs, driver: &str) -> Result<(), BindError> {
    let directory = sysfs.sys("bus/pci/drivers").join(driver);
    if directory.is_dir() {
        return Ok(());
    }
    let missing = |reason| BindError::ModuleMissing { module: driver.to_owned(), reason };
    sysfs.actions().load_module(driver).map_err(|error| missing(error.to_string()))?;
    if directory.is_dir() { Ok(()) } else { Err(missing("it was loaded, but its driver did not appear".into())) }
}

/// The steps from the kernel's driver, or none, to vfio-pci; and back when the last one fails.
fn bind_to_vfio(sysfs: &Sysfs, function: &NvmeFunction, claim: Claim, options: BindOptions) -> Result<(), BindError> {
    let address = function.address;
    let steps = Steps { sysfs, address, deadline: options.deadline };
    // First the override: between unbind and probe the function must not be anybody else's.
    steps.set_override(VFIO_PCI)?;
    let unbound = match &function.driver {
        Some(driver) => steps.unbind(driver),
        None => Ok(()),
    };
    // Up to here nobody could mount it; from here on there is nothing to mount.
    drop(claim);
    if let Err(error) = unbound {
        steps.undo(&error);
        return Err(error);
    }
    let reason = match steps.probe() {
        Ok(()) => None,
        // Undoing would wait for the same lock in the kernel.
        Err(error @ BindError::Write { source: WriteError::Blocked { .. }, .. }) => return Err(error),
        Err(error) => Some(error.to_string()),
    };
    if steps.driver().as_deref() == Some(VFIO_PCI) {
        log::info!("{address}: on {VFIO_PCI}");
        // D0 to D3 and the like need nothing from here: vfio-pci wakes the function when it is opened.
        return Ok(());
    }
    let not_taken = BindError::NotTaken { address, reason, driver: None };
    steps.undo(&not_taken);
    match not_taken {
        BindError::NotTaken { reason, .. } => Err(BindError::NotTaken { address, reason, driver: steps.driver() }),
        error => Err(error),
    }
}

/// From vfio-pci, or none, to the driver that the kernel chooses.
fn hand_back(sysfs: &Sysfs, address: PciAddress, options: BindOptions) -> Result<GivenBack, BindError> {
    if NvmeFunction::read(sysfs, address).is_none() {
        return Err(BindError::NotNvme { address });
    }
    let steps = Steps { sysfs, address, deadline: options.deadline };
    let driver_before = steps.driver();
    if driver_before.as_deref() == Some(VFIO_PCI) {
        let holders = holders(sysfs, address);
        if !holders.is_empty() {
            return Err(BindError::Held { address, holders });
        }
    }
    let override_cleared = driver_override(sysfs, address);
    if override_cleared.is_some() {
        steps.set_override(NO_OVERRIDE)?;
    }
    if driver_before.as_deref() == Some(VFIO_PCI) {
        steps.unbind(VFIO_PCI)?;
    }
    let mut reason = None;
    if steps.driver().is_none() {
        reason = steps.probe_or_reason()?;
    }
    if steps.driver().is_none() && ensure_driver(sysfs, NVME).is_ok() {
        reason = steps.probe_or_reason()?;
    }
    let driver = match steps.driver() {
        None => return Err(BindError::NotTakenBack { address, reason }),
        Some(driver) if driver == VFIO_PCI => return Err(BindError::TakenAgain { address }),
        Some(driver) => driver,
    };
    log::info!("{address}: back on {driver}");
    let controller = ready_controller(sysfs, address, &driver);
    Ok(GivenBack {
        address,
        driver_before,
        driver,
        override_cleared,
        is_live: controller.as_ref().is_some_and(is_live),
        controller: controller.map(|controller| controller.name),
    })
}

fn is_live(controller: &KernelController) -> bool {
    // Old kernels do not tell a state.
    controller.state.as_deref().is_none_or(|state| state == "live")
}

/// The kernel's controller once it is ready, or as it is when it does not get ready: the kernel resets it in the
/// background after its driver has taken it.
fn ready_controller(sysfs: &Sysfs, address: PciAddress, driver: &str) -> Option<KernelController> {
    if driver != NVME {
        return None;
    }
    for _ in 0..READY_TRIES {
        if let Some(controller) = KernelController::of(sysfs, address).filter(is_live) {
            return Some(controller);
        }
        sysfs.actions().pause(READY_PAUSE);
    }
    KernelController::of(sysfs, address)
}

/// The writes that move one function between drivers.
struct Steps<'a> {
    sysfs: &'a Sysfs,
    address: PciAddress,
    deadline: Duration,
}

impl Steps<'_> {
    fn driver(&self) -> Option<String> {
        self.sysfs.link_name(self.sysfs.pci_device(self.address).join("driver"))
    }

    fn set_override(&self, driver: &str) -> Result<(), BindError> {
        self.write(&self.sysfs.pci_device(self.address).join("driver_override"), driver)
    }

    fn unbind(&self, driver: &str) -> Result<(), BindError> {
        let path = self.sysfs.sys("bus/pci/drivers").join(driver).join("unbind");
        match self.write(&path, &self.address.to_string()) {
            // It has left that driver on its own: that is what was wanted.
            Err(BindError::Write { source: WriteError::Refused(error), .. })
                if error.is_not_found() && self.driver().is_none() =>
            {
                Ok(())
            }
            answer => answer,
        }
    }

    fn probe(&self) -> Result<(), BindError> {
        self.write(&self.sysfs.sys("bus/pci/drivers_probe"), &self.address.to_string())
    }

    /// Probes, and takes a refusal for a reason: which driver has the function afterwards is what counts.
    fn probe_or_reason(&self) -> Result<Option<String>, BindError> {
        match self.probe() {
            Ok(()) => Ok(None),
            Err(error @ BindError::Write { source: WriteError::Blocked { .. }, .. }) => Err(error),
            Err(error) => Ok(Some(error.to_string())),
        }
    }

    /// Clears the override and lets the kernel choose a driver again, after something failed.
    fn undo(&self, failure: &BindError) {
        if matches!(failure, BindError::Write { source: WriteError::Blocked { .. }, .. }) {
            return;
        }
        for undone in [self.set_override(NO_OVERRIDE), self.probe()] {
            if let Err(error) = undone {
                log::error!("{}: while undoing: {error}", self.address);
            }
        }
    }

    fn write(&self, path: &std::path::Path, value: &str) -> Result<(), BindError> {
        write::write(self.sysfs, path, value, self.deadline)
            .map_err(|source| BindError::Write { address: self.address, source })
    }
}

/// Whether a function is in a group that VFIO made up without an IOMMU.
pub fn is_no_iommu(sysfs: &Sysfs, address: PciAddress) -> bool {
    IommuGroup::of(sysfs, address).is_some_and(|group| group.no_iommu)
}
