//! The one seam between the driver and a device.
//!
//! Everything above it (controller, queues, workloads) is the same for a drive behind VFIO, a controller in another
//! process behind a vfio-user socket, and the emulator in this process. Everything below it is what those differ in:
//! registers, doorbells, memory that the device may reach, interrupts, reset, **the clock, and what to do while nothing
//! happens**. That last pair is what lets an emulated run live in virtual time: the driver never sleeps, it calls
//! [`Transport::idle`] when a poll found nothing, and the emulator moves its clock there.
//!
//! The trait is used through `Arc<dyn Transport>`, for nothing in it is on the hot path except ringing a doorbell. A
//! doorbell is therefore handed out once, as one of two concrete kinds ([`DoorbellKind`]), and a queue pair is compiled
//! for each.
#![deny(unsafe_code)]

#[cfg(feature = "emulated")]
pub mod emulated;
pub mod traced;
pub mod vfio;
pub mod vfio_user;

use core::fmt;
use core::ops::Range;
use core::ptr::NonNull;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use nvmetal_core::command::SubmissionEntry;
use nvmetal_core::queue::RawCompletion;
use nvmetal_core::queue::doorbell::{Doorbell, Mapped};

use crate::clock::Clock;
use crate::dma::DeviceMapping;

/// Which kind of path leads to the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TransportKind {
    /// A PCI function behind VFIO.
    Vfio,
    /// A controller in another process, over a vfio-user socket.
    VfioUser,
    /// The emulator in this process.
    Emulated,
    /// No transport of ours: the kernel's own driver, which keeps the drive ([`crate::kernel`]).
    Kernel,
}

impl fmt::Display for TransportKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Vfio => "VFIO",
            Self::VfioUser => "vfio-user",
            Self::Emulated => "emulator",
            Self::Kernel => "kernel",
        })
    }
}

/// What a transport knows of the device before a command has been sent.
#[derive(Debug, Clone)]
pub struct TransportInfo {
    /// The path.
    pub kind: TransportKind,
    /// How the device is called in messages and results: a PCI address, a socket's path, or `emulated:MODEL`.
    pub address: String,
    /// Details worth recording: `iommufd`, `type1`, `stepped`, `threaded`.
    pub detail: String,
    /// Bytes of BAR0 that can be reached.
    pub register_bytes: u64,
    /// Interrupt vectors that the device offers; 0 where there are none.
    pub vectors: u16,
    /// PCI vendor and device id, where the path has them.
    pub pci_id: Option<(u16, u16)>,
    /// Whether every run on this transport has to be marked as emulated.
    pub emulated: bool,
    /// Whether one thread must run all queues, because time only moves when all of them are idle.
    pub stepped: bool,
}

/// What went wrong on the way to the device, as opposed to what the device answered.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// The device does not answer any more: reads give all-ones, the mapping faults, or the peer is gone.
    #[error("{address}: device lost ({detail})")]
    Lost {
        /// The device.
        address: String,
        /// What was seen.
        detail: String,
    },
    /// A register access outside the mapped or permitted part of BAR0.
    #[error("{address}: register offset {offset:#x} (+{bytes}) is outside the {register_bytes:#x} bytes of BAR0")]
    OutOfRange {
        /// The device.
        address: String,
        /// The offset asked for.
        offset: u64,
        /// The length asked for.
        bytes: u64,
        /// What there is.
        register_bytes: u64,
    },
    /// The transport has no such ability (interrupts, function reset, ...).
    #[error("{address}: {what} is not available on this transport")]
    Unsupported {
        /// The device.
        address: String,
        /// What was asked.
        what: &'static str,
    },
    /// Memory could not be made reachable for the device.
    #[error("{address}: cannot map {bytes} bytes for the device: {detail}")]
    Map {
        /// The device.
        address: String,
        /// The length asked for.
        bytes: u64,
        /// Why, and what to do.
        detail: String,
    },
    /// A system call failed.
    #[error("{address}: {what}: {source}")]
    System {
        /// The device.
        address: String,
        /// What was tried, with the path or ioctl's name.
        what: String,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A peer broke its protocol; what it says from then on means nothing, so it counts as lost.
    #[error("{address}: {detail}")]
    Protocol {
        /// The device.
        address: String,
        /// What it did.
        detail: String,
    },
}

/// Memory of this process that is offered to the device: a shared file mapping, so that every kind of transport can
/// reach it.
#[derive(Debug, Clone, Copy)]
pub struct HostRange<'a> {
    /// Where it is mapped in this process. Page aligned.
    pub pointer: NonNull<u8>,
    /// Its length; a multiple of the page size.
    pub bytes: usize,
    /// The file behind it (a memfd) and the offset of this range in it, for peers in other processes.
    pub file: Option<(BorrowedFd<'a>, u64)>,
}

/// What a transport can promise after an unmap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Unmapped {
    /// The device cannot reach the memory any more; it may be freed.
    Quiet,
    /// Nothing stops the device from writing there; the memory has to stay.
    MayBeWritten,
}

/// An interrupt vector that can be waited for: an eventfd, or the emulator's.
#[derive(Debug, Clone)]
pub struct Interrupt {
    /// The vector's number.
    pub vector: u16,
    /// The eventfd that the vector signals; `None` on a stepped emulator, whose `idle` knows without one.
    pub event: Option<Arc<std::os::fd::OwnedFd>>,
}

/// How the caller of [`Transport::idle`] is waiting.
#[derive(Debug, Clone, Copy)]
pub enum Waiting<'a> {
    /// It polls: come back at once, or after a short spin.
    Polling,
    /// It sleeps until the interrupt comes (or the deadline).
    Interrupt(&'a Interrupt),
    /// It waits for a register to change, which takes milliseconds and announces itself to nobody: sleep until then.
    Register,
}

/// What asynchronous signals a transport has seen (beyond the device's own registers).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Signals {
    /// Somebody asked for the device back (removal request, unbind).
    pub release_requested: bool,
    /// The PCI error handling reported a fatal error.
    pub error: bool,
    /// A register or doorbell access faulted or the peer went away: the device is gone.
    pub lost: bool,
}

/// A device's registers, doorbells, memory, interrupts, reset and time.
pub trait Transport: Send + Sync + fmt::Debug {
    /// What it is and where it leads.
    fn info(&self) -> &TransportInfo;

    /// The clock that all deadlines and latencies of this device use.
    fn clock(&self) -> &Clock;

    /// Called when a poll found nothing; returns by `until_ns` of [`Transport::clock`] at the latest (a real transport
    /// may return much sooner). VFIO: a spin hint, or a sleep on the eventfd. Stepped emulator: runs the controller to
    /// its next event and moves the clock.
    fn idle(&self, until_ns: u64, waiting: Waiting<'_>);

    /// Reads a 32-bit register.
    fn read32(&self, offset: u64) -> Result<u32, TransportError>;

    /// Writes a 32-bit register.
    fn write32(&self, offset: u64, value: u32) -> Result<(), TransportError>;

    /// Reads a 64-bit register, in one access where the path can.
    fn read64(&self, offset: u64) -> Result<u64, TransportError>;

    /// Writes a 64-bit register, in one access where the path can.
    fn write64(&self, offset: u64, value: u64) -> Result<(), TransportError>;

    /// The doorbell at `offset` of BAR0.
    fn doorbell(&self, offset: u64) -> Result<DoorbellKind, TransportError>;

    /// Makes `memory` reachable for the device, both ways, and gives the address at which the device sees it.
    ///
    /// The memory must stay mapped until [`Transport::unmap`] has returned [`Unmapped::Quiet`] or this transport is gone;
    /// `crate::dma::DmaMemory` is the owner that sees to it.
    fn map(&self, memory: HostRange<'_>) -> Result<u64, TransportError>;

    /// Whether memory has to be made of huge pages, because ordinary ones may move and nothing translates addresses.
    fn needs_huge_pages(&self) -> bool {
        false
    }

    /// Takes a range back from the device. `iova` and `bytes` are those of one [`Transport::map`].
    fn unmap(&self, iova: u64, bytes: u64) -> Result<Unmapped, TransportError>;

    /// Sets up `count` interrupt vectors, all at once; to be called before a queue exists, and once.
    fn enable_interrupts(&self, count: u16) -> Result<Vec<Interrupt>, TransportError>;

    /// Maps a part of a BAR as memory: the controller memory buffer.
    fn map_bar(&self, _bar: u8, _part: Range<u64>) -> Result<DeviceMapping, TransportError> {
        Err(TransportError::Unsupported {
            address: self.info().address.clone(),
            what: "memory of the controller's own",
        })
    }

    /// Lets the device start transfers of its own, or stops it.
    fn set_bus_master(&self, on: bool) -> Result<(), TransportError>;

    /// Resets the function. `Ok` means that the device has forgotten its queues.
    fn reset(&self) -> Result<(), TransportError>;

    /// Reads PCI configuration space from `offset`; as many bytes as there are, possibly none.
    fn read_config(&self, offset: u16, into: &mut [u8]) -> Result<usize, TransportError>;

    /// The configuration spaces on the way from the drive (first) to the root port (last), with the name of each function,
    /// where only the transport knows them. Empty where sysfs has them, as it does for VFIO.
    fn path_config(&self) -> Vec<(String, Vec<u8>)> {
        Vec::new()
    }

    /// What arrived besides registers and completions.
    fn signals(&self) -> Signals {
        Signals::default()
    }
}

/// A doorbell, of one of the two kinds that queue pairs are compiled for.
#[derive(Debug)]
pub enum DoorbellKind {
    /// A mapped register.
    Mapped(MappedDoorbell),
    /// A function to be called.
    Called(CalledDoorbell),
}

/// A mapped doorbell register together with what keeps it mapped.
#[derive(Debug, Clone)]
pub struct MappedDoorbell {
    register: Mapped,
    /// Only held: the register goes when the last of these goes.
    _mapping: Arc<dyn fmt::Debug + Send + Sync>,
}

impl MappedDoorbell {
    /// `register` lies in the mapping that `mapping` keeps alive.
    pub fn new(register: Mapped, mapping: Arc<dyn fmt::Debug + Send + Sync>) -> Self {
        Self { register, _mapping: mapping }
    }
}

impl Doorbell for MappedDoorbell {
    #[inline(always)]
    fn ring(&self, value: u32) {
        self.register.ring(value);
    }
}

/// The receiving end of a [`CalledDoorbell`].
pub trait DoorbellTarget: Send + Sync + fmt::Debug {
    /// `value` was written to the doorbell at `offset` of BAR0.
    fn write_doorbell(&self, offset: u64, value: u32);

    /// Whether it wants to see what goes through the queues, by the two methods below.
    fn watches(&self) -> bool {
        false
    }

    /// `entry` is in the submission queue whose doorbell at `offset` is about to be rung.
    fn submitted(&self, offset: u64, entry: &SubmissionEntry) {
        let _ = (offset, entry);
    }

    /// `completion` is new in the completion queue whose doorbell is at `offset`.
    fn completed(&self, offset: u64, completion: RawCompletion) {
        let _ = (offset, completion);
    }
}

/// A doorbell that is a call.
#[derive(Debug, Clone)]
pub struct CalledDoorbell {
    target: Arc<dyn DoorbellTarget>,
    offset: u64,
    /// Asked once: what nobody watches costs a queue next to nothing.
    watched: bool,
}

impl CalledDoorbell {
    /// A doorbell at `offset` whose writes go to `target`.
    pub fn new(target: Arc<dyn DoorbellTarget>, offset: u64) -> Self {
        let watched = target.watches();
        Self { target, offset, watched }
    }
}

impl Doorbell for CalledDoorbell {
    const WATCHES: bool = true;

    #[inline]
    fn watches(&self) -> bool {
        self.watched
    }

    fn ring(&self, value: u32) {
        self.target.write_doorbell(self.offset, value);
    }

    fn submitted(&self, entry: &SubmissionEntry) {
        self.target.submitted(self.offset, entry);
    }

    fn completed(&self, completion: RawCompletion) {
        self.target.completed(self.offset, completion);
    }
}

impl Doorbell for DoorbellKind {
    const WATCHES: bool = true;

    fn watches(&self) -> bool {
        matches!(self, Self::Called(doorbell) if doorbell.watches())
    }

    fn ring(&self, value: u32) {
        match self {
            Self::Mapped(doorbell) => doorbell.ring(value),
            Self::Called(doorbell) => doorbell.ring(value),
        }
    }

    fn submitted(&self, entry: &SubmissionEntry) {
        if let Self::Called(doorbell) = self {
            doorbell.submitted(entry);
        }
    }

    fn completed(&self, completion: RawCompletion) {
        if let Self::Called(doorbell) = self {
            doorbell.completed(completion);
        }
    }
}
