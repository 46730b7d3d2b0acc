//! `nvmetal id`: what the drive says of itself, field by field.
#![forbid(unsafe_code)]

use clap::{Args, Subcommand};
use nvmetal_core::describe::Describe;
use nvmetal_core::identify;
use nvmetal_driver::ControllerOptions;
use zerocopy::IntoBytes;

use crate::device::Device;
use crate::drive::{Drive, Way};
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::Output;
use crate::page::{ALL_FORMS, Page};

/// Which structure of which drive.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Arguments {
    #[command(subcommand)]
    what: Option<What>,
    /// PCI address or kernel name of the drive, or `emulated[:MODEL,...]`
    #[arg(required = true)]
    device: Option<String>,
    #[command(flatten)]
    way: Way,
}

#[derive(Debug, Subcommand)]
enum What {
    /// The controller (the default)
    #[command(visible_alias = "controller")]
    Ctrl(ControllerArguments),
    /// A namespace
    #[command(visible_alias = "namespace")]
    Ns(NamespaceArguments),
}

/// Which controller.
#[derive(Debug, Args)]
pub struct ControllerArguments {
    /// PCI address or kernel name of the drive, or `emulated[:MODEL,...]`
    device: String,
    #[command(flatten)]
    way: Way,
}

/// Which namespace.
#[derive(Debug, Args)]
pub struct NamespaceArguments {
    /// PCI address or kernel name of the drive, or `emulated[:MODEL,...]`
    device: String,
    /// The namespace; the first one if not given
    #[arg(long, short = 'n', value_name = "NSID")]
    namespace_id: Option<u32>,
    #[command(flatten)]
    way: Way,
}

/// Shows the structure.
pub fn run(arguments: Arguments, out: &mut Output) -> Result<Exit> {
    match (arguments.what, arguments.device) {
        (Some(What::Ns(arguments)), _) => namespace(&arguments, out),
        (Some(What::Ctrl(arguments)), _) => controller(&arguments, out),
        (None, Some(device)) => controller(&ControllerArguments { device, way: arguments.way }, out),
        (None, None) => Err(Error::usage("no device was named").remedy("Name one, as in `nvmetal id emulated`.")),
    }
}

/// Identify Controller.
pub fn controller(arguments: &ControllerArguments, out: &mut Output) -> Result<Exit> {
    out.only("id ctrl", ALL_FORMS)?;
    let drive = open(&arguments.device, &arguments.way)?;
    let page = drive.admin().identify_controller().map_err(Error::from).map(|data| Page {
        schema: "nvmetal.id-ctrl/1",
        title: "Identify Controller".to_owned(),
        view_of: &identify::Controller::DESCRIPTOR,
        bytes: data.as_bytes().to_vec(),
        nsid: None,
    });
    Page::finish(page, drive, out)
}

/// Identify Namespace.
pub fn namespace(arguments: &NamespaceArguments, out: &mut Output) -> Result<Exit> {
    out.only("id ns", ALL_FORMS)?;
    let drive = open(&arguments.device, &arguments.way)?;
    let page = drive.namespace(arguments.namespace_id).and_then(|namespace| {
        let data = drive.admin().identify_namespace(namespace.nsid)?;
        Ok(Page {
            schema: "nvmetal.id-ns/1",
            title: format!("Identify Namespace {}", namespace.nsid),
            view_of: &identify::Namespace::DESCRIPTOR,
            bytes: data.as_bytes().to_vec(),
            nsid: Some(namespace.nsid),
        })
    });
    Page::finish(page, drive, out)
}

fn open(device: &str, way: &Way) -> Result<Drive> {
    Drive::open(&Device::find(device)?, way, ControllerOptions { io_queues: 0, ..ControllerOptions::default() })
}
