//! From any state to a controller that takes commands.
//!
//! The order is that of the NVM Express Base Specification, "Controller Initialization", with what experience adds:
//! a controller may be found disabled, enabled, or half way (enabled and not ready yet), because firmware, another
//! driver or a killed process left it so. It is brought to "disabled" first, whatever it was; the admin queue is set
//! before it is enabled, never after; and the time allowed is the controller's own (CAP.TO, or CRTO where there is one).
#![forbid(unsafe_code)]

use super::{Awaited, LOOK_EVERY_NS, LifecycleError, MS, Machine, Step, believe};
use crate::data_pointer::PageSize;
use crate::number::ZeroBasedU16;
use crate::register::{
    AdminQueueAttributes, Arbitration, Capabilities, CommandSetSelected, Configuration, ControllerStatus,
    ReadyTimeouts, Version, is_all_ones_u64, offset,
};

/// What the host brings, and wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BringUpOptions {
    /// Where the admin submission queue lies, as the device sees it; a page boundary.
    pub admin_submission_iova: u64,
    /// Where the admin completion queue lies.
    pub admin_completion_iova: u64,
    /// Entries of either admin queue, 2 to 4096.
    pub admin_entries: u16,
    /// The memory page of the host's buffers: what is contiguous for the device.
    pub host_page: PageSize,
    /// Ask for weighted round robin arbitration where the controller has it.
    pub weighted_round_robin: bool,
    /// Wait this long after EN is set before RDY is looked at (a quirk of some controllers), in milliseconds.
    pub delay_before_ready_ms: u32,
    /// Allow at least this long for RDY to change, in milliseconds; 0 for what the controller says.
    pub at_least_ms: u32,
}

impl BringUpOptions {
    /// Admin queues of 64 entries at these addresses, 4 KiB pages, and nothing special.
    pub const fn new(admin_submission_iova: u64, admin_completion_iova: u64) -> Self {
        Self {
            admin_submission_iova,
            admin_completion_iova,
            admin_entries: 64,
            host_page: PageSize::MINIMUM,
            weighted_round_robin: false,
            delay_before_ready_ms: 0,
            at_least_ms: 0,
        }
    }
}

/// A controller that takes commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BroughtUp {
    /// Its capabilities.
    pub cap: Capabilities,
    /// Its version.
    pub vs: Version,
    /// Its configuration as it was written.
    pub cc: Configuration,
    /// Its timeouts, where it has the register.
    pub crto: Option<ReadyTimeouts>,
    /// The memory page in use.
    pub page: PageSize,
    /// How it was found.
    pub found: Found,
    /// From setting EN until RDY was seen.
    pub ready_after_ns: u64,
}

/// How a controller was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// Disabled.
    Disabled,
    /// Enabled, and ready or in a fatal state.
    Enabled,
    /// Enabled, but not ready yet.
    Enabling,
    /// Disabled, but still ready.
    Disabling,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Start,
    Cap,
    Vs,
    Crto,
    Cc,
    FirstCsts,
    WaitReadyBeforeDisable,
    ReadyBeforeDisable,
    ClearEnable,
    WaitNotReady,
    NotReady,
    Aqa,
    Asq,
    Acq,
    Configure,
    Enable,
    WaitReady,
    Ready,
    Done,
    Failed(LifecycleError),
}

/// The machine that brings a controller up.
#[derive(Debug, Clone)]
pub struct BringUp {
    options: BringUpOptions,
    state: State,
    cap: Capabilities,
    vs: Version,
    crto: Option<ReadyTimeouts>,
    found_cc: Configuration,
    cc: Configuration,
    page: PageSize,
    found: Found,
    since_ns: u64,
    ready_after_ns: u64,
}

impl BringUp {
    /// A machine at its start.
    pub const fn new(options: BringUpOptions) -> Self {
        Self {
            options,
            state: State::Start,
            cap: Capabilities::from_bits(0),
            vs: Version::from_bits(0),
            crto: None,
            found_cc: Configuration::from_bits(0),
            cc: Configuration::from_bits(0),
            page: PageSize::MINIMUM,
            found: Found::Disabled,
            since_ns: 0,
            ready_after_ns: 0,
        }
    }

    /// The time allowed for RDY to change, in nanoseconds.
    fn allowed_ns(&self) -> u64 {
        let with_media_ms = self.crto.map_or(0, |crto| u64::from(crto.crwmt()) * 500);
        let cap_ms = u64::from(self.cap.timeout_ms());
        cap_ms.max(with_media_ms).max(u64::from(self.options.at_least_ms)) * MS
    }

    fn timeout(&self, awaited: Awaited, now_ns: u64, csts: ControllerStatus) -> LifecycleError {
        let cc = if awaited == Awaited::Ready { self.cc } else { self.found_cc };
        LifecycleError::Timeout { awaited, waited_ms: (now_ns - self.since_ns) / MS, csts, cc }
    }

    /// What CAP says, checked; and from it the configuration to be written.
    fn decide(&mut self, value: u64) -> Result<(), LifecycleError> {
        if is_all_ones_u64(value) {
            return Err(LifecycleError::NotAccessible { offset: offset::CAP });
        }
        self.cap = Capabilities::from_bits(value);
        let cap = self.cap;
        if cap.mqes().into_bits() == 0 {
            return Err(LifecycleError::NoQueueEntries);
        }
        let host = self.options.host_page.field();
        if cap.mpsmin() > host {
            return Err(LifecycleError::PageSize {
                minimum_bytes: cap.page_size_min_bytes(),
                host_bytes: self.options.host_page.bytes(),
            });
        }
        let mps = host.min(cap.mpsmax().max(cap.mpsmin()));
        self.page = PageSize::from_field(mps);
        let css = if cap.css_io() {
            CommandSetSelected::ALL
        } else if cap.css_nvm() {
            CommandSetSelected::NVM
        } else if cap.css_admin_only() {
            return Err(LifecycleError::NoCommandSet);
        } else {
            // Controllers before 1.0's errata left the field 0 and mean the NVM command set.
            CommandSetSelected::NVM
        };
        let ams = if self.options.weighted_round_robin && cap.ams_weighted_round_robin() {
            Arbitration::WEIGHTED_ROUND_ROBIN
        } else {
            Arbitration::ROUND_ROBIN
        };
        self.cc = Configuration::new().with_css(css).with_mps(mps).with_ams(ams).with_iosqes(6).with_iocqes(4);
        Ok(())
    }

    fn attributes(&self) -> AdminQueueAttributes {
        let size = ZeroBasedU16::from_bits(self.options.admin_entries.clamp(2, 4096) - 1);
        AdminQueueAttributes::new().with_asqs(size).with_acqs(size)
    }

    /// Where to go from the state in which the controller was found.
    fn route(&mut self, csts: ControllerStatus, now_ns: u64) -> State {
        self.since_ns = now_ns;
        match (self.found_cc.en(), csts.rdy()) {
            // Clearing EN before RDY is set is not allowed, unless the controller has failed and RDY will never come.
            (true, false) if !csts.cfs() => {
                self.found = Found::Enabling;
                State::WaitReadyBeforeDisable
            }
            (true, _) => {
                self.found = Found::Enabled;
                State::ClearEnable
            }
            (false, true) => {
                self.found = Found::Disabling;
                State::WaitNotReady
            }
            (false, false) => {
                self.found = Found::Disabled;
                State::Aqa
            }
        }
    }

    fn step(&mut self, now_ns: u64, value: u64) -> Result<Step<BroughtUp>, LifecycleError> {
        let csts = ControllerStatus::from_bits(value as u32);
        let overdue = now_ns.saturating_sub(self.since_ns) >= self.allowed_ns();
        let wait = Step::Wait { until_ns: now_ns + LOOK_EVERY_NS };
        let (next, step) = match self.state {
            State::Start => (State::Cap, Step::Read64(offset::CAP)),
            State::Cap => {
                self.decide(value)?;
                (State::Vs, Step::Read32(offset::VS))
            }
            State::Vs => {
                self.vs = Version::from_bits(believe(offset::VS, value)?);
                if self.cap.crwms() || self.cap.crims() {
                    (State::Crto, Step::Read32(offset::CRTO))
                } else {
                    (State::Cc, Step::Read32(offset::CC))
                }
            }
            State::Crto => {
                self.crto = Some(ReadyTimeouts::from_bits(believe(offset::CRTO, value)?));
                (State::Cc, Step::Read32(offset::CC))
            }
            State::Cc => {
                self.found_cc = Configuration::from_bits(believe(offset::CC, value)?);
                (State::FirstCsts, Step::Read32(offset::CSTS))
            }
            State::FirstCsts => {
                believe(offset::CSTS, value)?;
                self.state = self.route(csts, now_ns);
                return self.step(now_ns, value);
            }
            State::WaitReadyBeforeDisable => (State::ReadyBeforeDisable, Step::Read32(offset::CSTS)),
            State::ReadyBeforeDisable => {
                believe(offset::CSTS, value)?;
                if csts.rdy() || csts.cfs() {
                    self.state = State::ClearEnable;
                    return self.step(now_ns, value);
                }
                if overdue {
                    return Err(self.timeout(Awaited::ReadyBeforeDisable, now_ns, csts));
                }
                (State::WaitReadyBeforeDisable, wait)
            }
            State::ClearEnable => {
                self.since_ns = now_ns;
                self.found_cc = self.found_cc.with_en(false).with_shn(crate::register::ShutdownNotification::NONE);
                (State::WaitNotReady, Step::Write32(offset::CC, self.found_cc.into_bits()))
            }
            State::WaitNotReady => (State::NotReady, Step::Read32(offset::CSTS)),
            State::NotReady => {
                believe(offset::CSTS, value)?;
                if !csts.rdy() {
                    self.state = State::Aqa;
                    return self.step(now_ns, value);
                }
                if overdue {
                    return Err(self.timeout(Awaited::NotReady, now_ns, csts));
                }
                (State::WaitNotReady, wait)
            }
            State::Aqa => (State::Asq, Step::Write32(offset::AQA, self.attributes().into_bits())),
            State::Asq => (State::Acq, Step::Write64(offset::ASQ, self.options.admin_submission_iova)),
            State::Acq => (State::Configure, Step::Write64(offset::ACQ, self.options.admin_completion_iova)),
            // The configuration first without EN: the fields have to be in force when the controller starts.
            State::Configure => (State::Enable, Step::Write32(offset::CC, self.cc.into_bits())),
            State::Enable => {
                self.cc = self.cc.with_en(true);
                self.since_ns = now_ns;
                (State::WaitReady, Step::Write32(offset::CC, self.cc.into_bits()))
            }
            State::WaitReady => {
                let look_at_ns = self.since_ns + u64::from(self.options.delay_before_ready_ms) * MS;
                if now_ns < look_at_ns {
                    (State::WaitReady, Step::Wait { until_ns: look_at_ns })
                } else {
                    (State::Ready, Step::Read32(offset::CSTS))
                }
            }
            State::Ready => {
                believe(offset::CSTS, value)?;
                if csts.cfs() {
                    return Err(LifecycleError::FatalStatus { csts });
                }
                if csts.rdy() {
                    self.ready_after_ns = now_ns - self.since_ns;
                    (State::Done, Step::Done(self.outcome()))
                } else if overdue {
                    return Err(self.timeout(Awaited::Ready, now_ns, csts));
                } else {
                    (State::WaitReady, wait)
                }
            }
            State::Done => (State::Done, Step::Done(self.outcome())),
            State::Failed(error) => return Err(error),
        };
        self.state = next;
        Ok(step)
    }

    fn outcome(&self) -> BroughtUp {
        BroughtUp {
            cap: self.cap,
            vs: self.vs,
            cc: self.cc,
            crto: self.crto,
            page: self.page,
            found: self.found,
            ready_after_ns: self.ready_after_ns,
        }
    }
}

impl Machine for BringUp {
    type Outcome = BroughtUp;

    fn next(&mut self, now_ns: u64, value: u64) -> Result<Step<BroughtUp>, LifecycleError> {
        let step = self.step(now_ns, value);
        if let Err(error) = step {
            self.state = State::Failed(error);
        }
        step
    }
}
