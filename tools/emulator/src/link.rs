//! The PCIe link: how long data takes from drive to host and back, and what it takes at best.
//!
//! Data crosses a link in packets (TLPs) of at most the payload size, each with a header. What a link moves is therefore
//! lanes x line rate x encoding x payload / (payload + header): 24 bytes of framing, sequence number, header with 64-bit
//! address, and CRC go with each packet that carries data read from the drive (a memory write), 20 with each that carries
//! data written to it (a completion). On top of that come acknowledgements and flow control, for which a model has one
//! factor, its link efficiency.
//!
//! Both directions are independent, and each is used by one transfer at a time: that is what makes throughput end at the
//! ceiling however many commands are outstanding.
#![forbid(unsafe_code)]

/// Bytes that go with each packet of data from the drive: a memory write with a 64-bit address.
const WRITE_TLP_BYTES: u64 = 24;
/// Bytes that go with each packet of data to the drive: a completion.
const COMPLETION_TLP_BYTES: u64 = 20;

/// Generation and width of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PcieLink {
    /// 1 to 6: 2.5, 5, 8, 16, 32, 64 GT/s.
    pub generation: u8,
    /// Lanes.
    pub width: u8,
}

impl PcieLink {
    /// What the lanes carry, in bytes per second, after the encoding (8b/10b up to generation 2, 128b/130b from 3).
    pub fn raw_bytes_per_s(self) -> f64 {
        let (gigatransfers, encoding) = match self.generation {
            0 | 1 => (2.5, 0.8),
            2 => (5.0, 0.8),
            generation => (8.0 * f64::from(1u32 << (generation.min(6) - 3)), 128.0 / 130.0),
        };
        gigatransfers * 1e9 * encoding / 8.0 * f64::from(self.width)
    }

    /// The slower of two links in a row.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        if self.raw_bytes_per_s() <= other.raw_bytes_per_s() { self } else { other }
    }

    /// What two ends that can do this and `other` train to.
    #[must_use]
    pub fn common(self, other: Self) -> Self {
        Self { generation: self.generation.min(other.generation), width: self.width.min(other.width) }
    }
}

impl core::fmt::Display for PcieLink {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "gen{}x{}", self.generation, self.width)
    }
}

/// One direction of a link: how fast it is and until when it is taken.
#[derive(Debug, Clone, Copy)]
struct Direction {
    /// Femtoseconds per byte of payload, all overhead included.
    fs_per_byte: u64,
    free_ns: u64,
}

impl Direction {
    fn new(raw_bytes_per_s: f64, payload_bytes: u32, overhead_bytes: u64, efficiency: f64) -> Self {
        let payload = f64::from(payload_bytes);
        let rate = raw_bytes_per_s * payload / (payload + overhead_bytes as f64) * efficiency;
        Self { fs_per_byte: (1e15 / rate).round() as u64, free_ns: 0 }
    }

    fn reserve(&mut self, now_ns: u64, bytes: u64) -> u64 {
        self.free_ns = self.free_ns.max(now_ns) + bytes * self.fs_per_byte / 1_000_000;
        self.free_ns
    }
}

/// A link in use.
#[derive(Debug, Clone)]
pub(crate) struct LinkTime {
    to_host: Direction,
    to_drive: Direction,
}

impl LinkTime {
    /// A link of this kind; `efficiency` is the share that acknowledgements and flow control leave.
    pub(crate) fn new(link: PcieLink, payload_bytes: u32, efficiency: f64) -> Self {
        let raw = link.raw_bytes_per_s();
        Self {
            to_host: Direction::new(raw, payload_bytes, WRITE_TLP_BYTES, efficiency),
            to_drive: Direction::new(raw, payload_bytes, COMPLETION_TLP_BYTES, efficiency),
        }
    }

    /// Sends `bytes` to the host after what is being sent; when the last of them has arrived.
    pub(crate) fn send_to_host(&mut self, now_ns: u64, bytes: u64) -> u64 {
        self.to_host.reserve(now_ns, bytes)
    }

    /// Fetches `bytes` from the host; when the last of them has arrived.
    pub(crate) fn send_to_drive(&mut self, now_ns: u64, bytes: u64) -> u64 {
        self.to_drive.reserve(now_ns, bytes)
    }

    /// Forgets what was under way: the function was reset.
    pub(crate) fn reset(&mut self) {
        self.to_host.free_ns = 0;
        self.to_drive.free_ns = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn megabytes_per_s(link: PcieLink, payload: u32) -> u64 {
        let mut time = LinkTime::new(link, payload, 1.0);
        let ns = time.send_to_host(0, 1 << 30);
        ((1u64 << 30) as f64 / ns as f64 * 1000.0).round() as u64
    }

    #[test]
    fn the_ceilings_are_those_of_the_formula() {
        for (generation, expected) in [
            (1, [842, 914, 955]),
            (2, [1684, 1829, 1910]),
            (3, [3317, 3601, 3762]),
            (4, [6633, 7202, 7524]),
            (5, [13266, 14404, 15048]),
        ] {
            let link = PcieLink { generation, width: 4 };
            for (payload, expected) in [128, 256, 512].into_iter().zip(expected) {
                let got = megabytes_per_s(link, payload);
                assert!(got.abs_diff(expected) <= 2, "{link} payload {payload}: {got}, not {expected}");
            }
        }
        let arrived_ns = LinkTime::new(PcieLink { generation: 3, width: 4 }, 256, 1.0).send_to_drive(0, 3_653_000);
        assert!(arrived_ns.abs_diff(1_000_000) < 100, "{arrived_ns}");
    }

    #[test]
    fn transfers_wait_for_each_other_and_directions_do_not() {
        let mut time = LinkTime::new(PcieLink { generation: 1, width: 4 }, 256, 1.0);
        let first = time.send_to_host(0, 4096);
        assert_eq!(time.send_to_host(0, 4096), 2 * first);
        assert!(time.send_to_drive(0, 4096) < 2 * first);
    }
}
