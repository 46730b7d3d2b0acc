//! The output forms of nvme-cli, for the structures that have one.
//!
//! What stands in nvme-cli's text for the name of a device is here how the device was named. A drive in software says so
//! in its JSON by a key of its own, `emulated`.
#![forbid(unsafe_code)]

use nvmetal_core::describe::Descriptor;
use nvmetal_core::nvme_cli;

/// The controller as a whole, where a namespace is asked for.
const ALL_NAMESPACES: u32 = 0xffff_ffff;

/// Whose structure it is.
#[derive(Debug, Clone, Copy)]
pub struct Owner<'a> {
    /// The device, as it is called.
    pub device: &'a str,
    /// The namespace, where it is of one.
    pub nsid: Option<u32>,
    /// Whether the device is a drive in software.
    pub emulated: bool,
    /// Whether `-v` was given.
    pub verbose: bool,
}

/// The text; `None` where nvme-cli has none of that structure.
pub fn text(structure: &Descriptor, bytes: &[u8], owner: Owner<'_>) -> Option<String> {
    let device = owner.device;
    Some(match structure.id {
        "smart" => nvme_cli::smart(bytes, device, owner.nsid.unwrap_or(ALL_NAMESPACES)).to_string(),
        "ctrl" => nvme_cli::controller(bytes).to_string(),
        "ns" => nvme_cli::namespace(bytes, owner.nsid.unwrap_or(1)).to_string(),
        "error" => nvme_cli::error_log(bytes, device).to_string(),
        "firmware" => nvme_cli::firmware_log(bytes, device).to_string(),
        "self-test" => nvme_cli::self_test_log(bytes, device).to_string(),
        "registers" => nvme_cli::registers(bytes).to_string(),
        _ => return None,
    })
}

/// The JSON; `None` where nvme-cli has none of that structure.
pub fn json(structure: &Descriptor, bytes: &[u8], owner: Owner<'_>) -> Option<String> {
    let json = match structure.id {
        "smart" => nvme_cli::smart_json(bytes, owner.verbose).to_string(),
        "ctrl" => nvme_cli::controller_json(bytes).to_string(),
        "ns" => nvme_cli::namespace_json(bytes).to_string(),
        "error" => nvme_cli::error_log_json(bytes).to_string(),
        "firmware" => nvme_cli::firmware_log_json(bytes, owner.device).to_string(),
        "self-test" => nvme_cli::self_test_log_json(bytes).to_string(),
        "registers" => nvme_cli::registers_json(bytes).to_string(),
        _ => return None,
    };
    // Core's tests parse the JSON of every form at every length.
    let mut value: serde_json::Value = serde_json::from_str(&json).ok()?;
    if let Some(object) = value.as_object_mut().filter(|_| owner.emulated) {
        object.insert("emulated".to_owned(), true.into());
    }
    Some(crate::output::pretty(&value))
}

/// Whether nvme-cli has forms of the structure.
pub fn has(structure: &Descriptor) -> bool {
    matches!(structure.id, "smart" | "ctrl" | "ns" | "error" | "firmware" | "self-test" | "registers")
}
