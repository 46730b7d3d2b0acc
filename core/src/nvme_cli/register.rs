//! `show-regs`.
#![forbid(unsafe_code)]

use super::Radix::Hex;
use super::{Form, Row, row, shown};
use crate::describe::Describe;
use crate::register::Registers;
use ::core::fmt::Display;

const fn same(word: &'static str) -> Row {
    row(word, word, word, Hex)
}

#[rustfmt::skip]
pub(super) const FORM: Form = Form {
    descriptor: Registers::DESCRIPTOR_REF,
    rows: &[
        row("cap", "cap", "cap", Hex), row("vs", "version", "vs", Hex), same("intms"), same("intmc"), same("cc"),
        same("csts"), same("nssr"), same("aqa"), same("asq"), same("acq"), same("cmbloc"), same("cmbsz"),
        same("bpinfo"), same("bprsel"), same("bpmbl"), same("cmbmsc"), same("cmbsts"), same("cmbebs"),
        same("cmbswtp"), same("nssd"), same("crto"), same("pmrcap"), same("pmrctl"), same("pmrsts"),
        same("pmrebs"), same("pmrswtp"), same("pmrmscl"), same("pmrmscu"),
    ],
    left_out: &[],
};

/// `show-regs` of the registers, from the first byte of BAR0 on.
pub fn registers(page: &[u8]) -> impl Display + '_ {
    shown(move |f| FORM.lines(f, page, 8, |_| false))
}

/// `show-regs -o json` of the registers.
pub fn registers_json(page: &[u8]) -> impl Display + '_ {
    shown(move |f| {
        f.write_str("{")?;
        FORM.members(f, page, |_| false)?;
        f.write_str("}")
    })
}
