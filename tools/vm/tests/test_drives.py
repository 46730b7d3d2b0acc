"""Drives and namespaces as they are written on the command line."""

import tempfile
import unittest
from pathlib import Path

import support  # noqa: F401

import drives
from messages import Refused


def lines(*given, namespaces=(), nvme=(), lba=512):
    """The devices of a plan as QEMU is told them."""
    return [device.line() for device in drives.plan(given, namespaces, nvme, lba).all()]


class DrivesTest(unittest.TestCase):
    def test_one_drive_is_there_when_nothing_is_said(self):
        self.assertEqual(
            lines(),
            ["nvme,id=nvme0,bus=rp0,serial=VM0000,logical_block_size=512,physical_block_size=512,drive=drive0"],
        )

    def test_none_means_no_drive(self):
        self.assertEqual(lines(nvme=["none"]), [])
        with self.assertRaises(Refused):
            lines("1G", nvme=["none"])
        with self.assertRaises(Refused):
            lines(nvme=["none", "mdts=3"])

    def test_each_drive_has_its_own_port_serial_and_storage(self):
        first, second = lines("1G", "null:2G", lba=4096)
        self.assertIn("id=nvme0,bus=rp0,serial=VM0000,logical_block_size=4096", first)
        self.assertIn("id=nvme1,bus=rp1,serial=VM0001,logical_block_size=4096", second)
        self.assertTrue(second.endswith(",drive=drive1"))

    def test_properties_given_once_count_for_all_and_else_for_one_each(self):
        self.assertTrue(all("mdts=3" in line for line in lines("1G", "1G", nvme=["mdts=3"])))
        first, second = lines("1G", "1G", nvme=["mdts=3", "mdts=4"])
        self.assertIn("mdts=3", first)
        self.assertIn("mdts=4", second)
        with self.assertRaises(Refused):
            lines("1G", "1G", "1G", nvme=["mdts=3", "mdts=4"])

    def test_what_a_drive_says_itself_is_not_said_again(self):
        (line,) = lines("1G,serial=MINE,bus=other,logical_block_size=4096")
        self.assertEqual(line.count("serial="), 1)
        self.assertEqual(line.count("bus="), 1)
        self.assertEqual(line.count("logical_block_size=4096"), 1)
        self.assertIn("physical_block_size=4096", line)

    def test_namespaces_come_after_a_controller_without_storage(self):
        controller, first, second = lines(namespaces=["64M", "null:1G,nsid=7,detached=on"])
        self.assertNotIn("drive=", controller)
        self.assertTrue(first.startswith("nvme-ns,bus=nvme0,nsid=1,"))
        self.assertIn("nsid=7,detached=on", second)
        self.assertNotIn("nsid=2", second)

    def test_disks_are_the_namespaces_that_are_attached(self):
        def disks(*given, namespaces=()):
            return drives.plan(given, namespaces, [], 512).disks()

        self.assertEqual(disks(), 1)
        self.assertEqual(disks("1G", "1G"), 2)
        self.assertEqual(disks(namespaces=["1G", "1G,detached=on"]), 1)
        self.assertEqual(disks("", "1G", namespaces=["1G", "1G"]), 3)

    def test_a_fifth_drive_has_no_port(self):
        with self.assertRaises(Refused):
            lines(*["1G"] * 5)

    def test_a_scratch_file_has_the_size_and_no_contents(self):
        with tempfile.TemporaryDirectory() as folder:
            (device,) = drives.plan(["3M"], [], [], 512).all()
            backend = device.backend(Path(folder))
            image = Path(folder) / "drive0.img"
            self.assertEqual(image.stat().st_size, 3 << 20)
            self.assertEqual(image.stat().st_blocks, 0)
            self.assertEqual(backend, ["-drive", f"if=none,id=drive0,format=raw,discard=unmap,file={image}"])

    def test_other_kinds_of_storage(self):
        with tempfile.TemporaryDirectory() as folder:
            image = Path(folder) / "a,b"
            image.write_bytes(b"")
            null, file, own = drives.plan(["null:2K", f"file:{folder}/plain", "id:mine"], [], [], 512).all()
            self.assertEqual(null.backend(Path(folder))[1], "if=none,id=drive0,driver=null-co,read-zeroes=on,size=2048")
            with self.assertRaises(Refused):
                file.backend(Path(folder))
            self.assertEqual(own.backend(Path(folder)), [])
            self.assertTrue(own.line().endswith(",drive=mine"))
            self.assertTrue(drives.escaped(str(image)).endswith("a,,b"))

    def test_a_word_that_is_no_storage_is_refused(self):
        for bad in ("0", "1X", "-1G", "1.5G", "null:", "null:x", "file:", "id:", "disk:1G", "G"):
            with self.assertRaises(Refused, msg=bad):
                lines(bad)

    def test_sizes(self):
        self.assertEqual(
            [drives.size_of(t) for t in ("7", "2K", "2M", "2G", "2T")], [7, 2048, 2 << 20, 2 << 30, 2 << 40]
        )


if __name__ == "__main__":
    unittest.main()
