//! Errors on the links of a path, counted over a run.
//!
//! The kernel counts what Advanced Error Reporting tells it (`aer_dev_correctable` and its siblings, per function) when
//! firmware lets it. Both ends of every link are read, since the receiver of a bad packet is the one that notes it. The
//! bits that tell of a changed link width or speed are kept by the downstream port until software clears them, which is
//! not done here (they are the kernel's); a bit that was clear before a run and is set after it was set by the run.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use serde::Serialize;

use super::LinkPath;
use crate::pci::PciAddress;
use crate::pci::config::aer::{Aer, ErrorBit, ErrorSet};
use crate::pci::config::{ConfigSpace, Presence};
use crate::pci::sysfs::Sysfs;

/// What one port has counted so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PortErrors {
    /// Correctable errors by the kernel's name (`RxErr`, `BadTLP`, ...). `None`: the kernel does not count here.
    pub correctable: Option<BTreeMap<String, u64>>,
    /// Uncorrectable errors that are not fatal.
    pub non_fatal: Option<BTreeMap<String, u64>>,
    /// Uncorrectable errors that are fatal.
    pub fatal: Option<BTreeMap<String, u64>>,
    /// The port changed speed or width to correct errors, or on order, since the bit was last cleared.
    pub bandwidth_management: Option<bool>,
    /// The hardware changed speed or width on its own since the bit was last cleared.
    pub autonomous_bandwidth: Option<bool>,
}

impl PortErrors {
    /// What the registers alone tell, for a port that no kernel watches over.
    ///
    /// Advanced Error Reporting keeps a bit for each kind of error and no number: a kind that has happened counts as one.
    pub fn from_config(config: &ConfigSpace) -> Self {
        if config.presence() == Presence::Gone {
            return Self::default();
        }
        let once = |set: &ErrorSet| {
            let name = |bit: &ErrorBit| bit.name.map_or_else(|| format!("bit {}", bit.bit), str::to_owned);
            set.bits.iter().map(|bit| (name(bit), 1)).collect::<BTreeMap<_, _>>()
        };
        let aer = config.aer();
        let link = config.express().and_then(|express| express.link);
        let uncorrectable = |fatal: bool| {
            let of_this_kind = |aer: &Aer| aer.uncorrectable.raw & if fatal { aer.severity } else { !aer.severity };
            aer.as_ref().map(|aer| once(&ErrorSet::uncorrectable(of_this_kind(aer))))
        };
        Self {
            correctable: aer.as_ref().map(|aer| once(&aer.correctable)),
            non_fatal: uncorrectable(false),
            fatal: uncorrectable(true),
            bandwidth_management: link.map(|link| link.status.bandwidth_management()),
            autonomous_bandwidth: link.map(|link| link.status.autonomous_bandwidth()),
        }
    }

    /// What the kernel and the registers tell about a function.
    pub fn read(sysfs: &Sysfs, address: PciAddress) -> Self {
        let device = sysfs.pci_device(address);
        let counters = |name: &str| {
            let lines = sysfs.lines(device.join(name));
            let counter = |line: &String| {
                let (name, count) = line.split_once(' ')?;
                Some((name.to_owned(), count.trim().parse().ok()?))
            };
            let map: BTreeMap<_, _> =
                lines.iter().filter_map(counter).filter(|(name, _)| !name.starts_with("TOTAL_")).collect();
            (!map.is_empty()).then_some(map)
        };
        let link = ConfigSpace::read(sysfs, address).ok().and_then(|config| config.express()).and_then(|it| it.link);
        let link = link.filter(|link| link.status.into_bits() != u16::MAX);
        Self {
            correctable: counters("aer_dev_correctable"),
            non_fatal: counters("aer_dev_nonfatal"),
            fatal: counters("aer_dev_fatal"),
            bandwidth_management: link.map(|link| link.status.bandwidth_management()),
            autonomous_bandwidth: link.map(|link| link.status.autonomous_bandwidth()),
        }
    }
}

/// What all ports of a path have counted so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LinkErrors {
    /// By port.
    pub ports: BTreeMap<PciAddress, PortErrors>,
}

/// What was counted between two readings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ErrorChange {
    /// Correctable errors. `None`: nobody counts them, which is not the same as none.
    pub correctable: Option<u64>,
    /// Uncorrectable errors, fatal or not.
    pub uncorrectable: Option<u64>,
    /// Ports that changed the speed or width of their link.
    pub retrained: Vec<PciAddress>,
    /// Each counter that moved: port, name, by how much.
    pub moved: Vec<(PciAddress, String, u64)>,
}

impl LinkErrors {
    /// Reads the counters of every port of a path.
    pub fn read(sysfs: &Sysfs, path: &LinkPath) -> Self {
        Self { ports: path.ports().map(|port| (port.address, PortErrors::read(sysfs, port.address))).collect() }
    }

    /// What happened since an earlier reading. A counter that went down (the device came back new) counts from zero.
    pub fn since(&self, before: &Self) -> ErrorChange {
        let mut change = ErrorChange::default();
        for (&port, now) in &self.ports {
            let Some(then) = before.ports.get(&port) else { continue };
            let mut count = |now: &Option<BTreeMap<String, u64>>, then: &Option<BTreeMap<String, u64>>| {
                let now = now.as_ref()?;
                let mut sum = 0u64;
                for (name, &value) in now {
                    let earlier = then.as_ref().and_then(|then| then.get(name)).copied().unwrap_or(0);
                    let by = if value >= earlier { value - earlier } else { value };
                    if by > 0 {
                        change.moved.push((port, name.clone(), by));
                    }
                    sum = sum.saturating_add(by);
                }
                Some(sum)
            };
            let correctable = count(&now.correctable, &then.correctable);
            let non_fatal = count(&now.non_fatal, &then.non_fatal);
            let fatal = count(&now.fatal, &then.fatal);
            change.correctable = add(change.correctable, correctable);
            change.uncorrectable = add(add(change.uncorrectable, non_fatal), fatal);
            let newly_set = |now: Option<bool>, then: Option<bool>| now == Some(true) && then == Some(false);
            if newly_set(now.bandwidth_management, then.bandwidth_management)
                || newly_set(now.autonomous_bandwidth, then.autonomous_bandwidth)
            {
                change.retrained.push(port);
            }
        }
        change
    }
}

/// The sum of what is known.
fn add(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.saturating_add(other)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(correctable: &[(&str, u64)], fatal: u64, retrained: bool) -> LinkErrors {
        let map = |pairs: &[(&str, u64)]| pairs.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        let errors = PortErrors {
            correctable: Some(map(correctable)),
            non_fatal: None,
            fatal: Some(map(&[("MalfTLP", fatal)])),
            bandwidth_management: Some(retrained),
            autonomous_bandwidth: None,
        };
        LinkErrors { ports: [(PciAddress::new(0, 1, 0, 0).unwrap(), errors)].into() }
    }

    #[test]
    fn only_what_moved_in_the_run_is_counted() {
        let before = reading(&[("RxErr", 7), ("BadTLP", 1)], 0, false);
        let after = reading(&[("RxErr", 10), ("BadTLP", 1)], 1, true);
        let change = after.since(&before);
        assert_eq!((change.correctable, change.uncorrectable), (Some(3), Some(1)));
        let port = PciAddress::new(0, 1, 0, 0).unwrap();
        assert_eq!(change.moved, [(port, "RxErr".to_owned(), 3), (port, "MalfTLP".to_owned(), 1)]);
        assert_eq!(change.retrained, [port]);
    }

    #[test]
    fn a_bit_that_was_set_before_the_run_accuses_nobody() {
        let before = reading(&[], 0, true);
        assert!(before.since(&before).retrained.is_empty());
    }

    #[test]
    fn a_counter_that_started_anew_counts_from_zero() {
        let change = reading(&[("RxErr", 2)], 0, false).since(&reading(&[("RxErr", 9)], 0, false));
        assert_eq!(change.correctable, Some(2));
    }

    /// A configuration space whose only capability is Advanced Error Reporting.
    fn registers(uncorrectable: u32, severity: u32, correctable: u32) -> ConfigSpace {
        let mut bytes = vec![0; 4096];
        let mut put = |at: usize, value: u32| bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        put(0x100, 0x0001 | 2 << 16);
        put(0x104, uncorrectable);
        put(0x10c, severity);
        put(0x110, correctable);
        ConfigSpace::new(bytes)
    }

    #[test]
    fn each_bit_of_the_registers_counts_as_one_and_severity_parts_the_uncorrectable() {
        let errors = PortErrors::from_config(&registers(1 << 14 | 1 << 18, 1 << 18, 1 | 1 << 6));
        let one = |name: &str| Some([(name.to_owned(), 1)].into());
        assert_eq!(errors.correctable, Some([("receiver error".to_owned(), 1), ("bad TLP".to_owned(), 1)].into()));
        assert_eq!((errors.non_fatal, errors.fatal), (one("completion time-out"), one("malformed TLP")));
    }

    #[test]
    fn clean_registers_count_none_and_missing_ones_do_not_count() {
        let clean = PortErrors::from_config(&registers(0, 0, 0));
        assert_eq!((clean.correctable, clean.fatal), (Some(BTreeMap::new()), Some(BTreeMap::new())));
        assert_eq!(PortErrors::from_config(&ConfigSpace::new(vec![0; 256])), PortErrors::default());
        let gone = ConfigSpace::new(vec![0xff; 4096]);
        assert_eq!(PortErrors::from_config(&gone), PortErrors::default());
    }

    #[test]
    fn counters_that_are_not_kept_are_not_zero() {
        let none = LinkErrors { ports: [(PciAddress::new(0, 1, 0, 0).unwrap(), PortErrors::default())].into() };
        let change = none.since(&none);
        assert_eq!((change.correctable, change.uncorrectable), (None, None));
    }
}
