//! `nvmetal explain`: what a word or a number of the specification means, and where it stands.
//!
//! Everything said here comes from the tables of core: the same that decode a drive's bytes.
#![forbid(unsafe_code)]

mod command;
mod field;
mod status;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::decode::one_line;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::{Format, Output, bold};
use crate::report::text::Sheet;

const AFTER: &str = "\
  nvmetal explain status 0x2002      also 2/0x81, c502h, 'Invalid Field in Command'
  nvmetal explain field smart.critical_warning
  nvmetal explain field mdts
  nvmetal explain command read       also admin/0x06
  nvmetal explain register cap
  nvmetal explain feature 0x07";

/// What to explain.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// A status: the field as a number, TYPE/CODE, or a name
    Status(Words),
    /// A field of a structure: STRUCTURE.FIELD, or a field's name in any structure
    Field(Words),
    /// A structure: its fields and their places
    #[command(alias = "log")]
    Structure(Words),
    /// A command: its name, or admin/OPCODE or io/OPCODE
    Command(Words),
    /// A controller register
    Register(Words),
    /// A feature: its name or number
    Feature(Words),
}

/// The name, in one word or several.
#[derive(Debug, Args)]
struct Words {
    #[arg(required = true, value_name = "NAME")]
    words: Vec<String>,
}

/// What is known of a thing.
struct Explained {
    /// Its name.
    title: String,
    /// Labels and what is said.
    rows: Vec<(&'static str, String)>,
    /// What the rows above do not hold: a table of parts, of fields, of meanings.
    table: Vec<Entry>,
    /// The same for programs.
    json: Value,
}

/// A line of a table: where, what, and what it says.
struct Entry {
    place: String,
    said: String,
}

impl Entry {
    /// A line for a field: its id, its label, and of its documentation what these do not say yet.
    fn field(place: String, id: &str, label: &str, doc: &str) -> Self {
        let doc = one_line(doc);
        let more = doc.strip_prefix(label).and_then(|doc| doc.strip_prefix(": ")).unwrap_or(&doc);
        let is_label = more.trim_end_matches('.').eq_ignore_ascii_case(label);
        let more = if is_label || more.is_empty() { String::new() } else { format!(": {more}") };
        Self { place, said: format!("{id}, {label}{more}") }
    }
}

/// Explains it.
pub fn run(arguments: &Arguments, out: &mut Output) -> Result<Exit> {
    out.only("explain", &[Format::Human, Format::Json])?;
    let (kind, words) = match &arguments.what {
        What::Status(words) => ("status", words),
        What::Field(words) => ("field", words),
        What::Structure(words) => ("structure", words),
        What::Command(words) => ("command", words),
        What::Register(words) => ("register", words),
        What::Feature(words) => ("feature", words),
    };
    let name = words.words.join(" ");
    let explained = match kind {
        "status" => status::explain(&name)?,
        "field" => field::fields(&name)?,
        "structure" => vec![field::structure(&name)?],
        "command" => command::explain(&name)?,
        "register" => vec![field::register(&name)?],
        _ => vec![field::feature(&name)?],
    };
    let found: Vec<&Value> = explained.iter().map(|one| &one.json).collect();
    let json = json!({ "schema": "nvmetal.explain/1", "kind": kind, "asked": name, "found": found });
    out.result(&json, || explained.iter().map(Explained::text).collect::<Vec<_>>().join("\n"))?;
    Ok(Exit::Pass)
}

impl Explained {
    fn text(&self) -> String {
        let width = self.rows.iter().map(|(label, _)| label.len()).max().unwrap_or(0);
        let mut rows = Sheet::new(width + 1);
        for (label, value) in &self.rows {
            rows.row(label, value);
        }
        let mut text = format!("{}\n{}", bold(&self.title), rows.text());
        if !self.table.is_empty() {
            let places = self.table.iter().map(|entry| entry.place.len()).max().unwrap_or(0);
            let mut table = Sheet::new(places + 1);
            for Entry { place, said } in &self.table {
                table.row(place, said);
            }
            text += "\n";
            text += &table.text();
        }
        text
    }
}

/// Documentation that ends in where the specification defines it, split there.
fn defined(doc: &str) -> (String, Option<String>) {
    let doc = one_line(doc);
    match doc.find("NVM Express ") {
        Some(at) if doc[at..].contains('"') => {
            let said = doc[..at].trim().trim_end_matches('.').to_owned();
            (said, Some(doc[at..].trim_end_matches('.').to_owned()))
        }
        _ => (doc, None),
    }
}

/// Words as they stand within a sentence.
fn within(said: &str) -> String {
    said.strip_prefix("The ").map_or_else(|| said.to_owned(), |rest| format!("the {rest}"))
}

/// What was asked for does not exist; what comes near it may have been meant.
fn unknown(kind: &str, name: &str, known: &[&str], remedy: &str) -> Error {
    let near = crate::structure::nearest(&name.to_ascii_lowercase(), known);
    let near = near.map(|near| format!("Is '{near}' meant? ")).unwrap_or_default();
    Error::usage(format!("there is no {kind} '{name}'")).remedy(format!("{near}{remedy}"))
}

/// A name as it can be compared: lower case, and what separates words is one blank.
fn plain(name: &str) -> String {
    let spaced: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { ' ' }).collect();
    one_line(&spaced)
}
