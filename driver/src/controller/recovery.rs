//! The controller's reset, as a handshake with everybody who has a queue on it.
//!
//! A queue's thread that has tried what it can alone (abort, deletion of the queue) asks for a reset of the controller.
//! That raises the *epoch*, a number that each queue compares with its own once in a poll. A queue that finds it raised
//! parks: from then on its thread rings no doorbell, and asks again and again whether things are settled. When all queues
//! are parked, or [`PARK_NS`] have passed, whoever asks next does the reset: the controller is disabled (or its function
//! reset, or the subsystem), brought up again, and given its settings. Then each queue's owner gets what was in flight
//! back, as aborted, and a queue of the same id.
//!
//! A thread that did not park in time may still ring its old doorbell; no other queue ever gets that id, so it disturbs
//! nobody, and finds the epoch raised at its next poll. Until then its buffers stay where they are.
//!
//! Nobody waits here: asking is one call that comes back at once, but for the one that does the reset. So a single thread
//! can run several queues, as in virtual time.
#![forbid(unsafe_code)]

use core::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nvmetal_core::command::Command;
use nvmetal_core::command::admin::{Abort, DoorbellBufferConfig};
use nvmetal_core::lifecycle::recovery::{Advice, Means, Recovery, Told};
use nvmetal_core::register::{self, NSSR_RESET};
use serde::Serialize;

use super::{ADMIN_ENTRIES, AdminData, Controller, lifecycle};
use crate::clock::{MILLISECOND_NS, SECOND_NS};
use crate::dma::RingBuffer;
use crate::error::DriverError;
use crate::transport::Waiting;

/// For so long queues are waited for to park. A thread that waits for completions looks at its queue once a second.
const PARK_NS: u64 = 3 * SECOND_NS;
/// The most that a reset can take, every means of it tried; then who waits for it gives up.
const RESET_MOST_NS: u64 = 1800 * SECOND_NS;
/// The resets that a controller gets; one that needs more will need them for ever.
const MOST_RESETS: usize = 16;
/// How long the commands of a recovery may take.
const RESCUE_TIMEOUT_NS: u64 = 5 * SECOND_NS;

/// A reset of the controller that ended well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reset {
    /// Why it was asked for.
    pub cause: String,
    /// What worked.
    pub by: &'static str,
    /// Queues whose thread did not park in time.
    pub late_queues: usize,
    /// When it was asked for, on the device's clock.
    pub at_ns: u64,
    /// From then until the controller took commands again.
    pub took_ns: u64,
}

/// What was done about commands that did not come back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Recoveries {
    /// Commands that the controller was made to abort.
    pub aborted_commands: u64,
    /// Queues that were deleted and made again.
    pub deleted_queues: u64,
    /// Resets of the controller.
    pub resets: Vec<Reset>,
}

impl Recoveries {
    /// Whether there was anything.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Those that came after `before`, which is an earlier state of the same controller.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            aborted_commands: self.aborted_commands.saturating_sub(before.aborted_commands),
            deleted_queues: self.deleted_queues.saturating_sub(before.deleted_queues),
            resets: self.resets.get(before.resets.len()..).unwrap_or_default().to_vec(),
        }
    }
}

impl fmt::Display for Recoveries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |count: u64, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
        let mut parts = Vec::new();
        if self.aborted_commands > 0 {
            parts.push(plural(self.aborted_commands, "command aborted", "commands aborted"));
        }
        if self.deleted_queues > 0 {
            parts.push(plural(self.deleted_queues, "queue deleted and made again", "queues deleted and made again"));
        }
        if let Some(Reset { cause, by, took_ns, .. }) = self.resets.first() {
            let times = plural(self.resets.len() as u64, "reset of the controller", "resets of the controller");
            let took_ms = took_ns / MILLISECOND_NS;
            parts.push(format!("{times}, the first by {by} in {took_ms} ms because {cause}"));
        }
        f.write_str(&parts.join("; "))
    }
}

/// A reset that was asked for.
#[derive(Debug)]
struct Pending {
    cause: String,
    since_ns: u64,
    running: bool,
}

#[derive(Debug, Default)]
struct State {
    /// Queues that there are.
    live: Vec<u16>,
    /// Those of them that are parked.
    parked: Vec<u16>,
    pending: Option<Pending>,
    /// The epoch of the last reset that was done.
    done: u32,
    given_up: Option<String>,
    record: Recoveries,
}

/// Where queues and controller meet.
#[derive(Debug, Default)]
pub(super) struct Desk {
    epoch: AtomicU32,
    state: Mutex<State>,
}

impl Desk {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Controller {
    /// What was done so far about commands that did not come back.
    pub fn recoveries(&self) -> Recoveries {
        self.desk.lock().record.clone()
    }

    /// Asks for a reset of the controller: every queue parks at its next poll. It is done by the queues' threads; see
    /// [`crate::io_queue::IoQueue::try_recover`]. Asking while one is pending changes nothing.
    pub fn request_reset(&self, cause: &str) {
        self.request_reset_in(self.epoch(), cause);
    }

    /// The same for a queue of this epoch; nothing if there was a reset meanwhile, which has ended what it complains of.
    pub(crate) fn request_reset_in(&self, epoch: u32, cause: &str) {
        let mut state = self.desk.lock();
        if state.pending.is_none() && epoch == self.epoch() {
            log::warn!("{}: the controller will be reset: {cause}", self.address());
            state.pending = Some(Pending { cause: cause.to_owned(), since_ns: self.clock().now_ns(), running: false });
            // Relaxed suffices for the number: who finds it raised takes the lock before doing anything about it.
            self.desk.epoch.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The number that a queue compares with its own.
    #[inline(always)]
    pub(crate) fn epoch(&self) -> u32 {
        self.desk.epoch.load(Ordering::Relaxed)
    }

    /// There is a queue from now on; gives the epoch that it belongs to.
    pub(crate) fn queue_begins(&self, queue_id: u16) -> u32 {
        let mut state = self.desk.lock();
        state.live.push(queue_id);
        state.done
    }

    /// There is no such queue any more.
    pub(crate) fn queue_ends(&self, queue_id: u16) {
        let mut state = self.desk.lock();
        state.live.retain(|&live| live != queue_id);
        state.parked.retain(|&parked| parked != queue_id);
    }

    /// The queue was deleted and made again.
    pub(crate) fn note_deleted_queue(&self) {
        self.desk.lock().record.deleted_queues += 1;
    }

    /// The queue is parked. Gives the epoch once the reset is done, and does it if it is time for it.
    ///
    /// # Errors
    /// The controller was given up.
    pub(crate) fn settle(&self, queue_id: u16) -> Result<Option<u32>, DriverError> {
        let mut state = self.desk.lock();
        if let Some(detail) = &state.given_up {
            return Err(self.given_up(detail));
        }
        let State { live, parked, pending, done, .. } = &mut *state;
        let Some(pending) = pending else { return Ok(Some(*done)) };
        if !parked.contains(&queue_id) {
            parked.push(queue_id);
        }
        let now_ns = self.clock().now_ns();
        let waited_ns = now_ns.saturating_sub(pending.since_ns);
        let late_queues = live.iter().filter(|queue_id| !parked.contains(queue_id)).count();
        if pending.running && waited_ns > RESET_MOST_NS {
            return Err(self.given_up("its reset does not end"));
        }
        if pending.running || late_queues > 0 && waited_ns < PARK_NS {
            return Ok(None);
        }
        pending.running = true;
        let (cause, at_ns, resets) = (pending.cause.clone(), pending.since_ns, state.record.resets.len());
        // Others find `running` meanwhile and do not wait for the lock.
        drop(state);
        let outcome = if resets < MOST_RESETS {
            self.reset_by_all_means()
        } else {
            Err(self.given_up(&format!("it has been reset {resets} times; {cause}")))
        };
        let mut state = self.desk.lock();
        state.pending = None;
        state.parked.clear();
        match outcome {
            Ok(by) => {
                let took_ns = self.clock().now_ns().saturating_sub(at_ns);
                state.record.resets.push(Reset { cause, by: by.text(), late_queues, at_ns, took_ns });
                state.done = self.epoch();
                Ok(Some(state.done))
            }
            Err(error) => {
                state.given_up = Some(error.to_string());
                Err(error)
            }
        }
    }

    fn given_up(&self, detail: &str) -> DriverError {
        DriverError::GivenUp { address: self.address().to_owned(), detail: detail.to_owned() }
    }

    /// From whatever state to a controller that takes commands and has its settings.
    fn reset_by_all_means(&self) -> Result<Means, DriverError> {
        let subsystem_reset = self.options.subsystem_reset && self.brought_up.cap.nssrs();
        let mut recovery = Recovery::new(Means::Disable, subsystem_reset);
        let (mut told, mut last) = (Told::Nothing, None);
        loop {
            match recovery.next(self.clock().now_ns(), told) {
                Advice::Do(means) => match self.reset_by(means) {
                    Ok(()) => told = Told::Worked,
                    Err(error) => {
                        log::warn!("{}: {} did not help: {error}", self.address(), means.text());
                        // A device that is gone is not there to be reset.
                        if self.transport.signals().lost {
                            return Err(error);
                        }
                        (told, last) = (Told::Failed, Some(error));
                    }
                },
                Advice::Recovered(means) => return Ok(means),
                Advice::AwaitCommand { .. } | Advice::GiveUp => {
                    let why = last.map_or_else(String::new, |error| format!("; the last means failed: {error}"));
                    return Err(self.given_up(&format!("no reset brings it back{why}")));
                }
            }
        }
    }

    fn reset_by(&self, means: Means) -> Result<(), DriverError> {
        let disable_ms = self.brought_up.cap.timeout_ms();
        {
            // Nobody's admin command may be under way; those that were are over with the queue.
            let mut admin = self.admin.lock().unwrap_or_else(PoisonError::into_inner);
            match means {
                Means::FunctionReset => self.transport.reset()?,
                Means::SubsystemReset => self.transport.write32(register::offset::NSSR, NSSR_RESET)?,
                Means::Abort | Means::DeleteQueue | Means::Disable => {}
            }
            // After the resets, too: RDY = 0 is what proves that the device touches no memory.
            lifecycle::disable(&self.transport, disable_ms)?;
            self.transport.set_bus_master(true)?;
            let submission = RingBuffer::new(&self.transport, usize::from(ADMIN_ENTRIES) * 64)?;
            let completion = RingBuffer::new(&self.transport, usize::from(ADMIN_ENTRIES) * 16)?;
            let options = self.options.bring_up(&submission, &completion);
            match lifecycle::bring_up(&self.transport, options) {
                Ok(now) if now.page == self.brought_up.page && now.cap == self.brought_up.cap => {
                    admin.renew(submission, completion)?;
                }
                outcome => {
                    // It may have been enabled with these rings: only RDY = 0 lets them go.
                    if lifecycle::disable(&self.transport, disable_ms).is_err() {
                        submission.leak();
                        completion.leak();
                    }
                    outcome?;
                    return Err(DriverError::Unusable {
                        address: self.address().to_owned(),
                        detail: "its capabilities are others after a reset".to_owned(),
                    });
                }
            }
        }
        if self.granted_queues > 0 {
            let granted = self.request_queues(self.granted_queues)?;
            if granted < self.granted_queues {
                return Err(DriverError::Unusable {
                    address: self.address().to_owned(),
                    detail: format!(
                        "it grants {granted} queues after a reset, and granted {} before",
                        self.granted_queues
                    ),
                });
            }
        }
        if let Some(pages) = &self.shadows {
            let entry = DoorbellBufferConfig {}.entry().with_prp(pages[0].iova(), pages[1].iova());
            self.admin_entry(entry, AdminData::None)?;
        }
        Ok(())
    }

    /// Asks the controller to abort a command. Admin commands are sent one at a time, so there is never more than one
    /// Abort under way, which every controller takes (ACL).
    pub(crate) fn abort(&self, queue_id: u16, cid: u16) -> Told {
        let abort = Abort { sqid: queue_id, cid };
        match self.admin_within(abort.entry(), AdminData::None, RESCUE_TIMEOUT_NS) {
            Ok(completed) => {
                if completed.dword0 & 1 == 0 {
                    self.desk.lock().record.aborted_commands += 1;
                }
                Told::AbortCompleted { dword0: completed.dword0 }
            }
            Err(error) => {
                log::warn!("{}: {error}", self.address());
                Told::Failed
            }
        }
    }

    /// An admin command of a recovery: it has less time than others.
    pub(crate) fn rescue_command<C: Command>(&self, command: &C) -> Result<(), DriverError> {
        self.admin_within(command.entry(), AdminData::None, RESCUE_TIMEOUT_NS).map(|_| ())
    }

    /// Waits until a pending reset is done, for a queue that is about to end.
    pub(crate) fn settle_at_last(&self, queue_id: u16) -> Result<(), DriverError> {
        while self.settle(queue_id)?.is_none() {
            self.transport.idle(self.clock().now_ns() + MILLISECOND_NS, Waiting::Register);
        }
        Ok(())
    }
}
