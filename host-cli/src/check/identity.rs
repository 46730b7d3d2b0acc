//! Whether the drive says who it is, and says the same at the end as at the start.
//!
//! Without a serial number a result belongs to no drive; with another one than before, the results of the run belong to
//! two.
#![forbid(unsafe_code)]

use super::{Basis, Check, Evidence, Judgement};
use crate::units;

pub const CHECK: Check = Check {
    id: "identity",
    limit: "model, serial number and capacity told, and the same at the end",
    basis: Basis::Spec,
    mandatory: true,
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let Some(identity) = &evidence.identity else {
        return Judgement::skip("the drive was not asked, or did not answer");
    };
    let seen = format!(
        "{}, serial {}, firmware {}, {}, {} B blocks",
        or_dash(&identity.model),
        or_dash(&identity.serial),
        or_dash(&identity.firmware),
        units::bytes(identity.capacity_bytes),
        identity.lba_bytes,
    );
    if identity.capacity_bytes == 0 {
        return Judgement::fail(format!("{seen}: there is nothing to read")).advice(
            "No namespace with blocks is attached to this controller. `nvmetal id` shows what there is; create and \
             attach one (nvme create-ns, nvme attach-ns).",
        );
    }
    if let Some(after) = identity.serial_after.as_ref().filter(|after| **after != identity.serial) {
        return Judgement::fail(format!("{seen}; at the end it called itself {}", or_dash(after)))
            .advice("The drive at this address was exchanged in the run: the figures belong to two drives.");
    }
    if identity.serial.is_empty() || identity.model.is_empty() {
        return Judgement::warn(seen).advice(
            "A drive without a serial or model number cannot be told from another; results are kept under its PCI \
             address only.",
        );
    }
    Judgement::pass(seen)
}

fn or_dash(text: &str) -> &str {
    if text.is_empty() { "-" } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Status;

    fn status(change: impl FnOnce(&mut crate::check::evidence::Identity)) -> Status {
        let mut evidence = Evidence::healthy();
        change(evidence.identity.as_mut().expect("a healthy drive has an identity"));
        judge(&evidence).status
    }

    #[test]
    fn a_drive_that_names_itself_passes() {
        assert_eq!(status(|_| {}), Status::Pass);
        assert_eq!(status(|identity| identity.serial_after = None), Status::Pass);
    }

    #[test]
    fn b08_an_empty_model_or_serial_is_shown_as_a_dash_and_warned_of() {
        assert_eq!(status(|identity| identity.model.clear()), Status::Warn);
        let mut evidence = Evidence::healthy();
        let identity = evidence.identity.as_mut().expect("an identity");
        identity.serial.clear();
        identity.serial_after = Some(String::new());
        let judgement = judge(&evidence);
        assert_eq!(judgement.status, Status::Warn);
        assert!(judgement.evidence.contains("serial -"), "{}", judgement.evidence);
    }

    #[test]
    fn another_serial_number_at_the_end_fails() {
        assert_eq!(status(|identity| identity.serial_after = Some("S124".into())), Status::Fail);
    }

    #[test]
    fn b16_a_namespace_without_blocks_fails() {
        assert_eq!(status(|identity| identity.capacity_bytes = 0), Status::Fail);
    }
}
