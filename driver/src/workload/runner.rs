//! One queue's loop.
//!
//! A [`Runner`] owns a queue, its free buffers and its records, and does one *turn* at a time: fill the queue, ring once,
//! drain once. On hardware a thread repeats turns; in virtual time one thread takes turns with all runners. Nothing in a
//! turn locks, allocates or divides.
//!
//! **Latency** runs from a stamp taken before the doorbell of a batch to a stamp taken when the first completion of a
//! drain was seen. A stamp is shared within one batch and one drain only; how long the longest of either took is the
//! worst by which a latency can be wrong ([`Recorded::clock_error_ns`]).
//!
//! **Everything beyond** plain reads and writes of one size that fit into a command is in [`super::general`]; one branch a
//! turn leads there, so that it costs the plain loop nothing.
//!
//! **Errors** leave the hot path at the status check. A read that failed without "do not retry" is repeated up to three
//! times; a write is not repeated here (the caller knows better), and what fails for good is counted and kept.
//!
//! **A command that does not come back** is aborted, or its queue deleted, or the controller reset
//! (`crate::io_queue::Rescue`), and the run goes on. What was in flight is sent again, writes too: it is the same data for
//! the same blocks, and nothing else of the run has been there since.
#![forbid(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::Ordering;

use nvmetal_core::command::io::IoOpcode;
use nvmetal_core::queue::{Done, Doorbell};
use nvmetal_core::status::Status;

use super::crew::{Live, Recorded, Shared};
use super::general::General;
use super::job::{Access, Job, Plan};
use super::pattern;
use super::random::Random;
use super::result::{BIN_NS, Bin, Cause, FailedIo};
use crate::clock::{Clock, MILLISECOND_NS};
use crate::dma::Buffer;
use crate::error::DriverError;
use crate::io_queue::{Io, IoQueue, Overdue, Payload, RejectedReason, Rescue};

/// A stuck command among many good ones is looked for after this many turns.
pub(super) const LOOK_EVERY_TURNS: u32 = 1024;
/// How often a failed read is repeated.
pub(super) const MOST_RETRIES: u8 = 3;
/// The status code (generic) of a command that was aborted because somebody asked for it.
const ABORT_REQUESTED: u8 = 0x07;

/// What travels with a command: its buffer, and in a word what it was.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) buffer: Buffer,
    /// Bit 63: a write. Bits 62:61: repetitions. Below: the first block; in the general loop the number of the I/O
    /// (bits 31:0) and of the command in it (bits 60:32).
    pub(super) tag: u64,
}

impl Payload for Flight {
    #[inline(always)]
    fn buffer(&self) -> &Buffer {
        &self.buffer
    }
}

pub(super) const WRITE: u64 = 1 << 63;
pub(super) const RETRIES_SHIFT: u32 = 61;
const PLACE: u64 = (1 << RETRIES_SHIFT) - 1;

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// Something was done.
    Busy,
    /// Nothing to do until something completes, or this moment at the latest.
    Idle { until_ns: u64 },
    /// Everything has come back.
    Finished,
}

/// One queue at work.
pub(super) struct Runner<D: Doorbell> {
    pub(super) queue: IoQueue<D, Flight>,
    pub(super) clock: Clock,
    pub(super) free: Vec<Buffer>,
    pub(super) plan: Plan,
    random_access: bool,
    /// A draw below this is a read; all ones for only reads.
    pub(super) read_below: u64,
    pub(super) random: Random,
    pub(super) first_lba: u64,
    next_slot: u64,
    pub(super) ios_left: u64,
    pub(super) start_ns: u64,
    pub(super) stop_ns: u64,
    pub(super) bin_end_ns: u64,
    pub(super) bin: Bin,
    /// I/Os and bytes in all bins that have ended.
    binned: Bin,
    io_bytes: u64,
    pub(super) turns: u32,
    pub(super) shared: Arc<Shared>,
    live: Arc<Live>,
    pub(super) recorded: Recorded,
    /// Failed commands that wait to be repeated.
    pub(super) again: Vec<Flight>,
    /// What the general loop needs; `None` for plain jobs.
    pub(super) general: Option<Box<General>>,
}

/// What a runner is made of.
pub(super) struct Ingredients<D: Doorbell> {
    pub queue: IoQueue<D, Flight>,
    pub buffers: Vec<Buffer>,
    pub plan: Plan,
    /// Which queue of the run this is.
    pub number: u16,
    pub shared: Arc<Shared>,
    pub live: Arc<Live>,
}

impl<D: Doorbell> Runner<D> {
    pub(super) fn new(job: &Job, made: Ingredients<D>) -> Self {
        let Ingredients { queue, buffers, plan, number, shared, live } = made;
        let mut random = Random::new(job.seed.wrapping_add(u64::from(number).wrapping_mul(0x9e37_79b9)));
        let io_bytes = u64::from(plan.io_blocks) << queue.namespace().lba_shift;
        let mut free = buffers;
        if job.writes() {
            let mut data = vec![0; free.first().map_or(0, Buffer::len)];
            for buffer in &mut free {
                pattern::fill(job.data, &mut random, &mut data);
                // The slice is as long as the buffer.
                let _ = buffer.copy_in(0, &data);
            }
        }
        let by_bytes = job.limits.bytes.map_or(u64::MAX, |bytes| bytes / io_bytes);
        let seconds = job.limits.runtime_ns.unwrap_or(0) / BIN_NS + 64;
        let first_lba = plan.first_lba + plan.increment_blocks * u64::from(number);
        let is_general = plan.commands > 1 || job.is_general();
        let lba_bytes = queue.namespace().lba_bytes();
        Self {
            general: is_general.then(|| Box::new(General::new(job, &plan, lba_bytes, number))),
            random_access: job.access == Access::Random,
            read_below: threshold(job.read_percent),
            first_lba,
            next_slot: 0,
            ios_left: job.limits.ios.unwrap_or(u64::MAX).min(if is_general { u64::MAX } else { by_bytes }),
            start_ns: 0,
            stop_ns: u64::MAX,
            bin_end_ns: u64::MAX,
            bin: Bin::default(),
            binned: Bin::default(),
            io_bytes,
            turns: 0,
            shared,
            live,
            recorded: Recorded { bins: Vec::with_capacity(seconds as usize), ..Recorded::default() },
            again: Vec::with_capacity(free.len()),
            clock: queue.clock().clone(),
            queue,
            free,
            plan,
            random,
        }
    }

    /// Sets the run's begin and end; before the first turn.
    pub(super) fn begin(&mut self, start_ns: u64, stop_ns: u64) {
        self.start_ns = start_ns;
        self.stop_ns = stop_ns;
        self.bin_end_ns = start_ns.saturating_add(BIN_NS);
    }

    /// One turn: drain, fill, ring.
    #[inline]
    pub(super) fn turn(&mut self) -> Result<Turn, DriverError> {
        if self.general.is_some() {
            return self.turn_general();
        }
        let drained_ns = match self.drain() {
            Ok(drained_ns) => drained_ns,
            Err(DriverError::Parked { .. }) => return self.parked(),
            Err(error) => return Err(error),
        };
        let found = drained_ns != 0;
        self.turns = self.turns.wrapping_add(1);
        let may_submit = !self.free.is_empty() || !self.again.is_empty();
        if !found && !may_submit {
            return self.nothing();
        }
        let stamp_ns = self.clock.now_ns();
        if found {
            self.recorded.clock_error_ns = self.recorded.clock_error_ns.max(stamp_ns - drained_ns);
        }
        if stamp_ns >= self.bin_end_ns {
            self.roll(stamp_ns);
        }
        if self.turns.is_multiple_of(LOOK_EVERY_TURNS) {
            self.look(stamp_ns)?;
        }
        if stamp_ns >= self.stop_ns || self.shared.stop.load(Ordering::Relaxed) {
            self.recorded.out_of_time |= stamp_ns >= self.stop_ns;
            return self.ending();
        }
        if self.fill(stamp_ns) {
            self.queue.ring();
            let rung_ns = self.clock.now_ns();
            self.recorded.clock_error_ns = self.recorded.clock_error_ns.max(rung_ns - stamp_ns);
            return Ok(Turn::Busy);
        }
        if found { Ok(Turn::Busy) } else { self.ending() }
    }

    /// Takes what was completed. Gives when it was seen, or 0 for nothing.
    #[inline(always)]
    fn drain(&mut self) -> Result<u64, DriverError> {
        let Self { queue, clock, free, recorded, bin, again, .. } = self;
        let (start_ns, stop_ns, io_bytes) = (self.start_ns, self.stop_ns, self.io_bytes);
        let mut seen_ns = 0;
        let mut ios = 0;
        let polled = queue.poll(u32::MAX, |done: Done<Flight>| {
            if seen_ns == 0 {
                seen_ns = clock.now_ns();
            }
            let stamp_ns = done.stamp;
            if done.status != 0 {
                failed(recorded, again, free, done, seen_ns.saturating_sub(start_ns));
                return;
            }
            let Flight { buffer, tag } = done.buffer;
            free.push(buffer);
            if tag >> RETRIES_SHIFT & 3 != 0 {
                recorded.errors.recovered += 1;
            }
            // What completes after the run's time, or was begun before it (in the ramp), is not counted.
            if seen_ns < stop_ns && stamp_ns >= start_ns {
                let latency_ns = seen_ns.saturating_sub(stamp_ns);
                if tag & WRITE == 0 {
                    recorded.read_latency.record(latency_ns);
                } else {
                    recorded.write_latency.record(latency_ns);
                }
                ios += 1;
            }
        });
        polled?;
        if seen_ns != 0 {
            // The bin of the moment: `roll` comes after a drain, so up to one drain counts to the bin before.
            bin.ios += ios;
            bin.bytes += ios * io_bytes;
            recorded.last_seen_ns = seen_ns;
        }
        Ok(seen_ns)
    }

    /// Submits as much as there are buffers for. Gives whether anything was.
    #[inline(always)]
    fn fill(&mut self, stamp_ns: u64) -> bool {
        let mut any = false;
        if !self.again.is_empty() {
            any = self.repeat(stamp_ns);
        }
        while self.ios_left > 0 {
            let Some(buffer) = self.free.pop() else { break };
            let (lba, write) = self.next();
            let io = if write { Io::write(lba, self.plan.io_blocks) } else { Io::read(lba, self.plan.io_blocks) };
            let tag = lba | if write { WRITE } else { 0 };
            match self.queue.submit(io, Flight { buffer, tag }, stamp_ns) {
                Ok(_) => {
                    any = true;
                    self.ios_left -= 1;
                    if write {
                        self.recorded.writes_sent += 1;
                    } else {
                        self.recorded.reads_sent += 1;
                    }
                }
                Err(rejected) => {
                    // There are as many buffers as the queue holds commands, so this is a queue that was stopped.
                    debug_assert_eq!(rejected.reason, RejectedReason::Stopped);
                    self.free.push(rejected.payload.buffer);
                    break;
                }
            }
        }
        any
    }

    /// Where the next I/O goes, and whether it writes.
    #[inline(always)]
    fn next(&mut self) -> (u64, bool) {
        let write = self.read_below != u64::MAX && self.random.next_u64() >= self.read_below;
        let slot = if self.random_access {
            self.random.below(self.plan.slots)
        } else {
            let slot = self.next_slot;
            self.next_slot = if slot + 1 == self.plan.slots { 0 } else { slot + 1 };
            slot
        };
        (self.first_lba + slot * u64::from(self.plan.io_blocks), write)
    }

    /// Submits what failed once more.
    #[cold]
    fn repeat(&mut self, stamp_ns: u64) -> bool {
        let mut any = false;
        while let Some(flight) = self.again.pop() {
            let (lba, blocks) = (flight.tag & PLACE, self.plan.io_blocks);
            let io = if flight.tag & WRITE == 0 { Io::read(lba, blocks) } else { Io::write(lba, blocks) };
            match self.queue.submit(io, flight, stamp_ns) {
                Ok(_) => {
                    any = true;
                    if io.opcode == IoOpcode::WRITE {
                        self.recorded.writes_sent += 1;
                    } else {
                        self.recorded.reads_sent += 1;
                    }
                }
                Err(rejected) => {
                    self.again.push(rejected.payload);
                    break;
                }
            }
        }
        any
    }

    /// An empty poll with nothing to submit.
    #[inline(never)]
    fn nothing(&mut self) -> Result<Turn, DriverError> {
        let now_ns = self.clock.now_ns();
        self.look(now_ns)?;
        if now_ns >= self.bin_end_ns {
            // Nothing at all in a whole bin: a drive that is gone need not be waited for as long as a slow one.
            if self.bin.ios == 0 {
                self.queue.check_health()?;
            }
            self.roll(now_ns);
        }
        Ok(self.idle_until(now_ns))
    }

    /// The run's time is over, or nothing is left to submit: wait for what is in flight.
    #[cold]
    fn ending(&mut self) -> Result<Turn, DriverError> {
        let now_ns = self.clock.now_ns();
        if !self.again.is_empty() && self.repeat(now_ns) {
            self.queue.ring();
            return Ok(Turn::Busy);
        }
        // The queue takes none any more.
        self.recorded.errors.failed += self.again.len() as u64;
        self.free.extend(self.again.drain(..).map(|flight| flight.buffer));
        if self.queue.in_flight() == 0 {
            return Ok(Turn::Finished);
        }
        self.look(now_ns)?;
        Ok(self.idle_until(now_ns))
    }

    fn idle_until(&self, now_ns: u64) -> Turn {
        let next_ns = if now_ns < self.stop_ns { self.stop_ns.min(self.bin_end_ns) } else { u64::MAX };
        // A command's age is looked at every second at least.
        Turn::Idle { until_ns: next_ns.min(now_ns + 1_000_000_000) }
    }

    pub(super) fn look(&mut self, now_ns: u64) -> Result<(), DriverError> {
        match self.queue.overdue(now_ns) {
            Some(overdue) => self.rescue(overdue),
            None => Ok(()),
        }
    }

    /// A command has not come back in its time.
    #[cold]
    fn rescue(&mut self, overdue: Overdue) -> Result<(), DriverError> {
        if let Rescue::Emptied(flights) = self.queue.rescue(overdue)? {
            self.take_back(flights);
        }
        Ok(())
    }

    /// The controller is to be reset.
    #[cold]
    pub(super) fn parked(&mut self) -> Result<Turn, DriverError> {
        match self.queue.try_recover()? {
            Some(flights) => {
                self.take_back(flights);
                Ok(Turn::Busy)
            }
            None => Ok(Turn::Idle { until_ns: self.clock.now_ns() + MILLISECOND_NS }),
        }
    }

    /// What was in flight when its queue ended: to be sent again.
    fn take_back(&mut self, flights: Vec<Flight>) {
        let at_ns = self.clock.now_ns().saturating_sub(self.start_ns);
        for mut flight in flights {
            let write = flight.tag & WRITE != 0;
            let lba = match &self.general {
                Some(general) => general.lba(&self.plan, flight.tag),
                None => flight.tag & PLACE,
            };
            self.recorded.errors.note(FailedIo { write, lba, cause: Cause::NeverCompleted, at_ns });
            if flight.tag >> RETRIES_SHIFT & 3 < MOST_RETRIES.into() {
                flight.tag += 1 << RETRIES_SHIFT;
                self.again.push(flight);
                continue;
            }
            match &mut self.general {
                Some(general) => general.give_up(flight.tag, &mut self.recorded),
                None => self.recorded.errors.failed += 1,
            }
            self.free.push(flight.buffer);
        }
    }

    /// Ends the current bin, and those that passed without a look.
    #[cold]
    pub(super) fn roll(&mut self, now_ns: u64) {
        while now_ns >= self.bin_end_ns && self.bin_end_ns <= self.stop_ns {
            self.binned.ios += self.bin.ios;
            self.binned.bytes += self.bin.bytes;
            self.recorded.end_bin(core::mem::take(&mut self.bin));
            self.bin_end_ns += BIN_NS;
        }
        if self.bin_end_ns > self.stop_ns && now_ns >= self.stop_ns {
            self.bin_end_ns = u64::MAX;
        }
        self.live.ios.store(self.binned.ios, Ordering::Relaxed);
        self.live.bytes.store(self.binned.bytes, Ordering::Relaxed);
    }

    /// Waits as the queue was made to.
    pub(super) fn idle(&self, until_ns: u64) {
        self.queue.idle(until_ns);
    }

    /// Ends the queue and gives the records.
    pub(super) fn finish(mut self) -> Recorded {
        if self.bin != Bin::default() {
            self.recorded.end_bin(self.bin);
        }
        self.count();
        core::mem::take(&mut self.recorded)
    }

    /// Tells the controller's tally what was sent.
    fn count(&mut self) {
        let tally = self.queue.controller().tally();
        tally.add(false, IoOpcode::READ.into_bits(), core::mem::take(&mut self.recorded.reads_sent));
        tally.add(false, IoOpcode::WRITE.into_bits(), core::mem::take(&mut self.recorded.writes_sent));
        if let Some(general) = &self.general {
            tally.add(false, general.other_opcode().into_bits(), core::mem::take(&mut self.recorded.others_sent));
        }
    }
}

/// What was sent is told also when the run failed.
impl<D: Doorbell> Drop for Runner<D> {
    fn drop(&mut self) {
        self.count();
    }
}

/// A draw of 64 bits below this happens in `percent` of all cases.
pub(crate) fn threshold(percent: u8) -> u64 {
    if percent >= 100 { u64::MAX } else { ((u128::from(percent) << 64) / 100) as u64 }
}

/// A command that failed: a read is kept to be repeated, where that may help; else the I/O has failed.
#[cold]
fn failed(recorded: &mut Recorded, again: &mut Vec<Flight>, free: &mut Vec<Buffer>, done: Done<Flight>, at_ns: u64) {
    let mut flight = done.buffer;
    let (write, lba) = (flight.tag & WRITE != 0, flight.tag & PLACE);
    recorded.errors.note(FailedIo { write, lba, cause: Cause::Status(done.status), at_ns });
    if may_repeat(flight.tag, done.status) {
        flight.tag += 1 << RETRIES_SHIFT;
        again.push(flight);
        return;
    }
    recorded.errors.failed += 1;
    free.push(flight.buffer);
}

/// Whether a command with this tag, which ended with this status, may be sent once more.
pub(super) fn may_repeat(tag: u64, status: u16) -> bool {
    let retries = (tag >> RETRIES_SHIFT & 3) as u8;
    let status = Status::from_bits(status);
    // A write that we had aborted is ours to repeat; see the top.
    let repeatable = tag & WRITE == 0 || status.sct() == 0 && status.sc() == ABORT_REQUESTED;
    repeatable && retries < MOST_RETRIES && !status.dnr()
}
