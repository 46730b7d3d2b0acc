//! The public cases of links, on machines made of files.
#![forbid(unsafe_code)]

use super::*;
use crate::pci::PciAddress;
use crate::pci::config::ConfigSpace;
use crate::pci::config::express::PortType;
use crate::pci::config::express::tests::express_space;
use crate::pci::testing::FakeHost;

const UNKNOWN: (&str, &str) = ("Unknown\n", "255\n");

/// A drive behind a root port, with these link attributes.
fn behind_a_port(
    drive: ((&str, &str), (&str, &str)),
    port: ((&str, &str), (&str, &str)),
) -> (FakeHost, PciAddress, LinkPath) {
    let (host, address) = FakeHost::with_drive();
    host.set_link(address, drive.0, drive.1);
    host.set_link("00:1c.4".parse().unwrap(), port.0, port.1);
    let path = LinkPath::read(&host.sysfs, address).unwrap();
    (host, address, path)
}

fn speed(code: u8) -> LinkSpeed {
    LinkSpeed::from_code(code).unwrap()
}

fn width(lanes: u8) -> LinkWidth {
    LinkWidth::new(lanes).unwrap()
}

#[test]
fn f06_codes_1_to_6_are_speeds_and_newer_ones_are_named_by_their_code() {
    let names: Vec<_> = (1..=6).filter_map(LinkSpeed::from_code).map(|speed| speed.to_string()).collect();
    assert_eq!(names, ["2.5 GT/s", "5 GT/s", "8 GT/s", "16 GT/s", "32 GT/s", "64 GT/s"]);
    let newer = LinkSpeed::from_code(7).unwrap();
    assert_eq!(newer.to_string(), "code 7");
    assert!(newer > LinkSpeed::GEN6);
    assert_eq!(newer.mb_s_per_lane(), None);
    assert_eq!(LinkSpeed::from_code(0), None);
}

#[test]
fn f04_what_the_kernel_does_not_know_is_no_speed_and_no_width() {
    for text in ["Unknown", "Unknown speed", "", "fast", "255"] {
        assert_eq!(LinkSpeed::from_sysfs(text), None, "{text}");
    }
    for lanes in [0, 33, 63, 255] {
        assert_eq!(LinkWidth::new(lanes), None, "{lanes}");
    }
}

#[test]
fn both_spellings_of_the_kernel_are_read() {
    assert_eq!(LinkSpeed::from_sysfs("8.0 GT/s PCIe"), Some(LinkSpeed::GEN3));
    assert_eq!(LinkSpeed::from_sysfs("8 GT/s"), Some(LinkSpeed::GEN3));
    assert_eq!(LinkSpeed::from_sysfs("2.5 GT/s PCIe"), Some(LinkSpeed::GEN1));
    assert_eq!(LinkSpeed::from_sysfs("64.0 GT/s PCIe"), Some(LinkSpeed::GEN6));
}

#[test]
fn f01_the_narrowest_link_is_found_two_levels_up() {
    let host = FakeHost::new();
    let names = ["0000:00:01.0", "0000:01:00.0", "0000:02:00.0", "0000:03:00.0"];
    let port = host.function(&names[..1], "0x060400");
    let upstream = host.function(&names[..2], "0x060400");
    let downstream = host.function(&names[..3], "0x060400");
    let drive = host.function(&names, "0x010802");
    let fast = ("32.0 GT/s PCIe\n", "16\n");
    host.set_link(drive, fast, fast);
    host.set_link(downstream, fast, fast);
    host.set_link(upstream, ("16.0 GT/s PCIe\n", "8\n"), fast);
    host.set_link(port, ("16.0 GT/s PCIe\n", "8\n"), ("32.0 GT/s PCIe\n", "16\n"));
    let path = LinkPath::read(&host.sysfs, drive).unwrap();
    assert_eq!(path.hops.len(), 2, "between the two ports of a switch there is no link");
    let (index, hop) = path.narrowest().unwrap();
    assert_eq!(index, 1);
    assert_eq!(hop.upper.as_ref().unwrap().address, port);
    assert_eq!((hop.speed_now(), hop.width_now()), (Some(speed(4)), Some(width(8))));
    assert_eq!(format!("{:.2}", f64::from(path.mbit_s_available().unwrap()) / 8000.0), "15.75");
    assert_eq!(hop.speed(), Trained::Below { now: speed(4), best: speed(5) });
    assert_eq!(path.hops[0].speed(), Trained::Best { now: speed(5) });
    assert_eq!(path.limits(), [], "every port could do what the drive can");
}

#[test]
fn f02_a_slower_port_limits_and_is_named() {
    let slow = ("8.0 GT/s PCIe\n", "16\n");
    let (_, _, path) = behind_a_port((slow, ("16.0 GT/s PCIe\n", "16\n")), (slow, slow));
    assert_eq!(path.mbit_s_available(), Some(126_016));
    assert_eq!(path.mbit_s_of_drive(), Some(252_048));
    assert_eq!(path.limits(), [Limit { hop: 0, port: "00:1c.4".parse().unwrap(), speed: Some(speed(3)), width: None }]);
    assert_eq!(path.hops[0].speed(), Trained::Best { now: speed(3) }, "the link is as fast as the slot lets it be");
}

#[test]
fn f02_a_port_higher_up_that_carries_less_than_the_drive_limits() {
    let host = FakeHost::new();
    let names = ["0000:00:01.0", "0000:01:00.0", "0000:02:00.0", "0000:03:00.0"];
    let ports: Vec<_> = (1..=3).map(|depth| host.function(&names[..depth], "0x060400")).collect();
    let drive = host.function(&names, "0x010802");
    let four = ("16.0 GT/s PCIe\n", "4\n");
    let two = ("16.0 GT/s PCIe\n", "2\n");
    host.set_link(drive, four, four);
    host.set_link(ports[2], four, four);
    host.set_link(ports[1], two, four);
    host.set_link(ports[0], two, two);
    let limits = LinkPath::read(&host.sysfs, drive).unwrap().limits();
    assert_eq!(limits, [Limit { hop: 1, port: ports[0], speed: None, width: Some(width(2)) }]);
}

#[test]
fn more_lanes_higher_up_make_up_for_a_lower_speed() {
    let host = FakeHost::new();
    let names = ["0000:00:01.0", "0000:01:00.0", "0000:02:00.0", "0000:03:00.0"];
    let ports: Vec<_> = (1..=3).map(|depth| host.function(&names[..depth], "0x060400")).collect();
    let drive = host.function(&names, "0x010802");
    let four = ("16.0 GT/s PCIe\n", "4\n");
    let wide = ("8.0 GT/s PCIe\n", "16\n");
    host.set_link(drive, four, four);
    host.set_link(ports[2], four, four);
    host.set_link(ports[1], wide, wide);
    host.set_link(ports[0], wide, wide);
    assert_eq!(LinkPath::read(&host.sysfs, drive).unwrap().limits(), []);
}

#[test]
fn f03_speed_and_width_are_judged_apart() {
    let able = ("8.0 GT/s PCIe\n", "4\n");
    let now = ("5.0 GT/s PCIe\n", "1\n");
    let (_, _, path) = behind_a_port((now, able), (now, able));
    let hop = path.drive_hop().unwrap();
    assert_eq!(hop.speed(), Trained::Below { now: speed(2), best: speed(3) });
    assert_eq!(hop.width(), Trained::Below { now: width(1), best: width(4) });
    assert_eq!(path.ceiling().unwrap().raw_mb_s.round() as u32, 500);
    assert_eq!(path.ceiling_best().unwrap().raw_mb_s.round() as u32, 3938);
}

#[test]
fn f04_an_unknown_link_has_no_lanes_no_ceiling_and_no_verdict() {
    let (_, _, path) = behind_a_port((UNKNOWN, UNKNOWN), (UNKNOWN, UNKNOWN));
    let hop = path.drive_hop().unwrap();
    assert_eq!((hop.speed_now(), hop.width_now(), hop.state()), (None, None, LinkState::Unknown));
    assert_eq!(hop.speed(), Trained::Unknown(UnknownReason::Status));
    assert_eq!(path.ceiling(), None);
    assert_eq!(path.narrowest(), None);
    assert_eq!(path.limits(), []);
}

#[test]
fn f04_a_link_of_width_zero_is_down() {
    let able = ("8.0 GT/s PCIe\n", "4\n");
    let (_, _, path) = behind_a_port((("2.5 GT/s PCIe\n", "0\n"), able), (("2.5 GT/s PCIe\n", "0\n"), able));
    let hop = path.drive_hop().unwrap();
    assert_eq!(hop.state(), LinkState::Down);
    assert_eq!(hop.width(), Trained::Unknown(UnknownReason::Down));
    assert_eq!(hop.speed_now(), None, "the speed of a link that is down is left over");
}

#[test]
fn f04_a_switch_that_knows_nothing_of_itself_is_unknown_and_not_down() {
    let able = ("8.0 GT/s PCIe\n", "4\n");
    let (_, _, path) = behind_a_port((able, able), (("Unknown\n", "0\n"), ("Unknown\n", "0\n")));
    let hop = path.drive_hop().unwrap();
    assert_eq!(hop.state(), LinkState::Up);
    assert_eq!(hop.speed(), Trained::Unknown(UnknownReason::Ability));
    assert_eq!(path.ceiling().unwrap().raw_mb_s.round() as u32, 3938);
}

#[test]
fn f04_all_ones_is_a_device_that_is_gone() {
    let able = ("8.0 GT/s PCIe\n", "4\n");
    let (host, drive, path) = behind_a_port((("Unknown\n", "63\n"), able), (able, able));
    assert_eq!(path.drive_hop().unwrap().speed(), Trained::Unknown(UnknownReason::Gone));
    assert!(path.is_gone());
    host.attribute(drive, "current_link_width", "4\n");
    host.attribute(drive, "config", [0xff; 256]);
    assert!(LinkPath::read(&host.sysfs, drive).unwrap().is_gone());
}

#[test]
fn f04_registers_that_read_all_ones_are_not_63_lanes() {
    let config = ConfigSpace::new(express_space(0, (0, 0, 0), (0x43, 0, 0xffff), None));
    let end = PortEnd::from_config("01:00.0".parse().unwrap(), &config);
    assert_eq!((end.state, end.width_now, end.speed_now), (LinkState::Gone, None, None));
}

#[test]
fn f06_codes_1_to_6_are_speeds_and_newer_ones_are_named_by_their_code_in_registers_too() {
    let config = ConfigSpace::new(express_space(0, (0, 0, 0), (0x47, 0, 0x47), None));
    let end = PortEnd::from_config("01:00.0".parse().unwrap(), &config);
    assert_eq!(end.speed_able.unwrap().to_string(), "code 7");
    let hop = Hop::new(end.clone(), Some(end));
    assert_eq!(hop.speed(), Trained::Best { now: speed(7) });
}

#[test]
fn f11_drives_behind_one_switch_share_its_upstream_link() {
    let host = FakeHost::new();
    let root = "0000:00:1c.0";
    let upstream = host.function(&[root], "0x060400");
    host.function(&[root, "0000:01:00.0"], "0x060400");
    let mut drives = Vec::new();
    for (port, drive) in
        [("0000:02:01.0", "0000:03:00.0"), ("0000:02:03.0", "0000:04:00.0"), ("0000:02:05.0", "0000:05:00.0")]
    {
        host.function(&[root, "0000:01:00.0", port], "0x060400");
        drives.push(host.function(&[root, "0000:01:00.0", port, drive], "0x010802"));
    }
    let lane = ("5.0 GT/s PCIe\n", "1\n");
    for address in [upstream, "01:00.0".parse().unwrap(), "02:01.0".parse().unwrap(), drives[0]] {
        host.set_link(address, lane, lane);
    }
    let path = LinkPath::read(&host.sysfs, drives[0]).unwrap();
    assert_eq!(path.hops[0].shared_with, []);
    assert_eq!(path.hops[1].shared_with, drives[1..]);
    assert_eq!(path.ceiling().unwrap().raw_mb_s.round() as u32, 500);
}

#[test]
fn f13_only_the_speed_is_lowered() {
    let (_, _, path) = behind_a_port(
        (("2.5 GT/s PCIe\n", "1\n"), ("32.0 GT/s PCIe\n", "1\n")),
        (("2.5 GT/s PCIe\n", "1\n"), ("32.0 GT/s PCIe\n", "1\n")),
    );
    let hop = path.drive_hop().unwrap();
    assert_eq!(hop.speed(), Trained::Below { now: speed(1), best: speed(5) });
    assert_eq!(hop.width(), Trained::Best { now: width(1) });
}

#[test]
fn a_status_above_what_both_ends_can_do_is_not_believed() {
    let (_, _, path) = behind_a_port(
        (("16.0 GT/s PCIe\n", "4\n"), ("8.0 GT/s PCIe\n", "4\n")),
        (("16.0 GT/s PCIe\n", "4\n"), ("8.0 GT/s PCIe\n", "4\n")),
    );
    assert_eq!(path.drive_hop().unwrap().speed(), Trained::Unbelievable { now: speed(4), best: speed(3) });
}

#[test]
fn a_drive_whose_port_a_virtual_machine_hides_is_not_judged() {
    let host = FakeHost::new();
    let drive = host.function(&["0000:00:04.0"], "0x010802");
    host.set_link(drive, ("8.0 GT/s PCIe\n", "4\n"), ("16.0 GT/s PCIe\n", "4\n"));
    let path = LinkPath::read(&host.sysfs, drive).unwrap();
    assert_eq!(path.drive_hop().unwrap().speed(), Trained::Unknown(UnknownReason::PortHidden));
    host.set_link(drive, UNKNOWN, UNKNOWN);
    assert_eq!(LinkPath::read(&host.sysfs, drive).unwrap().hops, []);
}

#[test]
fn a_drive_behind_vmd_has_the_path_of_its_own_domain() {
    let host = FakeHost::new();
    let vmd = host.function(&["0000:00:0e.0"], "0x010400");
    let above = "sys/devices/pci0000:00/0000:00:0e.0/pci10000:e0/10000:e0:06.0";
    let port = host.function_at(above, "0x060400");
    let drive = host.function_at(&format!("{above}/10000:e1:00.0"), "0x010802");
    let link = ("16.0 GT/s PCIe\n", "4\n");
    host.set_link(port, link, link);
    host.set_link(drive, link, link);
    let path = LinkPath::read(&host.sysfs, drive).unwrap();
    assert_eq!(path.behind_vmd, Some(vmd));
    assert_eq!(path.hops.len(), 1);
    assert_eq!(path.hops[0].upper.as_ref().unwrap().address, port);
}

#[test]
fn registers_give_what_sysfs_does_not_and_a_contradiction_is_noted() {
    let (host, drive, _) = behind_a_port((UNKNOWN, UNKNOWN), (UNKNOWN, UNKNOWN));
    let port: PciAddress = "00:1c.4".parse().unwrap();
    // MPS 256 and MRRS 512 on both, ASPM L1 on the drive; the drive runs at 8 GT/s x4 of 16 GT/s x4.
    host.attribute(drive, "config", express_space(0, (1, 0x2020, 0), (0x0000_0c44, 0x0002, 0x0043), None));
    host.attribute(port, "config", express_space(4, (1, 0x2020, 0), (0x0000_0c43, 0, 0x0043), Some((5 << 19, 0x40))));
    host.attribute(drive, "current_link_speed", "2.5 GT/s PCIe\n");
    let path = LinkPath::read(&host.sysfs, drive).unwrap();
    let hop = path.drive_hop().unwrap();
    assert_eq!(hop.lower.port_type, Some(PortType::Endpoint));
    assert_eq!(hop.lower.aspm.unwrap().to_string(), "L1");
    assert_eq!((hop.lower.payload_bytes, hop.lower.read_request_bytes), (Some(256), Some(512)));
    assert_eq!(hop.upper.as_ref().unwrap().slot, Some(5));
    assert_eq!(hop.speed(), Trained::Below { now: speed(1), best: speed(3) }, "sysfs comes first");
    assert_eq!(hop.lower.contradictions, ["current_link_speed: sysfs says 2.5 GT/s, configuration space 8 GT/s"]);
    assert_eq!(path.payload_bytes(), Some(256));
}

#[test]
fn the_least_payload_of_the_path_decides() {
    let (host, drive, _) = behind_a_port((UNKNOWN, UNKNOWN), (UNKNOWN, UNKNOWN));
    host.attribute(drive, "config", express_space(0, (2, 0x2040, 0), (0x43, 0, 0x43), None));
    host.attribute("00:1c.4".parse().unwrap(), "config", express_space(4, (1, 0x2000, 0), (0x43, 0, 0x43), None));
    let path = LinkPath::read(&host.sysfs, drive).unwrap();
    assert_eq!(path.payload_bytes(), Some(128));
    assert_eq!(path.ceiling().unwrap().read_mb_s.round() as u32, 3317);
    host.attribute("00:1c.4".parse().unwrap(), "config", [0x4d, 0x14]);
    assert_eq!(LinkPath::read(&host.sysfs, drive).unwrap().payload_bytes(), None, "one port of the path is not known");
}

#[test]
fn a_path_is_told_as_json_by_the_specifications_words() {
    let able = ("8.0 GT/s PCIe\n", "4\n");
    let (_, _, path) = behind_a_port((able, able), (able, able));
    let json = serde_json::to_value(&path).unwrap();
    assert_eq!(json["drive"], "0000:01:00.0");
    assert_eq!(json["hops"][0]["lower"]["speed_now"], "8 GT/s");
    assert_eq!(json["hops"][0]["lower"]["width_now"], 4);
    assert_eq!(json["hops"][0]["upper"]["address"], "0000:00:1c.4");
}
