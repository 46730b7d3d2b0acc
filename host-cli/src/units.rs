//! Numbers as people write and read them.
//!
//! Sizes are read as fio reads them, because that is what people paste: `4k` is 4096. Rates are printed in both
//! families at once (`3562 MB/s, 3397 MiB/s`), because the data sheet uses one and fio the other, and the difference of
//! 4.9 % has been taken for a fault more than once.
#![forbid(unsafe_code)]

use std::time::Duration;

/// Bytes from `4096`, `4k`, `1m`, `2KiB`, `10G`, `4kB`.
///
/// A bare letter and the `iB` form are powers of 1024; so is `kB`, as in fio's default.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, suffix) = text.split_at(digits);
    let number: u64 =
        number.parse().map_err(|_| format!("'{text}' is not a size; write it like 4096, 4k, 128k, 1m or 10g"))?;
    let shift = match suffix.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        "p" | "pb" | "pib" => 50,
        _ => return Err(format!("'{suffix}' is not a unit of size; use k, m, g or t (4k = 4096 bytes)")),
    };
    number.checked_mul(1 << shift).ok_or_else(|| format!("'{text}' is more than 2^64 bytes"))
}

/// A number as the specification and programs write it: `8194`, `0x2002`, `2002h`.
pub fn parse_number(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let hex = text.strip_prefix("0x").or_else(|| text.strip_suffix('h'));
    let (digits, radix) = hex.map_or((text.as_str(), 10), |digits| (digits, 16));
    // `from_str_radix` takes a sign, which no number here has.
    digits.starts_with(|c: char| c.is_ascii_hexdigit()).then(|| u64::from_str_radix(digits, radix).ok()).flatten()
}

/// A duration from `5`, `5s`, `500ms`, `2m`, `1h`; a bare number is seconds.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("'{text}' is not a duration; write it like 5, 5s, 500ms or 2m");
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
    let (number, suffix) = text.split_at(digits);
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let seconds = match suffix {
        "" | "s" => number,
        "ms" => number / 1e3,
        "us" => number / 1e6,
        "m" => number * 60.0,
        "h" => number * 3600.0,
        _ => return Err(wrong()),
    };
    Duration::try_from_secs_f64(seconds).map_err(|_| wrong())
}

/// Bytes per second from `3500`, `3500MB/s`, `3.5GB/s`, `3300MiB/s`; a bare number is in MB/s (10^6), as data sheets
/// have it.
pub fn parse_rate(text: &str) -> Result<f64, String> {
    let wrong = || format!("'{text}' is not a rate; write it like 3500, 3500MB/s, 3.5GB/s or 3300MiB/s");
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
    let (number, unit) = text.split_at(digits);
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let factor = match unit.trim().trim_end_matches("/s").to_ascii_lowercase().as_str() {
        "" | "mb" => 1e6,
        "kb" => 1e3,
        "gb" => 1e9,
        "mib" => f64::from(1 << 20),
        "gib" => f64::from(1 << 30),
        _ => return Err(wrong()),
    };
    if number > 0.0 { Ok(number * factor) } else { Err("an expected rate is above 0".to_owned()) }
}

/// A number of I/Os per second from `500000`, `500k` or `1.2m` (powers of 1000, as data sheets have them).
pub fn parse_iops(text: &str) -> Result<f64, String> {
    let wrong = || format!("'{text}' is not a number of I/Os per second; write it like 500000, 500k or 1.2m");
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
    let (number, unit) = text.split_at(digits);
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        _ => return Err(wrong()),
    };
    if number > 0.0 { Ok(number * factor) } else { Err("an expected number of I/Os is above 0".to_owned()) }
}

/// A rate in both families: `3562 MB/s, 3397 MiB/s`.
pub fn rate(bytes_per_second: f64) -> String {
    let (mega, mebi) = (bytes_per_second / 1e6, bytes_per_second / f64::from(1 << 20));
    let digits = decimals(mebi);
    format!("{mega:.digits$} MB/s, {mebi:.digits$} MiB/s")
}

/// A rate in decimal megabytes only: `3562 MB/s`.
pub fn megabytes(bytes_per_second: f64) -> String {
    let mega = bytes_per_second / 1e6;
    format!("{mega:.*} MB/s", decimals(mega))
}

/// Decimals that leave about three digits: 3562, 81.4, 1.05.
fn decimals(value: f64) -> usize {
    match value {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        _ => 2,
    }
}

/// Bytes in decimal units: `4.00 TB`, `512 B`.
pub fn bytes(count: u128) -> String {
    const UNITS: [&str; 7] = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    let mut value = count as f64;
    let mut unit = 0;
    // 999.995 would be printed as 1000.00.
    while value >= 999.995 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    if unit == 0 { format!("{count} B") } else { format!("{value:.2} {}", UNITS[unit]) }
}

/// Bytes in binary units where they are whole ones: `4 KiB`, `128 KiB`, `1 MiB`, `520 B`.
pub fn block(bytes: u64) -> String {
    for (shift, unit) in [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")] {
        if bytes >= 1 << shift && bytes.is_multiple_of(1 << shift) {
            return format!("{} {unit}", bytes >> shift);
        }
    }
    format!("{bytes} B")
}

/// Nanoseconds in the unit that leaves a short number: `8.12 us`, `1.20 ms`.
pub fn nanoseconds(ns: u64) -> String {
    let ns = ns as f64;
    let (value, unit) = match ns {
        v if v < 1e3 => return format!("{v:.0} ns"),
        v if v < 1e6 => (v / 1e3, "us"),
        v if v < 1e9 => (v / 1e6, "ms"),
        v => (v / 1e9, "s"),
    };
    format!("{value:.*} {unit}", decimals(value))
}

/// A count with thin groups for reading: `1 499 974 106`. For people only.
pub fn grouped(count: u128) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// Degrees Celsius of a temperature in kelvin, by the integer rule that all nvmetal output uses (K - 273).
pub fn celsius(kelvin: u16) -> i32 {
    i32::from(kelvin) - 273
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_in_each_of_its_spellings() {
        for text in ["8194", "0x2002", "2002h", " 0X2002 ", "2002H"] {
            assert_eq!(parse_number(text), Some(0x2002), "{text}");
        }
        for text in ["", "h", "0x", "+1", "zebra", "12g4", "0x1_0"] {
            assert_eq!(parse_number(text), None, "{text}");
        }
    }

    #[test]
    fn sizes_are_read_as_fio_reads_them() {
        for (text, bytes) in [
            ("4096", 4096),
            ("4k", 4096),
            ("4K", 4096),
            ("4kb", 4096),
            ("4KiB", 4096),
            ("128k", 131_072),
            ("1m", 1 << 20),
            ("10G", 10 << 30),
            ("2t", 2 << 40),
            ("0", 0),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "k", "4x", "-4k", "4 k k", "1.5k", "99999999999999999999", "18446744073709551615k"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_have_seconds_as_their_plain_unit() {
        assert_eq!(parse_duration("5"), Ok(Duration::from_secs(5)));
        assert_eq!(parse_duration("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("2m"), Ok(Duration::from_secs(120)));
        for text in ["", "s", "-1", "5x", "1.2.3", "1e99999h"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rates_of_data_sheets_are_decimal() {
        assert_eq!(parse_rate("3500"), Ok(3.5e9));
        assert_eq!(parse_rate("3500MB/s"), Ok(3.5e9));
        assert_eq!(parse_rate("3.5 GB/s"), Ok(3.5e9));
        assert_eq!(parse_rate("1MiB/s"), Ok(1_048_576.0));
        assert_eq!(parse_iops("500k"), Ok(500_000.0));
        assert_eq!(parse_iops("1.2M"), Ok(1_200_000.0));
        for text in ["", "fast", "3500 IOPS", "0", "-1", "1..2"] {
            assert!(parse_rate(text).is_err() && parse_iops(text).is_err(), "{text}");
        }
    }

    #[test]
    fn e16_both_forms_of_a_rate_are_labelled() {
        assert_eq!(rate(5168.0 * 1048576.0), "5419 MB/s, 5168 MiB/s");
        assert_eq!(rate(57_296.20 * 1024.0), "58.7 MB/s, 56.0 MiB/s");
    }

    #[test]
    fn a01_small_byte_counts_are_not_rounded_away() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(7_680_000), "7.68 MB");
        assert_eq!(bytes(534_528_000), "534.53 MB");
        assert_eq!(bytes(999_999), "1.00 MB");
        assert_eq!(bytes(3_840_755_982_336), "3.84 TB");
        assert_eq!(bytes(u128::from(u64::MAX)), "18.45 EB");
    }

    #[test]
    fn whole_blocks_have_binary_units() {
        assert_eq!(block(512), "512 B");
        assert_eq!(block(4096), "4 KiB");
        assert_eq!(block(131_072), "128 KiB");
        assert_eq!(block(4160), "4160 B");
    }

    #[test]
    fn latencies_keep_three_digits() {
        assert_eq!(nanoseconds(812), "812 ns");
        assert_eq!(nanoseconds(8_120), "8.12 us");
        assert_eq!(nanoseconds(81_200), "81.2 us");
        assert_eq!(nanoseconds(1_200_000), "1.20 ms");
        assert_eq!(nanoseconds(2_000_000_000), "2.00 s");
    }

    #[test]
    fn a07_below_freezing_is_negative() {
        assert_eq!(celsius(263), -10);
        assert_eq!(celsius(326), 53);
    }

    #[test]
    fn counts_are_grouped_from_the_right() {
        assert_eq!(grouped(5), "5");
        assert_eq!(grouped(1000), "1 000");
        assert_eq!(grouped(1_499_974_106), "1 499 974 106");
    }
}
