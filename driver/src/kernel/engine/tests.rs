//! The kernel engine on files: counts, ends, coverage.
#![forbid(unsafe_code)]

use core::ops::ControlFlow;
use std::io::Write;

use super::*;
use crate::kernel::WritePermit;
use crate::pci::Sysfs;
use crate::workload::{Access, Cause, EndReason, Limits, Tick};

const BLOCK: u64 = 4096;

/// A file of `blocks` blocks, each full of its own number.
fn file(blocks: u64) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    for block in 0..blocks {
        file.write_all(&[block as u8; BLOCK as usize]).expect("a block");
    }
    file.as_file().sync_all().expect("on the disk");
    file
}

fn target(file: &tempfile::NamedTempFile, permit: Option<&WritePermit>) -> BlockTarget {
    BlockTarget::open(&Sysfs::host(), file.path(), permit).expect("a target")
}

fn ios(count: u64) -> Job {
    Job { limits: Limits { ios: Some(count), ..Limits::default() }, iodepth: 8, ..Job::new() }
}

/// Runs it in both ways; io_uring only where this system has it.
fn both(target: &BlockTarget, job: &Job) -> Vec<BlockRun> {
    let auto = run(target, job, EngineChoice::Auto, &mut ()).expect("it runs");
    if let Engine::Threads { why, .. } = &auto.engine {
        assert!(why.is_some(), "threads without being asked for say why");
    }
    let threads = run(target, job, EngineChoice::Threads, &mut ()).expect("it runs");
    assert!(matches!(threads.engine, Engine::Threads { why: None, .. }));
    vec![auto, threads]
}

#[test]
fn a_run_of_a_number_of_ios_reads_exactly_these_and_ends_as_done() {
    let file = file(64);
    let target = target(&file, None);
    for run in both(&target, &ios(1000)) {
        let result = &run.result;
        assert_eq!((result.read.ios, result.write.ios, result.errors.failed), (1000, 0, 0), "{}", run.engine);
        assert_eq!((result.read.bytes, result.read.latency.count()), (1000 * BLOCK, 1000));
        assert_eq!(result.bins.iter().map(|bin| bin.ios).sum::<u64>(), 1000);
        assert_eq!((result.end, result.queues, result.iodepth), (EndReason::Done, 1, 8));
        assert!(result.elapsed_ns > 0 && result.processor.is_some_and(|processor| processor.wall_ns > 0));
        assert_eq!(result.wait, Wait::Interrupt, "a file is not polled");
    }
}

#[test]
fn several_jobs_each_read_their_own_number_of_ios() {
    let file = file(64);
    let target = target(&file, None);
    for run in both(&target, &Job { numjobs: 3, iodepth: 2, ..ios(100) }) {
        assert_eq!((run.result.read.ios, run.result.queues, run.result.iodepth), (300, 3, 2), "{}", run.engine);
    }
}

#[test]
fn a_runtime_ends_the_run_and_is_its_length() {
    let file = file(64);
    let target = target(&file, None);
    let limits = Limits { runtime_ns: Some(150 * MILLISECOND_NS), ..Limits::default() };
    for run in both(&target, &Job { limits, ..ios(0) }) {
        assert_eq!((run.result.end, run.result.elapsed_ns), (EndReason::Runtime, 150 * MILLISECOND_NS));
        let in_bins: u64 = run.result.bins.iter().map(|bin| bin.ios).sum();
        assert_eq!(in_bins, run.result.read.ios, "{}", run.engine);
    }
}

#[test]
fn what_is_read_in_the_ramp_is_not_counted() {
    let file = file(64);
    let target = target(&file, None);
    let limits = Limits { runtime_ns: Some(MILLISECOND_NS), ..Limits::default() };
    let job = Job { ramp_ns: 200 * MILLISECOND_NS, limits, ..ios(0) };
    for run in both(&target, &job) {
        assert_eq!(run.result.elapsed_ns, MILLISECOND_NS);
        assert!(run.result.bins.len() <= 1, "{:?}", run.result.bins);
    }
}

#[test]
fn an_observer_can_end_the_run_and_sees_it_move() {
    #[derive(Default)]
    struct Impatient(Vec<Tick>);
    impl Observer for Impatient {
        fn interval_ns(&self) -> u64 {
            150 * MILLISECOND_NS
        }

        fn tick(&mut self, tick: Tick) -> ControlFlow<()> {
            self.0.push(tick);
            if tick.ios > 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
    }
    let file = file(64);
    let target = target(&file, None);
    let limits = Limits { runtime_ns: Some(600_000 * MILLISECOND_NS), ..Limits::default() };
    for choice in [EngineChoice::Auto, EngineChoice::Threads] {
        let mut observer = Impatient::default();
        let run = run(&target, &Job { limits, ..ios(0) }, choice, &mut observer).expect("it runs");
        assert_eq!(run.result.end, EndReason::Interrupted);
        assert!(observer.0.iter().all(|tick| tick.bytes == tick.ios * BLOCK));
    }
}

/// Each block once, none left out, and what is written is where it belongs.
#[test]
fn sequential_writes_cover_the_region_and_nothing_else() {
    let permit = WritePermit::for_serial("a file has none");
    for choice in [EngineChoice::Auto, EngineChoice::Threads] {
        let file = file(64);
        let target = target(&file, Some(&permit));
        let job = Job {
            access: Access::Sequential,
            read_percent: 0,
            offset_bytes: 16 * BLOCK,
            size_bytes: Some(32 * BLOCK),
            ..ios(32)
        };
        let run = run(&target, &job, choice, &mut ()).expect("it runs");
        assert_eq!((run.result.write.ios, run.result.read.ios, run.result.errors.failed), (32, 0, 0), "{}", run.engine);
        let content = std::fs::read(file.path()).expect("the file");
        assert_eq!(content.len() as u64, 64 * BLOCK);
        for (number, block) in content.chunks(BLOCK as usize).enumerate() {
            let untouched = block.iter().all(|&byte| byte == number as u8);
            assert_eq!(untouched, !(16..48).contains(&number), "{}: block {number}", run.engine);
        }
    }
}

#[test]
fn a_job_that_writes_is_refused_without_a_permit() {
    let file = file(4);
    let target = target(&file, None);
    let job = Job { read_percent: 50, ..ios(10) };
    for choice in [EngineChoice::Auto, EngineChoice::Uring, EngineChoice::Threads] {
        let error = run(&target, &job, choice, &mut ()).expect_err("it is not writable");
        assert!(error.to_string().ends_with("opened for reading alone"), "{error}");
    }
    assert_eq!(std::fs::read(file.path()).expect("the file")[..8192], [[0; 4096], [1; 4096]].concat());
}

#[test]
fn what_lies_behind_the_end_of_a_file_that_shrank_is_a_failure_and_not_an_io() {
    let file = file(8);
    let target = target(&file, None);
    file.as_file().set_len(4 * BLOCK).expect("it shrinks");
    let job = Job { access: Access::Sequential, ..ios(8) };
    for run in both(&target, &job) {
        assert_eq!((run.result.read.ios, run.result.errors.failed), (4, 4), "{}", run.engine);
        assert_eq!(run.result.errors.by_cause[&Cause::Short], 4);
        assert!(run.result.errors.first.iter().all(|failed| failed.lba * u64::from(target.lba_bytes()) >= 4 * BLOCK));
    }
}

#[test]
fn what_cannot_be_run_is_refused_before_the_first_io() {
    let file = file(4);
    let target = target(&file, None);
    for job in [
        Job { block_bytes: 1000, ..ios(1) },
        Job { iodepth: 0, ..ios(1) },
        Job { iodepth: 100_000, ..ios(1) },
        Job { offset_bytes: 64 * BLOCK, ..ios(1) },
        Job { limits: Limits::default(), ..ios(1) },
    ] {
        let error = run(&target, &job, EngineChoice::Auto, &mut ()).expect_err("it cannot be run");
        assert!(matches!(error, DriverError::Job(_)), "{error:?}");
    }
}

#[test]
fn buffers_beyond_the_machines_memory_are_refused() {
    assert!(available_bytes().is_some_and(|bytes| bytes > 0), "Linux tells it");
    let file = tempfile::NamedTempFile::new().expect("a file");
    // Sparse: nothing of it is on the disk.
    file.as_file().set_len(2 << 30).expect("a length");
    let target = target(&file, None);
    let job = Job { block_bytes: 1 << 30, iodepth: 4096, numjobs: 16, ..ios(1) };
    let error = run(&target, &job, EngineChoice::Auto, &mut ()).expect_err("64 TiB");
    assert!(error.to_string().starts_with("the buffers of this job need 70368744177664 bytes"), "{error}");
}

#[test]
fn depth_by_threads_is_bounded_and_the_result_says_what_it_was() {
    let file = file(4);
    let target = target(&file, None);
    let run =
        run(&target, &Job { iodepth: 1024, numjobs: 16, ..ios(4) }, EngineChoice::Threads, &mut ()).expect("it runs");
    assert_eq!((run.result.iodepth, run.result.read.ios), (32, 64));
    assert_eq!(run.engine.to_string(), "32 threads with pread for each queue");
}

#[test]
fn a_device_that_is_gone_is_lost_and_other_errors_are_not() {
    let file = file(1);
    let target = target(&file, None);
    let watched = Watched { target: &target, queue: 1 };
    assert!(watched.still_there(Errno::NODEV, 7).expect_err("it is gone").is_lost());
    assert!(watched.still_there(Errno::NODATA, 1).is_ok());
    assert!(watched.still_there(Errno::IO, LOOK_EVERY_FAILURES).is_ok());
    let late = watched.timed_out(false, 1500 * MILLISECOND_NS);
    assert!(late.is_lost());
    assert!(late.to_string().ends_with("Read on queue 1 was not completed within 1500 ms"), "{late}");
}

#[test]
fn the_reason_for_threads_is_in_words() {
    let words = |errno| no_ring(&std::io::Error::from_raw_os_error(errno));
    assert_eq!(words(libc::ENOSYS), "this kernel has none");
    assert!(words(libc::EPERM).contains("io_uring_disabled"));
    let engine = Engine::Threads { each: 4, why: Some(words(libc::ENOSYS)) };
    assert_eq!(engine.to_string(), "4 threads with pread for each queue (no io_uring: this kernel has none)");
    let engine = Engine::Uring { polled: true, fixed_buffers: true, fixed_file: false };
    assert_eq!(engine.to_string(), "io_uring, polled, registered buffers, unregistered file");
}
