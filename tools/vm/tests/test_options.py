"""The command line of `run`."""

import contextlib
import io
import os
import unittest
from unittest import mock

import support  # noqa: F401

import options


def refusal(*words):
    """The exit code and the message of a command line that is refused."""
    stderr = io.StringIO()
    with contextlib.redirect_stderr(stderr):
        try:
            options.parse(words)
        except SystemExit as ended:
            return ended.code, stderr.getvalue()
    raise AssertionError(f"{words} was accepted")


class OptionsTest(unittest.TestCase):
    def test_everything_after_the_dashes_is_the_command(self):
        given = options.parse(["--smp", "2", "--", "nvmetal", "bench", "--smp", "3", "--"])
        self.assertEqual(given.command, ["nvmetal", "bench", "--smp", "3", "--"])
        self.assertEqual(given.smp, 2)

    def test_the_dashes_may_be_left_out(self):
        self.assertEqual(options.parse(["--boot", "ls", "-l"]).command, ["ls", "-l"])

    def test_no_command_is_refused_unless_only_fetching(self):
        self.assertEqual(refusal()[0], 2)
        self.assertEqual(refusal("--")[0], 2)
        self.assertTrue(options.parse(["--fetch"]).fetch_only)

    def test_lists_can_be_repeated_and_joined_with_commas(self):
        given = options.parse(["--with", "fio,e2fsprogs", "--with", "mdadm", "--module", "raid1,dm-mod", "--", "x"])
        self.assertEqual(given.packages, ["fio", "e2fsprogs", "mdadm"])
        self.assertEqual(given.modules, ["raid1", "dm-mod"])

    def test_one_run_leaves_nothing_for_the_next(self):
        options.parse(["--drive", "1G", "--file", "a", "--", "x"])
        given = options.parse(["--", "x"])
        self.assertEqual((given.drives, given.files), ([], []))

    def test_mdts_joins_the_properties_of_every_drive(self):
        self.assertEqual(options.parse(["--mdts", "5", "--", "x"]).nvme, ["mdts=5"])
        self.assertEqual(options.parse(["--mdts", "5", "--nvme", "a=1", "--", "x"]).nvme, ["a=1,mdts=5"])

    def test_who_has_the_drives_is_the_last_that_was_said(self):
        self.assertIsNone(options.parse(["x"]).driver)
        self.assertEqual(options.parse(["--no-bind", "x"]).driver, "nvme")
        self.assertEqual(options.parse(["--no-bind", "--bind", "x"]).driver, "vfio-pci")
        self.assertEqual(options.parse(["--driver", "none", "x"]).driver, "none")

    def test_a_variable_needs_a_name(self):
        self.assertEqual(options.parse(["--env", "A=", "x"]).environment, ["A="])
        for bad in ("=x", "1A=x", "A-B=x", ""):
            code, words = refusal("--env", bad, "x")
            self.assertEqual(code, 2)
            self.assertIn("NAME", words)

    def test_a_variable_without_a_value_takes_ours(self):
        with mock.patch.dict(os.environ, {"NVMETAL_TEST_A": "from here"}):
            given = options.parse(["--env", "NVMETAL_TEST_A", "--env", "NVMETAL_TEST_UNSET", "x"])
        self.assertEqual(given.environment, ["NVMETAL_TEST_A=from here"])

    def test_qemu_arguments_are_split_as_a_shell_would(self):
        given = options.parse(["--qemu-arg=-device 'a b',c=1", "--qemu-arg=-S", "x"])
        self.assertEqual(given.qemu_arguments, ["-device", "a b,c=1", "-S"])

    def test_iommu_pt_joins_the_kernel_command_line(self):
        self.assertEqual(options.parse(["--append", "a=b", "--iommu-pt", "x"]).append, "a=b iommu=pt")

    def test_senseless_numbers_are_refused(self):
        for words in (["--timeout", "0"], ["--timeout", "-1"], ["--smp", "0"], ["--lba", "1024"], ["--lane", "5.10"]):
            self.assertEqual(refusal(*words, "--", "x")[0], 2, words)

    def test_options_are_not_abbreviated(self):
        self.assertEqual(refusal("--mod", "x", "--", "y")[0], 2)


if __name__ == "__main__":
    unittest.main()
