//! The transport to a drive behind VFIO.
//!
//! Registers are loads and stores to the mapped BAR where it is mapped, and reads and writes of the device's file where
//! it is not. Doorbells are mapped registers, except on a BAR whose doorbells may not be mapped. Time is real.
//!
//! A device that is gone reads as all-ones here, as it does on the bus: what that means is for the layers above, which
//! check every register for it. Only [`Transport::signals`] tells that a fault was the reason.
#![forbid(unsafe_code)]

use core::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::io::Errno;

use super::{
    CalledDoorbell, DoorbellKind, DoorbellTarget, HostRange, Interrupt, MappedDoorbell, Signals, Transport,
    TransportError, TransportInfo, TransportKind, Unmapped, Waiting,
};
use crate::clock::Clock;
use crate::dma::DeviceMapping;
use crate::pci::PciAddress;
use crate::vfio::{IommuKind, VfioDevice, VfioError, VfioOptions};

/// A drive behind VFIO.
#[derive(Debug)]
pub struct VfioTransport {
    info: TransportInfo,
    clock: Clock,
    device: Arc<VfioDevice>,
    split_registers: bool,
    interrupts_enabled: AtomicBool,
}

impl VfioTransport {
    /// Opens the function at `address`, which has to be bound to vfio-pci.
    pub fn open(address: PciAddress, options: &VfioOptions) -> Result<Self, VfioError> {
        let device = VfioDevice::open(address, options)?;
        let info = TransportInfo {
            kind: TransportKind::Vfio,
            address: device.address().to_string(),
            detail: device.space().kind().to_string(),
            register_bytes: device.registers().bytes,
            vectors: device.interrupts().map_or(0, |(_, count)| count),
            pci_id: Some(device.pci_id()),
            emulated: false,
            stepped: false,
        };
        Ok(Self {
            info,
            clock: Clock::real(),
            device: Arc::new(device),
            split_registers: options.split_registers,
            interrupts_enabled: AtomicBool::new(false),
        })
    }

    /// The function itself.
    pub fn device(&self) -> &VfioDevice {
        &self.device
    }

    fn check(&self, offset: u64, bytes: u64) -> Result<(), TransportError> {
        if self.device.registers().allows(offset, bytes) && offset.is_multiple_of(bytes) {
            return Ok(());
        }
        Err(TransportError::OutOfRange {
            address: self.info.address.clone(),
            offset,
            bytes,
            register_bytes: self.info.register_bytes,
        })
    }

    fn system(&self, what: impl Into<String>) -> impl FnOnce(Errno) -> TransportError {
        let (address, what) = (self.info.address.clone(), what.into());
        move |errno| TransportError::System { address, what, source: errno.into() }
    }

    fn unsupported(&self, what: &'static str) -> TransportError {
        TransportError::Unsupported { address: self.info.address.clone(), what }
    }
}

impl Transport for VfioTransport {
    fn info(&self) -> &TransportInfo {
        &self.info
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }

    fn idle(&self, until_ns: u64, waiting: Waiting<'_>) {
        match waiting {
            Waiting::Interrupt(Interrupt { event: Some(event), .. }) => {
                let now_ns = self.clock.now_ns();
                if now_ns < until_ns {
                    self.device.wait(event, until_ns - now_ns);
                }
            }
            Waiting::Register => {
                crate::clock::sleep(Duration::from_nanos(until_ns.saturating_sub(self.clock.now_ns())));
            }
            Waiting::Interrupt(Interrupt { event: None, .. }) | Waiting::Polling => core::hint::spin_loop(),
        }
    }

    fn read32(&self, offset: u64) -> Result<u32, TransportError> {
        self.check(offset, 4)?;
        if let Some(value) = self.device.window(offset, 4).and_then(|window| window.read32(offset)) {
            return Ok(value);
        }
        let bytes = self.device.read_unmapped(offset).map_err(self.system("reading a register"))?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn write32(&self, offset: u64, value: u32) -> Result<(), TransportError> {
        self.check(offset, 4)?;
        if self.device.window(offset, 4).and_then(|window| window.write32(offset, value)).is_some() {
            return Ok(());
        }
        self.device.write_unmapped(offset, &value.to_le_bytes()).map_err(self.system("writing a register"))
    }

    fn read64(&self, offset: u64) -> Result<u64, TransportError> {
        self.check(offset, 8)?;
        if self.split_registers {
            let low = self.read32(offset)?;
            return Ok(u64::from(self.read32(offset + 4)?) << 32 | u64::from(low));
        }
        if let Some(value) = self.device.window(offset, 8).and_then(|window| window.read64(offset)) {
            return Ok(value);
        }
        let bytes = self.device.read_unmapped(offset).map_err(self.system("reading a register"))?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn write64(&self, offset: u64, value: u64) -> Result<(), TransportError> {
        self.check(offset, 8)?;
        if self.split_registers {
            self.write32(offset, value as u32)?;
            return self.write32(offset + 4, (value >> 32) as u32);
        }
        if self.device.window(offset, 8).and_then(|window| window.write64(offset, value)).is_some() {
            return Ok(());
        }
        self.device.write_unmapped(offset, &value.to_le_bytes()).map_err(self.system("writing a register"))
    }

    fn doorbell(&self, offset: u64) -> Result<DoorbellKind, TransportError> {
        self.check(offset, 4)?;
        if let Some(window) = self.device.window(offset, 4)
            && let Some(register) = window.doorbell(offset)
        {
            return Ok(DoorbellKind::Mapped(MappedDoorbell::new(register, Arc::clone(window) as _)));
        }
        let target: Arc<dyn DoorbellTarget> = Arc::new(FileDoorbells { device: Arc::clone(&self.device) });
        Ok(DoorbellKind::Called(CalledDoorbell::new(target, offset)))
    }

    fn map(&self, memory: HostRange<'_>) -> Result<u64, TransportError> {
        let pointer = memory.pointer.as_ptr().expose_provenance();
        self.device.space().map(pointer, memory.bytes as u64)
    }

    fn needs_huge_pages(&self) -> bool {
        self.device.space().kind() == IommuKind::NoIommu
    }

    fn unmap(&self, iova: u64, bytes: u64) -> Result<Unmapped, TransportError> {
        self.device.space().unmap(iova, bytes)
    }

    fn enable_interrupts(&self, count: u16) -> Result<Vec<Interrupt>, TransportError> {
        if self.info.vectors == 0 {
            return Err(self.unsupported("an interrupt"));
        }
        if self.interrupts_enabled.swap(true, Ordering::Relaxed) {
            return Err(self.unsupported("setting up interrupts a second time"));
        }
        let events = self.device.enable_interrupts(count).map_err(|source| TransportError::System {
            address: self.info.address.clone(),
            what: format!("VFIO_DEVICE_SET_IRQS for {count} vectors"),
            source,
        })?;
        let interrupts = events.into_iter().enumerate();
        Ok(interrupts.map(|(vector, event)| Interrupt { vector: vector as u16, event: Some(event) }).collect())
    }

    fn map_bar(&self, bar: u8, part: Range<u64>) -> Result<DeviceMapping, TransportError> {
        let window = self.device.map_bar(bar, part.clone()).map_err(|source| TransportError::System {
            address: self.info.address.clone(),
            what: format!("mapping BAR{bar} from {:#x} to {:#x}", part.start, part.end),
            source,
        })?;
        Ok(DeviceMapping::Bar(window))
    }

    fn set_bus_master(&self, on: bool) -> Result<(), TransportError> {
        self.device.set_bus_master(on).map_err(self.system("bus mastering (PCI command register)"))
    }

    fn reset(&self) -> Result<(), TransportError> {
        if !self.device.can_reset() {
            return Err(self.unsupported("function reset"));
        }
        self.device.reset().map_err(self.system("VFIO_DEVICE_RESET"))
    }

    fn read_config(&self, offset: u16, into: &mut [u8]) -> Result<usize, TransportError> {
        self.device.read_configuration(offset, into).map_err(self.system("reading configuration space"))
    }

    fn signals(&self) -> Signals {
        Signals {
            release_requested: self.device.notices().release_requested(),
            error: self.device.notices().error(),
            lost: self.device.is_lost(),
        }
    }
}

/// Doorbells of a BAR that may not be mapped there.
#[derive(Debug)]
struct FileDoorbells {
    device: Arc<VfioDevice>,
}

impl DoorbellTarget for FileDoorbells {
    fn write_doorbell(&self, offset: u64, value: u32) {
        // A doorbell has no answer; a device that is gone shows at the next register or deadline.
        if let Err(errno) = self.device.write_unmapped(offset, &value.to_le_bytes()) {
            log::debug!("{}: doorbell at {offset:#x}: {errno}", self.device.address());
        }
    }
}
