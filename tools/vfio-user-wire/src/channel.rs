//! A socket that carries whole messages, with the descriptors that belong to them, each by a deadline.
//!
//! A stream has no borders, so a message is its header and then as many bytes as that says. Descriptors come with the
//! first of those bytes; they are collected while the message is read, and closed with it if nobody takes them.
//!
//! A stream that has failed in the middle of a message cannot be read any further: where the next one begins is not
//! known. Whoever gets an error here ends the connection.
#![forbid(unsafe_code)]

use core::mem::MaybeUninit;
use core::time::Duration;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, recvmsg, sendmsg,
};
use zerocopy::{FromBytes, IntoBytes};

use crate::header::{HEADER_BYTES, Header};
use crate::{FILES_MOST, WireError};

/// Why a message could not be sent or received.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// The other end is gone.
    #[error("the connection was closed")]
    Closed,
    /// The other end did not go on in time.
    #[error("nothing came within {waited_ms} ms while {doing}")]
    Stalled {
        /// `sending a message`, `waiting for a message`.
        doing: &'static str,
        /// How long was waited.
        waited_ms: u64,
    },
    /// What came is no message.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A system call failed.
    #[error("{doing}: {source}")]
    System {
        /// What was tried.
        doing: &'static str,
        /// The system's answer.
        source: io::Error,
    },
}

/// A whole message.
#[derive(Debug)]
pub struct Message {
    /// Its first 16 bytes.
    pub header: Header,
    /// What is behind them.
    pub payload: Vec<u8>,
    /// The descriptors that came with it.
    pub files: Vec<OwnedFd>,
}

/// What was found while waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ready {
    /// There is something to be received (the end of the connection, perhaps).
    Readable,
    /// Nothing came in time.
    Nothing,
}

/// One end of a connection.
#[derive(Debug)]
pub struct Channel {
    socket: OwnedFd,
}

/// A moment until which something has to be done.
struct Deadline {
    doing: &'static str,
    start: Instant,
    timeout: Duration,
}

#[allow(clippy::disallowed_methods, reason = "the other end is a process of this machine and lives in its time")]
impl Deadline {
    fn new(doing: &'static str, timeout: Duration) -> Self {
        Self { doing, start: Instant::now(), timeout }
    }

    fn wait(&self, socket: BorrowedFd<'_>, flags: PollFlags) -> Result<(), ChannelError> {
        loop {
            let left = self.timeout.saturating_sub(self.start.elapsed());
            if wait(socket, flags, left).map_err(|source| ChannelError::System { doing: self.doing, source })? {
                return Ok(());
            }
            if self.start.elapsed() >= self.timeout {
                let waited_ms = u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX);
                return Err(ChannelError::Stalled { doing: self.doing, waited_ms });
            }
        }
    }
}

/// Whether the socket became ready; not if a signal arrived.
fn wait(socket: BorrowedFd<'_>, flags: PollFlags, timeout: Duration) -> io::Result<bool> {
    let timeout = Timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    };
    match poll(&mut [PollFd::from_borrowed_fd(socket, flags)], Some(&timeout)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

impl Channel {
    /// The connection that `socket` is one end of: a stream socket of the family Unix.
    pub fn new(socket: OwnedFd) -> Self {
        Self { socket }
    }

    /// Connects to the server that listens at `path`.
    ///
    /// # Errors
    /// The system's: nothing is there, nobody listens, the path is too long for a socket.
    pub fn connect(path: &Path) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
        Ok(Self { socket })
    }

    /// Waits until there is something to be received.
    ///
    /// # Errors
    /// The system's.
    pub fn wait(&self, timeout: Duration) -> io::Result<Ready> {
        let readable = wait(self.socket.as_fd(), PollFlags::IN, timeout)?;
        Ok(if readable { Ready::Readable } else { Ready::Nothing })
    }

    /// Whether the other end has closed the connection, or died.
    pub fn is_closed(&self) -> bool {
        let mut socket = [PollFd::new(&self.socket, PollFlags::RDHUP)];
        let gone = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
        poll(&mut socket, Some(&Timespec::default())).is_ok() && socket[0].revents().intersects(gone)
    }

    /// The socket, to be waited for together with others.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Sends a message: `header`, and behind it `parts`, whose lengths the header has.
    ///
    /// # Errors
    /// The other end is gone, or takes nothing for `timeout`.
    pub fn send(
        &self,
        header: &Header,
        parts: &[&[u8]],
        files: &[BorrowedFd<'_>],
        timeout: Duration,
    ) -> Result<(), ChannelError> {
        let doing = "sending a message";
        let deadline = Deadline::new(doing, timeout);
        let bytes = [&[header.as_bytes()], parts].concat().concat();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MOST))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !files.is_empty() && !control.push(SendAncillaryMessage::ScmRights(files)) {
            return Err(ChannelError::System { doing, source: Errno::TOOMANYREFS.into() });
        }
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            match sendmsg(&self.socket, &[IoSlice::new(rest)], &mut control, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)
            {
                Ok(sent) => {
                    rest = rest.get(sent..).unwrap_or_default();
                    control.clear();
                }
                Err(Errno::AGAIN) => deadline.wait(self.socket.as_fd(), PollFlags::OUT)?,
                Err(Errno::INTR) => {}
                Err(Errno::PIPE | Errno::CONNRESET) => return Err(ChannelError::Closed),
                Err(errno) => return Err(ChannelError::System { doing, source: errno.into() }),
            }
        }
        Ok(())
    }

    /// Receives the next message, with at most `payload_most` bytes behind its header.
    ///
    /// # Errors
    /// The other end is gone, does not send a whole message within `timeout`, or sends what is none.
    pub fn receive(&self, payload_most: usize, timeout: Duration) -> Result<Message, ChannelError> {
        let deadline = Deadline::new("waiting for a message", timeout);
        let mut files = Vec::new();
        let mut raw = [0; HEADER_BYTES];
        self.fill(&mut raw, &mut files, &deadline)?;
        let header = Header::read_from_bytes(&raw).map_err(|_| ChannelError::Closed)?;
        let mut payload = vec![0; header.payload_bytes(payload_most)?];
        self.fill(&mut payload, &mut files, &deadline)?;
        Ok(Message { header, payload, files })
    }

    fn fill(&self, into: &mut [u8], files: &mut Vec<OwnedFd>, deadline: &Deadline) -> Result<(), ChannelError> {
        let mut done = 0;
        while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MOST))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
            let received = match recvmsg(&self.socket, &mut [IoSliceMut::new(rest)], &mut control, flags) {
                Ok(received) => received,
                Err(Errno::AGAIN) => {
                    deadline.wait(self.socket.as_fd(), PollFlags::IN)?;
                    continue;
                }
                Err(Errno::INTR) => continue,
                Err(Errno::CONNRESET) => return Err(ChannelError::Closed),
                Err(errno) => return Err(ChannelError::System { doing: deadline.doing, source: errno.into() }),
            };
            for message in control.drain() {
                if let RecvAncillaryMessage::ScmRights(received) = message {
                    files.extend(received);
                }
            }
            // What did not fit was closed by the system; what is left would belong to the wrong message.
            if received.flags.contains(ReturnFlags::CTRUNC) || files.len() > FILES_MOST {
                return Err(WireError::Impossible { what: "number of descriptors", value: files.len() as u64 }.into());
            }
            if received.bytes == 0 {
                return Err(ChannelError::Closed);
            }
            done += received.bytes;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Command, MessageKind, PAYLOAD_BYTES_MOST};

    const SOON: Duration = Duration::from_millis(20);
    const LONG: Duration = Duration::from_secs(20);

    fn pair() -> (Channel, Channel) {
        let flags = SocketFlags::CLOEXEC;
        let (one, other) = rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
        (Channel::new(one), Channel::new(other))
    }

    #[test]
    fn messages_keep_their_borders_and_their_descriptors() {
        let (client, server) = pair();
        let file = rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        client.send(&Header::command(1, Command::DMA_MAP, 3), &[&[1, 2], &[3]], &[file.as_fd()], LONG).unwrap();
        client.send(&Header::command(2, Command::DEVICE_RESET, 0), &[], &[], LONG).unwrap();
        let first = server.receive(100, LONG).unwrap();
        assert_eq!((first.header.message_id(), first.header.what()), (1, Command::DMA_MAP));
        assert_eq!((first.payload.as_slice(), first.files.len()), ([1, 2, 3].as_slice(), 1));
        let second = server.receive(100, LONG).unwrap();
        assert_eq!((second.header.message_id(), second.files.len()), (2, 0));
        assert_eq!(second.header.kind(), Ok(MessageKind::Command));
    }

    #[test]
    fn a_message_larger_than_the_socket_holds_goes_through() {
        let (client, server) = pair();
        let data = vec![7; PAYLOAD_BYTES_MOST];
        let header = Header::command(1, Command::REGION_WRITE, data.len());
        std::thread::scope(|scope| {
            scope.spawn(|| client.send(&header, &[&data], &[], LONG).unwrap());
            assert_eq!(server.receive(PAYLOAD_BYTES_MOST, LONG).unwrap().payload, data);
        });
    }

    #[test]
    fn an_end_that_stalls_or_dies_in_the_middle_of_a_message_is_found_out() {
        let (client, server) = pair();
        assert!(matches!(server.receive(100, SOON), Err(ChannelError::Stalled { .. })));
        client.send(&Header::command(1, Command::REGION_READ, 16), &[&[0; 7]], &[], LONG).unwrap();
        assert!(matches!(server.receive(100, SOON), Err(ChannelError::Stalled { .. })));
        client.send(&Header::command(1, Command::REGION_READ, 16), &[&[0; 7]], &[], LONG).unwrap();
        assert!(!server.is_closed());
        drop(client);
        assert!(server.is_closed());
        assert!(matches!(server.receive(100, LONG), Err(ChannelError::Closed)));
    }

    #[test]
    fn a_reader_that_takes_nothing_is_found_out() {
        let (client, _server) = pair();
        let data = vec![0; 4 << 20];
        let header = Header::command(1, Command::REGION_WRITE, data.len());
        assert!(matches!(client.send(&header, &[&data], &[], SOON), Err(ChannelError::Stalled { .. })));
    }

    #[test]
    fn more_than_the_limit_is_neither_read_nor_allocated() {
        let (client, server) = pair();
        client.send(&Header::command(1, Command::REGION_WRITE, 101), &[], &[], LONG).unwrap();
        assert!(matches!(server.receive(100, LONG), Err(ChannelError::Wire(WireError::TooLong { .. }))));
    }
}
