//! From what a person types to the device that is meant.
#![forbid(unsafe_code)]

use std::fmt;
use std::path::PathBuf;

use nvmetal_driver::pci::device_spec::{ResolveError, Resolved, resolve};
use nvmetal_driver::pci::{PciAddress, Sysfs};
use nvmetal_driver::transport::vfio_user;
use nvmetal_emulator::{MediaKind, Options};

use crate::error::{Error, Kind, Result};
use crate::output::note;

/// A device that was named on the command line.
#[derive(Debug, Clone)]
pub enum Device {
    /// A function on this machine's PCI bus.
    Pci(Resolved),
    /// The emulator, with its model and options as they were typed.
    Emulated(String),
    /// A controller in another process, behind the socket at this path.
    VfioUser(PathBuf),
}

impl Device {
    /// Finds the device. When a kernel's name was typed, says which PCI function that is.
    pub fn find(text: &str) -> Result<Self> {
        if text == "emulated" || text.starts_with("emulated:") {
            return Ok(Self::Emulated(text.to_owned()));
        }
        if let Some(path) = text.strip_prefix(vfio_user::PREFIX) {
            return Self::find_socket(path.into());
        }
        let resolved = resolve(&Sysfs::host(), text).map_err(|error| unknown(&error))?;
        if resolved.name.is_some() {
            note(&resolved.to_string());
        }
        Ok(Self::Pci(resolved))
    }

    /// Whether its reads and writes move data; the emulator's model `null` answers without.
    pub fn moves_data(&self) -> bool {
        let Self::Emulated(text) = self else { return true };
        let options = text.split_once(':').map_or("", |(_, options)| options);
        Options::parse(options).map_or(true, |options| options.model.media != MediaKind::Null)
    }

    fn find_socket(path: PathBuf) -> Result<Self> {
        if path.exists() {
            return Ok(Self::VfioUser(path));
        }
        Err(Error::new(Kind::UnknownDevice, format!("there is no socket {}", path.display()))
            .remedy("Start a server first, as with `nvmetal emulator serve --socket PATH`."))
    }

    /// Finds a function on the PCI bus; the emulator is none.
    pub fn find_pci(text: &str, command: &str) -> Result<PciAddress> {
        match Self::find(text)? {
            Self::Pci(resolved) => Ok(resolved.address),
            Self::Emulated(_) => Err(not_in_a_slot(command, "the emulator")),
            Self::VfioUser(_) => Err(not_in_a_slot(command, "a controller behind a socket")),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pci(resolved) => write!(f, "{}", resolved.address),
            Self::Emulated(text) => f.write_str(text),
            Self::VfioUser(path) => write!(f, "{}{}", vfio_user::PREFIX, path.display()),
        }
    }
}

/// The error of a command about slots and links for a device that has none.
pub fn not_in_a_slot(command: &str, what: &str) -> Error {
    Error::usage(format!("'{command}' is about a drive of this machine; {what} is in no slot"))
        .remedy("Name a PCI address or a kernel name; `nvmetal list` shows them.")
}

fn unknown(error: &ResolveError) -> Error {
    let kind = match error {
        ResolveError::NotOnPci { .. } => Kind::Unsupported,
        _ => Kind::UnknownDevice,
    };
    Error::new(kind, error.to_string())
        .remedy("`nvmetal list` shows the drives of this machine; `emulated` is a drive that is always there.")
}
