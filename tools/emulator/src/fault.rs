//! Things that go wrong on demand.
//!
//! A fault is a kind, the number of the command on which it begins, and how many times it happens: `read-error@100`,
//! `read-error@100x3`. Occasions are counted per fault, and only those that the kind applies to: the hundredth *read* is
//! the one that fails, the second *enabling* the one after which the controller is never ready.
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

/// Which occasions a kind of fault counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Applies {
    Read,
    Write,
    Io,
    Abort,
    Admin,
    Enable,
    RegisterRead,
    Shutdown,
}

impl Applies {
    fn to(self, occasion: Occasion) -> bool {
        match self {
            Self::Read => occasion == Occasion::Read,
            Self::Write => occasion == Occasion::Write,
            Self::Io => matches!(occasion, Occasion::Read | Occasion::Write | Occasion::OtherIo),
            Self::Abort => occasion == Occasion::Abort,
            Self::Admin => occasion == Occasion::Admin,
            Self::Enable => occasion == Occasion::Enable,
            Self::RegisterRead => occasion == Occasion::RegisterRead,
            Self::Shutdown => occasion == Occasion::Shutdown,
        }
    }
}

kinds! {
    /// A read ends with Unrecovered Read Error; the block stays unreadable, Do Not Retry is not set.
    ReadError = "read-error", Read;
    /// A write ends with Write Fault.
    WriteError = "write-error", Write;
    /// An I/O command is never answered.
    Timeout = "timeout", Io;
    /// A read ends with Unrecovered Read Error, and Do Not Retry is set.
    ReadErrorForGood = "read-error-dnr", Read;
    /// An I/O command is answered 15 seconds late.
    Late = "late", Io;
    /// A completion names a command that was never sent (FFFFh).
    BadId = "bad-id", Io;
    /// A completion names the command of an earlier use of its slot (the highest bit of the identifier is changed).
    StaleId = "stale-id", Io;
    /// A completion names another submission queue.
    WrongQueue = "wrong-queue", Io;
    /// A completion's submission queue head lies behind the tail.
    WrongHead = "wrong-head", Io;
    /// A completion is written with the phase tag of the round before.
    StalePhase = "stale-phase", Io;
    /// Of a completion, only the last dword is written.
    Torn = "torn", Io;
    /// A command is completed twice.
    Double = "double", Io;
    /// A completion raises no interrupt.
    LostInterrupt = "lost-interrupt", Io;
    /// The namespace of an I/O command is gone when the command comes.
    NamespaceGone = "namespace-gone", Io;
    /// The namespace has half of its blocks left when an I/O command comes.
    Shrink = "shrink", Io;
    /// The controller sets CSTS.CFS when an I/O command comes, and does nothing more until it is reset.
    Fatal = "fatal", Io;
    /// From an I/O command on nothing is answered, until the controller is disabled.
    Hang = "hang", Io;
    /// From an I/O command on nothing is answered, and the controller cannot be disabled, until its function is reset.
    HangHard = "hang-hard", Io;
    /// An Abort does nothing, and says so.
    AbortRefused = "abort-refused", Abort;
    /// An admin command is never answered.
    AdminTimeout = "admin-timeout", Admin;
    /// The controller is enabled and never ready.
    ReadyNever = "ready-never", Enable;
    /// The controller is enabled and ready after 4 seconds, within the time that it asks for.
    ReadyLate = "ready-late", Enable;
    /// The controller is enabled and sets CSTS.CFS.
    FatalEnable = "fatal-enable", Enable;
    /// A register reads all ones.
    AllOnes = "all-ones", RegisterRead;
    /// A shutdown never ends.
    ShutdownNever = "shutdown-never", Shutdown;
}

/// A fault that is planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// What goes wrong.
    pub kind: FaultKind,
    /// The first occasion that is hit, counted from 1 among those that the kind applies to.
    pub at: u64,
    /// How many in a row are hit.
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

/// What happens, as far as faults distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// A read was fetched.
    Read,
    /// A write was fetched.
    Write,
    /// Another I/O command was fetched.
    OtherIo,
    /// An Abort is carried out.
    Abort,
    /// An admin command was fetched.
    Admin,
    /// CC.EN was set.
    Enable,
    /// The host reads a register.
    RegisterRead,
    /// CC.SHN was set.
    Shutdown,
}

/// What ends a hang.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HangUntil {
    Disabled,
    FunctionReset,
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

    /// Counts what happens and says which fault hits it.
    #[inline]
    pub(crate) fn hit(&mut self, occasion: Occasion) -> Option<FaultKind> {
        if self.planned.is_empty() {
            return None;
        }
        let mut hit = None;
        for (fault, count) in &mut self.planned {
            if fault.kind.applies().to(occasion) {
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
            [Occasion::Read, Occasion::Write, Occasion::Read, Occasion::Admin, Occasion::Read, Occasion::Read]
                .into_iter()
                .map(|occasion| plan.hit(occasion).is_some())
                .collect();
        assert_eq!(hits, [false, false, true, false, true, false]);
    }
}
