//! From a command that does not come back to a controller that takes commands again, or is given up.
//!
//! The means are tried in the order of what they cost: the command is aborted, its queue is deleted, the controller is
//! disabled, its function reset, the whole subsystem reset (which may take other hosts' controllers with it, so only
//! where that is allowed). Each either works, or does not within its time; then the next one is taken. Behind the last
//! there is nothing: the controller is given up, and whoever waits is told so. So no wait is endless, whatever the
//! device does.
//!
//! [`Recovery`] knows that order and nothing else. It is asked what to do next and told what came of it; it sends no
//! command, touches no register and knows no queue. Abort is the one means whose success proves nothing yet (NVM Express
//! Base Specification, "Abort command": dword 0 bit 0 is *cleared* if the command was aborted), so after it the command
//! itself is waited for.
#![forbid(unsafe_code)]

use super::MS;

/// For so long a command that was aborted may take to be completed.
const ABORTED_WITHIN_NS: u64 = 500 * MS;

/// A means against a command that does not come back, in the order in which they are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Means {
    /// Abort, for the one command.
    Abort,
    /// Delete I/O Submission Queue and Delete I/O Completion Queue, for the queue of the command.
    DeleteQueue,
    /// CC.EN = 0, until CSTS.RDY = 0.
    Disable,
    /// A reset of the PCI function.
    FunctionReset,
    /// NSSR: a reset of everything in the drive.
    SubsystemReset,
}

impl Means {
    /// For people, in the past.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Abort => "aborting the command",
            Self::DeleteQueue => "deleting the queue",
            Self::Disable => "disabling the controller",
            Self::FunctionReset => "resetting the function",
            Self::SubsystemReset => "resetting the subsystem",
        }
    }

    const fn harder(self) -> Option<Self> {
        match self {
            Self::Abort => Some(Self::DeleteQueue),
            Self::DeleteQueue => Some(Self::Disable),
            Self::Disable => Some(Self::FunctionReset),
            Self::FunctionReset => Some(Self::SubsystemReset),
            Self::SubsystemReset => None,
        }
    }
}

/// What came of the last thing that was to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// Nothing to tell: at the beginning, and while a command is waited for.
    Nothing,
    /// Abort was completed with success, with this dword 0.
    AbortCompleted {
        /// Dword 0 of the completion.
        dword0: u32,
    },
    /// The command that did not come back has come back.
    CommandEnded,
    /// It worked; after [`Means::Disable`] and what is harder: the controller takes commands again.
    Worked,
    /// It was refused, or was not done in its time.
    Failed,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// Do this and tell what came of it.
    Do(Means),
    /// Look for the command's completion, until then.
    AwaitCommand {
        /// The latest moment to ask again.
        until_ns: u64,
    },
    /// It is over: this worked.
    Recovered(Means),
    /// Nothing works.
    GiveUp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Next(Means),
    Doing(Means),
    Awaiting { until_ns: u64 },
    Recovered(Means),
    GivenUp,
}

/// The machine. See the [module](self).
#[derive(Debug, Clone)]
pub struct Recovery {
    state: State,
    subsystem_reset: bool,
}

impl Recovery {
    /// A recovery that begins with `first`; `subsystem_reset` says whether that may be done, too.
    pub const fn new(first: Means, subsystem_reset: bool) -> Self {
        Self { state: State::Next(first), subsystem_reset }
    }

    /// What to do next, at `now_ns`, after what came of the last advice.
    ///
    /// After [`Advice::Recovered`] or [`Advice::GiveUp`] the machine is at its end and repeats that.
    pub fn next(&mut self, now_ns: u64, told: Told) -> Advice {
        self.state = match (self.state, told) {
            (State::Doing(Means::Abort) | State::Awaiting { .. }, Told::CommandEnded) => State::Recovered(Means::Abort),
            (State::Doing(Means::Abort), Told::AbortCompleted { dword0 }) if dword0 & 1 == 0 => {
                State::Awaiting { until_ns: now_ns.saturating_add(ABORTED_WITHIN_NS) }
            }
            (State::Doing(means), Told::Worked) if means != Means::Abort => State::Recovered(means),
            (State::Doing(means), Told::Failed | Told::AbortCompleted { .. }) => self.after(means),
            (State::Awaiting { until_ns }, _) if now_ns >= until_ns => self.after(Means::Abort),
            (state, _) => state,
        };
        match self.state {
            State::Next(means) => {
                self.state = State::Doing(means);
                Advice::Do(means)
            }
            State::Doing(means) => Advice::Do(means),
            State::Awaiting { until_ns } => Advice::AwaitCommand { until_ns },
            State::Recovered(means) => Advice::Recovered(means),
            State::GivenUp => Advice::GiveUp,
        }
    }

    fn after(&self, means: Means) -> State {
        match means.harder() {
            Some(Means::SubsystemReset) if !self.subsystem_reset => State::GivenUp,
            Some(harder) => State::Next(harder),
            None => State::GivenUp,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is advised when every means fails.
    fn when_all_fails(first: Means, subsystem_reset: bool) -> Vec<Means> {
        let mut recovery = Recovery::new(first, subsystem_reset);
        let (mut tried, mut told) = (Vec::new(), Told::Nothing);
        loop {
            match recovery.next(0, told) {
                Advice::Do(means) => tried.push(means),
                Advice::GiveUp => break,
                advice => panic!("{advice:?}"),
            }
            told = Told::Failed;
        }
        assert_eq!(recovery.next(u64::MAX, Told::Worked), Advice::GiveUp, "given up is given up");
        tried
    }

    #[test]
    fn every_means_is_tried_once_from_the_gentlest_to_the_hardest() {
        use Means::{Abort, DeleteQueue, Disable, FunctionReset, SubsystemReset};
        assert_eq!(when_all_fails(Abort, true), [Abort, DeleteQueue, Disable, FunctionReset, SubsystemReset]);
        assert_eq!(when_all_fails(Abort, false), [Abort, DeleteQueue, Disable, FunctionReset]);
        assert_eq!(when_all_fails(Disable, false), [Disable, FunctionReset]);
    }

    #[test]
    fn the_first_means_that_works_is_the_last_that_is_tried() {
        for works in [Means::DeleteQueue, Means::Disable, Means::FunctionReset, Means::SubsystemReset] {
            let mut recovery = Recovery::new(Means::Abort, true);
            let mut told = Told::Nothing;
            let by = loop {
                match recovery.next(0, told) {
                    Advice::Do(means) => told = if means == works { Told::Worked } else { Told::Failed },
                    Advice::Recovered(by) => break by,
                    advice => panic!("{advice:?}"),
                }
            };
            assert_eq!(by, works);
        }
    }

    #[test]
    fn dword_0_bit_0_set_means_not_aborted() {
        let mut recovery = Recovery::new(Means::Abort, false);
        assert_eq!(recovery.next(0, Told::Nothing), Advice::Do(Means::Abort));
        assert_eq!(recovery.next(0, Told::AbortCompleted { dword0: 1 }), Advice::Do(Means::DeleteQueue));
    }

    #[test]
    fn an_aborted_command_is_waited_for_and_not_for_ever() {
        for comes in [true, false] {
            let mut recovery = Recovery::new(Means::Abort, false);
            recovery.next(7, Told::Nothing);
            // The other bits are reserved, and say nothing.
            let Advice::AwaitCommand { until_ns } = recovery.next(7, Told::AbortCompleted { dword0: 0xffff_fffe })
            else {
                panic!("it is to be waited for");
            };
            assert_eq!(until_ns, 7 + ABORTED_WITHIN_NS);
            assert_eq!(recovery.next(until_ns - 1, Told::Nothing), Advice::AwaitCommand { until_ns });
            let (told, then) = if comes {
                (Told::CommandEnded, Advice::Recovered(Means::Abort))
            } else {
                (Told::Nothing, Advice::Do(Means::DeleteQueue))
            };
            assert_eq!(recovery.next(until_ns, told), then);
        }
    }
}
