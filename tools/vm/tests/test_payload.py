"""What a run brings along arrives as it was given."""

import os
import stat
import subprocess
import tempfile
import unittest
from pathlib import Path

import support

import payload
from messages import Refused
from payload import Payload, command_script, run_settings, split_file_option

AWKWARD = ["", " ", "a b", "it's", '"', "$HOME", "`id`", "\\", "*", "-n", "line\nbreak", "ümlaut", "!", ";", "&&"]


class CommandTest(unittest.TestCase):
    def test_every_argument_reaches_the_command_unchanged(self):
        show = ["python3", "-c", "import sys; print(sys.argv[1:])"]
        script = command_script(show + AWKWARD, [])
        printed = subprocess.run(["sh"], input=script, stdout=subprocess.PIPE, check=True).stdout.decode()
        self.assertEqual(printed.strip(), repr(AWKWARD))

    def test_every_variable_reaches_the_command_unchanged(self):
        for number, value in enumerate(AWKWARD):
            show = ["python3", "-c", "import os; print(repr(os.environ['NVMETAL_T']))"]
            script = command_script(show, [f"NVMETAL_T={value}"])
            printed = subprocess.run(["sh"], input=script, stdout=subprocess.PIPE, check=True).stdout.decode()
            self.assertEqual(printed.strip(), repr(value), number)

    def test_the_exit_code_of_the_command_is_the_script_s(self):
        self.assertEqual(subprocess.run(["sh"], input=command_script(["sh", "-c", "exit 7"], [])).returncode, 7)

    def test_settings_are_shell_assignments(self):
        settings = run_settings("vfio-pci", 2, 3, ["dm_mod", "raid1"], unsafe_noiommu=True)
        script = settings + b'echo "$DRIVER|$DRIVES|$DISKS|$RUN_MODULES|$UNSAFE_NOIOMMU"\n'
        printed = subprocess.run(["sh"], input=script, stdout=subprocess.PIPE, check=True).stdout
        self.assertEqual(printed, b"vfio-pci|2|3|dm_mod raid1|1\n")


class PayloadTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.payload = Payload(self.folder / "staging")

    def test_a_name_counts_once_and_the_first_wins(self):
        self.payload.add("/a/b", b"first", 0o640)
        self.payload.add("a/./b", b"second")
        file = self.folder / "staging/a/b"
        self.assertEqual(file.read_bytes(), b"first")
        self.assertEqual(stat.S_IMODE(file.stat().st_mode), 0o640)

    def test_a_name_cannot_leave_the_payload(self):
        self.payload.add("../../escaped", b"")
        self.assertTrue((self.folder / "staging/escaped").exists())

    def test_the_disk_is_made_from_the_staging_folder_and_has_its_size(self):
        self.payload.add("x", b"1")
        self.payload.write(self.folder / "disk", [str(self.fake_mke2fs())])
        self.assertEqual((self.folder / "disk").stat().st_size, payload.DISK_BYTES)
        words = (self.folder / "words").read_text().split()
        self.assertEqual(words[-3:], ["-d", str(self.folder / "staging"), str(self.folder / "disk")])

    def test_too_much_is_refused_by_its_size(self):
        self.payload.add("x", b"1")
        self.payload._bytes = payload.LARGEST_BYTES + 1
        with self.assertRaises(Refused):
            self.payload.write(self.folder / "disk", ["true"])

    def fake_mke2fs(self) -> Path:
        program = self.folder / "mke2fs"
        program.write_text(f'#!/bin/sh\necho "$@" > {self.folder}/words\n')
        program.chmod(0o755)
        return program

    def test_a_file_keeps_its_place_unless_another_is_given(self):
        self.assertEqual(split_file_option("/a/b:/c"), (Path("/a/b"), "/c"))
        self.assertEqual(split_file_option("/a/b"), (Path("/a/b"), "/a/b"))
        self.assertEqual(split_file_option("b")[1], os.path.join(os.getcwd(), "b"))


class GuestScriptsTest(unittest.TestCase):
    def test_the_guest_s_scripts_are_valid_shell(self):
        for name in ("init.sh", "vmctl.sh"):
            subprocess.run(["sh", "-n", str(support.VM / name)], check=True)


if __name__ == "__main__":
    unittest.main()
