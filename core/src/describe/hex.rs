//! Annotated hex: every byte beside what it means, to be read with the specification open.
//!
//! ```text
//! 000h  00                       critical_warning: 0x00
//! 001h  3a 01                    composite_temperature: 41 °C (314 K)
//! 020h  14 04 00 00 00 00 00 00  data_units_read: 1044 (534.53 MB)
//!       00 00 00 00 00 00 00 00
//! ```
#![forbid(unsafe_code)]

use super::text::PartLine;
use super::{Field, Form, Value, View};
use crate::status::StatusWord;
use ::core::fmt;

/// Bytes in a line.
const LINE: usize = 8;
/// Where the annotation begins, behind the offset and a line of bytes.
const ANNOTATION_INDENT: usize = 6 + 3 * LINE + 1;

/// A structure as annotated hex. Made by [`View::hex`].
#[derive(Clone, Copy, Debug)]
pub struct Hex<'a> {
    view: View<'a>,
    base: usize,
}

impl<'a> View<'a> {
    /// The structure as annotated hex.
    ///
    /// Fields of which all bytes are 00h and that hold nothing else (reserved ones, unused elements of an array) take
    /// one line. Bytes behind the structure are dumped without a word on what they are.
    pub const fn hex(self) -> Hex<'a> {
        Hex { view: self, base: 0 }
    }
}

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for field in self.view.descriptor.fields {
            self.field(f, field)?;
        }
        let tail = self.view.bytes.get(self.view.descriptor.size..).unwrap_or_default();
        if tail.is_empty() || self.base != 0 {
            return Ok(());
        }
        dump(f, self.view.descriptor.size, tail, format_args!("not part of the structure"))
    }
}

impl Hex<'_> {
    fn field(&self, f: &mut fmt::Formatter<'_>, field: &Field) -> fmt::Result {
        let used = self.view.used(field);
        let mut shown = 0;
        while shown < used {
            let Some(value) = self.view.value(field, shown) else { break };
            self.element(f, field, shown, value)?;
            shown += 1;
        }
        let rest = field.offset + shown * field.size;
        match self.view.bytes.get(rest..field.offset + field.bytes()) {
            Some([]) => Ok(()),
            Some(_) => {
                line(f, self.base + rest, &[], format_args!("{}: {} unused, all 00h", field.id, field.repeat - shown))
            }
            None => {
                let cut = self.view.bytes.get(rest..).unwrap_or_default();
                dump(f, self.base + rest, cut, format_args!("{}: not available", field.id))
            }
        }
    }

    fn element(&self, f: &mut fmt::Formatter<'_>, field: &Field, index: usize, value: Value<'_>) -> fmt::Result {
        let at = self.base + field.offset + index * field.size;
        let id = Id { field, index };
        match value.shape.form {
            Form::Nested(descriptor) => {
                line(f, at, &[], format_args!("{id}:"))?;
                write!(f, "{}", Hex { view: descriptor.view(value.bytes()), base: at })
            }
            Form::Bits(_) if value.is_zero() => dump(f, at, value.bytes(), format_args!("{id}: {value}")),
            Form::Bits(parts) => {
                dump(f, at, value.bytes(), format_args!("{id}: {value}"))?;
                parts
                    .iter()
                    .try_for_each(|part| write!(f, "{}", PartLine { part, value, indent: ANNOTATION_INDENT + 2 }))
            }
            Form::Status => {
                dump(f, at, value.bytes(), format_args!("{id}: {value}"))?;
                StatusWord::PARTS
                    .iter()
                    .try_for_each(|part| write!(f, "{}", PartLine { part, value, indent: ANNOTATION_INDENT + 2 }))
            }
            Form::Reserved | Form::Bytes if value.is_zero() => {
                line(f, at, &[], format_args!("{id}: {} bytes, all 00h", value.bytes().len()))
            }
            _ => dump(f, at, value.bytes(), format_args!("{id}: {value}")),
        }
    }
}

/// The id of a field, with the index of an element: `temperature_sensor[1]`.
struct Id<'a> {
    field: &'a Field,
    index: usize,
}

impl fmt::Display for Id<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.field.id)?;
        if self.field.repeat > 1 { write!(f, "[{}]", self.index) } else { Ok(()) }
    }
}

/// One line: offset, at most [`LINE`] bytes, annotation.
fn line(f: &mut fmt::Formatter<'_>, at: usize, bytes: &[u8], annotation: fmt::Arguments<'_>) -> fmt::Result {
    write!(f, "{at:03x}h  ")?;
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x} "))?;
    writeln!(f, "{:pad$}{annotation}", "", pad = 3 * (LINE - bytes.len()) + 1)
}

/// Bytes over as many lines as they need, the annotation beside the first; lines of 00h at the end become one.
fn dump(f: &mut fmt::Formatter<'_>, at: usize, bytes: &[u8], annotation: fmt::Arguments<'_>) -> fmt::Result {
    let (first, rest) = bytes.split_at(bytes.len().min(LINE));
    line(f, at, first, annotation)?;
    let used = rest.len() - rest.iter().rev().take_while(|byte| **byte == 0).count();
    let used = used.next_multiple_of(LINE).min(rest.len());
    let (shown, zeroes) = if rest.len() - used > LINE { rest.split_at(used) } else { (rest, [].as_slice()) };
    for (index, chunk) in shown.chunks(LINE).enumerate() {
        write!(f, "{:03x}h  ", at + LINE + index * LINE)?;
        for (column, byte) in chunk.iter().enumerate() {
            write!(f, "{}{byte:02x}", if column == 0 { "" } else { " " })?;
        }
        writeln!(f)?;
    }
    if zeroes.is_empty() { Ok(()) } else { writeln!(f, "{:03x}h  {} bytes 00h", at + LINE + used, zeroes.len()) }
}
