//! A submission queue entry told by its fields: those that every command has, and those of the one that its opcode names.
//!
//! The entry alone does not say which opcodes it is to be read by: that is a matter of the queue that it came from, and
//! of the namespace's command set. [`CommandSet`] is that knowledge.
//!
//! ```
//! use nvmetal_core::command::{Command, CommandSet, io::Read};
//!
//! let entry = Read { nsid: 1, slba: 64, ..Read::default() }.entry();
//! let view = CommandSet::Io.view(entry).unwrap();
//! assert_eq!(view.descriptor.name, "Read");
//! assert_eq!(view.get("slba").unwrap().raw(), 64);
//! assert!(view.text().to_string().contains("cdw10[63:0]   Starting LBA"));
//! ```
#![forbid(unsafe_code)]

use super::admin::{self, AdminOpcode};
use super::io::{self, IoOpcode};
use super::{CommandDescriptor, CommandField, SubmissionEntry, zoned};
use crate::describe::Value;
use crate::describe::json::{Object, string, write_value};
use crate::{bits, codes, structure};
use ::core::fmt;
use zerocopy::little_endian::{U32, U64};

codes! {
    /// FUSE, whether a command is half of a fused operation.
    pub struct Fuse(u8, 2) {
        /// It stands alone.
        0 NONE "not fused";
        /// First half.
        1 FIRST "first of a fused operation";
        /// Second half.
        2 SECOND "second of a fused operation";
    }
}

codes! {
    /// PSDT, what the data pointer of a command is.
    pub struct DataPointerType(u8, 2) {
        /// PRP entries.
        0 PRP "PRP";
        /// An SGL; the metadata is one contiguous buffer.
        1 SGL "SGL, metadata contiguous";
        /// An SGL; the metadata pointer is one, too.
        2 SGL_METADATA "SGL, metadata by SGL";
    }
}

bits! {
    /// Command Dword 0. NVM Express Base Specification, "Command Dword 0".
    pub struct DwordZero(u32 as U32) {
        /// Which command it is.
        0:8 opcode: u8 = HEX, "opcode";
        /// Whether the command is half of a fused operation.
        8:2 fuse: Fuse = choice(Fuse::MEANINGS), "fused operation";
        /// Reserved.
        10:4 __: u8 = RESERVED, "reserved";
        /// What the data pointer is.
        14:2 psdt: DataPointerType = choice(DataPointerType::MEANINGS), "data pointer";
        /// By which the completion names the command.
        16:16 cid: u16 = HEX, "command identifier";
    }
}

structure! {
    /// Submission Queue Entry, as it lies in memory, by what all commands share.
    /// NVM Express Base Specification, "Common Command Format".
    pub struct SubmissionLayout: 64, "sqe" {
        /// Opcode and command identifier.
        0 cdw0: DwordZero = bits(DwordZero::PARTS), "Command Dword 0";
        /// The namespace.
        4 nsid: U32 = HEX, "Namespace Identifier";
        /// The command's own.
        8 cdw2: U32 = HEX, "Command Dword 2";
        /// The command's own.
        12 cdw3: U32 = HEX, "Command Dword 3";
        /// Where the metadata lies.
        16 mptr: U64 = HEX, "Metadata Pointer";
        /// PRP entry 1, or the address of an SGL descriptor.
        24 dptr_low: U64 = HEX, "Data Pointer, lower half";
        /// PRP entry 2, or length and type of an SGL descriptor.
        32 dptr_high: U64 = HEX, "Data Pointer, upper half";
        /// The command's own.
        40 cdw10: U32 = HEX, "Command Dword 10";
        /// The command's own.
        44 cdw11: U32 = HEX, "Command Dword 11";
        /// The command's own.
        48 cdw12: U32 = HEX, "Command Dword 12";
        /// The command's own.
        52 cdw13: U32 = HEX, "Command Dword 13";
        /// The command's own.
        56 cdw14: U32 = HEX, "Command Dword 14";
        /// The command's own.
        60 cdw15: U32 = HEX, "Command Dword 15";
    }
}

/// Which opcodes an entry is to be read by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandSet {
    /// The entry is of the admin queue.
    Admin,
    /// The entry is of an I/O queue; the NVM command set, and zoned namespaces beside it.
    Io,
}

impl CommandSet {
    /// Every command of the set that has a table of its fields.
    pub fn commands(self) -> impl Iterator<Item = &'static CommandDescriptor> {
        let (first, second): (&[_], &[_]) = match self {
            Self::Admin => (admin::COMMANDS, &[]),
            Self::Io => (io::COMMANDS, zoned::COMMANDS),
        };
        first.iter().chain(second)
    }

    /// The specification's name of an opcode, also of commands that have no table here.
    pub fn opcode_name(self, opcode: u8) -> Option<&'static str> {
        match self {
            Self::Admin => AdminOpcode::from_bits(opcode).name(),
            Self::Io => IoOpcode::from_bits(opcode).name(),
        }
    }

    /// The entry seen as the command that its opcode names; `None` where that has no table here.
    pub fn view(self, entry: SubmissionEntry) -> Option<CommandView> {
        let descriptor = self.commands().find(|command| command.opcode == entry.opcode())?;
        Some(CommandView { descriptor, entry })
    }
}

/// An entry and the table of the command that it holds.
#[derive(Clone, Copy, Debug)]
pub struct CommandView {
    /// The command.
    pub descriptor: &'static CommandDescriptor,
    /// The entry.
    pub entry: SubmissionEntry,
}

impl CommandView {
    /// The value of a field.
    pub fn value(&self, field: &CommandField) -> Value<'static> {
        let bits = self.entry.field(field.dword.into(), field.low.into(), field.width.into());
        Value::from_bits(bits.into(), field.width.into(), field.shape)
    }

    /// The value of the field with this id, where the command has it.
    pub fn get(&self, id: &str) -> Option<Value<'static>> {
        self.descriptor.fields.iter().find(|field| field.id == id).map(|field| self.value(field))
    }

    /// The command's own bits that it gives no meaning and that are not zero: the dword's number, and those bits of it.
    pub fn unknown(&self) -> impl Iterator<Item = (usize, u32)> {
        let mut rest = self.entry;
        for field in self.descriptor.fields {
            rest.set_field(field.dword.into(), field.low.into(), field.width.into(), 0);
        }
        let own = |dword: &usize| matches!(dword, 2 | 3 | 10..);
        rest.dwords().into_iter().enumerate().filter(move |(dword, bits)| own(dword) && *bits != 0)
    }

    /// The command's own fields as text, a line for each, with its place in the entry.
    pub fn text(self) -> impl fmt::Display {
        Text(self)
    }

    /// The command as one JSON object: its name, its opcode and its own fields.
    pub fn json(self) -> impl fmt::Display {
        Json(self)
    }
}

/// The place of a field: `cdw12[15:0]`, `cdw12[30]`.
impl fmt::Display for CommandField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (low, high) = (u32::from(self.low), u32::from(self.low) + u32::from(self.width) - 1);
        if low == high { write!(f, "cdw{}[{low}]", self.dword) } else { write!(f, "cdw{}[{high}:{low}]", self.dword) }
    }
}

/// Characters that the longest place takes, as in `cdw10[31:16]`.
const PLACE_WIDTH: usize = 13;

struct Text(CommandView);

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = self.0.descriptor.fields;
        let width = fields.iter().map(|field| field.label.chars().count()).max().unwrap_or(0);
        for field in fields {
            let mut place = heapless::String::<PLACE_WIDTH>::new();
            fmt::write(&mut place, format_args!("{field}"))?;
            writeln!(f, "{place:PLACE_WIDTH$} {:width$} : {}", field.label, self.0.value(field))?;
        }
        for (dword, bits) in self.0.unknown() {
            writeln!(f, "cdw{dword}: bits that the command does not define: {bits:#010x}")?;
        }
        Ok(())
    }
}

struct Json(CommandView);

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut object = Object::begin(f)?;
        object.key("name")?;
        string(object.f, format_args!("{}", self.0.descriptor.name))?;
        object.key("opcode")?;
        write!(object.f, "{}", self.0.descriptor.opcode)?;
        for field in self.0.descriptor.fields {
            object.key(field.id)?;
            write_value(object.f, self.0.value(field))?;
        }
        for (dword, bits) in self.0.unknown() {
            write!(object.key_with(format_args!("unknown_cdw{dword}"))?, "{bits}")?;
        }
        object.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Command;
    use crate::command::io::Read;

    #[test]
    fn every_opcode_of_a_table_has_its_name_and_is_found_once() {
        for set in [CommandSet::Admin, CommandSet::Io] {
            for command in set.commands() {
                assert_eq!(set.opcode_name(command.opcode), Some(command.name));
                assert_eq!(set.commands().filter(|other| other.opcode == command.opcode).count(), 1);
                for field in command.fields {
                    assert!(field.to_string().len() <= PLACE_WIDTH, "{}: the place of {}", command.name, field.id);
                }
            }
        }
    }

    #[test]
    fn bits_that_a_command_does_not_define_are_not_hidden() {
        let entry = Read { nsid: 1, slba: 7, ..Read::default() }.entry().with_cdw13(0x0100_0000).with_prp(1, 2);
        let view = CommandSet::Io.view(entry).unwrap();
        assert_eq!(view.unknown().collect::<Vec<_>>(), [(13, 0x0100_0000)]);
        assert!(view.text().to_string().contains("cdw13: bits that the command does not define: 0x01000000\n"));
        let json: serde_json::Value = serde_json::from_str(&view.json().to_string()).unwrap();
        assert_eq!((&json["name"], &json["slba"], &json["nlb"]["value"]), (&"Read".into(), &7.into(), &1.into()));
        assert_eq!(json["unknown_cdw13"], 0x0100_0000);
    }

    #[test]
    fn any_entry_of_any_opcode_is_told_without_a_panic() {
        for opcode in 0..=255_u32 {
            for fill in [0, u32::MAX] {
                let mut dwords = [fill; 16];
                dwords[0] = opcode | fill << 8;
                for set in [CommandSet::Admin, CommandSet::Io] {
                    let Some(view) = set.view(SubmissionEntry::from_dwords(dwords)) else { continue };
                    assert!(serde_json::from_str::<serde_json::Value>(&view.json().to_string()).is_ok());
                    assert!(view.text().to_string().is_ascii() || fill == u32::MAX);
                }
            }
        }
    }
}
