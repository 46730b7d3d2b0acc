//! `--trace`: the conversation with the drive, one line per event, on standard error.
//!
//! This is where a person sees NVMe happen: the registers of the bring-up with their fields, each command as it lies in
//! the submission queue, the doorbell that makes the controller look, the completion that answers. Flags and numbers that
//! are zero are left out. The time is the transport's clock, so it is virtual on the emulator.
//!
//! A register that is read again and again until it changes is told once, and how often it was the same after that.
#![forbid(unsafe_code)]

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};

use nvmetal_core::command::{CommandDescriptor, SubmissionEntry, admin, io};
use nvmetal_core::completion::CompletionEntry;
use nvmetal_core::describe::{Bytes, Describe, Field, Form, Value};
use nvmetal_core::register::{Capabilities, Registers, doorbell_offset, offset};
use nvmetal_driver::transport::traced::{Event, Observer};

/// Writes each event as a line.
#[derive(Debug, Default)]
pub struct Lines(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// CAP.DSTRD, seen when CAP was read: without it a doorbell's offset does not tell its queue.
    dstrd: u8,
    /// The event before, and how often it came again without another in between.
    last: Option<Event>,
    again: u64,
    at_ns: u64,
}

impl State {
    /// The lines that `event` adds.
    fn tell(&mut self, at_ns: u64, event: &Event) -> String {
        if let Event::Read { offset: offset::CAP, bytes: 8, value } = event {
            self.dstrd = Capabilities::from_bits(*value).dstrd();
        }
        if matches!(event, Event::Read { .. }) && self.last.as_ref() == Some(event) {
            self.again += 1;
            self.at_ns = at_ns;
            return String::new();
        }
        let mut lines = self.repeated();
        let _ = writeln!(lines, "{}  {}", time(at_ns), line(event, self.dstrd));
        self.last = Some(event.clone());
        lines
    }

    /// What is left to say of an event that came again.
    fn repeated(&mut self) -> String {
        match std::mem::take(&mut self.again) {
            0 => String::new(),
            1 => format!("{}         the same once more\n", time(self.at_ns)),
            again => format!("{}         the same {again} more times\n", time(self.at_ns)),
        }
    }
}

impl Observer for Lines {
    fn event(&self, at_ns: u64, event: &Event) {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner).tell(at_ns, event);
        // Nobody is left to tell where standard error is closed.
        let _ = std::io::stderr().lock().write_all(lines.as_bytes());
    }
}

fn time(at_ns: u64) -> String {
    format!("{:>8}.{:03} us", at_ns / 1000, at_ns % 1000)
}

/// The event in words.
fn line(event: &Event, dstrd: u8) -> String {
    match event {
        Event::Read { offset, bytes, value } => register("read ", *offset, *bytes, *value),
        Event::Write { offset, bytes, value } => register("write", *offset, *bytes, *value),
        Event::Doorbell { offset, value } => {
            let (queue, completion) = queue(*offset, dstrd);
            let (ring, index) = if completion { ("CQ", "head") } else { ("SQ", "tail") };
            format!("ring   {ring}{queue} {index} {value}")
        }
        Event::Submitted { doorbell_offset, entry } => submitted(queue(*doorbell_offset, dstrd).0, entry),
        Event::Completed { doorbell_offset, entry } => completed(queue(*doorbell_offset, dstrd).0, *entry),
        Event::Map { iova, bytes } => format!("map    {} at {iova:#x}", size(*bytes)),
        Event::Unmap { iova, bytes } => format!("unmap  {} at {iova:#x}", size(*bytes)),
        Event::Interrupts { count } => format!("setup  {count} interrupt vectors"),
        Event::BusMaster { on } => format!("setup  bus master {}", if *on { "on" } else { "off" }),
        Event::Reset => "reset  the function".to_owned(),
    }
}

fn size(bytes: u64) -> Bytes {
    Bytes { bytes: bytes.into(), binary: true }
}

/// The queue that a doorbell belongs to, and whether it is the completion queue's.
fn queue(doorbell: u64, dstrd: u8) -> (u64, bool) {
    let stride = doorbell_offset(0, true, dstrd) - offset::DOORBELLS;
    let index = doorbell.saturating_sub(offset::DOORBELLS) / stride;
    (index / 2, index % 2 == 1)
}

/// The register at an offset, or the half of one that is read in two.
fn field_at(at: u64) -> Option<&'static Field> {
    let at = usize::try_from(at).ok()?;
    let within = |field: &&Field| (field.offset..field.offset + field.size).contains(&at) && !field.is_reserved();
    Registers::DESCRIPTOR_REF.fields.iter().find(within)
}

fn register(verb: &str, at: u64, bytes: u8, value: u64) -> String {
    let digits = 2 + 2 * usize::from(bytes);
    let Some(field) = field_at(at) else { return format!("{verb}  {at:#06x}  {value:#0digits$x}") };
    let name = field.id.to_uppercase();
    let first = at as usize - field.offset;
    let half = if first == 0 { String::new() } else { format!("+{first}") };
    let mut line = format!("{verb}  {:<7} {value:#0digits$x}", name + &half);
    if value == 0 || value == u64::MAX >> (64 - 8 * u32::from(bytes)) {
        return line;
    }
    let whole = Value::from_bits(u128::from(value) << (8 * first), 8 * field.size as u32, field.shape);
    if field.parts().is_empty() && usize::from(bytes) == field.size {
        let text = whole.to_string();
        if !text.starts_with("0x") {
            let _ = write!(line, "  {text}");
        }
    }
    for part in field.parts() {
        let value = whole.part(part.low.into(), part.width.into(), part.shape);
        if !value.is_zero() {
            let _ = write!(line, "  {}={value}", part.id);
        }
    }
    line
}

/// Fields of which zero is as good a value as any other: what to identify, the first block.
const TOLD_AT_ZERO: &[&str] = &["cns", "slba"];

/// The command of an entry, where it is one that we know.
fn command_of(queue: u64, opcode: u8) -> Option<&'static CommandDescriptor> {
    let commands = if queue == 0 { admin::COMMANDS } else { io::COMMANDS };
    commands.iter().find(|command| command.opcode == opcode)
}

fn submitted(queue: u64, entry: &SubmissionEntry) -> String {
    let mut line = format!("-> SQ{queue} {:#06x}  ", entry.cid());
    let Some(command) = command_of(queue, entry.opcode()) else {
        let _ = write!(line, "opcode {:#04x}  {:08x?}", entry.opcode(), entry.dwords());
        return line;
    };
    line.push_str(command.name);
    for field in command.fields {
        let raw = entry.field(field.dword.into(), field.low.into(), field.width.into());
        let value = Value::from_bits(raw.into(), field.width.into(), field.shape);
        if !value.is_zero() || matches!(field.shape.form, Form::ZeroBased) || TOLD_AT_ZERO.contains(&field.id) {
            let _ = write!(line, "  {}={value}", field.id);
        }
    }
    for (name, value) in [("mptr", entry.mptr()), ("prp1", entry.prp1()), ("prp2", entry.prp2())] {
        if value != 0 {
            let _ = write!(line, "  {name}={value:#x}");
        }
    }
    line
}

fn completed(queue: u64, entry: CompletionEntry) -> String {
    let mut line = format!("<- CQ{queue} {:#06x}  {}", entry.cid(), entry.status());
    if entry.result() != 0 {
        let _ = write!(line, "  result={:#x}", entry.result());
    }
    let _ = write!(line, "  sqhd={} phase={}", entry.sqhd(), u8::from(entry.phase()));
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use nvmetal_core::command::Command;

    #[test]
    fn a_register_is_told_with_its_fields_and_those_that_are_zero_left_out() {
        let enabled = Event::Write { offset: 0x14, bytes: 4, value: 0x0046_0001 };
        assert_eq!(line(&enabled, 0), "write  CC      0x00460001  en=yes  iosqes=64 B  iocqes=16 B");
        let version = Event::Read { offset: 0x08, bytes: 4, value: 0x0002_0100 };
        assert_eq!(line(&version, 0), "read   VS      0x00020100  2.1.0");
        let gone = Event::Read { offset: 0x1c, bytes: 4, value: 0xffff_ffff };
        assert_eq!(line(&gone, 0), "read   CSTS    0xffffffff");
    }

    #[test]
    fn a_register_that_stays_the_same_is_told_once_with_how_often() {
        let mut state = State::default();
        let csts = |value| Event::Read { offset: 0x1c, bytes: 4, value };
        let told: String = [(0, 0), (100, 0), (2_200, 0), (3_000, 1), (4_000, 1), (5_000, 0)]
            .into_iter()
            .map(|(at_ns, value)| state.tell(at_ns, &csts(value)))
            .collect();
        let expected = "       0.000 us  read   CSTS    0x00000000\n       2.200 us         the same 2 more times\n       \
                        3.000 us  read   CSTS    0x00000001  rdy=yes\n       4.000 us         the same once more\n       \
                        5.000 us  read   CSTS    0x00000000\n";
        assert_eq!(told, expected);
    }

    #[test]
    fn the_half_of_a_register_is_told_with_the_fields_of_that_half() {
        let upper = Event::Read { offset: 0x04, bytes: 4, value: 0x20 };
        assert_eq!(line(&upper, 0), "read   CAP+4   0x00000020  css_nvm=yes");
    }

    #[test]
    fn a_doorbell_belongs_to_a_queue_by_the_stride() {
        let ring = |offset, dstrd| line(&Event::Doorbell { offset, value: 3 }, dstrd);
        assert_eq!(ring(0x1000, 0), "ring   SQ0 tail 3");
        assert_eq!(ring(0x100c, 0), "ring   CQ1 head 3");
        assert_eq!(ring(0x1030, 2), "ring   CQ1 head 3");
    }

    #[test]
    fn a_command_is_told_by_name_and_an_unknown_one_by_its_dwords() {
        let entry = io::Read { nsid: 1, slba: 8, ..io::Read::default() }.entry().with_cid(0x10).with_prp(0x1000, 0);
        let told = line(&Event::Submitted { doorbell_offset: 0x1008, entry }, 0);
        assert_eq!(told, "-> SQ1 0x0010  Read  nsid=0x00000001  slba=0x0000000000000008  nlb=1  prp1=0x1000");
        let entry = SubmissionEntry::new(0xc5).with_cid(1);
        let told = line(&Event::Submitted { doorbell_offset: 0x1000, entry }, 0);
        assert!(told.starts_with("-> SQ0 0x0001  opcode 0xc5  [000100c5, 00000000"), "{told}");
    }
}
