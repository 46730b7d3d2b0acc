//! Latencies by the bin of the time series.
//!
//! Recording into a second histogram for each I/O would double what the hot path does for latencies. Instead, what the
//! histogram of the whole run has gained is taken when a bin ends, ten times a second: a few hundred classes, whatever the
//! number of I/Os. Of each bin only the classes that gained are kept, and from a bound on nothing more, so that a run of
//! days does not fill the memory.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use super::histogram::Histogram;

/// Classes kept of all bins of a queue.
const MOST_KEPT: usize = 4 << 20;

/// The latencies of each bin of one queue.
#[derive(Debug, Default)]
pub(crate) struct Course {
    /// Class and number, all bins one after the other.
    gains: Vec<(u16, u32)>,
    /// Where each bin's end in `gains`.
    ends: Vec<usize>,
    before: [Vec<u64>; 3],
}

impl Course {
    /// Keeps what the histograms have gained since the last bin ended.
    pub fn end_bin(&mut self, histograms: [&Histogram; 3]) {
        let Self { gains, ends, before } = self;
        if gains.len() > MOST_KEPT {
            return;
        }
        for (histogram, before) in histograms.into_iter().zip(before) {
            histogram.since(before, |class, count| gains.push((class, u32::try_from(count).unwrap_or(u32::MAX))));
        }
        ends.push(gains.len());
    }

    fn bin(&self, index: usize) -> &[(u16, u32)] {
        let begin = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.ends.get(index).and_then(|&end| self.gains.get(begin..end)).unwrap_or_default()
    }

    /// A percentile of each bin of all queues together.
    pub fn percentiles<'a>(courses: impl Iterator<Item = &'a Self>, percent: f64) -> Vec<Option<u64>> {
        let courses: Vec<_> = courses.collect();
        let bins = courses.iter().map(|course| course.ends.len()).max().unwrap_or(0);
        (0..bins)
            .map(|index| {
                let mut classes: BTreeMap<u16, u64> = BTreeMap::new();
                for &(class, count) in courses.iter().flat_map(|course| course.bin(index)) {
                    *classes.entry(class).or_default() += u64::from(count);
                }
                let total: u64 = classes.values().sum();
                let rank = (percent / 100.0 * total as f64).ceil() as u64;
                let mut seen = 0;
                classes.into_iter().find_map(|(class, count)| {
                    seen += count;
                    (seen >= rank).then(|| Histogram::class_end(class))
                })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bin_has_the_percentile_of_its_own_latencies() {
        let mut latencies = Histogram::new();
        let (none, mut course) = (Histogram::new(), Course::default());
        for bin in 1..=3_u64 {
            (1..=100).for_each(|value| latencies.record(value * 1000 * bin));
            course.end_bin([&latencies, &none, &none]);
        }
        course.end_bin([&latencies, &none, &none]);
        let p99 = Course::percentiles([&course].into_iter(), 99.0);
        assert_eq!(p99.len(), 4);
        for (bin, found) in (1..=3).zip(&p99) {
            let (found, exact) = (found.expect("a value"), 99_000 * bin);
            assert!(found >= exact && found <= exact + exact / 64, "{found} for {exact}");
        }
        assert_eq!(p99[3], None);
    }
}
