//! Workloads beyond plain reads, on the emulated drive in virtual time: what they do is arithmetic, and checked as such.
#![cfg(feature = "emulated")]
#![forbid(unsafe_code)]
#![allow(missing_docs)]

use std::sync::Arc;

use nvmetal_driver::blocking::{BlockingOptions, BlockingQueue};
use nvmetal_driver::controller::{Admin, Controller, ControllerOptions};
use nvmetal_driver::error::DriverError;
use nvmetal_driver::transport::emulated::EmulatedTransport;
use nvmetal_driver::workload::pattern::Looks;
use nvmetal_driver::workload::{
    self, Access, Action, Data, Distribution, EndReason, Job, Limits, Rate, RunResult, SizeShare, Think,
};

const MS: u64 = 1_000_000;
const MIB: u64 = 1 << 20;

fn open(options: &str) -> Arc<Controller> {
    let transport = EmulatedTransport::open(options).expect("good options");
    Controller::open(transport, ControllerOptions { io_queues: 4, ..ControllerOptions::default() }).expect("it opens")
}

fn run_on(controller: &Arc<Controller>, job: &Job) -> Result<RunResult, DriverError> {
    workload::run(controller, controller.namespace(1).expect("a namespace"), job, &mut ())
}

fn run(options: &str, job: &Job) -> RunResult {
    run_on(&open(options), job).expect("it runs")
}

fn sent(controller: &Controller, name: &str) -> u64 {
    let sent = controller.tally().sent();
    sent.iter().find(|command| !command.admin && command.name == name).map_or(0, |command| command.count)
}

fn once(size_bytes: u64) -> Job {
    let limits = Limits { bytes: Some(size_bytes), ..Limits::default() };
    Job { size_bytes: Some(size_bytes), limits, no_repeat: true, ..Job::new() }
}

fn verifying(size_bytes: u64) -> Job {
    Job { read_percent: 0, verify: true, ..once(size_bytes) }
}

/// All bytes of the beginning of the drive.
fn contents(controller: &Arc<Controller>, bytes: u64) -> Vec<u8> {
    let namespace = controller.namespace(1).expect("a namespace");
    let mut queue = BlockingQueue::new(controller, namespace, BlockingOptions::default()).expect("a queue");
    let mut data = vec![0; bytes as usize];
    queue.read_at(0, &mut data).expect("it reads");
    data
}

fn spoil(controller: &Arc<Controller>, offset_bytes: u64, from: &[u8]) {
    let namespace = controller.namespace(1).expect("a namespace");
    let mut queue = BlockingQueue::new(controller, namespace, BlockingOptions::default()).expect("a queue");
    queue.write_at(offset_bytes, from).expect("it writes");
}

// ---------------------------------------------------------------------------------------------------- what is written

/// E-17: a pass over a region writes each of its blocks exactly once.
#[test]
fn e17_random_writes_without_repetition_cover_the_region_exactly_once() {
    for (size, block_bytes) in [(MIB, 4096), (96 * 4096, 4096), (77 * 512, 512)] {
        let controller = open("ideal,written=no");
        let job = Job { read_percent: 0, block_bytes, ..once(size) };
        let result = run_on(&controller, &job).expect("it runs");
        assert_eq!((result.write.ios, result.write.bytes, result.read.ios), (size / block_bytes, size, 0));
        let data = contents(&controller, size + block_bytes);
        let (written, behind) = data.split_at(size as usize);
        let blank = written.chunks(block_bytes as usize).filter(|block| block.iter().all(|&byte| byte == 0)).count();
        assert_eq!(blank, 0, "{size} in {block_bytes}");
        assert!(behind.iter().all(|&byte| byte == 0), "nothing was written behind the region");
    }
}

#[test]
fn what_was_written_is_read_back_and_is_the_same() {
    for access in [Access::Sequential, Access::Random] {
        for (block_bytes, options) in [(4096, "ideal,written=no"), (512, "ideal,lba=512"), (65_536, "ideal,mdts=1")] {
            let job = Job { access, block_bytes, ..verifying(MIB) };
            let result = run(options, &job);
            assert_eq!((result.write.ios, result.read.ios), (MIB / block_bytes, 0), "checks are not in the figures");
            assert_eq!(result.verified.ios, MIB / block_bytes, "{options}");
            assert_eq!((result.errors.miscompares, result.errors.failed), (0, 0), "{:?}", result.errors);
        }
    }
}

#[test]
fn several_passes_are_verified_against_the_last() {
    let limits = Limits { ios: Some(3 * 256 + 100), ..Limits::default() };
    for access in [Access::Sequential, Access::Random] {
        let result = run("ideal", &Job { access, limits, ..verifying(MIB) });
        assert_eq!((result.write.ios, result.verified.ios, result.errors.miscompares), (868, 256, 0));
    }
}

#[test]
fn a_mix_verifies_what_it_wrote_and_nothing_else() {
    let result = run("ideal", &Job { read_percent: 60, ..verifying(4 * MIB) });
    assert_eq!(result.ios(), 1024);
    assert_eq!((result.verified.ios, result.errors.miscompares), (result.write.ios, 0));
}

#[test]
fn a_later_run_that_only_reads_finds_each_block_that_changed_and_names_its_first_byte() {
    let controller = open("ideal,lba=512");
    run_on(&controller, &verifying(MIB)).expect("it writes");
    let reading = Job { read_percent: 100, ..verifying(MIB) };
    let clean = run_on(&controller, &reading).expect("it reads");
    assert_eq!((clean.errors.miscompares, clean.verified.blocks), (0, 2048));

    let good = contents(&controller, MIB);
    let mut block = good[512 * 700..512 * 701].to_vec();
    block[300] ^= 1;
    spoil(&controller, 512 * 700, &block);
    spoil(&controller, 512 * 800, &good[512 * 801..512 * 802]);
    let found = run_on(&controller, &reading).expect("it reads");
    assert_eq!(found.errors.miscompares, 2);
    let at = |lba| found.errors.miscompared.iter().find(|miscompare| miscompare.lba == lba).expect("it is named");
    assert_eq!((at(700).byte, at(700).found ^ at(700).expected, at(700).looks), (300, 1, Looks::Damaged));
    assert_eq!(at(800).looks, Looks::OtherBlock(801));
    let other_seed = run_on(&controller, &Job { seed: 1, ..reading }).expect("it reads");
    assert_eq!(other_seed.errors.miscompares, 2048, "another run's data is not this run's");
}

#[test]
fn compare_sends_what_a_verifying_write_left_and_counts_what_differs() {
    let controller = open("ideal,lba=512");
    run_on(&controller, &verifying(MIB)).expect("it writes");
    let comparing = Job { action: Action::Compare, ..once(MIB) };
    let clean = run_on(&controller, &comparing).expect("it compares");
    assert_eq!((clean.other.ios, clean.errors.miscompares, clean.errors.failed), (256, 0, 0));
    spoil(&controller, 512 * 700, &[0; 512]);
    let found = run_on(&controller, &comparing).expect("it compares");
    assert_eq!((found.errors.miscompares, found.errors.failed), (1, 0));
    assert_eq!(found.errors.miscompared[0].looks, Looks::Compared);
    assert_eq!(sent(&controller, "Compare"), 512);
}

#[test]
fn zeroes_and_trims_leave_zeros_in_their_region_and_nowhere_else() {
    for (action, name) in [(Action::WriteZeroes, "Write Zeroes"), (Action::Trim, "Dataset Management")] {
        let controller = open("ideal");
        let before = contents(&controller, MIB);
        let job = Job { action, offset_bytes: 256 << 10, block_bytes: 65_536, ..once(512 << 10) };
        let result = run_on(&controller, &job).expect("it runs");
        assert_eq!((result.other.ios, result.other.bytes, result.ios()), (8, 512 << 10, 8));
        assert!(sent(&controller, name) >= 8, "{name}");
        let after = contents(&controller, MIB);
        for (index, (old, new)) in before.iter().zip(&after).enumerate() {
            let inside = (256 << 10..768 << 10).contains(&index);
            assert_eq!(*new, if inside { 0 } else { *old }, "byte {index} after {name}");
        }
    }
}

/// A trim is one command however long it is, also at the very end of the drive.
#[test]
fn a_trim_is_one_command_and_reaches_the_last_block() {
    let controller = open("ideal,blocks=8192,lba=512,mdts=1");
    let job = Job { action: Action::Trim, access: Access::Sequential, block_bytes: MIB, ..once(4 * MIB) };
    let result = run_on(&controller, &job).expect("it runs");
    assert_eq!((result.other.ios, result.errors.failed, sent(&controller, "Dataset Management")), (4, 0, 4));
}

#[test]
fn verify_commands_move_no_data_and_are_counted() {
    let controller = open("ideal");
    let result = run_on(&controller, &Job { action: Action::Verify, ..once(MIB) }).expect("it runs");
    assert_eq!((result.other.ios, sent(&controller, "Verify"), sent(&controller, "Read")), (256, 256, 0));
}

#[test]
fn data_is_of_the_kind_that_was_asked_for() {
    let zeros = |data| {
        let controller = open("ideal");
        run_on(&controller, &Job { read_percent: 0, data, refill: true, ..once(MIB) }).expect("it writes");
        let data = contents(&controller, MIB);
        data.iter().filter(|&&byte| byte == 0).count() as f64 / data.len() as f64
    };
    assert!((zeros(Data::Zero) - 1.0).abs() < f64::EPSILON);
    assert!(zeros(Data::Random) < 0.01);
    let half = zeros(Data::Compressible(50));
    assert!((half - 0.5).abs() < 0.01, "{half}");
}

// --------------------------------------------------------------------------------------------------- sizes and places

#[test]
fn sizes_come_as_often_as_asked_and_their_bytes_are_counted() {
    let share = |bytes, percent| SizeShare { bytes, percent };
    let sizes = vec![share(4096, 60), share(16_384, 30), share(65_536, 10)];
    let limits = Limits { ios: Some(20_000), ..Limits::default() };
    for access in [Access::Random, Access::Sequential] {
        let job = Job { access, sizes: sizes.clone(), block_bytes: 65_536, limits, ..Job::new() };
        let result = run("ideal", &job);
        let mean = result.bytes() as f64 / result.ios() as f64;
        let expected = 0.6 * 4096.0 + 0.3 * 16_384.0 + 0.1 * 65_536.0;
        assert!((mean - expected).abs() < expected * 0.03, "{mean} {expected}");
        assert_eq!(result.errors.failed, 0, "no I/O reaches beyond the end");
        assert_eq!(result.bins.iter().map(|bin| bin.bytes).sum::<u64>(), result.bytes());
    }
}

#[test]
fn every_distribution_stays_within_the_region() {
    for distribution in [Distribution::Zipf(1.2), Distribution::Pareto(0.2), Distribution::Normal(20.0)] {
        let limits = Limits { ios: Some(5000), ..Limits::default() };
        let job = Job { distribution, offset_bytes: 4096, size_bytes: Some(40_960), limits, ..Job::new() };
        let result = run("ideal", &job);
        assert_eq!((result.ios(), result.errors.failed), (5000, 0));
    }
}

// ------------------------------------------------------------------------------------------------------ pace and time

#[test]
fn rates_are_kept_within_a_hundredth() {
    let limits = Limits { runtime_ns: Some(1000 * MS), ..Limits::default() };
    for (rate, numjobs, iops) in
        [(Rate::Ios(1000), 1, 1000.0), (Rate::Ios(7777), 2, 15_554.0), (Rate::Bytes(40 * MIB), 1, 10_240.0)]
    {
        let result = run("ideal", &Job { rate: Some(rate), numjobs, limits, ..Job::new() });
        assert!((result.iops() - iops).abs() <= iops * 0.01, "{rate:?}: {}", result.iops());
    }
}

/// A drive that is slower than the pace makes every later I/O late, and the latencies say so: with as many in flight as
/// the queue holds, a closed loop would show the drive's latency only.
#[test]
fn an_open_loop_charges_the_wait_for_a_late_drive() {
    let limits = Limits { runtime_ns: Some(200 * MS), ..Limits::default() };
    let closed = run("ideal", &Job { iodepth: 1, limits, ..Job::new() });
    let pace = closed.iops() as u64;
    let half = run("ideal", &Job { iodepth: 1, limits, rate: Some(Rate::Ios(pace / 2)), ..Job::new() });
    let double = run("ideal", &Job { iodepth: 1, limits, rate: Some(Rate::Ios(pace * 2)), ..Job::new() });
    let p50 = |result: &RunResult| result.latency().percentile(50.0).expect("latencies");
    assert!(p50(&half) < 2 * p50(&closed), "a drive that keeps up is not charged: {} {}", p50(&half), p50(&closed));
    // Served half as fast as they should begin, I/Os are late by half the time that has passed; a quarter of the run at
    // the median.
    let expected = 50 * MS;
    assert!(p50(&double).abs_diff(expected) < expected / 5, "{}", p50(&double));
}

#[test]
fn a_pause_comes_after_each_group_of_ios() {
    let limits = Limits { ios: Some(100), ..Limits::default() };
    let without = run("ideal", &Job { limits, iodepth: 4, ..Job::new() });
    let with = run("ideal", &Job { limits, iodepth: 4, think: Some(Think { ns: 10 * MS, ios: 10 }), ..Job::new() });
    assert_eq!(with.ios(), 100);
    let paused_ns = with.elapsed_ns - without.elapsed_ns;
    assert!((90 * MS..95 * MS).contains(&paused_ns), "nine pauses of 10 ms: {paused_ns}");
}

#[test]
fn the_course_has_a_percentile_for_each_bin_with_ios() {
    let limits = Limits { runtime_ns: Some(500 * MS), ..Limits::default() };
    for job in [Job { limits, ..Job::new() }, Job { limits, read_percent: 0, no_repeat: true, ..Job::new() }] {
        let result = run("ideal", &job);
        assert_eq!((result.end, result.elapsed_ns), (EndReason::Runtime, 500 * MS));
        assert_eq!((result.bins.len(), result.p99_ns.len()), (5, 5));
        let most = result.latency().max().expect("latencies");
        let all = result.p99_ns.iter().all(|p99| p99.is_some_and(|p99| p99 > 0 && p99 <= most + most / 64));
        assert!(all, "{:?}", result.p99_ns);
        assert_eq!(result.bins.iter().map(|bin| bin.ios).sum::<u64>(), result.ios());
    }
}

#[test]
fn jobs_whose_parts_do_not_go_together_are_refused() {
    let refused = |job: Job| run_on(&open("ideal"), &job).expect_err("it makes no sense").to_string();
    assert!(refused(Job { numjobs: 2, ..verifying(MIB) }).contains("each its own"));
    assert!(refused(Job { no_repeat: false, ..verifying(MIB) }).contains("twice"));
    assert!(refused(Job { sizes: vec![SizeShare { bytes: 4096, percent: 50 }], ..Job::new() }).contains("100 %"));
    assert!(refused(Job { distribution: Distribution::Pareto(2.0), ..Job::new() }).contains("pareto"));
    assert!(refused(Job { rate: Some(Rate::Ios(0)), ..Job::new() }).contains("rate of 0"));
}
