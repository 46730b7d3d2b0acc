//! Asynchronous events: what happened is told when the host asks, once for each type until its log page was read.
//!
//! NVM Express Base Specification, "Asynchronous Event Request command".
#![forbid(unsafe_code)]

use std::collections::VecDeque;

use nvmetal_core::command::SubmissionEntry;
use nvmetal_core::status::Status;

use crate::controller::status as code;
use crate::emulator::Emulator;
use crate::guest_memory::Access;

/// AERL, the most requests that may be outstanding (0's based).
pub(crate) const REQUESTS_MOST: u8 = 3;
/// Events that wait for a request at most; more are dropped.
const WAITING_MOST: usize = 64;

/// An event: type, what of it, and the log page that tells more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AsyncEvent {
    kind: u8,
    info: u8,
    log_page: u8,
}

impl AsyncEvent {
    pub(crate) const INVALID_DOORBELL_REGISTER: Self = Self { kind: 0, info: 0, log_page: 1 };
    pub(crate) const INVALID_DOORBELL_VALUE: Self = Self { kind: 0, info: 1, log_page: 1 };

    pub(crate) const SANITIZE_COMPLETED: Self = Self { kind: 6, info: 1, log_page: 0x81 };

    /// Dword 0 of the request's completion.
    fn dw0(self) -> u32 {
        u32::from(self.kind) | u32::from(self.info) << 8 | u32::from(self.log_page) << 16
    }
}

/// Requests that are outstanding, and events that are not told yet.
#[derive(Debug, Default)]
pub(crate) struct AsyncEvents {
    requests: VecDeque<u16>,
    waiting: VecDeque<AsyncEvent>,
    /// Types that are not told again until their log page was read, one bit each.
    masked: u8,
}

impl AsyncEvents {
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }

    /// Whether a request with this identifier was outstanding; it is not any more.
    pub(crate) fn take_request(&mut self, cid: u16) -> bool {
        let found = self.requests.iter().position(|&request| request == cid);
        found.is_some_and(|at| self.requests.remove(at).is_some())
    }

    /// The log page was read without Retain Asynchronous Event: its events may come again.
    pub(crate) fn log_page_read(&mut self, log_page: u8) {
        let kinds = match log_page {
            1 => 1 << 0,
            2 => 1 << 1,
            0x81 => 1 << 6,
            4 | 0x0c | 0x0e | 0x0f => 1 << 2,
            _ => 0,
        };
        self.masked &= !kinds;
        self.waiting.retain(|event| event.log_page != log_page);
    }

    /// An event and a request for it, if there are both.
    fn pair(&mut self) -> Option<(u16, AsyncEvent)> {
        let at = self.waiting.iter().position(|event| self.masked >> event.kind & 1 == 0)?;
        let cid = self.requests.pop_front()?;
        let event = self.waiting.remove(at)?;
        self.masked |= 1 << event.kind;
        Some((cid, event))
    }
}

impl Emulator {
    pub(super) fn async_event_request(&mut self, entry: &SubmissionEntry) -> Option<Result<u64, Status>> {
        if self.async_events.requests.len() > usize::from(REQUESTS_MOST) {
            self.error_log.note(0, entry, code::EVENT_REQUEST_LIMIT_EXCEEDED, 0);
            return Some(Err(code::EVENT_REQUEST_LIMIT_EXCEEDED));
        }
        // Events are told to requests in their order, so an event that waited found no request until this one.
        self.async_events.requests.push_back(entry.cid());
        self.async_events.pair().map(|(_, event)| Ok(u64::from(event.dw0())))
    }

    /// Something happened that the host may want to know.
    pub(crate) fn async_event(&mut self, event: AsyncEvent) {
        if self.async_events.waiting.len() < WAITING_MOST {
            self.async_events.waiting.push_back(event);
        }
        let memory = std::sync::Arc::clone(&self.memory);
        self.tell_events(&memory.enter());
    }

    /// Answers requests for which there are events.
    pub(crate) fn tell_events(&mut self, access: &Access<'_>) {
        while let Some((cid, event)) = self.async_events.pair() {
            self.post(0, cid, Ok(u64::from(event.dw0())), access);
        }
    }
}
