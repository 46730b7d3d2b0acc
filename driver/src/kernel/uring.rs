//! One io_uring with the memory that its reads go to.
//!
//! The ring is made the way that costs the kernel least, so that a comparison with it is fair: file and buffers are
//! registered once (the kernel then neither looks the file up nor pins pages for each I/O), completions are polled for
//! where the drive's driver has queues for that, and the deferred completion work of Linux 6.1 is used. What an older
//! kernel, or a limit on locked memory, does not allow is left out, and [`Uring::setup`] says what came of it.
//!
//! The memory belongs to the ring: the kernel writes to it behind Rust's back, so it is never borrowed, and it is given
//! back only when nothing is under way any more.
#![allow(unsafe_code)] // Entries name memory by its address.

use core::fmt;
use core::mem::ManuallyDrop;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use io_uring::squeue::Entry;
use io_uring::types::{Fd, Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode};
use memmap2::{MmapMut, MmapRaw};
use rustix::io::Errno;

/// The longest piece of memory that the kernel registers as one buffer.
const BUFFER_BYTES: usize = 1 << 30;
/// How often a wait for completions comes back without one, so that its caller can look at the time. It costs the kernel
/// a timer for each wait that sleeps.
const WAIT_NS: u32 = 50_000_000;
/// Waits of that length for I/Os that are still under way when a ring is dropped.
const DRAIN_WAITS: u32 = 40;

/// How a ring was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub(super) struct Setup {
    /// Completions are polled for.
    pub polled: bool,
    /// Buffers are registered.
    pub fixed_buffers: bool,
    /// The file is registered.
    pub fixed_file: bool,
}

/// A ring for reads and writes of one length on one file, each in a slot of its own.
pub(super) struct Uring<'f> {
    ring: IoUring,
    memory: ManuallyDrop<MmapRaw>,
    /// The file, for as long as there is a ring that uses it.
    file: BorrowedFd<'f>,
    slots: u32,
    io_bytes: u32,
    /// Bytes from one slot to the next; whole pages.
    slot_bytes: usize,
    slots_per_buffer: usize,
    setup: Setup,
    /// The ring has been made without being switched on; its thread does that.
    disabled: bool,
    in_flight: u32,
}

impl<'f> Uring<'f> {
    /// A ring on `file` for `slots` I/Os of `io_bytes`.
    ///
    /// # Errors
    /// What the kernel says: ENOSYS without io_uring, EPERM where it is forbidden, ENOMEM.
    pub fn new(file: BorrowedFd<'f>, slots: u32, io_bytes: u32, polled: bool) -> io::Result<Self> {
        let slot_bytes = (io_bytes as usize).next_multiple_of(rustix::param::page_size());
        let memory = MmapRaw::from(MmapMut::map_anon(slot_bytes * slots as usize)?);
        let (ring, disabled) = build(slots, polled)?;
        let mut uring = Self {
            ring,
            memory: ManuallyDrop::new(memory),
            file,
            slots,
            io_bytes,
            slot_bytes,
            slots_per_buffer: (BUFFER_BYTES / slot_bytes).max(1),
            setup: Setup { polled, fixed_buffers: false, fixed_file: false },
            disabled,
            in_flight: 0,
        };
        uring.register();
        Ok(uring)
    }

    fn register(&mut self) {
        let submitter = self.ring.submitter();
        match submitter.register_files(&[self.file.as_raw_fd()]) {
            Ok(()) => self.setup.fixed_file = true,
            Err(error) => log::debug!("io_uring: the file is not registered: {error}"),
        }
        let stride = self.slots_per_buffer * self.slot_bytes;
        let buffers: Vec<libc::iovec> = (0..self.memory.len())
            .step_by(stride)
            .map(|offset| libc::iovec {
                iov_base: self.memory.as_mut_ptr().wrapping_add(offset).cast(),
                iov_len: stride.min(self.memory.len() - offset),
            })
            .collect();
        // SAFETY: the buffers are parts of `memory`, which outlives the ring's use of them: see `drop`.
        match unsafe { submitter.register_buffers(&buffers) } {
            Ok(()) => self.setup.fixed_buffers = true,
            Err(error) => log::debug!("io_uring: the buffers are not registered: {error}"),
        }
    }

    /// How it was made.
    pub fn setup(&self) -> Setup {
        self.setup
    }

    /// I/Os that were queued and have not come back.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Switches the ring on; by the thread that will use it, before its first I/O.
    pub fn enable(&mut self) -> io::Result<()> {
        if core::mem::take(&mut self.disabled) {
            self.ring.submitter().register_enable_rings()?;
        }
        Ok(())
    }

    /// Writes to a slot's memory. Before the first I/O, or in a slot that has none under way.
    pub fn fill(&mut self, slot: u32, data: &[u8]) {
        if slot < self.slots {
            let bytes = data.len().min(self.io_bytes as usize);
            // SAFETY: the slot lies in `memory` and is at least `io_bytes` long; `&mut self` keeps other threads away, and
            // no reference to the memory exists. Were it in use after all, the kernel would read or write a mixture.
            unsafe { core::ptr::copy_nonoverlapping(data.as_ptr(), self.address(slot), bytes) };
        }
    }

    fn address(&self, slot: u32) -> *mut u8 {
        self.memory.as_mut_ptr().wrapping_add(slot as usize * self.slot_bytes)
    }

    /// Queues an I/O of `io_bytes` at `offset` of the file. Gives whether there was room and such a slot.
    pub fn queue(&mut self, slot: u32, offset: u64, write: bool) -> bool {
        if slot >= self.slots {
            return false;
        }
        let entry = self.entry(slot, offset, write);
        // SAFETY: the entry's memory is its slot's, inside `memory`, which stays until the I/O has come back; the file is
        // borrowed for longer than the ring.
        let pushed = unsafe { self.ring.submission().push(&entry) }.is_ok();
        self.in_flight += u32::from(pushed);
        pushed
    }

    fn entry(&self, slot: u32, offset: u64, write: bool) -> Entry {
        let (address, bytes) = (self.address(slot), self.io_bytes);
        let buffer = (slot as usize / self.slots_per_buffer) as u16;
        let descriptor = Fd(self.file.as_raw_fd());
        let entry = match (self.setup.fixed_file, self.setup.fixed_buffers, write) {
            (true, true, false) => opcode::ReadFixed::new(Fixed(0), address, bytes, buffer).offset(offset).build(),
            (true, true, true) => opcode::WriteFixed::new(Fixed(0), address, bytes, buffer).offset(offset).build(),
            (true, false, false) => opcode::Read::new(Fixed(0), address, bytes).offset(offset).build(),
            (true, false, true) => opcode::Write::new(Fixed(0), address, bytes).offset(offset).build(),
            (false, true, false) => opcode::ReadFixed::new(descriptor, address, bytes, buffer).offset(offset).build(),
            (false, true, true) => opcode::WriteFixed::new(descriptor, address, bytes, buffer).offset(offset).build(),
            (false, false, false) => opcode::Read::new(descriptor, address, bytes).offset(offset).build(),
            (false, false, true) => opcode::Write::new(descriptor, address, bytes).offset(offset).build(),
        };
        entry.user_data(slot.into())
    }

    /// Hands over what was queued and waits until something has come back, or a moment has passed.
    pub fn submit_and_wait(&mut self) -> Result<(), Errno> {
        let submitter = self.ring.submitter();
        let waited = if self.ring.params().is_feature_ext_arg() {
            submitter.submit_with_args(1, &SubmitArgs::new().timespec(&Timespec::new().nsec(WAIT_NS)))
        } else {
            submitter.submit_and_wait(1)
        };
        match waited.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO)) {
            // A moment has passed; a signal; completions or memory are to be taken first.
            Ok(_) | Err(Errno::TIME | Errno::INTR | Errno::BUSY | Errno::AGAIN) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    /// Takes what has come back: the slot, and bytes or a negative error number.
    pub fn reap(&mut self, mut each: impl FnMut(u32, i32)) {
        for entry in self.ring.completion() {
            self.in_flight = self.in_flight.saturating_sub(1);
            each(entry.user_data() as u32, entry.result());
        }
    }
}

impl Drop for Uring<'_> {
    fn drop(&mut self) {
        if self.enable().is_err() {
            // It never took an I/O.
            self.in_flight = 0;
        }
        for _ in 0..DRAIN_WAITS {
            if self.in_flight == 0 || self.submit_and_wait().is_err() {
                break;
            }
            self.reap(|_, _| {});
        }
        if self.in_flight == 0 {
            // SAFETY: it is not used after this, and the kernel has no I/O under way that would write to it.
            unsafe { ManuallyDrop::drop(&mut self.memory) };
        } else {
            log::warn!("{} bytes are kept: {} I/Os have not come back", self.memory.len(), self.in_flight);
        }
    }
}

impl fmt::Debug for Uring<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Uring").field("setup", &self.setup).field("in_flight", &self.in_flight).finish_non_exhaustive()
    }
}

/// Makes the ring, the cheapest first that this kernel knows; gives whether it has yet to be switched on.
fn build(slots: u32, polled: bool) -> io::Result<(IoUring, bool)> {
    let builder = || {
        let mut builder = IoUring::builder();
        builder.dontfork();
        if polled {
            builder.setup_iopoll();
        }
        builder
    };
    // Linux 6.1: completion work is done when the one thread that submits asks for it. That thread is the one which
    // switches the ring on.
    let deferred = builder().setup_single_issuer().setup_defer_taskrun().setup_r_disabled().build(slots);
    match deferred {
        Ok(ring) => return Ok((ring, true)),
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
        Err(error) => return Err(error),
    }
    // Linux 5.19: completion work does not interrupt the thread.
    match builder().setup_coop_taskrun().build(slots) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
        built => return built.map(|ring| (ring, false)),
    }
    builder().build(slots).map(|ring| (ring, false))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;

    use super::*;

    /// Takes all that is under way.
    fn drain(uring: &mut Uring<'_>) -> Vec<(u32, i32)> {
        let mut taken = Vec::new();
        while uring.in_flight() > 0 {
            uring.submit_and_wait().expect("a wait");
            uring.reap(|slot, result| taken.push((slot, result)));
        }
        taken.sort_unstable();
        taken
    }

    /// A ring, unless this system forbids them; then the reason is one of those that the engine knows.
    fn ring(file: &std::fs::File, slots: u32, bytes: u32) -> Option<Uring<'_>> {
        match Uring::new(file.as_fd(), slots, bytes, false) {
            Ok(mut uring) => {
                uring.enable().expect("the ring is switched on");
                Some(uring)
            }
            Err(error) => {
                assert!(matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)), "{error}");
                None
            }
        }
    }

    #[test]
    fn each_slot_comes_back_with_its_own_result() {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&[0x5a; 3 * 4096]).expect("data");
        let Some(mut uring) = ring(&file, 4, 4096) else { return };
        assert!(uring.queue(0, 0, false) && uring.queue(1, 2 * 4096, false) && uring.queue(2, 3 * 4096, false));
        assert!(!uring.queue(4, 0, false), "there is no such slot");
        assert_eq!(uring.in_flight(), 3);
        assert_eq!(drain(&mut uring), [(0, 4096), (1, 4096), (2, 0)]);
        let mut first = [0; 4];
        // SAFETY: slot 1 has at least four bytes, and nothing is under way.
        unsafe { core::ptr::copy_nonoverlapping(uring.address(1), first.as_mut_ptr(), 4) };
        assert_eq!(first, [0x5a; 4]);
    }

    #[test]
    fn what_was_filled_in_is_what_is_written() {
        let file = tempfile::tempfile().expect("a file");
        let Some(mut uring) = ring(&file, 2, 4096) else { return };
        uring.fill(1, &[7; 4096]);
        assert!(uring.queue(1, 4096, true));
        assert_eq!(drain(&mut uring), [(1, 4096)]);
        let mut back = [0; 4096];
        assert_eq!(rustix::io::pread(&file, &mut back, 4096), Ok(4096));
        assert_eq!(back, [7; 4096]);
    }

    #[test]
    fn an_error_of_the_file_comes_back_as_its_number() {
        let file = std::fs::File::open("/proc/self/mem").expect("it can be opened");
        let Some(mut uring) = ring(&file, 1, 4096) else { return };
        // Nothing is mapped at the very top of the address space.
        assert!(uring.queue(0, i64::MAX as u64 - 8191, false));
        let [(0, result)] = drain(&mut uring)[..] else { panic!("one result") };
        assert!(result < 0, "{result}");
    }

    #[test]
    fn a_dropped_ring_waits_for_what_is_under_way() {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&vec![1; 1 << 20]).expect("data");
        let Some(mut uring) = ring(&file, 16, 65_536) else { return };
        for slot in 0..16 {
            assert!(uring.queue(slot, u64::from(slot) * 65_536, false));
        }
        drop(uring);
    }
}
