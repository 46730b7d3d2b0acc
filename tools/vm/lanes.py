"""The lanes: which QEMU runs which kernel.

`6.12` is the one to use. Its kernel has the modules the driver is about rebuilt: no Debian kernel sets
IOMMUFD, VFIO_DEVICE_CDEV or VFIO_NOIOMMU, so a stock one knows only VFIO's groups and containers. `6.1` is
stock Debian 12: type1 only, an IOVA space of 39 bits instead of 48, and MSI-X interrupts that cannot be
resized (NORESIZE), all of which a driver must live with.
"""

from __future__ import annotations

from dataclasses import dataclass

from debian import BACKPORTS, RELEASE


@dataclass(frozen=True)
class Lane:
    """One combination of QEMU and kernel."""

    name: str
    suite: str
    """Debian suite of both."""
    cpu: str
    """QEMU's -cpu. Without 5-level paging the guest's page walks are shorter, which emulation feels."""
    rebuilds_vfio: bool
    """Whether VFIO and iommufd are built from the kernel's source. Only then is there a mode without IOMMU."""
    restores: bool
    """Whether a saved guest can be restored (QEMU before 9 cannot migrate to a plain file)."""
    counts_instructions: bool
    """Whether QEMU takes the plugin that does (9.1 or later)."""


LANES = {
    "6.12": Lane("6.12", BACKPORTS, "max,la57=off", rebuilds_vfio=True, restores=True, counts_instructions=True),
    # QEMU 7.2 emulates cmpxchg16b in a way that crashes newer kernels; harmless to leave off here, too.
    "6.1": Lane(
        "6.1", RELEASE, "max,la57=off,cx16=off", rebuilds_vfio=False, restores=False, counts_instructions=False
    ),
}
DEFAULT_LANE = "6.12"
