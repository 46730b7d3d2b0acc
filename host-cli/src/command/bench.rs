//! `nvmetal bench`: one workload, as fast as drive and link can, and what came of it.
#![forbid(unsafe_code)]

use std::time::Duration;

use clap::{Args, ValueEnum};
use nvmetal_driver::pci::link::{Ceiling, LinkPath};
use nvmetal_driver::workload::{Access, EndReason, Job, JobError, Limits, RunResult};
use nvmetal_driver::{ControllerOptions, Namespace};
use serde::Serialize;
use serde_json::{Value, json};

use crate::check::evidence::{IoErrors, Latency, Written};
use crate::device::Device;
use crate::drive::Drive;
use crate::error::{Error, Kind, Result};
use crate::exit::Exit;
use crate::interrupt::Stop;
use crate::measure::{self, Watched};
use crate::output::{Format, Output, note};
use crate::progress::Progress;
use crate::provenance::{self, DeviceFacts, HostFacts};
use crate::report::bench as text;
use crate::session::{Closed, Reach, Session, WaitArgument};
use crate::units::{parse_duration, parse_size};
use crate::written;

/// A workload, in fio's words.
#[derive(Debug, Args)]
pub struct Arguments {
    /// PCI address or kernel name of the drive, or `emulated[:MODEL,...]`
    device: String,
    #[command(flatten)]
    workload: Workload,
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

/// What is to be done.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Workload")]
struct Workload {
    /// Order of the blocks: read (one after the other) or randread (anywhere)
    #[arg(long, alias = "readwrite", value_enum, default_value = "randread", hide_possible_values = true)]
    rw: ReadWrite,
    /// Bytes of each I/O; 4k is 4096
    #[arg(long, alias = "blocksize", value_name = "SIZE", default_value = "4k", value_parser = parse_size)]
    bs: u64,
    /// I/Os in flight on each queue
    #[arg(long, value_name = "N", default_value_t = 32)]
    iodepth: u32,
    /// Queues, each with a thread of its own
    #[arg(long, value_name = "N", default_value_t = 1)]
    numjobs: u16,
    /// Time of the run, 5 s if no --size is given; a bare number is seconds
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    runtime: Option<Duration>,
    /// Time before it of which nothing is recorded
    #[arg(long, alias = "ramp_time", value_name = "TIME", default_value = "0", hide_default_value = true)]
    #[arg(value_parser = parse_duration)]
    ramp_time: Duration,
    /// Bytes of the region to work on; without --runtime it is gone through once
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    size: Option<u64>,
    /// Where the region begins
    #[arg(long, value_name = "SIZE", default_value = "0", hide_default_value = true, value_parser = parse_size)]
    offset: u64,
    /// The namespace; the first one if not given
    #[arg(long, short = 'n', value_name = "NSID")]
    namespace_id: Option<u32>,
    /// Seed of the random offsets
    #[arg(long, alias = "randseed", value_name = "N")]
    seed: Option<u64>,
    /// How to wait for completions: poll, interrupt, or hybrid (poll for a while, then sleep)
    #[arg(long, value_enum, value_name = "HOW", default_value = "poll", hide_possible_values = true)]
    wait: WaitArgument,
    /// Ring doorbells in memory, where the drive has that (physical ones hardly)
    #[arg(long)]
    shadow_doorbells: bool,
    /// Put the submission queues into the drive's own memory, where it has some (an experiment)
    #[arg(long)]
    sq_in_cmb: bool,
}

/// fio's words that mean nothing for a drive without a file system and kernel in between. They are taken, so that a
/// command line can be pasted, and said to have no effect.
#[derive(Debug, Args)]
struct FioWords {
    #[arg(long, hide = true)]
    name: Option<String>,
    #[arg(long, hide = true)]
    filename: Option<String>,
    #[arg(long, hide = true)]
    ioengine: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "1")]
    direct: Option<String>,
    #[arg(long = "group_reporting", alias = "group-reporting", hide = true, num_args = 0..=1, default_missing_value = "1")]
    group_reporting: Option<String>,
    #[arg(long = "time_based", alias = "time-based", hide = true, num_args = 0..=1, default_missing_value = "1")]
    time_based: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "1")]
    thread: Option<String>,
}

/// In which order blocks are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum ReadWrite {
    /// One after the other.
    Read,
    /// Anywhere.
    Randread,
}

impl Workload {
    /// The job for the engine.
    fn job(&self) -> Result<Job> {
        // E-12: a time is time based, a size ends when it is done, and a default time never overrides a given size.
        let runtime = match (self.runtime, self.size) {
            (Some(runtime), _) => Some(runtime),
            (None, Some(_)) => None,
            (None, None) => Some(Duration::from_secs(5)),
        };
        if runtime.is_some_and(|runtime| runtime.is_zero()) {
            return Err(Error::usage("a runtime of 0 measures nothing").remedy("Give --runtime a time above 0."));
        }
        if self.bs == 0 {
            return Err(Error::usage("a block size of 0 moves nothing").remedy("Give --bs a size, as in 4k."));
        }
        if self.iodepth == 0 || self.numjobs == 0 {
            return Err(JobError::Nothing.into());
        }
        let job = Job::new();
        Ok(Job {
            access: if self.rw == ReadWrite::Read { Access::Sequential } else { Access::Random },
            block_bytes: self.bs,
            iodepth: self.iodepth,
            numjobs: self.numjobs,
            offset_bytes: self.offset,
            size_bytes: self.size,
            limits: Limits {
                runtime_ns: runtime.map(|runtime| runtime.as_nanos() as u64),
                bytes: if runtime.is_none() { self.size } else { None },
                ..Limits::default()
            },
            ramp_ns: self.ramp_time.as_nanos() as u64,
            seed: self.seed.unwrap_or(job.seed),
            wait: self.wait.into(),
            ..job
        })
    }
}

impl FioWords {
    /// The words that were given.
    fn given(&self) -> Vec<&'static str> {
        [
            ("--name", self.name.is_some()),
            ("--filename", self.filename.is_some()),
            ("--ioengine", self.ioengine.is_some()),
            ("--direct", self.direct.is_some()),
            ("--group_reporting", self.group_reporting.is_some()),
            ("--time_based", self.time_based.is_some()),
            ("--thread", self.thread.is_some()),
        ]
        .into_iter()
        .filter_map(|(word, given)| given.then_some(word))
        .collect()
    }
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
    /// What was seen beside the run.
    pub watched: Watched,
    /// The most that the path can carry.
    pub ceiling: Option<Ceiling>,
    /// The commands that were sent.
    pub sent: Vec<nvmetal_driver::controller::SentCommand>,
}

/// Runs the workload.
pub fn run(arguments: &Arguments, out: &mut Output, stop: &Stop) -> Result<Exit> {
    out.only("bench", &[Format::Human, Format::Json])?;
    let job = arguments.workload.job()?;
    let given = arguments.fio.given();
    if !given.is_empty() {
        let (are, has) = if given.len() == 1 { ("is", "has") } else { ("are", "have") };
        note(&format!(
            "{} {are} fio's and {has} no effect here: nvmetal drives the whole raw drive itself",
            given.join(", ")
        ));
    }
    let device = Device::find(&arguments.device)?;
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
        on_drive(&drive, &job, arguments.workload.namespace_id, progress, stop).map(|bench| Bench {
            shadow_doorbells,
            sq_in_cmb,
            ..bench
        })
    };
    let closed = drive.close();
    finish(measured, closed, out, stop)
}

/// Everything that needs the open drive.
fn on_drive(drive: &Drive, job: &Job, nsid: Option<u32>, progress: Progress, stop: &Stop) -> Result<Bench> {
    let namespace = drive.namespace(nsid)?;
    let time = provenance::now();
    let sample = written::look(drive, namespace, region(job, &namespace))?;
    stop.check()?;
    let (result, watched) = measure::run(drive, namespace, job, progress, stop);
    let result = result?;
    let path = watched.links.last().cloned().or_else(|| drive.link_path());
    let mut latency = result.latency();
    // One direction of reads and writes together, as a person asks for "the latency".
    let all = nvmetal_driver::workload::Direction {
        ios: result.ios(),
        bytes: result.bytes(),
        latency: std::mem::take(&mut latency),
    };
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
        ceiling: path.as_ref().and_then(LinkPath::ceiling),
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
fn finish(measured: Result<Bench>, closed: Closed, out: &mut Output, stop: &Stop) -> Result<Exit> {
    if let Some(error) = &closed.error {
        note(&format!("giving the drive back: {}", error.message));
    }
    let bench = measured?;
    out.result(&bench.to_json(&closed), || text::human(&bench, &closed))?;
    let mut exit = match (bench.result.end, stop.exit()) {
        (EndReason::Interrupted, Some(exit)) => exit,
        _ => Exit::Pass,
    };
    if bench.errors.failed > 0 {
        exit = exit.and(Exit::RunTime);
    }
    Ok(closed.error.map_or(exit, |error| exit.and(error.kind.exit())))
}

impl Bench {
    /// The rate as a share of what the path can carry, in per cent; `None` where that is not known.
    pub fn share_percent(&self) -> Option<f64> {
        let ceiling = self.ceiling.as_ref()?;
        Some(Ceiling::share_percent(self.result.read_bytes_per_second() / 1e6, ceiling.read_mb_s))
    }

    fn to_json(&self, closed: &Closed) -> Value {
        let result = &self.result;
        let direction = |direction: &nvmetal_driver::workload::Direction| {
            json!({
                "ios": direction.ios,
                "bytes": direction.bytes,
                "latency_ns": measure::latency(direction, result.clock_error_ns),
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
            "iodepth": result.iodepth,
            "commands_per_io": result.commands_per_io,
            "per_second": {
                "ios": seconds.iter().map(|bin| bin.ios).collect::<Vec<_>>(),
                "bytes": seconds.iter().map(|bin| bin.bytes).collect::<Vec<_>>(),
            },
            "errors": self.errors,
            "written": self.written,
            "ceiling": self.ceiling,
            "share_percent": self.share_percent(),
            "temperature": self.watched.temperature.iter().map(|&(at_ns, kelvin)| json!({
                "at_ns": at_ns, "kelvin": kelvin,
            })).collect::<Vec<_>>(),
            "waiting": result.wait,
            "shadow_doorbells": self.shadow_doorbells,
            "sq_in_cmb": self.sq_in_cmb,
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
