"""VFIO and iommufd as modules, built for the very kernel the guest runs.

Debian's kernels have VFIO as modules but leave IOMMUFD, VFIO_DEVICE_CDEV and VFIO_NOIOMMU off. The rest of the
kernel needs no change for them, so the two folders are compiled from Debian's own kernel source against the
kernel's headers, with the options given by hand. Three files are special:

* `lib/interval_tree.c` is built into the kernel without the span iterator that iommufd wants; the iterator
  alone is compiled into iommufd;
* the folders' Makefiles read the kernel's configuration, where the options are off; short Kbuild files that
  name the objects take their place;
* the headers package refers to itself by the place where it would be installed; the reference is turned to
  where it was unpacked.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from cache import Cache
from debian import Archive, Root, host_compiler, run
from kernel import Kernel
from lanes import Lane
from messages import BenchError, say

SOURCES = ("drivers/vfio", "drivers/iommu/iommufd", "drivers/iommu/iommu-priv.h", "lib/interval_tree.c")
OPTIONS = ("CONFIG_IOMMUFD_MODULE", "CONFIG_VFIO_DEVICE_CDEV", "CONFIG_VFIO_NOIOMMU")
KBUILD = {
    "Kbuild": "subdir-ccflags-y += " + " ".join(f"-D{o}=1" for o in OPTIONS) + "\nobj-m += iommu/iommufd/ vfio/\n",
    "iommu/iommufd/Kbuild": """\
obj-m += iommufd.o
iommufd-y := device.o fault.o hw_pagetable.o io_pagetable.o ioas.o main.o pages.o vfio_compat.o span_iterator.o
""",
    "vfio/Kbuild": """\
obj-m += vfio.o vfio_iommu_type1.o pci/
vfio-y := vfio_main.o device_cdev.o group.o iommufd.o container.o virqfd.o
""",
    "vfio/pci/Kbuild": """\
obj-m += vfio-pci-core.o vfio-pci.o
vfio-pci-core-y := vfio_pci_core.o vfio_pci_intrs.o vfio_pci_rdwr.o vfio_pci_config.o
vfio-pci-y := vfio_pci.o vfio_pci_igd.o
""",
}
STOCK_MAKEFILES = ("vfio/Makefile", "vfio/pci/Makefile", "iommu/iommufd/Makefile")
SPAN_ITERATOR_HEAD = "#include <linux/interval_tree.h>\n#include <linux/compiler.h>\n#include <linux/kernel.h>\n"


def modules(cache: Cache, archive: Archive, lane: Lane, kernel: Kernel, host_tools: Root) -> Path:
    """The folder of rebuilt modules for KERNEL."""

    def build(folder: Path) -> None:
        compiler = host_compiler()
        with tempfile.TemporaryDirectory(dir=cache.directory, prefix="rebuild.") as scratch:
            headers, drivers = unpack(Path(scratch), archive, lane, kernel, host_tools)
            lay_out(drivers)
            say(f"building iommufd and VFIO for {kernel.release} (once)")
            compile_modules(headers, drivers, compiler)
            for module in drivers.rglob("*.ko"):
                shutil.copy(module, folder)

    return cache.entry(f"vfio-{kernel.release}", build)


def unpack(scratch: Path, archive: Archive, lane: Lane, kernel: Kernel, host_tools: Root) -> tuple[Path, Path]:
    """The kernel's headers, and the source folders to compile."""
    version = archive.field(f"linux-headers-{kernel.release}", lane.suite, "Version")
    series = re.sub(r"-cloud-amd64$", "", kernel.release)
    names = (f"linux-headers-{kernel.release}", f"linux-headers-{series}-common", f"linux-kbuild-{series}")
    packages = scratch / "packages"
    packages.mkdir()
    source_name = f"linux-source-{lane.name}"
    archive.unpack([f"{n}={version}" for n in (*names, source_name)], lane.suite, packages)

    installed = packages / "usr/src"
    headers = installed / f"linux-headers-{kernel.release}"
    makefile = headers / "Makefile"
    makefile.write_text(makefile.read_text().replace("/usr/src/", f"{installed}/"))
    # With a vmlinux there, the build would look for debugging information to go with the modules.
    (headers / "vmlinux").unlink(missing_ok=True)

    source = scratch / "source"
    source.mkdir()
    # xz takes the large archive apart with all processors, which Python's own module does not.
    expand = [*host_tools.command("usr/bin/xz"), "-dcq", "-T0", str(installed / f"{source_name}.tar.xz")]
    with subprocess.Popen(expand, stdout=subprocess.PIPE) as expander:
        wanted = [f"{source_name}/{name}" for name in SOURCES]
        subprocess.run(["tar", "-x", "-C", str(source), *wanted], stdin=expander.stdout, check=True)
    tree = source / source_name
    extract_span_iterator(tree)
    return headers, tree / "drivers"


def extract_span_iterator(tree: Path) -> None:
    """Put the span iterator of lib/interval_tree.c into a file of iommufd's."""
    text = (tree / "lib/interval_tree.c").read_text()
    text = text[text.index("#ifdef CONFIG_INTERVAL_TREE_SPAN_ITER") :]
    text = re.sub(r"#ifdef.*|#endif.*|EXPORT_SYMBOL\w*\([^)]*\);", "", text)
    (tree / "drivers/iommu/iommufd/span_iterator.c").write_text(SPAN_ITERATOR_HEAD + text)


def lay_out(drivers: Path) -> None:
    """Our Kbuild files in place of the Makefiles that ask the kernel's configuration."""
    for name in STOCK_MAKEFILES:
        (drivers / name).unlink()
    for name, text in KBUILD.items():
        (drivers / name).write_text(text)


def compile_modules(headers: Path, drivers: Path, compiler: str) -> None:
    """Build, and drop the debugging information."""
    command: list[str] = ["make", "-s", "-C", str(headers), f"M={drivers}", f"CC={compiler}"]
    command += [f"-j{os.cpu_count() or 1}", "modules"]
    made = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    found = [str(f) for f in drivers.rglob("*.ko")]
    if made.returncode or not found:
        raise BenchError(f"building the modules failed:\n{made.stdout[-3000:]}")
    run(["strip", "-g", *found])
