//! Device Self-test: what runs, how far it is, and how the last ones ended.
//!
//! A test needs nothing but time, so no event is planned for its end: whoever looks sees what has become of it by then.
//!
//! NVM Express Base Specification, "Device Self-test command", "Device Self-test Operations".
#![forbid(unsafe_code)]

use std::collections::VecDeque;

use nvmetal_core::command::admin::{DeviceSelfTest, SelfTestCode};
use nvmetal_core::command::{Command, SubmissionEntry};
use nvmetal_core::log::{
    CurrentSelfTest, SelfTest, SelfTestKind, SelfTestOutcome, SelfTestProgress, SelfTestResult, SelfTestStatus,
    ValidDiagnostics,
};
use nvmetal_core::status::Status;
use zerocopy::little_endian::{U32, U64};

use crate::controller::status as code;
use crate::emulator::Emulator;
use crate::health::HOUR_NS;

/// Minutes of an extended test.
pub(super) const EXTENDED_MINUTES: u16 = 10;
/// Nanoseconds of a minute.
const MINUTE_NS: u64 = 60_000_000_000;
/// Results that are kept.
const RESULTS: usize = 20;

#[derive(Debug, Clone, Copy)]
struct Running {
    kind: SelfTestKind,
    nsid: u32,
    from_ns: u64,
    to_ns: u64,
    /// A block that cannot be read, found before: the test will fail at its end.
    broken: Option<(u32, u64)>,
}

/// The test that runs, and the results of those that ended.
#[derive(Debug, Default)]
pub(crate) struct SelfTests {
    running: Option<Running>,
    /// The newest first.
    results: VecDeque<SelfTestResult>,
}

impl SelfTests {
    /// Notes the end of a test whose time has come.
    fn settle(&mut self, now_ns: u64) {
        if let Some(test) = self.running.filter(|test| test.to_ns <= now_ns) {
            let outcome = if test.broken.is_some() { SelfTestOutcome::FAILED_SEGMENT } else { SelfTestOutcome::PASSED };
            self.end(test, outcome, test.to_ns);
        }
    }

    /// Ends the test that runs, if one does.
    fn abort(&mut self, outcome: SelfTestOutcome, now_ns: u64) {
        self.settle(now_ns);
        if let Some(test) = self.running {
            self.end(Running { broken: None, ..test }, outcome, now_ns);
        }
    }

    fn end(&mut self, test: Running, outcome: SelfTestOutcome, now_ns: u64) {
        self.running = None;
        self.results.truncate(RESULTS - 1);
        let nsid = test.broken.map_or(test.nsid, |(nsid, _)| nsid);
        self.results.push_front(SelfTestResult {
            status: SelfTestStatus::default().with_outcome(outcome).with_kind(test.kind),
            segment: if test.broken.is_some() { MEDIA_SEGMENT } else { 0 },
            valid: ValidDiagnostics::default().with_nsid(nsid != 0).with_flba(test.broken.is_some()),
            poh: U64::new(now_ns / HOUR_NS),
            nsid: U32::new(nsid),
            flba: U64::new(test.broken.map_or(0, |(_, block)| block)),
            ..SelfTestResult::default()
        });
    }

    /// A controller level reset ends a short test; an extended one goes on.
    pub(crate) fn controller_reset(&mut self, now_ns: u64) {
        self.settle(now_ns);
        if self.running.is_some_and(|test| test.kind != SelfTestKind::EXTENDED) {
            self.abort(SelfTestOutcome::ABORTED_BY_RESET, now_ns);
        }
    }

    pub(super) fn aborted_by_format(&mut self, now_ns: u64) {
        self.abort(SelfTestOutcome::ABORTED_BY_FORMAT, now_ns);
    }

    pub(super) fn aborted_by_sanitize(&mut self, now_ns: u64) {
        self.abort(SelfTestOutcome::ABORTED_BY_SANITIZE, now_ns);
    }

    /// The log page.
    pub(super) fn page(&mut self, now_ns: u64) -> SelfTest {
        self.settle(now_ns);
        let mut page = SelfTest::default();
        for place in &mut page.result {
            place.status = SelfTestStatus::default().with_outcome(SelfTestOutcome::UNUSED);
        }
        for (place, result) in page.result.iter_mut().zip(&self.results) {
            *place = *result;
        }
        if let Some(test) = self.running {
            let done = u128::from(now_ns - test.from_ns) * 100 / u128::from(test.to_ns - test.from_ns);
            page.current = CurrentSelfTest::default().with_kind(test.kind);
            page.completion = SelfTestProgress::default().with_percent(done.min(99) as u8);
        }
        page
    }
}

/// The segment of a test that reads the media.
const MEDIA_SEGMENT: u8 = 6;

impl Emulator {
    pub(super) fn device_self_test(&mut self, entry: &SubmissionEntry) -> Result<u64, Status> {
        let DeviceSelfTest { nsid, stc, .. } = DeviceSelfTest::from_entry(entry);
        if nsid != 0 && nsid != u32::MAX && self.namespace(nsid).is_none() {
            return Err(code::INVALID_NAMESPACE);
        }
        let now_ns = self.now_ns;
        self.self_tests.settle(now_ns);
        let (kind, minutes) = match stc {
            SelfTestCode::SHORT => (SelfTestKind::SHORT, 1),
            SelfTestCode::EXTENDED => (SelfTestKind::EXTENDED, u64::from(EXTENDED_MINUTES)),
            SelfTestCode::ABORT => {
                self.self_tests.abort(SelfTestOutcome::ABORTED_BY_COMMAND, now_ns);
                return Ok(0);
            }
            _ => return Err(code::INVALID_FIELD),
        };
        if self.self_tests.running.is_some() {
            return Err(code::SELF_TEST_IN_PROGRESS);
        }
        let mut tested = self.namespaces.iter().filter(|namespace| nsid == u32::MAX || nsid == namespace.nsid);
        let broken = tested.find_map(|namespace| Some((namespace.nsid, *namespace.unreadable.iter().min()?)));
        let to_ns = now_ns + minutes * MINUTE_NS;
        self.self_tests.running = Some(Running { kind, nsid, from_ns: now_ns, to_ns, broken });
        Ok(0)
    }
}
