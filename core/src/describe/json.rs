//! JSON for machines, written without an allocator.
//!
//! A structure is an object whose keys are the field ids. A value that needs no interpretation is the number, string or
//! boolean itself. One that does is an object whose `raw` is the field as it came, with `value` in base units and their
//! `unit`, or `meaning` where the number stands for something else ("not reported", the name of a code). A bit field is
//! `raw` and a key for each group of bits. What the bytes do not reach is `null`. Numbers have all their digits, also
//! those of 128 bits. Reserved bytes and bits appear only where they are not zero.
#![forbid(unsafe_code)]

use super::{Ascii, Digits, Field, Form, Part, Value, View};
use crate::status::StatusWord;
use ::core::fmt::{self, Write as _};

/// A structure as JSON, in one line. Made by [`View::json`].
#[derive(Clone, Copy, Debug)]
pub struct Json<'a>(View<'a>);

impl<'a> View<'a> {
    /// The structure as one JSON object in one line.
    pub const fn json(self) -> Json<'a> {
        Json(self)
    }
}

impl fmt::Display for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut object = Object::begin(f)?;
        for field in self.0.descriptor.fields {
            if field.is_reserved() && self.0.value(field, 0).is_none_or(|value| value.is_zero()) {
                continue;
            }
            object.key(field.id)?;
            field_value(object.f, self.0, field)?;
        }
        object.end()
    }
}

fn field_value(f: &mut fmt::Formatter<'_>, view: View<'_>, field: &Field) -> fmt::Result {
    if field.repeat == 1 {
        return match view.value(field, 0) {
            Some(value) => write_value(f, value),
            None => f.write_str("null"),
        };
    }
    if view.element(field, 0).is_none() {
        return f.write_str("null");
    }
    f.write_char('[')?;
    for (index, value) in (0..view.used(field)).map_while(|index| view.value(field, index)).enumerate() {
        if index > 0 {
            f.write_char(',')?;
        }
        write_value(f, value)?;
    }
    f.write_char(']')
}

/// One value, as the module's head says.
pub(crate) fn write_value(f: &mut fmt::Formatter<'_>, value: Value<'_>) -> fmt::Result {
    match value.shape.form {
        Form::Flag => write!(f, "{}", value.raw() != 0),
        Form::Text => string(f, format_args!("{}", Ascii(value.bytes()))),
        Form::Digits => match value.meaning() {
            Some(_) => f.write_str("null"),
            None => string(f, format_args!("{}", Digits(value.bytes()))),
        },
        Form::Oui => string(f, format_args!("{value}")),
        Form::Version | Form::Status => {
            let mut object = Object::begin(f)?;
            object.key("raw")?;
            write!(object.f, "{}", value.raw())?;
            object.key("meaning")?;
            string(object.f, format_args!("{value}"))?;
            if matches!(value.shape.form, Form::Status) {
                parts(&mut object, StatusWord::PARTS, value)?;
            }
            object.end()
        }
        Form::Bytes | Form::Reserved if !value.bytes().is_empty() => {
            let used = value.bytes().len() - value.bytes().iter().rev().take_while(|byte| **byte == 0).count();
            string(f, format_args!("{}", Digits(value.bytes().get(..used).unwrap_or_default())))
        }
        Form::Nested(descriptor) => write!(f, "{}", descriptor.view(value.bytes()).json()),
        Form::Bits(table) => {
            let mut object = Object::begin(f)?;
            object.key("raw")?;
            write!(object.f, "{}", value.raw())?;
            parts(&mut object, table, value)?;
            object.end()
        }
        _ if value.meaning().is_none() && value.counted().is_none() && value.unit().is_none() => {
            write!(f, "{}", value.raw())
        }
        _ => {
            let mut object = Object::begin(f)?;
            object.key("raw")?;
            write!(object.f, "{}", value.raw())?;
            if let Some(meaning) = value.meaning() {
                object.key("meaning")?;
                string(object.f, format_args!("{meaning}"))?;
            } else if let Some(counted) = value.counted() {
                object.key("value")?;
                write!(object.f, "{counted}")?;
            }
            if let Some(unit) = value.unit() {
                object.key("unit")?;
                string(object.f, format_args!("{unit}"))?;
            }
            object.end()
        }
    }
}

/// A key for each group of bits.
fn parts(object: &mut Object<'_, '_>, table: &[Part], value: Value<'_>) -> fmt::Result {
    for part in table {
        let part_value = value.part(part.low.into(), part.width.into(), part.shape);
        if !matches!(part.shape.form, Form::Reserved) {
            object.key(part.id)?;
            write_value(object.f, part_value)?;
        } else if !part_value.is_zero() {
            write!(object.key_with(format_args!("reserved_{}", part.low))?, "{}", part_value.raw())?;
        }
    }
    Ok(())
}

/// A JSON object being written: keys and commas.
pub(crate) struct Object<'a, 'b> {
    pub(crate) f: &'a mut fmt::Formatter<'b>,
    empty: bool,
}

impl<'a, 'b> Object<'a, 'b> {
    pub(crate) fn begin(f: &'a mut fmt::Formatter<'b>) -> Result<Self, fmt::Error> {
        f.write_char('{')?;
        Ok(Self { f, empty: true })
    }

    pub(crate) fn key(&mut self, key: &str) -> fmt::Result {
        self.key_with(format_args!("{key}")).map(|_| ())
    }

    pub(crate) fn key_with(&mut self, key: fmt::Arguments<'_>) -> Result<&mut fmt::Formatter<'b>, fmt::Error> {
        if !self.empty {
            self.f.write_char(',')?;
        }
        self.empty = false;
        string(self.f, key)?;
        self.f.write_char(':')?;
        Ok(self.f)
    }

    pub(crate) fn end(self) -> fmt::Result {
        self.f.write_char('}')
    }
}

/// A JSON string.
pub(crate) fn string(f: &mut fmt::Formatter<'_>, text: fmt::Arguments<'_>) -> fmt::Result {
    struct Escaped<'a, 'b>(&'a mut fmt::Formatter<'b>);
    impl fmt::Write for Escaped<'_, '_> {
        fn write_str(&mut self, s: &str) -> fmt::Result {
            s.chars().try_for_each(|c| match c {
                '"' => self.0.write_str("\\\""),
                '\\' => self.0.write_str("\\\\"),
                c if u32::from(c) < 0x20 => write!(self.0, "\\u{:04x}", u32::from(c)),
                c => self.0.write_char(c),
            })
        }
    }
    f.write_char('"')?;
    fmt::write(&mut Escaped(f), text)?;
    f.write_char('"')
}
