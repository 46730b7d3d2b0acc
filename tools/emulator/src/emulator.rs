//! The emulator as a whole: what it is made of, and how time passes for it.
#![forbid(unsafe_code)]

use core::fmt;
use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use crate::admin::events::AsyncEvents;
use crate::admin::features::Features;
use crate::admin::sanitize::Sanitizing;
use crate::admin::self_test::SelfTests;
use crate::controller::cells::Cells;
use crate::controller::flight::Flights;
use crate::controller::memory_buffer::{self, MemoryBuffer};
use crate::controller::queue::Queues;
use crate::controller::registers::Registers;
use crate::controller::shadow::Shadows;
use crate::data::DataPieces;
use crate::event::{Events, What};
use crate::fault::{Fault, FaultPlan, HangUntil};
use crate::guest_memory::{Access, GuestMemory};
use crate::health::{ErrorLog, Health};
use crate::link::LinkTime;
use crate::namespace::Namespace;
use crate::nand::Nand;
use crate::options::Options;
use crate::trace::CommandLog;

/// Events that are worked off within one access epoch.
const EPOCH_EVENTS: usize = 64;

/// Whom the controller tells of interrupts.
pub trait Irq: Send + fmt::Debug {
    /// The vector was raised.
    fn raise(&self, vector: u16);
}

/// Nobody.
#[derive(Debug, Clone, Copy)]
pub struct NoIrq;

impl Irq for NoIrq {
    fn raise(&self, _vector: u16) {}
}

/// An NVMe controller in software. See the [crate].
#[derive(Debug)]
pub struct Emulator {
    pub(crate) now_ns: u64,
    pub(crate) options: Options,
    pub(crate) memory: Arc<GuestMemory>,
    pub(crate) irq: Box<dyn Irq>,
    pub(crate) events: Events,
    pub(crate) log: CommandLog,
    pub(crate) removed: bool,
    /// Counts what the host can see: completions written, statuses changed.
    pub(crate) visible: u64,

    pub(crate) registers: Registers,
    pub(crate) queues: Queues,
    /// Doorbells that are memory, where they are.
    pub(crate) cells: Cells,
    /// Doorbells' shadows, where the host has given some.
    pub(crate) shadows: Option<Shadows>,
    /// Memory of the controller's own, where it has some.
    pub(crate) memory_buffer: Option<MemoryBuffer>,
    pub(crate) flights: Flights,
    /// Submission queues with entries to be fetched, in their turn.
    pub(crate) in_turn: VecDeque<u16>,
    /// Whether a fetch is planned.
    pub(crate) fetching: bool,
    /// When the next command may be taken up.
    pub(crate) fetch_free_ns: u64,
    /// Whether every command is answered at once.
    pub(crate) instant: bool,
    /// Commands that were taken up.
    pub(crate) commands: u64,

    pub(crate) features: Features,
    pub(crate) async_events: AsyncEvents,
    pub(crate) sanitize: Sanitizing,
    pub(crate) self_tests: SelfTests,
    pub(crate) health: Health,
    /// Bytes that were read and written.
    pub(crate) moved_bytes: u64,
    pub(crate) error_log: ErrorLog,
    pub(crate) namespaces: Vec<Namespace>,
    pub(crate) nand: Nand,
    pub(crate) link: LinkTime,
    pub(crate) faults: FaultPlan,
    /// Nothing is answered, until this.
    pub(crate) hang: Option<HangUntil>,
    /// The interrupt of the completion that is being written gets lost.
    pub(crate) mute: bool,

    /// The memory of the command being carried out; kept for its allocation.
    pub(crate) pieces: DataPieces,
}

impl Emulator {
    /// A drive with these options that may reach `memory` and tells `irq` of its interrupts. Its time begins at 0.
    pub fn new(options: Options, memory: Arc<GuestMemory>, irq: Box<dyn Irq>) -> Self {
        let model = &options.model;
        Self {
            now_ns: 0,
            memory,
            irq,
            events: Events::default(),
            log: CommandLog::new(),
            removed: false,
            visible: 0,
            registers: Registers::new(options.memory_buffer_bytes > 0),
            queues: Queues::default(),
            cells: Cells::default(),
            shadows: None,
            memory_buffer: MemoryBuffer::of(options.memory_buffer_bytes),
            flights: Flights::default(),
            in_turn: VecDeque::new(),
            fetching: false,
            fetch_free_ns: 0,
            instant: model.is_instant(),
            commands: 0,
            features: Features::new(model),
            async_events: AsyncEvents::default(),
            sanitize: Sanitizing::default(),
            self_tests: SelfTests::default(),
            health: Health::new(&options),
            moved_bytes: 0,
            error_log: ErrorLog::default(),
            namespaces: vec![Namespace::new(1, &options)],
            nand: Nand::new(model),
            link: LinkTime::new(options.link(), model),
            faults: FaultPlan::new(&options.faults),
            hang: None,
            mute: false,
            pieces: DataPieces::default(),
            options,
        }
    }

    /// The time that the emulator knows of.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// When something will happen next, if nothing comes from outside; it may lie in the past.
    pub fn next_event_ns(&self) -> Option<u64> {
        self.events.next_ns()
    }

    /// Runs until the host can see something new (a completion, a changed status), but not past `until_ns`; the time is then
    /// that of what happened, or `until_ns` if nothing did. With nothing to come and no end (`u64::MAX`), time stands.
    pub fn step(&mut self, until_ns: u64) {
        let seen = self.visible;
        self.scan_shadows();
        let memory = Arc::clone(&self.memory);
        loop {
            let access = memory.enter();
            while self.visible == seen
                && let Some((at_ns, what)) = self.events.take(until_ns)
            {
                self.now_ns = self.now_ns.max(at_ns);
                self.happen(what, &access);
            }
            drop(access);
            if self.visible != seen {
                return;
            }
            if !self.rest() {
                break;
            }
        }
        if until_ns != u64::MAX {
            self.now_ns = self.now_ns.max(until_ns);
        }
    }

    /// Lets time pass until `now_ns`: everything due by then happens, in order.
    pub fn advance(&mut self, now_ns: u64) {
        let memory = Arc::clone(&self.memory);
        while self.next_event_ns().is_some_and(|next_ns| next_ns <= now_ns) {
            let access = memory.enter();
            for _ in 0..EPOCH_EVENTS {
                let Some((at_ns, what)) = self.events.take(now_ns) else { break };
                self.now_ns = self.now_ns.max(at_ns);
                self.happen(what, &access);
            }
        }
        self.now_ns = self.now_ns.max(now_ns);
    }

    fn happen(&mut self, what: What, access: &Access<'_>) {
        match what {
            What::Fetch => self.fetch(access),
            What::HostReady(qid) => self.host_ready(qid),
            What::Transfer(ticket) => self.transfer(ticket),
            What::Complete(ticket) => self.complete(ticket, access),
            What::Ready(change) => self.ready(change),
            What::ShutdownDone(change) => self.shutdown_done(change),
            What::SanitizeDone => self.sanitize_done(),
        }
    }

    /// The command log.
    pub fn log(&self) -> &CommandLog {
        &self.log
    }

    /// The command log, to empty it or to stop its recording.
    pub fn log_mut(&mut self) -> &mut CommandLog {
        &mut self.log
    }

    /// The options that it was made with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The controller memory buffer: the BAR that it fills, its memory and its length.
    pub fn memory_buffer(&self) -> Option<(u8, BorrowedFd<'_>, u64)> {
        let (file, bytes) = self.memory_buffer.as_ref()?.file();
        Some((memory_buffer::BAR, file, bytes))
    }

    /// Plans a fault; it counts commands from now.
    pub fn inject(&mut self, fault: Fault) {
        self.faults.add(fault);
    }

    /// The device is gone: registers read all-ones from now on, nothing is answered.
    pub fn remove(&mut self) {
        self.removed = true;
        self.visible += 1;
        self.queues.clear();
        self.flights.clear();
        self.in_turn.clear();
        self.events = Events::default();
    }

    /// Whether the device is gone.
    pub fn is_removed(&self) -> bool {
        self.removed
    }

    /// Commands in flight, asynchronous event requests not counted.
    pub fn in_flight(&self) -> usize {
        self.flights.len()
    }

    /// The namespace with this identifier.
    pub(crate) fn namespace(&mut self, nsid: u32) -> Option<&mut Namespace> {
        self.namespaces.iter_mut().find(|namespace| namespace.nsid == nsid)
    }
}
