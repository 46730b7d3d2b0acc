//! What the engine reads from: a namespace's block device, or a plain file.
//!
//! It is opened past the page cache (`O_DIRECT`), for reading alone. Writing needs a [`WritePermit`], which names the
//! drive by its serial number; with one, a block device is opened exclusively, so that nothing that is mounted or
//! otherwise in use can be written to.
//!
//! On a drive that is in use such a read has one effect: what the kernel still holds back for these blocks (metadata of a
//! mounted file system, say) is written out before it, a little earlier than it would have been anyway.
//!
//! A plain file behaves the same way, as far as its file system has direct access; that is for trying things out.
#![forbid(unsafe_code)]

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, SeekFrom, StatxFlags};
use rustix::io::Errno;

use nvmetal_core::command::io::IoOpcode;

use super::blocking;
use super::error::{self, KernelError};
use super::facts::BlockFacts;
use crate::controller::Tally;
use crate::error::DriverError;
use crate::pci::Sysfs;
use crate::workload::Space;

/// Direct access to a file whose file system does not say how it has to be aligned.
const FILE_BLOCK_BYTES: u32 = 4096;
/// Commands that may be under way at once through one ring: as many as one of our own queues holds.
const MOST_IN_FLIGHT: u32 = 4096;
/// Rings, or groups of threads, of one run.
const MOST_JOBS: u16 = 1024;

/// Leave to write to one drive. Whoever makes one has made sure that nothing on the drive is needed, as for a run through
/// our own driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WritePermit {
    serial: String,
}

impl WritePermit {
    /// Leave to write to the drive with this serial number, and to any plain file.
    pub fn for_serial(serial: &str) -> Self {
        Self { serial: serial.trim().to_owned() }
    }
}

/// An open block device or file.
#[derive(Debug)]
pub struct BlockTarget {
    file: OwnedFd,
    path: PathBuf,
    bytes: u64,
    lba_bytes: u32,
    direct: bool,
    writable: bool,
    device: Option<Device>,
    tally: Option<Arc<Tally>>,
}

/// What is known of a block device besides its content.
#[derive(Debug)]
struct Device {
    sysfs: Sysfs,
    /// Its directory in sysfs.
    directory: PathBuf,
    facts: BlockFacts,
}

impl BlockTarget {
    /// Opens `path`.
    ///
    /// # Errors
    /// [`KernelError::Permission`] where this user may not; [`KernelError::InUse`] and [`KernelError::OtherSerial`] with a
    /// permit, if the device is in use or another drive's; [`KernelError::NotABlockDevice`].
    pub fn open(sysfs: &Sysfs, path: impl AsRef<Path>, permit: Option<&WritePermit>) -> Result<Self, KernelError> {
        let path = path.as_ref();
        let fail = |what: &'static str| move |errno| KernelError::of(path, what, errno);
        let (file, direct) = open(path, permit.is_some())?;
        let stat = rustix::fs::fstat(&file).map_err(fail("asking what it is"))?;
        let (bytes, lba_bytes, device) = match FileType::from_raw_mode(stat.st_mode) {
            FileType::BlockDevice => {
                let bytes = rustix::fs::seek(&file, SeekFrom::End(0)).map_err(fail("asking for its size"))?;
                let lba_bytes = rustix::fs::ioctl_blksszget(&file).map_err(fail("asking for its block size"))?;
                (bytes, lba_bytes, Some(Device::of(sysfs, stat.st_rdev)))
            }
            FileType::RegularFile => {
                (stat.st_size.try_into().unwrap_or(0), if direct { alignment(&file) } else { 512 }, None)
            }
            _ => return Err(KernelError::NotABlockDevice { path: path.to_owned() }),
        };
        if let (Some(permit), Some(device)) = (permit, &device) {
            let found = device.facts.serial.clone();
            if found.as_deref() != Some(&permit.serial) {
                let (path, permitted) = (path.to_owned(), permit.serial.clone());
                return Err(KernelError::OtherSerial { path, permitted, found });
            }
        }
        let writable = permit.is_some();
        Ok(Self { file, path: path.to_owned(), bytes, lba_bytes, direct, writable, device, tally: None })
    }

    /// The same, with its reads and writes counted.
    pub(super) fn counted_by(self, tally: Arc<Tally>) -> Self {
        Self { tally: Some(tally), ..self }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its size.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Its logical block; reads have to be aligned to it.
    pub fn lba_bytes(&self) -> u32 {
        self.lba_bytes
    }

    /// Whether reads go past the page cache. Always so for a block device; some file systems cannot, and what is measured
    /// there may be the speed of memory.
    pub fn is_direct(&self) -> bool {
        self.direct
    }

    /// Whether it was opened for writing, too.
    pub fn is_writable(&self) -> bool {
        self.writable
    }

    /// What the kernel says of it; `None` for a file.
    pub fn facts(&self) -> Option<&BlockFacts> {
        self.device.as_ref().map(|device| &device.facts)
    }

    /// Reads `blocks` blocks from `lba`, by this thread, and waits for them: for a look at a few, not for speed.
    ///
    /// # Errors
    /// [`DriverError::Lost`] if the drive has gone; else [`KernelError::System`] with what the system says of these blocks.
    pub fn read_blocks(&self, lba: u64, blocks: u32) -> Result<Vec<u8>, DriverError> {
        let what = || format!("reading {blocks} blocks at LBA {lba}");
        let failed = |errno| KernelError::of(&self.path, what(), errno);
        let bytes = u64::from(blocks) * u64::from(self.lba_bytes);
        // Direct access wants whole pages of memory.
        let mut memory = blocking::memory(usize::try_from(bytes).unwrap_or(usize::MAX)).map_err(failed)?;
        let offset = lba.saturating_mul(self.lba_bytes.into());
        let moved = rustix::io::retry_on_intr(|| rustix::io::pread(&self.file, &mut memory[..], offset));
        if let Some(tally) = &self.tally {
            tally.add(false, IoOpcode::READ.into_bits(), 1);
        }
        match moved {
            Ok(moved) if moved as u64 == bytes => Ok(memory.to_vec()),
            Ok(_) => {
                let source = std::io::ErrorKind::UnexpectedEof.into();
                Err(KernelError::System { path: self.path.clone(), what: what(), source }.into())
            }
            Err(errno) if error::is_gone(errno) || self.is_gone() => Err(DriverError::Lost {
                address: self.path.display().to_string(),
                detail: format!("{}: {errno}, and the kernel has no such drive any more", what()),
            }),
            Err(errno) => Err(failed(errno).into()),
        }
    }

    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    pub(super) fn tally(&self) -> Option<&Tally> {
        self.tally.as_deref()
    }

    /// What a job is planned for. The block layer splits what is larger than a command, unseen.
    pub(super) fn space(&self) -> Space {
        Space {
            lba_bytes: self.lba_bytes.into(),
            blocks: self.bytes / u64::from(self.lba_bytes.max(1)),
            command_blocks: u32::MAX,
            queue_holds: MOST_IN_FLIGHT,
            queues: MOST_JOBS,
        }
    }

    /// Whether a block device has left the machine, or the kernel has given it up: its directory is gone, or it has no
    /// blocks any more.
    pub(super) fn is_gone(&self) -> bool {
        self.device.as_ref().is_some_and(|device| device.sysfs.number(device.directory.join("size")).unwrap_or(0) == 0)
    }
}

impl Device {
    fn of(sysfs: &Sysfs, number: u64) -> Self {
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        let link = sysfs.sys(format!("dev/block/{major}:{minor}"));
        let directory = sysfs.canonical(&link).unwrap_or(link);
        let facts = BlockFacts::read(sysfs, &directory);
        Self { sysfs: sysfs.clone(), directory, facts }
    }
}

/// Opens a path, and says whether past the page cache.
fn open(path: &Path, write: bool) -> Result<(OwnedFd, bool), KernelError> {
    // O_EXCL without O_CREAT is for block devices alone; on a file it has no effect.
    let access = if write { OFlags::RDWR | OFlags::EXCL } else { OFlags::RDONLY };
    let open = |more| rustix::fs::open(path, access | OFlags::CLOEXEC | more, Mode::empty());
    match open(OFlags::DIRECT) {
        Ok(file) => Ok((file, true)),
        Err(Errno::INVAL) => {
            // A file system without direct access. No block device is one.
            let file = open(OFlags::empty()).map_err(|errno| KernelError::of(path, "opening it", errno))?;
            Ok((file, false))
        }
        Err(Errno::BUSY) if write => Err(KernelError::InUse { path: path.to_owned() }),
        Err(errno) => Err(KernelError::of(path, "opening it", errno)),
    }
}

/// How offsets and lengths of direct access to a file have to be aligned.
fn alignment(file: &OwnedFd) -> u32 {
    let asked = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN);
    match asked {
        Ok(stat) if stat.stx_mask & StatxFlags::DIOALIGN.bits() != 0 && stat.stx_dio_offset_align.is_power_of_two() => {
            stat.stx_dio_offset_align.clamp(512, 1 << 20)
        }
        _ => FILE_BLOCK_BYTES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_and_a_character_device_are_no_targets() {
        let directory = tempfile::tempdir().expect("a directory");
        for path in [directory.path(), Path::new("/dev/null")] {
            let error = BlockTarget::open(&Sysfs::host(), path, None).expect_err("it has no blocks");
            assert!(matches!(error, KernelError::NotABlockDevice { .. }), "{error:?}");
        }
    }

    #[test]
    fn a_file_is_opened_for_reading_alone_unless_there_is_a_permit() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        file.as_file().set_len(1 << 20).expect("a length");
        let target = BlockTarget::open(&Sysfs::host(), file.path(), None).expect("a target");
        assert_eq!((target.bytes(), target.is_writable(), target.facts()), (1 << 20, false, None));
        assert_eq!(rustix::io::write(target.file(), &[0; 512]), Err(Errno::BADF));
        assert!(!target.is_gone());
        let permit = WritePermit::for_serial("any");
        let target = BlockTarget::open(&Sysfs::host(), file.path(), Some(&permit)).expect("a target");
        assert!(target.is_writable());
    }

    #[test]
    fn blocks_are_read_where_they_lie_and_not_past_the_end() {
        use std::io::Write;
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        let content: Vec<u8> = (0..16_384_u32).map(|at| (at / 4096) as u8 + 1).collect();
        file.write_all(&content).expect("it is written");
        let target = BlockTarget::open(&Sysfs::host(), file.path(), None).expect("a target");
        let blocks = 4096 / target.lba_bytes();
        let second = target.read_blocks(blocks.into(), blocks).expect("the second page");
        assert_eq!(second, vec![2; 4096]);
        let error = target.read_blocks(u64::from(4 * blocks), blocks).expect_err("there is no fifth page");
        assert!(matches!(error, DriverError::Kernel(KernelError::System { .. })), "{error:?}");
        assert!(error.to_string().contains("at LBA"), "{error}");
    }

    #[test]
    fn what_is_not_there_is_an_error_with_its_path() {
        let error = BlockTarget::open(&Sysfs::host(), "/dev/nvme999n1", None).expect_err("there is none");
        assert!(error.to_string().starts_with("/dev/nvme999n1: opening it: No such file"), "{error}");
    }
}
