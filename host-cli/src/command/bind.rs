//! `nvmetal bind`: take a drive from the kernel and leave it with vfio-pci.
//!
//! `bench` and `validate` do this by themselves and give the drive back; `bind` is for leaving it there, for another
//! program or another user.
#![forbid(unsafe_code)]

use clap::Args;
use nvmetal_driver::pci::Sysfs;
use nvmetal_driver::pci::binding::{BindOptions, Handover, VfioNodes, Viability};
use nvmetal_driver::pci::enumerate::NvmeFunction;
use nvmetal_driver::pci::usage::Usage;
use serde_json::json;

use crate::device::Device;
use crate::error::{Error, Kind, Result};
use crate::exit::Exit;
use crate::output::{Format, Output};

/// Which drive.
#[derive(Debug, Args)]
pub struct Arguments {
    /// PCI address or kernel name of the drive
    device: String,
    /// Look at everything that could prevent it, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// Binds the drive.
pub fn run(arguments: &Arguments, out: &mut Output) -> Result<Exit> {
    out.only("bind", &[Format::Human, Format::Json])?;
    let address = Device::find_pci(&arguments.device, "bind")?;
    let sysfs = Sysfs::host();
    if arguments.dry_run {
        return dry_run(&sysfs, address, out);
    }
    let before = NvmeFunction::read(&sysfs, address).and_then(|function| function.driver);
    let handover = Handover::take(&sysfs, address, BindOptions::default())?;
    let (nodes, taken) = (handover.nodes(), handover.is_taken());
    handover.keep();
    let document = json!({
        "schema": "nvmetal.bind/1",
        "emulated": false,
        "address": address,
        "driver_before": before,
        "driver": "vfio-pci",
        "changed": taken,
        "nodes": [nodes.group, nodes.device],
    });
    out.result(&document, || {
        let nodes = node_names(&nodes);
        if taken {
            let from = before.as_deref().unwrap_or("no driver");
            format!(
                "{address}: taken from {from}, now on vfio-pci ({nodes})\n\
                 Give it back with: nvmetal release {address}\n"
            )
        } else {
            format!("{address}: is on vfio-pci already ({nodes})\n")
        }
    })?;
    Ok(Exit::Pass)
}

fn node_names(nodes: &VfioNodes) -> String {
    let names: Vec<_> =
        [&nodes.group, &nodes.device].into_iter().flatten().map(|path| path.display().to_string()).collect();
    if names.is_empty() { "no node in /dev/vfio yet".to_owned() } else { names.join(", ") }
}

/// What `bind` would meet.
fn dry_run(sysfs: &Sysfs, address: nvmetal_driver::pci::PciAddress, out: &mut Output) -> Result<Exit> {
    let function = NvmeFunction::read(sysfs, address)
        .ok_or_else(|| Error::new(Kind::UnknownDevice, format!("there is no NVMe controller at {address}")))?;
    let usage = Usage::survey(sysfs, &function);
    let viability = function.iommu_group.as_ref().map(|group| Viability::of(group, address));
    let viable = viability.as_ref().is_some_and(Viability::is_viable);
    let possible = viable && usage.is_free();
    let document = json!({
        "schema": "nvmetal.bind/1",
        "emulated": false,
        "dry_run": true,
        "address": address,
        "driver_before": function.driver,
        "possible": possible,
        "usage": usage,
        "group": viability,
    });
    out.result(&document, || {
        let mut text = String::new();
        for chain in &usage.chains {
            text += &format!("{address}: in use: {chain}\n");
        }
        for doubt in &usage.doubts {
            text += &format!("{address}: in doubt: {doubt}\n");
        }
        match &viability {
            None => text += &format!("{address}: is in no IOMMU group\n"),
            Some(viability) if !viability.is_viable() => {
                text += &format!("{address}: shares IOMMU group {} with {viability}\n", viability.group);
            }
            Some(_) => {}
        }
        if possible {
            let from = function.driver.as_deref().unwrap_or("no driver");
            text += &format!(
                "{address}: would set driver_override to vfio-pci, unbind from {from} and probe; nothing was changed\n"
            );
        }
        text
    })?;
    Ok(if possible {
        Exit::Pass
    } else if viable {
        Exit::Refused
    } else {
        Exit::Environment
    })
}
