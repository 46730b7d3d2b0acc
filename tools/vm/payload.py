"""What one run brings into the guest: the command, its files and the run's settings.

It reaches the guest as a tar file on a read-only disk. The disk always has the same size, because a saved
guest has already looked at it.
"""

from __future__ import annotations

import io
import os
import shlex
import tarfile
from pathlib import Path
from typing import Dict, List, Sequence, Set, Tuple

from messages import Refused

DISK_BYTES = 1 << 30
BLOCK_BYTES = 256 << 10


class Payload:
    """The tar file in the making. A name counts once; the first wins."""

    def __init__(self) -> None:
        self._buffer = io.BytesIO()
        self._tar = tarfile.open(fileobj=self._buffer, mode="w", format=tarfile.GNU_FORMAT)
        self._names: Set[str] = set()

    def add(self, name: str, data: bytes, mode: int = 0o755) -> None:
        """A file at the place NAME of the guest."""
        name = name.strip("/")
        if name in self._names:
            return
        self._names.add(name)
        info = tarfile.TarInfo(name)
        info.size, info.mode = len(data), mode
        self._tar.addfile(info, io.BytesIO(data))

    def write(self, disk: Path) -> int:
        """Write the disk; how many blocks of it the guest must read."""
        self._tar.close()
        data = self._buffer.getbuffer()
        if len(data) > DISK_BYTES:
            raise Refused(f"the command and its files are {len(data) >> 20} MiB, more than {DISK_BYTES >> 20} MiB")
        with open(disk, "wb") as file:
            file.write(data)
        os.truncate(disk, DISK_BYTES)
        return -(-len(data) // BLOCK_BYTES)


def command_script(command: Sequence[str], environment: Sequence[str]) -> bytes:
    """The shell text that the guest runs: every word and value reaches the command unchanged."""
    lines = [f"export {shlex.quote(pair)}" for pair in environment]
    lines.append(f"exec {shlex.join(command)}")
    return "".join(f"{line}\n" for line in lines).encode()


def run_settings(driver: str, drives: int, disks: bool, modules: List[str]) -> bytes:
    """What init.sh must know about this run."""
    settings: Dict[str, object] = {
        "DRIVER": driver,
        "DRIVES": drives,
        "DISKS": int(disks),
        "RUN_MODULES": " ".join(modules),
    }
    return "".join(f"{name}={shlex.quote(str(value))}\n" for name, value in settings.items()).encode()


def split_file_option(option: str) -> Tuple[Path, str]:
    """`SRC[:DST]`: a file of this machine and its place in the guest (the same place when not given)."""
    source, _, place = option.partition(":")
    return Path(source), place or str(Path(source).absolute())
