//! A queue pair in front of a device that does anything.
//!
//! The device fetches what was rung and completes it in any order. As long as it does only that, no completion may be
//! called a fault. Then it begins to write anything anywhere in the completion ring; from there on a fault may be found,
//! but still every buffer comes back once: with a completion for its own command id, or from `reclaim`.

use core::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use arbitrary::Unstructured;
use nvmetal_core::completion::CompletionEntry;
use nvmetal_core::queue::{
    CompletionRing, DeviceQuiet, Doorbell, Generations, IoWords, Parts, QueuePair, RefusedReason, Slot, SlotTable,
    SubmissionRing,
};
use nvmetal_core::status::Status;
use nvmetal_driver::dma::RingBuffer;
use nvmetal_driver::transport::Transport;
use nvmetal_driver::transport::emulated::EmulatedTransport;

const QUEUE_ID: u16 = 3;

/// A doorbell that remembers its last value.
#[derive(Default)]
struct Remembers(Cell<u32>);

impl Doorbell for Remembers {
    fn ring(&self, value: u32) {
        self.0.set(value);
    }
}

type Pair<'a> = QueuePair<&'a Remembers, RingBuffer, Box<[Slot<u32>]>>;

/// The device's side.
struct Device<'a> {
    memory: &'a EmulatedTransport,
    rings: [u64; 2],
    entries: u32,
    tail: &'a Remembers,
    /// What it has fetched of the submission ring.
    head: u32,
    /// Fetched and not completed.
    fetched: VecDeque<u16>,
    completion_tail: u32,
    phase: bool,
}

impl Device<'_> {
    fn fetch(&mut self) {
        while self.head != self.tail.0.get() {
            let entry = self.memory.memory().enter().read_entry(self.rings[0] + u64::from(self.head) * 64);
            self.fetched.push_back((entry.expect("mapped")[0] >> 16) as u16);
            self.head = (self.head + 1) % self.entries;
        }
    }

    fn post(&mut self, cid: u16, queue_id: u16, head: u16) {
        let entry = CompletionEntry::new(u64::from(cid), head, queue_id, cid, Status::from_bits(0), self.phase);
        self.write(self.completion_tail, entry.to_bytes());
        self.completion_tail = (self.completion_tail + 1) % self.entries;
        self.phase ^= self.completion_tail == 0;
    }

    fn write(&self, index: u32, bytes: [u8; 16]) {
        let at = self.rings[1] + u64::from(index % self.entries) * 16;
        self.memory.memory().enter().write(at, &bytes).expect("mapped");
    }
}

thread_local! {
    /// Only for memory that both sides see; the emulated controller behind it is never enabled.
    static MEMORY: Arc<EmulatedTransport> = {
        let transport = EmulatedTransport::open("ideal").expect("an emulated drive");
        transport.set_bus_master(true).expect("it can master the bus");
        transport
    };
}

/// Sizes, then what both sides do in turn.
pub fn run(data: &[u8]) {
    MEMORY.with(|memory| {
        let _ = play(&mut Unstructured::new(data), memory);
    });
}

fn play(input: &mut Unstructured<'_>, memory: &Arc<EmulatedTransport>) -> arbitrary::Result<()> {
    let entries: u32 = input.int_in_range(2..=40)?;
    let slots: Box<[Slot<u32>]> = (0..input.int_in_range(1..=entries)?).map(|_| Slot::new()).collect();
    let generations = if input.ratio(1, 4)? { Generations::Plain } else { Generations::Counted };
    let transport: Arc<dyn Transport> = Arc::clone(memory) as _;
    let ring = |entry_bytes| RingBuffer::new(&transport, entries as usize * entry_bytes).expect("memory");
    let (submission, completion) = (ring(64), ring(16));
    let rings = [submission.iova(), completion.iova()];
    let (tail, head) = (Remembers::default(), Remembers::default());
    let fits = slots.len() < entries as usize;
    let pair = QueuePair::new(Parts {
        queue_id: QUEUE_ID,
        submission: SubmissionRing::new(submission, entries).expect("2 to 65536"),
        completion: CompletionRing::new(completion, entries).expect("2 to 65536"),
        slots: SlotTable::new(slots, generations).expect("1 to 4096"),
        tail_doorbell: &tail,
        head_doorbell: &head,
    });
    assert_eq!(pair.is_some(), fits, "fewer slots than entries");
    let Some(mut pair) = pair else { return Ok(()) };
    let mut device = Device {
        memory,
        rings,
        entries,
        tail: &tail,
        head: 0,
        fetched: VecDeque::new(),
        completion_tail: 0,
        phase: true,
    };
    let mut host = Host { in_flight: BTreeMap::new(), next: 0, honest: true };
    let outcome = (0..400).try_for_each(|_| host.turn(input, &mut pair, &mut device));
    host.reclaim(&mut pair);
    outcome
}

/// What the host knows to be in flight.
struct Host {
    in_flight: BTreeMap<u32, u16>,
    next: u32,
    honest: bool,
}

impl Host {
    fn turn(
        &mut self,
        input: &mut Unstructured<'_>,
        pair: &mut Pair<'_>,
        device: &mut Device<'_>,
    ) -> arbitrary::Result<()> {
        match input.int_in_range(0..=11)? {
            0..=3 => self.submit(pair, input.arbitrary()?),
            4 | 5 => pair.ring(),
            6 | 7 => self.poll(pair, input.int_in_range(0..=8)?),
            8 | 9 => {
                device.fetch();
                if !device.fetched.is_empty() {
                    let at = input.int_in_range(0..=device.fetched.len() - 1)?;
                    let cid = device.fetched.remove(at).expect("in range");
                    device.post(cid, QUEUE_ID, device.head as u16);
                }
            }
            10 => {
                self.honest = false;
                device.post(
                    input.arbitrary()?,
                    if input.ratio(3, 4)? { QUEUE_ID } else { input.arbitrary()? },
                    input.arbitrary()?,
                );
            }
            _ => {
                self.honest = false;
                device.write(input.arbitrary()?, input.arbitrary()?);
            }
        }
        assert_eq!(pair.in_flight() as usize, self.in_flight.len());
        Ok(())
    }

    fn submit(&mut self, pair: &mut Pair<'_>, whole: bool) {
        let buffer = self.next;
        self.next += 1;
        let io = IoWords { command: IoWords::command(2, 1), prp1: 0x1000, prp2: 0, start_lba: 7, dword12: 0 };
        let taken =
            if whole { pair.submit(&[6, 0, 0, 1, 2, 3, 4, 5], buffer, 9) } else { pair.submit_io(&io, buffer, 9) };
        match taken {
            Ok(cid) => {
                assert_ne!(cid, u16::MAX, "an id that the specification reserves");
                assert!(self.in_flight.values().all(|&other| other != cid), "an id twice in flight");
                self.in_flight.insert(buffer, cid);
            }
            Err(refused) => {
                assert_eq!(refused.buffer, buffer);
                match refused.reason {
                    RefusedReason::Full => assert_eq!(self.in_flight.len(), pair.capacity()),
                    RefusedReason::Stopped => assert!(pair.is_stopped()),
                }
            }
        }
    }

    fn poll(&mut self, pair: &mut Pair<'_>, limit: u32) {
        let (stopped, mut seen) = (pair.is_stopped(), 0);
        let polled = pair.poll(limit, |done| {
            assert_eq!(self.in_flight.remove(&done.buffer), Some(done.cid), "the buffer of this command, once");
            assert_eq!(done.stamp, 9);
            seen += 1;
        });
        assert!(seen <= limit && !(stopped && seen > 0));
        match polled {
            Ok(count) => assert_eq!(count, seen),
            Err(fault) => {
                assert!(!self.honest, "a good device was called faulty: {fault}");
                assert!(pair.is_stopped());
            }
        }
    }

    fn reclaim(&mut self, pair: &mut Pair<'_>) {
        while let Some((cid, buffer)) = pair.reclaim(DeviceQuiet::NeverRung) {
            assert_eq!(self.in_flight.remove(&buffer), Some(cid));
        }
        assert!(self.in_flight.is_empty(), "a buffer was lost");
        assert_eq!(pair.in_flight(), 0);
    }
}
