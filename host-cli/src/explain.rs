//! From the libraries' errors to what a person is told: the kind (and with it the exit code) and what to do.
//!
//! A library says what happened and where; only here is it known what the person was doing and can do next.
#![forbid(unsafe_code)]

use nvmetal_driver::DriverError;
use nvmetal_driver::dma::DmaError;
use nvmetal_driver::kernel::KernelError;
use nvmetal_driver::pci::SysfsError;
use nvmetal_driver::pci::binding::{BindError, BindErrorKind};
use nvmetal_driver::transport::TransportError;
use nvmetal_driver::vfio::VfioError;
use nvmetal_driver::workload::JobError;

use crate::error::{Error, Kind};

impl From<BindError> for Error {
    fn from(error: BindError) -> Self {
        let kind = match error.kind() {
            BindErrorKind::Refused => Kind::InUse,
            BindErrorKind::Environment if is_permission(&error) => Kind::NoPermission,
            BindErrorKind::Environment => Kind::Environment,
            BindErrorKind::Gone if matches!(error, BindError::NotNvme { .. }) => Kind::UnknownDevice,
            BindErrorKind::Gone => Kind::DeviceLost,
            BindErrorKind::Failed => Kind::Other,
        };
        Self::new(kind, error.to_string()).remedy(sentence(&error.remedy()))
    }
}

fn is_permission(error: &BindError) -> bool {
    std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source())
        .filter_map(|error| error.downcast_ref::<SysfsError>())
        .any(SysfsError::is_permission_denied)
        || matches!(error, BindError::Sysfs(error) if error.is_permission_denied())
}

impl From<SysfsError> for Error {
    fn from(error: SysfsError) -> Self {
        let kind = if error.is_permission_denied() { Kind::NoPermission } else { Kind::Environment };
        Self::new(kind, error.to_string())
    }
}

impl From<VfioError> for Error {
    fn from(error: VfioError) -> Self {
        let (kind, remedy) = match &error {
            VfioError::NoSuchDevice { .. } => (Kind::UnknownDevice, "`nvmetal list` shows the drives of this machine."),
            VfioError::Busy { .. } => (Kind::InUse, "A drive has one user at a time."),
            VfioError::Permission { .. } => {
                (Kind::NoPermission, "`nvmetal doctor` names the files and who may open them.")
            }
            _ if error.is_environment() => {
                let remedy = "`nvmetal doctor` shows what stands in the way; `nvmetal validate DEVICE --via kernel` does without.";
                (Kind::Environment, remedy)
            }
            _ => (Kind::Device, "`dmesg` may tell more."),
        };
        Self::new(kind, error.to_string()).remedy(remedy)
    }
}

impl From<TransportError> for Error {
    fn from(error: TransportError) -> Self {
        let kind = match &error {
            TransportError::Lost { .. } | TransportError::Protocol { .. } => Kind::DeviceLost,
            TransportError::Unsupported { .. } => Kind::Unsupported,
            TransportError::Map { .. } => Kind::Environment,
            TransportError::OutOfRange { .. } | TransportError::System { .. } => Kind::Device,
        };
        let text = error.to_string();
        match kind {
            Kind::DeviceLost => lost(kind, text),
            Kind::Environment => Self::new(kind, text).remedy("`nvmetal doctor` shows the limits of this machine."),
            _ => Self::new(kind, text),
        }
    }
}

impl From<KernelError> for Error {
    fn from(error: KernelError) -> Self {
        let text = error.to_string();
        match &error {
            KernelError::Permission { .. } => Self::new(Kind::NoPermission, text),
            error if error.is_lost() => lost(Kind::DeviceLost, text),
            error if error.is_environment() => Self::new(Kind::Environment, text),
            error if error.is_refusal() => Self::new(Kind::InUse, text),
            _ => Self::new(Kind::Device, text).remedy("`dmesg` may tell more."),
        }
    }
}

impl From<DriverError> for Error {
    fn from(error: DriverError) -> Self {
        let text = error.to_string();
        match error {
            DriverError::Transport(error) | DriverError::Dma(DmaError::Map(error)) => error.into(),
            DriverError::Kernel(error) => error.into(),
            DriverError::Timeout { .. } => lost(Kind::TimedOut, text),
            error if error.is_lost() => lost(Kind::DeviceLost, text),
            DriverError::Dma(DmaError::Allocate { .. }) => Self::new(Kind::Environment, text)
                .remedy("Ask for fewer queues, a smaller depth or smaller blocks, or give the machine more memory."),
            DriverError::Job(error) => error.into(),
            DriverError::Request(_) | DriverError::Dma(_) => Self::usage(text),
            DriverError::Command { status, .. } => {
                let kind = if is_unsupported(status) { Kind::Unsupported } else { Kind::Device };
                Self::new(kind, text)
            }
            _ => Self::new(Kind::Device, text)
                .remedy("The drive behaves against the specification; its firmware may have an update."),
        }
    }
}

impl From<JobError> for Error {
    fn from(error: JobError) -> Self {
        match error {
            JobError::NoSuchCommand(_) => Self::new(Kind::Unsupported, error.to_string()),
            JobError::Senseless(_) => Self::usage(error.to_string()),
            error => Self::usage(error.to_string()).remedy(instead(error)),
        }
    }
}

/// What to ask for instead of a job that cannot be done.
fn instead(error: JobError) -> String {
    match error {
        JobError::BlockSize { lba_bytes, .. } => format!("Give --bs a multiple of {lba_bytes}."),
        JobError::Offset { lba_bytes } => format!("Give --offset a multiple of {lba_bytes}."),
        JobError::Nothing => "Give --iodepth and --numjobs at least 1.".to_owned(),
        JobError::NoEnd => "Give --runtime a time above 0, or a --size.".to_owned(),
        JobError::Queues { queues, .. } => format!("Give --numjobs at most {queues}."),
        JobError::TooLong { .. } | JobError::Commands { .. } => "Give --bs a smaller size.".to_owned(),
        JobError::Depth { holds, .. } => format!("Give --iodepth at most {holds}."),
        JobError::Size { room_bytes, .. } => format!("Give --size at most {room_bytes}, or leave it out."),
        JobError::Senseless(_) | JobError::NoSuchCommand(_) => String::new(),
        JobError::NoRoom { .. } => "Give a smaller --offset or --bs, or a larger --size.".to_owned(),
    }
}

/// Invalid Command Opcode, Invalid Field in Command, Invalid Log Page: the drive does not have what was asked for.
fn is_unsupported(status: nvmetal_core::status::Status) -> bool {
    matches!(status.type_and_code(), 0x001 | 0x002 | 0x109)
}

const LOST: &str = "Reseat drive and card and look at `dmesg`; a drive that is gone until the next power cycle points at \
                    power, heat or a power saving state.";

/// The error of a drive that is gone. What is behind a socket is a process, which nobody can reseat.
fn lost(kind: Kind, text: String) -> Error {
    let remedy = if text.starts_with(nvmetal_driver::transport::vfio_user::PREFIX) { LOST_PROCESS } else { LOST };
    Error::new(kind, text).remedy(remedy)
}

const LOST_PROCESS: &str =
    "Look at what the server says, and whether it is still there; a new one takes up the same socket.";

/// A remedy as a sentence.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    let starts_with_code = text.starts_with('`');
    let text = if starts_with_code { text.to_owned() } else { first + letters.as_str() };
    if text.ends_with(['.', ':']) { text } else { text + "." }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nvmetal_core::status::Status;

    #[test]
    fn a_remedy_reads_as_a_sentence() {
        assert_eq!(sentence("unmount it"), "Unmount it.");
        assert_eq!(sentence("`dmesg` tells why"), "`dmesg` tells why.");
    }

    #[test]
    fn a_lost_drive_and_a_silent_one_end_with_the_same_code() {
        let lost = DriverError::Lost { address: "x".into(), detail: "all ones".into() };
        let silent = DriverError::Timeout { address: "x".into(), queue: 1, command: "Read".into(), waited_ms: 1 };
        for error in [lost, silent] {
            assert_eq!(Error::from(error).kind.exit().code(), 7);
        }
    }

    #[test]
    fn what_the_kernels_driver_says_ends_with_the_code_of_its_kind() {
        let path = std::path::PathBuf::from("/dev/nvme0");
        let code = |error: KernelError| Error::from(DriverError::from(error)).kind.exit().code();
        let what = || "Identify".to_owned();
        assert_eq!(code(KernelError::Permission { path: path.clone(), what: what() }), 6);
        assert_eq!(code(KernelError::NotHeld { address: "x".into(), driver: None }), 6);
        assert_eq!(code(KernelError::Refused { address: "x".into(), command: what() }), 5);
        assert_eq!(code(KernelError::InUse { path: path.clone() }), 5);
        assert_eq!(code(KernelError::Cancelled { path: path.clone(), what: what() }), 7);
        assert_eq!(code(KernelError::NotABlockDevice { path }), 1);
    }

    #[test]
    fn a33_a_log_page_that_the_drive_does_not_have_is_not_supported() {
        let error =
            |status| DriverError::Command { address: "x".into(), queue: 0, command: "Get Log Page".into(), status };
        assert_eq!(Error::from(error(Status::new(1, 0x09))).kind.exit().code(), 9);
        assert_eq!(Error::from(error(Status::new(0, 0x06))).kind.exit().code(), 1);
    }
}
