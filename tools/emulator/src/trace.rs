//! The command log: everything that the controller sees and does, with its time.
//!
//! The last events are kept (a ring), and every opcode is counted for ever, so that a test can say which commands a driver
//! has sent. An event prints itself as one line.
#![forbid(unsafe_code)]

use core::fmt;
use std::collections::VecDeque;

use nvmetal_core::command::SubmissionEntry;
use nvmetal_core::command::admin::AdminOpcode;
use nvmetal_core::command::io::IoOpcode;
use nvmetal_core::register::offset;
use nvmetal_core::status::Status;

/// How many events are kept.
const KEPT: usize = 4096;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happening {
    /// A register was read.
    RegisterRead {
        /// Its offset.
        offset: u64,
        /// The answer.
        value: u64,
    },
    /// A register was written.
    RegisterWrite {
        /// Its offset.
        offset: u64,
        /// The value.
        value: u64,
    },
    /// A doorbell was written.
    Doorbell {
        /// The queue.
        qid: u16,
        /// Whether it is a completion queue's head (else a submission queue's tail).
        completion: bool,
        /// The index.
        value: u32,
    },
    /// A command was fetched.
    Command {
        /// The submission queue.
        qid: u16,
        /// The entry.
        entry: SubmissionEntry,
    },
    /// A command was completed.
    Completion {
        /// The submission queue.
        qid: u16,
        /// The command identifier.
        cid: u16,
        /// Dword 0 of the completion.
        dw0: u32,
        /// How it ended.
        status: Status,
    },
    /// An interrupt was raised.
    Interrupt {
        /// The vector.
        vector: u16,
    },
}

/// Something that happened at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// When, in the emulator's time.
    pub at_ns: u64,
    /// What.
    pub what: Happening,
}

/// The command log.
#[derive(Debug)]
pub struct CommandLog {
    events: VecDeque<Event>,
    recording: bool,
    dropped: u64,
    admin: [u64; 256],
    io: [u64; 256],
}

impl CommandLog {
    pub(crate) fn new() -> Self {
        Self { events: VecDeque::new(), recording: true, dropped: 0, admin: [0; 256], io: [0; 256] }
    }

    /// Whether events are kept at all; opcodes are counted in any case.
    pub fn set_recording(&mut self, on: bool) {
        self.recording = on;
    }

    /// The events kept, the oldest first.
    pub fn events(&self) -> impl Iterator<Item = &Event> {
        self.events.iter()
    }

    /// Takes the events kept, the oldest first.
    pub fn take(&mut self) -> Vec<Event> {
        self.events.drain(..).collect()
    }

    /// How many events were dropped because newer ones came.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Every admin opcode that was seen, and how often.
    pub fn admin_opcodes(&self) -> impl Iterator<Item = (u8, u64)> {
        counted(&self.admin)
    }

    /// Every I/O opcode that was seen, and how often.
    pub fn io_opcodes(&self) -> impl Iterator<Item = (u8, u64)> {
        counted(&self.io)
    }

    #[inline]
    pub(crate) fn record(&mut self, at_ns: u64, what: Happening) {
        if !self.recording {
            return;
        }
        if self.events.len() == KEPT {
            self.events.pop_front();
            self.dropped += 1;
        }
        self.events.push_back(Event { at_ns, what });
    }

    #[inline]
    pub(crate) fn count(&mut self, qid: u16, opcode: u8) {
        let counts = if qid == 0 { &mut self.admin } else { &mut self.io };
        if let Some(count) = counts.get_mut(usize::from(opcode)) {
            *count += 1;
        }
    }
}

fn counted(counts: &[u64; 256]) -> impl Iterator<Item = (u8, u64)> {
    (0..=u8::MAX).zip(counts.iter().copied()).filter(|&(_, count)| count != 0)
}

/// The name of the register at `offset`.
fn register_name(offset: u64) -> &'static str {
    match offset {
        offset::CAP => "CAP",
        offset::VS => "VS",
        offset::INTMS => "INTMS",
        offset::INTMC => "INTMC",
        offset::CC => "CC",
        offset::CSTS => "CSTS",
        offset::NSSR => "NSSR",
        offset::AQA => "AQA",
        offset::ASQ => "ASQ",
        offset::ACQ => "ACQ",
        offset::CMBLOC => "CMBLOC",
        offset::CMBSZ => "CMBSZ",
        offset::CRTO => "CRTO",
        _ => "register",
    }
}

impl fmt::Display for Event {
    /// One line: time in microseconds, direction, what.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>8}.{:03} us  ", self.at_ns / 1000, self.at_ns % 1000)?;
        match self.what {
            Happening::RegisterRead { offset, value } => {
                write!(f, "<- read  {:<8} {offset:#06x}  {value:#x}", register_name(offset))
            }
            Happening::RegisterWrite { offset, value } => {
                write!(f, "-> write {:<8} {offset:#06x}  {value:#x}", register_name(offset))
            }
            Happening::Doorbell { qid, completion: false, value } => write!(f, "-> ring  SQ {qid} tail {value}"),
            Happening::Doorbell { qid, completion: true, value } => write!(f, "-> ring  CQ {qid} head {value}"),
            Happening::Command { qid, entry } => {
                let opcode = entry.opcode();
                let name =
                    if qid == 0 { AdminOpcode::from_bits(opcode).name() } else { IoOpcode::from_bits(opcode).name() };
                write!(f, "-> SQ {qid} {} ({opcode:02X}h) cid {:#06x}", name.unwrap_or("command"), entry.cid())?;
                if entry.nsid() != 0 {
                    write!(f, " nsid {:#x}", entry.nsid())?;
                }
                write!(f, " prp {:#x} {:#x} cdw10-15", entry.prp1(), entry.prp2())?;
                let dwords = [entry.cdw10(), entry.cdw11(), entry.cdw12(), entry.cdw13(), entry.cdw14(), entry.cdw15()];
                dwords.iter().try_for_each(|dword| write!(f, " {dword:x}"))
            }
            Happening::Completion { qid, cid, dw0, status } => {
                write!(f, "<- CQ for SQ {qid} cid {cid:#06x} {status}, dword 0 {dw0:#x}")
            }
            Happening::Interrupt { vector } => write!(f, "<- interrupt vector {vector}"),
        }
    }
}
