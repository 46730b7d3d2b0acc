//! Reading a dump: the bytes of a structure as other tools write them.
//!
//! A dump is the bytes themselves, or text: plain hex (also `xxd -p` and a C array), or rows of an offset and bytes as
//! `xxd`, `hexdump -C`, `hexdump`, `od` and nvme-cli write them. Which it is shows in the bytes: text has no control
//! characters, and a page of an NVMe drive that has none is yet to be seen. What rows leave out between two offsets is
//! zero, or the row before repeated where a `*` says so.
//!
//! A number that is written with `0x` and has 4, 8 or 16 digits is a number and lies in memory with its least significant
//! byte first, as in a list of a command's dwords; digits without `0x` are bytes in their order.
#![forbid(unsafe_code)]

use std::io::Read;
use std::path::Path;

use crate::error::{Error, FileContext, Result};

/// No structure is as long as this; a dump that is longer is another file.
const MOST_BYTES: u64 = 64 << 20;

/// What a file is said to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Whatever it looks like.
    Any,
    /// Hex in text.
    Hex,
    /// The bytes.
    Binary,
}

/// Reads a file, or standard input where it is called `-`.
pub fn read(path: &Path, kind: Kind) -> Result<Vec<u8>> {
    let name = if path.as_os_str() == "-" { "standard input".to_owned() } else { path.display().to_string() };
    let mut bytes = Vec::new();
    let read = if path.as_os_str() == "-" {
        std::io::stdin().lock().take(MOST_BYTES + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes))
    };
    read.file("read", name.as_ref())?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(Error::usage(format!("{name} is longer than any structure (64 MiB)")));
    }
    let bytes = match (kind, text(&bytes)) {
        (Kind::Any | Kind::Hex, Some(text)) => {
            parse(text).map_err(|problem| Error::usage(format!("{name}: {problem}")).remedy(FORMS))?
        }
        (Kind::Hex, None) => return Err(Error::usage(format!("{name} is no text")).remedy(FORMS)),
        (Kind::Any, None) | (Kind::Binary, _) => bytes,
    };
    if bytes.is_empty() {
        return Err(Error::usage(format!("{name} holds no bytes")).remedy(FORMS));
    }
    Ok(bytes)
}

const FORMS: &str = "A dump is binary, or hex as `xxd`, `hexdump -C` or nvme-cli write it; `--binary` takes the bytes as \
                     they are.";

/// The bytes as text, where they are text.
fn text(bytes: &[u8]) -> Option<&str> {
    let is_text = |c: char| !c.is_control() || matches!(c, '\t' | '\n' | '\r');
    std::str::from_utf8(bytes).ok().filter(|text| text.chars().all(is_text))
}

/// Columns of the bytes in a row of nvmetal's own dump.
const OWN_BYTES_COLUMNS: usize = 8 * 3 - 1;

/// A row of a dump.
#[derive(Debug, Default)]
struct Row<'a> {
    line: usize,
    /// The offset's digits, where the row has one.
    offset: Option<&'a str>,
    bytes: Vec<u8>,
    /// The row before repeats up to this one.
    after_star: bool,
}

/// The bytes of a dump in text.
fn parse(text: &str) -> Result<Vec<u8>, String> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    let mut length = None;
    let mut after_star = false;
    // In nvmetal's own dump a line without an offset names what follows.
    let is_own = text.lines().any(is_title);
    for (line, content) in text.lines().enumerate().map(|(index, line)| (index + 1, line.trim())) {
        if let Some(comment) = content.strip_prefix('#') {
            length = comment.trim().strip_prefix("length:").and_then(|n| n.trim().parse().ok()).or(length);
        } else if content == "*" {
            after_star = true;
        } else if !is_head(content) && (!is_own || content.contains("h  ")) {
            let row = row(line, content)?;
            rows.push(Row { after_star: std::mem::take(&mut after_star), ..row });
        }
    }
    // One number of eight digits alone is no offset of anything.
    let has_places = rows.iter().all(|row| row.offset.is_some()) && rows.iter().any(|row| !row.bytes.is_empty());
    let mut bytes = if has_places { place(&rows)? } else { join(rows)? };
    if let Some(length) = length.filter(|&length: &usize| length as u64 <= MOST_BYTES) {
        bytes.resize(length, 0);
    }
    Ok(bytes)
}

/// Lines that say nothing of the bytes: empty ones, nvme-cli's row of column numbers and what it says above it.
fn is_head(line: &str) -> bool {
    let columns = || line.split_whitespace().enumerate().all(|(i, word)| word == format!("{i:x}"));
    // nvmetal's own dump names the structure and the drive.
    let is_title = line.contains(", serial ") && line.contains(" of ");
    line.is_empty()
        || is_title
        || line.starts_with("Device:")
        || line.ends_with(": Success")
        || (line.len() > 10 && columns())
}

/// The first line of nvmetal's own dump: the structure and the drive.
fn is_title(line: &str) -> bool {
    line.contains(" of ") && line.contains(", serial ")
}

/// One line: an offset and bytes, or only bytes.
fn row(line: usize, content: &str) -> Result<Row<'_>, String> {
    let is_hex = |word: &str| !word.is_empty() && word.bytes().all(|digit| digit.is_ascii_hexdigit());
    // xxd, nvme-cli, debuggers: a colon behind the offset; text beside the bytes is quoted or set off by two blanks.
    if let Some((offset, rest)) = content.split_once(':').filter(|(o, _)| is_hex(o.strip_prefix("0x").unwrap_or(o))) {
        let rest = rest.trim_start().split('"').next().unwrap_or_default();
        let rest = rest.split("  ").next().unwrap_or_default();
        return Ok(Row { line, offset: Some(offset), bytes: words(line, rest)?, ..Row::default() });
    }
    // nvmetal's own `-o hex`: an `h` behind the offset, eight bytes or nothing (what is reserved), what they mean.
    if let Some((offset, rest)) = content.split_once("h  ").filter(|(offset, _)| is_hex(offset)) {
        let rest = rest.get(..OWN_BYTES_COLUMNS).unwrap_or(rest);
        return Ok(Row { line, offset: Some(offset), bytes: words(line, rest)?, ..Row::default() });
    }
    // hexdump, od: seven digits or more, then groups of two or four; text beside the bytes is between bars.
    let mut split = content.splitn(2, char::is_whitespace);
    let (first, rest) = (split.next().unwrap_or_default(), split.next().unwrap_or_default());
    let rest = rest.split('|').next().unwrap_or_default();
    let group = |digits: usize| rest.split_whitespace().all(|word| is_hex(word) && word.len() == digits);
    if is_hex(first) && matches!(first.len(), 7..=8) && (group(2) || group(4)) {
        let mut bytes = words(line, rest)?;
        if !rest.trim().is_empty() && group(4) {
            // Without a colon these are 16-bit numbers of a little-endian machine.
            bytes.as_chunks_mut::<2>().0.iter_mut().for_each(|pair| pair.reverse());
        }
        return Ok(Row { line, offset: Some(first), bytes, ..Row::default() });
    }
    Ok(Row { line, bytes: words(line, content)?, ..Row::default() })
}

/// The bytes of words of hex.
fn words(line: usize, text: &str) -> Result<Vec<u8>, String> {
    let separator = |c: char| c.is_whitespace() || matches!(c, ',' | ';' | '{' | '}');
    let mut bytes = Vec::new();
    for word in text.split(separator).filter(|word| !word.is_empty()) {
        let number = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"));
        let digits = number.unwrap_or(word);
        let pairs = digits.as_bytes().as_chunks::<2>();
        let from = bytes.len();
        for pair in pairs.0 {
            let pair = std::str::from_utf8(pair).ok().filter(|pair| !pair.starts_with('+'));
            let byte = pair.and_then(|pair| u8::from_str_radix(pair, 16).ok());
            bytes.push(byte.ok_or_else(|| not_hex(line, word))?);
        }
        if !pairs.1.is_empty() || pairs.0.is_empty() {
            return Err(not_hex(line, word));
        }
        if number.is_some() && matches!(digits.len(), 4 | 8 | 16) {
            bytes[from..].reverse();
        }
    }
    Ok(bytes)
}

fn not_hex(line: usize, word: &str) -> String {
    let word: String = word.chars().take(20).collect();
    format!("line {line}: '{word}' is no byte in hex")
}

/// Rows without offsets, one behind the other.
fn join(rows: Vec<Row<'_>>) -> Result<Vec<u8>, String> {
    if let Some(row) = rows.iter().find(|row| row.offset.is_some_and(|offset| offset.len() < 7) || row.after_star) {
        return Err(format!("line {}: rows with an offset and rows without are mixed", row.line));
    }
    let mut bytes = Vec::new();
    for row in rows {
        // Eight digits in front of groups of two may be bytes as well as an offset, where other rows have none.
        bytes.extend(row.offset.map(|digits| words(row.line, digits)).transpose()?.unwrap_or_default());
        bytes.extend(row.bytes);
    }
    Ok(bytes)
}

/// Rows with offsets, each at its place.
fn place(rows: &[Row<'_>]) -> Result<Vec<u8>, String> {
    let at = |row: &Row<'_>, radix| {
        let digits = row.offset.unwrap_or_default();
        u64::from_str_radix(digits.strip_prefix("0x").unwrap_or(digits), radix).ok()
    };
    // od counts in octal: where that makes each row begin at the end of the one before, it is od.
    let is_seamless = |radix| {
        rows.windows(2).all(|pair| {
            let (Some(before), Some(after)) = (at(&pair[0], radix), at(&pair[1], radix)) else { return false };
            pair[1].after_star
                || pair[1].bytes.is_empty()
                || after.checked_sub(before) == Some(pair[0].bytes.len() as u64)
        })
    };
    let radix = if !is_seamless(16) && is_seamless(8) { 8 } else { 16 };
    // A debugger's rows begin at an address.
    let base =
        rows.first().filter(|row| row.offset.is_some_and(|o| o.starts_with("0x"))).and_then(|row| at(row, radix));
    let mut bytes = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let offset = at(row, radix).and_then(|offset| offset.checked_sub(base.unwrap_or(0)));
        let offset = offset.filter(|offset| *offset <= MOST_BYTES).ok_or_else(|| too_far(row))? as usize;
        if row.bytes.is_empty() && index + 1 == rows.len() && offset < bytes.len() {
            // The last row of hexdump and od is the length.
            bytes.truncate(offset);
            continue;
        }
        if offset < bytes.len() {
            return Err(format!(
                "line {}: the offset {} lies within the row before",
                row.line,
                row.offset.unwrap_or("")
            ));
        }
        let repeated = index.checked_sub(1).and_then(|before| rows.get(before)).filter(|_| row.after_star);
        if let Some(before) = repeated.filter(|before| !before.bytes.is_empty()) {
            let missing = offset - bytes.len();
            bytes.extend(before.bytes.iter().cycle().take(missing));
        }
        bytes.resize(offset, 0);
        bytes.extend_from_slice(&row.bytes);
    }
    Ok(bytes)
}

fn too_far(row: &Row<'_>) -> String {
    format!("line {}: the offset {} is beyond any structure", row.line, row.offset.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: [u8; 18] =
        [0x00, 0x3a, 0x01, 0x62, 0x0a, 0, 0, 0, 0x41, 0x42, 0x61, 0x62, 0x22, 0x7c, 0x20, 0x20, 0xab, 0xcd];

    #[test]
    fn each_tools_form_of_the_same_bytes_is_read() {
        let forms = [
            ("plain", "003a01620a0000004142616222 7c20 20abcd\n"),
            ("bytes", "00 3a 01 62 0a 00 00 00 41 42 61 62 22 7c 20 20\nab cd"),
            ("C", "{ 0x00, 0x3a, 0x01, 0x62, 0x0a, 0, };"),
            (
                "xxd",
                "00000000: 003a 0162 0a00 0000 4142 6162 227c 2020  .:.b....ABab\"|  \n00000010: abcd                                     ..\n",
            ),
            (
                "hexdump -C",
                "00000000  00 3a 01 62 0a 00 00 00  41 42 61 62 22 7c 20 20  |.:.b....ABab\"|  |\n00000010  ab cd                                             |..|\n00000012\n",
            ),
            ("hexdump", "0000000 3a00 6201 000a 0000 4241 6261 7c22 2020\n0000010 cdab\n0000012\n"),
            ("od -t x1", "0000000 00 3a 01 62 0a 00 00 00 41 42 61 62 22 7c 20 20\n0000020 ab cd\n0000022\n"),
            ("od -x", "0000000 3a00 6201 000a 0000 4241 6261 7c22 2020\n0000020 cdab\n0000022\n"),
            (
                "nvme-cli",
                "Device:nvme0 log-id:2 namespace-id:0xffffffff\n       0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f\n0000: 00 3a 01 62 0a 00 00 00 41 42 61 62 22 7c 20 20 \".:.b....ABab\"|  \"\n0010: ab cd \"..\"\n",
            ),
            (
                "a debugger",
                "0x7ffe10: 0x00 0x3a 0x01 0x62 0x0a 0x00 0x00 0x00 0x41 0x42 0x61 0x62 0x22 0x7c 0x20 0x20\n0x7ffe20: 0xab 0xcd\n",
            ),
        ];
        for (name, text) in forms {
            match parse(text) {
                Ok(bytes) if name == "C" => panic!("a lone digit is no byte: {bytes:?}"),
                Err(problem) if name == "C" => assert_eq!(problem, "line 1: '0' is no byte in hex"),
                answer => assert_eq!(answer.as_deref(), Ok(&PAGE[..]), "{name}"),
            }
        }
    }

    #[test]
    fn a_star_repeats_the_row_before_and_other_gaps_are_zero() {
        let bytes = parse("00000000  ff ff ff ff  |....|\n*\n00000010  01 02  |..|\n00000012\n").unwrap();
        assert_eq!(bytes, [[0xff; 16].as_slice(), &[1, 2]].concat());
        let bytes = parse("# length: 24\n0000: 01 02\n0010: 03\n").unwrap();
        assert_eq!((bytes.len(), bytes[16], bytes[2..16].iter().all(|byte| *byte == 0)), (24, 3, true));
    }

    #[test]
    fn a_number_lies_in_memory_with_its_least_byte_first() {
        assert_eq!(parse("0x00070002 0x00000001").unwrap(), [2, 0, 7, 0, 1, 0, 0, 0]);
        assert_eq!(parse("00070002").unwrap(), [0, 7, 0, 2]);
    }

    #[test]
    fn what_is_no_dump_is_told_by_its_line() {
        for (text, problem) in [
            ("zebra", "line 1: 'zebra' is no byte in hex"),
            ("00 11\n\n2 33", "line 3: '2' is no byte in hex"),
            ("+1", "line 1: '+1' is no byte in hex"),
            ("0000: 00 11\n0001: 22", "line 2: the offset 0001 lies within the row before"),
            ("ffffffffffffffff: 00", "line 1: the offset ffffffffffffffff is beyond any structure"),
            ("0000: 00\n11 22", "line 1: rows with an offset and rows without are mixed"),
        ] {
            assert_eq!(parse(text).unwrap_err(), problem);
        }
        assert!(text(b"\x00\x3a").is_none() && text("53 °C\r\n".as_bytes()).is_some());
    }
}
