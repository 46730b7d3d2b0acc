//! The server as a client meets it that knows nothing of this project: the wire's messages in the order in which a driver
//! sends them, and what a hostile one sends instead.
#![forbid(unsafe_code)]

use core::time::Duration;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use nvmetal_vfio_user_wire::message::{
    DeviceInfo, DmaMap, DmaUnmap, IRQ_ACTION_TRIGGER, IRQ_DATA_EVENTFD, IRQ_MSIX, IrqInfo, REGION_BAR0, REGION_CONFIG,
    RegionAccess, RegionHead, SetIrqs, UNMAP_ALL,
};
use nvmetal_vfio_user_wire::region::{Area, RegionInfo};
use nvmetal_vfio_user_wire::version::{self, Capabilities};
use nvmetal_vfio_user_wire::{Channel, Command, Header, Message, PAYLOAD_BYTES_MOST};
use rustix::event::EventfdFlags;
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use zerocopy::IntoBytes;

use super::{Server, Trust};
use crate::options::Options;

const LONG: Duration = Duration::from_secs(60);

/// A client, after the first exchange.
struct Peer(Channel);

impl Peer {
    fn connect(path: &Path) -> Self {
        let peer = Self(Channel::connect(path).unwrap());
        let reply = peer.ask(Command::VERSION, &version::encode(&Capabilities::default()), &[]).unwrap();
        let (version, limits) = version::decode(&reply.payload).unwrap();
        assert_eq!((version.major.get(), version.minor.get()), (0, 1));
        assert!(limits.max_msg_fds >= 8 && limits.max_data_xfer_size >= 4096);
        peer
    }

    fn ask(&self, command: Command, payload: &[u8], files: &[BorrowedFd<'_>]) -> Result<Message, Errno> {
        self.0.send(&Header::command(3, command, payload.len()), &[payload], files, LONG).unwrap();
        let reply = self.0.receive(PAYLOAD_BYTES_MOST, LONG).unwrap();
        assert_eq!((reply.header.message_id(), reply.header.what()), (3, command));
        reply.header.failed_with().map_or(Ok(reply), |errno| Err(Errno::from_raw_os_error(errno)))
    }

    fn read(&self, region: u32, offset: u64, bytes: u32) -> u64 {
        let access = RegionAccess::new(region, offset, bytes);
        let reply = self.ask(Command::REGION_READ, access.as_bytes(), &[]).unwrap();
        let mut raw = [0; 8];
        let (_, data) = RegionAccess::take_with_data(&reply.payload).unwrap();
        raw[..data.len()].copy_from_slice(data);
        u64::from_le_bytes(raw)
    }

    fn write(&self, region: u32, offset: u64, data: &[u8]) {
        let access = RegionAccess::new(region, offset, data.len() as u32);
        self.ask(Command::REGION_WRITE, &[access.as_bytes(), data].concat(), &[]).unwrap();
    }

    fn map(&self, iova: u64, bytes: u64, file: &[BorrowedFd<'_>]) -> Result<Message, Errno> {
        let map =
            DmaMap { argsz: 32.into(), flags: 3.into(), file_offset: 0.into(), iova: iova.into(), bytes: bytes.into() };
        self.ask(Command::DMA_MAP, map.as_bytes(), file)
    }

    fn unmap(&self, iova: u64, bytes: u64, flags: u32) -> Result<Message, Errno> {
        let unmap = DmaUnmap { argsz: 24.into(), flags: flags.into(), iova: iova.into(), bytes: bytes.into() };
        self.ask(Command::DMA_UNMAP, unmap.as_bytes(), &[])
    }

    fn set_events(&self, start: u32, count: u32, events: &[BorrowedFd<'_>]) -> Result<Message, Errno> {
        let set = SetIrqs {
            argsz: 20.into(),
            flags: (IRQ_DATA_EVENTFD | IRQ_ACTION_TRIGGER).into(),
            index: IRQ_MSIX.into(),
            start: start.into(),
            count: count.into(),
        };
        self.ask(Command::DEVICE_SET_IRQS, set.as_bytes(), events)
    }

    /// Waits for CSTS to have these bits.
    fn status(&self, mask: u64, wanted: u64) {
        while self.read(REGION_BAR0, 0x1c, 4) & mask != wanted {
            std::thread::yield_now();
        }
    }
}

/// A file of this many bytes; sealed or not.
fn memory(bytes: u64, flags: MemfdFlags) -> OwnedFd {
    let file = rustix::fs::memfd_create("test", MemfdFlags::CLOEXEC | flags).unwrap();
    rustix::fs::ftruncate(&file, bytes).unwrap();
    file
}

fn word(file: &OwnedFd, at: u64) -> u32 {
    let mut raw = [0; 4];
    rustix::io::pread(file, &mut raw, at).unwrap();
    u32::from_le_bytes(raw)
}

/// Ends the server also when the client's assertions fail.
struct Stops<'a>(&'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `client` against a server on a thread of its own.
fn served(model: &str, trust: Trust, client: impl FnOnce(&Path, &Server)) {
    // What the socket's name is may not depend on how often a test runs at the same time.
    let folder = std::env::temp_dir().join(format!("nvmetal-serve-{}-{:p}", std::process::id(), &raw const model));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("drive");
    let server = Server::bind(&path, Options::parse(model).unwrap(), trust).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let stops = Stops(&stop);
        scope.spawn(|| server.run(&|| stop.load(Ordering::Relaxed), &mut |_| {}).unwrap());
        client(&path, &server);
        drop(stops);
    });
    drop(server);
    assert!(!path.exists(), "the socket goes with the server");
    std::fs::remove_dir(&folder).unwrap();
}

#[test]
fn a_controller_is_driven_by_the_messages_in_the_documented_order() {
    served("null", Trust::Sealed, |path, _| {
        let peer = Peer::connect(path);
        let asked = DeviceInfo { argsz: 16.into(), ..DeviceInfo::default() };
        let reply = peer.ask(Command::DEVICE_GET_INFO, asked.as_bytes(), &[]).unwrap();
        let (device, _) = DeviceInfo::take(&reply.payload).unwrap();
        assert_eq!((device.flags.get(), device.regions.get(), device.irqs.get()), (3, 9, 5));

        let mut doorbells = None;
        for index in 0..9 {
            let asked = RegionHead { argsz: 64.into(), index: index.into(), ..RegionHead::default() };
            let reply = peer.ask(Command::DEVICE_GET_REGION_INFO, asked.as_bytes(), &[]).unwrap();
            let info = RegionInfo::decode(&reply.payload).unwrap();
            match index {
                REGION_BAR0 => {
                    assert_eq!(info.flags, 0xf);
                    assert_eq!(info.sparse, Some(vec![Area::new(0x1000, 0x1000)]));
                    doorbells = reply.files.into_iter().next();
                }
                REGION_CONFIG => assert_eq!((info.bytes, info.flags), (4096, 3)),
                _ => assert_eq!(info.bytes, 0, "region {index}"),
            }
        }
        let doorbells = doorbells.expect("the doorbells' file");

        // Queues at 0 and 4 KiB, data at 8 KiB.
        let file = memory(0x3000, MemfdFlags::ALLOW_SEALING);
        peer.map(0x10_0000, 0x3000, &[file.as_fd()]).unwrap();
        let command = peer.read(REGION_CONFIG, 4, 2) as u16 | 0x404;
        peer.write(REGION_CONFIG, 4, &command.to_le_bytes());
        assert_eq!(peer.read(REGION_CONFIG, 4, 2) as u16 & 0x404, 0x404);
        assert_eq!(peer.read(REGION_BAR0, 8, 4), 0x2_0000, "version 2.0");

        peer.write(REGION_BAR0, 0x24, &0x000f_000f_u32.to_le_bytes());
        peer.write(REGION_BAR0, 0x28, &0x10_0000_u64.to_le_bytes());
        peer.write(REGION_BAR0, 0x30, &0x10_1000_u64.to_le_bytes());
        peer.write(REGION_BAR0, 0x14, &0x0046_0001_u32.to_le_bytes());
        peer.status(1, 1);

        // Identify Controller, told through the mapped doorbell: from here on no message.
        let mut entry = [0; 64];
        entry[0..4].copy_from_slice(&0x0055_0006_u32.to_le_bytes());
        entry[24..32].copy_from_slice(&0x10_2000_u64.to_le_bytes());
        entry[40] = 1;
        rustix::io::pwrite(&file, &entry, 0).unwrap();
        rustix::io::pwrite(&doorbells, &1_u32.to_le_bytes(), 0x1000).unwrap();
        while word(&file, 0x100c) & 0x1_0000 == 0 {
            std::thread::yield_now();
        }
        assert_eq!(word(&file, 0x100c), 0x0001_0055, "success, with the command's identifier");
        let mut model = [0; 40];
        rustix::io::pread(&file, &mut model, 0x2000 + 24).unwrap();
        assert!(model.starts_with(b"nvmetal EMULATED null"));

        peer.write(REGION_BAR0, 0x14, &0x0046_4001_u32.to_le_bytes());
        peer.status(0b1100, 0b1000);
        peer.unmap(0x10_0000, 0x3000, 0).unwrap();
        assert_eq!(peer.unmap(0x10_0000, 0x3000, 0).unwrap_err(), Errno::NOENT);
    });
}

#[test]
fn what_is_answered_is_the_recorded_exchange_byte_for_byte() {
    use std::io::{Read, Write};

    let bytes = |line: &str| -> Vec<u8> {
        let hex: String = line[1..].split_whitespace().collect();
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    };
    served("null", Trust::Sealed, |path, _| {
        let mut stream = std::os::unix::net::UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        let recording = include_str!("../../../vfio-user-wire/recorded/server.txt");
        for line in recording.lines().filter(|line| !line.starts_with('#')) {
            let bytes = bytes(line);
            if line.starts_with('>') {
                stream.write_all(&bytes).unwrap();
            } else {
                let mut answer = vec![0; bytes.len()];
                stream.read_exact(&mut answer).unwrap();
                assert_eq!(answer, bytes, "instead of {line}");
            }
        }
    });
}

#[test]
fn memory_that_its_owner_could_shrink_is_not_touched() {
    served("null", Trust::Sealed, |path, _| {
        let peer = Peer::connect(path);
        let unsealable = memory(0x2000, MemfdFlags::empty());
        assert_eq!(peer.map(0, 0x2000, &[unsealable.as_fd()]).unwrap_err(), Errno::PERM);
        let (pipe, _other_end) = std::io::pipe().unwrap();
        assert_eq!(peer.map(0, 0x2000, &[pipe.as_fd()]).unwrap_err(), Errno::PERM);
        let zeros = std::fs::File::open("/dev/zero").unwrap();
        assert_eq!(peer.map(0, 0x2000, &[zeros.as_fd()]).unwrap_err(), Errno::PERM);
        let sealable = memory(0x2000, MemfdFlags::ALLOW_SEALING);
        assert_eq!(peer.map(0, 0x3000, &[sealable.as_fd()]).unwrap_err(), Errno::INVAL, "it ends before that");
        peer.map(0, 0x2000, &[sealable.as_fd()]).unwrap();
        assert!(rustix::fs::fcntl_get_seals(&sealable).unwrap().contains(SealFlags::SHRINK));
        assert!(rustix::fs::ftruncate(&sealable, 0).is_err(), "the server has sealed it");
        let two = [sealable.as_fd(), sealable.as_fd()];
        assert_eq!(peer.map(0x10_0000, 0x1000, &two).unwrap_err(), Errno::INVAL);
    });
    served("null", Trust::Unsealed, |path, _| {
        let unsealable = memory(0x2000, MemfdFlags::empty());
        Peer::connect(path).map(0, 0x2000, &[unsealable.as_fd()]).unwrap();
    });
}

#[test]
fn ranges_do_not_overlap_are_counted_and_go_all_at_once() {
    served("null", Trust::Sealed, |path, server| {
        let peer = Peer::connect(path);
        let file = memory(0x2000, MemfdFlags::ALLOW_SEALING);
        peer.map(0x2000, 0x2000, &[file.as_fd()]).unwrap();
        for iova in [0x1000, 0x2000, 0x3000] {
            assert_eq!(peer.map(iova, 0x2000, &[file.as_fd()]).unwrap_err(), Errno::EXIST, "{iova:#x}");
        }
        // Memory without a file takes an address, and is not reached.
        peer.map(0x10_0000, 0x1000, &[]).unwrap();
        assert_eq!(server.memory.mapped(), (0x2000, 1));
        assert_eq!(peer.map(0x10_0000, 0x1000, &[file.as_fd()]).unwrap_err(), Errno::EXIST);
        peer.unmap(0x10_0000, 0x1000, 0).unwrap();
        let few = (0..4095_u64).all(|number| peer.map(0x100_0000 + number * 0x1000, 0x1000, &[]).is_ok());
        assert!(few);
        assert_eq!(peer.map(0x1_0000_0000, 0x1000, &[]).unwrap_err(), Errno::NOSPC);
        peer.unmap(0, 0, UNMAP_ALL).unwrap();
        assert_eq!(server.memory.mapped(), (0, 0));
        peer.map(0x2000, 0x2000, &[file.as_fd()]).unwrap();
    });
}

#[test]
fn a_vector_signals_its_eventfd_and_nothing_else_is_taken_for_one() {
    served("null", Trust::Sealed, |path, server| {
        let peer = Peer::connect(path);
        let asked = IrqInfo { argsz: 16.into(), index: IRQ_MSIX.into(), ..IrqInfo::default() };
        let reply = peer.ask(Command::DEVICE_GET_IRQ_INFO, asked.as_bytes(), &[]).unwrap();
        assert_eq!(IrqInfo::take(&reply.payload).unwrap().0.count.get(), 65);

        let (pipe, _other_end) = std::io::pipe().unwrap();
        assert_eq!(peer.set_events(0, 1, &[pipe.as_fd()]).unwrap_err(), Errno::INVAL);
        // One that would block its writer: its counter is full.
        let event = rustix::event::eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        rustix::io::write(&event, &(u64::MAX - 1).to_ne_bytes()).unwrap();
        peer.set_events(64, 1, &[event.as_fd()]).unwrap();
        server.irqs.signal(64);
        let mut count = [0; 8];
        rustix::io::read(&event, &mut count).unwrap();
        server.irqs.signal(64);
        rustix::io::read(&event, &mut count).unwrap();
        assert_eq!(u64::from_ne_bytes(count), 1);

        assert_eq!(peer.set_events(65, 1, &[event.as_fd()]).unwrap_err(), Errno::INVAL);
        assert_eq!(peer.set_events(0, 1, &[event.as_fd(), event.as_fd()]).unwrap_err(), Errno::INVAL);
        peer.set_events(64, 1, &[]).unwrap();
        server.irqs.signal(64);
        assert_eq!(rustix::io::read(&event, &mut count), Err(Errno::AGAIN), "a vector without one signals nothing");
    });
}

#[test]
fn what_one_client_had_the_next_one_does_not_find() {
    served("null", Trust::Sealed, |path, server| {
        let peer = Peer::connect(path);
        let file = memory(0x2000, MemfdFlags::ALLOW_SEALING);
        peer.map(0x2000, 0x2000, &[file.as_fd()]).unwrap();
        peer.write(REGION_BAR0, 0x28, &0x2000_u64.to_le_bytes());
        peer.write(REGION_CONFIG, 4, &6_u16.to_le_bytes());
        drop(peer);
        let peer = Peer::connect(path);
        assert_eq!(server.memory.mapped(), (0, 0));
        assert_eq!(peer.read(REGION_BAR0, 0x28, 8), 0, "ASQ");
        assert_eq!(peer.read(REGION_CONFIG, 4, 2) & 4, 0, "bus mastering is off");
    });
}

#[test]
fn commands_and_doorbells_without_sense_reach_no_memory() {
    served("null", Trust::Sealed, |path, server| {
        let peer = Peer::connect(path);
        let file = memory(0x2000, MemfdFlags::ALLOW_SEALING);
        peer.map(0x10_0000, 0x2000, &[file.as_fd()]).unwrap();
        peer.write(REGION_CONFIG, 4, &6_u16.to_le_bytes());
        peer.write(REGION_BAR0, 0x24, &0x000f_000f_u32.to_le_bytes());
        peer.write(REGION_BAR0, 0x28, &0x10_0000_u64.to_le_bytes());
        peer.write(REGION_BAR0, 0x30, &0xdead_0000_u64.to_le_bytes());
        peer.write(REGION_BAR0, 0x14, &0x0046_0001_u32.to_le_bytes());
        peer.status(1, 1);
        // Doorbells by message, of queues that are not there and with indices that cannot be.
        for (at, value) in
            [(0x1008, 5), (0x1ffc, 5), (0x10_0000, 5), (0x1f_fffc, 5), (0x1004, 0xffff), (0x1000, 0xffff)]
        {
            peer.write(REGION_BAR0, at, &u32::to_le_bytes(value));
        }
        // A command whose completion has no place: fatal, with a fault report.
        peer.write(REGION_BAR0, 0x1000, &1_u32.to_le_bytes());
        peer.status(0b10, 0b10);
        assert!(server.memory.fault_count() > 0);
        // A reset ends it.
        peer.ask(Command::DEVICE_RESET, &[], &[]).unwrap();
        peer.status(0b11, 0);
    });
}
