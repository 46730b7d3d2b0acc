//! Power states: how much a controller draws and how slow it then is.
#![forbid(unsafe_code)]

use crate::{bits, structure};
use zerocopy::little_endian::{U16, U32};

bits! {
    /// Flags of a power state.
    pub struct PowerStateFlags(u8 as u8) {
        /// Maximum power is in units of 0.0001 W rather than 0.01 W.
        0:1 mxps: bool = FLAG, "Max Power Scale";
        /// No I/O is processed in this state.
        1:1 nops: bool = FLAG, "Non-Operational State";
        /// Reserved.
        2:6 __: u8 = RESERVED, "Reserved";
    }
}

structure! {
    /// Power State Descriptor. NVM Express Base Specification, "Power State Descriptor Data Structure".
    pub struct PowerState: 32, "power-state" {
        /// Maximum power, in units of 0.01 W or 0.0001 W.
        0 mp: U16 = COUNT, "Maximum Power";
        /// Reserved.
        2 reserved_2: u8 = RESERVED, "Reserved";
        /// Scale, and whether the state is operational.
        3 flags: PowerStateFlags = bits(PowerStateFlags::PARTS), "Flags";
        /// Longest time to enter the state, in microseconds.
        4 enlat: U32 = amount(1, "us"), "Entry Latency";
        /// Longest time to leave the state, in microseconds.
        8 exlat: U32 = amount(1, "us"), "Exit Latency";
        /// Rank among the states: lower is faster.
        12 rrt: u8 = COUNT, "Relative Read Throughput";
        /// Rank among the states: lower is faster.
        13 rrl: u8 = COUNT, "Relative Read Latency";
        /// Rank among the states: lower is faster.
        14 rwt: u8 = COUNT, "Relative Write Throughput";
        /// Rank among the states: lower is faster.
        15 rwl: u8 = COUNT, "Relative Write Latency";
        /// Power over 30 seconds when idle, in the unit of `ips`.
        16 idlp: U16 = COUNT, "Idle Power";
        /// Idle power scale, bits 7:6.
        18 ips: u8 = HEX, "Idle Power Scale";
        /// Reserved.
        19 reserved_19: u8 = RESERVED, "Reserved";
        /// Largest average power over 10 seconds under the workload told by `apw`.
        20 actp: U16 = COUNT, "Active Power";
        /// Active power workload (bits 2:0) and scale (bits 7:6).
        22 aps: u8 = HEX, "Active Power Workload and Scale";
        /// Reserved.
        23 reserved_23: [u8; 9] = RESERVED, "Reserved";
    }
}
