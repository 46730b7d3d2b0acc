//! A drive that stays the kernel's while it is looked at.
//!
//! Nothing is bound or unbound here, and nothing is opened for writing: admin commands of the kinds that only read go
//! through the controller's node, reads through the block device past the page cache, and the links come from sysfs. A
//! mounted file system notes nothing but the load.
#![forbid(unsafe_code)]

use std::sync::OnceLock;

use nvmetal_driver::clock::Clock;
use nvmetal_driver::kernel::{BlockFacts, EngineChoice, KernelController, NOT_JUDGED, run};
use nvmetal_driver::pci::enumerate::NvmeFunction;
use nvmetal_driver::pci::link::{LinkErrors, LinkPath};
use nvmetal_driver::pci::{PciAddress, Sysfs};
use nvmetal_driver::transport::{TransportInfo, TransportKind};
use nvmetal_driver::workload::{Job, Observer, RunResult};
use nvmetal_driver::{DriverError, Namespace};
use serde_json::{Value, json};

use crate::error::{Error, Result};

/// See the [module](self).
#[derive(Debug)]
pub struct KernelDrive {
    /// Takes admin commands.
    pub controller: KernelController,
    /// What stands in place of a transport.
    pub info: TransportInfo,
    /// Real time.
    pub clock: Clock,
    sysfs: Sysfs,
    /// Why not our own driver; `None` where the kernel's was asked for.
    why: Option<String>,
    /// The block device and how it was read, once something was.
    reads: OnceLock<Reads>,
}

#[derive(Debug)]
struct Reads {
    engine: String,
    block: Option<BlockFacts>,
}

impl KernelDrive {
    /// Opens the drive at `address`, which the kernel's driver holds.
    pub fn open(sysfs: &Sysfs, address: PciAddress, why: Option<String>) -> Result<Self> {
        let controller = KernelController::open(sysfs, address).map_err(Error::from)?;
        let function = NvmeFunction::read(sysfs, address);
        let info = TransportInfo {
            kind: TransportKind::Kernel,
            address: address.to_string(),
            detail: controller.name().to_owned(),
            register_bytes: 0,
            vectors: 0,
            pci_id: function.map(|function| (function.vendor, function.device)),
            emulated: false,
            stepped: false,
        };
        let clock = Clock::real();
        Ok(Self { controller, info, clock, sysfs: sysfs.clone(), why, reads: OnceLock::new() })
    }

    /// The links between the drive and the root, as they are now.
    pub fn link_path(&self) -> Option<LinkPath> {
        LinkPath::read(&self.sysfs, self.controller.pci_address()).ok()
    }

    /// What the ports of a path have counted so far.
    pub fn link_errors(&self, path: &LinkPath) -> LinkErrors {
        LinkErrors::read(&self.sysfs, path)
    }

    /// Reads from the namespace's block device.
    pub fn run(&self, namespace: Namespace, job: &Job, observer: &mut dyn Observer) -> Result<RunResult, DriverError> {
        let target = self.controller.block(namespace.nsid, None)?;
        let done = run(&target, job, EngineChoice::Auto, observer)?;
        self.reads.get_or_init(|| Reads { engine: done.engine.to_string(), block: target.facts().cloned() });
        Ok(done.result)
    }

    /// How the kernel has the drive, in a few words: `nvme0, live, 3 queues, scheduler none`.
    pub fn standing(&self) -> String {
        let facts = self.controller.facts();
        let mut parts = vec![facts.name];
        parts.extend(facts.state);
        // The admin queue is one of them.
        parts.extend(facts.queues.map(|queues| format!("{} I/O queues", queues.saturating_sub(1))));
        if let Some(reads) = self.reads.get() {
            let scheduler = reads.block.as_ref().and_then(|block| block.scheduler.clone());
            parts.extend(scheduler.map(|scheduler| format!("scheduler {scheduler}")));
            parts.push(reads.engine.clone());
        }
        parts.join(", ")
    }

    /// The same for programs, with why it was this way and what is not judged by it.
    pub fn to_json(&self) -> Value {
        let reads = self.reads.get();
        json!({
            "why": self.why,
            "controller": self.controller.facts(),
            "block": reads.and_then(|reads| reads.block.as_ref()),
            "engine": reads.map(|reads| &reads.engine),
            "not_judged": NOT_JUDGED,
        })
    }
}
