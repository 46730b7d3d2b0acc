"""The command line of `run`, turned into settled values."""

from __future__ import annotations

import argparse
import os
import re
import shlex
from dataclasses import dataclass
from collections.abc import Sequence

from lanes import DEFAULT_LANE, LANES
from machine import DEFAULT_PORT, IOMMUS

DESCRIPTION = """\
Run one command in a throw-away virtual machine that has NVMe drives behind a real Linux IOMMU, VFIO and NVMe
driver (QEMU, emulated: no KVM, no root, no hardware). Its output is streamed, its exit code is passed on.

CMD with a slash in it is a file of this machine (it is taken along with its shared libraries). Without one it
is `nvmetal` (the release binary, built when missing), a program of --with, or an applet of busybox.
"""
EPILOG = """\
A drive or namespace is STORAGE[,PROPERTY=VALUE...]. STORAGE: 1G (a scratch file), null:1G (nothing behind it),
file:PATH (a raw image), id:NAME (a backend you define with --qemu-arg). Properties: QEMU's of nvme or nvme-ns.

In the guest: NVMETAL_VM=1; VM_BDF, VM_GROUP, VM_CDEV (first drive), VM_BDFS (all); VM_CTL, a serial line that
takes "hmp COMMAND" or "qmp {json}" for QEMU's monitor and answers with a line of JSON; `vmctl`, the same as a
command. With --with nvmetal also NVMETAL_BIN.

Exit code: the command's own; 124 time limit; 125 the guest died, could not run the command, or saw a forbidden
DMA fault; 126 the parts could not be fetched or built; 2 wrong option, or QEMU refused a device; 130, 143
interrupted, terminated; 141 nobody read the output any more.
"""


@dataclass(frozen=True)
class Options:
    """One run."""

    command: Sequence[str]
    lane: str
    boot: bool
    driver: str | None
    nvme: Sequence[str]
    drives: Sequence[str]
    namespaces: Sequence[str]
    lba_bytes: int
    files: Sequence[str]
    environment: Sequence[str]
    packages: Sequence[str]
    modules: Sequence[str]
    memory: str
    smp: int
    huge_pages: int
    iommu: str
    port: str
    append: str
    qemu_arguments: Sequence[str]
    instruction_counts: str | None
    forbid_dma_faults: bool
    timeout: float
    retries: int
    console: str | None
    fetch_only: bool
    verbose: bool


def parse(words: Sequence[str]) -> Options:
    """The options of a command line; exits with 2 and a usage message when they make no sense."""
    parser = build_parser()
    given = parser.parse_args(words)
    command = given.command[1:] if given.command[:1] == ["--"] else given.command
    if not command and not given.fetch:
        parser.error("no command")
    for pair in given.env:
        if not re.match(r"[A-Za-z_][A-Za-z0-9_]*(=|$)", pair):
            parser.error(f"--env {pair}: not NAME or NAME=VALUE")
    if given.timeout <= 0:
        parser.error("--timeout must be above 0")
    if given.smp < 1:
        parser.error("--smp must be 1 or more")
    nvme = [f"{n},mdts={given.mdts}".lstrip(",") for n in given.nvme or [""]] if given.mdts is not None else given.nvme
    append = f"{given.append} iommu=pt" if given.iommu_pt else given.append
    return Options(
        command=command,
        lane=given.lane,
        boot=given.boot,
        driver=given.driver,
        nvme=nvme,
        drives=given.drive,
        namespaces=given.namespace,
        lba_bytes=given.lba,
        files=given.file,
        environment=[pair for text in given.env for pair in variable(text)],
        packages=[name for text in given.with_ for name in text.split(",") if name],
        modules=[name for text in given.module for name in text.split(",") if name],
        memory=given.memory,
        smp=given.smp,
        huge_pages=given.huge_pages,
        iommu=given.iommu,
        port=given.port,
        append=append.strip(),
        qemu_arguments=[word for text in given.qemu_arg for word in shlex.split(text)],
        instruction_counts=given.icount_plugin,
        forbid_dma_faults=given.forbid_dma_faults,
        timeout=given.timeout,
        retries=given.retries,
        console=given.console,
        fetch_only=given.fetch,
        verbose=given.verbose,
    )


def variable(text: str) -> list[str]:
    """An --env option with its value, taken from our own environment where it names none; none if it is not set."""
    if "=" in text:
        return [text]
    return [f"{text}={os.environ[text]}"] if text in os.environ else []


def build_parser() -> argparse.ArgumentParser:
    """The parser, grouped as the help shows it."""
    parser = argparse.ArgumentParser(
        prog="tools/vm/run",
        description=DESCRIPTION,
        epilog=EPILOG,
        usage="%(prog)s [OPTION...] -- CMD [ARG...]",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    many: list[str] = []
    drives = parser.add_argument_group("drives")
    add = drives.add_argument
    add("--drive", action="append", default=many, metavar="SPEC", help="a drive; repeat for more (default: one of 1G)")
    add("--namespace", action="append", default=many, metavar="SPEC", help="a namespace of the first drive (boots)")
    add("--nvme", action="append", default=many, metavar="PROPS", help="properties for every drive, or 'none'")
    add("--lba", type=int, choices=(512, 4096), default=512, help="logical block size in bytes (default 512)")
    add("--mdts", type=int, metavar="N", help="largest transfer: 2^N memory pages (default 7)")
    add("--port", default=DEFAULT_PORT, metavar="PROPS", help=f"of the root ports (default {DEFAULT_PORT})")
    add(
        "--driver",
        choices=("vfio-pci", "nvme", "none"),
        help="who has the drives at the start (default: nvme for nvmetal, else vfio-pci)",
    )
    add("--bind", dest="driver", action="store_const", const="vfio-pci", help="the same as --driver vfio-pci")
    add("--no-bind", dest="driver", action="store_const", const="nvme", help="the same as --driver nvme")

    guest = parser.add_argument_group("what is in the guest")
    add = guest.add_argument
    add("--file", action="append", default=many, metavar="SRC[:DST]", help="take a file along")
    add(
        "--env",
        action="append",
        default=many,
        metavar="NAME[=VALUE]",
        help="a variable for the command; without a value, yours",
    )
    add(
        "--with",
        action="append",
        default=many,
        dest="with_",
        metavar="NAME,...",
        help="Debian packages to take along (fio, e2fsprogs, dmsetup, mdadm, nvme-cli, ...), or nvmetal itself",
    )
    add(
        "--module",
        action="append",
        default=many,
        metavar="NAME,...",
        help="kernel modules to load (dm-mod, raid1, xfs, nvmet, ...)",
    )

    machine = parser.add_argument_group("machine")
    add = machine.add_argument
    add(
        "--lane",
        choices=sorted(LANES),
        default=DEFAULT_LANE,
        help="6.12: QEMU 10, iommufd and type1 (default); 6.1: QEMU 7.2, type1 only",
    )
    add("--boot", action="store_true", help="boot instead of restoring a saved guest")
    add("--memory", default="512M", metavar="SIZE", help="of the guest (default 512M)")
    add("--smp", type=int, default=1, metavar="N", help="processors (default 1)")
    add("--huge-pages", type=int, default=16, metavar="N", help="2 MiB pages set aside (default 16)")
    add("--iommu", choices=sorted(IOMMUS), default="intel", help="default intel")
    add("--iommu-pt", action="store_true", help="the kernel's own drivers bypass the IOMMU (iommu=pt)")
    add("--append", default="", metavar="WORDS", help="for the kernel's command line")
    add("--icount-plugin", metavar="FILE", help="append counts of instructions between marks to FILE (icount.c)")
    add("--qemu-arg", action="append", default=many, metavar="WORDS", help="for QEMU; split as a shell would")

    run = parser.add_argument_group("run")
    add = run.add_argument
    add("--timeout", type=float, default=120, metavar="SECONDS", help="hard limit from start to end (default 120)")
    add("--retries", type=int, default=2, metavar="N", help="new starts when the guest dies before the command starts")
    add("--forbid-dma-faults", action="store_true", help="125 when the IOMMU refused an access of a device")
    add("--console", metavar="FILE", help="keep the kernel's console")
    add("--fetch", action="store_true", help="fetch and build all that the other options need, run nothing")
    add("-v", "--verbose", action="store_true", help="show QEMU's command line")
    parser.add_argument("command", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser
