//! Values as people write them in options and model files: `4KiB`, `1TB`, `60us`, `313K`, `gen3x4`.
#![forbid(unsafe_code)]

use crate::link::PcieLink;

/// A number of bytes: a decimal number with `B`, `KB`..`TB` (powers of 1000), `KiB`..`TiB` or a bare `k`, `m`, `g`, `t`
/// (powers of 1024) behind it.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 16] = [
        ("tib", 1 << 40),
        ("gib", 1 << 30),
        ("mib", 1 << 20),
        ("kib", 1 << 10),
        ("tb", 1_000_000_000_000),
        ("gb", 1_000_000_000),
        ("mb", 1_000_000),
        ("kb", 1_000),
        ("t", 1 << 40),
        ("g", 1 << 30),
        ("m", 1 << 20),
        ("k", 1 << 10),
        ("b", 1),
        ("s", 512),
        ("", 1),
        ("", 1),
    ];
    let text = text.to_ascii_lowercase();
    let (digits, each) = UNITS.iter().find_map(|&(unit, each)| text.strip_suffix(unit).map(|digits| (digits, each)))?;
    digits.trim().parse::<u64>().ok()?.checked_mul(each)
}

/// A time in nanoseconds: a number with `ns`, `us`, `ms`, `s` or `h` behind it.
pub(crate) fn time_ns(text: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 5] =
        [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000), ("h", 3_600_000_000_000)];
    let (digits, each) = UNITS.iter().find_map(|&(unit, each)| text.strip_suffix(unit).map(|digits| (digits, each)))?;
    let number: f64 = digits.trim().parse().ok()?;
    let ns = number * each as f64;
    (0.0..1e18).contains(&ns).then(|| ns.round() as u64)
}

/// A temperature in kelvin: `313K`, or degrees Celsius with `C` or nothing behind it.
pub(crate) fn kelvin(text: &str) -> Option<u16> {
    if let Some(kelvin) = text.strip_suffix('K') {
        return kelvin.trim().parse().ok();
    }
    let celsius: i32 = text.strip_suffix('C').unwrap_or(text).trim().parse().ok()?;
    u16::try_from(celsius.checked_add(273)?).ok()
}

/// A link: `gen3x4`.
pub(crate) fn link(text: &str) -> Option<PcieLink> {
    let (generation, width) = text.to_ascii_lowercase().strip_prefix("gen")?.split_once('x').and_then(|(g, w)| {
        let generation = g.parse::<u8>().ok().filter(|g| (1..=6).contains(g))?;
        let width = w.parse::<u8>().ok().filter(|w| [1, 2, 4, 8, 12, 16, 32].contains(w))?;
        Some((generation, width))
    })?;
    Some(PcieLink { generation, width })
}

/// A share: above 0, at most 1.
pub(crate) fn share(text: &str) -> Option<f64> {
    text.parse().ok().filter(|share: &f64| (0.01..=1.0).contains(share))
}

/// A number that is not below 0.
pub(crate) fn positive(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number| (0.0..1e9).contains(number))
}

/// Yes or no.
pub(crate) fn yes_no(text: &str) -> Option<bool> {
    match text {
        "yes" | "on" | "true" | "1" => Some(true),
        "no" | "off" | "false" | "0" => Some(false),
        _ => None,
    }
}

/// A number, decimal or hexadecimal (`0x4`, `4h`).
pub(crate) fn number(text: &str) -> Option<u64> {
    if let Some(hex) = text.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).ok();
    }
    text.strip_suffix('h').map_or_else(|| text.parse().ok(), |hex| u64::from_str_radix(hex, 16).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, expected) in [
            ("4k", Some(4096)),
            ("4KiB", Some(4096)),
            ("4KB", Some(4000)),
            ("1TB", Some(1_000_000_000_000)),
            ("512", Some(512)),
            ("512B", Some(512)),
            ("8s", Some(4096)),
            ("17000000TiB", None),
            ("-1", None),
            ("k", None),
            ("", None),
        ] {
            assert_eq!(bytes(text), expected, "{text}");
        }
    }

    #[test]
    fn times_temperatures_and_links_are_read() {
        assert_eq!(time_ns("1.5us"), Some(1500));
        assert_eq!(time_ns("20ms"), Some(20_000_000));
        assert_eq!(time_ns("5"), None);
        assert_eq!(kelvin("95"), Some(368));
        assert_eq!(kelvin("95C"), Some(368));
        assert_eq!(kelvin("313K"), Some(313));
        assert_eq!(kelvin("-300"), None);
        assert_eq!(link("gen1x1"), Some(PcieLink { generation: 1, width: 1 }));
        assert_eq!(link("gen3x3"), None);
        assert_eq!(link("gen9x4"), None);
        assert_eq!(number("0x10"), Some(16));
        assert_eq!(number("10h"), Some(16));
    }
}
