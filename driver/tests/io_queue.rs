//! A queue pair on the emulated drive: what it refuses, and that every buffer is somebody's.
#![cfg(feature = "emulated")]
#![forbid(unsafe_code)]
#![allow(missing_docs)]

use std::sync::Arc;

use nvmetal_driver::controller::{Admin, Controller, ControllerOptions};
use nvmetal_driver::dma::{Buffer, BufferPool};
use nvmetal_driver::io_queue::{AnyIoQueue, Io, IoQueue, QueueOptions, RejectedReason};
use nvmetal_driver::transport::CalledDoorbell;
use nvmetal_driver::transport::emulated::EmulatedTransport;

struct Fixture {
    queue: IoQueue<CalledDoorbell>,
    buffers: Vec<Buffer>,
    /// Blocks of 4 KiB.
    blocks: u32,
}

/// A queue of `depth`, and `count` buffers of 4 KiB.
fn fixture(depth: u32, count: usize) -> Fixture {
    let transport = EmulatedTransport::open("ideal").expect("the model is known");
    let controller: Arc<Controller> =
        Controller::open(transport, ControllerOptions::default()).expect("the controller comes up");
    let pool = BufferPool { count, bytes_each: 4096, page_bytes: 4096, metadata_bytes: 0 };
    let buffers = pool.allocate(controller.transport()).expect("there is memory");
    let namespace = controller.namespace(1).expect("the model has a namespace");
    let options = QueueOptions { depth, ..QueueOptions::default() };
    let AnyIoQueue::Called(queue) = controller.create_io_queue(namespace, options).expect("there is a queue") else {
        panic!("the stepped emulator's doorbells are calls");
    };
    Fixture { queue, buffers, blocks: 4096 >> namespace.lba_shift }
}

impl Fixture {
    /// Polls until `count` commands have come back.
    fn wait_for(&mut self, count: u32) -> Vec<Buffer> {
        let mut back = Vec::new();
        let mut seen = 0;
        while seen < count {
            let found = self.queue.poll(u32::MAX, |done| {
                assert_eq!(done.status, 0);
                back.push(done.buffer);
            });
            seen += found.expect("the drive is honest");
            if seen < count {
                self.queue.idle(self.queue.clock().now_ns() + 1_000_000);
            }
        }
        back
    }
}

#[test]
fn one_more_than_the_queue_holds_is_refused_with_its_buffer_and_taken_after_a_poll() {
    for depth in [1, 2, 7, 32] {
        let mut fixture = fixture(depth, depth as usize + 1);
        let io = Io::read(0, fixture.blocks);
        for round in 0..3 {
            let mut over = fixture.buffers.pop().expect("one more than the queue holds");
            for buffer in fixture.buffers.drain(..) {
                fixture.queue.submit(io, buffer, 0).expect("the queue holds as many as it is deep");
            }
            let iova = over.iova();
            let rejected = fixture.queue.submit(io, over, 0).expect_err("it is full");
            assert_eq!((rejected.reason, rejected.payload.iova()), (RejectedReason::Full, iova), "round {round}");
            over = rejected.payload;
            assert_eq!(fixture.queue.in_flight(), depth);
            fixture.queue.ring();
            let mut back = fixture.wait_for(1);
            fixture.queue.submit(io, over, 0).expect("a place is free again");
            fixture.queue.ring();
            back.extend(fixture.wait_for(fixture.queue.in_flight()));
            assert_eq!(back.len(), depth as usize + 1);
            fixture.buffers = back;
        }
    }
}

#[test]
fn a_command_that_must_not_be_sent_is_refused_with_its_buffer_and_nothing_reaches_the_drive() {
    let mut fixture = fixture(4, 1);
    let (blocks, end) = (fixture.blocks, fixture.queue.namespace().blocks);
    let mut buffer = fixture.buffers.remove(0);
    for (io, reason) in [
        (Io::read(0, 0), RejectedReason::Length),
        (Io::read(0, 65_537), RejectedReason::Length),
        (Io::read(end, 1), RejectedReason::Range),
        (Io::read(end - u64::from(blocks) + 1, blocks), RejectedReason::Range),
        (Io::read(end - 65_536 + 1, 65_536), RejectedReason::Range),
        (Io::read(end - 65_536, 65_536), RejectedReason::Buffer),
        (Io::read(u64::MAX, blocks), RejectedReason::Range),
        (Io::read(0, blocks + 1), RejectedReason::Buffer),
    ] {
        let rejected = fixture.queue.submit(io, buffer, 0).expect_err("it must not be sent");
        assert_eq!(rejected.reason, reason, "{io:?}");
        buffer = rejected.payload;
    }
    assert_eq!(fixture.queue.in_flight(), 0);
    fixture.queue.submit(Io::read(end - u64::from(blocks), blocks), buffer, 0).expect("the last blocks are there");
    fixture.queue.ring();
    assert_eq!(fixture.wait_for(1).len(), 1);
}

#[test]
fn deleting_a_queue_gives_back_what_was_in_flight() {
    let mut fixture = fixture(4, 4);
    let io = Io::read(0, fixture.blocks);
    for buffer in fixture.buffers.drain(..) {
        fixture.queue.submit(io, buffer, 0).expect("the queue holds as many as it is deep");
    }
    fixture.queue.ring();
    assert_eq!(fixture.queue.delete().expect("the drive deletes it").len(), 4);
}
