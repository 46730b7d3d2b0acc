//! The statuses that the emulator answers with, by the specification's names.
#![forbid(unsafe_code)]

use nvmetal_core::status::Status;

macro_rules! statuses {
    ($( $name:ident = $sct:literal, $sc:literal, $dnr:literal; )+) => {
        $( pub(crate) const $name: Status = Status::new($sct, $sc).with_dnr($dnr); )+
    };
}

// The last column is Do Not Retry: the same command would fail again.
statuses! {
    INVALID_OPCODE = 0, 0x01, true;
    INVALID_FIELD = 0, 0x02, true;
    DATA_TRANSFER_ERROR = 0, 0x04, true;
    ABORT_REQUESTED = 0, 0x07, false;
    ABORTED_SQ_DELETION = 0, 0x08, false;
    INVALID_NAMESPACE = 0, 0x0b, true;
    COMMAND_SEQUENCE_ERROR = 0, 0x0c, true;
    INVALID_SGL_SEGMENT = 0, 0x0d, true;
    DATA_SGL_LENGTH_INVALID = 0, 0x0f, true;
    SGL_DESCRIPTOR_TYPE_INVALID = 0, 0x11, true;
    PRP_OFFSET_INVALID = 0, 0x13, true;
    SANITIZE_IN_PROGRESS = 0, 0x1d, false;
    LBA_OUT_OF_RANGE = 0, 0x80, true;
    COMPLETION_QUEUE_INVALID = 1, 0x00, true;
    INVALID_QUEUE_ID = 1, 0x01, true;
    INVALID_QUEUE_SIZE = 1, 0x02, true;
    EVENT_REQUEST_LIMIT_EXCEEDED = 1, 0x05, true;
    INVALID_INTERRUPT_VECTOR = 1, 0x08, true;
    INVALID_LOG_PAGE = 1, 0x09, true;
    INVALID_FORMAT = 1, 0x0a, true;
    INVALID_QUEUE_DELETION = 1, 0x0c, true;
    FEATURE_NOT_SAVEABLE = 1, 0x0d, true;
    FEATURE_NOT_NAMESPACE_SPECIFIC = 1, 0x0f, true;
    SELF_TEST_IN_PROGRESS = 1, 0x1d, false;
    COMMAND_SIZE_LIMIT_EXCEEDED = 1, 0x83, true;
    OVERLAPPING_IO_RANGE = 1, 0x87, true;
    WRITE_FAULT = 2, 0x80, false;
    UNRECOVERED_READ_ERROR = 2, 0x81, false;
    COMPARE_FAILURE = 2, 0x85, true;
}
