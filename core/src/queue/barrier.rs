//! Ordering between this processor and the device, in one place.
//!
//! A queue is memory that two sides use without a lock, so the order in which one side's stores and loads reach the
//! other is the whole correctness of it. There are three orders that matter, and each is one function here:
//!
//! | function | keeps apart | why |
//! |---|---|---|
//! | [`ring_then_doorbell`] | the stores of the entries, then the store of the doorbell | the controller fetches the entries as soon as it sees the doorbell |
//! | [`phase_then_rest`] | the load of the phase tag, then the loads of the rest of the completion *and of the data buffer* | both are only there once the phase tag has flipped |
//! | [`dbbuf_full`] | the store of the shadow doorbell, then the load of the event index | either we see the controller's index, or it sees our doorbell |
//!
//! What each costs: on x86-64, stores to write-back memory leave the core in program order and loads are done in program
//! order, so the first two only have to stop the compiler. The third is a store followed by a load, the one pair that
//! x86-64 does reorder, and needs a full fence. On AArch64 and RISC-V a device is not part of the inner shareable domain
//! of ordinary fences, so there the first two are the outer-shareable and I/O forms.
//!
//! Every function is also the C11 fence of the same meaning: where the peer is another thread of this process (an
//! emulator) the language's own rules hold, and `loom` can check them.
#![allow(unsafe_code)] // The fences of AArch64 and RISC-V are assembly.

#[cfg(not(loom))]
use core::sync::atomic::{Ordering, fence};
#[cfg(loom)]
use loom::sync::atomic::{Ordering, fence};

/// Orders the stores of submission entries (and of data that a command writes to the drive) before the store of the
/// doorbell that follows.
#[inline(always)]
pub fn ring_then_doorbell() {
    #[cfg(loom)]
    if weakened("submission") {
        return;
    }
    fence(Ordering::Release);
    #[cfg(all(target_arch = "aarch64", not(loom)))]
    // SAFETY: a barrier has no effect but order.
    unsafe {
        core::arch::asm!("dmb oshst", options(nostack, preserves_flags));
    }
    #[cfg(all(any(target_arch = "riscv64", target_arch = "riscv32"), not(loom)))]
    // SAFETY: a barrier has no effect but order.
    unsafe {
        core::arch::asm!("fence w,o", options(nostack, preserves_flags));
    }
}

/// Orders the load of a completion's phase tag before the loads of the rest of that completion and of the data that the
/// command brought.
#[inline(always)]
pub fn phase_then_rest() {
    #[cfg(loom)]
    if weakened("completion") {
        return;
    }
    fence(Ordering::Acquire);
    #[cfg(all(target_arch = "aarch64", not(loom)))]
    // SAFETY: a barrier has no effect but order.
    unsafe {
        core::arch::asm!("dmb oshld", options(nostack, preserves_flags));
    }
    #[cfg(all(any(target_arch = "riscv64", target_arch = "riscv32"), not(loom)))]
    // SAFETY: a barrier has no effect but order.
    unsafe {
        core::arch::asm!("fence r,r", options(nostack, preserves_flags));
    }
}

/// Orders the store of a shadow doorbell before the load of the controller's event index.
///
/// Without it both sides may act on old values: we see an index that says "awake, do not ring", the controller sees the
/// old doorbell and goes to sleep, and the command waits for ever.
#[inline(always)]
pub fn dbbuf_full() {
    #[cfg(loom)]
    if weakened("dbbuf") {
        return;
    }
    fence(Ordering::SeqCst);
}

/// For tests that must fail: whether this build leaves the fence out, to show that a test sees it.
#[cfg(loom)]
fn weakened(fence: &str) -> bool {
    option_env!("NVMETAL_WEAKEN") == Some(fence)
}
