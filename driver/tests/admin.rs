//! Which admin commands are sent for a question, told by a controller that answers as a test wants it to.
#![forbid(unsafe_code)]
#![allow(missing_docs)]

use std::fmt;
use std::sync::Mutex;

use nvmetal_core::command::admin::{AdminOpcode, Cns, GetLogPage, Identify};
use nvmetal_core::command::{Command, SubmissionEntry};
use nvmetal_core::identify;
use nvmetal_core::register::Version;
use nvmetal_core::status::Status;
use nvmetal_driver::controller::{AdminData, Completed};
use nvmetal_driver::{Admin, DriverError};
use zerocopy::{FromZeros, IntoBytes};

/// Invalid Field in Command.
const INVALID_FIELD: Status = Status::from_bits(0x0002);

type Answer = dyn Fn(&Identify) -> Result<Vec<u8>, Status> + Send + Sync;

/// A controller that keeps what it was asked, and answers Identify by a function.
struct Scripted {
    identify: Box<identify::Controller>,
    version: Version,
    answer: Box<Answer>,
    sent: Mutex<Vec<SubmissionEntry>>,
}

impl Scripted {
    fn new(
        version: u32,
        nn: u32,
        answer: impl Fn(&Identify) -> Result<Vec<u8>, Status> + Send + Sync + 'static,
    ) -> Self {
        let mut identify = Box::new(identify::Controller::new_zeroed());
        identify.nn.set(nn);
        Self { identify, version: Version::from_bits(version), answer: Box::new(answer), sent: Mutex::default() }
    }

    fn sent(&self) -> Vec<SubmissionEntry> {
        self.sent.lock().unwrap().clone()
    }
}

impl fmt::Debug for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scripted")
    }
}

impl Admin for Scripted {
    fn address(&self) -> &'static str {
        "scripted"
    }

    fn version(&self) -> Version {
        self.version
    }

    fn identify(&self) -> &identify::Controller {
        &self.identify
    }

    fn max_admin_bytes(&self) -> usize {
        4096
    }

    fn admin_entry(&self, entry: SubmissionEntry, data: AdminData<'_>) -> Result<Completed, DriverError> {
        self.sent.lock().unwrap().push(entry);
        let answer = match AdminOpcode::from_bits(entry.opcode()) {
            AdminOpcode::IDENTIFY => (self.answer)(&Identify::from_entry(&entry)),
            _ => Ok(Vec::new()),
        };
        let bytes = answer.map_err(|status| DriverError::Command {
            address: "scripted".to_owned(),
            queue: 0,
            command: "Identify".to_owned(),
            status,
        })?;
        if let AdminData::FromDevice(into) = data {
            into[..bytes.len()].copy_from_slice(&bytes);
        }
        Ok(Completed { dword0: 0, dword1: 0 })
    }
}

/// A namespace of that many blocks; 0 is what an inactive one answers.
fn namespace(blocks: u64) -> Vec<u8> {
    let mut data = identify::Namespace::new_zeroed();
    data.nsze.set(blocks);
    data.as_bytes().to_vec()
}

#[test]
fn a32_the_health_log_is_asked_for_with_all_namespaces() {
    let controller = Scripted::new(0x0001_0300, 1, |_| Ok(Vec::new()));
    controller.smart().unwrap();
    let [entry] = controller.sent()[..] else { panic!("{:?}", controller.sent()) };
    let get = GetLogPage::from_entry(&entry);
    assert_eq!((get.nsid, get.lid.into_bits(), get.lpo), (0xffff_ffff, 0x02, 0));
}

#[test]
fn b19_the_controller_is_identified_with_namespace_0() {
    let controller = Scripted::new(0x0001_0300, 1, |_| Ok(Vec::new()));
    controller.identify_controller().unwrap();
    let [entry] = controller.sent()[..] else { panic!("{:?}", controller.sent()) };
    let identify = Identify::from_entry(&entry);
    assert_eq!((identify.nsid, identify.cns), (0, Cns::CONTROLLER));
}

#[test]
fn b17_namespaces_come_from_the_active_list_and_not_from_nn() {
    // NN says 4 billion; 3 and 7 are active.
    let controller = Scripted::new(0x0001_0100, 0xffff_fffe, |identify| {
        assert_eq!(identify.cns, Cns::ACTIVE_NAMESPACES);
        Ok([3_u32, 7].iter().flat_map(|nsid| nsid.to_le_bytes()).collect())
    });
    assert_eq!(controller.active_namespaces().unwrap(), [3, 7]);
    assert_eq!(controller.sent().len(), 1);
}

#[test]
fn b17_without_the_list_namespaces_are_walked_up_to_a_bound() {
    let walked = |version, nn| {
        let controller = Scripted::new(version, nn, |identify| match identify.cns {
            Cns::NAMESPACE if identify.nsid == 2 => Ok(namespace(1000)),
            Cns::NAMESPACE if identify.nsid == 3 => Err(INVALID_FIELD),
            Cns::NAMESPACE => Ok(namespace(0)),
            _ => Err(INVALID_FIELD),
        });
        (controller.active_namespaces().unwrap(), controller.sent().len())
    };
    // Version 1.0 has no list; it is not even asked for.
    assert_eq!(walked(0x0001_0000, 8), (vec![2], 8));
    // Version 1.1 that refuses it.
    assert_eq!(walked(0x0001_0100, 8), (vec![2], 9));
    // NN beyond all reason is walked for a while.
    assert_eq!(walked(0x0001_0000, 0xffff_fffe), (vec![2], 1024));
}

#[test]
fn b17_a_list_that_repeats_itself_ends() {
    let controller = Scripted::new(0x0001_0400, 1, |_| Ok((1_u32..=1024).flat_map(u32::to_le_bytes).collect()));
    let found = controller.active_namespaces().unwrap();
    assert_eq!(found.len(), 1024);
    assert!(controller.sent().len() <= 1024, "{}", controller.sent().len());
}
