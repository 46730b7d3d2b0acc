//! Commands that change blocks without moving them from the host: Copy, Write Uncorrectable, Write Zeroes.
#![forbid(unsafe_code)]

mod harness;

use harness::{DATA, Host, blocks, entry};
use nvmetal_core::command::SubmissionEntry;

/// What is tried, the destination, the source ranges, and the status.
type Case<'a> = (&'a str, u32, &'a [(u64, u16)], u16);

/// Copy of these ranges to a block.
fn copy(host: &mut Host, to: u32, ranges: &[(u64, u16)]) -> SubmissionEntry {
    let mut list = vec![0; ranges.len() * 32];
    for (place, (first, count)) in list.chunks_exact_mut(32).zip(ranges) {
        place[8..16].copy_from_slice(&first.to_le_bytes());
        place[16..18].copy_from_slice(&(count - 1).to_le_bytes());
    }
    host.memory.enter().write(DATA + 0x1_0000, &list).unwrap();
    let list = DATA + 0x1_0000;
    entry(0x19, [to, 0]).with_nsid(1).with_cdw12(ranges.len() as u32 - 1).with_prp(list, list + 0x1000)
}

#[test]
fn copied_blocks_and_their_metadata_lie_one_after_the_other() {
    let mut host = Host::with_queue("ideal,written=no,metadata=8,metadata-extended=yes");
    let data: Vec<u8> = (0..8 * 520_u32).map(|at| (at / 520) as u8 + 1).collect();
    host.set_data(&data);
    assert_eq!(host.io(blocks(1, 100, 8)), 0);
    let command = copy(&mut host, 1000, &[(104, 2), (100, 1)]);
    assert_eq!(host.io(command), 0);
    assert_eq!(host.io(blocks(2, 1000, 4)), 0);
    assert_eq!(host.data(4 * 520), [[5; 520], [6; 520], [1; 520], [0; 520]].concat());
}

#[test]
fn a_copy_is_refused_as_the_specification_names_it_and_copies_nothing_then() {
    let mut host = Host::with_queue("ideal,blocks=20000");
    let many = [(0, 1); 65];
    let cases: &[Case<'_>] = &[
        ("the last blocks", 19_998, &[(0, 2)], 0),
        ("a destination beyond the end", 19_999, &[(0, 2)], 0x080),
        ("a source beyond the end", 0, &[(1000, 1), (19_999, 2)], 0x080),
        ("a source that wraps", 0, &[(u64::MAX, 2)], 0x080),
        ("the longest range", 10_000, &[(0, 2048)], 0),
        ("a range longer than MSSRL", 10_000, &[(0, 2049)], 0x183),
        ("more than MCL", 10_000, &[(0, 2048), (0, 2048), (0, 2048), (0, 2048), (0, 1)], 0x183),
        ("more ranges than MSRC", 10_000, &many, 0x183),
        ("a source that overlaps the destination", 101, &[(100, 2)], 0x187),
        ("a source next to the destination", 102, &[(100, 2)], 0),
    ];
    for &(what, to, ranges, status) in cases {
        let command = copy(&mut host, to, ranges);
        assert_eq!(host.io(command), status, "{what}");
    }
    let command = copy(&mut host, 0, &[(100, 1)]);
    for (what, command, status) in [
        ("another form of ranges", command.with_cdw12(1 << 8), 0x002),
        ("another namespace", command.with_nsid(2), 0x00b),
        ("a list that is not mapped", command.with_prp(0x10_0000_0000, 0), 0x004),
    ] {
        assert_eq!(host.io(command), status, "{what}");
    }
    assert_eq!(host.io(blocks(4, 500, 1)), 0);
    let command = copy(&mut host, 0, &[(100, 1), (500, 1)]);
    host.send(1, command);
    let completion = host.take(1).unwrap();
    assert_eq!((completion.status().type_and_code(), completion.dw0()), (0x281, 0), "an unreadable source");
}

#[test]
fn uncorrectable_blocks_cannot_be_read_until_they_are_written_or_zeroed() {
    let mut host = Host::with_queue("ideal,blocks=2048");
    assert_eq!(host.io(blocks(4, 10, 4)), 0);
    for (what, command, status) in [
        ("reading one", blocks(2, 13, 1), 0x281),
        ("reading before", blocks(2, 8, 2), 0),
        ("reading behind", blocks(2, 14, 2), 0),
        ("verifying", blocks(0x0c, 8, 8), 0x281),
        ("comparing", blocks(5, 10, 1), 0x281),
        ("writing one", blocks(1, 10, 1), 0),
        ("reading it then", blocks(2, 10, 1), 0),
        ("zeroing the rest, deallocating it", blocks(8, 11, 3).with_cdw12(1 << 25 | 2), 0),
        ("reading all then", blocks(2, 10, 4), 0),
        ("beyond the end", blocks(4, 2047, 2), 0x080),
        ("another namespace", blocks(4, 0, 1).with_nsid(2), 0x00b),
    ] {
        assert_eq!(host.io(command), status, "{what}");
    }
    assert_eq!(host.data(4 * 512)[512..], [0; 3 * 512]);
}
