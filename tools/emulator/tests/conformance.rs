//! The emulator against the specification: success, each error, boundary values, with a driver of a few lines.
#![forbid(unsafe_code)]

mod harness;

use harness::{BASE, DATA, Host, blocks, entry};
use nvmetal_core::command::SubmissionEntry;
use nvmetal_core::register::{Capabilities, offset};

#[test]
fn registers_have_their_reset_values() {
    let mut host = Host::off("ideal");
    let cap = Capabilities::from_bits(host.emulator.read(offset::CAP, 8));
    assert!(cap.css_nvm() && cap.cqr() && cap.mqes().count() >= 2 && cap.mpsmin() <= cap.mpsmax());
    for register in [offset::CC, offset::CSTS, offset::AQA, offset::INTMS, offset::NSSR] {
        assert_eq!(host.emulator.read(register, 4), 0, "{register:#x}");
    }
    assert_eq!(host.emulator.read(offset::VS, 4), 0x0002_0000);
    assert_eq!(host.emulator.read(offset::CAP + 4, 4), cap.into_bits() >> 32, "halves of a register can be read");
}

#[test]
fn enabling_with_what_cannot_be_is_a_fatal_error_and_a_reset_ends_it() {
    for cc in [0x0046_0001, 0x0046_0781] {
        let mut host = Host::off("ideal");
        if cc != 0x0046_0001 {
            host.emulator.write(offset::AQA, 4, 0x000f_000f);
        }
        host.emulator.write(offset::CC, 4, cc);
        assert!(host.status().cfs(), "{cc:#x}");
        host.emulator.write(offset::CC, 4, 0);
        assert!(!host.status().cfs());
    }
}

#[test]
fn a_disabled_controller_forgets_its_queues_and_keeps_the_admin_queue_registers() {
    let mut host = Host::with_queue("ideal");
    host.emulator.write(offset::CC, 4, 0);
    assert!(host.status().rdy(), "going down takes time");
    host.emulator.advance(host.emulator.now_ns() + 1_000_000_000);
    assert!(!host.status().rdy());
    assert_eq!(host.emulator.read(offset::ASQ, 8), BASE);
    assert_eq!(host.emulator.read(offset::AQA, 4), 0x000f_000f);
}

#[test]
fn a_shutdown_takes_its_time_and_ends() {
    let mut host = Host::ready("ideal");
    host.emulator.write(offset::CC, 4, 0x0046_4001);
    assert_eq!(host.status().shst().into_bits(), 1);
    host.emulator.advance(host.emulator.now_ns() + 1_000_000_000);
    assert_eq!(host.status().shst().into_bits(), 2);
}

#[test]
fn queues_are_created_and_deleted_as_the_specification_allows() {
    let mut host = Host::with_queue("ideal,queues=4");
    let create = |opcode, qid: u32, size: u32, cdw11| entry(opcode, [(size - 1) << 16 | qid, cdw11]).with_prp(DATA, 0);
    for (what, command, status) in [
        ("a queue that exists", create(5, 1, 16, 1), 0x101),
        ("queue 0", create(5, 0, 16, 1), 0x101),
        ("a queue beyond those granted", create(5, 5, 16, 1), 0x101),
        ("a queue of one entry", create(5, 2, 1, 1), 0x102),
        ("a queue larger than MQES", create(5, 2, 4097, 1), 0x102),
        ("a queue in pieces", create(5, 2, 16, 0), 0x002),
        ("a queue that is not aligned", create(5, 2, 16, 1).with_prp(DATA + 64, 0), 0x013),
        ("a vector that is not there", create(5, 2, 16, 5 << 16 | 3), 0x108),
        ("a submission queue without a completion queue", create(1, 2, 16, 2 << 16 | 1), 0x100),
        ("a submission queue on completion queue 0", create(1, 2, 16, 1), 0x101),
        ("deleting a completion queue in use", entry(4, [1, 0]), 0x10c),
        ("deleting queue 0", entry(0, [0, 0]), 0x101),
        ("deleting a queue that is not there", entry(4, [3, 0]), 0x101),
        ("deleting the submission queue", entry(0, [1, 0]), 0),
        ("deleting its completion queue then", entry(4, [1, 0]), 0),
    ] {
        assert_eq!(host.admin(command), status, "{what}");
    }
}

#[test]
fn deleting_a_queue_ends_its_commands() {
    let mut host = Host::with_queue("ideal,fault=timeout@1");
    host.send(1, blocks(2, 0, 8));
    assert!(host.take(1).is_none());
    assert_eq!(host.admin(entry(0, [1, 0])), 0);
    assert_eq!(host.take(1).unwrap().status().type_and_code(), 0x008);
}

#[test]
fn an_abort_ends_a_stuck_command_and_says_when_there_was_none() {
    let mut host = Host::with_queue("ideal,fault=timeout@1");
    host.send(1, blocks(2, 0, 8));
    host.send(0, entry(8, [0x100 << 16 | 1, 0]));
    assert_eq!(host.take(0).unwrap().dw0() & 1, 0);
    assert_eq!(host.take(1).unwrap().status().type_and_code(), 0x007);
    host.send(0, entry(8, [0x100 << 16 | 1, 0]));
    assert_eq!(host.take(0).unwrap().dw0() & 1, 1);
}

#[test]
fn what_is_written_is_read_and_compared() {
    let mut host = Host::with_queue("ideal,written=no");
    let data: Vec<u8> = (0..4096_u32).map(|at| ((at * 7) >> 3) as u8).collect();
    host.set_data(&data);
    assert_eq!(host.io(blocks(1, 1000, 8)), 0);
    assert_eq!(host.io(blocks(5, 1000, 8)), 0);
    host.set_data(&[0; 4096]);
    assert_eq!(host.io(blocks(5, 1000, 8)), 0x285);
    assert_eq!(host.io(blocks(2, 1000, 8)), 0);
    assert_eq!(host.data(4096), data);
    assert_eq!(host.io(blocks(8, 1001, 1)), 0, "write zeroes");
    assert_eq!(host.io(blocks(2, 1000, 8)), 0);
    assert_eq!(host.data(4096)[..1536], [&data[..512], &[0; 512], &data[1024..1536]].concat());
    assert_eq!((host.io(blocks(0, 0, 1)), host.io(blocks(0x0c, 0, 8))), (0, 0), "flush and verify");
}

#[test]
fn deallocated_blocks_read_as_zeros() {
    let mut host = Host::with_queue("ideal");
    let mut range = [0; 16];
    range[4..8].copy_from_slice(&8_u32.to_le_bytes());
    range[8..16].copy_from_slice(&16_u64.to_le_bytes());
    host.set_data(&range);
    assert_eq!(host.io(entry(9, [0, 1 << 2]).with_nsid(1)), 0);
    assert_eq!(host.io(blocks(2, 16, 8)), 0);
    assert_eq!(host.data(4096), [0; 4096]);
    range[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
    host.set_data(&range);
    assert_eq!(host.io(entry(9, [0, 1 << 2]).with_nsid(1)), 0x080);
}

#[test]
fn io_commands_are_refused_as_the_specification_names_it() {
    let mut host = Host::with_queue("ideal,blocks=2048,mdts=1");
    for (what, command, status) in [
        ("the last block", blocks(2, 2047, 1), 0),
        ("one block beyond", blocks(2, 2047, 2), 0x080),
        ("an address that wraps", blocks(2, u64::MAX, 2), 0x080),
        ("the largest transfer", blocks(2, 0, 16), 0),
        ("more than MDTS", blocks(2, 0, 17), 0x002),
        ("another namespace", blocks(2, 0, 1).with_nsid(2), 0x00b),
        ("all namespaces", blocks(2, 0, 1).with_nsid(u32::MAX), 0x00b),
        ("an opcode that is not there", blocks(0x7f, 0, 1), 0x001),
        ("a data pointer that is not aligned", blocks(2, 0, 1).with_prp(DATA + 2, 0), 0x013),
        ("a second page that is not aligned", blocks(2, 0, 16).with_prp(DATA, DATA + 0x1004), 0x013),
        ("a reserved kind of data pointer", blocks(2, 0, 1).with_psdt(3), 0x002),
        ("memory that is not mapped", blocks(2, 0, 1).with_prp(0x10, 0), 0x004),
    ] {
        assert_eq!(host.io(command), status, "{what}");
    }
    assert_eq!(host.memory.take_faults().len(), 1, "the last of them is a fault report");
}

#[test]
fn a_prp_list_chains_over_pages() {
    let mut host = Host::with_queue("ideal,mdts=0,lba=4096,written=no");
    // A list that begins two entries before its page ends: one entry, a pointer, and the rest in the next page.
    let (list, next) = (BASE + 0x8000, BASE + 0x9000);
    let page = |number: u64| DATA + number * 0x1000;
    host.memory.enter().write(list + 0xff0, &page(1).to_le_bytes()).unwrap();
    host.memory.enter().write(list + 0xff8, &next.to_le_bytes()).unwrap();
    for number in 2..4 {
        host.memory.enter().write(next + (number - 2) * 8, &page(number).to_le_bytes()).unwrap();
    }
    let data: Vec<u8> = (0..4 * 4096_u32).map(|at| (at >> 12) as u8 + 1).collect();
    host.set_data(&data);
    assert_eq!(host.io(blocks(1, 0, 4).with_prp(DATA, list + 0xff0)), 0);
    host.set_data(&[0; 4 * 4096]);
    assert_eq!(host.io(blocks(2, 0, 4).with_prp(DATA, list + 0xff0)), 0);
    assert_eq!(host.data(4 * 4096), data);
}

#[test]
fn a_failed_read_is_counted_logged_and_repaired_by_a_write() {
    let mut host = Host::with_queue("ideal,fault=read-error@1");
    assert_eq!(host.io(blocks(2, 40, 8)), 0x281);
    assert_eq!(host.io(blocks(2, 40, 1)), 0x281, "the block stays unreadable");
    assert_eq!(host.io(blocks(1, 40, 1)), 0);
    assert_eq!(host.io(blocks(2, 40, 8)), 0);
    assert_eq!(host.admin(entry(2, [127 << 16 | 2, 0]).with_nsid(u32::MAX)), 0);
    let smart = host.data(512);
    assert_eq!((smart[160], smart[176], smart[32], smart[64]), (2, 2, 1, 1), "errors, entries, units, commands");
    assert_eq!(host.admin(entry(2, [15 << 16 | 1, 0]).with_nsid(u32::MAX)), 0);
    let error = host.data(64);
    assert_eq!((error[0], error[8], error[16], error[24]), (2, 1, 40, 1), "count, queue, block, namespace");
}

#[test]
fn admin_commands_are_refused_as_the_specification_names_it() {
    let mut host = Host::with_queue("ideal");
    for (what, command, status) in [
        ("an opcode that is not there", entry(0xff, [0, 0]), 0x001),
        ("an identify structure that is not there", entry(6, [0x7f, 0]), 0x002),
        ("identify of namespace 0", entry(6, [0, 0]), 0x00b),
        ("identify of a namespace beyond NN", entry(6, [0, 0]).with_nsid(2), 0x00b),
        ("the list after the last identifier", entry(6, [2, 0]).with_nsid(u32::MAX), 0x00b),
        ("a log page that is not there", entry(2, [0x7f, 0]), 0x109),
        ("a log page beyond its end", entry(2, [2, 0]).with_cdw12(512), 0x002),
        ("a log page offset that is not aligned", entry(2, [2, 0]).with_cdw12(2), 0x002),
        ("SMART of one namespace", entry(2, [2, 0]).with_nsid(1), 0x002),
        ("a feature that is not there", entry(0x0a, [0xff, 0]), 0x002),
        ("saving a feature", entry(9, [1 << 31 | 4, 0]), 0x10d),
        ("a namespace for the controller's feature", entry(9, [1, 0]).with_nsid(1), 0x10f),
        ("a power state that is not there", entry(9, [2, 1]), 0x002),
        ("the number of queues after queues exist", entry(9, [7, 0]), 0x00c),
        ("65,536 queues (C-14)", entry(9, [7, u32::MAX]), 0x002),
        ("an abort on a queue that is not there", entry(8, [9, 0]), 0x002),
    ] {
        assert_eq!(host.admin(command), status, "{what}");
    }
}

#[test]
fn an_invalid_doorbell_is_an_event() {
    let mut host = Host::ready("ideal");
    host.send(0, entry(0x0c, [0, 0]));
    assert!(host.take(0).is_none(), "an event request waits");
    host.emulator.write(0x1000, 4, 4000);
    assert_eq!(host.take(0).unwrap().dw0(), 0x0001_0100);
    host.send(0, entry(0x0c, [0, 0]));
    host.emulator.write(0x1000 + 8 * 9, 4, 1);
    assert!(host.take(0).is_none(), "the type is masked until its log page was read");
    assert_eq!(host.emulator.in_flight(), 0);
    host.send(0, entry(2, [15 << 16 | 1, 0]));
    assert!(host.take(0).unwrap().status().is_success());
    assert!(host.take(0).is_none(), "what the page told is not told again");
    host.emulator.write(0x1000 + 8 * 9, 4, 1);
    assert_eq!(host.take(0).unwrap().dw0(), 0x0001_0000);
}

#[test]
fn any_entry_on_any_queue_is_answered_without_a_panic() {
    let mut host = Host::with_queue("ideal,mdts=5");
    let mut state = 0x1234_5678_9abc_def1_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u32
    };
    for _ in 0..2000 {
        let mut dwords: [u32; 16] = core::array::from_fn(|_| random());
        dwords[1] %= 3;
        // Half of them point to memory that is mapped.
        if random() & 1 == 0 {
            (dwords[6], dwords[7], dwords[8], dwords[9]) =
                (DATA as u32 | dwords[6] & 0xffc, 0, DATA as u32 + 0x1000, 0);
        }
        dwords[0] &= 0xff;
        dwords[12] &= 0x3f;
        let opcode = dwords[0] as u8;
        host.send(1, SubmissionEntry::from_dwords(dwords));
        assert!(host.take(1).is_some(), "opcode {opcode:#x}");
    }
    for _ in 0..2000 {
        host.emulator.write(u64::from(random()) % 0x1000, 4, u64::from(random()));
        host.emulator.advance(host.emulator.now_ns() + 1_000_000);
    }
}
