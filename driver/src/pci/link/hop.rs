//! One link and its two ends.
//!
//! Each end is read from two sources that tell the same thing: the text attributes of sysfs, which every user may read,
//! and the registers in configuration space, which need root but also hold payload sizes and ASPM. The sysfs value
//! comes first where there is one; where both know and disagree, that is noted, not hidden.
#![forbid(unsafe_code)]

use core::fmt;

use serde::Serialize;

use super::{LinkSpeed, LinkWidth};
use crate::pci::PciAddress;
use crate::pci::config::capability::L1Substates;
use crate::pci::config::express::{Express, PortType};
use crate::pci::config::{ConfigSpace, Presence};
use crate::pci::sysfs::Sysfs;

/// The width field of a register that reads all ones.
const WIDTH_ALL_ONES: u64 = 0x3f;

/// The power saving states that a link's end may enter on its own (Active State Power Management).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Aspm {
    /// L0s is enabled.
    pub l0s: bool,
    /// L1 is enabled.
    pub l1: bool,
}

impl fmt::Display for Aspm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match (self.l0s, self.l1) {
            (false, false) => "off",
            (true, false) => "L0s",
            (false, true) => "L1",
            (true, true) => "L0s L1",
        })
    }
}

/// Whether a link is there at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkState {
    /// It has a width.
    Up,
    /// Its width is zero: no link.
    Down,
    /// The status register reads all ones: the device is gone.
    Gone,
    /// Nothing tells.
    Unknown,
}

/// One end of a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PortEnd {
    /// The function that this end belongs to.
    pub address: PciAddress,
    /// What kind of port it is; `None` when its configuration space could not be read.
    pub port_type: Option<PortType>,
    /// The best speed it can do.
    pub speed_able: Option<LinkSpeed>,
    /// The most lanes it has.
    pub width_able: Option<LinkWidth>,
    /// The speed it runs at.
    pub speed_now: Option<LinkSpeed>,
    /// The lanes in use.
    pub width_now: Option<LinkWidth>,
    /// Whether there is a link.
    pub state: LinkState,
    /// Max_Payload_Size in use.
    pub payload_bytes: Option<u32>,
    /// Max_Payload_Size that it could be set to.
    pub payload_able_bytes: Option<u32>,
    /// Max_Read_Request_Size in use.
    pub read_request_bytes: Option<u32>,
    /// Active state power management.
    pub aspm: Option<Aspm>,
    /// The deeper sleeps of L1.
    pub l1_substates: Option<L1Substates>,
    /// The number of the slot below a port, where there is a slot.
    pub slot: Option<u16>,
    /// Where sysfs and configuration space contradict each other.
    pub contradictions: Vec<String>,
}

impl PortEnd {
    /// An end of which only the address is known.
    pub fn unknown(address: PciAddress) -> Self {
        Self {
            address,
            port_type: None,
            speed_able: None,
            width_able: None,
            speed_now: None,
            width_now: None,
            state: LinkState::Unknown,
            payload_bytes: None,
            payload_able_bytes: None,
            read_request_bytes: None,
            aspm: None,
            l1_substates: None,
            slot: None,
            contradictions: Vec::new(),
        }
    }

    /// What the registers of a configuration space tell about an end.
    pub fn from_config(address: PciAddress, config: &ConfigSpace) -> Self {
        let mut end = Self::unknown(address);
        if config.presence() == Presence::Gone {
            end.state = LinkState::Gone;
            return end;
        }
        if let Some(express) = config.express() {
            end.take_express(&express);
            end.l1_substates = config.l1_substates();
        }
        end
    }

    /// What sysfs tells about an end, and its configuration space where sysfs says nothing.
    pub fn read(sysfs: &Sysfs, address: PciAddress) -> Self {
        let mut end = match ConfigSpace::read(sysfs, address) {
            Ok(config) => Self::from_config(address, &config),
            Err(error) => {
                log::debug!("{error}");
                Self::unknown(address)
            }
        };
        let device = sysfs.pci_device(address);
        let speed = |name: &str| LinkSpeed::from_sysfs(&sysfs.attribute(device.join(name))?);
        let width = |name: &str| sysfs.number(device.join(name));
        let lanes = |raw: u64| u8::try_from(raw).ok().and_then(LinkWidth::new);

        let able = (speed("max_link_speed"), width("max_link_width").and_then(lanes));
        let raw_width_now = width("current_link_width");
        let now = (speed("current_link_speed"), raw_width_now.and_then(lanes));
        let contradictions = &mut end.contradictions;
        merge(contradictions, "max_link_speed", able.0, &mut end.speed_able);
        merge(contradictions, "max_link_width", able.1, &mut end.width_able);
        merge(contradictions, "current_link_speed", now.0, &mut end.speed_now);
        merge(contradictions, "current_link_width", now.1, &mut end.width_now);
        end.state = match (raw_width_now, end.state) {
            (_, LinkState::Gone) | (Some(WIDTH_ALL_ONES), _) => LinkState::Gone,
            // A port whose abilities are unknown, too, has no link registers: its zero says nothing.
            (Some(0), _) if end.width_able.is_some() => LinkState::Down,
            _ if end.width_now.is_some() => LinkState::Up,
            (_, state) => state,
        };
        if end.state != LinkState::Up {
            // The speed field of a link that is down, or gone, is left over or all ones.
            (end.speed_now, end.width_now) = (None, None);
        }
        end
    }

    fn take_express(&mut self, express: &Express) {
        self.port_type = Some(express.port_type);
        self.payload_bytes = express.payload_bytes();
        self.payload_able_bytes = express.payload_able_bytes();
        self.read_request_bytes = express.read_request_bytes();
        self.slot = express.slot.map(|slot| slot.capabilities.number());
        let Some(link) = express.link else { return };
        if link.status.into_bits() == u16::MAX || link.capabilities.into_bits() == u32::MAX {
            self.state = LinkState::Gone;
            return;
        }
        self.aspm = Some(Aspm { l0s: link.control.aspm() & 1 != 0, l1: link.control.aspm() & 2 != 0 });
        self.speed_able = LinkSpeed::from_code(link.capabilities.speed());
        self.width_able = LinkWidth::new(link.capabilities.width());
        if link.status.width() == 0 {
            self.state = if self.width_able.is_some() { LinkState::Down } else { LinkState::Unknown };
            return;
        }
        self.speed_now = LinkSpeed::from_code(link.status.speed());
        self.width_now = LinkWidth::new(link.status.width());
        self.state = if self.width_now.is_some() { LinkState::Up } else { LinkState::Unknown };
    }
}

/// Lets the value of sysfs, where there is one, come before that of a register, and notes when they differ.
fn merge<T: Copy + PartialEq + fmt::Display>(
    notes: &mut Vec<String>,
    name: &str,
    sysfs: Option<T>,
    value: &mut Option<T>,
) {
    if let (Some(text), Some(register)) = (sysfs, *value)
        && text != register
    {
        notes.push(format!("{name}: sysfs says {text}, configuration space {register}"));
    }
    *value = sysfs.or(*value);
}

/// Why something about a link cannot be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum UnknownReason {
    /// The status says nothing.
    #[error("the link status is not known")]
    Status,
    /// The ability of an end is not known.
    #[error("what the device can do is not known")]
    Ability,
    /// The port above cannot be seen, as in a virtual machine.
    #[error("the port above the device cannot be seen")]
    PortHidden,
    /// The link is down.
    #[error("the link is down")]
    Down,
    /// The device is gone.
    #[error("the device no longer answers (all ones)")]
    Gone,
}

/// How what a link trained to compares with the lower ability of its two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Trained<T> {
    /// It is the best that both can do.
    Best {
        /// What that is.
        now: T,
    },
    /// It is less than both can do.
    Below {
        /// What it is.
        now: T,
        /// What it should be.
        best: T,
    },
    /// It is more than both can do: the registers are not believable.
    Unbelievable {
        /// What it is.
        now: T,
        /// What it should be.
        best: T,
    },
    /// It cannot be judged.
    Unknown(
        /// Why.
        UnknownReason,
    ),
}

impl<T> Trained<T> {
    /// Whether the link does less than both ends can.
    pub fn is_below(&self) -> bool {
        matches!(self, Self::Below { .. })
    }
}

/// One link: from the end nearer to the drive to the port above it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hop {
    /// The end nearer to the drive.
    pub lower: PortEnd,
    /// The port above; `None` when it cannot be seen.
    pub upper: Option<PortEnd>,
    /// Other functions (bridges not counted) that share this link with the drive.
    pub shared_with: Vec<PciAddress>,
}

impl Hop {
    /// A link between two ends that nothing else shares.
    pub fn new(lower: PortEnd, upper: Option<PortEnd>) -> Self {
        Self { lower, upper, shared_with: Vec::new() }
    }

    /// The speed that it runs at: the lower one when the ends disagree.
    pub fn speed_now(&self) -> Option<LinkSpeed> {
        lowest(self.lower.speed_now, self.upper.as_ref().and_then(|upper| upper.speed_now))
    }

    /// The lanes in use: the fewer when the ends disagree.
    pub fn width_now(&self) -> Option<LinkWidth> {
        lowest(self.lower.width_now, self.upper.as_ref().and_then(|upper| upper.width_now))
    }

    /// The best speed that both ends can do; `None` unless both are known.
    pub fn speed_best(&self) -> Option<LinkSpeed> {
        Some(self.lower.speed_able?.min(self.upper.as_ref()?.speed_able?))
    }

    /// The most lanes that both ends have; `None` unless both are known.
    pub fn width_best(&self) -> Option<LinkWidth> {
        Some(self.lower.width_able?.min(self.upper.as_ref()?.width_able?))
    }

    /// Whether there is a link.
    pub fn state(&self) -> LinkState {
        let states = [Some(self.lower.state), self.upper.as_ref().map(|upper| upper.state)];
        let has = |state| states.contains(&Some(state));
        for state in [LinkState::Gone, LinkState::Down, LinkState::Up] {
            if has(state) {
                return state;
            }
        }
        LinkState::Unknown
    }

    /// How the speed compares with what both ends can do.
    pub fn speed(&self) -> Trained<LinkSpeed> {
        self.trained(self.speed_now(), self.speed_best())
    }

    /// How the width compares with what both ends can do.
    pub fn width(&self) -> Trained<LinkWidth> {
        self.trained(self.width_now(), self.width_best())
    }

    fn trained<T: Copy + Ord>(&self, now: Option<T>, best: Option<T>) -> Trained<T> {
        match (self.state(), now, best) {
            (LinkState::Gone, ..) => Trained::Unknown(UnknownReason::Gone),
            (LinkState::Down, ..) => Trained::Unknown(UnknownReason::Down),
            (_, None, _) => Trained::Unknown(UnknownReason::Status),
            (_, Some(_), None) if self.upper.is_none() => Trained::Unknown(UnknownReason::PortHidden),
            (_, Some(_), None) => Trained::Unknown(UnknownReason::Ability),
            (_, Some(now), Some(best)) if now == best => Trained::Best { now },
            (_, Some(now), Some(best)) if now < best => Trained::Below { now, best },
            (_, Some(now), Some(best)) => Trained::Unbelievable { now, best },
        }
    }

    /// What it moves now in Mb/s after encoding, as the kernel counts it.
    pub fn mbit_s_now(&self) -> Option<u32> {
        Some(self.speed_now()?.mbit_s_per_lane()? * u32::from(self.width_now()?.lanes()))
    }

    /// What it could move in Mb/s after encoding if it trained to the best of both ends.
    pub fn mbit_s_best(&self) -> Option<u32> {
        Some(self.speed_best()?.mbit_s_per_lane()? * u32::from(self.width_best()?.lanes()))
    }
}

fn lowest<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
