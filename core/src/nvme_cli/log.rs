//! `error-log`, `fw-log` and `self-test-log`.
#![forbid(unsafe_code)]

use super::Radix::{Bytes, Decimal, Hex, High, Low, Named, Phase, Revision, Status};
use super::{Escaped, Form, Row, row, shown};
use crate::describe::Describe;
use crate::log::{ErrorEntry, FirmwareSlots, SelfTest, SelfTestOutcome, SelfTestResult};
use ::core::fmt::Display;
use zerocopy::FromBytes;

#[rustfmt::skip]
pub(super) const ERROR: Form = Form {
    descriptor: ErrorEntry::DESCRIPTOR_REF,
    rows: &[
        row("error_count", "error_count\t", "error_count", Decimal),
        row("sqid", "sqid\t\t", "sqid", Decimal),
        row("cmdid", "cmdid\t\t", "cmdid", Hex),
        row("status_field", "status_field\t", "status_field", Status),
        row("status_field", "phase_tag\t", "phase_tag", Phase),
        row("parm_error_location", "parm_err_loc\t", "parm_error_location", Hex),
        row("lba", "lba\t\t", "lba", Hex),
        row("nsid", "nsid\t\t", "nsid", Hex),
        row("vs", "vs\t\t", "vs", Decimal),
        row("trtype", "trtype\t\t", "trtype", Named),
        row("csi", "csi\t\t", "csi", Decimal),
        row("opcode", "opcode\t\t", "opcode", Hex),
        row("cs", "cs\t\t", "cs", Hex),
        row("trtype_spec_info", "trtype_spec_info", "trtype_spec_info", Hex),
        row("log_page_version", "log_page_version", "log_page_version", Decimal),
    ],
    left_out: &[],
};

const ENTRY_BYTES: usize = size_of::<ErrorEntry>();

/// `error-log` of as many whole entries as the page has.
pub fn error_log<'a>(page: &'a [u8], device: &'a str) -> impl Display + 'a {
    shown(move |f| {
        writeln!(f, "Error Log Entries for device:{device} entries:{}", page.len() / ENTRY_BYTES)?;
        writeln!(f, ".................")?;
        for (number, entry) in page.chunks_exact(ENTRY_BYTES).enumerate() {
            writeln!(f, " Entry[{number:2}]\n.................")?;
            ERROR.lines(f, entry, 0, |_| false)?;
            writeln!(f, ".................")?;
        }
        Ok(())
    })
}

/// `error-log -o json` of as many whole entries as the page has.
pub fn error_log_json(page: &[u8]) -> impl Display + '_ {
    shown(move |f| {
        f.write_str("{\"errors\":[")?;
        for (number, entry) in page.chunks_exact(ENTRY_BYTES).enumerate() {
            f.write_str(if number == 0 { "{" } else { ",{" })?;
            ERROR.members(f, entry, |_| false)?;
            f.write_str("}")?;
        }
        f.write_str("]}")
    })
}

#[rustfmt::skip]
pub(super) const FIRMWARE: Form = Form {
    descriptor: FirmwareSlots::DESCRIPTOR_REF,
    rows: &[
        row("afi", "afi  ", "Active Firmware Slot (afi)", Hex),
        row("frs1", "frs1 ", "Firmware Rev Slot 1", Revision),
        row("frs2", "frs2 ", "Firmware Rev Slot 2", Revision),
        row("frs3", "frs3 ", "Firmware Rev Slot 3", Revision),
        row("frs4", "frs4 ", "Firmware Rev Slot 4", Revision),
        row("frs5", "frs5 ", "Firmware Rev Slot 5", Revision),
        row("frs6", "frs6 ", "Firmware Rev Slot 6", Revision),
        row("frs7", "frs7 ", "Firmware Rev Slot 7", Revision),
    ],
    left_out: &[],
};

/// Slots without firmware are not listed.
fn is_empty_slot(page: &[u8], row: &Row) -> bool {
    let is_slot = row.radix == Revision;
    is_slot && FIRMWARE.view(page).get(row.field).is_some_and(|revision| revision.bytes().first() == Some(&0))
}

/// `fw-log` of a firmware slot log page.
pub fn firmware_log<'a>(page: &'a [u8], device: &'a str) -> impl Display + 'a {
    shown(move |f| {
        writeln!(f, "Firmware Log for device:{device}")?;
        FIRMWARE.lines(f, page, 0, |row| is_empty_slot(page, row))
    })
}

/// `fw-log -o json` of a firmware slot log page.
pub fn firmware_log_json<'a>(page: &'a [u8], device: &'a str) -> impl Display + 'a {
    shown(move |f| {
        write!(f, "{{\"{}\":{{", Escaped(device))?;
        FIRMWARE.members(f, page, |row| is_empty_slot(page, row))?;
        f.write_str("}}")
    })
}

#[rustfmt::skip]
pub(super) const SELF_TEST: Form = Form {
    descriptor: SelfTest::DESCRIPTOR_REF,
    rows: &[
        row("current", "Current operation  ", "Current Device Self-Test Operation", Hex),
        row("completion", "Current Completion ", "Current Device Self-Test Completion", super::Radix::Percent),
    ],
    // The results have rows of their own.
    left_out: &["result"],
};

#[rustfmt::skip]
pub(super) const SELF_TEST_RESULT: Form = Form {
    descriptor: SelfTestResult::DESCRIPTOR_REF,
    rows: &[
        row("status", "  Operation Result             ", "Self test result", Low),
        row("status", "  Self Test Code               ", "Self test code", High),
        row("segment", "  Segment Number               ", "Segment number", Hex),
        row("valid", "  Valid Diagnostic Information ", "Valid Diagnostic Information", Hex),
        row("poh", "  Power on hours (POH)         ", "Power on hours", Hex),
        row("nsid", "  Namespace Identifier         ", "Namespace Identifier", Hex),
        row("flba", "  Failing LBA                  ", "Failing LBA", Hex),
        row("sct", "  Status Code Type             ", "Status Code Type", Hex),
        row("sc", "  Status Code                  ", "Status Code", Hex),
        row("vendor", "  Vendor Specific              ", "Vendor Specific", Bytes),
    ],
    left_out: &[],
};

/// The results that the page has, whole.
fn results(page: &[u8]) -> impl Iterator<Item = (&[u8], SelfTestResult)> {
    let view = SELF_TEST.view(page);
    (0..20).map_while(move |index| {
        let bytes = view.element(view.descriptor.field("result")?, index)?;
        Some((bytes, SelfTestResult::read_from_bytes(bytes).ok()?))
    })
}

/// What a result does not hold: of an unused one everything but that, and of others what is not valid.
fn is_not_valid(result: &SelfTestResult, row: &Row) -> bool {
    match row.field {
        "status" if row.radix == Low => false,
        _ if !result.is_used() => true,
        "nsid" => !result.valid.nsid(),
        "flba" => !result.valid.flba(),
        "sct" => !result.valid.sct(),
        "sc" => !result.valid.sc(),
        _ => false,
    }
}

/// `self-test-log` of a device self-test log page.
pub fn self_test_log<'a>(page: &'a [u8], device: &'a str) -> impl Display + 'a {
    shown(move |f| {
        writeln!(f, "Device Self Test Log for NVME device:{device}")?;
        SELF_TEST.lines(f, page, 0, |_| false)?;
        for (number, (bytes, result)) in results(page).enumerate() {
            writeln!(f, "Self Test Result[{number}]:")?;
            let names_segment = result.status.outcome() == SelfTestOutcome::FAILED_SEGMENT;
            SELF_TEST_RESULT
                .lines(f, bytes, 0, |row| is_not_valid(&result, row) || row.field == "segment" && !names_segment)?;
        }
        Ok(())
    })
}

/// `self-test-log -o json` of a device self-test log page.
pub fn self_test_log_json(page: &[u8]) -> impl Display + '_ {
    shown(move |f| {
        f.write_str("{")?;
        SELF_TEST.members(f, page, |_| false)?;
        write!(f, "{}\"List of Valid Reports\":[", if page.is_empty() { "" } else { "," })?;
        for (number, (bytes, result)) in results(page).enumerate() {
            f.write_str(if number == 0 { "{" } else { ",{" })?;
            SELF_TEST_RESULT.members(f, bytes, |row| is_not_valid(&result, row))?;
            f.write_str("}")?;
        }
        f.write_str("]}")
    })
}
