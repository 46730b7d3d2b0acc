//! What a run has seen, as the checks need it.
//!
//! Every part may be missing, because the run was cut short, the path to the drive does not show it, or the drive does
//! not report it; a missing part is `None` or empty and never a zero that looks like a measurement.
#![forbid(unsafe_code)]

use nvmetal_core::log::Smart;
use nvmetal_core::status::Status;
use nvmetal_driver::pci::link::{ErrorChange, LinkPath};
use serde::Serialize;

/// Everything that was seen.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// Who the drive is.
    pub identity: Option<Identity>,
    /// The links between drive and root.
    pub link: Link,
    /// SMART before the first read.
    pub smart_before: Option<Smart>,
    /// SMART after the last read.
    pub smart_after: Option<Smart>,
    /// The error log's entries; `None` where it could not be read.
    pub error_log: Option<Vec<LoggedError>>,
    /// Composite temperature over the run.
    pub temperature: Temperature,
    /// Sequential reads.
    pub sequential_read: Option<Run>,
    /// Random reads of 4 KiB at a high queue depth.
    pub random_read: Option<Run>,
    /// Random reads of 4 KiB, one at a time.
    pub latency: Option<Run>,
    /// What went wrong while single blocks were read to see whether the drive holds data.
    pub samples: IoErrors,
    /// The drive stopped answering; how that was seen.
    pub lost: Option<String>,
    /// What the user expects and accepts.
    pub wishes: Wishes,
}

/// Who the drive is.
#[derive(Debug, Clone, Default)]
pub struct Identity {
    /// Model number, trimmed.
    pub model: String,
    /// Serial number, trimmed.
    pub serial: String,
    /// Firmware revision, trimmed.
    pub firmware: String,
    /// Bytes of the namespace under test.
    pub capacity_bytes: u128,
    /// Bytes of data in a logical block.
    pub lba_bytes: u32,
    /// The serial number that the drive gave at the end of the run, where it was asked again.
    pub serial_after: Option<String>,
}

/// The links between drive and root.
#[derive(Debug, Clone, Default)]
pub struct Link {
    /// As they were before the run; `None` where nothing shows them.
    pub path: Option<LinkPath>,
    /// As they were while reads were running.
    pub under_load: Vec<LinkPath>,
    /// What was counted in the run; `None` where nothing counts.
    pub errors: Option<ErrorChange>,
}

/// An entry of the error log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedError {
    /// Its number over the drive's life.
    pub count: u64,
    /// How the command ended.
    pub status: Status,
    /// The logical block, where one belongs to it.
    pub lba: Option<u64>,
    /// It was not there before the run.
    pub is_new: bool,
}

/// Composite temperature over the run, in kelvin.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Temperature {
    /// Seconds since the start of the run, kelvin; without readings that say "not reported".
    pub samples: Vec<(f64, u16)>,
    /// The drive's warning threshold.
    pub warning: Option<u16>,
    /// The drive's critical threshold.
    pub critical: Option<u16>,
}

/// One run of reads.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Run {
    /// Bytes of each read.
    pub block_bytes: u64,
    /// Reads in flight on each queue.
    pub depth: u32,
    /// Queues.
    pub jobs: u32,
    /// Seconds that it took.
    pub seconds: f64,
    /// Reads that ended well.
    pub ios: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes per second over the run.
    pub bytes_per_second: f64,
    /// Reads per second over the run.
    pub iops: f64,
    /// From submission to the moment the completion was seen, in nanoseconds.
    pub latency_ns: Latency,
    /// Reads that ended well in each whole second of the run.
    pub ios_per_second: Vec<u64>,
    /// What went wrong.
    pub errors: IoErrors,
    /// Whether what was read had ever been written.
    pub written: Written,
}

/// Latencies in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Latency {
    /// The fastest.
    pub min: u64,
    /// The mean.
    pub mean: u64,
    /// Half were faster.
    pub p50: u64,
    /// 90 % were faster.
    pub p90: u64,
    /// 99 % were faster.
    pub p99: u64,
    /// 99.9 % were faster.
    #[serde(rename = "p99.9")]
    pub p999: u64,
    /// 99.99 % were faster.
    #[serde(rename = "p99.99")]
    pub p9999: u64,
    /// 99.999 % were faster.
    #[serde(rename = "p99.999")]
    pub p99999: u64,
    /// The slowest.
    pub max: u64,
    /// The worst error of a single value that comes from sharing a time stamp.
    pub clock_error: u64,
}

/// What went wrong in a run of reads.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct IoErrors {
    /// Commands that ended well only after a retry.
    pub recovered: u64,
    /// Commands that did not end well.
    pub failed: u64,
    /// Data that was not what it should be.
    pub miscompares: u64,
    /// The first of them, in words.
    pub first: Option<String>,
}

/// Whether the blocks that were read had ever been written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "state", content = "why")]
pub enum Written {
    /// Nothing tells.
    #[default]
    Unknown,
    /// They had been.
    Yes,
    /// They had not been, or were deallocated since: reading them says nothing about the flash.
    Never(String),
}

/// What the user expects and accepts.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Wishes {
    /// Sequential read speed that the drive should reach, in bytes per second.
    pub read_bytes_per_second: Option<f64>,
    /// Sequential write speed that the drive should reach, in bytes per second.
    pub write_bytes_per_second: Option<f64>,
    /// Random reads per second that the drive should reach.
    pub read_iops: Option<f64>,
    /// The slot may be slower than the drive.
    pub accept_slot: bool,
}

impl IoErrors {
    /// Adds those of another run, which came later.
    pub fn add(&mut self, later: &Self) {
        self.recovered += later.recovered;
        self.failed += later.failed;
        self.miscompares += later.miscompares;
        self.first = self.first.take().or_else(|| later.first.clone());
    }
}

impl Evidence {
    /// SMART at its newest.
    pub fn smart(&self) -> Option<&Smart> {
        self.smart_after.as_ref().or(self.smart_before.as_ref())
    }

    /// Every run that took place.
    pub fn runs(&self) -> impl Iterator<Item = &Run> {
        [&self.sequential_read, &self.random_read, &self.latency].into_iter().flatten()
    }

    /// Makes every run one of blocks that were never written, for tests.
    #[cfg(test)]
    pub fn never_written(mut self) -> Self {
        for run in [&mut self.sequential_read, &mut self.random_read, &mut self.latency].into_iter().flatten() {
            run.written = Written::Never("no block is allocated".into());
        }
        self
    }

    /// What went wrong in all reads.
    pub fn io_errors(&self) -> IoErrors {
        let mut sum = self.samples.clone();
        for run in self.runs() {
            sum.add(&run.errors);
        }
        sum
    }

    /// Bytes that were moved in all runs together.
    pub fn moved_bytes(&self) -> u64 {
        self.runs().map(|run| run.bytes).sum()
    }
}

#[cfg(test)]
pub use healthy::{end, gen3x4, path};

#[cfg(test)]
mod healthy {
    use super::*;
    use nvmetal_driver::pci::PciAddress;
    use nvmetal_driver::pci::link::{Hop, LinkSpeed, LinkState, LinkWidth, PortEnd};

    /// One end of a link.
    pub fn end(address: &str, able: (LinkSpeed, u8), now: (LinkSpeed, u8)) -> PortEnd {
        PortEnd {
            speed_able: Some(able.0),
            width_able: LinkWidth::new(able.1),
            speed_now: Some(now.0),
            width_now: LinkWidth::new(now.1),
            state: LinkState::Up,
            payload_bytes: Some(256),
            ..PortEnd::unknown(address.parse().expect("an address"))
        }
    }

    /// A path of one link.
    pub fn path(drive: PortEnd, port: Option<PortEnd>) -> LinkPath {
        LinkPath { drive: drive.address, hops: vec![Hop::new(drive, port)], behind_vmd: None }
    }

    /// A drive and a slot of the same kind, trained to that.
    pub fn gen3x4() -> LinkPath {
        let gen3 = (LinkSpeed::GEN3, 4);
        path(end("03:00.0", gen3, gen3), Some(end("00:1c.4", gen3, gen3)))
    }

    impl Evidence {
        /// Everything as it should be: a Gen3 x4 drive in a Gen3 x4 slot, cool and fast.
        pub fn healthy() -> Self {
            let smart = Smart {
                composite_temperature: 310.into(),
                available_spare: 100,
                available_spare_threshold: 10,
                percentage_used: 2,
                ..Smart::default()
            };
            let run = |block_bytes: u64, depth, bytes_per_second: f64, p50| Run {
                block_bytes,
                depth,
                jobs: 1,
                seconds: 10.0,
                ios: (bytes_per_second * 10.0) as u64 / block_bytes,
                bytes: (bytes_per_second * 10.0) as u64,
                bytes_per_second,
                iops: bytes_per_second / block_bytes as f64,
                latency_ns: Latency { p50, max: 10 * p50, ..Latency::default() },
                ios_per_second: vec![(bytes_per_second / block_bytes as f64) as u64; 10],
                errors: IoErrors::default(),
                written: Written::Yes,
            };
            Self {
                identity: Some(Identity {
                    model: "Some Drive 1TB".into(),
                    serial: "S123".into(),
                    firmware: "1.0".into(),
                    capacity_bytes: 1_000_204_886_016,
                    lba_bytes: 512,
                    serial_after: Some("S123".into()),
                }),
                link: Link {
                    path: Some(gen3x4()),
                    under_load: vec![gen3x4(); 3],
                    errors: Some(ErrorChange {
                        correctable: Some(0),
                        uncorrectable: Some(0),
                        ..ErrorChange::default()
                    }),
                },
                smart_before: Some(smart),
                smart_after: Some(smart),
                error_log: Some(Vec::new()),
                temperature: Temperature {
                    samples: vec![(0.0, 310), (10.0, 312), (20.0, 312), (30.0, 312)],
                    warning: Some(345),
                    critical: Some(358),
                },
                sequential_read: Some(run(131_072, 32, 3.5e9, 1_190_000)),
                random_read: Some(run(4096, 32, 2.4e9, 54_000)),
                latency: Some(run(4096, 1, 4.9e7, 81_000)),
                samples: IoErrors::default(),
                lost: None,
                wishes: Wishes::default(),
            }
        }
    }

    #[test]
    fn an_address_of_a_test_is_one() {
        assert_eq!(gen3x4().drive, PciAddress::new(0, 3, 0, 0).expect("an address"));
    }
}
