//! The result of `validate` for people: a line for each check, its limit beneath it, what to do, and the verdict last,
//! where the eye is when the command has ended.
#![forbid(unsafe_code)]

use std::fmt::Write;

use super::text::{Sheet, sent};
use crate::check::{CheckResult, Status, Verdict};
use crate::command::validate::Validation;
use crate::device::Device;
use crate::drive::{self, Via};
use crate::output::{DIM, GREEN, RED, YELLOW, bold, styled, wrap, wrapping};
use crate::session::Closed;
use crate::units::nanoseconds;

/// Letters of the longest status word that is printed in the column.
const STATUS: usize = 5;
/// Letters of the longest check name.
const NAME: usize = 23;

/// What `--dry-run` says.
pub fn plan(device: &Device, quick: bool, via: Via) -> String {
    let long = if quick { "about 15 seconds" } else { "about a minute" };
    let how = match via {
        _ if matches!(device, Device::Emulated(_)) => {
            format!("make {device}, read it for {long} of its own time (never write) and judge it")
        }
        Via::Kernel => format!("leave {device} with the kernel, read it through the kernel for {long}"),
        Via::Auto => format!(
            "take {device} from the kernel if nobody uses it, else leave it there, read it for {long} (never write), \
             judge it and give it back"
        ),
        Via::Vfio => format!(
            "take {device} from the kernel if nobody uses it, read it for {long} (never write), judge it and give it back"
        ),
    };
    let how = if via == Via::Kernel { format!("{how} (never write) and judge it") } else { how };
    wrap(&format!("Would {how}; nothing was opened."), 0) + "\n"
}

/// The whole result.
pub fn human(validation: &Validation, closed: &Closed) -> String {
    let mut text = head(validation);
    text.push('\n');
    for check in &validation.report.checks {
        text += &line(check);
    }
    text.push('\n');
    text += &smart(validation);
    text += &tail(validation, closed);
    text += &not_judged(validation);
    text.push('\n');
    text += &verdict(validation);
    text
}

fn head(validation: &Validation) -> String {
    let device = &validation.device;
    let emulated = if validation.emulated { "EMULATED  " } else { "" };
    let mut sheet = Sheet::new(10);
    sheet.row("serial", &format!("{}, firmware {}", device.serial, device.firmware));
    let detail = validation.kernel.as_ref().map_or(&device.transport_detail, |kernel| &kernel.standing);
    sheet.row("address", &format!("{} via {} ({detail})", device.address, device.transport));
    format!("{}\n{}", bold(&format!("{emulated}{}", device.model)), sheet.text())
}

/// One check: status, name and evidence; the limit and its basis; advice where there is some.
fn line(check: &CheckResult) -> String {
    let column = STATUS + NAME;
    let blanks = " ".repeat(column);
    let paragraph = |text: &str| {
        let filled = textwrap::fill(text, wrapping().initial_indent(&blanks).subsequent_indent(&blanks));
        filled.trim_start().to_owned()
    };
    let (style, word) = match check.status {
        Status::Pass => (GREEN, "PASS"),
        Status::Warn => (YELLOW, "WARN"),
        Status::Fail => (RED, "FAIL"),
        Status::Skip => (DIM, "SKIP"),
        Status::NotTested => (DIM, "-"),
    };
    let mut text = format!(
        "{}{}{:<NAME$}{}\n",
        styled(style, word),
        " ".repeat(STATUS - word.len()),
        check.id,
        paragraph(&check.evidence)
    );
    let limit = paragraph(&format!("limit: {} [{}]", check.limit, check.basis.word()));
    let _ = writeln!(text, "{blanks}{}", styled(DIM, &limit));
    if let Some(advice) = &check.advice {
        let _ = writeln!(text, "{blanks}{}", paragraph(&format!("-> {advice}")));
    }
    text
}

/// What the run has changed in the health log.
fn smart(validation: &Validation) -> String {
    let Some(changes) = validation.smart_changes() else { return String::new() };
    if changes.is_empty() {
        return format!("{}: nothing changed in the run\n\n", bold("SMART"));
    }
    let mut sheet = Sheet::new(changes.iter().map(|change| change.label.len()).max().unwrap_or(0));
    for change in &changes {
        sheet.row(&change.label, &change.text);
    }
    format!("{}, changed in the run:\n{}\n", bold("SMART"), sheet.text())
}

/// What cannot be seen past the kernel, where the way led through it.
fn not_judged(validation: &Validation) -> String {
    if validation.kernel.is_none() {
        return String::new();
    }
    let item = |line: String| textwrap::fill(&line, wrapping().initial_indent("  - ").subsequent_indent("    ")) + "\n";
    format!("\n{}, not judged:\n{}", bold("Via kernel"), drive::not_judged().map(item).collect::<String>())
}

/// What was done: times, commands, how the drive went back.
fn tail(validation: &Validation, closed: &Closed) -> String {
    let mut sheet = Sheet::new(10);
    let took: f64 = validation.phases.iter().map(|phase| phase.seconds).sum();
    let how = if validation.clock == "virtual time" { " of virtual time" } else { "" };
    sheet.row("took", &format!("{took:.0} s{how}"));
    if let Some(run) = &validation.evidence.latency {
        let latency = run.latency_ns;
        sheet.row(
            "latency",
            &format!(
                "4 KiB, one at a time: p50 {}, p99 {}, p99.9 {}, slowest {}",
                nanoseconds(latency.p50),
                nanoseconds(latency.p99),
                nanoseconds(latency.p999),
                nanoseconds(latency.max)
            ),
        );
    }
    sheet.row("sent", &sent(&validation.sent));
    for phase in validation.phases.iter().filter(|phase| phase.error.is_some()) {
        sheet.row("error", &format!("{}: {}", phase.name, phase.error.as_deref().unwrap_or_default()));
    }
    match (&closed.given_back, &closed.error) {
        (_, Some(error)) => {
            let remedy = error.remedy.as_deref().unwrap_or_default();
            sheet.row("drive", &styled(RED, &format!("{}. {remedy}", error.message)));
        }
        (Some(back), None) => {
            let name = back.controller.as_ref().map_or(String::new(), |name| format!(" as {name}"));
            sheet.row("drive", &format!("given back to {}{name}", back.driver));
        }
        (None, None) if validation.kernel.is_some() => {
            sheet.row(
                "drive",
                &format!("stayed with the kernel as {}; nothing was unbound", validation.device.transport_detail),
            );
        }
        (None, None) if !validation.emulated => sheet.row("drive", "left on vfio-pci, where it was before"),
        (None, None) => {}
    }
    sheet.text()
}

fn verdict(validation: &Validation) -> String {
    let report = &validation.report;
    let (style, word) = match report.verdict {
        Verdict::Pass => (GREEN, "PASS"),
        Verdict::Warn => (YELLOW, "WARN"),
        Verdict::Fail => (RED, "FAIL"),
    };
    let names = |status| report.with(status).map(|check| check.id).collect::<Vec<_>>().join(", ");
    let mut parts = Vec::new();
    if validation.interrupted.is_some() {
        parts.push("INTERRUPTED, the result is partial".to_owned());
    }
    for (status, label) in [
        (Status::Fail, "failed"),
        (Status::Warn, "warned"),
        (Status::Skip, "skipped"),
        (Status::NotTested, "not tested"),
    ] {
        let names = names(status);
        if !names.is_empty() {
            parts.push(format!("{label}: {names}"));
        }
    }
    let emulated = if validation.emulated { "EMULATED, " } else { "" };
    let via = if validation.kernel.is_some() { " via kernel" } else { "" };
    let title = format!("{emulated}{}{via}", validation.device.model);
    let text = format!("{word}  {title}; {}", parts.join("; "));
    let filled = textwrap::fill(&text, wrapping().subsequent_indent("      "));
    filled.replacen(word, &styled(style, word), 1) + "\n"
}
