//! Power states: how much a controller draws and how slow it then is.
#![forbid(unsafe_code)]

use crate::describe::View;
use crate::{bits, codes, structure};
use ::core::fmt;
use zerocopy::FromBytes;
use zerocopy::little_endian::{U16, U32};

bits! {
    /// Flags of a power state.
    pub struct PowerStateFlags(u8 as u8) {
        /// Maximum power is in units of 0.0001 W rather than 0.01 W.
        0:1 mxps: bool = FLAG, "maximum power in 0.0001 W";
        /// No I/O is processed in this state.
        1:1 nops: bool = FLAG, "non-operational";
        /// Reserved.
        2:6 __: u8 = RESERVED, "reserved";
    }
}

codes! {
    /// The unit of a power value.
    pub struct PowerScale(u8, 2) {
        /// The power is not reported.
        0 NOT_REPORTED "not reported";
        /// 0.0001 W.
        1 W_0001 "0.0001 W";
        /// 0.01 W.
        2 W_01 "0.01 W";
    }
}

codes! {
    /// APW, the workload under which active power was measured.
    pub struct PowerWorkload(u8, 3) {
        /// None.
        0 NONE "no workload";
        /// Workload 1: 4 KiB random writes, mostly idle.
        1 WORKLOAD_1 "workload 1";
        /// Workload 2: 128 KiB sequential writes.
        2 WORKLOAD_2 "workload 2";
    }
}

codes! {
    /// The unit of a time value of power loss signaling.
    pub struct TimeScale(u8, 4) {
        /// 1 microsecond.
        0 US_1 "1 us";
        /// 10 microseconds.
        1 US_10 "10 us";
        /// 100 microseconds.
        2 US_100 "100 us";
        /// 1 millisecond.
        3 MS_1 "1 ms";
        /// 10 milliseconds.
        4 MS_10 "10 ms";
        /// 100 milliseconds.
        5 MS_100 "100 ms";
        /// 1 second.
        6 S_1 "1 s";
        /// 10 seconds.
        7 S_10 "10 s";
        /// 100 seconds.
        8 S_100 "100 s";
        /// 1,000 seconds.
        9 S_1000 "1,000 s";
        /// 10,000 seconds.
        10 S_10000 "10,000 s";
        /// 100,000 seconds.
        11 S_100000 "100,000 s";
        /// 1,000,000 seconds.
        12 S_1000000 "1,000,000 s";
    }
}

bits! {
    /// Scale of the idle power.
    pub struct IdlePowerScale(u8 as u8) {
        /// Reserved.
        0:6 __: u8 = RESERVED, "reserved";
        /// Unit of the idle power.
        6:2 ips: PowerScale = choice(PowerScale::MEANINGS), "idle power scale";
    }
}

bits! {
    /// Workload and scale of the active power.
    pub struct ActivePowerScale(u8 as u8) {
        /// The workload.
        0:3 apw: PowerWorkload = choice(PowerWorkload::MEANINGS), "active power workload";
        /// Reserved.
        3:3 __: u8 = RESERVED, "reserved";
        /// Unit of the active power.
        6:2 aps: PowerScale = choice(PowerScale::MEANINGS), "active power scale";
    }
}

bits! {
    /// Scales of emergency power fail recovery time and forced quiescence vault time.
    pub struct PowerLossScales(u8 as u8) {
        /// Unit of the emergency power fail recovery time.
        0:4 epfrts: TimeScale = choice(TimeScale::MEANINGS), "emergency power fail recovery time scale";
        /// Unit of the forced quiescence vault time.
        4:4 fqvts: TimeScale = choice(TimeScale::MEANINGS), "forced quiescence vault time scale";
    }
}

bits! {
    /// Scale of the emergency power fail vault time.
    pub struct VaultScale(u8 as u8) {
        /// Unit of the emergency power fail vault time.
        0:4 epfvts: TimeScale = choice(TimeScale::MEANINGS), "emergency power fail vault time scale";
        /// Reserved.
        4:4 __: u8 = RESERVED, "reserved";
    }
}

bits! {
    /// Rank of a power state among the others; lower is better.
    pub struct Rank(u8 as u8) {
        /// The rank.
        0:5 rank: u8 = COUNT, "rank";
        /// Reserved.
        5:3 __: u8 = RESERVED, "reserved";
    }
}

structure! {
    /// Power State Descriptor. NVM Express Base Specification, "Power State Descriptor Data Structure".
    pub struct PowerState: 32, "power-state", summary summary {
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
        12 rrt: Rank = bits(Rank::PARTS), "Relative Read Throughput";
        /// Rank among the states: lower is faster.
        13 rrl: Rank = bits(Rank::PARTS), "Relative Read Latency";
        /// Rank among the states: lower is faster.
        14 rwt: Rank = bits(Rank::PARTS), "Relative Write Throughput";
        /// Rank among the states: lower is faster.
        15 rwl: Rank = bits(Rank::PARTS), "Relative Write Latency";
        /// Power over 30 seconds when idle, in the unit of the idle power scale.
        16 idlp: U16 = COUNT, "Idle Power";
        /// Unit of the idle power.
        18 ips: IdlePowerScale = bits(IdlePowerScale::PARTS), "Idle Power Scale";
        /// Reserved.
        19 reserved_19: u8 = RESERVED, "Reserved";
        /// Largest average power over 10 seconds under the active power workload.
        20 actp: U16 = COUNT, "Active Power";
        /// Workload and unit of the active power.
        22 apws: ActivePowerScale = bits(ActivePowerScale::PARTS), "Active Power Workload and Scale";
        /// Time to recover after an emergency power fail.
        23 epfrt: u8 = COUNT, "Emergency Power Fail Recovery Time";
        /// Time to save what must be saved in forced quiescence.
        24 fqvt: u8 = COUNT, "Forced Quiescence Vault Time";
        /// Time to save what must be saved at an emergency power fail.
        25 epfvt: u8 = COUNT, "Emergency Power Fail Vault Time";
        /// Units of the two times before.
        26 epfr_fqv_ts: PowerLossScales = bits(PowerLossScales::PARTS), "Power Loss Time Scales";
        /// Unit of the emergency power fail vault time.
        27 epfvts: VaultScale = bits(VaultScale::PARTS), "Emergency Power Fail Vault Time Scale";
        /// Reserved.
        28 reserved_28: [u8; 4] = RESERVED, "Reserved";
    }
}

impl PowerState {
    /// Maximum power in units of 0.0001 W (100 microwatts), whatever the scale.
    pub const fn maximum_power_100uw(&self) -> u32 {
        self.mp.get() as u32 * if self.flags.mxps() { 1 } else { 100 }
    }

    /// Idle power in units of 0.0001 W, where it is reported.
    pub const fn idle_power_100uw(&self) -> Option<u32> {
        scaled(self.idlp.get(), self.ips.ips())
    }

    /// Active power in units of 0.0001 W, where it is reported.
    pub const fn active_power_100uw(&self) -> Option<u32> {
        scaled(self.actp.get(), self.apws.aps())
    }
}

/// `8.00 W, non-operational, entry 5000 us, exit 10000 us`: what the fields say together.
fn summary(view: View<'_>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Ok((state, _)) = PowerState::read_from_prefix(view.bytes) else { return f.write_str("not available") };
    write!(f, "{}", Watts { value: state.mp.get().into(), fine: state.flags.mxps() })?;
    f.write_str(if state.flags.nops() { ", non-operational" } else { ", operational" })?;
    write!(f, ", entry {} us, exit {} us", state.enlat, state.exlat)?;
    write!(f, ", ranks {}/{}/{}/{}", state.rrt.rank(), state.rrl.rank(), state.rwt.rank(), state.rwl.rank())?;
    for (name, value, scale) in
        [("idle", state.idlp.get(), state.ips.ips()), ("active", state.actp.get(), state.apws.aps())]
    {
        if scale == PowerScale::W_0001 || scale == PowerScale::W_01 {
            write!(f, ", {name} {}", Watts { value: value.into(), fine: scale == PowerScale::W_0001 })?;
        }
    }
    Ok(())
}

/// Watts in units of 0.01 W (two decimals), or 0.0001 W (four).
#[derive(Clone, Copy, Debug)]
pub struct Watts {
    /// The number of units.
    pub value: u32,
    /// The unit is 0.0001 W.
    pub fine: bool,
}

impl fmt::Display for Watts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.fine {
            write!(f, "{}.{:04} W", self.value / 10_000, self.value % 10_000)
        } else {
            write!(f, "{}.{:02} W", self.value / 100, self.value % 100)
        }
    }
}

const fn scaled(value: u16, scale: PowerScale) -> Option<u32> {
    match scale.into_bits() {
        1 => Some(value as u32),
        2 => Some(value as u32 * 100),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::Watts;

    #[test]
    fn b06_a_power_has_all_its_cents() {
        let watts = |value, fine| Watts { value, fine }.to_string();
        assert_eq!(watts(1407, false), "14.07 W");
        assert_eq!(watts(650, false), "6.50 W");
        assert_eq!(watts(700, true), "0.0700 W");
        assert_eq!(watts(5, true), "0.0005 W");
    }
}
