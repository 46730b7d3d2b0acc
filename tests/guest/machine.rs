//! What the tests know of the machine, all of it from the kernel: its drives, who has them, what is written on them; and
//! ways to run the program and to keep others busy with a drive.
#![forbid(unsafe_code)]

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

/// How often the kernel is asked again, and how many times, before a wait has failed: a minute in all.
const PAUSE: Duration = Duration::from_millis(50);
const PAUSES: u32 = 1200;

/// A user to whom nothing belongs.
const NOBODY: u32 = 65534;

/// Waits until the kernel says what is expected.
#[track_caller]
pub fn wait_for<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    for _ in 0..PAUSES {
        if let Some(found) = found() {
            return found;
        }
        #[expect(clippy::disallowed_methods, reason = "the kernel and another process are waited for")]
        std::thread::sleep(PAUSE);
    }
    panic!("waited a minute in vain: {what}");
}

/// The kernel's interfaces to VFIO that this guest must have.
pub fn interfaces() -> Vec<String> {
    variable("GUEST_IOMMU").split_whitespace().map(str::to_owned).collect()
}

fn variable(name: &str) -> String {
    assert_eq!(std::env::var("NVMETAL_VM").as_deref(), Ok("1"), "these overwrite drives: only in the guest");
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run tools/vm/tests/guest"))
}

/// A drive of the guest.
pub struct Drive {
    /// Its PCI address, `0000:01:00.0`.
    pub address: String,
}

/// All of them, with the kernel, and without anything at their beginning that could be a use.
pub fn drives() -> Vec<Drive> {
    let addresses = variable("VM_BDFS");
    let drives: Vec<Drive> = addresses
        .split([' ', ','])
        .filter(|address| !address.is_empty())
        .map(|address| Drive { address: address.to_owned() })
        .collect();
    for drive in &drives {
        drive.begins_with_the_kernel();
        let disk = drive.disk();
        let mut node = OpenOptions::new().write(true).open(&disk).expect("the disk opens");
        node.write_all(&vec![0; 1 << 20]).expect("the disk can be written");
        node.sync_all().expect("the disk can be flushed");
    }
    drives
}

/// The first one.
pub fn drive() -> Drive {
    drives().swap_remove(0)
}

impl Drive {
    fn sysfs(&self, name: &str) -> String {
        format!("/sys/bus/pci/devices/{}/{name}", self.address)
    }

    /// Puts it back where a failed test has left it elsewhere, so that one failure is not the next one's, too.
    fn begins_with_the_kernel(&self) {
        if self.driver() != "nvme" {
            fs::write(self.sysfs("driver_override"), "\n").expect("the override can be cleared");
            // Without a driver there is nothing to unbind.
            let _ = fs::write(self.sysfs("driver/unbind"), &self.address);
            fs::write("/sys/bus/pci/drivers_probe", &self.address).expect("a driver can be looked for");
        }
    }

    /// The name of the driver that has it; empty for none.
    pub fn driver(&self) -> String {
        let link = fs::read_link(self.sysfs("driver")).unwrap_or_default();
        link.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Its first namespace as the kernel's disk, `/dev/nvme0n1`.
    #[track_caller]
    pub fn disk(&self) -> String {
        wait_for("the kernel finds the namespace", || {
            let controller = fs::read_dir(self.sysfs("nvme")).ok()?.flatten().next()?;
            let entries = fs::read_dir(controller.path()).ok()?.flatten();
            let mut names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
            let name = names.find(|name| name.starts_with("nvme"))?;
            // `nvme0c0n1` is a path to the disk `nvme0n1`.
            let disk = match (name.rfind('c'), name.rfind('n')) {
                (Some(path), Some(namespace)) if path < namespace => format!("{}{}", &name[..path], &name[namespace..]),
                _ => name,
            };
            fs::exists(format!("/dev/{disk}")).ok()?.then(|| format!("/dev/{disk}"))
        })
    }

    /// The controller's own node, `/dev/nvme0`.
    #[track_caller]
    pub fn controller(&self) -> String {
        wait_for("the kernel takes the drive", || {
            let controller = fs::read_dir(self.sysfs("nvme")).ok()?.flatten().next()?;
            Some(format!("/dev/{}", controller.file_name().to_string_lossy()))
        })
    }

    /// The kernel's driver has it, nothing is set that would keep it from having it, and the disk can be read.
    #[track_caller]
    pub fn is_the_kernels(&self) {
        let forced = fs::read_to_string(self.sysfs("driver_override")).expect("the kernel knows the drive");
        assert_eq!((self.driver().as_str(), forced.trim()), ("nvme", "(null)"), "{}", self.address);
        run("dd", &[&format!("if={}", self.disk()), "of=/dev/null", "bs=4096", "count=1"]);
    }

    /// What the kernel reads at a place of the disk.
    pub fn read(&self, offset: u64, bytes: usize) -> Vec<u8> {
        let mut data = vec![0; bytes];
        fs::File::open(self.disk())
            .and_then(|disk| disk.read_exact_at(&mut data, offset))
            .expect("the disk can be read");
        data
    }

    /// Lets the kernel write to a place of the disk, and waits until it is on the drive.
    pub fn write(&self, offset: u64, data: &[u8]) {
        let disk = OpenOptions::new().write(true).open(self.disk()).expect("the disk opens");
        disk.write_all_at(data, offset).expect("the disk can be written");
        disk.sync_all().expect("the disk can be flushed");
    }

    /// A sum over the first MIB mebibytes, as the kernel reads them.
    pub fn checksum(&self, mib: u32) -> String {
        let script = format!("dd if={} bs=1M count={mib} iflag=direct 2>/dev/null | md5sum", self.disk());
        String::from_utf8_lossy(&run("sh", &["-c", &script]).stdout).into_owned()
    }
}

/// What the program did.
pub struct Done {
    /// Its exit code; 128 and the signal's number when a signal ended it, as a shell says it.
    pub code: i32,
    /// Its result.
    pub out: String,
    /// All the rest.
    pub err: String,
    words: String,
}

/// Runs the program to its end.
pub fn nvmetal(words: &[&str]) -> Done {
    nvmetal_begin(words).end()
}

/// The program while it runs.
pub struct Running {
    /// Not there any more when its end has been waited for.
    child: Option<Child>,
    words: String,
}

/// Runs the program to its end as a user who may nothing.
pub fn nvmetal_as_nobody(words: &[&str]) -> Done {
    use std::os::unix::process::CommandExt;
    begin(Command::new(variable("NVMETAL_BIN")).uid(NOBODY).gid(NOBODY), words).end()
}

/// Starts the program.
pub fn nvmetal_begin(words: &[&str]) -> Running {
    begin(&mut Command::new(variable("NVMETAL_BIN")), words)
}

fn begin(program: &mut Command, words: &[&str]) -> Running {
    let child = program
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    Running { child: Some(child), words: format!("nvmetal {}", words.join(" ")) }
}

impl Running {
    /// Waits until it has the drive and is busy with it: opening a drive is mostly waiting, I/O is not.
    #[track_caller]
    pub fn is_busy_with(&mut self, drive: &Drive) {
        wait_for("the program takes the drive", || {
            let ended = self.child.as_mut().expect("not waited for").try_wait().expect("the program can be asked");
            assert!(ended.is_none(), "{} ended before it was stopped: {ended:?}", self.words);
            (drive.driver() == "vfio-pci").then_some(())
        });
        let at_first = self.processor_ticks();
        wait_for("the program does I/O", || (self.processor_ticks() > at_first + 200).then_some(()));
    }

    /// Hundredths of a second of processor time that it took.
    fn processor_ticks(&self) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid())).expect("the program runs");
        let after_name = stat.rsplit(')').next().expect("there is a name");
        after_name.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().expect("a number")).sum()
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("not waited for").id()
    }

    /// Sends it a signal: `INT`, `TERM`, `KILL`.
    pub fn signal(&self, name: &str) {
        run("kill", &[&format!("-{name}"), &self.pid().to_string()]);
    }

    /// Waits for its end.
    pub fn end(mut self) -> Done {
        use std::os::unix::process::ExitStatusExt;
        let Output { status, stdout, stderr } =
            self.child.take().expect("not waited for").wait_with_output().expect("the program ends");
        let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).expect("one of the two");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the program writes UTF-8");
        Done { code, out: text(stdout), err: text(stderr), words: self.words.clone() }
    }
}

/// A test that failed leaves no run behind that would hold the drive.
impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Done {
    /// It ended with this code.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "exit code of {}\n{}{}", self.words, self.out, self.err);
        self
    }

    /// Its result, which must be JSON and nothing else.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out)
            .unwrap_or_else(|error| panic!("{}: {error}\n{}{}", self.words, self.out, self.err))
    }

    /// It wrote no result, and one sentence of error that holds the words; before it at most a note on the device.
    #[track_caller]
    pub fn says(&self, words: &[&str]) {
        assert_eq!(self.out, "", "{}", self.words);
        // Lines are wrapped for the terminal.
        let text = self.err.split_whitespace().collect::<Vec<_>>().join(" ");
        let (before, error) = text.split_once("error: ").unwrap_or_else(|| panic!("{}: {text}", self.words));
        assert!(before.is_empty() || before.starts_with("note: "), "{}: {text}", self.words);
        assert!(!error.contains("error: ") && !text.contains("panicked"), "{}: {text}", self.words);
        for word in words {
            assert!(error.contains(word), "{}: `{word}` is not in: {text}", self.words);
        }
    }
}

/// Runs one of the guest's programs, which must succeed.
#[track_caller]
pub fn run(program: &str, words: &[&str]) -> Output {
    let done = Command::new(program).args(words).stdin(Stdio::null()).output();
    let done = done.unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(done.status.success(), "{program} {words:?}: {}", String::from_utf8_lossy(&done.stderr));
    done
}

/// A shell that has done something to a drive and undoes it when dropped, also by a test that fails.
pub struct Shell {
    child: Child,
}

impl Shell {
    /// Does BEFORE, and AFTER when it is dropped.
    #[track_caller]
    pub fn holding(before: &str, after: &str) -> Self {
        Self::start(Command::new("sh"), before, after)
    }

    /// The same, in a mount namespace of its own.
    #[track_caller]
    pub fn apart(before: &str, after: &str) -> Self {
        let mut command = Command::new("unshare");
        command.args(["-m", "sh"]);
        Self::start(command, before, after)
    }

    #[track_caller]
    fn start(mut command: Command, before: &str, after: &str) -> Self {
        let script = format!("set -e; {before}; echo held; read line || true; {after}");
        let mut child = command
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the shell starts");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        assert!(output.lines().any(|line| line.is_ok_and(|line| line == "held")), "`{before}` failed");
        Self { child }
    }

    /// The shell's process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let undone = self.child.wait();
        if !std::thread::panicking() {
            assert!(undone.expect("the shell ends").success(), "what the shell did could not be undone");
        }
    }
}
