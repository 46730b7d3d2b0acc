"""Which kernel modules the guest loads, and in what order.

Debian ships no list of what a module depends on (it is made when a kernel is installed), but each module
carries it: a string `depends=a,b` in its `.modinfo` section. A module that the kernel has built in is no file
and needs no loading; a name that is neither is an error, since a test that asked for it would test nothing.
"""

from __future__ import annotations

import lzma
import re
from pathlib import Path
from collections.abc import Iterable

from messages import Refused


def plain(name: str) -> str:
    """A module's name as the kernel compares it: `-` and `_` are the same."""
    return name.replace("-", "_")


class Modules:
    """The modules of one kernel, with folders of replacements."""

    def __init__(self, folder: Path, replacements: Iterable[Path] = ()) -> None:
        self.files: dict[str, Path] = {}
        for place in (folder, *replacements):
            for file in sorted(place.rglob("*.ko*")):
                self.files[plain(file.name.split(".ko")[0])] = file
        listing = folder / "modules.builtin"
        names = listing.read_text().split() if listing.exists() else []
        self.built_in: set[str] = {plain(Path(n).name.split(".ko")[0]) for n in names}

    def in_load_order(self, names: Iterable[str]) -> list[tuple[str, bytes]]:
        """The named modules after all that they depend on, each once, with their contents."""
        ordered: dict[str, bytes] = {}
        visiting: set[str] = set()

        def add(name: str) -> None:
            if name in ordered or name in self.built_in or name in visiting:
                return
            if name not in self.files:
                raise Refused(f"this kernel has no module {name}")
            visiting.add(name)
            data = read(self.files[name])
            for needed in depends_of(data):
                add(needed)
            ordered[name] = data

        for name in names:
            add(plain(name))
        return list(ordered.items())

    def has(self, name: str) -> bool:
        """Whether there is such a module, as a file or built in."""
        return plain(name) in self.files or plain(name) in self.built_in


def read(file: Path) -> bytes:
    """A module's contents, uncompressed."""
    data = file.read_bytes()
    return lzma.decompress(data) if file.suffix == ".xz" else data


def depends_of(module: bytes) -> list[str]:
    """The modules that a module names as needed."""
    found = re.search(rb"\0depends=([^\0]*)\0", module)
    return [plain(n) for n in found.group(1).decode("ascii", "replace").split(",") if n] if found else []
