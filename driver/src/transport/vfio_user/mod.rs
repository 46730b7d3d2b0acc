//! The transport to a controller in another process, behind a vfio-user socket.
//!
//! Everything that is rare goes by message and waits for its reply: registers, configuration space, memory and interrupts
//! to be set up. What is on the hot path does not. Queues and data lie in memory that the server has mapped, and the
//! doorbells in a page of the server's that is mapped here; between them no message is sent at all. A server that does
//! not let its doorbells be mapped gets a message for each, which costs a round trip, and [`Transport::info`] says so.
//!
//! **The server is not trusted** more than a device is: replies are checked (`nvmetal-vfio-user-wire`, `connection`), a
//! mapping whose file shrinks reads all-ones instead of ending the process ([`crate::vfio::sigbus`]), and every wait ends.
//!
//! **After the end of a connection memory may be freed**, although the server may live on and have it mapped still: what
//! is freed here is this process's mapping. The pages belong to the memfd, and stay with it for as long as anybody has it,
//! so that a late write hits memory that nobody else can have been given. That differs from a device behind an IOMMU.
#![forbid(unsafe_code)]

mod connection;
#[cfg(all(test, feature = "emulated"))]
mod peer_tests;
#[cfg(test)]
mod tests;

use core::time::Duration;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use nvmetal_core::register::offset;
use nvmetal_vfio_user_wire::message::{
    DEVICE_PCI, DMA_READ, DMA_WRITE, DeviceInfo, DmaMap, DmaUnmap, IRQ_ACTION_TRIGGER, IRQ_DATA_EVENTFD, IRQ_EVENTFD,
    IRQ_MSI, IRQ_MSIX, IrqInfo, REGION_BAR0, REGION_CONFIG, RegionHead, SetIrqs,
};
use nvmetal_vfio_user_wire::region;
use nvmetal_vfio_user_wire::{Command, WireError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use zerocopy::IntoBytes;

use self::connection::{Connection, Failed};
use super::{
    CalledDoorbell, DoorbellKind, DoorbellTarget, HostRange, Interrupt, MappedDoorbell, Signals, Transport,
    TransportError, TransportInfo, TransportKind, Unmapped, Waiting,
};
use crate::clock::Clock;
use crate::vfio::capability::RegionInfo;
use crate::vfio::interrupt::{drain, new_event};
use crate::vfio::region::Region;
use crate::vfio::window::Window;

/// What a device is called whose socket is at the path that follows.
pub const PREFIX: &str = "vfio-user:";
/// A reply that takes longer does not come any more.
const REPLY_WITHIN: Duration = Duration::from_secs(10);
/// The socket in the directory that SPDK's target is given as its address.
const SOCKET_IN_DIRECTORY: &str = "cntrl";
/// Vendor and device of this project's emulator, which says of itself what it is wherever it is met.
const EMULATOR: (u16, u16) = (0x1b36, 0x4e56);

/// The room in which a region's description is asked for: the fixed part and a handful of areas.
const REGION_ARGSZ: u32 = 1024;
/// Bytes of PCI configuration space, at most.
const CONFIG_BYTES_MOST: u64 = 4096;
/// The command register in configuration space.
const COMMAND: u64 = 4;
const MEMORY_SPACE: u16 = 1 << 1;
const BUS_MASTER: u16 = 1 << 2;
const INTX_OFF: u16 = 1 << 10;

/// The first IOVA that is given out.
const FIRST_IOVA: u64 = 0x1_0000_0000;
/// Left free between two ranges, so that running over the end of one is a fault.
const GAP_BYTES: u64 = 0x1_0000;
/// IOVAs are multiples of this.
const IOVA_ALIGNMENT: u64 = 2 << 20;

/// The longest nap while a register is waited for.
const NAP_MOST: Duration = Duration::from_millis(1);
const SECOND_NS: u64 = 1_000_000_000;

/// A controller behind a socket.
#[derive(Debug)]
pub struct VfioUserTransport {
    info: TransportInfo,
    clock: Clock,
    connection: Arc<Connection>,
    /// Mapped parts of BAR0 behind the registers.
    windows: Vec<Arc<Window>>,
    config_bytes: u64,
    /// The kind of interrupt that there is.
    irq: Option<u32>,
    interrupts_enabled: AtomicBool,
    next_iova: Mutex<u64>,
}

/// What of a server's description is worth keeping.
struct Found {
    register_bytes: u64,
    windows: Vec<Arc<Window>>,
    config_bytes: u64,
    irq: Option<(u32, u16)>,
    pci_id: (u16, u16),
}

impl VfioUserTransport {
    /// Connects to the server at `path`: a socket, or a directory in which it is called `cntrl`.
    ///
    /// # Errors
    /// Nobody listens there; the server refuses, is silent for 10 s, or does not offer an NVMe controller's regions.
    pub fn open(path: &Path) -> Result<Arc<Self>, TransportError> {
        Self::open_within(path, REPLY_WITHIN)
    }

    /// The same, with another time within which each reply has to come.
    ///
    /// # Errors
    /// As [`VfioUserTransport::open`].
    pub fn open_within(path: &Path, reply_within: Duration) -> Result<Arc<Self>, TransportError> {
        let address = format!("{PREFIX}{}", path.display());
        let connection = Connection::open(&socket(path), &address, reply_within)?;
        let found = look_around(&connection).map_err(|failed| failed.error(&address))?;
        let unusable = |detail: &str| TransportError::Protocol { address: address.clone(), detail: detail.to_owned() };
        if found.register_bytes <= offset::DOORBELLS {
            return Err(unusable("the server's device has no NVMe registers in BAR0"));
        }
        let mapped = !found.windows.is_empty();
        Ok(Arc::new(Self {
            info: TransportInfo {
                kind: TransportKind::VfioUser,
                detail: if mapped { "doorbells mapped" } else { "doorbells by message" }.into(),
                register_bytes: found.register_bytes,
                vectors: found.irq.map_or(0, |(_, count)| count),
                pci_id: Some(found.pci_id),
                emulated: found.pci_id == EMULATOR,
                stepped: false,
                address,
            },
            clock: Clock::real(),
            connection: Arc::new(connection),
            windows: found.windows,
            config_bytes: found.config_bytes,
            irq: found.irq.map(|(index, _)| index),
            interrupts_enabled: AtomicBool::new(false),
            next_iova: Mutex::new(FIRST_IOVA),
        }))
    }

    fn check(&self, offset: u64, bytes: u64) -> Result<(), TransportError> {
        let inside = offset.checked_add(bytes).is_some_and(|end| end <= self.info.register_bytes);
        if inside && offset.is_multiple_of(bytes) {
            return Ok(());
        }
        Err(TransportError::OutOfRange {
            address: self.info.address.clone(),
            offset,
            bytes,
            register_bytes: self.info.register_bytes,
        })
    }

    fn failed(&self) -> impl FnOnce(Failed) -> TransportError {
        |failed| failed.error(&self.info.address)
    }

    fn map_error(&self, bytes: u64, detail: String) -> TransportError {
        TransportError::Map { address: self.info.address.clone(), bytes, detail }
    }

    fn read<const N: usize>(&self, offset: u64) -> Result<[u8; N], TransportError> {
        self.check(offset, N as u64)?;
        let mut bytes = [0; N];
        self.connection.read(REGION_BAR0, offset, &mut bytes).map_err(self.failed())?;
        Ok(bytes)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), TransportError> {
        self.check(offset, bytes.len() as u64)?;
        self.connection.write(REGION_BAR0, offset, bytes).map_err(self.failed())
    }

    fn set_irqs(&self, index: u32, start: usize, events: &[BorrowedFd<'_>]) -> Result<(), Failed> {
        let set = SetIrqs {
            argsz: (size_of::<SetIrqs>() as u32).into(),
            flags: (IRQ_DATA_EVENTFD | IRQ_ACTION_TRIGGER).into(),
            index: index.into(),
            start: (start as u32).into(),
            count: (events.len() as u32).into(),
        };
        self.connection.request(Command::DEVICE_SET_IRQS, &[set.as_bytes()], events).map(drop)
    }

    /// Sleeps until the eventfd is signalled, the server goes away, or the time has passed.
    fn sleep(&self, event: &OwnedFd, timeout_ns: u64) {
        let timeout = Timespec {
            tv_sec: i64::try_from(timeout_ns / SECOND_NS).unwrap_or(i64::MAX),
            tv_nsec: (timeout_ns % SECOND_NS).cast_signed(),
        };
        let mut both =
            [PollFd::new(event, PollFlags::IN), PollFd::from_borrowed_fd(self.connection.socket(), PollFlags::RDHUP)];
        if self.connection.is_over() {
            // Nobody signals any more; who waits asks for that when his time is up.
            crate::clock::sleep(Duration::from_nanos(timeout_ns).min(NAP_MOST));
            return;
        }
        // Interrupted by a signal: the caller looks at its queue and comes back.
        let _ = poll(&mut both, Some(&timeout));
        drain(event.as_fd());
    }
}

/// The socket that a path means.
fn socket(path: &Path) -> PathBuf {
    if path.is_dir() { path.join(SOCKET_IN_DIRECTORY) } else { path.to_owned() }
}

/// Asks what the device is.
fn look_around(connection: &Connection) -> Result<Found, Failed> {
    let asked = DeviceInfo { argsz: (size_of::<DeviceInfo>() as u32).into(), ..DeviceInfo::default() };
    let reply = connection.request(Command::DEVICE_GET_INFO, &[asked.as_bytes()], &[])?;
    let (device, _) = DeviceInfo::take(&reply.payload).map_err(|error| connection.nonsense(&error))?;
    if device.flags.get() & DEVICE_PCI == 0 || device.regions.get() <= REGION_CONFIG {
        let value = device.flags.get().into();
        return Err(connection.nonsense(&WireError::Impossible { what: "PCI device with flags", value }));
    }
    let (registers, file) = region_info(connection, REGION_BAR0)?;
    let windows = file.map(|file| windows(&registers, &file)).unwrap_or_default();
    let (config, _) = region_info(connection, REGION_CONFIG)?;
    let mut id = [0; 4];
    connection.read(REGION_CONFIG, 0, &mut id)?;
    let [vendor_low, vendor_high, device_low, device_high] = id;
    Ok(Found {
        register_bytes: registers.bytes,
        windows,
        config_bytes: config.bytes.min(CONFIG_BYTES_MOST),
        irq: irq(connection, device.irqs.get())?,
        pci_id: (u16::from_le_bytes([vendor_low, vendor_high]), u16::from_le_bytes([device_low, device_high])),
    })
}

fn region_info(connection: &Connection, index: u32) -> Result<(region::RegionInfo, Option<OwnedFd>), Failed> {
    let asked = RegionHead { argsz: REGION_ARGSZ.into(), index: index.into(), ..RegionHead::default() };
    let reply = connection.request(Command::DEVICE_GET_REGION_INFO, &[asked.as_bytes()], &[])?;
    let info = region::RegionInfo::decode(&reply.payload).map_err(|error| connection.nonsense(&error))?;
    if info.index != index {
        let value = info.index.into();
        return Err(connection.nonsense(&WireError::Impossible { what: "description of region", value }));
    }
    Ok((info, reply.files.into_iter().next()))
}

/// Maps what may be mapped of BAR0 behind the registers. Registers themselves always go by message: the server has to
/// hear of them.
fn windows(registers: &region::RegionInfo, file: &OwnedFd) -> Vec<Arc<Window>> {
    let sparse = registers.sparse.as_ref();
    let info = RegionInfo {
        flags: registers.flags,
        bytes: registers.bytes,
        file_offset: registers.file_offset,
        sparse: sparse.map(|areas| areas.iter().map(|area| (area.offset.get(), area.bytes.get())).collect()),
        msix_mappable: false,
    };
    let region = Region::new(&info, rustix::param::page_size() as u64, Vec::new());
    let doorbells = region.mappable.into_iter().filter_map(|area| {
        let area = area.start.max(offset::DOORBELLS)..area.end;
        (area.start < area.end && registers.file_offset.checked_add(area.end).is_some()).then_some(area)
    });
    let mapped = doorbells.filter_map(|area| match Window::map(file.as_fd(), registers.file_offset, area.clone()) {
        Ok(window) => Some(Arc::new(window)),
        Err(error) => {
            log::warn!("doorbells at {:#x} cannot be mapped, and go by message: {error}", area.start);
            None
        }
    });
    mapped.collect()
}

/// The best kind of interrupt, and how many vectors of it.
fn irq(connection: &Connection, kinds: u32) -> Result<Option<(u32, u16)>, Failed> {
    for index in [IRQ_MSIX, IRQ_MSI] {
        if index >= kinds {
            continue;
        }
        let asked = IrqInfo { argsz: (size_of::<IrqInfo>() as u32).into(), index: index.into(), ..IrqInfo::default() };
        let reply = connection.request(Command::DEVICE_GET_IRQ_INFO, &[asked.as_bytes()], &[])?;
        let (info, _) = IrqInfo::take(&reply.payload).map_err(|error| connection.nonsense(&error))?;
        if info.count.get() > 0 && info.flags.get() & IRQ_EVENTFD != 0 {
            return Ok(Some((index, u16::try_from(info.count.get()).unwrap_or(u16::MAX))));
        }
    }
    Ok(None)
}

impl Transport for VfioUserTransport {
    fn info(&self) -> &TransportInfo {
        &self.info
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }

    fn idle(&self, until_ns: u64, waiting: Waiting<'_>) {
        let left_ns = || until_ns.saturating_sub(self.clock.now_ns());
        match waiting {
            Waiting::Interrupt(Interrupt { event: Some(event), .. }) => match left_ns() {
                0 => {}
                left_ns => self.sleep(event, left_ns),
            },
            Waiting::Register => crate::clock::sleep(Duration::from_nanos(left_ns()).min(NAP_MOST)),
            Waiting::Interrupt(Interrupt { event: None, .. }) | Waiting::Polling => core::hint::spin_loop(),
        }
    }

    fn read32(&self, offset: u64) -> Result<u32, TransportError> {
        self.read(offset).map(u32::from_le_bytes)
    }

    fn write32(&self, offset: u64, value: u32) -> Result<(), TransportError> {
        self.write(offset, &value.to_le_bytes())
    }

    fn read64(&self, offset: u64) -> Result<u64, TransportError> {
        self.read(offset).map(u64::from_le_bytes)
    }

    fn write64(&self, offset: u64, value: u64) -> Result<(), TransportError> {
        self.write(offset, &value.to_le_bytes())
    }

    fn doorbell(&self, offset: u64) -> Result<DoorbellKind, TransportError> {
        self.check(offset, 4)?;
        let mapped = self.windows.iter().find_map(|window| Some((window.doorbell(offset)?, Arc::clone(window))));
        if let Some((register, window)) = mapped {
            return Ok(DoorbellKind::Mapped(MappedDoorbell::new(register, window)));
        }
        let target: Arc<dyn DoorbellTarget> = Arc::new(MessageDoorbells { connection: Arc::clone(&self.connection) });
        Ok(DoorbellKind::Called(CalledDoorbell::new(target, offset)))
    }

    fn map(&self, memory: HostRange<'_>) -> Result<u64, TransportError> {
        let bytes = memory.bytes as u64;
        let (file, file_offset) = memory
            .file
            .ok_or_else(|| self.map_error(bytes, "another process reaches only memory that has a file".into()))?;
        let mut next = self.next_iova.lock().unwrap_or_else(PoisonError::into_inner);
        let iova = *next;
        let map = DmaMap {
            argsz: (size_of::<DmaMap>() as u32).into(),
            flags: (DMA_READ | DMA_WRITE).into(),
            file_offset: file_offset.into(),
            iova: iova.into(),
            bytes: bytes.into(),
        };
        match self.connection.request(Command::DMA_MAP, &[map.as_bytes()], &[file]) {
            Ok(_) => {}
            Err(Failed::Refused(_, errno)) => return Err(self.map_error(bytes, format!("the server says: {errno}"))),
            Err(Failed::Over(error)) => return Err(error),
        }
        *next = iova.saturating_add(bytes).saturating_add(GAP_BYTES).next_multiple_of(IOVA_ALIGNMENT);
        Ok(iova)
    }

    fn unmap(&self, iova: u64, bytes: u64) -> Result<Unmapped, TransportError> {
        let unmap = DmaUnmap {
            argsz: (size_of::<DmaUnmap>() as u32).into(),
            flags: 0.into(),
            iova: iova.into(),
            bytes: bytes.into(),
        };
        match self.connection.request(Command::DMA_UNMAP, &[unmap.as_bytes()], &[]) {
            // After the reply the server does not reach it; after the connection's end see the module.
            Ok(_) | Err(Failed::Over(_)) => Ok(Unmapped::Quiet),
            Err(refused) => Err(refused.error(&self.info.address)),
        }
    }

    fn enable_interrupts(&self, count: u16) -> Result<Vec<Interrupt>, TransportError> {
        let unsupported = |what| TransportError::Unsupported { address: self.info.address.clone(), what };
        let index = self.irq.filter(|_| count <= self.info.vectors).ok_or_else(|| unsupported("an interrupt"))?;
        if self.interrupts_enabled.swap(true, Ordering::Relaxed) {
            return Err(unsupported("setting up interrupts a second time"));
        }
        let events = (0..count).map(|_| new_event().map(Arc::new)).collect::<std::io::Result<Vec<_>>>();
        let events = events.map_err(|source| TransportError::System {
            address: self.info.address.clone(),
            what: "making an eventfd".into(),
            source,
        })?;
        let borrowed: Vec<BorrowedFd<'_>> = events.iter().map(|event| event.as_fd()).collect();
        let at_once = self.connection.files_most();
        for (number, some) in borrowed.chunks(at_once).enumerate() {
            self.set_irqs(index, number * at_once, some).map_err(self.failed())?;
        }
        let interrupts = events.into_iter().zip(0..);
        Ok(interrupts.map(|(event, vector)| Interrupt { vector, event: Some(event) }).collect())
    }

    fn set_bus_master(&self, on: bool) -> Result<(), TransportError> {
        let mut raw = [0; 2];
        self.connection.read(REGION_CONFIG, COMMAND, &mut raw).map_err(self.failed())?;
        let now = u16::from_le_bytes(raw);
        let wanted = if on { now | BUS_MASTER | MEMORY_SPACE | INTX_OFF } else { now & !BUS_MASTER };
        if wanted == now || now == u16::MAX {
            return Ok(());
        }
        self.connection.write(REGION_CONFIG, COMMAND, &wanted.to_le_bytes()).map_err(self.failed())
    }

    fn reset(&self) -> Result<(), TransportError> {
        self.connection.request(Command::DEVICE_RESET, &[], &[]).map(drop).map_err(self.failed())
    }

    fn read_config(&self, offset: u16, into: &mut [u8]) -> Result<usize, TransportError> {
        let left = self.config_bytes.saturating_sub(offset.into());
        let bytes = into.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let mut at = u64::from(offset);
        let whole = into.get_mut(..bytes).unwrap_or_default();
        for part in whole.chunks_mut(self.connection.data_bytes_most() as usize) {
            self.connection.read(REGION_CONFIG, at, part).map_err(self.failed())?;
            at += part.len() as u64;
        }
        Ok(bytes)
    }

    fn signals(&self) -> Signals {
        let lost = self.connection.is_over() || self.windows.iter().any(|window| window.is_lost());
        Signals { lost, ..Signals::default() }
    }
}

/// Doorbells that are not mapped.
#[derive(Debug)]
struct MessageDoorbells {
    connection: Arc<Connection>,
}

impl DoorbellTarget for MessageDoorbells {
    fn write_doorbell(&self, offset: u64, value: u32) {
        // A doorbell has no answer; a server that is gone shows at the next register or deadline.
        if let Err(failed) = self.connection.write(REGION_BAR0, offset, &value.to_le_bytes()) {
            log::debug!("doorbell at {offset:#x}: {failed:?}");
        }
    }
}
