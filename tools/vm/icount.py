"""Builds the plugin that counts guest instructions (icount.c) and hands it to QEMU."""

from __future__ import annotations

import hashlib
from pathlib import Path

from cache import Cache
from debian import host_compiler, run
from lanes import Lane
from messages import Refused

SOURCE = Path(__file__).parent / "icount.c"


def arguments(cache: Cache, lane: Lane, counts: str) -> list[str]:
    """QEMU's arguments that make it append the counts to the file COUNTS."""
    if not lane.counts_instructions:
        raise Refused(f"--icount-plugin: the QEMU of lane {lane.name} is too old for it")
    if "," in counts:
        raise Refused("--icount-plugin: no comma in the file's name, please")
    key = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]

    def build(folder: Path) -> None:
        flags = ["-shared", "-fPIC", "-fvisibility=hidden", "-O2", "-Wall", "-Wextra", "-Werror"]
        run([host_compiler(), *flags, "-o", str(folder / "icount.so"), str(SOURCE)])

    plugin = cache.entry(f"icount-{key}", build) / "icount.so"
    return ["-plugin", f"{plugin},out={Path(counts).absolute()}"]
