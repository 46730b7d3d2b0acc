//! `nvmetal log NAME`: a log page of a drive, field by field.
#![forbid(unsafe_code)]

use clap::Args;
use nvmetal_core::describe::Descriptor;
use nvmetal_core::log::{self, ErrorEntry, LogId, vendor};
use nvmetal_driver::{Admin, ControllerOptions};

use crate::device::Device;
use crate::drive::{Drive, Way};
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::Output;
use crate::page::{FORMS, Page, forms};
use crate::structure::{Structure, UNKNOWN};
use crate::units::parse_number;

/// The log of the controller, not of a namespace.
const ALL_NAMESPACES: u32 = 0xffff_ffff;
/// Bytes that are read of a page of which nothing is known.
const UNKNOWN_BYTES: usize = 512;
/// Bytes that are read at most.
const MOST_BYTES: usize = 16 << 20;
/// Log pages from here on are the vendor's.
const FIRST_VENDOR_PAGE: u8 = 0xc0;

const AFTER: &str = "\
NAME is error, smart, firmware, self-test, effects, feature-effects, sanitize,
changed-namespaces, supported-log-pages, telemetry, ..., or a number, as 0xc0.";

/// Which log of which drive.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct Arguments {
    /// Name or number of the log page
    name: String,
    #[command(flatten)]
    page: PageArguments,
}

/// Whose page, and how much of it.
#[derive(Debug, Args)]
pub struct PageArguments {
    /// PCI address or kernel name of the drive, or `emulated[:MODEL,...]`
    device: String,
    /// Entries of the error log to read; all that the drive keeps if not given
    #[arg(long, short = 'e', alias = "log-entries", value_name = "N")]
    entries: Option<usize>,
    /// Bytes to read, where the page is longer than what is known of it
    #[arg(long, alias = "log-len", short = 'l', value_name = "N")]
    bytes: Option<usize>,
    #[command(flatten)]
    way: Way,
}

/// Shows the log that was named.
pub fn run(arguments: &Arguments, out: &mut Output) -> Result<Exit> {
    show(&arguments.name, &arguments.page, out)
}

/// Shows a log, also under the names of nvme-cli's commands.
pub fn show(name: &str, arguments: &PageArguments, out: &mut Output) -> Result<Exit> {
    let (lid, known) = find(name)?;
    out.only(&format!("log {name}"), known.map_or(FORMS, forms))?;
    let options = ControllerOptions { io_queues: 0, ..ControllerOptions::default() };
    let drive = Drive::open(&Device::find(&arguments.device)?, &arguments.way, options)?;
    let page = read(drive.admin(), lid, known, arguments);
    Page::finish(page, drive, out)
}

/// The log page of this name, and its structure where it is known.
fn find(name: &str) -> Result<(LogId, Option<&'static Descriptor>)> {
    if let Some(number) = parse_number(name) {
        let lid = u8::try_from(number).map(LogId::from_bits);
        let lid = lid.map_err(|_| Error::usage(format!("{number:#x} is no log page; they are numbered 0 to 0xff")))?;
        return Ok((lid, log::descriptor(lid)));
    }
    let name = name.to_ascii_lowercase();
    if name == "telemetry-controller" {
        return Ok((LogId::TELEMETRY_CONTROLLER, log::descriptor(LogId::TELEMETRY_CONTROLLER)));
    }
    let structure = Structure::find(&format!("log {name}"));
    let all = || LogId::MEANINGS.iter().map(|meaning| LogId::from_bits(meaning.value as u8));
    let lid = structure.and_then(|structure| {
        all().find(|lid| log::descriptor(*lid).is_some_and(|known| known.id == structure.descriptor.id))
    });
    match lid {
        Some(lid) => Ok((lid, log::descriptor(lid))),
        None => Err(Error::usage(format!("there is no log page '{name}'"))
            .remedy("`nvmetal help log` names them; every page can be had by its number, as in `nvmetal log 0xc0`.")),
    }
}

fn read(
    controller: &dyn Admin,
    lid: LogId,
    known: Option<&'static Descriptor>,
    arguments: &PageArguments,
) -> Result<Page> {
    let bytes = match (arguments.bytes, known) {
        (Some(bytes), _) => bytes,
        (None, _) if lid == LogId::ERROR => {
            let kept = usize::from(controller.identify().elpe.count());
            arguments.entries.map_or(kept, |asked| asked.clamp(1, kept)) * size_of::<ErrorEntry>()
        }
        (None, Some(known)) => known.size,
        (None, None) => UNKNOWN_BYTES,
    };
    if bytes == 0 || bytes > MOST_BYTES {
        return Err(
            Error::usage(format!("{bytes} bytes of a log page cannot be read")).remedy("Ask for 1 byte to 16 MiB.")
        );
    }
    // Pages are read in dwords; what was not asked for is not shown.
    let mut page = vec![0; bytes.next_multiple_of(4)];
    controller.log_page(lid, ALL_NAMESPACES, 0, &mut page)?;
    page.truncate(bytes);
    let identify = controller.identify();
    let of_vendor = (lid.into_bits() >= FIRST_VENDOR_PAGE)
        .then(|| vendor::identify(identify.vid.get(), &identify.mn, lid, &page))
        .flatten();
    Ok(Page {
        schema: "nvmetal.log/1",
        title: lid.to_string(),
        view_of: known.or(of_vendor).unwrap_or(&UNKNOWN),
        bytes: page,
        nsid: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_found_by_name_by_nvme_clis_name_and_by_number() {
        for (name, lid) in [
            ("error", LogId::ERROR),
            ("smart", LogId::SMART),
            ("firmware", LogId::FIRMWARE_SLOT),
            ("fw", LogId::FIRMWARE_SLOT),
            ("self-test", LogId::SELF_TEST),
            ("effects", LogId::COMMAND_EFFECTS),
            ("changed-namespaces", LogId::CHANGED_NAMESPACES),
            ("changed-ns-list", LogId::CHANGED_NAMESPACES),
            ("sanitize", LogId::SANITIZE),
            ("supported-log-pages", LogId::SUPPORTED_PAGES),
            ("telemetry", LogId::TELEMETRY_HOST),
            ("0x02", LogId::SMART),
            ("c0h", LogId::from_bits(0xc0)),
        ] {
            assert_eq!(find(name).map(|(found, _)| found).ok(), Some(lid), "{name}");
        }
        assert!(find("ctrl").is_err() && find("zebra").is_err() && find("0x100").is_err());
    }
}
