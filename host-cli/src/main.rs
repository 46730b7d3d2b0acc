//! The command line, and nothing but it.
//!
//! The reader's order: [`cli`] is what can be typed, [`command`] holds one file per command, [`check`] the verdicts, one
//! file each, `report` how results look. Beneath them [`error`] and [`exit`] say how things end, [`output`] where
//! results go, [`units`] how numbers are read and written, [`interrupt`] what Ctrl-C does.
#![forbid(unsafe_code)]

mod check;
mod cli;
mod command;
mod device;
mod drive;
mod dump;
mod error;
mod error_log;
mod exit;
mod explain;
mod gate;
mod interrupt;
mod kernel_drive;
mod limit;
mod manual;
mod measure;
mod nvme_cli;
mod output;
mod page;
mod progress;
mod provenance;
mod reader;
mod report;
mod session;
mod signature;
mod smart_change;
mod structure;
mod trace;
mod units;
mod written;

use std::ffi::OsString;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use cli::Cli;
use error::{Error, Kind};
use exit::Exit;
use interrupt::Stop;
use output::Output;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => return not_understood(&error, &arguments).into(),
    };
    start_log(cli.global.verbose);
    let json = cli.global.output.is_json();
    // A panic must not leave the drive behind: guards give it back while the stack unwinds to here.
    let result = catch_unwind(AssertUnwindSafe(|| run(cli))).unwrap_or_else(|_| {
        Err(Error::new(Kind::Internal, "nvmetal has met a defect of its own; the message above says where")
            .remedy("Run `nvmetal release --all` if a drive stayed behind, and report the message, please."))
    });
    match result {
        Ok(exit) => exit,
        Err(error) => report(&error, json),
    }
    .into()
}

fn run(cli: Cli) -> error::Result<Exit> {
    let stop =
        Stop::install().map_err(|error| Error::new(Kind::Environment, format!("cannot watch for Ctrl-C: {error}")))?;
    let mut out = Output::new(cli.global.output, cli.global.save).verbose(cli.global.verbose > 0);
    command::run(cli.command, &mut out, &stop)
}

/// Shows an error and gives the exit code that belongs to it.
fn report(error: &Error, json: bool) -> Exit {
    if json {
        let mut out = Output::new(output::Format::Json, None);
        // Where even this cannot be written, the exit code has to do.
        let _ = out.print(&output::pretty(&error.to_json()));
    } else {
        let mut stderr = anstream::stderr();
        let sentence = output::wrap(&format!("error: {}", error.message), 2);
        let sentence = sentence.replacen("error:", &output::styled(output::RED, "error:"), 1);
        let _ = writeln!(stderr, "{sentence}");
        if let Some(remedy) = &error.remedy {
            let _ = writeln!(stderr, "{}", output::wrap(&format!("  {remedy}"), 2));
        }
    }
    error.kind.exit()
}

/// Answers a command line that clap did not take, or that asked for help.
fn not_understood(error: &clap::Error, arguments: &[OsString]) -> Exit {
    let asked = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    if asked || !cli::wants_json(arguments) {
        let _ = error.print();
        return if asked { Exit::Pass } else { Exit::Usage };
    }
    let text = error.to_string();
    let sentence = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
    report(
        &Error::usage(sentence).remedy("`nvmetal help` lists the commands, `nvmetal help COMMAND` its options."),
        true,
    )
}

/// Log lines go to standard error. `RUST_LOG` decides; `-v` asks for more where it is not set.
fn start_log(verbose: u8) {
    let level = match verbose {
        0 => "warn",
        1 => "info",
        2 => "debug",
        _ => "trace",
    };
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or(level))
        .format_timestamp(None)
        .format_target(verbose > 1)
        .init();
}
