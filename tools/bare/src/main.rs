//! A controller brought up and a block read, on a machine without an operating system.
//!
//! What a firmware needs is in this file: the bring-up machine, an admin queue, one I/O queue, a read. What differs from
//! board to board (where the controller's registers lie, a clock, a serial port) is in `board.rs`. There is no
//! allocator: the controller reaches the pages below and nothing else.
#![no_std]
#![no_main]

mod board;
mod page;

use core::fmt;

use nvmetal_core::command::admin::{Cns, CreateIoCompletionQueue, CreateIoSubmissionQueue, Identify};
use nvmetal_core::command::{Command, SubmissionEntry, io::Read};
use nvmetal_core::describe::Ascii;
use nvmetal_core::identify::{Controller, Namespace};
use nvmetal_core::lifecycle::{BringUp, BringUpOptions, BroughtUp, LifecycleError, Machine, Step};
use nvmetal_core::number::ZeroBasedU16;
use nvmetal_core::queue::{CompletionRing, DeviceFault, Generations, Parts, QueuePair, Slot, SlotTable};
use nvmetal_core::queue::{SubmissionRing, doorbell::Mapped};
use nvmetal_core::register::doorbell_offset;
use nvmetal_core::status::Status;
use zerocopy::FromBytes;

use page::Page;

static RINGS: [Page; 4] = [const { Page::zeroed() }; 4];
static DATA: Page = Page::zeroed();

/// Entries of each queue: what fits in a page of submission entries.
const ENTRIES: u16 = 64;
const TIMEOUT_NS: u64 = 5_000_000_000;

/// A queue whose commands carry a page, or nothing.
type Queue<'a> = QueuePair<Mapped, &'static Page, &'a mut [Slot<Option<&'static Page>>]>;

/// What can go wrong; each of core's errors says it in a sentence.
enum Error {
    BringUp(LifecycleError),
    Fault(DeviceFault),
    Status(Status),
    Other(&'static str),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BringUp(error) => error.fmt(f),
            Self::Fault(fault) => fault.fmt(f),
            Self::Status(status) => status.fmt(f),
            Self::Other(text) => text.fmt(f),
        }
    }
}

/// Runs the bring-up machine: it says what to do next, and is told what came of it.
fn bring_up(registers: &board::Registers) -> Result<BroughtUp, Error> {
    let mut machine = BringUp::new(BringUpOptions::new(RINGS[0].iova(), RINGS[1].iova()));
    let mut value = 0;
    loop {
        match machine.next(board::now_ns(), value).map_err(Error::BringUp)? {
            Step::Read32(offset) => value = registers.read32(offset).into(),
            Step::Read64(offset) => value = registers.read64(offset),
            Step::Write32(offset, data) => registers.write32(offset, data),
            Step::Write64(offset, data) => registers.write64(offset, data),
            Step::Wait { until_ns } => while board::now_ns() < until_ns {},
            Step::Done(outcome) => return Ok(outcome),
        }
    }
}

/// A queue pair over two of the pages.
fn queue<'a>(
    (queue_id, dstrd): (u16, u8),
    rings: &'static [Page],
    slots: &'a mut [Slot<Option<&'static Page>>],
    registers: &board::Registers,
) -> Result<Queue<'a>, Error> {
    let parts = Parts {
        queue_id,
        submission: SubmissionRing::new(&rings[0], ENTRIES.into()).map_err(|_| Error::Other("no ring"))?,
        completion: CompletionRing::new(&rings[1], ENTRIES.into()).map_err(|_| Error::Other("no ring"))?,
        slots: SlotTable::new(slots, Generations::Counted).ok_or(Error::Other("no slots"))?,
        tail_doorbell: registers.doorbell(doorbell_offset(queue_id, false, dstrd)),
        head_doorbell: registers.doorbell(doorbell_offset(queue_id, true, dstrd)),
    };
    QueuePair::new(parts).ok_or(Error::Other("more slots than entries"))
}

/// Sends one command and polls for its end. A command that never ends keeps its page: the queue owns it.
fn run(queue: &mut Queue, entry: SubmissionEntry, page: Option<&'static Page>) -> Result<(), Error> {
    let entry = page.map_or(entry, |page| entry.with_prp(page.iova(), 0));
    let began_ns = board::now_ns();
    queue.submit(&entry.words(), page, began_ns).map_err(|_| Error::Other("the queue is full or stopped"))?;
    queue.ring();
    let mut status = None;
    while status.is_none() && board::now_ns() - began_ns < TIMEOUT_NS {
        queue.poll(1, |done| status = Some(Status::from_bits(done.status))).map_err(Error::Fault)?;
    }
    let status = status.ok_or(Error::Other("no answer in time"))?;
    if status.is_success() { Ok(()) } else { Err(Error::Status(status)) }
}

fn read_first_block() -> Result<(), Error> {
    let registers = board::Registers::find();
    let up = bring_up(&registers)?;
    println!("NVMe {}, ready after {} us", up.vs, up.ready_after_ns / 1000);

    let mut slots = [const { Slot::new() }; ENTRIES as usize - 1];
    let mut admin = queue((0, up.cap.dstrd()), &RINGS[..2], &mut slots, &registers)?;
    run(&mut admin, Identify { cns: Cns::CONTROLLER, ..Default::default() }.entry(), Some(&DATA))?;
    let model = Controller::read_from_bytes(DATA.bytes()).map(|identify| identify.mn).unwrap_or([0; 40]);
    println!("model {}", Ascii(&model));
    run(&mut admin, Identify { nsid: 1, cns: Cns::NAMESPACE, ..Default::default() }.entry(), Some(&DATA))?;
    let namespace = Namespace::ref_from_bytes(DATA.bytes()).map_err(|_| Error::Other("no namespace"))?;
    let format =
        namespace.format().filter(|format| (9..=12).contains(&format.lbads)).ok_or(Error::Other("no block size"))?;
    let block_bytes = 1 << format.lbads;

    let qsize = ZeroBasedU16::from_bits(ENTRIES - 1);
    let completion = CreateIoCompletionQueue { qid: 1, qsize, pc: true, ..Default::default() };
    run(&mut admin, completion.entry().with_prp(RINGS[3].iova(), 0), None)?;
    let submission = CreateIoSubmissionQueue { qid: 1, qsize, pc: true, cqid: 1, ..Default::default() };
    run(&mut admin, submission.entry().with_prp(RINGS[2].iova(), 0), None)?;

    let mut slots = [const { Slot::new() }; ENTRIES as usize - 1];
    let mut io = queue((1, up.cap.dstrd()), &RINGS[2..], &mut slots, &registers)?;
    // One block from LBA 0: both fields are zero based or zero.
    run(&mut io, Read { nsid: 1, ..Default::default() }.entry(), Some(&DATA))?;
    println!("block 0: {} bytes, \"{}\"", block_bytes, Ascii(&DATA.bytes()[..block_bytes]));
    Ok(())
}

/// Where the board's start code ends.
#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    let result = read_first_block();
    if let Err(error) = &result {
        println!("failed: {error}");
    }
    board::exit(result.is_ok())
}
