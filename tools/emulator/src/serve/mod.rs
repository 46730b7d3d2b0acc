//! The emulator behind a socket: a vfio-user server.
//!
//! Whoever connects gets a PCI device with an NVMe controller on it, as a virtual machine or another process's driver
//! would get one from real hardware: registers and configuration space by message, doorbells in a page that it maps,
//! interrupts through its eventfds, and a controller that reaches the memory that it has mapped for it, and nothing else.
//! Time is real here: the controller runs on a thread of its own (`machine`).
//!
//! One client at a time. When it is gone, however that came about, the controller is reset, its memory is let go and the
//! next one is taken; what was written to the drive stays, as on a drive that changes its computer.
//!
//! # What a client cannot do
//!
//! It is not trusted (the table says where that is kept).
//!
//! | it sends | what happens | where |
//! |---|---|---|
//! | a message that is too long, cut short, or none | the connection ends | `nvmetal-vfio-user-wire` |
//! | a request that makes no sense | an error number, and the connection goes on | `client` |
//! | nothing, in the middle of a message or instead of the first | the connection ends after 5 s | `client` |
//! | memory that its owner could shrink (touching it would end this process) | refused, unless [`Trust`] says else | `file` |
//! | addresses in commands that it has not mapped | a DMA fault | [`crate::GuestMemory`] |
//! | a descriptor that is no eventfd, which could block the controller | refused | `file` |
//! | doorbells without end or sense | an error event, or the controller's fatal status | `crate::controller` |
//!
//! What it can do is fill the drive: data lies in this process's memory, up to the capacity.
#![forbid(unsafe_code)]

mod client;
mod config;
mod file;
mod irq;
mod machine;

use core::time::Duration;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nvmetal_vfio_user_wire::{Channel, Ready};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::guest_memory::GuestMemory;
use crate::options::Options;

use self::client::Client;
use self::irq::Irqs;
use self::machine::Machine;

/// Connections that wait for their turn.
const BACKLOG: i32 = 16;
/// How often a waiting server looks whether it should end.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Whether clients' memory may be such that the client can make this process end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Trust {
    /// Only memory that is, or can be, sealed against shrinking.
    #[default]
    Sealed,
    /// Any file. A client that shrinks it ends the server by SIGBUS. Drivers that take their memory from hugetlbfs need it.
    Unsealed,
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Another server listens there.
    #[error("{}: a server listens there already", path.display())]
    InUse {
        /// The socket.
        path: PathBuf,
    },
    /// Something else has the name.
    #[error("{}: there is a file that is no socket", path.display())]
    NotASocket {
        /// The path.
        path: PathBuf,
    },
    /// A system call failed.
    #[error("{}: {doing}: {source}", path.display())]
    System {
        /// The socket.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// The system's answer.
        source: io::Error,
    },
}

/// What a server tells of its clients.
#[derive(Debug)]
pub enum Event {
    /// A client is there.
    Connected,
    /// It is gone.
    Gone {
        /// Why, if it did not simply close the connection.
        why: Option<String>,
        /// Messages that were answered.
        messages: u64,
    },
}

/// An emulated drive that waits for clients. Dropping it removes the socket.
#[derive(Debug)]
pub struct Server {
    listener: OwnedFd,
    path: PathBuf,
    trust: Trust,
    machine: Machine,
    memory: Arc<GuestMemory>,
    irqs: Arc<Irqs>,
}

impl Server {
    /// Makes the drive and listens at `path`. A socket that a server left behind there is replaced.
    ///
    /// # Errors
    /// Something has that name already, or the system refuses.
    pub fn bind(path: &Path, options: Options, trust: Trust) -> Result<Self, ServeError> {
        let listener = listen(path)?;
        let memory = Arc::new(GuestMemory::new());
        let irqs = Arc::new(Irqs::default());
        let machine = Machine::start(options, Arc::clone(&memory), Arc::clone(&irqs))
            .map_err(|source| system(path, "starting the controller's thread", source))?;
        Ok(Self { listener, path: path.to_owned(), trust, machine, memory, irqs })
    }

    /// Serves one client after another until `stop` says so, which is asked ten times a second.
    ///
    /// # Errors
    /// No more clients can be taken. A client that fails is no error.
    pub fn run(&self, stop: &dyn Fn() -> bool, tell: &mut dyn FnMut(&Event)) -> Result<(), ServeError> {
        while let Some(channel) = self.accept(stop)? {
            tell(&Event::Connected);
            self.reset();
            let mut client = Client::new(channel, self).map_err(|error| self.failed("sharing doorbells", error))?;
            let ended = client.serve(stop);
            let messages = client.messages();
            drop(client);
            self.reset();
            tell(&Event::Gone { why: ended.err().map(|end| end.to_string()), messages });
        }
        Ok(())
    }

    /// Nothing of a client is left: no memory, no interrupt, no queue.
    fn reset(&self) {
        self.memory.set_bus_master(false);
        self.irqs.clear();
        self.machine.call(crate::Emulator::function_reset);
        self.memory.clear();
    }

    fn accept(&self, stop: &dyn Fn() -> bool) -> Result<Option<Channel>, ServeError> {
        loop {
            if stop() {
                return Ok(None);
            }
            match rustix::net::accept_with(&self.listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(socket) => return Ok(Some(Channel::new(socket))),
                Err(Errno::AGAIN) => {
                    file::wait(&self.listener, LOOK_EVERY).map_err(|error| self.failed("poll", error))?;
                }
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(errno) => return Err(self.failed("accept", errno.into())),
            }
        }
    }

    fn failed(&self, doing: &'static str, source: io::Error) -> ServeError {
        system(&self.path, doing, source)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            log::debug!("{}: the socket stays: {error}", self.path.display());
        }
    }
}

fn system(path: &Path, doing: &'static str, source: io::Error) -> ServeError {
    ServeError::System { path: path.to_owned(), doing, source }
}

fn listen(path: &Path) -> Result<OwnedFd, ServeError> {
    let failed = |doing| move |errno: Errno| system(path, doing, errno.into());
    let address = SocketAddrUnix::new(path).map_err(failed("a socket of this name (at most 107 bytes)"))?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let listener = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
        .map_err(failed("making a socket"))?;
    match rustix::net::bind(&listener, &address) {
        Err(Errno::ADDRINUSE) => {
            remove_left_behind(path)?;
            rustix::net::bind(&listener, &address)
        }
        other => other,
    }
    .map_err(failed("binding the socket"))?;
    rustix::net::listen(&listener, BACKLOG).map_err(failed("listening"))?;
    Ok(listener)
}

/// Removes the socket of a server that was killed, and nothing else.
fn remove_left_behind(path: &Path) -> Result<(), ServeError> {
    let metadata = std::fs::symlink_metadata(path).map_err(|error| system(path, "looking at what is there", error))?;
    if !metadata.file_type().is_socket() {
        return Err(ServeError::NotASocket { path: path.to_owned() });
    }
    match Channel::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(|error| system(path, "removing what a server left behind", error))
        }
        Ok(_) => Err(ServeError::InUse { path: path.to_owned() }),
        Err(error) => Err(system(path, "asking who listens", error)),
    }
}

/// Waits for the next message; `None` if the server should end.
fn wait_for_message(channel: &Channel, stop: &dyn Fn() -> bool) -> io::Result<Option<()>> {
    while channel.wait(LOOK_EVERY)? == Ready::Nothing {
        if stop() {
            return Ok(None);
        }
    }
    Ok(Some(()))
}

#[cfg(test)]
mod tests;
