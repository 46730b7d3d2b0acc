//! The most that a link can carry, in each direction.
//!
//! Line rate x lanes x encoding is what a link moves; a part of it is packet overhead. A drive's *reads* reach the host
//! as memory writes: each carries up to Max_Payload_Size bytes and costs 24 more (2 bytes of framing, 2 of sequence
//! number, 16 of header with a 64-bit address, 4 of LCRC; from Gen3 on the framing token takes the same 4 bytes).
//! Its *writes* are fetched from the host, which answers with completions that cost 20 (their header has 12 bytes).
//! Completions may be cut at the read completion boundary, and the packets of the data link layer are not counted, so a
//! ceiling is good to about 3 %. A measured share above 103 % means that the registers are not to be believed, as in a
//! virtual machine.
//!
//! At 64 GT/s packets travel in FLITs with headers of their own; only the 236 of 256 bytes that a FLIT leaves for
//! packets are counted there, which makes that ceiling an upper bound. So is one for an unknown payload size.
#![forbid(unsafe_code)]

use core::fmt;

use serde::Serialize;

use super::{LinkSpeed, LinkWidth};

/// Bytes around the payload of a memory write with a 64-bit address.
const WRITE_OVERHEAD_BYTES: f64 = 24.0;
/// Bytes around the payload of a completion.
const COMPLETION_OVERHEAD_BYTES: f64 = 20.0;

/// How the payload size of a ceiling is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PayloadSource {
    /// From the Device Control registers along the path.
    Registers,
    /// Not known (the registers could not be read): packet overhead is not counted.
    Unknown,
}

/// The most that a link can carry, in 10^6 bytes per second.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ceiling {
    /// Of a drive's reads: data from the drive to the host.
    pub read_mb_s: f64,
    /// Of a drive's writes: data from the host to the drive.
    pub write_mb_s: f64,
    /// The line after encoding, without packet overhead.
    pub raw_mb_s: f64,
    /// The speed that it was computed for.
    pub speed: LinkSpeed,
    /// The width that it was computed for.
    pub width: LinkWidth,
    /// Max_Payload_Size, where it counts.
    pub payload_bytes: Option<u32>,
    /// How that is known.
    pub payload_source: PayloadSource,
    /// In words: what the figures rest on.
    pub basis: String,
}

impl Ceiling {
    /// The ceiling of a link of this speed and width with this payload size (`None`: not known).
    ///
    /// `None` for a speed whose rate is not known.
    pub fn new(speed: LinkSpeed, width: LinkWidth, payload_bytes: Option<u32>) -> Option<Self> {
        let raw_mb_s = speed.mb_s_per_lane()? * f64::from(width.lanes());
        let link = format!("{speed} {width}");
        let payload_source = match payload_bytes {
            Some(_) => PayloadSource::Registers,
            None => PayloadSource::Unknown,
        };
        let (read_mb_s, write_mb_s, basis) = match payload_bytes {
            _ if speed >= LinkSpeed::GEN6 => (raw_mb_s, raw_mb_s, format!("{link}, FLIT bytes only: an upper bound")),
            None => (raw_mb_s, raw_mb_s, format!("{link}, MPS unknown, packet overhead not counted: an upper bound")),
            Some(bytes) => {
                let payload = f64::from(bytes);
                let of = |overhead: f64| raw_mb_s * payload / (payload + overhead);
                (
                    of(WRITE_OVERHEAD_BYTES),
                    of(COMPLETION_OVERHEAD_BYTES),
                    format!("{link}, MPS {bytes}, read from the ports"),
                )
            }
        };
        Some(Self { read_mb_s, write_mb_s, raw_mb_s, speed, width, payload_bytes, payload_source, basis })
    }

    /// A measured rate as a share of a ceiling, in per cent. Not clamped: above 103 the link's registers are not
    /// believable.
    pub fn share_percent(measured_mb_s: f64, ceiling_mb_s: f64) -> f64 {
        100.0 * measured_mb_s / ceiling_mb_s
    }
}

impl fmt::Display for Ceiling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "read {:.0} MB/s, write {:.0} MB/s ({})", self.read_mb_s, self.write_mb_s, self.basis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ceiling(code: u8, lanes: u8, payload_bytes: Option<u32>) -> Ceiling {
        Ceiling::new(LinkSpeed::from_code(code).unwrap(), LinkWidth::new(lanes).unwrap(), payload_bytes).unwrap()
    }

    #[test]
    fn the_published_table_of_four_lane_links_is_reproduced() {
        let table = [
            (1, 1000, [842, 914, 955]),
            (2, 2000, [1684, 1829, 1910]),
            (3, 3938, [3317, 3601, 3762]),
            (4, 7877, [6633, 7202, 7524]),
            (5, 15754, [13266, 14404, 15048]),
        ];
        for (code, raw, reads) in table {
            for (payload, read) in [128, 256, 512].into_iter().zip(reads) {
                let ceiling = ceiling(code, 4, Some(payload));
                assert_eq!(ceiling.raw_mb_s.round() as u32, raw, "Gen{code}");
                assert_eq!(ceiling.read_mb_s.round() as u32, read, "Gen{code} MPS {payload}");
            }
        }
    }

    #[test]
    fn writes_come_as_completions_with_twenty_bytes_of_overhead() {
        assert_eq!(ceiling(3, 4, Some(256)).write_mb_s.round() as u32, 3653);
    }

    #[test]
    fn the_published_run_is_99_percent_of_its_links_ceiling() {
        let share = Ceiling::share_percent(3562.0, ceiling(3, 4, Some(256)).read_mb_s);
        assert_eq!(format!("{share:.1}"), "98.9");
        let excluded = Ceiling::share_percent(3562.0, ceiling(3, 4, Some(128)).read_mb_s);
        assert!(excluded > 103.0);
    }

    #[test]
    fn f03_one_lane_of_gen2_is_500_mb_s_of_the_3938_of_four_lanes_of_gen3() {
        assert_eq!(ceiling(2, 1, None).raw_mb_s.round() as u32, 500);
        assert_eq!(ceiling(3, 4, None).raw_mb_s.round() as u32, 3938);
    }

    #[test]
    fn without_a_payload_size_the_ceiling_is_the_line_and_says_so() {
        let ceiling = ceiling(3, 4, None);
        assert_eq!(ceiling.read_mb_s.to_bits(), ceiling.raw_mb_s.to_bits());
        assert_eq!(ceiling.payload_source, PayloadSource::Unknown);
        assert!(ceiling.basis.contains("MPS unknown"), "{}", ceiling.basis);
    }

    #[test]
    fn a_newer_speed_has_no_ceiling() {
        assert_eq!(Ceiling::new(LinkSpeed::from_code(7).unwrap(), LinkWidth::new(4).unwrap(), Some(256)), None);
        assert!(ceiling(6, 4, Some(256)).basis.contains("upper bound"));
    }
}
