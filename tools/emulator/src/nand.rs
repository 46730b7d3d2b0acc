//! The time that the media takes: planes that read and program pages, channels to them, and a cache in front of them.
//!
//! Reads go to planes, page by page, striped: a plane does one page at a time, so what limits random reads is the number
//! of planes and the time of one read, and what limits a single one is that time alone. A plane keeps the page that it
//! read last, so reading on inside it costs nothing. From the plane the data takes its channel, which other planes share.
//! Before all that the place has to be looked up in the mapping table, which need not be in the controller's own memory:
//! the part that is not lies in the host memory buffer, if there is one, or has to be read from the media itself.
//!
//! Writes end in a buffer, which the planes empty at the rate at which they program; while there is room a write is
//! quick, and when there is none it waits for its share of the buffer. Programming is quick while there are cells left
//! for one bit each (the SLC cache), and slow when these are full, until the drive was idle and could fold them together.
#![forbid(unsafe_code)]

use crate::model::Model;

/// Bytes of the mapping table that are fetched at once; they hold places of 1024 times as many bytes of data.
const SEGMENT_BYTES: u64 = 4096;
/// Bytes of data that a segment of the mapping table is for, as a power of two.
const SEGMENT_SHIFT: u32 = 22;

#[derive(Debug, Clone, Copy)]
struct Plane {
    free_ns: u64,
    /// The page that was read last.
    page: u64,
}

/// Segments of the mapping table that are at hand: each has one place where it may be.
#[derive(Debug, Default)]
struct Segments(Vec<u64>);

impl Segments {
    fn new(bytes: u64) -> Self {
        Self(vec![u64::MAX; (bytes / SEGMENT_BYTES) as usize])
    }

    /// Whether it is here; from now on it is.
    fn look_up(&mut self, segment: u64) -> bool {
        let places = self.0.len().max(1) as u64;
        let Some(place) = self.0.get_mut((segment % places) as usize) else { return false };
        core::mem::replace(place, segment) == segment
    }
}

/// Planes, channels, mapping table and cache in use.
#[derive(Debug)]
pub(crate) struct Nand {
    planes: Vec<Plane>,
    /// When each channel is free.
    channels_free_ns: Vec<u64>,
    channel_fs_per_byte: u64,
    page_shift: u32,
    read_ns: u64,
    controller_ns: u64,
    /// The part of the mapping table in the controller; `None` where all of it is.
    mapping: Option<Segments>,
    /// The part of it in the host memory buffer.
    host_memory: Segments,
    hmb_lookup_ns: u64,
    buffer_bytes: u64,
    write_latency_ns: u64,
    /// Femtoseconds in which the planes together take a byte out of the buffer: with one bit in a cell, and with all.
    drain_fs_per_byte: u64,
    full_fs_per_byte: u64,
    slc_bytes: u64,
    slc_used_bytes: u64,
    fold_bytes_per_s: u64,
    fold_after_ns: u64,
    /// When the buffer will be empty if nothing comes in.
    empty_ns: u64,
    /// What a byte of the buffer stands for, by the last that came in.
    last_fs_per_byte: u64,
}

impl Nand {
    pub(crate) fn new(model: &Model) -> Self {
        let planes = model.dies * model.planes;
        let rate_bytes = u128::from(planes) * u128::from(model.page);
        let per_byte = |program_ns: u64| (u128::from(program_ns) * 1_000_000 / rate_bytes.max(1)) as u64;
        let (drain, full) = (per_byte(model.program), per_byte(model.program_full));
        Self {
            planes: vec![Plane { free_ns: 0, page: u64::MAX }; planes as usize],
            channels_free_ns: vec![0; model.channels as usize],
            channel_fs_per_byte: 1_000_000_000_000_000u64.checked_div(model.channel_rate).unwrap_or(0),
            page_shift: model.page.trailing_zeros(),
            read_ns: model.read,
            controller_ns: model.controller,
            mapping: (model.mapping != 0).then(|| Segments::new(model.mapping)),
            host_memory: Segments::default(),
            hmb_lookup_ns: model.hmb_lookup,
            buffer_bytes: model.write_buffer,
            write_latency_ns: model.write_latency,
            drain_fs_per_byte: drain,
            full_fs_per_byte: full.max(drain),
            slc_bytes: model.slc_cache,
            slc_used_bytes: 0,
            fold_bytes_per_s: model.fold_rate,
            fold_after_ns: model.fold_after,
            empty_ns: 0,
            last_fs_per_byte: drain,
        }
    }

    /// The host has given so many bytes of its memory, or taken them back (0).
    pub(crate) fn set_host_memory(&mut self, bytes: u64) {
        self.host_memory = Segments::new(bytes);
    }

    /// Looks up where the data is; what that takes.
    fn look_up(&mut self, first: u64) -> u64 {
        let segment = first >> SEGMENT_SHIFT;
        let Some(mapping) = &mut self.mapping else { return 0 };
        if mapping.look_up(segment) {
            return 0;
        }
        if self.host_memory.look_up(segment) { self.hmb_lookup_ns } else { self.read_ns }
    }

    /// Reads the bytes from `first` on; when the last page is in its plane's register.
    pub(crate) fn read(&mut self, now_ns: u64, first: u64, bytes: u64) -> u64 {
        if self.read_ns == 0 {
            return now_ns + self.controller_ns;
        }
        let now_ns = now_ns + self.look_up(first);
        let planes = self.planes.len() as u64;
        let last = (first + bytes.max(1) - 1) >> self.page_shift;
        let mut ready_ns = now_ns;
        for page in first >> self.page_shift..=last {
            let Some(plane) = self.planes.get_mut((page % planes) as usize) else { continue };
            if plane.page != page {
                plane.free_ns = plane.free_ns.max(now_ns) + self.read_ns;
                plane.page = page;
            }
            ready_ns = ready_ns.max(plane.free_ns);
        }
        ready_ns + self.controller_ns
    }

    /// Brings the bytes from the planes to the controller; when the last of them is there.
    pub(crate) fn channel(&mut self, now_ns: u64, first: u64, bytes: u64) -> u64 {
        let mut end_ns = now_ns;
        if self.channel_fs_per_byte == 0 {
            return end_ns;
        }
        let count = self.channels_free_ns.len() as u64;
        let (mut at, end) = (first, first + bytes);
        while at < end {
            let page_end = ((at >> self.page_shift) + 1) << self.page_shift;
            let part = page_end.min(end) - at;
            if let Some(free_ns) = self.channels_free_ns.get_mut(((at >> self.page_shift) % count) as usize) {
                *free_ns = (*free_ns).max(now_ns) + part * self.channel_fs_per_byte / 1_000_000;
                end_ns = end_ns.max(*free_ns);
            }
            at = page_end;
        }
        end_ns
    }

    /// Takes `bytes` that have arrived at `now_ns` into the buffer; when the write is complete.
    pub(crate) fn write(&mut self, now_ns: u64, bytes: u64) -> u64 {
        self.fold(now_ns);
        let quick = if self.slc_bytes == 0 { bytes } else { bytes.min(self.slc_bytes - self.slc_used_bytes) };
        self.slc_used_bytes += if self.slc_bytes == 0 { 0 } else { quick };
        let time = |bytes: u64, fs: u64| (u128::from(bytes) * u128::from(fs) / 1_000_000) as u64;
        self.empty_ns = self.empty_ns.max(now_ns)
            + time(quick, self.drain_fs_per_byte)
            + time(bytes - quick, self.full_fs_per_byte);
        self.last_fs_per_byte = if quick == bytes { self.drain_fs_per_byte } else { self.full_fs_per_byte };
        // There is room for it when what is left to drain fits into the buffer.
        let room_ns = self.empty_ns.saturating_sub(time(self.buffer_bytes, self.last_fs_per_byte));
        room_ns.max(now_ns) + self.write_latency_ns
    }

    /// What the drive did for its SLC cache while nothing was written.
    fn fold(&mut self, now_ns: u64) {
        let idle_ns = now_ns.saturating_sub(self.empty_ns.saturating_add(self.fold_after_ns));
        if idle_ns != 0 && self.slc_used_bytes != 0 {
            let folded = u128::from(idle_ns) * u128::from(self.fold_bytes_per_s) / 1_000_000_000;
            self.slc_used_bytes = self.slc_used_bytes.saturating_sub(u64::try_from(folded).unwrap_or(u64::MAX));
        }
    }

    /// When everything buffered is on the media.
    pub(crate) fn flush(&self, now_ns: u64) -> u64 {
        self.empty_ns.max(now_ns)
    }

    /// Forgets what was under way; what the cells hold stays.
    pub(crate) fn reset(&mut self) {
        self.planes.fill(Plane { free_ns: 0, page: u64::MAX });
        self.channels_free_ns.fill(0);
        self.set_host_memory(0);
        self.empty_ns = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model() -> Model {
        let mut model = Model::by_name("ideal").unwrap().unwrap();
        (model.dies, model.page, model.read, model.program) = (2, 4096, 1000, 4096);
        (model.write_buffer, model.write_latency) = (8192, 10);
        model
    }

    fn nand() -> Nand {
        Nand::new(&model())
    }

    #[test]
    fn pages_of_different_planes_are_read_at_the_same_time_and_those_of_one_in_turn() {
        let mut nand = nand();
        assert_eq!(nand.read(0, 0, 8192), 1000);
        assert_eq!(nand.read(0, 8192, 4096), 2000);
        assert_eq!(nand.read(5000, 8192 + 512, 512), 5000, "the page is still in the plane");
    }

    #[test]
    fn writes_are_quick_until_the_buffer_is_full_and_then_as_slow_as_the_planes() {
        let mut nand = nand(); // Two bytes per nanosecond.
        assert_eq!(nand.write(0, 8192), 10);
        assert_eq!(nand.write(0, 4096), 2048 + 10);
        assert_eq!(nand.write(0, 4096), 4096 + 10);
        assert_eq!(nand.write(100_000, 4096), 100_010, "the buffer was emptied meanwhile");
        assert_eq!(nand.flush(100_010), 100_000 + 2048);
    }

    #[test]
    fn pages_of_one_channel_follow_each_other_and_those_of_two_do_not() {
        let mut nand = Nand::new(&Model { channels: 2, channel_rate: 1_000_000_000, ..model() });
        assert_eq!(nand.channel(0, 0, 8192), 4096, "a byte each nanosecond, two channels");
        assert_eq!(nand.channel(0, 8192, 512), 4096 + 512);
    }

    #[test]
    fn the_slc_cache_has_a_knee_and_recovers_when_the_drive_is_idle() {
        let mut nand = Nand::new(&Model {
            slc_cache: 100 << 20,
            program_full: 40_960,
            fold_rate: 10 << 20,
            fold_after: 1_000_000_000,
            ..model()
        });
        let mut fill = |from_ns: u64, bytes: u64| {
            let mut now_ns = from_ns;
            for _ in 0..bytes >> 20 {
                now_ns = nand.write(now_ns, 1 << 20);
            }
            (nand.flush(now_ns), nand.flush(now_ns) - from_ns)
        };
        let (end_ns, quick_ns) = fill(0, 100 << 20);
        assert_eq!(quick_ns, (100 << 20) / 2, "two bytes each nanosecond");
        let (end_ns, slow_ns) = fill(end_ns, 100 << 20);
        assert!((9.99..10.01).contains(&(slow_ns as f64 / quick_ns as f64)), "{slow_ns}");
        // Six seconds of which five are idle enough: half of the cache is free again.
        let (end_ns, half_ns) = fill(end_ns + 6_000_000_000, 100 << 20);
        assert!((5.4..5.6).contains(&(half_ns as f64 / quick_ns as f64)), "{half_ns}");
        assert_eq!(fill(end_ns + 60_000_000_000, 100 << 20).1, quick_ns);
    }

    #[test]
    fn what_the_mapping_table_does_not_have_at_hand_costs_a_read_or_a_look_into_the_hosts_memory() {
        let mut nand = Nand::new(&Model { mapping: 4096, hmb_lookup: 300, ..model() });
        let (near, far) = (0, 64 << 22);
        assert_eq!(nand.read(0, near, 4096), 2000, "the table, then the data");
        assert_eq!(nand.read(10_000, near + 8192, 4096), 11_000, "now the table is at hand");
        nand.set_host_memory(1 << 20);
        assert_eq!(nand.read(20_000, far, 4096), 22_000, "nobody had it");
        nand.read(30_000, near, 4096);
        assert_eq!(nand.read(40_000, far + 8192, 4096), 41_300, "the host has it");
    }
}
