//! A controller in another process: the real binary as server and as client, over a socket.
//!
//! Time is real here, so nothing depends on how fast things are, only on what comes of them. Every process that a test
//! starts is ended by the test, by its handle.
#![forbid(unsafe_code)]

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Stdio};
use std::time::Duration;

use support::{Ran, command, nvmetal};
use tempfile::TempDir;

/// A server in a process of its own, and the folder that its socket is in.
struct Server {
    process: Child,
    /// What it says of its clients, a line each.
    says: BufReader<ChildStderr>,
    socket: PathBuf,
    folder: TempDir,
}

impl Server {
    fn start(model: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self::start_in(folder, model)
    }

    fn start_in(folder: TempDir, model: &str) -> Self {
        let socket = folder.path().join("drive");
        let words = ["emulator", "serve", "--socket", socket.to_str().expect("a path in UTF-8"), model];
        let mut process =
            command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
        let mut line = String::new();
        let mut out = BufReader::new(process.stdout.take().expect("a pipe"));
        out.read_line(&mut line).expect("a line");
        assert!(line.starts_with("EMULATED") && line.contains("listening"), "{line}");
        let says = BufReader::new(process.stderr.take().expect("a pipe"));
        Self { process, says, socket, folder }
    }

    fn device(&self) -> String {
        format!("vfio-user:{}", self.socket.display())
    }

    /// Reads what it says until a line has `part`.
    fn said(&mut self, part: &str) -> String {
        let mut line = String::new();
        while self.says.read_line(&mut line).expect("text") > 0 {
            if line.contains(part) {
                return line;
            }
            line.clear();
        }
        panic!("the server has ended without saying {part:?}");
    }

    fn run(&self, line: &str) -> Ran {
        nvmetal(&line.replace("DRIVE", &self.device()))
    }

    /// The server still answers a client that behaves.
    fn is_well(&self) {
        self.run("id DRIVE").exits(0).says(&["nvmetal EMULATED"]);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A client that reads until it is ended, and has begun to.
fn long_run(server: &Server) -> Child {
    let device = server.device();
    let words = ["bench", &device, "--runtime", "600", "--status-interval", "1", "-o", "json"];
    let mut child = command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
    let mut line = String::new();
    let mut progress = BufReader::new(child.stderr.take().expect("a pipe"));
    progress.read_line(&mut line).expect("a line of progress");
    assert!(line.contains("IOPS"), "{line}");
    // A pipe that nobody empties would stop it.
    std::thread::spawn(move || std::io::copy(&mut progress, &mut std::io::sink()));
    child
}

// ----------------------------------------------------------------------------------------------------- what it is for

#[test]
fn every_command_about_a_drive_works_over_a_socket() {
    let server = Server::start("ideal");
    for line in ["id ctrl DRIVE", "id ns DRIVE", "smart DRIVE"] {
        server.run(line).exits(0).says(&["EMULATED"]);
    }
    let document = server.run("bench DRIVE --size 1m --iodepth 8 -o json").exits(0).json();
    assert_eq!(document["read"]["ios"], 256);
    assert_eq!(document["emulated"], true);
    assert_eq!(document["device"]["transport"], "vfio-user");
    assert_eq!(document["device"]["transport_detail"], "doorbells mapped");
    assert_eq!(document["errors"]["failed"], 0, "{document}");
    for wait in ["interrupt", "hybrid"] {
        let document = server.run(&format!("bench DRIVE --size 1m --wait {wait} --numjobs 2 -o json")).exits(0).json();
        assert_eq!((&document["waiting"], &document["end"]), (&wait.into(), &"done".into()), "{document}");
    }
    server.run("bench DRIVE --size 64k --trace").exits(0).says(&["CAP", "Read"]);
}

#[test]
fn a_drive_behind_a_socket_is_validated_and_links_are_not_judged() {
    let server = Server::start("ideal");
    let document = server.run("validate DRIVE --quick -o json").exits(0).json();
    // How fast a machine is that runs both sides is not for a test to say, so the verdict as a whole is not looked at.
    let checks = document["checks"].as_array().expect("checks");
    let status = |id: &str| checks.iter().find(|check| check["id"] == id).map(|check| check["status"].clone());
    for (id, wanted) in [("identity", "PASS"), ("io.errors", "PASS"), ("smart.spare", "PASS"), ("link.speed", "SKIP")] {
        assert_eq!(status(id), Some(wanted.into()), "{id}: {document}");
    }
    assert_eq!(document["emulated"], true);
}

#[test]
fn a_fault_of_the_drive_arrives_as_the_status_that_it_is() {
    let server = Server::start("ideal,fault=read-error@100");
    let document = server.run("validate DRIVE --quick -o json").exits(3).json();
    let failed = document["checks"].as_array().expect("checks").iter().filter(|check| check["status"] == "FAIL");
    let failed: Vec<_> = failed.map(|check| check["id"].as_str().expect("an id")).collect();
    assert!(failed.contains(&"io.errors") && failed.contains(&"smart.media_errors"), "{failed:?}");
}

#[test]
fn a_drive_that_vanishes_behind_a_server_that_lives_is_lost() {
    let server = Server::start("ideal,removed@300");
    server.run("bench DRIVE --runtime 60").exits(7).says(&["device lost"]);
}

#[test]
fn a_command_that_is_never_answered_ends_the_run_in_its_time_and_the_next_client_finds_a_drive() {
    let server = Server::start("ideal,fault=timeout@50");
    let document = server.run("bench DRIVE --size 4m --iodepth 8 -o json").exits(7).json();
    assert_eq!(document["error"]["kind"], "timed-out", "{document}");
    server.is_well();
}

#[test]
fn reads_that_fail_are_counted_and_the_run_goes_on() {
    let server = Server::start("ideal,fault=read-error@50x3");
    let document = server.run("bench DRIVE --size 4m --iodepth 8 -o json").exits(1).json();
    assert_ne!(document["errors"]["failed"], 0, "{document}");
    let first = document["errors"]["first"].as_str().expect("it is told");
    assert!(first.contains("Unrecovered Read Error"), "{first}");
    assert_eq!(document["read"]["ios"].as_u64().map(|ios| ios > 900), Some(true), "{document}");
}

#[test]
fn the_models_are_listed_with_what_can_be_changed_of_them() {
    nvmetal("emulator models").exits(0).says(&["ideal", "null", "link", "genGxW", "read-error"]);
    let document = nvmetal("emulator models -o json").exits(0).json();
    assert!(document["models"].as_array().is_some_and(|models| models.len() >= 2), "{document}");
}

// ------------------------------------------------------------------------------------------------ one of the two dies

#[test]
fn a_server_that_is_killed_in_mid_run_ends_the_run_as_a_lost_drive() {
    let mut server = Server::start("null");
    let client = long_run(&server);
    server.process.kill().expect("it runs");
    let output = client.wait_with_output().expect("it ends");
    let ran = Ran::new("bench, server killed", &output).exits(7);
    assert_eq!(ran.json()["error"]["kind"], "device-lost");
}

#[test]
fn after_a_client_that_is_killed_in_mid_run_the_next_one_is_served() {
    let mut server = Server::start("null");
    for _ in 0..2 {
        let mut client = long_run(&server);
        client.kill().expect("it runs");
        client.wait().expect("it ends");
        server.said("is gone");
    }
    server.is_well();
}

/// Stops a process where it is, or lets it go on.
fn signal(process: &Child, signal: rustix::process::Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_child(process), signal).expect("it is there");
}

#[test]
fn a_server_that_stalls_is_given_up_within_the_deadlines() {
    use rustix::process::Signal;
    let server = Server::start("null");
    let client = long_run(&server);
    signal(&server.process, Signal::STOP);
    let output = client.wait_with_output().expect("it ends");
    let ran = Ran::new("bench, server stopped", &output).exits(7);
    let kind = ran.json()["error"]["kind"].clone();
    assert!(kind == "timed-out" || kind == "device-lost", "{kind}");
    // Nor does it take up a new client.
    let document = server.run("id DRIVE -o json").exits(7).json();
    assert_eq!(document["error"]["kind"], "device-lost", "{document}");
    signal(&server.process, Signal::CONT);
    server.is_well();
}

#[test]
fn a_server_takes_up_the_socket_of_one_that_was_killed_and_no_other_file() {
    let mut first = Server::start("null");
    let words = format!("emulator serve --socket {}", first.socket.display());
    nvmetal(&words).exits(5).says(&["listens there already"]);
    first.process.kill().expect("it runs");
    first.process.wait().expect("it ends");
    assert!(first.socket.exists(), "a killed server removes nothing");
    let folder = std::mem::replace(&mut first.folder, tempfile::tempdir().expect("a folder"));
    let second = Server::start_in(folder, "null");
    second.is_well();

    let file = second.folder.path().join("notes");
    std::fs::write(&file, "mine").expect("a file");
    nvmetal(&format!("emulator serve --socket {}", file.display())).exits(5).says(&["no socket"]);
    assert_eq!(std::fs::read(&file).expect("still there"), b"mine");
}

#[test]
fn a_server_ends_in_order_when_it_is_told_to() {
    let mut server = Server::start("ideal");
    let pid = rustix::process::Pid::from_child(&server.process);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
    assert_eq!(server.process.wait().expect("it ends").code(), Some(143));
    assert!(!server.socket.exists());
}

#[test]
fn a_socket_without_a_server_is_no_device() {
    nvmetal("id vfio-user:/nonexistent/drive").exits(2).says(&["/nonexistent/drive", "emulator serve"]);
    let mut server = Server::start("null");
    server.process.kill().expect("it runs");
    server.process.wait().expect("it ends");
    server.run("id DRIVE").exits(2).says(&["refused"]);
    server.run("link DRIVE").exits(2).says(&["in no slot"]);
    server.run("id DRIVE --via kernel").exits(2);
}

// --------------------------------------------------------------------------------------------------- a hostile client

/// A VERSION message: 0.1, without a text.
const VERSION: [u8; 20] = [1, 0, 1, 0, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0];

/// A request with this payload.
fn request(command: u16, payload: &[u8]) -> Vec<u8> {
    let bytes = u32::try_from(16 + payload.len()).expect("short").to_le_bytes();
    [&7_u16.to_le_bytes(), &command.to_le_bytes(), bytes.as_slice(), &[0; 8], payload].concat()
}

/// Connects and says which version is spoken.
fn connect(server: &Server) -> UnixStream {
    let mut stream = UnixStream::connect(&server.socket).expect("a server");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time");
    stream.write_all(&VERSION).expect("sent");
    let (error, _) = answer(&mut stream);
    assert_eq!(error, 0);
    stream
}

/// The error number and the payload of an answer.
fn answer(stream: &mut UnixStream) -> (u32, Vec<u8>) {
    let mut header = [0; 16];
    stream.read_exact(&mut header).expect("an answer");
    let number = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"));
    let mut payload = vec![0; number(4) as usize - 16];
    stream.read_exact(&mut payload).expect("its payload");
    (if number(8) & 0x20 == 0 { 0 } else { number(12) }, payload)
}

#[test]
fn requests_that_make_no_sense_are_refused_and_the_connection_goes_on() {
    let server = Server::start("null");
    let mut stream = connect(&server);
    let access = |offset: u64, region: u32, count: u32| {
        [offset.to_le_bytes().as_slice(), &region.to_le_bytes(), &count.to_le_bytes()].concat()
    };
    let dma = |flags: u32, offset: u64, iova: u64, bytes: u64| {
        let numbers = [offset.to_le_bytes(), iova.to_le_bytes(), bytes.to_le_bytes()].concat();
        [32_u32.to_le_bytes().as_slice(), &flags.to_le_bytes(), &numbers].concat()
    };
    let senseless: &[(u16, Vec<u8>)] = &[
        (0, Vec::new()),
        (99, vec![0; 64]),
        (4, Vec::new()),
        (5, vec![0xff; 32]),
        (5, vec![0; 31]),
        (7, vec![0xff; 16]),
        (8, vec![0xff; 20]),
        (9, access(0, 0, 3)),
        (9, access(2, 0, 4)),
        (9, access(u64::MAX - 3, 0, 4)),
        (9, access(0, 7, u32::MAX)),
        (9, access(0, 7, 4097)),
        (9, access(0, 8, 4)),
        (9, access(0, u32::MAX, 4)),
        (10, access(0x14, 0, 4)),
        (10, access(0, 0, u32::MAX)),
        (11, vec![0; 16]),
        (12, vec![0; 16]),
        (2, dma(3, 0, 0x1000, 0)),
        (2, dma(3, 0, 0x1001, 0x1000)),
        (2, dma(3, 0, u64::MAX - 0xfff, 0x2000)),
        (3, vec![0; 24]),
        (15, vec![0xff; 64]),
    ];
    for (command, payload) in senseless {
        stream.write_all(&request(*command, payload)).expect("sent");
        let (error, _) = answer(&mut stream);
        assert_ne!(error, 0, "command {command} with {payload:02x?}");
    }
    stream.write_all(&request(9, &access(8, 0, 4))).expect("sent");
    let (error, payload) = answer(&mut stream);
    assert_eq!((error, &payload[16..]), (0, [0_u8, 0, 2, 0].as_slice()), "VS is 2.0");
    drop(stream);
    server.is_well();
}

#[test]
fn bytes_that_are_no_message_end_the_connection_and_not_the_server() {
    let mut server = Server::start("null");
    let mut long = request(10, &[0; 16]);
    long[4..8].fill(0xff);
    let mut short = request(9, &[]);
    short[4] = 15;
    let mut reply = request(9, &[0; 16]);
    reply[8] = 1;
    let nonsense = [vec![0xff; 4096], vec![0; 4096], b"GET / HTTP/1.1\r\n\r\n".to_vec(), long, short, reply];
    for bytes in &nonsense {
        for begins_well in [false, true] {
            let mut stream =
                if begins_well { connect(&server) } else { UnixStream::connect(&server.socket).expect("a server") };
            // The server may have gone before all of it was sent.
            let _ = stream.write_all(bytes);
            server.said("was let go");
        }
    }
    // One that goes away in the middle of a message, and one that never says anything.
    let mut stream = connect(&server);
    stream.write_all(&request(10, &[0; 100])[..50]).expect("sent");
    drop(stream);
    server.said("is gone");
    let silent = UnixStream::connect(&server.socket).expect("a server");
    server.said("nothing came within");
    drop(silent);
    server.is_well();
}
