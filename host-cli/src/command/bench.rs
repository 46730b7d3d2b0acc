//! `nvmetal bench`: one workload, as fast as drive and link can, and what came of it.
#![forbid(unsafe_code)]

mod job_file;
pub mod profile;
mod words;

use std::time::Duration;

use clap::Args;
use nvmetal_driver::pci::link::{Ceiling, LinkPath};
use nvmetal_driver::workload::result::BIN_NS;
use nvmetal_driver::workload::{Direction, EndReason, Job, RunResult};
use nvmetal_driver::{ControllerOptions, Namespace};
use serde_json::{Value, json};

use crate::check::evidence::{IoErrors, Latency, Written};
use crate::device::Device;
use crate::drive::Drive;
use crate::error::{Error, Kind, Result};
use crate::exit::Exit;
use crate::gate::{Passed, Permission};
use crate::interrupt::Stop;
use crate::limit::{self, Limit};
use crate::measure::{self, Watched};
use crate::output::{Format, Output, note};
use crate::progress::Progress;
use crate::provenance::{self, DeviceFacts, HostFacts};
use crate::report::{bench as text, fio};
use crate::session::{Closed, Reach, Session};
use crate::units::parse_duration;
use crate::written::{self, Sample};

use job_file::{Section, Source};
use words::{FioWords, Workload};

/// A workload, in fio's words.
#[derive(Debug, Clone, Args)]
pub struct Arguments {
    /// PCI address or kernel name of the drive, or `emulated[:MODEL,...]`
    device: String,
    /// A known test: fio-seq, cdm6, cdm8, cdm8-nvme, as-ssd, qd-sweep, bs-sweep; --runtime is that of each row
    #[arg(long, value_enum, value_name = "NAME", hide_possible_values = true, conflicts_with = "job")]
    profile: Option<profile::Name>,
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    workload: Workload,
    #[command(flatten)]
    permission: Permission,
    /// Time between two looks at temperature, power state and links; 1 s at most
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    sample_interval: Option<Duration>,
    /// Say what would be run, and open nothing
    #[arg(long)]
    dry_run: bool,
    /// Where the run stands as a line after each TIME, instead of a line that renews itself
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    status_interval: Option<Duration>,
    #[command(flatten)]
    reach: Reach,
    #[command(flatten)]
    fio: FioWords,
}

/// A finished run with everything that belongs to it.
#[derive(Debug)]
pub struct Bench {
    /// Whether it was the emulator.
    pub emulated: bool,
    /// The drive.
    pub device: DeviceFacts,
    /// The machine.
    pub host: HostFacts,
    /// When it began.
    pub time: String,
    /// What was done.
    pub job: Job,
    /// What came of it.
    pub result: RunResult,
    /// The latencies of all I/Os.
    pub latency: Latency,
    /// What went wrong.
    pub errors: IoErrors,
    /// Whether the blocks had been written before.
    pub written: Written,
    /// Whether doorbells were rung in memory.
    pub shadow_doorbells: bool,
    /// Whether the submission queues lay in the drive's own memory.
    pub sq_in_cmb: bool,
    /// Whether data moved at all.
    pub data_moved: bool,
    /// What was seen beside the run.
    pub watched: Watched,
    /// The most that the path can carry.
    pub ceiling: Option<Ceiling>,
    /// What was overwritten, for a run that writes.
    pub gate: Option<Passed>,
    /// What limits the rate.
    pub limit: Option<Limit>,
    /// The commands that were sent.
    pub sent: Vec<nvmetal_driver::controller::SentCommand>,
}

/// Runs the workload.
pub fn run(arguments: &Arguments, out: &mut Output, stop: &Stop) -> Result<Exit> {
    if let Some(name) = arguments.profile {
        out.only("bench --profile", &[Format::Human, Format::Json])?;
        return profile::run(name, arguments, out, stop);
    }
    out.only("bench", &[Format::Human, Format::Json, Format::Fio, Format::Csv])?;
    let Some(path) = &arguments.source.job else { return one(arguments, out, stop) };
    let jobs = job_file::read(path, arguments.source.section.as_deref())?;
    if jobs.len() > 1 && out.format != Format::Human {
        return Err(Error::usage(format!(
            "{} has {} jobs, and this form of output holds one",
            path.display(),
            jobs.len()
        ))
        .remedy("Choose one with --section NAME."));
    }
    let mut exit = Exit::Pass;
    for Section { workload, fio } in jobs {
        stop.check()?;
        let source = Source::default();
        exit = exit.and(one(&Arguments { workload, fio, source, ..arguments.clone() }, out, stop)?);
    }
    Ok(exit)
}

/// Runs one workload.
fn one(arguments: &Arguments, out: &mut Output, stop: &Stop) -> Result<Exit> {
    let job = arguments.workload.job()?;
    let given = arguments.fio.given();
    if !given.is_empty() {
        let (are, has) = if given.len() == 1 { ("is", "has") } else { ("are", "have") };
        note(&format!(
            "{} {are} fio's and {has} no effect here: nvmetal drives the whole raw drive itself",
            given.join(", ")
        ));
    }
    arguments.workload.remarks().iter().for_each(|remark| note(remark));
    let device = Device::find(&arguments.device)?;
    if job.writes() {
        arguments.permission.asked_for(&text::label(&job))?;
    }
    if arguments.dry_run {
        let document =
            json!({ "schema": "nvmetal.bench/1", "dry_run": true, "device": device.to_string(), "job": job });
        out.result(&document, || format!("Would run {} on {device}; nothing was opened.\n", text::shape(&job)))?;
        return Ok(Exit::Pass);
    }
    let options = ControllerOptions {
        io_queues: job.numjobs.max(1),
        interrupts: job.wait.needs_interrupts(),
        shadow_doorbells: arguments.workload.shadow_doorbells,
        sq_in_cmb: arguments.workload.sq_in_cmb,
        ..ControllerOptions::default()
    };
    let session = Session::open(&device, &arguments.reach, options)?;
    let shadow_doorbells = session.controller.has_shadow_doorbells();
    let sq_in_cmb = session.controller.has_sq_in_cmb();
    let drive = Drive::from(session);
    let measured = if arguments.workload.shadow_doorbells && !shadow_doorbells {
        Err(Error::new(Kind::Unsupported, format!("{device} has no shadow doorbells (Doorbell Buffer Config)"))
            .remedy("Leave out --shadow-doorbells; `emulated:ideal,shadow-doorbells=yes` has them."))
    } else if arguments.workload.sq_in_cmb && !sq_in_cmb {
        Err(Error::new(
            Kind::Unsupported,
            format!("{device} has no controller memory buffer for submission queues that could be used"),
        )
        .remedy("Leave out --sq-in-cmb; `emulated:ideal,cmb=1MiB` has one."))
    } else {
        let progress = Progress::new(text::label(&job), job.limits.runtime_ns).every(arguments.status_interval);
        let data_moved = device.moves_data();
        on_drive(&drive, &job, arguments, progress, stop).map(|bench| Bench {
            shadow_doorbells,
            sq_in_cmb,
            data_moved,
            ..bench
        })
    };
    let closed = drive.close();
    finish(measured, closed, arguments.fio.name.as_deref(), out, stop)
}

/// Everything that needs the open drive.
fn on_drive(drive: &Drive, job: &Job, arguments: &Arguments, progress: Progress, stop: &Stop) -> Result<Bench> {
    let namespace = drive.namespace(arguments.workload.namespace_id)?;
    let time = provenance::now();
    // Only what reads from the flash depends on whether something was ever written there.
    let sample = match job.read_percent {
        100 if !job.writes() => written::look(drive, namespace, region(job, &namespace))?,
        _ => Sample::default(),
    };
    stop.check()?;
    let label = text::label(job);
    let gate = if job.writes() { Some(arguments.permission.pass(drive, namespace, &label)?) } else { None };
    let (result, watched) = measure::run(drive, namespace, job, progress, arguments.sample_interval, stop);
    let result = result?;
    let path = watched.links.last().cloned().or_else(|| drive.link_path());
    let mut latency = result.latency();
    // One direction of reads and writes together, as a person asks for "the latency".
    let all = Direction { ios: result.ios(), bytes: result.bytes(), latency: std::mem::take(&mut latency) };
    Ok(Bench {
        emulated: drive.info().emulated,
        device: DeviceFacts::of(drive, Some(&namespace), path.as_ref()),
        host: HostFacts::here(),
        time,
        job: job.clone(),
        latency: measure::latency(&all, result.clock_error_ns),
        errors: {
            let mut errors = sample.errors;
            errors.add(&measure::errors(&result));
            errors
        },
        written: sample.written,
        shadow_doorbells: false,
        sq_in_cmb: false,
        data_moved: true,
        limit: limit::of(job, &result, path.as_ref().and_then(LinkPath::ceiling).as_ref(), &watched),
        ceiling: path.as_ref().and_then(LinkPath::ceiling),
        gate,
        watched,
        sent: drive.sent(),
        result,
    })
}

/// The blocks that a job may read.
fn region(job: &Job, namespace: &Namespace) -> std::ops::Range<u64> {
    let first = (job.offset_bytes >> namespace.lba_shift).min(namespace.blocks);
    let blocks = job.size_bytes.map_or(namespace.blocks, |bytes| bytes >> namespace.lba_shift);
    first..first.saturating_add(blocks).min(namespace.blocks)
}

/// Shows the result, or the error; and what became of the drive either way.
fn finish(measured: Result<Bench>, closed: Closed, name: Option<&str>, out: &mut Output, stop: &Stop) -> Result<Exit> {
    if let Some(error) = &closed.error {
        note(&format!("giving the drive back: {}", error.message));
    }
    let bench = measured?;
    let document = bench.to_json(&closed);
    match out.format {
        Format::Fio => {
            out.save(&document)?;
            out.print(&crate::output::pretty(&fio::document(&bench, name)))?;
        }
        Format::Csv => {
            out.save(&document)?;
            out.print(&text::csv(&bench))?;
        }
        _ => out.result(&document, || text::human(&bench, &closed))?,
    }
    let mut exit = match (bench.result.end, stop.exit()) {
        (EndReason::Interrupted, Some(exit)) => exit,
        _ => Exit::Pass,
    };
    if bench.errors.failed > 0 {
        exit = exit.and(Exit::RunTime);
    }
    if bench.errors.miscompares > 0 {
        exit = exit.and(Exit::Miscompare);
    }
    Ok(closed.error.map_or(exit, |error| exit.and(error.kind.exit())))
}

impl Bench {
    /// The rate as a share of what the path can carry, in per cent; `None` where that is not known.
    pub fn share_percent(&self) -> Option<f64> {
        let ceiling = self.ceiling.as_ref()?;
        limit::share_percent(&self.result, ceiling)
    }

    fn to_json(&self, closed: &Closed) -> Value {
        let result = &self.result;
        let direction = |direction: &Direction| {
            json!({
                "ios": direction.ios,
                "bytes": direction.bytes,
                "latency_ns": measure::latency(direction, result.clock_error_ns),
                // Every class that holds something: smallest value, largest value, how many.
                "histogram_ns": direction.latency.classes().collect::<Vec<_>>(),
            })
        };
        let seconds = result.seconds();
        json!({
            "schema": "nvmetal.bench/1",
            "emulated": self.emulated,
            "nvmetal": env!("CARGO_PKG_VERSION"),
            "time": self.time,
            "device": self.device,
            "host": self.host,
            "job": self.job,
            "end": result.end,
            "elapsed_ns": result.elapsed_ns,
            "iops": result.iops(),
            "bytes_per_second": result.bytes_per_second(),
            "read": direction(&result.read),
            "write": direction(&result.write),
            "other": direction(&result.other),
            "verified": result.verified,
            "miscompared": result.errors.miscompared,
            "gate": self.gate,
            "limit": self.limit,
            "course": {
                "bin_ns": BIN_NS,
                "ios": result.bins.iter().map(|bin| bin.ios).collect::<Vec<_>>(),
                "bytes": result.bins.iter().map(|bin| bin.bytes).collect::<Vec<_>>(),
                "p99_ns": result.p99_ns,
            },
            "smart": self.watched.smart_changes(),
            "iodepth": result.iodepth,
            "commands_per_io": result.commands_per_io,
            "per_second": {
                "ios": seconds.iter().map(|bin| bin.ios).collect::<Vec<_>>(),
                "bytes": seconds.iter().map(|bin| bin.bytes).collect::<Vec<_>>(),
            },
            "errors": self.errors,
            "recoveries": result.recoveries,
            "written": self.written,
            "ceiling": self.ceiling,
            "share_percent": self.share_percent(),
            "samples": self.watched.samples,
            "temperature": self.watched.temperature.iter().map(|&(at_ns, kelvin)| json!({
                "at_ns": at_ns, "kelvin": kelvin,
            })).collect::<Vec<_>>(),
            "waiting": result.wait,
            "shadow_doorbells": self.shadow_doorbells,
            "sq_in_cmb": self.sq_in_cmb,
            "data_moved": self.data_moved,
            "clock": result.clock,
            "clock_error_ns": result.clock_error_ns,
            "processor": result.processor.map(|used| json!({
                "cpu_ns": used.cpu_ns,
                "wall_ns": used.wall_ns,
                "percent": used.percent(),
            })),
            "commands_sent": self.sent,
            "closed": closed,
        })
    }
}
