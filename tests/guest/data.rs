//! What one driver wrote is what the other reads, byte for byte: on blocks of 512 and of 4096 bytes, in commands as large
//! as the drive takes, through every interface.
//!
//! The program has no command that shows or writes blocks, so these use its driver as a library.
#![forbid(unsafe_code)]

use std::sync::Arc;

use nvmetal_core::queue::Doorbell;
use nvmetal_core::status::Status;
use nvmetal_driver::dma::{Buffer, BufferPool};
use nvmetal_driver::io_queue::{AnyIoQueue, Io, IoQueue, QueueOptions};
use nvmetal_driver::pci::Sysfs;
use nvmetal_driver::pci::binding::{BindOptions, Handover};
use nvmetal_driver::transport::Transport;
use nvmetal_driver::transport::vfio::VfioTransport;
use nvmetal_driver::vfio::{IommuChoice, VfioOptions};
use nvmetal_driver::{Admin, Controller, ControllerOptions, Namespace};

use crate::machine::{Drive, drives, interfaces};

/// Where the data lies, and how much of it: commands do not divide it evenly.
const OFFSET: u64 = 1 << 20;
const BYTES: usize = (3 << 20) + (12 << 10);
/// The largest command that is sent, where the drive takes it.
const COMMAND_BYTES: u64 = 128 << 10;

/// A drive in our own driver's hands.
struct Ours {
    queue: AnyIoQueue,
    buffer: Option<Buffer>,
    command_bytes: usize,
    namespace: Namespace,
    controller: Arc<Controller>,
    handover: Handover,
}

impl Ours {
    fn take(drive: &Drive, interface: &str) -> Self {
        let iommu = if interface == "iommufd" { IommuChoice::Iommufd } else { IommuChoice::Type1 };
        let address = drive.address.parse().expect("an address");
        let handover = Handover::take(&Sysfs::host(), address, BindOptions::default()).expect("the drive can be had");
        let vfio = VfioOptions { iommu, ..VfioOptions::default() };
        let transport: Arc<dyn Transport> = Arc::new(VfioTransport::open(address, &vfio).expect("it opens"));
        let controller = Controller::open(transport, ControllerOptions::default()).expect("it comes up");
        let namespace = controller.namespace(1).expect("it has a namespace");
        let command_bytes = controller.max_transfer_bytes().unwrap_or(COMMAND_BYTES).min(COMMAND_BYTES) as usize;
        let pool = BufferPool {
            count: 1,
            bytes_each: command_bytes,
            page_bytes: controller.page().bytes() as usize,
            metadata_bytes: 0,
        };
        let buffer = pool.allocate(controller.transport()).expect("there is memory").pop();
        let options = QueueOptions { depth: 1, ..QueueOptions::default() };
        let queue = controller.create_io_queue(namespace, options).expect("there is a queue");
        Self { queue, buffer, command_bytes, namespace, controller, handover }
    }

    /// The data at OFFSET.
    fn read(&mut self) -> Vec<u8> {
        let mut data = vec![0; BYTES];
        let mut offset = OFFSET;
        for piece in data.chunks_mut(self.command_bytes) {
            let buffer = self.send(Io::read, offset, piece.len());
            buffer.copy_out(0, piece).expect("it fits");
            self.buffer = Some(buffer);
            offset += piece.len() as u64;
        }
        data
    }

    /// Puts data at OFFSET.
    fn write(&mut self, data: &[u8]) {
        let mut offset = OFFSET;
        for piece in data.chunks(self.command_bytes) {
            self.buffer.as_mut().expect("it came back").copy_in(0, piece).expect("it fits");
            self.buffer = Some(self.send(Io::write, offset, piece.len()));
            offset += piece.len() as u64;
        }
    }

    fn send(&mut self, io: fn(u64, u32) -> Io, offset: u64, bytes: usize) -> Buffer {
        let io = io(offset >> self.namespace.lba_shift, (bytes >> self.namespace.lba_shift) as u32);
        let buffer = self.buffer.take().expect("it came back");
        match &mut self.queue {
            AnyIoQueue::Mapped(queue) => one(queue, io, buffer),
            AnyIoQueue::Called(queue) => one(queue, io, buffer),
            AnyIoQueue::Shadowed(queue) => one(queue, io, buffer),
        }
    }

    /// Gives the drive back.
    fn end(self) {
        let Self { queue, buffer, controller, handover, .. } = self;
        drop((queue, buffer));
        controller.shutdown().expect("it shuts down");
        drop(controller);
        handover.give_back().expect("the kernel takes it back");
    }
}

/// Sends one command and waits for its good end.
fn one<D: Doorbell>(queue: &mut IoQueue<D>, io: Io, buffer: Buffer) -> Buffer {
    let now_ns = queue.clock().now_ns();
    queue.submit(io, buffer, now_ns).map_err(|rejected| rejected.reason).expect("the queue takes it");
    queue.ring();
    loop {
        let mut done = None;
        queue
            .poll(1, |completed| done = Some((completed.status, completed.buffer)))
            .expect("the drive keeps the rules");
        if let Some((status, buffer)) = done {
            assert!(Status::from_bits(status).is_success(), "{}", Status::from_bits(status));
            return buffer;
        }
        let now_ns = queue.clock().now_ns();
        assert!(queue.overdue(now_ns).is_none(), "the drive does not answer");
        queue.idle(now_ns + 1_000_000);
    }
}

/// Bytes that differ from page to page and from run to run.
fn pattern(salt: u64) -> Vec<u8> {
    (0..BYTES as u64 / 8).flat_map(|word| (word ^ salt).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()).collect()
}

/// Where two pieces of data differ first.
#[track_caller]
fn is_equal(found: &[u8], expected: &[u8], who: &str) {
    let differs = found.iter().zip(expected).position(|(found, expected)| found != expected);
    assert_eq!((differs, found.len()), (None, expected.len()), "{who}: the first byte that differs");
}

#[test]
#[ignore = "overwrites the guest's drives"]
fn what_the_kernel_wrote_we_read() {
    for (number, drive) in (1..).zip(drives()) {
        for (salt, interface) in (number * 100..).zip(interfaces()) {
            let data = pattern(salt);
            drive.write(OFFSET, &data);
            let mut ours = Ours::take(&drive, &interface);
            let found = ours.read();
            ours.end();
            drive.is_the_kernels();
            is_equal(&found, &data, &format!("{} through {interface}", drive.address));
        }
    }
}

#[test]
#[ignore = "overwrites the guest's drives"]
fn what_we_wrote_the_kernel_reads_and_nothing_beside_it_changed() {
    for (number, drive) in (1..).zip(drives()) {
        for (salt, interface) in (number * 1000..).zip(interfaces()) {
            let beside = vec![0x5a; 4096];
            drive.write(OFFSET - 4096, &beside);
            drive.write(OFFSET + BYTES as u64, &beside);
            let data = pattern(salt);
            let mut ours = Ours::take(&drive, &interface);
            ours.write(&data);
            ours.end();
            drive.is_the_kernels();
            let who = format!("{} through {interface}", drive.address);
            is_equal(&drive.read(OFFSET, BYTES), &data, &who);
            is_equal(&drive.read(OFFSET - 4096, 4096), &beside, &who);
            is_equal(&drive.read(OFFSET + BYTES as u64, 4096), &beside, &who);
        }
    }
}
