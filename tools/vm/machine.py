"""QEMU's command line: everything about the virtual machine but its drives' contents.

A q35 machine with an emulated Intel IOMMU, four root ports for drives, two serial lines (kernel console,
control) and a virtio-serial port each for the command's standard output and standard error. The IOMMU must
be the first device on the command line, so that it exists before what is to be behind it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from collections.abc import Sequence

from drives import MOST_DRIVES

IOMMUS = {
    "none": [],
    "intel": ["-device", "intel-iommu,intremap=on"],
    "virtio": ["-device", "virtio-iommu-pci"],
}
DEFAULT_PORT = "x-speed=16,x-width=4"
KERNEL_ARGUMENTS = "console=ttyS0 intel_iommu=on panic=-1 quiet mitigations=off"

# Backends hold no state that a saved guest would know of, so they do not tell one saved guest from another.
STATELESS_ARGUMENTS = ("-drive", "-blockdev", "-plugin", "-object")


@dataclass(frozen=True)
class Machine:
    """What QEMU is started with."""

    emulator: Sequence[str]
    """How to run QEMU itself."""
    emulator_file: Path
    """QEMU's program file."""
    environment: dict[str, str]
    cpu: str
    kernel: Path
    initramfs: Path
    memory: str
    smp: int
    iommu: str
    port: str
    append: str
    extra: Sequence[str]

    def start(self) -> list[str]:
        """The words that start QEMU with the guest's kernel."""
        return [*self.emulator, "-kernel", str(self.kernel), "-initrd", str(self.initramfs)]

    def hardware(self) -> list[str]:
        """The machine without drives and without the host's ends of its lines."""
        words = ["-machine", "q35", "-accel", "tcg", "-cpu", self.cpu, "-smp", str(self.smp), "-m", self.memory]
        words += ["-display", "none", "-no-reboot", "-nodefaults"]
        words += ["-append", f"{KERNEL_ARGUMENTS} {self.append}".strip()]
        words += IOMMUS[self.iommu]
        words += ["-device", "isa-serial,index=0,chardev=console", "-device", "isa-serial,index=1,chardev=control"]
        words += ["-device", "virtio-serial-pci"]
        words += ["-device", "virtserialport,name=out,chardev=out", "-device", "virtserialport,name=err,chardev=err"]
        words += ["-mon", "chardev=qmp,mode=control"]
        for number in range(MOST_DRIVES):
            words += ["-device", f"pcie-root-port,id=rp{number},chassis={number + 1},slot={number + 1},{self.port}"]
        words += ["-device", "virtio-blk-pci,drive=payload"]
        return words

    def identity(self) -> str:
        """What two machines must have in common so that a guest saved on one can go on on the other."""
        kept: list[str] = []
        words = iter(self.extra)
        for word in words:
            if word in STATELESS_ARGUMENTS:
                next(words, None)
            else:
                kept.append(word)
        return repr((list(self.emulator), self.hardware(), kept))
