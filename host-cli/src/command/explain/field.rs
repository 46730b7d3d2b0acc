//! Fields of structures, whole structures, registers and features.
#![forbid(unsafe_code)]

use nvmetal_core::describe::{Describe, Descriptor, Field, Form, Meaning, Part, Shape, structures};
use nvmetal_core::feature::FeatureId;
use nvmetal_core::register::Registers;
use serde_json::{Value, json};

use super::super::decode::one_line;
use super::{Entry, Explained, defined, plain, unknown, within};
use crate::error::Result;
use crate::structure::Structure;
use crate::units::parse_number;

const LIST: &str =
    "`nvmetal explain structure NAME` lists the fields of a structure, `nvmetal decode --list` the structures.";

/// The fields of this name: STRUCTURE.FIELD, STRUCTURE.FIELD.PART, or FIELD in every structure that has one.
pub fn fields(name: &str) -> Result<Vec<Explained>> {
    if let Some((structure, rest)) = name.split_once('.') {
        let found = Structure::named(&structure.split_whitespace().collect::<Vec<_>>())?.descriptor;
        let (field, part) = rest.split_once('.').map_or((rest, None), |(field, part)| (field, Some(part)));
        let known: Vec<&str> = found.fields.iter().filter(|field| !field.is_reserved()).map(|field| field.id).collect();
        let no_field = || unknown("field", name, &known, LIST);
        let field = found.fields.iter().find(|known| is_named(known, field)).ok_or_else(no_field)?;
        return match part {
            None => Ok(vec![of_field(found, field)]),
            Some(part) => {
                let parts: Vec<&str> = field.parts().iter().map(|part| part.id).collect();
                let found_part = field.parts().iter().find(|known| known.id == part.to_ascii_lowercase());
                Ok(vec![of_part(found, field, found_part.ok_or_else(|| unknown("field", name, &parts, LIST))?)])
            }
        };
    }
    let mut found = Vec::new();
    for structure in structures() {
        let named = structure.fields.iter().filter(|field| !field.is_reserved() && is_named(field, name));
        found.extend(named.map(|field| of_field(structure, field)));
        for field in structure.fields {
            let parts = field.parts().iter().filter(|part| part.id == name.to_ascii_lowercase());
            found.extend(parts.map(|part| of_part(structure, field, part)));
        }
    }
    if found.is_empty() {
        let known: Vec<&str> = structures().flat_map(|known| known.fields).map(|field| field.id).collect();
        return Err(unknown("field", name, &known, LIST));
    }
    Ok(found)
}

fn is_named(field: &Field, name: &str) -> bool {
    field.id == name.to_ascii_lowercase() || plain(field.label) == plain(name)
}

/// A structure with its fields.
pub fn structure(name: &str) -> Result<Explained> {
    let found = Structure::named(&name.split_whitespace().collect::<Vec<_>>())?.descriptor;
    let (said, place) = defined(found.doc);
    let mut rows = vec![("id", found.id.to_owned()), ("size", format!("{} bytes", found.size))];
    rows.extend(place.clone().map(|place| ("defined", place)));
    let fields: Vec<&Field> = found.fields.iter().filter(|field| !field.is_reserved()).collect();
    let entry = |field: &&Field| Entry::field(bytes(field), field.id, field.label, field.doc);
    Ok(Explained {
        title: said.clone(),
        table: fields.iter().map(entry).collect(),
        json: json!({
            "structure": found.id,
            "bytes": found.size,
            "doc": said,
            "defined": place,
            "fields": fields.iter().map(|field| field_json(field)).collect::<Vec<_>>(),
        }),
        rows,
    })
}

/// A register by its abbreviation, its name or its offset.
pub fn register(name: &str) -> Result<Explained> {
    let registers = Registers::DESCRIPTOR_REF;
    let offset = parse_number(name);
    let found = registers.fields.iter().find(|field| {
        !field.is_reserved() && (is_named(field, name) || offset.is_some_and(|offset| offset == field.offset as u64))
    });
    let known: Vec<&str> = registers.fields.iter().filter(|field| !field.is_reserved()).map(|field| field.id).collect();
    let remedy = "`nvmetal explain structure registers` lists all of them.";
    Ok(of_field(registers, found.ok_or_else(|| unknown("register", name, &known, remedy))?))
}

/// A feature by its name or number.
pub fn feature(name: &str) -> Result<Explained> {
    let number = parse_number(name);
    let names: Vec<String> = FeatureId::MEANINGS.iter().map(|meaning| plain(meaning.name)).collect();
    let found = FeatureId::MEANINGS
        .iter()
        .find(|meaning| number.map_or_else(|| plain(meaning.name) == plain(name), |number| number == meaning.value));
    let known: Vec<&str> = names.iter().map(String::as_str).collect();
    let Some(meaning) = found else {
        let remedy =
            "Features are numbered 0x01 to 0xff; names are those of the specification, as in number-of-queues.";
        return Err(unknown("feature", name, &known, remedy));
    };
    let descriptor = FeatureId::from_bits(meaning.value as u8).descriptor();
    let parts = descriptor.map_or(&[][..], |descriptor| descriptor.value);
    let place = "NVM Express Base Specification, \"Feature Identifiers\"";
    let mut rows = vec![
        ("identifier", format!("{:02X}h", meaning.value)),
        ("value", "dword 11 of Set Features, dword 0 of the completion of Get Features".to_owned()),
    ];
    if let Some(data) = descriptor.and_then(|descriptor| descriptor.data) {
        rows.push(("data", format!("{} bytes, `nvmetal explain structure {}`", data.size, data.id)));
    }
    rows.push(("defined", place.to_owned()));
    Ok(Explained {
        title: meaning.name.to_owned(),
        table: part_table(parts),
        json: json!({
            "identifier": meaning.value,
            "name": meaning.name,
            "value": parts.iter().map(part_json).collect::<Vec<_>>(),
            "data": descriptor.and_then(|descriptor| descriptor.data).map(|data| data.id),
            "defined": place,
        }),
        rows,
    })
}

/// One field of a structure.
fn of_field(structure: &Descriptor, field: &Field) -> Explained {
    let (said, place) = defined(structure.doc);
    let said = within(&said);
    let mut rows = vec![("where", format!("{} of {said} ({} bytes)", place_in_words(field), structure.size))];
    rows.push(("meaning", one_line(field.doc)));
    rows.extend(shape_rows(field.shape));
    rows.extend(place.clone().map(|place| ("defined", place)));
    let mut json = field_json(field);
    if let Some(object) = json.as_object_mut() {
        object.insert("structure".to_owned(), structure.id.into());
        object.insert("defined".to_owned(), place.into());
    }
    let table = match field.shape.form {
        Form::Bits(parts) => part_table(parts),
        Form::Choice(meanings) => meaning_table(meanings),
        _ => Vec::new(),
    };
    Explained { title: format!("{}.{}  {}", structure.id, field.id, field.label), rows, table, json }
}

/// One group of bits of a field.
fn of_part(structure: &Descriptor, field: &Field, part: &Part) -> Explained {
    let (said, place) = defined(structure.doc);
    let (said, bits) = (within(&said), bits(part));
    let mut rows = vec![("where", format!("{bits} of {}, {} of {said}", field.label, place_in_words(field)))];
    if !part.doc.is_empty() {
        rows.push(("meaning", one_line(part.doc)));
    }
    rows.extend(shape_rows(part.shape));
    rows.extend(place.clone().map(|place| ("defined", place)));
    let mut json = part_json(part);
    if let Some(object) = json.as_object_mut() {
        object.insert("field".to_owned(), format!("{}.{}", structure.id, field.id).into());
        object.insert("defined".to_owned(), place.into());
    }
    let table = if let Form::Choice(meanings) = part.shape.form { meaning_table(meanings) } else { Vec::new() };
    Explained { title: format!("{}.{}.{}  {}", structure.id, field.id, part.id, part.label), rows, table, json }
}

/// What a value counts, and which values are no numbers.
fn shape_rows(shape: Shape) -> Vec<(&'static str, String)> {
    let counts = match shape.form {
        Form::ZeroBased => Some("one more than the value (0's based)".to_owned()),
        Form::Amount { each: 1, unit } | Form::Number { each: 1, unit } => Some(unit.to_owned()),
        Form::Amount { each, unit } | Form::Number { each, unit } => Some(format!("units of {each} {unit}")),
        Form::PowerOfTwo { each: 1, unit } => Some(format!("2 to the power of the value, {unit}")),
        Form::PowerOfTwo { each, unit } => Some(format!("2 to the power of the value, times {each} {unit}")),
        Form::Kelvin => Some("kelvin".to_owned()),
        Form::Text => Some("ASCII text, padded with blanks".to_owned()),
        Form::Nested(inner) => Some(format!("a structure: `nvmetal explain structure {}`", inner.id)),
        Form::Status => Some("a status: `nvmetal explain status VALUE`".to_owned()),
        _ => None,
    };
    let zero = shape.zero.map(|meaning| ("0 means", meaning.to_owned()));
    let ones = shape.ones.map(|meaning| ("all ones", meaning.to_owned()));
    counts.map(|counts| ("counts", counts)).into_iter().chain(zero).chain(ones).collect()
}

fn part_table(parts: &[Part]) -> Vec<Entry> {
    let shown = parts.iter().filter(|part| !matches!(part.shape.form, Form::Reserved));
    let mut table = Vec::new();
    for part in shown {
        table.push(Entry::field(bits(part), part.id, part.label, part.doc));
        if let Form::Choice(meanings) = part.shape.form {
            let values = meanings.iter().map(|meaning| format!("{:X}h {}", meaning.value, meaning.name));
            table.push(Entry { place: String::new(), said: values.collect::<Vec<_>>().join(", ") });
        }
    }
    table
}

fn meaning_table(meanings: &[Meaning]) -> Vec<Entry> {
    let entry = |meaning: &Meaning| Entry { place: format!("{:X}h", meaning.value), said: meaning.name.to_owned() };
    meanings.iter().map(entry).collect()
}

fn bits(part: &Part) -> String {
    let (low, high) = (u32::from(part.low), u32::from(part.low) + u32::from(part.width) - 1);
    if low == high { format!("bit {low}") } else { format!("bits {high}:{low}") }
}

/// First and last byte.
fn bytes(field: &Field) -> String {
    let last = field.offset + field.bytes() - 1;
    if last == field.offset { format!("{last}") } else { format!("{}-{last}", field.offset) }
}

fn place_in_words(field: &Field) -> String {
    let bytes = bytes(field);
    let plural = if field.bytes() == 1 { "byte" } else { "bytes" };
    match field.repeat {
        1 => format!("{plural} {bytes}"),
        repeat => format!("{plural} {bytes} ({repeat} of {} bytes each)", field.size),
    }
}

fn field_json(field: &Field) -> Value {
    json!({
        "id": field.id,
        "label": field.label,
        "doc": one_line(field.doc),
        "offset": field.offset,
        "bytes": field.size,
        "elements": field.repeat,
        "unit": unit(field.shape),
        "zero": field.shape.zero,
        "ones": field.shape.ones,
        "parts": field.parts().iter().map(part_json).collect::<Vec<_>>(),
        "values": values(field.shape),
    })
}

fn part_json(part: &Part) -> Value {
    json!({
        "id": part.id,
        "label": part.label,
        "doc": one_line(part.doc),
        "low": part.low,
        "width": part.width,
        "unit": unit(part.shape),
        "zero": part.shape.zero,
        "values": values(part.shape),
    })
}

fn unit(shape: Shape) -> Option<&'static str> {
    match shape.form {
        Form::Amount { unit, .. } | Form::Number { unit, .. } | Form::PowerOfTwo { unit, .. } => Some(unit),
        Form::Kelvin => Some("K"),
        _ => None,
    }
}

fn values(shape: Shape) -> Option<Value> {
    let Form::Choice(meanings) = shape.form else { return None };
    Some(meanings.iter().map(|meaning| json!({ "value": meaning.value, "name": meaning.name })).collect())
}
