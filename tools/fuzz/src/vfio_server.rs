//! The vfio-user server in front of a client that sends anything, and any descriptors with it.
//!
//! One server lives for as long as the fuzzer runs, as it would for one client after another; each input is a client. It
//! begins as the protocol wants it, or not, and then sends messages: mostly well-formed ones with numbers that are at
//! the borders of something, so that they get behind the first check, sometimes bytes that are no message. At the end a
//! client that behaves has to be served: nothing that its predecessor did may be left.
//!
//! Waiting is what a client can make a server do at most, and here nobody waits: a message that is cut short is followed
//! by the end of the connection.

use std::io::{IoSlice, Read};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use nvmetal_emulator::Options;
use nvmetal_emulator::serve::{Server, Trust};
use nvmetal_vfio_user_wire::message::RegionAccess;
use nvmetal_vfio_user_wire::version::{self, Capabilities};
use nvmetal_vfio_user_wire::{Command, Header};
use rustix::event::EventfdFlags;
use rustix::fs::MemfdFlags;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use zerocopy::IntoBytes;

/// Numbers at the borders of something: widths, the doorbells, BAR0, configuration space, a page, the memory below.
const NUMBERS: [u64; 32] = [
    0, 1, 2, 3, 4, 7, 8, 16, 24, 32, 33, 64, 65, 0xfff, 0x1000, 0x1001, 0x1004, 0x2000, 0x4000, 0x14, 0x1c, 0x24, 0x28,
    0x30, 0x46_0001, 0x1f_fffc, 0x20_0000, 0x7fff_ffff, 0xffff_ffff, 0x1_0000_0000, u64::MAX - 0xfff, u64::MAX,
];
const MESSAGES_MOST: usize = 64;
/// A server that takes longer than this for an answer is stuck.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// The socket of the one server.
fn socket() -> &'static PathBuf {
    static SOCKET: OnceLock<PathBuf> = OnceLock::new();
    SOCKET.get_or_init(|| {
        let path = std::env::temp_dir().join(format!("nvmetal-fuzz-server-{}", std::process::id()));
        let options = Options::parse("null,capacity=16MiB,queues=4").expect("a model");
        let server = Server::bind(&path, options, Trust::Sealed).expect("a server");
        std::thread::spawn(move || server.run(&|| false, &mut |_| {}).expect("clients are taken"));
        path
    })
}

/// The fuzzer's input, taken from its front.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn number(&mut self) -> u64 {
        match self.byte().unwrap_or(0) {
            code @ 0..=191 => NUMBERS[usize::from(code) % NUMBERS.len()],
            _ => u64::from_le_bytes(core::array::from_fn(|_| self.byte().unwrap_or(0))),
        }
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        let count = usize::from(self.byte().unwrap_or(0)).min(most).min(self.0.len());
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        taken.to_vec()
    }

    /// A descriptor of some kind.
    fn file(&mut self) -> OwnedFd {
        let memory = |flags, bytes| {
            let file = rustix::fs::memfd_create("fuzz", MemfdFlags::CLOEXEC | flags).expect("a memfd");
            rustix::fs::ftruncate(&file, bytes).expect("its length");
            file
        };
        match self.byte().unwrap_or(0) % 6 {
            0 | 1 => memory(MemfdFlags::ALLOW_SEALING, 0x4000),
            2 => memory(MemfdFlags::empty(), 0x4000),
            3 => rustix::event::eventfd(0, EventfdFlags::CLOEXEC).expect("an eventfd"),
            4 => std::fs::File::open("/dev/null").expect("it is there").into(),
            _ => std::io::pipe().expect("a pipe").1.into(),
        }
    }
}

/// The payload that belongs to a command, of any numbers.
fn payload(command: Command, input: &mut Input<'_>) -> Vec<u8> {
    let mut payload = Vec::new();
    let mut word = |input: &mut Input<'_>| payload.extend_from_slice(&(input.number() as u32).to_le_bytes());
    let words = match command {
        Command::DEVICE_GET_INFO | Command::DEVICE_GET_IRQ_INFO => 4,
        Command::DEVICE_SET_IRQS => 5,
        Command::VERSION => 1,
        Command::DMA_MAP | Command::DMA_UNMAP => 2,
        Command::DEVICE_GET_REGION_INFO => 8,
        _ => 0,
    };
    (0..words).for_each(|_| word(input));
    match command {
        Command::DMA_MAP => (0..3).for_each(|_| payload.extend_from_slice(&input.number().to_le_bytes())),
        Command::DMA_UNMAP => (0..2).for_each(|_| payload.extend_from_slice(&input.number().to_le_bytes())),
        Command::REGION_READ | Command::REGION_WRITE => {
            // BAR0 and configuration space are where something is.
            let region = [0, 0, 7, input.number() as u32][usize::from(input.byte().unwrap_or(0) % 4)];
            let count = [4, 8, 2, input.number() as u32][usize::from(input.byte().unwrap_or(0) % 4)];
            payload.extend_from_slice(RegionAccess::new(region, input.number(), count).as_bytes());
            if command == Command::REGION_WRITE {
                payload.extend_from_slice(&input.number().to_le_bytes());
            }
        }
        _ => {}
    }
    payload.extend(input.bytes(64));
    payload
}

/// Sends as much as is taken; the server may have gone.
fn send(stream: &UnixStream, mut bytes: &[u8], files: &[OwnedFd]) {
    let borrowed: Vec<BorrowedFd<'_>> = files.iter().map(AsFd::as_fd).collect();
    let mut space = [core::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !borrowed.is_empty() {
        assert!(control.push(SendAncillaryMessage::ScmRights(&borrowed)));
    }
    while !bytes.is_empty() {
        match sendmsg(stream, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL) {
            Ok(sent) => {
                bytes = &bytes[sent..];
                control.clear();
            }
            Err(_) => return,
        }
    }
}

/// Takes what has been answered, without waiting for it.
fn drain(mut stream: &UnixStream) {
    stream.set_nonblocking(true).expect("a flag");
    let mut bytes = [0; 0x1_0000];
    while stream.read(&mut bytes).is_ok_and(|count| count > 0) {}
    stream.set_nonblocking(false).expect("a flag");
}

fn connect() -> UnixStream {
    let stream = UnixStream::connect(socket()).expect("the server listens");
    stream.set_read_timeout(Some(ANSWER_WITHIN)).expect("a time");
    stream
}

fn hello(stream: &UnixStream) {
    let text = version::encode(&Capabilities::default());
    send(stream, &[Header::command(0, Command::VERSION, text.len()).as_bytes(), &text].concat(), &[]);
}

/// One client after the other: the fuzzer's, and one that behaves.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let mut stream = connect();
    if input.byte().unwrap_or(0) & 7 != 7 {
        hello(&stream);
    }
    for number in 0..MESSAGES_MOST {
        let Some(kind) = input.byte() else { break };
        if kind >= 250 {
            send(&stream, &input.bytes(255), &[]);
            continue;
        }
        let command = Command(u16::from(kind % 17));
        let files: Vec<_> = match (command, input.byte().unwrap_or(0)) {
            (Command::DMA_MAP | Command::DEVICE_SET_IRQS, count @ 0..=199) => {
                (0..=count % 2).map(|_| input.file()).collect()
            }
            (_, count @ 240..) => (0..count % 4).map(|_| input.file()).collect(),
            _ => Vec::new(),
        };
        let payload = payload(command, &mut input);
        let mut message = [Header::command(number as u16, command, payload.len()).as_bytes(), &payload].concat();
        match input.byte().unwrap_or(0) {
            // Flags and length of any value.
            byte @ 250.. => message[8] = byte,
            byte @ 246..250 => message[4] = byte,
            _ => {}
        }
        send(&stream, &message, &files);
        drain(&stream);
    }
    // It may be gone already.
    let _ = stream.shutdown(Shutdown::Write);
    let mut rest = Vec::new();
    match stream.read_to_end(&mut rest) {
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => panic!("the server is stuck"),
        _ => {}
    }

    let mut stream = connect();
    hello(&stream);
    let mut header = [0; 16];
    stream.read_exact(&mut header).expect("a client that behaves is served");
    assert_eq!((header[2], header[8] & 0x21), (1, 1), "it is told the version");
}
