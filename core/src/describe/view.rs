//! A structure seen through its descriptor: bytes of any length, read as far as they go.
#![forbid(unsafe_code)]

use super::{Descriptor, Field, Form, Part, Value};

/// Bytes and the descriptor that says what they are.
///
/// The bytes may be fewer than the structure has (a page that came short) or more (a page with a tail). Nothing is read
/// past their end: what lies there is `None`, and is shown as "not available".
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// What the bytes are.
    pub descriptor: &'static Descriptor,
    /// The bytes.
    pub bytes: &'a [u8],
}

impl Descriptor {
    /// These bytes seen as this structure.
    pub const fn view<'a>(&'static self, bytes: &'a [u8]) -> View<'a> {
        View { descriptor: self, bytes }
    }

    /// The field with this id.
    pub fn field(&self, id: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.id == id)
    }
}

impl Field {
    /// The groups of bits, where the field is a bit field.
    pub const fn parts(&self) -> &'static [Part] {
        match self.shape.form {
            Form::Bits(parts) => parts,
            _ => &[],
        }
    }

    /// Whether the field is reserved.
    pub const fn is_reserved(&self) -> bool {
        matches!(self.shape.form, Form::Reserved)
    }

    /// Bytes of all elements together.
    pub const fn bytes(&self) -> usize {
        self.size * self.repeat
    }
}

impl<'a> View<'a> {
    /// The bytes of element `index` of a field, where they are all there.
    pub fn element(&self, field: &Field, index: usize) -> Option<&'a [u8]> {
        let start = field.offset.checked_add(field.size.checked_mul(index)?)?;
        self.bytes.get(start..start.checked_add(field.size)?)
    }

    /// Element `index` of a field (0 where it is no array), where it is there.
    pub fn value(&self, field: &Field, index: usize) -> Option<Value<'a>> {
        (index < field.repeat).then(|| self.element(field, index)).flatten().map(|b| Value::from_bytes(b, field.shape))
    }

    /// The value of the field with this id, where the structure has it and the bytes reach that far.
    pub fn get(&self, id: &str) -> Option<Value<'a>> {
        self.value(self.descriptor.field(id)?, 0)
    }

    /// The raw number of the field with this id.
    pub fn raw(&self, id: &str) -> Option<u128> {
        self.get(id).map(|value| value.raw())
    }

    /// How many elements of an array are worth showing: up to the last that is not all zero, as far as they are there.
    ///
    /// A field that is no array is always worth it.
    pub fn used(&self, field: &Field) -> usize {
        if field.repeat == 1 {
            return 1;
        }
        (0..field.repeat)
            .rev()
            .find(|i| self.element(field, *i).is_some_and(|bytes| bytes.iter().any(|byte| *byte != 0)))
            .map_or(0, |last| last + 1)
    }

    /// Whether the bytes end within this field.
    pub fn is_cut(&self, field: &Field) -> bool {
        self.bytes.len() < field.offset + field.bytes()
    }
}
