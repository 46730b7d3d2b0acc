//! Extended health (D0h) of Micron drives.
#![forbid(unsafe_code)]

use crate::structure;
use zerocopy::little_endian::{U16, U32, U64};

structure! {
    /// Extended Health Information, log page D0h of Micron drives.
    pub struct MicronExtendedHealth: 512, "micron-health" {
        /// Reserved.
        0 reserved_0: [u8; 2] = RESERVED, "Reserved";
        /// Version of the page.
        2 version: U16 = COUNT, "Version";
        /// Blocks that went bad in use.
        4 grown_bad_blocks: U32 = COUNT, "Grown Bad Block Count";
        /// Single bit errors of memory.
        8 sram_single_bit_errors: U32 = COUNT, "Total SRAM SBE Count";
        /// Double bit errors of memory.
        12 sram_double_bit_errors: U32 = COUNT, "Total SRAM DBE Count";
        /// Why the drive is write protected.
        16 write_protect_reason: U32 = HEX.zero("none"), "Write Protect Reason";
        /// Erases.
        20 erase_count: U32 = COUNT, "Total Erase Count";
        /// Failed erases.
        24 erase_fails: U32 = COUNT, "Erase Fail Count";
        /// Failed programs.
        28 program_fails: U32 = COUNT, "Program Fail Count";
        /// Reserved.
        32 reserved_32: [u8; 40] = RESERVED, "Reserved";
        /// Completed cycles of power loss notification and acknowledgement.
        72 power_loss_cycles: U32 = COUNT, "Completed PLN PLA Cycles";
        /// Power loss notifications asserted.
        76 pln_asserts: U32 = COUNT, "PLN Assert Count";
        /// Power loss notifications deasserted.
        80 pln_deasserts: U32 = COUNT, "PLN Deassert Count";
        /// Power loss acknowledgements asserted.
        84 pla_asserts: U32 = COUNT, "PLA Assert Count";
        /// Power loss acknowledgements deasserted.
        88 pla_deasserts: U32 = COUNT, "PLA Deassert Count";
        /// Uncorrectable errors of the media that were recovered by other means.
        92 correctable_media_errors: U32 = COUNT, "Correctable NAND UECCs";
        /// Uncorrectable errors that were reported.
        96 reported_uncorrectable_errors: U32 = COUNT, "Reported Uncorrectable Errors";
        /// Fewest erases of a TLC super block.
        100 tlc_erase_min: U32 = COUNT, "TLC Super Block Min Erase Count";
        /// Average erases of a TLC super block.
        104 tlc_erase_average: U32 = COUNT, "TLC Super Block Avg Erase Count";
        /// Most erases of a TLC super block.
        108 tlc_erase_max: U32 = COUNT, "TLC Super Block Max Erase Count";
        /// Lowest temperature of the controller.
        112 asic_temperature_min: U16 = COUNT, "Min ASIC Temperature Recorded";
        /// Highest temperature of the controller.
        114 asic_temperature_max: U16 = COUNT, "Max ASIC Temperature Recorded";
        /// Lowest temperature of the media.
        116 media_temperature_min: U16 = COUNT, "Min NAND Temperature Recorded";
        /// Highest temperature of the media.
        118 media_temperature_max: U16 = COUNT, "Max NAND Temperature Recorded";
        /// Fewest erases of an SLC super block.
        120 slc_erase_min: U32 = COUNT, "SLC Super Block Min Erase Count";
        /// Average erases of an SLC super block.
        124 slc_erase_average: U32 = COUNT, "SLC Super Block Avg Erase Count";
        /// Most erases of an SLC super block.
        128 slc_erase_max: U32 = COUNT, "SLC Super Block Max Erase Count";
        /// Life of the SLC used.
        132 slc_life_used: U16 = PERCENT, "SLC Lifetime Used";
        /// Life of the TLC used.
        134 tlc_life_used: U16 = PERCENT, "TLC Lifetime Used";
        /// Logical blocks that hold no data.
        136 unmapped_lba_count: U64 = COUNT, "Unmapped LBA Count";
        /// First threshold of the supply voltage.
        144 voltage_threshold_1: U32 = COUNT, "PWR1 Voltage Detection Threshold #1";
        /// Second threshold of the supply voltage.
        148 voltage_threshold_2: U32 = COUNT, "PWR1 Voltage Detection Threshold #2";
        /// Reserved.
        152 reserved_152: [u8; 360] = RESERVED, "Reserved";
    }
}
