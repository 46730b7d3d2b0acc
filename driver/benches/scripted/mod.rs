//! A drive that has completed everything by the time its doorbell has been rung, and the driver at work on it.
//!
//! Ringing a doorbell *is* the device: it reads the new entries' command ids and posts a completion for each before the
//! ring returns, so every poll finds what it waits for. Bring-up goes to the emulator; nothing of that is measured.
#![forbid(unsafe_code)]
#![allow(dead_code)] // Each of the two benches uses its part.

use std::sync::{Arc, Mutex, PoisonError};

use nvmetal_driver::clock::Clock;
use nvmetal_driver::controller::{Admin, Controller, ControllerOptions};
use nvmetal_driver::dma::{Buffer, BufferPool};
use nvmetal_driver::error::DriverError;
use nvmetal_driver::io_queue::{AnyIoQueue, Io, IoQueue, QueueOptions};
use nvmetal_driver::transport::emulated::EmulatedTransport;
use nvmetal_driver::transport::{
    CalledDoorbell, DoorbellKind, DoorbellTarget, HostRange, Interrupt, Transport, TransportError, TransportInfo,
    Unmapped, Waiting,
};
use nvmetal_driver::workload::{self, Access, Job, Limits, RunResult};

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

/// Every lie.
pub const LIES: [Lie; 6] =
    [Lie::WrongCommand, Lie::StaleGeneration, Lie::Twice, Lie::WrongQueue, Lie::HeadBehind, Lie::HeadOutside];

/// What the device does wrong, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    /// A command id that is not in flight.
    WrongCommand,
    /// The right slot, another generation.
    StaleGeneration,
    /// One completion twice.
    Twice,
    /// Another queue's id.
    WrongQueue,
    /// A head that says the command's own entry was not fetched yet.
    HeadBehind,
    /// A head beyond the ring.
    HeadOutside,
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
                Some(Lie::HeadBehind) => {
                    let before = (rings.tail + rings.entries - 1) % rings.entries;
                    self.post(rings, cid, 1, before);
                }
                Some(Lie::HeadOutside) => self.post(rings, cid, 1, rings.entries),
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

/// A queue on the scripted device.
pub type Queue = IoQueue<CalledDoorbell, Buffer>;

/// A controller on the scripted device, for queues of one depth.
pub struct Bench {
    device: Arc<Device>,
    pub controller: Arc<Controller>,
    pub depth: u32,
}

impl Bench {
    pub fn new(depth: u32) -> Result<Self, DriverError> {
        let inner = EmulatedTransport::open("ideal,mdts=8").map_err(|error| DriverError::Request(error.to_string()))?;
        let rings = Mutex::new(Rings { entries: depth + 1, ..Rings::default() });
        let target = Arc::new(Device { inner: Arc::clone(&inner), rings });
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

    pub fn queue(&self) -> Result<Queue, DriverError> {
        let options = QueueOptions { depth: self.depth, timeout_ns: u64::MAX / 2, ..QueueOptions::default() };
        match self.controller.create_io_queue(self.controller.namespace(1)?, options)? {
            AnyIoQueue::Called(queue) => Ok(queue),
            _ => Err(DriverError::Request("another doorbell on a scripted device".to_owned())),
        }
    }

    /// As many buffers as the queue is deep, of `bytes` bytes that begin `offset` bytes after a page.
    pub fn buffers(&self, bytes: usize, offset: usize) -> Result<Vec<Buffer>, DriverError> {
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

    /// The whole engine: random reads of 4 KiB.
    pub fn engine(&self, ios: u64) -> Result<RunResult, DriverError> {
        let job = Job {
            access: Access::Random,
            iodepth: self.depth,
            limits: Limits { ios: Some(ios), ..Limits::default() },
            timeout_ns: u64::MAX / 2,
            ..Job::new()
        };
        workload::run(&self.controller, self.controller.namespace(1)?, &job, &mut ())
    }

    /// The device's side, for who rings without a driver.
    pub fn doorbells(&self) -> Arc<dyn DoorbellTarget> {
        Arc::clone(&self.device) as _
    }

    /// Makes the device lie at the next command.
    pub fn lie(&self, lie: Lie) {
        self.device.rings.lock().unwrap_or_else(PoisonError::into_inner).lie = Some(lie);
    }
}

/// Rings both doorbells without a driver.
#[inline(never)]
pub fn ring(target: &dyn DoorbellTarget, tail: u32) {
    target.write_doorbell(TAIL, tail);
    target.write_doorbell(HEAD, tail);
}

/// Submits, rings and polls `ios` I/Os in batches of as many as there are buffers.
#[inline(never)]
pub fn drive(queue: &mut Queue, free: &mut Vec<Buffer>, ios: u64, blocks: u32) -> Result<(), DriverError> {
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
