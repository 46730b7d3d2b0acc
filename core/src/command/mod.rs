//! Commands: the 64-byte submission queue entry, and one builder for each command.
//!
//! NVM Express Base Specification, "Submission Queue Entry". A builder is a structure whose fields have types no wider
//! than the command's, so that it cannot make an entry with a field out of range; the same table reads an entry back
//! ([`Command::from_entry`]) and describes it. Command identifier and data pointer are not the builder's: the queue and
//! the data give those.
//!
//! ```
//! use nvmetal_core::command::{Command, io::Read};
//! use nvmetal_core::number::ZeroBased;
//!
//! let read = Read { nsid: 1, slba: 0x1_0000_0000, nlb: ZeroBased::<u16>::from_count(8).unwrap(), ..Read::default() };
//! let entry = read.entry().with_cid(7).with_prp(0x8000_0000, 0);
//! assert_eq!(entry.cdw11(), 1); // upper half of the address
//! assert_eq!(entry.cdw12(), 7); // eight blocks, counted from zero
//! assert_eq!(Read::from_entry(&entry), read);
//! ```
#![forbid(unsafe_code)]

pub mod admin;
mod describe;
pub mod io;
pub mod zoned;
pub use describe::{CommandSet, CommandView, DataPointerType, DwordZero, Fuse, SubmissionLayout};

/// A submission queue entry, as sixteen dwords in the order of the processor.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct SubmissionEntry([u32; 16]);

macro_rules! dword {
    ($($(#[$doc:meta])* $index:literal $get:ident $with:ident;)*) => { $(
        $(#[$doc])*
        pub const fn $get(&self) -> u32 {
            self.0[$index]
        }

        $(#[$doc])*
        #[must_use]
        pub const fn $with(mut self, value: u32) -> Self {
            self.0[$index] = value;
            self
        }
    )* };
}

impl SubmissionEntry {
    /// Size in bytes.
    pub const SIZE: usize = 64;

    /// An entry with this opcode and nothing else.
    pub const fn new(opcode: u8) -> Self {
        let mut dwords = [0; 16];
        dwords[0] = opcode as u32;
        Self(dwords)
    }

    /// The entry made of these dwords.
    pub const fn from_dwords(dwords: [u32; 16]) -> Self {
        Self(dwords)
    }

    /// The sixteen dwords.
    pub const fn dwords(&self) -> [u32; 16] {
        self.0
    }

    /// The entry as eight words of 64 bits, the lower dword of each pair in the lower half.
    pub const fn words(&self) -> [u64; 8] {
        let mut words = [0; 8];
        let mut i = 0;
        while i < 8 {
            words[i] = self.0[2 * i] as u64 | (self.0[2 * i + 1] as u64) << 32;
            i += 1;
        }
        words
    }

    /// The entry made of eight words of 64 bits.
    pub const fn from_words(words: [u64; 8]) -> Self {
        let mut dwords = [0; 16];
        let mut i = 0;
        while i < 8 {
            dwords[2 * i] = words[i] as u32;
            dwords[2 * i + 1] = (words[i] >> 32) as u32;
            i += 1;
        }
        Self(dwords)
    }

    /// The entry as it lies in memory.
    pub fn to_bytes(&self) -> [u8; 64] {
        let mut bytes = [0; 64];
        for (place, dword) in bytes.chunks_exact_mut(4).zip(self.0) {
            place.copy_from_slice(&dword.to_le_bytes());
        }
        bytes
    }

    /// The entry as it lies in memory.
    pub fn from_bytes(bytes: &[u8; 64]) -> Self {
        let mut dwords = [0; 16];
        for (dword, place) in dwords.iter_mut().zip(bytes.as_chunks::<4>().0) {
            *dword = u32::from_le_bytes(*place);
        }
        Self(dwords)
    }

    /// The opcode.
    pub const fn opcode(&self) -> u8 {
        self.0[0] as u8
    }

    /// FUSE, whether the command is half of a fused operation.
    pub const fn fuse(&self) -> u8 {
        (self.0[0] >> 8) as u8 & 3
    }

    /// PSDT, whether the data pointer is a PRP (0) or an SGL (1, 2).
    pub const fn psdt(&self) -> u8 {
        (self.0[0] >> 14) as u8 & 3
    }

    /// The same entry with this PSDT (two bits).
    #[must_use]
    pub const fn with_psdt(mut self, psdt: u8) -> Self {
        self.0[0] = self.0[0] & !(3 << 14) | (psdt as u32 & 3) << 14;
        self
    }

    /// CID, the command identifier.
    pub const fn cid(&self) -> u16 {
        (self.0[0] >> 16) as u16
    }

    /// The same entry with this command identifier.
    #[must_use]
    pub const fn with_cid(mut self, cid: u16) -> Self {
        self.0[0] = self.0[0] & 0xffff | (cid as u32) << 16;
        self
    }

    dword! {
        /// Dword 0: command identifier, PSDT, FUSE, opcode.
        0 cdw0 with_cdw0;
        /// Dword 1: the namespace.
        1 nsid with_nsid;
        /// Dword 2.
        2 cdw2 with_cdw2;
        /// Dword 3.
        3 cdw3 with_cdw3;
        /// Dword 10.
        10 cdw10 with_cdw10;
        /// Dword 11.
        11 cdw11 with_cdw11;
        /// Dword 12.
        12 cdw12 with_cdw12;
        /// Dword 13.
        13 cdw13 with_cdw13;
        /// Dword 14.
        14 cdw14 with_cdw14;
        /// Dword 15.
        15 cdw15 with_cdw15;
    }

    /// MPTR, the metadata pointer (dwords 4 and 5).
    pub const fn mptr(&self) -> u64 {
        self.0[4] as u64 | (self.0[5] as u64) << 32
    }

    /// The same entry with this metadata pointer.
    #[must_use]
    pub const fn with_mptr(mut self, mptr: u64) -> Self {
        self.0[4] = mptr as u32;
        self.0[5] = (mptr >> 32) as u32;
        self
    }

    /// PRP entry 1 (dwords 6 and 7), or the first half of an SGL descriptor.
    pub const fn prp1(&self) -> u64 {
        self.0[6] as u64 | (self.0[7] as u64) << 32
    }

    /// PRP entry 2 (dwords 8 and 9), or the second half of an SGL descriptor.
    pub const fn prp2(&self) -> u64 {
        self.0[8] as u64 | (self.0[9] as u64) << 32
    }

    /// The same entry with this data pointer: two PRP entries, or the two halves of an SGL descriptor.
    #[must_use]
    pub const fn with_prp(mut self, prp1: u64, prp2: u64) -> Self {
        self.0[6] = prp1 as u32;
        self.0[7] = (prp1 >> 32) as u32;
        self.0[8] = prp2 as u32;
        self.0[9] = (prp2 >> 32) as u32;
        self
    }

    /// The value of `width` bits (at most 64) from bit `low` of dword `dword` on; it may reach into the dwords after.
    pub const fn field(&self, dword: usize, low: u32, width: u32) -> u64 {
        let mut value = 0;
        let mut done = 0;
        while done < width {
            let at = low + done;
            let i = dword + (at / 32) as usize;
            let here = if 32 - at % 32 < width - done { 32 - at % 32 } else { width - done };
            if i < 16 {
                value |= (self.0[i] as u64 >> (at % 32) & ((1 << here) - 1)) << done;
            }
            done += here;
        }
        value
    }

    /// Sets the `width` bits (at most 64) from bit `low` of dword `dword` on; they may reach into the dwords after.
    pub const fn set_field(&mut self, dword: usize, low: u32, width: u32, value: u64) {
        let mut done = 0;
        while done < width {
            let at = low + done;
            let i = dword + (at / 32) as usize;
            let here = if 32 - at % 32 < width - done { 32 - at % 32 } else { width - done };
            if i < 16 {
                let mask = (1_u64 << here) - 1;
                self.0[i] = (self.0[i] as u64 & !(mask << (at % 32)) | (value >> done & mask) << (at % 32)) as u32;
            }
            done += here;
        }
    }
}

impl ::core::fmt::Debug for SubmissionEntry {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        f.debug_struct("SubmissionEntry")
            .field("opcode", &format_args!("{:#04x}", self.opcode()))
            .field("cid", &format_args!("{:#x}", self.cid()))
            .field("nsid", &format_args!("{:#x}", self.nsid()))
            .field("mptr", &format_args!("{:#x}", self.mptr()))
            .field("prp1", &format_args!("{:#x}", self.prp1()))
            .field("prp2", &format_args!("{:#x}", self.prp2()))
            .field("cdw10..15", &format_args!("{:08x?}", &self.0[10..]))
            .finish()
    }
}

/// A command that knows how to write itself into an entry and to read itself back.
pub trait Command: Sized {
    /// Its opcode.
    const OPCODE: u8;
    /// The table of its fields.
    const DESCRIPTOR: CommandDescriptor;
    /// The entry, without command identifier and data pointer.
    fn entry(&self) -> SubmissionEntry;
    /// The command that the entry holds; the opcode is not looked at.
    fn from_entry(entry: &SubmissionEntry) -> Self;
}

/// A field of a command: where its bits lie in the entry.
#[derive(Clone, Copy, Debug)]
pub struct CommandField {
    /// Name in the builder.
    pub id: &'static str,
    /// Name for people.
    pub label: &'static str,
    /// What it says.
    pub doc: &'static str,
    /// First dword.
    pub dword: u8,
    /// Lowest bit in that dword.
    pub low: u8,
    /// Number of bits.
    pub width: u8,
    /// How the bits are read.
    pub shape: crate::describe::Shape,
}

/// A command, told by its fields.
#[derive(Clone, Copy, Debug)]
pub struct CommandDescriptor {
    /// The opcode.
    pub opcode: u8,
    /// The specification's name.
    pub name: &'static str,
    /// What it does and where the specification defines it.
    pub doc: &'static str,
    /// The fields in the order of the entry.
    pub fields: &'static [CommandField],
}

/// A command from a table of rows: `DWORD[LOW:WIDTH] name: Type = shape, "Label";`.
macro_rules! command {
    (
        $(#[doc = $doc:literal])+
        pub struct $name:ident = $opcode:expr, $label:literal {
            $(
                $(#[doc = $fdoc:literal])+
                $dword:literal [$low:literal : $width:literal] $field:ident: $ty:ty = $shape:expr, $flabel:literal;
            )*
        }
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $( $(#[doc = $fdoc])+ pub $field: $ty, )*
        }

        impl $name {
            /// The command's name.
            pub const NAME: &'static str = $label;

            /// The fields and their places.
            pub const FIELDS: &'static [$crate::command::CommandField] = {
                #[allow(unused_imports, reason = "not every table uses every shape")]
                use $crate::describe::shape::*;
                &[$( {
                    assert!(
                        <$ty as $crate::number::BitValue>::WIDTH <= $width,
                        concat!("the type is wider than the field: ", stringify!($field)),
                    );
                    $crate::command::CommandField {
                        id: stringify!($field),
                        label: $flabel,
                        doc: concat!($($fdoc, "\n"),+),
                        dword: $dword,
                        low: $low,
                        width: $width,
                        shape: $shape,
                    }
                } ),*]
            };
        }

        const _: () = { let _ = $name::FIELDS; };

        impl $crate::command::Command for $name {
            const OPCODE: u8 = $opcode.into_bits();

            const DESCRIPTOR: $crate::command::CommandDescriptor = $crate::command::CommandDescriptor {
                opcode: $opcode.into_bits(),
                name: $label,
                doc: concat!($($doc, "\n"),+),
                fields: Self::FIELDS,
            };

            fn entry(&self) -> $crate::command::SubmissionEntry {
                #[allow(unused_mut, reason = "not every command has fields")]
                let mut entry = $crate::command::SubmissionEntry::new(Self::OPCODE);
                $( entry.set_field($dword, $low, $width, $crate::number::BitValue::to_raw(self.$field)); )*
                entry
            }

            #[allow(unused_variables, reason = "not every command has fields")]
            fn from_entry(entry: &$crate::command::SubmissionEntry) -> Self {
                Self { $( $field: $crate::number::BitValue::from_raw(entry.field($dword, $low, $width)), )* }
            }
        }
    };
}
pub(crate) use command;

/// Which way a command's data goes, told by the low two bits of its opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// No data.
    None,
    /// From host to controller.
    ToController,
    /// From controller to host.
    FromController,
    /// Both ways.
    Both,
}

impl Direction {
    /// The direction that an opcode's low two bits tell.
    pub const fn of_opcode(opcode: u8) -> Self {
        match opcode & 3 {
            0 => Self::None,
            1 => Self::ToController,
            2 => Self::FromController,
            _ => Self::Both,
        }
    }
}
