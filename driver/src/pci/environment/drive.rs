//! One drive: its driver, its group, who uses it, and whether this user may open it.
#![forbid(unsafe_code)]

use super::Finding;
use crate::pci::Sysfs;
use crate::pci::binding::{VfioNodes, Viability, holders};
use crate::pci::config::{ConfigSpace, Presence};
use crate::pci::enumerate::{Kind, NvmeFunction};
use crate::pci::iommu::State;
use crate::pci::usage::{Doubt, Usage};

pub(super) fn findings(sysfs: &Sysfs, function: &NvmeFunction) -> Vec<Finding> {
    let mut findings = vec![driver(function)];
    findings.extend(left_override(function));
    findings.extend(kind(function));
    findings.extend(presence(sysfs, function));
    findings.extend(group(sysfs, function));
    findings.push(usage(sysfs, function));
    findings.extend(rights(sysfs, function));
    findings.push(reset(sysfs, function));
    findings
}

fn is_on_vfio(function: &NvmeFunction) -> bool {
    function.driver.as_deref() == Some("vfio-pci")
}

fn driver(function: &NvmeFunction) -> Finding {
    match function.driver.as_deref() {
        Some("nvme") => Finding::ok("driver", "nvme; it is taken for a run and given back"),
        Some("vfio-pci") => Finding::ok("driver", "vfio-pci"),
        None => Finding::ok("driver", "none; it is given to vfio-pci for a run"),
        Some(other) => Finding::blocker(
            "driver",
            format!("{other}, which is neither the kernel's nvme nor vfio-pci"),
            format!("stop what uses it, then: echo {} > /sys/bus/pci/drivers/{other}/unbind", function.address),
        ),
    }
}

fn left_override(function: &NvmeFunction) -> Option<Finding> {
    let wanted = function.driver_override.as_ref()?;
    (function.driver.as_ref() != Some(wanted)).then(|| {
        Finding::warn(
            "driver.override",
            format!("driver_override is {wanted}, left by a run that could not end"),
            format!("nvmetal release {}", function.address),
        )
    })
}

fn kind(function: &NvmeFunction) -> Option<Finding> {
    match function.kind {
        Kind::Io => None,
        Kind::Administrative => Some(Finding::warn(
            "kind",
            "an administrative controller: it has no namespaces to read",
            "use the I/O controller of the same subsystem",
        )),
        Kind::Apple => Some(Finding::warn(
            "kind",
            format!("an Apple controller ({:04x}:{:04x})", function.vendor, function.device),
            "some of these need submission entries of 128 bytes and shared tags; see the driver's table of quirks",
        )),
    }
}

fn presence(sysfs: &Sysfs, function: &NvmeFunction) -> Option<Finding> {
    let config = ConfigSpace::read(sysfs, function.address).ok()?;
    (config.presence() == Presence::Gone).then(|| {
        Finding::blocker(
            "presence",
            "its configuration space reads all ones: the drive, or the link to it, is gone",
            "reseat drive and card, and power the machine off and on; a link that drops again points to card, slot or supply",
        )
    })
}

fn group(sysfs: &Sysfs, function: &NvmeFunction) -> Option<Finding> {
    let address = function.address;
    let Some(group) = &function.iommu_group else {
        // Without an IOMMU no function has a group, and that has its own line.
        return matches!(State::read(sysfs), State::On { .. }).then(|| {
            Finding::blocker(
                "group",
                "in no IOMMU group, though the machine's IOMMU is on",
                "another slot, or kernel settings that keep the device out of the IOMMU (iommu=off, a platform quirk); \
                 or `nvmetal validate DEVICE --via kernel`",
            )
        });
    };
    if group.no_iommu {
        return Some(Finding::blocker(
            "group",
            format!("{}: made up by VFIO's no-IOMMU mode, nothing would confine the drive's DMA", group.node_name()),
            "switch the IOMMU on; `--unsafe-no-iommu` only on a machine that may crash",
        ));
    }
    let viability = Viability::of(group, address);
    if !viability.is_viable() {
        return Some(Finding::blocker(
            "group",
            format!("group {} is shared with {viability}", group.number),
            "unbind these from their drivers if nothing needs them (they are never unbound for you), move the card to \
             another slot, or use `nvmetal validate DEVICE --via kernel`",
        ));
    }
    let others: Vec<_> = viability
        .harmless
        .iter()
        .map(|member| format!("{} ({})", member.address, member.driver.as_deref().unwrap_or("no driver")))
        .collect();
    let company = if others.is_empty() { "alone".to_owned() } else { format!("with {}", others.join(", ")) };
    Some(Finding::ok("group", format!("group {}, {company}", group.number)))
}

fn usage(sysfs: &Sysfs, function: &NvmeFunction) -> Finding {
    if is_on_vfio(function) {
        let holders = holders(sysfs, function.address);
        let names: Vec<_> = holders.iter().map(|handle| handle.process.to_string()).collect();
        return if names.is_empty() {
            Finding::ok("usage", "nobody holds it")
        } else {
            Finding::blocker("usage", format!("held by {}", names.join(", ")), "end that process first")
        };
    }
    let usage = Usage::survey(sysfs, function);
    let texts = |items: Vec<String>| items.join("; ");
    let chains = texts(usage.chains.iter().map(ToString::to_string).collect());
    let doubts = texts(usage.doubts.iter().map(ToString::to_string).collect());
    if !usage.chains.is_empty() {
        return Finding::blocker(
            "usage",
            chains,
            "unmount, swap off or close what is named; or look at the drive without taking it: \
             `nvmetal validate DEVICE --via kernel`",
        );
    }
    if usage.doubts.iter().all(Doubt::is_permission) && !usage.doubts.is_empty() {
        return Finding::blocker("usage", doubts, "ask again as root");
    }
    if usage.doubts.is_empty() {
        Finding::ok("usage", "nobody uses it")
    } else {
        Finding::blocker("usage", doubts, "settle what is in doubt, or use `nvmetal validate DEVICE --via kernel`")
    }
}

/// What this user may not open, or write. Only the named node is needed: that is no reason to run everything as root.
fn rights(sysfs: &Sysfs, function: &NvmeFunction) -> Vec<Finding> {
    if !is_on_vfio(function) {
        let attribute = sysfs.pci_device(function.address).join("driver_override");
        return sysfs
            .actions()
            .may_open(&attribute)
            .err()
            .map(|error| {
                Finding::blocker(
                    "rights.bind",
                    format!("{}: {error}", attribute.display()),
                    format!("let root bind it once (nvmetal bind {}), and give this user its node", function.address),
                )
            })
            .into_iter()
            .collect();
    }
    let nodes = VfioNodes::of(sysfs, function.address);
    let iommufd = Some(sysfs.dev("iommu")).filter(|node| node.exists());
    // Either way in will do: the function's own node with /dev/iommu, or the group's.
    let by_device = nodes.device.as_ref().zip(iommufd.as_ref()).map(|(device, iommu)| vec![device, iommu]);
    let by_group = nodes.group.as_ref().map(|group| vec![group]);
    let refused = |way: &Vec<&std::path::PathBuf>| {
        way.iter().find_map(|node| Some(((*node).clone(), sysfs.actions().may_open(node).err()?)))
    };
    let ways: Vec<_> = [by_device, by_group].into_iter().flatten().collect();
    let refusals: Vec<_> = ways.iter().map(refused).collect();
    if ways.is_empty() {
        return vec![Finding::blocker(
            "rights.node",
            "vfio-pci has the drive, but there is no node for it in /dev/vfio",
            "load an interface to the IOMMU: modprobe vfio_iommu_type1",
        )];
    }
    if refusals.iter().any(Option::is_none) {
        return vec![Finding::ok("rights.node", "this user may open its node")];
    }
    refusals
        .into_iter()
        .flatten()
        .map(|(node, error)| {
            Finding::blocker(
                "rights.node",
                format!("{}: {error}", node.display()),
                format!("give this user the right to read and write {}, by a udev rule or chown", node.display()),
            )
        })
        .collect()
}

fn reset(sysfs: &Sysfs, function: &NvmeFunction) -> Finding {
    let directory = sysfs.pci_device(function.address);
    match sysfs.attribute(directory.join("reset_method")) {
        Some(methods) => Finding::ok("reset", methods),
        // Before Linux 5.15 only whether it can be reset is told.
        None if directory.join("reset").exists() => Finding::ok("reset", "possible"),
        None => Finding::warn(
            "reset",
            "the kernel knows no way to reset this function alone",
            "a drive that hangs can then only be recovered by its own controller reset, or by a power cycle",
        ),
    }
}
