//! Lists of namespaces.
#![forbid(unsafe_code)]

use crate::structure;
use zerocopy::little_endian::U32;

structure! {
    /// Namespace List: up to 1,024 namespace identifiers, rising, ended by a zero.
    /// NVM Express Base Specification, "Namespace List".
    pub struct NamespaceList: 4096, "ns-list" {
        /// The identifiers; 0 for an unused place.
        0 nsid: [U32; 1024] = COUNT.zero("unused"), "Namespace Identifier";
    }
}

/// The active namespaces, CNS 02h.
pub type ActiveNamespaceList = NamespaceList;

impl NamespaceList {
    /// The identifiers up to the first zero.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.nsid.iter().map(|nsid| nsid.get()).take_while(|&nsid| nsid != 0)
    }
}
