//! The structures by the words that name them on the command line, and how their bytes are shown.
//!
//! A structure is named by its noun (`smart`, `id ctrl`, `log error`, `registers`, `sqe admin`), by nvme-cli's command for
//! it (`smart-log`, `id-ctrl`, `error-log`, `show-regs`), or by its id in core. Most are one structure; some are as many
//! entries as the bytes hold, some a head with entries behind it ([`Layout`]).
#![forbid(unsafe_code)]

use std::fmt::Write;

use nvmetal_core::command::{CommandSet, SubmissionEntry};
use nvmetal_core::describe::{Describe, Descriptor, structure, structures};
use nvmetal_core::log::persistent;
use serde_json::{Value, json};

use crate::error::{Error, Result};

/// Words that name a structure besides its id, `log ID`, `id ID` and `ID-log`.
const NAMES: &[(&str, &str)] = &[
    ("id controller", "ctrl"),
    ("id namespace", "ns"),
    ("log fw", "firmware"),
    ("fw", "firmware"),
    ("selftest", "self-test"),
    ("regs", "registers"),
    ("show regs", "registers"),
    ("command effects", "effects"),
    ("cmd effects", "effects"),
    ("fid support effects", "feature-effects"),
    ("supported", "supported-log-pages"),
    ("changed ns list", "ns-list"),
    ("changed namespaces", "ns-list"),
    ("list ns", "ns-list"),
    ("list ctrl", "ctrl-list"),
    ("list endgrp", "endgrp-list"),
    ("list secondary", "secondary-ctrl-list"),
    ("primary ctrl caps", "primary-ctrl"),
    ("nvm id ctrl", "nvm-ctrl"),
    ("nvm id ns", "nvm-ns"),
    ("zns id ctrl", "zoned-ctrl"),
    ("zns id ns", "zoned-ns"),
    ("zns report zones", "zone-report"),
    ("zns changed zone list", "changed-zones"),
    ("cmdset ind id ns", "independent-ns"),
    ("id iocs", "iocs"),
    ("id nvmset", "nvm-set-list"),
    ("id uuid", "uuid-list"),
    ("id domain", "domain-list"),
    ("id ns granularity", "ns-granularity-list"),
    ("endurance", "endurance-group"),
    ("predictable lat", "predictable-latency"),
    ("lba status log", "lba-status-log"),
    ("log lba status", "lba-status-log"),
    ("get lba status", "lba-status-head"),
    ("boot part", "boot-partition"),
    ("resv report", "reservation"),
    ("resv notif", "reservation-notification"),
    ("fdp configs", "fdp-configs"),
    ("fdp usage", "ruh-usage-head"),
    ("fdp stats", "fdp-statistics"),
    ("fdp events", "fdp-events"),
    ("fdp status", "ruh-status-head"),
    ("ocp smart add", "ocp-smart"),
    ("completion", "cqe"),
    ("command", "sqe"),
];

/// Bytes of which nothing is known.
pub static UNKNOWN: Descriptor =
    Descriptor { id: "bytes", doc: "Bytes of which nothing is known.", size: 0, fields: &[], summary: None };

/// How a dump of a structure is laid out.
#[derive(Debug, Clone, Copy)]
enum Layout {
    /// The structure, once.
    One,
    /// As many as there are.
    Entries,
    /// Once, then as many of these as there are.
    Head(&'static Descriptor),
    /// The head of the persistent event log, then events of different lengths.
    Events,
    /// Commands, as many as there are, read by this queue's opcodes where it was said which.
    Commands(Option<CommandSet>),
}

/// A structure, and how a dump of it is laid out.
#[derive(Debug, Clone, Copy)]
pub struct Structure {
    /// Its fields.
    pub descriptor: &'static Descriptor,
    layout: Layout,
}

/// A part of a dump that is shown on its own.
struct Section {
    /// What it is, where the dump has more than one.
    title: Option<String>,
    descriptor: &'static Descriptor,
    bytes: Vec<u8>,
}

impl Structure {
    /// The structure that these words name.
    pub fn named(words: &[&str]) -> Result<Self> {
        let name = words.join(" ").to_ascii_lowercase();
        Self::find(&name).ok_or_else(|| {
            let known: Vec<&str> = structures().map(|known| known.id).collect();
            let near = nearest(&name, &known).map(|near| format!("Is '{near}' meant? ")).unwrap_or_default();
            Error::usage(format!("there is no structure '{name}'"))
                .remedy(format!("{near}`nvmetal decode --list` shows all of them."))
        })
    }

    /// The structure of this name, where there is one.
    pub fn find(name: &str) -> Option<Self> {
        if let Some(set) = name.strip_prefix("sqe ") {
            let set = match set {
                "admin" => CommandSet::Admin,
                "io" | "i/o" | "nvm" => CommandSet::Io,
                _ => return None,
            };
            return Some(Self { descriptor: structure("sqe")?, layout: Layout::Commands(Some(set)) });
        }
        let spoken = name.replace('-', " ");
        let bare = ["log ", "id ", "identify ", "show "].iter().find_map(|head| spoken.strip_prefix(head));
        let bare = bare.unwrap_or(&spoken);
        let bare = bare.strip_suffix(" log").unwrap_or(bare);
        let id = |name: &str| NAMES.iter().find(|(known, _)| *known == name).map(|(_, id)| *id);
        let descriptor = structure(name)
            .or_else(|| id(&spoken).or_else(|| id(bare)).and_then(structure))
            .or_else(|| structure(&bare.replace(' ', "-")))
            .or_else(|| structure(&spoken.replace(' ', "-")))?;
        Some(Self::of(descriptor))
    }

    /// The structure with this descriptor.
    pub fn of(descriptor: &'static Descriptor) -> Self {
        let head = |entry| structure(entry).map_or(Layout::One, Layout::Head);
        let layout = match descriptor.id {
            "sqe" => Layout::Commands(None),
            "persistent-event" => Layout::Events,
            "cqe" | "error" | "dsm-range" | "copy-range" | "copy-range-wide" | "hmb-descriptor" | "lba-range"
            | "zone" => Layout::Entries,
            "zone-report" => head("zone"),
            "reservation" => head("registrant"),
            "lba-status-head" => head("lba-status"),
            "ruh-status-head" => head("ruh-status"),
            "ruh-usage-head" => head("ruh-usage"),
            _ => Layout::One,
        };
        Self { descriptor, layout }
    }

    /// Whether a dump holds the structure once and nothing else.
    pub const fn is_single(&self) -> bool {
        matches!(self.layout, Layout::One)
    }

    /// The parts that these bytes are shown in.
    fn sections(&self, bytes: &[u8]) -> Vec<Section> {
        let whole = |bytes: &[u8]| Section { title: None, descriptor: self.descriptor, bytes: bytes.to_vec() };
        match self.layout {
            Layout::One => vec![whole(bytes)],
            Layout::Entries | Layout::Commands(_) if bytes.len() <= self.descriptor.size => vec![whole(bytes)],
            Layout::Entries | Layout::Commands(_) => entries(self.descriptor, 0, bytes),
            Layout::Head(entry) => {
                let (head, rest) = bytes.split_at(bytes.len().min(self.descriptor.size));
                let mut sections = vec![whole(head)];
                sections.extend(entries(entry, head.len(), rest));
                sections
            }
            Layout::Events => {
                let mut sections = vec![whole(bytes.get(..self.descriptor.size).unwrap_or(bytes))];
                for (number, event) in persistent::events(bytes).enumerate() {
                    let part = |descriptor: &'static Descriptor, bytes: &[u8]| Section {
                        title: Some(format!("{} {number}", descriptor.id)),
                        descriptor,
                        bytes: bytes.to_vec(),
                    };
                    let header = event.header.view();
                    sections.push(part(header.descriptor, header.bytes));
                    sections.push(
                        event
                            .view()
                            .map_or_else(|| part(&UNKNOWN, event.data), |view| part(view.descriptor, view.bytes)),
                    );
                }
                sections.retain(|section| section.title.is_none() || !section.bytes.is_empty());
                sections
            }
        }
    }

    /// The command that an entry holds, by each queue that it may come from: the queue in words, its reading.
    fn readings(&self, bytes: &[u8]) -> Vec<(&'static str, CommandSet, SubmissionEntry)> {
        let (Layout::Commands(asked), Some(bytes)) = (self.layout, bytes.first_chunk()) else { return Vec::new() };
        let entry = SubmissionEntry::from_bytes(bytes);
        let both = [("the admin", CommandSet::Admin), ("an I/O", CommandSet::Io)];
        let all = both.into_iter().filter(|(_, set)| asked.is_none_or(|asked| asked == *set));
        all.map(|(queue, set)| (queue, set, entry)).collect()
    }

    /// The bytes as text, a line for each field.
    pub fn text(&self, bytes: &[u8]) -> String {
        self.shown(bytes, |section| {
            let view = section.descriptor.view(&section.bytes);
            if section.descriptor.fields.is_empty() { view.hex().to_string() } else { view.text().to_string() }
        })
    }

    /// The bytes as annotated hex.
    pub fn hex(&self, bytes: &[u8]) -> String {
        self.shown(bytes, |section| section.descriptor.view(&section.bytes).hex().to_string())
    }

    fn shown(&self, bytes: &[u8], show: impl Fn(&Section) -> String) -> String {
        let mut text = String::new();
        for section in self.sections(bytes) {
            if let Some(title) = &section.title {
                let _ = writeln!(text, "{}{title}:", if text.is_empty() { "" } else { "\n" });
            }
            text += &show(&section);
            for (queue, set, entry) in self.readings(&section.bytes) {
                let name = set.opcode_name(entry.opcode()).unwrap_or("an unknown command");
                let _ = writeln!(text, "\nOn {queue} queue: {name} (opcode {:02X}h)", entry.opcode());
                let fields = set.view(entry).map(|view| view.text().to_string()).unwrap_or_default();
                fields.lines().for_each(|line| {
                    let _ = writeln!(text, "  {line}");
                });
            }
        }
        text
    }

    /// The bytes as JSON: an object, or an array of them where the dump is of entries.
    pub fn json(&self, bytes: &[u8]) -> Value {
        let mut shown: Vec<Value> = self.sections(bytes).iter().map(|section| self.section_json(section)).collect();
        match self.layout {
            Layout::One => shown.pop().unwrap_or_default(),
            Layout::Entries | Layout::Commands(_) => shown.into(),
            Layout::Head(_) | Layout::Events => {
                let head = if shown.is_empty() { Value::Null } else { shown.remove(0) };
                json!({ "head": head, "entries": shown })
            }
        }
    }

    fn section_json(&self, section: &Section) -> Value {
        if section.descriptor.fields.is_empty() {
            return json!({ "bytes": nvmetal_core::describe::Digits(&section.bytes).to_string() });
        }
        // Core's tests parse the JSON of every structure at every length.
        let parse = |text: String| serde_json::from_str::<Value>(&text).unwrap_or_default();
        let mut json = parse(section.descriptor.view(&section.bytes).json().to_string());
        let readings = self.readings(&section.bytes);
        if let Some(object) = json.as_object_mut() {
            for (_, set, entry) in readings {
                let command = set.view(entry).map(|view| parse(view.json().to_string()));
                let name = || json!({ "name": set.opcode_name(entry.opcode()), "opcode": entry.opcode() });
                let key = if set == CommandSet::Admin { "admin_command" } else { "io_command" };
                object.insert(key.to_owned(), command.unwrap_or_else(name));
            }
        }
        json
    }
}

/// As many entries as the bytes hold, up to the last that is not all zero; one at least.
fn entries(descriptor: &'static Descriptor, at: usize, bytes: &[u8]) -> Vec<Section> {
    let used = bytes.len() - bytes.iter().rev().take_while(|byte| **byte == 0).count();
    let count = used.div_ceil(descriptor.size).max(usize::from(at == 0));
    let chunks = bytes.chunks(descriptor.size).take(count).enumerate();
    chunks
        .map(|(number, bytes)| Section {
            title: Some(format!("{} {number} (at {:03x}h)", descriptor.id, at + number * descriptor.size)),
            descriptor,
            bytes: bytes.to_vec(),
        })
        .collect()
}

/// The known name that differs least from what was typed, where it differs little.
pub fn nearest<'a>(typed: &str, known: &[&'a str]) -> Option<&'a str> {
    let distances = known.iter().map(|name| (distance(typed, name), *name));
    distances.min().filter(|(distance, _)| *distance <= 1 + typed.len() / 4).map(|(_, name)| name)
}

/// How many letters have to be put in, taken out or changed.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, letter) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, against) in other.iter().enumerate() {
            let cost = (diagonal + usize::from(letter != *against)).min(row[j] + 1).min(row[j + 1] + 1);
            diagonal = std::mem::replace(&mut row[j + 1], cost);
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_leads_to_a_structure() {
        for (name, id) in NAMES {
            assert_eq!(Structure::find(name).map(|found| found.descriptor.id), Some(*id), "{name}");
        }
        for known in structures() {
            assert_eq!(Structure::find(known.id).map(|found| found.descriptor.id), Some(known.id));
        }
    }

    #[test]
    fn our_nouns_and_the_spellings_of_nvme_cli_mean_the_same() {
        for (id, names) in [
            ("smart", "smart,smart-log,log smart"),
            ("ctrl", "id ctrl,id-ctrl,identify ctrl"),
            ("ns", "id ns,id-ns"),
            ("error", "log error,error-log"),
            ("firmware", "log firmware,fw-log,log fw"),
            ("self-test", "log self-test,self-test-log,selftest"),
            ("registers", "registers,show-regs"),
            ("effects", "effects-log,log effects"),
            ("sanitize", "sanitize-log,log sanitize"),
            ("ns-list", "changed-ns-list-log,list-ns"),
            ("persistent-event", "persistent-event-log,log persistent-event"),
            ("endurance-group", "endurance-log"),
            ("predictable-latency", "predictable-lat-log"),
            ("uuid-list", "id-uuid"),
        ] {
            for name in names.split(',') {
                assert_eq!(Structure::find(name).map(|found| found.descriptor.id), Some(id), "{name}");
            }
        }
        assert!(Structure::find("zebra").is_none() && Structure::find("").is_none());
    }

    #[test]
    fn a_slip_of_the_finger_is_recognised_and_nonsense_is_not() {
        assert_eq!(nearest("smrt", &["smart", "ctrl"]), Some("smart"));
        assert_eq!(nearest("zebra", &["smart", "ctrl"]), None);
    }
}
