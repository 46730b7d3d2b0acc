//! Device Self-test: what runs, and the last twenty results.
#![forbid(unsafe_code)]

use crate::describe::View;
use crate::status::Status;
use crate::{bits, codes, structure};
use ::core::fmt;
use zerocopy::FromBytes;
use zerocopy::little_endian::{U32, U64};

codes! {
    /// The kind of a self-test.
    pub struct SelfTestKind(u8, 4) {
        /// None.
        0x0 NONE "none";
        /// Short.
        0x1 SHORT "short";
        /// Extended.
        0x2 EXTENDED "extended";
        /// Host-initiated refresh.
        0x3 HOST_REFRESH "host-initiated refresh";
        /// The vendor's own.
        0xe VENDOR "vendor specific";
    }
}

codes! {
    /// How a self-test ended.
    pub struct SelfTestOutcome(u8, 4) {
        /// Passed.
        0x0 PASSED "passed";
        /// Aborted by a Device Self-test command.
        0x1 ABORTED_BY_COMMAND "aborted by a Device Self-test command";
        /// Aborted by a reset.
        0x2 ABORTED_BY_RESET "aborted by a controller level reset";
        /// Aborted because a namespace was removed.
        0x3 ABORTED_BY_REMOVAL "aborted by the removal of a namespace";
        /// Aborted by a format.
        0x4 ABORTED_BY_FORMAT "aborted by Format NVM";
        /// Failed and did not complete.
        0x5 FATAL "fatal or unknown error, did not complete";
        /// Failed in a segment that is not known.
        0x6 FAILED "failed, the segment is not known";
        /// Failed in a segment that is told.
        0x7 FAILED_SEGMENT "failed in a segment";
        /// Aborted for a reason that is not known.
        0x8 ABORTED "aborted for an unknown reason";
        /// Aborted by a sanitize.
        0x9 ABORTED_BY_SANITIZE "aborted by a sanitize operation";
        /// The entry holds no result.
        0xf UNUSED "unused";
    }
}

bits! {
    /// Which test runs.
    pub struct CurrentSelfTest(u8 as u8) {
        /// The kind; none where nothing runs.
        0:4 kind: SelfTestKind = choice(SelfTestKind::MEANINGS), "self-test in progress";
        /// Reserved.
        4:4 __: u8 = RESERVED, "reserved";
    }
}

bits! {
    /// How far the test is.
    pub struct SelfTestProgress(u8 as u8) {
        /// Per cent; of no meaning where nothing runs.
        0:7 percent: u8 = PERCENT, "complete";
        /// Reserved.
        7:1 __: bool = RESERVED, "reserved";
    }
}

bits! {
    /// How a test ended, and which it was.
    pub struct SelfTestStatus(u8 as u8) {
        /// How it ended.
        0:4 outcome: SelfTestOutcome = choice(SelfTestOutcome::MEANINGS), "result";
        /// The kind.
        4:4 kind: SelfTestKind = choice(SelfTestKind::MEANINGS), "self-test";
    }
}

bits! {
    /// Which fields of a result are valid.
    pub struct ValidDiagnostics(u8 as u8) {
        /// The namespace.
        0:1 nsid: bool = FLAG, "namespace valid";
        /// The failing block.
        1:1 flba: bool = FLAG, "failing LBA valid";
        /// The status code type.
        2:1 sct: bool = FLAG, "status code type valid";
        /// The status code.
        3:1 sc: bool = FLAG, "status code valid";
        /// Reserved.
        4:4 __: u8 = RESERVED, "reserved";
    }
}

structure! {
    /// Self-test Result. NVM Express Base Specification, "Self-test Result Data Structure".
    pub struct SelfTestResult: 28, "self-test-result", summary summary {
        /// How the test ended, and which it was.
        0 status: SelfTestStatus = bits(SelfTestStatus::PARTS), "Device Self-test Status";
        /// The first segment that failed, where the result says so.
        1 segment: u8 = COUNT, "Segment Number";
        /// Which of the fields that follow are valid.
        2 valid: ValidDiagnostics = bits(ValidDiagnostics::PARTS), "Valid Diagnostic Information";
        /// Reserved.
        3 reserved_3: u8 = RESERVED, "Reserved";
        /// Power-on hours at the end of the test.
        4 poh: U64 = amount(1, "h"), "Power On Hours";
        /// The namespace that failed, where valid.
        12 nsid: U32 = HEX, "Namespace Identifier";
        /// The logical block that failed, where valid.
        16 flba: U64 = HEX, "Failing LBA";
        /// Status code type of the failure, where valid.
        24 sct: u8 = HEX, "Status Code Type";
        /// Status code of the failure, where valid.
        25 sc: u8 = HEX, "Status Code";
        /// The vendor's own.
        26 vendor: [u8; 2] = BYTES, "Vendor Specific";
    }
}

structure! {
    /// Device Self-test, log page 06h. NVM Express Base Specification, "Device Self-test".
    pub struct SelfTest: 564, "self-test" {
        /// Which test runs.
        0 current: CurrentSelfTest = bits(CurrentSelfTest::PARTS), "Current Device Self-test Operation";
        /// How far it is.
        1 completion: SelfTestProgress = bits(SelfTestProgress::PARTS), "Current Device Self-test Completion";
        /// Reserved.
        2 reserved_2: [u8; 2] = RESERVED, "Reserved";
        /// The results, newest first.
        4 result: [SelfTestResult; 20] = nested(&SelfTestResult::DESCRIPTOR), "Result";
    }
}

impl SelfTest {
    /// The results, newest first, without the unused entries.
    pub fn results(&self) -> impl Iterator<Item = &SelfTestResult> {
        self.result.iter().filter(|result| result.is_used())
    }
}

impl SelfTestResult {
    /// Whether the entry holds a result.
    pub fn is_used(&self) -> bool {
        self.status.outcome() != SelfTestOutcome::UNUSED
    }

    /// The namespace that failed, where valid.
    pub fn failing_nsid(&self) -> Option<u32> {
        self.valid.nsid().then(|| self.nsid.get())
    }

    /// The logical block that failed, where valid.
    pub fn failing_lba(&self) -> Option<u64> {
        self.valid.flba().then(|| self.flba.get())
    }

    /// The status of the failure, where type and code are valid.
    pub fn failing_status(&self) -> Option<Status> {
        (self.valid.sct() && self.valid.sc()).then(|| Status::new(self.sct, self.sc))
    }
}

/// `extended: failed in a segment 7, at 1772 h, namespace 1, LBA 0`.
fn summary(view: View<'_>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Ok((result, _)) = SelfTestResult::read_from_prefix(view.bytes) else { return f.write_str("not available") };
    if !result.is_used() {
        return f.write_str("unused");
    }
    let (kind, outcome) = (result.status.kind(), result.status.outcome());
    match kind.name() {
        Some(name) => write!(f, "{name}: ")?,
        None => write!(f, "kind {:X}h: ", kind.into_bits())?,
    }
    match outcome.name() {
        Some(name) => f.write_str(name)?,
        None => write!(f, "result {:X}h", outcome.into_bits())?,
    }
    if outcome == SelfTestOutcome::FAILED_SEGMENT {
        write!(f, " {}", result.segment)?;
    }
    write!(f, ", at {} h", result.poh)?;
    if let Some(nsid) = result.failing_nsid() {
        write!(f, ", namespace {nsid}")?;
    }
    if let Some(lba) = result.failing_lba() {
        write!(f, ", LBA {lba}")?;
    }
    match result.failing_status() {
        Some(status) => write!(f, ", {status}"),
        None => Ok(()),
    }
}
