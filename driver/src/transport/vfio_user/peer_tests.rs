//! Another implementation of the protocol as the other end, in both directions: the crate `vfio_user`.
//!
//! It ignores refusals and waits without end for what does not come, so each test runs on a thread of its own and has to
//! be through before its time is up.
#![forbid(unsafe_code)]

use core::time::Duration;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use nvmetal_emulator::serve::{Server, Trust};
use nvmetal_emulator::{Emulator, GuestMemory, Irq, Options};
use vfio_bindings::bindings::vfio as bindings;
use vfio_user::{Client, DmaMapFlags, DmaUnmapFlags, IrqInfo, ServerBackend, ServerRegion, SparseArea};

use super::*;
use crate::blocking::{BlockingOptions, BlockingQueue};
use crate::{Admin, Controller, ControllerOptions, Wait};

/// A peer that takes longer hangs.
const IN_TIME: Duration = Duration::from_secs(60);

/// Runs `test` with the path of a socket, and fails if it is not through in time.
fn within_its_time(test: impl FnOnce(&Path) + Send + 'static) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("drive");
    let (tell, told) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        test(&path);
        // Whoever waited has given up.
        let _ = tell.send(());
    });
    // A test that fails drops its end.
    assert_ne!(told.recv_timeout(IN_TIME), Err(mpsc::RecvTimeoutError::Timeout), "the peer hangs");
    thread.join().expect("the test passes");
}

fn memory(bytes: u64) -> File {
    let file =
        rustix::fs::memfd_create("peer", rustix::fs::MemfdFlags::CLOEXEC | rustix::fs::MemfdFlags::ALLOW_SEALING);
    let file = File::from(file.expect("a memfd"));
    file.set_len(bytes).expect("its length");
    file
}

/// The 32 bits at `at`.
fn word(file: &File, at: u64) -> u32 {
    let mut raw = [0; 4];
    file.read_exact_at(&mut raw, at).expect("it is there");
    u32::from_le_bytes(raw)
}

// ------------------------------------------------------------------------------------------ its client, our server

/// Ends the server also when an assertion fails.
struct Stops(Arc<AtomicBool>);

impl Drop for Stops {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn register(client: &mut Client, at: u64) -> u32 {
    let mut raw = [0; 4];
    client.region_read(REGION_BAR0, at, &mut raw).expect("a register");
    u32::from_le_bytes(raw)
}

/// Waits for these bits of CSTS.
fn status(client: &mut Client, mask: u32, wanted: u32) {
    while register(client, 0x1c) & mask != wanted {
        std::thread::yield_now();
    }
}

/// Puts Identify Controller into an entry of the admin queue at the beginning of the memory.
fn identify(file: &File, slot: u64, id: u16, data: u64) {
    let mut entry = [0; 64];
    entry[0] = 6;
    entry[2..4].copy_from_slice(&id.to_le_bytes());
    entry[24..32].copy_from_slice(&data.to_le_bytes());
    entry[40] = 1;
    file.write_all_at(&entry, 64 * slot).expect("it fits");
}

/// Waits for the completion in this place of the queue at 4 KiB.
fn completed(file: &File, place: u64) -> u32 {
    let at = 0x1000 + 16 * place + 12;
    while word(file, at) & 0x1_0000 == 0 {
        std::thread::yield_now();
    }
    word(file, at)
}

#[test]
fn another_client_brings_our_servers_controller_up_and_drives_it() {
    within_its_time(|path| {
        let server = Server::bind(path, Options::parse("null").expect("a model"), Trust::Sealed).expect("a server");
        let stops = Stops(Arc::default());
        let stop = Arc::clone(&stops.0);
        let serving = std::thread::spawn(move || server.run(&|| stop.load(Ordering::Relaxed), &mut |_| {}));
        drive(path);
        drop(stops);
        serving.join().expect("it does not panic").expect("served");
    });
}

fn drive(path: &Path) {
    let mut client = Client::new(path).expect("version, device and regions are agreed on");
    let registers = client.region(REGION_BAR0).expect("BAR0");
    let areas: Vec<_> = registers.sparse_areas.iter().map(|area| (area.offset, area.size)).collect();
    assert_eq!(areas, [(0x1000, 0x1000)], "the doorbells may be mapped");
    let doorbells = registers.file_offset.as_ref().expect("their file");
    let doorbells = (doorbells.file().try_clone().expect("a copy"), doorbells.start());
    assert_eq!(client.region(REGION_CONFIG).expect("configuration space").size, 4096);

    let vectors = client.get_irq_info(IRQ_MSIX).expect("MSI-X").count;
    assert!(vectors > 1, "{vectors}");
    let event = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).expect("an eventfd");
    client
        .set_irqs(IRQ_MSIX, IRQ_DATA_EVENTFD | IRQ_ACTION_TRIGGER, 0, 1, &[event.as_raw_fd()])
        .expect("vector 0 has an eventfd");

    let file = memory(0x4000);
    client.dma_map(0, 0x10_0000, 0x4000, file.as_raw_fd()).expect("mapped");
    let mut command = [0; 2];
    client.region_read(REGION_CONFIG, 4, &mut command).expect("the command register");
    client.region_write(REGION_CONFIG, 4, &(u16::from_le_bytes(command) | 0x406).to_le_bytes()).expect("written");

    assert_eq!(register(&mut client, 8), 0x2_0000, "version 2.0");
    client.region_write(REGION_BAR0, 0x24, &0x000f_000f_u32.to_le_bytes()).expect("AQA");
    client.region_write(REGION_BAR0, 0x28, &0x10_0000_u64.to_le_bytes()).expect("ASQ");
    client.region_write(REGION_BAR0, 0x30, &0x10_1000_u64.to_le_bytes()).expect("ACQ");
    client.region_write(REGION_BAR0, 0x14, &0x0046_0001_u32.to_le_bytes()).expect("CC");
    status(&mut client, 1, 1);

    // One doorbell by message, one through its page.
    identify(&file, 0, 0x51, 0x10_2000);
    client.region_write(REGION_BAR0, 0x1000, &1_u32.to_le_bytes()).expect("a doorbell");
    assert_eq!(completed(&file, 0), 0x0001_0051);
    identify(&file, 1, 0x52, 0x10_3000);
    doorbells.0.write_all_at(&2_u32.to_le_bytes(), doorbells.1 + 0x1000).expect("a doorbell");
    assert_eq!(completed(&file, 1), 0x0001_0052);
    for at in [0x2000, 0x3000] {
        let mut model = [0; 20];
        file.read_exact_at(&mut model, at + 24).expect("it is there");
        assert_eq!(&model, b"nvmetal EMULATED nul", "at {at:#x}");
    }
    let mut count = [0; 8];
    rustix::io::read(&event, &mut count).expect("the vector was signalled");
    assert!((1..=2).contains(&u64::from_ne_bytes(count)));

    client.reset().expect("reset");
    assert_eq!(register(&mut client, 0x1c) & 1, 0, "not ready after a reset");
    client.dma_unmap(0x10_0000, 0x4000).expect("unmapped");
    client.shutdown().expect("closed");
}

// ------------------------------------------------------------------------------------------ our client, its server

/// What the controller behind the crate's server signals.
#[derive(Debug, Default, Clone)]
struct Events(Arc<Mutex<Vec<File>>>);

impl Irq for Events {
    fn raise(&self, vector: u16) {
        let events = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut event) = events.get(usize::from(vector)) {
            event.write_all(&1_u64.to_ne_bytes()).expect("an eventfd takes it");
        }
    }
}

/// The emulated controller, run to its next rest after each message.
struct Backend {
    emulator: Emulator,
    memory: Arc<GuestMemory>,
    config: Vec<u8>,
    events: Events,
    /// How often it was asked for one.
    resets: u32,
}

impl Backend {
    fn new() -> Self {
        let (memory, events) = (Arc::new(GuestMemory::new()), Events::default());
        let options = Options::parse("ideal,capacity=64MiB").expect("a model");
        let emulator = Emulator::new(options, Arc::clone(&memory), Box::new(events.clone()));
        let config = emulator.endpoint_config();
        Self { emulator, memory, config, events, resets: 0 }
    }

    /// Lets the controller do all that it has to do, however long that takes it.
    fn rest(&mut self) {
        for _ in 0..10_000 {
            match self.emulator.next_event_ns() {
                Some(at_ns) if at_ns <= self.emulator.now_ns() + 1_000_000_000 => self.emulator.advance(at_ns),
                _ => return,
            }
        }
    }
}

fn missing() -> io::Error {
    io::ErrorKind::InvalidInput.into()
}

impl ServerBackend for Backend {
    fn region_read(&mut self, region: u32, offset: u64, data: &mut [u8]) -> io::Result<()> {
        if region == REGION_CONFIG {
            let at = offset as usize;
            data.copy_from_slice(self.config.get(at..at + data.len()).ok_or_else(missing)?);
            return Ok(());
        }
        self.rest();
        let value = self.emulator.read(offset, data.len() as u8).to_le_bytes();
        data.copy_from_slice(value.get(..data.len()).ok_or_else(missing)?);
        Ok(())
    }

    fn region_write(&mut self, region: u32, offset: u64, data: &[u8]) -> io::Result<()> {
        if region == REGION_CONFIG {
            let at = offset as usize;
            self.config.get_mut(at..at + data.len()).ok_or_else(missing)?.copy_from_slice(data);
            self.memory.set_bus_master(self.config.get(4).is_some_and(|low| low & 4 != 0));
            return Ok(());
        }
        let mut raw = [0; 8];
        raw.get_mut(..data.len()).ok_or_else(missing)?.copy_from_slice(data);
        self.emulator.write(offset, data.len() as u8, u64::from_le_bytes(raw));
        self.rest();
        Ok(())
    }

    fn dma_map(&mut self, _: DmaMapFlags, offset: u64, iova: u64, bytes: u64, file: Option<File>) -> io::Result<()> {
        let file = file.ok_or_else(missing)?;
        self.memory.map_file(iova, file.as_fd(), offset, bytes).map_err(io::Error::other)
    }

    fn dma_unmap(&mut self, _: DmaUnmapFlags, iova: u64, bytes: u64) -> io::Result<()> {
        self.memory.unmap(iova, bytes).map_err(io::Error::other)
    }

    fn reset(&mut self) -> io::Result<()> {
        self.emulator.function_reset();
        self.resets += 1;
        Ok(())
    }

    fn set_irqs(&mut self, _: u32, _: u32, start: u32, _: u32, files: Vec<File>) -> io::Result<()> {
        let mut events = self.events.0.lock().unwrap_or_else(PoisonError::into_inner);
        events.truncate(start as usize);
        events.extend(files);
        Ok(())
    }
}

/// The nine regions, of which two have something; with `doorbells` as a page that may be mapped.
fn regions(doorbells: Option<&OwnedFd>) -> Vec<ServerRegion> {
    let access = bindings::VFIO_REGION_INFO_FLAG_READ | bindings::VFIO_REGION_INFO_FLAG_WRITE;
    let map = doorbells.map(|_| bindings::VFIO_REGION_INFO_FLAG_MMAP);
    let region = |index| {
        let (size, flags) = match index {
            REGION_BAR0 => (0x4000, access | map.unwrap_or(0)),
            REGION_CONFIG => (0x1000, access),
            _ => (0, 0),
        };
        let area = bindings::vfio_region_sparse_mmap_area { offset: 0x1000, size: 0x1000 };
        ServerRegion {
            region_info: bindings::vfio_region_info {
                argsz: size_of::<bindings::vfio_region_info>() as u32,
                flags,
                index,
                size,
                ..Default::default()
            },
            sparse_areas: doorbells.filter(|_| index == REGION_BAR0).map(|_| SparseArea { area }).into_iter().collect(),
            mmap_fd: doorbells.filter(|_| index == REGION_BAR0).map(AsRawFd::as_raw_fd),
        }
    };
    (0..9).map(region).collect()
}

fn serve_another(path: &Path, doorbells: Option<OwnedFd>) -> std::thread::JoinHandle<Backend> {
    let kinds = |index| IrqInfo { index, flags: IRQ_EVENTFD, count: if index == IRQ_MSIX { 4 } else { 0 } };
    let server = vfio_user::Server::new(path, true, (0..5).map(kinds).collect(), regions(doorbells.as_ref()));
    let server = server.expect("it listens");
    std::thread::spawn(move || {
        let mut backend = Backend::new();
        server.run(&mut backend).expect("it serves one client");
        drop(doorbells);
        backend
    })
}

#[test]
fn our_client_writes_and_reads_a_drive_behind_another_server() {
    within_its_time(|path| {
        let serving = serve_another(path, None);
        let transport = VfioUserTransport::open(path).expect("a device");
        assert_eq!((transport.info().detail.as_ref(), transport.info().vectors), ("doorbells by message", 4));
        let options = ControllerOptions { interrupts: true, ..ControllerOptions::default() };
        let controller = Controller::open(transport, options).expect("a controller");
        let namespace = controller.namespace(1).expect("a namespace");
        let data: Vec<u8> = (0..=255).cycle().take(64 << 10).collect();
        for wait in [Wait::Poll, Wait::Interrupt] {
            let options = BlockingOptions { wait, ..BlockingOptions::default() };
            let mut queue = BlockingQueue::new(&controller, namespace, options).expect("a queue");
            queue.write_at(4096, &data).expect("written");
            let mut back = vec![0; data.len()];
            queue.read_at(4096, &mut back).expect("read");
            assert!(back == data, "by {wait:?}");
        }
        assert!(controller.shutdown().expect("down").complete);
        drop(controller);
        let backend = serving.join().expect("it does not panic");
        assert_eq!(backend.memory.mapped(), (0, 0), "everything was unmapped");
        assert_eq!(backend.memory.fault_count(), 0);
    });
}

#[test]
fn our_client_maps_another_servers_doorbells_and_asks_it_for_a_reset() {
    within_its_time(|path| {
        let page = OwnedFd::from(memory(0x4000));
        let seen = File::from(page.try_clone().expect("a copy"));
        let serving = serve_another(path, Some(page));
        let transport = VfioUserTransport::open(path).expect("a device");
        assert_eq!(transport.info().detail, "doorbells mapped");
        let Ok(DoorbellKind::Mapped(doorbell)) = transport.doorbell(0x1008) else { panic!("it is mapped") };
        nvmetal_core::queue::Doorbell::ring(&doorbell, 0x1234);
        assert_eq!(word(&seen, 0x1008), 0x1234);
        transport.reset().expect("reset");
        // Such a request is not sent at all.
        assert!(matches!(transport.read32(0x4000), Err(TransportError::OutOfRange { .. })));
        drop((doorbell, transport));
        assert_eq!(serving.join().expect("it does not panic").resets, 1);
    });
}
