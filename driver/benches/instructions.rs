//! Instructions per I/O of the hot path, to be counted from outside: `tools/instructions` runs this under callgrind.
//!
//! `instructions CASE IOS` does that many I/Os of one case and nothing else that grows with their number, so the slope
//! of two run lengths is the cost of one I/O. The device is scripted: ringing a doorbell *is* the device, which reads
//! the new entries' command ids and posts a completion for each before the ring returns; so every poll finds what it
//! waits for. The `device` cases ring the same doorbells without a driver. What is left after subtracting them is the
//! driver (submit, ring, poll, all checks and ownership), or with `engine` the whole benchmark loop with random offsets,
//! time stamps and histogram.
//!
//! With `faults` the same build is shown to contain the checks: each lie of the device must still be found out.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use nvmetal_driver::clock::Clock;
use nvmetal_driver::controller::{Admin, Controller, ControllerOptions};
use nvmetal_driver::dma::{Buffer, BufferPool};
use nvmetal_driver::error::DriverError;
use nvmetal_driver::io_queue::{AnyIoQueue, Io, IoQueue, QueueOptions, RejectedReason};
use nvmetal_driver::transport::emulated::EmulatedTransport;
use nvmetal_driver::transport::{
    CalledDoorbell, DoorbellKind, DoorbellTarget, HostRange, Interrupt, Transport, TransportError, TransportInfo,
    Unmapped, Waiting,
};
use nvmetal_driver::workload::{self, Access, Job, Limits};

/// The first I/O queue's doorbells.
const TAIL: u64 = 0x1008;
const HEAD: u64 = 0x100c;

/// The device's side of one queue pair.
#[derive(Debug, Default)]
struct Rings {
    submission_iova: u64,
    completion_iova: u64,
    entries: u32,
    tail: u32,
    next: u32,
    phase: bool,
    lie: Option<Lie>,
}

/// What the device does wrong, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lie {
    WrongCommand,
    StaleGeneration,
    Twice,
    WrongQueue,
    WrongHead,
}

#[derive(Debug)]
struct Scripted {
    inner: Arc<EmulatedTransport>,
    info: TransportInfo,
    clock: Clock,
    target: Arc<Device>,
    mapped: Mutex<Vec<u64>>,
}

#[derive(Debug)]
struct Device {
    inner: Arc<EmulatedTransport>,
    rings: Mutex<Rings>,
    on: AtomicBool,
}

impl Device {
    fn post(&self, rings: &mut Rings, cid: u16, queue_id: u64, head: u32) {
        let high = u64::from(head) | queue_id << 16 | u64::from(cid) << 32 | u64::from(rings.phase) << 48;
        let at = rings.completion_iova + u64::from(rings.next) * 16;
        self.inner.memory().enter().write_completion(at, [0, high]).expect("the completion queue is mapped");
        rings.next += 1;
        if rings.next == rings.entries {
            rings.next = 0;
            rings.phase = !rings.phase;
        }
    }
}

impl DoorbellTarget for Device {
    fn write_doorbell(&self, offset: u64, value: u32) {
        if offset != TAIL {
            return;
        }
        let rings = &mut *self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        // As controllers do, it fetches what there is and completes after that: the head told is the tail.
        while rings.tail != value {
            let at = rings.submission_iova + u64::from(rings.tail) * 64;
            let cid = self.inner.memory().enter().read_u32(at).expect("the submission queue is mapped") >> 16;
            rings.tail = if rings.tail + 1 == rings.entries { 0 } else { rings.tail + 1 };
            let cid = cid as u16;
            match rings.lie.take() {
                None => self.post(rings, cid, 1, value),
                Some(Lie::WrongCommand) => self.post(rings, cid ^ 1, 1, value),
                Some(Lie::StaleGeneration) => self.post(rings, cid.wrapping_sub(0x100), 1, value),
                Some(Lie::Twice) => {
                    self.post(rings, cid, 1, value);
                    self.post(rings, cid, 1, value);
                }
                Some(Lie::WrongQueue) => self.post(rings, cid, 2, value),
                Some(Lie::WrongHead) => {
                    let before = (rings.tail + rings.entries - 1) % rings.entries;
                    self.post(rings, cid, 1, before);
                }
            }
        }
    }
}

impl Transport for Scripted {
    fn info(&self) -> &TransportInfo {
        &self.info
    }
    fn clock(&self) -> &Clock {
        &self.clock
    }
    fn idle(&self, until_ns: u64, waiting: Waiting<'_>) {
        self.inner.idle(until_ns, waiting);
    }
    fn read32(&self, offset: u64) -> Result<u32, TransportError> {
        self.inner.read32(offset)
    }
    fn write32(&self, offset: u64, value: u32) -> Result<(), TransportError> {
        self.inner.write32(offset, value)
    }
    fn read64(&self, offset: u64) -> Result<u64, TransportError> {
        self.inner.read64(offset)
    }
    fn write64(&self, offset: u64, value: u64) -> Result<(), TransportError> {
        self.inner.write64(offset, value)
    }
    fn doorbell(&self, offset: u64) -> Result<DoorbellKind, TransportError> {
        if offset < TAIL {
            return self.inner.doorbell(offset);
        }
        if offset == TAIL {
            // A queue maps its submission ring, then its completion ring, then asks for its doorbells.
            let mapped = self.mapped.lock().unwrap_or_else(PoisonError::into_inner);
            let rings = &mut *self.target.rings.lock().unwrap_or_else(PoisonError::into_inner);
            if let [.., submission_iova, completion_iova] = mapped[..] {
                *rings =
                    Rings { submission_iova, completion_iova, entries: rings.entries, phase: true, ..Rings::default() };
            }
            self.target.on.store(true, Ordering::Relaxed);
        }
        let target: Arc<dyn DoorbellTarget> = Arc::clone(&self.target) as _;
        Ok(DoorbellKind::Called(CalledDoorbell::new(target, offset)))
    }
    fn map(&self, memory: HostRange<'_>) -> Result<u64, TransportError> {
        let iova = self.inner.map(memory)?;
        self.mapped.lock().unwrap_or_else(PoisonError::into_inner).push(iova);
        Ok(iova)
    }
    fn unmap(&self, iova: u64, bytes: u64) -> Result<Unmapped, TransportError> {
        self.inner.unmap(iova, bytes)
    }
    fn enable_interrupts(&self, count: u16) -> Result<Vec<Interrupt>, TransportError> {
        self.inner.enable_interrupts(count)
    }
    fn set_bus_master(&self, on: bool) -> Result<(), TransportError> {
        self.inner.set_bus_master(on)
    }
    fn reset(&self) -> Result<(), TransportError> {
        self.inner.reset()
    }
    fn read_config(&self, offset: u16, into: &mut [u8]) -> Result<usize, TransportError> {
        self.inner.read_config(offset, into)
    }
}

type Queue = IoQueue<CalledDoorbell, Buffer>;

struct Bench {
    device: Arc<Device>,
    controller: Arc<Controller>,
    depth: u32,
}

impl Bench {
    fn new(depth: u32) -> Result<Self, DriverError> {
        let inner = EmulatedTransport::open("ideal,mdts=8").map_err(|error| DriverError::Request(error.to_string()))?;
        let rings = Mutex::new(Rings { entries: depth + 1, ..Rings::default() });
        let target = Arc::new(Device { inner: Arc::clone(&inner), rings, on: AtomicBool::new(false) });
        let mut info = inner.info().clone();
        info.stepped = true;
        let scripted = Scripted {
            info,
            // The counter itself, one nanosecond a tick: under callgrind there is no rate to measure.
            clock: Clock::Counter { multiplier: 1 << 32, origin: 0 },
            inner,
            target: Arc::clone(&target),
            mapped: Mutex::default(),
        };
        let options = ControllerOptions { admin_timeout_ns: u64::MAX / 2, ..ControllerOptions::default() };
        Ok(Self { device: target, controller: Controller::open(Arc::new(scripted), options)?, depth })
    }

    fn queue(&self) -> Result<Queue, DriverError> {
        let options = QueueOptions { depth: self.depth, timeout_ns: u64::MAX / 2, ..QueueOptions::default() };
        match self.controller.create_io_queue(self.controller.namespace(1)?, options)? {
            AnyIoQueue::Called(queue) => Ok(queue),
            _ => Err(DriverError::Request("another doorbell on a scripted device".to_owned())),
        }
    }

    fn buffers(&self, bytes: usize, offset: usize) -> Result<Vec<Buffer>, DriverError> {
        let pool =
            BufferPool { count: self.depth as usize, bytes_each: bytes + offset, page_bytes: 4096, metadata_bytes: 0 };
        let mut buffers = pool.allocate(self.controller.transport())?;
        if offset > 0 {
            for buffer in &mut buffers {
                buffer.set_offset(offset)?;
            }
        }
        Ok(buffers)
    }

    /// The driver: batches of the queue's depth.
    fn driver(&self, ios: u64, bytes: usize, offset: usize) -> Result<(), DriverError> {
        let mut buffers = self.buffers(bytes, offset)?;
        let mut queue = self.queue()?;
        let blocks = (bytes / queue.namespace().lba_bytes() as usize) as u32;
        drive(&mut queue, &mut buffers, ios, blocks)
    }

    /// The same doorbells without a driver.
    fn device(&self, ios: u64) -> Result<(), DriverError> {
        // Only so that as many ranges are mapped: the device looks addresses up.
        let mut free = self.buffers(4096, 0)?;
        let queue = self.queue()?;
        let target = Arc::clone(&self.device) as Arc<dyn DoorbellTarget>;
        let mut taken = Vec::with_capacity(free.len());
        let mut tail = 0;
        for _ in 0..ios / u64::from(self.depth) {
            tail = (tail + self.depth) % (self.depth + 1);
            ring(&*target, tail);
            pass(&mut free, &mut taken);
            std::mem::swap(&mut free, &mut taken);
        }
        drop(queue);
        Ok(())
    }

    /// The whole engine.
    fn engine(&self, ios: u64) -> Result<(), DriverError> {
        let job = Job {
            access: Access::Random,
            iodepth: self.depth,
            limits: Limits { ios: Some(ios), ..Limits::default() },
            timeout_ns: u64::MAX / 2,
            ..Job::new()
        };
        let result = workload::run(&self.controller, self.controller.namespace(1)?, &job, &mut ())?;
        assert_eq!(result.ios(), ios, "the run did what it was told");
        Ok(())
    }

    /// Whether this build finds the lie out.
    fn finds(&self, lie: Lie) -> Result<bool, DriverError> {
        let mut buffers = self.buffers(4096, 0)?;
        let mut queue = self.queue()?;
        drive(&mut queue, &mut buffers, 1000, 8)?;
        self.device.rings.lock().unwrap_or_else(PoisonError::into_inner).lie = Some(lie);
        let found = matches!(drive(&mut queue, &mut buffers, u64::from(self.depth), 8), Err(DriverError::Fault { .. }));
        let stopped = buffers.pop().is_none_or(|buffer| {
            queue.submit(Io::read(0, 8), buffer, 0).is_err_and(|rejected| rejected.reason == RejectedReason::Stopped)
        });
        Ok(found && stopped)
    }
}

/// What the driver's caller does with its buffers: takes one off its list, and puts it on again.
#[inline(never)]
fn pass(from: &mut Vec<Buffer>, to: &mut Vec<Buffer>) {
    while let Some(buffer) = from.pop() {
        to.push(buffer);
    }
}

#[inline(never)]
fn ring(target: &dyn DoorbellTarget, tail: u32) {
    target.write_doorbell(TAIL, tail);
    target.write_doorbell(HEAD, tail);
}

/// Submits, rings and polls `ios` I/Os in batches of as many as there are buffers.
#[inline(never)]
fn drive(queue: &mut Queue, free: &mut Vec<Buffer>, ios: u64, blocks: u32) -> Result<(), DriverError> {
    let mut lba = 0;
    let mut done = 0;
    while done < ios {
        while let Some(buffer) = free.pop() {
            lba = (lba + 8) & 0xffff;
            if let Err(rejected) = queue.submit(Io::read(lba, blocks), buffer, 0) {
                free.push(rejected.payload);
                break;
            }
        }
        queue.ring();
        done += u64::from(queue.poll(u32::MAX, |done| free.push(done.buffer))?);
    }
    Ok(())
}

fn main() -> Result<(), DriverError> {
    let arguments: Vec<String> = std::env::args().filter(|argument| argument != "--bench").collect();
    let number = |text: Option<&String>| text.and_then(|text| text.parse().ok()).unwrap_or(1);
    let (case, depth, ios) = (arguments.get(1).map(String::as_str), number(arguments.get(2)), number(arguments.get(3)));
    let bench = Bench::new(depth as u32)?;
    match case {
        Some("device") => bench.device(ios),
        Some("driver-4k") => bench.driver(ios, 4096, 0),
        Some("driver-128k") => bench.driver(ios, 128 << 10, 0),
        Some("driver-128k-unaligned") => bench.driver(ios, 128 << 10, 512),
        Some("engine") => bench.engine(ios),
        Some("faults") => {
            for lie in [Lie::WrongCommand, Lie::StaleGeneration, Lie::Twice, Lie::WrongQueue, Lie::WrongHead] {
                let found = Bench::new(depth as u32)?.finds(lie)?;
                println!("{lie:?}: {}", if found { "found out" } else { "NOT found out" });
                assert!(found, "this build lacks a check");
            }
            Ok(())
        }
        _ => {
            eprintln!("usage: instructions device|driver-4k|driver-128k|driver-128k-unaligned|engine|faults DEPTH IOS");
            Ok(())
        }
    }
}
