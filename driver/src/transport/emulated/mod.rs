//! The transport `emulated`: the emulator of this project, in this process.
//!
//! It lives in one of two times. **Stepped**, time is virtual: nothing runs by itself, and waiting moves the clock to what
//! happens next (`stepped`). **Threaded**, time is real: the controller has a thread of its own, and doorbells are words
//! in memory that it looks at (`threaded`). The controller is the same in both, and so is the driver above.
#![deny(unsafe_code)]

mod cells;
mod stepped;
mod threaded;

use core::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use memmap2::MmapOptions;
use nvmetal_core::register::offset;
use nvmetal_emulator::{ClockKind, Emulator, GuestMemory, Options, OptionsError};

use self::stepped::Stepped;
use self::threaded::Threaded;
use super::{
    CalledDoorbell, DoorbellKind, DoorbellTarget, HostRange, Interrupt, Signals, Transport, TransportError,
    TransportInfo, TransportKind, Unmapped, Waiting,
};
use crate::clock::Clock;
use crate::dma::DeviceMapping;

/// The first IOVA that is given out.
const FIRST_IOVA: u64 = 0x1_0000_0000;
/// Left free between two ranges, so that running over the end of one is a fault.
const GAP_BYTES: u64 = 0x1_0000;
/// IOVAs are multiples of this.
const IOVA_ALIGNMENT: u64 = 2 << 20;

/// Why an emulated drive cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum EmulatedError {
    /// Its description cannot be used.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// The system gave no thread for it.
    #[error("starting the emulated controller's thread: {0}")]
    Thread(#[from] std::io::Error),
}

#[derive(Debug)]
enum Time {
    Stepped(Arc<Stepped>),
    Threaded(Threaded),
}

/// A drive in software. See the [module](self).
#[derive(Debug)]
pub struct EmulatedTransport {
    info: TransportInfo,
    clock: Clock,
    time: Time,
    memory: Arc<GuestMemory>,
    next_iova: Mutex<u64>,
}

impl EmulatedTransport {
    /// Makes the drive that `text` describes: `MODEL[,option=value...]`, with or without `emulated:` before it.
    pub fn open(text: &str) -> Result<Arc<Self>, EmulatedError> {
        let rest = text.strip_prefix("emulated").map_or(text, |rest| rest.strip_prefix(':').unwrap_or(rest));
        Self::with_options(Options::parse(rest)?)
    }

    /// Makes the drive with these options.
    pub fn with_options(options: Options) -> Result<Arc<Self>, EmulatedError> {
        let memory = Arc::new(GuestMemory::new());
        // As VFIO hands a function over: it may not master the bus before the driver says so.
        memory.set_bus_master(false);
        let mut address = format!("emulated:{}", options.text);
        if options.text.is_empty() {
            address.push_str(&options.model.name);
        }
        let register_bytes = (offset::DOORBELLS + 8 * (u64::from(options.queues) + 1)).next_multiple_of(0x1000);
        let real = options.model.clock == ClockKind::Real;
        let (time, clock) = if real {
            let threaded = Threaded::start(options, Arc::clone(&memory))?;
            let clock = threaded.clock();
            (Time::Threaded(threaded), clock)
        } else {
            let stepped = Stepped::new(options, Arc::clone(&memory));
            let clock = stepped.clock();
            (Time::Stepped(Arc::new(stepped)), clock)
        };
        let mut transport = Self {
            info: TransportInfo {
                kind: TransportKind::Emulated,
                address,
                detail: if real { "threaded" } else { "stepped" }.into(),
                register_bytes,
                vectors: 0,
                pci_id: Some((nvmetal_emulator::pci_config::VENDOR, nvmetal_emulator::pci_config::DEVICE)),
                emulated: true,
                stepped: !real,
            },
            clock,
            time,
            memory,
            next_iova: Mutex::new(FIRST_IOVA),
        };
        transport.info.vectors = transport.with(|emulator| emulator.vectors());
        Ok(Arc::new(transport))
    }

    /// Looks at the emulator, or changes it: its command log, faults to inject.
    pub fn with<T>(&self, look: impl FnOnce(&mut Emulator) -> T) -> T {
        match &self.time {
            Time::Stepped(stepped) => stepped.look(look),
            Time::Threaded(threaded) => threaded.call(look),
        }
    }

    /// A call of the driver.
    fn call<T>(&self, call: impl FnOnce(&mut Emulator) -> T) -> T {
        match &self.time {
            Time::Stepped(stepped) => stepped.call(call),
            Time::Threaded(threaded) => threaded.call(call),
        }
    }

    /// The memory that the emulator may reach, for its fault reports.
    pub fn memory(&self) -> &GuestMemory {
        &self.memory
    }

    fn check(&self, offset: u64, bytes: u64) -> Result<(), TransportError> {
        if offset.is_multiple_of(bytes) && offset.checked_add(bytes).is_some_and(|end| end <= self.info.register_bytes)
        {
            return Ok(());
        }
        Err(TransportError::OutOfRange {
            address: self.info.address.clone(),
            offset,
            bytes,
            register_bytes: self.info.register_bytes,
        })
    }

    fn map_error(&self, bytes: u64, detail: String) -> TransportError {
        TransportError::Map { address: self.info.address.clone(), bytes, detail }
    }
}

impl Transport for EmulatedTransport {
    fn info(&self) -> &TransportInfo {
        &self.info
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }

    fn idle(&self, until_ns: u64, waiting: Waiting<'_>) {
        match (&self.time, waiting) {
            (Time::Stepped(stepped), Waiting::Interrupt(interrupt)) => stepped.idle(until_ns, Some(interrupt.vector)),
            (Time::Stepped(stepped), Waiting::Polling | Waiting::Register) => stepped.idle(until_ns, None),
            (Time::Threaded(threaded), Waiting::Polling) => threaded.poll(),
            (Time::Threaded(threaded), Waiting::Interrupt(interrupt)) => threaded.sleep(interrupt.vector, until_ns),
            (Time::Threaded(threaded), Waiting::Register) => threaded.nap(until_ns),
        }
    }

    fn read32(&self, offset: u64) -> Result<u32, TransportError> {
        self.check(offset, 4)?;
        Ok(self.call(|emulator| emulator.read(offset, 4)) as u32)
    }

    fn write32(&self, offset: u64, value: u32) -> Result<(), TransportError> {
        self.check(offset, 4)?;
        self.call(|emulator| emulator.write(offset, 4, u64::from(value)));
        Ok(())
    }

    fn read64(&self, offset: u64) -> Result<u64, TransportError> {
        self.check(offset, 8)?;
        Ok(self.call(|emulator| emulator.read(offset, 8)))
    }

    fn write64(&self, offset: u64, value: u64) -> Result<(), TransportError> {
        self.check(offset, 8)?;
        self.call(|emulator| emulator.write(offset, 8, value));
        Ok(())
    }

    fn doorbell(&self, offset: u64) -> Result<DoorbellKind, TransportError> {
        self.check(offset, 4)?;
        match &self.time {
            Time::Stepped(stepped) => {
                let target: Arc<dyn DoorbellTarget> = Arc::clone(stepped) as _;
                Ok(DoorbellKind::Called(CalledDoorbell::new(target, offset)))
            }
            Time::Threaded(threaded) => {
                let index = offset.checked_sub(offset::DOORBELLS).map_or(usize::MAX, |from| (from / 4) as usize);
                cells::doorbell(threaded.cells(), index).map(DoorbellKind::Mapped).ok_or_else(|| {
                    TransportError::OutOfRange {
                        address: self.info.address.clone(),
                        offset,
                        bytes: 4,
                        register_bytes: self.info.register_bytes,
                    }
                })
            }
        }
    }

    fn map(&self, memory: HostRange<'_>) -> Result<u64, TransportError> {
        let bytes = memory.bytes as u64;
        let (file, offset) =
            memory.file.ok_or_else(|| self.map_error(bytes, "the emulator reaches only memory of a file".into()))?;
        let mut next = self.next_iova.lock().unwrap_or_else(PoisonError::into_inner);
        let iova = *next;
        self.memory.map_file(iova, file, offset, bytes).map_err(|error| self.map_error(bytes, error.to_string()))?;
        *next = (iova + bytes + GAP_BYTES).next_multiple_of(IOVA_ALIGNMENT);
        Ok(iova)
    }

    fn unmap(&self, iova: u64, bytes: u64) -> Result<Unmapped, TransportError> {
        self.memory.unmap(iova, bytes).map_err(|error| self.map_error(bytes, error.to_string()))?;
        Ok(Unmapped::Quiet)
    }

    fn enable_interrupts(&self, count: u16) -> Result<Vec<Interrupt>, TransportError> {
        if count > self.info.vectors {
            return Err(TransportError::Unsupported {
                address: self.info.address.clone(),
                what: "this number of interrupt vectors",
            });
        }
        Ok((0..count).map(|vector| Interrupt { vector, event: None }).collect())
    }

    fn map_bar(&self, bar: u8, part: Range<u64>) -> Result<DeviceMapping, TransportError> {
        let (address, what) = (self.info.address.clone(), "memory of the controller's own");
        let mapped = self.with(|emulator| {
            let (_, file, _) =
                emulator.memory_buffer().filter(|&(there, _, bytes)| there == bar && part.end <= bytes)?;
            let length = usize::try_from(part.end.checked_sub(part.start)?).ok()?;
            Some(MmapOptions::new().offset(part.start).len(length).map_raw(&file))
        });
        match mapped {
            None => Err(TransportError::Unsupported { address, what }),
            Some(Ok(map)) => Ok(DeviceMapping::Memory(map)),
            Some(Err(source)) => Err(TransportError::System { address, what: format!("mapping {what}"), source }),
        }
    }

    fn set_bus_master(&self, on: bool) -> Result<(), TransportError> {
        self.memory.set_bus_master(on);
        Ok(())
    }

    fn reset(&self) -> Result<(), TransportError> {
        self.call(Emulator::function_reset);
        Ok(())
    }

    fn read_config(&self, offset: u16, into: &mut [u8]) -> Result<usize, TransportError> {
        let config = self.call(|emulator| emulator.endpoint_config());
        let from = config.get(usize::from(offset)..).unwrap_or_default();
        let bytes = into.len().min(from.len());
        into[..bytes].copy_from_slice(&from[..bytes]);
        Ok(bytes)
    }

    fn path_config(&self) -> Vec<(String, Vec<u8>)> {
        let (drive, port) = self.call(|emulator| (emulator.endpoint_config(), emulator.port_config()));
        vec![(self.info.address.clone(), drive), ("emulated root port".into(), port)]
    }

    fn signals(&self) -> Signals {
        Signals { lost: self.with(|emulator| emulator.is_removed()), ..Signals::default() }
    }
}

#[cfg(test)]
mod tests;
