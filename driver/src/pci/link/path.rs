//! The links from a drive to the root of its PCI hierarchy, in order.
//!
//! sysfs nests a function in the directory of the bridge above it, so the path is the drive's own canonical directory.
//! Not every step of it is a link: between the upstream and the downstream port of one switch there is only silicon.
//! Behind Intel VMD the hierarchy starts anew at a host bridge of its own.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Ceiling, Hop, LinkSpeed, LinkState, LinkWidth, PortEnd};
use crate::pci::PciAddress;
use crate::pci::config::express::PortType;
use crate::pci::sysfs::{Sysfs, SysfsError};

/// The base class and sub-class of a PCI-to-PCI bridge.
const CLASS_BRIDGE: u64 = 0x0604;

/// All links from a drive to the root, the drive's own first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LinkPath {
    /// The drive.
    pub drive: PciAddress,
    /// Its links; none when it is part of the root complex itself, or a virtual machine shows no port above it.
    pub hops: Vec<Hop>,
    /// The Intel VMD device whose domain the drive lives in.
    pub behind_vmd: Option<PciAddress>,
}

/// A link that cannot carry what the drive could.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Limit {
    /// Which hop it is: 0 is the drive's own link.
    pub hop: usize,
    /// The port whose ability is too low: the slot, or a port further up.
    pub port: PciAddress,
    /// The best speed of that link, where it is what limits.
    pub speed: Option<LinkSpeed>,
    /// The most lanes of that link, where it is what limits.
    pub width: Option<LinkWidth>,
}

impl LinkPath {
    /// The path of a drive on this host.
    pub fn read(sysfs: &Sysfs, drive: PciAddress) -> Result<Self, SysfsError> {
        let canonical = sysfs.canonical(sysfs.pci_device(drive))?;
        let ancestry = Ancestry::of(&canonical);
        let ends: Vec<PortEnd> = ancestry.functions.iter().map(|(address, _)| PortEnd::read(sysfs, *address)).collect();
        let mut hops = Vec::new();
        for index in (0..ends.len()).rev() {
            let Some(lower) = ends.get(index) else { continue };
            let upper = index.checked_sub(1).and_then(|above| Some((above, ends.get(above)?)));
            match upper {
                Some((above, upper)) if leads_down(upper, above) => {
                    let mut hop = Hop::new(lower.clone(), Some(upper.clone()));
                    if let Some((_, directory)) = ancestry.functions.get(above) {
                        hop.shared_with = devices_below(sysfs, directory, drive);
                    }
                    hops.push(hop);
                }
                None if hangs_from_a_hidden_port(lower, drive) => hops.push(Hop::new(lower.clone(), None)),
                _ => {}
            }
        }
        Ok(Self { drive, hops, behind_vmd: ancestry.vmd })
    }

    /// The drive's own link.
    pub fn drive_hop(&self) -> Option<&Hop> {
        self.hops.first()
    }

    /// The link that moves the least now, and its place on the path; of equals, the one nearest to the drive.
    pub fn narrowest(&self) -> Option<(usize, &Hop)> {
        self.hops
            .iter()
            .enumerate()
            .filter_map(|(index, hop)| Some((hop.mbit_s_now()?, index, hop)))
            .min_by_key(|&(rate, index, _)| (rate, index))
            .map(|(_, index, hop)| (index, hop))
    }

    /// What the path carries now in Mb/s after encoding, as the kernel counts it.
    pub fn mbit_s_available(&self) -> Option<u32> {
        self.narrowest()?.1.mbit_s_now()
    }

    /// What the drive alone could carry in Mb/s after encoding.
    pub fn mbit_s_of_drive(&self) -> Option<u32> {
        let drive = &self.drive_hop()?.lower;
        Some(drive.speed_able?.mbit_s_per_lane()? * u32::from(drive.width_able?.lanes()))
    }

    /// The payload size that holds on the whole path: the least of all ports. `None` when one is not known.
    pub fn payload_bytes(&self) -> Option<u32> {
        let mut ends = self.hops.iter().flat_map(|hop| core::iter::once(&hop.lower).chain(&hop.upper)).peekable();
        ends.peek()?;
        ends.map(|end| end.payload_bytes).try_fold(u32::MAX, |least, payload| Some(least.min(payload?)))
    }

    /// The most that the path can carry. `None` when no link of it is known.
    pub fn ceiling(&self) -> Option<Ceiling> {
        let (_, hop) = self.narrowest()?;
        Ceiling::new(hop.speed_now()?, hop.width_now()?, self.payload_bytes())
    }

    /// The most that the path could carry if every link trained to the best of its ends.
    pub fn ceiling_best(&self) -> Option<Ceiling> {
        let hop = self.hops.iter().filter(|hop| hop.mbit_s_best().is_some()).min_by_key(|hop| hop.mbit_s_best())?;
        Ceiling::new(hop.speed_best()?, hop.width_best()?, self.payload_bytes())
    }

    /// Every link whose ability, not its state, is less than the drive's.
    ///
    /// The drive's own link is compared speed for speed and width for width; links above may make up for a lower speed
    /// with more lanes, so they are compared by what they move.
    pub fn limits(&self) -> Vec<Limit> {
        let mut limits = Vec::new();
        let Some(drive) = self.drive_hop().map(|hop| &hop.lower) else { return limits };
        for (index, hop) in self.hops.iter().enumerate() {
            let Some(upper) = &hop.upper else { continue };
            let speed = hop.speed_best().filter(|&best| Some(best) < drive.speed_able);
            let width = hop.width_best().filter(|&best| Some(best) < drive.width_able);
            let limit = Limit { hop: index, port: upper.address, speed, width };
            let less = if index == 0 {
                speed.is_some() || width.is_some()
            } else {
                matches!((hop.mbit_s_best(), self.mbit_s_of_drive()), (Some(hop), Some(drive)) if hop < drive)
            };
            if less {
                limits.push(limit);
            }
        }
        limits
    }

    /// Whether any end of the path is gone.
    pub fn is_gone(&self) -> bool {
        self.hops.iter().any(|hop| hop.state() == LinkState::Gone)
    }

    /// Every port of the path, from the drive upwards.
    pub fn ports(&self) -> impl Iterator<Item = &PortEnd> {
        self.hops.iter().flat_map(|hop| core::iter::once(&hop.lower).chain(&hop.upper))
    }
}

/// The functions on the way from the root to a drive, from the names of its canonical directory.
struct Ancestry {
    /// Address and directory, the root's port first.
    functions: Vec<(PciAddress, PathBuf)>,
    /// The VMD device that the hierarchy hangs from.
    vmd: Option<PciAddress>,
}

impl Ancestry {
    fn of(canonical: &Path) -> Self {
        let mut ancestry = Self { functions: Vec::new(), vmd: None };
        let mut directory = PathBuf::new();
        for component in canonical.components() {
            directory.push(component);
            let name = component.as_os_str().to_string_lossy();
            if let Ok(address) = name.parse() {
                ancestry.functions.push((address, directory.clone()));
            } else if name.starts_with("pci") && !ancestry.functions.is_empty() {
                // A host bridge below a function: that function is a VMD, and the path to the root starts again.
                ancestry.vmd = ancestry.functions.last().map(|(address, _)| *address);
                ancestry.functions.clear();
            }
        }
        ancestry
    }
}

/// Whether the link of a port leads away from the root.
///
/// Where an ordinary user cannot read what kind of port it is, its place tells: from the root down, ports are root port,
/// upstream, downstream, upstream, downstream.
fn leads_down(port: &PortEnd, index: usize) -> bool {
    port.port_type.map_or(index.is_multiple_of(2), PortType::is_downstream)
}

/// Whether a function with nothing above it hangs from a port that is not shown, as virtual machines do it. At the top of
/// a complete path stands a root port.
fn hangs_from_a_hidden_port(end: &PortEnd, drive: PciAddress) -> bool {
    let looks_up = match end.port_type {
        Some(port_type) => !port_type.has_no_link() && !port_type.is_downstream(),
        None => end.address == drive,
    };
    looks_up && (end.width_able.is_some() || end.state == LinkState::Gone)
}

/// Every function below a directory that is neither a bridge nor the drive itself.
fn devices_below(sysfs: &Sysfs, directory: &Path, drive: PciAddress) -> Vec<PciAddress> {
    let mut found = Vec::new();
    let mut left = vec![directory.to_owned()];
    while let Some(directory) = left.pop() {
        for name in sysfs.names_or_none(&directory) {
            let Ok(address) = name.parse::<PciAddress>() else { continue };
            let below = directory.join(&name);
            let is_bridge = sysfs.number(below.join("class")).is_some_and(|class| class >> 8 == CLASS_BRIDGE);
            if is_bridge {
                left.push(below);
            } else if address != drive {
                found.push(address);
            }
        }
    }
    found.sort();
    found
}
