//! All queues of a run.
//!
//! On hardware each queue gets a thread of its own, pinned where the caller wants it; the calling thread only watches:
//! once in an interval it tells the observer how far things are, and the observer may read SMART data, draw a line, or end
//! the run. In virtual time one thread takes turns with all queues and lets time pass only when none of them has anything
//! to do; that is what makes an emulated run give the same figures each time.
#![forbid(unsafe_code)]

use std::sync::Arc;

use nvmetal_core::queue::Doorbell;

use super::crew::{Crew, Observer, Outcome, Recorded, Setup};
use super::job::{Action, Job, JobError, Plan, Space};
use super::result::RunResult;
use super::runner::{Ingredients, Runner, Turn};
use crate::controller::{Controller, Namespace};
use crate::dma::BufferPool;
use crate::error::DriverError;
use crate::io_queue::{AnyIoQueue, QueueOptions, Wait};
use crate::transport::Waiting;

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
    let plan = job.plan(&Space::of(controller, &namespace))?;
    has_commands(controller, job)?;
    let crew = Crew::new(controller.clock(), job.numjobs.into());
    let mut mapped = Vec::new();
    let mut called = Vec::new();
    let mut shadowed = Vec::new();
    for number in 0..job.numjobs {
        let depth = plan.iodepth * plan.commands;
        let options = QueueOptions { depth, wait: job.wait, timeout_ns: job.timeout_ns, ..QueueOptions::default() };
        let command_bytes = match job.action {
            // The description of a range.
            Action::Trim => controller.page().bytes(),
            _ => u64::from(plan.command_blocks) << namespace.lba_shift,
        };
        let metadata_bytes = match job.action {
            Action::Trim => 0,
            _ => u64::from(plan.command_blocks) * u64::from(namespace.metadata_bytes),
        };
        let pool = BufferPool {
            count: depth as usize,
            bytes_each: (command_bytes + if namespace.metadata_extended { metadata_bytes } else { 0 }) as usize,
            page_bytes: controller.page().bytes() as usize,
            metadata_bytes: if namespace.metadata_extended { 0 } else { metadata_bytes as usize },
        };
        let buffers = pool.allocate(controller.transport())?;
        let (shared, live) = (crew.shared(), crew.live(number.into()));
        match controller.create_io_queue(namespace, options)? {
            AnyIoQueue::Mapped(queue) => {
                mapped.push(Runner::new(job, Ingredients { queue, buffers, plan, number, shared, live }));
            }
            AnyIoQueue::Called(queue) => {
                called.push(Runner::new(job, Ingredients { queue, buffers, plan, number, shared, live }));
            }
            AnyIoQueue::Shadowed(queue) => {
                shadowed.push(Runner::new(job, Ingredients { queue, buffers, plan, number, shared, live }));
            }
        }
    }
    let before = controller.recoveries();
    let run = Run { controller, job, plan, io_bytes: u64::from(plan.io_blocks) << namespace.lba_shift };
    let mut result = match (mapped.is_empty(), called.is_empty()) {
        (false, _) => run.with(crew, mapped, observer),
        (true, false) => run.with(crew, called, observer),
        (true, true) => run.with(crew, shadowed, observer),
    }?;
    result.recoveries = controller.recoveries().since(&before);
    Ok(result)
}

/// Whether the controller has the optional command that the job needs.
fn has_commands(controller: &Controller, job: &Job) -> Result<(), JobError> {
    let oncs = controller.identify().oncs;
    let (has, name) = match job.action {
        Action::Transfer => return Ok(()),
        Action::Trim => (oncs.dataset_management(), "Dataset Management"),
        Action::WriteZeroes => (oncs.write_zeroes(), "Write Zeroes"),
        Action::Compare => (oncs.compare(), "Compare"),
        Action::Verify => (oncs.verify(), "Verify"),
    };
    if has { Ok(()) } else { Err(JobError::NoSuchCommand(name)) }
}

struct Run<'a> {
    controller: &'a Arc<Controller>,
    job: &'a Job,
    plan: Plan,
    io_bytes: u64,
}

impl Run<'_> {
    fn with<D: Doorbell + Send>(
        &self,
        mut crew: Crew<'_>,
        mut runners: Vec<Runner<D>>,
        observer: &mut dyn Observer,
    ) -> Result<RunResult, DriverError> {
        let (start_ns, stop_ns) = crew.begin(self.job);
        for runner in &mut runners {
            runner.begin(start_ns, stop_ns);
        }
        let setup = Setup {
            io_bytes: self.io_bytes,
            iodepth: self.plan.iodepth,
            commands_per_io: self.plan.commands,
            queues: runners.len() as u16,
            wait: if self.controller.interrupts().is_empty() { Wait::Poll } else { self.job.wait },
            mixed_sizes: !self.job.sizes.is_empty(),
        };
        let outcome = if self.controller.transport().info().stepped {
            self.stepped(&mut crew, runners, start_ns, observer)?
        } else {
            crew.threaded(runners, &self.job.cpus, observer, work)?
        };
        Ok(crew.result(outcome, setup))
    }

    /// One thread, virtual time.
    fn stepped<D: Doorbell>(
        &self,
        crew: &mut Crew<'_>,
        mut runners: Vec<Runner<D>>,
        start_ns: u64,
        observer: &mut dyn Observer,
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
            match (until_ns, runners.as_slice()) {
                (None, _) | (_, []) => {}
                (Some(until_ns), [runner]) => runner.idle(until_ns),
                // One vector's sleep would miss what completes on the other queues.
                (Some(until_ns), _) => self.controller.transport().idle(until_ns, Waiting::Polling),
            }
            let now_ns = clock.now_ns();
            if now_ns >= tick_ns {
                tick_ns = now_ns + interval_ns;
                crew.tick(observer, now_ns);
            }
        }
        Ok(Outcome { recorded, processor: None })
    }
}

/// Takes turns until the run is over.
fn work<D: Doorbell>(mut runner: Runner<D>) -> Result<Recorded, DriverError> {
    loop {
        match runner.turn()? {
            Turn::Busy => {}
            Turn::Idle { until_ns } => runner.idle(until_ns),
            Turn::Finished => return Ok(runner.finish()),
        }
    }
}
