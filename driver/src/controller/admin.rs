//! The admin queue: one command at a time, from whichever thread holds the mutex.
//!
//! Data goes through bounce buffers of the queue's own, so that callers hand in plain slices. A command that is not
//! completed in time keeps its buffer: it stays in its slot until the controller is disabled, and the next command takes
//! another one.
#![forbid(unsafe_code)]

use core::fmt;
use std::sync::{Arc, PoisonError};

use nvmetal_core::command::{Command, SubmissionEntry};
use nvmetal_core::identify;
use nvmetal_core::lifecycle::BroughtUp;
use nvmetal_core::queue::{
    CompletionRing, DeviceQuiet, Done, Generations, Parts, QueuePair, Slot, SlotTable, SubmissionRing,
};
use nvmetal_core::register::{self, Version};
use nvmetal_core::status::Status;

use super::commands::{Admin, AdminData, Completed, describe};
use super::{Controller, tally};
use crate::clock::MILLISECOND_NS;
use crate::dma::{Buffer, BufferPool, RingBuffer};
use crate::error::DriverError;
use crate::transport::{DoorbellKind, Transport, Waiting};

/// Bytes of a bounce buffer: the most data of one admin command. Longer log pages are read in pieces.
const BOUNCE_BYTES: usize = 128 << 10;
/// Bounce buffers; one is in use at a time, the others replace those that a timed-out command holds.
const BOUNCE_COUNT: usize = 4;
/// How often a waiting command looks whether the device is still there.
const ALIVE_EVERY_NS: u64 = 10 * MILLISECOND_NS;
/// How long a command is polled for before the wait may sleep.
const POLL_FOR_NS: u64 = MILLISECOND_NS;

/// What the admin queue holds for a command in flight.
type Payload = Option<Buffer>;

pub(super) struct AdminQueue {
    pair: QueuePair<DoorbellKind, RingBuffer, Box<[Slot<Payload>]>>,
    bounce: Vec<Buffer>,
    /// Held until the end, however the pair ends.
    rings: [RingBuffer; 2],
}

impl fmt::Debug for AdminQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdminQueue").field("in_flight", &self.pair.in_flight()).finish_non_exhaustive()
    }
}

impl AdminQueue {
    pub(super) fn new(
        transport: &Arc<dyn Transport>,
        brought_up: &BroughtUp,
        submission: RingBuffer,
        completion: RingBuffer,
        entries: u16,
    ) -> Result<Self, DriverError> {
        let dstrd = brought_up.cap.dstrd();
        let doorbell = |completion| transport.doorbell(register::doorbell_offset(0, completion, dstrd));
        let slots: Box<[Slot<Payload>]> = (1..entries).map(|_| Slot::new()).collect();
        let pool = BufferPool {
            count: BOUNCE_COUNT,
            bytes_each: BOUNCE_BYTES,
            page_bytes: brought_up.page.bytes() as usize,
            metadata_bytes: 0,
        };
        let rings = [submission.clone(), completion.clone()];
        let parts = Parts {
            queue_id: 0,
            submission: SubmissionRing::new(submission, entries.into())?,
            completion: CompletionRing::new(completion, entries.into())?,
            slots: SlotTable::new(slots, Generations::Counted).ok_or_else(|| no_queue(entries))?,
            tail_doorbell: doorbell(false)?,
            head_doorbell: doorbell(true)?,
        };
        let pair = QueuePair::new(parts).ok_or_else(|| no_queue(entries))?;
        Ok(Self { pair, bounce: pool.allocate(transport)?, rings })
    }

    /// Runs one command to its end.
    fn run(
        &mut self,
        controller: &Controller,
        mut entry: SubmissionEntry,
        data: &mut AdminData<'_>,
        timeout_ns: u64,
    ) -> Result<Done<Payload>, DriverError> {
        let mut payload = None;
        if data.len() > 0 {
            let mut buffer = self.bounce.pop().ok_or_else(|| DriverError::Unusable {
                address: controller.address().to_owned(),
                detail: "too many admin commands were never completed".to_owned(),
            })?;
            if let AdminData::ToDevice(bytes) = data {
                buffer.copy_in(0, bytes)?;
            }
            let prp = buffer.prp(data.len()).ok_or_else(|| {
                DriverError::Request(format!("an admin command moves at most {BOUNCE_BYTES} bytes, not {}", data.len()))
            })?;
            entry = entry.with_prp(prp.prp1, prp.prp2);
            payload = Some(buffer);
        }
        let started_ns = controller.clock().now_ns();
        let cid = match self.pair.submit(&entry.words(), payload, started_ns) {
            Ok(cid) => cid,
            Err(refused) => {
                self.bounce.extend(refused.buffer);
                return Err(DriverError::Unusable {
                    address: controller.address().to_owned(),
                    detail: "the admin queue takes no more commands after a fault".to_owned(),
                });
            }
        };
        self.pair.ring();
        controller.tally.add(true, entry.opcode(), 1);
        let mut done = self.wait(controller, entry.opcode(), cid, started_ns, timeout_ns)?;
        if let (Some(buffer), AdminData::FromDevice(into)) = (&done.buffer, data) {
            buffer.copy_out(0, into)?;
        }
        self.bounce.extend(done.buffer.take());
        Ok(done)
    }

    fn wait(
        &mut self,
        controller: &Controller,
        opcode: u8,
        cid: u16,
        started_ns: u64,
        timeout_ns: u64,
    ) -> Result<Done<Payload>, DriverError> {
        let deadline_ns = started_ns.saturating_add(timeout_ns);
        let mut alive_ns = started_ns + ALIVE_EVERY_NS;
        loop {
            let mut mine = None;
            let bounce = &mut self.bounce;
            let polled = self.pair.poll(u32::MAX, |done| {
                if done.cid == cid {
                    mine = Some(done);
                } else {
                    // A command that was given up has come back after all.
                    bounce.extend(done.buffer);
                }
            });
            if let Some(done) = mine {
                return Ok(done);
            }
            polled.map_err(|source| DriverError::Fault { address: controller.address().to_owned(), source })?;
            let now_ns = controller.clock().now_ns();
            if now_ns >= alive_ns {
                controller.check_alive()?;
                alive_ns = now_ns + ALIVE_EVERY_NS;
            }
            if now_ns >= deadline_ns {
                controller.check_alive()?;
                return Err(DriverError::Timeout {
                    address: controller.address().to_owned(),
                    queue: 0,
                    command: tally::name(true, opcode),
                    waited_ms: (now_ns - started_ns) / MILLISECOND_NS,
                });
            }
            let waiting = match controller.interrupts.first() {
                Some(interrupt) => Waiting::Interrupt(interrupt),
                None if now_ns - started_ns < POLL_FOR_NS => Waiting::Polling,
                None => Waiting::Register,
            };
            controller.transport.idle(deadline_ns.min(now_ns + POLL_FOR_NS), waiting);
        }
    }

    /// Begins anew in other rings, after the controller was disabled and brought up again with them. Commands that were
    /// in flight are over.
    pub(super) fn renew(&mut self, submission: RingBuffer, completion: RingBuffer) -> Result<(), DriverError> {
        while let Some((_, payload)) = self.pair.reclaim(DeviceQuiet::ControllerDisabled) {
            self.bounce.extend(payload);
        }
        let entries = u32::from(super::ADMIN_ENTRIES);
        self.rings = [submission.clone(), completion.clone()];
        let rings = (SubmissionRing::new(submission, entries)?, CompletionRing::new(completion, entries)?);
        self.pair.renew(rings.0, rings.1).map(|_| ()).map_err(|_| no_queue(super::ADMIN_ENTRIES))
    }

    /// The end of the queue. `quiet` says whether the controller is known to be disabled or reset; if not, what it may
    /// still write to is leaked.
    pub(super) fn end(&mut self, quiet: bool) {
        if quiet {
            while self.pair.reclaim(DeviceQuiet::ControllerDisabled).is_some() {}
        } else {
            self.pair.stop();
            self.rings.iter().cloned().for_each(RingBuffer::leak);
        }
    }
}

fn no_queue(entries: u16) -> DriverError {
    DriverError::Request(format!("an admin queue cannot have {entries} entries"))
}

/// The admin queue as whoever has a command for it sees it.
impl Controller {
    /// Sends an admin command and waits for its end; a status other than success is an error.
    pub fn admin<C: Command>(&self, command: &C, data: AdminData<'_>) -> Result<Completed, DriverError> {
        self.admin_entry(command.entry(), data)
    }

    /// The same for an entry made by hand. Command id and, with data, the data pointer are filled in.
    pub fn admin_entry(&self, entry: SubmissionEntry, data: AdminData<'_>) -> Result<Completed, DriverError> {
        self.admin_within(entry, data, self.options.admin_timeout_ns)
    }

    /// The same with a time of its own.
    pub(crate) fn admin_within(
        &self,
        entry: SubmissionEntry,
        mut data: AdminData<'_>,
        timeout_ns: u64,
    ) -> Result<Completed, DriverError> {
        if self.is_down() {
            return Err(DriverError::Request(format!("{}: the controller has been shut down", self.address())));
        }
        let mut admin = self.admin.lock().unwrap_or_else(PoisonError::into_inner);
        let done = admin.run(self, entry, &mut data, timeout_ns)?;
        drop(admin);
        let status = Status::from_bits(done.status);
        if status.is_success() {
            return Ok(Completed { dword0: done.dword0, dword1: done.dword1 });
        }
        Err(DriverError::Command { address: self.address().to_owned(), queue: 0, command: describe(&entry), status })
    }

    /// The most data of one admin command.
    pub fn max_admin_bytes(&self) -> usize {
        let limit = self.max_transfer_bytes().unwrap_or(u64::MAX);
        usize::try_from(limit).map_or(BOUNCE_BYTES, |limit| limit.min(BOUNCE_BYTES))
    }
}

impl Admin for Controller {
    fn address(&self) -> &str {
        self.address()
    }

    fn version(&self) -> Version {
        self.brought_up.vs
    }

    fn identify(&self) -> &identify::Controller {
        &self.identify
    }

    fn max_admin_bytes(&self) -> usize {
        self.max_admin_bytes()
    }

    fn admin_entry(&self, entry: SubmissionEntry, data: AdminData<'_>) -> Result<Completed, DriverError> {
        self.admin_entry(entry, data)
    }
}
