"""Saved guests: a guest that has booted and waits for its payload, kept as a file.

Booting takes seconds of emulation and is the same every time, so it is done once per machine (the hash of all
that shapes it is the file's name) and restored in a fraction of a second. QEMU does not save NVMe controllers,
so the guest is saved without any, and the drives are plugged in after the restore; the guest has not looked at
its payload's disk yet either. A few saved guests are kept, the least recently used go first.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from pathlib import Path
from typing import Callable
from collections.abc import Iterator

from cache import Cache
from guest import Guest
from machine import Machine
from messages import BenchError, say
from qmp import QmpError

MOST_KEPT = 8
BYTES_PER_SECOND = 16 << 30


class Snapshots:
    """The saved guests in the cache."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._folder = cache.directory / "snapshots"
        self._folder.mkdir(exist_ok=True)

    @contextlib.contextmanager
    def restorable(self, machine: Machine, boot: Callable[[], Guest], deadline: float) -> Iterator[Path]:
        """A saved guest for MACHINE, kept from being deleted meanwhile. `boot` starts one to save when needed."""
        key = identity(machine)
        file = self._folder / key
        if not file.exists():
            with self._cache.lock(f"snapshot-{key}", deadline=deadline):
                if not file.exists():
                    self._save(boot, file, deadline)
                    self._prune()
        with self._cache.lock(f"snapshot-{key}", shared=True, deadline=deadline):
            if not file.exists():
                raise BenchError("the saved guest was deleted meanwhile; run again")
            os.utime(file)
            yield file

    def _save(self, boot: Callable[[], Guest], file: Path, deadline: float) -> None:
        say("booting a guest to save (once for this machine)")
        new = file.with_suffix(".new")
        new.unlink(missing_ok=True)
        with boot() as guest:
            timer = guest.kill_at(deadline)
            try:
                guest.control.serve_until_ready()
                if not guest.control.report.ready:
                    raise GuestNotSaved(guest.control.report.failure or "it did not get ready")
                guest.qmp.call("stop")
                guest.qmp.call("migrate-set-parameters", max_bandwidth=BYTES_PER_SECOND)
                guest.qmp.call("migrate", uri=f"file:{new}")
                while (status := guest.qmp.call("query-migrate").get("status")) != "completed":
                    if status in ("failed", "cancelled"):
                        raise GuestNotSaved(f"migration {status}")
                    time.sleep(0.02)
            except QmpError as error:
                raise GuestNotSaved(str(error)) from error
            finally:
                timer.cancel()
        new.rename(file)

    def _prune(self) -> None:
        """Delete the least recently used beyond MOST_KEPT, except those that a run is using."""
        files = [f for f in self._folder.iterdir() if f.suffix != ".new"]
        by_age = sorted(files, key=lambda f: f.stat().st_mtime, reverse=True)
        for old in by_age[MOST_KEPT:]:
            with contextlib.suppress(BenchError, FileNotFoundError):
                with self._cache.lock(f"snapshot-{old.name}", deadline=0):
                    old.unlink()


class GuestNotSaved(Exception):
    """The guest that was to be saved died, or QEMU could not save it."""


def restore(guest: Guest) -> None:
    """Wait until a guest started with `-incoming` stands where it was saved."""
    while guest.qmp.call("query-status")["status"] == "inmigrate":
        time.sleep(0.005)


def identity(machine: Machine) -> str:
    """A name for all that shapes a booted guest: QEMU's arguments, and the files that it starts from."""
    sums = hashlib.sha256(machine.identity().encode())
    sums.update(machine.initramfs.read_bytes())
    for file in (machine.kernel, machine.emulator_file):
        stat = file.stat()
        sums.update(f"{file} {stat.st_size} {stat.st_mtime_ns}".encode())
    return sums.hexdigest()[:16]
