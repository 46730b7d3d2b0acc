//! Memory that the controller may reach.

use core::cell::UnsafeCell;
use core::ptr::NonNull;

use nvmetal_core::queue::RingMemory;

/// A page that the controller may reach. Without an IOMMU its address is what the controller sees.
#[repr(C, align(4096))]
pub struct Page(UnsafeCell<[u8; 4096]>);

// SAFETY: this machine has one processor, and each page below is used for one thing.
unsafe impl Sync for Page {}

impl Page {
    pub const fn zeroed() -> Self {
        Self(UnsafeCell::new([0; 4096]))
    }

    pub fn iova(&self) -> u64 {
        self.0.get().addr() as u64
    }

    /// What a command has brought. The queue gives a page back when the controller is done with it, not before.
    pub fn bytes(&self) -> &[u8; 4096] {
        // SAFETY: no command with this page is in flight, so nobody writes to it.
        unsafe { &*self.0.get() }
    }
}

// SAFETY: a static neither moves nor goes; the page is aligned and zero, and given to one ring.
unsafe impl RingMemory for &'static Page {
    fn pointer(&self) -> NonNull<u8> {
        NonNull::from(*self).cast()
    }

    fn bytes(&self) -> usize {
        4096
    }
}
