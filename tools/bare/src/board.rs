//! The board: QEMU's `virt` machine with a 64-bit RISC-V processor, and an NVMe controller in its first PCIe slot.
//!
//! No firmware has run before this program: the processor starts at `_start` in machine mode, without address
//! translation, and the controller's BAR holds no address yet.

use core::fmt::{self, Write};
use core::ptr::NonNull;

use nvmetal_core::queue::doorbell::Mapped;

/// Configuration space of bus 0, device 1, function 0.
const CONFIG: usize = 0x3000_0000 + (1 << 15);
/// Where the board lets 32-bit PCIe memory lie.
const BAR0: u32 = 0x4000_0000;
/// The 16550 serial port.
const SERIAL: usize = 0x1000_0000;
/// The timer's counter, 10 MHz.
const TIME: usize = 0x0200_bff8;
/// A write here ends the emulation.
const FINISH: usize = 0x10_0000;

// Stack pointer, then `main`. QEMU's loader has zeroed `.bss`.
core::arch::global_asm!(".section .text.start", ".globl _start", "_start:", "la sp, STACK_TOP", "call main");

/// The controller's registers.
pub struct Registers(NonNull<u8>);

impl Registers {
    /// Gives the controller its address and lets it answer (memory space) and transfer data (bus master).
    pub fn find() -> Self {
        // SAFETY: the board has configuration space there: BAR0 is at 10h and 14h, the command register at 04h.
        unsafe {
            (CONFIG as *mut u32).byte_add(0x10).write_volatile(BAR0);
            (CONFIG as *mut u32).byte_add(0x14).write_volatile(0);
            (CONFIG as *mut u16).byte_add(0x04).write_volatile(0b110);
        }
        Self(NonNull::without_provenance(core::num::NonZero::new(BAR0 as usize).unwrap()))
    }

    fn register(&self, offset: u64) -> *mut u32 {
        self.0.as_ptr().wrapping_add(offset as usize).cast()
    }

    pub fn read32(&self, offset: u64) -> u32 {
        // SAFETY: `find` put the controller's registers there; the machines name only those that exist.
        unsafe { self.register(offset).read_volatile() }
    }

    pub fn write32(&self, offset: u64, value: u32) {
        // SAFETY: as above.
        unsafe { self.register(offset).write_volatile(value) }
    }

    /// Two halves, the lower first: every controller takes those, and every processor can make them.
    pub fn read64(&self, offset: u64) -> u64 {
        u64::from(self.read32(offset)) | u64::from(self.read32(offset + 4)) << 32
    }

    pub fn write64(&self, offset: u64, value: u64) {
        self.write32(offset, value as u32);
        self.write32(offset + 4, (value >> 32) as u32);
    }

    pub fn doorbell(&self, offset: u64) -> Mapped {
        // SAFETY: an aligned register, there for as long as the program runs. BAR0 is not 0, so neither is the pointer.
        unsafe { Mapped::new(NonNull::new_unchecked(self.register(offset))) }
    }
}

pub fn now_ns() -> u64 {
    // SAFETY: the board's timer.
    unsafe { (TIME as *const u64).read_volatile() * 100 }
}

pub fn exit(passed: bool) -> ! {
    // SAFETY: the board's finisher; it does not return.
    unsafe { (FINISH as *mut u32).write_volatile(if passed { 0x5555 } else { 1 << 16 | 0x3333 }) };
    loop {}
}

/// The serial port.
pub struct Serial;

impl Write for Serial {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            // SAFETY: the port's transmit register; QEMU's is never full.
            unsafe { (SERIAL as *mut u8).write_volatile(byte) };
        }
        Ok(())
    }
}

#[macro_export]
macro_rules! println {
    ($($arguments:tt)*) => {{
        // The serial port takes everything.
        let _ = core::fmt::Write::write_fmt(&mut $crate::board::Serial, format_args!("{}\n", format_args!($($arguments)*)));
    }};
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo) -> ! {
    println!("{info}");
    exit(false)
}
