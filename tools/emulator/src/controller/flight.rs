//! Commands between their fetch and their completion.
#![forbid(unsafe_code)]

use nvmetal_core::command::SubmissionEntry;
use nvmetal_core::status::Status;

use crate::fault::FaultKind;

/// Names a command in flight; one that has ended is named by no ticket any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket {
    slot: u32,
    generation: u32,
}

/// What is going to happen to a command, decided when it was fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is carried out.
    Execute,
    /// It ends with this status without effect.
    End(Status),
    /// It is never answered.
    Silence,
    /// It is carried out, and what is said of it is wrong in this way.
    Lie(FaultKind),
}

/// A command in flight.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flight {
    pub(crate) entry: SubmissionEntry,
    pub(crate) sqid: u16,
    pub(crate) fate: Fate,
    /// First byte of the namespace.
    pub(crate) first: u64,
    /// Bytes of data that cross the link.
    pub(crate) bytes: u64,
}

#[derive(Debug)]
struct Slot {
    generation: u32,
    flight: Option<Flight>,
}

/// All commands in flight.
#[derive(Debug, Default)]
pub(crate) struct Flights {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

impl Flights {
    pub(crate) fn add(&mut self, flight: Flight) -> Ticket {
        if let Some(slot) = self.free.pop()
            && let Some(place) = self.slots.get_mut(slot as usize)
        {
            place.flight = Some(flight);
            return Ticket { slot, generation: place.generation };
        }
        self.slots.push(Slot { generation: 0, flight: Some(flight) });
        Ticket { slot: self.slots.len() as u32 - 1, generation: 0 }
    }

    pub(crate) fn get(&self, ticket: Ticket) -> Option<&Flight> {
        self.slots.get(ticket.slot as usize).filter(|slot| slot.generation == ticket.generation)?.flight.as_ref()
    }

    pub(crate) fn take(&mut self, ticket: Ticket) -> Option<Flight> {
        let slot = self.slots.get_mut(ticket.slot as usize).filter(|slot| slot.generation == ticket.generation)?;
        let flight = slot.flight.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(ticket.slot);
        Some(flight)
    }

    /// Takes the command of this queue with this identifier.
    pub(crate) fn take_by_id(&mut self, sqid: u16, cid: u16) -> Option<Flight> {
        let ticket = self.find(|flight| flight.sqid == sqid && flight.entry.cid() == cid)?;
        self.take(ticket)
    }

    /// Takes any command of this queue.
    pub(crate) fn take_of_queue(&mut self, sqid: u16) -> Option<Flight> {
        let ticket = self.find(|flight| flight.sqid == sqid)?;
        self.take(ticket)
    }

    fn find(&self, mut wanted: impl FnMut(&Flight) -> bool) -> Option<Ticket> {
        let slot = self.slots.iter().position(|slot| slot.flight.as_ref().is_some_and(&mut wanted))?;
        Some(Ticket { slot: slot as u32, generation: self.slots.get(slot)?.generation })
    }

    /// Forgets all of them: the controller was reset.
    pub(crate) fn clear(&mut self) {
        self.free.clear();
        for (index, slot) in self.slots.iter_mut().enumerate() {
            slot.flight = None;
            slot.generation = slot.generation.wrapping_add(1);
            self.free.push(index as u32);
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
