//! Metadata, and data in several pieces, on the emulated drive.
#![cfg(feature = "emulated")]
#![forbid(unsafe_code)]
#![allow(missing_docs)]

use core::fmt::Debug;
use std::sync::Arc;

use nvmetal_driver::dma::{Buffer, BufferPool, ScatterList, ScatterPiece};
use nvmetal_driver::io_queue::{AnyIoQueue, Io, Payload, QueueOptions, RejectedReason, ScatterPayload};
use nvmetal_driver::transport::emulated::EmulatedTransport;
use nvmetal_driver::workload::{self, Job, Limits};
use nvmetal_driver::{Admin, Controller, ControllerOptions};

const PAGE_BYTES: usize = 4096;

struct Drive<P: Payload> {
    transport: Arc<EmulatedTransport>,
    controller: Arc<Controller>,
    queue: AnyIoQueue<P>,
}

fn open<P: Payload>(options: &str) -> Drive<P> {
    let transport = EmulatedTransport::open(options).expect("good options");
    let options = ControllerOptions { io_queues: 2, ..ControllerOptions::default() };
    let controller = Controller::open(Arc::clone(&transport) as _, options).expect("the controller comes up");
    let namespace = controller.namespace(1).expect("the model has a namespace");
    let queue = controller.create_io_queue(namespace, QueueOptions::default()).expect("there is a queue");
    Drive { transport, controller, queue }
}

impl<P: Payload + Debug> Drive<P> {
    fn buffers(&self, count: usize, bytes_each: usize, metadata_bytes: usize) -> Vec<Buffer> {
        let pool = BufferPool { count, bytes_each, page_bytes: PAGE_BYTES, metadata_bytes };
        pool.allocate(self.controller.transport()).expect("there is memory")
    }

    /// Rings and waits for the one command.
    fn finish(&mut self) -> (u16, P) {
        self.queue.ring();
        loop {
            let mut back = None;
            self.queue.poll(1, |done| back = Some((done.status, done.buffer))).expect("the drive is honest");
            if let Some(back) = back {
                assert_eq!(self.transport.memory().fault_count(), 0, "the drive went where nothing is mapped");
                return back;
            }
            self.queue.idle(self.queue.clock().now_ns() + 1_000_000);
        }
    }

    fn moves(&mut self, io: Io, payload: P) -> P {
        self.queue.submit(io, payload, 0).expect("the command is in order");
        let (status, payload) = self.finish();
        assert_eq!(status, 0);
        payload
    }
}

impl<P: ScatterPayload + Debug> Drive<P> {
    fn moves_scattered(&mut self, io: Io, payload: P) -> P {
        self.queue.submit_scattered(io, payload, 0).expect("the command is in order");
        let (status, payload) = self.finish();
        assert_eq!(status, 0);
        payload
    }
}

fn pattern(bytes: usize, seed: u8) -> Vec<u8> {
    (0..bytes).map(|at| (at as u8).wrapping_mul(31).wrapping_add((at >> 8) as u8).wrapping_add(seed)).collect()
}

#[test]
fn metadata_in_a_place_of_its_own_goes_there_and_comes_back() {
    let mut drive = open::<Buffer>("ideal,metadata=16");
    let mut buffer = drive.buffers(1, 4096, 8 * 16).remove(0);
    let (data, metadata) = (pattern(4096, 1), pattern(8 * 16, 2));
    buffer.copy_in(0, &data).expect("data");
    buffer.metadata_in(0, &metadata).expect("metadata");
    let mut buffer = drive.moves(Io::write(40, 8), buffer);
    buffer.fill(0);
    buffer.metadata_in(0, &[0; 8 * 16]).expect("metadata");
    // Three blocks from the middle on.
    let buffer = drive.moves(Io::read(42, 3), buffer);
    let (mut data_back, mut metadata_back) = (vec![0; 3 * 512], vec![0; 4 * 16]);
    buffer.copy_out(0, &mut data_back).expect("data");
    buffer.metadata_out(0, &mut metadata_back).expect("metadata");
    assert_eq!(data_back, data[2 * 512..5 * 512]);
    assert_eq!(metadata_back, [&metadata[2 * 16..5 * 16], &[0; 16]].concat(), "no more than three blocks' worth");
}

#[test]
fn metadata_between_the_blocks_makes_the_data_longer() {
    let mut drive = open::<Buffer>("ideal,metadata=8,metadata-extended=yes");
    // Eight blocks with their metadata are more than a page.
    let mut buffer = drive.buffers(1, 8 * 520, 0).remove(0);
    let data = pattern(8 * 520, 3);
    buffer.copy_in(0, &data).expect("data");
    let mut buffer = drive.moves(Io::write(7, 8), buffer);
    buffer.fill(0);
    let buffer = drive.moves(Io::read(8, 7), buffer);
    let mut back = vec![0; 8 * 520];
    buffer.copy_out(0, &mut back).expect("data");
    assert_eq!(back[..7 * 520], data[520..]);
    assert!(back[7 * 520..].iter().all(|byte| *byte == 0));
}

#[test]
fn a_buffer_without_room_for_the_metadata_is_refused_and_the_drive_told_nothing() {
    for (options, bytes_each, metadata_bytes, reason) in [
        ("ideal,metadata=8", 4096, 0, RejectedReason::Metadata),
        ("ideal,metadata=8", 4096, 8 * 8 - 1, RejectedReason::Metadata),
        ("ideal,metadata=8,metadata-extended=yes", 4096, 64, RejectedReason::Buffer),
    ] {
        let mut drive = open::<Buffer>(options);
        let buffer = drive.buffers(1, bytes_each, metadata_bytes).remove(0);
        for lba in [0, drive.queue.namespace().blocks - 8] {
            let buffer = drive.buffers(1, bytes_each, metadata_bytes).remove(0);
            let rejected = drive.queue.submit(Io::read(lba, 8), buffer, 0).expect_err("there is no room");
            assert_eq!(rejected.reason, reason, "{options}");
        }
        // Seven blocks have room enough for theirs.
        if metadata_bytes > 0 {
            drive.moves(Io::read(0, 7), buffer);
        }
        assert_eq!(drive.queue.in_flight(), 0);
    }
}

#[test]
fn the_engine_runs_on_namespaces_with_metadata_of_either_kind() {
    for options in ["ideal,metadata=8", "ideal,metadata=64,metadata-extended=yes", "ideal,lba=4096,metadata=64"] {
        let drive = open::<Buffer>(options);
        let namespace = *drive.queue.namespace();
        let limits = Limits { ios: Some(500), ..Limits::default() };
        let job = Job { read_percent: 50, block_bytes: 16_384, limits, ..Job::new() };
        let result = workload::run(&drive.controller, namespace, &job, &mut ()).expect("the run ends well");
        assert_eq!((result.ios(), result.errors.failed), (500, 0), "{options}");
        assert_eq!(drive.transport.memory().fault_count(), 0, "{options}: the drive went where nothing is mapped");
    }
}

/// Pieces of these lengths, the first of them beginning at `offset` of its buffer.
fn pieces<P: Payload + Debug>(drive: &Drive<P>, offset: usize, lengths: &[usize]) -> Vec<ScatterPiece> {
    let mut buffers = drive.buffers(lengths.len(), 4 * PAGE_BYTES, 0);
    buffers[0].set_offset(offset).expect("a multiple of 4");
    buffers.into_iter().zip(lengths).map(|(buffer, &bytes)| ScatterPiece { buffer, bytes }).collect()
}

/// Fills the pieces, writes them, reads them into others, and gives both as one row of bytes.
fn there_and_back(drive: &mut Drive<ScatterList>, from: ScatterList, to: ScatterList) -> (Vec<u8>, Vec<u8>) {
    let mut from = from;
    let data = pattern(from.len(), 5);
    let lengths: Vec<usize> = from.pieces().iter().map(|piece| piece.bytes).collect();
    let mut at = 0;
    for (mut buffer, bytes) in from.buffers_mut().zip(lengths) {
        buffer.copy_in(0, &data[at..at + bytes]).expect("the piece is that long");
        at += bytes;
    }
    let blocks = (from.len() / 512) as u32;
    drive.moves_scattered(Io::write(1000, blocks), from);
    let to = drive.moves_scattered(Io::read(1000, blocks), to);
    let mut back = Vec::new();
    for piece in to.pieces() {
        let mut part = vec![0; piece.bytes];
        piece.buffer.copy_out(0, &mut part).expect("the piece is that long");
        back.extend(part);
    }
    (data, back)
}

#[test]
fn pieces_that_meet_at_pages_go_as_one_prp_list() {
    let mut drive = open::<ScatterList>("ideal");
    let list = |drive: &Drive<_>| drive.buffers(1, PAGE_BYTES, 0).remove(0);
    for (offset, lengths) in [
        (0, &[4096, 4096][..]),
        (0, &[8192, 4096, 12_288]),
        (2048, &[2048, 16_384, 4096, 512]),
        (0, &[4096; 16]),
        (0, &[512]),
    ] {
        let from = ScatterList::prp(pieces(&drive, offset, lengths), list(&drive)).expect("they meet at pages");
        let to = ScatterList::prp(pieces(&drive, offset, lengths), list(&drive)).expect("they meet at pages");
        let (data, back) = there_and_back(&mut drive, from, to);
        assert_eq!(data, back, "{offset}, {lengths:?}");
    }
}

#[test]
fn pieces_that_meet_anywhere_need_a_scatter_gather_list() {
    let mut drive = open::<ScatterList>("ideal");
    let lengths = [100, 412, 4096, 3, 509, 5120];
    let list = |drive: &Drive<_>| drive.buffers(1, PAGE_BYTES, 0).remove(0);
    let refused = ScatterList::prp(pieces(&drive, 0, &lengths), list(&drive)).expect_err("they do not meet at pages");
    assert_eq!((refused.pieces.len(), refused.list.len()), (lengths.len(), PAGE_BYTES), "all memory comes back");
    let from = ScatterList::sgl(refused.pieces, refused.list).expect("any length does");
    // Into other pieces than it came from.
    let to = ScatterList::sgl(pieces(&drive, 8, &[10_000, 240]), list(&drive)).expect("any length does");
    let (data, back) = there_and_back(&mut drive, from, to);
    assert_eq!(data, back);
}

#[test]
fn a_list_of_more_segments_than_one_is_followed() {
    let mut drive = open::<ScatterList>("ideal");
    let lengths = [64; 600];
    let list = |drive: &Drive<_>| drive.buffers(1, 3 * PAGE_BYTES, 0).remove(0);
    let from = ScatterList::sgl(pieces(&drive, 0, &lengths), list(&drive)).expect("three pages hold 600 descriptors");
    let to = ScatterList::sgl(pieces(&drive, 0, &lengths), list(&drive)).expect("three pages hold 600 descriptors");
    let (data, back) = there_and_back(&mut drive, from, to);
    assert_eq!(data, back);
    let short = drive.buffers(1, PAGE_BYTES, 0).remove(0);
    assert!(ScatterList::sgl(pieces(&drive, 0, &lengths), short).is_err(), "one page holds 256");
}

#[test]
fn a_length_that_the_pieces_do_not_have_is_refused() {
    let mut drive = open::<ScatterList>("ideal");
    let list = |drive: &Drive<_>| drive.buffers(1, PAGE_BYTES, 0).remove(0);
    let prp = ScatterList::prp(pieces(&drive, 0, &[8192, 8192]), list(&drive)).expect("they meet at pages");
    let rejected = drive.queue.submit_scattered(Io::read(0, 33), prp, 0).expect_err("longer than the pieces");
    assert_eq!(rejected.reason, RejectedReason::Buffer);
    // A shorter transfer uses the beginning of a PRP list.
    drive.moves_scattered(Io::read(0, 20), rejected.payload);
    let sgl = ScatterList::sgl(pieces(&drive, 0, &[100, 924]), list(&drive)).expect("any length does");
    for (io, reason) in [
        (Io::read(0, 1), RejectedReason::Buffer),
        (Io::read(0, 3), RejectedReason::Buffer),
        (Io::read(0, 0), RejectedReason::Length),
        (Io::read(u64::MAX, 2), RejectedReason::Range),
    ] {
        let again = ScatterList::sgl(pieces(&drive, 0, &[100, 924]), list(&drive)).expect("any length does");
        let rejected = drive.queue.submit_scattered(io, again, 0).expect_err("not these");
        assert_eq!(rejected.reason, reason, "{io:?}");
    }
    drive.moves_scattered(Io::read(0, 2), sgl);
    assert_eq!(drive.queue.in_flight(), 0);
}
