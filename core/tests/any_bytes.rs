//! Every structure, on bytes of any length and content: nothing panics, JSON stays JSON, text stays printable.
#![forbid(unsafe_code)]

use nvmetal_core::describe::structures;
use nvmetal_core::log::persistent;
use proptest::prelude::*;

/// Text, JSON and hex of these bytes as every structure there is.
fn describe_as_everything(bytes: &[u8]) {
    for descriptor in structures() {
        let view = descriptor.view(bytes);
        let (text, json, hex) = (view.text().to_string(), view.json().to_string(), view.hex().to_string());
        let parsed: serde_json::Value =
            serde_json::from_str(&json).unwrap_or_else(|error| panic!("{}: {error}: {json}", descriptor.id));
        assert!(parsed.is_object());
        for output in [text, json, hex] {
            assert!(!output.chars().any(|c| c.is_control() && c != '\n'), "{}", descriptor.id);
        }
    }
    for event in persistent::events(bytes) {
        if let Some(view) = event.view() {
            view.text().to_string();
        }
    }
    nvmetal_core::identify::namespace_identifiers(bytes).count();
}

#[test]
fn pages_of_ones_and_of_zeroes_are_described() {
    describe_as_everything(&[0xff; 4096]);
    describe_as_everything(&[0; 4096]);
}

#[test]
fn lengths_from_nothing_up_are_described() {
    // All lengths around the short structures, then steps that meet no boundary twice at the same place.
    for length in (0..70).chain((70..600).step_by(53)).chain([1023, 1025, 3611, 4095]) {
        describe_as_everything(&vec![0xa5; length]);
    }
}

#[test]
fn ids_are_unique_and_fields_lie_side_by_side() {
    let mut ids: Vec<_> = structures().map(|descriptor| descriptor.id).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
    for descriptor in structures() {
        let mut at = 0;
        for field in descriptor.fields {
            assert_eq!(field.offset, at, "{}.{}", descriptor.id, field.id);
            at += field.bytes();
        }
        assert_eq!(at, descriptor.size, "{}", descriptor.id);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]
    #[test]
    fn any_bytes_are_described(bytes in proptest::collection::vec(any::<u8>(), 0..4200)) {
        describe_as_everything(&bytes);
    }
}
