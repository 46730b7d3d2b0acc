//! A command by its name or opcode.
#![forbid(unsafe_code)]

use nvmetal_core::command::admin::AdminOpcode;
use nvmetal_core::command::io::IoOpcode;
use nvmetal_core::command::{CommandDescriptor, CommandSet, Direction};
use nvmetal_core::describe::Meaning;
use serde_json::json;

use super::super::decode::one_line;
use super::{Entry, Explained, defined, plain, unknown};
use crate::error::Result;
use crate::units::parse_number;

const QUEUES: [(&str, CommandSet, &[Meaning]); 2] =
    [("admin", CommandSet::Admin, AdminOpcode::MEANINGS), ("io", CommandSet::Io, IoOpcode::MEANINGS)];

/// The commands that this names: by name on any queue, by opcode on both queues unless one is named.
pub fn explain(text: &str) -> Result<Vec<Explained>> {
    let (queue, name) =
        text.split_once('/').map_or((None, text), |(queue, name)| (Some(queue.to_ascii_lowercase()), name));
    let opcode = parse_number(name);
    let mut found = Vec::new();
    let mut known = Vec::new();
    for (word, set, meanings) in QUEUES {
        if queue.as_ref().is_some_and(|asked| asked != word) {
            continue;
        }
        for meaning in meanings {
            known.push(plain(meaning.name));
            if opcode.map_or_else(|| plain(meaning.name) == plain(name), |opcode| opcode == meaning.value) {
                let command = set.commands().find(|command| u64::from(command.opcode) == meaning.value);
                found.push(of(word, meaning, command));
            }
        }
    }
    if found.is_empty() {
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let remedy = "Give a name, as in identify or zone-append, or an opcode, as in admin/0x06 or io/0x02.";
        return Err(unknown("command", text, &known, remedy));
    }
    Ok(found)
}

fn of(queue: &str, meaning: &Meaning, command: Option<&'static CommandDescriptor>) -> Explained {
    let opcode = meaning.value as u8;
    let (said, place) = command.map_or_else(Default::default, |command| defined(command.doc));
    let direction = match Direction::of_opcode(opcode) {
        Direction::None => "none",
        Direction::ToController => "host to controller",
        Direction::FromController => "controller to host",
        Direction::Both => "both ways",
    };
    let queue_words = if queue == "admin" { "the admin queue" } else { "I/O queues" };
    let mut rows = vec![("opcode", format!("{opcode:02X}h, on {queue_words}")), ("data", direction.to_owned())];
    if !said.is_empty() && said != meaning.name {
        rows.push(("meaning", said.clone()));
    }
    rows.extend(place.clone().map(|place| ("defined", place)));
    let fields = command.map_or(&[][..], |command| command.fields);
    let table = fields.iter().map(|field| Entry::field(field.to_string(), field.id, field.label, field.doc));
    Explained {
        title: meaning.name.to_owned(),
        table: table.collect(),
        json: json!({
            "name": meaning.name,
            "queue": queue,
            "opcode": opcode,
            "data": direction,
            "doc": said,
            "defined": place,
            "fields": fields.iter().map(|field| json!({
                "id": field.id,
                "label": field.label,
                "doc": one_line(field.doc),
                "dword": field.dword,
                "low": field.low,
                "width": field.width,
            })).collect::<Vec<_>>(),
        }),
        rows,
    }
}
