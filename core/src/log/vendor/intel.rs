//! Additional SMART (CAh) and temperature statistics (C5h) of Intel and Solidigm drives.
#![forbid(unsafe_code)]

use crate::describe::View;
use crate::{codes, structure};
use ::core::fmt;
use zerocopy::FromBytes;
use zerocopy::little_endian::U64;

codes! {
    /// What an additional SMART item counts.
    pub struct AdditionalSmartKey(u8, 8) {
        /// Blocks retired.
        0x05 REALLOCATED "reallocated sectors";
        /// Reads that needed more than the first correction.
        0x0d SOFT_ECC "soft ECC error rate";
        /// Failed programs.
        0xab PROGRAM_FAIL "program fail count";
        /// Failed erases.
        0xac ERASE_FAIL "erase fail count";
        /// Erase cycles: minimum, maximum and average.
        0xad WEAR_LEVELING "wear leveling count (min, max, avg)";
        /// Losses of power without a shutdown.
        0xae UNEXPECTED_POWER_LOSS "unexpected power losses";
        /// Errors on the data path within the drive.
        0xb8 END_TO_END "end-to-end error detection count";
        /// CRC errors of the link.
        0xc7 CRC "CRC error count";
        /// Wear in the timed workload.
        0xe2 TIMED_WEAR "timed workload, media wear (1/1024 %)";
        /// Reads in the timed workload.
        0xe3 TIMED_READS "timed workload, host reads (%)";
        /// Minutes of the timed workload.
        0xe4 TIMED_MINUTES "timed workload timer (min)";
        /// Throttling: per cent in the first byte, events behind.
        0xea THROTTLE "thermal throttle status (%, events)";
        /// Overflows of the link's retry buffer.
        0xf0 RETRY_OVERFLOW "retry buffer overflow count";
        /// Losses of the reference clock.
        0xf3 PLL_LOCK_LOSS "PLL lock loss count";
        /// Media writes in 32 MiB.
        0xf4 NAND_WRITTEN "NAND bytes written (32 MiB)";
        /// Host writes in 32 MiB.
        0xf5 HOST_WRITTEN "host bytes written (32 MiB)";
        /// Wear of the host context.
        0xf6 CONTEXT_WEAR "host context wear used";
        /// Performance status.
        0xf7 PERFORMANCE_STATUS "performance status indicator";
        /// Media reads in 32 MiB.
        0xf8 MEDIA_READ "media bytes read (32 MiB)";
        /// Firmware downgrades that are left.
        0xf9 DOWNGRADES "available firmware downgrades";
    }
}

structure! {
    /// One item of the additional SMART page.
    pub struct AdditionalSmartItem: 12, "additional-smart-item", summary summary {
        /// What is counted; 0 where the item is not present.
        0 key: AdditionalSmartKey = choice(AdditionalSmartKey::MEANINGS), "Key";
        /// Reserved.
        1 reserved_1: [u8; 2] = RESERVED, "Reserved";
        /// 100 when new, falling.
        3 normalized: u8 = COUNT, "Normalized";
        /// Reserved.
        4 reserved_4: u8 = RESERVED, "Reserved";
        /// The count.
        5 value: [u8; 6] = number(1, ""), "Raw Value";
        /// Reserved.
        11 reserved_11: u8 = RESERVED, "Reserved";
    }
}

structure! {
    /// Additional SMART, log page CAh of Intel and Solidigm drives: items in any order, told by their key.
    pub struct AdditionalSmart: 512, "additional-smart" {
        /// The items.
        0 item: [AdditionalSmartItem; 42] = nested(&AdditionalSmartItem::DESCRIPTOR), "Item";
        /// Reserved.
        504 reserved_504: [u8; 8] = RESERVED, "Reserved";
    }
}

/// `wear leveling count (min, max, avg): 5, 9, 7 (normalized 100)`.
fn summary(view: View<'_>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Ok((item, _)) = AdditionalSmartItem::read_from_prefix(view.bytes) else { return f.write_str("not available") };
    let [a, b, c, d, e, g] = item.value;
    let number = u64::from_le_bytes([a, b, c, d, e, g, 0, 0]);
    match item.key {
        key if key.into_bits() == 0 => return f.write_str("not present"),
        AdditionalSmartKey::WEAR_LEVELING => {
            let pair = |low, high| u16::from_le_bytes([low, high]);
            write!(f, "{}: {}, {}, {}", item.key, pair(a, b), pair(c, d), pair(e, g))?;
        }
        AdditionalSmartKey::THROTTLE => write!(f, "{}: {a}, {}", item.key, u32::from_le_bytes([b, c, d, e]))?,
        key => write!(f, "{key}: {number}")?,
    }
    write!(f, " (normalized {})", item.normalized)
}

structure! {
    /// Temperature statistics, log page C5h of Intel drives; all temperatures in degrees Celsius.
    pub struct IntelTemperature: 112, "intel-temperature" {
        /// Temperature now.
        0 current: U64 = amount(1, "°C"), "Current Temperature";
        /// Set while a critical temperature is exceeded since power on.
        8 last_overtemp: U64 = COUNT, "Last Critical Overtemperature Flag";
        /// Set once a critical temperature was exceeded.
        16 life_overtemp: U64 = COUNT, "Life Critical Overtemperature Flag";
        /// Highest ever.
        24 highest: U64 = amount(1, "°C"), "Highest Temperature";
        /// Lowest ever.
        32 lowest: U64 = amount(1, "°C"), "Lowest Temperature";
        /// Reserved.
        40 reserved_40: [u8; 40] = RESERVED, "Reserved";
        /// Highest that is allowed.
        80 maximum_operating: U64 = amount(1, "°C"), "Maximum Operating Temperature";
        /// Reserved.
        88 reserved_88: [u8; 8] = RESERVED, "Reserved";
        /// Lowest that is allowed.
        96 minimum_operating: U64 = amount(1, "°C"), "Minimum Operating Temperature";
        /// Estimated offset between case and sensor.
        104 estimated_offset: U64 = amount(1, "°C"), "Estimated Offset";
    }
}
