//! `nvmetal release`: give drives back to the kernel, whatever state they were left in.
#![forbid(unsafe_code)]

use clap::Args;
use nvmetal_driver::pci::binding::{BindOptions, GivenBack, left_behind, release};
use nvmetal_driver::pci::enumerate::NvmeFunction;
use nvmetal_driver::pci::{PciAddress, Sysfs};
use serde_json::json;

use crate::device::Device;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::{Format, Output};

/// Which drives.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("which").required(true).args(["device", "all"]))]
pub struct Arguments {
    /// PCI address of the drive
    device: Option<String>,
    /// Every drive that a run left behind: set to vfio-pci, or without a driver
    #[arg(long)]
    all: bool,
    /// Say what would be given back, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// Gives them back.
pub fn run(arguments: &Arguments, out: &mut Output) -> Result<Exit> {
    out.only("release", &[Format::Human, Format::Json])?;
    let sysfs = Sysfs::host();
    let addresses = match &arguments.device {
        Some(device) => vec![Device::find_pci(device, "release")?],
        None => match left_behind(&sysfs) {
            Ok(addresses) => addresses,
            // A machine without a PCI bus has nothing that could have been left behind.
            Err(nvmetal_driver::pci::binding::BindError::Sysfs(error)) if error.is_not_found() => Vec::new(),
            Err(error) => return Err(error.into()),
        },
    };
    if arguments.dry_run {
        return dry_run(&sysfs, &addresses, out);
    }
    let mut given_back: Vec<GivenBack> = Vec::new();
    let mut kept: Vec<Error> = Vec::new();
    for address in addresses {
        match release(&sysfs, address, BindOptions::default()) {
            Ok(back) => given_back.push(back),
            Err(error) => kept.push(error.into()),
        }
    }
    // One drive that cannot be given back is the command's error; with several, each is told.
    if given_back.is_empty() && kept.len() == 1 {
        return Err(kept.remove(0));
    }
    let exit = kept.iter().fold(Exit::Pass, |exit, error| exit.and(error.kind.exit()));
    let document = json!({
        "schema": "nvmetal.release/1",
        "emulated": false,
        "given_back": given_back,
        "kept": kept.iter().map(|error| error.to_json()["error"].clone()).collect::<Vec<_>>(),
    });
    out.result(&document, || human(&given_back, &kept))?;
    Ok(exit)
}

fn human(given_back: &[GivenBack], kept: &[Error]) -> String {
    if given_back.is_empty() && kept.is_empty() {
        return "No drive was left behind.\n".to_owned();
    }
    let mut text = String::new();
    for back in given_back {
        let name = back.controller.as_ref().map_or(String::new(), |name| format!(" as {name}"));
        let ready = if back.is_live || back.controller.is_none() { "" } else { ", not ready yet" };
        let unchanged = back.driver_before.as_ref() == Some(&back.driver) && back.override_cleared.is_none();
        text += &if unchanged {
            format!("{}: is with {}{name} already\n", back.address, back.driver)
        } else {
            format!("{}: given back to {}{name}{ready}\n", back.address, back.driver)
        };
    }
    for error in kept {
        text += &format!("not given back: {}\n", error.message);
        if let Some(remedy) = &error.remedy {
            text += &format!("  {remedy}\n");
        }
    }
    text
}

fn dry_run(sysfs: &Sysfs, addresses: &[PciAddress], out: &mut Output) -> Result<Exit> {
    let functions: Vec<NvmeFunction> =
        addresses.iter().filter_map(|&address| NvmeFunction::read(sysfs, address)).collect();
    let document = json!({
        "schema": "nvmetal.release/1",
        "emulated": false,
        "dry_run": true,
        "would_give_back": functions,
    });
    out.result(&document, || {
        let line = |function: &NvmeFunction| {
            format!(
                "{}: on {}, override {}; would clear the override, unbind and probe\n",
                function.address,
                function.driver.as_deref().unwrap_or("no driver"),
                function.driver_override.as_deref().unwrap_or("none")
            )
        };
        if functions.is_empty() {
            "No drive was left behind.\n".to_owned()
        } else {
            functions.iter().map(line).collect()
        }
    })?;
    Ok(Exit::Pass)
}
