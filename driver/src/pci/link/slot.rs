//! Ports that could have a drive behind them, and what is really there.
//!
//! A card for two or four drives that has no switch needs a slot that splits its lanes ("bifurcation"). Without it one
//! drive is seen and the others are not, and nothing in the machine reports an error. What can be seen is a port with
//! more lanes than the drive behind it, and a slot that reports a card but leads to no function.
#![forbid(unsafe_code)]

use core::fmt;
use std::path::Path;

use serde::Serialize;

use super::{LinkPath, LinkWidth};
use crate::pci::PciAddress;
use crate::pci::config::ConfigSpace;
use crate::pci::sysfs::{Sysfs, SysfsError};

/// A downstream port with a slot, and what is behind it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PortSlot {
    /// The port.
    pub port: PciAddress,
    /// The slot's number.
    pub number: u16,
    /// Whether the slot reports a card.
    pub card_present: bool,
    /// The lanes of the port.
    pub width_able: Option<LinkWidth>,
    /// The functions directly behind it. An empty port is not a drive.
    pub functions: Vec<PciAddress>,
}

impl PortSlot {
    /// All slots of this host whose port can be read (that takes root).
    pub fn all(sysfs: &Sysfs) -> Result<Vec<Self>, SysfsError> {
        let mut slots = Vec::new();
        for name in sysfs.names(sysfs.sys("bus/pci/devices"))? {
            let Ok(port) = name.parse::<PciAddress>() else { continue };
            let Ok(config) = ConfigSpace::read(sysfs, port) else { continue };
            let Some(express) = config.express() else { continue };
            let Some(slot) = express.slot else { continue };
            slots.push(Self {
                port,
                number: slot.capabilities.number(),
                card_present: slot.status.present(),
                width_able: express.link.and_then(|link| LinkWidth::new(link.capabilities.width())),
                functions: functions_in(sysfs, &sysfs.pci_device(port)),
            });
        }
        Ok(slots)
    }
}

fn functions_in(sysfs: &Sysfs, directory: &Path) -> Vec<PciAddress> {
    sysfs.names_or_none(directory).iter().filter_map(|name| name.parse().ok()).collect()
}

/// A reason why a drive of a card may not be seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "hint", rename_all = "snake_case")]
pub enum SlotHint {
    /// A slot reports a card, and no function answers behind it.
    CardWithoutFunction {
        /// The port above the slot.
        port: PciAddress,
        /// The slot's number.
        number: u16,
    },
    /// A drive uses a part of the lanes of its slot: a second one on the same card needs them split.
    LanesLeftOver {
        /// The drive.
        drive: PciAddress,
        /// Its lanes.
        drive_width: LinkWidth,
        /// The port above it.
        port: PciAddress,
        /// The port's lanes.
        port_width: LinkWidth,
    },
}

impl SlotHint {
    /// What the slots of a host and the paths of the drives found in it suggest.
    pub fn all(slots: &[PortSlot], drives: &[LinkPath]) -> Vec<Self> {
        let silent = slots
            .iter()
            .filter(|slot| slot.card_present && slot.functions.is_empty())
            .map(|slot| Self::CardWithoutFunction { port: slot.port, number: slot.number });
        let left_over = drives.iter().filter_map(|path| {
            let hop = path.drive_hop()?;
            let upper = hop.upper.as_ref()?;
            let (drive_width, port_width) = (hop.lower.width_able?, upper.width_able?);
            // Half of the lanes left over is room for one more drive of this kind.
            (port_width.lanes() >= 2 * drive_width.lanes()).then_some(Self::LanesLeftOver {
                drive: path.drive,
                drive_width,
                port: upper.address,
                port_width,
            })
        });
        silent.chain(left_over).collect()
    }
}

impl fmt::Display for SlotHint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CardWithoutFunction { port, number } => write!(
                f,
                "slot {number} (port {port}) reports a card, but nothing answers behind it: reseat it, and look in the \
                 firmware setup whether the slot is enabled"
            ),
            Self::LanesLeftOver { drive, drive_width, port, port_width } => write!(
                f,
                "the slot at {port} gives one {port_width} link, of which {drive} uses {drive_width}: a second drive on \
                 the same card needs the firmware's bifurcation setting, or a card with a switch"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pci::link::{Hop, PortEnd};

    fn address(text: &str) -> PciAddress {
        text.parse().unwrap()
    }

    fn slot(card_present: bool, functions: &[&str]) -> PortSlot {
        PortSlot {
            port: address("00:01.1"),
            number: 4,
            card_present,
            width_able: LinkWidth::new(4),
            functions: functions.iter().map(|text| address(text)).collect(),
        }
    }

    fn path(drive_lanes: u8, port_lanes: u8) -> LinkPath {
        let end = |text, lanes| PortEnd { width_able: LinkWidth::new(lanes), ..PortEnd::unknown(address(text)) };
        LinkPath {
            drive: address("01:00.0"),
            hops: vec![Hop::new(end("01:00.0", drive_lanes), Some(end("00:01.0", port_lanes)))],
            behind_vmd: None,
        }
    }

    #[test]
    fn f10_a_slot_with_more_lanes_than_its_drive_hints_at_bifurcation() {
        let hints = SlotHint::all(&[], &[path(4, 16)]);
        assert_eq!(hints.len(), 1);
        let text = hints[0].to_string();
        assert!(text.contains("one x16 link") && text.contains("bifurcation") && text.contains("switch"), "{text}");
        assert_eq!(SlotHint::all(&[], &[path(4, 4)]), []);
    }

    #[test]
    fn f10_an_empty_slot_is_no_drive_and_no_fault() {
        assert_eq!(SlotHint::all(&[slot(false, &[])], &[]), []);
    }

    #[test]
    fn f10_a_slot_with_a_card_and_no_function_is_said() {
        let hints = SlotHint::all(&[slot(true, &[]), slot(true, &["02:00.0"])], &[]);
        assert_eq!(hints, [SlotHint::CardWithoutFunction { port: address("00:01.1"), number: 4 }]);
    }
}
