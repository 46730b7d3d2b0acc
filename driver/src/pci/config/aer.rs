//! Advanced Error Reporting: which errors a function has seen, by name.
//!
//! PCI Express Base Specification 7.8.4. Both status registers keep a bit per kind of error until software clears it;
//! a bit in the mask register only keeps the error from being reported, it still counts as having happened.
#![forbid(unsafe_code)]

use core::fmt;

use serde::Serialize;

use super::ConfigSpace;

/// Extended capability ID of Advanced Error Reporting.
const AER: u16 = 0x01;

/// Bits of the Correctable Error Status register.
const CORRECTABLE: &[(u8, &str)] = &[
    (0, "receiver error"),
    (6, "bad TLP"),
    (7, "bad DLLP"),
    (8, "replay number rollover"),
    (12, "replay timer time-out"),
    (13, "advisory non-fatal error"),
    (14, "corrected internal error"),
    (15, "header log overflow"),
];

/// Bits of the Uncorrectable Error Status register.
const UNCORRECTABLE: &[(u8, &str)] = &[
    (4, "data link protocol error"),
    (5, "surprise down"),
    (12, "poisoned TLP received"),
    (13, "flow control protocol error"),
    (14, "completion time-out"),
    (15, "completer abort"),
    (16, "unexpected completion"),
    (17, "receiver overflow"),
    (18, "malformed TLP"),
    (19, "ECRC error"),
    (20, "unsupported request"),
    (21, "ACS violation"),
    (22, "internal error"),
    (23, "MC blocked TLP"),
    (24, "AtomicOp egress blocked"),
    (25, "TLP prefix blocked"),
    (26, "poisoned TLP egress blocked"),
    (27, "DMWr request egress blocked"),
    (28, "IDE check failed"),
    (29, "misrouted IDE TLP"),
    (30, "PCRC check failed"),
    (31, "TLP translation egress blocked"),
];

/// One bit of an error register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ErrorBit {
    /// Its position.
    pub bit: u8,
    /// The specification's name in plain words; `None` for a reserved bit.
    pub name: Option<&'static str>,
}

impl fmt::Display for ErrorBit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name {
            Some(name) => write!(f, "bit {} {name}", self.bit),
            None => write!(f, "bit {}", self.bit),
        }
    }
}

/// The bits set in an error register, by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ErrorSet {
    /// The register as it stands.
    pub raw: u32,
    /// Its set bits, lowest first.
    pub bits: Vec<ErrorBit>,
}

impl ErrorSet {
    /// The set bits of a correctable error status or mask register.
    pub fn correctable(raw: u32) -> Self {
        Self::of(raw, CORRECTABLE)
    }

    /// The set bits of an uncorrectable error status or mask register.
    pub fn uncorrectable(raw: u32) -> Self {
        Self::of(raw, UNCORRECTABLE)
    }

    fn of(raw: u32, names: &'static [(u8, &'static str)]) -> Self {
        let name_of = |bit: u8| names.iter().find(|(position, _)| *position == bit).map(|(_, name)| *name);
        let bits =
            (0..32).filter(|bit| raw & (1 << bit) != 0).map(|bit| ErrorBit { bit, name: name_of(bit) }).collect();
        Self { raw, bits }
    }

    /// Whether no bit is set.
    pub fn is_empty(&self) -> bool {
        self.raw == 0
    }
}

impl fmt::Display for ErrorSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.bits.is_empty() {
            return f.write_str("none");
        }
        for (index, bit) in self.bits.iter().enumerate() {
            let separator = if index == 0 { "" } else { " + " };
            write!(f, "{separator}{bit}")?;
        }
        Ok(())
    }
}

/// The Advanced Error Reporting capability.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Aer {
    /// Correctable errors since the bits were last cleared.
    pub correctable: ErrorSet,
    /// Correctable errors that are not reported.
    pub correctable_mask: ErrorSet,
    /// Uncorrectable errors since the bits were last cleared.
    pub uncorrectable: ErrorSet,
    /// Uncorrectable errors that are not reported.
    pub uncorrectable_mask: ErrorSet,
    /// Uncorrectable errors that count as fatal.
    pub severity: u32,
}

impl ConfigSpace {
    /// The Advanced Error Reporting capability; needs more than the first 256 bytes.
    pub fn aer(&self) -> Option<Aer> {
        let at = self.extended_capabilities().find(AER)?;
        Some(Aer {
            uncorrectable: ErrorSet::uncorrectable(self.u32(at + 0x04)?),
            uncorrectable_mask: ErrorSet::uncorrectable(self.u32(at + 0x08)?),
            severity: self.u32(at + 0x0c)?,
            correctable: ErrorSet::correctable(self.u32(at + 0x10)?),
            correctable_mask: ErrorSet::correctable(self.u32(at + 0x14)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(uncorrectable: [u32; 3], correctable: [u32; 2]) -> ConfigSpace {
        let mut bytes = vec![0; 4096];
        let mut put = |at: usize, value: u32| bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        put(0x100, 0x0001 | 2 << 16);
        for (index, value) in uncorrectable.into_iter().chain(correctable).enumerate() {
            put(0x104 + 4 * index, value);
        }
        ConfigSpace::new(bytes)
    }

    #[test]
    fn f08_errors_and_masks_are_named_by_bit() {
        let config = space([0x0004_4000, 0x0040_0000, 0x0046_2030], [0x0000_1000, 0x0000_2000]);
        let aer = config.aer().unwrap();
        assert_eq!(aer.correctable.to_string(), "bit 12 replay timer time-out");
        assert_eq!(aer.correctable_mask.to_string(), "bit 13 advisory non-fatal error");
        assert_eq!(aer.uncorrectable.to_string(), "bit 14 completion time-out + bit 18 malformed TLP");
        assert_eq!(aer.uncorrectable_mask.to_string(), "bit 22 internal error");
        assert!(ErrorSet::correctable(0).is_empty());
    }

    #[test]
    fn a_reserved_bit_is_shown_by_its_number() {
        assert_eq!(ErrorSet::correctable(1 << 3).to_string(), "bit 3");
        assert_eq!(ErrorSet::uncorrectable(0).to_string(), "none");
    }

    #[test]
    fn without_the_extended_space_there_is_no_answer() {
        assert_eq!(ConfigSpace::new(vec![0; 256]).aer(), None);
    }
}
