//! One value, read from bytes that nobody vouches for, and how it is written for people.
//!
//! A [`Value`] knows its raw number (up to 128 bits) or its bytes, and the [`Shape`] that says what they mean. Its
//! `Display` is one line without a line break, and safe on a terminal: whatever a device puts into a text field, no
//! control character gets through.
#![forbid(unsafe_code)]

use super::{Form, Shape};
use crate::register::Version;
use crate::status::Status;
use ::core::fmt;

/// A value of a field, of one element of an array, or of a group of bits.
#[derive(Clone, Copy, Debug)]
pub struct Value<'a> {
    /// What the bits mean.
    pub shape: Shape,
    number: u128,
    width: u32,
    bytes: &'a [u8],
}

impl<'a> Value<'a> {
    /// The value that these bytes hold, least significant byte first.
    pub fn from_bytes(bytes: &'a [u8], shape: Shape) -> Self {
        let number = bytes.iter().take(16).rev().fold(0, |number, byte| number << 8 | u128::from(*byte));
        Self { shape, number, width: 8 * bytes.len().min(16) as u32, bytes }
    }

    /// The value of a group of bits.
    pub const fn from_bits(number: u128, width: u32, shape: Shape) -> Self {
        Self { shape, number, width, bytes: &[] }
    }

    /// The bits `low` to `low + width - 1` of this value.
    pub fn part(&self, low: u32, width: u32, shape: Shape) -> Value<'static> {
        let mask = if width >= 128 { u128::MAX } else { (1 << width) - 1 };
        Value::from_bits(self.number.checked_shr(low).unwrap_or(0) & mask, width, shape)
    }

    /// The number as it came, for values of at most 128 bits; longer ones give their lowest 128 bits.
    pub const fn raw(&self) -> u128 {
        self.number
    }

    /// Width in bits.
    pub const fn width(&self) -> u32 {
        self.width
    }

    /// The bytes as they came; none for a group of bits.
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Whether all bits are zero.
    pub fn is_zero(&self) -> bool {
        self.number == 0 && self.bytes.iter().all(|byte| *byte == 0)
    }

    /// Whether all bits are one.
    pub fn is_ones(&self) -> bool {
        if self.bytes.is_empty() {
            self.width > 0 && self.number == u128::MAX >> (128 - self.width.min(128))
        } else {
            self.bytes.iter().all(|byte| *byte == 0xff)
        }
    }

    /// What the value means where it is not a number: "not reported" and the like.
    pub fn meaning(&self) -> Option<&'static str> {
        if self.is_zero() && self.shape.zero.is_some() {
            return self.shape.zero;
        }
        if self.is_ones() && self.shape.ones.is_some() {
            return self.shape.ones;
        }
        match self.shape.form {
            Form::Status => Status::from_bits((self.number >> 1) as u16).name(),
            Form::Choice(meanings) => {
                meanings.iter().find(|meaning| u128::from(meaning.value) == self.number).map(|meaning| meaning.name)
            }
            _ => None,
        }
    }

    /// What the raw number counts, in base units: 0's based numbers plus one, powers of two, units multiplied, kelvin as
    /// degrees Celsius. `None` where the raw number says it all, or the result does not fit.
    pub fn counted(&self) -> Option<i128> {
        match self.shape.form {
            Form::ZeroBased => i128::try_from(self.number).ok()?.checked_add(1),
            Form::Amount { each, .. } | Form::Number { each, .. } if each != 1 => {
                i128::try_from(self.number.checked_mul(u128::from(each))?).ok()
            }
            Form::PowerOfTwo { each, .. } => {
                let power = u32::try_from(self.number).ok().filter(|power| *power < 64)?;
                i128::try_from(u128::from(each) << power).ok()
            }
            Form::Kelvin => i128::try_from(self.number).ok().map(|kelvin| kelvin - 273),
            _ => None,
        }
    }

    /// The base unit, where there is one.
    pub const fn unit(&self) -> Option<&'static str> {
        match self.shape.form {
            Form::Amount { unit, .. } | Form::Number { unit, .. } | Form::PowerOfTwo { unit, .. } => Some(unit),
            Form::Kelvin => Some("°C"),
            _ => None,
        }
    }
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Some(meaning), false) = (self.meaning(), matches!(self.shape.form, Form::Choice(_) | Form::Status)) {
            return f.write_str(meaning);
        }
        match self.shape.form {
            Form::Flag => f.write_str(if self.number == 0 { "no" } else { "yes" }),
            Form::Count => write!(f, "{}", self.number),
            Form::Hex | Form::Bits(_) => {
                write!(f, "{:#0width$x}", self.number, width = 2 + self.width.div_ceil(4) as usize)
            }
            Form::ZeroBased => match self.number.checked_add(1) {
                Some(count) => write!(f, "{count}"),
                None => write!(f, "{} + 1", self.number),
            },
            Form::Amount { each, unit } | Form::Number { each, unit } => amount(f, self.number, each, unit),
            Form::PowerOfTwo { each, unit } => match self.counted() {
                Some(amount) if unit == "bytes" => {
                    write!(f, "{}", Bytes { bytes: amount.unsigned_abs(), binary: true })
                }
                Some(amount) => write!(f, "{amount} {unit}"),
                None => write!(f, "2^{} x {each} {unit}", self.number),
            },
            Form::Kelvin => write!(f, "{} °C ({} K)", self.number as i128 - 273, self.number),
            Form::Text => match Ascii(self.bytes) {
                text if text.trimmed().is_empty() => f.write_str("-"),
                text => write!(f, "{text}"),
            },
            Form::Digits => write!(f, "{}", Digits(self.bytes)),
            Form::Oui => self.bytes.iter().rev().try_for_each(|byte| write!(f, "{byte:02x}")),
            Form::Version => write!(f, "{}", Version::from_bits(self.number as u32)),
            Form::Status => write!(f, "{}", Status::from_bits((self.number >> 1) as u16)),
            Form::Choice(_) => match self.meaning() {
                Some(name) => write!(f, "{name} ({})", self.number),
                None => write!(f, "unknown ({:#x})", self.number),
            },
            Form::Nested(descriptor) => f.write_str(descriptor.id),
            Form::Bytes | Form::Reserved if self.bytes.is_empty() => write!(f, "{:#x}", self.number),
            Form::Bytes | Form::Reserved => {
                let used = self.bytes.len() - self.bytes.iter().rev().take_while(|byte| **byte == 0).count();
                match used {
                    0 => write!(f, "{} bytes, all 00h", self.bytes.len()),
                    1..=16 => write!(
                        f,
                        "{}{}",
                        Digits(self.bytes.get(..used).unwrap_or_default()),
                        Rest(self.bytes.len() - used)
                    ),
                    _ => write!(f, "{} bytes, the last that is not 00h at {:#x}", self.bytes.len(), used - 1),
                }
            }
        }
    }
}

/// A number of units: as counted, and in base units where that is another number.
fn amount(f: &mut fmt::Formatter<'_>, count: u128, each: u64, unit: &'static str) -> fmt::Result {
    let Some(total) = count.checked_mul(u128::from(each)) else {
        return write!(f, "{count} (beyond 2^128 {unit})");
    };
    match (each, unit) {
        _ if count == 0 => write!(f, "0{}{unit}", if unit == "%" { "" } else { " " }),
        (1, "%") => write!(f, "{count}%"),
        (1, "bytes") if count >= 10_000 => write!(f, "{count} bytes ({})", Bytes { bytes: count, binary: false }),
        (1, _) if Time { total, unit }.is_same() => write!(f, "{count} {unit}"),
        (1, _) => write!(f, "{count} {unit} ({})", Time { total, unit }),
        (_, "bytes") => write!(f, "{count} ({})", Bytes { bytes: total, binary: each.is_power_of_two() }),
        _ => write!(f, "{count} ({})", Time { total, unit }),
    }
}

/// A time in a larger unit, where it is given in microseconds or milliseconds and has that many.
struct Time {
    total: u128,
    unit: &'static str,
}

impl Time {
    /// How many of the unit make the larger one, and its name.
    fn larger(&self) -> Option<(u128, &'static str)> {
        match (self.unit, self.total) {
            ("us", 1_000_000..) => Some((1_000_000, "s")),
            ("us", 1_000..) => Some((1_000, "ms")),
            ("ms", 1_000..) => Some((1_000, "s")),
            _ => None,
        }
    }

    fn is_same(&self) -> bool {
        self.larger().is_none()
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.larger() {
            None => write!(f, "{} {}", self.total, self.unit),
            Some((each, name)) if self.total.is_multiple_of(each) => write!(f, "{} {name}", self.total / each),
            Some((each, name)) => {
                write!(f, "{}.{:03} {name}", self.total / each, self.total % each * 1000 / each)
            }
        }
    }
}

struct Rest(usize);

impl fmt::Display for Rest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 > 0 { write!(f, " and {} bytes 00h", self.0) } else { Ok(()) }
    }
}

/// A number of bytes with two decimals in the largest unit that is not larger: decimal (kB, MB) or binary (KiB, MiB).
#[derive(Clone, Copy, Debug)]
pub struct Bytes {
    /// The number.
    pub bytes: u128,
    /// Powers of 1,024 rather than 1,000.
    pub binary: bool,
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let base: u128 = if self.binary { 1024 } else { 1000 };
        let names: [&str; 6] =
            if self.binary { ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"] } else { ["kB", "MB", "GB", "TB", "PB", "EB"] };
        let mut unit = 1;
        let mut name = None;
        for larger in names {
            if self.bytes / unit < base {
                break;
            }
            unit *= base;
            name = Some(larger);
        }
        match name {
            None => write!(f, "{} B", self.bytes),
            Some(name) if self.binary && self.bytes.is_multiple_of(unit) => write!(f, "{} {name}", self.bytes / unit),
            Some(name) => {
                // Rounded to the nearest hundredth; the remainder is below the unit, so nothing here can overflow.
                let hundredths = (self.bytes % unit * 100 + unit / 2) / unit;
                let (whole, hundredths) = (self.bytes / unit + hundredths / 100, hundredths % 100);
                write!(f, "{whole}.{hundredths:02} {name}")
            }
        }
    }
}

/// Bytes as hexadecimal digits in their order, as identifiers are written.
#[derive(Clone, Copy, Debug)]
pub struct Digits<'a>(pub &'a [u8]);

impl fmt::Display for Digits<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A text field: ASCII, padded with blanks at either end, ended by a NUL where there is one.
///
/// Bytes that are not printable, and the backslash, are written as `\xNN`.
///
/// ```
/// use nvmetal_core::describe::Ascii;
/// assert_eq!(Ascii(b"    SERIAL01").to_string(), "SERIAL01");
/// assert_eq!(Ascii(b"MPKD0P1\0").to_string(), "MPKD0P1");
/// assert_eq!(Ascii(b"evil\x1b[2J").to_string(), "evil\\x1b[2J");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Ascii<'a>(pub &'a [u8]);

impl<'a> Ascii<'a> {
    /// The bytes without padding.
    pub fn trimmed(&self) -> &'a [u8] {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        self.0.get(..end).unwrap_or_default().trim_ascii()
    }
}

impl fmt::Display for Ascii<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.trimmed() {
            match byte {
                b'\\' | 0..0x20 | 0x7f.. => write!(f, "\\x{byte:02x}")?,
                printable => fmt::Write::write_char(f, char::from(*printable))?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::shape::{COUNT, DATA_UNITS, KELVIN, PERCENT, TEXT, ZERO_BASED, amount, power_of_two};
    use super::*;

    fn shown(bytes: &[u8], shape: Shape) -> String {
        Value::from_bytes(bytes, shape).to_string()
    }

    #[test]
    fn a05_a_temperature_of_zero_kelvin_is_not_reported() {
        assert_eq!(shown(&[0, 0], KELVIN), "not reported");
    }

    #[test]
    fn a07_a_temperature_may_be_below_freezing() {
        assert_eq!(shown(&[0x07, 0x01], KELVIN), "-10 °C (263 K)");
    }

    #[test]
    fn a10_data_units_convert_to_decimal_bytes() {
        let units = |n: u128| Value::from_bytes(&n.to_le_bytes(), DATA_UNITS).to_string();
        assert_eq!(units(13_056_253), "13056253 (6.68 TB)");
        assert_eq!(units(1_526_808_040), "1526808040 (781.73 TB)");
        assert_eq!(units(1_277_863_316), "1277863316 (654.27 TB)");
        assert_eq!(units(452_004), "452004 (231.43 GB)");
        assert_eq!(units(174_848_744), "174848744 (89.52 TB)");
        assert_eq!(units(1), "1 (512.00 kB)");
        assert_eq!(units(0), "0 bytes");
    }

    #[test]
    fn a09_a_counter_of_128_bits_is_printed_whole_and_its_bytes_do_not_wrap() {
        assert_eq!(shown(&[0xff; 16], DATA_UNITS), "340282366920938463463374607431768211455 (beyond 2^128 bytes)");
        assert_eq!(shown(&[0xff; 16], COUNT), "340282366920938463463374607431768211455");
    }

    #[test]
    fn a13_more_than_a_hundred_per_cent_is_shown_as_it_is() {
        assert_eq!(shown(&[200], PERCENT), "200%");
    }

    #[test]
    fn a_time_is_also_said_in_a_unit_that_people_think_in() {
        assert_eq!(shown(&15_000_000_u32.to_le_bytes(), amount(1, "us")), "15000000 us (15 s)");
        assert_eq!(shown(&1_500_u32.to_le_bytes(), amount(1, "us")), "1500 us (1.500 ms)");
        assert_eq!(shown(&[120], amount(500, "ms")), "120 (60 s)");
        assert_eq!(shown(&[1], amount(500, "ms")), "1 (500 ms)");
    }

    #[test]
    fn a_zero_based_number_shows_its_count() {
        assert_eq!(shown(&[0xff, 0xff], ZERO_BASED), "65536");
        assert_eq!(shown(&[0xff; 16], ZERO_BASED), "340282366920938463463374607431768211455 + 1");
    }

    #[test]
    fn b11_a_power_of_two_that_is_too_large_is_left_as_a_power() {
        let mdts = power_of_two(1, "pages").zero("no limit");
        assert_eq!(shown(&[0], mdts), "no limit");
        assert_eq!(shown(&[9], mdts), "512 pages");
        assert_eq!(shown(&[255], mdts), "2^255 x 1 pages");
    }

    #[test]
    fn c24_the_host_memory_buffer_counts_in_4_kib() {
        assert_eq!(shown(&16384_u32.to_le_bytes(), amount(4096, "bytes")), "16384 (64 MiB)");
    }

    #[test]
    fn b08_an_empty_text_is_a_dash() {
        assert_eq!(shown(&[0; 40], TEXT), "-");
        assert_eq!(shown(&[b' '; 40], TEXT), "-");
    }

    #[test]
    fn b09_bytes_that_are_not_printable_are_escaped() {
        assert_eq!(shown(b"A\xff\x07B\x1b[0m\\ ", TEXT), "A\\xff\\x07B\\x1b[0m\\x5c");
    }

    #[test]
    fn rounding_carries_into_the_whole_number() {
        assert_eq!(Bytes { bytes: 1_999_999, binary: false }.to_string(), "2.00 MB");
        assert_eq!(Bytes { bytes: u128::MAX, binary: false }.to_string(), "340282366920938463463.37 EB");
        assert_eq!(Bytes { bytes: 1536, binary: true }.to_string(), "1.50 KiB");
    }
}
