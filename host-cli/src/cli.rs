//! What can be typed: the commands and the options that all of them share.
//!
//! Each command keeps its own options beside its code in [`crate::command`]. Other tools' words for the same thing are
//! accepted here: nvme-cli's (`smart-log`, `id-ctrl`, `--output-format`) as commands and aliases, fio's by `bench`.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand};

use crate::command;
use crate::output::Format;

const ABOUT: &str = "Take an NVMe drive from the kernel, test it, explain it and give it back";

const LONG_ABOUT: &str = "\
Take an NVMe drive from the kernel, test it, explain it and give it back.

nvmetal talks to the drive itself, from user space through VFIO, so that what it measures is the drive, its card and \
its link, and not the software in between. It only reads, unless a run is told to \
write and names the drive.

DEVICE is a PCI address (0000:03:00.0, 03:00.0), a name of the kernel's (/dev/nvme1, nvme1n1), `emulated`, a drive in \
software that needs neither hardware nor root, or `vfio-user:SOCKET`, a controller in another process.";

const AFTER: &str = "\
Exit codes: 0 pass, 1 run-time error, 2 usage, 3 verdict FAIL, 4 WARN with
--strict, 5 refused for safety, 6 this machine cannot (see `nvmetal doctor`),
7 drive lost or timed out, 8 data miscompare, 9 not supported by the drive,
130 interrupted, 143 terminated.

Start with `nvmetal list`, or without any drive: `nvmetal validate emulated`.";

/// The whole command line.
#[derive(Debug, Parser)]
#[command(name = "nvmetal", version, about = ABOUT, long_about = LONG_ABOUT, after_help = AFTER)]
#[command(subcommand_required = true, arg_required_else_help = true, max_term_width = 100)]
pub struct Cli {
    /// Options that every command takes.
    #[command(flatten)]
    pub global: Global,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// Options that every command takes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct Global {
    /// The form of the result.
    #[arg(short, long, alias = "output-format", global = true, value_enum, value_name = "FORMAT")]
    #[arg(default_value = "human", hide_default_value = true, hide_possible_values = true)]
    #[arg(help = "Form of the result: human, json, csv, fio, nvme-cli, nvme-cli-json, hex, raw")]
    pub output: Format,
    /// Write the result as JSON to FILE, too
    #[arg(long, global = true, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Say more about what happens (-vv, -vvv for still more); RUST_LOG is honoured
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
}

/// The commands, in the order in which a person meets them.
#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "there is one, and it is taken apart at once")]
pub enum Command {
    /// Show every NVMe drive of this machine, its link and who uses it
    List(command::list::Arguments),
    /// Say what stands between this machine and a run, and what to do about it
    Doctor(command::doctor::Arguments),
    /// Show the links from a drive to the processor and what they can carry
    Link(command::link::Arguments),
    /// Show what the drive says of itself, field by field
    Id(command::id::Arguments),
    /// nvme-cli's spelling of `id ctrl`
    #[command(hide = true)]
    IdCtrl(command::id::ControllerArguments),
    /// nvme-cli's spelling of `id ns`
    #[command(hide = true)]
    IdNs(command::id::NamespaceArguments),
    /// Show the drive's health log
    #[command(visible_alias = "smart-log")]
    Smart(command::smart::Arguments),
    /// Show a log page of the drive, field by field
    Log(command::log::Arguments),
    /// nvme-cli's spelling of `log error`
    #[command(hide = true)]
    ErrorLog(command::log::PageArguments),
    /// nvme-cli's spelling of `log firmware`
    #[command(hide = true)]
    FwLog(command::log::PageArguments),
    /// nvme-cli's spelling of `log self-test`
    #[command(hide = true)]
    SelfTestLog(command::log::PageArguments),
    /// nvme-cli's spelling of `log effects`
    #[command(hide = true)]
    EffectsLog(command::log::PageArguments),
    /// nvme-cli's spelling of `log sanitize`
    #[command(hide = true)]
    SanitizeLog(command::log::PageArguments),
    /// Show the controller's registers, field by field
    #[command(visible_alias = "show-regs")]
    Registers(command::registers::Arguments),
    /// Say what the bytes of a dump mean, without any drive
    Decode(command::decode::Arguments),
    /// Say what a status, a field, a command, a register or a feature means
    Explain(command::explain::Arguments),
    /// Judge drive, card and slot: link, health, speed, temperature; reads only
    Validate(command::validate::Arguments),
    /// Run one workload as fast as the drive can, and measure it
    Bench(command::bench::Arguments),
    /// Compare saved results of bench or validate, and say what is better or worse
    Diff(command::diff::Arguments),
    /// Take a drive from the kernel and leave it with vfio-pci
    Bind(command::bind::Arguments),
    /// Give drives back to the kernel, also those that a killed run left behind
    Release(command::release::Arguments),
    /// Show the emulated drives, or let other programs drive one
    Emulator(command::emulator::Arguments),
    /// Write the shell completions or the manual pages
    #[command(hide = true)]
    Generate(command::generate::Arguments),
}

/// Whether a command line that could not be parsed asked for JSON.
pub fn wants_json(arguments: &[OsString]) -> bool {
    let words: Vec<_> = arguments.iter().map(|word| word.to_string_lossy()).collect();
    let is_json = |word: &str| matches!(word, "json" | "nvme-cli-json" | "fio");
    words.iter().enumerate().any(|(i, word)| match word.as_ref() {
        "-o" | "--output" | "--output-format" => words.get(i + 1).is_some_and(|next| is_json(next)),
        word => ["-o", "--output=", "--output-format="]
            .iter()
            .filter_map(|prefix| word.strip_prefix(prefix))
            .any(|value| is_json(value.trim_start_matches('='))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_tree_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_wish_for_json_is_seen_in_every_spelling() {
        let wants = |line: &str| wants_json(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        for line in ["x -o json", "x -ojson", "x -o=json", "x --output json y", "x --output-format=json"] {
            assert!(wants(line), "{line}");
        }
        for line in ["x", "x -o human", "x json", "x --output"] {
            assert!(!wants(line), "{line}");
        }
    }
}
