//! Log pages of vendors, as far as their layout is public.
//!
//! A vendor's page is worth nothing on another vendor's drive: the same identifier means another thing there, or the
//! controller refuses it. [`identify`] tells by vendor, model and the page itself what a page is; where it does not
//! know, the bytes stay raw. A page or a record that is all zero is not present: it says nothing, not even zero.
//!
//! No layout of Samsung's own pages is public; their data centre drives carry the OCP page.
#![forbid(unsafe_code)]

mod intel;
mod micron;
mod ocp;
mod wdc;
pub use intel::{AdditionalSmart, AdditionalSmartItem, IntelTemperature};
pub use micron::MicronExtendedHealth;
pub use ocp::OcpSmart;
pub use wdc::WdcPerformance;

use crate::describe::{Ascii, Describe, Descriptor};
use crate::log::LogId;

/// PCI vendor Intel (and Solidigm's drives under Intel's identifier).
pub const INTEL: u16 = 0x8086;
/// PCI vendor Solidigm.
pub const SOLIDIGM: u16 = 0x025e;
/// PCI vendor Micron.
pub const MICRON: u16 = 0x1344;
/// PCI vendors Western Digital and HGST.
pub const WDC: [u16; 3] = [0x1c58, 0x1b96, 0x15b7];

/// What a vendor's log page is, by the PCI vendor, the model (40 bytes of Identify Controller) and the page; `None`
/// where its layout is not known, or the page is all zero.
pub fn identify(vid: u16, model: &[u8], lid: LogId, page: &[u8]) -> Option<&'static Descriptor> {
    if page.iter().all(|byte| *byte == 0) {
        return None;
    }
    let model = Ascii(model).trimmed();
    let is_model = |prefixes: &[&str]| prefixes.iter().any(|prefix| model.starts_with(prefix.as_bytes()));
    match lid.into_bits() {
        0xc0 if OcpSmart::is_page(page) => Some(const { &OcpSmart::DESCRIPTOR }),
        0xca if [INTEL, SOLIDIGM].contains(&vid) && is_model(&["INTEL SSD", "SOLIDIGM"]) => {
            Some(const { &AdditionalSmart::DESCRIPTOR })
        }
        0xc5 if vid == INTEL && is_model(&["INTEL SSD"]) => Some(const { &IntelTemperature::DESCRIPTOR }),
        0xd0 if vid == MICRON && is_model(&["Micron_", "MICRON"]) => Some(const { &MicronExtendedHealth::DESCRIPTOR }),
        0xca if WDC.contains(&vid) && is_model(&["WUS", "WDC", "HUS", "WDS"]) => {
            Some(const { &WdcPerformance::DESCRIPTOR })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a33_a_vendor_page_needs_vendor_and_model_and_content() {
        let page = [1; 512];
        let ca = LogId::from_bits(0xca);
        assert!(identify(INTEL, b"INTEL SSDPE2KX010T8   ", ca, &page).is_some());
        assert!(
            identify(INTEL, b"QEMU NVMe Ctrl", ca, &page).is_none(),
            "an emulated drive may carry Intel's vendor ID"
        );
        assert!(identify(0x144d, b"SAMSUNG MZWLR3T8HBLS", ca, &page).is_none());
        assert!(identify(INTEL, b"INTEL SSDPE2KX010T8   ", ca, &[0; 512]).is_none(), "all zero is not present");
    }

    #[test]
    fn a34_the_ocp_page_is_told_by_its_guid_not_by_its_version() {
        let mut page = [0; 512];
        page[494] = 99;
        let c0 = LogId::from_bits(0xc0);
        assert!(identify(0x144d, b"x", c0, &page).is_none());
        page[496..].copy_from_slice(&OcpSmart::GUID);
        assert_eq!(identify(0x144d, b"x", c0, &page).map(|d| d.id), Some("ocp-smart"));
    }
}
