//! The result of `bench` for people.
#![forbid(unsafe_code)]

use nvmetal_driver::Wait;
use nvmetal_driver::workload::{Access, EndReason, Job};

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
    let order = match job.access {
        Access::Sequential => "read",
        Access::Random => "randread",
    };
    format!("{order} {}", block(job.block_bytes))
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
    let latency = &bench.latency;
    if result.ios() > 0 {
        let ns = nanoseconds;
        sheet.row(
            "latency",
            &format!(
                "mean {}, p50 {}, p90 {}, p99 {}, p99.9 {}, p99.99 {}",
                ns(latency.mean),
                ns(latency.p50),
                ns(latency.p90),
                ns(latency.p99),
                ns(latency.p999),
                ns(latency.p9999)
            ),
        );
        sheet.row("", &format!("from {} to {}{}", ns(latency.min), ns(latency.max), clock_error(latency.clock_error)));
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
    if let Written::Never(why) = &bench.written {
        let text = format!("never written ({why}): this is the speed of link and controller, not of the flash");
        sheet.row("note", &styled(YELLOW, &text));
    }
    sheet.row("errors", &errors(bench));
    sheet.row("sent", &sent(&bench.sent));
    if let Some(back) = &closed.given_back {
        let name = back.controller.as_ref().map_or(String::new(), |name| format!(" as {name}"));
        sheet.row("drive", &format!("given back to {}{name}", back.driver));
    }
    format!("{}\n{}", bold(&headline(bench)), sheet.text())
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
            format!(", ~{share:.0} % of the path's {} ({})", megabytes(ceiling.read_mb_s * 1e6), ceiling.basis)
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
    if errors.failed + errors.recovered == 0 {
        return "none".to_owned();
    }
    let first = errors.first.as_deref().unwrap_or("");
    let text = format!("{} failed, {} recovered by a retry; first: {first}", errors.failed, errors.recovered);
    styled(if errors.failed > 0 { RED } else { YELLOW }, &text)
}
