"""Modules are loaded after what they need."""

import lzma
import tempfile
import unittest
from pathlib import Path

import support  # noqa: F401

from messages import Refused
from modules import Modules, depends_of


def module(*needed: str) -> bytes:
    """As much of a module as matters here."""
    return b"\x7fELF....\0license=GPL\0depends=" + ",".join(needed).encode() + b"\0name=x\0"


class ModulesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.stock = Path(folder.name) / "stock"
        self.rebuilt = Path(folder.name) / "rebuilt"
        (self.stock / "kernel/drivers").mkdir(parents=True)
        self.rebuilt.mkdir()
        (self.stock / "modules.builtin").write_text("kernel/fs/ext4/ext4.ko\nkernel/drivers/virtio-pci.ko\n")

    def put(self, name: str, data: bytes, folder=None):
        ((folder or self.stock / "kernel/drivers") / name).write_bytes(data)

    def names(self, *wanted: str):
        return [name for name, _ in Modules(self.stock, [self.rebuilt]).in_load_order(wanted)]

    def test_needed_modules_come_first_and_once(self):
        self.put("a.ko", module("b", "c"))
        self.put("b.ko", module("c"))
        self.put("c.ko", module())
        self.assertEqual(self.names("a", "b", "c"), ["c", "b", "a"])

    def test_dashes_and_underscores_are_the_same(self):
        self.put("vfio-pci.ko", module("vfio_pci_core"))
        self.put("vfio-pci-core.ko", module())
        self.assertEqual(self.names("vfio_pci"), ["vfio_pci_core", "vfio_pci"])
        self.assertEqual(self.names("vfio-pci"), ["vfio_pci_core", "vfio_pci"])

    def test_what_the_kernel_has_built_in_is_not_loaded(self):
        self.put("a.ko", module("ext4", "virtio_pci"))
        self.assertEqual(self.names("a", "ext4"), ["a"])

    def test_a_compressed_module_is_loaded_uncompressed(self):
        self.put("a.ko.xz", lzma.compress(module()))
        self.assertEqual(Modules(self.stock).in_load_order(["a"]), [("a", module())])

    def test_a_rebuilt_module_takes_the_place_of_the_stock_one(self):
        self.put("vfio.ko.xz", lzma.compress(module()))
        self.put("vfio.ko", module("iommufd"), self.rebuilt)
        self.put("iommufd.ko", module(), self.rebuilt)
        self.assertEqual(self.names("vfio"), ["iommufd", "vfio"])

    def test_modules_that_need_each_other_end(self):
        self.put("a.ko", module("b"))
        self.put("b.ko", module("a"))
        self.assertEqual(self.names("a"), ["b", "a"])

    def test_a_name_that_is_no_module_is_refused(self):
        with self.assertRaises(Refused):
            self.names("nosuch")

    def test_needs_are_read_from_the_module_itself(self):
        self.assertEqual(depends_of(module("a-b", "c")), ["a_b", "c"])
        self.assertEqual(depends_of(module()), [])
        self.assertEqual(depends_of(b"\0\0depend"), [])


if __name__ == "__main__":
    unittest.main()
