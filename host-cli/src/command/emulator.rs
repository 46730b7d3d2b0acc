//! `nvmetal emulator`: which emulated drives there are, and one of them for other programs.
//!
//! `emulated:MODEL` is a drive inside of this process. `serve` puts the same drive behind a socket, where anything that
//! speaks vfio-user can drive it: nvmetal itself (`vfio-user:SOCKET`), another driver, a virtual machine.
#![forbid(unsafe_code)]

use std::path::PathBuf;

use clap::{Args, Subcommand};
use nvmetal_emulator::fault::{FORM, FaultKind};
use nvmetal_emulator::serve::{Event, ServeError, Server, Trust};
use nvmetal_emulator::{ClockKind, Model, Options};
use serde_json::json;

use crate::error::{Error, Kind, Result};
use crate::exit::Exit;
use crate::interrupt::Stop;
use crate::output::{Format, Output, bold, note, wrap};

/// What is to be done.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List the models and the options that change them
    Models,
    /// Put an emulated drive behind a vfio-user socket, until Ctrl-C
    Serve(Serve),
}

/// Which drive, and where.
#[derive(Debug, Args)]
struct Serve {
    /// MODEL[,option=value...], as `nvmetal emulator models` lists them; time is always real
    #[arg(default_value = "ideal")]
    model: String,
    /// Where to listen; drive it as `vfio-user:PATH`
    #[arg(long, value_name = "PATH")]
    socket: PathBuf,
    /// Take memory that its owner could shrink, too, which would end this server (drivers with hugetlbfs need it)
    #[arg(long)]
    unsealed_memory: bool,
}

/// Does it.
pub fn run(arguments: &Arguments, out: &mut Output, stop: &Stop) -> Result<Exit> {
    match &arguments.what {
        What::Models => models(out),
        What::Serve(serve) => self::serve(serve, out, stop),
    }
}

fn models(out: &mut Output) -> Result<Exit> {
    out.only("emulator models", &[Format::Human, Format::Json])?;
    let models: Vec<Model> = Model::names().filter_map(Model::by_name).filter_map(std::result::Result::ok).collect();
    let option = |(name, form, what): (&str, &str, &str)| json!({ "name": name, "takes": form, "what": what });
    let document = json!({
        "schema": "nvmetal.emulator-models/1",
        "emulated": true,
        "models": models.iter().map(|model| json!({
            "name": model.name,
            "summary": model.summary,
            "clock": if model.clock == ClockKind::Real { "real" } else { "virtual" },
        })).collect::<Vec<_>>(),
        "options": Options::table().map(option).collect::<Vec<_>>(),
        "faults": FaultKind::ALL.iter().map(|(_, name, what)| json!({ "name": name, "what": what.trim() })).collect::<Vec<_>>(),
    });
    out.result(&document, || human(&models))?;
    Ok(Exit::Pass)
}

fn human(models: &[Model]) -> String {
    let line = |name: &str, text: &str| wrap(&format!("  {name:<17} {text}"), 20) + "\n";
    let mut text = format!("{}, as in emulated:ideal\n", bold("Models"));
    text.extend(models.iter().map(|model| line(&model.name, &model.summary)));
    text += &format!("\n{}, as in emulated:ideal,link=gen1x1\n", bold("Options"));
    text.extend(Options::table().map(|(name, form, what)| line(name, &format!("{what} ({form})"))));
    text += &format!("\n{} for fault= ({FORM})\n", bold("Faults"));
    text.extend(FaultKind::ALL.iter().map(|(_, name, what)| line(name, what.trim())));
    text
}

fn serve(arguments: &Serve, out: &mut Output, stop: &Stop) -> Result<Exit> {
    out.only("emulator serve", &[Format::Human, Format::Json])?;
    let text = arguments.model.strip_prefix("emulated:").unwrap_or(&arguments.model);
    let options = Options::parse(text).map_err(|error| {
        Error::usage(error.to_string()).remedy("`nvmetal emulator models` lists models and options.")
    })?;
    let name = options.model.name.clone();
    let trust = if arguments.unsealed_memory { Trust::Unsealed } else { Trust::Sealed };
    let server = Server::bind(&arguments.socket, options, trust).map_err(|error| cannot_serve(&error))?;
    let path = arguments.socket.display();
    let document = json!({
        "schema": "nvmetal.emulator-serve/1",
        "emulated": true,
        "model": name,
        "socket": arguments.socket,
        "device": format!("vfio-user:{path}"),
    });
    out.result(&document, || format!("EMULATED  nvmetal EMULATED {name}, listening as vfio-user:{path}\n"))?;
    let mut tell = |event: &Event| match event {
        Event::Connected => note("a client is there"),
        Event::Gone { why: None, messages } => note(&format!("the client is gone after {messages} messages")),
        Event::Gone { why: Some(why), messages } => {
            note(&format!("the client was let go after {messages} messages: {why}"));
        }
    };
    server.run(&|| stop.is_set(), &mut tell).map_err(|error| cannot_serve(&error))?;
    Ok(stop.exit().unwrap_or(Exit::Pass))
}

fn cannot_serve(error: &ServeError) -> Error {
    let (kind, remedy) = match error {
        ServeError::InUse { .. } => (Kind::InUse, "One server listens at a socket; give --socket another path."),
        ServeError::NotASocket { .. } => (Kind::InUse, "It is left alone; give --socket another path."),
        ServeError::System { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
            (Kind::NoPermission, "Give --socket a path in a folder that you may write to.")
        }
        ServeError::System { .. } => (Kind::File, "Give --socket a path in a folder that is there."),
    };
    Error::new(kind, error.to_string()).remedy(remedy)
}
