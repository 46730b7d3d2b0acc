//! The status field: how a command ended, as type and code.
//!
//! NVM Express Base Specification, "Status Field". The fifteen bits of a completion without its phase tag: status code
//! (bits 7:0), status code type (10:8), command retry delay (12:11), more (13), do not retry (14).
//!
//! The names, one sentence for each, and whether the same command may succeed when sent again, are a table: [`CODES`].
#![forbid(unsafe_code)]

mod code;
pub use code::CODES;

use crate::{bits, codes};
use ::core::fmt;

codes! {
    /// SCT, the status code type: which table a status code is of.
    pub struct StatusType(u8, 3) {
        /// Every command can end this way.
        0 GENERIC "Generic Command Status";
        /// What it means depends on the command.
        1 COMMAND_SPECIFIC "Command Specific Status";
        /// The data, or what protects it, is wrong.
        2 MEDIA "Media and Data Integrity Error";
        /// The path to the namespace is the trouble.
        3 PATH "Path Related Status";
        /// The vendor's own.
        7 VENDOR "Vendor Specific Status";
    }
}

bits! {
    /// The upper half of a completion's last dword, as error log entries repeat it: the phase tag and the status field.
    pub struct StatusWord(u16 as U16) {
        /// The phase tag, by which a new entry is told from an old one.
        0:1 phase: bool = FLAG, "phase tag";
        /// SC, the status code.
        1:8 sc: u8 = HEX, "status code";
        /// SCT, the status code type.
        9:3 sct: StatusType = choice(StatusType::MEANINGS), "status code type";
        /// CRD, which of Identify Controller's command retry delay times to wait before a retry; 0 is none.
        12:2 crd: u8 = COUNT.zero("none"), "command retry delay";
        /// The error log page holds more about this command.
        14:1 more: bool = FLAG, "more in the error log";
        /// The same command would fail again.
        15:1 dnr: bool = FLAG, "do not retry";
    }
}

/// What one status code means.
#[derive(Clone, Copy, Debug)]
pub struct Code {
    /// Status code type and status code as one number: 281h is type 2, code 81h.
    pub type_and_code: u16,
    /// The specification's name.
    pub name: &'static str,
    /// What it says, in one sentence.
    pub doc: &'static str,
    /// Whether sending the same command again can help.
    pub retry: Retry,
}

/// Whether sending the same command again can help. The controller's Do Not Retry bit overrules it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// The cause may pass.
    MayHelp,
    /// The command itself is the cause, or the cause stays.
    Useless,
}

/// The status field of a completion, without the phase tag.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Status(u16);

impl Status {
    /// The command ended well.
    pub const SUCCESS: Self = Self(0);

    /// The status with these fifteen bits; bit 15 is ignored.
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits & 0x7fff)
    }

    /// The fifteen bits.
    pub const fn into_bits(self) -> u16 {
        self.0
    }

    /// The status of this type (three bits) and code, without any flag.
    pub const fn new(sct: u8, sc: u8) -> Self {
        Self((sct as u16 & 7) << 8 | sc as u16)
    }

    /// The same status with Do Not Retry set or cleared.
    #[must_use]
    pub const fn with_dnr(self, dnr: bool) -> Self {
        Self(self.0 & !(1 << 14) | (dnr as u16) << 14)
    }

    /// The same status with More set or cleared.
    #[must_use]
    pub const fn with_more(self, more: bool) -> Self {
        Self(self.0 & !(1 << 13) | (more as u16) << 13)
    }

    /// SCT, the status code type.
    pub const fn sct(self) -> u8 {
        (self.0 >> 8) as u8 & 7
    }

    /// SC, the status code.
    pub const fn sc(self) -> u8 {
        self.0 as u8
    }

    /// CRD, which of Identify Controller's command retry delay times to wait before a retry; 0 is none.
    pub const fn crd(self) -> u8 {
        (self.0 >> 11) as u8 & 3
    }

    /// The error log page holds more about this command.
    pub const fn more(self) -> bool {
        self.0 & 1 << 13 != 0
    }

    /// DNR: the same command would fail again.
    pub const fn dnr(self) -> bool {
        self.0 & 1 << 14 != 0
    }

    /// Type and code as one number, as 2/81h is 281h.
    pub const fn type_and_code(self) -> u16 {
        self.0 & 0x7ff
    }

    /// Whether the command ended well.
    pub const fn is_success(self) -> bool {
        self.type_and_code() == 0
    }

    /// What the specification says of type and code, where it says anything.
    pub fn code(self) -> Option<&'static Code> {
        CODES.binary_search_by_key(&self.type_and_code(), |code| code.type_and_code).ok().and_then(|i| CODES.get(i))
    }

    /// The name of type and code, where the specification gives one.
    pub fn name(self) -> Option<&'static str> {
        self.code().map(|code| code.name)
    }

    /// What the status code type is called.
    pub fn type_name(self) -> &'static str {
        StatusType::from_bits(self.sct()).name().unwrap_or("Reserved Status Type")
    }

    /// Whether sending the same command again can help: the controller did not say Do Not Retry, and the cause may
    /// pass. A code without a name is judged by Do Not Retry alone.
    pub fn may_retry(self) -> bool {
        !self.is_success() && !self.dnr() && self.code().is_none_or(|code| code.retry == Retry::MayHelp)
    }
}

impl fmt::Display for Status {
    /// The name and the whole field: `Invalid Field in Command (0002h)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(name) = self.name() else {
            return write!(f, "Unknown {} ({:04X}h)", self.type_name(), self.0);
        };
        write!(f, "{name} ({:04X}h)", self.0)
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_rises_so_that_it_can_be_searched() {
        assert!(CODES.is_sorted_by(|a, b| a.type_and_code < b.type_and_code));
        for code in CODES {
            assert_eq!(Status::new((code.type_and_code >> 8) as u8, code.type_and_code as u8).name(), Some(code.name));
            assert!(code.doc.ends_with('.'), "{}", code.name);
        }
    }

    #[test]
    fn a_status_shows_its_name_and_all_its_bits() {
        assert_eq!(format!("{}", Status::from_bits(0x2002)), "Invalid Field in Command (2002h)");
        assert_eq!(format!("{}", Status::from_bits(0x07c1)), "Unknown Vendor Specific Status (07C1h)");
        assert_eq!(format!("{}", Status::from_bits(0x02ff)), "Unknown Media and Data Integrity Error (02FFh)");
    }

    #[test]
    fn a_retry_is_offered_only_where_it_can_help() {
        assert!(Status::new(0, 0x82).may_retry());
        assert!(!Status::new(0, 0x82).with_dnr(true).may_retry());
        assert!(!Status::new(0, 0x02).may_retry());
        assert!(!Status::SUCCESS.may_retry());
        assert!(Status::new(7, 0x01).may_retry());
    }
}
