//! Commands of the NVM command set: their checks and times when they are fetched, their effect when they end.
//!
//! NVM Express NVM Command Set Specification, "I/O Commands".
#![forbid(unsafe_code)]

pub(crate) mod copy;
mod dataset;
mod read_write;

use nvmetal_core::command::SubmissionEntry;
use nvmetal_core::status::Status;

use crate::controller::complete::Outcome;
use crate::controller::flight::{Fate, Flight, Ticket};
use crate::controller::status as code;
use crate::emulator::Emulator;
use crate::event::What;
use crate::fault::{FaultKind, HangUntil, Occasion};
use crate::guest_memory::Access;
use crate::model::MediaKind;

/// The opcodes.
pub(crate) mod opcode {
    pub(crate) const FLUSH: u8 = 0x00;
    pub(crate) const WRITE: u8 = 0x01;
    pub(crate) const READ: u8 = 0x02;
    pub(crate) const WRITE_UNCORRECTABLE: u8 = 0x04;
    pub(crate) const COMPARE: u8 = 0x05;
    pub(crate) const WRITE_ZEROES: u8 = 0x08;
    pub(crate) const DATASET_MANAGEMENT: u8 = 0x09;
    pub(crate) const VERIFY: u8 = 0x0c;
    pub(crate) const COPY: u8 = 0x19;
}

/// A command that is late is so much.
const LATE_NS: u64 = 15_000_000_000;
/// Media goes bad in pieces of this size, as a power of two.
const BAD_SHIFT: u32 = 16;

/// What a command asks of media and link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Work {
    /// First byte in the namespace.
    first: u64,
    /// Bytes of the namespace.
    bytes: u64,
    kind: WorkKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WorkKind {
    /// From the media to the host.
    Read,
    /// From the host to the media.
    Write,
    /// From host and media to be compared.
    Compare,
    /// From the media to nowhere.
    Verify,
    /// Everything buffered to the media.
    Flush,
    /// A few bytes of description from the host; the media is only told.
    Describe,
}

/// First block and number of blocks of a command that has them.
fn blocks(entry: &SubmissionEntry) -> (u64, u64) {
    let first = u64::from(entry.cdw10()) | u64::from(entry.cdw11()) << 32;
    (first, u64::from(entry.cdw12() & 0xffff) + 1)
}

impl Emulator {
    /// A command was fetched from an I/O queue: it is checked, and it is worked out when it will end.
    pub(crate) fn begin_io(&mut self, sqid: u16, entry: SubmissionEntry) {
        let kind = match entry.opcode() {
            opcode::READ => Occasion::Read,
            opcode::WRITE => Occasion::Write,
            _ => Occasion::OtherIo,
        };
        self.health.busy(self.now_ns);
        let mut flight = Flight { entry, sqid, fate: Fate::Execute, first: 0, bytes: 0 };
        let fault = self.faults.hit(kind);
        if let Some(fault) = fault
            && self.befall(fault, entry.nsid())
        {
            return;
        }
        let mut end_ns = self.now_ns + self.options.model.completion;
        let work = self.check_io(&entry);
        match (fault, work) {
            (Some(FaultKind::Timeout | FaultKind::Hang | FaultKind::HangHard), _) => flight.fate = Fate::Silence,
            (Some(FaultKind::ReadErrorForGood), _) => {
                flight.fate = Fate::End(code::UNRECOVERED_READ_ERROR.with_dnr(true));
            }
            (Some(FaultKind::ReadError), _) => {
                let (first, _) = blocks(&entry);
                if let Some(namespace) = self.namespace(entry.nsid()) {
                    namespace.unreadable.insert(first);
                }
                flight.fate = Fate::End(code::UNRECOVERED_READ_ERROR);
            }
            (Some(FaultKind::WriteError), _) => flight.fate = Fate::End(code::WRITE_FAULT),
            (_, Err(status)) => flight.fate = Fate::End(status),
            (None | Some(FaultKind::NamespaceGone | FaultKind::Shrink), Ok(work)) => {
                self.schedule(work, flight);
                return;
            }
            (Some(FaultKind::Late), Ok(_)) => end_ns += LATE_NS,
            (Some(lie), Ok(work)) => {
                flight.fate = Fate::Lie(lie);
                self.schedule(work, flight);
                return;
            }
        }
        if let Fate::End(status) = flight.fate {
            self.note_io_error(&flight, status);
        }
        let ticket = self.flights.add(flight);
        self.events.plan(end_ns, What::Complete(ticket));
    }

    /// What a fault does to more than the one command; whether there is nothing left to be done about the command.
    fn befall(&mut self, fault: FaultKind, nsid: u32) -> bool {
        match fault {
            FaultKind::Fatal => {
                self.fatal();
                return true;
            }
            FaultKind::Hang => self.hang = Some(HangUntil::Disabled),
            FaultKind::HangHard => self.hang = Some(HangUntil::FunctionReset),
            FaultKind::NamespaceGone => self.namespaces.retain(|namespace| namespace.nsid != nsid),
            FaultKind::Shrink => {
                if let Some(namespace) = self.namespace(nsid) {
                    namespace.blocks /= 2;
                }
            }
            _ => {}
        }
        false
    }

    fn schedule(&mut self, work: Work, mut flight: Flight) {
        let now_ns = self.now_ns;
        let completion_ns = self.options.model.completion;
        flight.bytes = work.bytes;
        flight.first = work.first;
        self.warm(&work);
        let (at_ns, transfer) = match work.kind {
            WorkKind::Read => (self.nand.read(now_ns, work.first, work.bytes), true),
            WorkKind::Write => {
                let arrived_ns = self.link.send_to_drive(now_ns, work.bytes);
                (self.nand.write(arrived_ns, work.bytes) + completion_ns, false)
            }
            WorkKind::Compare => {
                let arrived_ns = self.link.send_to_drive(now_ns, work.bytes);
                (self.nand.read(arrived_ns, work.first, work.bytes) + completion_ns, false)
            }
            WorkKind::Verify => (self.nand.read(now_ns, work.first, work.bytes) + completion_ns, false),
            WorkKind::Flush => (self.nand.flush(now_ns) + completion_ns, false),
            WorkKind::Describe => {
                let arrived_ns = self.link.send_to_drive(now_ns, work.bytes);
                (arrived_ns + self.options.model.write_latency + completion_ns, false)
            }
        };
        let ticket = self.flights.add(flight);
        self.events.plan(at_ns, if transfer { What::Transfer(ticket) } else { What::Complete(ticket) });
    }

    /// What a command does to the temperature, and the temperature to what comes after it.
    fn warm(&mut self, work: &Work) {
        let model = &self.options.model;
        let moved = match work.kind {
            WorkKind::Flush | WorkKind::Describe => 0,
            WorkKind::Read | WorkKind::Write | WorkKind::Compare | WorkKind::Verify => work.bytes,
        };
        self.moved_bytes += moved;
        let thermal = &mut self.health.thermal;
        thermal.moved(model, moved, work.kind == WorkKind::Write);
        thermal.pass(model, self.now_ns);
        let share = thermal.share(model);
        if share < 1.0 {
            let raw = self.options.link().raw_bytes_per_s() * model.link_efficiency;
            let service_ns = model.command as f64 + moved as f64 / raw * 1e9;
            self.fetch_free_ns += (service_ns / share) as u64;
        }
    }

    /// Whether a piece of media that is beyond repair lies among these bytes.
    fn is_bad(&self, flight: &Flight) -> bool {
        let one_of = self.options.model.bad_piece;
        one_of != 0
            && (flight.first >> BAD_SHIFT..=(flight.first + flight.bytes.max(1) - 1) >> BAD_SHIFT).any(|piece| {
                let mixed = (piece ^ self.options.seed << 48).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                ((mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 32).is_multiple_of(one_of)
            })
    }

    /// The media has the data of a read: it goes over the link.
    pub(crate) fn transfer(&mut self, ticket: Ticket) {
        let Some((first, bytes)) = self.flights.get(ticket).map(|flight| (flight.first, flight.bytes)) else { return };
        // What has come over the channel goes on over the link while the rest still comes.
        let read_ns = self.nand.channel(self.now_ns, first, bytes);
        let end_ns = self.link.send_to_host(self.now_ns, bytes).max(read_ns) + self.options.model.completion;
        self.events.plan(end_ns, What::Complete(ticket));
    }

    /// What can be said of a command before it touches anything.
    fn check_io(&mut self, entry: &SubmissionEntry) -> Result<Work, Status> {
        if entry.fuse() != 0 {
            return Err(code::INVALID_FIELD);
        }
        if self.sanitize.is_running() {
            return Err(code::SANITIZE_IN_PROGRESS);
        }
        let mdts = self.options.mdts;
        let nsid = entry.nsid();
        let kind = match entry.opcode() {
            opcode::FLUSH => {
                if nsid != u32::MAX {
                    self.namespace(nsid).ok_or(code::INVALID_NAMESPACE)?;
                }
                return Ok(Work { first: 0, bytes: 0, kind: WorkKind::Flush });
            }
            opcode::READ => WorkKind::Read,
            opcode::WRITE => WorkKind::Write,
            opcode::COMPARE => WorkKind::Compare,
            opcode::VERIFY => WorkKind::Verify,
            opcode::WRITE_ZEROES | opcode::WRITE_UNCORRECTABLE | opcode::DATASET_MANAGEMENT | opcode::COPY => {
                WorkKind::Describe
            }
            _ => return Err(code::INVALID_OPCODE),
        };
        let namespace = self.namespace(nsid).ok_or(code::INVALID_NAMESPACE)?;
        if entry.opcode() == opcode::DATASET_MANAGEMENT {
            let ranges = u64::from(entry.cdw10() & 0xff) + 1;
            return Ok(Work { first: 0, bytes: ranges * 16, kind });
        }
        if entry.opcode() == opcode::COPY {
            return Ok(Work { first: 0, bytes: copy::list_bytes(entry)?, kind });
        }
        let (first, count) = blocks(entry);
        if !namespace.contains(first, count) {
            return Err(code::LBA_OUT_OF_RANGE);
        }
        let (first, bytes) = (first << namespace.lbads, namespace.transfer_bytes(count));
        if mdts != 0 && bytes > 4096 << mdts && kind != WorkKind::Verify && kind != WorkKind::Describe {
            return Err(code::INVALID_FIELD);
        }
        let bytes = if kind == WorkKind::Describe { 0 } else { bytes };
        Ok(Work { first, bytes, kind })
    }

    /// The effect of a command.
    pub(crate) fn execute_io(&mut self, flight: &Flight, access: &Access<'_>) -> Outcome {
        let entry = &flight.entry;
        let reads = matches!(entry.opcode(), opcode::READ | opcode::COMPARE | opcode::VERIFY);
        let outcome = match entry.opcode() {
            _ if reads && self.is_bad(flight) => Err(code::UNRECOVERED_READ_ERROR),
            opcode::FLUSH => Ok(()),
            opcode::READ => self.read_blocks(flight, access),
            opcode::WRITE => self.write_blocks(flight, access),
            opcode::COMPARE => self.compare_blocks(flight, access),
            opcode::VERIFY => self.verify_blocks(entry),
            opcode::WRITE_ZEROES => self.write_zeroes(entry),
            opcode::WRITE_UNCORRECTABLE => self.write_uncorrectable(entry),
            opcode::COPY => self.copy_blocks(flight, access),
            opcode::DATASET_MANAGEMENT => self.dataset_management(flight, access),
            _ => Err(code::INVALID_OPCODE),
        };
        match outcome {
            Ok(()) => Ok(0),
            Err(status) => {
                self.note_io_error(flight, status);
                Err(status)
            }
        }
    }

    fn note_io_error(&mut self, flight: &Flight, status: Status) {
        // A failed compare is an answer, not an error of the drive.
        if status == code::COMPARE_FAILURE {
            return;
        }
        if status.sct() == 2 {
            self.health.media_error();
        }
        self.error_log.note(flight.sqid, &flight.entry, status, blocks(&flight.entry).0);
    }

    /// Whether data moves at all.
    fn moves_data(&self) -> bool {
        self.options.model.media != MediaKind::Null
    }
}
