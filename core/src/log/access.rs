//! Who reaches what: asymmetric namespace access, reservation notices.
#![forbid(unsafe_code)]

use crate::{bits, codes, structure};
use zerocopy::little_endian::{U16, U32, U64};

structure! {
    /// The head of Asymmetric Namespace Access, log page 0Ch; `ngrps` group descriptors follow.
    /// NVM Express Base Specification, "Asymmetric Namespace Access".
    pub struct AnaHeader: 16, "ana" {
        /// Counts the changes of the log.
        0 chgcnt: U64 = COUNT, "Change Count";
        /// Group descriptors that follow.
        8 ngrps: U16 = COUNT, "Number of ANA Group Descriptors";
        /// Reserved.
        10 reserved_10: [u8; 6] = RESERVED, "Reserved";
    }
}

codes! {
    /// State of an ANA group.
    pub struct AnaState(u8, 4) {
        /// Optimized.
        0x1 OPTIMIZED "optimized";
        /// Non-optimized.
        0x2 NON_OPTIMIZED "non-optimized";
        /// Inaccessible.
        0x3 INACCESSIBLE "inaccessible";
        /// Persistent loss.
        0x4 PERSISTENT_LOSS "persistent loss";
        /// Changing.
        0xf CHANGE "change";
    }
}

bits! {
    /// The state byte of an ANA group.
    pub struct AnaStateByte(u8 as u8) {
        /// The state.
        0:4 state: AnaState = choice(AnaState::MEANINGS), "ANA state";
        /// Reserved.
        4:4 __: u8 = RESERVED, "reserved";
    }
}

structure! {
    /// ANA Group Descriptor; `nnsids` namespace identifiers of four bytes follow.
    /// NVM Express Base Specification, "ANA Group Descriptor format".
    pub struct AnaGroup: 32, "ana-group" {
        /// The group.
        0 grpid: U32 = COUNT, "ANA Group ID";
        /// Namespace identifiers that follow.
        4 nnsids: U32 = COUNT, "Number of NSID Values";
        /// Counts the changes of the group.
        8 chgcnt: U64 = COUNT, "Change Count";
        /// The state.
        16 state: AnaStateByte = bits(AnaStateByte::PARTS), "ANA State";
        /// Reserved.
        17 reserved_17: [u8; 15] = RESERVED, "Reserved";
    }
}

codes! {
    /// What a reservation notification tells.
    pub struct ReservationNotice(u8, 8) {
        /// The log is empty.
        0 EMPTY "empty log page";
        /// A registration was preempted.
        1 REGISTRATION_PREEMPTED "registration preempted";
        /// A reservation was released.
        2 RESERVATION_RELEASED "reservation released";
        /// A reservation was preempted.
        3 RESERVATION_PREEMPTED "reservation preempted";
    }
}

structure! {
    /// Reservation Notification, log page 80h. NVM Express Base Specification, "Reservation Notification".
    pub struct ReservationNotification: 64, "reservation-notification" {
        /// Counts the notifications.
        0 log_page_count: U64 = COUNT, "Log Page Count";
        /// What happened.
        8 kind: ReservationNotice = choice(ReservationNotice::MEANINGS), "Reservation Notification Log Page Type";
        /// More log pages that can be read; 255 for 255 and more.
        9 available: u8 = COUNT, "Number of Available Log Pages";
        /// Reserved.
        10 reserved_10: [u8; 2] = RESERVED, "Reserved";
        /// The namespace.
        12 nsid: U32 = HEX, "Namespace ID";
        /// Reserved.
        16 reserved_16: [u8; 48] = RESERVED, "Reserved";
    }
}
