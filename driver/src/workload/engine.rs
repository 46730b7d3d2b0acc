//! All queues of a run.
//!
//! On hardware each queue gets a thread of its own, pinned where the caller wants it; the calling thread only watches:
//! once in an interval it tells the observer how far things are, and the observer may read SMART data, draw a line, or end
//! the run. In virtual time one thread takes turns with all queues and lets time pass only when none of them has anything
//! to do; that is what makes an emulated run give the same figures each time.
#![forbid(unsafe_code)]

use core::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use nvmetal_core::queue::Doorbell;

use super::job::{Job, Plan};
use super::result::{Bin, Direction, EndReason, Errors, RunResult};
use super::runner::{Ingredients, Live, Recorded, Runner, Shared, Turn};
use crate::clock::SECOND_NS;
use crate::controller::{Controller, Namespace};
use crate::dma::BufferPool;
use crate::error::DriverError;
use crate::io_queue::{AnyIoQueue, QueueOptions};

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
    /// Admin commands may be sent from here: they do not disturb the queues' threads.
    fn tick(&mut self, controller: &Controller, tick: Tick) -> ControlFlow<()>;
}

/// An observer that only watches.
impl Observer for () {
    fn tick(&mut self, _: &Controller, _: Tick) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Runs `job` on `namespace`.
///
/// # Errors
/// A job that cannot be run on this drive; a device that is lost, breaks the protocol, or leaves a command unanswered.
/// I/O errors are not errors of the run: they are in its result.
pub fn run(
    controller: &Arc<Controller>,
    namespace: Namespace,
    job: &Job,
    observer: &mut dyn Observer,
) -> Result<RunResult, DriverError> {
    let plan = job.plan(controller, &namespace)?;
    let shared = Arc::new(Shared::default());
    let mut mapped = Vec::new();
    let mut called = Vec::new();
    let mut live = Vec::new();
    for number in 0..job.numjobs {
        let depth = plan.iodepth * plan.commands;
        let options =
            QueueOptions { depth, interrupt: job.interrupt, timeout_ns: job.timeout_ns, ..QueueOptions::default() };
        let command_bytes = u64::from(plan.command_blocks) << namespace.lba_shift;
        let metadata_bytes = u64::from(plan.command_blocks) * u64::from(namespace.metadata_bytes);
        let pool = BufferPool {
            count: depth as usize,
            bytes_each: (command_bytes + if namespace.metadata_extended { metadata_bytes } else { 0 }) as usize,
            page_bytes: controller.page().bytes() as usize,
            metadata_bytes: if namespace.metadata_extended { 0 } else { metadata_bytes as usize },
        };
        let buffers = pool.allocate(controller.transport())?;
        live.push(Arc::new(Live::default()));
        let live = Arc::clone(&live[usize::from(number)]);
        let shared = Arc::clone(&shared);
        match controller.create_io_queue(namespace, options)? {
            AnyIoQueue::Mapped(queue) => {
                mapped.push(Runner::new(job, Ingredients { queue, buffers, plan, number, shared, live }));
            }
            AnyIoQueue::Called(queue) => {
                called.push(Runner::new(job, Ingredients { queue, buffers, plan, number, shared, live }));
            }
        }
    }
    let watch = Watch { controller, job, plan, shared: &shared, live: &live };
    if called.is_empty() { watch.run(mapped, observer) } else { watch.run(called, observer) }
}

/// What came of all runners.
struct Outcome {
    recorded: Vec<(Recorded, u64)>,
    cpu_ns: Option<u64>,
}

struct Watch<'a> {
    controller: &'a Arc<Controller>,
    job: &'a Job,
    plan: Plan,
    shared: &'a Arc<Shared>,
    live: &'a [Arc<Live>],
}

impl Watch<'_> {
    fn run<D: Doorbell + Send>(
        &self,
        mut runners: Vec<Runner<D>>,
        observer: &mut dyn Observer,
    ) -> Result<RunResult, DriverError> {
        let start_ns = self.controller.clock().now_ns() + self.job.ramp_ns;
        let stop_ns = self.job.limits.runtime_ns.map_or(u64::MAX, |runtime_ns| start_ns.saturating_add(runtime_ns));
        for runner in &mut runners {
            runner.begin(start_ns, stop_ns);
        }
        let queues = runners.len() as u16;
        let mut interrupted = false;
        let outcome = if self.controller.transport().info().stepped {
            self.stepped(runners, start_ns, observer, &mut interrupted)?
        } else {
            self.threaded(runners, start_ns, observer, &mut interrupted)?
        };
        Ok(self.result(outcome, start_ns, stop_ns, queues, interrupted))
    }

    /// One thread, virtual time.
    fn stepped<D: Doorbell>(
        &self,
        mut runners: Vec<Runner<D>>,
        start_ns: u64,
        observer: &mut dyn Observer,
        interrupted: &mut bool,
    ) -> Result<Outcome, DriverError> {
        let clock = self.controller.clock();
        let interval_ns = observer.interval_ns().max(1);
        let mut tick_ns = start_ns + interval_ns;
        let mut recorded = Vec::new();
        while !runners.is_empty() {
            let mut until_ns = Some(tick_ns);
            let mut index = 0;
            while let Some(runner) = runners.get_mut(index) {
                match runner.turn()? {
                    Turn::Busy => until_ns = None,
                    Turn::Idle { until_ns: runner_ns } => until_ns = until_ns.map(|until_ns| until_ns.min(runner_ns)),
                    Turn::Finished => {
                        recorded.push(runners.remove(index).finish());
                        continue;
                    }
                }
                index += 1;
            }
            if let (Some(until_ns), Some(runner)) = (until_ns, runners.first()) {
                runner.idle(until_ns);
            }
            let now_ns = clock.now_ns();
            if now_ns >= tick_ns {
                tick_ns = now_ns + interval_ns;
                self.tick(observer, now_ns.saturating_sub(start_ns), interrupted);
            }
        }
        Ok(Outcome { recorded, cpu_ns: None })
    }

    /// A thread for each queue.
    fn threaded<D: Doorbell + Send>(
        &self,
        runners: Vec<Runner<D>>,
        start_ns: u64,
        observer: &mut dyn Observer,
        interrupted: &mut bool,
    ) -> Result<Outcome, DriverError> {
        let running = AtomicUsize::new(runners.len());
        let watcher = std::thread::current();
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for (number, runner) in runners.into_iter().enumerate() {
                let cpu = self.job.cpus.get(number % self.job.cpus.len().max(1)).copied();
                let (running, watcher, shared) = (&running, &watcher, self.shared);
                let spawned =
                    std::thread::Builder::new().name(format!("queue-{}", number + 1)).spawn_scoped(scope, move || {
                        if let Some(cpu) = cpu {
                            pin(cpu);
                        }
                        let worked = work(runner);
                        if worked.is_err() {
                            shared.stop.store(true, Ordering::Relaxed);
                        }
                        running.fetch_sub(1, Ordering::Release);
                        watcher.unpark();
                        worked
                    });
                threads.push(spawned);
            }
            self.watch(observer, start_ns, &running, interrupted);
            let mut outcome = Outcome { recorded: Vec::new(), cpu_ns: Some(0) };
            let mut failure = None;
            for thread in threads {
                match thread.map(std::thread::ScopedJoinHandle::join) {
                    Ok(Ok(Ok((recorded, cpu_ns)))) => {
                        outcome.recorded.push(recorded);
                        outcome.cpu_ns = outcome.cpu_ns.map(|sum| sum + cpu_ns);
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
            failure.map_or(Ok(outcome), Err)
        })
    }

    fn watch(&self, observer: &mut dyn Observer, start_ns: u64, running: &AtomicUsize, interrupted: &mut bool) {
        let clock = self.controller.clock();
        let interval_ns = observer.interval_ns().max(1);
        let mut tick_ns = start_ns + interval_ns;
        while running.load(Ordering::Acquire) > 0 {
            let now_ns = clock.now_ns();
            if now_ns >= tick_ns {
                tick_ns = now_ns + interval_ns;
                self.tick(observer, now_ns.saturating_sub(start_ns), interrupted);
            }
            let nap_ns = tick_ns.saturating_sub(now_ns).clamp(1, SECOND_NS / 10);
            std::thread::park_timeout(Duration::from_nanos(nap_ns));
        }
    }

    fn tick(&self, observer: &mut dyn Observer, elapsed_ns: u64, interrupted: &mut bool) {
        let sum = |of: fn(&Live) -> u64| self.live.iter().map(|live| of(live)).sum();
        let tick = Tick {
            elapsed_ns,
            ios: sum(|live| live.ios.load(Ordering::Relaxed)),
            bytes: sum(|live| live.bytes.load(Ordering::Relaxed)),
        };
        if observer.tick(self.controller, tick).is_break() {
            *interrupted = true;
            self.shared.stop.store(true, Ordering::Relaxed);
        }
    }

    fn result(&self, outcome: Outcome, start_ns: u64, stop_ns: u64, queues: u16, interrupted: bool) -> RunResult {
        let (mut read, mut write) = (Direction::default(), Direction::default());
        let (mut bins, mut errors): (Vec<Bin>, _) = (Vec::new(), Errors::default());
        let (mut clock_error_ns, mut last_seen_ns, mut out_of_time) = (0, start_ns, false);
        for (recorded, io_bytes) in outcome.recorded {
            read.ios += recorded.read_ios;
            read.bytes += recorded.read_ios * io_bytes;
            read.latency.merge(&recorded.read_latency);
            write.ios += recorded.write_ios;
            write.bytes += recorded.write_ios * io_bytes;
            write.latency.merge(&recorded.write_latency);
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
        RunResult {
            // A run that its time ended lasted exactly that; any other until its last completion.
            elapsed_ns: if out_of_time { stop_ns - start_ns } else { last_seen_ns.saturating_sub(start_ns) },
            end: match (interrupted, out_of_time) {
                (true, _) => EndReason::Interrupted,
                (false, true) => EndReason::Runtime,
                (false, false) => EndReason::Done,
            },
            read,
            write,
            bins,
            errors,
            clock_error_ns,
            clock: self.controller.clock().name(),
            iodepth: self.plan.iodepth,
            commands_per_io: self.plan.commands,
            queues,
            cpu_ns: outcome.cpu_ns,
            polled: !self.job.interrupt || self.controller.interrupts().is_empty(),
        }
    }
}

/// Takes turns until the run is over; gives the records and the thread's processor time.
fn work<D: Doorbell>(mut runner: Runner<D>) -> Result<((Recorded, u64), u64), DriverError> {
    let before_ns = thread_cpu_ns();
    loop {
        match runner.turn()? {
            Turn::Busy => {}
            Turn::Idle { until_ns } => runner.idle(until_ns),
            Turn::Finished => break,
        }
    }
    let cpu_ns = thread_cpu_ns().saturating_sub(before_ns);
    Ok((runner.finish(), cpu_ns))
}

/// Processor time of the calling thread.
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
