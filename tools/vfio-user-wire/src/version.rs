//! The first exchange: which version is spoken, and which limits hold.
//!
//! Behind two numbers stands a JSON text, ended by a zero byte, that may be left out: then everything has its default.
//! Both sides send one; each keeps to the other's limits.
#![forbid(unsafe_code)]

use serde::{Deserialize, Serialize};
use zerocopy::IntoBytes;

use crate::message::Version;
use crate::{DATA_BYTES_MOST, WireError};

/// The major version that is spoken here.
pub const MAJOR: u16 = 0;
/// The minor version that is spoken here.
pub const MINOR: u16 = 1;
/// The longest text that is read.
const TEXT_BYTES_MOST: usize = 4096;

/// What one side can do, or takes at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Capabilities {
    /// Descriptors with one message.
    pub max_msg_fds: u32,
    /// Bytes of data with one message.
    pub max_data_xfer_size: u32,
    /// Ranges of memory that can be mapped at a time.
    pub max_dma_maps: u32,
    /// Page sizes that a mapping may have, a bit for each.
    pub pgsizes: u64,
}

impl Default for Capabilities {
    /// What holds where nothing is said.
    fn default() -> Self {
        Self { max_msg_fds: 1, max_data_xfer_size: DATA_BYTES_MOST, max_dma_maps: 65_535, pgsizes: 4096 }
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Text {
    capabilities: Capabilities,
}

/// The payload of a VERSION message, of both directions.
pub fn encode(capabilities: &Capabilities) -> Vec<u8> {
    let mut payload = Version { major: MAJOR.into(), minor: MINOR.into() }.as_bytes().to_vec();
    // A structure of four numbers is always JSON; were it not, no text means the defaults.
    if let Ok(text) = serde_json::to_vec(&Text { capabilities: *capabilities }) {
        payload.extend(text);
        payload.push(0);
    }
    payload
}

/// Reads the payload of a VERSION message.
///
/// # Errors
/// It is cut short, its text is longer than 4 KiB or no JSON of the form agreed on.
pub fn decode(payload: &[u8]) -> Result<(Version, Capabilities), WireError> {
    let (version, text) = Version::take(payload)?;
    if text.len() > TEXT_BYTES_MOST {
        return Err(WireError::TooLong { bytes: text.len() as u64, most: TEXT_BYTES_MOST as u64 });
    }
    let text = text.split(|&byte| byte == 0).next().unwrap_or_default();
    if text.is_empty() {
        return Ok((version, Capabilities::default()));
    }
    let text: Text =
        serde_json::from_slice(text).map_err(|error| WireError::Capabilities { detail: error.to_string() })?;
    Ok((version, text.capabilities))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn payload(text: &[u8]) -> Vec<u8> {
        [&[0, 0, 1, 0], text].concat()
    }

    #[test]
    fn what_spdk_answers_is_read() {
        let text = b"{\"capabilities\":{\"max_msg_fds\":8,\"max_data_xfer_size\":1048576}}\0";
        let (version, capabilities) = decode(&payload(text)).unwrap();
        assert_eq!((version.major.get(), version.minor.get()), (0, 1));
        assert_eq!((capabilities.max_msg_fds, capabilities.max_data_xfer_size), (8, 1 << 20));
        assert_eq!(capabilities.max_dma_maps, 65_535, "what is not said is the default");
    }

    #[test]
    fn a_text_may_be_missing_and_may_say_more_than_is_known() {
        assert_eq!(decode(&payload(b"")).unwrap().1, Capabilities::default());
        assert_eq!(decode(&payload(b"\0")).unwrap().1, Capabilities::default());
        let more = b"{\"capabilities\":{\"migration\":{\"pgsize\":4096},\"twin_socket\":true},\"other\":[1]}\0";
        assert_eq!(decode(&payload(more)).unwrap().1, Capabilities::default());
    }

    #[test]
    fn a_text_that_is_no_json_or_too_long_is_refused() {
        assert!(matches!(decode(&payload(b"{\"capabil\0")), Err(WireError::Capabilities { .. })));
        assert!(matches!(decode(&payload(&[b'['; 4096])), Err(WireError::Capabilities { .. })), "deep nesting");
        assert!(matches!(decode(&payload(&[b' '; 4097])), Err(WireError::TooLong { .. })));
        assert!(matches!(decode(&[0, 0, 1]), Err(WireError::TooShort { .. })));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(max_msg_fds: u32, max_data_xfer_size: u32, max_dma_maps: u32, pgsizes: u64) {
            let capabilities = Capabilities { max_msg_fds, max_data_xfer_size, max_dma_maps, pgsizes };
            prop_assert_eq!(decode(&encode(&capabilities)).unwrap().1, capabilities);
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(payload in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&payload);
        }
    }
}
