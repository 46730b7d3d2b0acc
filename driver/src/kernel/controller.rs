//! Admin commands through the kernel's driver.
//!
//! A [`KernelController`] answers the same questions as our own [`Controller`](crate::Controller), by the same trait
//! [`Admin`], on a drive that stays the kernel's. It opens the controller's node for reading and sends nothing that is not
//! [`ReadOnly`].
#![forbid(unsafe_code)]

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nvmetal_core::command::SubmissionEntry;
use nvmetal_core::identify;
use nvmetal_core::register::Version;
use nvmetal_core::status::Status;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use zerocopy::FromZeros;

use super::block::{BlockTarget, WritePermit};
use super::error::KernelError;
use super::facts::ControllerFacts;
use super::passthrough::{self, Answer, Form};
use super::read_only::ReadOnly;
use crate::controller::{Admin, AdminData, Completed, Tally, describe};
use crate::error::DriverError;
use crate::pci::enumerate::{self, NvmeFunction};
use crate::pci::{PciAddress, Sysfs};

/// The most data of one command, whatever the drive allows.
const MOST_BYTES: usize = 128 << 10;
/// The smallest memory page that a controller may have; MDTS counts at least in these.
const PAGE_BYTES: u64 = 4096;

/// A controller that the kernel's driver holds.
#[derive(Debug)]
pub struct KernelController {
    sysfs: Sysfs,
    pci: PciAddress,
    /// `0000:03:00.0 (nvme0)`.
    address: String,
    name: String,
    path: PathBuf,
    node: OwnedFd,
    /// The kernel knows only the older form of the request.
    old: AtomicBool,
    identify: Box<identify::Controller>,
    tally: Arc<Tally>,
}

impl KernelController {
    /// Opens the controller of the function at `address`, and asks who it is.
    ///
    /// # Errors
    /// [`KernelError::NotHeld`] if the kernel's driver does not have it, [`KernelError::Permission`] if this user may not.
    pub fn open(sysfs: &Sysfs, address: PciAddress) -> Result<Self, DriverError> {
        let found = enumerate::KernelController::of(sysfs, address);
        let Some(found) = found else {
            let driver = NvmeFunction::read(sysfs, address).and_then(|function| function.driver);
            return Err(KernelError::NotHeld { address: address.to_string(), driver }.into());
        };
        let path = sysfs.dev(&found.name);
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let node = rustix::fs::open(&path, flags, Mode::empty())
            .map_err(|errno| KernelError::of(&path, "opening it", errno))?;
        let mut controller = Self {
            sysfs: sysfs.clone(),
            pci: address,
            address: format!("{address} ({})", found.name),
            name: found.name,
            path,
            node,
            old: AtomicBool::new(false),
            identify: Box::new(identify::Controller::new_zeroed()),
            tally: Arc::default(),
        };
        controller.identify = controller.identify_controller()?;
        Ok(controller)
    }

    /// The kernel's name: `nvme0`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it is.
    pub fn pci_address(&self) -> PciAddress {
        self.pci
    }

    /// What sysfs tells now: state, firmware, queues, temperature, namespaces.
    pub fn facts(&self) -> ControllerFacts {
        ControllerFacts::read(&self.sysfs, self.pci, &self.name)
    }

    /// What was sent so far: admin commands, and reads and writes of its [`BlockTarget`]s (as many as were asked for; the
    /// block layer may have made more of them, or fewer).
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Opens the block device of a namespace; for reading alone unless there is a permit.
    ///
    /// # Errors
    /// [`DriverError::Request`] if the kernel has no block device for it; [`KernelError::InUse`] and
    /// [`KernelError::OtherSerial`] where a permit is given and the drive is in use or another one.
    pub fn block(&self, nsid: u32, permit: Option<&WritePermit>) -> Result<BlockTarget, DriverError> {
        let found = enumerate::KernelController::of(&self.sysfs, self.pci);
        let namespaces = found.map(|found| found.namespaces).unwrap_or_default();
        let namespace = namespaces.into_iter().find(|namespace| namespace.nsid == Some(nsid)).ok_or_else(|| {
            DriverError::Request(format!(
                "{}: the kernel has no block device for namespace {nsid} (not attached, a format that it does not \
                 support, or a command set without blocks)",
                self.address
            ))
        })?;
        let target = BlockTarget::open(&self.sysfs, self.sysfs.dev(namespace.name), permit)?;
        Ok(target.counted_by(Arc::clone(&self.tally)))
    }

    fn send(&self, command: &ReadOnly, data: &mut [u8]) -> Result<Answer, KernelError> {
        let send = |form| passthrough::admin(self.node.as_fd(), form, command, data);
        let sent = self.send_in_a_form_it_knows(send);
        self.tally.add(true, command.entry().opcode(), 1);
        sent.map_err(|errno| cancelled_or(&self.path, &describe(command.entry()), errno))
    }

    /// The newer form, and the older one where the kernel does not know the newer.
    fn send_in_a_form_it_knows(&self, mut send: impl FnMut(Form) -> Result<Answer, Errno>) -> Result<Answer, Errno> {
        if !self.old.load(Ordering::Relaxed) {
            match send(Form::Result64) {
                Err(Errno::NOTTY) => {}
                sent => return sent,
            }
        }
        let sent = send(Form::Result32);
        if sent.is_ok() {
            self.old.store(true, Ordering::Relaxed);
        }
        sent
    }
}

fn cancelled_or(path: &Path, what: &str, errno: Errno) -> KernelError {
    match errno {
        Errno::INTR | Errno::TIMEDOUT => KernelError::Cancelled { path: path.to_owned(), what: what.to_owned() },
        _ => KernelError::of(path, what, errno),
    }
}

impl Admin for KernelController {
    fn address(&self) -> &str {
        &self.address
    }

    /// VER of Identify Controller, which controllers before 1.2 leave at zero; they then count as 1.0.
    fn version(&self) -> Version {
        self.identify.ver
    }

    fn identify(&self) -> &identify::Controller {
        &self.identify
    }

    /// From MDTS in units of the smallest page there is: what the controller allows, or less.
    fn max_admin_bytes(&self) -> usize {
        let mdts = u32::from(self.identify.mdts);
        let limit = if mdts == 0 { None } else { PAGE_BYTES.checked_shl(mdts) };
        limit.and_then(|limit| usize::try_from(limit).ok()).map_or(MOST_BYTES, |limit| limit.clamp(4096, MOST_BYTES))
    }

    fn admin_entry(&self, entry: SubmissionEntry, data: AdminData<'_>) -> Result<Completed, DriverError> {
        let into = match data {
            AdminData::None => &mut [],
            AdminData::FromDevice(into) => into,
            AdminData::ToDevice(_) => {
                let (address, command) = (self.address.clone(), describe(&entry));
                return Err(KernelError::Refused { address, command }.into());
            }
        };
        let command = ReadOnly::new(&self.address, entry, into.len())?;
        let answer = if command.buffer_bytes() == into.len() {
            self.send(&command, into)?
        } else {
            let mut room = vec![0; command.buffer_bytes()];
            let answer = self.send(&command, &mut room)?;
            let wanted = room.get(..into.len()).unwrap_or_default();
            into.copy_from_slice(wanted);
            answer
        };
        let status = Status::from_bits(answer.status);
        if status.is_success() {
            return Ok(Completed { dword0: answer.result as u32, dword1: (answer.result >> 32) as u32 });
        }
        Err(DriverError::Command { address: self.address.clone(), queue: 0, command: describe(&entry), status })
    }
}

#[cfg(test)]
mod tests {
    use nvmetal_core::command::Command;
    use nvmetal_core::command::admin::SetFeatures;

    use super::*;
    use crate::pci::testing::FakeHost;

    /// A controller whose node is a plain file, so that nothing gets to a device.
    fn on_a_plain_file() -> (FakeHost, KernelController) {
        let (host, drive) = FakeHost::with_drive();
        host.file("dev/nvme0", "");
        let controller = KernelController {
            sysfs: host.sysfs.clone(),
            pci: drive,
            address: format!("{drive} (nvme0)"),
            name: "nvme0".to_owned(),
            path: host.sysfs.dev("nvme0"),
            node: rustix::fs::open(host.sysfs.dev("nvme0"), OFlags::RDONLY, Mode::empty()).expect("a file"),
            old: AtomicBool::new(false),
            identify: Box::new(identify::Controller::new_zeroed()),
            tally: Arc::default(),
        };
        (host, controller)
    }

    #[test]
    fn a_drive_without_the_kernels_driver_is_not_held() {
        let (host, _) = FakeHost::with_drive();
        let other = host.function(&["0000:02:00.0"], "0x010802");
        host.bind(other, "vfio-pci");
        let error = KernelController::open(&host.sysfs, other).expect_err("vfio-pci has it");
        assert!(error.to_string().contains("does not hold it (vfio-pci)"), "{error}");
    }

    #[test]
    fn a_node_that_is_no_controller_gives_the_systems_word() {
        let (host, drive) = FakeHost::with_drive();
        host.file("dev/nvme0", "");
        let error = KernelController::open(&host.sysfs, drive).expect_err("it is a plain file");
        let DriverError::Kernel(KernelError::System { what, .. }) = &error else { panic!("{error:?}") };
        assert!(what.starts_with("Identify (Identify Controller"), "{error}");
    }

    #[test]
    fn a_command_that_changes_something_is_not_sent() {
        let (_host, controller) = on_a_plain_file();
        let error = controller.admin(&SetFeatures::default(), AdminData::None).expect_err("it is refused");
        assert!(matches!(error, DriverError::Kernel(KernelError::Refused { .. })), "{error:?}");
        let format = SubmissionEntry::new(0x80);
        let error = controller.admin_entry(format, AdminData::None).expect_err("it is refused");
        assert!(error.to_string().contains("is not sent while the kernel holds the drive"), "{error}");
        let identify = nvmetal_core::command::admin::Identify::default().entry();
        let error = controller.admin_entry(identify, AdminData::ToDevice(&[0; 4096])).expect_err("it is refused");
        assert!(matches!(error, DriverError::Kernel(KernelError::Refused { .. })), "{error:?}");
        assert!(controller.tally().sent().is_empty());
    }

    #[test]
    fn the_older_request_is_used_where_the_newer_is_unknown_and_remembered() {
        let (_host, controller) = on_a_plain_file();
        let mut forms = Vec::new();
        for _ in 0..2 {
            let answer = controller.send_in_a_form_it_knows(|form| {
                forms.push(form);
                match form {
                    Form::Result64 => Err(Errno::NOTTY),
                    Form::Result32 => Ok(Answer { status: 0, result: 7 }),
                }
            });
            assert_eq!(answer, Ok(Answer { status: 0, result: 7 }));
        }
        assert_eq!(forms, [Form::Result64, Form::Result32, Form::Result32]);
    }

    #[test]
    fn an_interrupted_command_was_cancelled_and_is_not_sent_again() {
        let (_host, controller) = on_a_plain_file();
        let mut sent = 0;
        let answer = controller.send_in_a_form_it_knows(|_| {
            sent += 1;
            Err(Errno::INTR)
        });
        assert_eq!((answer, sent), (Err(Errno::INTR), 1));
        assert!(cancelled_or(Path::new("/dev/nvme0"), "Identify", Errno::INTR).is_lost());
    }

    #[test]
    fn the_transfer_limit_is_never_above_the_drives() {
        let (_host, mut controller) = on_a_plain_file();
        for (mdts, bytes) in [(0, MOST_BYTES), (1, 8192), (5, MOST_BYTES), (7, MOST_BYTES), (255, MOST_BYTES)] {
            controller.identify.mdts = mdts;
            assert_eq!(Admin::max_admin_bytes(&controller), bytes, "MDTS {mdts}");
        }
    }
}
