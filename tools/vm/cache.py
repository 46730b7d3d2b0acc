"""The cache: what is fetched or built once and used by every run.

An entry is a folder that is either complete or absent: it is built beside its place under `NAME.new` and
renamed. Each entry has a lock file, so that two runs that start at once build it once, and so that nobody
deletes what another run is reading. A run that was killed leaves at most a `NAME.new`, which the next
builder of that entry removes.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import time
from pathlib import Path
from typing import Callable
from collections.abc import Iterator, Mapping

from messages import BenchError, say


# Changes when what an entry holds changes its meaning, so that nothing of an older bench is taken for ours.
VERSION = "1"


class Cache:
    """A folder of entries and their locks."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (directory / "locks").mkdir(parents=True, exist_ok=True)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Cache:
        """The folder the environment names: `NVMETAL_VM_CACHE`, else the user's cache folder."""
        return cls(place(environ))

    @contextlib.contextmanager
    def lock(self, name: str, shared: bool = False, deadline: float | None = None) -> Iterator[None]:
        """Hold the lock NAME. `deadline` is on the monotonic clock; past it the wait is given up."""
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        with open(self.directory / "locks" / name, "w") as file:
            told = False
            while True:
                try:
                    fcntl.flock(file, kind | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    pass
                if deadline is not None and time.monotonic() > deadline:
                    raise BenchError(f"another run holds the cache's lock {name}", code=124)
                if not told and not name.startswith("snapshot"):
                    say(f"waiting for another run to finish {name}")
                    told = True
                time.sleep(0.05)
            yield

    def entry(self, name: str, build: Callable[[Path], None]) -> Path:
        """The folder NAME; `build` fills it when there is none yet."""
        path = self.directory / name
        if path.is_dir():
            return path
        with self.lock(name):
            if not path.is_dir():
                new = self.directory / f"{name}.new"
                shutil.rmtree(new, ignore_errors=True)
                new.mkdir()
                try:
                    build(new)
                    new.rename(path)
                finally:
                    shutil.rmtree(new, ignore_errors=True)
        return path


def place(environ: Mapping[str, str]) -> Path:
    """Where the cache is."""
    if environ.get("NVMETAL_VM_CACHE"):
        return Path(environ["NVMETAL_VM_CACHE"]).absolute() / VERSION
    base = environ.get("XDG_CACHE_HOME") or os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".cache")
    return Path(base).absolute() / "nvmetal-vm" / VERSION
