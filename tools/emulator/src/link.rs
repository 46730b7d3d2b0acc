//! The PCIe link: how long data takes from drive to host and back, and what it takes at best.
//!
//! Data crosses a link in packets (TLPs) of at most the payload size, each with a header. What a link moves is therefore
//! lanes x line rate x encoding x payload / (payload + header): 24 bytes of framing, sequence number, header with 64-bit
//! address, and CRC go with each packet that carries data read from the drive (a memory write), 20 with each that carries
//! data written to it (a completion). Data to the drive has to be asked for first: each read request of the drive is
//! acknowledged and its credit given back, two small packets (DLLPs) in the direction in which the data comes, so a small
//! read request size costs throughput. Requests that may be outstanding, over the time that one takes, are a limit, too.
//! What acknowledgements and flow control of the data itself take is a factor of the model, its link efficiency; what the
//! host loses behind the link, another: that of its root port.
//!
//! Both directions are independent, and each is used by one transfer at a time: that is what makes throughput end at the
//! ceiling however many commands are outstanding.
#![forbid(unsafe_code)]

use crate::model::Model;

/// Bytes that go with each packet of data from the drive: a memory write with a 64-bit address.
const WRITE_TLP_BYTES: f64 = 24.0;
/// Bytes that go with each packet of data to the drive: a completion.
const COMPLETION_TLP_BYTES: f64 = 20.0;
/// Bytes that answer each of the drive's read requests: an acknowledgement and a flow control update.
const REQUEST_DLLP_BYTES: f64 = 16.0;

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
    fn new(bytes_per_s: f64) -> Self {
        Self { fs_per_byte: (1e15 / bytes_per_s).round() as u64, free_ns: 0 }
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
    /// The link of this model, trained to this.
    pub(crate) fn new(link: PcieLink, model: &Model) -> Self {
        let raw = model.above.map_or(link, |above| link.min(above)).raw_bytes_per_s() * model.link_efficiency;
        let (payload, request) = (f64::from(model.payload), f64::from(model.read_request));
        let part = payload.min(request);
        let to_host = raw * payload / (payload + WRITE_TLP_BYTES) * model.root_port;
        let dllp = REQUEST_DLLP_BYTES * part / request;
        let mut to_drive = raw * part / (part + COMPLETION_TLP_BYTES + dllp) * model.root_port_out;
        if model.round_trip != 0 {
            to_drive = to_drive.min(f64::from(model.tags) * request / (model.round_trip as f64 * 1e-9));
        }
        Self { to_host: Direction::new(to_host), to_drive: Direction::new(to_drive) }
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

    /// The model `ideal` without any loss but that of packets.
    fn lossless(payload: u32) -> Model {
        Model { payload, link_efficiency: 1.0, ..Model::by_name("ideal").unwrap().unwrap() }
    }

    fn to_host(link: PcieLink, payload: u32) -> u64 {
        let ns = LinkTime::new(link, &lossless(payload)).send_to_host(0, 1 << 30);
        ((1u64 << 30) as f64 / ns as f64 * 1000.0).round() as u64
    }

    fn to_drive(model: &Model) -> f64 {
        let ns = LinkTime::new(PcieLink { generation: 3, width: 4 }, model).send_to_drive(0, 1 << 30);
        (1u64 << 30) as f64 / ns as f64 * 1000.0
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
                let got = to_host(link, payload);
                assert!(got.abs_diff(expected) <= 2, "{link} payload {payload}: {got}, not {expected}");
            }
        }
    }

    #[test]
    fn widths_and_payloads_that_no_article_has_follow_the_formula_too() {
        for (generation, width, payload, lanes_mb) in
            [(1, 1, 1024, 250.0), (3, 2, 4096, 984.615 * 2.0), (4, 16, 1024, 1969.23 * 16.0), (2, 8, 2048, 4000.0)]
        {
            let expected: f64 = lanes_mb * f64::from(payload) / f64::from(payload + 24);
            let got = to_host(PcieLink { generation, width }, payload) as f64;
            assert!(
                (got - expected).abs() < expected * 0.001 + 0.5,
                "gen{generation}x{width} {payload}: {got}, not {expected:.0}"
            );
        }
    }

    #[test]
    fn what_the_drive_asks_for_comes_in_parts_of_its_requests_and_costs_answers_to_them() {
        let raw = 3938.46;
        for (payload, request, expected) in [
            (256, 512, raw * 256.0 / (256.0 + 20.0 + 8.0)),
            (256, 4096, raw * 256.0 / (256.0 + 20.0 + 1.0)),
            (512, 128, raw * 128.0 / (128.0 + 20.0 + 16.0)),
        ] {
            let got = to_drive(&Model { read_request: request, ..lossless(payload) });
            assert!((got / expected - 1.0).abs() < 0.001, "{payload} {request}: {got}, not {expected:.0}");
        }
        // 16 requests of 512 bytes, one microsecond each: 8.192 GB/s; ten microseconds: 819 MB/s.
        let far = Model { tags: 16, round_trip: 10_000, ..lossless(256) };
        assert!((to_drive(&far) - 819.2).abs() < 1.0, "{}", to_drive(&far));
    }

    #[test]
    fn the_slowest_link_of_the_way_sets_the_pace() {
        let model = Model { above: Some(PcieLink { generation: 3, width: 1 }), ..lossless(256) };
        let ns = LinkTime::new(PcieLink { generation: 3, width: 4 }, &model).send_to_host(0, 900_000);
        assert!(ns.abs_diff(1_000_000) < 1000, "{ns}");
    }

    #[test]
    fn transfers_wait_for_each_other_and_directions_do_not() {
        let mut time = LinkTime::new(PcieLink { generation: 1, width: 4 }, &lossless(256));
        let first = time.send_to_host(0, 4096);
        assert_eq!(time.send_to_host(0, 4096), 2 * first);
        assert!(time.send_to_drive(0, 4096) < 2 * first);
    }
}
