"""One run from the options to the exit code."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from collections.abc import Sequence

import drives
import icount
import initramfs
import parts
import payload
import programs
from cache import Cache
from debian import Archive, Root
from control import Report
from drives import Drives
from guest import Guest
from lanes import LANES
from machine import Machine
from messages import BenchError, Refused, say
from options import Options, parse
from qmp import QmpError
from snapshot import GuestNotSaved, Snapshots, restore

REPOSITORY = Path(__file__).resolve().parents[2]
VM_MODULE = Path(__file__).resolve().parent
REFUSED, TIME_LIMIT, GUEST_DIED = 2, 124, 125
OUTPUT_LOST = 128 + signal.SIGPIPE
CONSOLE_TAIL = 1500


@dataclass
class Attempt:
    """How one start of the guest ended."""

    code: int | None
    started: bool
    """Whether the command had started: then it is not tried again."""
    reason: str = ""


def run(options: Options) -> int:
    """Do what the options say; the exit code."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    planned = drives.plan(options.drives, options.namespaces, options.nvme, options.lba_bytes)
    cache = Cache.from_environment(os.environ)
    archive = Archive(cache)
    lane = LANES[options.lane]
    got = parts.get(cache, archive, lane)
    roots = {name: parts.package(cache, archive, name) for name in options.packages if name != "nvmetal"}
    nvmetal = nvmetal_binary() if options.command[:1] == ["nvmetal"] or "nvmetal" in options.packages else None
    counting = icount.arguments(cache, lane, options.instruction_counts) if options.instruction_counts else []
    if options.fetch_only:
        return 0

    with tempfile.TemporaryDirectory(prefix="nvmetal-vm.") as name:
        scratch = Path(name)
        write_payload(options, got, roots, nvmetal, planned, scratch)
        early = ["virtio_iommu"] if options.iommu == "virtio" else []
        image = initramfs.build(got.busybox(), got.modules, early, options.huge_pages)
        (scratch / "initramfs").write_bytes(image)
        machine = Machine(
            emulator=got.emulator(),
            emulator_file=got.emulator_file(),
            environment=got.environment(),
            cpu=lane.cpu,
            kernel=got.kernel.image,
            initramfs=scratch / "initramfs",
            memory=options.memory,
            smp=options.smp,
            iommu=options.iommu,
            port=options.port,
            append=options.append,
            extra=[*options.qemu_arguments, *counting],
        )
        saved = Snapshots(cache) if lane.restores and not options.boot and not planned.namespaces else None
        deadline = time.monotonic() + options.timeout
        return Run(options, machine, planned, scratch, saved, deadline).result()


class Run:
    """The guest's part of a run: started, and started again when it dies too early."""

    def __init__(
        self,
        options: Options,
        machine: Machine,
        planned: Drives,
        scratch: Path,
        saved: Snapshots | None,
        deadline: float,
    ) -> None:
        self.options, self.machine, self.planned, self.scratch = options, machine, planned, scratch
        self.saved, self.deadline = saved, deadline
        self.console = Path(options.console).absolute() if options.console else scratch / "console"

    def result(self) -> int:
        """The exit code, after at most `--retries` new starts."""
        for attempt in range(self.options.retries + 1):
            if attempt:
                say("starting again")
            ended = self.attempt()
            if ended.code is not None:
                if ended.reason:
                    say(ended.reason)
                return ended.code
            say(f"{ended.reason}; the end of its console:\n{self.console_tail()}")
            if ended.started:
                break
        return GUEST_DIED

    def attempt(self) -> Attempt:
        """Start the guest once."""
        try:
            with contextlib.ExitStack() as stack:
                backends = [word for device in self.planned.all() for word in device.backend(self.scratch)]
                if self.saved:
                    file = stack.enter_context(self.saved.restorable(self.machine, self.start, self.deadline))
                    guest = stack.enter_context(self.start(["-incoming", f"file:{file}", *backends]))
                else:
                    devices = [word for device in self.planned.all() for word in ("-device", device.line())]
                    guest = stack.enter_context(self.start([*backends, *devices]))
                stack.callback(guest.kill_at(self.deadline).cancel)
                return self.follow(guest)
        except GuestNotSaved as error:
            if time.monotonic() >= self.deadline:
                return Attempt(TIME_LIMIT, False, f"time limit of {self.options.timeout:g} s while booting")
            return Attempt(None, False, f"the guest could not be saved: {error}")

    def start(self, extra: Sequence[str] = ()) -> Guest:
        """A QEMU process."""
        return Guest(self.machine, self.scratch / "payload.img", self.console, extra, self.options.verbose)

    def follow(self, guest: Guest) -> Attempt:
        """Bring a started QEMU to the command's end."""
        control, report = guest.control, guest.control.report
        with contextlib.suppress(QmpError, OSError):
            if self.saved:
                restore(guest)
                refusal = self.plug_in(guest)
                if refusal:
                    return Attempt(REFUSED, False, refusal)
                guest.qmp.call("cont")
            else:
                control.serve_until_ready()
            control.go()
            control.serve_until_finished()
        if guest.output_lost:
            return Attempt(OUTPUT_LOST, True)
        if report.exit_code is not None:
            return self.judge(report)
        if time.monotonic() >= self.deadline:
            return Attempt(TIME_LIMIT, report.up is not None, f"time limit of {self.options.timeout:g} s")
        if report.failure is not None:
            say(f"the guest: {report.failure}; the end of its console:\n{self.console_tail()}")
            return Attempt(GUEST_DIED, True)
        status = guest.wait_for_own_end(5)
        if status == 1 and not report.up:
            return Attempt(REFUSED, False, "QEMU refused its arguments")
        when = "while the command ran" if report.up else "before the command started"
        return Attempt(None, report.up is not None, f"the guest died {when} (QEMU ended with {status})")

    def judge(self, report: Report) -> Attempt:
        """The end of a command that ended by itself."""
        if not report.dma_faults:
            return Attempt(report.exit_code, True)
        words = f"the IOMMU refused accesses of a device, at least {report.dma_faults} (dmesg in the guest names them)"
        return Attempt(GUEST_DIED if self.options.forbid_dma_faults else report.exit_code, True, words)

    def plug_in(self, guest: Guest) -> str | None:
        """Add the drives to a restored guest; QEMU's words when it refuses one."""
        for device in self.planned.all():
            words = guest.qmp.human(f"device_add {device.line()}").get("return", "").strip()
            if words:
                return f"QEMU refused the device {device.line()}: {words}"
        return None

    def console_tail(self) -> str:
        """The last words of the guest's kernel."""
        with contextlib.suppress(OSError):
            return self.console.read_text(errors="replace")[-CONSOLE_TAIL:]
        return "(nothing)"


def write_payload(
    options: Options,
    got: parts.Parts,
    roots: dict[str, Root],
    nvmetal: Path | None,
    planned: Drives,
    scratch: Path,
) -> None:
    """Make the payload's disk."""
    made = payload.Payload(scratch / "payload")
    environment = list(options.environment)
    command = list(options.command)
    for text in options.files:
        source, place = payload.split_file_option(text)
        programs.add_from_host(source, place, made.add)
    if nvmetal:
        programs.add_from_host(nvmetal, "/vm/bin/nvmetal", made.add)
        environment.append("NVMETAL_BIN=/vm/bin/nvmetal")
    if "/" in command[0] and Path(command[0]).is_file():
        place = f"/vm/bin/{Path(command[0]).name}"
        programs.add_from_host(Path(command[0]), place, made.add)
        command[0] = place
    for name, root in roots.items():
        programs.add_package(root, name, made.add)
    loaded = got.modules.in_load_order(options.modules)
    for name, data in loaded:
        made.add(f"/vm/run-modules/{name}.ko", data, 0o644)
    driver = options.driver or ("nvme" if command[0] == "nvmetal" or options.iommu == "none" else "vfio-pci")
    unsafe_noiommu = driver == "vfio-pci" and options.iommu == "none"
    if unsafe_noiommu and not LANES[options.lane].rebuilds_vfio:
        raise Refused(f"lane {options.lane} has no VFIO without IOMMU")
    names = [name for name, _ in loaded]
    settings = payload.run_settings(driver, len(planned.controllers), planned.disks(), names, unsafe_noiommu)
    made.add("/vm/run-settings", settings, 0o644)
    made.add("/vm/command", payload.command_script(command, environment), 0o644)
    made.add("/vm/bin/vmctl", (VM_MODULE / "vmctl.sh").read_bytes())
    made.write(scratch / "payload.img", got.mke2fs())


def nvmetal_binary() -> Path:
    """The command line under test: `NVMETAL_BIN`, else the release build, built when it is not there."""
    given = os.environ.get("NVMETAL_BIN")
    if given:
        return Path(given)
    target = Path(os.environ.get("CARGO_TARGET_DIR") or REPOSITORY / "target")
    binary = target / "release/nvmetal"
    if not binary.exists():
        say("building nvmetal (cargo build --release)")
        built = subprocess.run(["cargo", "build", "--release", "-p", "nvmetal"], cwd=REPOSITORY, stdout=2)
        if built.returncode:
            raise BenchError("nvmetal does not build")
    return binary


def main(words: Sequence[str]) -> int:
    """What `run` does."""
    try:
        return run(parse(words))
    except BenchError as error:
        say(str(error))
        return error.code
    except KeyboardInterrupt:
        return 130
