//! The transport `emulated`: the emulator of this project, in this process.
//!
//! **Stepped: time is virtual.** No thread runs the controller. Doorbells and registers are calls, and take no time.
//! [`Transport::idle`] is where time passes: it runs the controller until the host can see something new (a completion, a
//! status change), or until the caller's deadline, and moves the clock there. The same run gives the same figures each
//! time, and waiting costs nothing.
//!
//! **Time moves only when nobody could still do something now.** With several threads, one thread's `idle` must not jump
//! over the moment at which another was about to submit. So every thread that uses the transport takes part from its
//! first call on, and time moves only when all that take part are idle, to the first event or the first of their
//! deadlines. A thread that ends, or waits for something else (a join), would stop the clock for ever; one that was not
//! heard of for [`GRACE`] of real time while others wait is left out until it calls again. A single thread never waits and
//! is exactly reproducible; several are so as long as none is held up for longer than that.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use nvmetal_emulator::{Emulator, GuestMemory, Irq, Options, OptionsError};

use super::{
    CalledDoorbell, DoorbellKind, DoorbellTarget, HostRange, Interrupt, Signals, Transport, TransportError,
    TransportInfo, TransportKind, Unmapped, Waiting,
};
use crate::clock::Clock;

/// How long, in real time, the others wait for a thread that does nothing.
const GRACE: Duration = Duration::from_millis(250);
/// The first IOVA that is given out.
const FIRST_IOVA: u64 = 0x1_0000_0000;
/// Left free between two ranges, so that running over the end of one is a fault.
const GAP_BYTES: u64 = 0x1_0000;
/// IOVAs are multiples of this.
const IOVA_ALIGNMENT: u64 = 2 << 20;

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

/// What the transport and its doorbells share.
#[derive(Debug)]
struct Drive {
    shared: Mutex<Shared>,
    woken: Condvar,
    time: Arc<AtomicU64>,
    vectors: Arc<Vectors>,
}

impl Drive {
    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For one call of a thread that is at work.
    fn call<T>(&self, call: impl FnOnce(&mut Emulator) -> T) -> T {
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

    fn idle(&self, until_ns: u64, vector: Option<u16>) {
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

impl DoorbellTarget for Drive {
    fn write_doorbell(&self, offset: u64, value: u32) {
        self.call(|emulator| emulator.write(offset, 4, u64::from(value)));
    }
}

/// A drive in software. See the [module](self).
#[derive(Debug)]
pub struct EmulatedTransport {
    info: TransportInfo,
    clock: Clock,
    drive: Arc<Drive>,
    memory: Arc<GuestMemory>,
    next_iova: Mutex<u64>,
}

impl EmulatedTransport {
    /// Makes the drive that `text` describes: `MODEL[,option=value...]`, with or without `emulated:` before it.
    pub fn open(text: &str) -> Result<Arc<Self>, OptionsError> {
        let rest = text.strip_prefix("emulated").map_or(text, |rest| rest.strip_prefix(':').unwrap_or(rest));
        Ok(Self::with_options(Options::parse(rest)?))
    }

    /// Makes the drive with these options.
    pub fn with_options(options: Options) -> Arc<Self> {
        let memory = Arc::new(GuestMemory::new());
        // As VFIO hands a function over: it may not master the bus before the driver says so.
        memory.set_bus_master(false);
        let (clock, time) = Clock::virtual_at(0);
        let mut address = format!("emulated:{}", options.text);
        if options.text.is_empty() {
            address.push_str(&options.model.name);
        }
        let register_bytes = (0x1000 + 8 * (u64::from(options.queues) + 1)).next_multiple_of(0x1000);
        let vectors = Arc::new(Vectors((0..=options.queues).map(|_| AtomicBool::new(false)).collect()));
        let emulator = Emulator::new(options, Arc::clone(&memory), Box::new(Raise(Arc::clone(&vectors))));
        let info = TransportInfo {
            kind: TransportKind::Emulated,
            address,
            detail: "stepped".into(),
            register_bytes,
            vectors: emulator.vectors(),
            pci_id: Some((nvmetal_emulator::pci_config::VENDOR, nvmetal_emulator::pci_config::DEVICE)),
            emulated: true,
            stepped: true,
        };
        let shared = Mutex::new(Shared { emulator, members: Vec::new() });
        let drive = Arc::new(Drive { shared, woken: Condvar::new(), time, vectors });
        Arc::new(Self { info, clock, drive, memory, next_iova: Mutex::new(FIRST_IOVA) })
    }

    /// Looks at the emulator, or changes it: its command log, faults to inject.
    pub fn with<T>(&self, look: impl FnOnce(&mut Emulator) -> T) -> T {
        look(&mut self.drive.lock().emulator)
    }

    /// The memory that the emulator may reach, for its fault reports.
    pub fn memory(&self) -> &GuestMemory {
        &self.memory
    }

    fn check(&self, offset: u64, bytes: u64) -> Result<(), TransportError> {
        if offset.is_multiple_of(bytes) && offset.checked_add(bytes).is_some_and(|end| end <= self.info.register_bytes)
        {
            return Ok(());
        }
        Err(TransportError::OutOfRange {
            address: self.info.address.clone(),
            offset,
            bytes,
            register_bytes: self.info.register_bytes,
        })
    }

    fn map_error(&self, bytes: u64, detail: String) -> TransportError {
        TransportError::Map { address: self.info.address.clone(), bytes, detail }
    }
}

impl Transport for EmulatedTransport {
    fn info(&self) -> &TransportInfo {
        &self.info
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }

    fn idle(&self, until_ns: u64, waiting: Waiting<'_>) {
        let vector = match waiting {
            Waiting::Polling | Waiting::Register => None,
            Waiting::Interrupt(interrupt) => Some(interrupt.vector),
        };
        self.drive.idle(until_ns, vector);
    }

    fn read32(&self, offset: u64) -> Result<u32, TransportError> {
        self.check(offset, 4)?;
        Ok(self.drive.call(|emulator| emulator.read(offset, 4)) as u32)
    }

    fn write32(&self, offset: u64, value: u32) -> Result<(), TransportError> {
        self.check(offset, 4)?;
        self.drive.call(|emulator| emulator.write(offset, 4, u64::from(value)));
        Ok(())
    }

    fn read64(&self, offset: u64) -> Result<u64, TransportError> {
        self.check(offset, 8)?;
        Ok(self.drive.call(|emulator| emulator.read(offset, 8)))
    }

    fn write64(&self, offset: u64, value: u64) -> Result<(), TransportError> {
        self.check(offset, 8)?;
        self.drive.call(|emulator| emulator.write(offset, 8, value));
        Ok(())
    }

    fn doorbell(&self, offset: u64) -> Result<DoorbellKind, TransportError> {
        self.check(offset, 4)?;
        let target: Arc<dyn DoorbellTarget> = Arc::clone(&self.drive) as _;
        Ok(DoorbellKind::Called(CalledDoorbell::new(target, offset)))
    }

    fn map(&self, memory: HostRange<'_>) -> Result<u64, TransportError> {
        let bytes = memory.bytes as u64;
        let (file, offset) =
            memory.file.ok_or_else(|| self.map_error(bytes, "the emulator reaches only memory of a file".into()))?;
        let mut next = self.next_iova.lock().unwrap_or_else(PoisonError::into_inner);
        let iova = *next;
        self.memory.map_file(iova, file, offset, bytes).map_err(|error| self.map_error(bytes, error.to_string()))?;
        *next = (iova + bytes + GAP_BYTES).next_multiple_of(IOVA_ALIGNMENT);
        Ok(iova)
    }

    fn unmap(&self, iova: u64, bytes: u64) -> Result<Unmapped, TransportError> {
        self.memory.unmap(iova, bytes).map_err(|error| self.map_error(bytes, error.to_string()))?;
        Ok(Unmapped::Quiet)
    }

    fn enable_interrupts(&self, count: u16) -> Result<Vec<Interrupt>, TransportError> {
        if count > self.info.vectors {
            return Err(TransportError::Unsupported {
                address: self.info.address.clone(),
                what: "this number of interrupt vectors",
            });
        }
        Ok((0..count).map(|vector| Interrupt { vector, event: None }).collect())
    }

    fn set_bus_master(&self, on: bool) -> Result<(), TransportError> {
        self.memory.set_bus_master(on);
        Ok(())
    }

    fn reset(&self) -> Result<(), TransportError> {
        self.drive.call(Emulator::function_reset);
        Ok(())
    }

    fn read_config(&self, offset: u16, into: &mut [u8]) -> Result<usize, TransportError> {
        let config = self.drive.call(|emulator| emulator.endpoint_config());
        let from = config.get(usize::from(offset)..).unwrap_or_default();
        let bytes = into.len().min(from.len());
        into[..bytes].copy_from_slice(&from[..bytes]);
        Ok(bytes)
    }

    fn path_config(&self) -> Vec<(String, Vec<u8>)> {
        let (drive, port) = self.drive.call(|emulator| (emulator.endpoint_config(), emulator.port_config()));
        vec![(self.info.address.clone(), drive), ("emulated root port".into(), port)]
    }

    fn signals(&self) -> Signals {
        Signals { lost: self.drive.lock().emulator.is_removed(), ..Signals::default() }
    }
}

#[cfg(test)]
mod tests;
