//! Which figures of a result are compared, and when one is better or worse than another.
//!
//! Every figure says whether more of it is good. Those that are *judged* count for `--fail-if-worse`: rates, latencies
//! up to the 99.9th percentile, and errors. The slowest one of a million I/Os, a share of a ceiling that may have
//! changed, and the temperature of a room are told only.
#![forbid(unsafe_code)]

use serde::Serialize;
use serde_json::Value;

use super::{Origin, Saved};

/// What a figure counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Things per second, or things.
    Count,
    /// Bytes in a second.
    BytesPerSecond,
    /// Nanoseconds.
    Nanoseconds,
    /// Parts of a hundred.
    Percent,
    /// A temperature.
    Kelvin,
}

/// What is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// More.
    Higher,
    /// Less.
    Lower,
}

/// A change in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// It is better.
    Better,
    /// It is worse.
    Worse,
    /// It differs by less than what is printed.
    Same,
    /// One of the two does not tell, or the two do not compare.
    Unknown,
}

/// A figure against that of the first result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// Which result: `B`, `C`, ...
    pub label: String,
    /// The change in per cent of the first; `None` where one does not tell, or the first is 0.
    pub percent: Option<f64>,
    /// The change in a word.
    pub word: Word,
}

/// A figure in all results.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// A name that does not change.
    pub id: String,
    /// Its unit.
    pub unit: Unit,
    /// What is good.
    pub better: Better,
    /// Whether it counts for `--fail-if-worse`.
    pub judged: bool,
    /// The values; `None` where a result does not tell.
    pub values: Vec<Option<f64>>,
    /// Every result but the first against the first.
    pub changes: Vec<Change>,
}

/// A check with different outcomes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheckChange {
    /// Its id; `verdict` is all of them together.
    pub id: String,
    /// The statuses; `None` where a result does not have the check.
    pub statuses: Vec<Option<String>>,
    /// Every result but the first against the first.
    pub words: Vec<(String, Word)>,
}

impl Change {
    fn between(label: &str, better: Better, from: Option<f64>, to: Option<f64>) -> Self {
        let label = label.to_owned();
        let (Some(from), Some(to)) = (from, to) else { return Self { label, percent: None, word: Word::Unknown } };
        let percent = (from != 0.0).then(|| (to - from) / from * 100.0);
        // A tenth of a per cent is what is printed.
        let is_same = percent.map_or(to == 0.0, |percent| percent.abs() < 0.05);
        let word = match better {
            _ if is_same => Word::Same,
            Better::Higher if to > from => Word::Better,
            Better::Lower if to < from => Word::Better,
            _ => Word::Worse,
        };
        Self { label, percent, word }
    }

    /// Whether it is worse by more than this. From nothing to something is more than any percentage.
    pub fn is_worse_by(&self, limit_percent: f64) -> bool {
        self.word == Word::Worse && self.percent.is_none_or(|percent| percent.abs() > limit_percent)
    }
}

/// A figure to look for.
struct Wanted {
    id: String,
    keys: Vec<&'static str>,
    unit: Unit,
    better: Better,
    judged: bool,
}

impl Wanted {
    fn new(id: &str, keys: Vec<&'static str>, unit: Unit, better: Better, judged: bool) -> Self {
        Self { id: id.to_owned(), keys, unit, better, judged }
    }

    /// The figure; `None` where not even two results have it, or where it says nothing.
    fn find(self, saved: &[Saved]) -> Option<Figure> {
        let values: Vec<Option<f64>> = saved.iter().map(|saved| saved.at(&self.keys)?.as_f64()).collect();
        figure(self, values, saved)
    }
}

fn figure(wanted: Wanted, values: Vec<Option<f64>>, saved: &[Saved]) -> Option<Figure> {
    let told = values.iter().flatten();
    if told.clone().count() < 2 || told.clone().all(|&value| value == 0.0) {
        return None;
    }
    let first = values.first().copied().flatten();
    let rest = saved.iter().zip(&values).skip(1);
    let changes = rest.map(|(saved, &value)| Change::between(&saved.label, wanted.better, first, value)).collect();
    let Wanted { id, unit, better, judged, .. } = wanted;
    Some(Figure { id, unit, better, judged, values, changes })
}

/// The latencies told by a result, and whether they are judged.
const LATENCIES: [(&str, bool); 7] =
    [("mean", true), ("p50", true), ("p90", true), ("p99", true), ("p99.9", true), ("p99.99", false), ("max", false)];

/// The figures that the results have, and the runs that had to be left out.
pub(super) fn collect(saved: &[Saved], origin: Origin) -> (Vec<Figure>, Vec<String>) {
    let mut left_out = Vec::new();
    let wanted = match origin {
        Origin::Bench => of_bench(),
        Origin::Validate => ["sequential_read", "random_read", "latency"]
            .into_iter()
            .filter(|run| match unlike(saved, run) {
                None => true,
                Some(why) => {
                    left_out.push(why);
                    false
                }
            })
            .flat_map(of_run)
            .collect(),
    };
    let mut figures: Vec<Figure> = wanted.into_iter().filter_map(|wanted| wanted.find(saved)).collect();
    if !figures.is_empty() {
        figures.extend(hottest(saved));
    }
    (figures, left_out)
}

fn of_bench() -> Vec<Wanted> {
    let mut wanted = vec![
        Wanted::new("iops", vec!["iops"], Unit::Count, Better::Higher, true),
        Wanted::new("rate", vec!["bytes_per_second"], Unit::BytesPerSecond, Better::Higher, true),
        Wanted::new("ceiling.share", vec!["share_percent"], Unit::Percent, Better::Higher, false),
    ];
    for direction in ["read", "write"] {
        wanted.extend(latencies(direction, &[direction, "latency_ns"]));
    }
    wanted.extend(errors("", &["errors"]));
    wanted
}

fn of_run(run: &'static str) -> Vec<Wanted> {
    let mut wanted = vec![
        Wanted::new(&format!("{run}.iops"), vec!["runs", run, "iops"], Unit::Count, Better::Higher, true),
        Wanted::new(
            &format!("{run}.rate"),
            vec!["runs", run, "bytes_per_second"],
            Unit::BytesPerSecond,
            Better::Higher,
            true,
        ),
    ];
    wanted.extend(latencies(run, &["runs", run, "latency_ns"]));
    wanted.extend(errors(&format!("{run}."), &["runs", run, "errors"]));
    wanted
}

fn latencies(name: &str, keys: &[&'static str]) -> Vec<Wanted> {
    let one = |&(which, judged): &(&'static str, bool)| {
        Wanted::new(&format!("{name}.{which}"), [keys, &[which]].concat(), Unit::Nanoseconds, Better::Lower, judged)
    };
    LATENCIES.iter().map(one).collect()
}

fn errors(prefix: &str, keys: &[&'static str]) -> Vec<Wanted> {
    let one = |which: &'static str| {
        Wanted::new(&format!("{prefix}errors.{which}"), [keys, &[which]].concat(), Unit::Count, Better::Lower, true)
    };
    ["failed", "recovered", "miscompares"].map(one).into()
}

/// Why a run of `validate` cannot be compared: the number of queues, for one, follows the machine's processors.
fn unlike(saved: &[Saved], run: &str) -> Option<String> {
    let first = saved.first()?;
    saved.iter().skip(1).find_map(|other| {
        [("block_bytes", "bytes a block"), ("depth", "in flight"), ("jobs", "queues")].into_iter().find_map(
            |(key, name)| {
                let (mine, theirs) = (first.at(&["runs", run, key])?, other.at(&["runs", run, key])?);
                (mine != theirs).then(|| {
                    let run = run.replace('_', " ");
                    format!("{run}: {mine} {name} in {}, {theirs} in {}", first.label, other.label)
                })
            },
        )
    })
}

/// The highest temperature of each run.
fn hottest(saved: &[Saved]) -> Option<Figure> {
    let wanted = Wanted::new("temperature.max", Vec::new(), Unit::Kelvin, Better::Lower, false);
    let values = saved.iter().map(|saved| {
        let samples = saved.at(&["temperature", "samples"]).or_else(|| saved.at(&["temperature"]))?.as_array()?;
        // `bench` writes objects, `validate` pairs of time and temperature.
        let kelvin = |sample: &Value| sample.get("kelvin").or_else(|| sample.get(1))?.as_f64();
        samples.iter().filter_map(kelvin).reduce(f64::max)
    });
    figure(wanted, values.collect(), saved)
}

/// The checks whose status is not the same in all results, and the verdict.
pub(super) fn checks(saved: &[Saved]) -> Vec<CheckChange> {
    let status_of = |saved: &Saved, id: &str| -> Option<String> {
        if id == "verdict" {
            return saved.text(&["verdict"]);
        }
        let checks = saved.at(&["checks"])?.as_array()?;
        let check = checks.iter().find(|check| check.get("id").and_then(Value::as_str) == Some(id))?;
        check.get("status").and_then(Value::as_str).map(super::clean)
    };
    let mut ids: Vec<&str> = vec!["verdict"];
    for check in saved.iter().filter_map(|saved| saved.at(&["checks"])?.as_array()).flatten() {
        match check.get("id").and_then(Value::as_str) {
            Some(id) if !ids.contains(&id) => ids.push(id),
            _ => {}
        }
    }
    ids.into_iter()
        .map(|id| {
            let statuses: Vec<Option<String>> = saved.iter().map(|saved| status_of(saved, id)).collect();
            let first = statuses.first().and_then(Option::as_deref);
            let rest = saved.iter().zip(&statuses).skip(1);
            let words = rest.map(|(saved, status)| (saved.label.clone(), status_word(first, status.as_deref())));
            CheckChange { id: super::clean(id), words: words.collect(), statuses }
        })
        .filter(|check| check.statuses.windows(2).any(|pair| pair[0] != pair[1]))
        .collect()
}

/// PASS, WARN and FAIL have an order; what was skipped or not tested has no place in it.
fn status_word(from: Option<&str>, to: Option<&str>) -> Word {
    let rank = |status: Option<&str>| match status? {
        "PASS" => Some(0),
        "WARN" => Some(1),
        "FAIL" => Some(2),
        _ => None,
    };
    match (rank(from), rank(to)) {
        (Some(from), Some(to)) if to > from => Word::Worse,
        (Some(from), Some(to)) if to < from => Word::Better,
        (Some(_), Some(_)) => Word::Same,
        _ => Word::Unknown,
    }
}
