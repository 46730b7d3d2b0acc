//! The data of the persistent events.
//!
//! NVM Express Base Specification, "Persistent Event Log Events".
#![forbid(unsafe_code)]

use crate::command::admin::CommitAction;
use crate::identify::{Dps, FormattedLbaSize, Nmic, Sanicap};
use crate::log::{SanitizeCommand, SanitizeStatus};
use crate::{bits, codes, structure};
use zerocopy::little_endian::{U16, U32, U64};

structure! {
    /// Firmware Commit Event (02h).
    pub struct FirmwareCommitEvent: 22, "event-firmware-commit" {
        /// Firmware revision that ran.
        0 old_revision: [u8; 8] = TEXT, "Old Firmware Revision";
        /// Firmware revision that was committed.
        8 new_revision: [u8; 8] = TEXT, "New Firmware Revision";
        /// The commit action.
        16 action: CommitAction = choice(CommitAction::MEANINGS), "Firmware Commit Action";
        /// The slot.
        17 slot: u8 = COUNT, "Firmware Slot";
        /// Status code type of the command.
        18 sct: u8 = HEX, "Status Code Type for Firmware Commit Command";
        /// Status code of the command.
        19 sc: u8 = HEX, "Status Returned for Firmware Commit Command";
        /// The vendor's result.
        20 vendor_result: U16 = HEX, "Vendor Assigned Firmware Commit Result Code";
    }
}

structure! {
    /// Timestamp Change Event (03h).
    pub struct TimestampChangeEvent: 16, "event-timestamp" {
        /// What the timestamp would have been.
        0 previous: U64 = amount(1, "ms"), "Previous Timestamp";
        /// Milliseconds since the last reset.
        8 since_reset: U64 = amount(1, "ms"), "Milliseconds Since Reset";
    }
}

structure! {
    /// Power-on or Reset Event (04h), as far as it has a fixed form: one [`ControllerReset`] for each controller follows.
    pub struct PowerOnEvent: 8, "event-power-on" {
        /// Firmware revision that ran when power came on.
        0 firmware_revision: [u8; 8] = TEXT, "Firmware Revision";
    }
}

structure! {
    /// Controller Reset Information Descriptor, behind the head of a power-on event.
    pub struct ControllerReset: 36, "event-controller-reset" {
        /// The controller.
        0 cntlid: U16 = HEX, "Controller ID";
        /// Whether firmware was activated.
        2 firmware_activation: u8 = COUNT, "Firmware Activation";
        /// Which operations were in progress, a bit for each.
        3 in_progress: u8 = HEX, "Operation in Progress";
        /// Reserved.
        4 reserved_4: [u8; 12] = RESERVED, "Reserved";
        /// Power cycles of the controller.
        16 power_cycle: U32 = COUNT, "Controller Power Cycle";
        /// Milliseconds since power on.
        20 since_power_on: U64 = amount(1, "ms"), "Power On Milliseconds";
        /// The controller's timestamp.
        28 timestamp: U64 = amount(1, "ms"), "Controller Timestamp";
    }
}

codes! {
    /// What a hardware error was.
    pub struct HardwareError(u16, 16) {
        /// PCIe correctable error.
        0x00 PCIE_CORRECTABLE "PCIe correctable error";
        /// PCIe uncorrectable non-fatal error.
        0x01 PCIE_NON_FATAL "PCIe uncorrectable non-fatal error";
        /// PCIe uncorrectable fatal error.
        0x02 PCIE_FATAL "PCIe uncorrectable fatal error";
        /// PCIe link status change.
        0x03 PCIE_LINK_STATUS "PCIe link status change";
        /// PCIe link not active.
        0x04 PCIE_LINK_INACTIVE "PCIe link not active";
        /// Critical warning.
        0x05 CRITICAL_WARNING "critical warning condition";
        /// Endurance group critical warning.
        0x06 ENDURANCE_WARNING "endurance group critical warning condition";
        /// Unsafe shutdown.
        0x07 UNSAFE_SHUTDOWN "unsafe shutdown";
        /// Controller fatal status.
        0x08 CONTROLLER_FATAL "controller fatal status";
        /// Media and data integrity error.
        0x09 MEDIA "media and data integrity status";
        /// Controller ready timeout.
        0x0a READY_TIMEOUT "controller ready timeout exceeded";
    }
}

structure! {
    /// NVM Subsystem Hardware Error Event (05h); more on the error follows by its code.
    pub struct HardwareErrorEvent: 4, "event-hardware-error" {
        /// What it was.
        0 code: U16 = choice(HardwareError::MEANINGS), "NVM Subsystem Hardware Error Event Code";
        /// Reserved.
        2 reserved_2: [u8; 2] = RESERVED, "Reserved";
    }
}

structure! {
    /// Change Namespace Event (06h).
    pub struct ChangeNamespaceEvent: 48, "event-change-namespace" {
        /// Dword 10 of the Namespace Management command: 0 create, 1 delete in its lowest bits.
        0 cdw10: U32 = HEX, "Namespace Management CDW10";
        /// Reserved.
        4 reserved_4: [u8; 4] = RESERVED, "Reserved";
        /// Size in logical blocks.
        8 nsze: U64 = COUNT, "Namespace Size";
        /// Reserved.
        16 reserved_16: [u8; 8] = RESERVED, "Reserved";
        /// Capacity in logical blocks.
        24 ncap: U64 = COUNT, "Namespace Capacity";
        /// The LBA format.
        32 flbas: FormattedLbaSize = bits(FormattedLbaSize::PARTS), "Formatted LBA Size";
        /// Protection information.
        33 dps: Dps = bits(Dps::PARTS), "End-to-end Data Protection Type Settings";
        /// Sharing.
        34 nmic: Nmic = bits(Nmic::PARTS), "Namespace Multi-path I/O and Namespace Sharing Capabilities";
        /// Reserved.
        35 reserved_35: u8 = RESERVED, "Reserved";
        /// The ANA group.
        36 anagrpid: U32 = COUNT, "ANA Group Identifier";
        /// The NVM set.
        40 nvmsetid: U16 = COUNT, "NVM Set Identifier";
        /// Reserved.
        42 reserved_42: [u8; 2] = RESERVED, "Reserved";
        /// The namespace.
        44 nsid: U32 = HEX, "Namespace ID";
    }
}

structure! {
    /// Format NVM Start Event (07h).
    pub struct FormatStartEvent: 12, "event-format-start" {
        /// The namespace.
        0 nsid: U32 = HEX, "Namespace Identifier";
        /// Format NVM attributes.
        4 fna: u8 = HEX, "Format NVM Attributes";
        /// Reserved.
        5 reserved_5: [u8; 3] = RESERVED, "Reserved";
        /// Dword 10 of the Format NVM command.
        8 cdw10: U32 = HEX, "Format NVM CDW10";
    }
}

structure! {
    /// Format NVM Completion Event (08h).
    pub struct FormatCompletionEvent: 12, "event-format-completion" {
        /// The namespace.
        0 nsid: U32 = HEX, "Namespace Identifier";
        /// Smallest progress indicator that was reached.
        4 smallest_fpi: u8 = COUNT, "Smallest Format Progress Indicator";
        /// How the format ended.
        5 status: u8 = HEX, "Format NVM Status";
        /// The vendor's information.
        6 completion_info: U16 = HEX, "Completion Information";
        /// Status field of the command's completion.
        8 status_field: U32 = HEX, "Status Field";
    }
}

structure! {
    /// Sanitize Start Event (09h).
    pub struct SanitizeStartEvent: 12, "event-sanitize-start" {
        /// Sanitize capabilities.
        0 sanicap: Sanicap = bits(Sanicap::PARTS), "Sanitize Capabilities";
        /// Dword 10 of the Sanitize command.
        4 cdw10: SanitizeCommand = bits(SanitizeCommand::PARTS), "Sanitize CDW10";
        /// Dword 11 of the Sanitize command: the overwrite pattern.
        8 cdw11: U32 = HEX, "Sanitize CDW11";
    }
}

structure! {
    /// Sanitize Completion Event (0Ah).
    pub struct SanitizeCompletionEvent: 8, "event-sanitize-completion" {
        /// How far it came, in 65536ths.
        0 sprog: U16 = COUNT.ones("complete"), "Sanitize Progress";
        /// How it went.
        2 sstat: SanitizeStatus = bits(SanitizeStatus::PARTS), "Sanitize Status";
        /// The vendor's information.
        4 completion_info: U16 = HEX, "Completion Information";
        /// Reserved.
        6 reserved_6: [u8; 2] = RESERVED, "Reserved";
    }
}

bits! {
    /// What a set feature event consists of.
    pub struct SetFeatureLayout(u32 as U32) {
        /// Command dwords that follow.
        0:3 dwords: u8 = COUNT, "dword count";
        /// Dword 0 of the completion follows them.
        3:1 completion: bool = FLAG, "completion dword 0 logged";
        /// Reserved.
        4:12 __: u16 = RESERVED, "reserved";
        /// Bytes of the data that follow.
        16:16 memory: u16 = COUNT, "memory buffer count";
    }
}

structure! {
    /// Set Feature Event (0Bh); command dwords, the completion's dword and the data follow as the layout says.
    pub struct SetFeatureEvent: 4, "event-set-feature" {
        /// What follows.
        0 layout: SetFeatureLayout = bits(SetFeatureLayout::PARTS), "Set Feature Event Layout";
    }
}

codes! {
    /// THRESH: which threshold the composite temperature crossed, and which way.
    pub struct ThermalThreshold(u8, 8) {
        /// Up to WCTEMP or above.
        0x01 WARNING "reached WCTEMP";
        /// Up to CCTEMP or above.
        0x02 CRITICAL "reached CCTEMP";
        /// Up to TMT1 or above: light throttling began.
        0x03 LIGHT_THROTTLING "reached TMT1, light throttling began";
        /// Up to TMT2 or above: heavy throttling began.
        0x04 HEAVY_THROTTLING "reached TMT2, heavy throttling began";
        /// Up to a temperature of the vendor's: throttling of its own began.
        0x05 VENDOR_THROTTLING "reached a vendor specific temperature, throttling began";
        /// Back to normal.
        0x88 NORMAL "back to a normal temperature";
        /// Throttling ended.
        0x89 THROTTLING_ENDED "thermal management ended";
        /// Down to an under temperature threshold or below.
        0xb0 UNDER "reached an under temperature threshold";
    }
}

structure! {
    /// Thermal Excursion Event (0Dh).
    pub struct ThermalExcursionEvent: 2, "event-thermal" {
        /// Kelvin between the threshold and the temperature.
        0 over_temperature: u8 = amount(1, "K"), "Over Temperature";
        /// Which threshold was crossed, and which way.
        1 threshold: ThermalThreshold = choice(ThermalThreshold::MEANINGS), "Threshold";
    }
}

codes! {
    /// How the data of a vendor's event is to be read.
    pub struct VendorEventData(u8, 8) {
        /// The event's name.
        1 NAME "event name";
        /// Text.
        2 TEXT "ASCII string";
        /// Bytes.
        3 BINARY "binary";
        /// A signed number.
        4 SIGNED "signed integer";
    }
}

structure! {
    /// The head of one descriptor of a Vendor Specific Event (DEh); its data and further descriptors follow.
    pub struct VendorEvent: 6, "event-vendor" {
        /// The vendor's code.
        0 code: U16 = HEX, "Vendor Specific Event Code";
        /// How the data is to be read.
        2 kind: VendorEventData = choice(VendorEventData::MEANINGS), "Vendor Specific Event Data Type";
        /// Index of the vendor's UUID in the UUID list; 0 for none.
        3 uuid_index: u8 = COUNT.zero("none"), "UUID Index";
        /// Bytes of data that follow.
        4 length: U16 = COUNT, "Vendor Specific Event Data Length";
    }
}
