//! The threads of a run, who watches them, and what their records add up to.
//!
//! A run is made of workers that each have a thread of their own and keep records of their own; nothing is shared while
//! they work but a flag that ends the run early and counters to look at. What a worker does is not this file's matter:
//! our own queues and the kernel's block layer (`crate::kernel`) are run by the same crew, so that both are watched,
//! ended and added up in the same way, and their results can be compared.
#![forbid(unsafe_code)]

use core::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use super::course::Course;
use super::histogram::Histogram;
use super::job::Job;
use super::result::{Bin, Direction, EndReason, Errors, ProcessorUse, RunResult, Verified};
use crate::clock::{Clock, SECOND_NS};
use crate::controller::Recoveries;
use crate::error::DriverError;
use crate::io_queue::Wait;

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tick {
    /// Since the run's begin; 0 in the ramp.
    pub elapsed_ns: u64,
    /// I/Os completed so far.
    pub ios: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Who watches a run.
pub trait Observer {
    /// How often [`Observer::tick`] is called.
    fn interval_ns(&self) -> u64 {
        SECOND_NS
    }

    /// Called once in an interval. `Break` ends the run; what was measured up to then is its result.
    ///
    /// Admin commands may be sent from here, by an observer that holds the controller: they do not disturb the queues'
    /// threads.
    fn tick(&mut self, tick: Tick) -> ControlFlow<()>;
}

/// An observer that only watches.
impl Observer for () {
    fn tick(&mut self, _: Tick) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// What all workers of a run share with its observer.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// Set to end the run early.
    pub stop: AtomicBool,
}

/// A worker's counters, for the observer; its own cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct Live {
    pub ios: AtomicU64,
    pub bytes: AtomicU64,
}

/// What a worker recorded.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    pub read_latency: Histogram,
    pub write_latency: Histogram,
    /// Of what neither reads nor writes.
    pub other_latency: Histogram,
    /// Bytes of reads, writes and others, where sizes differ.
    pub bytes: [u64; 3],
    pub bins: Vec<Bin>,
    /// The latencies of each bin.
    pub course: Course,
    pub errors: Errors,
    pub clock_error_ns: u64,
    pub last_seen_ns: u64,
    /// The run's time was over before its work.
    pub out_of_time: bool,
    pub reads_sent: u64,
    pub writes_sent: u64,
    pub others_sent: u64,
    pub verified: Verified,
}

impl Recorded {
    /// Keeps a bin, and which latencies came in it.
    pub fn end_bin(&mut self, bin: Bin) {
        self.bins.push(bin);
        self.course.end_bin([&self.read_latency, &self.write_latency, &self.other_latency]);
    }
}

/// What came of all workers.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Each worker's records.
    pub recorded: Vec<Recorded>,
    /// What the workers' threads took; `None` in virtual time.
    pub processor: Option<ProcessorUse>,
}

/// What a result says beyond its records.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup {
    /// Bytes of one I/O.
    pub io_bytes: u64,
    /// I/Os in flight on each queue.
    pub iodepth: u32,
    /// Commands that one I/O was split into.
    pub commands_per_io: u32,
    /// Queues.
    pub queues: u16,
    /// How completions were waited for.
    pub wait: Wait,
    /// I/Os differ in size, so their bytes were counted.
    pub mixed_sizes: bool,
}

/// The workers of one run, as seen from outside.
#[derive(Debug)]
pub(crate) struct Crew<'a> {
    clock: &'a Clock,
    shared: Arc<Shared>,
    live: Vec<Arc<Live>>,
    start_ns: u64,
    stop_ns: u64,
    interrupted: bool,
}

impl<'a> Crew<'a> {
    /// A crew of `workers`, before its start.
    pub fn new(clock: &'a Clock, workers: usize) -> Self {
        let live = (0..workers).map(|_| Arc::default()).collect();
        Self { clock, shared: Arc::default(), live, start_ns: 0, stop_ns: u64::MAX, interrupted: false }
    }

    /// What the workers share.
    pub fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// The counters of a worker.
    pub fn live(&self, number: usize) -> Arc<Live> {
        self.live.get(number).map(Arc::clone).unwrap_or_default()
    }

    /// The run's time begins now, with its ramp. Gives when recording begins and when the run ends.
    pub fn begin(&mut self, job: &Job) -> (u64, u64) {
        self.start_ns = self.clock.now_ns() + job.ramp_ns;
        let runtime_ns = job.limits.runtime_ns;
        self.stop_ns = runtime_ns.map_or(u64::MAX, |runtime_ns| self.start_ns.saturating_add(runtime_ns));
        (self.start_ns, self.stop_ns)
    }

    /// Tells the observer how far things are.
    pub fn tick(&mut self, observer: &mut dyn Observer, now_ns: u64) {
        let sum = |of: fn(&Live) -> u64| self.live.iter().map(|live| of(live)).sum();
        let tick = Tick {
            elapsed_ns: now_ns.saturating_sub(self.start_ns),
            ios: sum(|live| live.ios.load(Ordering::Relaxed)),
            bytes: sum(|live| live.bytes.load(Ordering::Relaxed)),
        };
        if observer.tick(tick).is_break() {
            self.interrupted = true;
            self.shared.stop.store(true, Ordering::Relaxed);
        }
    }

    /// Gives each worker a thread, pinned to one of `cpus` in turn if there are any, and watches until all have ended.
    /// The first error of a worker ends the run.
    pub fn threaded<W: Send>(
        &mut self,
        workers: Vec<W>,
        cpus: &[usize],
        observer: &mut dyn Observer,
        work: impl Fn(W) -> Result<Recorded, DriverError> + Sync,
    ) -> Result<Outcome, DriverError> {
        let running = AtomicUsize::new(workers.len());
        let watcher = std::thread::current();
        let shared = self.shared();
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for (number, worker) in workers.into_iter().enumerate() {
                let cpu = cpus.get(number % cpus.len().max(1)).copied();
                let (running, watcher, shared, work, clock) = (&running, &watcher, &shared, &work, self.clock);
                let spawned =
                    std::thread::Builder::new().name(format!("queue-{}", number + 1)).spawn_scoped(scope, move || {
                        // Counted down however the worker ends, a panic included, so that the watch ends, too.
                        let _ended = Ended { running, watcher };
                        if let Some(cpu) = cpu {
                            pin(cpu);
                        }
                        let (began_ns, before_ns) = (clock.now_ns(), thread_cpu_ns());
                        let worked = work(worker);
                        if worked.is_err() {
                            shared.stop.store(true, Ordering::Relaxed);
                        }
                        let processor = ProcessorUse {
                            cpu_ns: thread_cpu_ns().saturating_sub(before_ns),
                            wall_ns: clock.now_ns().saturating_sub(began_ns),
                        };
                        worked.map(|recorded| (recorded, processor))
                    });
                if spawned.is_err() {
                    running.fetch_sub(1, Ordering::Release);
                    shared.stop.store(true, Ordering::Relaxed);
                }
                threads.push(spawned);
            }
            self.watch(observer, &running);
            let mut recorded = Vec::new();
            let mut processor = ProcessorUse::default();
            let mut failure = None;
            for thread in threads {
                match thread.map(std::thread::ScopedJoinHandle::join) {
                    Ok(Ok(Ok((of_one, used)))) => {
                        recorded.push(of_one);
                        processor.add(used);
                    }
                    Ok(Ok(Err(error))) => failure = failure.or(Some(error)),
                    // A panic of ours: let it go on, so that it is seen, and unwinds through what gives the drive back.
                    Ok(Err(panic)) => std::panic::resume_unwind(panic),
                    Err(error) => {
                        failure =
                            failure.or(Some(DriverError::Request(format!("no thread could be started: {error}"))));
                    }
                }
            }
            failure.map_or(Ok(Outcome { recorded, processor: Some(processor) }), Err)
        })
    }

    fn watch(&mut self, observer: &mut dyn Observer, running: &AtomicUsize) {
        let interval_ns = observer.interval_ns().max(1);
        let mut tick_ns = self.start_ns + interval_ns;
        while running.load(Ordering::Acquire) > 0 {
            let now_ns = self.clock.now_ns();
            if now_ns >= tick_ns {
                tick_ns = now_ns + interval_ns;
                self.tick(observer, now_ns);
            }
            let nap_ns = tick_ns.saturating_sub(now_ns).clamp(1, SECOND_NS / 10);
            std::thread::park_timeout(Duration::from_nanos(nap_ns));
        }
    }

    /// Adds the records up.
    pub fn result(&self, outcome: Outcome, setup: Setup) -> RunResult {
        let (mut read, mut write, mut other) = (Direction::default(), Direction::default(), Direction::default());
        let mut verified = Verified::default();
        let p99_ns = Course::percentiles(outcome.recorded.iter().map(|recorded| &recorded.course), 99.0);
        let (mut bins, mut errors): (Vec<Bin>, _) = (Vec::new(), Errors::default());
        let (mut clock_error_ns, mut last_seen_ns, mut out_of_time) = (0, self.start_ns, false);
        for recorded in outcome.recorded {
            let of = [
                (&mut read, &recorded.read_latency),
                (&mut write, &recorded.write_latency),
                (&mut other, &recorded.other_latency),
            ];
            for ((direction, latency), counted) in of.into_iter().zip(recorded.bytes) {
                let ios = latency.count();
                direction.ios += ios;
                direction.bytes += if setup.mixed_sizes { counted } else { ios * setup.io_bytes };
                direction.latency.merge(latency);
            }
            verified.add(recorded.verified);
            bins.resize(bins.len().max(recorded.bins.len()), Bin::default());
            for (sum, bin) in bins.iter_mut().zip(&recorded.bins) {
                sum.ios += bin.ios;
                sum.bytes += bin.bytes;
            }
            errors.merge(recorded.errors);
            clock_error_ns = clock_error_ns.max(recorded.clock_error_ns);
            last_seen_ns = last_seen_ns.max(recorded.last_seen_ns);
            out_of_time |= recorded.out_of_time;
        }
        // A run that its time ended lasted exactly that; any other until its last completion.
        let ended_ns = if out_of_time { self.stop_ns } else { last_seen_ns };
        RunResult {
            elapsed_ns: ended_ns.saturating_sub(self.start_ns),
            end: match (self.interrupted, out_of_time) {
                (true, _) => EndReason::Interrupted,
                (false, true) => EndReason::Runtime,
                (false, false) => EndReason::Done,
            },
            read,
            write,
            other,
            verified,
            bins,
            p99_ns,
            errors,
            clock_error_ns,
            clock: self.clock.name(),
            iodepth: setup.iodepth,
            commands_per_io: setup.commands_per_io,
            queues: setup.queues,
            processor: outcome.processor,
            wait: setup.wait,
            recoveries: Recoveries::default(),
        }
    }
}

/// Counts a worker's end and wakes the watcher.
struct Ended<'a> {
    running: &'a AtomicUsize,
    watcher: &'a std::thread::Thread,
}

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.running.fetch_sub(1, Ordering::Release);
        self.watcher.unpark();
    }
}

/// Processor time of the calling thread, in the kernel and outside of it.
fn thread_cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * SECOND_NS + time.tv_nsec as u64
}

/// Keeps the calling thread on one processor; a failure only costs speed.
fn pin(cpu: usize) {
    let mut set = rustix::thread::CpuSet::new();
    if cpu < rustix::thread::CpuSet::MAX_CPU {
        set.set(cpu);
    }
    if let Err(error) = rustix::thread::sched_setaffinity(None, &set) {
        log::warn!("cannot keep a thread on processor {cpu}: {error}");
    }
}
