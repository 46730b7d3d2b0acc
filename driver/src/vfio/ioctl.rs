//! The system calls of VFIO and iommufd, one function each.
//!
//! `linux/vfio.h` numbers its requests with `_IO(';', 100 + n)`, without direction and size; so does `linux/iommufd.h`
//! from 80h on. Every structure begins with its own length (`argsz`, `size`), by which kernel and program of different
//! age understand each other: what the kernel does not know yet must be zero, what it knows more is left out. The
//! structures are those of the bindings; nothing of this module's is seen outside `vfio`.
#![allow(unsafe_code)] // Every ioctl is one.

use core::ffi::c_void;
use core::marker::PhantomData;
use core::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use iommufd_bindings::iommufd::{
    IOMMUFD_CMD_IOAS_ALLOC, IOMMUFD_CMD_IOAS_IOVA_RANGES, IOMMUFD_CMD_IOAS_MAP, IOMMUFD_CMD_IOAS_UNMAP,
    iommu_ioas_alloc, iommu_ioas_iova_ranges, iommu_ioas_map, iommu_ioas_unmap, iommu_iova_range,
    iommufd_ioas_map_flags_IOMMU_IOAS_MAP_FIXED_IOVA, iommufd_ioas_map_flags_IOMMU_IOAS_MAP_READABLE,
    iommufd_ioas_map_flags_IOMMU_IOAS_MAP_WRITEABLE,
};
use rustix::io::Errno;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, opcode};
use vfio_bindings::bindings::vfio::{
    VFIO_BASE, VFIO_DMA_MAP_FLAG_READ, VFIO_DMA_MAP_FLAG_WRITE, VFIO_TYPE, vfio_device_attach_iommufd_pt,
    vfio_device_bind_iommufd, vfio_device_info, vfio_group_status, vfio_iommu_type1_dma_map,
    vfio_iommu_type1_dma_unmap, vfio_iommu_type1_info, vfio_irq_info, vfio_irq_set, vfio_region_info,
};

use super::iova::IovaRange;

type Result<T> = core::result::Result<T, Errno>;

const GET_API_VERSION: Opcode = vfio(0);
const CHECK_EXTENSION: Opcode = vfio(1);
const SET_IOMMU: Opcode = vfio(2);
const GROUP_GET_STATUS: Opcode = vfio(3);
const GROUP_SET_CONTAINER: Opcode = vfio(4);
const GROUP_GET_DEVICE_FD: Opcode = vfio(6);
const DEVICE_GET_INFO: Opcode = vfio(7);
const DEVICE_GET_REGION_INFO: Opcode = vfio(8);
const DEVICE_GET_IRQ_INFO: Opcode = vfio(9);
const DEVICE_SET_IRQS: Opcode = vfio(10);
const DEVICE_RESET: Opcode = vfio(11);
const IOMMU_GET_INFO: Opcode = vfio(12);
const IOMMU_MAP_DMA: Opcode = vfio(13);
const IOMMU_UNMAP_DMA: Opcode = vfio(14);
const DEVICE_BIND_IOMMUFD: Opcode = vfio(18);
const DEVICE_ATTACH_IOMMUFD_PT: Opcode = vfio(19);
const IOAS_ALLOC: Opcode = iommufd(IOMMUFD_CMD_IOAS_ALLOC);
const IOAS_IOVA_RANGES: Opcode = iommufd(IOMMUFD_CMD_IOAS_IOVA_RANGES);
const IOAS_MAP: Opcode = iommufd(IOMMUFD_CMD_IOAS_MAP);
const IOAS_UNMAP: Opcode = iommufd(IOMMUFD_CMD_IOAS_UNMAP);

/// An information structure with more capabilities than this is not believed.
const INFO_LIMIT_BYTES: usize = 64 << 10;

const fn vfio(number: u32) -> Opcode {
    opcode::none(VFIO_TYPE, (VFIO_BASE + number) as u8)
}

const fn iommufd(command: u32) -> Opcode {
    opcode::none(b';', command as u8)
}

// ---- Container and group (type1) ----

/// `VFIO_GET_API_VERSION`.
pub(super) fn api_version(container: BorrowedFd<'_>) -> Result<i32> {
    // SAFETY: the request takes no argument.
    unsafe { with_number(container, GET_API_VERSION, 0) }
}

/// `VFIO_CHECK_EXTENSION`: whether the container knows `extension`.
pub(super) fn check_extension(container: BorrowedFd<'_>, extension: u32) -> Result<bool> {
    // SAFETY: the request takes a number.
    unsafe { with_number(container, CHECK_EXTENSION, extension as usize) }.map(|answer| answer > 0)
}

/// `VFIO_SET_IOMMU`: only possible once a group is in the container.
pub(super) fn set_iommu(container: BorrowedFd<'_>, kind: u32) -> Result<()> {
    // SAFETY: the request takes a number.
    unsafe { with_number(container, SET_IOMMU, kind as usize) }.map(drop)
}

/// `VFIO_GROUP_GET_STATUS`: `VFIO_GROUP_FLAGS_*`.
pub(super) fn group_flags(group: BorrowedFd<'_>) -> Result<u32> {
    let mut status = vfio_group_status { argsz: size_of::<vfio_group_status>() as u32, flags: 0 };
    // SAFETY: the request fills in a `vfio_group_status`.
    unsafe { with_structure(group, GROUP_GET_STATUS, &mut status) }?;
    Ok(status.flags)
}

/// `VFIO_GROUP_SET_CONTAINER`.
pub(super) fn set_container(group: BorrowedFd<'_>, container: BorrowedFd<'_>) -> Result<()> {
    let mut descriptor: i32 = container.as_raw_fd();
    // SAFETY: the request reads an `int`.
    unsafe { with_structure(group, GROUP_SET_CONTAINER, &mut descriptor) }.map(drop)
}

/// `VFIO_GROUP_GET_DEVICE_FD`: opens the device called `name` (its PCI address).
pub(super) fn device_of_group(group: BorrowedFd<'_>, name: &core::ffi::CStr) -> Result<OwnedFd> {
    // SAFETY: the request reads a string that ends with a zero.
    let descriptor = unsafe { with_number(group, GROUP_GET_DEVICE_FD, name.as_ptr().expose_provenance()) }?;
    // SAFETY: on success the answer is a new descriptor that nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// `VFIO_IOMMU_GET_INFO` with all capabilities, as bytes of a `vfio_iommu_type1_info`.
pub(super) fn iommu_info(container: BorrowedFd<'_>) -> Result<Vec<u8>> {
    with_capabilities(container, IOMMU_GET_INFO, &[0; size_of::<vfio_iommu_type1_info>() / 4])
}

/// `VFIO_IOMMU_MAP_DMA`, readable and writable for the device.
pub(super) fn map_dma(container: BorrowedFd<'_>, address: usize, iova: u64, bytes: u64) -> Result<()> {
    let mut map = vfio_iommu_type1_dma_map {
        argsz: size_of::<vfio_iommu_type1_dma_map>() as u32,
        flags: VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE,
        vaddr: address as u64,
        iova,
        size: bytes,
    };
    // SAFETY: the request reads a `vfio_iommu_type1_dma_map`.
    unsafe { with_structure(container, IOMMU_MAP_DMA, &mut map) }.map(drop)
}

/// `VFIO_IOMMU_UNMAP_DMA`: how many bytes were unmapped.
pub(super) fn unmap_dma(container: BorrowedFd<'_>, iova: u64, bytes: u64) -> Result<u64> {
    let mut unmap = vfio_iommu_type1_dma_unmap {
        argsz: size_of::<vfio_iommu_type1_dma_unmap>() as u32,
        iova,
        size: bytes,
        ..Default::default()
    };
    // SAFETY: the request reads and writes a `vfio_iommu_type1_dma_unmap` without data behind it.
    unsafe { with_structure(container, IOMMU_UNMAP_DMA, &mut unmap) }?;
    Ok(unmap.size)
}

// ---- iommufd ----

/// `VFIO_DEVICE_BIND_IOMMUFD`: the device belongs to `iommufd` from now on.
pub(super) fn bind_iommufd(device: BorrowedFd<'_>, iommufd: BorrowedFd<'_>) -> Result<()> {
    let mut bind = vfio_device_bind_iommufd {
        argsz: size_of::<vfio_device_bind_iommufd>() as u32,
        iommufd: iommufd.as_raw_fd(),
        ..Default::default()
    };
    // SAFETY: the request reads and writes a `vfio_device_bind_iommufd`.
    unsafe { with_structure(device, DEVICE_BIND_IOMMUFD, &mut bind) }.map(drop)
}

/// `VFIO_DEVICE_ATTACH_IOMMUFD_PT`: the device uses the address space `ioas` from now on.
pub(super) fn attach_ioas(device: BorrowedFd<'_>, ioas: u32) -> Result<()> {
    let mut attach = vfio_device_attach_iommufd_pt {
        argsz: size_of::<vfio_device_attach_iommufd_pt>() as u32,
        pt_id: ioas,
        ..Default::default()
    };
    // SAFETY: the request reads and writes a `vfio_device_attach_iommufd_pt`.
    unsafe { with_structure(device, DEVICE_ATTACH_IOMMUFD_PT, &mut attach) }.map(drop)
}

/// `IOMMU_IOAS_ALLOC`: a new address space.
pub(super) fn allocate_ioas(iommufd: BorrowedFd<'_>) -> Result<u32> {
    let mut alloc = iommu_ioas_alloc { size: size_of::<iommu_ioas_alloc>() as u32, ..Default::default() };
    // SAFETY: the request reads and writes an `iommu_ioas_alloc`.
    unsafe { with_structure(iommufd, IOAS_ALLOC, &mut alloc) }?;
    Ok(alloc.out_ioas_id)
}

/// `IOMMU_IOAS_IOVA_RANGES`: the usable addresses, and what a mapping has to be aligned to.
pub(super) fn ioas_ranges(iommufd: BorrowedFd<'_>, ioas: u32) -> Result<(Vec<IovaRange>, u64)> {
    let mut ranges = vec![iommu_iova_range::default(); 16];
    loop {
        let mut query = iommu_ioas_iova_ranges {
            size: size_of::<iommu_ioas_iova_ranges>() as u32,
            ioas_id: ioas,
            num_iovas: ranges.len() as u32,
            allowed_iovas: ranges.as_mut_ptr().expose_provenance() as u64,
            ..Default::default()
        };
        // SAFETY: the request reads and writes an `iommu_ioas_iova_ranges` and fills in at most `num_iovas` ranges where
        // it points to, which is what `ranges` has room for.
        let answer = unsafe { with_structure(iommufd, IOAS_IOVA_RANGES, &mut query) };
        let count = query.num_iovas as usize;
        match answer {
            Err(Errno::MSGSIZE) if count > ranges.len() && count <= INFO_LIMIT_BYTES => {
                ranges.resize(count, iommu_iova_range::default());
            }
            Err(error) => return Err(error),
            Ok(_) => {
                ranges.truncate(count);
                let ranges = ranges.iter().map(|range| IovaRange { start: range.start, last: range.last }).collect();
                return Ok((ranges, query.out_iova_alignment));
            }
        }
    }
}

/// `IOMMU_IOAS_MAP` at a fixed address, readable and writable for the device.
pub(super) fn map_ioas(iommufd: BorrowedFd<'_>, ioas: u32, address: usize, iova: u64, bytes: u64) -> Result<()> {
    let mut map = iommu_ioas_map {
        size: size_of::<iommu_ioas_map>() as u32,
        flags: iommufd_ioas_map_flags_IOMMU_IOAS_MAP_FIXED_IOVA
            | iommufd_ioas_map_flags_IOMMU_IOAS_MAP_READABLE
            | iommufd_ioas_map_flags_IOMMU_IOAS_MAP_WRITEABLE,
        ioas_id: ioas,
        user_va: address as u64,
        length: bytes,
        iova,
        ..Default::default()
    };
    // SAFETY: the request reads and writes an `iommu_ioas_map`.
    unsafe { with_structure(iommufd, IOAS_MAP, &mut map) }.map(drop)
}

/// `IOMMU_IOAS_UNMAP`: how many bytes were unmapped.
pub(super) fn unmap_ioas(iommufd: BorrowedFd<'_>, ioas: u32, iova: u64, bytes: u64) -> Result<u64> {
    let mut unmap = iommu_ioas_unmap { size: size_of::<iommu_ioas_unmap>() as u32, ioas_id: ioas, iova, length: bytes };
    // SAFETY: the request reads and writes an `iommu_ioas_unmap`.
    unsafe { with_structure(iommufd, IOAS_UNMAP, &mut unmap) }?;
    Ok(unmap.length)
}

// ---- Device ----

/// `VFIO_DEVICE_GET_INFO`.
pub(super) fn device_info(device: BorrowedFd<'_>) -> Result<vfio_device_info> {
    let mut info = vfio_device_info { argsz: size_of::<vfio_device_info>() as u32, ..Default::default() };
    // SAFETY: the request fills in a `vfio_device_info`, no further than `argsz`.
    unsafe { with_structure(device, DEVICE_GET_INFO, &mut info) }?;
    Ok(info)
}

/// `VFIO_DEVICE_GET_REGION_INFO` with all capabilities, as bytes of a `vfio_region_info`.
pub(super) fn region_info(device: BorrowedFd<'_>, index: u32) -> Result<Vec<u8>> {
    let mut request = [0; size_of::<vfio_region_info>() / 4];
    request[core::mem::offset_of!(vfio_region_info, index) / 4] = index;
    with_capabilities(device, DEVICE_GET_REGION_INFO, &request)
}

/// `VFIO_DEVICE_GET_IRQ_INFO`.
pub(super) fn irq_info(device: BorrowedFd<'_>, index: u32) -> Result<vfio_irq_info> {
    let mut info = vfio_irq_info { argsz: size_of::<vfio_irq_info>() as u32, index, ..Default::default() };
    // SAFETY: the request fills in a `vfio_irq_info`.
    unsafe { with_structure(device, DEVICE_GET_IRQ_INFO, &mut info) }?;
    Ok(info)
}

/// `VFIO_DEVICE_SET_IRQS` from vector 0 on: `flags` say what is done (`VFIO_IRQ_SET_*`), `events` are the eventfds where
/// they say that some follow, and `count` is how many vectors are meant.
pub(super) fn set_irqs(
    device: BorrowedFd<'_>,
    index: u32,
    flags: u32,
    count: u32,
    events: &[BorrowedFd<'_>],
) -> Result<()> {
    let mut words = vec![0_u32; size_of::<vfio_irq_set>() / 4];
    words.extend(events.iter().map(|event| event.as_raw_fd() as u32));
    let bytes = words.len() * 4;
    words[core::mem::offset_of!(vfio_irq_set, argsz) / 4] = bytes as u32;
    words[core::mem::offset_of!(vfio_irq_set, flags) / 4] = flags;
    words[core::mem::offset_of!(vfio_irq_set, index) / 4] = index;
    words[core::mem::offset_of!(vfio_irq_set, count) / 4] = count;
    // SAFETY: the request reads a `vfio_irq_set` and the data behind it, `argsz` bytes in all, which `words` has.
    unsafe { call(device, DEVICE_SET_IRQS, words.as_mut_ptr().cast()) }.map(drop)
}

/// `VFIO_DEVICE_RESET`.
pub(super) fn reset(device: BorrowedFd<'_>) -> Result<()> {
    // SAFETY: the request takes no argument.
    unsafe { with_number(device, DEVICE_RESET, 0) }.map(drop)
}

// ---- How a request is made ----

/// A request with its argument.
struct Request<'a> {
    opcode: Opcode,
    argument: *mut c_void,
    _argument: PhantomData<&'a mut ()>,
}

// SAFETY: `output` is the call's own answer; what the argument points to is promised by who makes a `Request` (`call`).
unsafe impl Ioctl for Request<'_> {
    type Output = i32;

    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        self.opcode
    }

    fn as_ptr(&mut self) -> *mut c_void {
        self.argument
    }

    unsafe fn output_from_ptr(answer: IoctlOutput, _argument: *mut c_void) -> Result<i32> {
        Ok(answer)
    }
}

/// Makes the request; a signal in the middle of it repeats it.
///
/// # Safety
/// `argument` must be what `opcode` takes: a number, or a pointer to memory that the kernel may read and write.
unsafe fn call(descriptor: BorrowedFd<'_>, opcode: Opcode, argument: *mut c_void) -> Result<i32> {
    rustix::io::retry_on_intr(|| {
        let request = Request { opcode, argument, _argument: PhantomData };
        // SAFETY: the caller's promise.
        unsafe { rustix::ioctl::ioctl(descriptor.as_fd(), request) }
    })
}

/// # Safety
/// `opcode` must take a number, or the address of something that it only reads.
unsafe fn with_number(descriptor: BorrowedFd<'_>, opcode: Opcode, number: usize) -> Result<i32> {
    // SAFETY: the caller's promise.
    unsafe { call(descriptor, opcode, core::ptr::with_exposed_provenance_mut(number)) }
}

/// # Safety
/// `opcode` must take a `T`, and write nothing into it that is not a `T`.
unsafe fn with_structure<T>(descriptor: BorrowedFd<'_>, opcode: Opcode, structure: &mut T) -> Result<i32> {
    // SAFETY: the caller's promise; the structure is borrowed for the call.
    unsafe { call(descriptor, opcode, core::ptr::from_mut(structure).cast()) }
}

/// A request whose structure begins with its length and may be followed by capabilities: asked once for the length, and
/// again with room for all of it.
fn with_capabilities(descriptor: BorrowedFd<'_>, opcode: Opcode, request: &[u32]) -> Result<Vec<u8>> {
    let mut bytes = size_of_val(request);
    loop {
        // Words of 64 bits, because the structures hold such.
        let mut buffer = vec![0_u64; bytes.div_ceil(8)];
        for (word, pair) in buffer.iter_mut().zip(request.chunks(2)) {
            let mut image = [0; 8];
            for (place, value) in image.chunks_exact_mut(4).zip(pair) {
                place.copy_from_slice(&value.to_ne_bytes());
            }
            *word = u64::from_ne_bytes(image);
        }
        set_length(&mut buffer, bytes);
        // SAFETY: `vfio_region_info` and `vfio_iommu_type1_info` begin with `argsz`, and the kernel writes no further
        // than it says, which is what `buffer` has room for.
        unsafe { call(descriptor, opcode, buffer.as_mut_ptr().cast()) }?;
        let answer: Vec<u8> = buffer.iter().flat_map(|word| word.to_ne_bytes()).take(bytes).collect();
        let needed = answer.first_chunk().map_or(0, |length| u32::from_ne_bytes(*length) as usize);
        if needed <= bytes || needed > INFO_LIMIT_BYTES {
            return Ok(answer);
        }
        bytes = needed;
    }
}

/// Writes `argsz`, the first 32 bits.
fn set_length(buffer: &mut [u64], bytes: usize) {
    if let Some(first) = buffer.first_mut() {
        let mut image = first.to_ne_bytes();
        image[..4].copy_from_slice(&(bytes as u32).to_ne_bytes());
        *first = u64::from_ne_bytes(image);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_numbers_are_those_of_the_kernels_headers() {
        assert_eq!(GET_API_VERSION, 0x3b64);
        assert_eq!(DEVICE_SET_IRQS, 0x3b6e);
        assert_eq!(IOMMU_MAP_DMA, 0x3b71);
        assert_eq!(DEVICE_BIND_IOMMUFD, 0x3b76);
        assert_eq!(DEVICE_ATTACH_IOMMUFD_PT, 0x3b77);
        assert_eq!(IOAS_ALLOC, 0x3b81);
        assert_eq!(IOAS_MAP, 0x3b85);
    }

    #[test]
    fn the_kernels_refusal_comes_back_as_its_error() {
        let file = rustix::fs::memfd_create("not a container", rustix::fs::MemfdFlags::CLOEXEC).expect("a memfd");
        assert_eq!(api_version(file.as_fd()), Err(Errno::NOTTY));
        assert_eq!(device_info(file.as_fd()), Err(Errno::NOTTY));
        assert_eq!(region_info(file.as_fd(), 0), Err(Errno::NOTTY));
    }
}
