"""Writes the archive that the kernel unpacks as its first root file system: cpio in the `newc` form.

The form is in the kernel's documentation (driver-api/early-userspace/buffer-format): a header of ASCII
hexadecimal numbers, the name, the data, each padded to four bytes, and an entry `TRAILER!!!` at the end.
Owners are root, times are zero, so that equal contents give equal archives: a saved guest is found again by
the contents of what it was started from.
"""

from __future__ import annotations

import posixpath
import stat


class Cpio:
    """An archive in the making. Folders above a name come by themselves; a name counts once."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._names: set[str] = {""}

    def add(self, name: str, data: bytes = b"", mode: int = 0o755) -> None:
        """A regular file."""
        self._put(name, data, stat.S_IFREG | mode)

    def folder(self, name: str) -> None:
        """A folder."""
        self._put(name, b"", stat.S_IFDIR | 0o755)

    def finish(self) -> bytes:
        """The archive."""
        self._parts.append(entry(0, "TRAILER!!!", b"", 0))
        self._names = {""}
        data, self._parts = b"".join(self._parts), []
        return data + b"\0" * (-len(data) % 512)

    def _put(self, name: str, data: bytes, mode: int) -> None:
        name = posixpath.normpath(name).strip("/")
        if name in self._names or name == ".":
            return
        above = posixpath.dirname(name)
        if above:
            self.folder(above)
        self._names.add(name)
        self._parts.append(entry(len(self._names), name, data, mode))


def entry(inode: int, name: str, data: bytes, mode: int) -> bytes:
    """One header with its name and data."""
    encoded = name.encode() + b"\0"
    links = 2 if stat.S_ISDIR(mode) else 1
    # inode, mode, user, group, links, time, size, device (2), its number (2), name length, checksum (unused)
    fields = (inode, mode, 0, 0, links, 0, len(data), 0, 0, 0, 0, len(encoded), 0)
    header = b"070701" + b"".join(b"%08X" % field for field in fields)
    return padded(header + encoded) + padded(data)


def padded(data: bytes) -> bytes:
    """DATA filled to a multiple of four bytes."""
    return data + b"\0" * (-len(data) % 4)
