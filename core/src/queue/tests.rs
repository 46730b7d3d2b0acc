//! The pair against a device of a few lines that completes what it is told to, rightly or wrongly.
#![forbid(unsafe_code)]

use core::cell::Cell;
use std::rc::Rc;

use super::ring::testing::Memory;
use super::*;

#[derive(Clone, Default)]
struct Counter(Rc<Cell<(u32, u32)>>);

impl Doorbell for Counter {
    fn ring(&self, value: u32) {
        self.0.set((value, self.0.get().1 + 1));
    }
}

struct Device {
    submission: Memory,
    completion: Memory,
    count: u32,
    head: u32,
    next: u32,
    phase: bool,
    tail_doorbell: Counter,
    head_doorbell: Counter,
}

type Pair = QueuePair<Counter, Memory, Box<[Slot<u32>]>>;

fn setup(count: u32, slots: usize) -> (Pair, Device) {
    let device = Device {
        submission: Memory::new(count as usize * 64),
        completion: Memory::new(count as usize * 16),
        count,
        head: 0,
        next: 0,
        phase: true,
        tail_doorbell: Counter::default(),
        head_doorbell: Counter::default(),
    };
    let pair = QueuePair::new(Parts {
        queue_id: 3,
        submission: SubmissionRing::new(device.submission.clone(), count).unwrap(),
        completion: CompletionRing::new(device.completion.clone(), count).unwrap(),
        slots: SlotTable::new((0..slots).map(|_| Slot::new()).collect(), Generations::Counted).unwrap(),
        tail_doorbell: device.tail_doorbell.clone(),
        head_doorbell: device.head_doorbell.clone(),
    });
    (pair.unwrap(), device)
}

impl Device {
    fn tail(&self) -> u32 {
        self.tail_doorbell.0.get().0
    }

    /// Fetches the next entry, if one was rung for.
    fn fetch(&mut self) -> Option<[u64; 8]> {
        if self.head == self.tail() {
            return None;
        }
        let slot = self.submission.submission(self.head);
        let words = core::array::from_fn(|index| slot.load(index));
        self.head = (self.head + 1) % self.count;
        Some(words)
    }

    fn post(&mut self, cid: u16, queue_id: u16, head: u32, status: u16) {
        let high = u64::from(head)
            | u64::from(queue_id) << 16
            | u64::from(cid) << 32
            | u64::from(self.phase) << 48
            | u64::from(status) << 49;
        self.completion.completion(self.next).post(u64::from(cid) << 8, high);
        self.next += 1;
        if self.next == self.count {
            self.next = 0;
            self.phase = !self.phase;
        }
    }

    fn complete_all(&mut self) -> u32 {
        let mut count = 0;
        while let Some(words) = self.fetch() {
            self.post((words[0] >> 16) as u16, 3, self.head, 0);
            count += 1;
        }
        count
    }
}

fn io(lba: u64) -> IoWords {
    IoWords { command: IoWords::command(2, 1), prp1: 0x1000, prp2: 0x2000, start_lba: lba, dword12: 7 }
}

#[test]
fn commands_come_back_with_their_buffers_round_after_round() {
    for count in [2, 3, 6, 32] {
        let (mut pair, mut device) = setup(count, count as usize - 1);
        for round in 0..100 {
            let batch = 1 + round % (count - 1);
            for number in 0..batch {
                pair.submit_io(&io(u64::from(number)), number, u64::from(round)).unwrap();
            }
            pair.ring();
            assert_eq!(device.complete_all(), batch);
            let mut back = Vec::new();
            let seen = pair.poll(u32::MAX, |done| back.push((done.buffer, done.stamp, done.status))).unwrap();
            assert_eq!(seen, batch);
            assert_eq!(back, (0..batch).map(|number| (number, u64::from(round), 0)).collect::<Vec<_>>());
            assert_eq!(pair.in_flight(), 0);
        }
    }
}

/// C-12: a ring of n entries holds n - 1 commands, at every position of the ring.
#[test]
fn c12_a_full_queue_refuses_and_gives_the_buffer_back() {
    let (mut pair, mut device) = setup(6, 5);
    for _ in 0..20 {
        for number in 0..5 {
            pair.submit_io(&io(0), number, 0).unwrap();
        }
        let refused = pair.submit_io(&io(0), 99, 0).unwrap_err();
        assert_eq!((refused.reason, refused.buffer), (RefusedReason::Full, 99));
        pair.ring();
        device.complete_all();
        assert_eq!(pair.poll(u32::MAX, |_| ()).unwrap(), 5);
    }
    assert!(QueuePair::new(pair.into_parts()).is_some());
    let full = setup(6, 5).0.into_parts();
    let as_many_slots_as_entries = Parts {
        slots: SlotTable::new((0..6).map(|_| Slot::<u32>::new()).collect::<Box<[_]>>(), Generations::Counted).unwrap(),
        queue_id: 1,
        submission: full.submission,
        completion: full.completion,
        tail_doorbell: full.tail_doorbell,
        head_doorbell: full.head_doorbell,
    };
    assert!(QueuePair::new(as_many_slots_as_entries).is_none());
}

/// C-11: the tail wraps at the size of the ring that was made.
#[test]
fn c11_doorbells_carry_indices_below_the_created_size() {
    let (mut pair, mut device) = setup(5, 4);
    for _ in 0..23 {
        pair.submit_io(&io(0), 0, 0).unwrap();
        pair.ring();
        assert!(device.tail() < 5);
        device.complete_all();
        pair.poll(8, |_| ()).unwrap();
        assert!(device.head_doorbell.0.get().0 < 5);
    }
}

#[test]
fn a_batch_costs_one_doorbell_each_way_and_an_empty_one_none() {
    let (mut pair, mut device) = setup(32, 31);
    pair.ring();
    assert_eq!(pair.poll(8, |_| ()).unwrap(), 0);
    assert_eq!((device.tail_doorbell.0.get().1, device.head_doorbell.0.get().1), (0, 0));
    for number in 0..20 {
        pair.submit_io(&io(0), number, 0).unwrap();
    }
    assert!(pair.has_unrung());
    pair.ring();
    pair.ring();
    device.complete_all();
    assert_eq!(pair.poll(u32::MAX, |_| ()).unwrap(), 20);
    assert_eq!((device.tail_doorbell.0.get().1, device.head_doorbell.0.get().1), (1, 1));
}

#[test]
fn entries_of_different_shapes_do_not_leak_into_each_other() {
    let (mut pair, mut device) = setup(4, 3);
    let other = [0xffff_1234, 0x1111, 0x2222, 0x3333, 0x4444, 0x5555, 0x6666_6666_6666_6666, 0x7777];
    for round in 0..20_u32 {
        let whole = round % 7 == 3;
        if whole {
            pair.submit(&other, 0, 0).unwrap();
        } else {
            pair.submit_io(&io(u64::from(round)), 0, 0).unwrap();
        }
        pair.ring();
        let words = device.fetch().unwrap();
        let cid = (words[0] >> 16) as u16;
        if whole {
            assert_eq!(words[0] & 0xffff, 0x1234);
            assert_eq!(words[1..], other[1..]);
        } else {
            assert_eq!(words[0] & !0xffff_0000, 2 | 1 << 32);
            assert_eq!(words[1..], [0, 0, 0x1000, 0x2000, u64::from(round), 7, 0]);
        }
        device.post(cid, 3, device.head, 0);
        assert_eq!(pair.poll(8, |_| ()).unwrap(), 1);
    }
}

/// What a device does wrong, and the fault that it is.
type Lie = (DeviceFaultKind, fn(&mut Device, u16));

/// One lie, told about a command of which there are two in flight.
fn lie(tell: impl FnOnce(&mut Device, u16)) -> (Pair, DeviceFault) {
    let (mut pair, mut device) = setup(8, 5);
    for number in 0..2 {
        pair.submit_io(&io(0), number, 0).unwrap();
    }
    pair.ring();
    let first = (device.fetch().unwrap()[0] >> 16) as u16;
    device.fetch();
    tell(&mut device, first);
    let fault = pair.poll(8, |_| ()).unwrap_err();
    (pair, fault)
}

#[test]
fn each_lie_of_a_device_is_a_fault_of_its_kind_and_stops_the_queue() {
    let other_generation = |cid: u16| cid.wrapping_add(8);
    let table: [Lie; 6] = [
        (DeviceFaultKind::WrongQueue, |device, cid| device.post(cid, 4, 2, 0)),
        (DeviceFaultKind::UnknownCommand, |device, _| device.post(7, 3, 2, 0)),
        (DeviceFaultKind::NotInFlight, |device, _| device.post(4, 3, 2, 0)),
        (DeviceFaultKind::HeadOutOfRange, |device, cid| device.post(cid, 3, 8, 0)),
        (DeviceFaultKind::HeadOutOfRange, |device, cid| device.post(cid, 3, 3, 0)),
        (DeviceFaultKind::HeadOutOfRange, |device, cid| device.post(cid, 3, 0, 0)),
    ];
    for (kind, tell) in table {
        let (mut pair, fault) = lie(tell);
        assert_eq!(fault.kind, kind, "{fault}");
        assert_eq!(pair.in_flight(), 2, "both buffers stay with the queue");
        let refused = pair.submit_io(&io(0), 9, 0).unwrap_err();
        assert_eq!(refused.reason, RefusedReason::Stopped);
        assert_eq!(pair.poll(8, |_| ()).unwrap(), 0);
        assert_eq!(core::iter::from_fn(|| pair.reclaim(DeviceQuiet::QueueDeleted)).count(), 2);
        assert_eq!(pair.submit_io(&io(0), 9, 0).unwrap_err().reason, RefusedReason::Stopped);
    }
    let (_, fault) = lie(|device, cid| device.post(other_generation(cid), 3, 2, 0));
    assert_eq!(fault.kind, DeviceFaultKind::StaleGeneration);
}

#[test]
fn a_completion_that_comes_twice_is_found_at_the_second_time() {
    let (mut pair, mut device) = setup(8, 5);
    pair.submit_io(&io(0), 1, 0).unwrap();
    pair.ring();
    let cid = (device.fetch().unwrap()[0] >> 16) as u16;
    device.post(cid, 3, 1, 0);
    device.post(cid, 3, 1, 0);
    let mut seen = 0;
    let fault = pair.poll(8, |_| seen += 1).unwrap_err();
    assert_eq!((seen, fault.kind, fault.index), (1, DeviceFaultKind::NotInFlight, 1));
}

#[test]
fn a_head_that_runs_ahead_of_one_completion_is_no_fault() {
    let (mut pair, mut device) = setup(8, 5);
    for number in 0..3 {
        pair.submit_io(&io(0), number, 0).unwrap();
    }
    pair.ring();
    let ids: Vec<u16> = core::iter::from_fn(|| device.fetch()).map(|words| (words[0] >> 16) as u16).collect();
    // Completed in reverse, each with the head that was current when it was built.
    device.post(ids[2], 3, 3, 0);
    device.post(ids[0], 3, 1, 0);
    device.post(ids[1], 3, 3, 0);
    assert_eq!(pair.poll(8, |_| ()).unwrap(), 3);
}

/// The fault would be a false one: a command that is slower than a whole round of the ring.
#[test]
fn a_command_that_the_ring_laps_is_no_fault() {
    for count in [6, 7, 8] {
        for laps in 0..3 * count {
            let (mut pair, mut device) = setup(count, 5);
            pair.submit_io(&io(0), 0, 0).unwrap();
            pair.ring();
            let slow = (device.fetch().unwrap()[0] >> 16) as u16;
            for number in 0..laps {
                pair.submit_io(&io(0), number, 0).unwrap();
                pair.ring();
                device.complete_all();
                assert_eq!(pair.poll(8, |_| ()).unwrap(), 1);
            }
            // Three more, of which the device has fetched one when it completes the slow one.
            for number in 0..3 {
                pair.submit_io(&io(0), number, 0).unwrap();
            }
            pair.ring();
            device.fetch();
            device.post(slow, 3, device.head, 0);
            assert_eq!(pair.poll(8, |_| ()), Ok(1), "{count} entries, {laps} commands in between");
        }
    }
}

#[test]
fn status_and_results_come_through() {
    let (mut pair, mut device) = setup(8, 5);
    pair.submit_io(&io(0), 1, 42).unwrap();
    pair.ring();
    let cid = (device.fetch().unwrap()[0] >> 16) as u16;
    device.post(cid, 3, 1, 0x4281);
    let mut seen = None;
    pair.poll(8, |done| seen = Some(done)).unwrap();
    let done = seen.unwrap();
    assert_eq!((done.status, done.dword0, done.stamp, done.buffer), (0x4281, u32::from(cid) << 8, 42, 1));
}
