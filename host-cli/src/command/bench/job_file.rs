//! fio's job files: the usable part of one is run, and what is not understood is named.
//!
//! A job file is a list of sections, `[global]` for all that follow and one for each job, with a word or `word=value` on
//! each line. The words go through the same parser as those of the command line, so they mean the same. fio runs the
//! jobs of a file at the same time unless `stonewall` stands between them; here they run one after the other.
#![forbid(unsafe_code)]

use std::path::Path;

use clap::{Args, CommandFactory, FromArgMatches, Parser};

use super::words::{FioWords, Workload};
use crate::error::{Error, FileContext, Result};
use crate::output::note;

/// The words of one job.
#[derive(Debug, Parser)]
#[command(name = "job", no_binary_name = true, disable_help_flag = true, disable_version_flag = true)]
pub struct Section {
    #[command(flatten)]
    pub workload: Workload,
    #[command(flatten)]
    pub fio: FioWords,
}

/// A line of a section.
type Word = (String, Option<String>);

/// Words that a job file may have and that change nothing when jobs run one after the other.
const WITHOUT_EFFECT: &[&str] = &["stonewall", "wait_for_previous", "new_group"];

/// The jobs of a file, the one called `section` where that is given.
pub fn read(path: &Path, section: Option<&str>) -> Result<Vec<Section>> {
    let text = std::fs::read_to_string(path).file("read", path)?;
    let shown = path.display();
    let (sections, misplaced) = sections(&text);
    if let Some(line) = misplaced {
        return Err(Error::usage(format!("{shown}: '{line}' stands before any [section]")));
    }
    let wanted = |name: &str| section.is_none_or(|wanted| wanted == name);
    let mut jobs = Vec::new();
    for (name, words) in sections.iter().filter(|(name, _)| wanted(name)) {
        let (line, unknown) = understood(words);
        if !unknown.is_empty() {
            note(&format!("{shown} [{name}]: not understood and left out: {}", unknown.join(", ")));
        }
        let mut job = Section::command()
            .try_get_matches_from(line)
            .and_then(|matches| Section::from_arg_matches(&matches))
            .map_err(|error| {
                let text = error.to_string();
                let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
                Error::usage(format!("{shown} [{name}]: {first}"))
            })?;
        job.fio.name.get_or_insert_with(|| name.clone());
        jobs.push(job);
    }
    if jobs.is_empty() {
        let what = section.map_or("no job".to_owned(), |section| format!("no job [{section}]"));
        return Err(Error::usage(format!("{shown} has {what}")));
    }
    Ok(jobs)
}

/// The sections with the words of `[global]` before their own; and a line that stands before all of them.
fn sections(text: &str) -> (Vec<(String, Vec<Word>)>, Option<String>) {
    let mut sections: Vec<(String, Vec<Word>)> = Vec::new();
    let (mut global, mut in_global, mut begun) = (Vec::new(), false, false);
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            (in_global, begun) = (name == "global", true);
            if !in_global {
                sections.push((name.to_owned(), global.clone()));
            }
            continue;
        }
        if !begun {
            return (Vec::new(), Some(line.to_owned()));
        }
        let word = match line.split_once('=') {
            Some((word, value)) => (word.trim().to_owned(), Some(value.trim().to_owned())),
            None => (line.to_owned(), None),
        };
        match sections.last_mut() {
            _ if in_global => global.push(word),
            Some((_, words)) => words.push(word),
            None => {}
        }
    }
    (sections, None)
}

/// The words as a command line, a later one in place of an earlier one; and those that nobody knows.
fn understood(words: &[Word]) -> (Vec<String>, Vec<String>) {
    let command = Section::command();
    let (mut known, mut unknown): (Vec<(String, String)>, _) = (Vec::new(), Vec::new());
    for (word, value) in words {
        let names = |argument: &clap::Arg| {
            let aliases = argument.get_all_aliases().unwrap_or_default();
            argument.get_long() == Some(word) || aliases.contains(&word.as_str())
        };
        let Some(argument) = command.get_arguments().find(|argument| names(argument)) else {
            if !WITHOUT_EFFECT.contains(&word.as_str()) {
                unknown.push(value.as_ref().map_or(word.clone(), |value| format!("{word}={value}")));
            }
            continue;
        };
        let id = argument.get_id().to_string();
        known.retain(|(other, _)| *other != id);
        known.push((id, value.as_ref().map_or(format!("--{word}"), |value| format!("--{word}={value}"))));
    }
    (known.into_iter().map(|(_, line)| line).collect(), unknown)
}

/// Where the jobs come from.
#[derive(Debug, Clone, Default, Args)]
pub struct Source {
    /// Run the jobs of a fio job file, one after the other
    #[arg(long, value_name = "FILE", help_heading = "Workload")]
    pub job: Option<std::path::PathBuf>,
    /// Only this job of the file
    #[arg(long, value_name = "NAME", requires = "job", help_heading = "Workload")]
    pub section: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const FILE: &str = "; a file\n[global]\nioengine=libaio\nbs=4k\nruntime = 10\nunified_rw_reporting=1\n\n\
                        [one]\nrw=randread\niodepth=32\n# a remark\n[two]\nstonewall\nbs=128k\nrw=read\nzonemode=zbd\n";

    fn file(text: &str) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(text.as_bytes()).expect("it is written");
        file
    }

    #[test]
    fn each_job_has_the_global_words_and_its_own_and_the_later_one_counts() {
        let jobs = read(file(FILE).path(), None).expect("two jobs");
        let job = |index: usize| jobs[index].workload.job().expect("a job");
        assert_eq!((job(0).block_bytes, job(0).iodepth), (4096, 32));
        assert_eq!((job(1).block_bytes, job(1).limits.runtime_ns), (131_072, Some(10_000_000_000)));
        assert_eq!(jobs[1].fio.name.as_deref(), Some("two"));
        assert_eq!(read(file(FILE).path(), Some("two")).expect("one").len(), 1);
    }

    #[test]
    fn what_is_not_understood_is_named_and_nothing_else_is() {
        let (sections, _) = sections(FILE);
        assert_eq!(understood(&sections[0].1).1, ["unified_rw_reporting=1"]);
        assert_eq!(understood(&sections[1].1).1, ["unified_rw_reporting=1", "zonemode=zbd"]);
    }

    #[test]
    fn files_that_are_none_are_refused() {
        for text in ["", "bs=4k\n[one]\n", "[global]\nbs=4k\n", "[one]\nbs=zebra\n"] {
            assert!(read(file(text).path(), None).is_err(), "{text:?}");
        }
        assert!(read(file(FILE).path(), Some("three")).is_err());
    }
}
