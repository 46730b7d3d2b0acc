//! Holding a drive so that nobody else can start to use it.
#![forbid(unsafe_code)]

use core::fmt;
use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

use super::{Doubt, Layer, Survey, Usage, UseChain, User};
use crate::pci::PciAddress;
use crate::pci::enumerate::{KernelController, KernelNamespace, NvmeFunction};
use crate::pci::host::ExclusiveOpen;
use crate::pci::sysfs::{Sysfs, is_gone};

/// How often udev is given time to let go of a drive that it is looking at.
const UDEV_TRIES: usize = 20;
/// How long each time.
const UDEV_PAUSE: Duration = Duration::from_millis(100);

/// A drive that nobody uses, held: every namespace is open exclusively until this is dropped.
///
/// Keep it until the kernel's driver has let go of the drive; then it holds nothing any more.
#[derive(Debug)]
#[must_use = "the drive is held only as long as this lives"]
pub struct Claim {
    held: Vec<ExclusiveOpen>,
}

/// A drive that is in use, or may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InUse {
    /// The drive.
    pub address: PciAddress,
    /// Who uses it, and what is in doubt.
    pub usage: Usage,
}

impl core::error::Error for InUse {}

impl fmt::Display for InUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.usage.chains.is_empty() {
            write!(f, "{}: whether the drive is in use cannot be told", self.address)?;
        } else {
            write!(f, "{} is in use", self.address)?;
        }
        let mut separator = ": ";
        for chain in &self.usage.chains {
            write!(f, "{separator}{chain}")?;
            separator = "; ";
        }
        for doubt in &self.usage.doubts {
            write!(f, "{separator}{doubt}")?;
            separator = "; ";
        }
        Ok(())
    }
}

impl Claim {
    /// Takes hold of a drive, or says who uses it.
    ///
    /// A drive without a kernel controller is not held by anything here and needs no hold.
    pub fn take(sysfs: &Sysfs, function: &NvmeFunction) -> Result<Self, InUse> {
        let Some(controller) = &function.controller else { return Ok(Self { held: Vec::new() }) };
        let mut tries = UDEV_TRIES;
        loop {
            let usage = match Self::attempt(sysfs, controller) {
                Ok(claim) => return Ok(claim),
                Err(usage) => usage,
            };
            // udev looks into every disk that appears, and is done in a moment.
            if tries == 0 || !is_only_udev(&usage) {
                return Err(InUse { address: function.address, usage });
            }
            tries -= 1;
            sysfs.actions().pause(UDEV_PAUSE);
        }
    }

    /// How many namespaces are held.
    pub fn namespaces(&self) -> usize {
        self.held.len()
    }

    fn attempt(sysfs: &Sysfs, controller: &KernelController) -> Result<Self, Usage> {
        let mut claim = Self { held: Vec::new() };
        let mut doubts = Vec::new();
        let mut busy = Vec::new();
        // First hold, then look: what is found free afterwards cannot be claimed any more.
        for namespace in &controller.namespaces {
            match open(sysfs, &namespace.name) {
                Ok(open) => claim.held.push(open),
                Err(Opening::Busy) => busy.push(namespace),
                Err(Opening::Doubt(doubt)) => doubts.push(doubt),
            }
        }
        let own: Vec<_> = claim.held.iter().map(|open| open.file.as_raw_fd()).collect();
        let mut usage = Survey::new(sysfs, controller, &own).run();
        for doubt in doubts {
            usage.doubt(doubt);
        }
        for namespace in busy {
            let is_named = usage.chains.iter().any(|chain| is_claim_on(chain, &namespace.name));
            if !is_named {
                for chain in unnamed_claims(sysfs, namespace) {
                    usage.add(chain);
                }
            }
        }
        if usage.is_free() { Ok(claim) } else { Err(usage) }
    }
}

enum Opening {
    Busy,
    Doubt(Doubt),
}

/// Opens a block device exclusively and makes sure that it is the one that sysfs names.
fn open(sysfs: &Sysfs, name: &str) -> Result<ExclusiveOpen, Opening> {
    let node = sysfs.dev(name);
    let expected = sysfs.attribute(sysfs.sys("class/block").join(name).join("dev"));
    match sysfs.actions().open_exclusive(&node) {
        Ok(open) if expected.is_some_and(|number| number == open.device.to_string()) => Ok(open),
        Ok(_) => Err(Opening::Doubt(Doubt::WrongNode { node })),
        Err(error) if rustix::io::Errno::from_io_error(&error) == Some(rustix::io::Errno::BUSY) => Err(Opening::Busy),
        Err(error) => {
            let permission = error.kind() == io::ErrorKind::PermissionDenied;
            let text = if is_gone(&error) { "there is no such node".to_owned() } else { error.to_string() };
            Err(Opening::Doubt(Doubt::NotOpened { node, error: text, permission }))
        }
    }
}

/// Whether a chain explains why a namespace cannot be opened exclusively: a descriptor of a process does not.
fn is_claim_on(chain: &UseChain, namespace: &str) -> bool {
    let starts_here = matches!(chain.layers.first(), Some(Layer::Namespace { name, .. }) if name == namespace);
    starts_here && !matches!(chain.user, Some(User::Handle { .. } | User::Loop { .. } | User::NvmetNamespace { .. }))
}

/// The uses of a namespace that is claimed without anything naming the user: by partition, if that can be told.
fn unnamed_claims(sysfs: &Sysfs, namespace: &KernelNamespace) -> Vec<UseChain> {
    let base = vec![Layer::Namespace { name: namespace.name.clone(), nsid: namespace.nsid }];
    let unnamed = |layers| UseChain { layers, user: Some(User::Unnamed) };
    let directory = sysfs.sys("class/block").join(&namespace.name);
    let partitions: Vec<_> = sysfs
        .names_or_none(&directory)
        .into_iter()
        .filter_map(|entry| Some((sysfs.number(directory.join(&entry).join("partition"))?, entry)))
        .collect();
    let claimed: Vec<_> =
        partitions.iter().filter(|(_, name)| matches!(open(sysfs, name), Err(Opening::Busy))).collect();
    // When the whole disk is claimed, every partition answers EBUSY, too: then they say nothing.
    if claimed.is_empty() || claimed.len() == partitions.len() {
        return vec![unnamed(base)];
    }
    let chain = |(number, name): &(u64, String)| {
        let mut layers = base.clone();
        layers.push(Layer::Partition { number: *number, name: name.clone() });
        unnamed(layers)
    };
    claimed.into_iter().map(chain).collect()
}

fn is_only_udev(usage: &Usage) -> bool {
    let is_udev = |chain: &UseChain| matches!(&chain.user, Some(User::Handle { process, .. }) if process.command.contains("udev"));
    usage.doubts.is_empty() && !usage.chains.is_empty() && usage.chains.iter().all(is_udev)
}
