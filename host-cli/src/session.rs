//! A drive in use: taken, brought up, and given back.
//!
//! [`Session::open`] does what is needed to send commands: takes a drive from the kernel (a drive that is on vfio-pci
//! already stays there afterwards), opens the transport, brings the controller up. [`Session::close`] undoes it in order
//! and tells how that went. When something fails in between, or panics, dropping does the same: the fields are in the
//! order in which they have to go.
#![forbid(unsafe_code)]

use std::sync::Arc;

use clap::{Args, ValueEnum};
use nvmetal_core::lifecycle::ShutdownOutcome;
use nvmetal_driver::pci::binding::{BindOptions, GivenBack, Handover};
use nvmetal_driver::pci::config::ConfigSpace;
use nvmetal_driver::pci::link::{Hop, LinkErrors, LinkPath, PortEnd, PortErrors};
use nvmetal_driver::pci::{PciAddress, Sysfs};
use nvmetal_driver::transport::emulated::EmulatedTransport;
use nvmetal_driver::transport::traced::TracedTransport;
use nvmetal_driver::transport::vfio::VfioTransport;
use nvmetal_driver::transport::vfio_user::VfioUserTransport;
use nvmetal_driver::transport::{Transport, TransportError, TransportInfo};
use nvmetal_driver::vfio::{IommuChoice, VfioOptions};
use nvmetal_driver::{Admin, Controller, ControllerOptions, Namespace, Wait};
use serde::Serialize;

use crate::device::Device;
use crate::error::{Error, Kind, Result};
use crate::trace::Lines;

/// How a drive is reached; for every command that opens one.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Way to the drive")]
pub struct Reach {
    /// Kernel interface for VFIO: auto, iommufd, type1
    #[arg(long, value_enum, default_value = "auto", hide_default_value = true, hide_possible_values = true)]
    #[arg(value_name = "INTERFACE")]
    pub iommu: IommuArgument,
    /// Tell every register access, command and completion, one line each, on standard error
    #[arg(long)]
    pub trace: bool,
}

impl Reach {
    /// Whether something was asked for that only our own driver has.
    pub fn needs_vfio(&self) -> bool {
        self.iommu != IommuArgument::Auto || self.trace
    }

    /// The transport, told if that was asked for.
    fn observed(&self, transport: Arc<dyn Transport>) -> Arc<dyn Transport> {
        if self.trace { TracedTransport::new(transport, Arc::new(Lines::default())) } else { transport }
    }
}

/// A choice of the kernel's interface for VFIO.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum IommuArgument {
    /// iommufd where the kernel has it, else type1.
    Auto,
    /// Linux 6.6 and later.
    Iommufd,
    /// Containers and groups.
    Type1,
}

impl From<IommuArgument> for IommuChoice {
    fn from(argument: IommuArgument) -> Self {
        match argument {
            IommuArgument::Auto => Self::Auto,
            IommuArgument::Iommufd => Self::Iommufd,
            IommuArgument::Type1 => Self::Type1,
        }
    }
}

/// A way to wait for completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WaitArgument {
    /// Look again and again: the shortest latency, and a whole processor for each queue.
    Poll,
    /// Sleep until the queue's interrupt comes.
    Interrupt,
    /// Look for as long as that pays, then sleep.
    Hybrid,
}

impl From<WaitArgument> for Wait {
    fn from(argument: WaitArgument) -> Self {
        match argument {
            WaitArgument::Poll => Self::Poll,
            WaitArgument::Interrupt => Self::Interrupt,
            WaitArgument::Hybrid => Self::Hybrid,
        }
    }
}

/// A drive that takes commands from us.
#[derive(Debug)]
pub struct Session {
    /// The controller.
    pub controller: Arc<Controller>,
    place: Place,
    handover: Option<Handover>,
}

/// Where the drive's links can be read.
#[derive(Debug, Clone)]
enum Place {
    Pci(Sysfs, PciAddress),
    Emulated(Arc<dyn Transport>),
    /// A socket has no links.
    Socket,
}

/// How a session ended.
#[derive(Debug, Serialize)]
pub struct Closed {
    /// Whether the controller said that it was shut down.
    pub shutdown_complete: Option<bool>,
    /// How the drive went back to the kernel; `None` where it was not taken from it.
    pub given_back: Option<GivenBack>,
    /// What went wrong on the way down.
    #[serde(skip)]
    pub error: Option<Error>,
}

impl Closed {
    /// The end of a look at a drive that was not taken from anybody.
    pub const fn nothing_was_taken() -> Self {
        Self { shutdown_complete: None, given_back: None, error: None }
    }
}

impl Session {
    /// Opens the drive with up to `io_queues` I/O queues.
    pub fn open(device: &Device, reach: &Reach, options: ControllerOptions) -> Result<Self> {
        match device {
            Device::Emulated(text) => {
                let transport = reach.observed(emulated(text)?);
                let controller = Controller::open(Arc::clone(&transport), options)?;
                Ok(Self { controller, place: Place::Emulated(transport), handover: None })
            }
            Device::VfioUser(path) => {
                let transport = reach.observed(VfioUserTransport::open(path).map_err(nobody_there)?);
                let controller = Controller::open(transport, options)?;
                Ok(Self { controller, place: Place::Socket, handover: None })
            }
            Device::Pci(resolved) => {
                let sysfs = Sysfs::host();
                let address = resolved.address;
                let handover = Handover::take(&sysfs, address, BindOptions::default())?;
                let vfio = VfioOptions { iommu: reach.iommu.into(), sysfs: sysfs.clone(), ..VfioOptions::default() };
                // On every error the transport goes before the handover: a held drive cannot be given back.
                let controller = {
                    let transport = reach.observed(Arc::new(VfioTransport::open(address, &vfio)?));
                    Controller::open(transport, options)?
                };
                Ok(Self { controller, place: Place::Pci(sysfs, address), handover: Some(handover) })
            }
        }
    }

    /// What the transport says of itself.
    pub fn info(&self) -> &TransportInfo {
        self.controller.transport().info()
    }

    /// The links between the drive and the root, as they are now.
    pub fn link_path(&self) -> Option<LinkPath> {
        match &self.place {
            Place::Pci(sysfs, address) => LinkPath::read(sysfs, *address).ok(),
            Place::Emulated(transport) => emulated_path(transport.as_ref()),
            Place::Socket => None,
        }
    }

    /// What the ports of a path have counted so far.
    pub fn link_errors(&self, path: &LinkPath) -> LinkErrors {
        match &self.place {
            Place::Pci(sysfs, _) => LinkErrors::read(sysfs, path),
            Place::Emulated(transport) => emulated_errors(transport.as_ref()),
            Place::Socket => LinkErrors { ports: std::collections::BTreeMap::new() },
        }
    }

    /// Shuts the controller down and gives the drive back.
    pub fn close(self) -> Closed {
        let Self { controller, place, handover } = self;
        let outcome = controller.shutdown();
        // All that keeps the device open has to go before it can be given back.
        drop((controller, place));
        let given_back = handover.map(Handover::give_back).transpose();
        let (shutdown_complete, shutdown_error) = match outcome {
            Ok(ShutdownOutcome { complete, .. }) => (Some(complete), None),
            Err(error) => (None, Some(Error::from(error))),
        };
        let (given_back, binding_error) = match given_back {
            Ok(given_back) => (given_back.flatten(), None),
            Err(error) => (None, Some(Error::from(error))),
        };
        // A drive that stays behind matters more than a shutdown that did not end well.
        Closed { shutdown_complete, given_back, error: binding_error.or(shutdown_error) }
    }
}

/// The emulated drive that a description names.
pub fn emulated(text: &str) -> Result<Arc<EmulatedTransport>> {
    EmulatedTransport::open(text).map_err(|error| {
        Error::usage(format!("{text}: {error}"))
            .remedy("The form is emulated[:MODEL[,option=value...]], as in emulated:ideal,link=gen1x1.")
    })
}

/// A socket that cannot be connected to is a device that is not there, or that is another user's.
fn nobody_there(error: TransportError) -> Error {
    let kind = match &error {
        TransportError::System { source, .. } => match source.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::ConnectionRefused => Kind::UnknownDevice,
            std::io::ErrorKind::PermissionDenied => Kind::NoPermission,
            _ => return error.into(),
        },
        _ => return error.into(),
    };
    let remedy = if kind == Kind::NoPermission {
        "Ask its owner for the right to write to the socket, or run as its owner."
    } else {
        "No server listens there; start one, as with `nvmetal emulator serve --socket PATH`."
    };
    Error::new(kind, error.to_string()).remedy(remedy)
}

/// The namespace to work on: the one asked for, or the first that is active.
pub fn namespace(drive: &dyn Admin, asked: Option<u32>) -> Result<Namespace> {
    let active = drive.active_namespaces()?;
    let nsid = match asked {
        Some(nsid) if !active.contains(&nsid) => {
            let known: Vec<_> = active.iter().map(ToString::to_string).collect();
            let known = if known.is_empty() { "none".into() } else { known.join(", ") };
            return Err(Error::usage(format!("namespace {nsid} is not active on {}", drive.address()))
                .remedy(format!("Active namespaces: {known}.")));
        }
        Some(nsid) => nsid,
        None => *active.first().ok_or_else(|| {
            Error::new(Kind::Unsupported, format!("{} has no active namespace", drive.address()))
                .remedy("Create and attach one first (nvme create-ns, nvme attach-ns).")
        })?,
    };
    Ok(drive.namespace(nsid)?)
}

/// The configuration spaces of an emulated drive and of the ports above it.
///
/// They have no addresses in this machine; they get those that they would have as the only device of one.
fn emulated_ports(transport: &dyn Transport) -> Vec<(PciAddress, ConfigSpace)> {
    let configs = transport.path_config();
    let last = configs.len().saturating_sub(1);
    let ports = configs.into_iter().enumerate().filter_map(|(index, (_, config))| {
        let bus = u8::try_from(last - index).ok()?;
        Some((PciAddress::new(0, bus, u8::from(bus == 0), 0)?, ConfigSpace::new(config)))
    });
    ports.collect()
}

/// What the registers of an emulated drive and of its ports say of errors.
pub fn emulated_errors(transport: &dyn Transport) -> LinkErrors {
    let ports = emulated_ports(transport);
    LinkErrors { ports: ports.iter().map(|(port, config)| (*port, PortErrors::from_config(config))).collect() }
}

/// The links of an emulated drive; `None` where the emulator shows no configuration space.
pub fn emulated_path(transport: &dyn Transport) -> Option<LinkPath> {
    let ports = emulated_ports(transport);
    let ends: Vec<PortEnd> = ports.iter().map(|(address, config)| PortEnd::from_config(*address, config)).collect();
    let drive = ends.first()?.address;
    // Drive and slot, upstream port and the port above it, and so on.
    let hops = ends.chunks_exact(2).map(|pair| Hop::new(pair[0].clone(), Some(pair[1].clone()))).collect();
    Some(LinkPath { drive, hops, behind_vmd: None })
}
