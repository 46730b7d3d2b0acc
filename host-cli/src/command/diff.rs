//! `nvmetal diff`: saved results side by side, the first one being the measure for the others.
//!
//! Another drive, slot, link, host or day is what a person wants to know the effect of, so those differences are listed,
//! and first. Another workload is none: figures of a random and of a sequential run have nothing to say to each other,
//! and neither have those of the emulator and of a drive. Such files are refused.
//!
//! Results are read as plain JSON and not through the types that wrote them: a file of an older or a newer version
//! lacks or adds a figure, and the others can be compared all the same. Only `schema` has to be known.
#![forbid(unsafe_code)]

mod figures;

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use serde_json::{Value, json};

pub use figures::{Change, CheckChange, Figure, Unit, Word};

use crate::error::{Error, FileContext, Result};
use crate::exit::Exit;
use crate::output::{Format, Output, note};
use crate::report::diff as text;

/// What to compare.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Results of `bench` or `validate`, saved with --save; the others are compared with the first
    #[arg(required = true, num_args = 2.., value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Exit with 3 when a rate is lower or a latency (up to 99.9 %) higher by more than PCT, or errors or checks are
    /// worse
    #[arg(long, value_name = "PCT", value_parser = parse_percent)]
    fail_if_worse: Option<f64>,
}

fn parse_percent(text: &str) -> std::result::Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end();
    match number.parse::<f64>() {
        Ok(percent) if percent.is_finite() && percent >= 0.0 => Ok(percent),
        _ => Err(format!("'{text}' is not a percentage; write it like 5 or 2.5")),
    }
}

/// Which command a result is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// `bench`.
    Bench,
    /// `validate`.
    Validate,
}

/// A saved result.
#[derive(Debug)]
pub struct Saved {
    /// `A`, `B`, ... in the order of the command line.
    pub label: String,
    /// Where it was read.
    pub path: PathBuf,
    origin: Origin,
    emulated: bool,
    document: Value,
}

/// Something about the runs that is not the same.
#[derive(Debug, PartialEq, Serialize)]
pub struct Difference {
    /// What it is.
    pub what: &'static str,
    /// Its value in each result; `None` where the result does not tell.
    pub values: Vec<Option<String>>,
}

/// The results side by side.
#[derive(Debug)]
pub struct Comparison {
    /// Whether all are the emulator's.
    pub emulated: bool,
    /// Which command all are from.
    pub origin: Origin,
    /// The results.
    pub saved: Vec<Saved>,
    /// What is not the same about drive, slot, link, host and day.
    pub differences: Vec<Difference>,
    /// The figures.
    pub figures: Vec<Figure>,
    /// The checks whose status is not the same everywhere.
    pub checks: Vec<CheckChange>,
    /// Runs that had to be left out, and why.
    pub left_out: Vec<String>,
    /// The limit of `--fail-if-worse`.
    pub limit_percent: Option<f64>,
}

/// Compares the files.
pub fn run(arguments: &Arguments, out: &mut Output) -> Result<Exit> {
    out.only("diff", &[Format::Human, Format::Json])?;
    let saved: Vec<Saved> =
        arguments.files.iter().enumerate().map(|(index, path)| Saved::read(index, path)).collect::<Result<_>>()?;
    for partial in saved.iter().filter(|saved| saved.is_partial()) {
        note(&format!("{} is a partial result: its run was interrupted", partial.path.display()));
    }
    let comparison = Comparison::of(saved, arguments.fail_if_worse)?;
    out.result(&comparison.to_json(), || text::human(&comparison))?;
    Ok(comparison.exit())
}

/// The letters by which a person is told which file is meant.
fn label(index: usize) -> String {
    match u8::try_from(index) {
        Ok(index) if index < 26 => char::from(b'A' + index).to_string(),
        _ => format!("#{}", index + 1),
    }
}

impl Saved {
    fn read(index: usize, path: &Path) -> Result<Self> {
        let content = std::fs::read(path).file("read", path).map_err(|error| {
            error.remedy("`diff` compares files that `--save` or `-o json` of bench or validate wrote.")
        })?;
        Self::parse(index, path, &content)
    }

    fn parse(index: usize, path: &Path, content: &[u8]) -> Result<Self> {
        let refuse = |what: String| {
            Error::usage(format!("{} {what}", path.display())).remedy(
                "Save results with `nvmetal bench DEVICE --save FILE` or `nvmetal validate DEVICE --save FILE`.",
            )
        };
        let document: Value =
            serde_json::from_slice(content).map_err(|error| refuse(format!("is not JSON: {error}")))?;
        let origin = match document.get("schema").and_then(Value::as_str) {
            Some("nvmetal.bench/1") => Origin::Bench,
            Some("nvmetal.validate/1") => Origin::Validate,
            Some("nvmetal.error/1") => return Err(refuse("holds an error, not a result".to_owned())),
            Some(other) => {
                return Err(refuse(format!("has the schema '{}', which is none of those compared here", clean(other))));
            }
            None => return Err(refuse("has no field `schema`: it is no result of nvmetal".to_owned())),
        };
        if document.get("dry_run") == Some(&Value::Bool(true)) {
            return Err(refuse("is from a dry run: it has no figures".to_owned()));
        }
        let Some(emulated) = document.get("emulated").and_then(Value::as_bool) else {
            return Err(refuse("does not say whether the drive was emulated".to_owned()));
        };
        Ok(Self { label: label(index), path: path.to_owned(), origin, emulated, document })
    }

    /// The value at a path of keys; `None` where there is none, or null.
    pub fn at(&self, keys: &[&str]) -> Option<&Value> {
        keys.iter().try_fold(&self.document, |value, key| value.get(key)).filter(|value| !value.is_null())
    }

    fn text(&self, keys: &[&str]) -> Option<String> {
        match self.at(keys)? {
            Value::String(text) => Some(clean(text)),
            other => Some(clean(&other.to_string())),
        }
    }

    fn is_partial(&self) -> bool {
        self.at(&["end"]).and_then(Value::as_str) == Some("interrupted")
            || self.at(&["interrupted"]) == Some(&Value::Bool(true))
    }
}

/// Text of a file, fit for a terminal.
fn clean(text: &str) -> String {
    let letter = |letter: char| if letter.is_control() { letter.escape_default().to_string() } else { letter.into() };
    text.chars().map(letter).collect()
}

/// What may be different, and where it stands.
const CIRCUMSTANCES: [(&str, &[&str]); 24] = [
    ("model", &["device", "model"]),
    ("serial", &["device", "serial"]),
    ("firmware", &["device", "firmware"]),
    ("PCI id", &["device", "pci_id"]),
    ("slot", &["device", "address"]),
    ("link", &["device", "link"]),
    ("ceiling", &["ceiling", "basis"]),
    ("ceiling", &["link", "ceiling", "basis"]),
    ("transport", &["device", "transport"]),
    ("interface", &["device", "transport_detail"]),
    ("host", &["host", "name"]),
    ("kernel", &["host", "kernel"]),
    ("machine", &["host", "machine"]),
    ("processor", &["host", "processor"]),
    ("date", &["time"]),
    ("nvmetal", &["nvmetal"]),
    ("namespace", &["device", "namespace", "nsid"]),
    ("size", &["device", "namespace", "bytes"]),
    ("block", &["device", "namespace", "lba_bytes"]),
    ("metadata", &["device", "namespace", "metadata_bytes"]),
    ("written", &["written", "state"]),
    ("in flight", &["iodepth"]),
    ("cores", &["job", "cpus"]),
    ("clock", &["clock"]),
];

/// Fields of a job that say where it runs and how long it is patient, not what it does.
const NOT_WORKLOAD: [&str; 2] = ["cpus", "timeout_ns"];

impl Comparison {
    /// Compares, or says why that makes no sense.
    pub fn of(saved: Vec<Saved>, limit_percent: Option<f64>) -> Result<Self> {
        let Some((first, others)) = saved.split_first().filter(|(_, others)| !others.is_empty()) else {
            return Err(Error::usage("one result alone cannot be compared"));
        };
        let (origin, emulated) = (first.origin, first.emulated);
        for other in others {
            comparable(first, other)?;
        }
        let differences = differences(&saved);
        let (figures, left_out) = figures::collect(&saved, origin);
        if figures.is_empty() {
            let why =
                if left_out.is_empty() { "they have no figure in common".to_owned() } else { left_out.join("; ") };
            return Err(Error::usage(format!("these results cannot be compared: {why}")).remedy(SAME_JOB));
        }
        let checks = figures::checks(&saved);
        Ok(Self { emulated, origin, saved, differences, figures, checks, left_out, limit_percent })
    }

    /// What is worse by more than the limit; empty without one.
    pub fn worse(&self) -> Vec<String> {
        let Some(limit) = self.limit_percent else { return Vec::new() };
        let figures = self.figures.iter().flat_map(|figure| {
            let exceeds = move |change: &&Change| figure.judged && change.is_worse_by(limit);
            figure.changes.iter().filter(exceeds).map(|change| format!("{} in {}", figure.id, change.label))
        });
        let checks = self.checks.iter().flat_map(|check| {
            let worse = check.words.iter().filter(|(_, word)| *word == Word::Worse);
            worse.map(|(label, _)| format!("{} in {label}", check.id))
        });
        figures.chain(checks).collect()
    }

    /// How the command ends.
    pub fn exit(&self) -> Exit {
        if self.worse().is_empty() { Exit::Pass } else { Exit::Fail }
    }

    fn to_json(&self) -> Value {
        let files: Vec<Value> = self
            .saved
            .iter()
            .map(|saved| {
                json!({
                    "label": saved.label,
                    "path": saved.path.display().to_string(),
                    "time": saved.at(&["time"]),
                    "device": saved.at(&["device"]),
                    "host": saved.at(&["host"]),
                    "partial": saved.is_partial(),
                })
            })
            .collect();
        json!({
            "schema": "nvmetal.diff/1",
            "emulated": self.emulated,
            "nvmetal": env!("CARGO_PKG_VERSION"),
            "of": self.origin,
            "files": files,
            "differences": self.differences,
            "figures": self.figures,
            "checks": self.checks,
            "left_out": self.left_out,
            "fail_if_worse_percent": self.limit_percent,
            "worse": self.worse(),
        })
    }
}

const SAME_JOB: &str = "Run the same command line on both, and compare these results.";

/// Refuses a pair that has nothing to say to each other.
fn comparable(first: &Saved, other: &Saved) -> Result<()> {
    let (a, b) = (first.path.display(), other.path.display());
    if first.origin != other.origin {
        return Err(Error::usage(format!("one of {a} and {b} is of `bench`, the other of `validate`")).remedy(SAME_JOB));
    }
    if first.emulated != other.emulated {
        let (emulated, real) = if first.emulated { (a, b) } else { (b, a) };
        return Err(Error::usage(format!("{emulated} is EMULATED and {real} is of a drive"))
            .remedy("The emulator's figures say nothing about a drive; compare like with like."));
    }
    let (Some(Value::Object(mine)), Some(Value::Object(theirs))) = (first.at(&["job"]), other.at(&["job"])) else {
        return match (first.origin, first.at(&["job"]).xor(other.at(&["job"]))) {
            (Origin::Bench, Some(_)) => {
                Err(Error::usage(format!("one of {a} and {b} does not say which job it ran")).remedy(SAME_JOB))
            }
            _ => Ok(()),
        };
    };
    let mut names: Vec<&String> = mine.keys().chain(theirs.keys()).collect();
    names.sort();
    names.dedup();
    let shown = |value: Option<&Value>| value.map_or("not told".to_owned(), |value| clean(&value.to_string()));
    let unlike: Vec<String> = names
        .into_iter()
        .filter(|name| !NOT_WORKLOAD.contains(&name.as_str()) && mine.get(*name) != theirs.get(*name))
        .map(|name| format!("{} {} and {}", clean(name), shown(mine.get(name)), shown(theirs.get(name))))
        .collect();
    if unlike.is_empty() {
        return Ok(());
    }
    Err(Error::usage(format!("{a} and {b} ran different jobs: {}", unlike.join(", "))).remedy(SAME_JOB))
}

fn differences(saved: &[Saved]) -> Vec<Difference> {
    CIRCUMSTANCES
        .iter()
        .map(|&(what, keys)| Difference { what, values: saved.iter().map(|saved| saved.text(keys)).collect() })
        .filter(|difference| difference.values.windows(2).any(|pair| pair[0] != pair[1]))
        .collect()
}

#[cfg(test)]
mod tests;
