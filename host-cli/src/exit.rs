//! How the process ends, as one number.
//!
//! A script that runs nvmetal over a hundred drives looks at this number and at nothing else, so each reason has one of
//! its own, and when several hold the one that asks for the most attention wins: [`Exit`] is ordered that way, and
//! [`Exit::and`] keeps the greater.
#![forbid(unsafe_code)]

use std::process::ExitCode;

/// Why the process ends. The order is that of precedence, from the one that gives way to all others upwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Exit {
    /// Done, and every verdict is PASS (or WARN without `--strict`).
    Pass,
    /// The verdict is WARN and `--strict` was given.
    WarnStrict,
    /// The drive does not support what was asked.
    Unsupported,
    /// The verdict is FAIL, or `diff --fail-if-worse` found worse.
    Fail,
    /// The command line makes no sense.
    Usage,
    /// This machine or this user cannot do it: no VFIO, no IOMMU, no permission.
    Environment,
    /// Refused, because data or another user of the drive could come to harm.
    Refused,
    /// Something went wrong on the way.
    RunTime,
    /// Data read back differs from data written.
    Miscompare,
    /// The drive is gone or does not answer.
    Lost,
    /// SIGTERM ended the run.
    Terminated,
    /// Ctrl-C ended the run.
    Interrupted,
}

impl Exit {
    /// The number that the shell sees.
    pub const fn code(self) -> u8 {
        match self {
            Self::Pass => 0,
            Self::RunTime => 1,
            Self::Usage => 2,
            Self::Fail => 3,
            Self::WarnStrict => 4,
            Self::Refused => 5,
            Self::Environment => 6,
            Self::Lost => 7,
            Self::Miscompare => 8,
            Self::Unsupported => 9,
            Self::Interrupted => 130,
            Self::Terminated => 143,
        }
    }

    /// Both hold: the one that matters more.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        self.max(other)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::Exit;

    #[test]
    fn the_documented_order_of_precedence_holds() {
        let order = [130, 7, 8, 3, 9, 4, 0];
        let all = [
            Exit::Pass,
            Exit::WarnStrict,
            Exit::Unsupported,
            Exit::Fail,
            Exit::Miscompare,
            Exit::Lost,
            Exit::Interrupted,
        ];
        let mut sorted = all;
        sorted.sort();
        sorted.reverse();
        assert_eq!(sorted.map(Exit::code), order);
        assert_eq!(Exit::Fail.and(Exit::Lost), Exit::Lost);
        assert_eq!(Exit::Interrupted.and(Exit::Fail), Exit::Interrupted);
    }

    #[test]
    fn what_stopped_a_command_short_outranks_a_verdict() {
        for stopped in [Exit::RunTime, Exit::Refused, Exit::Environment, Exit::Usage] {
            assert_eq!(stopped.and(Exit::Fail), stopped);
        }
    }
}
