//! A drive and the way that leads to it: through our own driver, or through the kernel's.
//!
//! Who a drive is, how healthy it is, what its links are and how fast it reads can be had both ways. Ours takes the drive
//! away from the kernel and shows the drive alone. The kernel's leaves the drive where it is, so it also works while a
//! file system is mounted, and on a machine that has no IOMMU; but the kernel stands in between, and what cannot be seen
//! past it is not judged. [`Drive`] is one or the other, for the commands to which it makes no difference.
#![forbid(unsafe_code)]

use clap::{Args, ValueEnum};
use nvmetal_driver::controller::SentCommand;
use nvmetal_driver::kernel::NOT_JUDGED;
use nvmetal_driver::pci::Sysfs;
use nvmetal_driver::pci::enumerate::NvmeFunction;
use nvmetal_driver::pci::link::{LinkErrors, LinkPath};
use nvmetal_driver::transport::TransportInfo;
use nvmetal_driver::workload::{self, Job, Observer, RunResult};
use nvmetal_driver::{Admin, ControllerOptions, DriverError, Namespace};

use crate::device::Device;
use crate::error::{Error, Kind, Result};
use crate::kernel_drive::KernelDrive;
use crate::output::note;
use crate::reader::{ReadBlocks, Reader};
use crate::session::{self, Closed, Reach, Session};

/// The driver of the kernel.
const NVME: &str = "nvme";

/// Through whom a drive is reached; for every command that can do without taking it.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Way to the drive")]
pub struct Way {
    #[command(flatten)]
    pub through: Through,
    #[command(flatten)]
    pub reach: Reach,
}

/// The choice alone, for commands that read what the kernel shows and never open a drive.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Way to the drive")]
pub struct Through {
    /// auto, vfio (take the drive from the kernel), kernel (leave it there, also while it is in use)
    #[arg(long, value_enum, default_value = "auto", hide_default_value = true, hide_possible_values = true)]
    #[arg(value_name = "WAY")]
    pub via: Via,
}

/// Through whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Via {
    /// VFIO, or the kernel where the drive is in use or VFIO cannot be had.
    Auto,
    /// Our own driver.
    Vfio,
    /// The kernel's driver.
    Kernel,
}

/// A drive that answers.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one for a whole run")]
pub enum Drive {
    /// It is ours for the moment.
    Own(Box<Session>),
    /// It is the kernel's and stays it.
    Kernel(Box<KernelDrive>),
}

impl From<Session> for Drive {
    fn from(session: Session) -> Self {
        Self::Own(Box::new(session))
    }
}

impl Drive {
    /// Opens the drive by the way that was asked for, or by the one that there is.
    pub fn open(device: &Device, way: &Way, options: ControllerOptions) -> Result<Self> {
        let resolved = match (device, way.through.via) {
            (Device::Emulated(_) | Device::VfioUser(_), Via::Kernel) => {
                return Err(not_the_kernels(&device.to_string()));
            }
            (Device::Emulated(_) | Device::VfioUser(_), _) => {
                return Session::open(device, &way.reach, options).map(Self::from);
            }
            (Device::Pci(resolved), _) => resolved,
        };
        let sysfs = Sysfs::host();
        match way.through.via {
            Via::Vfio => Session::open(device, &way.reach, options).map(Self::from),
            Via::Kernel if way.reach.needs_vfio() => {
                Err(Error::usage("--iommu and --trace are about our own driver, which --via kernel does not use")
                    .remedy("Leave them out, or use --via vfio."))
            }
            Via::Kernel => KernelDrive::open(&sysfs, resolved.address, None).map(Box::new).map(Self::Kernel),
            Via::Auto if way.reach.needs_vfio() => Session::open(device, &way.reach, options).map(Self::from),
            Via::Auto => match Session::open(device, &way.reach, options) {
                Ok(session) => Ok(session.into()),
                Err(error) => {
                    let held = NvmeFunction::read(&sysfs, resolved.address)
                        .is_some_and(|function| function.driver.as_deref() == Some(NVME));
                    if !(held && is_in_the_way(error.kind)) {
                        return Err(error);
                    }
                    instead(error, |why| KernelDrive::open(&sysfs, resolved.address, Some(why)))
                }
            },
        }
    }

    /// The drive itself, for admin commands.
    pub fn admin(&self) -> &dyn Admin {
        match self {
            Self::Own(session) => session.controller.as_ref(),
            Self::Kernel(kernel) => &kernel.controller,
        }
    }

    /// The way there.
    pub fn info(&self) -> &TransportInfo {
        match self {
            Self::Own(session) => session.info(),
            Self::Kernel(kernel) => &kernel.info,
        }
    }

    /// What is known of the way through the kernel, where it is that.
    pub fn kernel(&self) -> Option<&KernelDrive> {
        match self {
            Self::Own(_) => None,
            Self::Kernel(kernel) => Some(kernel.as_ref()),
        }
    }

    /// The clock that all times of this drive are taken from.
    pub fn clock(&self) -> &nvmetal_driver::clock::Clock {
        match self {
            Self::Own(session) => session.controller.clock(),
            Self::Kernel(kernel) => &kernel.clock,
        }
    }

    /// Queues for reads that can be had at once.
    pub fn io_queues(&self) -> u16 {
        match self {
            Self::Own(session) => session.controller.io_queues(),
            // The block layer spreads them over those that it has.
            Self::Kernel(_) => u16::MAX,
        }
    }

    /// The namespace to work on: the one asked for, or the first that is active.
    pub fn namespace(&self, asked: Option<u32>) -> Result<Namespace> {
        session::namespace(self.admin(), asked)
    }

    /// The links between the drive and the root, as they are now.
    pub fn link_path(&self) -> Option<LinkPath> {
        match self {
            Self::Own(session) => session.link_path(),
            Self::Kernel(kernel) => kernel.link_path(),
        }
    }

    /// What the ports of a path have counted so far.
    pub fn link_errors(&self, path: &LinkPath) -> LinkErrors {
        match self {
            Self::Own(session) => session.link_errors(path),
            Self::Kernel(kernel) => kernel.link_errors(path),
        }
    }

    /// Something that reads a few blocks, up to `bytes_each` bytes at a time.
    pub fn reader(&self, namespace: Namespace, bytes_each: usize) -> Result<Box<dyn ReadBlocks>, DriverError> {
        match self {
            Self::Own(session) => Ok(Box::new(Reader::new(&session.controller, namespace, bytes_each)?)),
            Self::Kernel(kernel) => Ok(Box::new(kernel.controller.block(namespace.nsid, None)?)),
        }
    }

    /// Runs a workload.
    pub fn run(&self, namespace: Namespace, job: &Job, observer: &mut dyn Observer) -> Result<RunResult, DriverError> {
        match self {
            Self::Own(session) => workload::run(&session.controller, namespace, job, observer),
            Self::Kernel(kernel) => kernel.run(namespace, job, observer),
        }
    }

    /// The commands sent so far, the most telling first: I/O, then admin commands by name.
    pub fn sent(&self) -> Vec<SentCommand> {
        let mut sent = match self {
            Self::Own(session) => session.controller.tally().sent(),
            Self::Kernel(kernel) => kernel.controller.tally().sent(),
        };
        sent.sort_by(|one, other| (one.admin, &one.name).cmp(&(other.admin, &other.name)));
        sent
    }

    /// Ends it: a drive that was taken goes back.
    pub fn close(self) -> Closed {
        match self {
            Self::Own(session) => session.close(),
            Self::Kernel(_) => Closed::nothing_was_taken(),
        }
    }
}

/// The error of the emulated drive that was to be reached through the kernel.
pub fn not_the_kernels(text: &str) -> Error {
    Error::usage(format!("{text} is not the kernel's, so it cannot be reached through it"))
        .remedy("Leave out `--via kernel`, or name a drive of this machine; `nvmetal list` shows them.")
}

/// Whether the kernel's way may be open where ours is not.
const fn is_in_the_way(kind: Kind) -> bool {
    matches!(kind, Kind::InUse | Kind::NoPermission | Kind::Environment)
}

/// The kernel's way, because ours ended with `error`.
fn instead(error: Error, open: impl FnOnce(String) -> Result<KernelDrive>) -> Result<Drive> {
    match open(error.message.clone()) {
        Ok(kernel) => {
            note(&format!("via kernel, without taking the drive, because {}", error.message));
            Ok(Drive::Kernel(Box::new(kernel)))
        }
        // Rights are missing for both ways, so the first obstacle would not be the last.
        Err(kernel) if kernel.kind == Kind::NoPermission => Err(kernel),
        Err(kernel) => {
            log::info!("nor via kernel: {kernel}");
            Err(error)
        }
    }
}

/// What is not judged through the kernel, a line each.
pub fn not_judged() -> impl Iterator<Item = String> {
    NOT_JUDGED.iter().map(|left_out| format!("{}: {}", left_out.what, left_out.why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::IommuArgument;

    fn refused(kind: Kind) -> Result<KernelDrive> {
        Err(Error::new(kind, "the second"))
    }

    #[test]
    fn missing_rights_outrank_the_reason_why_vfio_was_not_to_be_had() {
        let first = || Error::new(Kind::InUse, "the first");
        let error = instead(first(), |_| refused(Kind::NoPermission)).expect_err("neither way");
        assert_eq!((error.kind, error.message.as_str()), (Kind::NoPermission, "the second"));
        let error = instead(first(), |_| refused(Kind::DeviceLost)).expect_err("neither way");
        assert_eq!((error.kind, error.message.as_str()), (Kind::InUse, "the first"));
    }

    #[test]
    fn the_kernels_way_is_tried_for_what_it_could_get_around_and_nothing_else() {
        for kind in [Kind::InUse, Kind::NoPermission, Kind::Environment] {
            assert!(is_in_the_way(kind), "{kind:?}");
        }
        for kind in [Kind::Usage, Kind::UnknownDevice, Kind::DeviceLost, Kind::TimedOut, Kind::Device, Kind::Internal] {
            assert!(!is_in_the_way(kind), "{kind:?}");
        }
    }

    #[test]
    fn the_emulated_drive_is_not_reached_through_the_kernel() {
        let way =
            Way { through: Through { via: Via::Kernel }, reach: Reach { iommu: IommuArgument::Auto, trace: false } };
        let error = Drive::open(&Device::Emulated("emulated".into()), &way, ControllerOptions::default())
            .expect_err("there is no such way");
        assert_eq!(error.kind, Kind::Usage);
    }
}
