//! `id-ctrl` and `id-ns`.
#![forbid(unsafe_code)]

use super::Radix::{Decimal, Digits, Hex, Oui, Text, Uuid};
use super::{Form, Row, row, shown};
use crate::describe::{Describe, View};
use crate::identify::{Controller, LbaFormat, Namespace, PowerScale, PowerState};
use ::core::fmt::{self, Display};
use zerocopy::FromBytes;

/// A row whose field, label and key are one word.
const fn same(word: &'static str, radix: super::Radix) -> Row {
    row(word, word, word, radix)
}

#[rustfmt::skip]
pub(super) const CONTROLLER: Form = Form {
    descriptor: Controller::DESCRIPTOR_REF,
    rows: &[
        same("vid", Hex), same("ssvid", Hex), same("sn", Text), same("mn", Text), same("fr", Text),
        same("rab", Decimal), same("ieee", Oui), same("cmic", Hex), same("mdts", Decimal), same("cntlid", Hex),
        same("ver", Hex), same("rtd3r", Hex), same("rtd3e", Hex), same("oaes", Hex), same("ctratt", Hex),
        same("rrls", Hex), same("bpcap", Hex), same("nssl", Hex), same("plsi", Decimal), same("cntrltype", Decimal),
        same("fguid", Uuid), same("crdt1", Decimal), same("crdt2", Decimal), same("crdt3", Decimal),
        same("crcap", Decimal), same("nvmsr", Decimal), same("vwci", Decimal), same("mec", Decimal),
        same("oacs", Hex), same("acl", Decimal), same("aerl", Decimal), same("frmw", Hex), same("lpa", Hex),
        same("elpe", Decimal), same("npss", Decimal), same("avscc", Hex), same("apsta", Hex),
        same("wctemp", Decimal), same("cctemp", Decimal), same("mtfa", Decimal), same("hmpre", Decimal),
        same("hmmin", Decimal), same("tnvmcap", Decimal), same("unvmcap", Decimal), same("rpmbs", Hex),
        same("edstt", Decimal), same("dsto", Decimal), same("fwug", Decimal), same("kas", Decimal),
        same("hctma", Hex), same("mntmt", Decimal), same("mxtmt", Decimal), same("sanicap", Hex),
        same("hmminds", Decimal), same("hmmaxd", Decimal), same("nsetidmax", Decimal), same("endgidmax", Decimal),
        same("anatt", Decimal), same("anacap", Decimal), same("anagrpmax", Decimal), same("nanagrpid", Decimal),
        same("pels", Decimal), same("domainid", Decimal), same("kpioc", Decimal), same("mptfawr", Decimal),
        same("megcap", Decimal), same("tmpthha", Hex), same("cqt", Decimal), same("sqes", Hex), same("cqes", Hex),
        same("maxcmd", Decimal), same("nn", Decimal), same("oncs", Hex), same("fuses", Hex), same("fna", Hex),
        same("vwc", Hex), same("awun", Decimal), same("awupf", Decimal), same("icsvscc", Decimal),
        same("nwpc", Decimal), same("acwu", Decimal), row("cdfs", "ocfs", "ocfs", Hex), same("sgls", Hex),
        same("mnan", Decimal), same("maxdna", Decimal), same("maxcna", Decimal), same("oaqd", Decimal),
        same("rhiri", Decimal), same("hirt", Decimal), same("cmmrtd", Decimal), same("nmmrtd", Decimal),
        same("minmrtg", Decimal), same("maxmrtg", Decimal), same("trattr", Decimal), same("mcudmq", Decimal),
        same("mnsudmq", Decimal), same("mcmr", Decimal), same("nmcmr", Decimal), same("mcdqpc", Decimal),
        same("subnqn", Text), same("ioccsz", Decimal), same("iorcsz", Decimal), same("icdoff", Decimal),
        same("fcatt", Hex), same("msdbd", Decimal), same("ofcs", Decimal),
    ],
    // `psd` is printed as lines of its own; the others came to the structure after the form was what scripts know.
    left_out: &["ciu", "cirn", "cdpa", "mup", "ipmsr", "msmt", "dctype", "ccrl", "psd", "vendor"],
};

#[rustfmt::skip]
pub(super) const NAMESPACE: Form = Form {
    descriptor: Namespace::DESCRIPTOR_REF,
    rows: &[
        same("nsze", Hex), same("ncap", Hex), same("nuse", Hex), same("nsfeat", Hex), same("nlbaf", Decimal),
        same("flbas", Hex), same("mc", Hex), same("dpc", Hex), same("dps", Hex), same("nmic", Hex),
        same("rescap", Hex), same("fpi", Hex), same("dlfeat", Decimal), same("nawun", Decimal),
        same("nawupf", Decimal), same("nacwu", Decimal), same("nabsn", Decimal), same("nabo", Decimal),
        same("nabspf", Decimal), same("noiob", Decimal), same("nvmcap", Decimal), same("npwg", Decimal),
        same("npwa", Decimal), same("npdg", Decimal), same("npda", Decimal), same("nows", Decimal),
        same("mssrl", Decimal), same("mcl", Decimal), same("msrc", Decimal), same("nulbaf", Decimal),
        same("anagrpid", Decimal), same("nsattr", Decimal),
        same("nvmsetid", Decimal), same("endgid", Decimal), same("nguid", Digits), same("eui64", Digits),
    ],
    // `lbaf` is printed as lines of its own; the key per I/O fields came after the form was what scripts know.
    left_out: &["kpios", "kpiodaag", "lbaf", "vendor"],
};

/// Elements `0..count` of a field that holds structures, as far as the page has them.
fn elements<'a, T: FromBytes>(view: View<'a>, id: &str, count: usize) -> impl Iterator<Item = T> + 'a {
    let field = view.descriptor.field(id);
    (0..count).map_while(move |index| T::read_from_bytes(view.element(field?, index)?).ok())
}

fn power_states(page: &[u8]) -> impl Iterator<Item = PowerState> + '_ {
    let view = CONTROLLER.view(page);
    let count = view.raw("npss").map_or(0, |npss| npss as usize + 1);
    elements(view, "psd", count.min(32))
}

/// A power with its unit, as C prints it: `8.00W`, `0.1200W`, `-` where it is not reported.
fn power(f: &mut fmt::Formatter<'_>, value: u16, scale: PowerScale) -> fmt::Result {
    match scale {
        PowerScale::NOT_REPORTED => f.write_str("-"),
        PowerScale::W_0001 => write!(f, "{}.{:04}W", value / 10_000, value % 10_000),
        PowerScale::W_01 => write!(f, "{}.{:02}W", value / 100, value % 100),
        _ => f.write_str("reserved"),
    }
}

/// `id-ctrl` of an Identify Controller data structure.
pub fn controller(page: &[u8]) -> impl Display + '_ {
    shown(move |f| {
        writeln!(f, "NVME Identify Controller:")?;
        CONTROLLER.lines(f, page, 10, |_| false)?;
        for (number, state) in power_states(page).enumerate() {
            write!(f, "ps {number:4} : mp:")?;
            power(f, state.mp.get(), if state.flags.mxps() { PowerScale::W_0001 } else { PowerScale::W_01 })?;
            let kind = if state.flags.nops() { "non-operational" } else { "operational" };
            write!(f, " {kind} enlat:{} exlat:{}", state.enlat, state.exlat)?;
            writeln!(f, " rrt:{} rrl:{}", state.rrt.into_bits(), state.rrl.into_bits())?;
            write!(f, "          rwt:{} rwl:{} idle_power:", state.rwt.into_bits(), state.rwl.into_bits())?;
            power(f, state.idlp.get(), state.ips.ips())?;
            f.write_str(" active_power:")?;
            power(f, state.actp.get(), state.apws.aps())?;
            let workload = match state.apws.apw().into_bits() {
                0 => "-",
                1 => "1MiB 32 RW, 30s idle",
                2 => "80K 128KiB SW",
                _ => "reserved",
            };
            writeln!(f, "\n          active_power_workload:{workload}")?;
        }
        Ok(())
    })
}

/// `id-ctrl -o json` of an Identify Controller data structure.
pub fn controller_json(page: &[u8]) -> impl Display + '_ {
    shown(move |f| {
        f.write_str("{")?;
        CONTROLLER.members(f, page, |_| false)?;
        f.write_str(if page.len() > 1 { ",\"psds\":[" } else { "\"psds\":[" })?;
        for (number, state) in power_states(page).enumerate() {
            f.write_str(if number == 0 { "{" } else { ",{" })?;
            let members = [
                ("max_power", u32::from(state.mp.get())),
                ("max_power_scale", u32::from(state.flags.mxps())),
                ("non-operational_state", u32::from(state.flags.nops())),
                ("entry_lat", state.enlat.get()),
                ("exit_lat", state.exlat.get()),
                ("read_tput", u32::from(state.rrt.into_bits())),
                ("read_lat", u32::from(state.rrl.into_bits())),
                ("write_tput", u32::from(state.rwt.into_bits())),
                ("write_lat", u32::from(state.rwl.into_bits())),
                ("idle_power", u32::from(state.idlp.get())),
                ("idle_scale", u32::from(state.ips.ips().into_bits())),
                ("active_power", u32::from(state.actp.get())),
                ("active_power_work", u32::from(state.apws.apw().into_bits())),
                ("active_scale", u32::from(state.apws.aps().into_bits())),
            ];
            for (index, (key, value)) in members.iter().enumerate() {
                write!(f, "{}\"{key}\":{value}", if index == 0 { "" } else { "," })?;
            }
            f.write_str("}")?;
        }
        f.write_str("]}")
    })
}

/// The preferred sizes are printed where NSFEAT says that the namespace reports them.
fn is_not_reported(page: &[u8], row: &Row) -> bool {
    let nsfeat = NAMESPACE.view(page).raw("nsfeat").unwrap_or(0);
    match row.field {
        "npwg" | "npwa" | "npda" | "nows" => nsfeat & 0x30 == 0,
        "npdg" => nsfeat & 0x10 == 0,
        _ => false,
    }
}

/// The formats, and the index of the one in use.
fn formats(page: &[u8]) -> (impl Iterator<Item = LbaFormat> + '_, usize) {
    let view = NAMESPACE.view(page);
    let of = |id| view.raw(id).unwrap_or(0) as usize;
    let (count, flbas) = (of("nlbaf") + 1 + of("nulbaf"), of("flbas"));
    let in_use = if count > 16 { flbas & 0xf | flbas >> 1 & 0x30 } else { flbas & 0xf };
    (elements(view, "lbaf", count.min(64)), in_use)
}

/// `id-ns` of an Identify Namespace data structure.
pub fn namespace(page: &[u8], nsid: u32) -> impl Display + '_ {
    shown(move |f| {
        writeln!(f, "NVME Identify Namespace {nsid}:")?;
        NAMESPACE.lines(f, page, 8, |row| is_not_reported(page, row))?;
        let (formats, in_use) = formats(page);
        for (number, format) in formats.enumerate() {
            let rp = super::Hex(format.performance.into_bits().into());
            let mark = if number == in_use { "(in use)" } else { "" };
            writeln!(f, "lbaf {number:2} : ms:{:<3} lbads:{:<2} rp:{rp} {mark}", format.ms.get(), format.lbads)?;
        }
        Ok(())
    })
}

/// `id-ns -o json` of an Identify Namespace data structure.
pub fn namespace_json(page: &[u8]) -> impl Display + '_ {
    shown(move |f| {
        f.write_str("{")?;
        NAMESPACE.members(f, page, |row| is_not_reported(page, row))?;
        f.write_str(if page.len() > 7 { ",\"lbafs\":[" } else { "\"lbafs\":[" })?;
        for (number, format) in formats(page).0.enumerate() {
            let separator = if number == 0 { "" } else { "," };
            let (ms, ds, rp) = (format.ms, format.lbads, format.performance.into_bits());
            write!(f, "{separator}{{\"ms\":{ms},\"ds\":{ds},\"rp\":{rp}}}")?;
        }
        f.write_str("]}")
    })
}
