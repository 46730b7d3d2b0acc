//! What Identify and Get Log Page return, walked as the driver and the command line walk it.

use arbitrary::Unstructured;
use nvmetal_core::command::admin::{Cns, Csi};
use nvmetal_core::identify::{self, ActiveNamespaceList, Controller, Namespace, namespace_identifiers};
use nvmetal_core::log::{self, Chunks, ErrorEntry, FirmwareSlots, LogId, SelfTest, Smart, TelemetryHeader, vendor};
use zerocopy::FromBytes;

use crate::describe::check;

/// Parameters, then the page.
pub fn run(data: &[u8]) {
    let _ = pages(&mut Unstructured::new(data));
}

fn pages(input: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let (lid, cns, csi, vid) =
        (LogId::from_bits(input.arbitrary()?), input.arbitrary()?, input.arbitrary()?, input.arbitrary()?);
    chunks(lid, [input.arbitrary()?, input.arbitrary()?, input.arbitrary()?], input.arbitrary()?);
    let model: [u8; 40] =
        if input.ratio(1, 2)? { input.arbitrary()? } else { *b"INTEL SSD                               " };
    let page = input.bytes(input.len())?;
    let of_log = log::descriptor(lid).or_else(|| vendor::identify(vid, &model, lid, page));
    for descriptor in of_log.into_iter().chain(identify::descriptor(Cns::from_bits(cns), Csi::from_bits(csi))) {
        check(descriptor.view(page));
    }
    for event in log::persistent::events(page) {
        if let Some(view) = event.view() {
            check(view);
        }
    }
    assert!(namespace_identifiers(page).count() <= page.len());
    typed(page);
    Ok(())
}

/// The pieces of a log page lie end to end and make up the whole.
fn chunks(lid: LogId, [offset, bytes, piece]: [u64; 3], retain: bool) {
    // Up to a hundred pieces or so: more are no different.
    let (bytes, piece) = (bytes & 0xff_ffff, piece & 0xff_ffff | 0x1_0000);
    let Ok(chunks) = Chunks::new(lid, u32::MAX, offset, bytes, piece, retain) else { return };
    let mut at = 0;
    for chunk in chunks {
        assert_eq!((chunk.start, chunk.command.lpo), (at, offset + at));
        assert_eq!(chunk.command.numd.count() * 4, u64::from(chunk.bytes));
        at += u64::from(chunk.bytes);
        assert_eq!(chunk.command.rae, retain || at < bytes, "only the last piece may clear the event");
    }
    assert_eq!(at, bytes);
}

/// What the structures compute from their fields.
fn typed(page: &[u8]) {
    if let Ok((smart, _)) = Smart::ref_from_prefix(page) {
        let _ = (smart.temperature_kelvin(), smart.remaining_percent());
    }
    if let Ok((controller, _)) = Controller::ref_from_prefix(page) {
        for mpsmin in 0..16 {
            let _ = controller.max_transfer_bytes(mpsmin);
        }
        for state in controller.power_states() {
            let _ = (state.maximum_power_100uw(), state.idle_power_100uw(), state.active_power_100uw());
        }
    }
    if let Ok((namespace, _)) = Namespace::ref_from_prefix(page) {
        let _ = (namespace.format_index(), namespace.format_count());
        let _ = namespace.format().map(|format| format.data_bytes());
    }
    if let Ok((list, _)) = ActiveNamespaceList::ref_from_prefix(page) {
        assert!(list.iter().count() <= 1024);
    }
    if let Ok((entry, _)) = ErrorEntry::ref_from_prefix(page) {
        let _ = (entry.is_used(), entry.phase(), entry.status().to_string());
    }
    if let Ok((log, _)) = SelfTest::ref_from_prefix(page) {
        for result in log.results() {
            let _ = (result.failing_nsid(), result.failing_lba(), result.failing_status().map(|s| s.to_string()));
        }
    }
    if let Ok((slots, _)) = FirmwareSlots::ref_from_prefix(page) {
        let _ = slots.revisions();
    }
    if let Ok((header, _)) = TelemetryHeader::ref_from_prefix(page) {
        for area in 0..=u8::MAX {
            let _ = header.bytes_to_area(area);
        }
    }
}
