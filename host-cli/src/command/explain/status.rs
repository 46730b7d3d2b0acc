//! A status by its number or its name.
#![forbid(unsafe_code)]

use nvmetal_core::status::{CODES, Retry, Status};
use serde_json::json;

use super::{Explained, plain, unknown};
use crate::error::{Error, Result};
use crate::units::parse_number;

/// From this code on, generic and command specific codes belong to the I/O command sets.
const FIRST_OF_A_COMMAND_SET: u8 = 0x80;

/// The statuses that this names: one, or all whose name holds these words.
pub fn explain(text: &str) -> Result<Vec<Explained>> {
    if let Some((sct, sc)) = text.split_once('/') {
        let number = |text: &str, most: u64| parse_number(text).filter(|number| *number <= most);
        let (Some(sct), Some(sc)) = (number(sct, 7), number(sc, 0xff)) else {
            return Err(Error::usage(format!("'{text}' is no status type and code"))
                .remedy("The type is 0 to 7, the code 0 to 0xff, as in 2/0x81."));
        };
        return Ok(vec![of(Status::new(sct as u8, sc as u8), None)]);
    }
    if let Some(number) = parse_number(text) {
        return match u16::try_from(number) {
            // A status has fifteen bits; with sixteen it is still together with the phase tag.
            Ok(word @ 0x8000..) => Ok(vec![of(Status::from_bits(word >> 1), Some(word))]),
            Ok(bits) => Ok(vec![of(Status::from_bits(bits), None)]),
            Err(_) => Err(Error::usage(format!("{text} has more than the 16 bits of a status"))
                .remedy("Give the status field, as in 0x2002, or TYPE/CODE, as in 2/0x81.")),
        };
    }
    let wanted = plain(text);
    let exact = CODES.iter().filter(|code| plain(code.name) == wanted);
    let mut found: Vec<_> = exact.collect();
    if found.is_empty() && !wanted.is_empty() {
        found = CODES.iter().filter(|code| plain(code.name).contains(&wanted)).collect();
    }
    if found.is_empty() {
        return Err(unknown("status", text, &[], "Give a number, as in 0x2002 or 2/0x81, or words of its name."));
    }
    Ok(found.iter().map(|code| of(Status::from_bits(code.type_and_code), None)).collect())
}

fn of(status: Status, word: Option<u16>) -> Explained {
    let code = status.code();
    let name = status.name().unwrap_or("unknown status");
    let is_of_set = status.sc() >= FIRST_OF_A_COMMAND_SET && status.sct() < 2;
    let defined = match status.sct() {
        7 => "by the vendor",
        _ if is_of_set => "specifications of the I/O command sets (NVM, Zoned Namespace, Key Value), \"Status Codes\"",
        _ => "NVM Express Base Specification, \"Status Codes\"",
    };
    let retry = match (status.is_success(), status.dnr(), status.may_retry()) {
        (true, ..) => "there is nothing to repeat",
        (_, true, _) => "the controller says Do Not Retry",
        (_, _, true) => "sending the same command again may help",
        _ => "sending the same command again does not help",
    };
    let mut rows = vec![
        ("type", format!("{} ({})", status.type_name(), status.sct())),
        ("code", format!("{:02X}h", status.sc())),
        ("meaning", code.map_or("the specification gives this code no meaning", |code| code.doc).to_owned()),
        ("retry", retry.to_owned()),
    ];
    if let Some(word) = word {
        rows.insert(0, ("phase tag", format!("{}; {word:04X}h is the status with it", word & 1)));
    }
    let flags = [
        (status.more(), "More: the error log has more about it".to_owned()),
        (status.dnr(), "Do Not Retry".to_owned()),
        (status.crd() != 0, format!("retry after command retry delay time {}", status.crd())),
    ];
    let flags: Vec<String> = flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag).collect();
    if !flags.is_empty() {
        rows.push(("flags", flags.join(", ")));
    }
    rows.push(("defined", defined.to_owned()));
    Explained {
        title: format!("{:04X}h  {name}", status.into_bits()),
        json: json!({
            "raw": status.into_bits(),
            "name": status.name(),
            "type": status.sct(),
            "type_name": status.type_name(),
            "code": status.sc(),
            "more": status.more(),
            "do_not_retry": status.dnr(),
            "command_retry_delay": status.crd(),
            "meaning": code.map(|code| code.doc),
            "cause_may_pass": code.map(|code| code.retry == Retry::MayHelp),
            "retry_may_help": status.may_retry(),
            "defined": defined,
        }),
        rows,
        table: Vec::new(),
    }
}
