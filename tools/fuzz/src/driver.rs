//! The whole driver in front of a controller that lies.
//!
//! Behind the transport is the emulated controller, so that the driver gets far; before it stands a liar who changes what
//! a register reads, what lies in the driver's memory after the controller wrote there, and when things happen. Each
//! answer costs a byte of the fuzzer's input, and most values mean the truth. When the input is at its end the device is
//! honest, so every run comes to its end if the driver does.
//!
//! The driver may report whatever error it likes. It must not panic, not wait for ever, and every buffer that was
//! submitted comes back exactly once, or stays where the device may still write to it.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

use nvmetal_core::log::LogId;
use nvmetal_core::queue::Doorbell;
use nvmetal_driver::clock::Clock;
use nvmetal_driver::dma::{Buffer, BufferPool};
use nvmetal_driver::io_queue::{AnyIoQueue, Io, IoQueue, Payload, QueueOptions, Wait};
use nvmetal_driver::transport::emulated::EmulatedTransport;
use nvmetal_driver::transport::{
    DoorbellKind, HostRange, Interrupt, Signals, Transport, TransportError, TransportInfo, Unmapped, Waiting,
};
use nvmetal_driver::{Admin, Controller, ControllerOptions, Namespace};

const MS: u64 = 1_000_000;
/// Calls of the transport in one run; a driver that needs more does not come to an end.
const MOST_CALLS: u64 = 3_000_000;
const OPTIONS: [&str; 4] = ["ideal", "ideal,lba=4096,queues=1", "ideal,mdts=1", "ideal,fault=read-error@9"];

/// The fuzzer's input, a byte for each answer.
#[derive(Debug)]
struct Lies {
    bytes: Vec<u8>,
    at: usize,
}

impl Lies {
    /// 0 at the end: the truth.
    fn byte(&mut self) -> u8 {
        self.at += 1;
        self.bytes.get(self.at - 1).copied().unwrap_or(0)
    }

    fn number(&mut self) -> u64 {
        u64::from_le_bytes(core::array::from_fn(|_| self.byte()))
    }
}

#[derive(Debug)]
struct Liar {
    info: TransportInfo,
    clock: Clock,
    /// Taken away at the end of a run: memory that the driver leaked keeps the transport alive.
    inner: Mutex<Option<Arc<EmulatedTransport>>>,
    lies: Mutex<Lies>,
    ranges: Mutex<Vec<(u64, u64)>>,
    calls: AtomicU64,
    /// Waits in a row in which nothing happened.
    fruitless: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Liar {
    fn inner(&self) -> Arc<EmulatedTransport> {
        let calls = self.calls.fetch_add(1, Ordering::Relaxed);
        assert!(calls < MOST_CALLS, "the driver does not come to an end");
        lock(&self.inner).clone().expect("the run is not over")
    }

    /// What a register reads instead of `value`.
    fn lie(&self, value: u64, bits: u32) -> Result<u64, TransportError> {
        let mut lies = lock(&self.lies);
        let ones = u64::MAX >> (64 - bits);
        Ok(match lies.byte() {
            0..=219 => value,
            220..=223 => ones,
            224..=239 => value ^ 1 << (u32::from(lies.byte()) % bits),
            240..=251 => lies.number() & ones,
            _ => {
                let (address, detail) = (self.info.address.clone(), "a lie".to_owned());
                return Err(TransportError::Lost { address, detail });
            }
        })
    }

    /// Changes something in the driver's memory.
    fn corrupt(&self, inner: &EmulatedTransport) {
        let mut lies = lock(&self.lies);
        let kind = lies.byte();
        if kind < 160 {
            return;
        }
        let ranges = lock(&self.ranges);
        let Some(&(iova, bytes)) = ranges.get(usize::from(lies.byte()) % ranges.len().max(1)) else { return };
        let memory = inner.memory().enter();
        let (at, width) = match kind {
            // Anywhere in the first page: the first entries of a ring, the head of a structure.
            160..=199 => {
                ((u64::from(lies.byte()) | u64::from(lies.byte()) << 8) % 4096.min(bytes), 1 + lies.byte() % 8)
            }
            // A completion entry, or sixteen bytes of something else.
            200..=239 => (u64::from(lies.byte() % 64) * 16 % bytes, 16),
            _ => (lies.number() % bytes, 8),
        };
        let lie: Vec<u8> = (0..u64::from(width).min(bytes - at)).map(|_| lies.byte()).collect();
        // Before bus mastering is on the device reaches nothing, and so does the liar.
        let _ = memory.write(iova + at, &lie);
    }
}

impl Transport for Liar {
    fn info(&self) -> &TransportInfo {
        &self.info
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Comes back late, and the later the longer nothing has happened: a deadline of hours is met in a few calls.
    fn idle(&self, until_ns: u64, waiting: Waiting<'_>) {
        let inner = self.inner();
        let before_ns = self.clock.now_ns();
        let patience_ns = MS << (self.fruitless.load(Ordering::Relaxed) / 16).min(24);
        let until_ns = until_ns.max(before_ns.saturating_add(patience_ns));
        inner.idle(until_ns, waiting);
        let fruitless = self.clock.now_ns() >= until_ns;
        self.fruitless.store(if fruitless { self.fruitless.load(Ordering::Relaxed) + 1 } else { 0 }, Ordering::Relaxed);
        self.corrupt(&inner);
    }

    fn read32(&self, offset: u64) -> Result<u32, TransportError> {
        self.lie(self.inner().read32(offset)?.into(), 32).map(|value| value as u32)
    }

    fn write32(&self, offset: u64, value: u32) -> Result<(), TransportError> {
        self.inner().write32(offset, value)
    }

    fn read64(&self, offset: u64) -> Result<u64, TransportError> {
        self.lie(self.inner().read64(offset)?, 64)
    }

    fn write64(&self, offset: u64, value: u64) -> Result<(), TransportError> {
        self.inner().write64(offset, value)
    }

    fn doorbell(&self, offset: u64) -> Result<DoorbellKind, TransportError> {
        self.inner().doorbell(offset)
    }

    fn map(&self, memory: HostRange<'_>) -> Result<u64, TransportError> {
        let iova = self.inner().map(memory)?;
        lock(&self.ranges).push((iova, memory.bytes as u64));
        Ok(iova)
    }

    fn unmap(&self, iova: u64, bytes: u64) -> Result<Unmapped, TransportError> {
        let found =
            lock(&self.ranges).iter().position(|&range| range == (iova, bytes)).expect("an unmap is that of one map");
        lock(&self.ranges).remove(found);
        self.inner().unmap(iova, bytes)
    }

    fn enable_interrupts(&self, count: u16) -> Result<Vec<Interrupt>, TransportError> {
        self.inner().enable_interrupts(count)
    }

    fn set_bus_master(&self, on: bool) -> Result<(), TransportError> {
        self.inner().set_bus_master(on)
    }

    fn reset(&self) -> Result<(), TransportError> {
        self.inner().reset()
    }

    fn read_config(&self, offset: u16, into: &mut [u8]) -> Result<usize, TransportError> {
        self.inner().read_config(offset, into)
    }

    fn signals(&self) -> Signals {
        let lost = lock(&self.lies).byte() == 255;
        Signals { lost, ..self.inner().signals() }
    }
}

/// A buffer with a name, by which it is seen to come back.
struct Named {
    buffer: Buffer,
    name: u32,
}

impl Payload for Named {
    fn buffer(&self) -> &Buffer {
        &self.buffer
    }
}

/// Options, then lies.
pub fn run(data: &[u8]) {
    static LIMIT: Once = Once::new();
    // What a lying device cannot be shown to have let go is leaked, file descriptors with it.
    LIMIT.call_once(|| {
        use rustix::process::{Resource, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        let _ = setrlimit(Resource::Nofile, rustix::process::Rlimit { current: limit.maximum, ..limit });
    });
    let Some(([options, behaviour], lies)) = data.split_first_chunk::<2>() else { return };
    let inner = EmulatedTransport::open(OPTIONS[usize::from(*options) % OPTIONS.len()]).expect("good options");
    let liar = Arc::new(Liar {
        info: inner.info().clone(),
        clock: inner.clock().clone(),
        inner: Mutex::new(Some(inner)),
        lies: Mutex::new(Lies { bytes: lies.to_vec(), at: 0 }),
        ranges: Mutex::default(),
        calls: AtomicU64::new(0),
        fruitless: AtomicU64::new(0),
    });
    drive(Arc::clone(&liar) as _, [Wait::Poll, Wait::Interrupt, Wait::Hybrid][usize::from(behaviour % 3)]);
    lock(&liar.inner).take();
}

fn drive(transport: Arc<dyn Transport>, wait: Wait) {
    let options = ControllerOptions {
        io_queues: 2,
        interrupts: wait.needs_interrupts(),
        admin_timeout_ns: 2_000 * MS,
        ..ControllerOptions::default()
    };
    let Ok(controller) = Controller::open(transport, options) else { return };
    let _ = controller.smart();
    let _ = controller.log_page(LogId::ERROR, u32::MAX, 0, &mut [0; 256]);
    let _ = controller.active_namespaces();
    if let Ok(namespace) = controller.namespace(1) {
        transfer(&controller, namespace, wait);
    }
    let _ = controller.shutdown();
}

fn transfer(controller: &Arc<Controller>, namespace: Namespace, wait: Wait) {
    let bytes_each = 3 * namespace.lba_bytes() as usize;
    let page_bytes = controller.page().bytes() as usize;
    if bytes_each > 64 << 10 || page_bytes > 128 << 10 {
        return;
    }
    let pool = BufferPool { count: 8, bytes_each, page_bytes, metadata_bytes: 0 };
    let Ok(buffers) = pool.allocate(controller.transport()) else { return };
    let options = QueueOptions { depth: 6, wait, timeout_ns: 1_000 * MS, ..QueueOptions::default() };
    match controller.create_io_queue(namespace, options) {
        Ok(AnyIoQueue::Called(queue)) => read(queue, buffers),
        Ok(AnyIoQueue::Mapped(queue)) => read(queue, buffers),
        Ok(AnyIoQueue::Shadowed(queue)) => read(queue, buffers),
        Err(_) => {}
    }
}

/// Reads for a while; counts what comes back.
fn read<D: Doorbell>(mut queue: IoQueue<D, Named>, buffers: Vec<Buffer>) {
    let all = buffers.len();
    let mut free: Vec<Named> = buffers.into_iter().zip(0..).map(|(buffer, name)| Named { buffer, name }).collect();
    for round in 0..40 {
        while let Some(named) = free.pop() {
            if let Err(rejected) = queue.submit(Io::read(round % 5, 3), named, queue.clock().now_ns()) {
                free.push(rejected.payload);
                break;
            }
        }
        queue.ring();
        match queue.poll(4, |done| free.push(done.buffer)) {
            Err(_) => break,
            Ok(0) => queue.idle(queue.clock().now_ns() + MS),
            Ok(_) => {}
        }
        let now_ns = queue.clock().now_ns();
        if let Some(overdue) = queue.overdue(now_ns) {
            let _ = queue.timed_out(overdue);
            break;
        }
    }
    assert_eq!(free.len() + queue.in_flight() as usize, all, "free or in flight, nothing else");
    if let Ok(rest) = queue.delete() {
        free.extend(rest);
        assert_eq!(free.len(), all, "what was in flight comes back when the queue is gone");
    }
    let names: BTreeSet<u32> = free.iter().map(|named| named.name).collect();
    assert_eq!(names.len(), free.len(), "a buffer came back twice");
}
