//! The block devices of a drive and everything that stands on them.
//!
//! sysfs lists in `holders` which block devices stand on another one, and a disk's partitions are directories within
//! it. Walking both from each namespace gives a tree; a limit on its depth keeps a loop in it from being followed.
#![forbid(unsafe_code)]

use std::path::PathBuf;

use super::{Doubt, Layer, Usage};
use crate::pci::device_spec::{NamespaceName, NvmeName};
use crate::pci::enumerate::KernelController;
use crate::pci::host::{DeviceNode, DeviceNumber};
use crate::pci::sysfs::Sysfs;

/// More layers than anybody stacks.
const MAX_LAYERS: usize = 16;

/// A device that may have users.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// The kernel's name.
    pub name: String,
    /// Its node below `/dev`.
    pub path: PathBuf,
    /// Its number.
    pub device: Option<DeviceNode>,
    /// The way from the drive to here, this device last.
    pub layers: Vec<Layer>,
    /// Whether it is the drive's own: controller, generic node, disk or partition.
    pub is_own: bool,
    /// Whether it stands on the drive and nothing stands on it.
    pub is_uppermost_holder: bool,
}

impl Node {
    /// The number, when it is a block device.
    pub fn block_number(&self) -> Option<DeviceNumber> {
        match self.device? {
            DeviceNode::Block(number) => Some(number),
            DeviceNode::Character(_) => None,
        }
    }
}

/// All devices of a drive and above it.
pub(super) struct Tree {
    pub nodes: Vec<Node>,
}

impl Tree {
    /// The devices of a controller and all that stands on them.
    pub fn above(sysfs: &Sysfs, controller: &KernelController, usage: &mut Usage) -> Self {
        let mut tree = Self { nodes: Vec::new() };
        tree.nodes.push(Node {
            name: controller.name.clone(),
            path: sysfs.dev(&controller.name),
            device: controller.device.map(DeviceNode::Character),
            layers: vec![Layer::Controller { name: controller.name.clone() }],
            is_own: true,
            is_uppermost_holder: false,
        });
        for namespace in &controller.namespaces {
            let layer = Layer::Namespace { name: namespace.name.clone(), nsid: namespace.nsid };
            if let Ok(NvmeName::Namespace(name)) = namespace.name.parse() {
                tree.nodes.push(generic_node(sysfs, name, layer.clone()));
            }
            tree.walk(sysfs, &namespace.name, &[layer], true, usage);
        }
        // A namespace that the kernel can make no block device of (a command set or a format that it does not know) has
        // its generic node alone.
        for entry in sysfs.names_or_none(sysfs.sys("class/nvme").join(&controller.name)) {
            let Ok(NvmeName::Generic(name)) = entry.parse() else { continue };
            if !tree.nodes.iter().any(|node| node.name == entry) {
                tree.nodes.push(generic_node(sysfs, name, Layer::Namespace { name: entry, nsid: None }));
            }
        }
        tree
    }

    /// The drive's own nodes: those that nobody else may have open.
    pub fn own_nodes(&self) -> Vec<(PathBuf, Option<DeviceNode>)> {
        self.nodes.iter().filter(|node| node.is_own).map(|node| (node.path.clone(), node.device)).collect()
    }

    fn walk(&mut self, sysfs: &Sysfs, name: &str, layers: &[Layer], is_own: bool, usage: &mut Usage) {
        if layers.len() > MAX_LAYERS {
            usage.doubt(Doubt::TooDeep { device: name.to_owned() });
            return;
        }
        let directory = sysfs.sys("class/block").join(name);
        let partitions: Vec<_> = sysfs
            .names_or_none(&directory)
            .into_iter()
            .filter_map(|entry| Some((sysfs.number(directory.join(&entry).join("partition"))?, entry)))
            .collect();
        let holders = sysfs.names(directory.join("holders")).unwrap_or_else(|error| {
            usage.doubt(Doubt::unreadable(&error));
            Vec::new()
        });
        self.nodes.push(Node {
            name: name.to_owned(),
            path: sysfs.dev(name),
            device: sysfs.attribute(directory.join("dev")).and_then(|text| text.parse().ok()).map(DeviceNode::Block),
            layers: layers.to_vec(),
            is_own,
            is_uppermost_holder: !is_own && partitions.is_empty() && holders.is_empty(),
        });
        for (number, partition) in partitions {
            let layer = Layer::Partition { number, name: partition.clone() };
            self.walk(sysfs, &partition, &with(layers, layer), is_own, usage);
        }
        for holder in holders {
            let layer = holder_layer(sysfs, &holder);
            self.walk(sysfs, &holder, &with(layers, layer), false, usage);
        }
    }
}

fn with(layers: &[Layer], layer: Layer) -> Vec<Layer> {
    let mut layers = layers.to_vec();
    layers.push(layer);
    layers
}

fn generic_node(sysfs: &Sysfs, namespace: NamespaceName, layer: Layer) -> Node {
    let name = namespace.generic_name();
    let number = sysfs.attribute(sysfs.sys("class/nvme-generic").join(&name).join("dev"));
    Node {
        path: sysfs.dev(&name),
        device: number.and_then(|text| text.parse().ok()).map(DeviceNode::Character),
        layers: vec![layer],
        is_own: true,
        is_uppermost_holder: false,
        name,
    }
}

fn holder_layer(sysfs: &Sysfs, device: &str) -> Layer {
    let directory = sysfs.sys("class/block").join(device);
    let device = device.to_owned();
    match sysfs.attribute(directory.join("dm/name")) {
        Some(name) => Layer::DeviceMapper { name, device },
        None if directory.join("md").is_dir() => Layer::Md { device },
        None => Layer::Block { device },
    }
}
