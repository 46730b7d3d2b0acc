//! What on a drive must not be overwritten by accident: signatures of partition tables, file systems, volumes and swap.
//!
//! They are looked for in the first and the last mebibyte, where all of them have their places, at the byte offsets that
//! their formats fix, whatever the drive's block size: a drive that was formatted with other blocks since keeps the old
//! data readable. Formats that keep several copies are found by any of them. What is found is named with its place, and
//! nothing is concluded from bytes that merely are not zero.
#![forbid(unsafe_code)]

use serde::Serialize;

/// Bytes to be looked at, at each end.
pub const WINDOW_BYTES: u64 = 1 << 20;

/// Something found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Signature {
    /// What it is the mark of.
    pub name: &'static str,
    /// Where the mark is, in bytes from the drive's beginning.
    pub at_bytes: u64,
}

/// Bytes at a fixed place from the drive's beginning.
struct Mark {
    name: &'static str,
    at: usize,
    bytes: &'static [u8],
}

const fn mark(name: &'static str, at: usize, bytes: &'static [u8]) -> Mark {
    Mark { name, at, bytes }
}

/// Marks near the beginning.
const MARKS: &[Mark] = &[
    mark("GPT", 512, b"EFI PART"),
    mark("GPT", 4096, b"EFI PART"),
    mark("xfs", 0, b"XFSB"),
    mark("NTFS", 3, b"NTFS    "),
    mark("exFAT", 3, b"EXFAT   "),
    mark("BitLocker", 3, b"-FVE-FS-"),
    mark("FAT", 54, b"FAT12   "),
    mark("FAT", 54, b"FAT16   "),
    mark("FAT", 82, b"FAT32   "),
    mark("btrfs", 0x1_0040, b"_BHRfS_M"),
    mark("F2FS", 1024, &[0x10, 0x20, 0xf5, 0xf2]),
    mark("APFS", 32, b"NXSB"),
    mark("LUKS", 0, b"LUKS\xba\xbe"),
    mark("LUKS", 0x4000, b"SKUL\xba\xbe"),
    mark("LUKS", 0x8000, b"SKUL\xba\xbe"),
    mark("LUKS", 0x1_0000, b"SKUL\xba\xbe"),
    mark("LUKS", 0x2_0000, b"SKUL\xba\xbe"),
    mark("LUKS", 0x4_0000, b"SKUL\xba\xbe"),
    mark("LUKS", 0x8_0000, b"SKUL\xba\xbe"),
    mark("md (1.1)", 0, &MD_MAGIC),
    mark("md (1.2)", 4096, &MD_MAGIC),
    mark("bcache", 4096 + 24, b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81"),
    mark("Ceph BlueStore", 0, b"bluestore block device"),
];

/// Superblock magic of Linux md, a92b4efch, little endian; 0.90 is in the byte order of its machine.
const MD_MAGIC: [u8; 4] = [0xfc, 0x4e, 0x2b, 0xa9];
const MD_MAGIC_BIG: [u8; 4] = [0xa9, 0x2b, 0x4e, 0xfc];
/// Sizes of pages with which swap areas have been made: the mark is at the end of the first page.
const SWAP_PAGES: [usize; 5] = [4096, 8192, 16_384, 32_768, 65_536];
/// A ZFS label; two at the beginning and two at the end.
const ZFS_LABEL: u64 = 256 << 10;

/// Looks at the beginning and the end of a drive of `bytes` bytes; `tail` ends where the drive does.
pub fn find(head: &[u8], tail: &[u8], bytes: u64) -> Vec<Signature> {
    let tail_at = bytes.saturating_sub(tail.len() as u64);
    let mut found = Vec::new();
    let mut add = |name, at_bytes| {
        if !found.contains(&Signature { name, at_bytes }) {
            found.push(Signature { name, at_bytes });
        }
    };
    let in_tail = |at: u64| tail.get(usize::try_from(at.checked_sub(tail_at)?).ok()?..);
    let tail_has = |at: u64, bytes: &[u8]| in_tail(at).is_some_and(|rest| rest.starts_with(bytes));
    for mark in MARKS.iter().filter(|mark| has(head, mark.at, mark.bytes)) {
        add(mark.name, mark.at as u64);
    }
    // ext2, 3, 4: magic EF53h at byte 56 of the superblock at 1024. Two bytes alone are little, so the revision must be
    // one that exists, too.
    if has(head, 1080, &[0x53, 0xef]) && head.get(1100..1104).is_some_and(|rev| matches!(rev, [0 | 1, 0, 0, 0])) {
        add("ext", 1080);
    }
    if has(head, 510, &[0x55, 0xaa]) {
        let entries = head.get(446..510).unwrap_or_default();
        let name = if entries.chunks(16).any(|entry| entry.get(4).is_some_and(|&kind| kind != 0)) {
            "MBR"
        } else {
            "boot sector"
        };
        add(name, 510);
    }
    // The label is in one of the first four sectors.
    for at in (0..4).map(|sector| sector * 512).filter(|&at| has(head, at, b"LABELONE")) {
        add("LVM2", at as u64);
    }
    for page in SWAP_PAGES {
        if has(head, page - 10, b"SWAPSPACE2") || has(head, page - 10, b"SWAP-SPACE") {
            add("swap", page as u64 - 10);
        }
    }
    for block in [512, 4096] {
        let at = bytes.saturating_sub(block);
        if tail_has(at, b"EFI PART") {
            add("GPT", at);
        }
    }
    // md 0.90: 64 KiB before the last multiple of 64 KiB. 1.0: 8 KiB before the end, at a multiple of 4 KiB.
    let old = (bytes & !0xffff).saturating_sub(64 << 10);
    if tail_has(old, &MD_MAGIC) || tail_has(old, &MD_MAGIC_BIG) {
        add("md (0.90)", old);
    }
    let new = bytes.saturating_sub(8 << 10) & !0xfff;
    if tail_has(new, &MD_MAGIC) {
        add("md (1.0)", new);
    }
    let last_labels = (bytes & !(ZFS_LABEL - 1)).saturating_sub(2 * ZFS_LABEL);
    for label in [0, ZFS_LABEL, last_labels, last_labels + ZFS_LABEL] {
        let data = if label < 2 * ZFS_LABEL { head.get(label as usize..) } else { in_tail(label) };
        let data = data.unwrap_or_default();
        if is_zfs_label(data.get(..ZFS_LABEL as usize).unwrap_or(data)) {
            add("ZFS", label);
        }
    }
    found
}

fn has(data: &[u8], at: usize, bytes: &[u8]) -> bool {
    data.get(at..).is_some_and(|rest| rest.starts_with(bytes))
}

/// A label has the pool's description from 16 KiB on, and uberblocks (magic 00bab10ch in either byte order) from 128 KiB.
fn is_zfs_label(label: &[u8]) -> bool {
    let describes = label.get(16 << 10..128 << 10).is_some_and(|list| {
        let mut names = list.windows(9);
        names.any(|name| name == b"pool_guid")
    });
    let uberblocks = label.get(128 << 10..).unwrap_or_default().chunks(1024);
    describes
        || uberblocks.into_iter().any(|block| {
            block.starts_with(&0x00ba_b10c_u64.to_le_bytes()) || block.starts_with(&0x00ba_b10c_u64.to_be_bytes())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 8 << 20;

    fn found(put: impl FnOnce(&mut [u8])) -> Vec<&'static str> {
        let mut drive = vec![0; SIZE as usize];
        put(&mut drive);
        let (head, tail) = (&drive[..1 << 20], &drive[7 << 20..]);
        find(head, tail, SIZE).into_iter().map(|signature| signature.name).collect()
    }

    fn put(drive: &mut [u8], at: usize, bytes: &[u8]) {
        drive[at..at + bytes.len()].copy_from_slice(bytes);
    }

    #[test]
    fn an_empty_drive_and_one_of_noise_have_none() {
        assert!(found(|_| {}).is_empty());
        let mut random = nvmetal_driver::workload::random::Random::new(5);
        assert!(found(|drive| random.fill(drive)).is_empty());
    }

    #[test]
    fn any_copy_of_a_zfs_label_is_enough() {
        for label in [0, 256 << 10, (8 << 20) - (512 << 10), (8 << 20) - (256 << 10)] {
            assert_eq!(found(|drive| put(drive, label + (20 << 10), b"pool_guid")), ["ZFS"]);
            assert_eq!(found(|drive| put(drive, label + (130 << 10), &0x00ba_b10c_u64.to_be_bytes())), ["ZFS"]);
        }
    }

    #[test]
    fn a_drive_shorter_than_the_windows_is_no_trouble() {
        assert!(find(&[0; 512], &[0; 512], 512).is_empty());
        assert!(find(&[], &[], 0).is_empty());
    }

    #[test]
    fn two_bytes_of_ext_are_not_enough() {
        assert!(
            found(|drive| {
                put(drive, 1080, &[0x53, 0xef]);
                put(drive, 1100, &[9, 9, 9, 9]);
            })
            .is_empty()
        );
    }
}
