//! What limits a rate: one line, with the evidence that says so.
//!
//! The order is that of certainty. A pace that was asked for and reached limits by itself; heat is told by the drive's own
//! counters; the link is at its end when nine tenths of what it can carry went over it. What is left is between the depth
//! and the drive: with so few I/Os in flight that hardly any waits for another (the usual latency is close to the
//! shortest), more of them would give more; where they do wait, it is the drive that they wait for. A processor that is
//! busy all the time says nothing of a queue that polls, so it is named only where completions are announced.
#![forbid(unsafe_code)]

use nvmetal_driver::Wait;
use nvmetal_driver::pci::link::Ceiling;
use nvmetal_driver::workload::{Job, Rate, RunResult};
use serde::Serialize;

use crate::measure::Watched;
use crate::units::{celsius, grouped, megabytes, nanoseconds};

/// From this share of the ceiling on, the link is the limit.
const LINK_PERCENT: f64 = 90.0;
/// A share of the ceiling above this says that the ceiling cannot be right.
const BELIEVABLE_PERCENT: f64 = 103.0;
/// A pace counts as reached from this share on.
const PACE_PERCENT: f64 = 99.0;
/// A median latency up to so many times the shortest has hardly any waiting in it.
const UNCROWDED: f64 = 1.5;
/// A thread that takes this much of a processor has nothing left.
const BUSY_PERCENT: f64 = 95.0;

/// What limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Limit {
    /// rate, temperature, link, cpu, depth, or drive.
    pub by: &'static str,
    /// Why that is known.
    pub evidence: String,
}

/// The share of the path's ceiling that was reached: in the direction that has more of its own ceiling.
pub fn share_percent(result: &RunResult, ceiling: &Ceiling) -> Option<f64> {
    let read = Ceiling::share_percent(result.read_bytes_per_second() / 1e6, ceiling.read_mb_s);
    let write = Ceiling::share_percent(result.write_bytes_per_second() / 1e6, ceiling.write_mb_s);
    Some(read.max(write)).filter(|share| share.is_finite() && *share > 0.0)
}

/// Decides; `None` without I/Os.
pub fn of(job: &Job, result: &RunResult, ceiling: Option<&Ceiling>, watched: &Watched) -> Option<Limit> {
    let latency = result.latency();
    let (shortest, usual) = (latency.min()?, latency.percentile(50.0)?);
    let because = |by, evidence| Some(Limit { by, evidence });
    if let Some(rate) = job.rate {
        let queues = f64::from(result.queues);
        let (asked, reached) = match rate {
            Rate::Ios(ios) => (ios as f64 * queues, result.iops()),
            Rate::Bytes(bytes) => (bytes as f64 * queues, result.bytes_per_second()),
        };
        if reached >= asked * PACE_PERCENT / 100.0 {
            return because("rate", "the rate that was asked for is reached".to_owned());
        }
    }
    if let Some(what) = watched.throttled() {
        let hottest = watched.temperature.iter().map(|&(_, kelvin)| kelvin).max();
        let at = hottest.map_or(String::new(), |kelvin| format!(", {} C at most", celsius(kelvin)));
        return because("temperature", format!("{what}{at}"));
    }
    if let Some((share, ceiling)) = ceiling.and_then(|ceiling| Some((share_percent(result, ceiling)?, ceiling)))
        && (LINK_PERCENT..=BELIEVABLE_PERCENT).contains(&share)
    {
        let most = megabytes(ceiling.read_mb_s * 1e6);
        return because("link", format!("{share:.0} % of the {most} that the path carries"));
    }
    if let Some(used) = result.processor.filter(|used| result.wait != Wait::Poll && used.percent() >= BUSY_PERCENT) {
        return because("cpu", format!("each thread took {:.0} % of a processor", used.percent()));
    }
    let in_flight = grouped(u128::from(result.iodepth) * u128::from(result.queues));
    let times = usual as f64 / shortest.max(1) as f64;
    let waits = format!("p50 {} is {times:.1} times the shortest of {}", nanoseconds(usual), nanoseconds(shortest));
    if times <= UNCROWDED {
        return because("depth", format!("with {in_flight} in flight hardly any waits for another: {waits}"));
    }
    because("drive", format!("{in_flight} in flight wait for each other: {waits}"))
}
