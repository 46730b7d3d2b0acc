//! Reservations: hosts that share a namespace agree on who may write to it.
#![forbid(unsafe_code)]

use super::{IoOpcode, command};
use crate::number::ZeroBasedU32;
use crate::{bits, codes, structure};
use zerocopy::little_endian::{U16, U32, U64};

codes! {
    /// RTYPE, the type of a reservation.
    pub struct ReservationType(u8, 8) {
        /// There is none.
        0 NONE "none";
        /// Only the holder writes.
        1 WRITE_EXCLUSIVE "write exclusive";
        /// Only the holder reads and writes.
        2 EXCLUSIVE_ACCESS "exclusive access";
        /// Only registrants write.
        3 WRITE_EXCLUSIVE_REGISTRANTS "write exclusive, registrants only";
        /// Only registrants read and write.
        4 EXCLUSIVE_ACCESS_REGISTRANTS "exclusive access, registrants only";
        /// Only registrants write, and all of them hold the reservation.
        5 WRITE_EXCLUSIVE_ALL "write exclusive, all registrants";
        /// Only registrants read and write, and all of them hold the reservation.
        6 EXCLUSIVE_ACCESS_ALL "exclusive access, all registrants";
    }
}

codes! {
    /// RREGA of Reservation Register.
    pub struct RegisterAction(u8, 3) {
        /// Register a key.
        0 REGISTER "register reservation key";
        /// Give the registration up.
        1 UNREGISTER "unregister reservation key";
        /// Replace the key.
        2 REPLACE "replace reservation key";
    }
}

codes! {
    /// CPTPL of Reservation Register: whether reservations outlast a loss of power.
    pub struct PersistChange(u8, 2) {
        /// As it was.
        0 NO_CHANGE "no change";
        /// They do not.
        2 RELEASE "released on power on";
        /// They do.
        3 PERSIST "persist across power loss";
    }
}

codes! {
    /// RACQA of Reservation Acquire.
    pub struct AcquireAction(u8, 3) {
        /// Acquire.
        0 ACQUIRE "acquire";
        /// Take the reservation from another host.
        1 PREEMPT "preempt";
        /// Take the reservation from another host and abort its commands.
        2 PREEMPT_AND_ABORT "preempt and abort";
    }
}

codes! {
    /// RRELA of Reservation Release.
    pub struct ReleaseAction(u8, 3) {
        /// Release.
        0 RELEASE "release";
        /// Release, and take away all registrations.
        1 CLEAR "clear";
    }
}

command! {
    /// Reservation Register; the data is [`RegisterKeys`].
    /// NVM Express Base Specification, "Reservation Register command".
    pub struct ReservationRegister = IoOpcode::RESERVATION_REGISTER, "Reservation Register" {
        /// The namespace.
        1[0:32] nsid: u32 = HEX, "Namespace Identifier";
        /// What to do.
        10[0:3] rrega: RegisterAction = choice(RegisterAction::MEANINGS), "Reservation Register Action";
        /// The current key is not looked at.
        10[3:1] iekey: bool = FLAG, "Ignore Existing Key";
        /// The namespace is dispersed and the host knows.
        10[4:1] disnsrs: bool = FLAG, "Dispersed Namespace Reservation Support";
        /// Whether reservations outlast a loss of power.
        10[30:2] cptpl: PersistChange = choice(PersistChange::MEANINGS), "Change Persist Through Power Loss State";
    }
}

structure! {
    /// The data of Reservation Register.
    pub struct RegisterKeys: 16, "register-keys" {
        /// The key in force.
        0 crkey: U64 = HEX, "Current Reservation Key";
        /// The new key.
        8 nrkey: U64 = HEX, "New Reservation Key";
    }
}

command! {
    /// Reservation Report; returns a [`ReservationStatus`] and its registrants.
    /// NVM Express Base Specification, "Reservation Report command".
    pub struct ReservationReport = IoOpcode::RESERVATION_REPORT, "Reservation Report" {
        /// The namespace.
        1[0:32] nsid: u32 = HEX, "Namespace Identifier";
        /// Dwords to return.
        10[0:32] numd: ZeroBasedU32 = ZERO_BASED, "Number of Dwords";
        /// The form with host identifiers of 128 bits.
        11[0:1] eds: bool = FLAG, "Extended Data Structure";
        /// The namespace is dispersed and the host knows.
        11[1:1] disnsrs: bool = FLAG, "Dispersed Namespace Reservation Support";
    }
}

command! {
    /// Reservation Acquire; the data is [`AcquireKeys`].
    /// NVM Express Base Specification, "Reservation Acquire command".
    pub struct ReservationAcquire = IoOpcode::RESERVATION_ACQUIRE, "Reservation Acquire" {
        /// The namespace.
        1[0:32] nsid: u32 = HEX, "Namespace Identifier";
        /// What to do.
        10[0:3] racqa: AcquireAction = choice(AcquireAction::MEANINGS), "Reservation Acquire Action";
        /// The current key is not looked at.
        10[3:1] iekey: bool = FLAG, "Ignore Existing Key";
        /// The namespace is dispersed and the host knows.
        10[4:1] disnsrs: bool = FLAG, "Dispersed Namespace Reservation Support";
        /// The type of reservation.
        10[8:8] rtype: ReservationType = choice(ReservationType::MEANINGS), "Reservation Type";
    }
}

structure! {
    /// The data of Reservation Acquire.
    pub struct AcquireKeys: 16, "acquire-keys" {
        /// The key in force.
        0 crkey: U64 = HEX, "Current Reservation Key";
        /// The key of the host that is preempted.
        8 prkey: U64 = HEX, "Preempt Reservation Key";
    }
}

command! {
    /// Reservation Release; the data is the key in force, 8 bytes.
    /// NVM Express Base Specification, "Reservation Release command".
    pub struct ReservationRelease = IoOpcode::RESERVATION_RELEASE, "Reservation Release" {
        /// The namespace.
        1[0:32] nsid: u32 = HEX, "Namespace Identifier";
        /// What to do.
        10[0:3] rrela: ReleaseAction = choice(ReleaseAction::MEANINGS), "Reservation Release Action";
        /// The current key is not looked at.
        10[3:1] iekey: bool = FLAG, "Ignore Existing Key";
        /// The namespace is dispersed and the host knows.
        10[4:1] disnsrs: bool = FLAG, "Dispersed Namespace Reservation Support";
        /// The type of reservation.
        10[8:8] rtype: ReservationType = choice(ReservationType::MEANINGS), "Reservation Type";
    }
}

structure! {
    /// Reservation Status; the registrants follow at byte 24, or at byte 64 in the extended form.
    /// NVM Express Base Specification, "Reservation Status Data Structure".
    pub struct ReservationStatus: 24, "reservation" {
        /// Counts every change of registrations.
        0 generation: U32 = COUNT, "Generation";
        /// The type of the reservation that is held.
        4 rtype: ReservationType = choice(ReservationType::MEANINGS), "Reservation Type";
        /// Registrants that follow.
        5 regstrnt: U16 = COUNT, "Number of Registrants";
        /// Reserved.
        7 reserved_7: [u8; 2] = RESERVED, "Reserved";
        /// 1: reservations outlast a loss of power.
        9 ptpls: u8 = COUNT, "Persist Through Power Loss State";
        /// Reserved.
        10 reserved_10: [u8; 14] = RESERVED, "Reserved";
    }
}

bits! {
    /// RCSTS, how a registrant stands.
    pub struct RegistrantStatus(u8 as u8) {
        /// It holds the reservation.
        0:1 holder: bool = FLAG, "holds the reservation";
        /// Reserved.
        1:7 __: u8 = RESERVED, "reserved";
    }
}

structure! {
    /// Registrant, with a host identifier of 64 bits.
    /// NVM Express Base Specification, "Registrant Data Structure".
    pub struct Registrant: 24, "registrant" {
        /// The controller; FFFFh where it is of the dynamic model.
        0 cntlid: U16 = HEX, "Controller ID";
        /// How it stands.
        2 rcsts: RegistrantStatus = bits(RegistrantStatus::PARTS), "Reservation Status";
        /// Reserved.
        3 reserved_3: [u8; 5] = RESERVED, "Reserved";
        /// The host.
        8 hostid: U64 = HEX, "Host Identifier";
        /// Its key.
        16 rkey: U64 = HEX, "Reservation Key";
    }
}

structure! {
    /// Registrant, with a host identifier of 128 bits.
    /// NVM Express Base Specification, "Registrant Extended Data Structure".
    pub struct RegistrantExtended: 64, "registrant-extended" {
        /// The controller; FFFFh where it is of the dynamic model.
        0 cntlid: U16 = HEX, "Controller ID";
        /// How it stands.
        2 rcsts: RegistrantStatus = bits(RegistrantStatus::PARTS), "Reservation Status";
        /// Reserved.
        3 reserved_3: [u8; 5] = RESERVED, "Reserved";
        /// Its key.
        8 rkey: U64 = HEX, "Reservation Key";
        /// The host.
        16 hostid: [u8; 16] = DIGITS, "Host Identifier";
        /// Reserved.
        32 reserved_32: [u8; 32] = RESERVED, "Reserved";
    }
}
