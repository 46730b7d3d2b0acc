//! The system call that hands an admin command to the kernel's driver.
//!
//! `linux/nvme_ioctl.h` has two forms of the same structure: the newer one (Linux 5.4) gives the completion's first eight
//! bytes, the older one four. The kernel answers a negative error number if the command never got to the controller, and
//! else the status field of its completion: zero is success.
#![allow(unsafe_code)] // An ioctl that is given an address.

use core::ffi::c_void;
use core::mem::{offset_of, size_of};
use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, opcode};

use super::read_only::ReadOnly;

/// `struct nvme_passthru_cmd64`; its first 72 bytes are `struct nvme_passthru_cmd`, whose last field is `result`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct PassthroughCommand64 {
    opcode: u8,
    flags: u8,
    reserved_2: u16,
    nsid: u32,
    cdw2: u32,
    cdw3: u32,
    metadata: u64,
    address: u64,
    metadata_bytes: u32,
    data_bytes: u32,
    cdw10_to_15: [u32; 6],
    /// 0 for the kernel's own limit. A shorter one would have the kernel reset the controller when it runs out.
    timeout_ms: u32,
    /// `result` in the older form.
    reserved_68: u32,
    result: u64,
}

const _: () = {
    assert!(size_of::<PassthroughCommand64>() == 80);
    assert!(offset_of!(PassthroughCommand64, nsid) == 4);
    assert!(offset_of!(PassthroughCommand64, metadata) == 16);
    assert!(offset_of!(PassthroughCommand64, address) == 24);
    assert!(offset_of!(PassthroughCommand64, metadata_bytes) == 32);
    assert!(offset_of!(PassthroughCommand64, data_bytes) == 36);
    assert!(offset_of!(PassthroughCommand64, cdw10_to_15) == 40);
    assert!(offset_of!(PassthroughCommand64, timeout_ms) == 64);
    assert!(offset_of!(PassthroughCommand64, reserved_68) == 68);
    assert!(offset_of!(PassthroughCommand64, result) == 72);
};

/// `NVME_IOCTL_ADMIN64_CMD`.
const ADMIN64_CMD: Opcode = opcode::read_write::<PassthroughCommand64>(b'N', 0x47);
/// `NVME_IOCTL_ADMIN_CMD`: the same without its last eight bytes.
const ADMIN_CMD: Opcode = opcode::read_write::<[u8; 72]>(b'N', 0x41);

/// Which form of the structure a kernel knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Since Linux 5.4.
    Result64,
    /// Before.
    Result32,
}

/// What became of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Answer {
    /// The status field, without the phase tag.
    pub status: u16,
    /// Dwords 0 and 1 of the completion; in the older form dword 0 alone.
    pub result: u64,
}

/// Sends `command` and waits for its end; `data` takes what the controller sends.
///
/// # Errors
/// EINVAL if `data` is not as long as the command wants it; else what the kernel says of a command that it did not send,
/// or gave up (EINTR).
pub(super) fn admin(node: BorrowedFd<'_>, form: Form, command: &ReadOnly, data: &mut [u8]) -> Result<Answer, Errno> {
    if data.len() != command.buffer_bytes() {
        return Err(Errno::INVAL);
    }
    let mut structure = structure(command, data);
    let opcode = match form {
        Form::Result64 => ADMIN64_CMD,
        Form::Result32 => ADMIN_CMD,
    };
    let request = Request { opcode, structure: &mut structure };
    // SAFETY: both requests read and write one `PassthroughCommand64` or its first 72 bytes. What they make the kernel
    // write besides is at most `data_bytes` at `address`, which is `data`, borrowed until the call returns. (The kernel
    // does not return before the command has ended or been cancelled with the controller disabled.)
    // No repetition on EINTR: here it means that the command was sent, and cancelled.
    let status = unsafe { rustix::ioctl::ioctl(node, request) }?;
    let result = match form {
        Form::Result64 => structure.result,
        Form::Result32 => structure.reserved_68.into(),
    };
    Ok(Answer { status: (status & 0x7fff) as u16, result })
}

fn structure(command: &ReadOnly, data: &mut [u8]) -> PassthroughCommand64 {
    let entry = command.entry();
    let dwords = entry.dwords();
    let mut cdw10_to_15 = [0; 6];
    cdw10_to_15.copy_from_slice(&dwords[10..]);
    PassthroughCommand64 {
        opcode: entry.opcode(),
        nsid: entry.nsid(),
        cdw2: dwords[2],
        cdw3: dwords[3],
        address: if data.is_empty() { 0 } else { data.as_mut_ptr().expose_provenance() as u64 },
        data_bytes: data.len() as u32,
        cdw10_to_15,
        ..Default::default()
    }
}

struct Request<'a> {
    opcode: Opcode,
    structure: &'a mut PassthroughCommand64,
}

// SAFETY: the pointer is that of a borrowed structure of the type that both opcodes take; it is written to, and
// `IS_MUTATING` says so. The answer is the number that the call returns.
unsafe impl Ioctl for Request<'_> {
    type Output = i32;

    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        self.opcode
    }

    fn as_ptr(&mut self) -> *mut c_void {
        core::ptr::from_mut(self.structure).cast()
    }

    unsafe fn output_from_ptr(answer: IoctlOutput, _: *mut c_void) -> rustix::io::Result<i32> {
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use nvmetal_core::command::Command;
    use nvmetal_core::command::admin::{Cns, GetLogPage, Identify};
    use nvmetal_core::log::LogId;
    use nvmetal_core::number::ZeroBasedU32;

    use super::*;

    #[test]
    fn the_request_numbers_are_those_of_the_kernels_header() {
        assert_eq!(ADMIN64_CMD, 0xc050_4e47);
        assert_eq!(ADMIN_CMD, 0xc048_4e41);
    }

    #[test]
    fn a_command_lies_in_the_structure_where_the_kernel_looks() {
        let identify = Identify { nsid: 0x1122_3344, cns: Cns::NAMESPACE, cntid: 0x5566, ..Default::default() };
        let command = ReadOnly::new("nvme0", identify.entry(), 4096).expect("a command that reads");
        let mut data = vec![0; 4096];
        let structure = structure(&command, &mut data);
        assert_eq!((structure.opcode, structure.flags, structure.nsid), (0x06, 0, 0x1122_3344));
        assert_eq!(structure.cdw10_to_15, [0x5566_0000, 0, 0, 0, 0, 0]);
        assert_eq!((structure.address, structure.data_bytes), (data.as_ptr().addr() as u64, 4096));
        assert_eq!((structure.timeout_ms, structure.metadata, structure.metadata_bytes), (0, 0, 0));

        let numd = ZeroBasedU32::from_count(128).expect("a length");
        let get = GetLogPage { nsid: 0xffff_ffff, lid: LogId::SMART, rae: true, numd, ..Default::default() };
        let command = ReadOnly::new("nvme0", get.entry(), 512).expect("a command that reads");
        let structure = self::structure(&command, &mut data[..512]);
        assert_eq!((structure.opcode, structure.nsid), (0x02, 0xffff_ffff));
        assert_eq!(structure.cdw10_to_15, [0x007f_8002, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_node_that_is_no_controller_is_refused_by_the_kernel() {
        let file = rustix::fs::memfd_create("not a controller", rustix::fs::MemfdFlags::CLOEXEC).expect("a memfd");
        let identify = Identify { cns: Cns::CONTROLLER, ..Default::default() };
        let command = ReadOnly::new("nvme0", identify.entry(), 4096).expect("a command that reads");
        for form in [Form::Result64, Form::Result32] {
            assert_eq!(admin(file.as_fd(), form, &command, &mut [0; 4096]), Err(Errno::NOTTY));
            assert_eq!(admin(file.as_fd(), form, &command, &mut [0; 512]), Err(Errno::INVAL));
        }
    }
}
