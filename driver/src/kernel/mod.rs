//! A drive that the kernel holds, looked at through the kernel's own driver.
//!
//! Taking a drive away from the kernel is not always possible: it holds the file system that runs the machine, there is
//! no IOMMU, or nobody wants it unbound. What can be known without it is this module's. Nothing here changes who has the
//! drive, and nothing here writes unless it is handed a [`WritePermit`].
//!
//! | file | holds |
//! |---|---|
//! | [`controller`] | admin commands through the node `/dev/nvme0`, of the kinds that only read ([`read_only`]) |
//! | `passthrough` | the system call that carries them |
//! | [`block`] | a namespace's block device, or a plain file, opened past the page cache |
//! | [`engine`] | a [`Job`](crate::workload::Job) on it, by io_uring or, where there is none, by threads that wait |
//! | `uring`, `blocking` | the two ways of the engine |
//! | `record`, `sequence` | what both ways share: what is measured, and where the next I/O goes |
//! | [`facts`] | what sysfs tells in place of the controller's registers |
//!
//! The kernel stands between us and the drive, and some things cannot be seen past it. [`NOT_JUDGED`] lists them, so that
//! a report says what it leaves out.
#![deny(unsafe_code)]

pub mod block;
mod blocking;
pub mod controller;
pub mod engine;
pub mod error;
pub mod facts;
mod passthrough;
pub mod read_only;
mod record;
mod sequence;
mod uring;

pub use block::{BlockTarget, WritePermit};
pub use controller::KernelController;
pub use engine::{BlockRun, Engine, EngineChoice, run};
pub use error::KernelError;
pub use facts::{BlockFacts, ControllerFacts};

/// Something that is not judged through the kernel, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct NotJudged {
    /// What.
    pub what: &'static str,
    /// Why not.
    pub why: &'static str,
}

/// What cannot be judged through the kernel's driver. Link, SMART data, temperature, speed and latency can.
pub const NOT_JUDGED: &[NotJudged] = &[
    NotJudged {
        what: "controller registers (CAP, CC, CSTS)",
        why: "the kernel's driver owns them; state and identity come from sysfs and Identify instead",
    },
    NotJudged { what: "bring-up, shutdown and reset", why: "the controller was brought up by the kernel and stays up" },
    NotJudged {
        what: "queues, doorbells and interrupts",
        why: "the kernel's, and shared with everything else that runs",
    },
    NotJudged {
        what: "errors that a retry recovered",
        why: "the kernel repeats failed commands by itself and tells only what failed for good",
    },
    NotJudged {
        what: "the status of a failed read",
        why: "the block layer turns it into an error number that several statuses share",
    },
    NotJudged {
        what: "the drive's latency alone",
        why: "what is measured includes the kernel's block layer, its interrupts and whatever else uses the drive",
    },
];
