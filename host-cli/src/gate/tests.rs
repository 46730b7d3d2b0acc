//! A refusal for each signature, on the emulated drive: written through our own queue as its format lays it out, found
//! by the gate's own reads.
#![forbid(unsafe_code)]

use nvmetal_driver::blocking::{BlockingOptions, BlockingQueue};
use nvmetal_driver::{Admin, ControllerOptions};

use super::*;
use crate::device::Device;
use crate::exit::Exit;
use crate::session::{IommuArgument, Reach, Session};

/// 64 MiB and a bit: no multiple of 64 KiB or 256 KiB.
const BYTES: usize = (64 << 20) + (12 << 10);

/// An open drive that holds `pieces`, and its serial number.
fn drive_with(lba: u32, pieces: &[(usize, Vec<u8>)]) -> (Drive, Namespace, String) {
    let blocks = BYTES / lba as usize;
    let device = Device::Emulated(format!("emulated:ideal,written=no,lba={lba},blocks={blocks}"));
    let reach = Reach { iommu: IommuArgument::Auto, trace: false };
    let session = Session::open(&device, &reach, ControllerOptions::default()).expect("it opens");
    let namespace = session.controller.namespace(1).expect("a namespace");
    let mut queue = BlockingQueue::new(&session.controller, namespace, BlockingOptions::default()).expect("a queue");
    for (at, bytes) in pieces {
        let first = at / lba as usize * lba as usize;
        let end = (at + bytes.len()).next_multiple_of(lba as usize);
        let mut blocks = vec![0; end - first];
        queue.read_at(first as u64, &mut blocks).expect("it reads");
        blocks[at - first..at - first + bytes.len()].copy_from_slice(bytes);
        queue.write_at(first as u64, &blocks).expect("it writes");
    }
    drop(queue);
    let drive = Drive::from(session);
    let serial = DeviceFacts::of(&drive, None, None).serial;
    (drive, namespace, serial)
}

fn permission(serial: &str, destroy_data: bool) -> Permission {
    Permission { write: true, serial: Some(serial.to_owned()), destroy_data }
}

/// A partition table of four entries, the first used, in the last bytes of a boot sector.
fn mbr(kind: u8) -> Vec<u8> {
    let mut sector = vec![0; 512];
    sector[446 + 4] = kind;
    sector[446 + 8..446 + 12].copy_from_slice(&2048_u32.to_le_bytes());
    sector[446 + 12..446 + 16].copy_from_slice(&8192_u32.to_le_bytes());
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    sector
}

/// A GPT header: signature, revision 1.0, 92 bytes.
fn gpt() -> Vec<u8> {
    let mut header = b"EFI PART".to_vec();
    header.extend([0, 0, 1, 0, 92, 0, 0, 0]);
    header
}

/// ext: magic at 56, revision 1 at 76.
fn ext() -> Vec<u8> {
    let mut superblock = vec![0; 1024];
    superblock[56..58].copy_from_slice(&[0x53, 0xef]);
    superblock[76] = 1;
    superblock
}

fn fat() -> Vec<u8> {
    let mut sector = vec![0; 512];
    sector[..11].copy_from_slice(b"\xeb\x58\x90mkfs.fat");
    sector[82..90].copy_from_slice(b"FAT32   ");
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    sector
}

fn ntfs() -> Vec<u8> {
    let mut sector = vec![0; 512];
    sector[..11].copy_from_slice(b"\xeb\x52\x90NTFS    ");
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    sector
}

/// LVM2: label header with its own sector number at 8 and the type at 24.
fn lvm() -> Vec<u8> {
    let mut label = b"LABELONE".to_vec();
    label.extend(1_u64.to_le_bytes());
    label.extend([0; 8]);
    label.extend(b"LVM2 001");
    label
}

fn md() -> Vec<u8> {
    let mut superblock = 0xa92b_4efc_u32.to_le_bytes().to_vec();
    superblock.extend(1_u32.to_le_bytes());
    superblock
}

fn bcache() -> Vec<u8> {
    let mut superblock = vec![0; 24];
    superblock.extend([0xc6, 0x85, 0x73, 0xf6, 0x4e, 0x1a, 0x45, 0xca, 0x82, 0x65, 0xf5, 0x7f, 0x48, 0xba, 0x6d, 0x81]);
    superblock
}

/// Each signature, what the refusal has to name, and what lies where.
fn images() -> Vec<(&'static str, usize, Vec<u8>)> {
    let zfs_uberblock = 0x00ba_b10c_u64.to_le_bytes().to_vec();
    let labels_end = BYTES & !((256 << 10) - 1);
    vec![
        ("GPT", 512, gpt()),
        ("GPT", BYTES - 512, gpt()),
        ("MBR", 0, mbr(0x83)),
        ("MBR", 0, mbr(0xee)),
        ("ext", 1024, ext()),
        ("xfs", 0, b"XFSB\0\0\x10\0".to_vec()),
        ("btrfs", 0x1_0040, b"_BHRfS_M".to_vec()),
        ("NTFS", 0, ntfs()),
        ("FAT", 0, fat()),
        ("LUKS", 0, b"LUKS\xba\xbe\0\x02".to_vec()),
        ("LUKS", 0x4000, b"SKUL\xba\xbe\0\x02".to_vec()),
        ("LVM2", 512, lvm()),
        ("md (0.90)", (BYTES & !0xffff) - (64 << 10), md()),
        ("md (1.0)", (BYTES - (8 << 10)) & !0xfff, md()),
        ("md (1.1)", 0, md()),
        ("md (1.2)", 4096, md()),
        ("ZFS", 128 << 10, zfs_uberblock.clone()),
        ("ZFS", (256 << 10) + (128 << 10), zfs_uberblock.clone()),
        ("ZFS", labels_end - (512 << 10) + (128 << 10), zfs_uberblock.clone()),
        ("ZFS", labels_end - (256 << 10) + (128 << 10), zfs_uberblock),
        ("bcache", 4096, bcache()),
        ("swap", 4086, b"SWAPSPACE2".to_vec()),
    ]
}

#[test]
fn every_signature_is_refused_by_name_and_let_through_only_with_destroy_data() {
    for (name, at, bytes) in images() {
        let (drive, namespace, serial) = drive_with(512, &[(at, bytes)]);
        let error = permission(&serial, false).pass(&drive, namespace, "randwrite").expect_err(name);
        assert_eq!(error.kind.exit(), Exit::Refused, "{name}");
        assert!(error.message.contains(name), "{name} at {at}: {}", error.message);
        assert!(error.remedy.expect("a remedy").contains("--destroy-data"));
        let passed = permission(&serial, true).pass(&drive, namespace, "randwrite").expect("it is allowed");
        assert!(passed.text().contains(name), "what is destroyed is named: {}", passed.text());
        let sent = drive.sent();
        let writes = sent.iter().filter(|sent| !sent.admin && sent.name == "Write").count();
        assert!(writes <= 1, "the gate itself only reads: {sent:?}");
        assert!(drive.close().error.is_none());
    }
}

#[test]
fn a_partition_table_from_before_a_format_with_other_blocks_is_found() {
    for (at, bytes) in [(512, gpt()), (BYTES - 512, gpt()), (4096, gpt()), (BYTES - 4096, gpt())] {
        let (drive, namespace, serial) = drive_with(4096, &[(at, bytes)]);
        let error = permission(&serial, false).pass(&drive, namespace, "write").expect_err("a GPT");
        assert!(error.message.contains("GPT"), "{at}: {}", error.message);
    }
}

#[test]
fn an_empty_drive_is_let_through_and_a_wrong_serial_number_never() {
    let (drive, namespace, serial) = drive_with(512, &[]);
    assert!(permission(&serial, false).pass(&drive, namespace, "write").expect("empty").destroyed.is_empty());
    for (wrong, destroy_data) in [("", true), ("EMU", true), ("EMU00000", false)] {
        let error = permission(wrong, destroy_data).pass(&drive, namespace, "write").expect_err("another drive");
        assert_eq!(error.kind.exit(), Exit::Refused);
        assert!(error.message.contains(&serial), "{}", error.message);
    }
}

#[test]
fn both_words_are_needed_before_anything_is_opened() {
    let only = |write, serial: Option<&str>| {
        Permission { write, serial: serial.map(str::to_owned), destroy_data: true }.asked_for("write")
    };
    for refused in [only(false, None), only(true, None), only(false, Some("S"))] {
        assert_eq!(refused.expect_err("it is not allowed").kind.exit(), Exit::Refused);
    }
    assert!(only(true, Some("S")).is_ok());
}
