//! A PCI function in this process's hands.
#![forbid(unsafe_code)]

use core::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::io::Errno;
use vfio_bindings::bindings::vfio::{VFIO_DEVICE_FLAGS_PCI, VFIO_DEVICE_FLAGS_RESET};

use super::capability::RegionInfo;
use super::interrupt::{self, InterruptKind, Notices};
use super::nodes::Nodes;
use super::region::{self, Region};
use super::space::AddressSpace;
use super::window::Window;
use super::{IommuChoice, VfioError, fd, ioctl};
use crate::pci::config::{ConfigSpace, Presence};
use crate::pci::{PciAddress, Sysfs, binding};

/// The command register of configuration space.
const COMMAND: u16 = 4;
/// Its bit that lets registers be reached.
const COMMAND_MEMORY: u16 = 1 << 1;
/// Its bit that lets the device start transfers.
const COMMAND_BUS_MASTER: u16 = 1 << 2;
/// Configuration space of PCI Express, in bytes.
const CONFIGURATION_BYTES: usize = 4096;

/// How a function is to be opened.
#[derive(Debug, Clone)]
pub struct VfioOptions {
    /// Which kernel interface.
    pub iommu: IommuChoice,
    /// Which kind of interrupt; the best that the device has where this says nothing.
    pub interrupts: Option<InterruptKind>,
    /// Whether 64-bit registers are accessed in halves, lower half first, for controllers that need that.
    pub split_registers: bool,
    /// Whether a function without an IOMMU is opened all the same (see `no_iommu`): a drive may then write anywhere.
    pub unsafe_no_iommu: bool,
    /// Where `/sys` and `/dev` are.
    pub sysfs: Sysfs,
}

impl Default for VfioOptions {
    fn default() -> Self {
        Self {
            iommu: IommuChoice::Auto,
            interrupts: None,
            split_registers: false,
            unsafe_no_iommu: false,
            sysfs: Sysfs::host(),
        }
    }
}

/// An open function: its registers, configuration space, interrupts and address space.
#[derive(Debug)]
pub struct VfioDevice {
    address: PciAddress,
    // Dropped in this order: mappings of the device, the device, the address space that it is in.
    windows: Vec<Arc<Window>>,
    notices: Notices,
    device: OwnedFd,
    space: AddressSpace,
    registers: Region,
    configuration: Region,
    pci_id: (u16, u16),
    resets: bool,
    interrupts: Option<(InterruptKind, u16)>,
}

impl VfioDevice {
    /// Opens the function at `address`, which has to be bound to vfio-pci.
    ///
    /// Its registers can be reached afterwards; it cannot start transfers until [`VfioDevice::set_bus_master`].
    pub fn open(address: PciAddress, options: &VfioOptions) -> Result<Self, VfioError> {
        let nodes = Nodes::find(&options.sysfs, address, options.unsafe_no_iommu)?;
        let (space, device) = AddressSpace::open_device(address, &nodes, options.iommu)
            .map_err(|error| name_holders(error, &options.sysfs))?;
        let step = |step| move |errno| VfioError::step(address, step, errno);
        let info = ioctl::device_info(fd(&device)).map_err(step("VFIO_DEVICE_GET_INFO"))?;
        if info.flags & VFIO_DEVICE_FLAGS_PCI == 0 {
            return Err(answer(address, "VFIO_DEVICE_GET_INFO", "it is not a PCI function"));
        }
        let page_bytes = rustix::param::page_size() as u64;
        let configuration = Region::new(&region_info(address, &device, region::CONFIGURATION)?, page_bytes, Vec::new());
        let mut bytes = vec![0; CONFIGURATION_BYTES.min(configuration.bytes as usize)];
        let length = read_file(&device, &configuration, 0, &mut bytes).map_err(step("configuration space"))?;
        bytes.truncate(length);
        let config = ConfigSpace::new(bytes);
        let header = config.header().filter(|_| config.presence() != Presence::Gone).ok_or_else(|| {
            answer(
                address,
                "configuration space",
                "it reads all-ones or not at all: the function is gone or powered down",
            )
        })?;
        let registers =
            Region::new(&region_info(address, &device, region::REGISTERS)?, page_bytes, msix_places(&config));
        if registers.bytes == 0 {
            return Err(answer(address, "VFIO_DEVICE_GET_REGION_INFO", "BAR0 is not there"));
        }
        let opened = Self {
            address,
            windows: map_windows(address, &device, &registers),
            notices: Notices::enable(fd(&device)).map_err(|error| step("eventfd")(errno(&error)))?,
            interrupts: interrupt::available(fd(&device), options.interrupts),
            resets: info.flags & VFIO_DEVICE_FLAGS_RESET != 0,
            device,
            space,
            registers,
            configuration,
            pci_id: (header.vendor, header.device),
        };
        // With memory decoding off, every access to a register faults.
        opened.change_command(COMMAND_MEMORY, true).map_err(step("memory enable (PCI command register)"))?;
        Ok(opened)
    }

    /// Its address.
    pub fn address(&self) -> PciAddress {
        self.address
    }

    /// The address space that it is in.
    pub fn space(&self) -> &AddressSpace {
        &self.space
    }

    /// BAR0.
    pub fn registers(&self) -> &Region {
        &self.registers
    }

    /// The mapped parts of BAR0.
    pub fn windows(&self) -> &[Arc<Window>] {
        &self.windows
    }

    /// PCI vendor and device id.
    pub fn pci_id(&self) -> (u16, u16) {
        self.pci_id
    }

    /// How it interrupts and with how many vectors.
    pub fn interrupts(&self) -> Option<(InterruptKind, u16)> {
        self.interrupts
    }

    /// What VFIO has told besides interrupts.
    pub fn notices(&self) -> &Notices {
        &self.notices
    }

    /// Whether [`VfioDevice::reset`] does anything.
    pub fn can_reset(&self) -> bool {
        self.resets
    }

    /// Whether an access to a mapped register faulted.
    pub fn is_lost(&self) -> bool {
        self.windows.iter().any(|window| window.is_lost())
    }

    /// The window that has `bytes` bytes at `offset` of BAR0.
    pub fn window(&self, offset: u64, bytes: u64) -> Option<&Arc<Window>> {
        let inside = |window: &&Arc<Window>| {
            offset >= window.area().start && offset.checked_add(bytes).is_some_and(|end| end <= window.area().end)
        };
        self.windows.iter().find(inside)
    }

    /// Maps a part of another BAR than that of the registers. Who has the window keeps the device's file open.
    pub(crate) fn map_bar(&self, bar: u8, part: Range<u64>) -> std::io::Result<Window> {
        let invalid = |why| std::io::Error::new(std::io::ErrorKind::InvalidInput, why);
        if !(1..6).contains(&bar) {
            return Err(invalid("BAR1 to BAR5 may hold memory"));
        }
        let info = region_info(self.address, &self.device, u32::from(bar)).map_err(std::io::Error::other)?;
        let region = Region::new(&info, rustix::param::page_size() as u64, Vec::new());
        if !region.mappable.iter().any(|area| area.start <= part.start && part.end <= area.end) {
            return Err(invalid("the kernel does not let it be mapped, or it is not there"));
        }
        Window::map(fd(&self.device), region.file_offset, part)
    }

    /// Reads a part of BAR0 that is not mapped, through the device's file.
    pub(crate) fn read_unmapped<const BYTES: usize>(&self, offset: u64) -> Result<[u8; BYTES], Errno> {
        let mut bytes = [0xff; BYTES];
        match read_file(&self.device, &self.registers, offset, &mut bytes)? {
            length if length == BYTES => Ok(bytes),
            _ => Err(Errno::IO),
        }
    }

    /// Writes a part of BAR0 that is not mapped.
    pub(crate) fn write_unmapped(&self, offset: u64, bytes: &[u8]) -> Result<(), Errno> {
        match rustix::io::pwrite(&self.device, bytes, self.registers.file_offset + offset)? {
            length if length == bytes.len() => Ok(()),
            _ => Err(Errno::IO),
        }
    }

    /// Reads configuration space from `offset`; as many bytes as there are.
    pub fn read_configuration(&self, offset: u16, into: &mut [u8]) -> Result<usize, Errno> {
        let left = self.configuration.bytes.saturating_sub(u64::from(offset)) as usize;
        let length = into.len().min(left);
        read_file(&self.device, &self.configuration, u64::from(offset), &mut into[..length])
    }

    /// Lets the device start transfers, or stops it. Only to be switched on once its memory is mapped.
    pub fn set_bus_master(&self, on: bool) -> Result<(), Errno> {
        self.change_command(COMMAND_BUS_MASTER, on)
    }

    /// Resets the function (`VFIO_DEVICE_RESET`).
    ///
    /// The kernel keeps and restores configuration space, with it the addresses of the BARs, memory enable and the MSI-X
    /// table, so the mappings stay valid; while the reset runs (it returns when the function answers again), accesses
    /// fault or give all-ones, so nothing else may use the device meanwhile. Bus mastering is off afterwards by our own
    /// hand, because what was in flight must not go on.
    pub fn reset(&self) -> Result<(), Errno> {
        if !self.resets {
            return Err(Errno::OPNOTSUPP);
        }
        self.set_bus_master(false)?;
        ioctl::reset(fd(&self.device))
    }

    /// Sets up `count` vectors, at most as many as there are; see [`super::interrupt`].
    pub fn enable_interrupts(&self, count: u16) -> std::io::Result<Vec<Arc<OwnedFd>>> {
        let (kind, available) = self.interrupts.ok_or(Errno::OPNOTSUPP)?;
        interrupt::enable(fd(&self.device), kind, count.min(available))
    }

    /// Sleeps until `event` is signalled, a notice comes, or `timeout_ns` have passed.
    pub fn wait(&self, event: &OwnedFd, timeout_ns: u64) {
        if matches!(self.interrupts, Some((InterruptKind::Intx, _)))
            && let Err(errno) = interrupt::unmask_intx(fd(&self.device))
        {
            log::debug!("{}: INTx stays masked: {errno}", self.address);
        }
        interrupt::wait(fd(event), &self.notices, timeout_ns);
    }

    fn change_command(&self, bit: u16, on: bool) -> Result<(), Errno> {
        let mut bytes = [0; 2];
        if self.read_configuration(COMMAND, &mut bytes)? != bytes.len() {
            return Err(Errno::IO);
        }
        let now = u16::from_le_bytes(bytes);
        let wanted = if on { now | bit } else { now & !bit };
        if now == u16::MAX {
            return Err(Errno::NODEV);
        }
        if wanted != now {
            let offset = self.configuration.file_offset + u64::from(COMMAND);
            rustix::io::pwrite(&self.device, &wanted.to_le_bytes(), offset)?;
        }
        Ok(())
    }
}

impl Drop for VfioDevice {
    fn drop(&mut self) {
        if let Err(errno) = self.set_bus_master(false) {
            log::debug!("{}: bus mastering could not be switched off: {errno}", self.address);
        }
    }
}

/// Says who has it, where that is visible.
fn name_holders(error: VfioError, sysfs: &Sysfs) -> VfioError {
    match error {
        VfioError::Busy { address, node, holders } if holders.is_empty() => {
            let holders = binding::holders(sysfs, address).iter().map(|held| held.process.to_string()).collect();
            VfioError::Busy { address, node, holders }
        }
        other => other,
    }
}

fn answer(address: PciAddress, step: &'static str, detail: &str) -> VfioError {
    VfioError::Answer { address, step, detail: detail.to_owned() }
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

fn region_info(address: PciAddress, device: &OwnedFd, index: u32) -> Result<RegionInfo, VfioError> {
    let step = "VFIO_DEVICE_GET_REGION_INFO";
    let bytes = ioctl::region_info(fd(device), index).map_err(|errno| VfioError::step(address, step, errno))?;
    RegionInfo::parse(&bytes).ok_or_else(|| answer(address, step, "the kernel's answer is cut short"))
}

/// Maps what may be mapped. What cannot be is reached through the file, so a failure is no reason to stop.
fn map_windows(address: PciAddress, device: &OwnedFd, registers: &Region) -> Vec<Arc<Window>> {
    let map = |area: &Range<u64>| match Window::map(fd(device), registers.file_offset, area.clone()) {
        Ok(window) => Some(Arc::new(window)),
        Err(error) => {
            log::warn!("{address}: BAR0 from {:#x} to {:#x} cannot be mapped: {error}", area.start, area.end);
            None
        }
    };
    registers.mappable.iter().filter_map(map).collect()
}

fn read_file(device: &OwnedFd, region: &Region, offset: u64, into: &mut [u8]) -> Result<usize, Errno> {
    rustix::io::pread(device, into, region.file_offset + offset)
}

/// The MSI-X table and its pending bits, as far as they are in BAR0.
fn msix_places(config: &ConfigSpace) -> Vec<Range<u64>> {
    let Some(msix) = config.msix() else { return Vec::new() };
    let place = |bar: u8, offset: u32, bytes: u64| {
        let start = u64::from(offset);
        (u32::from(bar) == region::REGISTERS).then_some(start..start + bytes)
    };
    let pending_bytes = u64::from(msix.vectors).div_ceil(64) * 8;
    [
        place(msix.table_bar, msix.table_offset_bytes, u64::from(msix.table_bytes())),
        place(msix.pending_bar, msix.pending_offset_bytes, pending_bytes),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d20_the_place_of_the_msix_table_comes_from_configuration_space() {
        let mut bytes = vec![0; 256];
        bytes[6] = 1 << 4;
        bytes[0x34] = 0x40;
        // 33 vectors, table at 5200h of BAR0, pending bits at 1000h of BAR4.
        bytes[0x40..0x4c].copy_from_slice(&[0x11, 0, 32, 0x80, 0, 0x52, 0, 0, 4, 0x10, 0, 0]);
        let places = msix_places(&ConfigSpace::new(bytes));
        assert_eq!(places, vec![(0x5200..0x5200 + 33 * 16)]);
    }

    #[test]
    fn without_msix_nothing_of_bar0_is_out_of_bounds() {
        assert!(msix_places(&ConfigSpace::new(vec![0; 256])).is_empty());
    }
}
