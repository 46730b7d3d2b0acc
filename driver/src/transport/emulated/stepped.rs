//! Time that the emulator moves, and when it may.
//!
//! No thread runs the controller. Doorbells and registers are calls, and take no time. Waiting is where time passes: it
//! runs the controller until the host can see something new (a completion, a status change), or until the caller's
//! deadline, and moves the clock there. The same run gives the same figures each time, and waiting costs nothing.
//!
//! **Time moves only when nobody could still do something now.** With several threads, one thread's wait must not jump
//! over the moment at which another was about to submit. So every thread that uses the transport takes part from its
//! first call on, and time moves only when all that take part are waiting, to the first event or the first of their
//! deadlines. A thread that ends, or waits for something else (a join), would stop the clock for ever; one that was not
//! heard of for [`GRACE`] of real time while others wait is left out until it calls again. A single thread never waits and
//! is exactly reproducible; several are so as long as none is held up for longer than that.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use nvmetal_emulator::{Emulator, GuestMemory, Irq, Options};

use crate::clock::Clock;
use crate::transport::DoorbellTarget;

/// How long, in real time, the others wait for a thread that does nothing.
const GRACE: Duration = Duration::from_millis(250);

/// Vectors that were raised and not yet seen.
#[derive(Debug)]
struct Vectors(Vec<AtomicBool>);

impl Vectors {
    /// Whether the vector was raised since the last time.
    fn take(&self, vector: u16) -> bool {
        self.0.get(usize::from(vector)).is_some_and(|raised| raised.swap(false, Ordering::AcqRel))
    }
}

/// The emulator's end of [`Vectors`].
#[derive(Debug)]
struct Raise(Arc<Vectors>);

impl Irq for Raise {
    fn raise(&self, vector: u16) {
        if let Some(raised) = self.0.0.get(usize::from(vector)) {
            raised.store(true, Ordering::Release);
        }
    }
}

/// What a thread that takes part is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    /// It may call at any moment.
    Running,
    /// It waits for this moment, and if there is a vector, else for anything new.
    Idle { until_ns: u64, vector: Option<u16> },
}

#[derive(Debug)]
struct Member {
    thread: ThreadId,
    doing: Doing,
    /// Counts its calls, by which the others see that it is alive.
    calls: u64,
}

/// The emulator and those who use it.
#[derive(Debug)]
struct Shared {
    emulator: Emulator,
    members: Vec<Member>,
}

impl Shared {
    /// The calling thread's place among the members; it is running now.
    fn here(&mut self) -> &mut Member {
        let thread = std::thread::current().id();
        let at = self.members.iter().position(|member| member.thread == thread).unwrap_or_else(|| {
            self.members.push(Member { thread, doing: Doing::Running, calls: 0 });
            self.members.len() - 1
        });
        let member = &mut self.members[at];
        member.doing = Doing::Running;
        member.calls += 1;
        member
    }
}

/// An emulator whose time is moved by those who wait for it.
#[derive(Debug)]
pub(super) struct Stepped {
    shared: Mutex<Shared>,
    woken: Condvar,
    clock: Clock,
    time: Arc<AtomicU64>,
    vectors: Arc<Vectors>,
}

impl Stepped {
    pub(super) fn new(options: Options, memory: Arc<GuestMemory>) -> Self {
        let (clock, time) = Clock::virtual_at(0);
        let vectors = Arc::new(Vectors((0..=options.queues).map(|_| AtomicBool::new(false)).collect()));
        let emulator = Emulator::new(options, memory, Box::new(Raise(Arc::clone(&vectors))));
        let shared = Mutex::new(Shared { emulator, members: Vec::new() });
        Self { shared, woken: Condvar::new(), clock, time, vectors }
    }

    pub(super) fn clock(&self) -> Clock {
        self.clock.clone()
    }

    /// Looks at the emulator without taking part.
    pub(super) fn look<T>(&self, look: impl FnOnce(&mut Emulator) -> T) -> T {
        look(&mut self.lock().emulator)
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For one call of a thread that is at work.
    pub(super) fn call<T>(&self, call: impl FnOnce(&mut Emulator) -> T) -> T {
        let mut shared = self.lock();
        shared.here();
        call(&mut shared.emulator)
    }

    /// Moves time to the next thing that somebody waits for. All members are idle.
    fn step(&self, shared: &mut Shared) {
        let deadlines = shared.members.iter().filter_map(|member| match member.doing {
            Doing::Idle { until_ns, .. } => Some(until_ns),
            Doing::Running => None,
        });
        let until_ns = deadlines.min().unwrap_or(0);
        shared.emulator.step(until_ns);
        let now_ns = shared.emulator.now_ns();
        self.time.store(now_ns, Ordering::Release);
        for member in &mut shared.members {
            if let Doing::Idle { until_ns, vector } = member.doing
                && (until_ns <= now_ns || vector.is_none_or(|vector| self.vectors.take(vector)))
            {
                member.doing = Doing::Running;
            }
        }
    }

    /// Waits until the moment, or until something new can be seen (with a vector: until it is raised).
    pub(super) fn idle(&self, until_ns: u64, vector: Option<u16>) {
        if vector.is_some_and(|vector| self.vectors.take(vector)) {
            return;
        }
        let mut shared = self.lock();
        let here = shared.here();
        here.doing = Doing::Idle { until_ns, vector };
        let thread = here.thread;
        loop {
            match shared.members.iter().find(|member| member.thread == thread) {
                Some(Member { doing: Doing::Idle { .. }, .. }) => {}
                _ => return,
            }
            if shared.members.iter().all(|member| member.doing != Doing::Running) {
                self.step(&mut shared);
                if shared.members.len() > 1 {
                    self.woken.notify_all();
                }
                continue;
            }
            let calls: Vec<(ThreadId, u64)> = shared.members.iter().map(|m| (m.thread, m.calls)).collect();
            let (guard, result) = self.woken.wait_timeout(shared, GRACE).unwrap_or_else(PoisonError::into_inner);
            shared = guard;
            if result.timed_out() {
                // Who has not called since is waited for no longer.
                shared.members.retain(|m| m.doing != Doing::Running || !calls.contains(&(m.thread, m.calls)));
            }
        }
    }
}

impl DoorbellTarget for Stepped {
    fn write_doorbell(&self, offset: u64, value: u32) {
        self.call(|emulator| emulator.write(offset, 4, u64::from(value)));
    }
}
