//! SMART Cloud Health, log page C0h of the Open Compute Project's Datacenter NVMe SSD Specification.
//!
//! Many vendors' data centre drives carry it. It is told by the GUID at its end; later versions of the page only add
//! fields, so that a version is nothing to refuse a page for.
#![forbid(unsafe_code)]

use crate::structure;
use zerocopy::little_endian::{U16, U32, U64, U128};

structure! {
    /// SMART Cloud Health, log page C0h.
    /// Open Compute Project Datacenter NVMe SSD Specification, "SMART / Health Information Extended".
    pub struct OcpSmart: 512, "ocp-smart" {
        /// Bytes written to the media, garbage collection included.
        0 physical_media_units_written: U128 = amount(1, "bytes"), "Physical Media Units Written";
        /// Bytes read from the media.
        16 physical_media_units_read: U128 = amount(1, "bytes"), "Physical Media Units Read";
        /// Blocks of the user area that were retired.
        32 bad_user_nand_blocks_raw: [u8; 6] = number(1, "blocks"), "Bad User NAND Blocks (raw)";
        /// Spare of the user area that is left, 100 when new.
        38 bad_user_nand_blocks_normalized: U16 = COUNT, "Bad User NAND Blocks (normalized)";
        /// Blocks of the system area that were retired.
        40 bad_system_nand_blocks_raw: [u8; 6] = number(1, "blocks").ones("not reported"), "Bad System NAND Blocks (raw)";
        /// Spare of the system area that is left, 100 when new.
        46 bad_system_nand_blocks_normalized: U16 = COUNT.ones("not reported"), "Bad System NAND Blocks (normalized)";
        /// Reads that needed the parity of other dies.
        48 xor_recovery_count: U64 = COUNT, "XOR Recovery Count";
        /// Reads that could not be recovered.
        56 uncorrectable_read_errors: U64 = COUNT, "Uncorrectable Read Error Count";
        /// Reads that the first correction did not recover.
        64 soft_ecc_errors: U64 = COUNT, "Soft ECC Error Count";
        /// Errors found on the data path within the drive.
        72 end_to_end_detected_errors: U32 = COUNT, "End to End Detected Errors";
        /// Of these, corrected.
        76 end_to_end_corrected_errors: U32 = COUNT, "End to End Corrected Errors";
        /// Life of the system area used.
        80 system_data_used: u8 = PERCENT, "System Data Percent Used";
        /// Blocks rewritten to keep their data.
        81 refresh_count: [u8; 7] = number(1, "refreshes"), "Refresh Counts";
        /// Erase cycles of the block with the most.
        88 user_data_erase_count_max: U32 = COUNT, "Maximum User Data Erase Count";
        /// Erase cycles of the block with the least.
        92 user_data_erase_count_min: U32 = COUNT, "Minimum User Data Erase Count";
        /// How often the drive throttled because of its temperature.
        96 thermal_throttling_events: u8 = COUNT, "Number of Thermal Throttling Events";
        /// How much it throttles now: 0 not, 1 to 3 levels.
        97 thermal_throttling_status: u8 = COUNT, "Current Throttling Status";
        /// Errata of the OCP specification that the drive follows.
        98 dssd_errata: u8 = COUNT, "DSSD Specification Version: Errata";
        /// Point version of the OCP specification.
        99 dssd_point: U16 = COUNT, "DSSD Specification Version: Point";
        /// Minor version of the OCP specification.
        101 dssd_minor: U16 = COUNT, "DSSD Specification Version: Minor";
        /// Major version of the OCP specification.
        103 dssd_major: u8 = COUNT, "DSSD Specification Version: Major";
        /// Correctable errors of the link.
        104 pcie_correctable_errors: U64 = COUNT, "PCIe Correctable Error Count";
        /// Shutdowns in which not all could be saved.
        112 incomplete_shutdowns: U32 = COUNT, "Incomplete Shutdowns";
        /// Reserved.
        116 reserved_116: [u8; 4] = RESERVED, "Reserved";
        /// Blocks that are free.
        120 free_blocks: u8 = PERCENT, "Percent Free Blocks";
        /// Reserved.
        121 reserved_121: [u8; 7] = RESERVED, "Reserved";
        /// Health of the capacitors that back the cache up.
        128 capacitor_health: U16 = PERCENT.ones("no capacitors"), "Capacitor Health";
        /// Errata letter of the base specification.
        130 nvme_base_errata: u8 = HEX, "NVMe Base Errata Version";
        /// Errata letter of the command set specification.
        131 nvme_command_set_errata: u8 = HEX, "NVMe Command Set Errata Version";
        /// Errata letter of the PCIe transport specification.
        132 nvme_pcie_errata: u8 = HEX, "NVMe over PCIe Errata Version";
        /// Errata letter of the management interface specification.
        133 nvme_mi_errata: u8 = HEX, "NVMe Management Interface Errata Version";
        /// Reserved.
        134 reserved_134: [u8; 2] = RESERVED, "Reserved";
        /// Writes that were not aligned to the drive's own block.
        136 unaligned_io: U64 = COUNT, "Unaligned I/O";
        /// Number below which no firmware can be activated.
        144 security_version: U64 = COUNT, "Security Version Number";
        /// Logical blocks in use over all namespaces.
        152 total_nuse: U64 = COUNT, "Total NUSE";
        /// How often power loss protection was needed.
        160 plp_start_count: U128 = COUNT, "PLP Start Count";
        /// Bytes that can be written over the drive's life.
        176 endurance_estimate: U128 = amount(1, "bytes"), "Endurance Estimate";
        /// Retrains of the link.
        192 pcie_link_retrains: U64 = COUNT, "PCIe Link Retraining Count";
        /// Changes of power state.
        200 power_state_changes: U64 = COUNT, "Power State Change Count";
        /// Oldest firmware that can be activated.
        208 lowest_permitted_firmware: [u8; 8] = TEXT, "Lowest Permitted Firmware Revision";
        /// Dies.
        216 total_media_dies: U16 = COUNT, "Total Media Dies";
        /// Dies that may fail without a loss of data.
        218 die_failure_tolerance: U16 = COUNT, "Total Die Failure Tolerance";
        /// Dies that have failed.
        220 media_dies_offline: U16 = COUNT, "Media Dies Offline";
        /// Highest composite temperature ever, in degrees Celsius.
        222 max_temperature_recorded: u8 = amount(1, "°C"), "Max Temperature Recorded";
        /// The form factor, a code of the specification.
        223 form_factor: u8 = HEX, "Form Factor";
        /// Average erase cycles.
        224 nand_average_erase_count: U64 = COUNT, "NAND Avg Erase Count";
        /// Commands that timed out.
        232 command_timeouts: U32 = COUNT, "Command Timeouts";
        /// Failed programs of the system area.
        236 system_program_fails_raw: U32 = COUNT, "System Area Program Fail Count (raw)";
        /// The same, 100 when new.
        240 system_program_fails_normalized: u8 = COUNT, "System Area Program Fail Count (normalized)";
        /// Reserved.
        241 reserved_241: [u8; 3] = RESERVED, "Reserved";
        /// Uncorrectable reads of the system area.
        244 system_read_fails_raw: U32 = COUNT, "System Area Uncorrectable Read Count (raw)";
        /// The same, 100 when new.
        248 system_read_fails_normalized: u8 = COUNT, "System Area Uncorrectable Read Count (normalized)";
        /// Reserved.
        249 reserved_249: [u8; 3] = RESERVED, "Reserved";
        /// Failed erases of the system area.
        252 system_erase_fails_raw: U32 = COUNT, "System Area Erase Fail Count (raw)";
        /// The same, 100 when new.
        256 system_erase_fails_normalized: u8 = COUNT, "System Area Erase Fail Count (normalized)";
        /// Reserved.
        257 reserved_257: [u8; 3] = RESERVED, "Reserved";
        /// Largest peak power, a number of the specification.
        260 max_peak_power: U16 = COUNT, "Max Peak Power Capability";
        /// Largest average power now, a number of the specification.
        262 current_max_average_power: U16 = COUNT, "Current Max Average Power";
        /// Energy taken over the drive's life, a number of the specification.
        264 lifetime_power_consumed: [u8; 6] = number(1, "units"), "Lifetime Power Consumed";
        /// Firmware revision.
        270 dssd_firmware_revision: [u8; 8] = TEXT, "DSSD Firmware Revision";
        /// Identifier of the firmware build.
        278 dssd_firmware_build_uuid: [u8; 16] = DIGITS.zero("not reported"), "DSSD Firmware Build UUID";
        /// Label of the firmware build.
        294 dssd_firmware_build_label: [u8; 64] = TEXT, "DSSD Firmware Build Label";
        /// Retired blocks of the die that has the most.
        358 worst_die_bad_blocks_raw: [u8; 6] = number(1, "blocks"), "Bad NAND Blocks of a Die in Use (raw)";
        /// Spare of that die that is left, 100 when new.
        364 worst_die_bad_blocks_normalized: U16 = COUNT, "Bad NAND Blocks of a Die in Use (normalized)";
        /// Reserved.
        366 reserved_366: [u8; 128] = RESERVED, "Reserved";
        /// Version of the page.
        494 log_page_version: U16 = COUNT, "Log Page Version";
        /// What tells the page.
        496 log_page_guid: [u8; 16] = DIGITS, "Log Page GUID";
    }
}

impl OcpSmart {
    /// The GUID at the end of the page, as it lies in memory.
    pub const GUID: [u8; 16] =
        [0xc5, 0xaf, 0x10, 0x28, 0xea, 0xbf, 0xf2, 0xa4, 0x9c, 0x4f, 0x6f, 0x7c, 0xc9, 0x14, 0xd5, 0xaf];

    /// Whether these bytes carry the page's GUID where it belongs.
    pub fn is_page(page: &[u8]) -> bool {
        page.get(496..512).is_some_and(|guid| guid == Self::GUID)
    }
}
