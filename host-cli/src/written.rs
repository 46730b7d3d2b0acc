//! Whether a region of a drive had ever been written.
//!
//! A drive answers reads of blocks that hold nothing from its tables, without touching the flash, often at the full speed
//! of the link. Such a figure is no lie, but it says nothing about the flash, so it has to be known. Two things tell: the
//! number of blocks that the namespace says are allocated, and a sample of the blocks themselves, since many drives do
//! not count, and empty blocks read as one repeated byte.
#![forbid(unsafe_code)]

use std::ops::Range;

use nvmetal_driver::kernel::KernelError;
use nvmetal_driver::workload::random::Random;
use nvmetal_driver::{DriverError, Namespace};

use crate::check::evidence::{IoErrors, Written};
use crate::drive::Drive;

/// Reads of a sample.
const SAMPLES: u64 = 64;
/// Bytes of each.
const SAMPLE_BYTES: u64 = 4096;
/// A region counts as never written when at least so many of a hundred samples are empty.
const EMPTY_PERCENT: u64 = 90;
/// Any fixed number: the same blocks each time.
const SEED: u64 = 0x7772_6974_7465_6e3f;

/// What a look at a region found.
#[derive(Debug, Clone, Default)]
pub struct Sample {
    /// Whether it had ever been written.
    pub written: Written,
    /// Reads that ended well.
    pub reads: u64,
    /// What went wrong: a sampled block that cannot be read is as bad as any other.
    pub errors: IoErrors,
}

/// Looks at a region, given in blocks.
pub fn look(drive: &Drive, namespace: Namespace, region: Range<u64>) -> Result<Sample, DriverError> {
    let mut sample = Sample::default();
    if namespace.used_blocks == 0 {
        sample.written = Written::Never("the namespace says that no block is allocated".to_owned());
        return Ok(sample);
    }
    let blocks = (SAMPLE_BYTES >> namespace.lba_shift).max(1);
    let places = region.end.saturating_sub(region.start) / blocks;
    if places == 0 {
        return Ok(sample);
    }
    let mut reader = drive.reader(namespace, SAMPLE_BYTES as usize)?;
    let mut random = Random::new(SEED);
    let mut empty = 0;
    for _ in 0..SAMPLES.min(places) {
        let lba = region.start + random.below(places) * blocks;
        match reader.read_again(lba, blocks as u32) {
            Ok((data, repeated)) => {
                sample.reads += 1;
                sample.errors.recovered += u64::from(repeated);
                empty += u64::from(is_constant(&data));
            }
            Err(error) => {
                let Some(cause) = unreadable(&error) else { return Err(error) };
                sample.errors.failed += 1;
                sample.errors.first.get_or_insert_with(|| format!("read at LBA {lba}: {cause}"));
            }
        }
    }
    // A block that cannot be read was written once.
    sample.written = judge(sample.reads + sample.errors.failed, empty);
    Ok(sample)
}

/// What the drive, or the kernel, says of a block that cannot be read; `None` for an error of another kind.
fn unreadable(error: &DriverError) -> Option<String> {
    match error {
        DriverError::Kernel(KernelError::System { source, .. }) if !error.is_lost() => Some(source.to_string()),
        error => error.status().map(|status| status.to_string()),
    }
}

fn judge(read: u64, empty: u64) -> Written {
    if read > 0 && empty * 100 >= read * EMPTY_PERCENT {
        Written::Never(format!("{empty} of {read} sampled places hold one repeated byte"))
    } else {
        Written::Yes
    }
}

fn is_constant(data: &[u8]) -> bool {
    data.first().is_none_or(|first| data.iter().all(|byte| byte == first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nine_of_ten_empty_places_make_a_region_unwritten() {
        assert!(matches!(judge(64, 64), Written::Never(_)));
        assert!(matches!(judge(64, 58), Written::Never(_)));
        assert_eq!(judge(64, 57), Written::Yes);
        assert_eq!(judge(64, 0), Written::Yes);
    }

    #[test]
    fn a_block_of_one_byte_repeated_is_empty_whatever_the_byte() {
        assert!(is_constant(&[0; 512]));
        assert!(is_constant(&[0xff; 512]));
        assert!(!is_constant(&[0, 0, 0, 1]));
    }
}
