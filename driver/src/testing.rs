//! What unit tests of several modules share: a transport with nothing behind it.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::clock::Clock;
use crate::transport::{
    DoorbellKind, HostRange, Interrupt, Transport, TransportError, TransportInfo, TransportKind, Unmapped, Waiting,
};

/// A transport that maps memory (it only keeps the books) and has no device.
#[derive(Debug)]
pub(crate) struct FakeTransport {
    info: TransportInfo,
    clock: Clock,
    quiet: bool,
    mappings: Mutex<BTreeMap<u64, u64>>,
}

impl Default for FakeTransport {
    fn default() -> Self {
        Self {
            info: TransportInfo {
                kind: TransportKind::Emulated,
                address: "fake".into(),
                detail: "nothing behind it".into(),
                register_bytes: 0,
                vectors: 0,
                pci_id: None,
                emulated: true,
                stepped: true,
            },
            clock: Clock::virtual_at(0).0,
            quiet: true,
            mappings: Mutex::default(),
        }
    }
}

impl FakeTransport {
    /// One whose device can never be kept away from memory.
    pub(crate) fn never_quiet() -> Self {
        Self { quiet: false, ..Self::default() }
    }

    /// What is mapped: IOVA and length.
    pub(crate) fn mappings(&self) -> MutexGuard<'_, BTreeMap<u64, u64>> {
        self.mappings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unsupported<T>(&self, what: &'static str) -> Result<T, TransportError> {
        Err(TransportError::Unsupported { address: self.info.address.clone(), what })
    }
}

impl Transport for FakeTransport {
    fn info(&self) -> &TransportInfo {
        &self.info
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }

    fn idle(&self, _until_ns: u64, _waiting: Waiting<'_>) {}

    fn read32(&self, _offset: u64) -> Result<u32, TransportError> {
        self.unsupported("a register")
    }

    fn write32(&self, _offset: u64, _value: u32) -> Result<(), TransportError> {
        self.unsupported("a register")
    }

    fn read64(&self, _offset: u64) -> Result<u64, TransportError> {
        self.unsupported("a register")
    }

    fn write64(&self, _offset: u64, _value: u64) -> Result<(), TransportError> {
        self.unsupported("a register")
    }

    fn doorbell(&self, _offset: u64) -> Result<DoorbellKind, TransportError> {
        self.unsupported("a doorbell")
    }

    fn map(&self, memory: HostRange<'_>) -> Result<u64, TransportError> {
        let mut mappings = self.mappings();
        let iova = mappings.last_key_value().map_or(0x100_0000, |(iova, bytes)| iova + bytes);
        mappings.insert(iova, memory.bytes as u64);
        Ok(iova)
    }

    fn unmap(&self, iova: u64, bytes: u64) -> Result<Unmapped, TransportError> {
        assert_eq!(self.mappings().remove(&iova), Some(bytes), "an unmap is that of one map");
        Ok(if self.quiet { Unmapped::Quiet } else { Unmapped::MayBeWritten })
    }

    fn enable_interrupts(&self, _count: u16) -> Result<Vec<Interrupt>, TransportError> {
        self.unsupported("interrupts")
    }

    fn set_bus_master(&self, _on: bool) -> Result<(), TransportError> {
        Ok(())
    }

    fn reset(&self) -> Result<(), TransportError> {
        self.unsupported("function reset")
    }

    fn read_config(&self, _offset: u16, _into: &mut [u8]) -> Result<usize, TransportError> {
        Ok(0)
    }
}
