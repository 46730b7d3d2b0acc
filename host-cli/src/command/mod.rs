//! The commands, one file each: its options and what it does.
#![forbid(unsafe_code)]

pub mod bench;
pub mod bind;
pub mod decode;
pub mod diff;
pub mod doctor;
pub mod emulator;
pub mod explain;
pub mod generate;
pub mod id;
pub mod link;
pub mod list;
pub mod log;
pub mod registers;
pub mod release;
pub mod smart;
pub mod validate;

use crate::cli::Command;
use crate::error::Result;
use crate::exit::Exit;
use crate::interrupt::Stop;
use crate::output::Output;

/// Runs a command to its end.
pub fn run(command: Command, out: &mut Output, stop: &Stop) -> Result<Exit> {
    match command {
        Command::List(arguments) => list::run(&arguments, out),
        Command::Doctor(arguments) => doctor::run(&arguments, out),
        Command::Link(arguments) => link::run(&arguments, out),
        Command::Bench(arguments) => bench::run(&arguments, out, stop),
        Command::Id(arguments) => id::run(arguments, out),
        Command::IdCtrl(arguments) => id::controller(&arguments, out),
        Command::IdNs(arguments) => id::namespace(&arguments, out),
        Command::Smart(arguments) => smart::run(&arguments, out),
        Command::Log(arguments) => log::run(&arguments, out),
        Command::ErrorLog(arguments) => log::show("error", &arguments, out),
        Command::FwLog(arguments) => log::show("firmware", &arguments, out),
        Command::SelfTestLog(arguments) => log::show("self-test", &arguments, out),
        Command::EffectsLog(arguments) => log::show("effects", &arguments, out),
        Command::SanitizeLog(arguments) => log::show("sanitize", &arguments, out),
        Command::Registers(arguments) => registers::run(&arguments, out),
        Command::Decode(arguments) => decode::run(&arguments, out),
        Command::Explain(arguments) => explain::run(&arguments, out),
        Command::Validate(arguments) => validate::run(&arguments, out, stop),
        Command::Diff(arguments) => diff::run(&arguments, out),
        Command::Bind(arguments) => bind::run(&arguments, out),
        Command::Release(arguments) => release::run(&arguments, out),
        Command::Emulator(arguments) => emulator::run(&arguments, out, stop),
        Command::Generate(arguments) => generate::run(&arguments, out),
    }
}
