//! A transport that tells everything that passes: every register access, command, doorbell and completion.
//!
//! It stands between the driver and any other transport, so that a conversation with a real drive and one with the
//! emulator are told in the same words. Doorbells become calls, which is what lets the queue show its entries
//! ([`Doorbell::WATCHES`]); a queue with mapped doorbells is compiled without any of it.
//!
//! The order of the events is the order in which they happened here: an entry is told before its doorbell, a completion
//! when it was found.
#![forbid(unsafe_code)]

use core::fmt;
use core::ops::Range;
use std::sync::Arc;

use nvmetal_core::command::SubmissionEntry;
use nvmetal_core::completion::CompletionEntry;
use nvmetal_core::queue::RawCompletion;
use nvmetal_core::queue::doorbell::Doorbell;

use super::{
    CalledDoorbell, DoorbellKind, DoorbellTarget, HostRange, Interrupt, Signals, Transport, TransportError,
    TransportInfo, Unmapped, Waiting,
};
use crate::clock::Clock;
use crate::dma::DeviceMapping;

/// Something that passed between driver and device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A register was read.
    Read {
        /// Offset in BAR0.
        offset: u64,
        /// 4 or 8.
        bytes: u8,
        /// What it held.
        value: u64,
    },
    /// A register was written.
    Write {
        /// Offset in BAR0.
        offset: u64,
        /// 4 or 8.
        bytes: u8,
        /// What was written.
        value: u64,
    },
    /// A doorbell is about to be rung.
    Doorbell {
        /// Offset in BAR0.
        offset: u64,
        /// The new tail or head.
        value: u32,
    },
    /// A command is in a submission queue.
    Submitted {
        /// Offset of the queue's tail doorbell in BAR0.
        doorbell_offset: u64,
        /// The entry.
        entry: SubmissionEntry,
    },
    /// A completion was found.
    Completed {
        /// Offset of the completion queue's head doorbell in BAR0.
        doorbell_offset: u64,
        /// The entry.
        entry: CompletionEntry,
    },
    /// Memory was made reachable for the device.
    Map {
        /// Where the device sees it.
        iova: u64,
        /// Its length.
        bytes: u64,
    },
    /// Memory was taken back.
    Unmap {
        /// Where the device saw it.
        iova: u64,
        /// Its length.
        bytes: u64,
    },
    /// Interrupt vectors were set up.
    Interrupts {
        /// How many.
        count: u16,
    },
    /// The device may start transfers of its own, or may not any more.
    BusMaster {
        /// Whether it may.
        on: bool,
    },
    /// The function was reset.
    Reset,
}

/// Who is told.
pub trait Observer: Send + Sync + fmt::Debug {
    /// `event` happened at `at_ns` of the transport's clock.
    fn event(&self, at_ns: u64, event: &Event);
}

/// A transport with an observer.
#[derive(Debug)]
pub struct TracedTransport {
    inner: Arc<dyn Transport>,
    observer: Arc<dyn Observer>,
}

impl TracedTransport {
    /// Tells `observer` what passes through `inner`.
    pub fn new(inner: Arc<dyn Transport>, observer: Arc<dyn Observer>) -> Arc<Self> {
        Arc::new(Self { inner, observer })
    }

    fn tell(&self, event: &Event) {
        self.observer.event(self.inner.clock().now_ns(), event);
    }

    fn read(&self, offset: u64, bytes: u8, value: u64) {
        self.tell(&Event::Read { offset, bytes, value });
    }
}

impl Transport for TracedTransport {
    fn info(&self) -> &TransportInfo {
        self.inner.info()
    }

    fn clock(&self) -> &Clock {
        self.inner.clock()
    }

    fn idle(&self, until_ns: u64, waiting: Waiting<'_>) {
        self.inner.idle(until_ns, waiting);
    }

    fn read32(&self, offset: u64) -> Result<u32, TransportError> {
        let value = self.inner.read32(offset)?;
        self.read(offset, 4, value.into());
        Ok(value)
    }

    fn write32(&self, offset: u64, value: u32) -> Result<(), TransportError> {
        self.tell(&Event::Write { offset, bytes: 4, value: value.into() });
        self.inner.write32(offset, value)
    }

    fn read64(&self, offset: u64) -> Result<u64, TransportError> {
        let value = self.inner.read64(offset)?;
        self.read(offset, 8, value);
        Ok(value)
    }

    fn write64(&self, offset: u64, value: u64) -> Result<(), TransportError> {
        self.tell(&Event::Write { offset, bytes: 8, value });
        self.inner.write64(offset, value)
    }

    fn doorbell(&self, offset: u64) -> Result<DoorbellKind, TransportError> {
        let target = TracedDoorbell {
            doorbell: self.inner.doorbell(offset)?,
            clock: self.inner.clock().clone(),
            observer: Arc::clone(&self.observer),
        };
        Ok(DoorbellKind::Called(CalledDoorbell::new(Arc::new(target), offset)))
    }

    fn map(&self, memory: HostRange<'_>) -> Result<u64, TransportError> {
        let iova = self.inner.map(memory)?;
        self.tell(&Event::Map { iova, bytes: memory.bytes as u64 });
        Ok(iova)
    }

    fn needs_huge_pages(&self) -> bool {
        self.inner.needs_huge_pages()
    }

    fn unmap(&self, iova: u64, bytes: u64) -> Result<Unmapped, TransportError> {
        self.tell(&Event::Unmap { iova, bytes });
        self.inner.unmap(iova, bytes)
    }

    fn enable_interrupts(&self, count: u16) -> Result<Vec<Interrupt>, TransportError> {
        self.tell(&Event::Interrupts { count });
        self.inner.enable_interrupts(count)
    }

    fn map_bar(&self, bar: u8, part: Range<u64>) -> Result<DeviceMapping, TransportError> {
        self.inner.map_bar(bar, part)
    }

    fn set_bus_master(&self, on: bool) -> Result<(), TransportError> {
        self.tell(&Event::BusMaster { on });
        self.inner.set_bus_master(on)
    }

    fn reset(&self) -> Result<(), TransportError> {
        self.tell(&Event::Reset);
        self.inner.reset()
    }

    fn read_config(&self, offset: u16, into: &mut [u8]) -> Result<usize, TransportError> {
        self.inner.read_config(offset, into)
    }

    fn path_config(&self) -> Vec<(String, Vec<u8>)> {
        self.inner.path_config()
    }

    fn signals(&self) -> Signals {
        self.inner.signals()
    }
}

#[derive(Debug)]
struct TracedDoorbell {
    doorbell: DoorbellKind,
    clock: Clock,
    observer: Arc<dyn Observer>,
}

impl TracedDoorbell {
    fn tell(&self, event: &Event) {
        self.observer.event(self.clock.now_ns(), event);
    }
}

impl DoorbellTarget for TracedDoorbell {
    fn write_doorbell(&self, offset: u64, value: u32) {
        self.tell(&Event::Doorbell { offset, value });
        self.doorbell.ring(value);
    }

    fn watches(&self) -> bool {
        true
    }

    fn submitted(&self, doorbell_offset: u64, entry: &SubmissionEntry) {
        self.tell(&Event::Submitted { doorbell_offset, entry: *entry });
    }

    fn completed(&self, doorbell_offset: u64, completion: RawCompletion) {
        let entry = CompletionEntry::from_dwords(completion.dwords());
        self.tell(&Event::Completed { doorbell_offset, entry });
    }
}

#[cfg(all(test, feature = "emulated"))]
mod tests {
    use super::*;
    use crate::transport::emulated::EmulatedTransport;
    use crate::{Controller, ControllerOptions};
    use std::sync::Mutex;

    #[derive(Debug, Default)]
    struct Log(Mutex<Vec<Event>>);

    impl Observer for Log {
        fn event(&self, _at_ns: u64, event: &Event) {
            self.0.lock().unwrap().push(event.clone());
        }
    }

    #[test]
    fn a_command_is_told_before_its_doorbell_and_its_completion_after() {
        let log = Arc::new(Log::default());
        let transport = TracedTransport::new(EmulatedTransport::open("emulated").unwrap(), Arc::clone(&log) as _);
        let options = ControllerOptions { io_queues: 0, ..ControllerOptions::default() };
        Controller::open(transport, options).unwrap().shutdown().unwrap();

        let events = log.0.lock().unwrap();
        let at = |found: &dyn Fn(&Event) -> bool| events.iter().position(found).unwrap();
        let capabilities = at(&|event| matches!(event, Event::Read { offset: 0, bytes: 8, .. }));
        let enabled = at(&|event| matches!(event, Event::Write { offset: 0x14, value, .. } if value & 1 == 1));
        let identify = at(
            &|event| matches!(event, Event::Submitted { doorbell_offset: 0x1000, entry } if entry.opcode() == 6 && entry.cdw10() == 1),
        );
        let Event::Submitted { entry, .. } = events[identify] else { unreachable!() };
        let rung = at(&|event| matches!(event, Event::Doorbell { offset: 0x1000, value: 1 }));
        let completed = at(
            &|event| matches!(event, Event::Completed { doorbell_offset: 0x1004, entry: completion } if completion.cid() == entry.cid()),
        );
        assert!(capabilities < enabled && enabled < identify, "{events:#?}");
        assert!(identify < rung && rung < completed, "{events:#?}");
        assert!(matches!(events.last(), Some(Event::Unmap { .. } | Event::BusMaster { on: false })));
    }
}
