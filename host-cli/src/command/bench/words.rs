//! The words of a workload: fio's, with fio's meanings, as far as they mean anything without a kernel in between.
#![forbid(unsafe_code)]

use std::time::Duration;

use clap::{Args, ValueEnum};
use nvmetal_driver::workload::{Access, Action, Data, Distribution, Job, JobError, Limits, Rate, SizeShare, Think};
use serde::Serialize;

use crate::error::{Error, Result};
use crate::session::WaitArgument;
use crate::units::{parse_duration, parse_size};

/// What is to be done.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Workload")]
pub struct Workload {
    /// read, write, randread, randwrite, rw, randrw (mixes), trim, randtrim, and past fio: writezeroes, compare, verify,
    /// each also with rand
    #[arg(long, alias = "readwrite", value_enum, default_value = "randread", hide_possible_values = true)]
    #[arg(value_name = "WHAT")]
    pub rw: ReadWrite,
    /// How many of a hundred I/Os of a mix are reads
    #[arg(long, value_name = "PERCENT", default_value_t = 50, hide_default_value = true, value_parser = percent)]
    pub rwmixread: u8,
    #[arg(long, value_name = "PERCENT", hide = true, value_parser = percent, conflicts_with = "rwmixread")]
    rwmixwrite: Option<u8>,
    /// Bytes of each I/O; 4k is 4096
    #[arg(long, alias = "blocksize", value_name = "SIZE", default_value = "4k", value_parser = parse_size)]
    pub bs: u64,
    /// Several sizes and their shares in per cent, as in 4k/60:64k/40
    #[arg(long, value_name = "SIZES", value_parser = parse_split)]
    bssplit: Option<Split>,
    /// I/Os in flight on each queue
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub iodepth: u32,
    /// Queues, each with a thread of its own
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub numjobs: u16,
    /// Time of the run, 5 s if no --size is given; a bare number is seconds
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub runtime: Option<Duration>,
    /// Time before it of which nothing is recorded
    #[arg(long, alias = "ramp_time", value_name = "TIME", default_value = "0", hide_default_value = true)]
    #[arg(value_parser = parse_duration)]
    ramp_time: Duration,
    /// Bytes of the region to work on; without --runtime it is gone through once
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub size: Option<u64>,
    /// Bytes to move, where that is not the region's size
    #[arg(long, alias = "io_size", value_name = "SIZE", value_parser = parse_size)]
    io_size: Option<u64>,
    /// I/Os of each queue, at most
    #[arg(long, alias = "number_ios", value_name = "N")]
    number_ios: Option<u64>,
    /// Where the region begins
    #[arg(long, value_name = "SIZE", default_value = "0", hide_default_value = true, value_parser = parse_size)]
    pub offset: u64,
    /// How far each queue's region begins behind that of the queue before
    #[arg(long, alias = "offset_increment", value_name = "SIZE", default_value = "0", hide_default_value = true)]
    #[arg(value_parser = parse_size)]
    offset_increment: u64,
    /// Bytes per second of each queue, begun on time however late the drive is
    #[arg(long, value_name = "SIZE", value_parser = parse_size, conflicts_with = "rate_iops")]
    rate: Option<u64>,
    /// I/Os per second of each queue, likewise; latencies count from the intended begin
    #[arg(long, alias = "rate_iops", value_name = "N")]
    rate_iops: Option<u64>,
    /// Pause after each --thinktime-blocks I/Os; a bare number is microseconds
    #[arg(long, value_name = "TIME", value_parser = parse_think)]
    thinktime: Option<Duration>,
    #[arg(long, alias = "thinktime_blocks", value_name = "N", default_value_t = 1, hide = true)]
    thinktime_blocks: u64,
    /// Which places are preferred: random (none), zipf:POWER, pareto:PART, normal:PERCENT
    #[arg(long, alias = "random_distribution", value_name = "HOW", value_parser = parse_distribution)]
    random_distribution: Option<Distribution>,
    /// Let places come twice in a random run over a --size; =0 keeps them apart in one over a time, too
    #[arg(long, value_name = "0|1", num_args = 0..=1, require_equals = true, default_missing_value = "1")]
    norandommap: Option<u8>,
    /// Write what tells each block apart, read it back and compare; a run that only reads compares at once
    #[arg(long, value_name = "METHOD", num_args = 0..=1, require_equals = true, default_missing_value = "stamp")]
    verify: Option<String>,
    /// Write zeros
    #[arg(long, alias = "zero_buffers", num_args = 0..=1, require_equals = true, default_missing_value = "1", hide = true)]
    zero_buffers: Option<u8>,
    /// Write data of which so many per cent are zeros
    #[arg(long, alias = "buffer_compress_percentage", value_name = "PERCENT", value_parser = percent)]
    buffer_compress_percentage: Option<u8>,
    /// Give each write new data
    #[arg(long, alias = "refill_buffers", num_args = 0..=1, require_equals = true, default_missing_value = "1", hide = true)]
    refill_buffers: Option<u8>,
    /// The namespace; the first one if not given
    #[arg(long, short = 'n', value_name = "NSID")]
    pub namespace_id: Option<u32>,
    /// Seed of random offsets and data; --verify knows its own data by it
    #[arg(long, alias = "randseed", value_name = "N")]
    pub seed: Option<u64>,
    /// How to wait for completions: poll, interrupt, or hybrid (poll for a while, then sleep)
    #[arg(long, value_enum, value_name = "HOW", default_value = "poll", hide_possible_values = true)]
    pub wait: WaitArgument,
    /// Ring doorbells in memory, where the drive has that (physical ones hardly)
    #[arg(long)]
    pub shadow_doorbells: bool,
    /// Put the submission queues into the drive's own memory, where it has some (an experiment)
    #[arg(long)]
    pub sq_in_cmb: bool,
}

/// What each I/O does and where it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
#[value(rename_all = "lower")]
pub enum ReadWrite {
    /// One after the other.
    Read,
    /// One after the other.
    Write,
    /// Reads and writes, one after the other.
    #[value(alias = "readwrite")]
    Rw,
    /// Anywhere.
    Randread,
    /// Anywhere.
    Randwrite,
    /// Reads and writes, anywhere.
    Randrw,
    /// Deallocate.
    Trim,
    /// Deallocate.
    Randtrim,
    /// Write Zeroes.
    Writezeroes,
    /// Write Zeroes.
    Randwritezeroes,
    /// Compare.
    Compare,
    /// Compare.
    Randcompare,
    /// The Verify command.
    Verify,
    /// The Verify command.
    Randverify,
}

impl ReadWrite {
    fn access(self) -> Access {
        match self {
            Self::Read | Self::Write | Self::Rw | Self::Trim | Self::Writezeroes | Self::Compare | Self::Verify => {
                Access::Sequential
            }
            _ => Access::Random,
        }
    }

    fn action(self) -> Action {
        match self {
            Self::Read | Self::Write | Self::Rw | Self::Randread | Self::Randwrite | Self::Randrw => Action::Transfer,
            Self::Trim | Self::Randtrim => Action::Trim,
            Self::Writezeroes | Self::Randwritezeroes => Action::WriteZeroes,
            Self::Compare | Self::Randcompare => Action::Compare,
            Self::Verify | Self::Randverify => Action::Verify,
        }
    }
}

/// Sizes and their shares.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Split(Vec<SizeShare>);

fn percent(text: &str) -> std::result::Result<u8, String> {
    let number: u8 = text.trim_end_matches('%').parse().map_err(|_| format!("'{text}' is no percentage"))?;
    if number <= 100 { Ok(number) } else { Err(format!("{number} % is more than all")) }
}

/// `4k/60:64k/40`; shares that are left out get what remains in equal parts.
fn parse_split(text: &str) -> std::result::Result<Split, String> {
    let mut shares = Vec::new();
    for part in text.split(':') {
        let (size, share) = part.split_once('/').map_or((part, ""), |(size, share)| (size, share));
        let share = if share.is_empty() { None } else { Some(percent(share)?) };
        shares.push((parse_size(size)?, share));
    }
    let given: u32 = shares.iter().filter_map(|&(_, share)| share).map(u32::from).sum();
    let open = shares.iter().filter(|(_, share)| share.is_none()).count() as u32;
    let rest = 100_u32.checked_sub(given).ok_or("the shares are more than 100 %")?;
    if open == 0 && rest != 0 {
        return Err(format!("the shares add up to {given} %, not to 100 %"));
    }
    let each = rest.checked_div(open).unwrap_or(0);
    let mut over = rest - each * open;
    let sizes = shares.into_iter().map(|(bytes, share)| {
        let percent = share.unwrap_or_else(|| {
            let extra = u32::from(over > 0);
            over -= extra;
            (each + extra) as u8
        });
        SizeShare { bytes, percent }
    });
    Ok(Split(sizes.collect()))
}

/// fio's think times are in microseconds.
fn parse_think(text: &str) -> std::result::Result<Duration, String> {
    text.parse().map_or_else(|_| parse_duration(text), |microseconds| Ok(Duration::from_micros(microseconds)))
}

fn parse_distribution(text: &str) -> std::result::Result<Distribution, String> {
    let wrong = || format!("'{text}' is no distribution; write random, zipf:1.2, pareto:0.2 or normal:10");
    let (name, value) = text.split_once(':').unwrap_or((text, ""));
    let number = || value.trim_end_matches('%').parse::<f64>().map_err(|_| wrong());
    match name {
        "random" => Ok(Distribution::Uniform),
        "zipf" => Ok(Distribution::Zipf(number()?)),
        "pareto" => Ok(Distribution::Pareto(number()?)),
        "normal" => Ok(Distribution::Normal(number()?)),
        _ => Err(wrong()),
    }
}

impl Workload {
    /// The job for the engine.
    pub fn job(&self) -> Result<Job> {
        // E-12: a time is time based, a size ends when it is done, and a default time never overrides a given size.
        let moved = self.io_size.or(self.size);
        let runtime = match (self.runtime, moved, self.number_ios) {
            (Some(runtime), ..) => Some(runtime),
            (None, None, None) => Some(Duration::from_secs(5)),
            (None, ..) => None,
        };
        if runtime.is_some_and(|runtime| runtime.is_zero()) {
            return Err(Error::usage("a runtime of 0 measures nothing").remedy("Give --runtime a time above 0."));
        }
        if self.bs == 0 {
            return Err(Error::usage("a block size of 0 moves nothing").remedy("Give --bs a size, as in 4k."));
        }
        if self.iodepth == 0 || self.numjobs == 0 {
            return Err(JobError::Nothing.into());
        }
        let sizes = self.bssplit.as_ref().map(|split| split.0.clone()).unwrap_or_default();
        let read_percent = match self.rw {
            ReadWrite::Write | ReadWrite::Randwrite => 0,
            ReadWrite::Rw | ReadWrite::Randrw => self.rwmixwrite.map_or(self.rwmixread, |writes| 100 - writes),
            _ => 100,
        };
        let access = self.rw.access();
        let distribution = self.random_distribution.unwrap_or(Distribution::Uniform);
        let is_once = match self.norandommap {
            Some(given) => given == 0,
            None => runtime.is_none() && self.number_ios.is_none() || self.verify.is_some() && read_percent < 100,
        };
        let job = Job::new();
        Ok(Job {
            access,
            action: self.rw.action(),
            read_percent,
            block_bytes: sizes.iter().map(|share| share.bytes).max().unwrap_or(self.bs),
            no_repeat: is_once && access == Access::Random && distribution == Distribution::Uniform && sizes.is_empty(),
            sizes,
            distribution,
            iodepth: self.iodepth,
            numjobs: self.numjobs,
            offset_bytes: self.offset,
            size_bytes: self.size,
            offset_increment_bytes: self.offset_increment,
            limits: Limits {
                runtime_ns: runtime.map(|runtime| runtime.as_nanos() as u64),
                bytes: if runtime.is_none() { moved } else { self.io_size },
                ios: self.number_ios,
            },
            ramp_ns: self.ramp_time.as_nanos() as u64,
            rate: self.rate_iops.map(Rate::Ios).or(self.rate.map(Rate::Bytes)),
            think: self
                .thinktime
                .filter(|think| !think.is_zero())
                .map(|think| Think { ns: think.as_nanos() as u64, ios: self.thinktime_blocks }),
            data: match (self.zero_buffers, self.buffer_compress_percentage) {
                (Some(1..), _) => Data::Zero,
                (_, Some(percent)) if percent > 0 => Data::Compressible(percent),
                _ => Data::Random,
            },
            refill: self.refill_buffers.is_some_and(|given| given != 0),
            verify: self.verify.as_deref().is_some_and(|method| method != "0" && method != "none"),
            seed: self.seed.unwrap_or(job.seed),
            wait: self.wait.into(),
            ..job
        })
    }

    /// What is to be said about words that are taken and mean something else here.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if let Some(method) = self.verify.as_deref().filter(|method| !["stamp", "0", "none"].contains(method)) {
            remarks.push(format!(
                "--verify={method}: blocks carry nvmetal's own stamp (address, seed, generation, checksum) instead"
            ));
        }
        remarks
    }
}

/// fio's words that mean nothing for a drive without a file system and kernel in between. They are taken, so that a
/// command line can be pasted, and said to have no effect.
#[derive(Debug, Clone, Default, Args)]
pub struct FioWords {
    /// The job's name, for `-o fio`
    #[arg(long, hide = true)]
    pub name: Option<String>,
    #[arg(long, hide = true)]
    filename: Option<String>,
    #[arg(long, hide = true)]
    ioengine: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "1")]
    direct: Option<String>,
    #[arg(long = "group_reporting", alias = "group-reporting", hide = true, num_args = 0..=1, default_missing_value = "1")]
    group_reporting: Option<String>,
    #[arg(long = "time_based", alias = "time-based", hide = true, num_args = 0..=1, default_missing_value = "1")]
    time_based: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "1")]
    thread: Option<String>,
}

impl FioWords {
    /// The words that were given.
    pub fn given(&self) -> Vec<&'static str> {
        [
            ("--name", self.name.is_some()),
            ("--filename", self.filename.is_some()),
            ("--ioengine", self.ioengine.is_some()),
            ("--direct", self.direct.is_some()),
            ("--group_reporting", self.group_reporting.is_some()),
            ("--time_based", self.time_based.is_some()),
            ("--thread", self.thread.is_some()),
        ]
        .into_iter()
        .filter_map(|(word, given)| given.then_some(word))
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_shares_are_read_as_fio_reads_them() {
        let shares = |text: &str| -> Vec<(u64, u8)> {
            parse_split(text).expect("a split").0.iter().map(|share| (share.bytes, share.percent)).collect()
        };
        assert_eq!(shares("4k/60:64k/40"), [(4096, 60), (65_536, 40)]);
        assert_eq!(shares("4k/50:8k:16k"), [(4096, 50), (8192, 25), (16_384, 25)]);
        assert_eq!(shares("4k:8k:16k"), [(4096, 34), (8192, 33), (16_384, 33)]);
        for wrong in ["4k/60", "4k/60:8k/60", "x/100", "4k/101", ""] {
            assert!(parse_split(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn distributions_and_think_times_are_fios() {
        assert_eq!(parse_distribution("zipf:1.2"), Ok(Distribution::Zipf(1.2)));
        assert_eq!(parse_distribution("normal:10%"), Ok(Distribution::Normal(10.0)));
        assert!(parse_distribution("zipf").is_err() && parse_distribution("zoned:1").is_err());
        assert_eq!(parse_think("250"), Ok(Duration::from_micros(250)));
        assert_eq!(parse_think("2ms"), Ok(Duration::from_millis(2)));
    }
}
