//! The registers: what they hold, and what writing them sets off.
//!
//! NVM Express Base Specification, "Controller Properties" and "Controller Initialization"; "Controller Shutdown".
#![forbid(unsafe_code)]

use nvmetal_core::number::ZeroBasedU16;
use nvmetal_core::register::{
    AdminQueueAttributes, Capabilities, CmbMemorySpaceControl, CommandSetSelected, Configuration, ControllerStatus,
    NSSR_RESET, ReadyTimeouts, ShutdownNotification, ShutdownStatus, Version, offset,
};

use crate::controller::memory_buffer::MemoryBuffer;
use crate::controller::queue::{CompletionQueue, SubmissionQueue};
use crate::emulator::Emulator;
use crate::event::What;
use crate::fault::{FaultKind, HangUntil, Occasion};
use crate::trace::Happening;

/// A controller that is late is ready after this; CAP.TO allows a second more.
const READY_LATE_NS: u64 = 4_000_000_000;
/// Entries that an I/O queue may have.
const QUEUE_ENTRIES_MOST: u32 = 4096;

/// The registers that hold something.
#[derive(Debug)]
pub(crate) struct Registers {
    pub(crate) cap: Capabilities,
    pub(crate) vs: Version,
    pub(crate) cc: Configuration,
    pub(crate) csts: ControllerStatus,
    pub(crate) aqa: AdminQueueAttributes,
    pub(crate) asq: u64,
    pub(crate) acq: u64,
    crto: ReadyTimeouts,
    interrupt_mask: u32,
    /// Counts the changes of CC.EN and CC.SHN, so that what an earlier one set off is not taken for the later one's.
    change: u32,
}

impl Registers {
    /// Their reset values, of a controller with a memory buffer or without.
    pub(crate) fn new(memory_buffer: bool) -> Self {
        let cap = Capabilities::new()
            .with_mqes(ZeroBasedU16::from_bits((QUEUE_ENTRIES_MOST - 1) as u16))
            .with_cqr(true)
            .with_to(10)
            .with_nssrs(true)
            .with_css_nvm(true)
            .with_mpsmax(4)
            .with_crwms(true)
            .with_cmbs(memory_buffer);
        Self {
            cap,
            vs: Version::new().with_major(2).with_minor(0),
            cc: Configuration::new(),
            csts: ControllerStatus::new(),
            aqa: AdminQueueAttributes::new(),
            asq: 0,
            acq: 0,
            crto: ReadyTimeouts::new().with_crwmt(10),
            interrupt_mask: 0,
            change: 0,
        }
    }

    /// Bytes of a memory page of the host.
    pub(crate) fn page_bytes(&self) -> u64 {
        4096 << self.cc.mps()
    }
}

impl Emulator {
    /// Reads `bytes` (1, 2, 4 or 8) of BAR0 from `offset` on. A device that is gone answers all-ones.
    pub fn read(&mut self, offset: u64, bytes: u8) -> u64 {
        let ones = u64::MAX >> (64 - 8 * u32::from(bytes.clamp(1, 8)));
        if self.removed || self.faults.hit(Occasion::RegisterRead) == Some(FaultKind::AllOnes) {
            return ones;
        }
        let (low, high) = (self.register(offset & !3), self.register((offset & !3) + 4));
        let value = (u64::from(low) | u64::from(high) << 32) >> (8 * (offset & 3)) & ones;
        self.log.record(self.now_ns, Happening::RegisterRead { offset, value });
        value
    }

    fn register(&self, offset: u64) -> u32 {
        const CAP_HIGH: u64 = offset::CAP + 4;
        const ASQ_HIGH: u64 = offset::ASQ + 4;
        const ACQ_HIGH: u64 = offset::ACQ + 4;
        const CMBMSC_HIGH: u64 = offset::CMBMSC + 4;
        let registers = &self.registers;
        let buffer = |read: fn(&MemoryBuffer) -> u32| self.memory_buffer.as_ref().map_or(0, read);
        match offset {
            offset::CAP => registers.cap.into_bits() as u32,
            CAP_HIGH => (registers.cap.into_bits() >> 32) as u32,
            offset::VS => registers.vs.into_bits(),
            offset::INTMS | offset::INTMC => registers.interrupt_mask,
            offset::CC => registers.cc.into_bits(),
            offset::CSTS => registers.csts.into_bits(),
            offset::AQA => registers.aqa.into_bits(),
            offset::ASQ => registers.asq as u32,
            ASQ_HIGH => (registers.asq >> 32) as u32,
            offset::ACQ => registers.acq as u32,
            ACQ_HIGH => (registers.acq >> 32) as u32,
            offset::CMBLOC => buffer(|buffer| buffer.location().into_bits()),
            offset::CMBSZ => buffer(|buffer| buffer.size().into_bits()),
            offset::CMBMSC => buffer(|buffer| buffer.control().into_bits() as u32),
            CMBMSC_HIGH => buffer(|buffer| (buffer.control().into_bits() >> 32) as u32),
            offset::CMBSTS => buffer(|buffer| buffer.status().into_bits()),
            offset::CRTO => registers.crto.into_bits(),
            _ => 0,
        }
    }

    /// Writes `bytes` (4 or 8) of BAR0 from `offset` on.
    pub fn write(&mut self, offset: u64, bytes: u8, value: u64) {
        if self.removed {
            return;
        }
        if offset >= offset::DOORBELLS {
            self.write_doorbell(offset, value as u32);
            return;
        }
        self.log.record(self.now_ns, Happening::RegisterWrite { offset, value });
        if bytes < 4 || !offset.is_multiple_of(4) {
            return; // Registers are written as dwords; what else is written has no effect.
        }
        if offset == offset::CMBMSC && bytes == 8 {
            self.control_memory_buffer(value);
            return;
        }
        self.write_register(offset, value as u32);
        if bytes == 8 {
            self.write_register(offset + 4, (value >> 32) as u32);
        }
    }

    fn write_register(&mut self, offset: u64, value: u32) {
        const ASQ_HIGH: u64 = offset::ASQ + 4;
        const ACQ_HIGH: u64 = offset::ACQ + 4;
        const CMBMSC_HIGH: u64 = offset::CMBMSC + 4;
        let low = |whole: u64| whole & !0xffff_ffff | u64::from(value & !0xfff);
        let high = |whole: u64| whole & 0xffff_ffff | u64::from(value) << 32;
        let registers = &mut self.registers;
        match offset {
            offset::INTMS => registers.interrupt_mask |= value,
            offset::INTMC => registers.interrupt_mask &= !value,
            offset::CC => self.write_configuration(Configuration::from_bits(value)),
            offset::CSTS if ControllerStatus::from_bits(value).nssro() => {
                registers.csts = registers.csts.with_nssro(false);
            }
            offset::NSSR if value == NSSR_RESET => self.subsystem_reset(),
            // The admin queue's registers are read when the controller is enabled, and never else.
            offset::AQA => registers.aqa = AdminQueueAttributes::from_bits(value & 0x0fff_0fff),
            offset::ASQ => registers.asq = low(registers.asq),
            ASQ_HIGH => registers.asq = high(registers.asq),
            offset::ACQ => registers.acq = low(registers.acq),
            ACQ_HIGH => registers.acq = high(registers.acq),
            offset::CMBMSC | CMBMSC_HIGH => {
                let whole = self.memory_buffer.as_ref().map_or(0, |buffer| buffer.control().into_bits());
                let shift = if offset == CMBMSC_HIGH { 32 } else { 0 };
                self.control_memory_buffer(whole & !(0xffff_ffff << shift) | u64::from(value) << shift);
            }
            _ => {}
        }
    }

    fn control_memory_buffer(&mut self, value: u64) {
        const WRITABLE: u64 = !0xffc;
        if let Some(buffer) = &mut self.memory_buffer {
            buffer.set_control(CmbMemorySpaceControl::from_bits(value & WRITABLE), &self.memory);
        }
    }

    fn write_configuration(&mut self, new: Configuration) {
        let old = core::mem::replace(&mut self.registers.cc, new);
        match (old.en(), new.en()) {
            (false, true) => self.enable(),
            (true, false) => self.disable(),
            _ => {}
        }
        if new.shn() != ShutdownNotification::NONE && old.shn() != new.shn() {
            self.begin_shutdown();
        }
    }

    fn enable(&mut self) {
        self.registers.change += 1;
        let (cc, cap, aqa) = (self.registers.cc, self.registers.cap, self.registers.aqa);
        let page_bytes = self.registers.page_bytes();
        let good = (cap.mpsmin()..=cap.mpsmax()).contains(&cc.mps())
            && [CommandSetSelected::NVM, CommandSetSelected::ALL, CommandSetSelected::ADMIN_ONLY].contains(&cc.css())
            && (cc.css() != CommandSetSelected::ALL || cap.css_io())
            && aqa.asqs().count() >= 2
            && aqa.acqs().count() >= 2
            && self.registers.asq & (page_bytes - 1) == 0
            && self.registers.acq & (page_bytes - 1) == 0;
        if !good {
            self.fatal();
            return;
        }
        self.registers.csts = self.registers.csts.with_shst(ShutdownStatus::NORMAL);
        self.cells.set(0, false, 0);
        self.cells.set(0, true, 0);
        self.queues.set_sq(0, Some(SubmissionQueue::new(self.registers.asq, aqa.asqs().count(), 0)));
        let mut completion = CompletionQueue::new(self.registers.acq, aqa.acqs().count(), Some(0));
        completion.submission_queues = 1;
        self.queues.set_cq(0, Some(completion));
        let after_ns = match self.faults.hit(Occasion::Enable) {
            Some(FaultKind::ReadyNever) => return,
            Some(FaultKind::FatalEnable) => return self.fatal(),
            Some(FaultKind::ReadyLate) => READY_LATE_NS,
            _ => self.options.model.ready,
        };
        self.events.plan(self.now_ns + after_ns, What::Ready(self.registers.change));
    }

    /// CC.EN went to 0: the controller forgets its queues and what was in flight.
    fn disable(&mut self) {
        self.registers.change += 1;
        self.forget_commands();
        self.features.reset();
        self.self_tests.controller_reset(self.now_ns);
        let csts = self.registers.csts.with_cfs(false).with_shst(ShutdownStatus::NORMAL);
        self.registers.csts = csts;
        self.registers.cc = Configuration::new().with_shn(self.registers.cc.shn());
        match self.hang {
            Some(HangUntil::FunctionReset) => return,
            _ => self.hang = None,
        }
        if csts.rdy() {
            // Going down is quick, and not at once.
            self.events.plan(self.now_ns + self.options.model.ready / 4, What::Ready(self.registers.change));
        }
    }

    fn begin_shutdown(&mut self) {
        self.registers.change += 1;
        self.registers.csts = self.registers.csts.with_shst(ShutdownStatus::OCCURRING);
        if self.faults.hit(Occasion::Shutdown) == Some(FaultKind::ShutdownNever) {
            return;
        }
        self.events.plan(self.now_ns + self.options.model.shutdown, What::ShutdownDone(self.registers.change));
    }

    /// A moment set by [`What::Ready`] has come.
    pub(crate) fn ready(&mut self, change: u32) {
        if change == self.registers.change {
            self.visible += 1;
            let en = self.registers.cc.en();
            self.registers.csts = self.registers.csts.with_rdy(en);
            if en {
                self.take_up_all();
            }
        }
    }

    pub(crate) fn shutdown_done(&mut self, change: u32) {
        if change == self.registers.change {
            self.visible += 1;
            self.registers.csts = self.registers.csts.with_shst(ShutdownStatus::COMPLETE);
            self.health.shutdown();
        }
    }

    /// The controller meets an error that only a reset ends.
    pub(crate) fn fatal(&mut self) {
        self.visible += 1;
        self.registers.csts = self.registers.csts.with_cfs(true);
        self.forget_commands();
    }

    fn forget_commands(&mut self) {
        self.shadows = None; // Of the controller, and gone with its reset.
        self.queues.clear();
        self.flights.clear();
        self.async_events.reset();
        self.in_turn.clear();
        self.fetching = false;
        self.link.reset();
        self.nand.reset();
        self.events
            .forget(|what| matches!(what, What::Fetch | What::HostReady(_) | What::Transfer(_) | What::Complete(_)));
    }

    /// NVM subsystem reset: everything as after power on, but for CSTS.NSSRO.
    fn subsystem_reset(&mut self) {
        let was_enabled = self.registers.cc.en();
        self.function_reset();
        self.registers.csts = self.registers.csts.with_nssro(was_enabled);
    }

    /// Function level reset: registers get their reset values, the controller forgets its queues.
    pub fn function_reset(&mut self) {
        if self.removed {
            return;
        }
        let change = self.registers.change + 1;
        self.hang = None;
        self.forget_commands();
        self.registers = Registers::new(self.memory_buffer.is_some());
        if let Some(buffer) = &mut self.memory_buffer {
            buffer.set_control(CmbMemorySpaceControl::new(), &self.memory);
        }
        self.registers.change = change;
        self.features.reset();
        self.self_tests.controller_reset(self.now_ns);
    }
}
