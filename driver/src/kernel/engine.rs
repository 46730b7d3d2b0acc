//! A job on a block device, through the kernel.
//!
//! The [`Job`] is planned, run by a crew of threads and added up as on our own queues, and its result is the same
//! [`RunResult`]; what differs is who moves the data. Each of the job's queues is an io_uring with a thread of its own,
//! or, where there is no io_uring, as many waiting threads as the queue is deep. [`BlockRun::engine`] says which it was.
//!
//! A failed read is not repeated here: the kernel's driver has done that already.
#![forbid(unsafe_code)]

use core::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use nvmetal_core::command::io::IoOpcode;
use rustix::io::Errno;
use serde::Serialize;

use super::block::BlockTarget;
use super::blocking::{self, BlockingWorker};
use super::error::{self, KernelError};
use super::record::{Begun, Recorder, Span};
use super::sequence::Sequence;
use super::uring::{self, Uring};
use crate::clock::{Clock, MILLISECOND_NS};
use crate::error::DriverError;
use crate::io_queue::Wait;
use crate::workload::crew::{self, Crew, Outcome, Recorded, Shared};
use crate::workload::job::Plan;
use crate::workload::{Job, JobError, Observer, RunResult};

/// The most threads of a run by threads.
const MOST_THREADS: u32 = 512;
/// A stuck I/O among many good ones is looked for after this many rounds.
const LOOK_EVERY_ROUNDS: u32 = 1024;
/// Whether the device is still there is looked at after the first failure, and each time that so many more have come.
const LOOK_EVERY_FAILURES: u64 = 256;

/// Which way to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EngineChoice {
    /// io_uring where it can be had, else threads.
    #[default]
    Auto,
    /// io_uring or an error.
    Uring,
    /// Threads.
    Threads,
}

/// Which way was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "engine")]
pub enum Engine {
    /// io_uring, one ring for each queue.
    #[serde(rename = "io_uring")]
    Uring {
        /// Completions were polled for, not announced by interrupts: the kernel's driver has queues for that.
        polled: bool,
        /// The kernel knew the buffers beforehand.
        fixed_buffers: bool,
        /// The kernel knew the file beforehand.
        fixed_file: bool,
    },
    /// Threads in `pread` and `pwrite`.
    Threads {
        /// Threads for each queue.
        each: u32,
        /// Why not io_uring; `None` where threads were asked for.
        why: Option<String>,
    },
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uring { polled, fixed_buffers, fixed_file } => {
                let how = |yes: bool| if yes { "registered" } else { "unregistered" };
                let completion = if *polled { "polled" } else { "interrupt-driven" };
                write!(f, "io_uring, {completion}, {} buffers, {} file", how(*fixed_buffers), how(*fixed_file))
            }
            Self::Threads { each, why } => {
                write!(f, "{each} threads with pread for each queue")?;
                why.as_ref().map_or(Ok(()), |why| write!(f, " (no io_uring: {why})"))
            }
        }
    }
}

/// What came of a run through the kernel.
#[derive(Debug, Clone)]
pub struct BlockRun {
    /// The same as of a run on our own queues.
    pub result: RunResult,
    /// Which way was taken.
    pub engine: Engine,
    /// Whether the page cache was out of the way; it always is for a block device.
    pub direct: bool,
}

/// Runs `job` on `target`.
///
/// # Errors
/// [`DriverError::Request`] for a job that cannot be run there, and for one that writes where the target was opened for
/// reading alone; [`DriverError::Timeout`] and [`DriverError::Lost`] where the drive does not answer, or has gone. I/O
/// errors are not errors of the run: they are in its result.
pub fn run(
    target: &BlockTarget,
    job: &Job,
    choice: EngineChoice,
    observer: &mut dyn Observer,
) -> Result<BlockRun, DriverError> {
    let plan = job.plan(&target.space())?;
    if job.is_general() {
        return Err(JobError::Senseless("through the kernel there are plain reads and writes only").into());
    }
    if job.writes() && !target.is_writable() {
        return Err(DriverError::Request(format!("{}: opened for reading alone", target.path().display())));
    }
    let io_bytes = u64::from(plan.io_blocks) * u64::from(target.lba_bytes());
    let buffers_bytes = io_bytes.saturating_mul(u64::from(plan.iodepth)).saturating_mul(u64::from(job.numjobs));
    if let Some(free_bytes) = available_bytes().filter(|&free_bytes| buffers_bytes > free_bytes) {
        return Err(DriverError::Request(format!(
            "the buffers of this job need {buffers_bytes} bytes, this machine has {free_bytes} to spare: fewer jobs, \
             a smaller depth or smaller blocks"
        )));
    }
    let run = Run { target, job, plan, io_bytes, clock: Clock::real() };
    if choice == EngineChoice::Threads {
        return run.by_threads(None, observer);
    }
    match run.rings() {
        Ok(rings) => run.by_rings(rings, observer),
        Err(error) if choice == EngineChoice::Auto => run.by_threads(Some(no_ring(&error)), observer),
        Err(source) => {
            let what = format!("io_uring ({})", no_ring(&source));
            Err(KernelError::System { path: target.path().to_owned(), what, source }.into())
        }
    }
}

/// Memory that the system could give without swapping.
fn available_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Why there is no ring, in words.
fn no_ring(error: &std::io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOSYS) => "this kernel has none".to_owned(),
        Some(libc::EPERM) => "it is forbidden here: kernel.io_uring_disabled, or a container's filter".to_owned(),
        Some(libc::ENOMEM) => "no memory for it, or above the limit of locked memory (ulimit -l)".to_owned(),
        _ => error.to_string(),
    }
}

struct Run<'a> {
    target: &'a BlockTarget,
    job: &'a Job,
    plan: Plan,
    io_bytes: u64,
    clock: Clock,
}

impl<'a> Run<'a> {
    /// A ring for each queue.
    fn rings(&self) -> std::io::Result<Vec<Uring<'a>>> {
        // Polling needs queues of its own in the kernel's driver; asked for on others, every I/O would fail.
        let polled = self.job.wait == Wait::Poll && self.target.facts().is_some_and(|facts| facts.polls);
        let ring = |_| Uring::new(self.target.file(), self.plan.iodepth, self.io_bytes as u32, polled);
        (0..self.job.numjobs).map(ring).collect()
    }

    fn by_rings(&self, rings: Vec<Uring<'a>>, observer: &mut dyn Observer) -> Result<BlockRun, DriverError> {
        // What one ring has to do without, the run has to do without.
        let all = |of: fn(uring::Setup) -> bool| rings.iter().all(|ring| of(ring.setup()));
        let polled = all(|setup| setup.polled);
        let engine = Engine::Uring {
            polled,
            fixed_buffers: all(|setup| setup.fixed_buffers),
            fixed_file: all(|setup| setup.fixed_file),
        };
        let mut crew = Crew::new(&self.clock, rings.len());
        let span = self.begin(&mut crew);
        let mut workers = Vec::with_capacity(rings.len());
        for (number, mut uring) in (0_u16..).zip(rings) {
            let mut sequence = Sequence::new(self.job, &self.plan, number, self.io_bytes);
            if self.job.writes() {
                let mut data = vec![0; self.io_bytes as usize];
                for slot in 0..self.plan.iodepth {
                    sequence.fill(&mut data);
                    uring.fill(slot, &data);
                }
            }
            workers.push(UringWorker {
                watched: self.watched(number),
                recorder: Recorder::new(&self.clock, crew.live(number.into()), span, self.io_bytes),
                shared: crew.shared(),
                sequence,
                begun: vec![None; self.plan.iodepth as usize],
                free: (0..self.plan.iodepth).rev().collect(),
                again: Vec::new(),
                lba_bytes: self.target.lba_bytes().into(),
                timeout_ns: self.job.timeout_ns,
                uring,
            });
        }
        let outcome = crew.threaded(workers, &self.job.cpus, observer, UringWorker::work)?;
        Ok(self.add_up(&crew, outcome, engine, self.plan.iodepth, polled))
    }

    fn by_threads(&self, why: Option<String>, observer: &mut dyn Observer) -> Result<BlockRun, DriverError> {
        let numjobs = self.job.numjobs;
        let each = self.plan.iodepth.min(MOST_THREADS / u32::from(numjobs)).max(1);
        let mut crew = Crew::new(&self.clock, usize::from(numjobs) * each as usize);
        let span = self.begin(&mut crew);
        let mut workers = Vec::new();
        for number in 0..numjobs {
            let mut first = Sequence::new(self.job, &self.plan, number, self.io_bytes);
            for thread in 0..each {
                let mut sequence = first.shared_with(thread);
                if each == 1 {
                    core::mem::swap(&mut first, &mut sequence);
                }
                let mut memory = blocking::memory(self.io_bytes as usize)
                    .map_err(|errno| KernelError::of(self.target.path(), "memory for reads", errno))?;
                if self.job.writes() {
                    sequence.fill(&mut memory);
                }
                workers.push(BlockingWorker {
                    watched: self.watched(number),
                    recorder: Recorder::new(&self.clock, crew.live(workers.len()), span, self.io_bytes),
                    shared: crew.shared(),
                    sequence,
                    memory,
                    io_bytes: self.io_bytes as usize,
                    lba_bytes: self.target.lba_bytes().into(),
                });
            }
        }
        let file = self.target.file();
        let outcome = crew.threaded(workers, &self.job.cpus, observer, |worker| worker.work(file))?;
        Ok(self.add_up(&crew, outcome, Engine::Threads { each, why }, each, false))
    }

    fn begin(&self, crew: &mut Crew<'_>) -> Span {
        let (start_ns, stop_ns) = crew.begin(self.job);
        Span { start_ns, stop_ns }
    }

    fn watched(&self, number: u16) -> Watched<'a> {
        Watched { target: self.target, queue: number.saturating_add(1) }
    }

    fn add_up(&self, crew: &Crew<'_>, outcome: Outcome, engine: Engine, iodepth: u32, polled: bool) -> BlockRun {
        if let Some(tally) = self.target.tally() {
            let sum = |of: fn(&Recorded) -> u64| outcome.recorded.iter().map(of).sum();
            tally.add(false, IoOpcode::READ.into_bits(), sum(|recorded| recorded.reads_sent));
            tally.add(false, IoOpcode::WRITE.into_bits(), sum(|recorded| recorded.writes_sent));
        }
        let most_bytes = self.target.facts().and_then(|facts| facts.most_command_bytes).filter(|&bytes| bytes > 0);
        let setup = crew::Setup {
            io_bytes: self.io_bytes,
            iodepth,
            commands_per_io: most_bytes.map_or(1, |most_bytes| self.io_bytes.div_ceil(most_bytes) as u32),
            queues: self.job.numjobs,
            wait: if polled { Wait::Poll } else { Wait::Interrupt },
            mixed_sizes: false,
        };
        BlockRun { result: crew.result(outcome, setup), engine, direct: self.target.is_direct() }
    }
}

/// The device of a worker, for what is to be said when it does not answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Watched<'a> {
    target: &'a BlockTarget,
    queue: u16,
}

impl Watched<'_> {
    /// After a failure, the `failures`th: whether the device has gone.
    pub fn still_there(&self, errno: Errno, failures: u64) -> Result<(), DriverError> {
        let look = failures == 1 || failures.is_multiple_of(LOOK_EVERY_FAILURES);
        if !(error::is_gone(errno) || look && self.target.is_gone()) {
            return Ok(());
        }
        let detail = format!("reads fail ({errno}) and the kernel has no such drive any more");
        Err(DriverError::Lost { address: self.address(), detail })
    }

    fn timed_out(&self, write: bool, age_ns: u64) -> DriverError {
        DriverError::Timeout {
            address: self.address(),
            queue: self.queue,
            command: if write { "Write" } else { "Read" }.to_owned(),
            waited_ms: age_ns / MILLISECOND_NS,
        }
    }

    fn failed(&self, what: &str, errno: Errno) -> DriverError {
        KernelError::of(self.target.path(), what, errno).into()
    }

    fn address(&self) -> String {
        self.target.path().display().to_string()
    }
}

/// One queue as a ring.
#[derive(Debug)]
struct UringWorker<'a> {
    watched: Watched<'a>,
    sequence: Sequence,
    recorder: Recorder,
    shared: Arc<Shared>,
    uring: Uring<'a>,
    /// What is under way in each slot.
    begun: Vec<Option<Begun>>,
    free: Vec<u32>,
    /// Slots whose I/O the kernel wants to have again.
    again: Vec<u32>,
    lba_bytes: u64,
    timeout_ns: u64,
}

impl UringWorker<'_> {
    /// Reads, or writes, until the run is over and everything has come back.
    fn work(mut self) -> Result<Recorded, DriverError> {
        self.uring.enable().map_err(|error| {
            self.watched.failed("switching the io_uring on", Errno::from_io_error(&error).unwrap_or(Errno::IO))
        })?;
        let mut rounds = 0_u32;
        loop {
            let now_ns = self.recorder.clock.now_ns();
            self.recorder.roll(now_ns);
            let over = self.recorder.is_over(now_ns) || self.shared.stop.load(Ordering::Relaxed);
            if !over && self.fill(now_ns) {
                let filled_ns = self.recorder.clock.now_ns();
                self.recorder.shared_for(filled_ns.saturating_sub(now_ns));
            }
            if self.uring.in_flight() == 0 {
                return Ok(self.recorder.finish());
            }
            self.uring.submit_and_wait().map_err(|errno| self.watched.failed("io_uring_enter", errno))?;
            let found = self.drain()?;
            rounds = rounds.wrapping_add(1);
            if !found || rounds.is_multiple_of(LOOK_EVERY_ROUNDS) {
                self.look()?;
            }
        }
    }

    /// Queues as much as there are free slots. Gives whether anything was.
    fn fill(&mut self, stamp_ns: u64) -> bool {
        let mut any = false;
        for slot in core::mem::take(&mut self.again) {
            any |= self.queue(slot);
        }
        while let Some(&slot) = self.free.last() {
            let Some((lba, write)) = self.sequence.next() else { break };
            self.free.pop();
            if let Some(place) = self.begun.get_mut(slot as usize) {
                *place = Some(Begun { lba, write, stamp_ns });
            }
            self.recorder.sent(write);
            any |= self.queue(slot);
        }
        any
    }

    fn queue(&mut self, slot: u32) -> bool {
        let Some(Some(begun)) = self.begun.get(slot as usize) else { return false };
        let queued = self.uring.queue(slot, begun.lba.saturating_mul(self.lba_bytes), begun.write);
        if !queued {
            // The ring has an entry for each slot, so this is an entry that the kernel has not taken yet: next time.
            self.again.push(slot);
        }
        queued
    }

    /// Takes what has come back. Gives whether anything had.
    fn drain(&mut self) -> Result<bool, DriverError> {
        let Self { uring, recorder, begun, free, again, .. } = self;
        let mut seen_ns = 0;
        let mut failure = None;
        uring.reap(|slot, result| {
            if seen_ns == 0 {
                seen_ns = recorder.clock.now_ns();
                recorder.roll(seen_ns);
            }
            if result == -libc::EAGAIN || result == -libc::EINTR {
                again.push(slot);
                return;
            }
            if let Some(begun) = begun.get_mut(slot as usize).and_then(Option::take) {
                recorder.ended(begun, result.into(), seen_ns);
                free.push(slot);
                if result < 0 {
                    failure = Some(Errno::from_raw_os_error(-result));
                }
            }
        });
        if seen_ns != 0 {
            let drained_ns = self.recorder.clock.now_ns();
            self.recorder.shared_for(drained_ns.saturating_sub(seen_ns));
        }
        match failure {
            Some(errno) => self.watched.still_there(errno, self.recorder.failures()).map(|()| true),
            None => Ok(seen_ns != 0),
        }
    }

    /// Looks for an I/O that takes too long.
    fn look(&self) -> Result<(), DriverError> {
        let oldest = self.begun.iter().flatten().min_by_key(|begun| begun.stamp_ns);
        let Some(oldest) = oldest else { return Ok(()) };
        let age_ns = self.recorder.clock.now_ns().saturating_sub(oldest.stamp_ns);
        if age_ns < self.timeout_ns { Ok(()) } else { Err(self.watched.timed_out(oldest.write, age_ns)) }
    }
}

#[cfg(test)]
mod tests;
