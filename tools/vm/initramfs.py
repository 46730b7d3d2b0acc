"""The guest's first file system: busybox, the modules every run needs, and `init.sh`.

It is the same for every run of a lane, whatever the command, so that one saved guest serves all of them. What
a run adds comes later, through the payload.
"""

from __future__ import annotations

from pathlib import Path

from cpio import Cpio
from modules import Modules

INIT = Path(__file__).parent / "init.sh"
# In this order, since VFIO's own dependencies do not name the IOMMU drivers that it looks for at run time.
ALWAYS = (
    "virtio_pci",
    "virtio_blk",
    "virtio_console",
    "irqbypass",
    "iommufd",
    "vfio",
    "vfio_iommu_type1",
    "vfio-pci",
    "nvme",
)
ACCOUNTS = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n"
GROUPS = "root:x:0:\nnogroup:x:65534:\n"


def build(busybox: bytes, modules: Modules, extra: list[str], huge_pages: int) -> bytes:
    """The archive. EXTRA modules are loaded before the others."""
    archive = Cpio()
    archive.add("bin/busybox", busybox)
    archive.add("init", INIT.read_bytes())
    archive.add("etc/passwd", ACCOUNTS.encode(), 0o644)
    archive.add("etc/group", GROUPS.encode(), 0o644)
    archive.add("etc/hostname", b"nvmetal-vm\n", 0o644)
    for folder in ("proc", "sys", "dev", "tmp", "run", "root", "mnt", "payload", "sbin", "usr/bin", "usr/sbin"):
        archive.folder(folder)
    wanted = [*extra, *(name for name in ALWAYS if modules.has(name))]
    ordered = modules.in_load_order(wanted)
    for name, data in ordered:
        archive.add(f"vm/modules/{name}.ko", data, 0o644)
    settings = f"MODULES='{' '.join(name for name, _ in ordered)}'\nHUGE_PAGES={huge_pages}\n"
    archive.add("vm/settings", settings.encode(), 0o644)
    return archive.finish()
