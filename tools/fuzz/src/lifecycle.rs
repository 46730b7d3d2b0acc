//! Bring-up, shutdown and disabling against registers that hold anything, differently each time they are read.
//!
//! Whatever they hold, a machine comes to an end: time only ever moves forward, and every state has a deadline.

use arbitrary::{Arbitrary, Unstructured};
use nvmetal_core::data_pointer::PageSize;
use nvmetal_core::lifecycle::{BringUp, BringUpOptions, Disable, Machine, Shutdown, Step};
use nvmetal_core::register::offset;

/// The longest that a controller may ask for: 65,535 units of 500 ms (CRTO), three times over for the three waits.
const LONGEST_NS: u64 = 3 * 65_536 * 500_000_000;
/// How late the machine is called when the input has ended: hours are over in a few hundred calls.
const LATE_NS: u64 = 100_000_000_000;
/// Steps without a wait between two waits: a machine that takes more runs in circles.
const STEPS_AT_ONCE: u32 = 32;

/// Which machine with which options, then what it reads.
pub fn run(data: &[u8]) {
    let mut input = Unstructured::new(data);
    let _ = choose(&mut input);
}

fn choose(input: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    match input.int_in_range(0..=3)? {
        0 | 1 => {
            let options = BringUpOptions {
                admin_entries: input.arbitrary()?,
                host_page: PageSize::from_field(input.int_in_range(0..=4)?),
                weighted_round_robin: input.arbitrary()?,
                delay_before_ready_ms: input.arbitrary::<u16>()?.into(),
                at_least_ms: input.arbitrary::<u16>()?.into(),
                ..BringUpOptions::new(0x1000, 0x2000)
            };
            drive(BringUp::new(options), input);
        }
        2 => drive(Shutdown::new(input.arbitrary()?, input.arbitrary::<u16>()?.into()), input),
        _ => drive(Disable::new(input.arbitrary::<u16>()?.into()), input),
    }
    Ok(())
}

fn drive<M: Machine>(mut machine: M, input: &mut Unstructured<'_>) {
    let (mut now_ns, mut value, mut at_once) = (0, 0, 0);
    loop {
        let Ok(step) = machine.next(now_ns, value) else {
            assert!(machine.next(now_ns, value).is_err(), "an error is the end");
            return;
        };
        at_once += 1;
        match step {
            // When the input is at its end a register keeps its value, so that states with a deadline come to it.
            Step::Read32(at) => value = next::<u32>(input).map_or(value, |any| sensible(at, any.into())),
            Step::Read64(at) => value = next::<u64>(input).map_or(value, |any| sensible(at, any)),
            Step::Write32(..) | Step::Write64(..) => {}
            Step::Wait { until_ns } => {
                assert!(until_ns > now_ns, "a wait that waits for nothing");
                // Late by any amount, as on a busy machine.
                let late_ns = next::<u32>(input).map_or(LATE_NS, u64::from);
                now_ns = until_ns + late_ns;
                at_once = 0;
            }
            Step::Done(_) => return,
        }
        assert!(at_once < STEPS_AT_ONCE, "it runs in circles");
        assert!(now_ns < LONGEST_NS + (1 << 40), "it waits for ever");
    }
}

/// The next number, as long as there is input; `arbitrary` alone would go on with zeros.
fn next<'a, T: Arbitrary<'a>>(input: &mut Unstructured<'a>) -> Option<T> {
    if input.is_empty() { None } else { input.arbitrary().ok() }
}

/// Half of the values of CAP can be used, so that the machine gets beyond it.
fn sensible(at: u64, any: u64) -> u64 {
    if at == offset::CAP && any & 1 == 1 { any & !(0xf << 48) | 1 << 37 } else { any }
}
