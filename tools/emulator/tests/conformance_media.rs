//! Admin commands on the media, and the memory that the host lends: Format NVM, Sanitize, Device Self-test, the host
//! memory buffer.
#![forbid(unsafe_code)]

mod harness;

use harness::{BASE, DATA, Host, blocks, entry};
use nvmetal_core::command::SubmissionEntry;

#[test]
fn a_format_changes_the_blocks_and_erases_them() {
    let mut host = Host::with_queue("ideal,capacity=1MiB,metadata=8");
    let format = |cdw10| entry(0x80, [cdw10, 0]).with_nsid(1);
    for (what, command, status) in [
        ("a format that is not there", format(4), 0x10a),
        ("an index with its upper bits", format(1 << 12), 0x10a),
        ("protection information", format(1 << 5), 0x10a),
        ("a secure erase that is not there", format(3 << 9), 0x002),
        ("reserved bits", format(1 << 14), 0x002),
        ("namespace 0", format(0).with_nsid(0), 0x00b),
        ("another namespace", format(0).with_nsid(2), 0x00b),
        ("4 KiB with a cryptographic erase", format(2 << 9 | 1), 0),
    ] {
        assert_eq!(host.admin(command), status, "{what}");
    }
    assert_eq!(host.admin(entry(6, [0, 0]).with_nsid(1)), 0);
    let data = host.data(4096);
    assert_eq!((&data[..8], data[16], data[26]), (&256_u64.to_le_bytes()[..], 0, 1), "size, nothing used, format");
    assert_eq!((host.io(blocks(2, 255, 1)), host.io(blocks(2, 256, 1))), (0, 0x080));
    assert_eq!(host.data(4096), [0; 4096]);
    assert_eq!(host.admin(format(1 << 4 | 2).with_nsid(u32::MAX)), 0, "512 bytes with metadata behind each block");
    assert_eq!((host.io(blocks(2, 2047, 1)), host.io(blocks(2, 2048, 1))), (0, 0x080));
}

#[test]
fn a_sanitize_tells_its_progress_refuses_commands_meanwhile_and_ends_in_an_event() {
    let mut host = Host::with_queue("ideal,capacity=64GiB");
    let sanitize = |cdw10| entry(0x84, [cdw10, 0]);
    for (what, cdw10) in [("no action", 0), ("an action that is not there", 6), ("no-deallocate", 2 | 1 << 9)] {
        assert_eq!(host.admin(sanitize(cdw10)), 0x002, "{what}");
    }
    assert_eq!(host.log_page(0x81, 512)[..4], [0xff, 0xff, 0, 0], "never sanitized");
    host.send(0, entry(0x0c, [0, 0]));
    assert_eq!(host.admin(sanitize(2)), 0);
    host.pass(2); // Of four.
    let page = host.log_page(0x81, 512);
    assert_eq!((page[1], page[2] & 7, page[4]), (0x80, 2, 2), "half of it, in progress, block erase");
    assert_eq!(host.io(blocks(2, 0, 1)), 0x01d);
    for opcode in [0x14, 0x80, 0x84] {
        assert_eq!(host.admin(entry(opcode, [1, 0]).with_nsid(1)), 0x01d, "{opcode:#x}");
    }
    assert_eq!(host.admin(entry(6, [1, 0])), 0, "identify");
    assert_eq!(host.take(0).unwrap().dw0(), 0x0081_0106, "the event");
    assert_eq!(host.log_page(0x81, 512)[..3], [0xff, 0xff, 1]);
    assert_eq!(host.io(blocks(2, 0, 8)), 0);
    assert_eq!(host.data(4096), [0; 4096]);
}

#[test]
fn a_self_test_runs_is_aborted_and_fails_on_a_block_that_cannot_be_read() {
    let mut host = Host::with_queue("ideal");
    let test = |stc| entry(0x14, [stc, 0]).with_nsid(1);
    assert_eq!(host.admin(test(0)), 0x002, "a code that is reserved");
    assert_eq!(host.admin(test(1).with_nsid(2)), 0x00b);
    assert_eq!(host.admin(test(0xf)), 0, "nothing to abort");
    assert_eq!(host.log_page(6, 564)[4] & 0xf, 0xf, "no result");
    assert_eq!(host.admin(test(1)), 0);
    assert_eq!(host.admin(test(2)), 0x11d);
    host.pass(30);
    assert_eq!(host.log_page(6, 564)[..2], [1, 50], "the short one, half of it");
    host.pass(30);
    assert_eq!(host.log_page(6, 564)[..5], [0, 0, 0, 0, 0x10], "passed");
    assert_eq!(host.admin(test(2)), 0);
    assert_eq!(host.admin(test(0xf)), 0);
    assert_eq!(host.log_page(6, 564)[4], 0x21, "aborted by a command");
    assert_eq!(host.io(blocks(4, 7, 1)), 0);
    assert_eq!(host.admin(test(2)), 0);
    host.pass(600);
    let page = host.log_page(6, 564);
    assert_eq!((page[4], page[6], page[16], page[20]), (0x27, 3, 1, 7), "failed, where, namespace, block");
    assert_eq!(page[32], 0x21, "the one before");
}

/// What is tried, the size in pages, the pieces, and the status.
type Case<'a> = (&'a str, u32, &'a [(u64, u32)], u16);

/// Gives the host memory buffer: its size in pages, and a list of addresses and pages.
fn lend(host: &Host, pages: u32, pieces: &[(u64, u32)]) -> SubmissionEntry {
    let mut list = vec![0; pieces.len() * 16];
    for (place, (iova, pages)) in list.chunks_exact_mut(16).zip(pieces) {
        place[..8].copy_from_slice(&iova.to_le_bytes());
        place[8..12].copy_from_slice(&pages.to_le_bytes());
    }
    host.memory.enter().write(DATA, &list).unwrap();
    let mut dwords = entry(9, [0x0d, 1]).dwords();
    dwords[12..].copy_from_slice(&[pages, DATA as u32, (DATA >> 32) as u32, pieces.len() as u32]);
    SubmissionEntry::from_dwords(dwords)
}

#[test]
fn the_host_memory_buffer_is_taken_checked_and_given_back() {
    let mut host = Host::ready("ideal,hmb=64KiB,hmb-min=16KiB");
    let (one, two) = (BASE + 0x8000, BASE + 0x2_0000);
    let cases: &[Case<'_>] = &[
        ("less than the least", 3, &[(one, 3)], 0x002),
        ("no piece", 4, &[], 0x002),
        ("a piece that is not aligned", 4, &[(one + 8, 4)], 0x002),
        ("an empty piece", 4, &[(one, 4), (two, 0)], 0x002),
        ("pieces that are not the size", 5, &[(one, 4)], 0x002),
        ("a piece that wraps", 4, &[(u64::MAX - 0xfff, 4)], 0x002),
        ("a piece that is not mapped", 4, &[(0x10_0000_0000, 4)], 0x004),
        ("two pieces", 5, &[(one, 4), (two, 1)], 0),
        ("another while it has one", 5, &[(one, 4), (two, 1)], 0x00c),
    ];
    for &(what, pages, pieces, status) in cases {
        let command = lend(&host, pages, pieces);
        assert_eq!(host.admin(command), status, "{what}");
    }
    assert_eq!(host.emulator.host_memory_bytes(), 5 * 4096);
    let mut mark = [0; 8];
    host.memory.enter().read(two, &mut mark).unwrap();
    assert_ne!(mark, [0; 8], "it is used");
    host.send(0, entry(0x0a, [0x0d, 0]));
    assert_eq!(host.take(0).unwrap().dw0(), 1);
    assert_eq!(host.data(16)[12], 2, "pieces");
    assert_eq!(host.admin(entry(9, [0x0d, 0])), 0);
    assert_eq!(host.emulator.host_memory_bytes(), 0);
    assert_eq!(host.admin(entry(9, [0x0d, 1 << 3])), 0x002, "a reserved bit");
    let mut without = Host::ready("ideal");
    let command = lend(&without, 4, &[(one, 4)]);
    assert_eq!(without.admin(command), 0x002, "a drive that wants none");
}

#[test]
fn a_controller_reset_takes_features_and_the_host_memory_buffer_back() {
    let mut host = Host::ready("ideal,hmb=64KiB");
    let command = lend(&host, 4, &[(BASE + 0x8000, 4)]);
    assert_eq!(host.admin(command), 0);
    host.emulator.write(nvmetal_core::register::offset::CC, 4, 0);
    assert_eq!(host.emulator.host_memory_bytes(), 0);
}
