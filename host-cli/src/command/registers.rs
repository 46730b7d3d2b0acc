//! `nvmetal registers`: what the controller's registers say, read from the drive itself.
#![forbid(unsafe_code)]

use clap::Args;
use nvmetal_core::describe::Describe;
use nvmetal_core::register::Registers;
use nvmetal_driver::ControllerOptions;
use nvmetal_driver::transport::Transport;

use crate::device::Device;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::Output;
use crate::page::{ALL_FORMS, Page};
use crate::session::{Reach, Session};

/// Which drive.
#[derive(Debug, Args)]
pub struct Arguments {
    /// PCI address or kernel name of the drive, or `emulated[:MODEL,...]`
    device: String,
    #[command(flatten)]
    reach: Reach,
}

/// Shows the registers of the controller while it is enabled.
pub fn run(arguments: &Arguments, out: &mut Output) -> Result<Exit> {
    out.only("registers", ALL_FORMS)?;
    let options = ControllerOptions { io_queues: 0, ..ControllerOptions::default() };
    let session = Session::open(&Device::find(&arguments.device)?, &arguments.reach, options)?;
    let page = read(session.controller.transport().as_ref()).map(|bytes| Page {
        schema: "nvmetal.registers/1",
        title: "Controller registers".to_owned(),
        view_of: Registers::DESCRIPTOR_REF,
        bytes,
        nsid: None,
    });
    Page::finish(page, session, out)
}

/// Every register that is not reserved, in accesses of four bytes. None of them changes by being read.
fn read(transport: &dyn Transport) -> Result<Vec<u8>> {
    let mut bytes = vec![0; size_of::<Registers>()];
    for field in Registers::DESCRIPTOR.fields.iter().filter(|field| !field.is_reserved()) {
        for at in (field.offset..field.offset + field.bytes()).step_by(4) {
            let value = transport.read32(at as u64).map_err(Error::from)?;
            if let Some(place) = bytes.get_mut(at..at + 4) {
                place.copy_from_slice(&value.to_le_bytes());
            }
        }
    }
    Ok(bytes)
}
