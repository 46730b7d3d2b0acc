//! The result of `doctor` for people: a line for each finding, what to do beneath it, and the answer last.
#![forbid(unsafe_code)]

use std::fmt::Write;

use nvmetal_driver::pci::environment::{Finding, Status};

use crate::command::doctor::{Diagnosis, is_clear};
use crate::output::{DIM, GREEN, RED, YELLOW, bold, styled, wrapping};

/// Letters of the status column.
const STATUS: usize = 6;
/// Letters of the longest name of a finding, and a blank.
const NAME: usize = 17;

/// The whole diagnosis.
pub fn human(diagnosis: &Diagnosis) -> String {
    let mut text = String::new();
    if !diagnosis.machine.is_empty() {
        text += &section("This machine", &diagnosis.machine);
    }
    for drive in &diagnosis.drives {
        let model = drive.model.as_deref().map_or(String::new(), |model| format!("  {model}"));
        let emulated = if diagnosis.emulated.is_some() { "EMULATED  " } else { "" };
        text += &section(&format!("{emulated}{}{model}", drive.address), &drive.findings);
    }
    text + &answer(diagnosis)
}

fn section(title: &str, findings: &[Finding]) -> String {
    let lines: String = findings.iter().map(line).collect();
    format!("{}\n{lines}\n", bold(title))
}

/// One finding: status, name, what was seen; what to do beneath.
fn line(finding: &Finding) -> String {
    let (style, word) = match finding.status {
        Status::Ok => (GREEN, "ok"),
        Status::Warn => (YELLOW, "warn"),
        Status::Blocker => (RED, "BLOCK"),
    };
    let column = 2 + STATUS + NAME;
    let blanks = " ".repeat(column);
    let paragraph = |text: &str| {
        let filled = textwrap::fill(text, wrapping().initial_indent(&blanks).subsequent_indent(&blanks));
        filled.trim_start().to_owned()
    };
    let mut text = format!(
        "  {}{}{}{}\n",
        styled(style, word),
        " ".repeat(STATUS - word.len()),
        styled(DIM, &format!("{:<NAME$}", finding.what)),
        paragraph(&finding.evidence)
    );
    if let Some(remedy) = &finding.remedy {
        let _ = writeln!(text, "{blanks}{}", paragraph(&format!("-> {remedy}")));
    }
    text
}

/// The answer, in one paragraph.
fn answer(diagnosis: &Diagnosis) -> String {
    let machine = blockers(&diagnosis.machine);
    let (ready, blocked): (Vec<_>, Vec<_>) = diagnosis.drives.iter().partition(|drive| is_clear(&drive.findings));
    let addresses: Vec<_> = ready.iter().map(|drive| drive.address.as_str()).collect();
    let mut parts = Vec::new();
    if !machine.is_empty() {
        parts.push(format!("this machine ({})", machine.join(", ")));
    }
    for drive in &blocked {
        parts.push(format!("{} ({})", drive.address, blockers(&drive.findings).join(", ")));
    }
    if diagnosis.drives.is_empty() {
        parts.push("no NVMe controller on the PCI bus".to_owned());
    }
    let (style, word, text) = match addresses.first() {
        Some(first) if machine.is_empty() => {
            let rest = if parts.is_empty() { String::new() } else { format!("; not ready: {}", parts.join(", ")) };
            (GREEN, "READY", format!("{}{rest}. Next: nvmetal validate {first}", addresses.join(", ")))
        }
        _ => {
            let marked = !blocked.is_empty() || !machine.is_empty();
            let what = if marked { "The lines marked BLOCK say what to do. " } else { "" };
            (RED, "NOT READY", format!("{}. {what}{}", parts.join("; "), way_out(diagnosis)))
        }
    };
    let filled = textwrap::fill(&format!("{word}  {text}"), wrapping().subsequent_indent("  "));
    filled.replacen(word, &styled(style, word), 1) + "\n"
}

/// What works all the same.
fn way_out(diagnosis: &Diagnosis) -> &'static str {
    match (diagnosis.drives.is_empty(), diagnosis.asked_for_one) {
        (true, _) => "Without a drive: nvmetal validate emulated",
        (_, true) => "Without VFIO: nvmetal validate DEVICE --via kernel",
        (_, false) => "Without VFIO: nvmetal validate DEVICE --via kernel; without a drive: nvmetal validate emulated",
    }
}

fn blockers(findings: &[Finding]) -> Vec<&'static str> {
    findings.iter().filter(|finding| finding.status == Status::Blocker).map(|finding| finding.what).collect()
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::command::doctor::Drive;
    use crate::output::width;

    /// A finding by hand.
    pub fn finding(what: &'static str, status: Status) -> Finding {
        let remedy = (status != Status::Ok).then(|| "do this".to_owned());
        Finding { what, status, evidence: format!("{what} was seen"), remedy }
    }

    /// A machine with drives at 0000:01:00.0, 0000:02:00.0, ...
    pub fn diagnosis(machine: Vec<Finding>, drives: Vec<Vec<Finding>>) -> Diagnosis {
        let drive = |(index, findings)| Drive {
            address: format!("0000:{:02x}:00.0", index + 1),
            model: Some("Example 1TB".to_owned()),
            findings,
        };
        let drives = drives.into_iter().enumerate().map(drive).collect();
        Diagnosis { emulated: None, asked_for_one: false, machine, drives }
    }

    fn plain(diagnosis: &Diagnosis) -> String {
        anstream::adapter::strip_str(&human(diagnosis)).to_string()
    }

    /// The text without its line breaks, which depend on the terminal.
    fn words(text: &str) -> String {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn every_finding_has_a_line_and_its_remedy_beneath() {
        let machine = vec![finding("iommu", Status::Ok), finding("hugepages", Status::Warn)];
        let text = plain(&diagnosis(machine, vec![vec![finding("usage", Status::Blocker)]]));
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines[..9],
            [
                "This machine",
                "  ok    iommu            iommu was seen",
                "  warn  hugepages        hugepages was seen",
                "                         -> do this",
                "",
                "0000:01:00.0  Example 1TB",
                "  BLOCK usage            usage was seen",
                "                         -> do this",
                "",
            ]
        );
    }

    #[test]
    fn the_answer_names_the_drives_that_are_ready_and_why_others_are_not() {
        let drives = vec![vec![finding("usage", Status::Blocker)], vec![finding("usage", Status::Ok)]];
        let text = words(&plain(&diagnosis(vec![], drives)));
        let answer = "READY 0000:02:00.0; not ready: 0000:01:00.0 (usage). Next: nvmetal validate 0000:02:00.0";
        assert!(text.ends_with(answer), "{text}");
    }

    #[test]
    fn a_machine_without_iommu_and_drive_says_both_and_what_works_there() {
        let machine = vec![finding("iommu", Status::Blocker), finding("memlock", Status::Blocker)];
        let text = words(&plain(&diagnosis(machine, vec![])));
        let answer = "NOT READY this machine (iommu, memlock); no NVMe controller on the PCI bus. The lines marked BLOCK \
                      say what to do. Without a drive: nvmetal validate emulated";
        assert!(text.ends_with(answer), "{text}");
    }

    #[test]
    fn no_line_is_longer_than_the_terminal_is_wide_and_no_word_is_lost() {
        let mut long = finding("module.interface", Status::Blocker);
        long.evidence = "neither iommufd nor vfio_iommu_type1 is loaded or available ".repeat(4);
        long.remedy = Some("modprobe vfio_iommu_type1; if that fails, install the package ".repeat(4));
        let text = plain(&diagnosis(vec![long.clone()], vec![]));
        for line in text.lines() {
            assert!(line.len() <= width(), "{line}");
        }
        assert!(words(&text).contains(&words(&long.evidence)), "{text}");
        assert!(words(&text).contains(&words(&long.remedy.unwrap_or_default())), "{text}");
    }
}
