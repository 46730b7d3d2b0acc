//! The result of `bench` for people.
#![forbid(unsafe_code)]

use nvmetal_driver::Wait;
use nvmetal_driver::workload::result::BIN_NS;
use nvmetal_driver::workload::{Access, Action, Direction, EndReason, Job};

use super::text::{Sheet, sent};
use crate::check::evidence::Written;
use crate::command::bench::Bench;
use crate::output::{RED, YELLOW, bold, styled};
use crate::session::Closed;
use crate::units::{block, celsius, grouped, megabytes, nanoseconds, rate};

/// A share of the ceiling above this says that the ceiling cannot be right.
const BELIEVABLE_PERCENT: f64 = 103.0;

/// The workload in a few words.
pub fn shape(job: &Job) -> String {
    let queues = if job.numjobs == 1 { "on 1 queue".to_owned() } else { format!("on each of {} queues", job.numjobs) };
    format!("{}, {} in flight {queues}", label(job), job.iodepth)
}

/// The workload in two words.
pub fn label(job: &Job) -> String {
    let sizes: Vec<String> =
        job.sizes.iter().map(|share| format!("{} {} %", block(share.bytes), share.percent)).collect();
    let size = if sizes.is_empty() { block(job.block_bytes) } else { sizes.join(" + ") };
    let mix = match (job.action, job.read_percent) {
        (Action::Transfer, percent @ 1..=99) => format!(" {percent}:{}", 100 - percent),
        _ => String::new(),
    };
    let verified = if job.verify { ", verified" } else { "" };
    format!("{}{mix} {size}{verified}", word(job))
}

/// fio's word for what it does.
pub fn word(job: &Job) -> String {
    let what = match (job.action, job.read_percent) {
        (Action::Transfer, 100) => "read",
        (Action::Transfer, 0) => "write",
        (Action::Transfer, _) => "rw",
        (Action::Trim, _) => "trim",
        (Action::WriteZeroes, _) => "writezeroes",
        (Action::Compare, _) => "compare",
        (Action::Verify, _) => "verify",
    };
    format!("{}{what}", if job.access == Access::Random { "rand" } else { "" })
}

/// The course of the run: a line for each bin of 100 ms, under a line that says what the columns are.
pub fn csv(bench: &Bench) -> String {
    let mut text = String::from("emulated,serial,job,at_ms,ios,bytes,iops,mb_per_s,mib_per_s,p99_ns\n");
    let per_second = 1e9 / BIN_NS as f64;
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    let (serial, job) = (quoted(&bench.device.serial), quoted(&label(&bench.job)));
    for (index, bin) in (0_u64..).zip(&bench.result.bins) {
        let rate = bin.bytes as f64 * per_second;
        let p99 = bench.result.p99_ns.get(index as usize).copied().flatten();
        text += &format!(
            "{},{serial},{job},{},{},{},{:.1},{:.3},{:.3},{}\n",
            bench.emulated,
            index * (BIN_NS / 1_000_000),
            bin.ios,
            bin.bytes,
            bin.ios as f64 * per_second,
            rate / 1e6,
            rate / f64::from(1 << 20),
            p99.map_or(String::new(), |p99| p99.to_string()),
        );
    }
    text
}

/// The device in a line, EMULATED first where it is.
pub fn headline(bench: &Bench) -> String {
    let device = &bench.device;
    let emulated = if bench.emulated { "EMULATED  " } else { "" };
    format!("{emulated}{}, serial {}, {}", device.model, device.serial, device.address)
}

/// The whole result.
pub fn human(bench: &Bench, closed: &Closed) -> String {
    let result = &bench.result;
    let mut sheet = Sheet::new(10);
    sheet.row("job", &format!("{}, {:.1} s{}", shape(&bench.job), result.elapsed_ns as f64 / 1e9, ending(bench)));
    if result.iodepth != bench.job.iodepth {
        sheet.row(
            "note",
            &format!("only {} fit into a queue, {} commands each", result.iodepth, result.commands_per_io),
        );
    }
    sheet.row("IOPS", &bold(&grouped(result.iops() as u128)));
    sheet.row("rate", &format!("{}{}", rate(result.bytes_per_second()), share(bench)));
    let mixed = [&result.read, &result.write, &result.other].iter().filter(|direction| direction.ios > 0).count() > 1;
    if mixed {
        sheet.row("reads", &direction(&result.read, result.elapsed_ns));
        sheet.row("writes", &direction(&result.write, result.elapsed_ns));
    }
    let latency = &bench.latency;
    if result.ios() > 0 {
        let ns = nanoseconds;
        sheet.row(
            "latency",
            &format!(
                "mean {}, p50 {}, p90 {}, p99 {}, p99.9 {}, p99.99 {}, p99.999 {}",
                ns(latency.mean),
                ns(latency.p50),
                ns(latency.p90),
                ns(latency.p99),
                ns(latency.p999),
                ns(latency.p9999),
                ns(latency.p99999)
            ),
        );
        sheet.row("", &format!("from {} to {}{}", ns(latency.min), ns(latency.max), clock_error(latency.clock_error)));
    }
    if let Some(limit) = &bench.limit {
        sheet.row("limit", &format!("{}: {}", limit.by, limit.evidence));
    }
    sheet.row("seconds", &spread(bench));
    if let Some(temperature) = temperature(bench) {
        sheet.row("heat", &temperature);
    }
    if let Some(waiting) = waiting(bench) {
        sheet.row("waiting", &waiting);
    }
    if bench.sq_in_cmb {
        sheet.row("queues", "submission in the drive's memory (controller memory buffer)");
    }
    if bench.shadow_doorbells {
        sheet.row("doorbells", "in memory (shadow doorbells)");
    }
    if !bench.data_moved {
        sheet.row("note", &styled(YELLOW, "data moved: no; this is the speed of the software itself on this machine"));
    } else if let Written::Never(why) = &bench.written {
        let text = format!("never written ({why}): this is the speed of link and controller, not of the flash");
        sheet.row("note", &styled(YELLOW, &text));
    }
    if bench.job.verify {
        let verified = &result.verified;
        let blocks = grouped(verified.blocks.into());
        sheet.row("verified", &format!("{} I/Os, {blocks} blocks read back", grouped(verified.ios.into())));
    }
    if let Some(gate) = bench.gate.as_ref().filter(|gate| !gate.destroyed.is_empty()) {
        sheet.row("destroyed", &styled(YELLOW, &gate.text()));
    }
    sheet.row("errors", &errors(bench));
    if !result.recoveries.is_empty() {
        sheet.row("recovery", &styled(YELLOW, &result.recoveries.to_string()));
    }
    sheet.row("sent", &sent(&bench.sent));
    if let Some(back) = &closed.given_back {
        let name = back.controller.as_ref().map_or(String::new(), |name| format!(" as {name}"));
        sheet.row("drive", &format!("given back to {}{name}", back.driver));
    }
    format!("{}\n{}", bold(&headline(bench)), sheet.text())
}

/// One direction of a mix.
fn direction(direction: &Direction, elapsed_ns: u64) -> String {
    let per_second = |amount: u64| if elapsed_ns == 0 { 0.0 } else { amount as f64 * 1e9 / elapsed_ns as f64 };
    let at = |percent| direction.latency.percentile(percent).map_or("-".to_owned(), nanoseconds);
    let iops = grouped(per_second(direction.ios) as u128);
    format!("{iops} IOPS, {}, p50 {}, p99 {}", rate(per_second(direction.bytes)), at(50.0), at(99.0))
}

/// How completions were waited for, and what that took; nothing of the usual way in virtual time, which takes nothing.
fn waiting(bench: &Bench) -> Option<String> {
    let result = &bench.result;
    let how = match result.wait {
        Wait::Poll if bench.job.wait.needs_interrupts() => "by polling (there are no interrupts here)",
        Wait::Poll => "by polling",
        Wait::Interrupt => "by interrupt",
        Wait::Hybrid => "polling first, then by interrupt",
    };
    let Some(used) = result.processor.filter(|_| result.ios() > 0) else {
        return (bench.job.wait != Wait::Poll).then(|| how.to_owned());
    };
    let of =
        if result.queues == 1 { "a processor".to_owned() } else { format!("each of {} processors", result.queues) };
    let per_io = nanoseconds(used.cpu_ns / result.ios());
    Some(format!("{how}: {:.0} % of {of}, {per_io} per I/O", used.percent()))
}

fn ending(bench: &Bench) -> &'static str {
    match bench.result.end {
        EndReason::Runtime => "",
        EndReason::Done => ", done",
        EndReason::Interrupted => ", INTERRUPTED: the result is partial",
    }
}

fn share(bench: &Bench) -> String {
    match (bench.share_percent(), &bench.ceiling) {
        (Some(share), Some(ceiling)) if share > BELIEVABLE_PERCENT => {
            format!(
                "; more than {} of {}: the link registers are not believable",
                ceiling.read_mb_s.round(),
                ceiling.basis
            )
        }
        (Some(share), Some(ceiling)) => {
            let way = if bench.result.read.ios > 0 && bench.result.write.ios > 0 { "in one direction " } else { "" };
            format!(", {way}~{share:.0} % of the path's {} ({})", megabytes(ceiling.read_mb_s * 1e6), ceiling.basis)
        }
        _ => String::new(),
    }
}

fn clock_error(ns: u64) -> String {
    if ns == 0 { String::new() } else { format!(", each good to {}", nanoseconds(ns)) }
}

fn spread(bench: &Bench) -> String {
    let mut ios: Vec<u64> = bench.result.seconds().iter().map(|bin| bin.ios).collect();
    if ios.len() < 2 {
        return "too few whole seconds to tell how steady it was".to_owned();
    }
    ios.sort_unstable();
    let median = ios[ios.len() / 2].max(1);
    let percent = |value: u64| 100 * value / median;
    format!("the slowest reached {} %, the fastest {} % of the median", percent(ios[0]), percent(ios[ios.len() - 1]))
}

fn temperature(bench: &Bench) -> Option<String> {
    let kelvin: Vec<u16> = bench.watched.temperature.iter().map(|&(_, kelvin)| kelvin).collect();
    let (first, last) = (kelvin.first()?, kelvin.last()?);
    let most = kelvin.iter().max()?;
    Some(format!("{} C at the start, {} C at most, {} C at the end", celsius(*first), celsius(*most), celsius(*last)))
}

fn errors(bench: &Bench) -> String {
    let errors = &bench.errors;
    if errors.failed + errors.recovered + errors.miscompares == 0 {
        return "none".to_owned();
    }
    let first = errors.first.as_deref().unwrap_or("");
    let miscompared = match errors.miscompares {
        0 => String::new(),
        1 => "1 block is NOT what was written, ".to_owned(),
        count => format!("{count} blocks are NOT what was written, "),
    };
    let text =
        format!("{miscompared}{} failed, {} recovered by a retry; first: {first}", errors.failed, errors.recovered);
    styled(if errors.failed + errors.miscompares > 0 { RED } else { YELLOW }, &text)
}
