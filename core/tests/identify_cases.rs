//! Identify data of real drives, and values that other tools got wrong.
#![forbid(unsafe_code)]

mod common;

use common::page;
use nvmetal_core::describe::{Ascii, Describe};
use nvmetal_core::identify::{Controller, FormattedLbaSize, Frmw, Namespace, ProtectionType};
use nvmetal_core::number::ZeroBased;
use nvmetal_core::register::{Capabilities, Registers};
use zerocopy::FromBytes;

fn controller(name: &str) -> Controller {
    Controller::read_from_bytes(&page(name)).expect("4096 bytes")
}

fn namespace(name: &str) -> Namespace {
    Namespace::read_from_bytes(&page(name)).expect("4096 bytes")
}

fn shown(structure: &impl Describe, id: &str) -> String {
    structure.view().get(id).expect(id).to_string()
}

#[test]
fn b01_an_old_drive_reports_little_and_is_not_misread() {
    let ctrl = controller("idctrl_thnsn5512gpu7.hex");
    let expected = [
        ("sn", "TESTSERIAL01"),
        ("mn", "THNSN5512GPU7 TOSHIBA"),
        ("fr", "410557LA"),
        ("ver", "older than 1.2"),
        ("mdts", "no limit"),
        ("tnvmcap", "not reported"),
        ("elpe", "128"),
        ("wctemp", "78 °C (351 K)"),
        ("cctemp", "82 °C (355 K)"),
        ("nn", "1"),
    ];
    for (id, value) in expected {
        assert_eq!(shown(&ctrl, id), value, "{id}");
    }
    assert_eq!((ctrl.frmw.slots(), ctrl.frmw.slot_1_read_only()), (1, false));
    assert!(ctrl.apsta.supported() && ctrl.vwc.present());
    let text = ctrl.view().text().to_string();
    let states = [
        "8.00 W, operational",
        "3.90 W, operational",
        "2.00 W, operational",
        "0.1200 W, non-operational, entry 1000 us, exit 1000 us",
        "0.0120 W, non-operational, entry 5000 us, exit 10000 us",
        "0.0060 W, non-operational, entry 100000 us, exit 50000 us",
    ];
    for (number, state) in states.iter().enumerate() {
        let line = text.lines().find(|line| line.starts_with(&format!("Power State Descriptor {number} "))).unwrap();
        assert!(line.contains(state), "{line}");
    }
    assert_eq!(ctrl.power_states().len(), 6);
}

#[test]
fn b03_a_data_centre_drive_is_read_to_the_end() {
    let ctrl = controller("idctrl_pm1733.hex");
    let expected = [
        ("vid", "0x144d"),
        ("sn", "TESTSERIAL0001"),
        ("fr", "MPKD0P21"),
        ("ver", "1.3.0"),
        ("cntlid", "0x0041"),
        ("mdts", "512 pages"),
        ("nn", "8"),
        ("wctemp", "72 °C (345 K)"),
        ("cctemp", "85 °C (358 K)"),
        ("tnvmcap", "3840755982336 bytes (3.84 TB)"),
        ("elpe", "256"),
        ("edstt", "2 min"),
        ("sqes", "0x66"),
        ("cqes", "0x44"),
        ("rtd3r", "15000000 us (15 s)"),
        ("rtd3e", "10000000 us (10 s)"),
        ("ieee", "002538"),
    ];
    for (id, value) in expected {
        assert_eq!(shown(&ctrl, id), value, "{id}");
    }
    assert_eq!(ctrl.max_transfer_bytes(0), Some(2 << 20));
    assert_eq!((ctrl.cmic.into_bits(), ctrl.lpa.into_bits(), ctrl.sanicap.into_bits()), (2, 0x0e, 3));
    assert!(ctrl.frmw.slot_1_read_only() && ctrl.frmw.activate_without_reset());
    assert_eq!(ctrl.frmw.slots(), 3);
    let nqn = Ascii(&ctrl.subnqn).to_string();
    assert_eq!(nqn, "nqn.1994-11.com.samsung:nvme:PM1733:2.5-inch:TESTSERIAL0001");
}

#[test]
fn b07_texts_that_fill_their_field_do_not_run_into_the_next() {
    let mut bytes = [0; 4096];
    bytes[4..24].fill(b'S');
    bytes[24..64].fill(b'M');
    bytes[64..72].fill(b'F');
    bytes[72] = b'X';
    let ctrl = Controller::read_from_bytes(&bytes).unwrap();
    assert_eq!(shown(&ctrl, "sn"), "S".repeat(20));
    assert_eq!(shown(&ctrl, "mn"), "M".repeat(40));
    assert_eq!(shown(&ctrl, "fr"), "F".repeat(8));
}

#[test]
fn b08_a_model_of_nuls_is_an_empty_text() {
    let ctrl = Controller::default();
    assert_eq!(shown(&ctrl, "mn"), "-");
    let json: serde_json::Value = serde_json::from_str(&ctrl.view().json().to_string()).unwrap();
    assert_eq!(json["mn"], "");
}

#[test]
fn b09_a_text_that_is_no_text_is_escaped_in_every_form() {
    let mut ctrl = Controller::default();
    ctrl.mn[..6].copy_from_slice(b"A\xc3\x28\x1b\"\\");
    let json = ctrl.view().json().to_string();
    let parsed: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(parsed["mn"], "A\\xc3(\\x1b\"\\x5c");
    for output in [json, ctrl.view().text().to_string(), ctrl.view().hex().to_string()] {
        assert!(!output.chars().any(|c| c.is_control() && c != '\n'));
    }
}

#[test]
fn b11_transfer_sizes_do_not_overflow() {
    let limit = |mdts, mpsmin| Controller { mdts, ..Controller::default() }.max_transfer_bytes(mpsmin);
    assert_eq!(limit(0, 0), None);
    assert_eq!(limit(5, 0), Some(128 << 10));
    assert_eq!(limit(6, 0), Some(256 << 10));
    assert_eq!(limit(7, 0), Some(512 << 10));
    assert_eq!(limit(9, 0), Some(2 << 20));
    assert_eq!(limit(20, 0), Some(4 << 30));
    assert_eq!(limit(5, 4), Some(2 << 20));
    assert_eq!(limit(255, 15), None);

    let head = page("idctrl_head_mdts0.hex");
    let view = Controller::DESCRIPTOR_REF.view(&head);
    assert_eq!(view.get("mdts").unwrap().to_string(), "no limit");
    assert_eq!(view.get("ver").unwrap().to_string(), "1.2.0");
    assert_eq!(view.raw("rtd3r"), Some(100_000));

    let short = page("idctrl_head_short5b.hex");
    let view = Controller::DESCRIPTOR_REF.view(&short);
    assert_eq!(view.get("mdts").unwrap().to_string(), "256 pages");
    assert!(view.get("rtd3e").is_none(), "the page ends inside the field");
}

#[test]
fn b13_the_format_index_has_six_bits_where_there_are_more_than_16_formats() {
    let index = |flbas, formats: u16| {
        let nlbaf = ZeroBased::<u8>::from_count(formats).unwrap();
        Namespace { flbas: FormattedLbaSize::from_bits(flbas), nlbaf, ..Namespace::default() }.format_index()
    };
    assert_eq!((index(0x11, 64), index(0x20, 64), index(0x21, 64), index(0x6f, 64)), (1, 16, 17, 63));
    assert_eq!((index(0x21, 16), index(0x6f, 2)), (1, 15), "with 16 or fewer, the upper bits are ignored");

    let ns = namespace("idns_flbas11_4k.hex");
    let format = ns.format().unwrap();
    assert_eq!((ns.nsze.get(), format.data_bytes(), format.ms.get()), (0x40000, Some(4096), 0));
    assert_eq!(ns.nsze.get() * 4096, 1_073_741_824);
    assert_eq!(shown(&ns, "nvmcap"), "1073741824 bytes (1.07 GB)");
    assert!(ns.flbas.extended());
}

#[test]
fn b14_the_number_of_formats_is_counted_from_one() {
    let ns = namespace("idns_flbas11_4k.hex");
    assert_eq!((ns.nlbaf.into_bits(), ns.format_count()), (1, 2));
    let beyond = Namespace { flbas: FormattedLbaSize::from_bits(2), ..ns };
    assert!(beyond.format().is_none(), "an index above the formats is no format");
}

#[test]
fn b15_seven_formats_with_metadata() {
    let ns = namespace("idns_rebuilt_7formats_md.hex");
    let formats: Vec<_> = ns.lbaf[..ns.format_count()]
        .iter()
        .map(|format| (format.data_bytes().unwrap(), format.ms.get(), format.performance.rp().into_bits()))
        .collect();
    assert_eq!(
        formats,
        [(512, 0, 2), (512, 8, 2), (512, 16, 2), (4096, 0, 0), (4096, 8, 0), (4096, 64, 0), (4096, 128, 0)]
    );
    assert_eq!(ns.nsze.get() * u64::from(ns.format().unwrap().data_bytes().unwrap()), 450_098_159_616);
    assert_eq!((ns.mc.into_bits(), ns.dpc.into_bits()), (1, 0x11));
    assert_eq!(ns.dps.kind(), ProtectionType::NONE);
    assert_eq!((shown(&ns, "nguid"), shown(&ns, "eui64")), ("not reported".into(), "not reported".into()));
}

#[test]
fn b16_an_inactive_namespace_has_no_block_size() {
    let ns = Namespace::default();
    assert_eq!(ns.format().and_then(nvmetal_core::identify::LbaFormat::data_bytes), None);
}

#[test]
fn b21_identifiers_are_in_the_order_of_their_bytes() {
    let ns = namespace("idns_flbas11_4k.hex");
    assert_eq!(shown(&ns, "eui64"), "5cd2e41122330900");
    assert_eq!(shown(&ns, "nguid"), "08000000010000005cd2e41122334455");
}

#[test]
fn b23_capacities_have_128_bits_and_zero_is_not_reported() {
    let shown_as = |bytes: u128| shown(&Controller { tnvmcap: bytes.into(), ..Controller::default() }, "tnvmcap");
    assert_eq!(shown_as(0), "not reported");
    assert_eq!(shown_as(16_777_216), "16777216 bytes (16.78 MB)");
    assert_eq!(shown_as(3_840_755_982_336), "3840755982336 bytes (3.84 TB)");
    assert_eq!(shown_as(1 << 100), "1267650600228229401496703205376 bytes (1267650600228.23 EB)");
}

#[test]
fn b24_firmware_slots_are_three_bits() {
    let frmw = |bits| {
        let frmw = Frmw::from_bits(bits);
        (frmw.slots(), frmw.slot_1_read_only(), frmw.activate_without_reset())
    };
    assert_eq!(frmw(0x17), (3, true, true));
    assert_eq!(frmw(0x1a), (5, false, true));
    assert_eq!(frmw(0x12), (1, false, true));
    assert_eq!(frmw(0x0e), (7, false, false));
    assert_eq!(frmw(0), (0, false, false));
}

#[test]
fn b25_a_hexadecimal_number_says_so() {
    let ctrl = Controller { cntlid: 0x21.into(), ..Controller::default() };
    assert_eq!(shown(&ctrl, "cntlid"), "0x0021");
}

#[test]
fn c01_capabilities_of_real_controllers() {
    let page = page("regs_cap_2078030fff.hex");
    let view = Registers::DESCRIPTOR_REF.view(&page);
    let cap = Capabilities::from_bits(view.raw("cap").unwrap() as u64);
    assert_eq!((cap.mqes().count(), cap.timeout_ms(), cap.doorbell_stride_bytes()), (4096, 60_000, 4));
    assert!(cap.cqr() && cap.ams_weighted_round_robin() && !cap.nssrs());
    assert_eq!((cap.page_size_min_bytes(), cap.page_size_max_bytes()), (4096, 4096));
    assert_eq!((view.raw("cc"), view.raw("aqa")), (Some(0x0046_0001), Some(0x001f_001f)));
    let text = view.text().to_string();
    assert!(text.contains("Admin Submission Queue Size: 32") && text.contains("I/O Completion Queue Entry Size: 16 B"));

    let other = Capabilities::from_bits(0x0030_5001_03ff);
    assert_eq!((other.mqes().count(), other.timeout_ms(), other.nssrs()), (1024, 40_000, true));
}

#[test]
fn c03_the_timeout_has_eight_bits_and_zero_is_one_unit() {
    assert_eq!(Capabilities::from_bits(0x0020_2801_03ff).timeout_ms(), 20_000);
    assert_eq!(Capabilities::from_bits(0).timeout_ms(), 500);
}
