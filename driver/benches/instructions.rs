//! Instructions and cache lines per I/O of the hot path, to be counted from outside: `tools/instructions` runs this under
//! valgrind.
//!
//! `instructions CASE DEPTH TIMES` does that many I/Os of one case and nothing else that grows with their number, so the
//! slope of two run lengths is the cost of one I/O. The `device` cases ring the same doorbells without a driver. What is
//! left after subtracting them is the driver (submit, ring, poll, all checks and ownership), or with `engine` the whole
//! benchmark loop with random offsets, time stamps and histogram.
//!
//! With `checks` the same build is shown to contain what was counted: each lie of a device must be found out, each fault
//! of the emulator reported, each command that must not be sent refused.
#![forbid(unsafe_code)]

mod scripted;

use std::hint::black_box;
use std::sync::Arc;

use nvmetal_driver::controller::{Admin, Controller, ControllerOptions};
use nvmetal_driver::dma::Buffer;
use nvmetal_driver::error::DriverError;
use nvmetal_driver::io_queue::{Io, RejectedReason};
use nvmetal_driver::transport::emulated::EmulatedTransport;
use nvmetal_driver::workload::{self, Job, Limits};

use scripted::{Bench, LIES, Lie, Queue, drive, ring};

const USAGE: &str = "usage: instructions CASE DEPTH TIMES
  device                 the scripted device alone
  driver-4k, driver-128k, driver-1m, driver-128k-unaligned
                         the driver on it, in batches of DEPTH
  engine                 the whole benchmark engine on it
  list-128k, list-1m     PRP lists written anew, without any I/O
  checks                 shows that this build contains the checks
  addresses              where a function of this program is, to find the others";

/// The driver: batches of the queue's depth.
fn driver(bench: &Bench, ios: u64, bytes: usize, offset: usize) -> Result<(), DriverError> {
    let mut buffers = bench.buffers(bytes, offset)?;
    let mut queue = bench.queue()?;
    let blocks = (bytes / queue.namespace().lba_bytes() as usize) as u32;
    drive(&mut queue, &mut buffers, ios, blocks)
}

/// The same doorbells without a driver.
fn device(bench: &Bench, ios: u64) -> Result<(), DriverError> {
    // Only so that as many ranges are mapped: the device looks addresses up.
    let mut free = bench.buffers(4096, 0)?;
    let queue = bench.queue()?;
    let target = bench.doorbells();
    let mut taken = Vec::with_capacity(free.len());
    let mut tail = 0;
    for _ in 0..ios / u64::from(bench.depth) {
        tail = (tail + bench.depth) % (bench.depth + 1);
        ring(&*target, tail);
        pass(&mut free, &mut taken);
        std::mem::swap(&mut free, &mut taken);
    }
    drop(queue);
    Ok(())
}

/// What the driver's caller does with its buffers: takes one off its list, and puts it on again.
#[inline(never)]
fn pass(from: &mut Vec<Buffer>, to: &mut Vec<Buffer>) {
    while let Some(buffer) = from.pop() {
        to.push(buffer);
    }
}

/// Writes the PRP list of a buffer anew, `times` times: 32 or 256 entries.
fn lists(bench: &Bench, times: u64, bytes: usize) -> Result<(), DriverError> {
    let mut buffers = bench.buffers(bytes + 512, 0)?;
    for number in 0..times {
        for buffer in &mut buffers {
            buffer.set_offset(if number.is_multiple_of(2) { 512 } else { 0 })?;
        }
    }
    black_box(buffers);
    Ok(())
}

/// Whether this build finds the lie out, and takes no command after it.
fn finds(lie: Lie) -> Result<bool, DriverError> {
    let bench = Bench::new(32)?;
    let mut buffers = bench.buffers(4096, 0)?;
    let mut queue = bench.queue()?;
    drive(&mut queue, &mut buffers, 1000, 8)?;
    bench.lie(lie);
    let found = matches!(drive(&mut queue, &mut buffers, 32, 8), Err(DriverError::Fault { .. }));
    let stopped = buffers.pop().or_else(|| bench.buffers(4096, 0).ok()?.pop()).is_some_and(|buffer| {
        queue.submit(Io::read(0, 8), buffer, 0).is_err_and(|rejected| rejected.reason == RejectedReason::Stopped)
    });
    Ok(found && stopped)
}

/// Whether a command is refused for this reason, with its buffer.
fn refuses(queue: &mut Queue, io: Io, reason: RejectedReason, buffers: &mut Vec<Buffer>) -> bool {
    let Some(buffer) = buffers.pop() else { return false };
    match queue.submit(io, buffer, 0) {
        Ok(_) => false,
        Err(rejected) => {
            buffers.push(rejected.payload);
            rejected.reason == reason
        }
    }
}

/// Runs the engine on the emulator with one fault; gives what came of it.
fn with_fault(fault: &str) -> Result<workload::RunResult, DriverError> {
    let transport = EmulatedTransport::open(&format!("ideal,fault={fault}"))
        .map_err(|error| DriverError::Request(error.to_string()))?;
    let controller: Arc<Controller> = Controller::open(transport, ControllerOptions::default())?;
    let job = Job { limits: Limits { ios: Some(1000), ..Limits::default() }, ..Job::new() };
    workload::run(&controller, controller.namespace(1)?, &job, &mut ())
}

/// Shows that the checks are in this build.
fn checks() -> Result<(), DriverError> {
    let mut lacking = 0;
    let mut check = |name: &str, found: bool| {
        println!("{name:28} {}", if found { "found out" } else { "NOT FOUND OUT" });
        lacking += u32::from(!found);
    };
    for lie in LIES {
        check(&format!("{lie:?}"), finds(lie)?);
    }
    check("read-error", with_fault("read-error@100x4")?.errors.failed > 0);
    check("timeout", with_fault("timeout@100")?.recoveries.aborted_commands == 1);

    let bench = Bench::new(32)?;
    let mut queue = bench.queue()?;
    let mut buffers = bench.buffers(4096, 0)?;
    let end = queue.namespace().blocks;
    let blocks = 4096 >> queue.namespace().lba_shift;
    for (name, io, reason) in [
        ("no blocks", Io::read(0, 0), RejectedReason::Length),
        ("too many blocks", Io::read(0, 65_537), RejectedReason::Length),
        ("beyond the end", Io::read(end - u64::from(blocks) + 1, blocks), RejectedReason::Range),
        ("far beyond the end", Io::read(u64::MAX, blocks), RejectedReason::Range),
        ("longer than its buffer", Io::read(0, blocks + 1), RejectedReason::Buffer),
    ] {
        check(name, refuses(&mut queue, io, reason, &mut buffers));
    }
    let mut more = bench.buffers(4096, 0)?;
    while let Some(buffer) = buffers.pop() {
        check_taken(queue.submit(Io::read(0, blocks), buffer, 0).is_ok());
    }
    check("one more than it holds", refuses(&mut queue, Io::read(0, blocks), RejectedReason::Full, &mut more));
    if lacking > 0 {
        return Err(DriverError::Request(format!("this build lacks {lacking} checks")));
    }
    Ok(())
}

fn check_taken(taken: bool) {
    assert!(taken, "a queue holds as many commands as it is deep");
}

fn main() -> Result<(), DriverError> {
    let arguments: Vec<String> = std::env::args().filter(|argument| argument != "--bench").collect();
    let number = |text: Option<&String>| text.and_then(|text| text.parse().ok()).unwrap_or(1);
    let (case, depth, times) =
        (arguments.get(1).map(String::as_str), number(arguments.get(2)), number(arguments.get(3)));
    let bench = || Bench::new(depth as u32);
    match case {
        Some("device") => device(&bench()?, times),
        Some("driver-4k") => driver(&bench()?, times, 4096, 0),
        Some("driver-128k") => driver(&bench()?, times, 128 << 10, 0),
        Some("driver-1m") => driver(&bench()?, times, 1 << 20, 0),
        Some("driver-128k-unaligned") => driver(&bench()?, times, 128 << 10, 512),
        Some("engine") => {
            let result = bench()?.engine(times)?;
            assert_eq!(result.ios(), times, "the run did what it was told");
            Ok(())
        }
        Some("list-128k") => lists(&bench()?, times, 128 << 10),
        Some("list-1m") => lists(&bench()?, times, 1 << 20),
        Some("checks") => checks(),
        Some("addresses") => {
            println!("{:p}", ring as *const ());
            driver(&bench()?, times, 4096, 0)
        }
        _ => {
            eprintln!("{USAGE}");
            Ok(())
        }
    }
}
