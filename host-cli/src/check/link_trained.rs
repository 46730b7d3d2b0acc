//! What the checks of speed and width share: comparing what a link does with what its two ends can do.
//!
//! A link must train to the best that both of its ends have in common, so less than that is a fault of contacts, card,
//! slot or settings, and the drive's owner can do something about it. Less than the *drive* has is no fault: the slot,
//! or a port above it, cannot do more. Idle links may slow down to save power, so only readings taken while reads were
//! running accuse anybody, and three of them must agree.
#![forbid(unsafe_code)]

use std::fmt::Display;

use nvmetal_driver::pci::PciAddress;
use nvmetal_driver::pci::link::{Hop, Limit, LinkPath, PortEnd, Trained, UnknownReason};

use super::{Evidence, Judgement};

/// Readings under load that must agree before a link is called faulty.
const READINGS: usize = 3;

/// Speed or width: how to get at it, and what to say.
pub struct Aspect<T> {
    /// "speed" or "width".
    pub word: &'static str,
    /// How a link trained.
    pub trained: fn(&Hop) -> Trained<T>,
    /// What an end is able to do.
    pub able: fn(&PortEnd) -> Option<T>,
    /// What a too narrow link is able to do, where this aspect is what is too low.
    pub limit: fn(&Limit) -> Option<T>,
    /// What to do about a link that trained too low.
    pub remedy: &'static str,
}

/// The judgement of one aspect over all links of the path.
pub fn judge<T: Copy + Ord + Display>(evidence: &Evidence, aspect: &Aspect<T>) -> Judgement {
    let Some(idle) = &evidence.link.path else {
        return Judgement::skip("the links between drive and processor are not shown to us");
    };
    let under_load = &evidence.link.under_load;
    let readings: Vec<&LinkPath> = if under_load.is_empty() { vec![idle] } else { under_load.iter().collect() };
    let Some(own) = idle.drive_hop() else {
        return Judgement::skip("no link is shown: the drive is part of the chipset, or of a virtual machine");
    };
    let when = if under_load.is_empty() { "at idle" } else { "under load" };

    for hop in 0..idle.hops.len() {
        let states: Vec<Trained<T>> =
            readings.iter().filter_map(|path| Some((aspect.trained)(path.hops.get(hop)?))).collect();
        if let Some(judgement) = judge_hop(hop, &states, idle, !under_load.is_empty(), aspect) {
            return judgement;
        }
    }

    let now = readings.iter().find_map(|path| match (aspect.trained)(path.drive_hop()?) {
        Trained::Best { now } | Trained::Below { now, .. } => Some(now),
        _ => None,
    });
    let Some(now) = now else { return Judgement::skip(unknown(&(aspect.trained)(own), aspect)) };
    let seen = format!("{now} {when}, {}", abilities(own, aspect));
    let limits = idle.limits();
    let limit = limits.iter().find_map(|limit| Some(((aspect.limit)(limit)?, limit)));
    let (Some((best, limit)), Some(drive)) = (limit, (aspect.able)(&own.lower)) else {
        return Judgement::pass(seen);
    };
    let by = if limit.hop == 0 { "the slot" } else { "a port above the slot" };
    let limited = format!("{seen}; limited to {best} by {by} ({}), the drive can {drive}", limit.port);
    if evidence.wishes.accept_slot {
        return Judgement::pass(format!("{limited} (accepted)"));
    }
    Judgement::warn(limited).advice(format!(
        "Nothing is broken: the {} of this slot is less than the drive's. Use a better slot if there is one, or \
         --accept-slot to judge the drive by this one.",
        aspect.word
    ))
}

/// What is wrong with one link of the path, if anything is.
fn judge_hop<T: Copy + Ord + Display>(
    index: usize,
    states: &[Trained<T>],
    idle: &LinkPath,
    loaded: bool,
    aspect: &Aspect<T>,
) -> Option<Judgement> {
    let hop = idle.hops.get(index)?;
    if let Some(Trained::Unbelievable { now, best }) =
        states.iter().find(|state| matches!(state, Trained::Unbelievable { .. }))
    {
        return Some(Judgement::skip(format!(
            "the registers are not believable: {now} where both ends can {best} at most ({})",
            link_name(hop)
        )));
    }
    let below: Vec<(T, T)> = states
        .iter()
        .filter_map(|state| match *state {
            Trained::Below { now, best } => Some((now, best)),
            _ => None,
        })
        .collect();
    let &(now, best) = below.iter().min_by_key(|(now, _)| *now)?;
    // A link above the slot may be wider than the drive needs: it matters where it is the narrowest.
    if index > 0 && idle.narrowest().is_none_or(|(narrowest, _)| narrowest != index) {
        return None;
    }
    let port = hop.upper.as_ref().map_or(hop.lower.address, |upper| upper.address);
    let (ends, place) = if index == 0 {
        ("drive and slot".to_owned(), format!("{port}"))
    } else {
        (format!("{} and {port}", hop.lower.address), "above the slot".to_owned())
    };
    let seen = format!("{now}, {ends} can {best} ({place})");
    if below.len() < states.len() {
        return Some(
            Judgement::warn(format!("{seen} in {} of {} readings under load", below.len(), states.len())).advice(
                "The link changed while it was in use. Test again; if it comes back, suspect the contacts and the card.",
            ),
        );
    }
    if loaded && below.len() >= READINGS {
        return Some(Judgement::fail(seen).advice(aspect.remedy));
    }
    let how_often = if loaded { format!("{} readings under load", below.len()) } else { "read at idle only".into() };
    Some(Judgement::warn(format!("{seen}; {how_often}")).advice(
        "An idle link may have slowed down to save power. Test without --quick, so that it is read three times under \
         load.",
    ))
}

/// Why nothing can be said.
fn unknown<T: Display>(state: &Trained<T>, aspect: &Aspect<T>) -> String {
    match state {
        Trained::Unknown(UnknownReason::PortHidden) => format!(
            "the port above the drive is not shown (a virtual machine?), so the {} that it could have is unknown",
            aspect.word
        ),
        Trained::Unknown(reason) => reason.to_string(),
        _ => "the link status is not known".to_owned(),
    }
}

/// `drive can 16 GT/s, slot 8 GT/s`, or in short when both are the same.
fn abilities<T: Copy + Ord + Display>(hop: &Hop, aspect: &Aspect<T>) -> String {
    let of = |end: &PortEnd| (aspect.able)(end).map_or_else(|| "unknown".to_owned(), |able| able.to_string());
    let drive = of(&hop.lower);
    match &hop.upper {
        None => format!("drive can {drive}"),
        Some(upper) if of(upper) == drive => format!("drive and slot can {drive} ({})", upper.address),
        Some(upper) => format!("drive can {drive}, slot {} ({})", of(upper), upper.address),
    }
}

/// A link by its two ends.
fn link_name(hop: &Hop) -> String {
    let lower: PciAddress = hop.lower.address;
    hop.upper.as_ref().map_or_else(|| lower.to_string(), |upper| format!("{} to {lower}", upper.address))
}
