"""What one run brings into the guest: the command, its files and the run's settings.

It reaches the guest as a small ext4 file system on a read-only disk, which the guest mounts and links into its
own root. Nothing is copied and only what is used is read, so a large test program or tool costs no time. The
disk always has the same size, because a saved guest has already looked at it.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from collections.abc import Sequence

from messages import Refused

DISK_BYTES = 1 << 30
LARGEST_BYTES = DISK_BYTES * 9 // 10
# No journal and few, late inode tables: the file system is made anew in every run and only read.
MAKE_OPTIONS = ["-q", "-F", "-t", "ext4", "-O", "^has_journal,^resize_inode", "-m", "0", "-b", "4096", "-i", "131072"]
EXTENDED_OPTIONS = "lazy_itable_init=1,nodiscard,root_owner=0:0"


class Payload:
    """The disk in the making. A name counts once; the first wins."""

    def __init__(self, staging: Path) -> None:
        self._staging = staging
        self._bytes = 0
        staging.mkdir()

    def add(self, name: str, data: bytes, mode: int = 0o755) -> None:
        """A file at the place NAME of the guest."""
        file = self._staging / os.path.normpath(f"/{name}").lstrip("/")
        if file.exists():
            return
        self._bytes += len(data)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        file.chmod(mode | 0o400)

    def write(self, disk: Path, mke2fs: Sequence[str]) -> None:
        """Make the disk; MKE2FS is how to run the program of that name."""
        if self._bytes > LARGEST_BYTES:
            raise Refused(f"the command and its files are {self._bytes >> 20} MiB, above {LARGEST_BYTES >> 20} MiB")
        with open(disk, "wb") as file:
            os.truncate(file.fileno(), DISK_BYTES)
        words = [*mke2fs, *MAKE_OPTIONS, "-E", EXTENDED_OPTIONS, "-d", str(self._staging), str(disk)]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def command_script(command: Sequence[str], environment: Sequence[str]) -> bytes:
    """The shell text that the guest runs: every word and value reaches the command unchanged."""
    lines = [f"export {shlex.quote(pair)}" for pair in environment]
    lines.append(f"exec {shlex.join(command)}")
    return "".join(f"{line}\n" for line in lines).encode()


def run_settings(driver: str, drives: int, disks: int, modules: list[str], unsafe_noiommu: bool) -> bytes:
    """What init.sh must know about this run."""
    settings: dict[str, object] = {
        "DRIVER": driver,
        "DRIVES": drives,
        "DISKS": disks,
        "RUN_MODULES": " ".join(modules),
        "UNSAFE_NOIOMMU": int(unsafe_noiommu),
    }
    return "".join(f"{name}={shlex.quote(str(value))}\n" for name, value in settings.items()).encode()


def split_file_option(option: str) -> tuple[Path, str]:
    """`SRC[:DST]`: a file of this machine and its place in the guest (the same place when not given)."""
    source, _, place = option.partition(":")
    return Path(source), place or str(Path(source).absolute())
