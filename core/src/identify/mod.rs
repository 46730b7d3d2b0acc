//! What Identify returns.
//!
//! One file holds one structure, or a few that belong together; the bit fields of the two large ones have files of their
//! own. [`descriptor`] says which structure belongs to which CNS.
#![forbid(unsafe_code)]

mod command_set;
mod controller;
mod controller_bits;
mod identifier;
mod list;
mod namespace;
mod namespace_bits;
mod power;
mod virtualization;
pub use command_set::*;
pub use controller::Controller;
pub use controller_bits::*;
pub use identifier::{NamespaceIdentifier, NamespaceIdentifiers, namespace_identifiers};
pub use list::*;
pub use namespace::{LbaFormat, Namespace};
pub use namespace_bits::*;
pub use power::*;
pub use virtualization::*;

use crate::command::admin::{Cns, Csi};
use crate::describe::{Describe, Descriptor};

/// Size of every structure that Identify returns, in bytes.
pub const SIZE: usize = 4096;

/// The structure that Identify returns for this CNS and, where the CNS is of a command set, this command set.
///
/// `None` for what is not described here, and for the identification descriptors (CNS 03h), which are a list of items of
/// different length: see [`namespace_identifiers`].
pub const fn descriptor(cns: Cns, csi: Csi) -> Option<&'static Descriptor> {
    Some(match (cns, csi) {
        (Cns::NAMESPACE | Cns::ALLOCATED_NAMESPACE | Cns::NAMESPACE_FORMAT, _) => const { &Namespace::DESCRIPTOR },
        (Cns::CONTROLLER, _) => const { &Controller::DESCRIPTOR },
        (
            Cns::ACTIVE_NAMESPACES
            | Cns::COMMAND_SET_ACTIVE_NAMESPACES
            | Cns::ALLOCATED_NAMESPACES
            | Cns::COMMAND_SET_ALLOCATED_NAMESPACES,
            _,
        ) => const { &NamespaceList::DESCRIPTOR },
        (Cns::NVM_SETS, _) => const { &NvmSetList::DESCRIPTOR },
        (
            Cns::COMMAND_SET_NAMESPACE | Cns::COMMAND_SET_ALLOCATED_NAMESPACE | Cns::COMMAND_SET_NAMESPACE_FORMAT,
            Csi::NVM,
        ) => const { &NvmNamespace::DESCRIPTOR },
        (Cns::COMMAND_SET_NAMESPACE | Cns::COMMAND_SET_ALLOCATED_NAMESPACE, Csi::ZONED) => {
            const { &ZonedNamespace::DESCRIPTOR }
        }
        (Cns::COMMAND_SET_CONTROLLER, Csi::NVM) => const { &NvmController::DESCRIPTOR },
        (Cns::COMMAND_SET_CONTROLLER, Csi::ZONED) => const { &ZonedController::DESCRIPTOR },
        (Cns::INDEPENDENT_NAMESPACE | Cns::INDEPENDENT_ALLOCATED_NAMESPACE, _) => {
            const { &IndependentNamespace::DESCRIPTOR }
        }
        (Cns::NAMESPACE_CONTROLLERS | Cns::CONTROLLERS, _) => const { &ControllerList::DESCRIPTOR },
        (Cns::PRIMARY_CONTROLLER, _) => const { &PrimaryController::DESCRIPTOR },
        (Cns::SECONDARY_CONTROLLERS, _) => const { &SecondaryControllerList::DESCRIPTOR },
        (Cns::NAMESPACE_GRANULARITY, _) => const { &NamespaceGranularityList::DESCRIPTOR },
        (Cns::UUID_LIST, _) => const { &UuidList::DESCRIPTOR },
        (Cns::DOMAINS, _) => const { &DomainList::DESCRIPTOR },
        (Cns::ENDURANCE_GROUPS, _) => const { &EnduranceGroupList::DESCRIPTOR },
        (Cns::COMMAND_SETS, _) => const { &CommandSetCombinations::DESCRIPTOR },
        _ => return None,
    })
}
