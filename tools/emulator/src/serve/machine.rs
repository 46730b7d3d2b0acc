//! The controller in real time, on a thread of its own.
//!
//! The thread looks at the doorbells, lets the emulator do what is due, and looks again. A client's store to a doorbell
//! wakes nobody, and nobody comes by to do it; so while there is nothing to do the thread looks less and less often
//! instead of parking: all the time at first, then every 50 us, after a second every millisecond.
//!
//! Register accesses run the emulator on the caller's thread, under the same lock. The controller's thread would take that
//! lock again at once and keep everybody out, so callers announce themselves and the thread lets them pass.
#![forbid(unsafe_code)]

use core::time::Duration;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use crate::emulator::Emulator;
use crate::guest_memory::GuestMemory;
use crate::options::Options;

use super::irq::{Irqs, Raise};

/// For so long the thread looks all the time.
const SPIN_NS: u64 = 200_000;
/// Then so often.
const NAP: Duration = Duration::from_micros(50);
/// And after this long without work...
const DROWSY_NS: u64 = 1_000_000_000;
/// ...so often.
const SLEEP: Duration = Duration::from_millis(1);

#[derive(Debug)]
struct Shared {
    emulator: Mutex<Emulator>,
    start: Instant,
    /// Callers that want the emulator.
    callers: AtomicU32,
    stop: AtomicBool,
}

impl Shared {
    fn now_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, Emulator> {
        self.emulator.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The controller's life.
    fn run(&self) {
        let mut last_work_ns = self.now_ns();
        while !self.stop.load(Ordering::Acquire) {
            while self.callers.load(Ordering::Acquire) != 0 {
                std::thread::yield_now();
            }
            let now_ns = self.now_ns();
            let (worked, next_ns) = {
                let mut emulator = self.lock();
                let rang = emulator.scan_doorbells();
                let due = emulator.next_event_ns().is_some_and(|at_ns| at_ns <= now_ns);
                emulator.advance(now_ns);
                (rang || due, emulator.next_event_ns())
            };
            let idle_ns = now_ns.saturating_sub(last_work_ns);
            if worked {
                last_work_ns = now_ns;
            } else if idle_ns < SPIN_NS {
                core::hint::spin_loop();
            } else {
                let next = next_ns.map_or(SLEEP, |next_ns| Duration::from_nanos(next_ns.saturating_sub(now_ns)));
                std::thread::park_timeout(next.min(if idle_ns < DROWSY_NS { NAP } else { SLEEP }));
            }
        }
    }
}

/// An emulator with a thread. Dropping it ends the thread.
#[derive(Debug)]
pub(super) struct Machine {
    shared: Arc<Shared>,
    /// `None` only while it is being joined.
    handle: Option<JoinHandle<()>>,
}

impl Machine {
    #[allow(
        clippy::disallowed_methods,
        reason = "the clients are other processes: their time and this one is the machine's"
    )]
    pub(super) fn start(options: Options, memory: Arc<GuestMemory>, irqs: Arc<Irqs>) -> io::Result<Self> {
        let mut emulator = Emulator::new(options, memory, Box::new(Raise(irqs)));
        // Nobody reads the log of a server, and keeping it costs time.
        emulator.log_mut().set_recording(false);
        let shared = Arc::new(Shared {
            emulator: Mutex::new(emulator),
            start: Instant::now(),
            callers: AtomicU32::new(0),
            stop: AtomicBool::new(false),
        });
        let for_thread = Arc::clone(&shared);
        let handle = std::thread::Builder::new().name("nvmetal-emulator".into()).spawn(move || for_thread.run())?;
        Ok(Self { shared, handle: Some(handle) })
    }

    /// Runs a call on the emulator, at the time it is.
    pub(super) fn call<T>(&self, call: impl FnOnce(&mut Emulator) -> T) -> T {
        self.shared.callers.fetch_add(1, Ordering::AcqRel);
        let mut emulator = self.shared.lock();
        emulator.advance(self.shared.now_ns());
        let result = call(&mut emulator);
        drop(emulator);
        self.shared.callers.fetch_sub(1, Ordering::AcqRel);
        self.wake();
        result
    }

    /// There may be something to do.
    pub(super) fn wake(&self) {
        if let Some(handle) = &self.handle {
            handle.thread().unpark();
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        if let Some(handle) = self.handle.take() {
            handle.thread().unpark();
            // A panic of the controller's thread has been printed; there is nothing more to be done about it here.
            let _ = handle.join();
        }
    }
}
