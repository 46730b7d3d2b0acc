//! `nvmetal smart`: the drive's health log, with the meaning of what is in it.
#![forbid(unsafe_code)]

use clap::Args;
use nvmetal_core::describe::Describe;
use nvmetal_core::log::Smart;
use nvmetal_driver::ControllerOptions;
use zerocopy::IntoBytes;

use crate::device::Device;
use crate::drive::{Drive, Way};
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::Output;
use crate::page::{ALL_FORMS, Page};

/// Which drive.
#[derive(Debug, Args)]
pub struct Arguments {
    /// PCI address or kernel name of the drive, or `emulated[:MODEL,...]`
    device: String,
    #[command(flatten)]
    way: Way,
}

/// Shows the log.
pub fn run(arguments: &Arguments, out: &mut Output) -> Result<Exit> {
    out.only("smart", ALL_FORMS)?;
    let options = ControllerOptions { io_queues: 0, ..ControllerOptions::default() };
    let drive = Drive::open(&Device::find(&arguments.device)?, &arguments.way, options)?;
    let page = drive.admin().smart().map_err(Error::from).map(|data| Page {
        schema: "nvmetal.smart/1",
        title: "SMART / Health Information".to_owned(),
        view_of: &Smart::DESCRIPTOR,
        bytes: data.as_bytes().to_vec(),
        nsid: None,
    });
    Page::finish(page, drive, out)
}
