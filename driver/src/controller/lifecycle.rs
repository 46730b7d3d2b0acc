//! Runs the machines of `core::lifecycle` over a transport.
#![forbid(unsafe_code)]

use std::sync::Arc;

use nvmetal_core::lifecycle::{
    BringUp, BringUpOptions, BroughtUp, Disable, LifecycleError, Machine, Shutdown, ShutdownOutcome, Step,
};

use crate::error::DriverError;
use crate::transport::{Transport, Waiting};

/// Brings the controller up.
pub(super) fn bring_up(transport: &Arc<dyn Transport>, options: BringUpOptions) -> Result<BroughtUp, DriverError> {
    run(transport, "bringing the controller up", BringUp::new(options))
}

/// Shuts the controller down in good order.
pub(super) fn shutdown(
    transport: &Arc<dyn Transport>,
    rtd3e_us: u32,
    disable_ms: u32,
) -> Result<ShutdownOutcome, DriverError> {
    run(transport, "shutting the controller down", Shutdown::new(rtd3e_us, disable_ms))
}

/// Disables the controller at once.
pub(super) fn disable(transport: &Arc<dyn Transport>, disable_ms: u32) -> Result<(), DriverError> {
    run(transport, "disabling the controller", Disable::new(disable_ms))
}

fn run<M: Machine>(
    transport: &Arc<dyn Transport>,
    doing: &'static str,
    mut machine: M,
) -> Result<M::Outcome, DriverError> {
    let mut value = 0;
    loop {
        if transport.signals().lost {
            let address = transport.info().address.clone();
            return Err(DriverError::Lost { address, detail: format!("the transport reports it, {doing}") });
        }
        let step =
            machine.next(transport.clock().now_ns(), value).map_err(|source| failed(transport, doing, source))?;
        match step {
            Step::Read32(offset) => value = u64::from(transport.read32(offset)?),
            Step::Read64(offset) => value = transport.read64(offset)?,
            Step::Write32(offset, data) => transport.write32(offset, data)?,
            Step::Write64(offset, data) => transport.write64(offset, data)?,
            Step::Wait { until_ns } => transport.idle(until_ns, Waiting::Register),
            Step::Done(outcome) => return Ok(outcome),
        }
    }
}

fn failed(transport: &Arc<dyn Transport>, doing: &'static str, source: LifecycleError) -> DriverError {
    let address = transport.info().address.clone();
    if let LifecycleError::NotAccessible { offset } = source {
        let detail = format!("{doing}: the register at {offset:#x} reads all ones; {}", config_state(transport));
        return DriverError::Lost { address, detail };
    }
    DriverError::Lifecycle { address, doing, source }
}

/// C-08: registers that read all ones can be a function whose memory is dead while its configuration space answers, or
/// one that is gone altogether.
pub(crate) fn config_state(transport: &Arc<dyn Transport>) -> &'static str {
    let mut status = [0; 2];
    match transport.read_config(6, &mut status) {
        Ok(2) if status == [0xff; 2] => "its configuration space reads all ones, too: link or device lost",
        Ok(2) => "its configuration space still answers: power state, ASPM or link trouble; a reset may help",
        _ => "its configuration space cannot be read",
    }
}
