//! Interrupts as eventfds of the client.
#![forbid(unsafe_code)]

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::emulator::Irq;

/// The eventfd of each vector that has one.
#[derive(Debug, Default)]
pub(super) struct Irqs {
    vectors: RwLock<Vec<Option<OwnedFd>>>,
    /// Whether there is any; looked at before the lock is taken, for a client that polls has none.
    any: AtomicBool,
}

impl Irqs {
    /// Gives a vector its eventfd, or takes it away.
    pub(super) fn set(&self, vector: usize, event: Option<OwnedFd>) {
        let mut vectors = self.vectors.write().unwrap_or_else(PoisonError::into_inner);
        if vector >= vectors.len() {
            vectors.resize_with(vector + 1, || None);
        }
        if let Some(place) = vectors.get_mut(vector) {
            *place = event;
        }
        self.any.store(vectors.iter().any(Option::is_some), Ordering::Release);
    }

    /// Takes all of them away.
    pub(super) fn clear(&self) {
        self.any.store(false, Ordering::Release);
        self.vectors.write().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Signals a vector. What a full counter cannot take is not missed: it has been signalled.
    pub(super) fn signal(&self, vector: usize) {
        if !self.any.load(Ordering::Acquire) {
            return;
        }
        let vectors = self.vectors.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(Some(event)) = vectors.get(vector)
            && let Err(errno) = rustix::io::write(event, &1_u64.to_ne_bytes())
        {
            log::debug!("vector {vector}: {errno}");
        }
    }
}

/// What the controller is told to raise its interrupts with.
#[derive(Debug)]
pub(super) struct Raise(pub(super) Arc<Irqs>);

impl Irq for Raise {
    fn raise(&self, vector: u16) {
        self.0.signal(usize::from(vector));
    }
}
