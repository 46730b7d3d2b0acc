//! Things that go wrong on demand.
//!
//! A fault is a kind, the number of the command on which it begins, and how many times it happens: `read-error@100`,
//! `read-error@100x3`. Commands are counted per fault, and only those that the kind applies to: the hundredth *read* is
//! the one that fails.
#![forbid(unsafe_code)]

/// What an option `fault=` takes.
pub const FORM: &str = "KIND@N or KIND@NxTIMES, as read-error@100";

macro_rules! kinds {
    ($( $(#[doc = $doc:literal])+ $name:ident = $text:literal, $applies:ident; )+) => {
        /// The kinds of fault.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum FaultKind {
            $( $(#[doc = $doc])+ $name, )+
        }

        impl FaultKind {
            /// Every kind, with its name and what it does.
            pub const ALL: &[(Self, &'static str, &'static str)] =
                &[$( (Self::$name, $text, concat!($($doc),+)) ),+];

            fn applies(self) -> Applies {
                match self { $( Self::$name => Applies::$applies, )+ }
            }
        }
    };
}

/// Which commands a kind of fault counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Applies {
    Read,
    Write,
    Io,
}

kinds! {
    /// A read ends with Unrecovered Read Error; the block stays unreadable, Do Not Retry is not set.
    ReadError = "read-error", Read;
    /// A write ends with Write Fault.
    WriteError = "write-error", Write;
    /// An I/O command is never answered.
    Timeout = "timeout", Io;
}

/// A fault that is planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// What goes wrong.
    pub kind: FaultKind,
    /// The first command that is hit, counted from 1 among those that the kind applies to.
    pub at: u64,
    /// How many commands in a row are hit.
    pub times: u64,
}

impl Fault {
    /// Reads `KIND@N` or `KIND@NxTIMES`.
    pub fn parse(text: &str) -> Option<Self> {
        let (name, at) = text.split_once('@')?;
        let (at, times) = match at.split_once('x') {
            Some((at, times)) => (at.parse().ok()?, times.parse().ok()?),
            None => (at.parse().ok()?, 1),
        };
        let kind = FaultKind::ALL.iter().find(|(_, known, _)| *known == name)?.0;
        Some(Self { kind, at, times })
    }
}

/// What a command is, as far as faults distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandKind {
    Read,
    Write,
    Other,
}

/// All planned faults and how far each has counted.
#[derive(Debug, Default)]
pub(crate) struct FaultPlan {
    planned: Vec<(Fault, u64)>,
}

impl FaultPlan {
    pub(crate) fn new(faults: &[Fault]) -> Self {
        Self { planned: faults.iter().map(|&fault| (fault, 0)).collect() }
    }

    /// Whether none was ever planned.
    pub(crate) fn is_empty(&self) -> bool {
        self.planned.is_empty()
    }

    /// Plans another one; it counts from now.
    pub(crate) fn add(&mut self, fault: Fault) {
        self.planned.push((fault, 0));
    }

    /// Counts an I/O command and says which fault hits it.
    #[inline]
    pub(crate) fn hit(&mut self, command: CommandKind) -> Option<FaultKind> {
        if self.planned.is_empty() {
            return None;
        }
        let mut hit = None;
        for (fault, count) in &mut self.planned {
            let counts = match fault.kind.applies() {
                Applies::Read => command == CommandKind::Read,
                Applies::Write => command == CommandKind::Write,
                Applies::Io => true,
            };
            if counts {
                *count += 1;
                if hit.is_none() && *count >= fault.at && *count - fault.at < fault.times {
                    hit = Some(fault.kind);
                }
            }
        }
        hit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_hits_the_nth_command_of_its_kind() {
        let mut plan = FaultPlan::new(&[Fault::parse("read-error@2x2").unwrap()]);
        let hits: Vec<bool> =
            [CommandKind::Read, CommandKind::Write, CommandKind::Read, CommandKind::Read, CommandKind::Read]
                .into_iter()
                .map(|command| plan.hit(command).is_some())
                .collect();
        assert_eq!(hits, [false, false, true, true, false]);
    }
}
