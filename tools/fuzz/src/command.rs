//! Entries: any sixty-four bytes as any command, any sixteen as a completion, any dword as a feature's value.

use arbitrary::Unstructured;
use nvmetal_core::command::{Command, SubmissionEntry, admin, io, zoned};
use nvmetal_core::completion::CompletionEntry;
use nvmetal_core::describe::Value;
use nvmetal_core::feature::{FEATURES, FeatureId};
use nvmetal_core::status::Status;

use crate::describe::check;

/// A submission entry, a completion entry, a feature and its value.
pub fn run(data: &[u8]) {
    let _ = entries(&mut Unstructured::new(data));
}

fn entries(input: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    submission(&SubmissionEntry::from_bytes(&input.arbitrary()?));
    let bytes: [u8; 16] = input.arbitrary()?;
    let completion = CompletionEntry::from_bytes(bytes);
    assert_eq!(completion.to_bytes(), bytes);
    status(completion.status());
    let _ = format!("{completion:?}");
    let (id, value) = (FeatureId::from_bits(input.arbitrary()?), input.arbitrary()?);
    feature(id, value, input.bytes(input.len())?);
    Ok(())
}

fn submission(entry: &SubmissionEntry) {
    assert_eq!(SubmissionEntry::from_words(entry.words()), *entry);
    assert_eq!(SubmissionEntry::from_bytes(&entry.to_bytes()), *entry);
    let _ = format!("{entry:?}");
    for command in [admin::COMMANDS, io::COMMANDS, zoned::COMMANDS].into_iter().flatten() {
        for field in command.fields {
            let bits = entry.field(field.dword.into(), field.low.into(), field.width.into());
            let value = Value::from_bits(bits.into(), field.width.into(), field.shape);
            let _ = (value.to_string(), value.meaning());
        }
    }
    same::<admin::GetLogPage>(entry);
    same::<admin::Identify>(entry);
    same::<admin::SetFeatures>(entry);
    same::<admin::CreateIoSubmissionQueue>(entry);
    same::<admin::CreateIoCompletionQueue>(entry);
    same::<admin::FormatNvm>(entry);
    same::<admin::Sanitize>(entry);
    same::<io::Read>(entry);
    same::<io::Write>(entry);
    same::<io::WriteZeroes>(entry);
}

/// A command that is read from an entry and written to another is read from that one as the same command.
fn same<C: Command + PartialEq + core::fmt::Debug>(entry: &SubmissionEntry) {
    let command = C::from_entry(entry);
    assert_eq!(C::from_entry(&command.entry()), command);
}

fn status(status: Status) {
    let _ = (status.to_string(), format!("{status:?}"), status.type_name(), status.may_retry());
    assert_eq!(status.is_success(), status.sct() == 0 && status.sc() == 0);
    let _ = status.code();
}

fn feature(id: FeatureId, value: u32, data: &[u8]) {
    let _ = id.to_string();
    for feature in FEATURES.iter().filter(|feature| feature.id == id) {
        for part in feature.value {
            let whole = Value::from_bits(value.into(), 32, part.shape);
            let _ = whole.part(part.low.into(), part.width.into(), part.shape).to_string();
        }
        if let Some(descriptor) = feature.data {
            check(descriptor.view(data));
        }
    }
}
