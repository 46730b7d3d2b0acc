//! Real time: the controller runs on a thread of its own, as it would on a chip of its own.
//!
//! The thread looks at the doorbells, lets the emulator do what is due, and looks again. When nothing happens for a while
//! it parks until the next event; whoever waits for the controller wakes it. A doorbell itself wakes nobody: it is one
//! store, and whoever rings it polls next, and comes by `Threaded::idle` when there is nothing to be found.
//!
//! Register accesses run the emulator on the caller's thread, under the same lock. The controller's thread would take that
//! lock again at once and keep everybody out, so callers announce themselves and the thread lets them pass.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

use nvmetal_emulator::{Emulator, GuestMemory, Irq, Options};

use crate::clock::Clock;

/// For so long the thread looks for work before it parks.
const SPIN_NS: u64 = 50_000;
/// The longest that the thread parks, and that a sleeper sleeps before it looks for itself.
const SLEEP_MOST: Duration = Duration::from_millis(1);

/// Interrupts that were raised and not yet seen, and those who sleep until one comes.
#[derive(Debug, Default)]
struct Interrupts {
    raised: Vec<AtomicBool>,
    sleepers: AtomicU32,
    lock: Mutex<()>,
    woken: Condvar,
}

#[derive(Debug)]
struct Raise(Arc<Interrupts>);

impl Irq for Raise {
    fn raise(&self, vector: u16) {
        if let Some(raised) = self.0.raised.get(usize::from(vector)) {
            // SeqCst, here and in `sleep`: either the sleeper sees the vector, or this sees the sleeper.
            raised.store(true, Ordering::SeqCst);
            if self.0.sleepers.load(Ordering::SeqCst) != 0 {
                drop(self.0.lock.lock().unwrap_or_else(PoisonError::into_inner));
                self.0.woken.notify_all();
            }
        }
    }
}

impl Interrupts {
    fn take(&self, vector: u16) -> bool {
        self.raised.get(usize::from(vector)).is_some_and(|raised| raised.swap(false, Ordering::SeqCst))
    }

    /// Sleeps until the vector is raised, but not for longer than `timeout`.
    fn sleep(&self, vector: u16, timeout: Duration) {
        let guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        if !self.take(vector) {
            let slept = self.woken.wait_timeout(guard, timeout);
            drop(slept.unwrap_or_else(PoisonError::into_inner));
            self.take(vector);
        }
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What the controller's thread and its users share.
#[derive(Debug)]
struct Shared {
    emulator: Mutex<Emulator>,
    clock: Clock,
    /// Callers that want the emulator.
    callers: AtomicU32,
    parked: AtomicBool,
    stop: AtomicBool,
    interrupts: Arc<Interrupts>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Emulator> {
        self.emulator.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The controller's life.
    fn run(&self) {
        let mut last_work_ns = self.clock.now_ns();
        while !self.stop.load(Ordering::Acquire) {
            while self.callers.load(Ordering::Acquire) != 0 {
                std::thread::yield_now();
            }
            let now_ns = self.clock.now_ns();
            let (worked, next_ns) = {
                let mut emulator = self.lock();
                let rang = emulator.scan_doorbells();
                let due = emulator.next_event_ns().is_some_and(|at_ns| at_ns <= now_ns);
                emulator.advance(now_ns);
                (rang || due, emulator.next_event_ns())
            };
            if worked {
                last_work_ns = now_ns;
            } else if now_ns.saturating_sub(last_work_ns) > SPIN_NS {
                self.park(now_ns, next_ns);
            } else {
                core::hint::spin_loop();
            }
        }
    }

    fn park(&self, now_ns: u64, next_ns: Option<u64>) {
        let until = next_ns.map_or(SLEEP_MOST, |next_ns| Duration::from_nanos(next_ns.saturating_sub(now_ns)));
        // SeqCst, here and in `wake`: a waker sees that we park, or we see what it has rung.
        self.parked.store(true, Ordering::SeqCst);
        let found = {
            let mut emulator = self.lock();
            emulator.scan_doorbells() || emulator.rest()
        };
        if !found {
            std::thread::park_timeout(until.min(SLEEP_MOST));
        }
        self.parked.store(false, Ordering::SeqCst);
    }
}

/// An emulator with a thread. Dropping it ends the thread.
#[derive(Debug)]
pub(super) struct Threaded {
    shared: Arc<Shared>,
    cells: Arc<[AtomicU32]>,
    thread: Thread,
    /// `None` only while it is being joined.
    handle: Option<JoinHandle<()>>,
}

impl Threaded {
    pub(super) fn start(options: Options, memory: Arc<GuestMemory>) -> std::io::Result<Self> {
        let vectors = usize::from(options.queues) + 1;
        let interrupts = Arc::new(Interrupts {
            raised: (0..vectors).map(|_| AtomicBool::new(false)).collect(),
            ..Interrupts::default()
        });
        let cells: Arc<[AtomicU32]> = (0..2 * vectors).map(|_| AtomicU32::new(0)).collect();
        let mut emulator = Emulator::new(options, memory, Box::new(Raise(Arc::clone(&interrupts))));
        emulator.share_doorbells(Arc::clone(&cells));
        let shared = Arc::new(Shared {
            emulator: Mutex::new(emulator),
            clock: Clock::real(),
            callers: AtomicU32::new(0),
            parked: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            interrupts,
        });
        let for_thread = Arc::clone(&shared);
        let handle = std::thread::Builder::new().name("nvmetal-emulator".into()).spawn(move || for_thread.run())?;
        Ok(Self { shared, cells, thread: handle.thread().clone(), handle: Some(handle) })
    }

    pub(super) fn clock(&self) -> Clock {
        self.shared.clock.clone()
    }

    /// The doorbells' words.
    pub(super) fn cells(&self) -> &Arc<[AtomicU32]> {
        &self.cells
    }

    /// Runs a call on the emulator, at the time it is.
    pub(super) fn call<T>(&self, call: impl FnOnce(&mut Emulator) -> T) -> T {
        self.shared.callers.fetch_add(1, Ordering::AcqRel);
        let mut emulator = self.shared.lock();
        emulator.advance(self.shared.clock.now_ns());
        let result = call(&mut emulator);
        drop(emulator);
        self.shared.callers.fetch_sub(1, Ordering::AcqRel);
        self.wake();
        result
    }

    #[inline]
    fn wake(&self) {
        if self.shared.parked.load(Ordering::SeqCst) {
            self.thread.unpark();
        }
    }

    /// Nothing was found by polling.
    #[inline]
    pub(super) fn poll(&self) {
        // The doorbell's store must not pass the load of `parked`: the controller may be about to park.
        std::sync::atomic::fence(Ordering::SeqCst);
        self.wake();
        core::hint::spin_loop();
    }

    /// Sleeps until the vector is raised, or until the moment.
    pub(super) fn sleep(&self, vector: u16, until_ns: u64) {
        std::sync::atomic::fence(Ordering::SeqCst);
        self.wake();
        let left_ns = until_ns.saturating_sub(self.shared.clock.now_ns());
        self.shared.interrupts.sleep(vector, Duration::from_nanos(left_ns));
    }

    /// Lets time pass until the moment, or a little of it.
    pub(super) fn nap(&self, until_ns: u64) {
        self.wake();
        let left_ns = until_ns.saturating_sub(self.shared.clock.now_ns());
        crate::clock::sleep(Duration::from_nanos(left_ns).min(SLEEP_MOST));
    }
}

impl Drop for Threaded {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        if let Some(handle) = self.handle.take() {
            handle.thread().unpark();
            // A panic of the controller's thread has been printed; there is nothing more to be done about it here.
            let _ = handle.join();
        }
    }
}
