//! One client, from its first message to its last.
//!
//! Each request is answered by its data or by an error number. Only what makes the stream unreadable, and a client that
//! does not begin or go on in time, ends the connection.
#![forbid(unsafe_code)]

use core::fmt;
use core::time::Duration;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use nvmetal_core::register::offset;
use nvmetal_vfio_user_wire::message::{
    DEVICE_PCI, DEVICE_RESET, DMA_READ, DMA_WRITE, DeviceInfo, DmaMap, DmaUnmap, IRQ_ACTION_TRIGGER, IRQ_DATA_BOOL,
    IRQ_DATA_EVENTFD, IRQ_DATA_NONE, IRQ_EVENTFD, IRQ_MSIX, IrqInfo, PCI_IRQS, PCI_REGIONS, REGION_BAR0, REGION_CONFIG,
    RegionAccess, RegionHead, SetIrqs, UNMAP_ALL, UNMAP_DIRTY,
};
use nvmetal_vfio_user_wire::region::{Area, MMAP, READ, RegionInfo, WRITE};
use nvmetal_vfio_user_wire::version::{self, Capabilities};
use nvmetal_vfio_user_wire::{
    Channel, ChannelError, Command, DATA_BYTES_MOST, FILES_MOST, Header, Message, MessageKind, PAYLOAD_BYTES_MOST,
    WireError,
};
use rustix::io::Errno;
use zerocopy::IntoBytes;

use crate::guest_memory::{MapError, SharedWords};

use super::config::Config;
use super::{Server, file, wait_for_message};

/// A client says which version it speaks, and ends a message that it has begun, within this time.
const IN_TIME: Duration = Duration::from_secs(5);
/// Registers, doorbells, and at 1 MiB the MSI-X table, which is the client's own to keep.
const BAR0_BYTES: u64 = 2 << 20;
const CONFIG_BYTES: u64 = 4096;
const PAGE_BYTES: u64 = 4096;
/// Ranges of memory that may be mapped at a time.
const RANGES_MOST: usize = 4096;
const DOORBELLS: u64 = offset::DOORBELLS;

/// How a connection ended that was not simply closed.
#[derive(Debug)]
pub(super) enum End {
    /// What came was none of the protocol's messages, or did not come.
    Channel(ChannelError),
    /// The system.
    System(io::Error),
    /// The first message was not VERSION, or of a version that is not spoken here.
    NoVersion,
    /// A message that only answers, and nothing was asked.
    Reply,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Channel(error) => error.fmt(f),
            Self::System(error) => error.fmt(f),
            Self::NoVersion => f.write_str("it does not speak version 0.x of vfio-user"),
            Self::Reply => f.write_str("it answered what nobody had asked"),
        }
    }
}

/// What a request is answered with.
#[derive(Default)]
struct Answer {
    payload: Vec<u8>,
    /// Whether the doorbells' file goes with it.
    doorbells: bool,
}

impl<T: AsRef<[u8]>> From<T> for Answer {
    fn from(payload: T) -> Self {
        Self { payload: payload.as_ref().to_vec(), doorbells: false }
    }
}

/// A range of memory that the client has mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    iova: u64,
    bytes: u64,
    /// Whether the controller reaches it: memory without a file, or that may not be read and written, it does not.
    reached: bool,
}

/// A client and what it has set up.
pub(super) struct Client<'a> {
    channel: Channel,
    server: &'a Server,
    config: Config,
    /// New for each client: one that is gone may have its doorbells mapped still.
    doorbells: Arc<SharedWords>,
    /// Bytes of whole pages that have doorbells.
    doorbell_bytes: u64,
    ranges: Vec<Range>,
    messages: u64,
}

impl<'a> Client<'a> {
    pub(super) fn new(channel: Channel, server: &'a Server) -> io::Result<Self> {
        let queues = server.machine.call(|emulator| usize::from(emulator.options().queues) + 1);
        let doorbells = Arc::new(SharedWords::new(BAR0_BYTES, DOORBELLS as usize, 2 * queues)?);
        let shared = Arc::clone(&doorbells);
        server.machine.call(|emulator| emulator.share_doorbells_outside(shared));
        let doorbell_bytes = (8 * queues as u64).next_multiple_of(PAGE_BYTES);
        let config = Config::new(BAR0_BYTES);
        Ok(Self { channel, server, config, doorbells, doorbell_bytes, ranges: Vec::new(), messages: 0 })
    }

    /// Messages that were answered.
    pub(super) fn messages(&self) -> u64 {
        self.messages
    }

    /// Answers messages until the client closes the connection or the server should end.
    pub(super) fn serve(&mut self, stop: &dyn Fn() -> bool) -> Result<(), End> {
        self.agree_on_version()?;
        while wait_for_message(&self.channel, stop).map_err(End::System)?.is_some() {
            let message = match self.channel.receive(PAYLOAD_BYTES_MOST, IN_TIME) {
                Ok(message) => message,
                Err(ChannelError::Closed) => return Ok(()),
                Err(error) => return Err(End::Channel(error)),
            };
            if message.header.kind().map_err(|error| End::Channel(error.into()))? == MessageKind::Reply {
                return Err(End::Reply);
            }
            let header = message.header;
            let answer = self.answer(message);
            self.reply(&header, answer)?;
        }
        Ok(())
    }

    fn agree_on_version(&mut self) -> Result<(), End> {
        let first = match self.channel.receive(PAYLOAD_BYTES_MOST, IN_TIME) {
            Ok(first) => first,
            Err(ChannelError::Closed) => return Ok(()),
            Err(error) => return Err(End::Channel(error)),
        };
        let asked = version::decode(&first.payload).ok().filter(|_| first.header.what() == Command::VERSION);
        let Some((asked, _)) = asked.filter(|(asked, _)| asked.major.get() == version::MAJOR) else {
            self.reply(&first.header, Err(Errno::INVAL))?;
            return Err(End::NoVersion);
        };
        let mut answer = version::encode(&Capabilities {
            max_msg_fds: FILES_MOST as u32,
            max_data_xfer_size: DATA_BYTES_MOST,
            max_dma_maps: RANGES_MOST as u32,
            pgsizes: PAGE_BYTES,
        });
        // The lower of both minor versions is spoken.
        let minor = asked.minor.get().min(version::MINOR);
        answer.iter_mut().skip(2).zip(minor.to_le_bytes()).for_each(|(place, byte)| *place = byte);
        self.reply(&first.header, Ok(answer.into()))
    }

    fn reply(&mut self, asked: &Header, answer: Result<Answer, Errno>) -> Result<(), End> {
        self.messages += 1;
        if let Err(errno) = &answer {
            log::debug!("{} refused: {errno}", asked.what());
        }
        if asked.wants_no_reply() {
            return Ok(());
        }
        let sent = match answer {
            Ok(answer) => {
                let files = [self.doorbells.file()];
                let files = if answer.doorbells { files.as_slice() } else { &[] };
                self.channel.send(&Header::reply(asked, answer.payload.len()), &[&answer.payload], files, IN_TIME)
            }
            Err(errno) => self.channel.send(&Header::failure(asked, errno.raw_os_error()), &[], &[], IN_TIME),
        };
        match sent {
            // The next look at the connection finds it closed.
            Ok(()) | Err(ChannelError::Closed) => Ok(()),
            Err(error) => Err(End::Channel(error)),
        }
    }

    fn answer(&mut self, message: Message) -> Result<Answer, Errno> {
        let payload = message.payload.as_slice();
        match message.header.what() {
            Command::DEVICE_GET_INFO => device_info(payload),
            Command::DEVICE_GET_REGION_INFO => self.region_info(payload),
            Command::DEVICE_GET_IRQ_INFO => self.irq_info(payload),
            Command::DEVICE_SET_IRQS => self.set_irqs(payload, message.files),
            Command::REGION_READ => self.region_read(payload),
            Command::REGION_WRITE => self.region_write(payload),
            Command::DMA_MAP => self.map(payload, &message.files),
            Command::DMA_UNMAP => self.unmap(payload),
            Command::DEVICE_RESET => {
                self.server.machine.call(crate::Emulator::function_reset);
                Ok(Answer::default())
            }
            _ => Err(Errno::OPNOTSUPP),
        }
    }

    fn region_info(&self, payload: &[u8]) -> Result<Answer, Errno> {
        let (asked, _) = RegionHead::take(payload).map_err(|error| invalid(&error))?;
        let (index, argsz) = (asked.index.get(), asked.argsz.get());
        if index >= PCI_REGIONS || (argsz as usize) < size_of::<RegionHead>() {
            return Err(Errno::INVAL);
        }
        let mut info = RegionInfo { index, ..RegionInfo::default() };
        match index {
            REGION_BAR0 => {
                info.bytes = BAR0_BYTES;
                info.flags = READ | WRITE | MMAP;
                info.sparse = Some(vec![Area::new(DOORBELLS, self.doorbell_bytes)]);
            }
            REGION_CONFIG => {
                info.bytes = CONFIG_BYTES;
                info.flags = READ | WRITE;
            }
            _ => {}
        }
        let payload = info.encode(argsz);
        let doorbells = info.sparse.is_some() && payload.len() > size_of::<RegionHead>();
        Ok(Answer { payload, doorbells })
    }

    fn vectors(&self) -> u32 {
        self.server.machine.call(|emulator| u32::from(emulator.vectors()))
    }

    fn irq_info(&self, payload: &[u8]) -> Result<Answer, Errno> {
        let (asked, _) = IrqInfo::take(payload).map_err(|error| invalid(&error))?;
        let index = asked.index.get();
        if index >= PCI_IRQS || (asked.argsz.get() as usize) < size_of::<IrqInfo>() {
            return Err(Errno::INVAL);
        }
        let count = if index == IRQ_MSIX { self.vectors() } else { 0 };
        let info = IrqInfo {
            argsz: (size_of::<IrqInfo>() as u32).into(),
            flags: IRQ_EVENTFD.into(),
            index: index.into(),
            count: count.into(),
        };
        Ok(info.as_bytes().into())
    }

    fn set_irqs(&self, payload: &[u8], files: Vec<OwnedFd>) -> Result<Answer, Errno> {
        let (asked, data) = SetIrqs::take(payload).map_err(|error| invalid(&error))?;
        let range = asked.vectors().map_err(|error| invalid(&error))?;
        let most = if asked.index.get() == IRQ_MSIX { self.vectors() } else { 0 };
        if asked.index.get() >= PCI_IRQS || range.end > most {
            return Err(Errno::INVAL);
        }
        let vectors = range.start as usize..range.end as usize;
        let irqs = &self.server.irqs;
        match asked.flags.get() {
            flags if flags == IRQ_DATA_NONE | IRQ_ACTION_TRIGGER && vectors.is_empty() => irqs.clear(),
            flags if flags == IRQ_DATA_NONE | IRQ_ACTION_TRIGGER => vectors.for_each(|vector| irqs.signal(vector)),
            flags if flags == IRQ_DATA_BOOL | IRQ_ACTION_TRIGGER => {
                if data.len() < vectors.len() {
                    return Err(Errno::INVAL);
                }
                vectors.zip(data).filter(|(_, wanted)| **wanted != 0).for_each(|(vector, _)| irqs.signal(vector));
            }
            flags if flags == IRQ_DATA_EVENTFD | IRQ_ACTION_TRIGGER => {
                if files.len() > vectors.len() {
                    return Err(Errno::INVAL);
                }
                files.iter().try_for_each(file::check_event)?;
                // A vector for which there is no descriptor loses the one that it had.
                let mut files = files.into_iter();
                vectors.for_each(|vector| irqs.set(vector, files.next()));
            }
            _ => return Err(Errno::INVAL),
        }
        Ok(Answer::default())
    }

    fn region_read(&self, payload: &[u8]) -> Result<Answer, Errno> {
        let asked = RegionAccess::take_read(payload).map_err(|error| invalid(&error))?;
        let (at, count) = (asked.offset.get(), asked.count.get());
        let data = match asked.region.get() {
            REGION_BAR0 => {
                let bytes = register_bytes(at, count)?;
                let value =
                    if at < DOORBELLS { self.server.machine.call(|emulator| emulator.read(at, bytes)) } else { 0 };
                value.to_le_bytes().get(..usize::from(bytes)).unwrap_or_default().to_vec()
            }
            REGION_CONFIG => {
                let range = within(at, count, CONFIG_BYTES)?;
                let (mut space, removed) =
                    self.server.machine.call(|emulator| (emulator.endpoint_config(), emulator.is_removed()));
                if !removed {
                    self.config.apply(&mut space);
                }
                space.get(range).ok_or(Errno::INVAL)?.to_vec()
            }
            _ => return Err(Errno::INVAL),
        };
        Ok([asked.as_bytes(), &data].concat().into())
    }

    fn region_write(&mut self, payload: &[u8]) -> Result<Answer, Errno> {
        let (asked, data) = RegionAccess::take_with_data(payload).map_err(|error| invalid(&error))?;
        let (at, count) = (asked.offset.get(), asked.count.get());
        match asked.region.get() {
            REGION_BAR0 => {
                let bytes = register_bytes(at, count)?;
                let mut raw = [0; 8];
                raw.iter_mut().zip(data).for_each(|(place, byte)| *place = *byte);
                let value = u64::from_le_bytes(raw);
                if at < DOORBELLS {
                    self.server.machine.call(|emulator| emulator.write(at, bytes, value));
                } else if bytes == 4 {
                    self.ring(at, value as u32);
                }
            }
            REGION_CONFIG => {
                let range = within(at, count, CONFIG_BYTES)?;
                self.config.write(range.start, data);
                self.server.memory.set_bus_master(self.config.bus_master());
            }
            _ => return Err(Errno::INVAL),
        }
        Ok(asked.as_bytes().into())
    }

    /// A doorbell by message: the controller looks at the mapped ones, so that is where it goes. Behind the doorbells
    /// there is nothing that a write has an effect on.
    fn ring(&self, at: u64, value: u32) {
        let index = usize::try_from((at - DOORBELLS) / 4).unwrap_or(usize::MAX);
        if let Some(doorbell) = self.doorbells.get(index) {
            // Release: what the client wrote before it sent the message is there before the doorbell.
            doorbell.store(value, Ordering::Release);
            self.server.machine.wake();
        }
    }

    fn map(&mut self, payload: &[u8], files: &[OwnedFd]) -> Result<Answer, Errno> {
        let (asked, _) = DmaMap::take(payload).map_err(|error| invalid(&error))?;
        let (iova, bytes, at) = (asked.iova.get(), asked.bytes.get(), asked.file_offset.get());
        let pages = [iova, bytes, at].iter().all(|value| value.is_multiple_of(PAGE_BYTES));
        let end = iova.checked_add(bytes).ok_or(Errno::INVAL)?;
        if !pages || bytes == 0 || files.len() > 1 {
            return Err(Errno::INVAL);
        }
        if self.ranges.len() >= RANGES_MOST {
            return Err(Errno::NOSPC);
        }
        if self.ranges.iter().any(|range| range.iova < end && iova < range.iova + range.bytes) {
            return Err(Errno::EXIST);
        }
        let both = DMA_READ | DMA_WRITE;
        let file = files.first().filter(|_| asked.flags.get() & both == both);
        if let Some(file) = file {
            file::check_memory(file, at.checked_add(bytes).ok_or(Errno::INVAL)?, self.server.trust)?;
            self.server.memory.map_file(iova, file.as_fd(), at, bytes).map_err(|error| errno(&error))?;
        }
        self.ranges.push(Range { iova, bytes, reached: file.is_some() });
        Ok(Answer::default())
    }

    fn unmap(&mut self, payload: &[u8]) -> Result<Answer, Errno> {
        let (asked, _) = DmaUnmap::take(payload).map_err(|error| invalid(&error))?;
        let (iova, bytes, flags) = (asked.iova.get(), asked.bytes.get(), asked.flags.get());
        if flags & UNMAP_DIRTY != 0 {
            return Err(Errno::OPNOTSUPP);
        }
        if flags & UNMAP_ALL != 0 {
            self.ranges.clear();
            self.server.memory.clear();
            return Ok(asked.as_bytes().into());
        }
        let found = self.ranges.iter().position(|range| (range.iova, range.bytes) == (iova, bytes));
        let range = self.ranges.swap_remove(found.ok_or(Errno::NOENT)?);
        if range.reached {
            self.server.memory.unmap(iova, bytes).map_err(|error| errno(&error))?;
        }
        Ok(asked.as_bytes().into())
    }
}

fn device_info(payload: &[u8]) -> Result<Answer, Errno> {
    let (asked, _) = DeviceInfo::take(payload).map_err(|error| invalid(&error))?;
    if (asked.argsz.get() as usize) < size_of::<DeviceInfo>() {
        return Err(Errno::INVAL);
    }
    let info = DeviceInfo {
        argsz: (size_of::<DeviceInfo>() as u32).into(),
        flags: (DEVICE_RESET | DEVICE_PCI).into(),
        regions: PCI_REGIONS.into(),
        irqs: PCI_IRQS.into(),
    };
    Ok(info.as_bytes().into())
}

/// The width of an access to registers: one that hardware has, aligned, inside of BAR0.
fn register_bytes(at: u64, count: u32) -> Result<u8, Errno> {
    within(at, count, BAR0_BYTES)?;
    match count {
        1 | 2 | 4 | 8 if at.is_multiple_of(count.into()) => Ok(count as u8),
        _ => Err(Errno::INVAL),
    }
}

fn within(at: u64, count: u32, bytes: u64) -> Result<core::ops::Range<usize>, Errno> {
    let end = at.checked_add(count.into()).filter(|end| *end <= bytes && count > 0).ok_or(Errno::INVAL)?;
    Ok(at as usize..end as usize)
}

fn invalid(error: &WireError) -> Errno {
    log::debug!("{error}");
    Errno::INVAL
}

fn errno(error: &MapError) -> Errno {
    log::debug!("{error}");
    match error {
        MapError::Overlap { .. } => Errno::EXIST,
        MapError::NotMapped { .. } => Errno::NOENT,
        MapError::System { source, .. } => Errno::from_io_error(source).unwrap_or(Errno::NOMEM),
    }
}
