//! The manual pages: what the command tree says, in the sections of a Unix manual.
//!
//! Descriptions and options are rendered by `clap_mangen`. Synopsis, exit status, examples, environment and files are
//! written here, for those are what a person opens a manual page for and what `--help` has no room for. The examples are
//! tested to be commands that can be typed.
#![forbid(unsafe_code)]

use std::io;
use std::path::Path;

use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, roman};

use crate::cli::Cli;
use crate::exit::Exit;

/// What the numbers mean, in their order.
const EXIT_STATUS: [(Exit, &str); 12] = [
    (Exit::Pass, "Done; every verdict is PASS, or WARN without --strict."),
    (Exit::RunTime, "Something went wrong on the way."),
    (Exit::Usage, "The command line makes no sense."),
    (Exit::Fail, "The verdict is FAIL."),
    (Exit::WarnStrict, "The verdict is WARN, and --strict was given."),
    (Exit::Refused, "Refused, because data or another user of the drive could come to harm."),
    (Exit::Environment, "This machine or this user cannot do it: no VFIO, no IOMMU, no permission."),
    (Exit::Lost, "The drive is gone or does not answer."),
    (Exit::Miscompare, "Data read back differs from data written."),
    (Exit::Unsupported, "The drive does not support what was asked."),
    (Exit::Interrupted, "Ctrl-C ended the run; the drive was given back."),
    (Exit::Terminated, "SIGTERM ended the run; the drive was given back."),
];

/// Examples: the page, the command, what it is for.
const EXAMPLES: &[(&str, &str, &str)] = &[
    ("nvmetal", "nvmetal validate emulated", "The main job on a drive in software, without hardware and without root."),
    ("nvmetal", "nvmetal list", "Which drives there are, how their links are, and who uses them."),
    ("nvmetal", "nvmetal doctor", "What stands between this machine and a run on one of them."),
    ("nvmetal-doctor", "nvmetal doctor nvme1", "The same for one drive."),
    (
        "nvmetal-link",
        "nvmetal link 0000:03:00.0",
        "Every hop from the drive to the processor, and the narrowest of them.",
    ),
    ("nvmetal-id", "nvmetal id ctrl nvme1", "Identify Controller."),
    ("nvmetal-smart", "nvmetal smart nvme1 -o json", "The health log for a script."),
    (
        "nvmetal-validate",
        "nvmetal validate 0000:03:00.0",
        "Are drive, card and slot good? It takes about a minute and only reads.",
    ),
    ("nvmetal-validate", "nvmetal validate nvme1 --save before.json", "The same, kept to be compared later."),
    (
        "nvmetal-validate",
        "nvmetal validate emulated:ideal,link=gen1x1",
        "What a link that trained too low looks like; exit status 3.",
    ),
    (
        "nvmetal-bench",
        "nvmetal bench 0000:03:00.0 --rw randread --bs 4k --iodepth 32 --runtime 5",
        "Random reads for five seconds.",
    ),
    ("nvmetal-bench", "nvmetal bench nvme1 --rw read --bs 128k", "How fast the drive reads from one end to the other."),
    ("nvmetal-diff", "nvmetal diff before.json after.json", "Is the other slot better?"),
    (
        "nvmetal-emulator",
        "nvmetal emulator serve --socket /tmp/drive ideal",
        "An emulated drive for other programs that speak vfio-user, until Ctrl-C.",
    ),
    (
        "nvmetal-emulator",
        "nvmetal emulator models",
        "Which emulated drives there are, and what can be changed of them.",
    ),
    ("nvmetal-bind", "nvmetal bind 0000:03:00.0", "Take the drive from the kernel and leave it so."),
    ("nvmetal-release", "nvmetal release 0000:03:00.0", "Give it back."),
    ("nvmetal-release", "nvmetal release --all", "After a run that was killed: give back whatever it left behind."),
];

/// Writes a page for nvmetal and one for each command that is shown to people.
pub fn write(directory: &Path) -> io::Result<()> {
    let mut tree = Cli::command().disable_help_subcommand(true).subcommand_help_heading("COMMANDS");
    tree.build();
    write_with_subcommands(&tree, directory)
}

fn write_with_subcommands(command: &Command, directory: &Path) -> io::Result<()> {
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        write_with_subcommands(subcommand, directory)?;
    }
    let name = command.get_display_name().unwrap_or(command.get_name());
    std::fs::write(directory.join(format!("{name}.1")), page(name, command)?)
}

/// One page, as roff.
fn page(name: &str, command: &Command) -> io::Result<Vec<u8>> {
    let source = concat!("nvmetal ", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.clone()).source(source).manual("User Commands");
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    synopsis(command).to_writer(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    if command.get_subcommands().any(|subcommand| !subcommand.is_hide_set()) {
        man.render_subcommands_section(&mut text)?;
    }
    let whole = name == "nvmetal";
    closing(name, whole).to_writer(&mut text)?;
    Ok(text)
}

/// `nvmetal bench [OPTIONS] <DEVICE>`, as `--help` has it.
fn synopsis(command: &Command) -> Roff {
    let usage = command.clone().render_usage().to_string();
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]);
    for (number, line) in usage.trim_start_matches("Usage:").trim().lines().enumerate() {
        if number > 0 {
            roff.control("br", []);
        }
        let line = line.trim();
        let words = command.get_bin_name().filter(|name| line.starts_with(name)).map_or(0, str::len);
        let (words, rest) = line.split_at(words);
        roff.text([bold(words), roman(rest)]);
    }
    roff
}

/// The sections behind the options.
fn closing(name: &str, whole: bool) -> Roff {
    let mut roff = Roff::new();
    let entry = |roff: &mut Roff, tag: Inline, text: &str| {
        roff.control("TP", []).text([tag]).text([roman(text)]);
    };
    let examples: Vec<_> = EXAMPLES.iter().filter(|(page, ..)| *page == name).collect();
    if !examples.is_empty() {
        roff.control("SH", ["EXAMPLES"]);
    }
    for (_, line, what) in examples {
        entry(&mut roff, bold(*line), what);
    }
    roff.control("SH", ["EXIT STATUS"]);
    if whole {
        for (exit, meaning) in EXIT_STATUS {
            entry(&mut roff, bold(exit.code().to_string()), meaning);
        }
        roff.control("SH", ["ENVIRONMENT"]);
        entry(
            &mut roff,
            bold("RUST_LOG"),
            "What goes to the log, as in RUST_LOG=nvmetal_driver=debug. -v is the short way.",
        );
        roff.control("SH", ["FILES"]);
        entry(&mut roff, bold("/dev/vfio/, /dev/iommu"), "The kernel's interface to drives that were taken from it.");
        entry(&mut roff, bold("/sys/bus/pci/devices/"), "Where drives are found, taken and given back.");
        roff.control("SH", ["SEE ALSO"]).text([bold("nvme"), roman("(1), "), bold("fio"), roman("(1)")]);
    } else {
        roff.text([roman("0 if all is well; the others are listed in "), bold("nvmetal"), roman("(1).")]);
        roff.control("SH", ["SEE ALSO"]).text([bold("nvmetal"), roman("(1)")]);
    }
    roff
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[test]
    fn every_example_can_be_typed_and_stands_on_a_page_that_exists() {
        let mut tree = Cli::command();
        tree.build();
        let shown: Vec<_> =
            tree.get_subcommands().filter(|c| !c.is_hide_set()).filter_map(Command::get_display_name).collect();
        for (page, line, _) in EXAMPLES {
            assert!(*page == "nvmetal" || shown.contains(page), "{page}");
            Cli::try_parse_from(line.split(' ')).unwrap_or_else(|error| panic!("{line}: {error}"));
        }
    }

    #[test]
    fn every_exit_status_is_told_once() {
        let mut codes: Vec<_> = EXIT_STATUS.iter().map(|(exit, _)| exit.code()).collect();
        codes.dedup();
        assert_eq!(codes, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 130, 143]);
    }

    #[test]
    fn pages_have_their_sections_in_order() {
        let directory = std::env::temp_dir().join(format!("nvmetal-manual-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        write(&directory).unwrap();
        let text = std::fs::read_to_string(directory.join("nvmetal-validate.1")).unwrap();
        std::fs::remove_dir_all(&directory).unwrap();
        let sections: Vec<_> = text.lines().filter_map(|line| line.strip_prefix(".SH ")).collect();
        assert_eq!(sections[..4], ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS"]);
        assert_eq!(sections[sections.len() - 3..], ["EXAMPLES", "\"EXIT STATUS\"", "\"SEE ALSO\""]);
    }
}
