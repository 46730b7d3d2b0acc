//! `nvmetal validate`: is this drive, on this card, in this slot, good?
//!
//! The main job. It only reads. Phases: take the drive, ask who it is, look at its links and its SMART data, read it
//! sequentially, at random, and one block at a time, with temperature and links watched; then SMART again, and the drive
//! goes back. What was seen is [`Evidence`]; the judging is [`crate::check`]'s.
//!
//! A phase that fails does not make the others pass: what it would have shown is missing, and its checks say so.
#![forbid(unsafe_code)]

use std::time::Duration;

use clap::Args;
use nvmetal_core::describe::Describe;
use nvmetal_core::log::Smart;
use nvmetal_driver::controller::SentCommand;
use nvmetal_driver::pci::link::{LinkErrors, LinkPath, LinkState};
use nvmetal_driver::workload::{Access, Job, Limits};
use nvmetal_driver::{ControllerOptions, DriverError, Namespace, Wait};
use serde::Serialize;
use serde_json::{Value, json};
use zerocopy::IntoBytes;

use crate::check::evidence::{Evidence, Identity, Run, Wishes, Written};
use crate::check::{Report, Status, Verdict};
use crate::device::Device;
use crate::drive::{Drive, Way};
use crate::error::{Error, Kind, Result};
use crate::exit::Exit;
use crate::interrupt::Stop;
use crate::output::{Format, Output};
use crate::progress::Progress;
use crate::provenance::{self, DeviceFacts, HostFacts};
use crate::report::validate as text;
use crate::session::{Closed, WaitArgument};
use crate::smart_change::{self, Change};
use crate::units::{parse_iops, parse_rate};
use crate::{error_log, measure, page, written};

/// What is to be validated, and how.
#[derive(Debug, Args)]
pub struct Arguments {
    /// PCI address or kernel name of the drive, or `emulated[:MODEL,...]`
    device: String,
    /// Take about fifteen seconds instead of a minute
    #[arg(long)]
    quick: bool,
    /// End with exit code 4 when the verdict is WARN
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    expectations: Expectations,
    /// The namespace to read; the first one if not given
    #[arg(long, short = 'n', value_name = "NSID")]
    namespace_id: Option<u32>,
    /// How to wait for completions: poll, interrupt, or hybrid (poll for a while, then sleep)
    #[arg(long, value_enum, value_name = "HOW", default_value = "poll", hide_possible_values = true)]
    #[arg(hide_default_value = true)]
    wait: WaitArgument,
    /// Say what would be done, and open nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    way: Way,
}

/// What the user expects.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Expectations")]
struct Expectations {
    /// The slot may be slower than the drive: judge the drive by the slot
    #[arg(long)]
    accept_slot: bool,
    /// Sequential read speed that the drive should reach: 3500MB/s, or 3500 for MB/s
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    expect_read: Option<f64>,
    /// Sequential write speed that the drive should reach: nothing that only reads can tell
    #[arg(long, hide = true, value_name = "RATE", value_parser = parse_rate)]
    expect_write: Option<f64>,
    /// Random reads of 4 KiB per second that the drive should reach: 500000 or 500k
    #[arg(long, value_name = "IOPS", value_parser = parse_iops)]
    expect_riops: Option<f64>,
}

/// How long each run of reads takes at most.
#[derive(Debug, Clone, Copy)]
struct Durations {
    sequential: Duration,
    random: Duration,
    latency: Duration,
}

impl Durations {
    const FULL: Self =
        Self { sequential: Duration::from_secs(20), random: Duration::from_secs(20), latency: Duration::from_secs(10) };
    const QUICK: Self =
        Self { sequential: Duration::from_secs(5), random: Duration::from_secs(5), latency: Duration::from_secs(3) };
}

/// Random reads go on so many queues, where the drive and the machine have them: one alone does not load a fast drive.
const RANDOM_QUEUES: u16 = 4;
/// In virtual time a run also ends after so many reads of each queue: a virtual second of a fast drive is a real one.
const VIRTUAL_IOS: u64 = 400_000;

/// A phase of the run.
#[derive(Debug, Clone, Serialize)]
pub struct Phase {
    /// Its name.
    pub name: &'static str,
    /// When it began, in seconds of the drive's clock.
    pub started_s: f64,
    /// How long it took.
    pub seconds: f64,
    /// What went wrong in it.
    pub error: Option<String>,
}

/// The kernel's part in a run through its driver.
#[derive(Debug)]
pub struct Kernel {
    /// In a few words.
    pub standing: String,
    /// With all that is known.
    json: Value,
}

/// A finished run.
#[derive(Debug)]
pub struct Validation {
    /// The drive.
    pub device: DeviceFacts,
    /// Whether it was the emulator.
    pub emulated: bool,
    /// How the kernel has the drive, where the way led through it.
    pub kernel: Option<Kernel>,
    /// The machine.
    pub host: HostFacts,
    /// When it began.
    pub time: String,
    /// What was seen.
    pub evidence: Evidence,
    /// What it means.
    pub report: Report,
    /// What was done.
    pub phases: Vec<Phase>,
    /// The commands that were sent.
    pub sent: Vec<SentCommand>,
    /// How the run was ended from outside, if it was.
    pub interrupted: Option<Exit>,
    /// The clock that times were taken from.
    pub clock: &'static str,
    /// What stopped the run before its end.
    stopped: Option<Exit>,
}

/// Validates the drive.
pub fn run(arguments: &Arguments, out: &mut Output, stop: &Stop) -> Result<Exit> {
    out.only("validate", &[Format::Human, Format::Json])?;
    if arguments.expectations.expect_write.is_some() {
        return Err(Error::usage("--expect-write cannot be judged: validate only reads").remedy("Leave it out."));
    }
    let device = Device::find(&arguments.device)?;
    if arguments.dry_run {
        let document = json!({ "schema": "nvmetal.validate/1", "dry_run": true, "device": device.to_string() });
        out.result(&document, || text::plan(&device, arguments.quick, arguments.way.through.via))?;
        return Ok(Exit::Pass);
    }
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get() as u16);
    let drive = Drive::open(
        &device,
        &arguments.way,
        ControllerOptions {
            io_queues: RANDOM_QUEUES,
            interrupts: Wait::from(arguments.wait).needs_interrupts(),
            ..ControllerOptions::default()
        },
    )?;
    let virtual_time = drive.clock().is_virtual();
    let queues = if virtual_time { RANDOM_QUEUES } else { RANDOM_QUEUES.min(processors) };
    let examination = Examination {
        drive: &drive,
        stop,
        arguments,
        queues: queues.min(drive.io_queues()).max(1),
        started_ns: drive.clock().now_ns(),
        phases: Vec::new(),
        stopped: None,
        evidence: Evidence::default(),
    };
    let validation = examination.run();
    let closed = drive.close();
    let validation = validation?;
    out.result(&validation.to_json(&closed), || text::human(&validation, &closed))?;
    let verdict = validation.report.verdict.exit(arguments.strict);
    let reasons = [validation.interrupted, validation.stopped, closed.error.as_ref().map(|error| error.kind.exit())];
    Ok(reasons.into_iter().flatten().fold(verdict, Exit::and))
}

/// A run in progress.
struct Examination<'a> {
    drive: &'a Drive,
    stop: &'a Stop,
    arguments: &'a Arguments,
    queues: u16,
    started_ns: u64,
    phases: Vec<Phase>,
    stopped: Option<Exit>,
    evidence: Evidence,
}

impl Examination<'_> {
    fn run(mut self) -> Result<Validation> {
        let time = provenance::now();
        let expectations = &self.arguments.expectations;
        self.evidence.wishes = Wishes {
            read_bytes_per_second: expectations.expect_read,
            write_bytes_per_second: expectations.expect_write,
            read_iops: expectations.expect_riops,
            accept_slot: expectations.accept_slot,
        };
        let namespace = self.drive.namespace(self.arguments.namespace_id)?;
        self.phase("identity", |this| {
            this.identity(&namespace);
            Ok(())
        });
        let before = self.phase("link", |this| Ok(this.link())).flatten();
        self.phase("smart", Self::smart_before);
        let logged_before = self.evidence.error_log.take();
        self.read_phases(namespace);
        self.phase("smart after", Self::smart_after);
        self.error_log_after(logged_before);
        self.link_after(before.as_ref());
        Ok(self.finish(&namespace, time))
    }

    fn clock_s(&self) -> f64 {
        self.drive.clock().now_ns().saturating_sub(self.started_ns) as f64 / 1e9
    }

    /// Runs a phase, unless the run was stopped before; notes how long it took and what went wrong.
    fn phase<T>(&mut self, name: &'static str, work: impl FnOnce(&mut Self) -> Result<T, DriverError>) -> Option<T> {
        if self.stopped.is_some() || self.stop.is_set() {
            return None;
        }
        let started_s = self.clock_s();
        let result = work(self);
        let error = result.as_ref().err().map(ToString::to_string);
        self.phases.push(Phase { name, started_s, seconds: self.clock_s() - started_s, error });
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.failed(name, error);
                None
            }
        }
    }

    /// A drive that is lost, or that breaks the protocol, ends the run; an error status does not.
    fn failed(&mut self, phase: &str, error: DriverError) {
        log::info!("{phase}: {error}");
        if error.status().is_some() {
            return;
        }
        let text = error.to_string();
        let error = Error::from(error);
        self.stopped = Some(error.kind.exit());
        if matches!(error.kind, Kind::DeviceLost | Kind::TimedOut | Kind::Device) {
            self.evidence.lost = Some(text);
        }
    }

    fn identity(&mut self, namespace: &Namespace) {
        let identify = self.drive.admin().identify();
        let threshold = |kelvin: u16| (kelvin != 0).then_some(kelvin);
        self.evidence.temperature.warning = threshold(identify.wctemp.get());
        self.evidence.temperature.critical = threshold(identify.cctemp.get());
        self.evidence.identity = Some(Identity {
            model: provenance::text(&identify.mn),
            serial: provenance::text(&identify.sn),
            firmware: provenance::text(&identify.fr),
            capacity_bytes: namespace.bytes(),
            lba_bytes: namespace.lba_bytes() as u32,
            serial_after: None,
        });
    }

    fn link(&mut self) -> Option<LinkErrors> {
        self.evidence.link.path = self.drive.link_path();
        Some(self.drive.link_errors(self.evidence.link.path.as_ref()?))
    }

    fn link_after(&mut self, before: Option<&LinkErrors>) {
        let (Some(before), Some(path)) = (before, &self.evidence.link.path) else { return };
        self.evidence.link.errors = Some(self.drive.link_errors(path).since(before));
    }

    fn smart_before(&mut self) -> Result<(), DriverError> {
        let smart = self.drive.admin().smart()?;
        self.sample_temperature(smart.composite_temperature.get());
        self.evidence.smart_before = Some(*smart);
        self.evidence.error_log = match error_log::read(self.drive.admin()) {
            Ok(entries) => Some(entries),
            Err(error) if error.status().is_some() => None,
            Err(error) => return Err(error),
        };
        Ok(())
    }

    fn smart_after(&mut self) -> Result<(), DriverError> {
        let smart = self.drive.admin().smart()?;
        self.sample_temperature(smart.composite_temperature.get());
        self.evidence.smart_after = Some(*smart);
        let again = self.drive.admin().identify_controller()?;
        if let Some(identity) = &mut self.evidence.identity {
            identity.serial_after = Some(provenance::text(&again.sn));
        }
        Ok(())
    }

    fn error_log_after(&mut self, before: Option<Vec<crate::check::evidence::LoggedError>>) {
        let after = self.phase("error log", |this| error_log::read(this.drive.admin()));
        self.evidence.error_log = match (before, after) {
            (Some(before), Some(mut after)) => {
                error_log::mark_new(&before, &mut after);
                Some(after)
            }
            // What was there before can still be told, though not what is new.
            (before, None) => before,
            (None, after) => after,
        };
    }

    fn sample_temperature(&mut self, kelvin: u16) {
        if kelvin != 0 {
            let now_s = self.clock_s();
            self.evidence.temperature.samples.push((now_s, kelvin));
        }
    }

    fn read_phases(&mut self, namespace: Namespace) {
        let durations = if self.arguments.quick { Durations::QUICK } else { Durations::FULL };
        let job = |access, block_bytes, iodepth, numjobs, duration: Duration| Job {
            access,
            block_bytes,
            iodepth,
            numjobs,
            limits: Limits { runtime_ns: Some(duration.as_nanos() as u64), ..self.limits() },
            wait: self.arguments.wait.into(),
            ..Job::new()
        };
        let sequential = job(Access::Sequential, 128 << 10, 32, 1, durations.sequential);
        let random = job(Access::Random, 4096, 32, self.queues, durations.random);
        let latency = job(Access::Random, 4096, 1, 1, durations.latency);
        // What the sequential run will read at the very most; what lies behind it does not matter to it.
        let reach = (durations.sequential.as_secs() * 16_000_000_000) >> namespace.lba_shift;
        let written_there = self.phase("written?", |this| this.written(namespace, 0..reach.min(namespace.blocks)));
        let written_all = self.phase("written?", |this| this.written(namespace, 0..namespace.blocks));
        self.evidence.sequential_read = self.reads("sequential read", namespace, &sequential, written_there);
        self.evidence.random_read = self.reads("random read", namespace, &random, written_all.clone());
        self.evidence.latency = self.reads("latency", namespace, &latency, written_all);
    }

    /// In virtual time the number of reads is limited, too.
    fn limits(&self) -> Limits {
        let ios = self.drive.clock().is_virtual().then_some(VIRTUAL_IOS);
        Limits { ios, ..Limits::default() }
    }

    fn written(&mut self, namespace: Namespace, region: std::ops::Range<u64>) -> Result<Written, DriverError> {
        let sample = written::look(self.drive, namespace, region)?;
        self.evidence.samples.add(&sample.errors);
        Ok(sample.written)
    }

    fn reads(&mut self, name: &'static str, namespace: Namespace, job: &Job, written: Option<Written>) -> Option<Run> {
        self.phase(name, |this| {
            let (result, watched) =
                measure::run(this.drive, namespace, job, Progress::new(name, job.limits.runtime_ns), None, this.stop);
            // A drive that is gone has no link to be judged; what it had before is known.
            this.evidence.link.under_load.extend(watched.links.into_iter().filter(is_up));
            for (at_ns, kelvin) in watched.temperature {
                let at_s = at_ns.saturating_sub(this.started_ns) as f64 / 1e9;
                this.evidence.temperature.samples.push((at_s, kelvin));
            }
            Ok(measure::evidence(job, &result?, written.unwrap_or_default()))
        })
    }

    fn finish(self, namespace: &Namespace, time: String) -> Validation {
        let evidence = self.evidence;
        let path = evidence.link.under_load.last().or(evidence.link.path.as_ref());
        Validation {
            device: DeviceFacts::of(self.drive, Some(namespace), path),
            emulated: self.drive.info().emulated,
            kernel: self.drive.kernel().map(|kernel| Kernel { standing: kernel.standing(), json: kernel.to_json() }),
            host: HostFacts::here(),
            time,
            report: Report::of(&evidence),
            evidence,
            phases: self.phases,
            sent: self.drive.sent(),
            interrupted: self.stop.exit(),
            clock: self.drive.clock().name(),
            stopped: self.stopped,
        }
    }
}

/// Whether the drive's own link is there.
fn is_up(path: &LinkPath) -> bool {
    path.drive_hop().is_none_or(|hop| hop.state() == LinkState::Up)
}

impl Validation {
    /// The verdict.
    pub fn verdict(&self) -> Verdict {
        self.report.verdict
    }

    /// What the run has changed in the health log; `None` where it was not read twice.
    pub fn smart_changes(&self) -> Option<Vec<Change>> {
        let (before, after) = (self.evidence.smart_before.as_ref()?, self.evidence.smart_after.as_ref()?);
        Some(smart_change::between(before, after))
    }

    fn to_json(&self, closed: &Closed) -> Value {
        let evidence = &self.evidence;
        let smart =
            |smart: &Option<Smart>| smart.as_ref().map(|smart| page::fields(&Smart::DESCRIPTOR, smart.as_bytes()));
        let not_tested: Vec<_> = self.report.with(Status::NotTested).map(|check| check.id).collect();
        json!({
            "schema": "nvmetal.validate/1",
            "emulated": self.emulated,
            "nvmetal": env!("CARGO_PKG_VERSION"),
            "time": self.time,
            "device": self.device,
            "host": self.host,
            "verdict": self.verdict(),
            "checks": self.report.checks,
            "not_tested": not_tested,
            "interrupted": self.interrupted.is_some(),
            "lost": evidence.lost,
            "wishes": evidence.wishes,
            "runs": {
                "sequential_read": evidence.sequential_read,
                "random_read": evidence.random_read,
                "latency": evidence.latency,
            },
            "temperature": evidence.temperature,
            "smart": {
                "before": smart(&evidence.smart_before),
                "after": smart(&evidence.smart_after),
                "changed": self.smart_changes(),
            },
            "link": {
                "path": evidence.link.path,
                "under_load": evidence.link.under_load.last(),
                "readings_under_load": evidence.link.under_load.len(),
                "errors": evidence.link.errors,
                "ceiling": crate::check::ceiling(evidence),
            },
            "phases": self.phases,
            "clock": self.clock,
            "kernel": self.kernel.as_ref().map(|kernel| &kernel.json),
            "read_only": true,
            "commands_sent": self.sent,
            "closed": closed,
        })
    }
}
