//! A machine made of plain files, for tests: a tree with `sys`, `proc` and `dev`, and a kernel that acts on it.
//!
//! [`FakeHost`] builds the files; [`FakeKernel`] answers to the acts of [`HostActions`] as Linux would: a write of an
//! address to `drivers_probe` binds the driver that the override (or the class) asks for, a write to `unbind` takes it
//! off. It keeps a record of all writes, so that a test can say what was *not* written.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use rustix::io::Errno;

use super::PciAddress;
use super::host::{DeviceNode, ExclusiveOpen, HostActions};
use super::sysfs::Sysfs;

/// Something that happens while a wait goes on.
pub(crate) struct AtPause(pub Box<dyn FnOnce() + Send>);

impl AtPause {
    fn happen(self) {
        (self.0)();
    }
}

impl core::fmt::Debug for AtPause {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("AtPause")
    }
}

/// What the fake kernel does, and what it was asked.
#[derive(Debug, Default)]
pub(crate) struct Behaviour {
    /// Nodes whose exclusive open answers EBUSY.
    pub busy: BTreeSet<PathBuf>,
    /// Paths whose open answers EACCES.
    pub denied: BTreeSet<PathBuf>,
    /// The numbers of device nodes, by path; links to them are followed.
    pub nodes: BTreeMap<PathBuf, DeviceNode>,
    /// Drivers that do not bind when asked.
    pub refusing: BTreeSet<String>,
    /// Modules that can be loaded: a driver of that name appears.
    pub loadable: BTreeSet<String>,
    /// Attributes (by file name) whose write never returns until [`FakeKernel::release_writes`].
    pub blocking: BTreeSet<String>,
    /// The state that the kernel's controller has after its driver took it.
    pub state_after_probe: Option<String>,
    /// Descriptors of this process that led to block device nodes when a driver was told to let go.
    pub open_at_unbind: usize,
    /// A driver that takes every function without an override, as one with an entry in new_id does.
    pub greedy: Option<String>,
    /// What happens elsewhere in the machine while something waits; once.
    pub at_pause: Option<AtPause>,
    /// All writes, in order: path below the root, and value.
    pub writes: Vec<(String, String)>,
}

/// The kernel of a [`FakeHost`].
#[derive(Debug)]
pub(crate) struct FakeKernel {
    root: PathBuf,
    behaviour: Mutex<Behaviour>,
    unblocked: Condvar,
}

/// A machine in a temporary directory.
pub(crate) struct FakeHost {
    directory: tempfile::TempDir,
    pub kernel: Arc<FakeKernel>,
    pub sysfs: Sysfs,
}

impl FakeKernel {
    pub fn with<T>(&self, act: impl FnOnce(&mut Behaviour) -> T) -> T {
        act(&mut self.behaviour.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn writes(&self) -> Vec<(String, String)> {
        self.with(|behaviour| behaviour.writes.clone())
    }

    /// Takes a function off its driver, as somebody else might.
    pub fn write_unbind(&self, address: PciAddress) {
        self.unbind(&address.to_string()).expect("a driver to unbind from");
    }

    /// Lets blocked writes go on.
    pub fn release_writes(&self) {
        self.with(|behaviour| behaviour.blocking.clear());
        self.unblocked.notify_all();
    }

    fn driver_directory(&self, driver: &str) -> PathBuf {
        self.root.join("sys/bus/pci/drivers").join(driver)
    }

    fn device_link(&self, address: &str) -> PathBuf {
        self.root.join("sys/bus/pci/devices").join(address)
    }

    fn unbind(&self, address: &str) -> io::Result<()> {
        let device = self.device_link(address);
        if !device.join("driver").exists() {
            return Err(Errno::NODEV.into());
        }
        fs::remove_file(device.join("driver"))?;
        let nvme = device.join("nvme");
        if nvme.exists() {
            fs::remove_dir_all(nvme)?;
        }
        Ok(())
    }

    fn probe(&self, address: &str) -> io::Result<()> {
        let device = self.device_link(address);
        if !device.exists() {
            return Err(Errno::NODEV.into());
        }
        if device.join("driver").exists() {
            return Ok(());
        }
        let wanted = fs::read_to_string(device.join("driver_override")).unwrap_or_default();
        let class = fs::read_to_string(device.join("class")).unwrap_or_default();
        let greedy = self.with(|behaviour| behaviour.greedy.clone());
        let driver = match wanted.trim() {
            "" | "(null)" => match greedy {
                Some(driver) => driver,
                None if class.trim() == "0x010802" => "nvme".to_owned(),
                None => return Ok(()),
            },
            wanted => wanted.to_owned(),
        };
        let refuses = self.with(|behaviour| behaviour.refusing.contains(&driver));
        if !refuses && self.driver_directory(&driver).exists() {
            symlink(self.driver_directory(&driver), device.join("driver"))?;
            if driver == "nvme" {
                fs::create_dir_all(device.join("nvme/nvme0"))?;
                if let Some(state) = self.with(|behaviour| behaviour.state_after_probe.clone()) {
                    fs::write(device.join("nvme/nvme0/state"), state)?;
                }
            }
        }
        Ok(())
    }
}

/// Descriptors of this process, really open, that lead to block device nodes of the fake machine.
fn open_nodes(behaviour: &Behaviour) -> usize {
    let is_block = |path: &PathBuf| matches!(behaviour.nodes.get(path), Some(DeviceNode::Block(_)));
    let descriptors = fs::read_dir("/proc/self/fd").expect("this process");
    descriptors.flatten().filter_map(|entry| entry.path().read_link().ok()).filter(is_block).count()
}

impl HostActions for FakeKernel {
    fn write_attribute(&self, path: &Path, value: &[u8]) -> io::Result<()> {
        let text = String::from_utf8_lossy(value).into_owned();
        let below = path.strip_prefix(&self.root).unwrap_or(path).display().to_string();
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut behaviour = self.behaviour.lock().unwrap_or_else(PoisonError::into_inner);
        behaviour.writes.push((below, text.clone()));
        if file == "unbind" {
            behaviour.open_at_unbind = open_nodes(&behaviour);
        }
        while behaviour.blocking.contains(&file) {
            behaviour = self.unblocked.wait(behaviour).unwrap_or_else(PoisonError::into_inner);
        }
        let denied = behaviour.denied.contains(path);
        drop(behaviour);
        if denied {
            return Err(Errno::ACCESS.into());
        }
        match file.as_str() {
            "unbind" => self.unbind(text.trim()),
            "drivers_probe" => self.probe(text.trim()),
            // An empty write changes nothing: the kernel never sees it.
            "driver_override" if text.is_empty() => Ok(()),
            "driver_override" => {
                let shown = if text.trim().is_empty() { "(null)\n".to_owned() } else { format!("{}\n", text.trim()) };
                if !path.exists() {
                    return Err(Errno::NOENT.into());
                }
                fs::write(path, shown)
            }
            _ => Err(Errno::INVAL.into()),
        }
    }

    fn open_exclusive(&self, node: &Path) -> io::Result<ExclusiveOpen> {
        let (busy, denied) = self.with(|behaviour| (behaviour.busy.contains(node), behaviour.denied.contains(node)));
        if denied {
            return Err(Errno::ACCESS.into());
        }
        let file = fs::File::open(node)?;
        if busy {
            return Err(Errno::BUSY.into());
        }
        match self.device_node(node)? {
            Some(DeviceNode::Block(device)) => Ok(ExclusiveOpen { file, device }),
            _ => Err(Errno::NOTBLK.into()),
        }
    }

    fn device_node(&self, path: &Path) -> io::Result<Option<DeviceNode>> {
        let path = fs::canonicalize(path)?;
        Ok(self.with(|behaviour| behaviour.nodes.get(&path).copied()))
    }

    fn may_open(&self, node: &Path) -> io::Result<()> {
        fs::metadata(node)?;
        if self.with(|behaviour| behaviour.denied.contains(node)) { Err(Errno::ACCESS.into()) } else { Ok(()) }
    }

    fn load_module(&self, module: &str) -> io::Result<()> {
        if !self.with(|behaviour| behaviour.loadable.contains(module)) {
            return Err(io::Error::other(format!("FATAL: Module {module} not found")));
        }
        fs::create_dir_all(self.driver_directory(module))?;
        fs::create_dir_all(self.root.join("sys/module").join(module.replace('-', "_")))
    }

    fn pause(&self, _: Duration) {
        let act = self.with(|behaviour| behaviour.at_pause.take());
        if let Some(act) = act {
            act.happen();
        }
    }
}

impl FakeHost {
    /// A machine with an empty bus, the drivers nvme, pcieport and vfio-pci, and this process in `/proc`.
    pub fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        // The path itself may lead through links; the fake kernel compares canonical ones.
        let root = directory.path().canonicalize().expect("the directory exists");
        let kernel =
            Arc::new(FakeKernel { root: root.clone(), behaviour: Mutex::default(), unblocked: Condvar::new() });
        let sysfs = Sysfs::at(&root, kernel.clone());
        let host = Self { directory, kernel, sysfs };
        for path in ["sys/bus/pci/devices", "sys/class/block", "sys/class/nvme", "dev/vfio", "run/lock", "tmp"] {
            host.directory(path);
        }
        for driver in ["nvme", "pcieport", "vfio-pci"] {
            host.directory(&format!("sys/bus/pci/drivers/{driver}"));
        }
        host.file("proc/1/comm", "init\n");
        host.directory("proc/1/fd");
        host.file("proc/1/mountinfo", "");
        host.file("proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n");
        host
    }

    pub fn root(&self) -> PathBuf {
        self.directory.path().canonicalize().expect("the directory exists")
    }

    pub fn path(&self, below: &str) -> PathBuf {
        self.root().join(below)
    }

    pub fn directory(&self, below: &str) {
        fs::create_dir_all(self.path(below)).expect("a directory");
    }

    pub fn file(&self, below: &str, content: impl AsRef<[u8]>) {
        let path = self.path(below);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(path, content).expect("a file");
    }

    pub fn link(&self, below: &str, target: impl AsRef<Path>) {
        let path = self.path(below);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        symlink(target, path).expect("a link");
    }

    /// Removes a file, a link or a whole directory.
    pub fn remove(&self, below: &str) {
        let path = self.path(below);
        if path.is_dir() && !path.is_symlink() {
            fs::remove_dir_all(path).expect("a directory to remove");
        } else {
            fs::remove_file(path).expect("a file to remove");
        }
    }

    /// Adds a function at the end of a path of functions below `pci0000:00`; the last one is the new one.
    pub fn function(&self, path: &[&str], class: &str) -> PciAddress {
        let nested = path.join("/");
        let directory = format!("sys/devices/pci0000:00/{nested}");
        self.function_at(&directory, class)
    }

    /// Adds a function whose canonical directory is this.
    pub fn function_at(&self, directory: &str, class: &str) -> PciAddress {
        let name = directory.rsplit('/').next().expect("a name");
        self.file(&format!("{directory}/class"), format!("{class}\n"));
        self.file(&format!("{directory}/vendor"), "0x144d\n");
        self.file(&format!("{directory}/device"), "0xa80a\n");
        self.file(&format!("{directory}/driver_override"), "(null)\n");
        self.link(&format!("sys/bus/pci/devices/{name}"), self.path(directory));
        name.parse().expect("an address")
    }

    /// Writes an attribute of a function.
    pub fn attribute(&self, address: PciAddress, name: &str, value: impl AsRef<[u8]>) {
        fs::write(self.sysfs.pci_device(address).join(name), value).expect("an attribute");
    }

    /// Sets the four link attributes of a function.
    pub fn set_link(&self, address: PciAddress, now: (&str, &str), able: (&str, &str)) {
        self.attribute(address, "current_link_speed", now.0);
        self.attribute(address, "current_link_width", now.1);
        self.attribute(address, "max_link_speed", able.0);
        self.attribute(address, "max_link_width", able.1);
    }

    /// Binds a function to a driver.
    pub fn bind(&self, address: PciAddress, driver: &str) {
        self.directory(&format!("sys/bus/pci/drivers/{driver}"));
        let link = self.sysfs.pci_device(address).join("driver");
        symlink(self.path(&format!("sys/bus/pci/drivers/{driver}")), link).expect("a link");
    }

    /// Puts functions into an IOMMU group.
    pub fn group(&self, number: u32, members: &[PciAddress]) {
        let group = self.path(&format!("sys/kernel/iommu_groups/{number}"));
        self.directory(&format!("sys/kernel/iommu_groups/{number}/devices"));
        for &member in members {
            symlink(&group, self.sysfs.pci_device(member).join("iommu_group")).expect("a link");
            let entry = group.join("devices").join(member.to_string());
            symlink(self.sysfs.pci_device(member), entry).expect("a link");
        }
        self.character_node(&format!("vfio/{number}"), &format!("236:{number}"));
    }

    /// The driver of a function.
    pub fn driver(&self, address: PciAddress) -> Option<String> {
        self.sysfs.link_name(self.sysfs.pci_device(address).join("driver"))
    }

    /// A process, and what its descriptors lead to.
    pub fn process(&self, pid: u32, command: &str, descriptors: &[&Path]) {
        self.file(&format!("proc/{pid}/comm"), format!("{command}\n"));
        self.file(&format!("proc/{pid}/mountinfo"), "");
        self.directory(&format!("proc/{pid}/fd"));
        for (number, target) in descriptors.iter().enumerate() {
            self.link(&format!("proc/{pid}/fd/{}", number + 3), target);
        }
    }

    /// A block device node of this number below `/dev`.
    pub fn block_node(&self, name: &str, number: &str) -> PathBuf {
        self.node(name, DeviceNode::Block(number.parse().expect("major:minor")))
    }

    /// A character device node of this number below `/dev`.
    pub fn character_node(&self, name: &str, number: &str) -> PathBuf {
        self.node(name, DeviceNode::Character(number.parse().expect("major:minor")))
    }

    fn node(&self, name: &str, node: DeviceNode) -> PathBuf {
        self.file(&format!("dev/{name}"), "");
        let path = self.path(&format!("dev/{name}"));
        self.kernel.with(|behaviour| behaviour.nodes.insert(path.clone(), node));
        path
    }

    /// A drive at 0000:01:00.0 behind a root port, alone in group 14, held by the kernel as nvme0 with one namespace of
    /// two partitions: what most machines have.
    pub fn with_drive() -> (Self, PciAddress) {
        let host = Self::new();
        let port = host.function(&["0000:00:1c.4"], "0x060400");
        let drive = host.function(&["0000:00:1c.4", "0000:01:00.0"], "0x010802");
        host.bind(port, "pcieport");
        host.bind(drive, "nvme");
        host.group(14, &[drive]);
        host.controller(drive, "nvme0", 0);
        host.namespace(drive, "nvme0", 1, &[1, 2]);
        (host, drive)
    }

    /// The kernel's controller for a drive.
    pub fn controller(&self, drive: PciAddress, name: &str, minor: u32) {
        let directory = self.sysfs.canonical(self.sysfs.pci_device(drive)).expect("a drive");
        let below = directory.strip_prefix(self.root()).expect("below the root").display().to_string();
        let controller = format!("{below}/nvme/{name}");
        self.file(&format!("{controller}/dev"), format!("240:{minor}\n"));
        self.file(&format!("{controller}/model"), "Samsung SSD 980 1TB                     \n");
        self.file(&format!("{controller}/serial"), "S649NX0T000001      \n");
        self.file(&format!("{controller}/firmware_rev"), "1B4QFXO7\n");
        self.file(&format!("{controller}/state"), "live\n");
        self.file(&format!("{controller}/transport"), "pcie\n");
        self.link(&format!("sys/class/nvme/{name}"), self.path(&controller));
        self.character_node(name, &format!("240:{minor}"));
    }

    /// A namespace of a controller with partitions, and its nodes.
    pub fn namespace(&self, drive: PciAddress, controller: &str, nsid: u32, partitions: &[u32]) {
        let directory = self.sysfs.canonical(self.sysfs.pci_device(drive)).expect("a drive");
        let below = directory.strip_prefix(self.root()).expect("below the root").display().to_string();
        let name = format!("{controller}n{nsid}");
        let block = format!("{below}/nvme/{controller}/{name}");
        let base = 100 * nsid;
        self.block(&block, &name, &format!("259:{base}"), 1_953_525_168);
        self.file(&format!("{block}/nsid"), format!("{nsid}\n"));
        self.file(&format!("{block}/queue/logical_block_size"), "512\n");
        for partition in partitions {
            let part = format!("{name}p{partition}");
            self.block(&format!("{block}/{part}"), &part, &format!("259:{}", base + partition), 2048);
            self.file(&format!("{block}/{part}/partition"), format!("{partition}\n"));
        }
        let generic = name.replace("nvme", "ng");
        self.file(&format!("{below}/nvme/{controller}/{generic}/dev"), format!("241:{nsid}\n"));
        self.link(
            &format!("sys/class/nvme-generic/{generic}"),
            self.path(&format!("{below}/nvme/{controller}/{generic}")),
        );
        self.character_node(&generic, &format!("241:{nsid}"));
    }

    /// A block device with an empty `holders`, in the class and in `/dev`.
    pub fn block(&self, directory: &str, name: &str, number: &str, sectors: u64) {
        self.file(&format!("{directory}/dev"), format!("{number}\n"));
        self.file(&format!("{directory}/size"), format!("{sectors}\n"));
        self.directory(&format!("{directory}/holders"));
        self.link(&format!("sys/class/block/{name}"), self.path(directory));
        self.block_node(name, number);
    }

    /// Lets one block device hold another, as device mapper and md do.
    pub fn hold(&self, held: &str, holder: &str) {
        let held = self.sysfs.canonical(self.sysfs.sys("class/block").join(held)).expect("a block device");
        let holder_directory =
            self.sysfs.canonical(self.sysfs.sys("class/block").join(holder)).expect("a block device");
        symlink(holder_directory, held.join("holders").join(holder)).expect("a link");
    }
}
