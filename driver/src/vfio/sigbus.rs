//! What happens when a mapped register faults.
//!
//! Drives vanish: out of a loose adapter card, or because the kernel resets the slot. From then on the pages of the
//! mapping cannot be filled in any more, and the next load or store in them ends the process with SIGBUS, in the middle
//! of a test, with the drive's other half of the story unsaid. PCI has a better answer to reads that nobody answers: all
//! ones. So that is what the handler here makes of it. It looks the faulting address up in a table of our register
//! windows, puts pages full of FFh over the whole window, marks the window as lost and returns; the interrupted load is
//! repeated and reads all-ones, a store goes to a page that nobody reads, and the ordinary check for all-ones ends the
//! run. The process leaves by its own door, with its own exit code.
//!
//! A handler may only do what is safe at any moment, so the table is an array of atomics of fixed size, each holding a
//! whole window (start and length) in one word, and the pages of FFh are prepared beforehand. Faults at other addresses
//! are none of our business and go to the handler that was there before (Rust's own, for one, reports stack overflows).
//!
//! The pages are private copies: what is stored there, is read there. Registers that the driver writes are therefore not
//! all-ones afterwards; CSTS and CAP, which it checks, are never written.
#![allow(unsafe_code)] // A signal handler, and the mapping that it replaces.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, OnceLock, PoisonError};

use rustix::fs::MemfdFlags;
use rustix::mm::{MapFlags, ProtFlags};

/// How many windows a process may have: registers of that many mapped areas.
const WINDOWS: usize = 256;
/// A word of the table has the page number of the start above, and the number of pages in the low bits.
const LENGTH_BITS: u32 = 19;
/// The unit of both; mappings are aligned to at least that.
const PAGE_SHIFT: u32 = 12;
/// The file of FFh is mapped as often as it takes.
const FILE_BYTES: usize = 64 << 10;

/// A window's place in the table.
struct Slot {
    /// 0 for none.
    window: AtomicU64,
    lost: AtomicBool,
}

static TABLE: [Slot; WINDOWS] = [const { Slot { window: AtomicU64::new(0), lost: AtomicBool::new(false) } }; WINDOWS];

/// What the handler needs, complete before it is installed.
struct Prepared {
    /// 64 KiB of FFh.
    ones: OwnedFd,
    /// What was installed before.
    earlier: libc::sigaction,
}

// SAFETY: a `sigaction` is plain data (a function's address, a mask, flags) and is only read after it is stored.
unsafe impl Send for Prepared {}
// SAFETY: as above.
unsafe impl Sync for Prepared {}

static PREPARED: OnceLock<Prepared> = OnceLock::new();

/// A window whose faults are turned into all-ones, for as long as this lives.
#[derive(Debug)]
pub struct Watched {
    slot: usize,
}

impl Watched {
    /// Watches the mapping of `bytes` bytes at `start`, both multiples of the page. The handler is installed with the
    /// first window.
    ///
    /// # Errors
    /// Where there are no pages to prepare, or 256 windows are watched already.
    ///
    /// # Safety
    /// The whole range must be one mapping of this process that nothing but device accesses go to, and must stay mapped
    /// until this value has been dropped: the handler replaces it.
    pub unsafe fn new(start: usize, bytes: usize) -> io::Result<Self> {
        prepare()?;
        let word = encode(start, bytes).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, "a window is whole pages, and less than 2 GiB")
        })?;
        for (slot, entry) in TABLE.iter().enumerate() {
            // The flag belongs to whoever has the slot, so it is cleared only once the slot is ours: with a mark that
            // matches no address (no pages).
            let mark = 1 << LENGTH_BITS;
            if entry.window.compare_exchange(0, mark, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                entry.lost.store(false, Ordering::Relaxed);
                // Release: who sees the window sees the cleared flag.
                entry.window.store(word, Ordering::Release);
                return Ok(Self { slot });
            }
        }
        Err(io::Error::new(io::ErrorKind::OutOfMemory, "too many register windows are mapped"))
    }

    /// Whether an access faulted: the device behind the window is gone.
    #[inline]
    pub fn is_lost(&self) -> bool {
        TABLE[self.slot].lost.load(Ordering::Relaxed)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        TABLE[self.slot].window.store(0, Ordering::Release);
    }
}

fn encode(start: usize, bytes: usize) -> Option<u64> {
    let (start, bytes) = (start as u64, bytes as u64);
    let page = (1 << PAGE_SHIFT) - 1;
    let pages = bytes >> PAGE_SHIFT;
    let fits = start & page == 0 && bytes & page == 0 && pages > 0 && pages < 1 << LENGTH_BITS;
    (fits && start != 0 && start >> PAGE_SHIFT < 1 << (64 - LENGTH_BITS))
        .then_some((start >> PAGE_SHIFT) << LENGTH_BITS | pages)
}

/// Start and length.
fn decode(word: u64) -> (usize, usize) {
    let pages = word & ((1 << LENGTH_BITS) - 1);
    (((word >> LENGTH_BITS) << PAGE_SHIFT) as usize, (pages << PAGE_SHIFT) as usize)
}

/// Makes the pages of FFh and installs the handler, once in the life of the process.
fn prepare() -> io::Result<()> {
    static INSTALLING: Mutex<()> = Mutex::new(());
    let _once = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
    if PREPARED.get().is_some() {
        return Ok(());
    }
    let ones = rustix::fs::memfd_create("nvmetal-ones", MemfdFlags::CLOEXEC)?;
    rustix::io::write(&ones, &vec![0xff; FILE_BYTES])
        .and_then(|written| if written == FILE_BYTES { Ok(()) } else { Err(rustix::io::Errno::NOSPC) })?;
    // SAFETY: `sigaction` is plain data for which zero is a value; asking for the present action changes nothing.
    let earlier = unsafe {
        let mut earlier: libc::sigaction = core::mem::zeroed();
        if libc::sigaction(libc::SIGBUS, core::ptr::null(), &raw mut earlier) != 0 {
            return Err(io::Error::last_os_error());
        }
        earlier
    };
    // Before the handler can run.
    let _ = PREPARED.set(Prepared { ones, earlier });
    // SAFETY: `on_sigbus` has the signature that SA_SIGINFO asks for and does only what is safe in a handler. On its
    // own stack where there is one, because the earlier handler may need that to report a stack overflow.
    let installed = unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = on_sigbus as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigaction(libc::SIGBUS, &raw const action, core::ptr::null_mut())
    };
    if installed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The handler. It is called on the thread that faulted.
extern "C" fn on_sigbus(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let Some(prepared) = PREPARED.get() else { return };
    // SAFETY: the kernel gives a handler that was installed with SA_SIGINFO a valid `siginfo_t`; for a fault (a code
    // above 0, not a signal that somebody sent) it has the address.
    let fault = unsafe { ((*info).si_code > 0).then(|| (*info).si_addr() as usize) };
    if !fault.is_some_and(|address| cover(address, prepared)) {
        pass_on(&prepared.earlier, signal, info, context);
    }
}

/// Puts FFh over the window that `address` is in; false if it is in none, or that did not work.
fn cover(address: usize, prepared: &Prepared) -> bool {
    for slot in &TABLE {
        let (start, bytes) = decode(slot.window.load(Ordering::Acquire));
        if !(start..start + bytes).contains(&address) {
            continue;
        }
        for offset in (0..bytes).step_by(FILE_BYTES) {
            let length = FILE_BYTES.min(bytes - offset);
            // SAFETY: the range lies in a window, which `Watched::new` was promised is mapped for as long as it is in
            // the table, and only accessed as a device: replacing its pages breaks nobody's reference. The faulting
            // thread is inside an access to it and so cannot be unmapping it.
            let mapped = unsafe {
                rustix::mm::mmap(
                    core::ptr::with_exposed_provenance_mut(start + offset),
                    length,
                    ProtFlags::READ | ProtFlags::WRITE,
                    MapFlags::PRIVATE | MapFlags::FIXED,
                    prepared.ones.as_fd(),
                    0,
                )
            };
            if mapped.is_err() {
                return false;
            }
        }
        slot.lost.store(true, Ordering::Relaxed);
        return true;
    }
    false
}

/// Hands a fault that is not ours to the handler that was there before.
fn pass_on(earlier: &libc::sigaction, signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    match earlier.sa_sigaction {
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: plain data; the default action is what there was, and a fault cannot be ignored. Returning
            // repeats the access, which then ends the process as it would have without us.
            unsafe {
                let mut action: libc::sigaction = core::mem::zeroed();
                action.sa_sigaction = libc::SIG_DFL;
                libc::sigaction(signal, &raw const action, core::ptr::null_mut());
            }
        }
        handler if earlier.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: a handler that was installed with SA_SIGINFO has this signature.
            let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                unsafe { core::mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: a handler that was installed without SA_SIGINFO has this signature.
            let handler: extern "C" fn(c_int) = unsafe { core::mem::transmute(handler) };
            handler(signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memmap2::MmapRaw;
    use std::os::unix::process::ExitStatusExt;

    const BYTES: usize = 256 << 10;

    /// A mapping whose file has been cut off under it: every access faults.
    fn cut_off() -> MmapRaw {
        let file = rustix::fs::memfd_create("cut off", MemfdFlags::CLOEXEC).expect("a memfd");
        rustix::fs::ftruncate(&file, BYTES as u64).expect("room");
        let map = memmap2::MmapOptions::new().len(BYTES).map_raw(&file).expect("a mapping");
        rustix::fs::ftruncate(&file, 0).expect("cut");
        map
    }

    fn watch(map: &MmapRaw) -> Watched {
        // SAFETY: the mapping is dropped after what watches it, and no reference into it exists.
        unsafe { Watched::new(map.as_mut_ptr() as usize, BYTES) }.expect("a window")
    }

    fn word(map: &MmapRaw, offset: usize) -> *mut u32 {
        map.as_mut_ptr().wrapping_add(offset).cast()
    }

    #[test]
    fn a_read_that_faults_gives_all_ones_everywhere_in_the_window() {
        let map = cut_off();
        let window = watch(&map);
        assert!(!window.is_lost());
        // SAFETY: inside the mapping; the fault is the point.
        let read = unsafe { word(&map, 0x1c).read_volatile() };
        assert_eq!(read, u32::MAX);
        assert!(window.is_lost());
        for offset in (0..BYTES).step_by(4096) {
            // SAFETY: inside the mapping.
            assert_eq!(unsafe { word(&map, offset).read_volatile() }, u32::MAX);
        }
        drop(window);
    }

    #[test]
    fn a_store_that_faults_goes_nowhere_and_marks_the_window() {
        let map = cut_off();
        let window = watch(&map);
        // SAFETY: inside the mapping; the fault is the point.
        unsafe { word(&map, 0x1000).write_volatile(7) };
        assert!(window.is_lost());
        // SAFETY: inside the mapping.
        assert_eq!(unsafe { word(&map, 0x1c).read_volatile() }, u32::MAX);
    }

    #[test]
    fn one_window_lost_leaves_the_others_alone() {
        let (gone, there) = (cut_off(), {
            let file = rustix::fs::memfd_create("whole", MemfdFlags::CLOEXEC).expect("a memfd");
            rustix::fs::ftruncate(&file, BYTES as u64).expect("room");
            memmap2::MmapOptions::new().len(BYTES).map_raw(&file).expect("a mapping")
        });
        let (first, second) = (watch(&gone), watch(&there));
        // SAFETY: inside the mappings.
        unsafe {
            word(&gone, 0).read_volatile();
            assert_eq!(word(&there, 0).read_volatile(), 0);
        }
        assert!(first.is_lost() && !second.is_lost());
    }

    #[test]
    fn a_slot_that_is_used_again_is_not_lost() {
        for _ in 0..=WINDOWS {
            let map = cut_off();
            let window = watch(&map);
            assert!(!window.is_lost());
            // SAFETY: inside the mapping.
            unsafe { word(&map, 0).read_volatile() };
            assert!(window.is_lost());
        }
    }

    #[test]
    fn what_does_not_fit_into_a_word_of_the_table_is_refused() {
        for (start, bytes) in [(0x1000, 0), (0x1001, 0x1000), (0x1000, 0x1001), (0, 0x1000), (0x1000, 1 << 31)] {
            assert_eq!(encode(start, bytes), None, "{start:#x}, {bytes:#x}");
        }
        for (start, bytes) in [(0x1000, 0x1000), (0x7fff_ffff_f000, 0x10_0000), (0x1000, (1 << 31) - 0x1000)] {
            assert_eq!(encode(start, bytes).map(decode), Some((start, bytes)));
        }
    }

    /// Ends its process with SIGBUS; run by the test below.
    #[test]
    #[ignore = "ends its process"]
    fn fault_outside_of_any_window() {
        let (watched, other) = (cut_off(), cut_off());
        let _window = watch(&watched);
        // SAFETY: inside the mapping; nobody watches it.
        unsafe { word(&other, 0).read_volatile() };
    }

    #[test]
    fn a_foreign_fault_goes_to_the_earlier_handler() {
        let this = std::env::current_exe().expect("this test");
        let run = std::process::Command::new(this)
            .args(["--exact", "vfio::sigbus::tests::fault_outside_of_any_window", "--ignored"])
            .output()
            .expect("this test again");
        assert_eq!(run.status.signal(), Some(libc::SIGBUS), "{run:?}");
    }
}
