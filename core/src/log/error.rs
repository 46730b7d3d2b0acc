//! Error Information: what went wrong, newest first.
#![forbid(unsafe_code)]

use crate::command::admin::Csi;
use crate::describe::View;
use crate::status::Status;
use crate::{bits, codes, structure};
use ::core::fmt;
use zerocopy::FromBytes;
use zerocopy::little_endian::{U16, U32, U64};

bits! {
    /// Where in the command the error is.
    pub struct ParameterErrorLocation(u16 as U16) {
        /// Byte of the command.
        0:8 byte: u8 = COUNT, "byte in the command";
        /// Bit of that byte.
        8:3 bit: u8 = COUNT, "bit in the byte";
        /// Reserved.
        11:5 __: u8 = RESERVED, "reserved";
    }
}

codes! {
    /// TRTYPE, the transport that an error is about.
    pub struct TransportType(u8, 8) {
        /// None: not an error of the transport, or not said.
        0 NONE "not indicated";
        /// RDMA.
        1 RDMA "RDMA";
        /// Fibre Channel.
        2 FIBRE_CHANNEL "Fibre Channel";
        /// TCP.
        3 TCP "TCP";
        /// Within one host.
        254 LOOP "intra-host";
    }
}

structure! {
    /// Error Information Log Entry, log page 01h is an array of them.
    /// NVM Express Base Specification, "Error Information Log Entry Data Structure".
    pub struct ErrorEntry: 64, "error", summary summary {
        /// Unique number of the error, counted up from 1; 0 where the entry is unused.
        0 error_count: U64 = COUNT.zero("unused"), "Error Count";
        /// The submission queue of the command; FFFFh where no command is concerned.
        8 sqid: U16 = COUNT.ones("none"), "Submission Queue ID";
        /// The command; FFFFh where no command is concerned.
        10 cmdid: U16 = HEX.ones("none"), "Command ID";
        /// The status of the command, with its phase tag.
        12 status_field: U16 = STATUS, "Status Field";
        /// Where in the command the error is; FFFFh where that cannot be said.
        14 parm_error_location: ParameterErrorLocation = bits(ParameterErrorLocation::PARTS).ones("none"), "Parameter Error Location";
        /// First logical block of the error.
        16 lba: U64 = HEX, "LBA";
        /// The namespace.
        24 nsid: U32 = HEX, "Namespace";
        /// The vendor's log page with more on the error; 0 where there is none.
        28 vs: u8 = HEX.zero("none"), "Vendor Specific Information Available";
        /// The transport.
        29 trtype: TransportType = choice(TransportType::MEANINGS), "Transport Type";
        /// The command set of the command.
        30 csi: Csi = choice(Csi::MEANINGS), "Command Set Indicator";
        /// The opcode of the command.
        31 opcode: u8 = HEX, "Opcode";
        /// What the command makes of it.
        32 cs: U64 = HEX, "Command Specific Information";
        /// What the transport makes of it.
        40 trtype_spec_info: U16 = HEX, "Transport Type Specific Information";
        /// Reserved.
        42 reserved_42: [u8; 21] = RESERVED, "Reserved";
        /// Version of this structure; transport, command set and opcode are valid from 1 on.
        63 log_page_version: u8 = COUNT, "Log Page Version";
    }
}

impl ErrorEntry {
    /// Whether the entry holds an error. An error count of 0 marks one that does not.
    pub const fn is_used(&self) -> bool {
        self.error_count.get() != 0
    }

    /// The status of the command.
    pub const fn status(&self) -> Status {
        Status::from_bits(self.status_field.get() >> 1)
    }

    /// The phase tag of the command's completion.
    pub const fn phase(&self) -> bool {
        self.status_field.get() & 1 != 0
    }
}

/// `9290042: Unrecovered Read Error (6281h), queue 52, command 0221h, LBA 423660112 of namespace 1`.
fn summary(view: View<'_>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Ok((entry, _)) = ErrorEntry::read_from_prefix(view.bytes) else { return f.write_str("not available") };
    if !entry.is_used() {
        return f.write_str("unused");
    }
    write!(f, "{}: {}, queue {}, command {:04X}h", entry.error_count, entry.status(), entry.sqid, entry.cmdid.get())?;
    write!(f, ", LBA {} of namespace {}", entry.lba, entry.nsid)
}
