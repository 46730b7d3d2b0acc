//! A host of a few lines: memory, an admin queue, an I/O queue, and a stepped emulator that gets raw entries.
#![forbid(unsafe_code)]
#![allow(dead_code)] // Each file of tests uses a part of it.

use std::sync::Arc;

use nvmetal_core::command::SubmissionEntry;
use nvmetal_core::completion::CompletionEntry;
use nvmetal_core::register::{ControllerStatus, offset};
use nvmetal_emulator::{Emulator, GuestMemory, NoIrq, Options};

pub(crate) const BASE: u64 = 0x10_0000;
pub(crate) const DATA: u64 = BASE + 0x10_0000;
pub(crate) const ENTRIES: u32 = 16;

/// A host: memory at [`BASE`], the admin queue in its first pages, I/O queue 1 behind it.
pub(crate) struct Host {
    pub(crate) emulator: Emulator,
    pub(crate) memory: Arc<GuestMemory>,
    pub(crate) tails: [u32; 2],
    pub(crate) heads: [u32; 2],
    pub(crate) phases: [bool; 2],
}

impl Host {
    /// A drive that is not enabled.
    pub(crate) fn off(options: &str) -> Self {
        let memory = Arc::new(GuestMemory::new());
        memory.map_anonymous(BASE, 4 << 20).unwrap();
        let emulator = Emulator::new(Options::parse(options).unwrap(), Arc::clone(&memory), Box::new(NoIrq));
        Self { emulator, memory, tails: [0; 2], heads: [0; 2], phases: [true; 2] }
    }

    /// A drive that is ready.
    pub(crate) fn ready(options: &str) -> Self {
        let mut host = Self::off(options);
        host.emulator.write(offset::AQA, 4, u64::from(ENTRIES - 1) << 16 | u64::from(ENTRIES - 1));
        host.emulator.write(offset::ASQ, 8, BASE);
        host.emulator.write(offset::ACQ, 8, BASE + 0x1000);
        host.emulator.write(offset::CC, 4, 0x0046_0001);
        host.emulator.advance(1_000_000_000);
        assert!(host.status().rdy());
        host
    }

    /// A drive with one I/O queue pair.
    pub(crate) fn with_queue(options: &str) -> Self {
        let mut host = Self::ready(options);
        let size = u64::from(ENTRIES - 1) << 16 | 1;
        assert_eq!(host.admin(entry(0x05, [size as u32, 1]).with_prp(BASE + 0x3000, 0)), 0);
        assert_eq!(host.admin(entry(0x01, [size as u32, 1 << 16 | 1]).with_prp(BASE + 0x2000, 0)), 0);
        host
    }

    pub(crate) fn status(&mut self) -> ControllerStatus {
        ControllerStatus::from_bits(self.emulator.read(offset::CSTS, 4) as u32)
    }

    pub(crate) fn send(&mut self, queue: usize, entry: SubmissionEntry) {
        let tail = self.tails[queue];
        let at = BASE + 0x2000 * queue as u64 + u64::from(tail) * 64;
        self.memory.enter().write(at, &entry.with_cid(tail as u16 | 0x100).to_bytes()).unwrap();
        self.tails[queue] = (tail + 1) % ENTRIES;
        self.emulator.write(0x1000 + 8 * queue as u64, 4, u64::from(self.tails[queue]));
    }

    /// The next completion within a virtual minute; time passes until it is there, and no longer.
    pub(crate) fn take(&mut self, queue: usize) -> Option<CompletionEntry> {
        let deadline_ns = self.emulator.now_ns() + 60_000_000_000;
        loop {
            let mut raw = [0; 16];
            let at = BASE + 0x2000 * queue as u64 + 0x1000 + u64::from(self.heads[queue]) * 16;
            self.memory.enter().read(at, &mut raw).unwrap();
            let completion = CompletionEntry::from_bytes(raw);
            if completion.phase() == self.phases[queue] {
                self.heads[queue] = (self.heads[queue] + 1) % ENTRIES;
                self.phases[queue] ^= self.heads[queue] == 0;
                self.emulator.write(0x1004 + 8 * queue as u64, 4, u64::from(self.heads[queue]));
                return Some(completion);
            }
            if self.emulator.now_ns() >= deadline_ns {
                return None;
            }
            self.emulator.step(deadline_ns);
        }
    }

    /// Lets so many seconds pass.
    pub(crate) fn pass(&mut self, seconds: u64) {
        self.emulator.advance(self.emulator.now_ns() + seconds * 1_000_000_000);
    }

    /// The first bytes of a log page.
    pub(crate) fn log_page(&mut self, lid: u32, bytes: u32) -> Vec<u8> {
        assert_eq!(self.admin(entry(2, [(bytes / 4 - 1) << 16 | lid, 0]).with_nsid(u32::MAX)), 0);
        self.data(bytes as usize)
    }

    /// Sends a command and gives type and code of its status.
    pub(crate) fn run(&mut self, queue: usize, entry: SubmissionEntry) -> u16 {
        self.send(queue, entry);
        self.take(queue).unwrap().status().type_and_code()
    }

    pub(crate) fn admin(&mut self, entry: SubmissionEntry) -> u16 {
        self.run(0, entry)
    }

    pub(crate) fn io(&mut self, entry: SubmissionEntry) -> u16 {
        self.run(1, entry)
    }

    pub(crate) fn data(&self, bytes: usize) -> Vec<u8> {
        let mut data = vec![0; bytes];
        self.memory.enter().read(DATA, &mut data).unwrap();
        data
    }

    pub(crate) fn set_data(&self, data: &[u8]) {
        self.memory.enter().write(DATA, data).unwrap();
    }
}

/// An entry with dwords 10 and 11, and data at [`DATA`].
pub(crate) fn entry(opcode: u8, [cdw10, cdw11]: [u32; 2]) -> SubmissionEntry {
    SubmissionEntry::new(opcode).with_cdw10(cdw10).with_cdw11(cdw11).with_prp(DATA, DATA + 0x1000)
}

/// A command on blocks of namespace 1.
pub(crate) fn blocks(opcode: u8, first: u64, count: u32) -> SubmissionEntry {
    entry(opcode, [first as u32, (first >> 32) as u32]).with_nsid(1).with_cdw12(count - 1)
}
