//! Namespace Identification Descriptors: the names by which a namespace is known, one after another.
//!
//! NVM Express Base Specification, "Namespace Identification Descriptor". Each descriptor is type, length, two reserved
//! bytes and the identifier; a length of zero ends the list. An identifier that is all zero is none: many drives carry
//! one, and it must never make two of them look the same.
#![forbid(unsafe_code)]

use crate::command::admin::Csi;

/// One identifier of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespaceIdentifier<'a> {
    /// IEEE Extended Unique Identifier, most significant byte first.
    Eui64(&'a [u8; 8]),
    /// Namespace Globally Unique Identifier, most significant byte first.
    Nguid(&'a [u8; 16]),
    /// Namespace UUID, in the order of its text form.
    Uuid(&'a [u8; 16]),
    /// The command set of the namespace.
    CommandSet(Csi),
    /// A type that is not known, or a known one of a wrong length.
    Unknown {
        /// The type.
        kind: u8,
        /// The bytes.
        identifier: &'a [u8],
    },
}

/// The descriptors of a list, in its order. Made by [`namespace_identifiers`].
#[derive(Clone, Debug)]
pub struct NamespaceIdentifiers<'a> {
    rest: &'a [u8],
}

/// The identifiers in the data of Identify with CNS 03h, those that are all zero left out.
///
/// The walk ends with the bytes, with a length of zero, or with a descriptor that does not fit into the bytes.
///
/// ```
/// use nvmetal_core::identify::{NamespaceIdentifier, namespace_identifiers};
/// let mut data = [0; 4096];
/// data[..12].copy_from_slice(&[1, 8, 0, 0, 0x5c, 0xd2, 0xe4, 1, 2, 3, 4, 5]);
/// data[12..17].copy_from_slice(&[4, 1, 0, 0, 2]);
/// let found: Vec<_> = namespace_identifiers(&data).collect();
/// assert_eq!(found[0], NamespaceIdentifier::Eui64(&[0x5c, 0xd2, 0xe4, 1, 2, 3, 4, 5]));
/// assert_eq!(found.len(), 2);
/// ```
pub const fn namespace_identifiers(data: &[u8]) -> NamespaceIdentifiers<'_> {
    NamespaceIdentifiers { rest: data }
}

impl<'a> Iterator for NamespaceIdentifiers<'a> {
    type Item = NamespaceIdentifier<'a>;

    fn next(&mut self) -> Option<NamespaceIdentifier<'a>> {
        loop {
            let ([kind, length, _, _], rest) = self.rest.split_first_chunk::<4>()?;
            if *length == 0 {
                return None;
            }
            let (identifier, rest) = rest.split_at_checked(usize::from(*length))?;
            self.rest = rest;
            let is_zero = identifier.iter().all(|byte| *byte == 0);
            let found = match (*kind, identifier) {
                (1..=3, _) if is_zero => continue,
                (1, bytes) => bytes.try_into().map(NamespaceIdentifier::Eui64),
                (2, bytes) => bytes.try_into().map(NamespaceIdentifier::Nguid),
                (3, bytes) => bytes.try_into().map(NamespaceIdentifier::Uuid),
                (4, [csi]) => Ok(NamespaceIdentifier::CommandSet(Csi::from_bits(*csi))),
                _ => return Some(NamespaceIdentifier::Unknown { kind: *kind, identifier }),
            };
            return Some(found.unwrap_or(NamespaceIdentifier::Unknown { kind: *kind, identifier }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b20_an_identifier_that_is_all_zero_is_none() {
        let mut data = [0; 64];
        data[0..2].copy_from_slice(&[2, 16]);
        data[20..22].copy_from_slice(&[3, 16]);
        data[24] = 7;
        let found: Vec<_> = namespace_identifiers(&data).collect();
        assert!(matches!(found[..], [NamespaceIdentifier::Uuid([7, ..])]));
    }

    #[test]
    fn a_descriptor_that_does_not_fit_ends_the_list() {
        assert_eq!(namespace_identifiers(&[1, 8, 0, 0, 1, 2, 3]).count(), 0);
        assert_eq!(namespace_identifiers(&[1]).count(), 0);
        assert_eq!(namespace_identifiers(&[0xff; 4096]).count(), 15, "259 bytes each, the last one cut");
        let wrong = namespace_identifiers(&[1, 3, 0, 0, 1, 2, 3]).next();
        assert_eq!(wrong, Some(NamespaceIdentifier::Unknown { kind: 1, identifier: &[1, 2, 3] }));
    }
}
