//! `nvmetal decode`: what the bytes of a dump mean, without any device.
#![forbid(unsafe_code)]

use std::fmt::Write;
use std::path::Path;

use clap::Args;
use nvmetal_core::describe::structures;
use serde_json::json;

use crate::dump;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::nvme_cli::{self, Owner};
use crate::output::{Format, Output, bold, note, pretty, wrap};
use crate::page::forms;
use crate::structure::Structure;

const AFTER: &str = "\
STRUCTURE is a noun, nvme-cli's command for the same thing, or an id of --list:
  smart, id ctrl, id ns, log error, log firmware, log self-test, registers,
  sqe [admin|io], cqe, smart-log, id-ctrl, show-regs, ...

  nvme smart-log /dev/nvme0 -o binary | nvmetal decode smart -
  nvmetal decode id ctrl page.hex -o json
  nvmetal decode sqe io entry.bin -o hex";

/// Which dump of which structure.
#[derive(Debug, Args)]
#[command(override_usage = "nvmetal decode [OPTIONS] <STRUCTURE> <FILE|->\n       nvmetal decode --list", after_help = AFTER)]
pub struct Arguments {
    /// What the dump is of, then its file; `-` is standard input
    #[arg(value_name = "STRUCTURE FILE", required_unless_present = "list")]
    words: Vec<String>,
    /// The file holds hex, in whatever tool's form
    #[arg(long, conflicts_with = "binary")]
    hex: bool,
    /// The file holds the bytes themselves
    #[arg(long)]
    binary: bool,
    /// The namespace that the structure is of, for the forms of nvme-cli
    #[arg(long, short = 'n', value_name = "NSID")]
    namespace_id: Option<u32>,
    /// Show every structure that can be decoded
    #[arg(long)]
    list: bool,
}

/// Decodes the dump.
pub fn run(arguments: &Arguments, out: &mut Output) -> Result<Exit> {
    if arguments.list {
        return list(out);
    }
    let words: Vec<&str> = arguments.words.iter().map(String::as_str).collect();
    let (structure, file) = split(&words)?;
    let descriptor = structure.descriptor;
    out.only(&format!("decode {}", descriptor.id), forms(descriptor))?;
    let kind = match (arguments.hex, arguments.binary) {
        (true, _) => dump::Kind::Hex,
        (_, true) => dump::Kind::Binary,
        _ => dump::Kind::Any,
    };
    let bytes = dump::read(Path::new(file), kind)?;
    if bytes.len() < descriptor.size {
        let (has, size) = (bytes.len(), descriptor.size);
        note(&format!("the dump has {has} of the structure's {size} bytes; what is behind them is not available"));
    } else if structure.is_single() && bytes.len() > descriptor.size {
        note(&format!("{} bytes behind the structure are not decoded", bytes.len() - descriptor.size));
    }
    let document = json!({
        "schema": "nvmetal.decode/1",
        "nvmetal": env!("CARGO_PKG_VERSION"),
        "structure": descriptor.id,
        "bytes": bytes.len(),
        descriptor.id: structure.json(&bytes),
    });
    out.save(&document)?;
    let owner = Owner { device: "decoded", nsid: arguments.namespace_id, emulated: false, verbose: out.verbose };
    let what = descriptor.doc.trim().lines().next().unwrap_or_default();
    let head = bold(what.split(". ").next().unwrap_or(what).trim_end_matches('.'));
    match out.format {
        Format::Json | Format::Fio | Format::Csv => out.print(&pretty(&document)),
        Format::Raw => out.raw(&bytes),
        Format::Hex => out.print(&format!("{head}\n{}", structure.hex(&bytes))),
        Format::NvmeCli => out.print(&nvme_cli::text(descriptor, &bytes, owner).unwrap_or_default()),
        Format::NvmeCliJson => out.print(&nvme_cli::json(descriptor, &bytes, owner).unwrap_or_default()),
        Format::Human => out.print(&format!("{head}\n{}", structure.text(&bytes))),
    }?;
    Ok(Exit::Pass)
}

/// The words that name a structure, and the file behind them.
fn split<'a>(words: &[&'a str]) -> Result<(Structure, &'a str)> {
    if Structure::find(&words.join(" ").to_ascii_lowercase()).is_some() {
        return Err(Error::usage(format!("no dump of '{}' was named", words.join(" ")))
            .remedy("Name its file; `-` is standard input."));
    }
    match words {
        [name @ .., file] if !name.is_empty() => Ok((Structure::named(name)?, file)),
        _ => Structure::named(words).map(|structure| (structure, "-")),
    }
}

/// Lists the structures.
fn list(out: &mut Output) -> Result<Exit> {
    out.only("decode --list", &[Format::Human, Format::Json])?;
    let all: Vec<_> = structures().collect();
    let json = json!({
        "schema": "nvmetal.structures/1",
        "structures": all.iter().map(|known| json!({
            "id": known.id,
            "bytes": known.size,
            "doc": one_line(known.doc),
        })).collect::<Vec<_>>(),
    });
    out.result(&json, || {
        let width = all.iter().map(|known| known.id.len()).max().unwrap_or(0);
        let mut text = String::new();
        for known in &all {
            let line = format!("{:width$}  {}", known.id, one_line(known.doc));
            let _ = writeln!(text, "{}", wrap(&line, width + 2));
        }
        text
    })?;
    Ok(Exit::Pass)
}

/// Documentation without its line breaks, and without the marks of its links.
pub fn one_line(doc: &str) -> String {
    doc.split_whitespace().collect::<Vec<_>>().join(" ").replace("[`", "`").replace("`]", "`")
}
