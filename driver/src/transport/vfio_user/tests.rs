//! The whole driver over a socket, and what becomes of a server that does not keep to the protocol.
#![forbid(unsafe_code)]

use core::time::Duration;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;

use nvmetal_vfio_user_wire::message::Version;
use nvmetal_vfio_user_wire::{Channel, Header, PAYLOAD_BYTES_MOST};

use super::*;

/// Long enough for a loaded machine, short enough to wait for.
const SOON: Duration = Duration::from_millis(300);
const LONG: Duration = Duration::from_secs(60);

/// Opens a device whose server answers each message with what `script` makes of it; `None` is silence.
fn open_against(script: impl Fn(&Header, &[u8]) -> Option<(Header, Vec<u8>)> + Send) -> TransportError {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("drive");
    let listener = UnixListener::bind(&path).expect("a socket");
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let (stream, _) = listener.accept().expect("a client");
            let channel = Channel::new(stream.into());
            while let Ok(message) = channel.receive(PAYLOAD_BYTES_MOST, LONG) {
                if let Some((header, payload)) = script(&message.header, &message.payload)
                    && channel.send(&header, &[&payload], &[], LONG).is_err()
                {
                    return;
                }
            }
        });
        VfioUserTransport::open_within(&path, SOON).expect_err("no device")
    })
}

fn version(asked: &Header) -> (Header, Vec<u8>) {
    let payload = Version { major: 0.into(), minor: 1.into() }.as_bytes().to_vec();
    (Header::reply(asked, payload.len()), payload)
}

fn lies(error: &TransportError) -> bool {
    matches!(error, TransportError::Protocol { .. })
}

#[test]
fn a_silent_server_is_lost_when_its_time_is_up() {
    let error = open_against(|_, _| None);
    assert!(matches!(error, TransportError::Lost { .. }), "{error}");
    assert!(error.to_string().contains("VERSION") && error.to_string().contains("another client"), "{error}");
    let error = open_against(|asked, _| (asked.what() == Command::VERSION).then(|| version(asked)));
    assert!(matches!(error, TransportError::Lost { .. }), "{error}");
}

#[test]
fn a_server_that_sends_nonsense_is_found_out() {
    let wrong_version = |asked: &Header, _: &[u8]| Some((Header::reply(asked, 4), vec![9, 0, 0, 0]));
    assert!(lies(&open_against(wrong_version)));
    let no_payload = |asked: &Header, _: &[u8]| Some((Header::reply(asked, 0), Vec::new()));
    assert!(lies(&open_against(no_payload)));
    let of_another = |asked: &Header, _: &[u8]| {
        let other = Header::command(asked.message_id().wrapping_add(1), asked.what(), 0);
        Some((Header::reply(&other, 4), vec![0, 0, 1, 0]))
    };
    assert!(lies(&open_against(of_another)));
    let too_long = |asked: &Header, _: &[u8]| Some((Header::reply(asked, usize::MAX), Vec::new()));
    assert!(lies(&open_against(too_long)));
    let echo = |asked: &Header, payload: &[u8]| match asked.what() {
        Command::VERSION => Some(version(asked)),
        _ => Some((Header::reply(asked, payload.len()), payload.to_vec())),
    };
    assert!(lies(&open_against(echo)), "an empty device");
    // One that only ever asks back.
    let asks = |asked: &Header, _: &[u8]| match asked.kind() {
        Ok(_) => Some((Header::command(asked.message_id(), Command::DMA_READ, 0), Vec::new())),
        Err(_) => None,
    };
    assert!(lies(&open_against(asks)));
}

#[test]
fn a_refusal_is_told_with_the_servers_error_number() {
    let error = open_against(|asked, _| match asked.what() {
        Command::VERSION => Some(version(asked)),
        _ => Some((Header::failure(asked, 13), Vec::new())),
    });
    assert!(matches!(&error, TransportError::System { what, .. } if what.contains("DEVICE_GET_INFO")), "{error}");
    assert!(error.to_string().contains("Permission denied"), "{error}");
}

#[test]
fn where_nobody_listens_the_systems_error_says_so() {
    let error = VfioUserTransport::open(Path::new("/nonexistent/drive")).expect_err("nobody");
    assert!(matches!(&error, TransportError::System { source, .. } if source.kind() == std::io::ErrorKind::NotFound));
}

/// The bytes of a line such as `> 01000100 ...`.
fn recorded(line: &str) -> Vec<u8> {
    let hex: String = line[1..].split_whitespace().collect();
    let digits = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("two digits");
    (0..hex.len()).step_by(2).map(digits).collect()
}

#[test]
fn what_is_sent_is_the_recorded_exchange_byte_for_byte() {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    let recording = include_str!("../../../../tools/vfio-user-wire/recorded/client.txt");
    let lines: Vec<_> = recording.lines().filter(|line| !line.starts_with('#')).collect();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("drive");
    let listener = UnixListener::bind(&path).expect("a socket");
    let play = |mut stream: UnixStream| {
        stream.set_read_timeout(Some(LONG)).expect("a time");
        for line in lines {
            let bytes = recorded(line);
            if line.starts_with('>') {
                let mut sent = vec![0; bytes.len()];
                stream.read_exact(&mut sent).expect("a message");
                assert_eq!(sent, bytes, "instead of {line}");
            } else {
                stream.write_all(&bytes).expect("taken");
            }
        }
        assert_eq!(stream.read(&mut [0]).expect("the end"), 0, "and nothing else");
    };
    std::thread::scope(|scope| {
        scope.spawn(|| play(listener.accept().expect("a client").0));
        let transport = VfioUserTransport::open_within(&path, LONG).expect("a device");
        assert_eq!((transport.info().register_bytes, transport.info().vectors), (0x4000, 128));
        let file = rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).expect("a memfd");
        let pointer = core::ptr::NonNull::dangling();
        let iova = transport.map(HostRange { pointer, bytes: 0x2000, file: Some((file.as_fd(), 0)) }).expect("mapped");
        transport.set_bus_master(true).expect("on");
        assert_eq!(transport.read64(0).expect("CAP"), 0x0800_0020_1e01_00ff);
        transport.write64(0x28, iova).expect("ASQ");
        transport.write32(0x14, 0x0046_0001).expect("CC");
        assert_eq!(transport.read32(0x1c).expect("CSTS"), 1);
        let Ok(DoorbellKind::Called(doorbell)) = transport.doorbell(0x1000) else { panic!("it is not mapped") };
        nvmetal_core::queue::Doorbell::ring(&doorbell, 1);
        assert!(matches!(transport.unmap(iova, 0x2000), Ok(Unmapped::Quiet)));
        transport.reset().expect("reset");
    });
}

#[cfg(feature = "emulated")]
mod against_the_emulator {
    use std::sync::atomic::{AtomicBool, Ordering};

    use nvmetal_emulator::Options;
    use nvmetal_emulator::serve::{Server, Trust};

    use super::*;
    use crate::blocking::{BlockingOptions, BlockingQueue};
    use crate::{Admin, Controller, ControllerOptions, Wait};

    /// Ends the server also when an assertion fails.
    struct Stops<'a>(&'a AtomicBool);

    impl Drop for Stops<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    fn with_server(model: &str, client: impl FnOnce(&Path)) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("drive");
        let server = Server::bind(&path, Options::parse(model).expect("a model"), Trust::Sealed).expect("a server");
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let _stops = Stops(&stop);
            scope.spawn(|| server.run(&|| stop.load(Ordering::Relaxed), &mut |_| {}).expect("served"));
            client(&path);
        });
    }

    #[test]
    fn the_identifiers_by_which_the_emulator_is_known_are_its_own() {
        assert_eq!(EMULATOR, (nvmetal_emulator::pci_config::VENDOR, nvmetal_emulator::pci_config::DEVICE));
    }

    #[test]
    fn what_is_written_over_a_socket_is_read_by_the_next_client() {
        with_server("ideal,capacity=64MiB", |path| {
            let data: Vec<u8> = (0..=255).cycle().take(128 << 10).collect();
            for (wait, writes) in [(Wait::Poll, true), (Wait::Interrupt, false)] {
                let transport = VfioUserTransport::open(path).expect("a device");
                assert!(transport.info().emulated && transport.info().detail.contains("mapped"));
                let options = ControllerOptions { interrupts: true, ..ControllerOptions::default() };
                let controller = Controller::open(transport, options).expect("a controller");
                let namespace = controller.namespace(1).expect("a namespace");
                let options = BlockingOptions { wait, ..BlockingOptions::default() };
                let mut queue = BlockingQueue::new(&controller, namespace, options).expect("a queue");
                if writes {
                    queue.write_at(3584, &data).expect("written");
                }
                let mut back = vec![0; data.len()];
                queue.read_at(3584, &mut back).expect("read");
                assert!(back == data, "by {wait:?}");
                drop(queue);
                assert!(controller.shutdown().expect("down").complete);
            }
        });
    }

    #[test]
    fn a_write_that_fails_arrives_as_the_status_that_it_is() {
        with_server("ideal,capacity=64MiB,fault=write-error@2", |path| {
            let transport = VfioUserTransport::open(path).expect("a device");
            let controller = Controller::open(transport, ControllerOptions::default()).expect("a controller");
            let namespace = controller.namespace(1).expect("a namespace");
            let mut queue = BlockingQueue::new(&controller, namespace, BlockingOptions::default()).expect("a queue");
            queue.write_at(0, &[1; 4096]).expect("the first is well");
            let error = queue.write_at(0, &[2; 4096]).expect_err("the second fails");
            assert!(error.to_string().contains("Write Fault"), "{error}");
            let mut back = [0; 4096];
            queue.read_at(0, &mut back).expect("read");
            assert_eq!(back, [1; 4096], "what was there is there");
        });
    }

    #[test]
    fn a_server_that_goes_away_is_lost_and_nothing_is_waited_for() {
        let mut kept = None;
        with_server("null", |path| {
            let transport = VfioUserTransport::open(path).expect("a device");
            assert!(!transport.signals().lost);
            kept = Some(transport);
        });
        let transport = kept.expect("it was opened");
        assert!(transport.signals().lost);
        assert!(matches!(transport.read32(0x1c), Err(TransportError::Lost { .. })));
        assert!(matches!(transport.reset(), Err(TransportError::Lost { .. })));
        assert!(matches!(transport.unmap(0x1_0000_0000, 0x1000), Ok(Unmapped::Quiet)));
        let error = Controller::open(transport as Arc<dyn Transport>, ControllerOptions::default()).expect_err("lost");
        assert!(error.is_lost(), "{error}");
    }
}
