//! The output forms of nvme-cli 2.x, for scripts that read them.
//!
//! A form is a table of rows that may only refer to fields: which field, how its line begins, its JSON key, in which
//! radix. What a field is and where it lies stays with the structure's own table; a test fails on a row whose field does
//! not exist, and on a field that a form neither prints nor says to leave out. What nvme-cli composes of several fields
//! (power states, LBA formats, self-test results) is written out beside the table.
//!
//! Bytes that a page does not have are left out, not printed as zero.
//!
//! ```
//! use nvmetal_core::nvme_cli;
//! let page = [0; 512];
//! let text = nvme_cli::smart(&page, "nvme0", 0xffff_ffff).to_string();
//! assert!(text.starts_with("Smart Log for NVME device:nvme0 namespace-id:ffffffff\n"));
//! ```
#![forbid(unsafe_code)]

mod identify;
mod log;
mod register;
mod smart;
pub use identify::{controller, controller_json, namespace, namespace_json};
pub use log::{error_log, error_log_json, firmware_log, firmware_log_json, self_test_log, self_test_log_json};
pub use register::{registers, registers_json};
pub use smart::{smart, smart_json};

use crate::describe::{Ascii, Bytes, Descriptor, Field, Value, View};
use crate::status::Status;
use ::core::fmt;

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Radix {
    /// Decimal.
    Decimal,
    /// As C's `%#x`: `0`, `0x1f`.
    Hex,
    /// Decimal with a per cent sign.
    Percent,
    /// Kelvin in Celsius and in kelvin; a number of kelvin in JSON.
    Kelvin,
    /// Data units: the count and its bytes.
    DataUnits,
    /// Text with its padding.
    Text,
    /// Identifier as digits.
    Digits,
    /// Three bytes, least significant first.
    Oui,
    /// Identifier in the groups of a UUID.
    Uuid,
    /// Hexadecimal, with the name of the value.
    Named,
    /// A status field without its phase tag, with the name of the status.
    Status,
    /// The phase tag of a status field.
    Phase,
    /// A firmware revision: the number that its eight bytes are, and the text.
    Revision,
    /// The lower four bits of a byte.
    Low,
    /// The upper four bits of a byte, in text without `0x`.
    High,
    /// Each byte; in JSON one number.
    Bytes,
}

impl Radix {
    /// The number that a value is in JSON; `None` where it is text.
    fn number(self, value: Value<'_>) -> Option<u128> {
        let raw = value.raw();
        match self {
            Self::Text | Self::Digits | Self::Uuid | Self::Revision => None,
            Self::Status => Some(raw >> 1),
            Self::Phase => Some(raw & 1),
            Self::Low => Some(raw & 0xf),
            Self::High => Some(raw >> 4),
            _ => Some(raw),
        }
    }
}

/// A line of a form.
#[derive(Clone, Copy, Debug)]
struct Row {
    /// The field.
    field: &'static str,
    /// How the line begins.
    label: &'static str,
    /// The key in JSON.
    key: &'static str,
    /// How the value is written.
    radix: Radix,
}

/// A form: its rows, and the fields that it does not print, or prints elsewhere.
#[derive(Clone, Copy, Debug)]
struct Form {
    descriptor: &'static Descriptor,
    rows: &'static [Row],
    #[cfg_attr(not(test), expect(dead_code, reason = "what is not printed is named for the test"))]
    left_out: &'static [&'static str],
}

const fn row(field: &'static str, label: &'static str, key: &'static str, radix: Radix) -> Row {
    Row { field, label, key, radix }
}

/// What a function writes.
fn shown<F: Fn(&mut fmt::Formatter<'_>) -> fmt::Result>(write: F) -> impl fmt::Display {
    Shown(write)
}

struct Shown<F>(F);

impl<F: Fn(&mut fmt::Formatter<'_>) -> fmt::Result> fmt::Display for Shown<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (self.0)(f)
    }
}

impl Form {
    const fn view<'a>(&self, page: &'a [u8]) -> View<'a> {
        self.descriptor.view(page)
    }

    /// The lines, for each the label, padded, a colon and the value. Rows for which `skip` holds are left out.
    fn lines(&self, f: &mut fmt::Formatter<'_>, page: &[u8], width: usize, skip: impl Fn(&Row) -> bool) -> fmt::Result {
        let view = self.view(page);
        for row in self.rows.iter().filter(|row| !skip(row)) {
            let Some(field) = self.descriptor.field(row.field) else { continue };
            for (index, value) in values(view, field) {
                let label = Label { row, index };
                writeln!(f, "{label:width$}: {}", Written { value, radix: row.radix, json: false })?;
            }
        }
        Ok(())
    }

    /// The members of a JSON object, without its braces.
    fn members(&self, f: &mut fmt::Formatter<'_>, page: &[u8], skip: impl Fn(&Row) -> bool) -> fmt::Result {
        let view = self.view(page);
        let mut separator = "";
        for row in self.rows.iter().filter(|row| !skip(row)) {
            let Some(field) = self.descriptor.field(row.field) else { continue };
            for (index, value) in values(view, field) {
                write!(f, "{separator}\"{}", row.key)?;
                if let Some(index) = index {
                    write!(f, "_{index}")?;
                }
                f.write_str("\":")?;
                match row.radix.number(value) {
                    Some(number) => write!(f, "{number}")?,
                    None => write!(f, "\"{}\"", Escaped(Written { value, radix: row.radix, json: true }))?,
                }
                separator = ",";
            }
        }
        Ok(())
    }
}

/// The elements of a field that a form prints, as far as the page has them: arrays with their number, counted from one,
/// and without those that are zero.
fn values<'a>(view: View<'a>, field: &'static Field) -> impl Iterator<Item = (Option<usize>, Value<'a>)> {
    let is_array = field.repeat > 1;
    (0..field.repeat)
        .map_while(move |index| view.value(field, index).map(|value| (is_array.then_some(index + 1), value)))
        .filter(move |(_, value)| !is_array || !value.is_zero())
}

/// A label, in arrays with the number in the place of `N`.
struct Label<'a> {
    row: &'a Row,
    index: Option<usize>,
}

impl fmt::Display for Label<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.index, self.row.label.split_once('N')) {
            (Some(index), Some((before, after))) => write!(f, "{before}{index}{after}"),
            _ => f.pad(self.row.label),
        }
    }
}

/// A value as the form writes it.
struct Written<'a> {
    value: Value<'a>,
    radix: Radix,
    /// In JSON the number of a firmware revision is decimal.
    json: bool,
}

impl fmt::Display for Written<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let raw = self.value.raw();
        match self.radix {
            Radix::Decimal => write!(f, "{raw}"),
            Radix::Hex => write!(f, "{}", Hex(raw)),
            Radix::Percent => write!(f, "{raw}%"),
            Radix::Kelvin => write!(f, "{} °C ({raw} K)", raw as i128 - 273),
            Radix::DataUnits => write!(f, "{raw} ({})", DataUnits(raw)),
            Radix::Text => write!(f, "{}", Padded(self.value.bytes())),
            Radix::Digits => write!(f, "{}", crate::describe::Digits(self.value.bytes())),
            Radix::Oui => self.value.bytes().iter().rev().try_for_each(|byte| write!(f, "{byte:02x}")),
            Radix::Uuid => self.value.bytes().iter().enumerate().try_for_each(|(index, byte)| {
                write!(f, "{}{byte:02x}", if matches!(index, 4 | 6 | 8 | 10) { "-" } else { "" })
            }),
            Radix::Named => write!(f, "{} ({})", Hex(raw), self.value.meaning().unwrap_or("unknown")),
            Radix::Status => {
                let status = Status::from_bits((raw >> 1) as u16);
                write!(f, "{} ({})", Hex(raw >> 1), status.name().unwrap_or(status.type_name()))
            }
            Radix::Phase | Radix::Low => write!(f, "{}", Hex(self.radix.number(self.value).unwrap_or(raw))),
            Radix::High => write!(f, "{:x}", raw >> 4),
            Radix::Revision if self.json => write!(f, "{raw} ({})", Padded(self.value.bytes())),
            Radix::Revision => write!(f, "{raw:#016x} ({})", Padded(self.value.bytes())),
            Radix::Bytes => self.value.bytes().iter().enumerate().try_for_each(|(index, byte)| {
                write!(f, "{}{}", if index == 0 { "" } else { " " }, Hex(u128::from(*byte)))
            }),
        }
    }
}

/// A number as C's `%#x` writes it.
struct Hex(u128);

impl fmt::Display for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 { f.write_str("0") } else { write!(f, "{:#x}", self.0) }
    }
}

/// The bytes of a number of data units, always with two decimals; beyond 2^128 bytes in EB, as far as that goes.
struct DataUnits(u128);

impl fmt::Display for DataUnits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.checked_mul(512_000) {
            Some(bytes) if bytes < 1000 => write!(f, "{bytes}.00 B"),
            Some(bytes) => write!(f, "{}", Bytes { bytes, binary: false }),
            None => {
                let hundredths = self.0 / 10_000_000_000_000 * 512;
                write!(f, "{}.{:02} EB", hundredths / 100, hundredths % 100)
            }
        }
    }
}

/// A text field with its blanks, cut at a NUL, what is not printable escaped.
struct Padded<'a>(&'a [u8]);

impl fmt::Display for Padded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        let text = self.0.get(..end).unwrap_or_default();
        let blanks = |bytes: &mut dyn Iterator<Item = &u8>| bytes.take_while(|byte| **byte == b' ').count();
        let leading = blanks(&mut text.iter());
        let trailing = if leading == text.len() { 0 } else { blanks(&mut text.iter().rev()) };
        write!(f, "{:leading$}{}{:trailing$}", "", Ascii(text), "")
    }
}

/// Text inside a JSON string: quotes and backslashes escaped. What is written has no control characters.
struct Escaped<D>(D);

impl<D: fmt::Display> fmt::Display for Escaped<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct Through<'a, 'b>(&'a mut fmt::Formatter<'b>);
        impl fmt::Write for Through<'_, '_> {
            fn write_str(&mut self, s: &str) -> fmt::Result {
                s.chars().try_for_each(|c| {
                    if matches!(c, '"' | '\\') {
                        fmt::Write::write_char(self.0, '\\')?;
                    }
                    fmt::Write::write_char(self.0, c)
                })
            }
        }
        fmt::write(&mut Through(f), format_args!("{}", self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_refers_to_fields_that_exist_and_forgets_none() {
        let forms = [
            smart::FORM,
            identify::CONTROLLER,
            identify::NAMESPACE,
            log::ERROR,
            log::FIRMWARE,
            log::SELF_TEST,
            log::SELF_TEST_RESULT,
            register::FORM,
        ];
        for form in forms {
            let id = form.descriptor.id;
            let is_printed = |name: &str| form.rows.iter().any(|row| row.field == name);
            for name in form.rows.iter().map(|row| row.field).chain(form.left_out.iter().copied()) {
                assert!(form.descriptor.field(name).is_some(), "{id}: no field {name}");
            }
            for field in form.descriptor.fields.iter().filter(|field| !field.is_reserved()) {
                let is_left_out = form.left_out.contains(&field.id);
                assert!(is_printed(field.id) != is_left_out, "{id}.{} is forgotten, or both", field.id);
            }
            for (index, row) in form.rows.iter().enumerate() {
                let is_same = |other: &&Row| other.key == row.key || other.label == row.label;
                assert!(form.rows[..index].iter().find(is_same).is_none(), "{id}: {} twice", row.key);
            }
        }
    }

    #[test]
    fn data_units_beyond_all_numbers_do_not_wrap() {
        assert_eq!(DataUnits(0).to_string(), "0.00 B");
        assert_eq!(DataUnits(1).to_string(), "512.00 kB");
        assert_eq!(DataUnits(174_848_744).to_string(), "89.52 TB");
        assert!(DataUnits(u128::MAX).to_string().ends_with(" EB"));
    }
}
