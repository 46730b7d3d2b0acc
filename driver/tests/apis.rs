//! The blocking and the future-based way to a namespace, against the emulated drive.
#![cfg(feature = "emulated")]
#![forbid(unsafe_code)]
#![allow(missing_docs)]

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Wake;

use nvmetal_driver::blocking::{BlockingOptions, BlockingQueue};
use nvmetal_driver::dma::{Buffer, BufferPool};
use nvmetal_driver::future::{AsyncQueue, TransferError};
use nvmetal_driver::io_queue::{Io, QueueOptions, RejectedReason, Wait};
use nvmetal_driver::transport::emulated::EmulatedTransport;
use nvmetal_driver::{Admin, Controller, ControllerOptions, DriverError};

const SECOND_NS: u64 = 1_000_000_000;

fn open(options: &str) -> (Arc<EmulatedTransport>, Arc<Controller>) {
    let transport = EmulatedTransport::open(options).expect("good options");
    let controller_options = ControllerOptions { io_queues: 2, interrupts: true, ..ControllerOptions::default() };
    let controller = Controller::open(Arc::clone(&transport) as _, controller_options).expect("it opens");
    (transport, controller)
}

fn blocking(controller: &Arc<Controller>, options: BlockingOptions) -> BlockingQueue {
    BlockingQueue::new(controller, controller.namespace(1).expect("a namespace"), options).expect("a queue")
}

fn asynchronous(controller: &Arc<Controller>, depth: u32) -> AsyncQueue {
    let options = QueueOptions { depth, ..QueueOptions::default() };
    AsyncQueue::new(controller, controller.namespace(1).expect("a namespace"), options).expect("a queue")
}

fn buffers(controller: &Arc<Controller>, count: usize) -> Vec<Buffer> {
    BufferPool { count, bytes_each: 4096, page_bytes: 4096, metadata_bytes: 0 }
        .allocate(controller.transport())
        .expect("buffers")
}

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at / 512 * 7 + at) as u8).collect()
}

#[test]
fn what_is_written_by_blocking_calls_is_read_back_at_every_length_and_depth() {
    let (transport, controller) = open("ideal,written=no,lba=512,mdts=2");
    for wait in [Wait::Poll, Wait::Interrupt, Wait::Hybrid] {
        for (depth, piece_bytes) in [(1, 512), (3, 4096), (8, 1 << 20)] {
            let mut queue = blocking(&controller, BlockingOptions { depth, piece_bytes, wait, ..Default::default() });
            for (offset_bytes, bytes) in [(0, 512), (512, 1024), (3584, 20_480), (1 << 20, 100_352)] {
                let data = pattern(bytes);
                queue.write_at(offset_bytes, &data).expect("it writes");
                let mut back = vec![0; bytes];
                queue.read_at(offset_bytes, &mut back).expect("it reads");
                assert!(back == data, "depth {depth}, pieces of {piece_bytes}, {bytes} bytes at {offset_bytes}");
            }
            queue.read_at(0, &mut []).expect("nothing is easily read");
        }
    }
    assert_eq!(transport.memory().fault_count(), 0);
}

#[test]
fn blocking_calls_refuse_what_is_no_row_of_whole_blocks() {
    let (_, controller) = open("ideal,lba=4096,blocks=100");
    let mut queue = blocking(&controller, BlockingOptions::default());
    let mut refused = |offset_bytes, bytes| {
        let error = queue.read_at(offset_bytes, &mut vec![0; bytes]).expect_err("it is refused");
        assert!(matches!(error, DriverError::Request(_)), "{error}");
        error.to_string()
    };
    assert!(refused(512, 4096).contains("not whole logical blocks of 4096"));
    assert!(refused(0, 1000).contains("not whole logical blocks"));
    assert!(refused(99 * 4096, 8192).contains("beyond the namespace's 409600 bytes"));
    assert!(refused(!4095, 4096).contains("beyond"));
    queue.read_at(99 * 4096, &mut [0; 4096]).expect("the last block");
}

#[test]
fn a_failed_piece_is_the_calls_error_and_the_next_call_goes_on() {
    let (_, controller) = open("ideal,fault=read-error@3x1");
    let mut queue = blocking(&controller, BlockingOptions { piece_bytes: 4096, ..BlockingOptions::default() });
    let error = queue.read_at(0, &mut vec![0; 40_960]).expect_err("one piece fails");
    assert_eq!(error.status().map(|status| (status.sct(), status.sc())), Some((2, 0x81)), "{error}");
    assert!(error.to_string().contains("Read at LBA"), "{error}");
    queue.read_at(1 << 30, &mut vec![0; 40_960]).expect("another place is good");
}

#[test]
fn a_call_on_a_drive_that_vanished_ends_with_that() {
    let (transport, controller) = open("ideal");
    let mut queue = blocking(&controller, BlockingOptions::default());
    queue.read_at(0, &mut [0; 4096]).expect("it reads");
    transport.with(nvmetal_emulator::Emulator::remove);
    let error = queue.read_at(0, &mut [0; 4096]).expect_err("nobody answers");
    assert!(error.is_lost(), "{error}");
}

/// An executor in a few lines: tasks that were woken are polled in turn.
#[derive(Default)]
struct Executor {
    ready: Arc<Mutex<VecDeque<usize>>>,
    tasks: Vec<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>,
}

struct TaskWaker(usize, Arc<Mutex<VecDeque<usize>>>);

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.1.lock().unwrap().push_back(self.0);
    }
}

impl Executor {
    fn spawn(&mut self, future: impl Future<Output = ()> + Send + 'static) -> usize {
        self.tasks.push(Some(Box::pin(future)));
        self.ready.lock().unwrap().push_back(self.tasks.len() - 1);
        self.tasks.len() - 1
    }

    /// Polls what was woken until nothing is.
    fn settle(&mut self) {
        loop {
            let Some(index) = self.ready.lock().unwrap().pop_front() else { return };
            let waker = Waker::from(Arc::new(TaskWaker(index, Arc::clone(&self.ready))));
            if let Some(task) = &mut self.tasks[index]
                && task.as_mut().poll(&mut Context::from_waker(&waker)).is_ready()
            {
                self.tasks[index] = None;
            }
        }
    }

    fn run(&mut self, queue: &AsyncQueue) {
        loop {
            self.settle();
            if self.tasks.iter().all(Option::is_none) {
                return;
            }
            if let Ok(0) = queue.turn() {
                queue.idle(queue.clock().now_ns() + SECOND_NS);
            }
        }
    }
}

#[test]
fn many_tasks_share_a_queue_that_holds_fewer_commands() {
    let (transport, controller) = open("ideal,written=no,lba=512");
    let queue = asynchronous(&controller, 4);
    let mut executor = Executor::default();
    let right = Arc::new(AtomicUsize::new(0));
    for (number, mut buffer) in buffers(&controller, 50).into_iter().enumerate() {
        let (queue, right) = (queue.clone(), Arc::clone(&right));
        executor.spawn(async move {
            buffer.copy_in(0, &[number as u8; 4096]).unwrap();
            let lba = number as u64 * 8;
            let mut buffer = queue.transfer(Io::write(lba, 8), buffer).await.unwrap();
            buffer.fill(0xff);
            let buffer = queue.transfer(Io::read(lba, 8), buffer).await.unwrap();
            let mut back = [0; 4096];
            buffer.copy_out(0, &mut back).unwrap();
            right.fetch_add(usize::from(back == [number as u8; 4096]), Ordering::Relaxed);
        });
    }
    executor.run(&queue);
    assert_eq!(right.load(Ordering::Relaxed), 50);
    assert_eq!((queue.in_flight(), queue.take_abandoned().len()), (0, 0));
    assert_eq!(transport.memory().fault_count(), 0);
}

fn polled_once(transfer: &mut (impl Future<Output = Result<Buffer, TransferError>> + Unpin)) {
    let mut context = Context::from_waker(Waker::noop());
    assert!(matches!(Pin::new(transfer).poll(&mut context), Poll::Pending));
}

#[test]
fn a_future_dropped_in_flight_leaves_its_buffer_with_the_queue_until_the_completion() {
    let (transport, controller) = open("ideal");
    let queue = asynchronous(&controller, 4);
    let mut transfer = queue.transfer(Io::read(0, 8), buffers(&controller, 1).remove(0));
    polled_once(&mut transfer);
    let mapped = transport.memory().mapped();
    drop(transfer);
    assert_eq!(queue.in_flight(), 1, "the command goes on");
    assert_eq!(transport.memory().mapped(), mapped, "its memory stays mapped");
    assert_eq!(queue.take_abandoned().len(), 0, "and is nobody's yet");
    while queue.turn().expect("the queue is good") == 0 {
        queue.idle(queue.clock().now_ns() + SECOND_NS);
    }
    let back = queue.take_abandoned();
    assert_eq!((back.len(), queue.in_flight()), (1, 0));
    drop(back);
    assert!(transport.memory().mapped().1 < mapped.1, "with the buffer goes its memory");
    assert_eq!(transport.memory().fault_count(), 0, "the controller never wrote to memory that was gone");
}

#[test]
fn a_queue_dropped_with_all_its_futures_in_flight_ends_in_order() {
    let (transport, controller) = open("ideal");
    let queue = asynchronous(&controller, 8);
    let mut transfers: Vec<_> =
        buffers(&controller, 8).into_iter().map(|b| queue.transfer(Io::read(0, 8), b)).collect();
    transfers.iter_mut().for_each(polled_once);
    drop(queue);
    drop(transfers);
    let again = asynchronous(&controller, 8);
    let buffer = again.block_on(again.transfer(Io::read(8, 8), buffers(&controller, 1).remove(0)));
    assert_eq!(buffer.expect("a new queue works").len(), 4096);
    assert_eq!(transport.memory().fault_count(), 0);
}

#[test]
fn a_future_that_was_never_polled_was_never_sent() {
    let (transport, controller) = open("ideal");
    let queue = asynchronous(&controller, 8);
    drop(queue.transfer(Io::write(0, 8), buffers(&controller, 1).remove(0)));
    assert_eq!(queue.in_flight(), 0);
    drop(queue);
    let sent = controller.tally().sent();
    assert!(sent.iter().all(|command| command.admin), "{sent:?}");
    drop(transport);
}

#[test]
fn a_task_that_waited_for_room_and_was_dropped_does_not_take_the_room_with_it() {
    let (_, controller) = open("ideal");
    let queue = asynchronous(&controller, 1);
    let mut executor = Executor::default();
    let done = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<usize> = buffers(&controller, 3)
        .into_iter()
        .map(|buffer| {
            let (queue, done) = (queue.clone(), Arc::clone(&done));
            executor.spawn(async move {
                queue.transfer(Io::read(0, 8), buffer).await.unwrap();
                done.fetch_add(1, Ordering::Relaxed);
            })
        })
        .collect();
    executor.settle();
    while queue.turn().expect("the queue is good") == 0 {
        queue.idle(queue.clock().now_ns() + SECOND_NS);
    }
    // The second task has been woken; it goes before it looks.
    executor.tasks[tasks[1]] = None;
    executor.run(&queue);
    assert_eq!(done.load(Ordering::Relaxed), 2);
}

#[test]
fn a_failed_transfer_gives_its_buffer_back_with_the_status() {
    let (_, controller) = open("ideal,fault=read-error@1x1,blocks=100");
    let queue = asynchronous(&controller, 8);
    let error = queue.block_on(queue.transfer(Io::read(0, 8), buffers(&controller, 1).remove(0))).unwrap_err();
    assert!(matches!(&error, TransferError::Status { status, .. } if status.sct() == 2), "{error}");
    let buffer = error.into_buffer().expect("it is back");
    let error = queue.block_on(queue.transfer(Io::read(99, 8), buffer)).unwrap_err();
    assert!(matches!(&error, TransferError::Rejected { reason: RejectedReason::Range, .. }), "{error}");
    assert!(error.into_buffer().is_some());
}

#[test]
fn when_the_drive_vanishes_every_future_ends_with_that() {
    let (transport, controller) = open("ideal");
    let queue = asynchronous(&controller, 2);
    let mut executor = Executor::default();
    let lost = Arc::new(AtomicUsize::new(0));
    for buffer in buffers(&controller, 5) {
        let (queue, lost) = (queue.clone(), Arc::clone(&lost));
        executor.spawn(async move {
            let error = queue.transfer(Io::read(0, 8), buffer).await.unwrap_err();
            assert!(matches!(&error, TransferError::Queue(error) if error.is_lost()), "{error}");
            lost.fetch_add(1, Ordering::Relaxed);
        });
    }
    executor.settle();
    transport.with(nvmetal_emulator::Emulator::remove);
    executor.run(&queue);
    assert_eq!(lost.load(Ordering::Relaxed), 5);
    let error = queue.block_on(queue.transfer(Io::read(0, 8), buffers(&controller, 1).remove(0))).unwrap_err();
    assert!(matches!(error, TransferError::Queue(_)));
}
