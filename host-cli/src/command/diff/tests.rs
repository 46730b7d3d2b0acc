//! Results of the emulator, shortened, and what becomes of them when one value is changed.
#![forbid(unsafe_code)]

use super::*;

const BENCH: &str = include_str!("tests/bench.json");
const VALIDATE: &str = include_str!("tests/validate.json");
const VALIDATE_GEN1X1: &str = include_str!("tests/validate_gen1x1.json");

/// A result with some values changed.
fn with(text: &str, changes: &[(&str, Value)]) -> String {
    let mut document: Value = serde_json::from_str(text).unwrap();
    for (pointer, value) in changes {
        *document.pointer_mut(pointer).unwrap_or_else(|| panic!("no {pointer}")) = value.clone();
    }
    document.to_string()
}

fn parse(texts: &[&str]) -> Result<Vec<Saved>> {
    let name = |index| PathBuf::from(format!("{}.json", label(index)));
    texts.iter().enumerate().map(|(index, text)| Saved::parse(index, &name(index), text.as_bytes())).collect()
}

fn compare(texts: &[&str], limit: Option<f64>) -> Result<Comparison> {
    Comparison::of(parse(texts)?, limit)
}

#[track_caller]
fn refused(texts: &[&str], sentence: &str) {
    let error = compare(texts, None).expect_err("a refusal");
    assert_eq!(error.kind.exit().code(), 2, "{error}");
    assert!(error.message.contains(sentence), "{error} does not say: {sentence}");
    assert!(error.remedy.is_some(), "{error}");
}

fn change<'a>(comparison: &'a Comparison, id: &str) -> &'a Change {
    let figure = comparison.figures.iter().find(|figure| figure.id == id);
    &figure.unwrap_or_else(|| panic!("no figure {id}")).changes[0]
}

fn plain(comparison: &Comparison) -> String {
    anstream::adapter::strip_str(&text::human(comparison)).to_string()
}

#[test]
fn a_result_is_the_same_as_itself() {
    for text in [BENCH, VALIDATE] {
        let comparison = compare(&[text, text], Some(0.0)).unwrap();
        assert_eq!(comparison.differences, []);
        assert_eq!(comparison.checks, []);
        assert!(comparison.figures.iter().flat_map(|figure| &figure.changes).all(|change| change.word == Word::Same));
        assert_eq!(comparison.exit(), Exit::Pass);
        assert!(plain(&comparison).contains("Same drive, slot, link, host and date"));
    }
}

#[test]
fn another_link_host_and_date_are_listed_before_the_figures() {
    let other = with(
        BENCH,
        &[
            ("/device/link", json!("2.5 GT/s x1, drive and slot can 8 GT/s x4")),
            ("/host/name", json!("bench-2")),
            ("/time", json!("2030-01-01T00:00:00Z")),
            ("/iops", json!(428_813.5)),
        ],
    );
    let comparison = compare(&[BENCH, &other], None).unwrap();
    let names: Vec<_> = comparison.differences.iter().map(|difference| difference.what).collect();
    assert_eq!(names, ["link", "host", "date"]);
    let text = plain(&comparison);
    assert!(text.starts_with("EMULATED"), "{text}");
    assert!(text.find("B  2.5 GT/s x1").unwrap() < text.find("Figures").unwrap(), "{text}");
    assert!(text.contains("B  bench-2") && text.contains("B  2030-01-01T00:00:00Z"), "{text}");
    let line = text.lines().find(|line| line.trim_start().starts_with("iops")).unwrap();
    let words: Vec<_> = line.split_whitespace().collect();
    assert_eq!(words, ["iops", "857", "627", "428", "814", "-50.0", "%", "worse"]);
}

#[test]
fn more_is_better_for_rates_and_worse_for_latencies() {
    let other = with(BENCH, &[("/iops", json!(943_389.7)), ("/read/latency_ns/p99", json!(79_870))]);
    let comparison = compare(&[BENCH, &other], None).unwrap();
    assert_eq!(change(&comparison, "iops").word, Word::Better);
    assert_eq!(format!("{:.1}", change(&comparison, "iops").percent.unwrap()), "10.0");
    assert_eq!(change(&comparison, "read.p99").word, Word::Worse);
    assert_eq!(change(&comparison, "read.p50").word, Word::Same);
}

#[test]
fn worse_by_more_than_the_limit_ends_with_3_and_names_it() {
    let slower = with(BENCH, &[("/iops", json!(857_627.0 * 0.94))]);
    assert_eq!(compare(&[BENCH, &slower], None).unwrap().exit(), Exit::Pass, "without a limit nothing is judged");
    assert_eq!(compare(&[BENCH, &slower], Some(7.0)).unwrap().exit(), Exit::Pass);
    let comparison = compare(&[BENCH, &slower], Some(5.0)).unwrap();
    assert_eq!(comparison.exit().code(), 3);
    assert_eq!(comparison.worse(), ["iops in B"]);
    assert!(plain(&comparison).contains("FAIL  worse by more than 5 %: iops in B"));
    assert_eq!(compare(&[&slower, BENCH], Some(5.0)).unwrap().exit(), Exit::Pass, "faster is not worse");
}

#[test]
fn an_error_where_there_was_none_is_worse_than_any_limit() {
    let other = with(BENCH, &[("/errors/failed", json!(1))]);
    let comparison = compare(&[BENCH, &other], Some(1000.0)).unwrap();
    assert_eq!(change(&comparison, "errors.failed").percent, None);
    assert_eq!(comparison.exit(), Exit::Fail);
}

#[test]
fn the_slowest_io_and_the_temperature_are_told_and_not_judged() {
    let other = with(BENCH, &[("/read/latency_ns/max", json!(9_000_000)), ("/temperature/1/kelvin", json!(343))]);
    let comparison = compare(&[BENCH, &other], Some(0.0)).unwrap();
    assert_eq!(change(&comparison, "read.max").word, Word::Worse);
    assert_eq!(change(&comparison, "temperature.max").word, Word::Worse);
    assert_eq!(comparison.exit(), Exit::Pass);
    assert!(plain(&comparison).contains("+30 K"));
}

#[test]
fn a_check_that_failed_is_listed_and_judged() {
    let comparison = compare(&[VALIDATE, VALIDATE_GEN1X1], Some(100.0)).unwrap();
    let changed: Vec<_> = comparison.checks.iter().map(|check| check.id.as_str()).collect();
    assert!(changed.contains(&"verdict") && changed.contains(&"link.speed"), "{changed:?}");
    assert_eq!(change(&comparison, "sequential_read.rate").word, Word::Worse);
    assert_eq!(comparison.exit(), Exit::Fail);
    assert!(comparison.worse().contains(&"link.speed in B".to_owned()));
    let slot = comparison.differences.iter().find(|difference| difference.what == "slot").unwrap();
    assert_eq!(slot.values[1].as_deref(), Some("emulated:ideal,link=gen1x1"));
}

#[test]
fn every_further_result_is_held_against_the_first() {
    let faster = with(BENCH, &[("/iops", json!(900_000))]);
    let comparison = compare(&[BENCH, BENCH, &faster], None).unwrap();
    let iops = comparison.figures.iter().find(|figure| figure.id == "iops").unwrap();
    let changes: Vec<_> = iops.changes.iter().map(|change| (change.label.as_str(), change.word)).collect();
    assert_eq!(changes, [("B", Word::Same), ("C", Word::Better)]);
}

#[test]
fn another_job_is_refused_with_the_fields_that_differ() {
    let other = with(BENCH, &[("/job/iodepth", json!(1)), ("/job/block_bytes", json!(512))]);
    refused(&[BENCH, &other], "ran different jobs: block_bytes 4096 and 512, iodepth 32 and 1");
}

#[test]
fn other_cores_are_another_place_and_not_another_job() {
    let other = with(BENCH, &[("/job/cpus", json!([2, 3]))]);
    let comparison = compare(&[BENCH, &other], None).unwrap();
    assert_eq!(comparison.differences[0].what, "cores");
}

#[test]
fn the_emulator_is_never_compared_with_a_drive() {
    let real = with(BENCH, &[("/emulated", json!(false))]);
    refused(&[BENCH, &real], "A.json is EMULATED and B.json is of a drive");
    refused(&[&real, BENCH], "B.json is EMULATED and A.json is of a drive");
}

#[test]
fn bench_and_validate_are_not_compared() {
    refused(&[BENCH, VALIDATE], "one of A.json and B.json is of `bench`, the other of `validate`");
}

#[test]
fn runs_of_validate_with_other_queues_are_left_out_and_said_so() {
    let other = with(VALIDATE, &[("/runs/random_read/jobs", json!(2))]);
    let comparison = compare(&[VALIDATE, &other], None).unwrap();
    assert_eq!(comparison.left_out, ["random read: 4 queues in A, 2 in B"]);
    assert!(comparison.figures.iter().all(|figure| !figure.id.starts_with("random_read")));
    assert!(comparison.figures.iter().any(|figure| figure.id == "latency.p99"));
    let none = with(
        VALIDATE,
        &[
            ("/runs/random_read/jobs", json!(2)),
            ("/runs/sequential_read/depth", json!(2)),
            ("/runs/latency/block_bytes", json!(512)),
        ],
    );
    refused(&[VALIDATE, &none], "these results cannot be compared: sequential read: 32 in flight in A, 2 in B");
}

#[test]
fn a_figure_that_one_result_lacks_is_not_made_up() {
    let mut document: Value = serde_json::from_str(BENCH).unwrap();
    document["share_percent"] = Value::Null;
    document["read"]["latency_ns"].as_object_mut().unwrap().remove("p99.9");
    document["something new"] = json!({ "a": [1, 2] });
    let comparison = compare(&[BENCH, BENCH, &document.to_string()], Some(1.0)).unwrap();
    let figure = comparison.figures.iter().find(|figure| figure.id == "read.p99.9").unwrap();
    assert_eq!(figure.values[2], None);
    assert_eq!(figure.changes[1].word, Word::Unknown);
    assert_eq!(comparison.exit(), Exit::Pass);
    assert!(plain(&comparison).contains("not told"));
}

#[test]
fn files_that_are_no_results_are_refused_by_name() {
    refused(&[BENCH, "nonsense"], "B.json is not JSON");
    refused(&[BENCH, "[1]"], "B.json has no field `schema`");
    refused(&[BENCH, &with(BENCH, &[("/schema", json!("nvmetal.bench/2"))])], "has the schema 'nvmetal.bench/2'");
    refused(&[BENCH, r#"{"schema":"nvmetal.error/1"}"#], "holds an error");
    refused(&[BENCH, r#"{"schema":"nvmetal.bench/1","dry_run":true}"#], "dry run");
    refused(&[BENCH, r#"{"schema":"nvmetal.bench/1"}"#], "does not say whether the drive was emulated");
    refused(&[BENCH, r#"{"schema":"nvmetal.bench/1","emulated":true}"#], "does not say which job it ran");
}

#[test]
fn values_of_any_kind_and_size_are_survived_and_cannot_steer_the_terminal() {
    let odd = with(
        BENCH,
        &[
            ("/iops", json!("many")),
            ("/bytes_per_second", json!(-1e308)),
            ("/read/latency_ns/p50", json!(1e300)),
            ("/device/model", json!("\u{1b}[31mred")),
            ("/temperature", json!([null, { "kelvin": 1e9 }, [1]])),
        ],
    );
    let comparison = compare(&[BENCH, &odd], None).unwrap();
    let text = text::human(&comparison);
    assert!(text.contains("\\u{1b}[31mred"), "{text}");
    assert!(!text.contains("\u{1b}[31mred"), "{text}");
}

#[test]
fn a_percentage_is_a_number_from_0_up() {
    assert_eq!(parse_percent("5"), Ok(5.0));
    assert_eq!(parse_percent("2.5 %"), Ok(2.5));
    for text in ["", "x", "-1", "NaN", "inf", "5%%x"] {
        assert!(parse_percent(text).is_err(), "{text}");
    }
}

#[test]
fn no_line_of_a_comparison_is_wider_than_80_columns() {
    let other = with(BENCH, &[("/iops", json!(4e9)), ("/read/latency_ns/p99", json!(999_999_999_999_u64))]);
    let text = plain(&compare(&[BENCH, &other], Some(5.0)).unwrap());
    let figures = text.lines().skip_while(|line| !line.starts_with("Figures")).take_while(|line| !line.is_empty());
    for line in figures {
        assert!(line.len() <= 80, "{line}");
    }
}
