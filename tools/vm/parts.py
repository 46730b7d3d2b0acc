"""The parts of a virtual machine, each fetched or built when a run first needs it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import kernel
import rebuild
from cache import Cache
from debian import RELEASE, Archive, Root
from kernel import Kernel
from lanes import Lane
from modules import Modules

HOST_TOOLS = ("qemu-system-x86", "busybox-static", "e2fsprogs", "zstd", "xz-utils")
QEMU = "usr/bin/qemu-system-x86_64"


@dataclass(frozen=True)
class Parts:
    """Everything that does not depend on the run's options."""

    host_tools: Root
    kernel: Kernel
    modules: Modules

    def emulator(self) -> list[str]:
        """How to run QEMU: its firmware files are where it was unpacked, not where it was made for."""
        share = self.host_tools.path / "usr/share"
        return [*self.host_tools.command(QEMU), "-L", str(share / "qemu"), "-L", str(share / "seabios")]

    def environment(self) -> dict[str, str]:
        """What QEMU must find in its environment: the emulation itself is a loadable module of it."""
        return {"QEMU_MODULE_DIR": str(self.host_tools.path / "usr/lib/x86_64-linux-gnu/qemu")}

    def emulator_file(self) -> Path:
        """QEMU's program file."""
        return self.host_tools.path / QEMU

    def mke2fs(self) -> list[str]:
        """How to make the payload's file system."""
        return self.host_tools.command("sbin/mke2fs")

    def busybox(self) -> bytes:
        """The guest's commands."""
        return (self.host_tools.path / "bin/busybox").read_bytes()


def get(cache: Cache, archive: Archive, lane: Lane) -> Parts:
    """The parts of LANE."""
    tools = cache.entry(
        f"qemu-{lane.name}", lambda folder: archive.unpack_with_dependencies(HOST_TOOLS, lane.suite, folder)
    )
    root = Root(tools)
    linux = kernel.fetch(cache, archive, lane, root)
    rebuilt = [rebuild.modules(cache, archive, lane, linux, root)] if lane.rebuilds_vfio else []
    return Parts(root, linux, Modules(linux.modules, rebuilt))


def package(cache: Cache, archive: Archive, name: str) -> Root:
    """A Debian package for the guest, with all it depends on."""
    return Root(
        cache.entry(f"package-{name}", lambda folder: archive.unpack_with_dependencies([name], RELEASE, folder))
    )
