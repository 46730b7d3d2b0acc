//! Admin commands for firmware.
#![forbid(unsafe_code)]

use super::{AdminOpcode, command};
use crate::codes;
use crate::number::{UInt, ZeroBasedU32};

codes! {
    /// CA of Firmware Commit: what to do with the image.
    pub struct CommitAction(u8, 3) {
        /// Put the downloaded image into the slot.
        0 REPLACE "replace the image in the slot";
        /// Put the downloaded image into the slot, and run it after the next reset.
        1 REPLACE_AND_ACTIVATE "replace the image, activate at the next reset";
        /// Run the image of the slot after the next reset.
        2 ACTIVATE "activate the image at the next reset";
        /// Run the image of the slot at once.
        3 ACTIVATE_NOW "activate the image without a reset";
        /// Put the downloaded image into the boot partition.
        6 REPLACE_BOOT_PARTITION "replace the boot partition";
        /// Make the boot partition the active one.
        7 ACTIVATE_BOOT_PARTITION "activate the boot partition";
    }
}

command! {
    /// Firmware Commit. NVM Express Base Specification, "Firmware Commit command".
    pub struct FirmwareCommit = AdminOpcode::FIRMWARE_COMMIT, "Firmware Commit" {
        /// The slot, 1 to 7; 0 leaves the choice to the controller.
        10[0:3] fs: UInt<3> = COUNT, "Firmware Slot";
        /// What to do.
        10[3:3] ca: CommitAction = choice(CommitAction::MEANINGS), "Commit Action";
        /// The boot partition.
        10[31:1] bpid: bool = FLAG, "Boot Partition ID";
    }
}

command! {
    /// Firmware Image Download. NVM Express Base Specification, "Firmware Image Download command".
    pub struct FirmwareImageDownload = AdminOpcode::FIRMWARE_IMAGE_DOWNLOAD, "Firmware Image Download" {
        /// Dwords of this piece.
        10[0:32] numd: ZeroBasedU32 = ZERO_BASED, "Number of Dwords";
        /// Where in the image the piece belongs, in dwords.
        11[0:32] ofst: u32 = amount(4, "bytes"), "Offset";
    }
}
