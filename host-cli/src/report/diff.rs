//! The result of `diff` for people: what is not the same first, then the figures, then what that means.
#![forbid(unsafe_code)]

use std::fmt::Write;

use super::text::{Dash, Sheet};
use crate::command::diff::{Change, Comparison, Figure, Origin, Unit, Word};
use crate::output::{GREEN, RED, YELLOW, bold, styled, wrapping};
use crate::units::{celsius, grouped, megabytes, nanoseconds};

/// Letters of the longest name of a figure.
const NAME: usize = 27;
/// Letters of a value.
const VALUE: usize = 13;

/// The whole comparison.
pub fn human(comparison: &Comparison) -> String {
    let mut text = head(comparison);
    text += &differences(comparison);
    text += &checks(comparison);
    for index in 1..comparison.saved.len() {
        text += &figures(comparison, index);
    }
    text + &tail(comparison)
}

fn head(comparison: &Comparison) -> String {
    let of = match comparison.origin {
        Origin::Bench => "bench",
        Origin::Validate => "validate",
    };
    let emulated = if comparison.emulated { "EMULATED  " } else { "" };
    let mut sheet = Sheet::new(10);
    for saved in &comparison.saved {
        sheet.row(&saved.label, &saved.path.display().to_string());
    }
    format!("{}\n{}\n", bold(&format!("{emulated}Results of {of}")), sheet.text())
}

fn differences(comparison: &Comparison) -> String {
    if comparison.differences.is_empty() {
        return "Same drive, slot, link, host and date\n\n".to_owned();
    }
    let mut sheet = Sheet::new(10);
    for difference in &comparison.differences {
        for (index, (saved, value)) in comparison.saved.iter().zip(&difference.values).enumerate() {
            let what = if index == 0 { difference.what } else { "" };
            sheet.row(what, &format!("{}  {}", saved.label, value.dash()));
        }
    }
    format!("{}\n{}\n", bold("Not the same"), sheet.text())
}

fn checks(comparison: &Comparison) -> String {
    if comparison.checks.is_empty() {
        return String::new();
    }
    let mut text = format!("{}\n", bold("Checks"));
    for check in &comparison.checks {
        let _ = write!(text, "  {:<NAME$}", check.id);
        for (saved, status) in comparison.saved.iter().zip(&check.statuses) {
            let word = check.words.iter().find(|(label, _)| *label == saved.label).map(|(_, word)| *word);
            let status = status.dash();
            let _ = write!(text, " {} {}", saved.label, word.map_or(status.clone(), |word| tint(word, &status)));
        }
        text.push('\n');
    }
    text + "\n"
}

/// One result against the first.
fn figures(comparison: &Comparison, index: usize) -> String {
    let (Some(first), Some(other)) = (comparison.saved.first(), comparison.saved.get(index)) else {
        return String::new();
    };
    let title = format!("{:<width$} {:>VALUE$} {:>VALUE$}", "Figures", first.label, other.label, width = NAME + 2);
    let mut text = format!("{}{:>10}\n", bold(&title), "change");
    for figure in &comparison.figures {
        let value = |at: usize| figure.values.get(at).copied().flatten().map(|value| value_text(figure.unit, value));
        let Some(change) = figure.changes.get(index - 1) else { continue };
        let _ = writeln!(
            text,
            "  {:<NAME$} {:>VALUE$} {:>VALUE$}{:>10}  {}",
            figure.id,
            value(0).dash(),
            value(index).dash(),
            change_text(figure, change, index),
            word(change.word)
        );
    }
    text + "\n"
}

fn value_text(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Count => grouped(value.max(0.0).round() as u128),
        Unit::BytesPerSecond => megabytes(value),
        Unit::Nanoseconds => nanoseconds(value.max(0.0) as u64),
        Unit::Percent => format!("{value:.1} %"),
        Unit::Kelvin => format!("{} C", celsius(value.clamp(0.0, f64::from(u16::MAX)) as u16)),
    }
}

/// The change, in degrees for temperatures, else in per cent.
fn change_text(figure: &Figure, change: &Change, index: usize) -> String {
    if figure.unit == Unit::Kelvin {
        let value = |at: usize| figure.values.get(at).copied().flatten();
        return value(0).zip(value(index)).map(|(from, to)| format!("{:+.0} K", to - from)).dash();
    }
    match change.percent {
        _ if change.word == Word::Same => "0.0 %".to_owned(),
        Some(percent) if percent.abs() >= 9999.0 => format!("{:+.0} x", percent / 100.0 + 1.0),
        Some(percent) => format!("{percent:+.1} %"),
        None => "-".to_owned(),
    }
}

fn word(word: Word) -> String {
    let text = match word {
        Word::Better => "better",
        Word::Worse => "worse",
        Word::Same => "same",
        Word::Unknown => "not told",
    };
    tint(word, text)
}

fn tint(word: Word, text: &str) -> String {
    match word {
        Word::Better => styled(GREEN, text),
        Word::Worse => styled(RED, text),
        Word::Same => text.to_owned(),
        Word::Unknown => styled(YELLOW, text),
    }
}

fn tail(comparison: &Comparison) -> String {
    let paragraph = |text: &str| textwrap::fill(text, wrapping().subsequent_indent("  ")) + "\n";
    let mut text = String::new();
    for why in &comparison.left_out {
        text += &paragraph(&format!("not compared: {why}"));
    }
    if let Some(limit) = comparison.limit_percent {
        let worse = comparison.worse();
        text += &if worse.is_empty() {
            paragraph(&format!("PASS  nothing that is judged is worse by more than {limit} %"))
        } else {
            paragraph(&format!("FAIL  worse by more than {limit} %: {}", worse.join(", ")))
        };
    }
    text
}
