//! The result of `bench` as fio's JSON, so that scripts that read fio's read ours.
//!
//! Field names, units and nesting are those of fio 3.x with `--output-format=json`: bandwidth in KiB/s as `bw` and in
//! bytes as `bw_bytes`, latencies in nanoseconds with percentiles keyed by `99.000000`, shares in per cent. Two things
//! are not fio's: `nvmetal` at the top says which drive, and whether it was emulated; and what there is no such thing as
//! here (submission latency beyond the doorbell, context switches of a libaio job) is 0.
#![forbid(unsafe_code)]

use nvmetal_driver::workload::result::BIN_NS;
use nvmetal_driver::workload::{Action, Direction, Histogram};
use serde_json::{Map, Value, json};

use crate::command::bench::Bench;

/// fio's default list.
const PERCENTILES: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];

/// The whole document.
pub fn document(bench: &Bench, name: Option<&str>) -> Value {
    let result = &bench.result;
    let runtime_ms = result.elapsed_ns / 1_000_000;
    let name = name.unwrap_or("nvmetal");
    let jobname = if bench.emulated { format!("EMULATED {name}") } else { name.to_owned() };
    let nothing = Direction::default();
    let (trim, others) =
        if bench.job.action == Action::Trim { (&result.other, &nothing) } else { (&nothing, &result.other) };
    let single = [result.read.ios, result.write.ios, trim.ios].iter().filter(|&&ios| ios > 0).count() == 1;
    let part = |direction: &Direction| {
        let bins = if single && direction.ios > 0 { whole_bins(bench) } else { Vec::new() };
        side(direction, result.elapsed_ns, &bins)
    };
    let latency = result.latency();
    let cpu = result.processor.map_or(0.0, |used| used.percent());
    let timestamp = humantime::parse_rfc3339(&bench.time)
        .ok()
        .and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok())
        .map_or(0, |since| since.as_secs());
    let lost = bench.errors.failed + bench.errors.miscompares;
    let job = json!({
        "jobname": jobname,
        "groupid": 0,
        // EIO, EILSEQ: what fio reports for I/O errors and for failed verification.
        "error": if bench.errors.miscompares > 0 { 84 } else if bench.errors.failed > 0 { 5 } else { 0 },
        "eta": 0,
        "elapsed": (runtime_ms + bench.job.ramp_ns / 1_000_000).div_ceil(1000),
        "job options": options(bench, name),
        "read": part(&result.read),
        "write": part(&result.write),
        "trim": part(trim),
        "sync": { "total_ios": 0, "lat_ns": latencies(&nothing.latency, false) },
        "job_runtime": runtime_ms * u64::from(result.queues),
        "usr_cpu": cpu,
        "sys_cpu": 0.0,
        "ctx": 0,
        "majf": 0,
        "minf": 0,
        "iodepth_level": depth_level(u64::from(result.iodepth)),
        "latency_ns": spread(&latency, 1, &[2, 4, 10, 20, 50, 100, 250, 500, 750, 1000], 1),
        "latency_us": spread(&latency, 1000, &[2, 4, 10, 20, 50, 100, 250, 500, 750, 1000], 1000),
        "latency_ms": spread(&latency, 1_000_000, &[2, 4, 10, 20, 50, 100, 250, 500, 750, 1000, 2000], 1_000_000),
        "latency_depth": result.iodepth,
        "latency_target": 0,
        "latency_percentile": 100.0,
        "latency_window": 0,
        "total_err": lost,
    });
    json!({
        "fio version": concat!("fio-3.36 (nvmetal ", env!("CARGO_PKG_VERSION"), ")"),
        "timestamp": timestamp,
        "timestamp_ms": timestamp * 1000,
        "time": bench.time,
        "nvmetal": {
            "emulated": bench.emulated,
            "device": bench.device,
            "others": { "ios": others.ios, "bytes": others.bytes },
        },
        "jobs": [job],
        "disk_util": [],
    })
}

fn options(bench: &Bench, name: &str) -> Value {
    let job = &bench.job;
    json!({
        "name": name,
        "filename": bench.device.address,
        "rw": super::bench::word(job),
        "bs": job.block_bytes.to_string(),
        "iodepth": job.iodepth.to_string(),
        "numjobs": job.numjobs.to_string(),
        "rwmixread": job.read_percent.to_string(),
    })
}

/// Whole bins only: the rate of a part of one says nothing.
fn whole_bins(bench: &Bench) -> Vec<(f64, f64)> {
    let whole = (bench.result.elapsed_ns / BIN_NS) as usize;
    let per_second = 1e9 / BIN_NS as f64;
    let rate = |(ios, bytes): (u64, u64)| (ios as f64 * per_second, bytes as f64 * per_second / 1024.0);
    bench.result.bins.iter().take(whole).map(|bin| rate((bin.ios, bin.bytes))).collect()
}

fn side(direction: &Direction, elapsed_ns: u64, bins: &[(f64, f64)]) -> Value {
    let seconds = elapsed_ns as f64 / 1e9;
    let per_second = |amount: u64| if seconds > 0.0 { amount as f64 / seconds } else { 0.0 };
    let bw_bytes = per_second(direction.bytes);
    let iops: Vec<f64> = bins.iter().map(|bin| bin.0).collect();
    let bw: Vec<f64> = bins.iter().map(|bin| bin.1).collect();
    let (iops_min, iops_max, iops_mean, iops_dev) = statistics(&iops);
    let (bw_min, bw_max, bw_mean, bw_dev) = statistics(&bw);
    let some = direction.ios > 0;
    json!({
        "io_bytes": direction.bytes,
        "io_kbytes": direction.bytes / 1024,
        "bw_bytes": bw_bytes as u64,
        "bw": (bw_bytes / 1024.0) as u64,
        "iops": per_second(direction.ios),
        "runtime": if some { elapsed_ns / 1_000_000 } else { 0 },
        "total_ios": direction.ios,
        "short_ios": 0,
        "drop_ios": 0,
        "slat_ns": latencies(&Histogram::new(), false),
        "clat_ns": latencies(&direction.latency, true),
        "lat_ns": latencies(&direction.latency, false),
        "bw_min": bw_min as u64,
        "bw_max": bw_max as u64,
        "bw_agg": if some { 100.0 } else { 0.0 },
        "bw_mean": bw_mean,
        "bw_dev": bw_dev,
        "bw_samples": bw.len(),
        "iops_min": iops_min as u64,
        "iops_max": iops_max as u64,
        "iops_mean": iops_mean,
        "iops_stddev": iops_dev,
        "iops_samples": iops.len(),
    })
}

fn statistics(values: &[f64]) -> (f64, f64, f64, f64) {
    if values.is_empty() {
        return (0.0, 0.0, 0.0, 0.0);
    }
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    let deviation = if values.len() > 1 { (squares / (count - 1.0)).sqrt() } else { 0.0 };
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    (least, most, mean, deviation)
}

fn latencies(histogram: &Histogram, with_percentiles: bool) -> Value {
    let count = histogram.count();
    let mut document = json!({
        "min": histogram.min().unwrap_or(0),
        "max": histogram.max().unwrap_or(0),
        "mean": histogram.mean().unwrap_or(0.0),
        "stddev": histogram.standard_deviation().unwrap_or(0.0),
        "N": count,
    });
    if with_percentiles && count > 0 {
        let list: Map<String, Value> = PERCENTILES
            .iter()
            .map(|&percent| (format!("{percent:.6}"), json!(histogram.percentile(percent).unwrap_or(0))))
            .collect();
        document["percentile"] = Value::Object(list);
    }
    document
}

/// All I/Os at the depth that the queue was kept at.
fn depth_level(depth: u64) -> Value {
    let mut levels = Map::new();
    for level in [1, 2, 4, 8, 16, 32, 64] {
        let (name, next) = if level == 64 { (">=64".to_owned(), u64::MAX) } else { (level.to_string(), level * 2) };
        levels.insert(name, json!(if (level..next).contains(&depth) { 100.0 } else { 0.0 }));
    }
    Value::Object(levels)
}

/// The share of I/Os up to each bound and above the one before, in per cent; what is below `from` is in another table.
fn spread(histogram: &Histogram, unit: u64, bounds: &[u64], from: u64) -> Value {
    let total = histogram.count().max(1) as f64;
    let mut shares = Map::new();
    let mut low = if from == 1 { 0 } else { unit };
    let in_range = |low: u64, high: u64| -> u64 {
        let within = histogram.classes().filter(|&(_, end, _)| end >= low && end < high);
        within.map(|(.., count)| count).sum()
    };
    for &bound in bounds {
        let high = bound * unit;
        shares.insert(bound.to_string(), json!(100.0 * in_range(low, high) as f64 / total));
        low = high;
    }
    if bounds.last() == Some(&2000) {
        shares.insert(">=2000".to_owned(), json!(100.0 * in_range(low, u64::MAX) as f64 / total));
    }
    Value::Object(shares)
}
