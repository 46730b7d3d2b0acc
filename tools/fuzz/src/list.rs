//! List memory for the data pointer builders, which remembers what was written where.

use std::collections::BTreeMap;

use nvmetal_core::data_pointer::{ListMemory, Segment};

/// Where the first unit lies: apart from all data.
const FIRST_IOVA: u64 = 0xffff_0000_0000_0000;
/// From one unit to the next; no controller page is longer.
const UNIT_BYTES: u64 = 1 << 28;

/// Units at known addresses.
pub struct List {
    pub units: usize,
    words: BTreeMap<(usize, usize), u64>,
}

impl List {
    pub fn of(units: usize) -> Self {
        Self { units, words: BTreeMap::new() }
    }

    /// What a controller reads at `iova`, word `index` of the unit that begins there.
    pub fn word(&self, iova: u64, index: usize) -> u64 {
        let unit = ((iova - FIRST_IOVA) / UNIT_BYTES) as usize;
        assert_eq!(iova, FIRST_IOVA + unit as u64 * UNIT_BYTES, "a list address that was never given out");
        *self.words.get(&(unit, index)).expect("a word that was never written")
    }
}

impl ListMemory for List {
    fn unit_iova(&self, unit: usize) -> Option<u64> {
        (unit < self.units).then(|| FIRST_IOVA + unit as u64 * UNIT_BYTES)
    }

    fn put(&mut self, unit: usize, index: usize, value: u64) {
        assert!(unit < self.units, "a word of a unit that does not exist");
        self.words.insert((unit, index), value);
    }
}

/// Neighbouring pieces as one.
pub fn join(pieces: impl IntoIterator<Item = Segment>) -> Vec<Segment> {
    let mut joined: Vec<Segment> = Vec::new();
    for piece in pieces.into_iter().filter(|piece| piece.bytes > 0) {
        match joined.last_mut() {
            Some(last) if last.iova.checked_add(last.bytes) == Some(piece.iova) => last.bytes += piece.bytes,
            _ => joined.push(piece),
        }
    }
    joined
}
