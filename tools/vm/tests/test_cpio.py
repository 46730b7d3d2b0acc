"""The first file system is what the kernel expects."""

import unittest

import support  # noqa: F401

from cpio import Cpio, entry


def entries(archive: bytes):
    """An independent reading of an archive: name, mode, links and data of each entry."""
    at = 0
    while True:
        assert archive[at : at + 6] == b"070701", archive[at : at + 6]
        fields = [int(archive[at + 6 + 8 * i : at + 14 + 8 * i], 16) for i in range(13)]
        mode, links, size, name_bytes = fields[1], fields[4], fields[6], fields[11]
        name = archive[at + 110 : at + 110 + name_bytes - 1].decode()
        at += -(-(110 + name_bytes) // 4) * 4
        data = archive[at : at + size]
        at += -(-size // 4) * 4
        yield name, mode, links, data
        if name == "TRAILER!!!":
            assert not archive[at:].strip(b"\0"), "something after the trailer"
            return


class CpioTest(unittest.TestCase):
    def test_a_file_brings_the_folders_above_it(self):
        archive = Cpio()
        archive.add("/a/b/c", b"12345", 0o640)
        self.assertEqual(
            [(name, oct(mode), data) for name, mode, _, data in entries(archive.finish())][:-1],
            [("a", "0o40755", b""), ("a/b", "0o40755", b""), ("a/b/c", "0o100640", b"12345")],
        )

    def test_a_name_counts_once_and_the_first_wins(self):
        archive = Cpio()
        archive.add("x", b"first")
        archive.add("./x", b"second")
        self.assertEqual([(n, d) for n, _, _, d in entries(archive.finish())][:-1], [("x", b"first")])

    def test_every_length_of_data_is_padded(self):
        for length in range(9):
            archive = Cpio()
            archive.add("file", b"z" * length)
            archive.add("next")
            data = archive.finish()
            self.assertEqual(len(data) % 512, 0)
            self.assertEqual([(n, len(d)) for n, _, _, d in entries(data)][:-1], [("file", length), ("next", 0)])

    def test_equal_contents_give_equal_archives(self):
        def make():
            archive = Cpio()
            archive.add("bin/x", b"1")
            archive.folder("empty")
            return archive.finish()

        self.assertEqual(make(), make())

    def test_a_header_has_thirteen_numbers_after_the_magic(self):
        self.assertEqual(entry(1, "n", b"", 0o100644)[:14], b"07070100000001")
        self.assertEqual(len(entry(1, "n", b"", 0o100644)), 112)


if __name__ == "__main__":
    unittest.main()
