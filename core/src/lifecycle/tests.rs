//! The machines against controllers of a few lines, in virtual time.
#![forbid(unsafe_code)]

use super::*;
use crate::data_pointer::PageSize;
use crate::register::{Capabilities, offset};

/// A controller: registers, how long it takes, and what is wrong with it.
struct Device {
    cap: u64,
    crto: u32,
    cc: u32,
    rdy: bool,
    cfs: bool,
    shst: u32,
    now_ns: u64,
    /// When RDY follows EN.
    change_at_ns: Option<u64>,
    ready_takes_ns: u64,
    disable_takes_ns: u64,
    shutdown_takes_ns: u64,
    shutdown_at_ns: Option<u64>,
    gone_at: Option<usize>,
    log: Vec<(u64, u64)>,
    accesses: usize,
}

const CAP: u64 = 0x20_2801_03ff;

impl Default for Device {
    fn default() -> Self {
        Self {
            cap: CAP,
            crto: 0,
            cc: 0,
            rdy: false,
            cfs: false,
            shst: 0,
            now_ns: 5_000_000,
            change_at_ns: None,
            ready_takes_ns: 3_000_000,
            disable_takes_ns: 2_000_000,
            shutdown_takes_ns: 4_000_000,
            shutdown_at_ns: None,
            gone_at: None,
            log: Vec::new(),
            accesses: 0,
        }
    }
}

impl Device {
    fn tick(&mut self) {
        if self.change_at_ns.is_some_and(|at| at <= self.now_ns) {
            self.change_at_ns = None;
            self.rdy = self.cc & 1 == 1;
        }
        if self.shutdown_at_ns.is_some_and(|at| at <= self.now_ns) {
            self.shst = 2;
        }
    }

    fn read(&mut self, at: u64) -> u64 {
        self.tick();
        self.accesses += 1;
        if self.gone_at.is_some_and(|gone| self.accesses > gone) {
            return u64::MAX;
        }
        match at {
            offset::CAP => self.cap,
            offset::VS => 0x1_0400,
            offset::CC => self.cc.into(),
            offset::CSTS => u64::from(self.rdy) | u64::from(self.cfs) << 1 | u64::from(self.shst) << 2,
            offset::CRTO => self.crto.into(),
            _ => panic!("a read of {at:#x}"),
        }
    }

    fn write(&mut self, at: u64, value: u64) {
        self.tick();
        self.log.push((at, value));
        if at != offset::CC {
            return;
        }
        let value = value as u32;
        if (self.cc ^ value) & 1 == 1 {
            let takes_ns = if value & 1 == 1 { self.ready_takes_ns } else { self.disable_takes_ns };
            self.change_at_ns = takes_ns.checked_add(self.now_ns);
            self.shst = 0;
            self.cfs &= value & 1 == 1;
        }
        if value >> 14 & 3 == 1 && self.cc >> 14 & 3 == 0 {
            self.shst = 1;
            self.shutdown_at_ns = self.shutdown_takes_ns.checked_add(self.now_ns);
        }
        self.cc = value;
    }

    fn run<M: Machine>(&mut self, machine: &mut M) -> Result<M::Outcome, LifecycleError> {
        let mut value = 0;
        for _ in 0..10_000_000 {
            match machine.next(self.now_ns, value)? {
                Step::Read32(at) => value = self.read(at) & 0xffff_ffff,
                Step::Read64(at) => value = self.read(at),
                Step::Write32(at, data) => self.write(at, data.into()),
                Step::Write64(at, data) => self.write(at, data),
                Step::Wait { until_ns } => {
                    assert!(until_ns > self.now_ns, "a wait for no time would never end");
                    self.now_ns = until_ns;
                }
                Step::Done(outcome) => return Ok(outcome),
            }
        }
        panic!("a machine that does not end");
    }

    fn bring_up(&mut self) -> Result<BroughtUp, LifecycleError> {
        self.run(&mut BringUp::new(BringUpOptions::new(0x1_0000, 0x2_0000)))
    }
}

/// C-05: the admin queue is set before the controller is enabled, and the configuration before EN.
#[test]
fn c05_the_admin_queue_is_set_before_enable() {
    let mut device = Device::default();
    let up = device.bring_up().unwrap();
    assert_eq!(
        device.log,
        [
            (offset::AQA, 0x3f_003f),
            (offset::ASQ, 0x1_0000),
            (offset::ACQ, 0x2_0000),
            (offset::CC, 0x46_0000),
            (offset::CC, 0x46_0001),
        ]
    );
    assert_eq!(up.found, bring_up::Found::Disabled);
    assert!(up.ready_after_ns >= 3_000_000 && up.ready_after_ns < 4_000_000);
}

/// C-06: RDY = 1 is waited for only where EN is 1 and RDY 0; a disabled controller is not waited for.
#[test]
fn c06_every_state_that_a_controller_can_be_found_in_leads_to_ready() {
    use bring_up::Found;
    let cases = [
        (0, false, None, Found::Disabled),
        (0x46_0001, true, None, Found::Enabled),
        (0x46_0001, false, Some(900_000_000), Found::Enabling),
        (0x46_0000, true, Some(900_000_000), Found::Disabling),
    ];
    for (cc, rdy, change_at_ns, found) in cases {
        let mut device = Device { cc, rdy, change_at_ns, ..Device::default() };
        assert_eq!(device.bring_up().unwrap().found, found);
        let clears = device.log.iter().filter(|&&(at, value)| at == offset::CC && value == 0x46_0000).count();
        assert_eq!(clears, if cc & 1 == 1 { 2 } else { 1 });
    }
}

/// C-06, second half: a controller found enabled, not ready and in a fatal state is disabled at once.
#[test]
fn c06_a_failed_controller_is_not_waited_for() {
    let mut device = Device { cc: 0x46_0001, cfs: true, ..Device::default() };
    let start_ns = device.now_ns;
    assert_eq!(device.bring_up().unwrap().found, bring_up::Found::Enabled);
    assert!(device.now_ns - start_ns < 100_000_000, "no timeout was waited for");
}

/// C-03 and C-04: the timeout has eight bits in units of 500 ms, and 0 still means one unit.
#[test]
fn c03_c04_a_controller_that_never_gets_ready_is_given_up_after_its_own_time() {
    for (cap, seconds_ns) in
        [(CAP, 20_000_000_000_u64), (CAP & !(0xff << 24), 500_000_000), (0x20_ff01_03ff, 127_500_000_000)]
    {
        let mut device = Device { cap, ready_takes_ns: u64::MAX, ..Device::default() };
        let start_ns = device.now_ns;
        let LifecycleError::Timeout { awaited, waited_ms, csts, cc } = device.bring_up().unwrap_err() else {
            panic!("not a timeout")
        };
        assert_eq!((awaited, csts.into_bits(), cc.into_bits()), (Awaited::Ready, 0, 0x46_0001));
        assert!(waited_ms * MS >= seconds_ns && waited_ms * MS < seconds_ns + 10_000_000, "{waited_ms}");
        assert!(device.now_ns - start_ns < seconds_ns + 100_000_000);
    }
}

#[test]
fn the_controller_ready_timeout_is_used_where_there_is_one() {
    let mut device =
        Device { cap: CAP & !(0xff << 24) | 1 << 59, crto: 10, ready_takes_ns: 4_900_000_000, ..Device::default() };
    assert!(device.bring_up().is_ok(), "5 s are allowed although CAP.TO says 500 ms");
}

/// C-08, C-09: all ones is a device that does not answer, whichever register it comes from.
#[test]
fn c08_c09_all_ones_is_never_believed() {
    for gone_at in 0..8 {
        let mut device = Device { gone_at: Some(gone_at), cc: 0x46_0001, rdy: true, ..Device::default() };
        assert!(matches!(device.bring_up(), Err(LifecycleError::NotAccessible { .. })), "gone after {gone_at} reads");
    }
}

/// C-10: MQES FFFFh is 65,536 entries, 0 is invalid.
#[test]
fn c10_queue_entries() {
    let mut device = Device { cap: CAP | 0xffff, ..Device::default() };
    assert_eq!(device.bring_up().unwrap().cap.mqes().count(), 65_536);
    let mut device = Device { cap: CAP & !0xffff, ..Device::default() };
    assert_eq!(device.bring_up().unwrap_err(), LifecycleError::NoQueueEntries);
}

/// C-18: the page size in use is the largest that both sides have; larger than the host's is refused.
#[test]
fn c18_page_sizes() {
    let cap = |mpsmin: u64, mpsmax: u64| CAP & !(0xff << 48) | mpsmin << 48 | mpsmax << 52;
    for (mpsmin, mpsmax, host_bytes, mps) in [(0, 0, 4096, 0), (0, 4, 4096, 0), (0, 4, 16384, 2), (0, 1, 65536, 1)] {
        let mut device = Device { cap: cap(mpsmin, mpsmax), ..Device::default() };
        let host_page = PageSize::from_bytes(host_bytes).unwrap();
        let options = BringUpOptions { host_page, ..BringUpOptions::new(0, 0) };
        let up = device.run(&mut BringUp::new(options)).unwrap();
        assert_eq!((up.cc.mps(), up.page.field()), (mps, mps));
    }
    for (mpsmin, kib) in [(1, 8), (4, 64)] {
        let mut device = Device { cap: cap(mpsmin, 4), ..Device::default() };
        let refused = LifecycleError::PageSize { minimum_bytes: kib << 10, host_bytes: 4096 };
        assert_eq!(device.bring_up().unwrap_err(), refused);
    }
}

#[test]
fn a_fatal_status_while_getting_ready_ends_the_wait() {
    let mut device = Device { cfs: true, ready_takes_ns: u64::MAX, ..Device::default() };
    device.cc = 1 << 20; // Disabled; the fatal bit stays.
    let start_ns = device.now_ns;
    assert!(matches!(device.bring_up(), Err(LifecycleError::FatalStatus { .. })));
    assert!(device.now_ns - start_ns < 1_000_000_000);
}

#[test]
fn a_controller_without_an_io_command_set_is_refused() {
    let cap = Capabilities::from_bits(CAP).with_css_nvm(false).with_css_admin_only(true).into_bits();
    assert_eq!(Device { cap, ..Device::default() }.bring_up().unwrap_err(), LifecycleError::NoCommandSet);
}

#[test]
fn a_slow_controller_is_not_looked_at_before_its_delay() {
    let mut device = Device { ready_takes_ns: 0, ..Device::default() };
    let options = BringUpOptions { delay_before_ready_ms: 2300, ..BringUpOptions::new(0, 0) };
    let up = device.run(&mut BringUp::new(options)).unwrap();
    assert!(up.ready_after_ns >= 2_300_000_000);
}

/// C-28: SHN 01b, its end, EN = 0, RDY = 0.
#[test]
fn c28_a_shutdown_notifies_waits_and_disables() {
    let mut device = Device { cc: 0x46_0001, rdy: true, ..Device::default() };
    let outcome = device.run(&mut Shutdown::new(10_000_000, 20_000)).unwrap();
    assert!(outcome.complete);
    assert_eq!(device.log, [(offset::CC, 0x46_4001), (offset::CC, 0x46_0000)]);
    assert!(!device.rdy);
}

/// C-27: a controller that never reports the end of its shutdown is disabled after the longer of RTD3E and 5 s.
#[test]
fn c27_a_shutdown_that_is_never_reported_complete_still_ends() {
    for (rtd3e_us, seconds_ns) in [(0, 5_000_000_000_u64), (10_000_000, 10_000_000_000), (u32::MAX, 60_000_000_000)] {
        let mut device = Device { cc: 0x46_0001, rdy: true, shutdown_takes_ns: u64::MAX, ..Device::default() };
        let outcome = device.run(&mut Shutdown::new(rtd3e_us, 20_000)).unwrap();
        assert!(!outcome.complete);
        assert!(outcome.waited_ns >= seconds_ns && outcome.waited_ns < seconds_ns + 10_000_000);
        assert!(!device.rdy);
    }
}

#[test]
fn a_shutdown_of_a_disabled_controller_has_nothing_to_do() {
    let mut device = Device::default();
    device.run(&mut Shutdown::new(0, 500)).unwrap();
    assert_eq!(device.log, []);
}

#[test]
fn disabling_clears_enable_and_waits_for_not_ready() {
    let mut device = Device { cc: 0x46_0001, rdy: true, ..Device::default() };
    device.run(&mut Disable::new(20_000)).unwrap();
    assert_eq!(device.log, [(offset::CC, 0x46_0000)]);
    let mut stuck = Device { cc: 0x46_0001, rdy: true, disable_takes_ns: u64::MAX, ..Device::default() };
    let error = stuck.run(&mut Disable::new(1_000)).unwrap_err();
    assert!(matches!(error, LifecycleError::Timeout { awaited: Awaited::NotReady, waited_ms: 1000.., .. }));
}

#[test]
fn a_device_that_vanishes_during_shutdown_or_disable_is_said_to_be_gone() {
    for gone_at in 0..3 {
        let device = || Device { cc: 0x46_0001, rdy: true, gone_at: Some(gone_at), ..Device::default() };
        let gone = |error| matches!(error, LifecycleError::NotAccessible { .. });
        assert!(gone(device().run(&mut Shutdown::new(0, 500)).unwrap_err()));
        assert!(gone_at > 1 || gone(device().run(&mut Disable::new(500)).unwrap_err()));
    }
}
