//! Doorbells that are words of ordinary memory.
#![allow(unsafe_code)] // A doorbell is a bare pointer on the hot path; here is the promise that it stays good.

use core::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use nvmetal_core::queue::doorbell::Mapped;

use crate::transport::MappedDoorbell;

/// The doorbell that is the word at `index`; `None` where there is none.
pub(super) fn doorbell(cells: &Arc<[AtomicU32]>, index: usize) -> Option<MappedDoorbell> {
    let register = NonNull::from(cells.get(index)?).cast();
    // SAFETY: the word is aligned and lies in the allocation that `cells` counts references to; the doorbell holds such a
    // reference for as long as it or a copy of it lives. It is only ever accessed as an atomic, by both sides.
    let register = unsafe { Mapped::new(register) };
    Some(MappedDoorbell::new(register, Arc::new(Arc::clone(cells))))
}
