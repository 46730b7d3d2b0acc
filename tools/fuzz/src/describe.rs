//! Every structure, on bytes of any length and content: nothing panics, JSON stays JSON, text stays printable.

use nvmetal_core::describe::{View, structures};

/// The first byte chooses the structure, the others are its bytes.
pub fn run(data: &[u8]) {
    let Some((choice, bytes)) = data.split_first() else { return };
    let all: Vec<_> = structures().collect();
    check(all[usize::from(*choice) % all.len()].view(bytes));
}

/// Looks at everything that can be told of a structure.
pub fn check(view: View<'_>) {
    let (text, json, hex) = (view.text().to_string(), view.json().to_string(), view.hex().to_string());
    let parsed: serde_json::Value = serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
    assert!(parsed.is_object());
    for output in [&text, &json, &hex] {
        assert!(!output.chars().any(|c| c.is_control() && c != '\n'), "a control character in {output:?}");
    }
    for field in view.descriptor.fields {
        for index in 0..view.used(field).min(16) {
            if let Some(value) = view.value(field, index) {
                let _ = (value.to_string(), value.meaning(), value.counted(), value.unit());
            }
        }
    }
}
