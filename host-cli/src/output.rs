//! Where results go.
//!
//! Standard output carries the result and nothing else; notes, progress and the log go to standard error. A reader that
//! goes away (`nvmetal list | head -1`) is no error and must not end the process by a signal or a panic, because a drive
//! may still have to be given back: after a broken pipe, output is dropped and the command goes on.
#![forbid(unsafe_code)]

use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;

use anstyle::{AnsiColor, Style};
use clap::ValueEnum;
use serde_json::Value;

use crate::error::{Error, FileContext, Result};

/// The forms in which a result can be had. Not every command has all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Text for people.
    #[value(alias = "normal", alias = "text")]
    Human,
    /// One JSON document.
    Json,
    /// fio's JSON.
    Fio,
    /// Comma separated values.
    Csv,
    /// The text that nvme-cli prints for the same command.
    NvmeCli,
    /// The JSON that nvme-cli prints for the same command.
    NvmeCliJson,
    /// The bytes as a hex dump with the fields beside.
    Hex,
    /// The bytes themselves.
    #[value(alias = "binary")]
    Raw,
}

impl Format {
    /// The word on the command line.
    pub fn word(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Whether errors are printed as JSON, too.
    pub const fn is_json(self) -> bool {
        matches!(self, Self::Json | Self::NvmeCliJson | Self::Fio)
    }
}

/// The way out for results.
pub struct Output {
    /// The form asked for.
    pub format: Format,
    /// Whether more was asked for, as some forms of nvme-cli have it.
    pub verbose: bool,
    save: Option<PathBuf>,
    stdout: anstream::AutoStream<io::Stdout>,
    reader_gone: bool,
}

impl Output {
    /// Results in this form; a copy as JSON in `save`.
    pub fn new(format: Format, save: Option<PathBuf>) -> Self {
        Self { format, verbose: false, save, stdout: anstream::stdout(), reader_gone: false }
    }

    /// The same, with more where a form has more.
    #[must_use]
    pub fn verbose(self, verbose: bool) -> Self {
        Self { verbose, ..self }
    }

    /// Refuses a form that the command does not have.
    pub fn only(&self, command: &str, forms: &[Format]) -> Result<()> {
        if forms.contains(&self.format) {
            return Ok(());
        }
        let words: Vec<String> = forms.iter().map(|form| form.word()).collect();
        Err(Error::usage(format!("'{command}' has no output form '{}'", self.format.word()))
            .remedy(format!("Use one of: {}.", words.join(", "))))
    }

    /// Prints text as it is.
    pub fn print(&mut self, text: &str) -> Result<()> {
        self.bytes(text.as_bytes())
    }

    /// Prints bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        if self.reader_gone {
            return Ok(());
        }
        match self.stdout.write_all(bytes).and_then(|()| self.stdout.flush()) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.reader_gone = true;
                Ok(())
            }
            other => other.file("write", "standard output".as_ref()),
        }
    }

    /// Writes the result to `--save`, where that was given.
    pub fn save(&self, json: &Value) -> Result<()> {
        match &self.save {
            Some(path) => std::fs::write(path, pretty(json)).file("write", path),
            None => Ok(()),
        }
    }

    /// Writes data, of which not a byte may be taken for a colour and left out.
    pub fn raw(&mut self, bytes: &[u8]) -> Result<()> {
        if self.reader_gone {
            return Ok(());
        }
        let mut stdout = io::stdout().lock();
        match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.reader_gone = true;
                Ok(())
            }
            other => other.file("write", "standard output".as_ref()),
        }
    }

    /// Ends a command with its result: `human` is called for the text, unless JSON was asked for. The JSON goes to
    /// `--save`, too.
    pub fn result(&mut self, json: &Value, human: impl FnOnce() -> String) -> Result<()> {
        self.save(json)?;
        if self.format == Format::Json { self.print(&pretty(json)) } else { self.print(&human()) }
    }
}

/// JSON with indentation and a final line end.
pub fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

/// A remark beside the result, on standard error.
pub fn note(text: &str) {
    // A closed standard error leaves nobody to tell.
    let _ = writeln!(io::stderr(), "{}", wrap(&format!("note: {text}"), 2));
}

/// Columns to fill: the terminal's, at most 100; 80 where there is none. `COLUMNS` decides over both.
pub fn width() -> usize {
    let asked = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let columns = asked.or_else(|| terminal_size::terminal_size().map(|(columns, _)| usize::from(columns.0)));
    columns.unwrap_or(80).clamp(40, 100)
}

/// Text broken at [`width`] with every line after the first indented by `indent`.
pub fn wrap(text: &str, indent: usize) -> String {
    let blanks = " ".repeat(indent);
    textwrap::fill(text, wrapping().subsequent_indent(&blanks))
}

/// How text is broken: between words only, for a path or an option that is broken cannot be copied.
pub fn wrapping<'a>() -> textwrap::Options<'a> {
    textwrap::Options::new(width())
        .break_words(false)
        .word_separator(textwrap::WordSeparator::AsciiSpace)
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
}

/// Emphasis for a terminal; [`Output`] strips it where there is none.
pub fn styled(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// Bold text.
pub fn bold(text: &str) -> String {
    styled(Style::new().bold(), text)
}

/// Good news.
pub const GREEN: Style = AnsiColor::Green.on_default().bold();
/// Something to look at.
pub const YELLOW: Style = AnsiColor::Yellow.on_default().bold();
/// Bad news.
pub const RED: Style = AnsiColor::Red.on_default().bold();
/// Side matter.
pub const DIM: Style = Style::new().dimmed();
