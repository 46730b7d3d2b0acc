//! What can go wrong between us and a drive, each with where it happened.
#![forbid(unsafe_code)]

use nvmetal_core::data_pointer::DataPointerError;
use nvmetal_core::lifecycle::LifecycleError;
use nvmetal_core::queue::{DeviceFault, RingError};
use nvmetal_core::status::Status;

use crate::dma::DmaError;
use crate::kernel::KernelError;
use crate::transport::TransportError;
use crate::workload::JobError;

/// An error of the driver.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DriverError {
    /// The way to the device failed.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// There is no memory for it.
    #[error(transparent)]
    Dma(#[from] DmaError),
    /// The way through the kernel's driver failed.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The controller could not be started or stopped.
    #[error("{address}: {doing}: {source}")]
    Lifecycle {
        /// The device.
        address: String,
        /// `bringing the controller up`, `shutting down`, ...
        doing: &'static str,
        /// What happened.
        source: LifecycleError,
    },
    /// A command was completed with an error.
    #[error("{address}: {command} failed on queue {queue}: {status}")]
    Command {
        /// The device.
        address: String,
        /// The queue; 0 is the admin queue.
        queue: u16,
        /// The command's name.
        command: String,
        /// What the controller said.
        status: Status,
    },
    /// A command was not completed in time.
    #[error("{address}: {command} on queue {queue} was not completed within {waited_ms} ms")]
    Timeout {
        /// The device.
        address: String,
        /// The queue; 0 is the admin queue.
        queue: u16,
        /// The command's name.
        command: String,
        /// How long was waited.
        waited_ms: u64,
    },
    /// The controller is to be reset: the queue takes no part in anything until
    /// [`IoQueue::try_recover`](crate::io_queue::IoQueue::try_recover) has given back what was in flight.
    #[error("{address}: queue {queue} is parked: the controller is being reset")]
    Parked {
        /// The device.
        address: String,
        /// The queue.
        queue: u16,
    },
    /// Nothing brings the controller back.
    #[error("{address}: the controller was given up: {detail}")]
    GivenUp {
        /// The device.
        address: String,
        /// What was tried last.
        detail: String,
    },
    /// The device did what no correct device does.
    #[error("{address}: the controller broke the protocol: {source}")]
    Fault {
        /// The device.
        address: String,
        /// What it did.
        source: DeviceFault,
    },
    /// The device is gone.
    #[error("{address}: device lost: {detail}")]
    Lost {
        /// The device.
        address: String,
        /// What was seen.
        detail: String,
    },
    /// What the device says of itself cannot be, or cannot be handled.
    #[error("{address}: {detail}")]
    Unusable {
        /// The device.
        address: String,
        /// What it says.
        detail: String,
    },
    /// A workload that cannot be done on this drive.
    #[error(transparent)]
    Job(#[from] JobError),
    /// The caller asked for something that cannot be done.
    #[error("{0}")]
    Request(String),
}

impl DriverError {
    /// Whether the device is gone or does not answer, as opposed to answering with an error.
    pub fn is_lost(&self) -> bool {
        match self {
            Self::Lost { .. }
            | Self::GivenUp { .. }
            | Self::Timeout { .. }
            | Self::Transport(TransportError::Lost { .. } | TransportError::Protocol { .. })
            | Self::Lifecycle {
                source:
                    LifecycleError::NotAccessible { .. }
                    | LifecycleError::Timeout { .. }
                    | LifecycleError::FatalStatus { .. },
                ..
            } => true,
            Self::Kernel(source) => source.is_lost(),
            Self::Dma(DmaError::Map(source)) => {
                matches!(source, TransportError::Lost { .. } | TransportError::Protocol { .. })
            }
            _ => false,
        }
    }

    /// The status, if it is a command that failed.
    pub fn status(&self) -> Option<Status> {
        match self {
            Self::Command { status, .. } => Some(*status),
            _ => None,
        }
    }
}

impl From<RingError> for DriverError {
    fn from(error: RingError) -> Self {
        Self::Request(error.to_string())
    }
}

impl From<DataPointerError> for DriverError {
    fn from(error: DataPointerError) -> Self {
        Self::Request(error.to_string())
    }
}
