//! What the drive's error log holds.
//!
//! The log counts every command that was refused, and hosts probe: tens of thousands of entries are ordinary. So the
//! number says nothing; the kinds do. Errors of the media, and internal errors, are worth a word when they are old and
//! a fault when the run has added one.
#![forbid(unsafe_code)]

use super::evidence::LoggedError;
use super::{Basis, Check, Evidence, Judgement};
use crate::units::grouped;

pub const CHECK: Check = Check {
    id: "smart.error_log",
    limit: "no media or internal error among the retained entries",
    basis: Basis::Spec,
    mandatory: false,
    judge,
};

/// Generic status 06h, Internal Error.
const INTERNAL_ERROR: u16 = 0x006;
/// The status code type of media and data integrity errors.
const MEDIA: u8 = 2;

fn judge(evidence: &Evidence) -> Judgement {
    let Some(entries) = &evidence.error_log else {
        return Judgement::skip("the error log could not be read");
    };
    let total = evidence.smart().map(|smart| smart.error_log_entries.get());
    let retained: Vec<_> = entries.iter().filter(|entry| entry.count != 0).collect();
    let told = match (total, retained.len()) {
        (Some(total), 0) if total > 0 => format!("{} in total, none retained", grouped(total)),
        (Some(total), retained) => format!("{} in total, {retained} retained", grouped(total)),
        (None, retained) => format!("{retained} retained"),
    };
    let bad = |entry: &&&LoggedError| entry.status.sct() == MEDIA || entry.status.type_and_code() == INTERNAL_ERROR;
    if let Some(entry) = retained.iter().filter(bad).find(|entry| entry.is_new) {
        return Judgement::fail(format!("new in this run: {} ({told})", describe(entry)))
            .advice("The drive failed a command while it was tested. Back up and replace it.");
    }
    if let Some(entry) = retained.iter().find(bad) {
        return Judgement::warn(format!("older than this run: {} ({told})", describe(entry)))
            .advice("It happened before, nobody knows when. Test again in a while; a new one is a fault.");
    }
    Judgement::pass(told)
}

fn describe(entry: &LoggedError) -> String {
    match entry.lba {
        Some(lba) => format!("{} at LBA {lba}", entry.status),
        None => entry.status.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Status as Ended;
    use nvmetal_core::status::Status;

    fn entry(sct: u8, sc: u8, is_new: bool) -> LoggedError {
        LoggedError { count: 9, status: Status::new(sct, sc), lba: Some(77), is_new }
    }

    fn judgement(entries: Vec<LoggedError>, total: u128) -> Judgement {
        let mut evidence = Evidence::healthy();
        evidence.smart_after.as_mut().expect("a page").error_log_entries = total.into();
        evidence.error_log = Some(entries);
        judge(&evidence)
    }

    #[test]
    fn seventy_thousand_refused_commands_say_nothing() {
        let refused = entry(0, 0x02, false);
        let judgement = judgement(vec![refused; 64], 73252);
        assert_eq!(judgement.status, Ended::Pass);
        assert_eq!(judgement.evidence, "73 252 in total, 64 retained");
    }

    #[test]
    fn a20_empty_entries_are_unused_not_errors() {
        let unused = LoggedError { count: 0, ..entry(2, 0x81, true) };
        let judgement = judgement(vec![unused; 256], 1);
        assert_eq!(judgement.status, Ended::Pass);
        assert_eq!(judgement.evidence, "1 in total, none retained");
    }

    #[test]
    fn a18_an_old_media_error_warns_and_is_named() {
        let judgement = judgement(vec![entry(2, 0x81, false)], 9);
        assert_eq!(judgement.status, Ended::Warn);
        assert!(judgement.evidence.contains("Unrecovered Read Error"), "{}", judgement.evidence);
        assert!(judgement.evidence.contains("LBA 77"), "{}", judgement.evidence);
    }

    #[test]
    fn a_new_media_or_internal_error_fails_and_a_refused_command_does_not() {
        assert_eq!(judgement(vec![entry(2, 0x81, true)], 9).status, Ended::Fail);
        assert_eq!(judgement(vec![entry(0, 0x06, true)], 9).status, Ended::Fail);
        assert_eq!(judgement(vec![entry(1, 0x09, true)], 9).status, Ended::Pass);
    }
}
