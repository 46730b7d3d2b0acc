//! What a queue does about a command that does not come back.
//!
//! [`IoQueue::rescue`] takes the next step that its own thread can take: abort, deletion of the queue, a request for a
//! reset of the controller (`nvmetal_core::lifecycle::recovery` has the order). After such a request, by whichever queue,
//! each poll says [`DriverError::Parked`], and [`IoQueue::try_recover`] is asked until it hands back what was in flight.
//!
//! What comes back from here was never completed: a read may or may not have filled its buffer, a write may or may not
//! have reached the drive. The device cannot touch the buffers any more.
#![forbid(unsafe_code)]

use std::sync::Arc;

use nvmetal_core::command::admin::{DeleteIoCompletionQueue, DeleteIoSubmissionQueue};
use nvmetal_core::lifecycle::LifecycleError;
use nvmetal_core::lifecycle::recovery::{Advice, Means, Recovery, Told};
use nvmetal_core::queue::{CompletionRing, DeviceQuiet, Doorbell, SubmissionRing};

use super::{IoQueue, Making, Overdue, Payload};
use crate::dma::RingBuffer;
use crate::error::DriverError;

/// What [`IoQueue::rescue`] has done.
#[derive(Debug)]
#[must_use]
pub enum Rescue<P> {
    /// The command was aborted: its completion is on its way.
    Aborted,
    /// The queue was deleted and made again. These were in flight.
    Emptied(Vec<P>),
    /// A reset of the controller was asked for: the next poll says [`DriverError::Parked`].
    Reset,
}

/// A recovery under way.
#[derive(Debug)]
pub(super) struct Rescuing {
    cid: u16,
    recovery: Recovery,
}

impl<D: Doorbell, P: Payload> IoQueue<D, P> {
    /// Takes the next step for a command that [`IoQueue::overdue`] has found. It may wait some seconds for an admin
    /// command, in which other commands of this queue are not looked at.
    ///
    /// # Errors
    /// The device is gone; the queue was deleted and could not be made again.
    #[cold]
    pub fn rescue(&mut self, overdue: Overdue) -> Result<Rescue<P>, DriverError> {
        if !self.check_health()? {
            return Ok(Rescue::Reset);
        }
        let cid = overdue.cid;
        let mut rescuing = match self.rescuing.take() {
            Some(rescuing) if rescuing.cid == cid => rescuing,
            _ => Rescuing { cid, recovery: Recovery::new(Means::Abort, false) },
        };
        let mut told = Told::Nothing;
        loop {
            // A reset that somebody else has asked for, maybe while this waited, ends the command, too.
            if self.controller.epoch() != self.epoch {
                return Ok(Rescue::Reset);
            }
            match rescuing.recovery.next(self.clock.now_ns(), told) {
                Advice::Do(Means::Abort) => told = self.controller.abort(self.id(), cid),
                Advice::AwaitCommand { until_ns } => {
                    // A command that stays overdue is found again then.
                    self.look_at_ns = until_ns;
                    self.rescuing = Some(rescuing);
                    return Ok(Rescue::Aborted);
                }
                Advice::Do(Means::DeleteQueue) => match self.delete_for_rescue() {
                    Ok(()) => {
                        let back = self.reclaimed(DeviceQuiet::QueueDeleted);
                        self.make_again()?;
                        self.controller.note_deleted_queue();
                        return Ok(Rescue::Emptied(back));
                    }
                    Err(error) => {
                        log::warn!("{}: {error}", self.controller.address());
                        told = Told::Failed;
                    }
                },
                Advice::Do(_) | Advice::Recovered(_) | Advice::GiveUp => {
                    let why = format!("command {cid:#06x} on queue {} was not completed", self.id());
                    self.controller.request_reset_in(self.epoch, &why);
                    return Ok(Rescue::Reset);
                }
            }
        }
    }

    /// Whether the controller works; asks for its reset if it says that only that helps (CSTS.CFS).
    ///
    /// # Errors
    /// The device is gone.
    pub(crate) fn check_health(&self) -> Result<bool, DriverError> {
        match self.controller.check_alive() {
            Ok(()) => Ok(true),
            Err(DriverError::Lifecycle { source: source @ LifecycleError::FatalStatus { .. }, .. }) => {
                self.controller.request_reset_in(self.epoch, &source.to_string());
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// After [`DriverError::Parked`]: gives what was in flight, once the controller has been reset and the queue exists
    /// again; `None` while other queues are waited for. Ask again after some milliseconds, and do not poll meanwhile.
    ///
    /// The reset itself is done in here, by the first that asks when all queues are parked.
    ///
    /// # Errors
    /// [`DriverError::GivenUp`]: no reset brings the controller back. The queue could not be made again.
    #[cold]
    pub fn try_recover(&mut self) -> Result<Option<Vec<P>>, DriverError> {
        let Some(epoch) = self.controller.settle(self.id())? else { return Ok(None) };
        // Not before the controller was disabled to RDY = 0, or its function reset.
        let back = self.reclaimed(DeviceQuiet::ControllerDisabled);
        self.epoch = epoch;
        self.make_again()?;
        Ok(Some(back))
    }

    #[cold]
    pub(super) fn parked(&self) -> DriverError {
        DriverError::Parked { address: self.controller.address().to_owned(), queue: self.id() }
    }

    fn delete_for_rescue(&self) -> Result<(), DriverError> {
        self.controller.rescue_command(&DeleteIoSubmissionQueue { qid: self.id() })?;
        self.controller.rescue_command(&DeleteIoCompletionQueue { qid: self.id() })
    }

    /// Makes sure that the device does not know the queue any more: by deleting it, and where the controller does not answer,
    /// by the reset that others ask for or that is asked for here.
    pub(super) fn delete_or_reset(&self) -> Result<DeviceQuiet, DriverError> {
        if self.controller.epoch() == self.epoch {
            let error = match self.delete_for_rescue() {
                Ok(()) => return Ok(DeviceQuiet::QueueDeleted),
                Err(error) => error,
            };
            if self.controller.epoch() == self.epoch {
                let silent = matches!(error, DriverError::Timeout { .. });
                if self.check_health()? && !silent {
                    return Err(error);
                }
                self.controller.request_reset_in(self.epoch, &format!("queue {} was not deleted", self.id()));
            }
        }
        self.controller.settle_at_last(self.id())?;
        Ok(DeviceQuiet::ControllerDisabled)
    }

    pub(super) fn reclaimed(&mut self, proof: DeviceQuiet) -> Vec<P> {
        core::iter::from_fn(|| self.pair.reclaim(proof)).map(|(_, payload)| payload).collect()
    }

    /// Makes the queue, which does not exist on the controller, again: the same id, new rings.
    fn make_again(&mut self) -> Result<(), DriverError> {
        let made = self.try_make_again();
        if made.is_err() {
            // There is nothing left to be deleted. What the controller may know of, `create` has leaked.
            self.ended = true;
            self.controller.queue_ends(self.id());
        }
        made
    }

    fn try_make_again(&mut self) -> Result<(), DriverError> {
        let controller = Arc::clone(&self.controller);
        let transport = controller.transport();
        let entries = self.entries;
        let submission = RingBuffer::new(transport, entries as usize * 64)?;
        let completion = RingBuffer::new(transport, entries as usize * 16)?;
        let rings =
            (SubmissionRing::new(submission.clone(), entries)?, CompletionRing::new(completion.clone(), entries)?);
        // Doorbells in memory begin at 0 before the controller looks at them.
        self.pair.renew(rings.0, rings.1).map_err(|_| {
            DriverError::Request(format!("{}: queue {} could not be emptied", controller.address(), self.id()))
        })?;
        let making = Making {
            controller: &controller,
            namespace: self.namespace,
            options: self.options,
            queue_id: self.id(),
            epoch: self.epoch,
        };
        let created = making.create(entries, &submission, &completion, self.interrupt.as_ref());
        self.rings = [submission, completion];
        if created.is_err() {
            self.pair.stop();
        }
        created?;
        self.look_at_ns = 0;
        self.rescuing = None;
        Ok(())
    }
}
