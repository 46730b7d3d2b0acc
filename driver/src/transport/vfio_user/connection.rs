//! Requests and their replies, one at a time, each by a deadline.
//!
//! A connection on which something went wrong is over: where the next message begins, or whom a late reply answers, is
//! not known any more. The first reason is kept, and every later request ends with it at once.
#![forbid(unsafe_code)]

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

use nvmetal_vfio_user_wire::message::RegionAccess;
use nvmetal_vfio_user_wire::version::{self, Capabilities};
use nvmetal_vfio_user_wire::{
    Channel, ChannelError, Command, DATA_BYTES_MOST, Header, Message, MessageKind, PAYLOAD_BYTES_MOST, WireError,
};
use rustix::io::Errno;
use zerocopy::IntoBytes;

use crate::transport::TransportError;

/// Requests of the server's that are answered while one reply is waited for.
const INTERRUPTIONS_MOST: u32 = 64;

/// How a request ended that was not carried out.
#[derive(Debug)]
pub(super) enum Failed {
    /// The server said no; the connection goes on.
    Refused(Command, Errno),
    /// The connection is over.
    Over(TransportError),
}

impl Failed {
    /// The error for the caller.
    pub(super) fn error(self, address: &str) -> TransportError {
        match self {
            Self::Refused(command, errno) => TransportError::System {
                address: address.to_owned(),
                what: format!("{command} was refused"),
                source: errno.into(),
            },
            Self::Over(error) => error,
        }
    }
}

/// What ended a connection.
#[derive(Debug)]
enum Reason {
    Lost(String),
    Protocol(String),
}

/// The client's end of a connection.
#[derive(Debug)]
pub(super) struct Connection {
    channel: Channel,
    address: String,
    timeout: Duration,
    /// The number of the next request.
    next_id: Mutex<u16>,
    /// What the server takes at most.
    limits: Capabilities,
    over: AtomicBool,
    reason: OnceLock<Reason>,
}

impl Connection {
    /// Connects, and agrees with the server on version and limits.
    pub(super) fn open(path: &Path, address: &str, timeout: Duration) -> Result<Self, TransportError> {
        let channel = Channel::connect(path).map_err(|source| TransportError::System {
            address: address.to_owned(),
            what: "connecting to the server".to_owned(),
            source,
        })?;
        let mut connection = Self {
            channel,
            address: address.to_owned(),
            timeout,
            next_id: Mutex::new(1),
            limits: Capabilities::default(),
            over: AtomicBool::new(false),
            reason: OnceLock::new(),
        };
        connection.agree_on_version().map_err(|failed| failed.error(address))?;
        Ok(connection)
    }

    fn agree_on_version(&mut self) -> Result<(), Failed> {
        let ours = Capabilities { max_msg_fds: 8, max_data_xfer_size: DATA_BYTES_MOST, ..Capabilities::default() };
        let reply = self.request(Command::VERSION, &[&version::encode(&ours)], &[])?;
        let (spoken, limits) = version::decode(&reply.payload).map_err(|error| self.nonsense(&error))?;
        if spoken.major.get() != version::MAJOR {
            let value = spoken.major.get().into();
            return Err(self.nonsense(&WireError::Impossible { what: "major version", value }));
        }
        self.limits = limits;
        Ok(())
    }

    /// Descriptors that one message may carry; at least 1.
    pub(super) fn files_most(&self) -> usize {
        (self.limits.max_msg_fds as usize).clamp(1, nvmetal_vfio_user_wire::FILES_MOST)
    }

    /// Bytes of data that one message may carry; at least 8.
    pub(super) fn data_bytes_most(&self) -> u32 {
        self.limits.max_data_xfer_size.clamp(8, DATA_BYTES_MOST)
    }

    /// The socket, to be waited for together with an interrupt.
    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.channel.socket()
    }

    /// Whether the connection is over. Looks.
    pub(super) fn is_over(&self) -> bool {
        if !self.over.load(Ordering::Relaxed) && self.channel.is_closed() {
            self.end(Reason::Lost("the server has closed the connection, or died".to_owned()));
        }
        self.over.load(Ordering::Relaxed)
    }

    /// Sends a request and waits for its reply, whose payload has yet to be looked at.
    pub(super) fn request(
        &self,
        command: Command,
        parts: &[&[u8]],
        files: &[BorrowedFd<'_>],
    ) -> Result<Message, Failed> {
        // One request at a time: the lock is held until the reply is there.
        let mut next_id = self.next_id.lock().unwrap_or_else(PoisonError::into_inner);
        if self.over.load(Ordering::Relaxed) {
            return Err(Failed::Over(self.error()));
        }
        let id = *next_id;
        *next_id = id.wrapping_add(1);
        let bytes = parts.iter().map(|part| part.len()).sum();
        let over = |error| self.channel_failed(command, error);
        self.channel.send(&Header::command(id, command, bytes), parts, files, self.timeout).map_err(over)?;
        for _ in 0..INTERRUPTIONS_MOST {
            let message = self.channel.receive(PAYLOAD_BYTES_MOST, self.timeout).map_err(over)?;
            let header = message.header;
            match header.kind().map_err(|error| self.nonsense(&error))? {
                MessageKind::Reply if (header.message_id(), header.what()) == (id, command) => {
                    return match header.failed_with() {
                        Some(errno) => Err(Failed::Refused(command, Errno::from_raw_os_error(errno.min(4095)))),
                        None => Ok(message),
                    };
                }
                MessageKind::Reply => {
                    let value = header.message_id().into();
                    return Err(self.nonsense(&WireError::Impossible { what: "reply to message", value }));
                }
                // Servers read and write memory by message only where they could not map it; ours always has a file.
                MessageKind::Command if header.wants_no_reply() => {}
                MessageKind::Command => {
                    let no = Header::failure(&header, Errno::OPNOTSUPP.raw_os_error());
                    self.channel.send(&no, &[], &[], self.timeout).map_err(over)?;
                }
            }
        }
        let value = INTERRUPTIONS_MOST.into();
        Err(self.nonsense(&WireError::Impossible { what: "number of requests instead of a reply", value }))
    }

    /// Reads `into.len()` bytes of a region.
    pub(super) fn read(&self, region: u32, offset: u64, into: &mut [u8]) -> Result<(), Failed> {
        let asked = RegionAccess::new(region, offset, u32::try_from(into.len()).unwrap_or(u32::MAX));
        let reply = self.request(Command::REGION_READ, &[asked.as_bytes()], &[])?;
        let (_, data) = RegionAccess::take_with_data(&reply.payload).map_err(|error| self.nonsense(&error))?;
        if data.len() != into.len() {
            let value = data.len() as u64;
            return Err(self.nonsense(&WireError::Impossible { what: "length of the data read", value }));
        }
        into.copy_from_slice(data);
        Ok(())
    }

    /// Writes bytes of a region.
    pub(super) fn write(&self, region: u32, offset: u64, data: &[u8]) -> Result<(), Failed> {
        let asked = RegionAccess::new(region, offset, u32::try_from(data.len()).unwrap_or(u32::MAX));
        self.request(Command::REGION_WRITE, &[asked.as_bytes(), data], &[]).map(drop)
    }

    fn channel_failed(&self, command: Command, error: ChannelError) -> Failed {
        if let ChannelError::Wire(error) = error {
            return self.nonsense(&error);
        }
        let hint = if matches!(error, ChannelError::Stalled { .. }) && command == Command::VERSION {
            "; the server may be busy with another client"
        } else {
            ""
        };
        self.end(Reason::Lost(format!("{command}: {error}{hint}")));
        Failed::Over(self.error())
    }

    /// The server sent what cannot be.
    pub(super) fn nonsense(&self, error: &WireError) -> Failed {
        self.end(Reason::Protocol(format!("the server broke the vfio-user protocol: {error}")));
        Failed::Over(self.error())
    }

    fn end(&self, reason: Reason) {
        self.reason.get_or_init(|| reason);
        self.over.store(true, Ordering::Relaxed);
    }

    fn error(&self) -> TransportError {
        let address = self.address.clone();
        match self.reason.get() {
            Some(Reason::Protocol(detail)) => TransportError::Protocol { address, detail: detail.clone() },
            Some(Reason::Lost(detail)) => TransportError::Lost { address, detail: detail.clone() },
            None => TransportError::Lost { address, detail: "the connection is over".to_owned() },
        }
    }
}
