//! How a structure tells its fields.
//!
//! Everything that NVMe transfers is described once, as a table of rows: where a field lies, what it is called, what
//! its bits mean, which unit it counts in. Three macros turn such a table into Rust:
//!
//! * [`structure!`](crate::structure) makes a wire structure (little-endian, no padding, offsets asserted at compile
//!   time) and its [`Descriptor`];
//! * [`bits!`](crate::bits) makes a bit field, in a register or inside a structure, and its [`Part`]s;
//! * [`codes!`](crate::codes) makes an open enumeration: known values have names, unknown ones survive.
//!
//! From the descriptor come [text](View::text), [JSON](View::json) and [annotated hex](View::hex), without allocating,
//! for a page of any length: a field that lies past the end of a short page is "not available", never zero.
//!
//! ```
//! use nvmetal_core::describe::Describe;
//! use nvmetal_core::log::Smart;
//!
//! let page = [0x00, 0x3a, 0x01, 98, 10]; // five bytes of a health log page
//! let view = Smart::DESCRIPTOR.view(&page);
//! assert_eq!(view.get("composite_temperature").unwrap().to_string(), "41 °C (314 K)");
//! assert_eq!(view.raw("available_spare"), Some(98));
//! assert!(view.get("percentage_used").is_none());
//! ```
#![forbid(unsafe_code)]

mod hex;
pub(crate) mod json;
mod macros;
mod registry;
mod text;
mod value;
mod view;
pub use hex::Hex;
pub use json::Json;
pub use registry::{structure, structures};
pub use text::Text;
pub use value::{Ascii, Bytes, Digits, Value};
pub use view::View;

#[doc(hidden)]
pub use ::zerocopy as __zerocopy;

/// A structure, told by its fields.
#[derive(Clone, Copy, Debug)]
pub struct Descriptor {
    /// Short name, stable, used on the command line and in JSON: `smart`.
    pub id: &'static str,
    /// What it is and where the specification defines it.
    pub doc: &'static str,
    /// Size in bytes.
    pub size: usize,
    /// The fields in the order of their offsets.
    pub fields: &'static [Field],
    /// How the whole is said in one line, where that says more than its fields one by one.
    pub summary: Option<Summary>,
}

/// Writes a structure in one line, from its bytes.
pub type Summary = fn(View<'_>, &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result;

/// One field of a structure, or an array of equal ones.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Name in the structure and in JSON.
    pub id: &'static str,
    /// Name for people, the specification's where it has one.
    pub label: &'static str,
    /// What the field says.
    pub doc: &'static str,
    /// First byte.
    pub offset: usize,
    /// Bytes of one element.
    pub size: usize,
    /// Elements; 1 where the field is no array.
    pub repeat: usize,
    /// How the bytes are read.
    pub shape: Shape,
}

/// One group of bits in a bit field.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Name of the accessor, and in JSON.
    pub id: &'static str,
    /// Name for people.
    pub label: &'static str,
    /// What the bits say.
    pub doc: &'static str,
    /// Lowest bit.
    pub low: u8,
    /// Number of bits.
    pub width: u8,
    /// How the bits are read.
    pub shape: Shape,
}

/// A value of an enumeration and its meaning.
#[derive(Clone, Copy, Debug)]
pub struct Meaning {
    /// The raw value.
    pub value: u64,
    /// Its name.
    pub name: &'static str,
    /// What it stands for.
    pub doc: &'static str,
}

/// How a value is read and shown.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// What the bits are.
    pub form: Form,
    /// What a raw value of zero means, where that is not the number zero.
    pub zero: Option<&'static str>,
    /// What all bits set mean, where that is not a number.
    pub ones: Option<&'static str>,
}

/// What the bits of a value are.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// One bit: set or not.
    Flag,
    /// A number, shown in decimal.
    Count,
    /// A number, shown in hexadecimal.
    Hex,
    /// A 0's based number: the count is one more.
    ZeroBased,
    /// A number of units, each worth `each` of the base unit.
    Amount {
        /// How many base units one count is worth.
        each: u64,
        /// The base unit.
        unit: &'static str,
    },
    /// The same, over all bytes of a field that is an array of bytes.
    Number {
        /// How many base units one count is worth.
        each: u64,
        /// The base unit.
        unit: &'static str,
    },
    /// Two to the power of the value, times `each` of the base unit.
    PowerOfTwo {
        /// What 2^0 is worth.
        each: u64,
        /// The base unit.
        unit: &'static str,
    },
    /// A temperature in kelvin.
    Kelvin,
    /// ASCII, padded with spaces.
    Text,
    /// An identifier, shown as hexadecimal digits in the order of the bytes.
    Digits,
    /// A vendor's OUI: hexadecimal digits, least significant byte first.
    Oui,
    /// A version of the specification: tertiary, minor and major number from the lowest byte up.
    Version,
    /// A status field of 16 bits, with the phase tag in its lowest bit.
    Status,
    /// A bit field.
    Bits(&'static [Part]),
    /// An enumeration.
    Choice(&'static [Meaning]),
    /// A structure inside this one.
    Nested(&'static Descriptor),
    /// Bytes without a further meaning here.
    Bytes,
    /// Reserved: not shown unless it is not zero.
    Reserved,
}

impl Shape {
    const fn of(form: Form) -> Self {
        Self { form, zero: None, ones: None }
    }

    /// The same shape, in which zero means `what` ("not reported").
    #[must_use]
    pub const fn zero(mut self, what: &'static str) -> Self {
        self.zero = Some(what);
        self
    }

    /// The same shape, in which all bits set mean `what`.
    #[must_use]
    pub const fn ones(mut self, what: &'static str) -> Self {
        self.ones = Some(what);
        self
    }

    /// Whether an array of this shape is one value (text, bytes) rather than one value per element.
    pub const fn is_whole(&self) -> bool {
        matches!(self.form, Form::Text | Form::Digits | Form::Oui | Form::Bytes | Form::Number { .. } | Form::Reserved)
    }
}

/// The shapes by the names that the tables use.
pub mod shape {
    use super::{Descriptor, Form, Meaning, Part, Shape};

    /// One bit.
    pub const FLAG: Shape = Shape::of(Form::Flag);
    /// A decimal number.
    pub const COUNT: Shape = Shape::of(Form::Count);
    /// A hexadecimal number.
    pub const HEX: Shape = Shape::of(Form::Hex);
    /// A 0's based number.
    pub const ZERO_BASED: Shape = Shape::of(Form::ZeroBased);
    /// A temperature in kelvin, 0 where there is none.
    pub const KELVIN: Shape = Shape::of(Form::Kelvin).zero("not reported");
    /// Per cent.
    pub const PERCENT: Shape = amount(1, "%");
    /// Thousands of 512 bytes, as the health log counts data.
    pub const DATA_UNITS: Shape = amount(512_000, "bytes");
    /// ASCII text.
    pub const TEXT: Shape = Shape::of(Form::Text);
    /// An identifier as digits.
    pub const DIGITS: Shape = Shape::of(Form::Digits);
    /// A vendor's OUI.
    pub const OUI: Shape = Shape::of(Form::Oui);
    /// A version of the specification.
    pub const VERSION: Shape = Shape::of(Form::Version);
    /// A status field with its phase tag.
    pub const STATUS: Shape = Shape::of(Form::Status);
    /// Raw bytes.
    pub const BYTES: Shape = Shape::of(Form::Bytes);
    /// Reserved.
    pub const RESERVED: Shape = Shape::of(Form::Reserved);

    /// A number of units.
    pub const fn amount(each: u64, unit: &'static str) -> Shape {
        Shape::of(Form::Amount { each, unit })
    }

    /// An integer over all bytes of the field (3, 6, 10 bytes), in units.
    pub const fn number(each: u64, unit: &'static str) -> Shape {
        Shape::of(Form::Number { each, unit })
    }

    /// Two to the power of the value.
    pub const fn power_of_two(each: u64, unit: &'static str) -> Shape {
        Shape::of(Form::PowerOfTwo { each, unit })
    }

    /// A bit field.
    pub const fn bits(parts: &'static [Part]) -> Shape {
        Shape::of(Form::Bits(parts))
    }

    /// An enumeration.
    pub const fn choice(meanings: &'static [Meaning]) -> Shape {
        Shape::of(Form::Choice(meanings))
    }

    /// A structure inside another.
    pub const fn nested(descriptor: &'static Descriptor) -> Shape {
        Shape::of(Form::Nested(descriptor))
    }
}

/// A structure that has a descriptor.
pub trait Describe: zerocopy::IntoBytes + zerocopy::Immutable + Sized + 'static {
    /// The table of its fields.
    const DESCRIPTOR: Descriptor;

    /// The table, as a reference that lives for ever.
    const DESCRIPTOR_REF: &'static Descriptor = &Self::DESCRIPTOR;

    /// The structure seen through its descriptor.
    fn view(&self) -> View<'_> {
        Self::DESCRIPTOR_REF.view(self.as_bytes())
    }
}

/// How many bytes one element of a field has: arrays of numbers are many values, a number is one.
pub trait Wire {
    /// Bytes of one element.
    const ELEMENT: usize;
}

macro_rules! wire {
    ($($ty:ty),*) => { $(impl Wire for $ty { const ELEMENT: usize = size_of::<$ty>(); })* };
}
wire!(
    u8,
    zerocopy::little_endian::U16,
    zerocopy::little_endian::U32,
    zerocopy::little_endian::U64,
    zerocopy::little_endian::U128
);

impl<T: Wire> Wire for crate::number::ZeroBased<T> {
    const ELEMENT: usize = T::ELEMENT;
}

impl<T: Wire, const N: usize> Wire for [T; N] {
    const ELEMENT: usize = T::ELEMENT;
}
