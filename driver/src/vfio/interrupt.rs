//! Interrupts as eventfds, and the two notices that VFIO gives besides.
//!
//! All vectors are set up at once and only once. Some kernels report that the number of vectors cannot be changed while
//! some are in use (`NORESIZE`), and on all of them changing it means a moment in which an interrupt can be lost; so they
//! are set up before the first queue exists.
//!
//! MSI-X is what NVMe controllers have. Where it is absent, MSI does the same; and where that is absent, too, there is
//! the one INTx line, which VFIO masks when it fires and which has to be unmasked before it is waited for again.
//!
//! The notices are a request to give the device back (somebody unbinds it or pulls it out politely) and a fatal error
//! that PCI error handling reported. They are asked for, not waited for, except that a sleeping thread wakes up on them.
#![forbid(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use vfio_bindings::bindings::vfio::{
    VFIO_IRQ_INFO_EVENTFD, VFIO_IRQ_SET_ACTION_TRIGGER, VFIO_IRQ_SET_ACTION_UNMASK, VFIO_IRQ_SET_DATA_EVENTFD,
    VFIO_IRQ_SET_DATA_NONE, VFIO_PCI_ERR_IRQ_INDEX, VFIO_PCI_INTX_IRQ_INDEX, VFIO_PCI_MSI_IRQ_INDEX,
    VFIO_PCI_MSIX_IRQ_INDEX, VFIO_PCI_REQ_IRQ_INDEX,
};

use super::ioctl;

/// Nanoseconds in a second.
const SECOND_NS: u64 = 1_000_000_000;

/// How a device interrupts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum InterruptKind {
    /// Message signalled, extended: a vector for each queue.
    MsiX,
    /// Message signalled.
    Msi,
    /// The one line, level triggered.
    Intx,
}

impl InterruptKind {
    fn index(self) -> u32 {
        match self {
            Self::MsiX => VFIO_PCI_MSIX_IRQ_INDEX,
            Self::Msi => VFIO_PCI_MSI_IRQ_INDEX,
            Self::Intx => VFIO_PCI_INTX_IRQ_INDEX,
        }
    }
}

/// The best kind that the device has, or the one that is wanted, and how many vectors of it; `None` for a device without.
pub(super) fn available(device: BorrowedFd<'_>, wanted: Option<InterruptKind>) -> Option<(InterruptKind, u16)> {
    let kinds = [InterruptKind::MsiX, InterruptKind::Msi, InterruptKind::Intx];
    kinds.into_iter().filter(|kind| wanted.is_none_or(|wanted| wanted == *kind)).find_map(|kind| {
        let info = ioctl::irq_info(device, kind.index()).ok()?;
        let usable = info.count > 0 && info.flags & VFIO_IRQ_INFO_EVENTFD != 0;
        usable.then(|| (kind, u16::try_from(info.count).unwrap_or(u16::MAX)))
    })
}

/// Sets up `count` vectors of `kind`, each with an eventfd of its own.
pub(super) fn enable(device: BorrowedFd<'_>, kind: InterruptKind, count: u16) -> io::Result<Vec<Arc<OwnedFd>>> {
    let events: Vec<OwnedFd> = (0..count).map(|_| new_event()).collect::<io::Result<_>>()?;
    let borrowed: Vec<BorrowedFd<'_>> = events.iter().map(AsFd::as_fd).collect();
    let flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
    ioctl::set_irqs(device, kind.index(), flags, u32::from(count), &borrowed)?;
    Ok(events.into_iter().map(Arc::new).collect())
}

/// Lets the INTx line interrupt again.
pub(super) fn unmask_intx(device: BorrowedFd<'_>) -> Result<(), Errno> {
    let flags = VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_UNMASK;
    ioctl::set_irqs(device, VFIO_PCI_INTX_IRQ_INDEX, flags, 1, &[])
}

/// What VFIO tells besides interrupts.
#[derive(Debug)]
pub struct Notices {
    request: Notice,
    error: Notice,
}

/// One eventfd that is signalled at most a few times, and remembered.
#[derive(Debug)]
struct Notice {
    /// `None` where this kernel or device does not offer it.
    event: Option<OwnedFd>,
    seen: AtomicBool,
}

impl Notices {
    /// Asks for both notices.
    pub(super) fn enable(device: BorrowedFd<'_>) -> io::Result<Self> {
        Ok(Self {
            request: Notice::enable(device, VFIO_PCI_REQ_IRQ_INDEX)?,
            error: Notice::enable(device, VFIO_PCI_ERR_IRQ_INDEX)?,
        })
    }

    /// Whether somebody wants the device back. Once so, always so.
    pub fn release_requested(&self) -> bool {
        self.request.look()
    }

    /// Whether PCI error handling reported a fatal error. Once so, always so.
    pub fn error(&self) -> bool {
        self.error.look()
    }
}

impl Notice {
    fn enable(device: BorrowedFd<'_>, index: u32) -> io::Result<Self> {
        let none = Self { event: None, seen: AtomicBool::new(false) };
        if !ioctl::irq_info(device, index).is_ok_and(|info| info.count > 0) {
            return Ok(none);
        }
        let event = new_event()?;
        let flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
        match ioctl::set_irqs(device, index, flags, 1, &[event.as_fd()]) {
            Ok(()) => Ok(Self { event: Some(event), ..none }),
            Err(errno) => {
                log::debug!("notice {index} is not to be had: {errno}");
                Ok(none)
            }
        }
    }

    fn look(&self) -> bool {
        if let Some(event) = self.waited_for()
            && drain(event)
        {
            self.seen.store(true, Ordering::Relaxed);
        }
        self.seen.load(Ordering::Relaxed)
    }

    /// The eventfd, as long as it has something new to say.
    fn waited_for(&self) -> Option<BorrowedFd<'_>> {
        self.event.as_ref().filter(|_| !self.seen.load(Ordering::Relaxed)).map(AsFd::as_fd)
    }
}

/// Sleeps until `event` is signalled, a notice comes, a signal arrives, or `timeout_ns` have passed.
pub(super) fn wait(event: BorrowedFd<'_>, notices: &Notices, timeout_ns: u64) {
    let timeout = Timespec {
        tv_sec: i64::try_from(timeout_ns / SECOND_NS).unwrap_or(i64::MAX),
        tv_nsec: (timeout_ns % SECOND_NS).cast_signed(),
    };
    let both = [notices.request.waited_for(), notices.error.waited_for()];
    let mut descriptors = [Some(event), both[0], both[1]]
        .map(|event| event.map(|event| PollFd::from_borrowed_fd(event, PollFlags::IN)))
        .into_iter()
        .flatten()
        .collect::<Vec<_>>();
    // Interrupted by a signal: the caller looks at its queue and comes back.
    let _ = poll(&mut descriptors, Some(&timeout));
    drain(event);
    notices.request.look();
    notices.error.look();
}

/// Takes what an eventfd has counted; whether that was anything.
pub(crate) fn drain(event: BorrowedFd<'_>) -> bool {
    rustix::io::read(event, &mut [0_u8; 8]).is_ok()
}

pub(crate) fn new_event() -> io::Result<OwnedFd> {
    Ok(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    fn notices() -> Notices {
        let notice = || Notice { event: Some(new_event().expect("an eventfd")), seen: AtomicBool::new(false) };
        Notices { request: notice(), error: notice() }
    }

    fn signal(event: BorrowedFd<'_>) {
        rustix::io::write(event, &1_u64.to_ne_bytes()).expect("room in the counter");
    }

    #[test]
    fn a_signalled_vector_wakes_at_once_and_is_drained() {
        let (event, notices) = (new_event().expect("an eventfd"), notices());
        signal(event.as_fd());
        wait(event.as_fd(), &notices, u64::MAX);
        assert!(!drain(event.as_fd()), "the wait has drained it");
    }

    #[test]
    fn a_wait_ends_at_its_deadline() {
        let (event, notices, clock) = (new_event().expect("an eventfd"), notices(), Clock::real());
        let before = clock.now_ns();
        wait(event.as_fd(), &notices, 3_000_000);
        assert!(clock.now_ns() - before >= 2_900_000);
    }

    #[test]
    fn a_removal_request_wakes_a_sleeper_and_is_remembered() {
        let (event, notices) = (new_event().expect("an eventfd"), notices());
        assert!(!notices.release_requested());
        signal(notices.request.event.as_ref().expect("there").as_fd());
        wait(event.as_fd(), &notices, u64::MAX);
        assert!(notices.release_requested() && notices.release_requested());
        assert!(!notices.error());
    }
}
