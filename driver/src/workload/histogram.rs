//! Latencies in logarithmic classes.
//!
//! Each power of two is cut into 64 classes, so a class is at most 1.6 % wide, from single nanoseconds to centuries.
//! Recording is a count of leading zeros, a shift and an increment; no latency is ever outside. Minimum, maximum, sum and
//! number are kept exactly; percentiles are the upper end of their class, never below the true value.
#![forbid(unsafe_code)]

/// Bits of a value that tell classes of one power of two apart.
const SUB_BITS: u32 = 6;
/// Classes: 64 below 2^6, and 64 for each power of two above.
const CLASSES: usize = (64 - SUB_BITS as usize + 1) << SUB_BITS;

/// A histogram of nanoseconds.
#[derive(Clone)]
pub struct Histogram {
    classes: Box<[u64]>,
    sum: u128,
    min: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl core::fmt::Debug for Histogram {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Histogram").field("count", &self.count()).field("max", &self.max).finish_non_exhaustive()
    }
}

/// The class of a value.
#[inline(always)]
fn class(value: u64) -> usize {
    let shift = (63 - SUB_BITS).saturating_sub((value | (1 << SUB_BITS)).leading_zeros());
    ((shift as usize) << SUB_BITS) + (value >> shift) as usize
}

/// The largest value of a class.
fn upper_end(class: usize) -> u64 {
    let octave = class >> SUB_BITS;
    if octave <= 1 {
        return class as u64;
    }
    let shift = octave as u32 - 1;
    let mantissa = (class - ((shift as usize) << SUB_BITS)) as u128;
    (((mantissa + 1) << shift) - 1).min(u128::from(u64::MAX)) as u64
}

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Self {
        let classes = vec![0; CLASSES].into_boxed_slice();
        Self { classes, sum: 0, min: u64::MAX, max: 0 }
    }

    /// Records one value.
    #[inline(always)]
    pub fn record(&mut self, value: u64) {
        if let Some(count) = self.classes.get_mut(class(value)) {
            *count += 1;
        }
        self.sum += u128::from(value);
        // Branches that are hardly ever taken cost less than two more stores.
        if value < self.min {
            self.min = value;
        }
        if value > self.max {
            self.max = value;
        }
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (ours, theirs) in self.classes.iter_mut().zip(other.classes.iter()) {
            *ours += theirs;
        }
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.classes.fill(0);
        (self.sum, self.min, self.max) = (0, u64::MAX, 0);
    }

    /// How many values were recorded. Adds the classes up.
    pub fn count(&self) -> u64 {
        self.classes.iter().sum()
    }

    /// Calls `each` with class and number of what was recorded since `before`, and brings `before` up to that.
    pub(super) fn since(&self, before: &mut Vec<u64>, mut each: impl FnMut(u16, u64)) {
        if self.is_empty() {
            return;
        }
        before.resize(CLASSES, 0);
        let range = class(self.min)..=class(self.max);
        let pairs = self.classes.iter().zip(before.iter_mut()).enumerate();
        for (index, (&now, before)) in pairs.skip(*range.start()).take(range.end() - range.start() + 1) {
            if now != *before {
                each(index as u16, now - core::mem::replace(before, now));
            }
        }
    }

    /// The largest value of a class.
    pub(super) fn class_end(class: u16) -> u64 {
        upper_end(class.into())
    }

    fn is_empty(&self) -> bool {
        self.min > self.max
    }

    /// The smallest value; `None` if there is none.
    pub fn min(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.min)
    }

    /// The largest value.
    pub fn max(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.max)
    }

    /// The mean.
    pub fn mean(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.sum as f64 / self.count() as f64)
    }

    /// The standard deviation, from the middles of the classes.
    pub fn standard_deviation(&self) -> Option<f64> {
        let mean = self.mean()?;
        let squares: f64 = self
            .classes()
            .map(|(low, high, count)| {
                let middle = f64::midpoint(low as f64, high as f64);
                (middle - mean).powi(2) * count as f64
            })
            .sum();
        Some((squares / self.count() as f64).sqrt())
    }

    /// The value that `percent` of all values are at or below: the upper end of its class, but never beyond the maximum.
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        if self.is_empty() {
            return None;
        }
        let rank = (percent / 100.0 * self.count() as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (index, count) in self.classes.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Some(upper_end(index).clamp(self.min, self.max));
            }
        }
        Some(self.max)
    }

    /// The classes that hold values: smallest value, largest value, how many.
    pub fn classes(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        let used = self.classes.iter().enumerate().filter(|&(_, &count)| count > 0);
        used.map(|(index, &count)| {
            let low = if index == 0 { 0 } else { upper_end(index - 1) + 1 };
            (low, upper_end(index), count)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn classes_cover_all_values_without_gaps() {
        let mut next = 0;
        for index in 0..CLASSES {
            assert_eq!(class(next), index, "the first value of class {index} is {next}");
            let end = upper_end(index);
            assert_eq!(class(end), index);
            assert!(end - next <= next / 64, "class {index} is wider than a 64th");
            if end == u64::MAX {
                return;
            }
            next = end + 1;
        }
        panic!("the classes end at {next}");
    }

    #[test]
    fn an_empty_histogram_has_no_figures() {
        let empty = Histogram::new();
        assert_eq!((empty.min(), empty.max(), empty.mean(), empty.percentile(50.0)), (None, None, None, None));
    }

    proptest! {
        #[test]
        fn percentiles_are_those_of_an_exact_sort_within_a_class(
            mut values in proptest::collection::vec(0_u64..10_000_000_000, 1..2000),
            percent in 0.0_f64..100.0,
        ) {
            let mut histogram = Histogram::new();
            for &value in &values {
                histogram.record(value);
            }
            values.sort_unstable();
            let rank = ((percent / 100.0 * values.len() as f64).ceil() as usize).max(1);
            let exact = values[rank - 1];
            let found = histogram.percentile(percent).unwrap();
            prop_assert!(found >= exact && found <= exact + exact / 64, "{found} for {exact}");
            prop_assert_eq!(histogram.min(), values.first().copied());
            prop_assert_eq!(histogram.max(), values.last().copied());
            prop_assert_eq!(histogram.percentile(100.0), values.last().copied());
        }

        #[test]
        fn merging_is_recording_both(
            ours in proptest::collection::vec(any::<u64>(), 0..200),
            theirs in proptest::collection::vec(any::<u64>(), 0..200),
        ) {
            let (mut left, mut right, mut both) = (Histogram::new(), Histogram::new(), Histogram::new());
            for &value in &ours {
                left.record(value);
                both.record(value);
            }
            for &value in &theirs {
                right.record(value);
                both.record(value);
            }
            left.merge(&right);
            prop_assert_eq!(left.classes().collect::<Vec<_>>(), both.classes().collect::<Vec<_>>());
            prop_assert_eq!((left.count(), left.min(), left.max()), (both.count(), both.min(), both.max()));
        }
    }
}
