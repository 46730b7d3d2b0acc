"""The guest's kernel: Debian's cloud image, unpacked, and its modules.

QEMU can start an uncompressed Linux (the vmlinux inside the image) directly through its PVH entry. That saves
the guest its own decompression, which with zstd takes seconds when every instruction is emulated. A kernel
compressed in another way (6.1 uses LZ4, which is quick) is started as it is.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from cache import Cache
from debian import Archive, Root
from lanes import Lane
from messages import BenchError

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


@dataclass(frozen=True)
class Kernel:
    """An unpacked kernel package."""

    folder: Path
    release: str
    """As `uname -r` says it."""

    @property
    def image(self) -> Path:
        """What QEMU starts."""
        return self.folder / "image"

    @property
    def modules(self) -> Path:
        """The folder of its loadable modules."""
        return self.folder / "lib/modules" / self.release


def fetch(cache: Cache, archive: Archive, lane: Lane, host_tools: Root) -> Kernel:
    """The lane's kernel."""

    def build(folder: Path) -> None:
        depends = archive.field("linux-image-cloud-amd64", lane.suite, "Depends")
        package = re.search(r"linux-image-\S+", depends)
        if not package:
            raise BenchError(f"linux-image-cloud-amd64 depends on no image: {depends}")
        archive.unpack([package.group(0)], lane.suite, folder)
        image = next((folder / "boot").glob("vmlinuz-*")).read_bytes()
        payload = payload_of(image)
        if payload.startswith(ZSTD_MAGIC):
            image = decompress(payload, host_tools)
        (folder / "image").write_bytes(image)

    folder = cache.entry(f"kernel-{lane.name}", build)
    return Kernel(folder, next((folder / "lib/modules").iterdir()).name)


def payload_of(image: bytes) -> bytes:
    """The compressed vmlinux in a bzImage, by the header that Linux's boot protocol defines."""
    if image[0x202:0x206] != b"HdrS":
        raise BenchError("the kernel image has no boot header")
    setup_bytes = (image[0x1F1] + 1) * 512
    offset = int.from_bytes(image[0x248:0x24C], "little")
    length = int.from_bytes(image[0x24C:0x250], "little")
    return image[setup_bytes + offset : setup_bytes + offset + length]


def decompress(payload: bytes, host_tools: Root) -> bytes:
    """The vmlinux. The payload's last four bytes are its uncompressed size, which zstd does not expect."""
    command = host_tools.command("usr/bin/zstd") + ["-dcq"]
    return subprocess.run(command, input=payload[:-4], stdout=subprocess.PIPE, check=True).stdout
