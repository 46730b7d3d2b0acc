//! What the links between a drive and the processor can do, and what they do.
//!
//! A drive is behind one link or several: its own to the slot, and, on a card with a switch or behind a chipset, the
//! links above. The slowest of them is the speed of the drive, whatever the drive's own link says. [`LinkPath`] holds
//! them all as [`Hop`]s, each with both of its [ends](PortEnd); a hop's speed is judged against the lower ability of
//! its two ends, since a link must train to the best that both can do (PCI Express Base Specification 4.2.6).
//! [`Ceiling`] turns the narrowest hop into megabytes per second.
//!
//! Every register may be unreadable, unknown to the kernel, or read as all ones, and each of these is said as what it
//! is: an unknown width is not 255 lanes, a width of zero is a link that is down, and all ones is a device that is gone.
#![forbid(unsafe_code)]

mod ceiling;
mod errors;
mod hop;
mod path;
mod slot;
#[cfg(test)]
mod tests;

use core::fmt;

use serde::{Serialize, Serializer};

pub use ceiling::{Ceiling, PayloadSource};
pub use errors::{ErrorChange, LinkErrors, PortErrors};
pub use hop::{Aspm, Hop, LinkState, PortEnd, Trained, UnknownReason};
pub use path::{Limit, LinkPath};
pub use slot::{PortSlot, SlotHint};

/// The speed of a link, by the code of the Link Speed fields: 1 is 2.5 GT/s, 6 is 64 GT/s.
///
/// A code that is newer than this program is still a speed: it orders above the others and prints as `code n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkSpeed(u8);

impl LinkSpeed {
    /// 2.5 GT/s.
    pub const GEN1: Self = Self(1);
    /// 5 GT/s.
    pub const GEN2: Self = Self(2);
    /// 8 GT/s.
    pub const GEN3: Self = Self(3);
    /// 16 GT/s.
    pub const GEN4: Self = Self(4);
    /// 32 GT/s.
    pub const GEN5: Self = Self(5);
    /// 64 GT/s.
    pub const GEN6: Self = Self(6);

    /// The speed of a register's code; `None` for 0, which is no speed.
    pub const fn from_code(code: u8) -> Option<Self> {
        if code == 0 { None } else { Some(Self(code)) }
    }

    /// The speed in a sysfs text such as `8.0 GT/s PCIe`; `None` for `Unknown` and for what is no known speed.
    pub fn from_sysfs(text: &str) -> Option<Self> {
        let number = text.split_whitespace().next()?;
        let code = match number.strip_suffix(".0").unwrap_or(number) {
            "2.5" => 1,
            "5" => 2,
            "8" => 3,
            "16" => 4,
            "32" => 5,
            "64" => 6,
            _ => return None,
        };
        Some(Self(code))
    }

    /// The register's code, and the generation of PCI Express that brought it.
    pub const fn code(self) -> u8 {
        self.0
    }

    /// The signalling rate in 10^6 transfers per second and lane; `None` for a code above 6.
    pub const fn mega_transfers(self) -> Option<u32> {
        match self.0 {
            1 => Some(2_500),
            2 => Some(5_000),
            3 => Some(8_000),
            4 => Some(16_000),
            5 => Some(32_000),
            6 => Some(64_000),
            _ => None,
        }
    }

    /// The data rate of a lane in Mb/s after line encoding, rounded down as the Linux kernel does in its own messages.
    pub const fn mbit_s_per_lane(self) -> Option<u32> {
        match (self.0, self.mega_transfers()) {
            (1 | 2, Some(rate)) => Some(rate * 8 / 10),
            (3..=5, Some(rate)) => Some(rate * 128 / 130),
            (_, Some(rate)) => Some(rate),
            (_, None) => None,
        }
    }

    /// The data rate of a lane in 10^6 bytes per second after line encoding: 8b/10b for codes 1 and 2, 128b/130b for
    /// 3 to 5, and the 236 packet bytes of each 256-byte FLIT for 6.
    pub fn mb_s_per_lane(self) -> Option<f64> {
        let bytes = f64::from(self.mega_transfers()?) / 8.0;
        match self.0 {
            1 | 2 => Some(bytes * 8.0 / 10.0),
            3..=5 => Some(bytes * 128.0 / 130.0),
            6 => Some(bytes * 236.0 / 256.0),
            _ => None,
        }
    }
}

impl fmt::Display for LinkSpeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => f.pad("2.5 GT/s"),
            2 => f.pad("5 GT/s"),
            3 => f.pad("8 GT/s"),
            4 => f.pad("16 GT/s"),
            5 => f.pad("32 GT/s"),
            6 => f.pad("64 GT/s"),
            code => f.pad(&format!("code {code}")),
        }
    }
}

impl Serialize for LinkSpeed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The width of a link: 1 to 32 lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct LinkWidth(u8);

impl LinkWidth {
    /// The greatest width of the specification.
    const MAX: u8 = 32;

    /// A width of this many lanes; `None` for 0 and above 32: neither the kernel's 255 ("unknown") nor the 63 of a
    /// register that reads all ones is a number of lanes.
    pub const fn new(lanes: u8) -> Option<Self> {
        if lanes == 0 || lanes > Self::MAX { None } else { Some(Self(lanes)) }
    }

    /// The number of lanes.
    pub const fn lanes(self) -> u8 {
        self.0
    }
}

impl fmt::Display for LinkWidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("x{}", self.0))
    }
}
