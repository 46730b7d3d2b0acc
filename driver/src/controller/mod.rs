//! A controller that takes commands: brought up, asked who it is, and shut down in good order.
//!
//! [`Controller::open`] runs `core::lifecycle` over a transport, makes the admin queue, identifies the controller, asks
//! for I/O queues and sets all interrupt vectors once. From then on it is shared: admin commands go through one mutex
//! (they are never on the hot path), and [`Controller::create_io_queue`] hands out queue pairs that belong to one thread
//! each. Each queue keeps the controller alive.
//!
//! The way down is the reverse, and DESIGN's order: queues deleted (each when it is dropped), shutdown notification and
//! its end, EN = 0, RDY = 0, bus mastering off, memory unmapped. [`Controller::shutdown`] does it and reports; dropping
//! the last handle does it, too, so that a panic gives the drive back as well.

#![forbid(unsafe_code)]

mod admin;
mod commands;
mod lifecycle;
mod memory_buffer;
mod namespace;
mod recovery;
mod tally;

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};

use nvmetal_core::command::Command;
use nvmetal_core::command::admin::{DoorbellBufferConfig, SetFeatures};
use nvmetal_core::data_pointer::PageSize;
use nvmetal_core::feature::FeatureId;
use nvmetal_core::identify;
use nvmetal_core::lifecycle::{BringUpOptions, BroughtUp, ShutdownOutcome};
use nvmetal_core::register;
use zerocopy::FromZeros;

use crate::clock::Clock;
use crate::dma::{DeviceMemory, RingBuffer};
use crate::error::DriverError;
use crate::transport::{Interrupt, Transport};

pub(crate) use commands::describe;
pub use commands::{Admin, AdminData, Completed};
pub use namespace::Namespace;
pub use recovery::{Recoveries, Reset};
pub use tally::{SentCommand, Tally};

/// Entries of the admin queues.
const ADMIN_ENTRIES: u16 = 64;

/// How a controller is to be opened.
#[derive(Debug, Clone, Copy)]
pub struct ControllerOptions {
    /// I/O queue pairs to ask for; the controller may grant fewer.
    pub io_queues: u16,
    /// Set up interrupt vectors (one for the admin queue, one for each I/O queue), if the transport has them.
    pub interrupts: bool,
    /// Weighted round robin arbitration, where the controller has it.
    pub weighted_round_robin: bool,
    /// Ring the I/O queues' doorbells in memory, where the controller has that (Doorbell Buffer Config).
    pub shadow_doorbells: bool,
    /// Put the I/O submission queues into the controller's own memory, where it has some for them.
    pub sq_in_cmb: bool,
    /// How long an admin command may take.
    pub admin_timeout_ns: u64,
    /// Whether a controller that nothing else brings back may be reset together with its whole NVM subsystem, and with
    /// that everybody else's controllers in it.
    pub subsystem_reset: bool,
}

impl ControllerOptions {
    /// What the bring-up needs to know, with these admin queues.
    fn bring_up(&self, submission: &RingBuffer, completion: &RingBuffer) -> BringUpOptions {
        BringUpOptions {
            admin_entries: ADMIN_ENTRIES,
            host_page: host_page(),
            weighted_round_robin: self.weighted_round_robin,
            ..BringUpOptions::new(submission.iova(), completion.iova())
        }
    }
}

impl Default for ControllerOptions {
    fn default() -> Self {
        Self {
            io_queues: 1,
            interrupts: false,
            weighted_round_robin: false,
            shadow_doorbells: false,
            sq_in_cmb: false,
            admin_timeout_ns: 30_000_000_000,
            subsystem_reset: false,
        }
    }
}

/// A controller that takes commands.
#[derive(Debug)]
pub struct Controller {
    transport: Arc<dyn Transport>,
    brought_up: BroughtUp,
    identify: Box<identify::Controller>,
    admin: Mutex<admin::AdminQueue>,
    tally: Tally,
    interrupts: Vec<Interrupt>,
    /// The pages of shadow doorbells and of event indexes.
    shadows: Option<[RingBuffer; 2]>,
    /// The controller memory buffer, if submission queues lie in it.
    memory_buffer: Option<Arc<DeviceMemory>>,
    granted_queues: u16,
    next_queue: AtomicU16,
    free_queues: Mutex<Vec<u16>>,
    options: ControllerOptions,
    desk: recovery::Desk,
    down: AtomicBool,
}

impl Controller {
    /// Takes the controller behind `transport` from whatever state it is in to one that takes commands.
    ///
    /// # Errors
    /// What the bring-up found wrong, with the registers; a device that is gone; memory that cannot be had.
    pub fn open(transport: Arc<dyn Transport>, options: ControllerOptions) -> Result<Arc<Self>, DriverError> {
        let submission = RingBuffer::new(&transport, usize::from(ADMIN_ENTRIES) * 64)?;
        let completion = RingBuffer::new(&transport, usize::from(ADMIN_ENTRIES) * 16)?;
        transport.set_bus_master(true)?;
        let brought_up = match lifecycle::bring_up(&transport, options.bring_up(&submission, &completion)) {
            Ok(brought_up) => brought_up,
            Err(error) => {
                // The controller may have been enabled with these rings: only RDY = 0 lets them go.
                if lifecycle::disable(&transport, 2_000).is_err() && transport.reset().is_err() {
                    submission.leak();
                    completion.leak();
                }
                let _ = transport.set_bus_master(false);
                return Err(error);
            }
        };
        let admin = admin::AdminQueue::new(&transport, &brought_up, submission, completion, ADMIN_ENTRIES)?;
        let mut controller = Self {
            transport,
            brought_up,
            identify: Box::new(identify::Controller::new_zeroed()),
            admin: Mutex::new(admin),
            tally: Tally::default(),
            interrupts: Vec::new(),
            shadows: None,
            memory_buffer: None,
            granted_queues: 0,
            next_queue: AtomicU16::new(1),
            free_queues: Mutex::default(),
            options,
            desk: recovery::Desk::default(),
            down: AtomicBool::new(false),
        };
        // From here on dropping `controller` shuts the device down.
        controller.identify = controller.identify_controller()?;
        if options.io_queues > 0 {
            controller.granted_queues = controller.request_queues(options.io_queues)?;
        }
        if options.shadow_doorbells && controller.identify.oacs.doorbell_buffer() {
            controller.shadows = controller.configure_shadows()?;
        }
        if options.sq_in_cmb && controller.brought_up.cap.cmbs() {
            controller.memory_buffer = memory_buffer::enable(&controller.transport)?;
        }
        if options.interrupts {
            let wanted = controller.granted_queues.saturating_add(1).min(controller.transport.info().vectors);
            if wanted > 0 {
                controller.interrupts = controller.transport.enable_interrupts(wanted)?;
            }
        }
        Ok(Arc::new(controller))
    }

    /// Asks for I/O queues; gives the number of pairs that can be used (C-15: the request is mandatory, the grant free).
    fn request_queues(&self, count: u16) -> Result<u16, DriverError> {
        // Zero-based in both halves, and FFFFh is not allowed (C-14).
        let zero_based = u32::from(count.saturating_sub(1)).min(0xfffe);
        let set = SetFeatures {
            fid: FeatureId::NUMBER_OF_QUEUES,
            value: zero_based | zero_based << 16,
            ..Default::default()
        };
        let granted = self.admin(&set, AdminData::None)?.dword0;
        let pairs = (granted & 0xffff).min(granted >> 16) + 1;
        Ok(u16::try_from(pairs.min(u32::from(count))).unwrap_or(u16::MAX))
    }

    /// Gives the controller its two pages; `None` where it does not take them after all.
    fn configure_shadows(&self) -> Result<Option<[RingBuffer; 2]>, DriverError> {
        let page = || RingBuffer::new(&self.transport, self.brought_up.page.bytes() as usize);
        let pages = [page()?, page()?];
        let entry = DoorbellBufferConfig {}.entry().with_prp(pages[0].iova(), pages[1].iova());
        match self.admin_entry(entry, AdminData::None) {
            Ok(_) => Ok(Some(pages)),
            Err(error) if error.status().is_some() => {
                log::info!("no shadow doorbells: {error}");
                Ok(None)
            }
            Err(error) => {
                // Whether it has them is not known.
                pages.into_iter().for_each(RingBuffer::leak);
                Err(error)
            }
        }
    }

    /// The pages of shadow doorbells and of event indexes, where the controller uses them.
    pub(crate) fn shadows(&self) -> Option<&[RingBuffer; 2]> {
        self.shadows.as_ref()
    }

    /// Memory for a submission ring: in the controller if it is to lie there, else in the host.
    pub(crate) fn submission_memory(&self, bytes: usize) -> Result<RingBuffer, DriverError> {
        let Some(memory) = &self.memory_buffer else { return Ok(RingBuffer::new(&self.transport, bytes)?) };
        RingBuffer::in_device(memory, bytes).ok_or_else(|| {
            let address = self.address();
            DriverError::Request(format!("{address}: no {bytes} bytes are left in the controller memory buffer"))
        })
    }

    /// Whether the I/O submission queues lie in the controller's memory.
    pub fn has_sq_in_cmb(&self) -> bool {
        self.memory_buffer.is_some()
    }

    /// Whether the I/O queues' doorbells are rung in memory.
    pub fn has_shadow_doorbells(&self) -> bool {
        self.shadows.is_some()
    }

    /// The way to the device.
    pub fn transport(&self) -> &Arc<dyn Transport> {
        &self.transport
    }

    /// The clock of everything that happens here.
    pub fn clock(&self) -> &Clock {
        self.transport.clock()
    }

    /// How the device is called in messages.
    pub fn address(&self) -> &str {
        &self.transport.info().address
    }

    /// What the bring-up found: capabilities, version, page size, how long it took.
    pub fn brought_up(&self) -> &BroughtUp {
        &self.brought_up
    }

    /// Identify Controller.
    pub fn identify(&self) -> &identify::Controller {
        &self.identify
    }

    /// I/O queue pairs that can be made.
    pub fn io_queues(&self) -> u16 {
        self.granted_queues
    }

    /// The vector of each queue (the first is the admin queue's); empty where there are no interrupts.
    pub fn interrupts(&self) -> &[Interrupt] {
        &self.interrupts
    }

    /// The memory page of PRP entries.
    pub fn page(&self) -> PageSize {
        self.brought_up.page
    }

    /// The most entries that an I/O queue may have.
    pub fn max_queue_entries(&self) -> u32 {
        self.brought_up.cap.mqes().count()
    }

    /// The most data that one command may move, from MDTS: in units of the smallest memory page, as a power of two.
    /// `None` for no limit.
    pub fn max_transfer_bytes(&self) -> Option<u64> {
        let mdts = u32::from(self.identify.mdts);
        let page_bytes = self.brought_up.cap.page_size_min_bytes();
        // B-11: 2^32 pages and beyond are no limit that a command could reach.
        if mdts == 0 || mdts >= 32 { None } else { Some(page_bytes << mdts) }
    }

    /// What was sent so far.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Reads a 32-bit register; all ones is an error.
    pub fn read_register32(&self, offset: u64) -> Result<u32, DriverError> {
        let value = self.transport.read32(offset)?;
        if register::is_all_ones(value) { Err(self.lost_at(offset)) } else { Ok(value) }
    }

    fn lost_at(&self, offset: u64) -> DriverError {
        DriverError::Lost {
            address: self.address().to_owned(),
            detail: format!("the register at {offset:#x} reads all ones"),
        }
    }

    /// Whether the device still answers and works: an error says why not.
    pub fn check_alive(&self) -> Result<(), DriverError> {
        if self.transport.signals().lost {
            let detail = "the transport reports that it is gone".to_owned();
            return Err(DriverError::Lost { address: self.address().to_owned(), detail });
        }
        let csts = register::ControllerStatus::from_bits(self.read_register32(register::offset::CSTS)?);
        if csts.cfs() {
            return Err(DriverError::Lifecycle {
                address: self.address().to_owned(),
                doing: "checking the controller",
                source: nvmetal_core::lifecycle::LifecycleError::FatalStatus { csts },
            });
        }
        Ok(())
    }

    /// Shuts the controller down in good order. Queues have to be gone by now; those that are not are found out by the
    /// controller's disabling.
    ///
    /// Doing it twice is no error; the second time does nothing.
    pub fn shutdown(&self) -> Result<ShutdownOutcome, DriverError> {
        let nothing = ShutdownOutcome { complete: true, waited_ns: 0 };
        if self.down.swap(true, Ordering::AcqRel) {
            return Ok(nothing);
        }
        let rtd3e_us = self.identify.rtd3e.get();
        let outcome = lifecycle::shutdown(&self.transport, rtd3e_us, self.brought_up.cap.timeout_ms());
        let quiet = if outcome.is_ok() {
            true
        } else {
            // It did not go quiet by itself; a reset of the function is the last means.
            self.transport.reset().is_ok()
        };
        if !quiet {
            self.shadows.iter().flatten().cloned().for_each(RingBuffer::leak);
        }
        if quiet
            && self.memory_buffer.is_some()
            && let Err(error) = memory_buffer::disable(&self.transport)
        {
            log::debug!("{}: the controller memory buffer stays on: {error}", self.address());
        }
        let bus_master = self.transport.set_bus_master(false);
        self.admin.lock().unwrap_or_else(std::sync::PoisonError::into_inner).end(quiet);
        let outcome = outcome?;
        bus_master?;
        Ok(outcome)
    }

    /// Whether [`Controller::shutdown`] has been done.
    pub fn is_down(&self) -> bool {
        self.down.load(Ordering::Acquire)
    }

    pub(crate) fn take_queue_id(&self) -> Option<u16> {
        let mut free = self.free_queues.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(queue_id) = free.pop() {
            return Some(queue_id);
        }
        let queue_id = self.next_queue.load(Ordering::Relaxed);
        if queue_id > self.granted_queues {
            return None;
        }
        self.next_queue.store(queue_id + 1, Ordering::Relaxed);
        Some(queue_id)
    }

    pub(crate) fn give_queue_id_back(&self, queue_id: u16) {
        self.free_queues.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(queue_id);
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        if let Err(error) = self.shutdown() {
            log::warn!("{}: shutdown: {error}", self.address());
        }
    }
}

/// The system's page: what is contiguous for the device without anybody's help.
fn host_page() -> PageSize {
    PageSize::from_bytes(rustix::param::page_size() as u64).unwrap_or(PageSize::MINIMUM)
}
