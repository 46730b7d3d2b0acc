//! A structure that the drive has sent, in each of the forms that its descriptor gives.
#![forbid(unsafe_code)]

use nvmetal_core::describe::Descriptor;
use serde_json::json;

use crate::error::{Error, Kind, Result};
use crate::exit::Exit;
use crate::output::{Format, Output, bold, note, pretty};
use crate::provenance::{self, DeviceFacts, HostFacts};
use crate::session::Session;

/// The forms in which a structure can be had.
pub const FORMS: &[Format] = &[Format::Human, Format::Json, Format::Hex, Format::Raw];

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

impl Page {
    /// Gives the drive back, then shows the structure, or the error that came instead of it.
    pub fn finish(page: Result<Self>, session: Session, out: &mut Output) -> Result<Exit> {
        let path = session.link_path();
        let device = DeviceFacts::of(&session.controller, None, path.as_ref());
        let emulated = session.info().emulated;
        let closed = session.close();
        if let Some(error) = &closed.error {
            note(&format!("giving the drive back: {}", error.message));
        }
        page?.show(&device, emulated, out)?;
        Ok(closed.error.map_or(Exit::Pass, |error| error.kind.exit()))
    }

    fn show(&self, device: &DeviceFacts, emulated: bool, out: &mut Output) -> Result<()> {
        let view = self.view_of.view(&self.bytes);
        // The descriptor writes JSON of its own, with numbers of 128 bits; it is parsed to become part of the document.
        let fields: serde_json::Value = serde_json::from_str(&view.json().to_string())
            .map_err(|error| Error::new(Kind::Internal, format!("{}: {error}", self.view_of.id)))?;
        let document = json!({
            "schema": self.schema,
            "emulated": emulated,
            "nvmetal": env!("CARGO_PKG_VERSION"),
            "time": provenance::now(),
            "device": device,
            "host": HostFacts::here(),
            "namespace_id": self.nsid,
            self.view_of.id: fields,
        });
        out.save(&document)?;
        match out.format {
            Format::Json => out.print(&pretty(&document)),
            Format::Raw => out.bytes(&self.bytes),
            Format::Hex => out.print(&format!("{}\n{}", self.head(device, emulated), view.hex())),
            _ => out.print(&format!("{}\n{}", self.head(device, emulated), view.text())),
        }
    }

    /// What is shown and of which drive, EMULATED first where it is.
    fn head(&self, device: &DeviceFacts, emulated: bool) -> String {
        let emulated = if emulated { "EMULATED  " } else { "" };
        bold(&format!("{emulated}{} of {}, serial {} ({})", self.title, device.model, device.serial, device.address))
    }
}
