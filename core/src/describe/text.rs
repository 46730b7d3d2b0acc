//! Text for people: a line for each field, a line for each bit that is set.
#![forbid(unsafe_code)]

use super::{Descriptor, Field, Form, Part, Summary, Value, View};
use crate::status::StatusWord;
use ::core::fmt;

/// Label column of at most this many characters; longer labels push their value to the right.
const LABEL_WIDTH_MAX: usize = 48;

/// A structure as text. Made by [`View::text`].
#[derive(Clone, Copy, Debug)]
pub struct Text<'a> {
    view: View<'a>,
    indent: usize,
}

impl<'a> View<'a> {
    /// The structure as text, one line for each field.
    ///
    /// Reserved fields are left out unless they are not zero; unused elements of an array are left out; a field that
    /// the bytes do not reach is "not available".
    pub const fn text(self) -> Text<'a> {
        Text { view: self, indent: 0 }
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |field: &&Field| !field.is_reserved();
        let width = self.view.descriptor.fields.iter().filter(shown).map(label_width).max().unwrap_or(0);
        let width = width.min(LABEL_WIDTH_MAX);
        self.view.descriptor.fields.iter().try_for_each(|field| self.field(f, field, width))
    }
}

/// Characters that a field's label takes, with the number of an element or the abbreviation behind it.
fn label_width(field: &Field) -> usize {
    let behind = if field.repeat > 1 { 3 } else { abbreviation(field).map_or(0, |id| id.len() + 3) };
    field.label.chars().count() + behind
}

/// The specification's abbreviation, where the id is one.
fn abbreviation(field: &Field) -> Option<&'static str> {
    let said = field.label.split(' ').any(|word| word.eq_ignore_ascii_case(field.id));
    (!field.id.contains('_') && !said).then_some(field.id)
}

/// A label padded to a width: `Maximum Data Transfer Size (MDTS)`, `Temperature Sensor 2`.
struct Label<'a> {
    field: &'a Field,
    index: Option<usize>,
}

impl fmt::Display for Label<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.field.label)?;
        match (self.index, abbreviation(self.field)) {
            (Some(index), _) => write!(f, " {index}"),
            (None, Some(id)) => {
                f.write_str(" (")?;
                id.chars().try_for_each(|c| write!(f, "{}", c.to_ascii_uppercase()))?;
                f.write_str(")")
            }
            (None, None) => Ok(()),
        }
    }
}

/// Counts characters, to pad what `Display` wrote.
struct Counting<'a, 'b> {
    f: &'a mut fmt::Formatter<'b>,
    written: usize,
}

impl fmt::Write for Counting<'_, '_> {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        self.written += s.chars().count();
        self.f.write_str(s)
    }
}

impl Text<'_> {
    fn field(&self, f: &mut fmt::Formatter<'_>, field: &Field, width: usize) -> fmt::Result {
        if field.is_reserved() {
            let Some(value) = self.view.value(field, 0).filter(|value| !value.is_zero()) else { return Ok(()) };
            self.label(f, field, None, width)?;
            return writeln!(f, " {value}");
        }
        let used = self.view.used(field);
        for index in 0..used {
            let Some(value) = self.view.value(field, index) else { break };
            let number = (field.repeat > 1).then_some(index + usize::from(field.counts_from_one()));
            if field.repeat > 1 && value.is_zero() && field.shape.zero.is_some() {
                continue;
            }
            self.label(f, field, number, width)?;
            self.value(f, value)?;
        }
        if self.view.is_cut(field) && (field.repeat == 1 || used < field.repeat) {
            self.label(f, field, None, width)?;
            writeln!(f, " not available")?;
        }
        Ok(())
    }

    fn label(&self, f: &mut fmt::Formatter<'_>, field: &Field, index: Option<usize>, width: usize) -> fmt::Result {
        write!(f, "{:indent$}", "", indent = self.indent)?;
        let mut counting = Counting { f, written: 0 };
        fmt::write(&mut counting, format_args!("{}", Label { field, index }))?;
        let padding = width.saturating_sub(counting.written);
        write!(f, "{:padding$} :", "")
    }

    fn value(&self, f: &mut fmt::Formatter<'_>, value: Value<'_>) -> fmt::Result {
        match value.shape.form {
            Form::Nested(Descriptor { summary: Some(summary), .. }) => {
                writeln!(f, " {}", Summed { view: nested(value), summary: *summary })
            }
            Form::Nested(_) => {
                writeln!(f)?;
                write!(f, "{}", Text { view: nested(value), indent: self.indent + 4 })
            }
            Form::Bits(parts) => match only_part(parts, value) {
                Some(inner) => writeln!(f, " {inner}"),
                None if value.is_zero() => writeln!(f, " {value}"),
                None => {
                    writeln!(f, " {value}")?;
                    self.parts(f, parts, value)
                }
            },
            Form::Status => {
                writeln!(f, " {value}")?;
                self.parts(f, StatusWord::PARTS, value)
            }
            _ => writeln!(f, " {value}"),
        }
    }
}

impl Text<'_> {
    fn parts(&self, f: &mut fmt::Formatter<'_>, parts: &[Part], value: Value<'_>) -> fmt::Result {
        parts.iter().try_for_each(|part| write!(f, "{}", PartLine { part, value, indent: self.indent + 4 }))
    }
}

/// A structure inside another, seen through its own descriptor.
fn nested<'a>(value: Value<'a>) -> View<'a> {
    match value.shape.form {
        Form::Nested(descriptor) => descriptor.view(value.bytes()),
        _ => View { descriptor: &Descriptor { id: "", doc: "", size: 0, fields: &[], summary: None }, bytes: &[] },
    }
}

/// A structure in one line.
struct Summed<'a> {
    view: View<'a>,
    summary: Summary,
}

impl fmt::Display for Summed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (self.summary)(self.view, f)
    }
}

/// The value of the only group of bits that is not reserved, where that is all that the bit field holds.
fn only_part(parts: &[Part], value: Value<'_>) -> Option<Value<'static>> {
    let mut named = parts.iter().filter(|part| !matches!(part.shape.form, Form::Reserved));
    let (part, None) = (named.next()?, named.next()) else { return None };
    let inner = value.part(part.low.into(), part.width.into(), part.shape);
    let rest = value.raw() ^ inner.raw().checked_shl(part.low.into()).unwrap_or(0);
    (rest == 0 && !matches!(part.shape.form, Form::Flag)).then_some(inner)
}

impl Field {
    /// Whether people count the elements from one, as sensors, rather than from zero, as formats and power states.
    const fn counts_from_one(&self) -> bool {
        matches!(self.shape.form, Form::Kelvin | Form::Text)
    }
}

/// The line of one group of bits: nothing for a flag that is not set, or for reserved bits that are zero.
pub(super) struct PartLine<'a> {
    pub part: &'a Part,
    pub value: Value<'a>,
    pub indent: usize,
}

impl fmt::Display for PartLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = self.part;
        let value = self.value.part(part.low.into(), part.width.into(), part.shape);
        if value.is_zero() && matches!(part.shape.form, Form::Flag | Form::Reserved) {
            return Ok(());
        }
        write!(f, "{:indent$}{} {}", "", Place(part), part.label, indent = self.indent)?;
        match part.shape.form {
            Form::Flag => writeln!(f),
            _ => writeln!(f, ": {value}"),
        }
    }
}

/// The bits that a part occupies: `[7]`, `[6:4]`.
struct Place<'a>(&'a Part);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (low, high) = (u32::from(self.0.low), u32::from(self.0.low) + u32::from(self.0.width) - 1);
        if low == high { write!(f, "[{low}]") } else { write!(f, "[{high}:{low}]") }
    }
}
