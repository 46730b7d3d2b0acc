//! The emulated controller in front of a driver that does anything: registers, doorbells, entries, PRPs, time.
//!
//! It may answer as it likes, but it must not panic, must not run for ever at one moment, and reaches no memory but what
//! it was given (that is `GuestMemory`'s promise; what lies outside is a fault report).

use std::sync::Arc;

use arbitrary::Unstructured;
use nvmetal_core::command::SubmissionEntry;
use nvmetal_core::register::offset;
use nvmetal_emulator::{Emulator, GuestMemory, NoIrq, Options};

const BASE: u64 = 0x10_0000;
const BYTES: u64 = 1 << 20;
const ENTRIES: u32 = 16;
const OPTIONS: [&str; 6] = [
    "ideal",
    "ideal,lba=4096,blocks=1000",
    "ideal,mdts=1,blocks=77",
    "ideal,written=no",
    "ideal,fault=read-error@3",
    "ideal,removed@20",
];

/// Options, whether the controller is enabled properly first, then what is done to it.
pub fn run(data: &[u8]) {
    let _ = play(&mut Unstructured::new(data));
}

fn play(input: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let memory = Arc::new(GuestMemory::new());
    memory.map_anonymous(BASE, BYTES).expect("memory");
    let options = Options::parse(input.choose(&OPTIONS)?).expect("good options");
    let mut emulator = Emulator::new(options, Arc::clone(&memory), Box::new(NoIrq));
    if input.ratio(7, 8)? {
        enable(&mut emulator);
    }
    if input.ratio(3, 4)? {
        let size = (ENTRIES - 1) << 16 | 1;
        send(
            &mut emulator,
            &memory,
            0,
            0,
            SubmissionEntry::new(5).with_cdw10(size).with_cdw11(1).with_prp(BASE + 0x3000, 0),
        );
        let create = SubmissionEntry::new(1).with_cdw10(size).with_cdw11(1 << 16 | 1).with_prp(BASE + 0x2000, 0);
        send(&mut emulator, &memory, 0, 1, create);
        pass(&mut emulator, 1_000_000);
    }
    let mut tails = [2, 0, 0, 0];
    for _ in 0..64 {
        turn(input, &mut emulator, &memory, &mut tails)?;
        if input.is_empty() {
            break;
        }
    }
    pass(&mut emulator, 60_000_000_000);
    emulator.function_reset();
    if !emulator.is_removed() {
        assert_eq!(emulator.read(offset::CC, 4) & 1, 0, "a reset disables");
        assert_eq!(emulator.in_flight(), 0, "a reset forgets what was in flight");
    }
    Ok(())
}

fn enable(emulator: &mut Emulator) {
    emulator.write(offset::AQA, 4, u64::from((ENTRIES - 1) << 16 | (ENTRIES - 1)));
    emulator.write(offset::ASQ, 8, BASE);
    emulator.write(offset::ACQ, 8, BASE + 0x1000);
    emulator.write(offset::CC, 4, 0x0046_0001);
    pass(emulator, 1_000_000_000);
}

/// Lets time pass, event by event.
fn pass(emulator: &mut Emulator, ns: u64) {
    let (began_ns, mut at_once) = (emulator.now_ns(), 0);
    let until_ns = began_ns.saturating_add(ns);
    while emulator.next_event_ns().is_some_and(|next_ns| next_ns <= until_ns) {
        let before_ns = emulator.now_ns();
        emulator.step(until_ns);
        assert!(emulator.now_ns() >= before_ns, "time runs backwards");
        at_once = if emulator.now_ns() == before_ns { at_once + 1 } else { 0 };
        assert!(at_once < 100_000, "it does not come on from {before_ns} ns");
    }
    emulator.advance(until_ns);
}

/// Writes an entry to a queue's place in memory and rings for it.
fn send(emulator: &mut Emulator, memory: &GuestMemory, queue: u64, tail: u32, entry: SubmissionEntry) {
    let at = BASE + 0x2000 * queue + u64::from(tail % ENTRIES) * 64;
    // The host writes its own memory whether or not the controller may reach it; here both go the same way.
    let _ = memory.enter().write(at, &entry.with_cid(tail as u16).to_bytes());
    emulator.write(0x1000 + 8 * queue, 4, u64::from((tail + 1) % ENTRIES));
}

/// An address: mostly in the memory, at a page or not.
fn address(input: &mut Unstructured<'_>) -> arbitrary::Result<u64> {
    let any: u64 = input.arbitrary()?;
    Ok(match any >> 61 {
        0..=3 => BASE + any % (BYTES / 0x1000) * 0x1000,
        4 | 5 => BASE + any % BYTES,
        6 => BASE + BYTES - any % 0x2000,
        _ => any,
    })
}

fn turn(
    input: &mut Unstructured<'_>,
    emulator: &mut Emulator,
    memory: &GuestMemory,
    tails: &mut [u32; 4],
) -> arbitrary::Result<()> {
    match input.int_in_range(0..=15)? {
        0..=7 => {
            let queue = usize::from(input.ratio(1, 2)?);
            let mut dwords: [u32; 16] = input.arbitrary()?;
            // Mostly opcodes that exist, and fields with small numbers.
            dwords[0] &= if input.ratio(3, 4)? { 0x1f } else { 0xffff };
            if input.ratio(3, 4)? {
                dwords[1] &= 1;
                (10..16).for_each(|at| dwords[at] &= 0x8000_00ff);
            }
            let entry = SubmissionEntry::from_dwords(dwords).with_prp(address(input)?, address(input)?);
            send(emulator, memory, queue as u64, tails[queue], entry);
            tails[queue] = (tails[queue] + 1) % ENTRIES;
        }
        8 => {
            let bytes: [u8; 64] = input.arbitrary()?;
            // A list or an entry; outside the memory nothing is written.
            let _ = memory.enter().write(address(input)?, &bytes);
        }
        9 => {
            let list: [u64; 4] = [address(input)?, address(input)?, address(input)?, address(input)?];
            for (index, word) in list.into_iter().enumerate() {
                let _ = memory.enter().write(BASE + 0x8000 + 8 * index as u64, &word.to_le_bytes());
            }
        }
        10 => emulator.write(0x1000 + 4 * input.int_in_range(0..=9)?, 4, input.arbitrary::<u16>()?.into()),
        11 => emulator.write(input.int_in_range(0..=0x1100)?, *input.choose(&[1, 2, 4, 8])?, input.arbitrary()?),
        12 => {
            let _ = emulator.read(input.int_in_range(0..=0x1100)?, *input.choose(&[1, 2, 4, 8])?);
        }
        13 => {
            let registers = [offset::CC, offset::AQA, offset::ASQ, offset::ACQ, offset::NSSR, offset::CSTS];
            let value =
                if input.ratio(1, 2)? { 0x0046_0001 ^ 1 << input.int_in_range(0..=63)? } else { input.arbitrary()? };
            emulator.write(*input.choose(&registers)?, *input.choose(&[4, 8])?, value);
        }
        14 => memory.set_bus_master(input.ratio(3, 4)?),
        _ => pass(emulator, input.arbitrary::<u32>()?.into()),
    }
    Ok(())
}
