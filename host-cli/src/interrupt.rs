//! Ctrl-C and SIGTERM; and SIGUSR1, which only asks how far a run is.
//!
//! Neither ends the process where it stands: they raise a flag that every long run looks at, so that the run ends in
//! order, the partial result is printed and the drive goes back to the kernel. All waits below have deadlines, so the
//! order comes to an end; who cannot wait has SIGKILL, and `nvmetal release` for what it leaves behind.
#![forbid(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};

use crate::error::{Error, Kind};
use crate::exit::Exit;

/// Tells whether the run has been asked to end.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    signal: Arc<AtomicUsize>,
    state: Arc<AtomicBool>,
}

impl Stop {
    /// Watches for the signals from here on.
    pub fn install() -> std::io::Result<Self> {
        let stop = Self::default();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register_usize(signal, Arc::clone(&stop.signal), signal as usize)?;
        }
        signal_hook::flag::register(SIGUSR1, Arc::clone(&stop.state))?;
        Ok(stop)
    }

    /// Whether somebody wants to know how far the run is (SIGUSR1); asking answers for all up to now.
    pub fn wants_state(&self) -> bool {
        self.state.swap(false, Ordering::Relaxed)
    }

    /// How the process has to end, where it was asked to.
    pub fn exit(&self) -> Option<Exit> {
        match self.signal.load(Ordering::Relaxed) {
            0 => None,
            signal if signal == SIGINT as usize => Some(Exit::Interrupted),
            _ => Some(Exit::Terminated),
        }
    }

    /// Whether the run should end.
    pub fn is_set(&self) -> bool {
        self.exit().is_some()
    }

    /// The error of a command that was ended before it had anything to show.
    pub fn check(&self) -> Result<(), Error> {
        match self.exit() {
            None => Ok(()),
            Some(Exit::Interrupted) => Err(Error::new(Kind::Interrupted, "interrupted")),
            Some(_) => Err(Error::new(Kind::Terminated, "terminated")),
        }
    }
}
