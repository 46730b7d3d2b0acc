//! Looks at a drive that the kernel holds, without taking it: identity, SMART data, and two seconds of random reads by
//! each engine. `via_kernel nvme0` or `via_kernel 0000:03:00.0`; as root. Nothing is written.
#![forbid(unsafe_code)]

use std::error::Error;
use std::ops::ControlFlow;

use nvmetal_core::command::SubmissionEntry;
use nvmetal_driver::Admin;
use nvmetal_driver::controller::AdminData;
use nvmetal_driver::kernel::{BlockTarget, EngineChoice, KernelController, NOT_JUDGED, run};
use nvmetal_driver::pci::Sysfs;
use nvmetal_driver::pci::device_spec::resolve;
use nvmetal_driver::workload::{Job, Limits, Observer, Tick};

fn main() -> Result<(), Box<dyn Error>> {
    let device = std::env::args().nth(1).unwrap_or_else(|| "nvme0".to_owned());
    let sysfs = Sysfs::host();
    let resolved = resolve(&sysfs, &device)?;
    let controller = KernelController::open(&sysfs, resolved.address)?;
    identity(&controller)?;
    health(&controller)?;
    refusal(&controller);
    for nsid in controller.active_namespaces()? {
        let namespace = controller.namespace(nsid)?;
        println!("namespace {nsid}: {} blocks of {} bytes", namespace.blocks, namespace.lba_bytes());
        let target = controller.block(nsid, None)?;
        println!("  {}: {:?}", target.path().display(), target.facts());
        for choice in [EngineChoice::Uring, EngineChoice::Threads] {
            read(&controller, &target, choice)?;
        }
    }
    for sent in controller.tally().sent() {
        println!("sent {} x {}", sent.count, sent.name);
    }
    for left_out in NOT_JUDGED {
        println!("not judged: {} ({})", left_out.what, left_out.why);
    }
    Ok(())
}

fn identity(controller: &KernelController) -> Result<(), Box<dyn Error>> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    let asked = controller.identify_controller()?;
    println!("{}: {} {}", controller.address(), text(&asked.mn), text(&asked.sn));
    println!("  {:?}", controller.facts());
    Ok(())
}

fn health(controller: &KernelController) -> Result<(), Box<dyn Error>> {
    let smart = controller.smart()?;
    println!(
        "  SMART: warning {:02X}h, {} K, used {} %, {} reads, {} power cycles",
        smart.critical_warning.into_bits(),
        smart.composite_temperature,
        smart.percentage_used,
        smart.host_read_commands,
        smart.power_cycles
    );
    Ok(())
}

/// Format NVM is not even sent.
fn refusal(controller: &KernelController) {
    match controller.admin_entry(SubmissionEntry::new(0x80), AdminData::None) {
        Ok(_) => println!("  Format NVM was sent!"),
        Err(error) => println!("  {error}"),
    }
}

/// Reads the SMART data of the drive once a second while it is under load.
struct Warmth<'a>(&'a KernelController);

impl Observer for Warmth<'_> {
    fn tick(&mut self, tick: Tick) -> ControlFlow<()> {
        if let Ok(smart) = self.0.smart() {
            println!("  {} reads so far, {} K", tick.ios, smart.composite_temperature);
        }
        ControlFlow::Continue(())
    }
}

fn read(controller: &KernelController, target: &BlockTarget, choice: EngineChoice) -> Result<(), Box<dyn Error>> {
    let limits = Limits { runtime_ns: Some(2_000_000_000), ..Limits::default() };
    let job = Job { iodepth: 16, limits, ..Job::new() };
    let run = run(target, &job, choice, &mut Warmth(controller))?;
    let result = &run.result;
    let microseconds = |percent| result.read.latency.percentile(percent).unwrap_or(0) / 1000;
    println!(
        "  {}: {:.0} reads/s, p50 {} us, p99 {} us, {} failed, {} ns of processor each, clock error {} ns",
        run.engine,
        result.iops(),
        microseconds(50.0),
        microseconds(99.0),
        result.errors.failed,
        result.processor.unwrap_or_default().cpu_ns / result.ios().max(1),
        result.clock_error_ns
    );
    for (cause, count) in &result.errors.by_cause {
        println!("    {count} x {cause}");
    }
    Ok(())
}
