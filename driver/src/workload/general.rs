//! The loop for everything beyond plain reads and writes of one size that fit into one command.
//!
//! Here each I/O has an entry in a table, and its commands carry the entry's number. That takes some instructions more
//! than the plain loop of `runner`, and leaves room for all that can be asked: I/Os of several commands, sizes that
//! differ, places that come once, paces, pauses, trims, zeroes, compares, and verification. What holds there holds here:
//! nothing in a turn locks or allocates, and it divides only for sizes that are no powers of two and need it.
//!
//! **Paces are open loops.** The moments at which I/Os should begin are fixed, and do not move when the drive is late. An
//! I/O that finds the queue full begins when there is room, and its latency still counts from the moment at which it
//! should have begun; otherwise a drive that stalls for a second would be charged with one slow I/O instead of all those
//! that had to wait.
//!
//! **Verification** comes after the run: every place that was written is read once and compared with what was last
//! written there. One pass over the region is complete before the next begins, so that no place has two writes under
//! way, whose order nobody could tell. A verifying job that only reads compares at once. What reading back takes is not
//! in the run's figures.
#![forbid(unsafe_code)]

use std::sync::atomic::Ordering;

use nvmetal_core::command::io::IoOpcode;
use nvmetal_core::queue::Doorbell;
use nvmetal_core::status::Status;

use super::crew::Recorded;
use super::job::{Access, Action, Job, Plan, Rate};
use super::pattern::{self, Looks, Miscompare, Stamp};
use super::place::{Permutation, Shape};
use super::random::Random;
use super::result::{Cause, FailedIo};
use super::runner::{Flight, LOOK_EVERY_TURNS, RETRIES_SHIFT, Runner, Turn, WRITE, may_repeat};
use crate::dma::Buffer;
use crate::error::DriverError;
use crate::io_queue::{Io, describe_range};

/// What an I/O does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Kind {
    #[default]
    Read,
    Write,
    /// What the job's action says.
    Other,
    /// A read that checks what was written.
    Check,
}

/// An I/O under way.
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    slot: u64,
    lba: u64,
    blocks: u32,
    /// When it should have begun.
    stamp_ns: u64,
    /// Commands that have not come back.
    left: u32,
    kind: Kind,
    failed: bool,
    /// Of what it writes, or should find; 0 for any.
    generation: u8,
}

impl Entry {
    fn part(&self, plan: &Plan, part: u32) -> (u64, u32) {
        let done = part * plan.command_blocks;
        (self.lba + u64::from(done), plan.command_blocks.min(self.blocks - done))
    }
}

/// In which order the places of the region come.
#[derive(Debug)]
enum Order {
    Walk,
    Draw,
    Once(Permutation),
    Shaped(Shape),
}

/// A size of I/Os; a draw below the threshold has it.
#[derive(Debug, Clone, Copy)]
struct Size {
    below: u64,
    blocks: u32,
}

/// When I/Os should begin: nanoseconds with 32 bits of fraction.
#[derive(Debug, Clone, Copy)]
struct Pace {
    /// For each I/O, or for each of its blocks.
    step: u128,
    by_blocks: bool,
    next: u128,
}

impl Pace {
    fn new(rate: Rate, lba_bytes: u64) -> Self {
        let second = 1_000_000_000_u128 << 32;
        let (step, by_blocks) = match rate {
            Rate::Ios(ios) => (second / u128::from(ios.max(1)), false),
            Rate::Bytes(bytes) => (second * u128::from(lba_bytes) / u128::from(bytes.max(1)), true),
        };
        Self { step, by_blocks, next: 0 }
    }
}

/// Pauses.
#[derive(Debug, Clone, Copy)]
struct Pause {
    ns: u64,
    ios: u64,
    left: u64,
    until_ns: u64,
}

/// What was written, for verification.
#[derive(Debug)]
struct Written {
    /// Of each place the generation that it holds; 0 for what this run did not write.
    generations: Vec<u8>,
}

/// What the general loop needs beside the plain one's.
#[derive(Debug)]
pub(super) struct General {
    action: Action,
    seed: u64,
    number: u16,
    lba_bytes: u64,
    entries: Vec<Entry>,
    free_entries: Vec<u32>,
    /// An I/O whose commands are not all submitted: its number and the next of them.
    pending: Option<(u32, u32)>,
    order: Order,
    /// In blocks of the region, or in places, as the order needs it.
    next: u64,
    region_blocks: u64,
    /// Passes over the region that have begun, from 1; for the generation.
    pass: u64,
    sizes: Vec<Size>,
    bytes_left: u64,
    pace: Option<Pace>,
    pause: Option<Pause>,
    stamps: bool,
    refill: Option<super::job::Data>,
    /// Reads are checked at once.
    checks_reads: bool,
    written: Option<Written>,
    /// The place that is to be checked next, once the run is over.
    checking: Option<u64>,
    over: bool,
    scratch: Vec<u8>,
}

/// What came of an attempt to submit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Filled {
    /// Something was submitted.
    Some,
    /// Nothing; there is no room, or what is under way has to come back first.
    Full,
    /// Nothing before this moment.
    Until(u64),
    /// Nothing is left to be done.
    Done,
}

impl General {
    pub(super) fn new(job: &Job, plan: &Plan, lba_bytes: u64, number: u16) -> Self {
        let seed = job.seed.wrapping_add(u64::from(number).wrapping_mul(0x9e37_79b9));
        let order = match (job.access, job.no_repeat) {
            (Access::Sequential, _) => Order::Walk,
            (Access::Random, true) => Order::Once(Permutation::new(plan.slots, seed)),
            (Access::Random, false) => {
                Shape::new(job.distribution, plan.slots, job.seed).map_or(Order::Draw, Order::Shaped)
            }
        };
        let mut below = 0_u128;
        let sizes = job.sizes.iter().map(|share| {
            below += (u128::from(share.percent) << 64) / 100;
            Size { below: u64::try_from(below).unwrap_or(u64::MAX), blocks: (share.bytes / lba_bytes) as u32 }
        });
        let mut sizes: Vec<Size> = sizes.collect();
        if let Some(last) = sizes.last_mut() {
            last.below = u64::MAX;
        }
        let stamps = job.verify || job.action == Action::Compare;
        let written = (job.verify && job.writes()).then(|| Written { generations: vec![0; plan.slots as usize] });
        let needs_scratch = stamps || job.refill;
        Self {
            action: job.action,
            seed: job.seed,
            number,
            lba_bytes,
            entries: vec![Entry::default(); plan.iodepth as usize],
            free_entries: (0..plan.iodepth).rev().collect(),
            pending: None,
            order,
            next: 0,
            region_blocks: plan.slots * u64::from(plan.slot_blocks),
            pass: 1,
            sizes,
            bytes_left: job.limits.bytes.unwrap_or(u64::MAX),
            pace: job.rate.map(|rate| Pace::new(rate, lba_bytes)),
            pause: job.think.map(|think| Pause { ns: think.ns, ios: think.ios, left: think.ios, until_ns: 0 }),
            stamps,
            refill: job.refill.then_some(job.data),
            checks_reads: job.verify && !job.writes(),
            written,
            checking: None,
            over: false,
            scratch: vec![0; if needs_scratch { plan.command_blocks as usize * lba_bytes as usize } else { 0 }],
        }
    }

    /// The command of I/Os that neither read nor write.
    pub(super) fn other_opcode(&self) -> IoOpcode {
        match self.action {
            Action::Transfer => IoOpcode::READ,
            Action::Trim => IoOpcode::DATASET_MANAGEMENT,
            Action::WriteZeroes => IoOpcode::WRITE_ZEROES,
            Action::Compare => IoOpcode::COMPARE,
            Action::Verify => IoOpcode::VERIFY,
        }
    }

    /// Whether an I/O may begin now.
    fn may_begin(&mut self, now_ns: u64, in_flight: u32) -> Filled {
        if let Some(pause) = self.pause.as_mut().filter(|pause| pause.left == 0) {
            if in_flight > 0 {
                return Filled::Full;
            }
            if pause.until_ns == 0 {
                pause.until_ns = now_ns + pause.ns;
            }
            if now_ns < pause.until_ns {
                return Filled::Until(pause.until_ns);
            }
            (pause.left, pause.until_ns) = (pause.ios, 0);
        }
        match &mut self.pace {
            Some(pace) => {
                if pace.next == 0 {
                    pace.next = u128::from(now_ns) << 32;
                }
                let next_ns = (pace.next >> 32) as u64;
                if next_ns > now_ns { Filled::Until(next_ns) } else { Filled::Some }
            }
            None => Filled::Some,
        }
    }

    /// Whether the region has been gone through, and is to be left alone until everything has come back.
    fn is_pass_over(&self, slots: u64) -> bool {
        match self.order {
            Order::Walk => self.next >= self.region_blocks,
            Order::Once(_) => self.next >= slots,
            Order::Draw | Order::Shaped(_) => false,
        }
    }

    fn begin_pass(&mut self, slots: u64) {
        self.next = 0;
        self.pass += 1;
        if let Order::Once(order) = &mut self.order {
            *order = Permutation::new(slots, self.seed.wrapping_add(self.pass << 16).wrapping_add(self.number.into()));
        }
    }

    /// Where the next I/O goes and how long it is: place, first block in the region, blocks.
    fn next_place(&mut self, plan: &Plan, random: &mut Random) -> (u64, u64, u32) {
        let blocks = match self.sizes.as_slice() {
            [] => plan.io_blocks,
            sizes => {
                let draw = random.next_u64();
                sizes.iter().find(|size| draw <= size.below).map_or(plan.io_blocks, |size| size.blocks)
            }
        };
        let slot_blocks = u64::from(plan.slot_blocks);
        let (slot, begin) = match &self.order {
            Order::Walk => {
                let begin = self.next;
                self.next += u64::from(blocks);
                // With one size, the place has the number of I/Os before it.
                (self.next_slot(begin, slot_blocks), begin)
            }
            Order::Draw => {
                let slot = random.below(plan.slots);
                (slot, slot * slot_blocks)
            }
            Order::Once(order) => {
                let slot = order.at(self.next);
                self.next += 1;
                (slot, slot * slot_blocks)
            }
            Order::Shaped(shape) => {
                let slot = shape.draw(random);
                (slot, slot * slot_blocks)
            }
        };
        // A long I/O near the end begins earlier.
        (slot, begin.min(self.region_blocks - u64::from(blocks).min(self.region_blocks)), blocks)
    }

    /// The number of the place that begins at this block; kept instead of divided for.
    fn next_slot(&mut self, begin: u64, slot_blocks: u64) -> u64 {
        if self.written.is_none() {
            return 0;
        }
        if slot_blocks.is_power_of_two() { begin >> slot_blocks.trailing_zeros() } else { begin / slot_blocks }
    }

    /// Fills the buffer of a command that sends data.
    fn prepare(&mut self, buffer: &mut Buffer, lba: u64, blocks: u32, generation: u64, random: &mut Random) {
        let lba_bytes = self.lba_bytes as usize;
        let bytes = blocks as usize * lba_bytes;
        let Some(scratch) = self.scratch.get_mut(..bytes) else { return };
        if self.stamps {
            for (at, block) in (lba..).zip(scratch.chunks_exact_mut(lba_bytes)) {
                Stamp { lba: at, seed: self.seed, generation }.fill(block);
            }
        } else if let Some(data) = self.refill {
            pattern::fill(data, random, scratch);
        } else {
            return;
        }
        // The buffer is as long as the longest command.
        let _ = buffer.copy_in(0, scratch);
    }

    /// Checks the blocks that a command has read.
    fn check(&mut self, buffer: &Buffer, lba: u64, blocks: u32, generation: u8, recorded: &mut Recorded) {
        let lba_bytes = self.lba_bytes as usize;
        let Some(scratch) = self.scratch.get_mut(..blocks as usize * lba_bytes) else { return };
        if buffer.copy_out(0, scratch).is_err() {
            return;
        }
        let generation = (generation != 0).then_some(u64::from(generation));
        for (at, block) in (lba..).zip(scratch.chunks_exact(lba_bytes)) {
            if let Some(miscompare) = pattern::check(block, at, self.seed, generation) {
                recorded.errors.miscompare(miscompare);
            }
        }
        recorded.verified.blocks += u64::from(blocks);
    }

    /// The first block of the command with this tag.
    pub(super) fn lba(&self, plan: &Plan, tag: u64) -> u64 {
        let entry = self.entries.get((tag & 0xffff_ffff) as usize).copied().unwrap_or_default();
        entry.part(plan, (tag >> 32 & 0x1fff_ffff) as u32).0
    }

    /// The command with this tag will not be tried again.
    pub(super) fn give_up(&mut self, tag: u64, recorded: &mut Recorded) {
        let number = (tag & 0xffff_ffff) as usize;
        let Some(entry) = self.entries.get_mut(number) else { return };
        entry.left -= 1;
        entry.failed = true;
        let entry = *entry;
        if entry.left == 0 {
            self.free_entries.push(number as u32);
            self.ended(&entry, recorded);
            recorded.errors.failed += 1;
        }
    }

    /// What the whole I/O comes to, after its last command.
    fn ended(&mut self, entry: &Entry, recorded: &mut Recorded) {
        if entry.kind == Kind::Check || self.checks_reads && entry.kind == Kind::Read {
            recorded.verified.ios += u64::from(!entry.failed);
        }
        if let (Kind::Write, Some(written)) = (entry.kind, &mut self.written)
            && let Some(generation) = written.generations.get_mut(entry.slot as usize)
        {
            // After a failed write a block may hold the old or the new data.
            *generation = if entry.failed { 0 } else { entry.generation };
        }
    }
}

/// A pass as a generation that fits a byte and is not 0.
fn generation(pass: u64) -> u8 {
    ((pass - 1) % 255 + 1) as u8
}

impl<D: Doorbell> Runner<D> {
    /// One turn of the general loop.
    #[inline(never)]
    pub(super) fn turn_general(&mut self) -> Result<Turn, DriverError> {
        let drained_ns = match self.drain_general() {
            Ok(drained_ns) => drained_ns,
            Err(DriverError::Parked { .. }) => return self.parked(),
            Err(error) => return Err(error),
        };
        let found = drained_ns != 0;
        self.turns = self.turns.wrapping_add(1);
        let now_ns = self.clock.now_ns();
        if found {
            self.recorded.clock_error_ns = self.recorded.clock_error_ns.max(now_ns - drained_ns);
        }
        if now_ns >= self.bin_end_ns {
            if self.bin.ios == 0 && !found {
                self.queue.check_health()?;
            }
            self.roll(now_ns);
        }
        if !found || self.turns.is_multiple_of(LOOK_EVERY_TURNS) {
            self.look(now_ns)?;
        }
        let Some(mut general) = self.general.take() else { return Ok(Turn::Finished) };
        let turn = self.go_on(&mut general, now_ns, found);
        self.general = Some(general);
        Ok(turn)
    }

    fn go_on(&mut self, general: &mut General, now_ns: u64, found: bool) -> Turn {
        let asked = self.shared.stop.load(Ordering::Relaxed);
        if !general.over && (now_ns >= self.stop_ns || asked) {
            self.recorded.out_of_time |= now_ns >= self.stop_ns;
            self.end_work(general);
        }
        if asked {
            general.checking = None;
        }
        let filled = if general.over && general.checking.is_none() && general.pending.is_none() && self.again.is_empty()
        {
            Filled::Done
        } else {
            self.fill_general(general, now_ns)
        };
        match filled {
            Filled::Some => {
                self.queue.ring();
                let rung_ns = self.clock.now_ns();
                self.recorded.clock_error_ns = self.recorded.clock_error_ns.max(rung_ns - now_ns);
                Turn::Busy
            }
            _ if found => Turn::Busy,
            Filled::Done if self.queue.in_flight() == 0 => {
                if !general.over {
                    self.end_work(general);
                    return Turn::Busy;
                }
                Turn::Finished
            }
            Filled::Until(until_ns) => Turn::Idle { until_ns: until_ns.min(self.next_look(now_ns)) },
            Filled::Full | Filled::Done => Turn::Idle { until_ns: self.next_look(now_ns) },
        }
    }

    fn next_look(&self, now_ns: u64) -> u64 {
        let next_ns = if now_ns < self.stop_ns { self.stop_ns.min(self.bin_end_ns) } else { u64::MAX };
        next_ns.min(now_ns + 1_000_000_000)
    }

    /// The run's time or work is over; what it wrote is checked now.
    fn end_work(&mut self, general: &mut General) {
        general.over = true;
        // The last bin ends with the records.
        self.bin_end_ns = u64::MAX;
        general.checking = general.written.as_ref().map(|_| 0);
    }

    /// Submits as much as there is room for.
    fn fill_general(&mut self, general: &mut General, now_ns: u64) -> Filled {
        let mut any = false;
        while let Some(flight) = self.again.pop() {
            let number = (flight.tag & 0xffff_ffff) as usize;
            let part = (flight.tag >> 32 & 0x1fff_ffff) as u32;
            let entry = general.entries.get(number).copied().unwrap_or_default();
            if let Some(flight) = self.submit_part(general, &entry, part, flight, now_ns) {
                self.again.push(flight);
                break;
            }
            any = true;
        }
        let filled = loop {
            let (number, part) = match general.pending {
                Some(pending) => pending,
                None => match self.begin_io(general, now_ns) {
                    Ok(number) => (number, 0),
                    Err(filled) => break filled,
                },
            };
            general.pending = Some((number, part));
            let Some(buffer) = self.free.pop() else { break Filled::Full };
            let entry = general.entries.get(number as usize).copied().unwrap_or_default();
            let write = if entry.kind == Kind::Read || entry.kind == Kind::Check { 0 } else { WRITE };
            let flight = Flight { buffer, tag: u64::from(number) | u64::from(part) << 32 | write };
            if let Some(flight) = self.submit_part(general, &entry, part, flight, now_ns) {
                self.free.push(flight.buffer);
                break Filled::Full;
            }
            any = true;
            let parts = commands(&self.plan, entry.blocks);
            general.pending = (part + 1 < parts).then_some((number, part + 1));
        };
        if any { Filled::Some } else { filled }
    }

    /// Decides on the next I/O; gives its number, or why there is none.
    fn begin_io(&mut self, general: &mut General, now_ns: u64) -> Result<u32, Filled> {
        if general.over {
            return self.begin_check(general, now_ns);
        }
        if self.ios_left == 0 {
            return Err(Filled::Done);
        }
        if general.is_pass_over(self.plan.slots) {
            if general.written.is_some() && self.queue.in_flight() > 0 {
                return Err(Filled::Full);
            }
            general.begin_pass(self.plan.slots);
        }
        if general.free_entries.is_empty() {
            return Err(Filled::Full);
        }
        match general.may_begin(now_ns, self.queue.in_flight()) {
            Filled::Some => {}
            not_yet => return Err(not_yet),
        }
        let (slot, begin, blocks) = general.next_place(&self.plan, &mut self.random);
        let bytes = u64::from(blocks) * general.lba_bytes;
        if general.bytes_left < bytes {
            self.ios_left = 0;
            return Err(Filled::Done);
        }
        let kind = match general.action {
            Action::Transfer if self.read_below != u64::MAX && self.random.next_u64() >= self.read_below => Kind::Write,
            Action::Transfer => Kind::Read,
            _ => Kind::Other,
        };
        let Some(number) = general.free_entries.pop() else { return Err(Filled::Full) };
        general.bytes_left -= if general.bytes_left == u64::MAX { 0 } else { bytes };
        self.ios_left -= 1;
        let stamp_ns = match &mut general.pace {
            Some(pace) => {
                let due_ns = (pace.next >> 32) as u64;
                pace.next += pace.step * if pace.by_blocks { u128::from(blocks) } else { 1 };
                due_ns
            }
            None => now_ns,
        };
        if let Some(pause) = &mut general.pause {
            pause.left -= 1;
        }
        let left = commands(&self.plan, blocks);
        let lba = self.first_lba + begin;
        let generation = generation(general.pass);
        if let Some(entry) = general.entries.get_mut(number as usize) {
            *entry = Entry { slot, lba, blocks, stamp_ns, left, kind, failed: false, generation };
        }
        Ok(number)
    }

    /// The next place that was written and is to be checked.
    fn begin_check(&mut self, general: &mut General, now_ns: u64) -> Result<u32, Filled> {
        let (Some(next), Some(written)) = (general.checking, &general.written) else { return Err(Filled::Done) };
        // What the run has begun to write has to be written.
        if next == 0 && self.queue.in_flight() > 0 {
            return Err(Filled::Full);
        }
        let rest = written.generations.get(next as usize..).unwrap_or_default();
        let Some((ahead, &generation)) = rest.iter().enumerate().find(|&(_, &generation)| generation != 0) else {
            general.checking = None;
            return Err(Filled::Done);
        };
        let Some(number) = general.free_entries.pop() else { return Err(Filled::Full) };
        let slot = next + ahead as u64;
        general.checking = Some(slot + 1);
        let blocks = self.plan.io_blocks;
        let lba = self.first_lba + slot * u64::from(self.plan.slot_blocks);
        let left = commands(&self.plan, blocks);
        if let Some(entry) = general.entries.get_mut(number as usize) {
            *entry = Entry { slot, lba, blocks, stamp_ns: now_ns, left, kind: Kind::Check, failed: false, generation };
        }
        Ok(number)
    }

    /// Submits one command of an I/O; gives it back if it was not taken.
    fn submit_part(
        &mut self,
        general: &mut General,
        entry: &Entry,
        part: u32,
        mut flight: Flight,
        now_ns: u64,
    ) -> Option<Flight> {
        let (lba, blocks) = entry.part(&self.plan, part);
        let io = match entry.kind {
            Kind::Read | Kind::Check => Io::read(lba, blocks),
            Kind::Write => {
                general.prepare(&mut flight.buffer, lba, blocks, entry.generation.into(), &mut self.random);
                Io::write(lba, blocks)
            }
            Kind::Other => {
                if general.action == Action::Compare {
                    // What one pass of a verifying write leaves.
                    general.prepare(&mut flight.buffer, lba, blocks, 1, &mut self.random);
                }
                Io { opcode: general.other_opcode(), lba, blocks, flags: 0 }
            }
        };
        // A command's age counts from now, whenever its I/O should have begun.
        let submitted = if io.opcode == IoOpcode::DATASET_MANAGEMENT {
            let _ = flight.buffer.copy_in(0, &describe_range(lba, blocks));
            self.queue.submit_deallocate(lba, blocks, flight, now_ns)
        } else {
            self.queue.submit(io, flight, now_ns)
        };
        match submitted {
            Ok(_) => {
                match entry.kind {
                    Kind::Read | Kind::Check => self.recorded.reads_sent += 1,
                    Kind::Write => self.recorded.writes_sent += 1,
                    Kind::Other => self.recorded.others_sent += 1,
                }
                None
            }
            Err(rejected) => Some(rejected.payload),
        }
    }

    /// Takes what was completed. Gives when it was seen, or 0 for nothing.
    fn drain_general(&mut self) -> Result<u64, DriverError> {
        let Self { queue, clock, free, recorded, bin, again, general, plan, start_ns, stop_ns, .. } = self;
        let Some(general) = general else { return Ok(0) };
        let mut seen_ns = 0;
        queue.poll(u32::MAX, |done| {
            if seen_ns == 0 {
                seen_ns = clock.now_ns();
            }
            let Flight { buffer, tag } = done.buffer;
            let number = (tag & 0xffff_ffff) as usize;
            let part = (tag >> 32 & 0x1fff_ffff) as u32;
            let Some(mut entry) = general.entries.get(number).copied() else {
                free.push(buffer);
                return;
            };
            let (lba, blocks) = entry.part(plan, part);
            if done.status != 0 {
                let status = Status::from_bits(done.status);
                if general.action == Action::Compare && is_compare_failure(status) {
                    recorded.errors.miscompare(Miscompare {
                        lba,
                        byte: 0,
                        expected: 0,
                        found: 0,
                        looks: Looks::Compared,
                    });
                } else {
                    let at_ns = seen_ns.saturating_sub(*start_ns);
                    let write = tag & WRITE != 0;
                    recorded.errors.note(FailedIo { write, lba, cause: Cause::Status(done.status), at_ns });
                    if may_repeat(tag, done.status) {
                        again.push(Flight { buffer, tag: tag + (1 << RETRIES_SHIFT) });
                        return;
                    }
                    entry.failed = true;
                }
            } else {
                recorded.errors.recovered += u64::from(tag >> RETRIES_SHIFT & 3 != 0);
                if entry.kind == Kind::Check || general.checks_reads {
                    let generation = if entry.kind == Kind::Check { entry.generation } else { 0 };
                    general.check(&buffer, lba, blocks, generation, recorded);
                }
            }
            free.push(buffer);
            entry.left -= 1;
            if let Some(place) = general.entries.get_mut(number) {
                *place = entry;
            }
            if entry.left > 0 {
                return;
            }
            general.free_entries.push(number as u32);
            general.ended(&entry, recorded);
            if entry.failed {
                recorded.errors.failed += 1;
                return;
            }
            // What completes after the run's time, or should have begun before it (in the ramp), is not counted.
            if entry.kind == Kind::Check || seen_ns >= *stop_ns || entry.stamp_ns < *start_ns {
                return;
            }
            let latency_ns = seen_ns.saturating_sub(entry.stamp_ns);
            let (latency, which) = match entry.kind {
                Kind::Read | Kind::Check => (&mut recorded.read_latency, 0),
                Kind::Write => (&mut recorded.write_latency, 1),
                Kind::Other => (&mut recorded.other_latency, 2),
            };
            latency.record(latency_ns);
            let bytes = u64::from(entry.blocks) * general.lba_bytes;
            recorded.bytes[which] += bytes;
            bin.ios += 1;
            bin.bytes += bytes;
        })?;
        if seen_ns != 0 && !general.over {
            recorded.last_seen_ns = seen_ns;
        }
        Ok(seen_ns)
    }
}

/// Commands of an I/O of so many blocks.
fn commands(plan: &Plan, blocks: u32) -> u32 {
    // Without several sizes this is known; with them most I/Os are one command.
    if blocks == plan.io_blocks {
        plan.commands
    } else if blocks <= plan.command_blocks {
        1
    } else {
        blocks.div_ceil(plan.command_blocks)
    }
}

/// Media and data integrity errors, 85h: Compare Failure.
fn is_compare_failure(status: Status) -> bool {
    status.sct() == 2 && status.sc() == 0x85
}
