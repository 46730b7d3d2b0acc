//! The drive's error log, as far as a verdict needs it.
#![forbid(unsafe_code)]

use nvmetal_core::log::{ErrorEntry, LogId};
use nvmetal_driver::{Admin, DriverError};
use zerocopy::FromBytes;

use crate::check::evidence::LoggedError;

/// The log of the controller, not of a namespace.
const ALL_NAMESPACES: u32 = 0xffff_ffff;
/// Bytes of an entry.
const ENTRY_BYTES: usize = size_of::<ErrorEntry>();
/// Entries that are read at most, whatever the drive says it keeps.
const MOST_ENTRIES: usize = 256;

/// Reads the entries. They, and the event that told of them, stay on the drive.
pub fn read(controller: &dyn Admin) -> Result<Vec<LoggedError>, DriverError> {
    let kept = usize::from(controller.identify().elpe.count());
    let mut page = vec![0; kept.min(MOST_ENTRIES) * ENTRY_BYTES];
    controller.log_page(LogId::ERROR, ALL_NAMESPACES, 0, &mut page)?;
    Ok(page.chunks_exact(ENTRY_BYTES).filter_map(entry).collect())
}

/// Marks the entries that came after the `before` ones.
pub fn mark_new(before: &[LoggedError], after: &mut [LoggedError]) {
    let newest = before.iter().map(|entry| entry.count).max().unwrap_or(0);
    for entry in after {
        entry.is_new = entry.count > newest;
    }
}

/// One entry; `None` for one that was never used.
fn entry(bytes: &[u8]) -> Option<LoggedError> {
    let entry = ErrorEntry::read_from_bytes(bytes).ok()?;
    // An LBA of all ones says that none belongs to the error.
    let lba = Some(entry.lba.get()).filter(|&lba| lba != u64::MAX);
    entry.is_used().then(|| LoggedError { count: entry.error_count.get(), status: entry.status(), lba, is_new: false })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nvmetal_core::status::Status;

    #[test]
    fn a18_the_status_is_read_without_its_phase_tag() {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[..8].copy_from_slice(&9_290_042u64.to_le_bytes());
        bytes[12..14].copy_from_slice(&0xc502u16.to_le_bytes());
        bytes[16..24].copy_from_slice(&423_660_112u64.to_le_bytes());
        let entry = entry(&bytes).expect("a used entry");
        assert_eq!((entry.status.sct(), entry.status.sc()), (2, 0x81));
        assert!(entry.status.more() && entry.status.dnr());
        assert_eq!(entry.lba, Some(423_660_112));
    }

    #[test]
    fn a20_an_entry_with_the_number_zero_was_never_used() {
        assert_eq!(entry(&[0; ENTRY_BYTES]), None);
        assert_eq!(entry(&[0xff; 10]), None);
    }

    #[test]
    fn what_was_there_before_is_not_new() {
        let logged = |count| LoggedError { count, status: Status::new(2, 0x81), lba: None, is_new: false };
        let mut after = [logged(7), logged(6)];
        mark_new(&[logged(6), logged(5)], &mut after);
        assert_eq!(after.map(|entry| entry.is_new), [true, false]);
    }
}
