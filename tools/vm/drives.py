"""The NVMe controllers and namespaces of a run, from `--drive`, `--namespace` and `--nvme`.

A drive or namespace is written `STORAGE[,PROPERTY=VALUE...]`, where STORAGE is

    1G           a file of that size, full of holes, thrown away after the run
    null:1G      no storage at all: reads give zeros, writes are forgotten (for speed)
    file:PATH    a raw image of yours, written to
    id:NAME      a backend that you define yourself with --qemu-arg (throttled, with injected errors, ...)

and the properties are those of QEMU's `nvme` (for --drive) or `nvme-ns` (for --namespace) device.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from collections.abc import Sequence

from messages import Refused

MOST_DRIVES = 4
SIZE = re.compile(r"(\d+)([KMGT]?)$")
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


@dataclass(frozen=True)
class Device:
    """One QEMU device and its storage."""

    device: str
    """The value of -device, without its `drive=`."""
    storage: str
    identifier: str
    """The storage's own name."""

    def backend(self, scratch: Path) -> list[str]:
        """QEMU's arguments for the storage; files without a name are made in SCRATCH."""
        kind, _, rest = self.storage.partition(":")
        if kind in ("", "id"):
            return []
        if kind == "null":
            spec = f"driver=null-co,read-zeroes=on,size={size_of(rest)}"
        elif kind == "file":
            if not Path(rest).is_file():
                raise Refused(f"no such image: {rest}")
            spec = f"format=raw,file={escaped(rest)}"
        else:
            image = scratch / f"{self.identifier}.img"
            with open(image, "wb") as file:
                os.truncate(file.fileno(), size_of(self.storage))
            spec = f"format=raw,discard=unmap,file={escaped(str(image))}"
        return ["-drive", f"if=none,id={self.backend_identifier},{spec}"]

    @property
    def backend_identifier(self) -> str:
        """What the device calls its storage."""
        kind, _, rest = self.storage.partition(":")
        return rest if kind == "id" else self.identifier

    def line(self) -> str:
        """The device as QEMU's -device and device_add take it."""
        return self.device + (f",drive={self.backend_identifier}" if self.storage else "")


@dataclass(frozen=True)
class Drives:
    """All devices of a run, controllers before their namespaces."""

    controllers: Sequence[Device]
    namespaces: Sequence[Device]

    def disks(self) -> int:
        """How many namespaces the kernel's driver will find."""
        detached = sum("detached=on" in namespace.device for namespace in self.namespaces)
        return sum(bool(c.storage) for c in self.controllers) + len(self.namespaces) - detached

    def all(self) -> list[Device]:
        """In the order in which QEMU must be told."""
        return [*self.controllers, *self.namespaces]


def plan(drives: Sequence[str], namespaces: Sequence[str], nvme: Sequence[str], lba_bytes: int) -> Drives:
    """The devices for the options. A single `--nvme` counts for every drive, else the n-th for the n-th."""
    if list(nvme) == ["none"]:
        if drives or namespaces:
            raise Refused("--nvme none leaves nothing for --drive or --namespace")
        return Drives([], [])
    if "none" in nvme:
        raise Refused("--nvme none cannot be combined with other --nvme options")
    drives = list(drives) or (["" if namespaces else "1G"])
    if len(drives) > MOST_DRIVES:
        raise Refused(f"there are root ports for {MOST_DRIVES} drives; more need --qemu-arg")
    if len(nvme) > 1 and len(nvme) != len(drives):
        raise Refused(f"{len(nvme)} --nvme options for {len(drives)} drives: give one, or one for each")

    controllers = []
    for number, drive in enumerate(drives):
        storage, own = split(drive)
        shared = nvme[number if len(nvme) > 1 else 0] if nvme else ""
        words = [f"nvme,id=nvme{number}"] + ([] if "bus=" in own else [f"bus=rp{number}"])
        if "serial=" not in f"{own},{shared}":
            words.append(f"serial=VM{number:04}")
        words += [block_size(f"{own},{shared}", lba_bytes)] if storage else []
        words += [w for w in (own, shared) if w]
        controllers.append(Device(",".join(w for w in words if w), storage, f"drive{number}"))
    spaces = []
    for number, namespace in enumerate(namespaces, start=1):
        storage, own = split(namespace)
        words = ["nvme-ns"]
        words += [] if "bus=" in own else ["bus=nvme0"]
        words += [] if "nsid=" in own else [f"nsid={number}"]
        words += [block_size(own, lba_bytes)]
        words += [own] if own else []
        spaces.append(Device(",".join(w for w in words if w), storage, f"namespace{number}"))
    return Drives(controllers, spaces)


def block_size(properties: str, lba_bytes: int) -> str:
    """What to add to PROPERTIES so that both block sizes are given: QEMU wants no logical above the physical one."""
    given = re.search(r"logical_block_size=(\w+)", properties)
    if "physical_block_size=" in properties:
        return ""
    if given:
        return f"physical_block_size={given.group(1)}"
    return f"logical_block_size={lba_bytes},physical_block_size={lba_bytes}"


def split(text: str) -> tuple[str, str]:
    """The storage and the properties of a drive as it is written on the command line."""
    storage, _, properties = text.partition(",")
    kind, colon, rest = storage.partition(":")
    if storage == "":
        return "", properties
    if kind not in ("null", "file", "id") and colon:
        raise Refused(f"{storage}: storage is SIZE, null:SIZE, file:PATH or id:NAME")
    if not colon or kind == "null":
        size_of(rest if colon else storage)
    elif not rest:
        raise Refused(f"{storage}: nothing after the colon")
    return storage, properties


def size_of(text: str) -> int:
    """Bytes of a size such as `64M`."""
    found = SIZE.match(text)
    if not found or int(found.group(1)) == 0:
        raise Refused(f"{text!r} is no size: a number and K, M, G or T")
    return int(found.group(1)) * UNITS[found.group(2)]


def escaped(path: str) -> str:
    """A path as a value in QEMU's option strings, where a comma separates."""
    return path.replace(",", ",,")
