//! The orders between host and controller, checked over every interleaving and every stale value that the memory model
//! allows.
//!
//! Run with `RUSTFLAGS="--cfg loom"`: then the queue's own ring file uses loom's atomics, and a thread plays the
//! controller. Each of the four properties also has a build in which the fence that it rests on is left out
//! (`NVMETAL_WEAKEN=submission`, `completion`, `dbbuf` while compiling); there the test must fail, or it proves nothing.
//! `tools/loom` runs all of them.
#![cfg(loom)]
#![allow(unsafe_code, missing_docs)] // Ring memory of loom's atomics.

use core::ptr::NonNull;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use loom::thread;
use nvmetal_core::queue::doorbell::Doorbell;
use nvmetal_core::queue::ring::{CompletionSlot, SubmissionSlot};
use nvmetal_core::queue::shadow::{ShadowWord, Shadowed};
use nvmetal_core::queue::*;

/// An element with the alignment that rings ask for.
#[repr(align(64))]
struct Aligned<T>(T);

/// Shared memory: a vector that both sides hold.
struct Memory<T>(Arc<Vec<T>>);

impl<T> Clone for Memory<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

// SAFETY: the vector is never changed in length; its elements are 64-byte aligned and made of atomics.
unsafe impl<T> RingMemory for Memory<T> {
    fn pointer(&self) -> NonNull<u8> {
        NonNull::from(self.0.as_slice()).cast()
    }
    fn bytes(&self) -> usize {
        size_of_val(self.0.as_slice())
    }
}

type Submissions = Memory<SubmissionSlot>;
type Completions = Memory<Aligned<[CompletionSlot; 2]>>;

/// Both kinds of memory behind one type, as a queue pair wants it.
#[derive(Clone)]
enum Either {
    Submissions(Submissions),
    Completions(Completions),
}

// SAFETY: as for `Memory`.
unsafe impl RingMemory for Either {
    fn pointer(&self) -> NonNull<u8> {
        match self {
            Self::Submissions(memory) => memory.pointer(),
            Self::Completions(memory) => memory.pointer(),
        }
    }
    fn bytes(&self) -> usize {
        match self {
            Self::Submissions(memory) => memory.bytes(),
            Self::Completions(memory) => memory.bytes(),
        }
    }
}

#[derive(Clone)]
struct Bell(Arc<AtomicU32>);

impl Bell {
    fn new() -> Self {
        Self(Arc::new(AtomicU32::new(0)))
    }
}

impl Doorbell for Bell {
    fn ring(&self, value: u32) {
        self.0.store(value, Ordering::Relaxed);
    }
}

type Pair = QueuePair<Bell, Either, Box<[Slot<u32>]>>;

struct Device {
    submissions: Submissions,
    completions: Completions,
    tail: Bell,
}

fn setup() -> (Pair, Device) {
    let submissions = Memory(Arc::new((0..2).map(|_| SubmissionSlot::new()).collect()));
    let completions = Memory(Arc::new(vec![Aligned([CompletionSlot::new(), CompletionSlot::new()])]));
    let tail = Bell::new();
    let pair = QueuePair::new(Parts {
        queue_id: 1,
        submission: SubmissionRing::new(Either::Submissions(submissions.clone()), 2).unwrap(),
        completion: CompletionRing::new(Either::Completions(completions.clone()), 2).unwrap(),
        slots: SlotTable::new(vec![Slot::new()].into_boxed_slice(), Generations::Counted).unwrap(),
        tail_doorbell: tail.clone(),
        head_doorbell: Bell::new(),
    });
    (pair.unwrap(), Device { submissions, completions, tail })
}

const IO: IoWords = IoWords { command: IoWords::command(2, 1), prp1: 11, prp2: 22, start_lba: 33, dword12: 7 };
/// The id of the first command in a table of one slot: generations count down from the highest that is used.
const FIRST_CID: u64 = 0xfffe;
/// Head 1, queue 1, the first command, phase 1.
const COMPLETED: u64 = 1 | 1 << 16 | FIRST_CID << 32 | 1 << 48;

/// Who sees the doorbell sees the entry.
#[test]
fn submission_release() {
    loom::model(|| {
        let (mut pair, device) = setup();
        let controller = thread::spawn(move || {
            if device.tail.0.load(Ordering::Relaxed) == 1 {
                fence(Ordering::Acquire);
                let words: Vec<u64> = (0..8).map(|index| device.submissions.0[0].load(index)).collect();
                assert_eq!(words, [2 | FIRST_CID << 16 | 1 << 32, 0, 0, 11, 22, 33, 7, 0]);
            }
        });
        pair.submit_io(&IO, 5, 0).unwrap();
        pair.ring();
        controller.join().unwrap();
    });
}

/// Who sees the phase tag sees the rest of the completion.
#[test]
fn completion_acquire() {
    loom::model(|| {
        let (mut pair, device) = setup();
        pair.submit_io(&IO, 5, 0).unwrap();
        pair.ring();
        let controller = thread::spawn(move || device.completions.0[0].0[0].post(0x1234, COMPLETED));
        let mut results = Vec::new();
        pair.poll(1, |done| results.push((done.buffer, done.dword0))).unwrap();
        assert!(results.is_empty() || results == [(5, 0x1234)]);
        controller.join().unwrap();
    });
}

/// Who sees the phase tag sees the data that the command brought.
#[test]
fn payload_after_phase() {
    loom::model(|| {
        let (mut pair, device) = setup();
        let data = Arc::new(AtomicU64::new(0));
        pair.submit_io(&IO, 5, 0).unwrap();
        pair.ring();
        let theirs = Arc::clone(&data);
        let controller = thread::spawn(move || {
            theirs.store(77, Ordering::Relaxed);
            device.completions.0[0].0[0].post(0, COMPLETED);
        });
        if pair.poll(1, |_| ()).unwrap() == 1 {
            assert_eq!(data.load(Ordering::Relaxed), 77);
        }
        controller.join().unwrap();
    });
}

/// Either the host sees that the controller wants the doorbell, or the controller sees the shadow before it sleeps.
#[test]
fn shadow_doorbell_full_fence() {
    loom::model(|| {
        let page = || Memory(Arc::new(vec![Aligned(ShadowWord::new(0))]));
        let (shadows, events) = (page(), page());
        // The controller has said that it wants to hear of anything beyond 3.
        events.0[0].0.store(3, Ordering::Relaxed);
        let bell = Bell::new();
        let doorbell = Shadowed::new(bell.clone(), shadows.clone(), events.clone(), 0, 4).unwrap();
        doorbell.ring(4);
        bell.0.store(0, Ordering::Relaxed);
        // It has served up to 4, says so, looks once more, and would sleep.
        let controller = thread::spawn(move || {
            events.0[0].0.store(4, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            shadows.0[0].0.load(Ordering::Relaxed) == 5
        });
        doorbell.ring(5);
        let seen = controller.join().unwrap();
        assert!(seen || bell.0.load(Ordering::Relaxed) == 5, "neither side noticed: the command waits for ever");
    });
}
