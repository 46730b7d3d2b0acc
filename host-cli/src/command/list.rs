//! `nvmetal list`: every NVMe controller of the machine and who has it, without touching one.
#![forbid(unsafe_code)]

use std::fmt::Write;

use clap::Args;
use nvmetal_driver::pci::enumerate::{NvmeFunction, Obstacle, obstacles};
use nvmetal_driver::pci::link::{LinkPath, LinkState, PortSlot, SlotHint};
use nvmetal_driver::pci::usage::Usage;
use nvmetal_driver::pci::{Sysfs, SysfsError};
use nvmetal_driver::transport::TransportKind;
use serde::Serialize;

use crate::drive::{Through, Via};
use crate::error::{Error, Kind, Result};
use crate::exit::Exit;
use crate::output::{Format, Output, bold, note, wrap};
use crate::report::text::{Dash, Sheet};
use crate::units;

/// What the kernel shows is listed either way; the choice is taken for the sake of scripts that always make one.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    through: Through,
}

/// A controller as it is listed.
#[derive(Debug, Serialize)]
struct Listed {
    #[serde(flatten)]
    function: NvmeFunction,
    link: Option<LinkPath>,
    usage: Usage,
}

/// Lists the controllers.
pub fn run(arguments: &Arguments, out: &mut Output) -> Result<Exit> {
    if arguments.through.via == Via::Vfio {
        note("list opens no drive; it shows what the kernel shows, whatever --via says");
    }
    out.only("list", &[Format::Human, Format::Json])?;
    let sysfs = Sysfs::host();
    let functions = functions(&sysfs)?;
    let drives: Vec<Listed> = functions
        .into_iter()
        .map(|function| Listed {
            link: LinkPath::read(&sysfs, function.address).ok(),
            usage: Usage::survey(&sysfs, &function),
            function,
        })
        .collect();
    let obstacles = obstacles(&sysfs).unwrap_or_default();
    let slots = PortSlot::all(&sysfs).unwrap_or_default();
    let paths: Vec<LinkPath> = drives.iter().filter_map(|drive| drive.link.clone()).collect();
    let hints = SlotHint::all(&slots, &paths);
    let json = serde_json::json!({
        "schema": "nvmetal.list/1",
        "emulated": false,
        "transport": TransportKind::Kernel,
        "drives": drives,
        "hidden": obstacles,
        "hints": hints,
    });
    out.result(&json, || human(&drives, &obstacles, &hints))?;
    Ok(Exit::Pass)
}

/// All NVMe functions of this machine. A machine without PCI has none.
pub fn functions(sysfs: &Sysfs) -> Result<Vec<NvmeFunction>> {
    match NvmeFunction::all(sysfs) {
        Ok(functions) => Ok(functions),
        Err(error) if error.is_not_found() => Ok(Vec::new()),
        Err(error) => Err(unreadable(&error)),
    }
}

/// The error of a file that could not be read.
pub fn unreadable(error: &SysfsError) -> Error {
    let kind = if error.is_permission_denied() { Kind::NoPermission } else { Kind::Environment };
    Error::new(kind, error.to_string())
}

fn human(drives: &[Listed], obstacles: &[Obstacle], hints: &[SlotHint]) -> String {
    let mut text = match drives.len() {
        0 => "No NVMe controller on this machine's PCI bus.\n\
              `nvmetal validate emulated` shows what nvmetal does without one.\n"
            .to_owned(),
        _ => String::new(),
    };
    for (index, drive) in drives.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        text += &block(drive);
    }
    let same_serial = duplicates(drives);
    let remarks = obstacles.iter().map(ToString::to_string).chain(hints.iter().map(ToString::to_string));
    for remark in remarks.chain(same_serial) {
        let _ = write!(text, "\n{}\n", wrap(&format!("note: {remark}"), 2));
    }
    text
}

/// One controller, a line for each thing to know.
fn block(drive: &Listed) -> String {
    let function = &drive.function;
    let controller = function.controller.as_ref();
    let mut sheet = Sheet::new(10);
    let model = controller.and_then(|controller| controller.model.as_deref());
    let title = match model {
        Some(model) => model.to_owned(),
        None => format!("{:04x}:{:04x}, model not known while {}", function.vendor, function.device, held_by(function)),
    };
    if let Some(controller) = controller {
        sheet.row(
            "serial",
            &format!("{}, firmware {}", controller.serial.as_deref().dash(), controller.firmware.as_deref().dash()),
        );
        for namespace in &controller.namespaces {
            let size = namespace.size_bytes.map_or("size unknown".into(), |bytes| units::bytes(bytes.into()));
            let blocks = namespace.lba_bytes.map_or(String::new(), |bytes| format!(", {bytes} B blocks"));
            sheet.row("namespace", &format!("{} ({size}{blocks})", namespace.name));
        }
    }
    let name = controller.map_or(String::new(), |controller| format!(" as {}", controller.name));
    let group = function.iommu_group.as_ref();
    let group = group.map_or("no IOMMU group".to_owned(), |group| format!("IOMMU group {}", group.number));
    sheet.row("driver", &format!("{}{name}, {group}", function.driver.as_deref().unwrap_or("none")));
    sheet.row("link", &link(drive.link.as_ref()));
    for chain in &drive.usage.chains {
        sheet.row("in use", &chain.to_string());
    }
    for doubt in &drive.usage.doubts {
        sheet.row("in doubt", &doubt.to_string());
    }
    if drive.usage.is_free() {
        sheet.row("in use", "no");
    }
    format!("{}  {}\n{}", bold(&function.address.to_string()), bold(&title), sheet.text())
}

fn held_by(function: &NvmeFunction) -> String {
    match &function.driver {
        Some(driver) => format!("{driver} holds it"),
        None => "no driver holds it".to_owned(),
    }
}

/// The drive's own link in a few words.
pub fn link(path: Option<&LinkPath>) -> String {
    let Some(hop) = path.and_then(LinkPath::drive_hop) else { return "not shown".to_owned() };
    match hop.state() {
        LinkState::Gone => return "the device no longer answers".to_owned(),
        LinkState::Down => return "down".to_owned(),
        LinkState::Up | LinkState::Unknown => {}
    }
    let pair = |speed: Option<_>, width: Option<_>| match (speed, width) {
        (None, None) => "unknown".to_owned(),
        (speed, width) => format!("{} {}", speed.dash(), width.dash()),
    };
    let now = pair(hop.speed_now(), hop.width_now());
    let drive = pair(hop.lower.speed_able, hop.lower.width_able);
    let slot = hop.upper.as_ref().map(|upper| pair(upper.speed_able, upper.width_able));
    match slot {
        Some(slot) if slot == drive => format!("{now}, drive and slot can {drive}"),
        Some(slot) => format!("{now}, drive can {drive}, slot {slot}"),
        None => format!("{now}, drive can {drive}"),
    }
}

/// C-33: drives that carry the same serial number are listed apart, and said to be alike.
fn duplicates(drives: &[Listed]) -> Vec<String> {
    let serial = |drive: &Listed| drive.function.controller.as_ref().and_then(|controller| controller.serial.clone());
    let mut notes = Vec::new();
    for (index, drive) in drives.iter().enumerate() {
        let Some(mine) = serial(drive) else { continue };
        for other in drives.iter().skip(index + 1).filter(|other| serial(other).as_ref() == Some(&mine)) {
            notes.push(format!(
                "{} and {} have the same serial number {mine}: tell them apart by their addresses",
                drive.function.address, other.function.address
            ));
        }
    }
    notes
}
