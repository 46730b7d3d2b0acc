//! The PCI Express capability: payload sizes, the link and the slot.
//!
//! PCI Express Base Specification 7.5.3. The registers are bit fields named as there; which of them mean anything
//! depends on the kind of port, so [`Express`] holds the link of a root complex integrated endpoint, and the slot of a
//! port without one, as `None`.
#![forbid(unsafe_code)]

use bitfield_struct::bitfield;
use serde::Serialize;

use super::ConfigSpace;

/// Capability ID of PCI Express.
const PCI_EXPRESS: u16 = 0x10;

/// PCI Express Capabilities register (offset 02h).
#[bitfield(u16)]
#[derive(PartialEq, Eq)]
pub struct ExpressCapabilities {
    /// Capability version.
    #[bits(4)]
    pub version: u8,
    /// Device/Port Type.
    #[bits(4)]
    pub port_type: u8,
    /// Slot Implemented: the link of this port leads to a connector.
    pub slot_implemented: bool,
    #[bits(7)]
    __: u8,
}

/// Device Capabilities register (offset 04h).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct DeviceCapabilities {
    /// Max_Payload_Size Supported: 128 bytes shifted left by this.
    #[bits(3)]
    pub payload: u8,
    #[bits(25)]
    __: u32,
    /// Function Level Reset Capability.
    pub function_level_reset: bool,
    #[bits(3)]
    __: u8,
}

/// Device Control register (offset 08h).
#[bitfield(u16)]
#[derive(PartialEq, Eq)]
pub struct DeviceControl {
    #[bits(4)]
    __: u8,
    /// Enable Relaxed Ordering.
    pub relaxed_ordering: bool,
    /// Max_Payload_Size: 128 bytes shifted left by this.
    #[bits(3)]
    pub payload: u8,
    /// Extended Tag Field Enable.
    pub extended_tag: bool,
    #[bits(3)]
    __: u8,
    /// Max_Read_Request_Size: 128 bytes shifted left by this.
    #[bits(3)]
    pub read_request: u8,
    __: bool,
}

/// Device Status register (offset 0Ah): errors that were detected, reported or not.
#[bitfield(u16)]
#[derive(PartialEq, Eq)]
pub struct DeviceStatus {
    /// Correctable Error Detected.
    pub correctable: bool,
    /// Non-Fatal Error Detected.
    pub non_fatal: bool,
    /// Fatal Error Detected.
    pub fatal: bool,
    /// Unsupported Request Detected.
    pub unsupported_request: bool,
    #[bits(12)]
    __: u16,
}

/// Link Capabilities register (offset 0Ch).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct LinkCapabilities {
    /// Max Link Speed, as a code (see [`LinkSpeed`](crate::pci::link::LinkSpeed)).
    #[bits(4)]
    pub speed: u8,
    /// Maximum Link Width in lanes.
    #[bits(6)]
    pub width: u8,
    /// ASPM Support: bit 0 L0s, bit 1 L1.
    #[bits(2)]
    pub aspm: u8,
    #[bits(12)]
    __: u16,
    /// Port Number.
    pub port: u8,
}

/// Link Control register (offset 10h).
#[bitfield(u16)]
#[derive(PartialEq, Eq)]
pub struct LinkControl {
    /// ASPM Control: bit 0 L0s, bit 1 L1.
    #[bits(2)]
    pub aspm: u8,
    __: bool,
    /// Read Completion Boundary: 128 bytes when set, else 64.
    pub read_completion_boundary_128: bool,
    /// Link Disable.
    pub disabled: bool,
    #[bits(11)]
    __: u16,
}

/// Link Status register (offset 12h).
#[bitfield(u16)]
#[derive(PartialEq, Eq)]
pub struct LinkStatus {
    /// Current Link Speed, as a code.
    #[bits(4)]
    pub speed: u8,
    /// Negotiated Link Width in lanes.
    #[bits(6)]
    pub width: u8,
    __: bool,
    /// Link Training.
    pub training: bool,
    __: bool,
    /// Data Link Layer Link Active.
    pub active: bool,
    /// Link Bandwidth Management Status: speed or width was changed by the port, to correct errors or on order.
    pub bandwidth_management: bool,
    /// Link Autonomous Bandwidth Status: speed or width was changed by the hardware on its own, not because of errors.
    pub autonomous_bandwidth: bool,
}

/// Slot Capabilities register (offset 14h).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct SlotCapabilities {
    #[bits(5)]
    __: u8,
    /// Hot-Plug Surprise.
    pub surprise: bool,
    /// Hot-Plug Capable.
    pub hot_plug: bool,
    #[bits(12)]
    __: u16,
    /// Physical Slot Number.
    #[bits(13)]
    pub number: u16,
}

/// Slot Status register (offset 1Ah).
#[bitfield(u16)]
#[derive(PartialEq, Eq)]
pub struct SlotStatus {
    #[bits(6)]
    __: u8,
    /// Presence Detect State: a card is in the slot.
    pub present: bool,
    #[bits(9)]
    __: u16,
}

/// What kind of port or device a function is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PortType {
    /// A device at the end of a link.
    Endpoint,
    /// The same, of the older kind.
    LegacyEndpoint,
    /// A port of the root complex: the top of a path.
    RootPort,
    /// The port of a switch that looks towards the root.
    SwitchUpstream,
    /// A port of a switch that looks towards a device.
    SwitchDownstream,
    /// A bridge to conventional PCI.
    ToPciBridge,
    /// A bridge from conventional PCI.
    FromPciBridge,
    /// A device inside the root complex: it has no link.
    IntegratedEndpoint,
    /// An event collector of the root complex.
    EventCollector,
    /// A code that is not in the specification.
    Other(u8),
}

impl PortType {
    /// The kind that a Device/Port Type code names.
    pub const fn from_code(code: u8) -> Self {
        match code {
            0x0 => Self::Endpoint,
            0x1 => Self::LegacyEndpoint,
            0x4 => Self::RootPort,
            0x5 => Self::SwitchUpstream,
            0x6 => Self::SwitchDownstream,
            0x7 => Self::ToPciBridge,
            0x8 => Self::FromPciBridge,
            0x9 => Self::IntegratedEndpoint,
            0xa => Self::EventCollector,
            other => Self::Other(other),
        }
    }

    /// Whether the port's link leads away from the root.
    pub const fn is_downstream(self) -> bool {
        matches!(self, Self::RootPort | Self::SwitchDownstream | Self::FromPciBridge)
    }

    /// Whether it has no link at all.
    pub const fn has_no_link(self) -> bool {
        matches!(self, Self::IntegratedEndpoint | Self::EventCollector)
    }
}

/// A port's link registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// What it could do.
    pub capabilities: LinkCapabilities,
    /// How it is set.
    pub control: LinkControl,
    /// What it does.
    pub status: LinkStatus,
}

/// A port's slot registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Number and hot-plug abilities.
    pub capabilities: SlotCapabilities,
    /// Whether there is a card in it.
    pub status: SlotStatus,
}

/// The PCI Express capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Express {
    /// What kind of port this is.
    pub port_type: PortType,
    /// Payload and reset abilities.
    pub device_capabilities: DeviceCapabilities,
    /// Payload and read request size in use.
    pub device_control: DeviceControl,
    /// Errors detected.
    pub device_status: DeviceStatus,
    /// The link, where there is one and the bytes reach that far.
    pub link: Option<Link>,
    /// The slot, where there is one.
    pub slot: Option<Slot>,
}

/// The size that a code in a payload or read request field means, in bytes; `None` for the reserved codes 6 and 7.
pub const fn size_bytes(code: u8) -> Option<u32> {
    if code <= 5 { Some(128 << code) } else { None }
}

impl Express {
    /// Max_Payload_Size in use.
    pub fn payload_bytes(&self) -> Option<u32> {
        size_bytes(self.device_control.payload())
    }

    /// Max_Payload_Size that the function could be set to.
    pub fn payload_able_bytes(&self) -> Option<u32> {
        size_bytes(self.device_capabilities.payload())
    }

    /// Max_Read_Request_Size in use.
    pub fn read_request_bytes(&self) -> Option<u32> {
        size_bytes(self.device_control.read_request())
    }
}

impl ConfigSpace {
    /// The PCI Express capability; `None` without one, or when an ordinary user's 64 bytes end before it.
    pub fn express(&self) -> Option<Express> {
        let at = self.capabilities().find(PCI_EXPRESS)?;
        let capabilities = ExpressCapabilities::from_bits(self.u16(at + 0x02)?);
        let port_type = PortType::from_code(capabilities.port_type());
        let link = || {
            Some(Link {
                capabilities: LinkCapabilities::from_bits(self.u32(at + 0x0c)?),
                control: LinkControl::from_bits(self.u16(at + 0x10)?),
                status: LinkStatus::from_bits(self.u16(at + 0x12)?),
            })
        };
        let slot = || {
            Some(Slot {
                capabilities: SlotCapabilities::from_bits(self.u32(at + 0x14)?),
                status: SlotStatus::from_bits(self.u16(at + 0x1a)?),
            })
        };
        Some(Express {
            port_type,
            device_capabilities: DeviceCapabilities::from_bits(self.u32(at + 0x04)?),
            device_control: DeviceControl::from_bits(self.u16(at + 0x08)?),
            device_status: DeviceStatus::from_bits(self.u16(at + 0x0a)?),
            link: if port_type.has_no_link() { None } else { link() },
            slot: if port_type.is_downstream() && capabilities.slot_implemented() { slot() } else { None },
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A configuration space of 256 bytes with a PCI Express capability at 70h.
    pub(crate) fn express_space(
        port_type: u8,
        device: (u32, u16, u16),
        link: (u32, u16, u16),
        slot: Option<(u32, u16)>,
    ) -> Vec<u8> {
        let mut bytes = vec![0; 256];
        bytes[..4].copy_from_slice(&[0x4d, 0x14, 0x0a, 0xa8]);
        bytes[4..8].copy_from_slice(&[0x06, 0x04, 0x10, 0x00]);
        bytes[8..12].copy_from_slice(&[0x00, 0x02, 0x08, 0x01]);
        bytes[0x10..0x14].copy_from_slice(&[0x04, 0x00, 0x10, 0xa1]);
        bytes[0x34] = 0x70;
        bytes[0x70] = 0x10;
        let flags = 2 | u16::from(port_type) << 4 | u16::from(slot.is_some()) << 8;
        bytes[0x72..0x74].copy_from_slice(&flags.to_le_bytes());
        bytes[0x74..0x78].copy_from_slice(&device.0.to_le_bytes());
        bytes[0x78..0x7a].copy_from_slice(&device.1.to_le_bytes());
        bytes[0x7a..0x7c].copy_from_slice(&device.2.to_le_bytes());
        bytes[0x7c..0x80].copy_from_slice(&link.0.to_le_bytes());
        bytes[0x80..0x82].copy_from_slice(&link.1.to_le_bytes());
        bytes[0x82..0x84].copy_from_slice(&link.2.to_le_bytes());
        if let Some((capabilities, status)) = slot {
            bytes[0x84..0x88].copy_from_slice(&capabilities.to_le_bytes());
            bytes[0x8a..0x8c].copy_from_slice(&status.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn payload_read_request_and_link_are_read_from_their_fields() {
        // An endpoint: payload able 512 B, set to 256 B; read requests of 512 B; link able 8 GT/s x4, at 5 GT/s x1.
        let bytes = express_space(0, (0x1000_8002, 0x2830, 0x0009), (0x0047_bc43, 0x0043, 0x1012), None);
        let express = ConfigSpace::new(bytes).express().unwrap();
        assert_eq!(express.port_type, PortType::Endpoint);
        assert_eq!(express.payload_able_bytes(), Some(512));
        assert_eq!(express.payload_bytes(), Some(256));
        assert_eq!(express.read_request_bytes(), Some(512));
        assert!(express.device_capabilities.function_level_reset());
        assert!(express.device_status.correctable() && express.device_status.unsupported_request());
        let link = express.link.unwrap();
        assert_eq!((link.capabilities.speed(), link.capabilities.width(), link.capabilities.aspm()), (3, 4, 3));
        assert_eq!((link.status.speed(), link.status.width()), (2, 1));
        assert_eq!(link.control.aspm(), 3);
        assert_eq!(express.slot, None);
    }

    #[test]
    fn a_port_with_a_slot_tells_its_number_and_whether_a_card_is_in_it() {
        let bytes = express_space(4, (0, 0, 0), (0x0000_0043, 0, 0x2043), Some((0x0018_0060, 0x0040)));
        let express = ConfigSpace::new(bytes).express().unwrap();
        assert_eq!(express.port_type, PortType::RootPort);
        let slot = express.slot.unwrap();
        assert_eq!(slot.capabilities.number(), 3);
        assert!(slot.status.present() && slot.capabilities.hot_plug());
        assert!(express.link.unwrap().status.active());
    }

    #[test]
    fn an_integrated_endpoint_has_no_link() {
        let bytes = express_space(9, (0, 0, 0), (0x43, 0, 0x43), None);
        assert_eq!(ConfigSpace::new(bytes).express().unwrap().link, None);
    }

    #[test]
    fn a_space_that_ends_within_the_capability_gives_what_it_has() {
        let mut bytes = express_space(0, (0, 0, 0), (0x43, 0, 0x43), None);
        bytes.truncate(0x80);
        let express = ConfigSpace::new(bytes).express().unwrap();
        assert_eq!(express.link, None);
    }

    #[test]
    fn reserved_payload_codes_have_no_size() {
        assert_eq!(size_bytes(0), Some(128));
        assert_eq!(size_bytes(5), Some(4096));
        assert_eq!(size_bytes(6), None);
    }
}
