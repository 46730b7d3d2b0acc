#![forbid(unsafe_code)]

use super::*;
use crate::dma::DmaMemory;
use nvmetal_core::command::admin::{
    AdminOpcode, Cns, CreateIoCompletionQueue, CreateIoSubmissionQueue, Identify, QueuePriority,
};
use nvmetal_core::command::{Command, SubmissionEntry};
use nvmetal_core::completion::CompletionEntry;
use nvmetal_core::number::ZeroBasedU16;
use nvmetal_core::queue::Doorbell;
use nvmetal_core::register::{Configuration, ControllerStatus, doorbell_offset, offset};

const ENTRIES: u16 = 32;

/// A driver that does the least.
struct Driver {
    transport: Arc<EmulatedTransport>,
    memory: DmaMemory,
    tails: [u32; 2],
    heads: [u32; 2],
    phases: [bool; 2],
}

impl Driver {
    fn new(options: &str) -> Self {
        let transport = EmulatedTransport::open(options).unwrap();
        let memory = DmaMemory::new(Arc::clone(&transport) as _, 1 << 20).unwrap();
        transport.set_bus_master(true).unwrap();
        let entries = u32::from(ENTRIES) - 1;
        transport.write32(offset::AQA, entries << 16 | entries).unwrap();
        transport.write64(offset::ASQ, memory.iova()).unwrap();
        transport.write64(offset::ACQ, memory.iova() + 0x1000).unwrap();
        let cc = Configuration::new().with_en(true).with_iosqes(6).with_iocqes(4);
        transport.write32(offset::CC, cc.into_bits()).unwrap();
        transport.idle(5_000_000_000, Waiting::Polling);
        assert!(ControllerStatus::from_bits(transport.read32(offset::CSTS).unwrap()).rdy());
        assert_eq!(transport.clock().now_ns(), 20_000_000, "RDY comes when the model says");
        Self { transport, memory, tails: [0; 2], heads: [0; 2], phases: [true; 2] }
    }

    fn submit(&mut self, queue: usize, entry: SubmissionEntry) {
        let tail = self.tails[queue];
        let at = queue * 0x2000 + tail as usize * 64;
        self.memory.copy_in(at, &entry.with_cid(tail as u16).to_bytes()).unwrap();
        self.tails[queue] = (tail + 1) % u32::from(ENTRIES);
    }

    fn ring(&self, queue: usize) {
        let bell = self.transport.doorbell(doorbell_offset(queue as u16, false, 0)).unwrap();
        bell.ring(self.tails[queue]);
    }

    fn poll(&mut self, queue: usize) -> Option<CompletionEntry> {
        let mut raw = [0; 16];
        self.memory.copy_out(queue * 0x2000 + 0x1000 + self.heads[queue] as usize * 16, &mut raw).unwrap();
        let completion = CompletionEntry::from_bytes(raw);
        if completion.phase() != self.phases[queue] {
            return None;
        }
        self.heads[queue] += 1;
        if self.heads[queue] == u32::from(ENTRIES) {
            self.heads[queue] = 0;
            self.phases[queue] = !self.phases[queue];
        }
        let bell = self.transport.doorbell(doorbell_offset(queue as u16, true, 0)).unwrap();
        bell.ring(self.heads[queue]);
        Some(completion)
    }

    fn wait(&mut self, queue: usize) -> CompletionEntry {
        let deadline = self.transport.clock().now_ns() + 1_000_000_000;
        loop {
            if let Some(completion) = self.poll(queue) {
                return completion;
            }
            assert!(self.transport.clock().now_ns() < deadline, "no completion within a virtual second");
            self.transport.idle(deadline, Waiting::Polling);
        }
    }

    fn admin(&mut self, entry: SubmissionEntry) -> CompletionEntry {
        self.submit(0, entry);
        self.ring(0);
        self.wait(0)
    }

    fn io_queue(&mut self) {
        let base = self.memory.iova() + 0x2000;
        let qsize = ZeroBasedU16::from_bits(ENTRIES - 1);
        let cq = CreateIoCompletionQueue { qid: 1, qsize, pc: true, ien: true, iv: 1 };
        assert!(self.admin(cq.entry().with_prp(base + 0x1000, 0)).status().is_success());
        let sq =
            CreateIoSubmissionQueue { qid: 1, qsize, pc: true, cqid: 1, qprio: QueuePriority::default(), nvmsetid: 0 };
        assert!(self.admin(sq.entry().with_prp(base, 0)).status().is_success());
    }

    fn read(&self, slba: u64, blocks: u16, at: u64) -> SubmissionEntry {
        SubmissionEntry::new(2)
            .with_nsid(1)
            .with_cdw10(slba as u32)
            .with_cdw12(u32::from(blocks - 1))
            .with_prp(self.memory.iova() + at, self.memory.iova() + at + 0x1000)
    }
}

#[test]
fn the_drive_says_who_it_is_and_that_it_is_emulated() {
    let mut driver = Driver::new("emulated:ideal,seed=7");
    let at = driver.memory.iova() + 0x8000;
    let identify = SubmissionEntry::new(AdminOpcode::IDENTIFY.into_bits())
        .with_cdw10(u32::from(Cns::CONTROLLER.into_bits()))
        .with_prp(at, 0);
    assert_eq!(Identify::from_entry(&identify).cns, Cns::CONTROLLER);
    assert!(driver.admin(identify).status().is_success());
    let mut text = [0; 60];
    driver.memory.copy_out(0x8004, &mut text).unwrap();
    let text = String::from_utf8_lossy(&text);
    assert!(text.starts_with("EMU000000000007") && text.contains("nvmetal EMULATED ideal"), "{text}");
    assert!(driver.transport.info().emulated);
}

#[test]
fn a_read_takes_the_time_that_the_model_says_and_brings_data() {
    let mut driver = Driver::new("ideal");
    driver.io_queue();
    let start = driver.transport.clock().now_ns();
    driver.submit(1, driver.read(0, 8, 0x8000));
    driver.ring(1);
    assert!(driver.wait(1).status().is_success());
    let took_ns = driver.transport.clock().now_ns() - start;
    assert!((7_000..9_000).contains(&took_ns), "about 8 us, not {took_ns} ns");
    let mut data = [0; 4096];
    driver.memory.copy_out(0x8000, &mut data).unwrap();
    assert!(data.iter().filter(|&&byte| byte == 0).count() < 100, "a filled drive does not read as zeros");
    assert_eq!(driver.transport.memory().fault_count(), 0);
}

#[test]
fn an_interrupt_ends_the_wait_for_its_own_vector_only() {
    let mut driver = Driver::new("ideal");
    let vectors = driver.transport.enable_interrupts(3).unwrap();
    driver.io_queue();
    driver.submit(1, driver.read(0, 8, 0x8000));
    driver.ring(1);
    let start = driver.transport.clock().now_ns();
    driver.transport.idle(start + 1_000_000, Waiting::Interrupt(&vectors[2]));
    assert_eq!(driver.transport.clock().now_ns(), start + 1_000_000, "nothing came on vector 2");
    driver.transport.idle(start + 2_000_000, Waiting::Interrupt(&vectors[1]));
    assert_eq!(driver.transport.clock().now_ns(), start + 1_000_000, "vector 1 had been raised");
    assert!(driver.poll(1).is_some());
}

#[test]
fn reads_at_depth_reach_the_ceiling_of_the_link() {
    let mut driver = Driver::new("ideal");
    driver.io_queue();
    let start = driver.transport.clock().now_ns();
    let (mut submitted, mut done) = (0u32, 0u32);
    while done < 20_000 {
        while submitted - done < 31 && submitted < 20_000 {
            driver.submit(1, driver.read(u64::from(submitted) * 16, 16, 0x8000));
            submitted += 1;
        }
        driver.ring(1);
        while driver.poll(1).is_some() {
            done += 1;
        }
        driver.transport.idle(u64::MAX, Waiting::Polling);
    }
    let ns = driver.transport.clock().now_ns() - start;
    let megabytes_per_s = f64::from(done) * 8192.0 / ns as f64 * 1000.0;
    assert!((0.95 * 3601.0..0.99 * 3601.0).contains(&megabytes_per_s), "{megabytes_per_s}");
}

#[test]
fn a_removed_drive_reads_all_ones_and_answers_no_more() {
    let mut driver = Driver::new("ideal,removed@2");
    driver.io_queue();
    driver.submit(1, driver.read(0, 8, 0x8000));
    driver.ring(1);
    driver.transport.idle(driver.transport.clock().now_ns() + 1_000_000, Waiting::Polling);
    assert!(driver.poll(1).is_none());
    assert_eq!(driver.transport.read32(offset::CSTS).unwrap(), u32::MAX);
    assert!(driver.transport.signals().lost);
}

#[test]
fn time_does_not_jump_over_a_thread_that_is_still_at_work() {
    let transport = EmulatedTransport::open("ideal").unwrap();
    let barrier = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            transport.read32(offset::VS).unwrap();
            barrier.wait();
            for step in 1..=100u64 {
                assert!(transport.clock().now_ns() <= step * 1000, "jumped over {step} us");
                transport.idle(step * 1000, Waiting::Polling);
            }
        });
        transport.read32(offset::VS).unwrap();
        barrier.wait();
        while transport.clock().now_ns() < 100_000 {
            transport.idle(1_000_000, Waiting::Polling);
        }
    });
}

#[test]
fn the_path_tells_both_ends_of_the_link() {
    let transport = EmulatedTransport::open("ideal,link=gen1x1").unwrap();
    let path = transport.path_config();
    assert_eq!(path.len(), 2);
    let mut own = [0; 4];
    assert_eq!(transport.read_config(0, &mut own).unwrap(), 4);
    assert_eq!(own[..], path[0].1[..4]);
}

/// Opens the drive, reads 20,000 times with 32 in flight on each of two queues, and shuts it down.
fn read_many(options: &str) {
    use crate::controller::{Admin as _, Controller, ControllerOptions};
    use crate::workload::{Job, Limits, run};
    let transport = EmulatedTransport::open(options).unwrap();
    let opened = ControllerOptions { io_queues: 2, ..ControllerOptions::default() };
    let controller = Controller::open(Arc::clone(&transport) as _, opened).unwrap();
    let namespace = controller.namespace(1).unwrap();
    let limits = Limits { runtime_ns: None, ios: Some(10_000), bytes: None };
    let job = Job { numjobs: 2, limits, ..Job::new() };
    let result = run(&controller, namespace, &job, &mut ()).unwrap();
    assert_eq!((result.ios(), result.errors.failed), (20_000, 0), "{options}");
    controller.shutdown().unwrap();
    assert_eq!(transport.memory().fault_count(), 0, "{options}");
    drop((controller, transport));
}

#[test]
fn the_whole_driver_runs_in_virtual_time() {
    read_many("ideal");
}

#[test]
fn the_whole_driver_runs_against_a_thread_that_answers_at_once() {
    read_many("null");
}

#[test]
fn the_whole_driver_runs_in_real_time() {
    read_many("ideal,clock=real");
}
