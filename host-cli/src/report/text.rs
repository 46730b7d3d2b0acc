//! The pieces that human output is made of.
#![forbid(unsafe_code)]

use std::fmt::{Display, Write};

use nvmetal_driver::controller::SentCommand;

use crate::output::{DIM, styled, wrapping};
use crate::units::grouped;

/// Lines of `label  value`, the values in one column and wrapped in it.
pub struct Sheet {
    indent: usize,
    label_width: usize,
    text: String,
}

impl Sheet {
    /// Labels of up to this many letters, indented by two.
    pub fn new(label_width: usize) -> Self {
        Self { indent: 2, label_width, text: String::new() }
    }

    /// Adds a line.
    pub fn row(&mut self, label: &str, value: &str) {
        let column = self.indent + self.label_width + 1;
        let blanks = " ".repeat(column);
        let options = wrapping().initial_indent(&blanks).subsequent_indent(&blanks);
        let lines = textwrap::fill(value, options);
        let label = format!("{label:<width$}", width = self.label_width);
        let _ = writeln!(self.text, "{}{} {}", " ".repeat(self.indent), styled(DIM, &label), lines.trim_start());
    }

    /// What was added.
    pub fn text(self) -> String {
        self.text
    }
}

/// A value or a dash.
pub trait Dash {
    /// The value's text, or `-` where there is none.
    fn dash(&self) -> String;
}

impl<T: Display> Dash for Option<T> {
    fn dash(&self) -> String {
        match self {
            Some(value) => {
                let text = value.to_string();
                if text.is_empty() { "-".to_owned() } else { text }
            }
            None => "-".to_owned(),
        }
    }
}

/// I/O commands that change what a drive holds.
const WRITING: [&str; 5] = ["Write", "Write Zeroes", "Write Uncorrectable", "Dataset Management", "Copy"];

/// The commands of a run, and whether any of them writes.
pub fn sent(commands: &[SentCommand]) -> String {
    let sent: Vec<_> = commands.iter().map(|sent| format!("{} {}", grouped(sent.count.into()), sent.name)).collect();
    let writes = commands.iter().any(|sent| !sent.admin && WRITING.contains(&sent.name.as_ref()));
    format!("{}{}", sent.join(", "), if writes { "" } else { " (nothing that writes)" })
}
