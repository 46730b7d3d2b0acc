//! The vfio-user client in front of a server that answers anything.
//!
//! Each request gets the answer that an honest server would give, changed as the input says: a byte of it, its length, its
//! flags, descriptors that are not what they should be, or bytes that are no message. When the input is at its end the
//! server is gone. The client may report whatever error it likes. It must not panic, not wait longer than its deadline,
//! and not touch what is not there.

use core::ptr::NonNull;
use core::time::Duration;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::OnceLock;

use nvmetal_core::queue::Doorbell;
use nvmetal_driver::transport::vfio_user::VfioUserTransport;
use nvmetal_driver::transport::{DoorbellKind, HostRange, Transport};
use nvmetal_vfio_user_wire::message::{DeviceInfo, IRQ_EVENTFD, IrqInfo, RegionAccess, RegionHead};
use nvmetal_vfio_user_wire::region::{Area, MMAP, READ, RegionInfo, WRITE};
use nvmetal_vfio_user_wire::version::{self, Capabilities};
use nvmetal_vfio_user_wire::{Channel, Command, Header, Message, PAYLOAD_BYTES_MOST};
use rustix::fs::MemfdFlags;
use zerocopy::IntoBytes;

/// Nothing here waits on purpose, so this is only for a machine that is busy.
const REPLY_WITHIN: Duration = Duration::from_secs(15);
const BAR0_BYTES: u64 = 0x4000;

fn listener() -> &'static (UnixListener, PathBuf) {
    static LISTENER: OnceLock<(UnixListener, PathBuf)> = OnceLock::new();
    LISTENER.get_or_init(|| {
        let path = std::env::temp_dir().join(format!("nvmetal-fuzz-client-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        (UnixListener::bind(&path).expect("a socket"), path)
    })
}

fn memory(bytes: u64) -> OwnedFd {
    let file = rustix::fs::memfd_create("fuzz", MemfdFlags::CLOEXEC).expect("a memfd");
    rustix::fs::ftruncate(&file, bytes).expect("its length");
    file
}

/// What an honest server says.
fn honest(asked: &Message) -> Vec<u8> {
    let payload = asked.payload.as_slice();
    match asked.header.what() {
        Command::VERSION => version::encode(&Capabilities { max_msg_fds: 8, ..Capabilities::default() }),
        Command::DEVICE_GET_INFO => {
            DeviceInfo { argsz: 16.into(), flags: 3.into(), regions: 9.into(), irqs: 5.into() }.as_bytes().to_vec()
        }
        Command::DEVICE_GET_REGION_INFO => {
            let index = RegionHead::take(payload).map_or(0, |(head, _)| head.index.get());
            let sparse = (index == 0).then(|| vec![Area::new(0x1000, 0x1000)]);
            let bytes = if index == 0 { BAR0_BYTES } else { 0x1000 };
            RegionInfo { index, flags: READ | WRITE | MMAP, bytes, file_offset: 0, sparse }.encode(1024)
        }
        Command::DEVICE_GET_IRQ_INFO => {
            let index = IrqInfo::take(payload).map_or(0, |(info, _)| info.index.get());
            IrqInfo { argsz: 16.into(), flags: IRQ_EVENTFD.into(), index: index.into(), count: 9.into() }
                .as_bytes()
                .to_vec()
        }
        Command::REGION_READ => {
            let access = RegionAccess::take_read(payload).unwrap_or(RegionAccess::new(0, 0, 0));
            [access.as_bytes(), &vec![0x21; access.count.get() as usize]].concat()
        }
        Command::REGION_WRITE => payload.get(..16).unwrap_or_default().to_vec(),
        _ => Vec::new(),
    }
}

/// Answers until the input or the client is at its end.
fn serve(channel: &Channel, mut input: &[u8]) {
    let mut byte = || {
        let (first, rest) = input.split_first()?;
        input = rest;
        Some(*first)
    };
    while let Ok(asked) = channel.receive(PAYLOAD_BYTES_MOST, REPLY_WITHIN) {
        let Some(how) = byte() else { return };
        let mut payload = honest(&asked);
        let mut raw: [u8; 16] = [0; 16];
        let mut files = Vec::new();
        if asked.header.what() == Command::DEVICE_GET_REGION_INFO {
            files.push(memory(BAR0_BYTES));
        }
        let mut change = None;
        match how {
            0..=99 => {}
            // Bytes of the answer of another value.
            100..=169 => {
                for _ in 0..=how % 4 {
                    let at = usize::from(byte().unwrap_or(0));
                    let value = byte().unwrap_or(0);
                    if let Some(place) = payload.get_mut(at) {
                        *place = value;
                    }
                }
            }
            // Shorter, or longer.
            170..=184 => payload.truncate(usize::from(byte().unwrap_or(0))),
            185..=199 => payload.extend((0..byte().unwrap_or(0)).map(|_| how)),
            // Other descriptors: none, of another length, many.
            200..=204 => files.clear(),
            205..=211 => files = vec![memory(u64::from(byte().unwrap_or(0)) << 8)],
            212..=219 => files = (0..byte().unwrap_or(0) % 12).map(|_| memory(0x2000)).collect(),
            // A header that is changed.
            220..=244 => change = Some((usize::from(how - 220) % 16, byte().unwrap_or(0))),
            // A refusal.
            245..=247 => {
                let no = Header::failure(&asked.header, i32::from(byte().unwrap_or(0)));
                if channel.send(&no, &[], &[], REPLY_WITHIN).is_err() {
                    return;
                }
                continue;
            }
            // It goes away; before that it has said half of something.
            248..=251 => return,
            252..=255 => payload = (0..byte().unwrap_or(0)).map_while(|_| byte()).collect(),
        }
        let borrowed: Vec<BorrowedFd<'_>> = files.iter().map(AsFd::as_fd).collect();
        let mut header = Header::reply(&asked.header, payload.len());
        if let Some((at, value)) = change {
            raw.copy_from_slice(header.as_bytes());
            raw[at] = value;
            header = zerocopy::FromBytes::read_from_bytes(raw.as_slice()).unwrap_or(header);
        }
        if channel.send(&header, &[&payload], &borrowed, REPLY_WITHIN).is_err() {
            return;
        }
        // A length that is not what was sent: what would be waited for does not come.
        if change.is_some_and(|(at, _)| (4..8).contains(&at)) {
            return;
        }
    }
}

/// Everything that the driver does with a transport, in no order that it would do it in.
fn use_it(transport: &VfioUserTransport) {
    let mut config = [0; 300];
    let _ = transport.read_config(0, &mut config);
    let _ = (transport.read32(0x1c), transport.read64(0), transport.write32(0x14, 1), transport.write64(0x28, 1));
    let _ = (transport.read32(u64::MAX), transport.read64(BAR0_BYTES - 4));
    for offset in [0x1000, 0x1004, 0x1ffc, 0x3ffc] {
        match transport.doorbell(offset) {
            Ok(DoorbellKind::Mapped(doorbell)) => doorbell.ring(1),
            Ok(DoorbellKind::Called(doorbell)) => doorbell.ring(1),
            Err(_) => {}
        }
    }
    let file = memory(0x2000);
    // The transport only ever passes the file on.
    let range = HostRange { pointer: NonNull::dangling(), bytes: 0x2000, file: Some((file.as_fd(), 0)) };
    if let Ok(iova) = transport.map(range) {
        let _ = transport.unmap(iova, 0x2000).is_ok();
    }
    let _ = transport.enable_interrupts(transport.info().vectors.min(9));
    let _ = (transport.set_bus_master(true), transport.reset());
    let _ = transport.signals();
}

/// One connection.
pub fn run(data: &[u8]) {
    let (listener, path) = listener();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (stream, _) = listener.accept().expect("a client");
            serve(&Channel::new(stream.into()), data);
        });
        if let Ok(transport) = VfioUserTransport::open_within(path, REPLY_WITHIN) {
            use_it(&transport);
        }
    });
}
