//! A structure that the drive has sent, in each of the forms that its descriptor gives.
#![forbid(unsafe_code)]

use nvmetal_core::describe::Descriptor;
use nvmetal_driver::transport::TransportKind;
use serde_json::json;

use crate::drive::Drive;
use crate::error::Result;
use crate::exit::Exit;
use crate::nvme_cli::{self, Owner};
use crate::output::{Format, Output, bold, note, pretty};
use crate::provenance::{self, DeviceFacts, HostFacts};
use crate::structure::Structure;

/// The forms in which a structure can be had.
pub const FORMS: &[Format] = &[Format::Human, Format::Json, Format::Hex, Format::Raw];
/// The forms of a structure that nvme-cli has, too.
pub const ALL_FORMS: &[Format] =
    &[Format::Human, Format::Json, Format::NvmeCli, Format::NvmeCliJson, Format::Hex, Format::Raw];

/// The forms in which this structure can be had.
pub fn forms(structure: &Descriptor) -> &'static [Format] {
    if nvme_cli::has(structure) { ALL_FORMS } else { FORMS }
}

/// A structure and what it is.
pub struct Page {
    /// The schema of its JSON document.
    pub schema: &'static str,
    /// Its name for people.
    pub title: String,
    /// What its bytes mean.
    pub view_of: &'static Descriptor,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The namespace that it belongs to, if it does.
    pub nsid: Option<u32>,
}

/// The fields of a structure as part of a document.
pub fn fields(view_of: &'static Descriptor, bytes: &[u8]) -> serde_json::Value {
    // The descriptor writes JSON of its own, with numbers of 128 bits; its tests parse every structure's.
    serde_json::from_str(&view_of.view(bytes).json().to_string()).unwrap_or_default()
}

impl Page {
    /// Gives the drive back, then shows the structure, or the error that came instead of it.
    pub fn finish(page: Result<Self>, drive: impl Into<Drive>, out: &mut Output) -> Result<Exit> {
        let drive = drive.into();
        let path = drive.link_path();
        let device = DeviceFacts::of(&drive, None, path.as_ref());
        let emulated = drive.info().emulated;
        let closed = drive.close();
        if let Some(error) = &closed.error {
            note(&format!("giving the drive back: {}", error.message));
        }
        page?.show(&device, emulated, out)?;
        Ok(closed.error.map_or(Exit::Pass, |error| error.kind.exit()))
    }

    fn show(&self, device: &DeviceFacts, emulated: bool, out: &mut Output) -> Result<()> {
        let (structure, bytes) = (Structure::of(self.view_of), &self.bytes);
        let owner = Owner { device: &device.address, nsid: self.nsid, emulated, verbose: out.verbose };
        let document = json!({
            "schema": self.schema,
            "emulated": emulated,
            "nvmetal": env!("CARGO_PKG_VERSION"),
            "time": provenance::now(),
            "device": device,
            "host": HostFacts::here(),
            "namespace_id": self.nsid,
            self.view_of.id: structure.json(bytes),
        });
        out.save(&document)?;
        match out.format {
            Format::Json | Format::Fio | Format::Csv => out.print(&pretty(&document)),
            Format::Raw => out.raw(bytes),
            Format::Hex => out.print(&format!("{}\n{}", self.head(device, emulated), structure.hex(bytes))),
            Format::NvmeCli => out.print(&nvme_cli::text(self.view_of, bytes, owner).unwrap_or_default()),
            Format::NvmeCliJson => out.print(&nvme_cli::json(self.view_of, bytes, owner).unwrap_or_default()),
            Format::Human => out.print(&format!("{}\n{}", self.head(device, emulated), structure.text(bytes))),
        }
    }

    /// What is shown and of which drive, EMULATED first where it is.
    fn head(&self, device: &DeviceFacts, emulated: bool) -> String {
        let emulated = if emulated { "EMULATED  " } else { "" };
        let via = if device.transport == TransportKind::Kernel { ", via kernel" } else { "" };
        let DeviceFacts { model, serial, address, .. } = device;
        bold(&format!("{emulated}{} of {model}, serial {serial} ({address}{via})", self.title))
    }
}
