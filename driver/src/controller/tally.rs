//! Which commands were sent, and how often.
//!
//! A run that calls itself read-only prints this, so that the claim can be checked. Admin commands are counted one by
//! one; I/O commands are counted by their queue's user and added when the queue goes, for nothing is counted twice on
//! the hot path.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use nvmetal_core::command::admin::AdminOpcode;
use nvmetal_core::command::io::IoOpcode;

/// Counts of commands by queue kind and opcode.
#[derive(Debug, Default)]
pub struct Tally {
    counts: Mutex<BTreeMap<(bool, u8), u64>>,
}

/// One kind of command and how many of it were sent.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct SentCommand {
    /// Whether it was an admin command.
    pub admin: bool,
    /// Its opcode.
    pub opcode: u8,
    /// Its name, or `opcode XXh`.
    pub name: String,
    /// How many.
    pub count: u64,
}

impl Tally {
    /// Counts `count` commands.
    pub fn add(&self, admin: bool, opcode: u8, count: u64) {
        if count > 0 {
            let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
            *counts.entry((admin, opcode)).or_default() += count;
        }
    }

    /// All counts, admin commands first, by opcode.
    pub fn sent(&self) -> Vec<SentCommand> {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sent: Vec<SentCommand> = counts
            .iter()
            .map(|(&(admin, opcode), &count)| SentCommand { admin, opcode, name: name(admin, opcode), count })
            .collect();
        sent.sort_by_key(|command| (!command.admin, command.opcode));
        sent
    }
}

/// The name of a command.
pub(super) fn name(admin: bool, opcode: u8) -> String {
    let name = if admin { AdminOpcode::from_bits(opcode).name() } else { IoOpcode::from_bits(opcode).name() };
    name.map_or_else(|| format!("opcode {opcode:02X}h"), str::to_owned)
}
