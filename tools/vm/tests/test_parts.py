"""Where the parts come from, and how they are put together."""

import shlex
import subprocess
import tempfile
import unittest
from pathlib import Path

import support  # noqa: F401

import programs
from debian import Root, choose_mirror
from kernel import payload_of
from lanes import LANES
from machine import DEFAULT_PORT, Machine
from messages import BenchError, Refused


class MirrorTest(unittest.TestCase):
    def test_the_first_full_mirror_of_debian_is_taken(self):
        targets = (
            "http://one.example/other nodistro main\n"
            "http://two.example/security bookworm-security main\n"
            "http://three.example/debian bookworm-updates main\n"
            "http://four.example/debian trixie main\n"
        )
        self.assertEqual(choose_mirror(targets), "http://three.example/debian")

    def test_a_machine_without_debian_has_none(self):
        self.assertIsNone(choose_mirror("http://one.example/ubuntu noble main\n"))
        self.assertIsNone(choose_mirror("http://one.example/debian bookworm contrib\n\n"))
        self.assertIsNone(choose_mirror(""))


class KernelTest(unittest.TestCase):
    def test_the_payload_is_where_the_boot_header_says(self):
        image = bytearray(4096)
        image[0x202:0x206] = b"HdrS"
        image[0x1F1] = 3
        image[0x248:0x24C] = (100).to_bytes(4, "little")
        image[0x24C:0x250] = (6).to_bytes(4, "little")
        image[2048 + 100 : 2048 + 106] = b"inside"
        self.assertEqual(payload_of(bytes(image)), b"inside")

    def test_something_else_is_no_kernel(self):
        with self.assertRaises(BenchError):
            payload_of(b"\0" * 4096)


class MachineTest(unittest.TestCase):
    def machine(self, **changes):
        settings = dict(
            emulator=["qemu"], emulator_file=Path("qemu"), environment={}, cpu="max", kernel=Path("k"),
            initramfs=Path("i"), memory="512M", smp=1, iommu="intel", port=DEFAULT_PORT, append="", extra=[],
        )  # fmt: skip
        settings.update(changes)
        return Machine(**settings)

    def test_the_iommu_comes_before_all_that_is_behind_it(self):
        words = self.machine().hardware()
        devices = [words[at + 1] for at, word in enumerate(words) if word == "-device"]
        self.assertTrue(devices[0].startswith("intel-iommu"))

    def test_a_saved_guest_serves_another_storage(self):
        same = self.machine(extra=["-drive", "if=none,id=x", "-blockdev", "y", "-plugin", "z"])
        self.assertEqual(self.machine().identity(), same.identity())

    def test_a_saved_guest_does_not_serve_another_machine(self):
        first = self.machine().identity()
        for change in ({"smp": 2}, {"memory": "1G"}, {"iommu": "none"}, {"append": "iommu=pt"}, {"cpu": "qemu64"},
                       {"port": "x-width=1"}, {"extra": ["-device", "pcie-root-port"]}):  # fmt: skip
            self.assertNotEqual(first, self.machine(**change).identity(), change)

    def test_every_lane_is_called_as_its_key(self):
        self.assertTrue(all(name == lane.name for name, lane in LANES.items()))


class ProgramsTest(unittest.TestCase):
    def test_a_dynamic_program_brings_its_libraries_and_loader(self):
        added = {}
        programs.add_from_host(Path("/bin/sh"), "/vm/bin/sh", lambda name, data, mode: added.update({name: data}))
        self.assertEqual(added["/vm/bin/sh"], Path("/bin/sh").read_bytes())
        self.assertTrue(any("ld-linux" in name for name in added), added.keys())
        self.assertTrue(any("libc.so" in name for name in added), added.keys())

    def test_a_file_that_is_no_program_comes_alone(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"text")
            file.flush()
            added = {}
            programs.add_from_host(Path(file.name), "/x", lambda name, data, mode: added.update({name: data}))
        self.assertEqual(added, {"/x": b"text"})

    def test_a_file_that_is_not_there_is_refused(self):
        with self.assertRaises(Refused):
            programs.add_from_host(Path("/nonexistent/file"), "/x", lambda *_: None)

    def test_a_starter_passes_name_and_arguments_on(self):
        script = programs.starter("/opt/p", "mkfs.x", "/opt/p/bin/mke2fs").decode()
        replaced = script.replace("exec /opt/p/lib/ld-linux-x86-64.so.2", "printf '%s\\n'")
        shown = subprocess.run(
            ["sh", "-c", replaced, "sh", "a b", "$x"], stdout=subprocess.PIPE, text=True, check=True
        ).stdout.splitlines()
        self.assertEqual(shown, ["--argv0", "mkfs.x", "--library-path", "/opt/p/lib", "/opt/p/bin/mke2fs", "a b", "$x"])

    def test_a_package_gets_its_programs_settings_and_libraries(self):
        with tempfile.TemporaryDirectory() as name:
            root = self.package(Path(name))
            added = {}
            programs.add_package(root, "p", lambda place, data, mode: added.update({place: data}))
        self.assertEqual(
            sorted(added),
            ["/etc/p.conf", "/opt/bin/alias", "/opt/bin/prog", "/opt/bin/script", "/opt/p/bin/prog",
             "/opt/p/lib/ld-linux-x86-64.so.2", "/opt/p/lib/libx.so.1"],
        )  # fmt: skip
        self.assertIn(b"--argv0 alias", added["/opt/bin/alias"])
        self.assertEqual(added["/opt/bin/script"], b"#!/bin/sh\n")

    def package(self, folder: Path) -> Root:
        for name in ("usr/bin", "etc", "packages", "lib64", "lib/x86_64-linux-gnu", "usr/share/doc"):
            (folder / name).mkdir(parents=True)
        (folder / "usr/bin/prog").write_bytes(b"\x7fELF")
        (folder / "usr/bin/alias").symlink_to("prog")
        (folder / "usr/bin/script").write_bytes(b"#!/bin/sh\n")
        (folder / "etc/p.conf").write_bytes(b"")
        (folder / "usr/share/doc/p").write_bytes(b"")
        library = folder / "lib/x86_64-linux-gnu/libx.so.1"
        library.write_bytes(b"")
        loader = folder / "lib64/ld-linux-x86-64.so.2"
        loader.write_text(f"#!/bin/sh\necho 'libx.so.1 => {shlex.quote(str(library))} (0x1)'\n")
        loader.chmod(0o755)
        files = ["etc/", "etc/p.conf", "usr/bin/prog", "usr/bin/alias", "usr/bin/script", "usr/share/doc/p"]
        (folder / "packages/p").write_text("\n".join(files))
        return Root(folder)


if __name__ == "__main__":
    unittest.main()
