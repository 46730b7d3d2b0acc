//! The real binary, run as a person runs it, in an 80 column terminal without colours.
#![forbid(unsafe_code)]
#![allow(dead_code, reason = "each test program uses what it needs")]

use std::process::{Command, Output};

use serde_json::Value;

/// The binary under test with these words, not started yet.
pub fn command(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nvmetal"));
    command.args(words).env("COLUMNS", "80").env_remove("RUST_LOG").env("NO_COLOR", "1");
    command
}

/// Runs the binary with the words of `line` to its end.
pub fn nvmetal(line: &str) -> Ran {
    let words: Vec<_> = line.split_whitespace().collect();
    let output = command(&words).output().expect("the binary starts");
    Ran::new(line, &output)
}

/// What a run said.
#[derive(Debug)]
pub struct Ran {
    line: String,
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Ran {
    pub fn new(line: &str, output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { line: line.to_owned(), code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }

    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "nvmetal {}\n{}\n{}", self.line, self.out, self.err);
        self
    }

    /// Everything that was said, in one line with single blanks, so that line breaks do not matter.
    pub fn said(&self) -> String {
        format!("{} {}", self.out, self.err).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[track_caller]
    pub fn says(self, parts: &[&str]) -> Self {
        let said = self.said();
        for part in parts {
            assert!(said.contains(part), "nvmetal {} does not say {part:?}:\n{said}", self.line);
        }
        self
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("nvmetal {}: {error}:\n{}", self.line, self.out))
    }
}
