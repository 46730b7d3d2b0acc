//! `nvmetal smart`: the drive's health log, with the meaning of what is in it.
#![forbid(unsafe_code)]

use clap::Args;
use nvmetal_core::describe::Describe;
use nvmetal_core::log::Smart;
use nvmetal_driver::{Admin, ControllerOptions};
use zerocopy::IntoBytes;

use crate::device::Device;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::Output;
use crate::page::{FORMS, Page};
use crate::session::{Reach, Session};

/// Which drive.
#[derive(Debug, Args)]
pub struct Arguments {
    /// PCI address or kernel name of the drive, or `emulated[:MODEL,...]`
    device: String,
    #[command(flatten)]
    reach: Reach,
}

/// Shows the log.
pub fn run(arguments: &Arguments, out: &mut Output) -> Result<Exit> {
    out.only("smart", FORMS)?;
    let options = ControllerOptions { io_queues: 0, ..ControllerOptions::default() };
    let session = Session::open(&Device::find(&arguments.device)?, &arguments.reach, options)?;
    let page = session.controller.smart().map_err(Error::from).map(|data| Page {
        schema: "nvmetal.smart/1",
        title: "SMART / Health Information".to_owned(),
        view_of: &Smart::DESCRIPTOR,
        bytes: data.as_bytes().to_vec(),
        nsid: None,
    });
    Page::finish(page, session, out)
}
