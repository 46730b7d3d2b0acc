//! Sizes and offsets against a table that was not made from the structures.
//!
//! The table was computed from the order and the widths of the members in libnvme's public header, which knows nothing
//! of this crate; reserved members are left out. A field that was put at a wrong place, or has a wrong width, is found
//! even where the structure's own assertions repeat the mistake.
#![forbid(unsafe_code)]

use nvmetal_core::describe::{Describe, Descriptor};
use nvmetal_core::identify::{Controller, Namespace, PowerState};
use nvmetal_core::log::{EnduranceGroup, ErrorEntry, Sanitize, Smart};

/// Name in the other source, offset, bytes.
type Row = (&'static str, usize, usize);

fn compare(descriptor: &Descriptor, size: usize, table: &[Row]) {
    assert_eq!(descriptor.size, size, "{}", descriptor.id);
    for (name, offset, bytes) in table {
        let field = descriptor.fields.iter().find(|field| field.offset == *offset);
        let field = field.unwrap_or_else(|| panic!("{}: nothing at {offset}, where {name} should be", descriptor.id));
        assert_eq!(field.bytes(), *bytes, "{}: width of {name}", descriptor.id);
        assert!(!field.is_reserved(), "{}: {name} is reserved", descriptor.id);
    }
    let named = descriptor.fields.iter().filter(|field| !field.is_reserved()).count();
    assert_eq!(named, table.len(), "{}: fields that the other source does not have", descriptor.id);
}

#[rustfmt::skip]
const SMART: &[Row] = &[
    ("critical_warning", 0, 1), ("temperature", 1, 2), ("avail_spare", 3, 1), ("spare_thresh", 4, 1),
    ("percent_used", 5, 1), ("endu_grp_crit_warn_sumry", 6, 1), ("data_units_read", 32, 16),
    ("data_units_written", 48, 16), ("host_reads", 64, 16), ("host_writes", 80, 16), ("ctrl_busy_time", 96, 16),
    ("power_cycles", 112, 16), ("power_on_hours", 128, 16), ("unsafe_shutdowns", 144, 16), ("media_errors", 160, 16),
    ("num_err_log_entries", 176, 16), ("warning_temp_time", 192, 4), ("critical_comp_time", 196, 4),
    ("temp_sensor", 200, 16), ("thm_temp1_trans_count", 216, 4), ("thm_temp2_trans_count", 220, 4),
    ("thm_temp1_total_time", 224, 4), ("thm_temp2_total_time", 228, 4), ("op_lifetime_energy_consumed", 232, 8),
    ("interval_power_measurement", 240, 4),
];

#[test]
fn smart_lies_where_another_source_says() {
    compare(&Smart::DESCRIPTOR, 512, SMART);
}

#[rustfmt::skip]
const IDENTIFY_CONTROLLER: &[Row] = &[
    ("vid", 0, 2), ("ssvid", 2, 2), ("sn", 4, 20), ("mn", 24, 40), ("fr", 64, 8), ("rab", 72, 1), ("ieee", 73, 3),
    ("cmic", 76, 1), ("mdts", 77, 1), ("cntlid", 78, 2), ("ver", 80, 4), ("rtd3r", 84, 4), ("rtd3e", 88, 4),
    ("oaes", 92, 4), ("ctratt", 96, 4), ("rrls", 100, 2), ("bpcap", 102, 1), ("nssl", 104, 4), ("plsi", 110, 1),
    ("cntrltype", 111, 1), ("fguid", 112, 16), ("crdt1", 128, 2), ("crdt2", 130, 2), ("crdt3", 132, 2),
    ("crcap", 134, 1), ("ciu", 135, 1), ("cirn", 136, 8), ("nvmsr", 253, 1), ("vwci", 254, 1), ("mec", 255, 1),
    ("oacs", 256, 2), ("acl", 258, 1), ("aerl", 259, 1), ("frmw", 260, 1), ("lpa", 261, 1), ("elpe", 262, 1),
    ("npss", 263, 1), ("avscc", 264, 1), ("apsta", 265, 1), ("wctemp", 266, 2), ("cctemp", 268, 2), ("mtfa", 270, 2),
    ("hmpre", 272, 4), ("hmmin", 276, 4), ("tnvmcap", 280, 16), ("unvmcap", 296, 16), ("rpmbs", 312, 4),
    ("edstt", 316, 2), ("dsto", 318, 1), ("fwug", 319, 1), ("kas", 320, 2), ("hctma", 322, 2), ("mntmt", 324, 2),
    ("mxtmt", 326, 2), ("sanicap", 328, 4), ("hmminds", 332, 4), ("hmmaxd", 336, 2), ("nsetidmax", 338, 2),
    ("endgidmax", 340, 2), ("anatt", 342, 1), ("anacap", 343, 1), ("anagrpmax", 344, 4), ("nanagrpid", 348, 4),
    ("pels", 352, 4), ("domainid", 356, 2), ("kpioc", 358, 1), ("mptfawr", 360, 2), ("megcap", 368, 16),
    ("tmpthha", 384, 1), ("cqt", 386, 2), ("cdpa", 388, 2), ("mup", 390, 2), ("ipmsr", 392, 2), ("msmt", 394, 2),
    ("sqes", 512, 1), ("cqes", 513, 1), ("maxcmd", 514, 2), ("nn", 516, 4), ("oncs", 520, 2), ("fuses", 522, 2),
    ("fna", 524, 1), ("vwc", 525, 1), ("awun", 526, 2), ("awupf", 528, 2), ("icsvscc", 530, 1), ("nwpc", 531, 1),
    ("acwu", 532, 2), ("ocfs", 534, 2), ("sgls", 536, 4), ("mnan", 540, 4), ("maxdna", 544, 16), ("maxcna", 560, 4),
    ("oaqd", 564, 4), ("rhiri", 568, 1), ("hirt", 569, 1), ("cmmrtd", 570, 2), ("nmmrtd", 572, 2),
    ("minmrtg", 574, 1), ("maxmrtg", 575, 1), ("trattr", 576, 1), ("mcudmq", 578, 2), ("mnsudmq", 580, 2),
    ("mcmr", 582, 2), ("nmcmr", 584, 2), ("mcdqpc", 586, 2), ("subnqn", 768, 256), ("ioccsz", 1792, 4),
    ("iorcsz", 1796, 4), ("icdoff", 1800, 2), ("fcatt", 1802, 1), ("msdbd", 1803, 1), ("ofcs", 1804, 2),
    ("dctype", 1806, 1), ("ccrl", 1807, 1), ("psd", 2048, 1024), ("vs", 3072, 1024),
];

#[test]
fn identify_controller_lies_where_another_source_says() {
    compare(&Controller::DESCRIPTOR, 4096, IDENTIFY_CONTROLLER);
}

#[rustfmt::skip]
const POWER_STATE: &[Row] = &[
    ("mp", 0, 2), ("flags", 3, 1), ("enlat", 4, 4), ("exlat", 8, 4), ("rrt", 12, 1), ("rrl", 13, 1), ("rwt", 14, 1),
    ("rwl", 15, 1), ("idlp", 16, 2), ("ips", 18, 1), ("actp", 20, 2), ("apws", 22, 1), ("epfrt", 23, 1),
    ("fqvt", 24, 1), ("epfvt", 25, 1), ("epfr_fqv_ts", 26, 1), ("epfvts", 27, 1),
];

#[test]
fn power_state_lies_where_another_source_says() {
    compare(&PowerState::DESCRIPTOR, 32, POWER_STATE);
}

#[rustfmt::skip]
const IDENTIFY_NAMESPACE: &[Row] = &[
    ("nsze", 0, 8), ("ncap", 8, 8), ("nuse", 16, 8), ("nsfeat", 24, 1), ("nlbaf", 25, 1), ("flbas", 26, 1),
    ("mc", 27, 1), ("dpc", 28, 1), ("dps", 29, 1), ("nmic", 30, 1), ("rescap", 31, 1), ("fpi", 32, 1),
    ("dlfeat", 33, 1), ("nawun", 34, 2), ("nawupf", 36, 2), ("nacwu", 38, 2), ("nabsn", 40, 2), ("nabo", 42, 2),
    ("nabspf", 44, 2), ("noiob", 46, 2), ("nvmcap", 48, 16), ("npwg", 64, 2), ("npwa", 66, 2), ("npdg", 68, 2),
    ("npda", 70, 2), ("nows", 72, 2), ("mssrl", 74, 2), ("mcl", 76, 4), ("msrc", 80, 1), ("kpios", 81, 1),
    ("nulbaf", 82, 1), ("kpiodaag", 84, 4), ("anagrpid", 92, 4), ("nsattr", 99, 1), ("nvmsetid", 100, 2),
    ("endgid", 102, 2), ("nguid", 104, 16), ("eui64", 120, 8), ("lbaf", 128, 256), ("vs", 384, 3712),
];

#[test]
fn identify_namespace_lies_where_another_source_says() {
    compare(&Namespace::DESCRIPTOR, 4096, IDENTIFY_NAMESPACE);
}

#[rustfmt::skip]
const ERROR_ENTRY: &[Row] = &[
    ("error_count", 0, 8), ("sqid", 8, 2), ("cmdid", 10, 2), ("status_field", 12, 2), ("parm_error_location", 14, 2),
    ("lba", 16, 8), ("nsid", 24, 4), ("vs", 28, 1), ("trtype", 29, 1), ("csi", 30, 1), ("opcode", 31, 1),
    ("cs", 32, 8), ("trtype_spec_info", 40, 2), ("log_page_version", 63, 1),
];

#[test]
fn error_entry_lies_where_another_source_says() {
    compare(&ErrorEntry::DESCRIPTOR, 64, ERROR_ENTRY);
}

#[rustfmt::skip]
const ENDURANCE_GROUP: &[Row] = &[
    ("critical_warning", 0, 1), ("endurance_group_features", 1, 1), ("avl_spare", 3, 1),
    ("avl_spare_threshold", 4, 1), ("percent_used", 5, 1), ("domain_identifier", 6, 2),
    ("endurance_estimate", 32, 16), ("data_units_read", 48, 16), ("data_units_written", 64, 16),
    ("media_units_written", 80, 16), ("host_read_cmds", 96, 16), ("host_write_cmds", 112, 16),
    ("media_data_integrity_err", 128, 16), ("num_err_info_log_entries", 144, 16), ("total_end_grp_cap", 160, 16),
    ("unalloc_end_grp_cap", 176, 16),
];

#[test]
fn endurance_group_lies_where_another_source_says() {
    compare(&EnduranceGroup::DESCRIPTOR, 512, ENDURANCE_GROUP);
}

#[rustfmt::skip]
const SANITIZE: &[Row] = &[
    ("sprog", 0, 2), ("sstat", 2, 2), ("scdw10", 4, 4), ("eto", 8, 4), ("etbe", 12, 4), ("etce", 16, 4),
    ("etond", 20, 4), ("etbend", 24, 4), ("etcend", 28, 4), ("etpvds", 32, 4), ("ssi", 36, 1),
];

#[test]
fn sanitize_lies_where_another_source_says() {
    compare(&Sanitize::DESCRIPTOR, 512, SANITIZE);
}
