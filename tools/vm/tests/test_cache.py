"""The cache survives runs that start at once and runs that are killed."""

import contextlib
import io
import tempfile
import threading
import time
import unittest
from pathlib import Path

import support  # noqa: F401

import cache
from cache import Cache
from messages import BenchError


class CacheTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name) / "cache"
        self.cache = Cache(self.folder)

    def test_an_entry_is_built_once(self):
        built = []

        def build(folder):
            built.append(folder)
            (folder / "x").write_text("1")

        for _ in range(2):
            self.assertEqual((self.cache.entry("e", build) / "x").read_text(), "1")
        self.assertEqual(len(built), 1)

    def test_runs_that_start_at_once_build_it_once(self):
        built = []

        def build(folder):
            time.sleep(0.1)
            built.append(folder)

        threads = [threading.Thread(target=lambda: Cache(self.folder).entry("e", build)) for _ in range(4)]
        with contextlib.redirect_stderr(io.StringIO()) as words:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(len(built), 1)
        self.assertIn("waiting for another run to finish e\n", words.getvalue())

    def test_a_failed_build_leaves_nothing(self):
        def build(folder):
            (folder / "half").write_text("")
            raise BenchError("no")

        with self.assertRaises(BenchError):
            self.cache.entry("e", build)
        self.assertEqual([f.name for f in self.folder.iterdir()], ["locks"])

    def test_what_a_killed_run_left_is_replaced(self):
        (self.folder / "e.new").mkdir()
        (self.folder / "e.new/half").write_text("")
        entry = self.cache.entry("e", lambda folder: (folder / "whole").write_text(""))
        self.assertEqual([f.name for f in entry.iterdir()], ["whole"])

    def test_waiting_for_a_lock_ends_at_the_deadline(self):
        with self.cache.lock("snapshot-l", shared=True):
            with self.cache.lock("snapshot-l", shared=True):
                pass
            with self.assertRaises(BenchError) as refused:
                with self.cache.lock("snapshot-l", deadline=time.monotonic()):
                    pass
        self.assertEqual(refused.exception.code, 124)

    def test_the_environment_says_where_it_is(self):
        version = cache.VERSION
        self.assertEqual(cache.place({"NVMETAL_VM_CACHE": "/a", "HOME": "/h"}), Path("/a") / version)
        self.assertEqual(cache.place({"XDG_CACHE_HOME": "/x", "HOME": "/h"}), Path("/x/nvmetal-vm") / version)
        self.assertEqual(cache.place({"HOME": "/h"}), Path("/h/.cache/nvmetal-vm") / version)


if __name__ == "__main__":
    unittest.main()
