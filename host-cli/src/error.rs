//! What a person is told when something cannot be done: one sentence, and what to do about it.
//!
//! Libraries below have typed errors of their own; here each of them gets its [`Kind`] (which decides the exit code and
//! is the word that scripts match on) and its remedy. Nothing else in the command line prints errors.
#![forbid(unsafe_code)]

use std::fmt;

use crate::exit::Exit;

/// The result of everything in the command line.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What sort of trouble it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The command line makes no sense.
    Usage,
    /// There is no such device.
    UnknownDevice,
    /// Somebody uses the drive, or doubt remains.
    InUse,
    /// It would overwrite data, and nothing allows that.
    Refused,
    /// The user may not do it.
    NoPermission,
    /// The machine lacks VFIO, an IOMMU, a module, memory.
    Environment,
    /// The drive is gone.
    DeviceLost,
    /// The drive does not answer in time.
    TimedOut,
    /// The drive said no, or behaved against the specification.
    Device,
    /// The drive does not support it.
    Unsupported,
    /// A file could not be read or written.
    File,
    /// The run was ended by Ctrl-C before there was a result.
    Interrupted,
    /// The run was ended by SIGTERM before there was a result.
    Terminated,
    /// A defect of nvmetal.
    Internal,
    /// Anything else.
    Other,
}

impl Kind {
    /// The word for scripts.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Usage => "usage",
            Self::UnknownDevice => "unknown-device",
            Self::InUse => "in-use",
            Self::Refused => "refused",
            Self::NoPermission => "no-permission",
            Self::Environment => "environment",
            Self::DeviceLost => "device-lost",
            Self::TimedOut => "timed-out",
            Self::Device => "device",
            Self::Unsupported => "unsupported",
            Self::File => "file",
            Self::Interrupted => "interrupted",
            Self::Terminated => "terminated",
            Self::Internal => "internal",
            Self::Other => "error",
        }
    }

    /// How the process ends.
    pub const fn exit(self) -> Exit {
        match self {
            Self::Usage | Self::UnknownDevice => Exit::Usage,
            Self::InUse | Self::Refused => Exit::Refused,
            Self::NoPermission | Self::Environment => Exit::Environment,
            Self::DeviceLost | Self::TimedOut => Exit::Lost,
            Self::Unsupported => Exit::Unsupported,
            Self::Interrupted => Exit::Interrupted,
            Self::Terminated => Exit::Terminated,
            Self::Device | Self::File | Self::Internal | Self::Other => Exit::RunTime,
        }
    }
}

/// An error as it is shown.
#[derive(Debug)]
pub struct Error {
    /// What sort of trouble.
    pub kind: Kind,
    /// One sentence without a full stop.
    pub message: String,
    /// What to do, where something can be done.
    pub remedy: Option<String>,
}

impl Error {
    /// An error without a remedy (yet).
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), remedy: None }
    }

    /// A mistake on the command line.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message)
    }

    /// The same error with what to do.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// The error as an object for `-o json`.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "schema": "nvmetal.error/1",
            "error": { "kind": self.kind.word(), "message": self.message, "remedy": self.remedy },
            "exit_code": self.kind.exit().code(),
        })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// Gives the error of a file its path.
pub trait FileContext<T> {
    /// The path is part of the sentence; `doing` is a verb: "read", "write".
    fn file(self, doing: &str, path: &std::path::Path) -> Result<T>;
}

impl<T> FileContext<T> for std::io::Result<T> {
    fn file(self, doing: &str, path: &std::path::Path) -> Result<T> {
        self.map_err(|error| Error::new(Kind::File, format!("cannot {doing} {}: {error}", path.display())))
    }
}
