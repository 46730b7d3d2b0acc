//! The time that the media takes: dies that read and program pages, and a buffer in front of them.
//!
//! Reads go to dies, page by page, striped: a die does one page at a time, so what limits random reads is the number of
//! dies and the time of one read, and what limits a single one is that time alone. A die keeps the page that it read last,
//! so reading on inside it costs nothing. Writes end in a buffer, which the dies empty at the rate at which they program;
//! while there is room a write is quick, and when there is none it waits for its share of the buffer.
#![forbid(unsafe_code)]

use crate::model::Model;

#[derive(Debug, Clone, Copy)]
struct Die {
    free_ns: u64,
    /// The page that was read last.
    page: u64,
}

/// Dies and write buffer in use.
#[derive(Debug)]
pub(crate) struct Nand {
    dies: Vec<Die>,
    page_shift: u32,
    read_ns: u64,
    buffer_bytes: u64,
    write_latency_ns: u64,
    /// Femtoseconds in which the dies together take a byte out of the buffer.
    drain_fs_per_byte: u64,
    /// When the buffer will be empty if nothing comes in.
    empty_ns: u64,
}

impl Nand {
    pub(crate) fn new(model: &Model) -> Self {
        let rate_bytes = u128::from(model.dies) * u128::from(model.page);
        Self {
            dies: vec![Die { free_ns: 0, page: u64::MAX }; model.dies as usize],
            page_shift: model.page.trailing_zeros(),
            read_ns: model.read,
            buffer_bytes: model.write_buffer,
            write_latency_ns: model.write_latency,
            drain_fs_per_byte: (u128::from(model.program) * 1_000_000 / rate_bytes.max(1)) as u64,
            empty_ns: 0,
        }
    }

    /// Reads the bytes from `first` on; when the last page is there.
    pub(crate) fn read(&mut self, now_ns: u64, first: u64, bytes: u64) -> u64 {
        if self.read_ns == 0 {
            return now_ns;
        }
        let dies = self.dies.len() as u64;
        let last = (first + bytes.max(1) - 1) >> self.page_shift;
        let mut ready_ns = now_ns;
        for page in first >> self.page_shift..=last {
            let Some(die) = self.dies.get_mut((page % dies) as usize) else { continue };
            if die.page != page {
                die.free_ns = die.free_ns.max(now_ns) + self.read_ns;
                die.page = page;
            }
            ready_ns = ready_ns.max(die.free_ns);
        }
        ready_ns
    }

    /// Takes `bytes` that have arrived at `now_ns` into the buffer; when the write is complete.
    pub(crate) fn write(&mut self, now_ns: u64, bytes: u64) -> u64 {
        let drain = |bytes: u64| (u128::from(bytes) * u128::from(self.drain_fs_per_byte) / 1_000_000) as u64;
        self.empty_ns = self.empty_ns.max(now_ns) + drain(bytes);
        // There is room for it when what is left to drain fits into the buffer.
        let room_ns = self.empty_ns.saturating_sub(drain(self.buffer_bytes));
        room_ns.max(now_ns) + self.write_latency_ns
    }

    /// When everything buffered is on the media.
    pub(crate) fn flush(&self, now_ns: u64) -> u64 {
        self.empty_ns.max(now_ns)
    }

    /// Forgets what was under way.
    pub(crate) fn reset(&mut self) {
        self.dies.fill(Die { free_ns: 0, page: u64::MAX });
        self.empty_ns = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nand() -> Nand {
        let mut model = Model::by_name("ideal").unwrap().unwrap();
        (model.dies, model.page, model.read, model.program) = (2, 4096, 1000, 4096);
        (model.write_buffer, model.write_latency) = (8192, 10);
        Nand::new(&model)
    }

    #[test]
    fn pages_of_different_dies_are_read_at_the_same_time_and_those_of_one_in_turn() {
        let mut nand = nand();
        assert_eq!(nand.read(0, 0, 8192), 1000);
        assert_eq!(nand.read(0, 8192, 4096), 2000);
        assert_eq!(nand.read(5000, 8192 + 512, 512), 5000, "the page is still in the die");
    }

    #[test]
    fn writes_are_quick_until_the_buffer_is_full_and_then_as_slow_as_the_dies() {
        let mut nand = nand(); // Two bytes per nanosecond.
        assert_eq!(nand.write(0, 8192), 10);
        assert_eq!(nand.write(0, 4096), 2048 + 10);
        assert_eq!(nand.write(0, 4096), 4096 + 10);
        assert_eq!(nand.write(100_000, 4096), 100_010, "the buffer was emptied meanwhile");
        assert_eq!(nand.flush(100_010), 100_000 + 2048);
    }
}
