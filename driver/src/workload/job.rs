//! What is to be done.
//!
//! A [`Job`] is in the user's units: bytes, a percentage, a time. A plan is the same in the drive's: blocks of a
//! namespace, commands of at most the controller's transfer size. What cannot be done is refused here, before the first
//! command, with what would be possible. A plan is made for a `Space`, which is a namespace behind our own queues or a
//! block device behind the kernel's.
#![forbid(unsafe_code)]

use crate::controller::{Controller, Namespace};
use crate::error::DriverError;
use crate::io_queue::Wait;

/// The most data of one command, whatever the controller allows: a PRP list of one page describes this much.
const MOST_PER_COMMAND_BYTES: u64 = 2 << 20;
/// The longest I/O; it is cut into commands.
const MOST_PER_IO_BYTES: u64 = 1 << 30;

/// In which order blocks are visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// One after the other, from the beginning again at the end.
    Sequential,
    /// Anywhere.
    Random,
}

/// What an I/O that is neither a read nor a write does, for a job of such.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Reads and writes, as [`Job::read_percent`] says.
    Transfer,
    /// Deallocates (Dataset Management).
    Trim,
    /// Write Zeroes: no data moves.
    WriteZeroes,
    /// Compare with what a verifying write with the same seed left.
    Compare,
    /// Verify: the drive reads and checks, no data moves.
    Verify,
}

/// Which places a random job prefers.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// None.
    Uniform,
    /// The place of rank r is drawn as often as 1 / r to this power.
    Zipf(f64),
    /// This part of the places gets all but this part of the draws: 0.2 is eighty to twenty.
    Pareto(f64),
    /// A bell around the middle; its standard deviation in per cent of the region.
    Normal(f64),
}

/// What is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Data {
    /// Random bytes, of which no drive can make less.
    Random,
    /// Random bytes, and so many per cent of zeros.
    Compressible(u8),
    /// Zeros.
    Zero,
}

/// A pace that does not wait for the drive: a late answer does not delay what comes after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rate {
    /// I/Os per second of each queue.
    Ios(u64),
    /// Bytes per second of each queue.
    Bytes(u64),
}

/// A pause after so many I/Os, begun when they have all come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Think {
    /// How long.
    pub ns: u64,
    /// After how many I/Os.
    pub ios: u64,
}

/// A block size and how often it comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct SizeShare {
    /// Bytes of the I/O.
    pub bytes: u64,
    /// How many of a hundred I/Os have it.
    pub percent: u8,
}

/// When a job ends: at the first of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Limits {
    /// After this time (not counting the ramp).
    pub runtime_ns: Option<u64>,
    /// After this many I/Os of each queue.
    pub ios: Option<u64>,
    /// After this many bytes of each queue.
    pub bytes: Option<u64>,
}

/// A workload.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Job {
    /// In which order.
    pub access: Access,
    /// How many of a hundred I/Os are reads; the others are writes.
    pub read_percent: u8,
    /// What is done instead of reading and writing.
    pub action: Action,
    /// Bytes of one I/O; the largest, where [`Job::sizes`] has several.
    pub block_bytes: u64,
    /// Several sizes; empty for one. The smallest is the grid on which I/Os begin.
    pub sizes: Vec<SizeShare>,
    /// Which places a random job prefers.
    pub distribution: Distribution,
    /// A random job visits every place once before any comes again.
    pub no_repeat: bool,
    /// What is written.
    pub data: Data,
    /// Each write gets data of its own, instead of the buffer's that it happens to use.
    pub refill: bool,
    /// Blocks are written with what tells them apart, and read and checked afterwards; by a job that only reads, at once.
    pub verify: bool,
    /// The pace of each queue; `None` for as fast as they come back.
    pub rate: Option<Rate>,
    /// Pauses.
    pub think: Option<Think>,
    /// I/Os in flight on each queue.
    pub iodepth: u32,
    /// Queues, each with a thread of its own.
    pub numjobs: u16,
    /// Where the region begins.
    pub offset_bytes: u64,
    /// How long the region is; `None` for up to the end of the namespace.
    pub size_bytes: Option<u64>,
    /// Each queue's region begins this much behind the one before.
    pub offset_increment_bytes: u64,
    /// When it ends.
    pub limits: Limits,
    /// Runs this long before anything is recorded.
    pub ramp_ns: u64,
    /// For offsets and data.
    pub seed: u64,
    /// How the queues wait for completions.
    pub wait: Wait,
    /// How long a command may take.
    pub timeout_ns: u64,
    /// Processors to pin the threads to, in turn; empty for none.
    pub cpus: Vec<usize>,
}

impl Job {
    /// Random reads of 4 KiB, 32 in flight on one queue, for five seconds.
    pub fn new() -> Self {
        Self {
            access: Access::Random,
            read_percent: 100,
            action: Action::Transfer,
            block_bytes: 4096,
            sizes: Vec::new(),
            distribution: Distribution::Uniform,
            no_repeat: false,
            data: Data::Random,
            refill: false,
            verify: false,
            rate: None,
            think: None,
            iodepth: 32,
            numjobs: 1,
            offset_bytes: 0,
            size_bytes: None,
            offset_increment_bytes: 0,
            limits: Limits { runtime_ns: Some(5_000_000_000), ..Limits::default() },
            ramp_ns: 0,
            seed: 0x6e76_6d65_7461_6c21,
            wait: Wait::Poll,
            timeout_ns: 10_000_000_000,
            cpus: Vec::new(),
        }
    }

    /// Whether it changes what the drive holds.
    pub fn writes(&self) -> bool {
        match self.action {
            Action::Transfer => self.read_percent < 100,
            Action::Trim | Action::WriteZeroes => true,
            Action::Compare | Action::Verify => false,
        }
    }

    /// Whether it needs more than drawing or walking, and reading or writing.
    pub(crate) fn is_general(&self) -> bool {
        self.action != Action::Transfer
            || !self.sizes.is_empty()
            || self.distribution != Distribution::Uniform
            || self.no_repeat
            || self.refill
            || self.verify
            || self.rate.is_some()
            || self.think.is_some()
    }
}

impl Default for Job {
    fn default() -> Self {
        Self::new()
    }
}

/// A job that cannot be done on this drive, or at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// What was asked for and cannot be, in a sentence.
    #[error("{0}")]
    Senseless(&'static str),
    /// The drive has no such command.
    #[error("the drive does not have the {0} command")]
    NoSuchCommand(&'static str),
    /// The drive moves whole blocks only.
    #[error("a block size of {block_bytes} bytes is not a multiple of the drive's logical block of {lba_bytes} bytes")]
    BlockSize {
        /// What was asked for.
        block_bytes: u64,
        /// The logical block.
        lba_bytes: u64,
    },
    /// An I/O cannot begin within a block.
    #[error("offsets have to be multiples of the drive's logical block of {lba_bytes} bytes")]
    Offset {
        /// The logical block.
        lba_bytes: u64,
    },
    /// No queue, or nothing in flight.
    #[error("the queue depth and the number of jobs are at least 1")]
    Nothing,
    /// It would never end, or has ended before it began.
    #[error("a run needs an end: a runtime above 0, a number of I/Os, or a size")]
    NoEnd,
    /// More jobs than the drive has queues.
    #[error("{numjobs} jobs need a queue each; the drive offers {queues}")]
    Queues {
        /// What was asked for.
        numjobs: u16,
        /// What there is.
        queues: u16,
    },
    /// Longer than any I/O can be.
    #[error("a block size of {block_bytes} bytes is above 1 GiB")]
    TooLong {
        /// What was asked for.
        block_bytes: u64,
    },
    /// One I/O takes more commands than a queue holds.
    #[error("one I/O of {block_bytes} bytes is {commands} commands; a queue holds {holds}")]
    Commands {
        /// What was asked for.
        block_bytes: u64,
        /// The commands it takes.
        commands: u32,
        /// What a queue holds.
        holds: u32,
    },
    /// More in flight than a queue holds.
    #[error("a queue depth of {iodepth} is above the {holds} that a queue of the drive holds")]
    Depth {
        /// What was asked for.
        iodepth: u32,
        /// What a queue holds.
        holds: u32,
    },
    /// The region reaches beyond the end of the namespace.
    #[error(
        "{size_bytes} bytes from byte {offset_bytes} on end behind the drive, which has {room_bytes} bytes from there"
    )]
    Size {
        /// Where the region begins.
        offset_bytes: u64,
        /// The length that was asked for.
        size_bytes: u64,
        /// The length that there is.
        room_bytes: u128,
    },
    /// The region is shorter than one I/O.
    #[error(
        "the region from byte {offset_bytes} on has no room for one I/O of {block_bytes} bytes: it has {room_bytes} bytes"
    )]
    NoRoom {
        /// Where the region begins.
        offset_bytes: u64,
        /// The length of an I/O.
        block_bytes: u64,
        /// The length of the region.
        room_bytes: u128,
    },
}

/// What a job is planned for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Space {
    /// Bytes of data in a logical block.
    pub lba_bytes: u64,
    /// Its size in logical blocks.
    pub blocks: u64,
    /// The most logical blocks of one command.
    pub command_blocks: u32,
    /// Commands that a queue holds.
    pub queue_holds: u32,
    /// Queues that there can be.
    pub queues: u16,
}

impl Space {
    /// A namespace behind our own queues.
    pub fn of(controller: &Controller, namespace: &Namespace) -> Self {
        let lba_bytes = namespace.lba_bytes();
        let transfer = controller.max_transfer_bytes().unwrap_or(u64::MAX).min(MOST_PER_COMMAND_BYTES);
        // MDTS counts metadata that is interleaved with the data (NVM Command Set Specification, "MDTS").
        let on_the_wire = if namespace.metadata_extended { u64::from(namespace.metadata_bytes) } else { 0 } + lba_bytes;
        Self {
            lba_bytes,
            blocks: namespace.blocks,
            command_blocks: (transfer / on_the_wire).min(65_536) as u32,
            queue_holds: controller.max_queue_entries().min(4097) - 1,
            queues: controller.io_queues(),
        }
    }
}

/// A job in blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Blocks of one I/O.
    pub io_blocks: u32,
    /// Blocks of one command.
    pub command_blocks: u32,
    /// Commands of one I/O.
    pub commands: u32,
    /// First block of the first queue's region.
    pub first_lba: u64,
    /// I/Os that fit into the region.
    pub slots: u64,
    /// Blocks from one queue's region to the next.
    pub increment_blocks: u64,
    /// I/Os in flight on each queue: what was asked for, or what the queue holds.
    pub iodepth: u32,
    /// Blocks from one place where an I/O may begin to the next.
    pub slot_blocks: u32,
}

/// Places of which a verifying run can keep what it has written there.
const MOST_VERIFIED_SLOTS: u64 = 1 << 31;

impl Job {
    /// Translates the job for a place.
    pub(crate) fn plan(&self, space: &Space) -> Result<Plan, DriverError> {
        let lba_bytes = space.lba_bytes;
        let aligned = |bytes: u64| bytes.is_multiple_of(lba_bytes);
        let block_bytes = self.block_bytes;
        if block_bytes == 0 || !aligned(block_bytes) {
            return Err(JobError::BlockSize { block_bytes, lba_bytes }.into());
        }
        if !aligned(self.offset_bytes) || !aligned(self.offset_increment_bytes) {
            return Err(JobError::Offset { lba_bytes }.into());
        }
        if self.iodepth == 0 || self.numjobs == 0 {
            return Err(JobError::Nothing.into());
        }
        if self.limits.runtime_ns == Some(0) || self.limits == Limits::default() {
            return Err(JobError::NoEnd.into());
        }
        if self.numjobs > space.queues {
            return Err(JobError::Queues { numjobs: self.numjobs, queues: space.queues }.into());
        }
        if block_bytes > MOST_PER_IO_BYTES {
            return Err(JobError::TooLong { block_bytes }.into());
        }
        self.check_sense(lba_bytes)?;
        let io_blocks = (block_bytes / lba_bytes) as u32;
        let smallest = self.sizes.iter().map(|share| share.bytes).min().unwrap_or(block_bytes);
        let slot_blocks = (smallest / lba_bytes) as u32;
        // Deallocating is one entry of a list, however long.
        let most = if self.action == Action::Trim { u32::MAX } else { space.command_blocks };
        let command_blocks = most.clamp(1, io_blocks);
        let commands = io_blocks.div_ceil(command_blocks);
        let holds = space.queue_holds;
        let iodepth = self.iodepth.min((holds / commands).max(1));
        if commands > holds {
            return Err(JobError::Commands { block_bytes, commands, holds }.into());
        }
        if self.iodepth > holds {
            return Err(JobError::Depth { iodepth: self.iodepth, holds }.into());
        }
        let first_lba = self.offset_bytes / lba_bytes;
        let increment_blocks = self.offset_increment_bytes / lba_bytes;
        let last_first = first_lba.saturating_add(increment_blocks.saturating_mul(u64::from(self.numjobs) - 1));
        let room = space.blocks.saturating_sub(last_first);
        let size_blocks = self.size_bytes.map_or(room, |bytes| bytes / lba_bytes);
        let room_bytes = u128::from(size_blocks.min(room)) * u128::from(lba_bytes);
        let slots = size_blocks.min(room) / u64::from(slot_blocks);
        if size_blocks.min(room) < u64::from(io_blocks) {
            return Err(JobError::NoRoom { offset_bytes: self.offset_bytes, block_bytes, room_bytes }.into());
        }
        if size_blocks > room {
            let size_bytes = self.size_bytes.unwrap_or_default();
            return Err(JobError::Size { offset_bytes: self.offset_bytes, size_bytes, room_bytes }.into());
        }
        if self.verify && slots > MOST_VERIFIED_SLOTS {
            return Err(JobError::Senseless("a verifying run keeps a byte for each place: give it a size").into());
        }
        Ok(Plan { io_blocks, command_blocks, commands, first_lba, slots, increment_blocks, iodepth, slot_blocks })
    }

    /// Whether the parts of the job go together.
    fn check_sense(&self, lba_bytes: u64) -> Result<(), JobError> {
        for share in &self.sizes {
            if share.bytes == 0 || !share.bytes.is_multiple_of(lba_bytes) || share.bytes > self.block_bytes {
                return Err(JobError::BlockSize { block_bytes: share.bytes, lba_bytes });
            }
        }
        let several = !self.sizes.is_empty();
        if several && self.sizes.iter().map(|share| u32::from(share.percent)).sum::<u32>() != 100 {
            return Err(JobError::Senseless("the shares of the block sizes do not add up to 100 %"));
        }
        let sound = match self.distribution {
            Distribution::Uniform => true,
            Distribution::Zipf(theta) => theta > 0.0 && theta < 20.0,
            Distribution::Pareto(h) => h > 0.0 && h < 1.0,
            Distribution::Normal(percent) => percent > 0.0 && percent <= 100.0,
        };
        if !sound {
            return Err(JobError::Senseless(
                "zipf takes a power above 0, pareto a part of 1, normal per cent of the region",
            ));
        }
        if self.no_repeat && self.distribution != Distribution::Uniform {
            return Err(JobError::Senseless("places that come once each cannot come some more often than others"));
        }
        if matches!(self.rate, Some(Rate::Ios(0) | Rate::Bytes(0))) {
            return Err(JobError::Senseless("a rate of 0 moves nothing"));
        }
        if self.think.is_some_and(|think| think.ios == 0) {
            return Err(JobError::Senseless("a pause comes after 1 I/O at least"));
        }
        if !self.verify {
            return Ok(());
        }
        if self.action != Action::Transfer {
            return Err(JobError::Senseless("only reads and writes can be verified"));
        }
        if several {
            return Err(JobError::Senseless("verifying takes one block size"));
        }
        let size = self.size_bytes.unwrap_or(u64::MAX);
        if self.writes() && self.numjobs > 1 && self.offset_increment_bytes < size {
            return Err(JobError::Senseless(
                "several jobs that write the same blocks cannot be verified: give each its own with an offset \
                 increment of the size or more",
            ));
        }
        if self.writes() && self.access == Access::Random && !self.no_repeat {
            return Err(JobError::Senseless("random writes can be verified only if no place comes twice at a time"));
        }
        Ok(())
    }
}
