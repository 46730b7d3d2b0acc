//! Which processes have a node open.
//!
//! Every descriptor of every process is a link in `/proc/PID/fd`. A link is taken for a node when it leads to a device
//! of the same number, or when its text is the node's path: the first finds nodes that go by another name in another
//! mount namespace, the second a node whose device has gone. Reading other users' processes takes root; a process in a
//! container does not see those outside. Both are told, since "nobody has it open" would be a guess then. (A thread that
//! has descriptors of its own, and a mapping of a node whose descriptor was closed, are not looked for.)
#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::pci::host::DeviceNode;
use crate::pci::sysfs::{Process, Sysfs, is_gone};

/// The first process namespace of a kernel: that of the machine itself (PROC_PID_INIT_INO).
const MACHINE_NAMESPACE: &str = "pid:[4026531836]";

/// A node that a process has open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OpenHandle {
    /// Who.
    pub process: Process,
    /// Which of the nodes asked about.
    pub node: PathBuf,
}

/// The outcome of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HandleScan {
    /// What was found, each process once for each node.
    pub handles: Vec<OpenHandle>,
    /// Processes whose descriptors could not be read.
    pub hidden_processes: usize,
    /// Whether processes outside of the own process namespace cannot be seen at all.
    pub in_process_namespace: bool,
}

/// Searches all processes for open descriptors of these nodes. Descriptors of this process in `own` do not count.
pub fn open_handles(sysfs: &Sysfs, nodes: &[(PathBuf, Option<DeviceNode>)], own: &[i32]) -> HandleScan {
    let mut scan = HandleScan {
        in_process_namespace: sysfs
            .proc("self/ns/pid")
            .read_link()
            .is_ok_and(|namespace| namespace.as_os_str() != MACHINE_NAMESPACE),
        ..HandleScan::default()
    };
    let names = match sysfs.names(sysfs.proc("")) {
        Ok(names) => names,
        Err(error) => {
            log::debug!("{error}");
            scan.hidden_processes = 1;
            return scan;
        }
    };
    let pids: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
    // A /proc that is mounted with hidepid shows a user nothing but his own processes: then the first one is missing.
    if !pids.contains(&1) {
        scan.hidden_processes += 1;
    }
    let this = std::process::id();
    for pid in pids {
        let own = if pid == this { own } else { &[] };
        match nodes_open_in(sysfs, pid, nodes, own) {
            Ok(found) if found.is_empty() => {}
            Ok(found) => {
                let process = sysfs.process(pid);
                scan.handles.extend(found.into_iter().map(|node| OpenHandle { process: process.clone(), node }));
            }
            Err(error) if is_gone(&error) => {}
            Err(_) => scan.hidden_processes += 1,
        }
    }
    scan
}

fn nodes_open_in(
    sysfs: &Sysfs,
    pid: u32,
    nodes: &[(PathBuf, Option<DeviceNode>)],
    own: &[i32],
) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(sysfs.proc(format!("{pid}/fd")))? {
        let entry = entry?;
        let number = entry.file_name().to_string_lossy().parse().ok();
        if number.is_some_and(|number| own.contains(&number)) {
            continue;
        }
        let descriptor = entry.path();
        let Ok(target) = descriptor.read_link() else { continue };
        // Sockets, pipes and the like have no path, and cost a system call less.
        if !target.is_absolute() {
            continue;
        }
        let device = sysfs.actions().device_node(&descriptor).ok().flatten();
        let is_this = |(path, number): &&(PathBuf, Option<DeviceNode>)| {
            (device.is_some() && device == *number) || names_node(&target, path)
        };
        if let Some((path, _)) = nodes.iter().find(is_this)
            && !found.contains(path)
        {
            found.push(path.clone());
        }
    }
    Ok(found)
}

/// Whether a descriptor's text is a node's path; a node that was removed since is marked so.
fn names_node(target: &Path, node: &Path) -> bool {
    let text = target.to_string_lossy();
    Path::new(text.strip_suffix(" (deleted)").unwrap_or(&text)) == node
}
