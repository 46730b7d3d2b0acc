//! Where I/Os go, for jobs that do more than draw or walk: every block once, or some more often than others.
//!
//! **Every block once.** A [`Permutation`] gives each slot of a region exactly once, in an order that looks random, from
//! a few words of state: additions, odd multiplications and shifts, each of which can be undone modulo a power of two,
//! and one more try where the result lies behind the region's end (fewer than two tries on average, whatever the size).
//! A map of what was visited would take half a gigabyte for a drive of 16 TB, and a miss of the cache for each I/O.
//!
//! **Some more often.** A [`Shape`] cuts the region into pieces within which each slot is as likely as the next, and
//! draws a piece by Walker's alias method: two draws, two table entries, no logarithm and no division. The first ranks
//! have a piece each, later ones share pieces that grow by a hundredth, so no slot's share is wrong by more than that.
#![forbid(unsafe_code)]

use super::job::Distribution;
use super::random::Random;

/// An order in which each of so many slots comes once.
#[derive(Debug, Clone)]
pub struct Permutation {
    slots: u64,
    mask: u64,
    shift: u32,
    keys: [u64; 4],
}

impl Permutation {
    /// An order of `slots` slots; each seed gives another.
    pub fn new(slots: u64, seed: u64) -> Self {
        let bits = 64 - slots.saturating_sub(1).leading_zeros();
        let mask = if bits >= 64 { u64::MAX } else { (1 << bits) - 1 };
        let mut random = Random::new(seed);
        Self { slots, mask, shift: bits.div_ceil(2).max(1), keys: core::array::from_fn(|_| random.next_u64()) }
    }

    /// The slot that comes at `index`, below the number of slots as `index` is.
    #[inline]
    pub fn at(&self, index: u64) -> u64 {
        let mut slot = index;
        loop {
            for key in self.keys {
                slot = slot.wrapping_add(key) & self.mask;
                slot = slot.wrapping_mul(key | 1) & self.mask;
                slot ^= slot >> self.shift;
            }
            if slot < self.slots {
                return slot;
            }
        }
    }
}

/// Slots that are not all as likely.
#[derive(Debug, Clone)]
pub struct Shape {
    pieces: Vec<Piece>,
    /// Where the ranks lie: the likeliest are not neighbours. `None` where the rank is the place.
    scattered: Option<Permutation>,
}

#[derive(Debug, Clone, Copy)]
struct Piece {
    first: u64,
    slots: u64,
    /// A fraction below this stays here, one above goes to the other piece.
    stays_below: u64,
    other: u32,
}

/// Ranks with a piece of their own.
const SINGLE_RANKS: u64 = 1024;
/// Pieces of a bell.
const BELL_PIECES: u64 = 4096;

impl Shape {
    /// The shape of a distribution over `slots` slots; `None` for one where all are as likely.
    pub fn new(distribution: Distribution, slots: u64, seed: u64) -> Option<Self> {
        let slots = slots.max(1);
        let (weights, is_ranked) = match distribution {
            Distribution::Uniform => return None,
            Distribution::Zipf(theta) => (weighted(&growing(slots), |first, end| zipf(theta, first, end)), true),
            Distribution::Pareto(h) => {
                let power = (1.0 - h).ln() / h.ln();
                let below = |slot: u64| (slot as f64 / slots as f64).powf(power);
                (weighted(&growing(slots), |first, end| below(end) - below(first)), true)
            }
            Distribution::Normal(percent) => {
                let deviation = (percent / 100.0 * slots as f64).max(f64::MIN_POSITIVE);
                let edges = equal(slots);
                let bell = |first: u64, end: u64| {
                    let away = (f64::midpoint(first as f64, end as f64) - slots as f64 / 2.0) / deviation;
                    (-away * away / 2.0).exp() * (end - first) as f64
                };
                (weighted(&edges, bell), false)
            }
        };
        let scattered = is_ranked.then(|| Permutation::new(slots, seed));
        Some(Self { pieces: alias(&weights), scattered })
    }

    /// A slot.
    #[inline]
    pub fn draw(&self, random: &mut Random) -> u64 {
        let product = u128::from(random.next_u64()) * self.pieces.len() as u128;
        let Some(mut piece) = self.pieces.get((product >> 64) as usize) else { return 0 };
        if product as u64 > piece.stays_below {
            piece = self.pieces.get(piece.other as usize).unwrap_or(piece);
        }
        let rank = piece.first + if piece.slots == 1 { 0 } else { random.below(piece.slots) };
        self.scattered.as_ref().map_or(rank, |order| order.at(rank))
    }
}

/// Edges of pieces: single ranks at first, then ever longer ones.
fn growing(slots: u64) -> Vec<u64> {
    let mut edges: Vec<u64> = (0..=slots.min(SINGLE_RANKS)).collect();
    while let Some(&last) = edges.last().filter(|&&last| last < slots) {
        edges.push(last.saturating_add(last / 100).clamp(last + 1, slots));
    }
    edges
}

fn equal(slots: u64) -> Vec<u64> {
    let pieces = slots.min(BELL_PIECES);
    (0..=pieces).map(|piece| (u128::from(slots) * u128::from(piece) / u128::from(pieces)) as u64).collect()
}

/// What the ranks from `first` to below `end` weigh; rank 0 is the likeliest and weighs 1.
fn zipf(theta: f64, first: u64, end: u64) -> f64 {
    if end - first == 1 {
        return (end as f64).powf(-theta);
    }
    let (low, high) = (first as f64 + 0.5, end as f64 + 0.5);
    if (theta - 1.0).abs() < 1e-9 {
        return (high / low).ln();
    }
    (high.powf(1.0 - theta) - low.powf(1.0 - theta)) / (1.0 - theta)
}

fn weighted(edges: &[u64], weight: impl Fn(u64, u64) -> f64) -> Vec<(u64, u64, f64)> {
    let pairs = edges.iter().zip(edges.iter().skip(1));
    pairs.filter(|(first, end)| first < end).map(|(&first, &end)| (first, end - first, weight(first, end))).collect()
}

/// Walker's tables: pieces too light for an even share are filled up from one that is too heavy.
fn alias(weights: &[(u64, u64, f64)]) -> Vec<Piece> {
    let total: f64 = weights.iter().map(|&(_, _, weight)| weight).sum();
    let mut shares: Vec<f64> = weights.iter().map(|&(_, _, weight)| weight / total * weights.len() as f64).collect();
    let mut pieces: Vec<Piece> = (0..)
        .zip(weights)
        .map(|(number, &(first, slots, _))| Piece { first, slots, stays_below: u64::MAX, other: number })
        .collect();
    let (mut light, mut heavy): (Vec<usize>, Vec<usize>) = (0..shares.len()).partition(|&index| shares[index] < 1.0);
    while let (Some(small), Some(&large)) = (light.pop(), heavy.last()) {
        pieces[small].stays_below = (shares[small] * u64::MAX as f64) as u64;
        pieces[small].other = large as u32;
        shares[large] -= 1.0 - shares[small];
        if shares[large] < 1.0 {
            heavy.pop();
            light.push(large);
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn e17_a_permutation_gives_each_slot_once(slots in 1_u64..5000, seed in any::<u64>()) {
            let order = Permutation::new(slots, seed);
            let mut seen: Vec<u64> = (0..slots).map(|index| order.at(index)).collect();
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..slots).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_permutation_is_no_walk_and_differs_from_the_next() {
        let (one, other) = (Permutation::new(1 << 20, 1), Permutation::new(1 << 20, 2));
        let neighbours = (0..10_000).filter(|&index| one.at(index).abs_diff(one.at(index + 1)) < 1000).count();
        assert!(neighbours < 100, "{neighbours} of 10000 steps are short");
        let same = (0..10_000).filter(|&index| one.at(index) == other.at(index)).count();
        assert!(same < 10, "{same} places are the same");
        let upper = (0..10_000).filter(|&index| one.at(index) >= 1 << 19).count();
        assert!((4700..5300).contains(&upper), "{upper}");
    }

    fn shares(distribution: Distribution, slots: u64, draws: u32) -> Vec<f64> {
        let shape = Shape::new(distribution, slots, 3).expect("a shape");
        let mut random = Random::new(9);
        let mut counts = vec![0_u32; slots as usize];
        (0..draws).for_each(|_| counts[shape.draw(&mut random) as usize] += 1);
        counts.iter().map(|&count| f64::from(count) / f64::from(draws)).collect()
    }

    #[test]
    fn zipf_gives_each_rank_its_share() {
        for theta in [0.8, 1.0, 1.2] {
            let mut found = shares(Distribution::Zipf(theta), 5000, 400_000);
            found.sort_by(|one, other| other.total_cmp(one));
            let total: f64 = (1..=5000).map(|rank| f64::from(rank).powf(-theta)).sum();
            for rank in [1, 2, 5, 10] {
                let expected = f64::from(rank).powf(-theta) / total;
                let share = found[rank as usize - 1];
                assert!((share - expected).abs() < expected * 0.1, "theta {theta}, rank {rank}: {share} {expected}");
            }
        }
    }

    #[test]
    fn pareto_of_a_fifth_is_eighty_to_twenty() {
        let mut found = shares(Distribution::Pareto(0.2), 10_000, 400_000);
        found.sort_by(|one, other| other.total_cmp(one));
        let fifth: f64 = found.iter().take(2000).sum();
        assert!((fifth - 0.8).abs() < 0.02, "{fifth}");
    }

    #[test]
    fn two_thirds_of_a_bell_lie_within_its_deviation() {
        let found = shares(Distribution::Normal(10.0), 10_000, 200_000);
        let within: f64 = found[4000..6000].iter().sum();
        assert!((within - 0.6827).abs() < 0.01, "{within}");
    }
}
