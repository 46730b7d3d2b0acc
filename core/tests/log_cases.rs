//! Log pages of real drives, and values that other tools got wrong.
#![forbid(unsafe_code)]

mod common;

use common::page;
use nvmetal_core::describe::{Ascii, Describe};
use nvmetal_core::log::{
    ErrorEntry, FirmwareSlots, Sanitize, SanitizeOutcome, SelfTest, SelfTestKind, SelfTestOutcome, SelfTestResult,
};
use nvmetal_core::status::Status;
use zerocopy::FromBytes;

#[test]
fn a18_the_status_of_an_error_entry_is_taken_apart_at_the_right_bits() {
    let page = page("errlog_rebuilt_c502.hex");
    let entry = ErrorEntry::read_from_bytes(&page).unwrap();
    let status = entry.status();
    assert!(!entry.phase());
    assert_eq!(status.into_bits(), 0x6281);
    assert_eq!((status.sct(), status.sc(), status.more(), status.dnr(), status.crd()), (2, 0x81, true, true, 0));
    assert_eq!(status.name(), Some("Unrecovered Read Error"));
    assert_eq!((entry.sqid.get(), entry.cmdid.get(), entry.lba.get()), (52, 0x0221, 423_660_112));
    assert_eq!(entry.error_count.get(), 9_290_042);
    let text = entry.view().text().to_string();
    assert!(text.contains(": Unrecovered Read Error (6281h)"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&entry.view().json().to_string()).unwrap();
    assert_eq!(json["status_field"]["raw"], 0xc502);
}

#[test]
fn a20_an_entry_with_error_count_zero_is_unused() {
    assert!(!ErrorEntry::default().is_used());
    assert_eq!(ErrorEntry::default().view().get("error_count").unwrap().to_string(), "unused");
}

#[test]
fn a29_three_passed_self_tests_and_nothing_running() {
    let page = page("selftest_3results.hex");
    let log = SelfTest::read_from_bytes(&page).unwrap();
    assert_eq!(log.current.kind(), SelfTestKind::NONE);
    let results: Vec<_> =
        log.results().map(|result| (result.status.kind(), result.status.outcome(), result.poh.get())).collect();
    let passed = SelfTestOutcome::PASSED;
    assert_eq!(
        results,
        [(SelfTestKind::EXTENDED, passed, 95), (SelfTestKind::EXTENDED, passed, 95), (SelfTestKind::SHORT, passed, 95)]
    );
    assert!(log.results().all(|result| result.failing_lba().is_none() && result.failing_nsid().is_none()));
    let text = log.view().text().to_string();
    assert!(text.contains("Result 0") && text.contains(": extended: passed, at 95 h"), "{text}");
}

#[test]
fn a30_a_failed_segment_with_a_failing_block_at_lba_zero() {
    let mut bytes = [0; 28];
    (bytes[0], bytes[1], bytes[2]) = (0x27, 7, 0x03);
    bytes[4..12].copy_from_slice(&0x06ec_u64.to_le_bytes());
    bytes[12] = 1;
    let result = SelfTestResult::read_from_bytes(&bytes).unwrap();
    assert_eq!(result.status.kind(), SelfTestKind::EXTENDED);
    assert_eq!(result.status.outcome(), SelfTestOutcome::FAILED_SEGMENT);
    assert_eq!((result.segment, result.poh.get()), (7, 1772));
    assert_eq!(result.failing_nsid(), Some(1));
    assert_eq!(result.failing_lba(), Some(0), "the valid bit is set, so that 0 is a block");
    assert_eq!(result.failing_status(), None);
}

#[test]
fn a33_a_refused_vendor_page_is_an_invalid_log_page() {
    let status = Status::from_bits(0x2109);
    assert_eq!((status.sct(), status.sc()), (1, 0x09));
    assert_eq!(status.to_string(), "Invalid Log Page (2109h)");
    assert!(!status.may_retry());
}

#[test]
fn a37_firmware_slots_with_a_nul_in_a_revision() {
    let page = page("fwslot_nul_in_rev.hex");
    let log = FirmwareSlots::read_from_bytes(&page).unwrap();
    assert_eq!((log.afi.active(), log.afi.next()), (1, 1));
    let revisions = log.revisions().map(|revision| Ascii(revision).to_string());
    assert_eq!(revisions, ["MPKD0P15", "", "MPKD0P1", "", "", "", ""]);
    let nothing = FirmwareSlots::default();
    let json: serde_json::Value = serde_json::from_str(&nothing.view().json().to_string()).unwrap();
    assert_eq!(json["afi"]["active"]["meaning"], "not reported", "there is no slot 0");
}

#[test]
fn a38_a_completed_sanitize_is_not_one_in_progress() {
    let block = page("sanitize_block_erase.hex");
    let log = Sanitize::read_from_bytes(&block).unwrap();
    assert_eq!(log.view().get("sprog").unwrap().to_string(), "no operation in progress");
    assert_eq!(log.sstat.outcome(), SanitizeOutcome::SUCCEEDED);
    assert!(log.sstat.global_data_erased());
    assert_eq!(log.scdw10.sanact().name(), Some("start block erase"));
    assert_eq!(log.view().get("eto").unwrap().to_string(), "not reported");

    let crypto = page("sanitize_crypto_ause_ndas.hex");
    let log = Sanitize::read_from_bytes(&crypto).unwrap();
    assert_eq!(log.scdw10.into_bits(), 0x020c);
    assert_eq!(log.scdw10.sanact().name(), Some("start crypto erase"));
    assert!(log.scdw10.ause() && log.scdw10.ndas() && !log.scdw10.oipbp());
}
