//! What is written, and whether it comes back.
//!
//! For speed the data only has to be such that the drive cannot make less of it: random, random in part, or zeros where
//! that is the question. For verification each logical block says of itself what it is:
//!
//! | 64-bit word | holds |
//! |---|---|
//! | 0 | `nvmetal` and a zero |
//! | 1 | the block's address (LBA) |
//! | 2 | the run's seed |
//! | 3 | the generation: how often this run has written the block, from 1 |
//! | 4 .. last - 1 | words made from the three |
//! | last | a checksum of all before |
//!
//! So a block that comes back can be checked without anything being remembered, and one that is wrong can say how: it is
//! another block's, another run's, an older generation, torn, or nothing of ours. All words are little endian.
#![forbid(unsafe_code)]

use serde::Serialize;

use super::job::Data;
use super::random::Random;

const MAGIC: u64 = u64::from_le_bytes(*b"nvmetal\0");
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
const HEAD_WORDS: usize = 4;

fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// What a block is to say of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Its address.
    pub lba: u64,
    /// The run's seed.
    pub seed: u64,
    /// How often the run has written it.
    pub generation: u64,
}

impl Stamp {
    /// The words of a block of so many, one after the other.
    fn words(self, count: usize) -> impl Iterator<Item = u64> {
        let key = mix(self.lba ^ mix(self.seed ^ mix(self.generation.wrapping_add(GOLDEN))));
        let mut sum = GOLDEN;
        (0..count).map(move |index| {
            let word = match index {
                0 => MAGIC,
                1 => self.lba,
                2 => self.seed,
                3 => self.generation,
                _ if index + 1 == count => return sum,
                _ => mix(key.wrapping_add((index as u64).wrapping_mul(GOLDEN))),
            };
            sum = checksum(sum, word);
            word
        })
    }

    /// Fills a block.
    pub fn fill(self, block: &mut [u8]) {
        let words = self.words(block.len() / 8);
        for (place, word) in block.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
    }
}

fn checksum(sum: u64, word: u64) -> u64 {
    (sum.rotate_left(5) ^ word).wrapping_mul(GOLDEN)
}

/// What a block that is not as it was written looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Looks {
    /// It holds one byte all over.
    Constant,
    /// Whole and sound, but of another address.
    OtherBlock(u64),
    /// Whole and sound, but of a run with another seed.
    OtherRun(u64),
    /// Whole and sound, but written earlier (or later) than it should be.
    OtherGeneration(u64),
    /// It begins as one of ours and does not go on as such.
    Damaged,
    /// Nothing of ours.
    Foreign,
    /// The controller's Compare command found a difference; the data did not come to us.
    Compared,
}

impl core::fmt::Display for Looks {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Constant => f.write_str("the block holds one byte all over"),
            Self::OtherBlock(lba) => write!(f, "it is the data of LBA {lba}"),
            Self::OtherRun(seed) => write!(f, "it was written with the seed {seed}"),
            Self::OtherGeneration(generation) => write!(f, "it is the data of write {generation} of that block"),
            Self::Damaged => f.write_str("it begins as it was written and is damaged"),
            Self::Foreign => f.write_str("it is nothing that nvmetal wrote"),
            Self::Compared => f.write_str("the drive's Compare command says so"),
        }
    }
}

/// A block that is not as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Miscompare {
    /// Its address.
    pub lba: u64,
    /// The first byte of the block that differs; 0 where the drive compared.
    pub byte: u32,
    /// What it should be.
    pub expected: u8,
    /// What it is.
    pub found: u8,
    /// What the block looks like.
    pub looks: Looks,
}

impl core::fmt::Display for Miscompare {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        if self.looks == Looks::Compared {
            return write!(f, "LBA {}: {}", self.lba, self.looks);
        }
        let Self { lba, byte, expected, found, looks } = self;
        write!(f, "LBA {lba}, byte {byte}: {found:#04x} instead of {expected:#04x}; {looks}")
    }
}

/// Checks a block that was read; without a generation, any that is sound will do.
pub fn check(block: &[u8], lba: u64, seed: u64, generation: Option<u64>) -> Option<Miscompare> {
    let word = |index: usize| {
        let bytes = block.get(index * 8..index * 8 + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u64::from_le_bytes)
    };
    let said = Stamp { lba: word(1), seed: word(2), generation: word(3) };
    let wanted = Stamp { lba, seed, generation: generation.unwrap_or(said.generation) };
    let count = block.len() / 8;
    let differs = |stamp: Stamp| stamp.words(count).enumerate().find(|&(index, expected)| word(index) != expected);
    let (index, expected) = differs(wanted)?;
    let found = word(index);
    let in_word = ((found ^ expected).trailing_zeros() / 8).min(7);
    let byte_of = |word: u64| (word >> (in_word * 8)) as u8;
    let is_sound = word(0) == MAGIC && differs(said).is_none();
    let looks = match () {
        () if block.iter().all(|byte| Some(byte) == block.first()) => Looks::Constant,
        () if is_sound && said.seed != seed => Looks::OtherRun(said.seed),
        () if is_sound && said.lba != lba => Looks::OtherBlock(said.lba),
        () if is_sound => Looks::OtherGeneration(said.generation),
        () if index >= HEAD_WORDS || word(0) == MAGIC => Looks::Damaged,
        () => Looks::Foreign,
    };
    let byte = (index * 8) as u32 + in_word;
    Some(Miscompare { lba, byte, expected: byte_of(expected), found: byte_of(found), looks })
}

/// Fills `bytes` with data of this kind: of a compressible kind, each half kibibyte has so much of zeros at its end.
pub fn fill(data: Data, random: &mut Random, bytes: &mut [u8]) {
    match data {
        Data::Zero => bytes.fill(0),
        Data::Random => random.fill(bytes),
        Data::Compressible(percent) => {
            for piece in bytes.chunks_mut(512) {
                let kept = piece.len() - piece.len() * usize::from(percent.min(100)) / 100;
                let (head, tail) = piece.split_at_mut(kept);
                random.fill(head);
                tail.fill(0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(lba: u64, seed: u64, generation: u64) -> Vec<u8> {
        let mut block = vec![0; 512];
        Stamp { lba, seed, generation }.fill(&mut block);
        block
    }

    #[test]
    fn a_block_that_was_written_is_known_again() {
        for lba in [0, 1, 77, u64::MAX] {
            assert_eq!(check(&block(lba, 5, 3), lba, 5, Some(3)), None);
            assert_eq!(check(&block(lba, 5, 3), lba, 5, None), None);
        }
    }

    #[test]
    fn every_single_byte_that_changes_is_found_and_named() {
        let good = block(9, 5, 1);
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x40;
            let found = check(&bad, 9, 5, Some(1)).expect("it differs");
            assert_eq!((found.byte as usize, found.found, found.expected), (at, bad[at], good[at]));
        }
    }

    #[test]
    fn what_a_wrong_block_looks_like_is_told() {
        let looks = |block: &[u8]| check(block, 9, 5, Some(2)).expect("it differs").looks;
        assert_eq!(looks(&block(10, 5, 2)), Looks::OtherBlock(10));
        assert_eq!(looks(&block(9, 6, 2)), Looks::OtherRun(6));
        assert_eq!(looks(&block(9, 5, 1)), Looks::OtherGeneration(1));
        assert_eq!(looks(&[0xff; 512]), Looks::Constant);
        let mut torn = block(9, 5, 2);
        torn[256..].fill(0);
        assert_eq!(looks(&torn), Looks::Damaged);
        let mut foreign = vec![0; 512];
        Random::new(1).fill(&mut foreign);
        assert_eq!(looks(&foreign), Looks::Foreign);
    }

    #[test]
    fn compressible_data_has_its_share_of_zeros() {
        let mut bytes = vec![1; 4096];
        fill(Data::Compressible(75), &mut Random::new(1), &mut bytes);
        let zeros = bytes.iter().filter(|&&byte| byte == 0).count();
        assert!((3072..3120).contains(&zeros), "{zeros}");
        fill(Data::Zero, &mut Random::new(1), &mut bytes);
        assert!(bytes.iter().all(|&byte| byte == 0));
    }
}
