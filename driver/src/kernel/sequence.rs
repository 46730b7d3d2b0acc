//! Where the next I/O goes.
//!
//! Offsets are drawn as by our own queues, from the same seeds, so that the same job visits the same blocks in the same
//! order whether it goes through our queues or through the kernel.
#![forbid(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::workload::job::{Access, Job, Plan};
use crate::workload::random::Random;
use crate::workload::threshold;

/// One job's region, and how far it has come. Several threads may share it.
#[derive(Debug)]
struct Region {
    first_lba: u64,
    slots: u64,
    io_blocks: u32,
    random: bool,
    /// A draw below this is a read; all ones for only reads.
    read_below: u64,
    next_slot: AtomicU64,
    ios_left: AtomicU64,
}

/// Gives one thread its I/Os.
#[derive(Debug, Clone)]
pub(super) struct Sequence {
    region: Arc<Region>,
    random: Random,
}

impl Sequence {
    /// The I/Os of job `number`; `io_bytes` is the size of one.
    pub fn new(job: &Job, plan: &Plan, number: u16, io_bytes: u64) -> Self {
        let by_bytes = job.limits.bytes.map_or(u64::MAX, |bytes| bytes / io_bytes.max(1));
        let region = Region {
            first_lba: plan.first_lba + plan.increment_blocks * u64::from(number),
            slots: plan.slots,
            io_blocks: plan.io_blocks,
            random: job.access == Access::Random,
            read_below: threshold(job.read_percent),
            next_slot: AtomicU64::new(0),
            ios_left: AtomicU64::new(job.limits.ios.unwrap_or(u64::MAX).min(by_bytes)),
        };
        let seed = job.seed.wrapping_add(u64::from(number).wrapping_mul(0x9e37_79b9));
        Self { region: Arc::new(region), random: Random::new(seed) }
    }

    /// The same region for another thread, with random numbers of its own.
    pub fn shared_with(&self, thread: u32) -> Self {
        let mut mine = self.random.clone();
        let seed = mine.next_u64() ^ u64::from(thread) << 32;
        Self { region: Arc::clone(&self.region), random: Random::new(seed) }
    }

    /// The first block of the next I/O, and whether it writes; `None` when all have been given out.
    pub fn next(&mut self) -> Option<(u64, bool)> {
        let region = &*self.region;
        region.ios_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).ok()?;
        let write = region.read_below != u64::MAX && self.random.next_u64() >= region.read_below;
        let slot = if region.random {
            self.random.below(region.slots)
        } else {
            region.next_slot.fetch_add(1, Ordering::Relaxed) % region.slots.max(1)
        };
        Some((region.first_lba + slot * u64::from(region.io_blocks), write))
    }

    /// Random data for a buffer that will be written.
    pub fn fill(&mut self, data: &mut [u8]) {
        self.random.fill(data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::job::Limits;

    const PLAN: Plan = Plan {
        io_blocks: 8,
        command_blocks: 8,
        commands: 1,
        first_lba: 1000,
        slots: 4,
        increment_blocks: 100,
        iodepth: 1,
        slot_blocks: 8,
    };

    fn all(mut sequence: Sequence) -> Vec<(u64, bool)> {
        core::iter::from_fn(|| sequence.next()).collect()
    }

    #[test]
    fn a_sequential_job_begins_again_at_the_end_of_its_region() {
        let limits = Limits { ios: Some(6), ..Limits::default() };
        let job = Job { access: Access::Sequential, limits, ..Job::new() };
        let lbas: Vec<u64> = all(Sequence::new(&job, &PLAN, 2, 4096)).into_iter().map(|(lba, _)| lba).collect();
        assert_eq!(lbas, [1200, 1208, 1216, 1224, 1200, 1208]);
    }

    #[test]
    fn a_limit_in_bytes_counts_whole_ios() {
        let limits = Limits { bytes: Some(3 * 4096 + 4095), ios: Some(100), ..Limits::default() };
        assert_eq!(all(Sequence::new(&Job { limits, ..Job::new() }, &PLAN, 0, 4096)).len(), 3);
    }

    #[test]
    fn threads_of_a_job_share_its_number_of_ios_and_its_place() {
        let limits = Limits { ios: Some(4), ..Limits::default() };
        let job = Job { access: Access::Sequential, limits, ..Job::new() };
        let mut first = Sequence::new(&job, &PLAN, 0, 4096);
        let mut second = first.shared_with(1);
        let taken = [first.next(), second.next(), first.next(), second.next(), first.next()];
        let lbas: Vec<Option<u64>> = taken.into_iter().map(|io| io.map(|(lba, _)| lba)).collect();
        assert_eq!(lbas, [Some(1000), Some(1008), Some(1016), Some(1024), None]);
        let random = Sequence::new(&Job { limits, ..Job::new() }, &PLAN, 0, 4096);
        assert_ne!(random.shared_with(1).random.next_u64(), random.shared_with(2).random.next_u64());
    }

    #[test]
    fn a_mixture_reads_as_often_as_it_was_asked_to() {
        let limits = Limits { ios: Some(100_000), ..Limits::default() };
        let job = Job { read_percent: 70, limits, ..Job::new() };
        let ios = all(Sequence::new(&job, &PLAN, 0, 4096));
        let reads = ios.iter().filter(|(_, write)| !write).count();
        assert!((69_000..71_000).contains(&reads), "{reads}");
        let reads_only = all(Sequence::new(&Job { limits, ..Job::new() }, &PLAN, 0, 4096));
        assert!(reads_only.iter().all(|(_, write)| !write));
    }
}
