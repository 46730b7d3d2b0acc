//! `nvmetal link`: every link from the drive to the root, and what they can carry.
#![forbid(unsafe_code)]

use clap::Args;
use nvmetal_driver::pci::link::{Hop, LinkErrors, LinkPath, LinkState, PortEnd, Trained};
use nvmetal_driver::pci::{PciAddress, Sysfs};
use nvmetal_driver::transport::TransportKind;
use serde_json::json;

use crate::command::list;
use crate::device::{Device, not_in_a_slot};
use crate::drive::{self, Through, Via};
use crate::error::{Error, Kind, Result};
use crate::exit::Exit;
use crate::output::{Format, Output, RED, YELLOW, bold, styled};
use crate::report::text::{Dash, Sheet};
use crate::session;

/// Which drive's links.
#[derive(Debug, Args)]
pub struct Arguments {
    /// PCI address or kernel name of the drive, or `emulated[:MODEL,...]`
    device: String,
    #[command(flatten)]
    through: Through,
}

/// A path with what belongs to it.
struct Links {
    /// The drive as it was named or found.
    device: String,
    emulated: bool,
    path: LinkPath,
    errors: LinkErrors,
}

/// Shows the path.
pub fn run(arguments: &Arguments, out: &mut Output) -> Result<Exit> {
    out.only("link", &[Format::Human, Format::Json])?;
    let device = Device::find(&arguments.device)?;
    let links = match &device {
        Device::Emulated(text) => emulated(text, arguments.through.via)?,
        Device::VfioUser(_) => return Err(not_in_a_slot("link", "a controller behind a socket")),
        Device::Pci(resolved) => of_this_machine(resolved.address)?,
    };
    let Links { path, errors, .. } = &links;
    let document = json!({
        "schema": "nvmetal.link/1",
        "emulated": links.emulated,
        "device": links.device,
        "transport": if links.emulated { TransportKind::Emulated } else { TransportKind::Kernel },
        "path": path,
        "narrowest_hop": path.narrowest().map(|(index, _)| index),
        "ceiling": path.ceiling(),
        "ceiling_if_trained_best": path.ceiling_best(),
        "limits": path.limits(),
        "errors_since_boot": errors,
    });
    out.result(&document, || human(&links))?;
    Ok(Exit::Pass)
}

/// The links of a drive of this machine. Whoever has the drive, the kernel shows them, and the drive is not touched.
fn of_this_machine(address: PciAddress) -> Result<Links> {
    let sysfs = Sysfs::host();
    let path = LinkPath::read(&sysfs, address).map_err(|error| list::unreadable(&error))?;
    let errors = LinkErrors::read(&sysfs, &path);
    Ok(Links { device: address.to_string(), emulated: false, path, errors })
}

/// The links of an emulated drive, as they are before anything has run.
fn emulated(text: &str, via: Via) -> Result<Links> {
    if via == Via::Kernel {
        return Err(drive::not_the_kernels(text));
    }
    let transport = session::emulated(text)?;
    let path = session::emulated_path(transport.as_ref())
        .ok_or_else(|| Error::new(Kind::Unsupported, format!("{text} shows no links")))?;
    let errors = session::emulated_errors(transport.as_ref());
    Ok(Links { device: text.to_owned(), emulated: true, path, errors })
}

/// The path as text.
fn human(links: &Links) -> String {
    let Links { device, path, errors, .. } = links;
    let emulated = if links.emulated { "EMULATED  " } else { "" };
    let mut text = format!("{}\n", bold(&format!("{emulated}Links of {device}, from the drive to the root")));
    if path.hops.is_empty() {
        text +=
            "  none is shown: the drive is part of the chipset, or of a virtual machine without PCI Express ports\n";
    }
    for (index, hop) in path.hops.iter().enumerate() {
        text += &one_hop(index, hop);
    }
    let mut sheet = Sheet::new(10);
    if let (Some((index, hop)), true) = (path.narrowest(), path.hops.len() > 1) {
        let (speed, width) = (hop.speed_now().dash(), hop.width_now().dash());
        sheet.row("narrowest", &format!("link {}: {speed} {width}", index + 1));
    }
    match path.ceiling() {
        Some(ceiling) => sheet.row(
            "ceiling",
            &format!(
                "reads {:.0} MB/s, writes {:.0} MB/s, good to 3 % ({})",
                ceiling.read_mb_s, ceiling.write_mb_s, ceiling.basis
            ),
        ),
        None => sheet.row("ceiling", "not known: a speed or a width is missing"),
    }
    for limit in path.limits() {
        let what: Vec<String> =
            [limit.speed.map(|speed| speed.to_string()), limit.width.map(|width| width.to_string())]
                .into_iter()
                .flatten()
                .collect();
        let by = if limit.hop == 0 { "the slot" } else { "a port above the slot" };
        sheet.row("limited by", &format!("{by} ({}): {} at most", limit.port, what.join(" ")));
    }
    if let Some(vmd) = path.behind_vmd {
        sheet.row("behind", &format!("Intel VMD at {vmd}; what is above it is not shown"));
    }
    let counted: u64 = errors
        .ports
        .values()
        .flat_map(|port| [&port.correctable, &port.non_fatal, &port.fatal])
        .flatten()
        .flat_map(|counters| counters.values())
        .sum();
    let counts = errors.ports.values().any(|port| port.correctable.is_some());
    let since = if links.emulated { "so far" } else { "since boot" };
    let none = "not counted here: the ports have no AER, or the firmware keeps it to itself";
    sheet.row("errors", &if counts { format!("{counted} {since}") } else { none.to_owned() });
    text + "\n" + &sheet.text()
}

fn one_hop(index: usize, hop: &Hop) -> String {
    let upper = hop.upper.as_ref();
    let name = match upper {
        Some(upper) => format!("{} to {}", hop.lower.address, upper.address),
        None => format!("{} to a port that is not shown", hop.lower.address),
    };
    let mut sheet = Sheet::new(10);
    sheet.row("now", &now(hop));
    sheet.row("able to", &able(hop));
    let settings = settings(&hop.lower);
    if !settings.is_empty() {
        sheet.row("settings", &settings);
    }
    if !hop.shared_with.is_empty() {
        let others: Vec<_> = hop.shared_with.iter().map(ToString::to_string).collect();
        sheet.row("shared", &format!("with {}: all of them together have this link", others.join(", ")));
    }
    for contradiction in hop.lower.contradictions.iter().chain(upper.iter().flat_map(|end| &end.contradictions)) {
        sheet.row("note", contradiction);
    }
    format!("\n{}\n{}", bold(&format!("link {}: {name}", index + 1)), sheet.text())
}

fn now(hop: &Hop) -> String {
    match hop.state() {
        LinkState::Gone => return styled(RED, "the device no longer answers (all ones)"),
        LinkState::Down => return styled(RED, "down"),
        LinkState::Up | LinkState::Unknown => {}
    }
    let now = format!("{} {}", hop.speed_now().dash(), hop.width_now().dash());
    let below = hop.speed().is_below() || hop.width().is_below();
    if below {
        return format!("{}, less than both ends can (idle links may slow down)", styled(YELLOW, &now));
    }
    let odd =
        matches!(hop.speed(), Trained::Unbelievable { .. }) || matches!(hop.width(), Trained::Unbelievable { .. });
    if odd { format!("{now}, more than both ends can: the registers are not believable") } else { now }
}

fn able(hop: &Hop) -> String {
    let of = |end: &PortEnd| format!("{} {}", end.speed_able.dash(), end.width_able.dash());
    match &hop.upper {
        Some(upper) => format!("{} below, {} above", of(&hop.lower), of(upper)),
        None => of(&hop.lower),
    }
}

fn settings(end: &PortEnd) -> String {
    let payload = end.payload_bytes.map(|bytes| match end.payload_able_bytes {
        Some(able) if able != bytes => format!("payload {bytes} B of {able}"),
        _ => format!("payload {bytes} B"),
    });
    let request = end.read_request_bytes.map(|bytes| format!("read request {bytes} B"));
    let aspm = end.aspm.map(|aspm| format!("ASPM {aspm}"));
    [payload, request, aspm].into_iter().flatten().collect::<Vec<_>>().join(", ")
}
