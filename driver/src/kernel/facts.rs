//! What sysfs tells of a drive that the kernel holds, in place of the controller's registers.
//!
//! All of it can be read by an ordinary user. Every value may be missing: attributes come and go with the kernel's
//! version, and a drive that leaves takes its files with it.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::pci::enumerate::{KernelController, KernelNamespace};
use crate::pci::{PciAddress, Sysfs};

/// What the kernel says of a controller.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ControllerFacts {
    /// The kernel's name: `nvme0`.
    pub name: String,
    /// `live` in normal operation; `resetting`, `connecting`, `deleting`, `dead`.
    pub state: Option<String>,
    /// Model number.
    pub model: Option<String>,
    /// Serial number.
    pub serial: Option<String>,
    /// Firmware revision.
    pub firmware: Option<String>,
    /// Controller ID.
    pub controller_id: Option<u64>,
    /// Queue pairs of the kernel's driver, the admin queue included.
    pub queues: Option<u64>,
    /// Entries of an I/O submission queue, less one.
    pub queue_size: Option<u64>,
    /// Whether the host memory buffer is on.
    pub host_memory_buffer: Option<bool>,
    /// Temperatures of the kernel's hardware monitor.
    pub temperatures: Vec<KernelTemperature>,
    /// Namespaces that have a block device.
    pub namespaces: Vec<KernelNamespace>,
}

/// A temperature of the kernel's hardware monitor (CONFIG_NVME_HWMON), which needs no root. It is asked of the drive when
/// it is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KernelTemperature {
    /// `Composite`, `Sensor 1`, ...
    pub label: String,
    /// In thousandths of a degree Celsius.
    pub millicelsius: i64,
    /// The drive's warning threshold.
    pub warning_millicelsius: Option<i64>,
    /// The drive's critical threshold.
    pub critical_millicelsius: Option<i64>,
}

impl ControllerFacts {
    /// What sysfs tells of the controller `name` of the function at `address`.
    pub fn read(sysfs: &Sysfs, address: PciAddress, name: &str) -> Self {
        let known = KernelController::of(sysfs, address).filter(|known| known.name == name);
        let directory = sysfs.pci_device(address).join("nvme").join(name);
        let number = |attribute: &str| sysfs.number(directory.join(attribute));
        let facts = Self {
            name: name.to_owned(),
            controller_id: number("cntlid"),
            queues: number("queue_count"),
            queue_size: number("sqsize"),
            host_memory_buffer: number("hmb").map(|on| on != 0),
            temperatures: temperatures(sysfs, &directory),
            ..Self::default()
        };
        match known {
            Some(known) => Self {
                state: known.state,
                model: known.model,
                serial: known.serial,
                firmware: known.firmware,
                namespaces: known.namespaces,
                ..facts
            },
            None => facts,
        }
    }

    /// The composite temperature in kelvin, as SMART data has it.
    pub fn composite_kelvin(&self) -> Option<u16> {
        let composite = self.temperatures.iter().find(|temperature| temperature.label == "Composite")?;
        // The kernel subtracts 273.15 from the drive's whole kelvins and keeps the thousandths.
        let milli_kelvin = composite.millicelsius.checked_add(273_150)?;
        u16::try_from(milli_kelvin / 1000).ok()
    }
}

/// The temperatures of the hardware monitor below a controller's directory.
fn temperatures(sysfs: &Sysfs, controller: &Path) -> Vec<KernelTemperature> {
    let is_monitor = |name: &String| name.strip_prefix("hwmon").is_some_and(|rest| rest.parse::<u32>().is_ok());
    let monitor = monitors(sysfs, controller)
        .into_iter()
        .flat_map(|parent| {
            let names = sysfs.names_or_none(&parent);
            names.into_iter().filter(is_monitor).map(move |name| parent.join(name)).collect::<Vec<_>>()
        })
        .next();
    let Some(monitor) = monitor else { return Vec::new() };
    let value = |name: String| sysfs.attribute(monitor.join(name)).and_then(|text| text.parse().ok());
    // The composite temperature and eight sensors.
    (1..=9)
        .filter_map(|index| {
            Some(KernelTemperature {
                label: sysfs.attribute(monitor.join(format!("temp{index}_label")))?,
                millicelsius: value(format!("temp{index}_input"))?,
                warning_millicelsius: value(format!("temp{index}_max")),
                critical_millicelsius: value(format!("temp{index}_crit")),
            })
        })
        .collect()
}

/// Where the monitor may hang: below the controller, or in a directory of its own there.
fn monitors(sysfs: &Sysfs, controller: &Path) -> Vec<PathBuf> {
    let below = controller.join("hwmon");
    if sysfs.names_or_none(&below).is_empty() { vec![controller.to_owned()] } else { vec![below] }
}

/// What the kernel says of a block device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct BlockFacts {
    /// The device: `nvme0n1`, or a partition of it.
    pub name: String,
    /// The most bytes of one command; the block layer splits what is larger.
    pub most_command_bytes: Option<u64>,
    /// The most that the drive would take (MDTS) or the kernel can describe.
    pub most_hardware_bytes: Option<u64>,
    /// Commands that may wait or be under way on one of the kernel's queues.
    pub requests: Option<u64>,
    /// The I/O scheduler; `none` for a drive that is left alone.
    pub scheduler: Option<String>,
    /// Completions can be polled for: the driver was loaded with `poll_queues`.
    pub polls: bool,
    /// `write back` or `write through`.
    pub write_cache: Option<String>,
    /// The serial number of the drive.
    pub serial: Option<String>,
}

impl BlockFacts {
    /// What sysfs tells of a block device by its directory there; a partition's queue is that of its disk.
    pub fn read(sysfs: &Sysfs, directory: &Path) -> Self {
        let is_partition = sysfs.attribute(directory.join("partition")).is_some();
        let disk = directory.parent().filter(|_| is_partition).unwrap_or(directory);
        let queue = disk.join("queue");
        let kibibytes = |name: &str| sysfs.number(queue.join(name)).and_then(|kibibytes| kibibytes.checked_mul(1024));
        Self {
            name: directory.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
            most_command_bytes: kibibytes("max_sectors_kb"),
            most_hardware_bytes: kibibytes("max_hw_sectors_kb"),
            requests: sysfs.number(queue.join("nr_requests")),
            scheduler: sysfs.attribute(queue.join("scheduler")).and_then(|list| chosen(&list)),
            polls: sysfs.number(queue.join("io_poll")) == Some(1),
            write_cache: sysfs.attribute(queue.join("write_cache")),
            serial: sysfs.attribute(disk.join("device/serial")),
        }
    }
}

/// The word in brackets: `mq-deadline [none]`; the only word where there is one.
fn chosen(list: &str) -> Option<String> {
    let bracketed = list.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(word, _)| word);
    bracketed.or_else(|| (!list.contains(' ')).then_some(list)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pci::testing::FakeHost;

    fn drive() -> (FakeHost, PciAddress, String) {
        let (host, drive) = FakeHost::with_drive();
        let directory = host.sysfs.canonical(host.sysfs.pci_device(drive)).expect("a directory").join("nvme/nvme0");
        let below = directory.strip_prefix(host.root()).expect("below the root").to_string_lossy().into_owned();
        (host, drive, below)
    }

    #[test]
    fn a_controller_tells_its_state_queues_and_temperature() {
        let (host, drive, below) = drive();
        host.file(&format!("{below}/cntlid"), "3\n");
        host.file(&format!("{below}/queue_count"), "9\n");
        host.file(&format!("{below}/sqsize"), "1023\n");
        host.file(&format!("{below}/hmb"), "1\n");
        host.file(&format!("{below}/hwmon2/temp1_label"), "Composite\n");
        host.file(&format!("{below}/hwmon2/temp1_input"), "38850\n");
        host.file(&format!("{below}/hwmon2/temp1_max"), "81850\n");
        host.file(&format!("{below}/hwmon2/temp1_crit"), "84850\n");
        host.file(&format!("{below}/hwmon2/temp2_label"), "Sensor 1\n");
        host.file(&format!("{below}/hwmon2/temp2_input"), "-3150\n");
        let facts = ControllerFacts::read(&host.sysfs, drive, "nvme0");
        assert_eq!((facts.controller_id, facts.queues, facts.queue_size), (Some(3), Some(9), Some(1023)));
        assert_eq!(facts.host_memory_buffer, Some(true));
        assert_eq!(facts.composite_kelvin(), Some(312));
        assert_eq!(facts.temperatures.len(), 2);
        assert_eq!(facts.temperatures[0].critical_millicelsius, Some(84_850));
        assert_eq!(facts.temperatures[1].millicelsius, -3150);
    }

    #[test]
    fn what_the_kernel_does_not_tell_is_missing_and_not_zero() {
        let (host, drive, _) = drive();
        let facts = ControllerFacts::read(&host.sysfs, drive, "nvme7");
        let unknown = ControllerFacts { name: "nvme7".into(), ..ControllerFacts::default() };
        assert_eq!(facts, unknown);
        assert_eq!(facts.composite_kelvin(), None);
        let nothing = BlockFacts::read(&host.sysfs, &host.path("sys/nothing/nvme7n1"));
        assert_eq!(nothing, BlockFacts { name: "nvme7n1".into(), ..BlockFacts::default() });
    }

    #[test]
    fn a_block_device_tells_its_limits_and_a_partition_those_of_its_disk() {
        let host = FakeHost::new();
        for (name, value) in [
            ("queue/max_sectors_kb", "512"),
            ("queue/max_hw_sectors_kb", "2048"),
            ("queue/nr_requests", "1023"),
            ("queue/scheduler", "mq-deadline kyber [none]"),
            ("queue/io_poll", "1"),
            ("queue/write_cache", "write back"),
            ("device/serial", "S649NX0T000001      "),
            ("nvme0n1p1/partition", "1"),
        ] {
            host.file(&format!("sys/block/nvme0n1/{name}"), format!("{value}\n"));
        }
        let disk = BlockFacts::read(&host.sysfs, &host.path("sys/block/nvme0n1"));
        assert_eq!((disk.most_command_bytes, disk.most_hardware_bytes), (Some(512 << 10), Some(2048 << 10)));
        assert_eq!((disk.requests, disk.scheduler.as_deref(), disk.polls), (Some(1023), Some("none"), true));
        assert_eq!(disk.serial.as_deref(), Some("S649NX0T000001"));
        let partition = BlockFacts::read(&host.sysfs, &host.path("sys/block/nvme0n1/nvme0n1p1"));
        assert_eq!(partition, BlockFacts { name: "nvme0n1p1".into(), ..disk });
    }

    #[test]
    fn the_scheduler_is_the_word_in_brackets() {
        assert_eq!(chosen("[mq-deadline] none").as_deref(), Some("mq-deadline"));
        assert_eq!(chosen("none").as_deref(), Some("none"));
        assert_eq!(chosen("none mq-deadline"), None);
    }
}
