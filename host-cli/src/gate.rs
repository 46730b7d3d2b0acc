//! The gate before every write.
//!
//! A job that changes what a drive holds is let through when the command line says that it may (`--write`), names the
//! drive by its serial number (so that a wrong device name, the usual accident, is caught), and when the drive bears no
//! mark of anything that somebody may want to keep. The last is found out by our own reads through our own queues, after
//! the drive was taken and just before the first write: what the kernel knew of it earlier proves nothing. Blocks that
//! cannot be read could hold anything, so they count as a reason to refuse. `--destroy-data` overrides the marks, never
//! the serial number.
#![forbid(unsafe_code)]

use clap::Args;
use nvmetal_driver::Namespace;
use serde::Serialize;

use crate::drive::Drive;
use crate::error::{Error, Kind, Result};
use crate::output::note;
use crate::provenance::DeviceFacts;
use crate::signature::{self, Signature, WINDOW_BYTES};
use crate::units::block;

/// Bytes of one read.
const PIECE_BYTES: u64 = 64 << 10;

/// What has to be said for a drive to be written.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Writing")]
pub struct Permission {
    /// Allow the run to overwrite what the drive holds; needs --serial
    #[arg(long)]
    pub write: bool,
    /// Serial number of the drive that may be written
    #[arg(long, value_name = "SN")]
    pub serial: Option<String>,
    /// Write even where partitions, file systems, volumes or swap are found
    #[arg(long)]
    pub destroy_data: bool,
}

/// What was found at the gate, for the result.
#[derive(Debug, Clone, Serialize)]
pub struct Passed {
    /// What was overwritten.
    pub destroyed: Vec<Signature>,
    /// Bytes that could not be looked at.
    pub unreadable: Vec<String>,
}

impl Permission {
    /// Before anything is opened: whether the words that allow writing are there.
    pub fn asked_for(&self, what: &str) -> Result<()> {
        match (self.write, &self.serial) {
            (true, Some(_)) => Ok(()),
            (true, None) => Err(Error::new(Kind::Refused, format!("{what} overwrites data, and --serial is missing"))
                .remedy("Name the drive: --write --serial SN; `nvmetal list` and `nvmetal id ctrl` show the serial.")),
            (false, _) => Err(Error::new(Kind::Refused, format!("{what} overwrites data, and nothing allows it"))
                .remedy("If the drive's contents may be lost: --write --serial SN, with its serial number.")),
        }
    }

    /// With the drive open, just before the first write.
    pub fn pass(&self, drive: &Drive, namespace: Namespace, what: &str) -> Result<Passed> {
        self.asked_for(what)?;
        let asked = self.serial.as_deref().unwrap_or_default().trim();
        let serial = DeviceFacts::of(drive, None, None).serial;
        let serial = serial.trim();
        if asked != serial || serial.is_empty() {
            return Err(Error::new(Kind::Refused, format!("the drive's serial number is '{serial}', not '{asked}'"))
                .remedy("Look which drive this is; nothing was written."));
        }
        let found = look(drive, namespace)?;
        if found.destroyed.is_empty() && found.unreadable.is_empty() {
            return Ok(found);
        }
        if !self.destroy_data {
            let message = format!("the drive is not empty: {}", found.text());
            return Err(Error::new(Kind::Refused, message).remedy(
                "Nothing was written. If all of this may be lost, add --destroy-data; wipefs removes old marks.",
            ));
        }
        note(&format!("destroying data: {}", found.text()));
        Ok(found)
    }
}

impl Passed {
    /// What was found in words.
    pub fn text(&self) -> String {
        let marks = self.destroyed.iter().map(|found| match found.at_bytes {
            at if at % 512 == 0 && at > 0 => format!("{} at {}", found.name, block(at)),
            at => format!("{} at byte {at}", found.name),
        });
        let unreadable = self.unreadable.iter().map(|what| format!("unreadable {what}"));
        marks.chain(unreadable).collect::<Vec<_>>().join(", ")
    }
}

/// Looks at both ends of the namespace.
pub fn look(drive: &Drive, namespace: Namespace) -> Result<Passed> {
    let bytes = u64::try_from(namespace.bytes()).unwrap_or(u64::MAX);
    let window = WINDOW_BYTES.min(bytes);
    let mut passed = Passed { destroyed: Vec::new(), unreadable: Vec::new() };
    let head = window_at(drive, namespace, 0, window, &mut passed.unreadable)?;
    let tail_blocks = window >> namespace.lba_shift;
    let tail = window_at(drive, namespace, namespace.blocks - tail_blocks, window, &mut passed.unreadable)?;
    passed.destroyed = signature::find(&head, &tail, bytes);
    Ok(passed)
}

/// Bytes from a block on; zeros for what cannot be read, which is then named.
fn window_at(
    drive: &Drive,
    namespace: Namespace,
    first_lba: u64,
    bytes: u64,
    unreadable: &mut Vec<String>,
) -> Result<Vec<u8>> {
    let each = match drive {
        Drive::Own(session) => session.controller.max_transfer_bytes().unwrap_or(u64::MAX).min(PIECE_BYTES),
        Drive::Kernel(_) => PIECE_BYTES,
    };
    // Metadata between the blocks counts, too.
    let wire_bytes = namespace.lba_bytes() + u64::from(namespace.metadata_bytes);
    let each_blocks = (each / wire_bytes).max(1);
    let mut reader = drive.reader(namespace, (each_blocks << namespace.lba_shift) as usize)?;
    let mut data = Vec::with_capacity(bytes as usize);
    let (mut lba, end) = (first_lba, first_lba + (bytes >> namespace.lba_shift));
    while lba < end {
        let blocks = each_blocks.min(end - lba);
        match reader.read_again(lba, blocks as u32) {
            Ok((read, _)) => data.extend(read),
            Err(error) if error.status().is_some() => {
                unreadable.push(format!("blocks {lba} to {}", lba + blocks - 1));
                data.resize(data.len() + ((blocks << namespace.lba_shift) as usize), 0);
            }
            Err(error) => return Err(error.into()),
        }
        lba += blocks;
    }
    Ok(data)
}

#[cfg(test)]
mod tests;
