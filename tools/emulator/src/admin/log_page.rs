//! Get Log Page.
#![forbid(unsafe_code)]

use nvmetal_core::command::admin::GetLogPage;
use nvmetal_core::command::{Command, SubmissionEntry};
use nvmetal_core::status::Status;
use zerocopy::IntoBytes;

use crate::controller::status as code;
use crate::emulator::Emulator;
use crate::guest_memory::Access;

/// The log pages that there are.
const SUPPORTED: &[u8] = &[0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x81];

impl Emulator {
    pub(super) fn get_log_page(&mut self, entry: &SubmissionEntry, access: &Access<'_>) -> Result<u64, Status> {
        let command = GetLogPage::from_entry(entry);
        if command.ot || command.lpo % 4 != 0 {
            return Err(code::INVALID_FIELD);
        }
        let of_controller = matches!(entry.nsid(), 0 | u32::MAX);
        let page = match command.lid.into_bits() {
            0x00 => supported_pages(),
            0x01 => self.error_log.page(),
            // The health of this drive is that of the whole controller.
            0x02 if !of_controller => return Err(code::INVALID_FIELD),
            0x02 => {
                let model = &self.options.model;
                self.health.thermal.pass(model, self.now_ns);
                self.health.smart(model, self.now_ns, self.error_log.count).as_bytes().to_vec()
            }
            0x03 => firmware_slots(),
            0x04 => vec![0; 4096],
            0x05 => commands_and_effects(self.options.shadow_doorbells),
            0x06 => self.self_tests.page(self.now_ns).as_bytes().to_vec(),
            0x81 => self.sanitize.page(self.now_ns, self.options.model.capacity).as_bytes().to_vec(),
            _ => return Err(code::INVALID_LOG_PAGE),
        };
        let bytes = usize::try_from(command.numd.count() * 4).map_err(|_| code::INVALID_FIELD)?;
        let from = usize::try_from(command.lpo).ok().filter(|&from| from < page.len()).ok_or(code::INVALID_FIELD)?;
        let part = page.get(from..).unwrap_or_default();
        let sent = part.get(..bytes.min(part.len())).unwrap_or_default();
        self.pieces.resolve(entry, bytes as u64, self.registers.page_bytes(), access)?;
        self.pieces.send(sent, access)?;
        self.pieces.send_zeros((bytes - sent.len()) as u64, access)?;
        if !command.rae {
            self.async_events.log_page_read(command.lid.into_bits());
            self.tell_events(access);
        }
        Ok(0)
    }
}

/// Firmware Slot Information: one slot, in use.
fn firmware_slots() -> Vec<u8> {
    let mut page = vec![0; 512];
    if let Some(afi) = page.first_mut() {
        *afi = 1;
    }
    if let Some(revision) = page.get_mut(8..16) {
        revision.copy_from_slice(super::identify::FIRMWARE);
    }
    page
}

/// Supported Log Pages: one dword for each identifier, bit 0 where the page is supported.
fn supported_pages() -> Vec<u8> {
    let mut page = vec![0; 1024];
    for &lid in SUPPORTED {
        if let Some(first) = page.get_mut(usize::from(lid) * 4) {
            *first = 1;
        }
    }
    page
}

/// Commands Supported and Effects: one dword for each opcode.
fn commands_and_effects(shadow_doorbells: bool) -> Vec<u8> {
    const SUPPORTED: u32 = 1;
    const CHANGES_BLOCKS: u32 = 1 << 1;
    const CHANGES_NAMESPACE: u32 = 1 << 2;
    const ALONE: u32 = 1 << 16;
    let admin = [0x00u8, 0x01, 0x02, 0x04, 0x05, 0x06, 0x08, 0x09, 0x0a, 0x0c].map(|opcode| (opcode, SUPPORTED));
    let media = [
        (0x14u8, SUPPORTED),
        (0x80, SUPPORTED | CHANGES_BLOCKS | CHANGES_NAMESPACE | ALONE),
        (0x84, SUPPORTED | CHANGES_BLOCKS | ALONE),
    ];
    let shadows = shadow_doorbells.then_some((0x7c, SUPPORTED));
    let io = [
        (0x00u8, SUPPORTED),
        (0x01, SUPPORTED | CHANGES_BLOCKS),
        (0x02, SUPPORTED),
        (0x04, SUPPORTED | CHANGES_BLOCKS),
        (0x05, SUPPORTED),
        (0x08, SUPPORTED | CHANGES_BLOCKS),
        (0x09, SUPPORTED | CHANGES_BLOCKS),
        (0x0c, SUPPORTED),
        (0x19, SUPPORTED | CHANGES_BLOCKS),
    ];
    let mut page = vec![0; 4096];
    for (base, opcode, effects) in admin
        .iter()
        .chain(&media)
        .chain(&shadows)
        .map(|&(opcode, effects)| (0, opcode, effects))
        .chain(io.iter().map(|&(o, e)| (1024, o, e)))
    {
        if let Some(place) = page.get_mut(base + usize::from(opcode) * 4..).and_then(|rest| rest.first_chunk_mut::<4>())
        {
            *place = effects.to_le_bytes();
        }
    }
    page
}
