//! The hot path in time: `cargo bench -p nvmetal-driver --bench time`. For a machine with nothing else to do.
//!
//! The same cases as `instructions`, on the same scripted device, which is part of what is timed: `device` tells how much
//! of it. One iteration is a batch of as many I/Os as the queue is deep; the items per second are I/Os.
#![forbid(unsafe_code)]

mod scripted;

use divan::Bencher;
use divan::counter::ItemsCount;

use scripted::{Bench, drive, ring};

const DEPTHS: [u32; 4] = [1, 8, 32, 128];

fn main() {
    divan::main();
}

fn driver(bencher: Bencher<'_, '_>, depth: u32, bytes: usize, offset: usize) {
    let bench = Bench::new(depth).expect("the scripted device opens");
    let mut buffers = bench.buffers(bytes, offset).expect("there is memory");
    let mut queue = bench.queue().expect("there is a queue");
    let blocks = (bytes / queue.namespace().lba_bytes() as usize) as u32;
    bencher
        .counter(ItemsCount::new(depth))
        .bench_local(|| drive(&mut queue, &mut buffers, depth.into(), blocks).expect("the device is honest"));
}

/// The scripted device alone.
#[divan::bench(args = DEPTHS)]
fn device(bencher: Bencher<'_, '_>, depth: u32) {
    let bench = Bench::new(depth).expect("the scripted device opens");
    let queue = bench.queue().expect("there is a queue");
    let target = bench.doorbells();
    let mut tail = 0;
    bencher.counter(ItemsCount::new(depth)).bench_local(|| {
        tail = (tail + depth) % (depth + 1);
        ring(&*target, tail);
    });
    drop(queue);
}

#[divan::bench(args = DEPTHS)]
fn driver_4k(bencher: Bencher<'_, '_>, depth: u32) {
    driver(bencher, depth, 4096, 0);
}

#[divan::bench(args = DEPTHS)]
fn driver_128k(bencher: Bencher<'_, '_>, depth: u32) {
    driver(bencher, depth, 128 << 10, 0);
}

#[divan::bench(args = DEPTHS)]
fn driver_128k_unaligned(bencher: Bencher<'_, '_>, depth: u32) {
    driver(bencher, depth, 128 << 10, 512);
}

/// The whole engine; one iteration is a run of 10,000 I/Os, its start included.
#[divan::bench(args = [1, 32, 128])]
fn engine(bencher: Bencher<'_, '_>, depth: u32) {
    let bench = Bench::new(depth).expect("the scripted device opens");
    bencher.counter(ItemsCount::new(10_000_u32)).bench_local(|| bench.engine(10_000).expect("the device is honest"));
}

/// A PRP list of 128 KiB written anew.
#[divan::bench]
fn list_128k(bencher: Bencher<'_, '_>) {
    let bench = Bench::new(1).expect("the scripted device opens");
    let mut buffer = bench.buffers((128 << 10) + 512, 0).expect("there is memory").remove(0);
    bencher.bench_local(|| buffer.set_offset(512).expect("an offset inside the buffer"));
}
