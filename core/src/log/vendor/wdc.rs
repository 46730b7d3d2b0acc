//! Device performance statistics (CAh) of Western Digital drives.
#![forbid(unsafe_code)]

use crate::structure;
use zerocopy::little_endian::{U32, U64, U128};

structure! {
    /// Device Performance Statistics, log page CAh of Western Digital drives. Fields are not aligned.
    pub struct WdcPerformance: 512, "wdc-performance" {
        /// Bytes written to the media.
        0 nand_bytes_written: U128 = amount(1, "bytes"), "NAND Bytes Written";
        /// Bytes read from the media.
        16 nand_bytes_read: U128 = amount(1, "bytes"), "NAND Bytes Read";
        /// Bad blocks: raw in the lower 48 bits, normalized above.
        32 nand_bad_blocks: U64 = HEX, "NAND Bad Block Count";
        /// Reads that could not be recovered.
        40 uncorrectable_reads: U64 = COUNT, "Uncorrectable Read Count";
        /// Reads that the first correction did not recover.
        48 soft_ecc_errors: U64 = COUNT, "Soft ECC Error Count";
        /// Errors found on the data path within the drive.
        56 end_to_end_detected: U32 = COUNT, "SSD End to End Detection Count";
        /// Of these, corrected.
        60 end_to_end_corrected: U32 = COUNT, "SSD End to End Correction Count";
        /// Life of the system area used.
        64 system_data_used: u8 = PERCENT, "System Data Percent Used";
        /// Erase cycles of the block with the most.
        65 user_erase_max: U32 = COUNT, "User Data Erase Count Max";
        /// Erase cycles of the block with the least.
        69 user_erase_min: U32 = COUNT, "User Data Erase Count Min";
        /// Blocks rewritten to keep their data.
        73 refresh_count: U64 = COUNT, "Refresh Count";
        /// Failed programs: raw in the lower 48 bits, normalized above.
        81 program_fails: U64 = HEX, "Program Fail Count";
        /// Failed erases of the user area: raw in the lower 48 bits, normalized above.
        89 user_erase_fails: U64 = HEX, "User Data Erase Fail Count";
        /// Failed erases of the system area: raw in the lower 48 bits, normalized above.
        97 system_erase_fails: U64 = HEX, "System Area Erase Fail Count";
        /// How much the drive throttles now.
        105 throttle_status: u8 = COUNT, "Thermal Throttling Status";
        /// How often it throttled.
        106 throttle_count: u8 = COUNT, "Thermal Throttling Count";
        /// Correctable errors of the link.
        107 pcie_correctable_errors: U64 = COUNT, "PCIe Correctable Error Count";
        /// Shutdowns in which not all could be saved.
        115 incomplete_shutdowns: U32 = COUNT, "Incomplete Shutdown Count";
        /// Blocks that are free.
        119 free_blocks: u8 = PERCENT, "Percent Free Blocks";
        /// Reserved.
        120 reserved_120: [u8; 392] = RESERVED, "Reserved";
    }
}
