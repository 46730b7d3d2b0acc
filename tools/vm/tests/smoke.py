#!/usr/bin/env python3
"""Real guests: what the bench promises, tried on both lanes. Run it by itself; two runs at a time.

The name keeps it out of `unittest discover`, which must work without QEMU and in a second.
"""

import contextlib
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

RUN = str(Path(__file__).resolve().parent.parent / "run")


def run(*words, stdout=subprocess.PIPE):
    """One run of the bench; its result, with what it printed."""
    return subprocess.run([RUN, *words], stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, text=True)


def shell(text, *options):
    """Run shell text in a guest."""
    return run(*options, "--", "sh", "-euc", text)


class Guest(unittest.TestCase):
    def ok(self, done, *expected):
        """It went well, and each expected text (a regular expression for a whole line) was printed."""
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        for line in expected:
            self.assertRegex(done.stdout, re.compile(f"^{line}$", re.MULTILINE), done.stderr)
        return done.stdout


class Command(Guest):
    def test_its_exit_code_is_passed_on(self):
        for code in (0, 7, 255):
            self.assertEqual(shell(f"exit {code}").returncode, code)

    def test_its_two_outputs_arrive_apart_and_whole(self):
        done = shell("seq 1 60000; seq 60001 120000 >&2; echo last")
        self.ok(done, "last")
        self.assertEqual(done.stdout, "".join(f"{n}\n" for n in range(1, 60001)) + "last\n")
        self.assertTrue(done.stderr.endswith("".join(f"{n}\n" for n in range(60001, 120001))))

    def test_its_arguments_and_variables_arrive_unchanged(self):
        words = ["a b", "it's", "$HOME", "", "\\", "ü"]
        done = run("--env", "X=a 'b' $c", "--", "sh", "-c", 'printf "%s|" "$X" "$@"', "sh", *words)
        self.assertEqual(done.stdout, "|".join(["a 'b' $c", *words]) + "|", done.stderr)

    def test_a_program_of_this_machine_runs_with_its_libraries(self):
        done = run("--file", "/etc/os-release:/tmp-copy", "--", "/bin/cat", "/tmp-copy")
        self.ok(done)
        self.assertEqual(done.stdout, Path("/etc/os-release").read_text())

    def test_one_that_is_not_there_gives_127(self):
        self.assertEqual(run("--", "no-such-command").returncode, 127)

    def test_the_guest_knows_the_time(self):
        guest, host = int(self.ok(run("--", "date", "+%s"))), time.time()
        self.assertLess(abs(guest - host), 60)


class End(Guest):
    def test_the_time_limit_gives_124(self):
        before = time.monotonic()
        done = run("--timeout", "15", "--", "sleep", "1000")
        self.assertEqual(done.returncode, 124, done.stderr)
        self.assertLess(time.monotonic() - before, 40)

    def test_a_guest_that_dies_gives_125(self):
        for text in ("poweroff -f", "echo c > /proc/sysrq-trigger; sleep 100"):
            done = shell(text)
            self.assertEqual(done.returncode, 125, done.stderr)
            self.assertIn("died while the command ran", done.stderr)

    def test_a_property_that_qemu_does_not_know_gives_2(self):
        for option in ([], ["--boot"]):
            done = run(*option, "--nvme", "bogus=1", "--", "true")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("bogus", done.stderr)

    def test_a_reader_that_goes_away_ends_the_guest(self):
        reader, writer = os.pipe()
        with subprocess.Popen([RUN, "--", "yes"], stdin=subprocess.DEVNULL, stdout=writer) as process:
            os.close(writer)
            os.read(reader, 1)
            os.close(reader)
            self.assertEqual(process.wait(60), 128 + signal.SIGPIPE)

    def test_signals_end_it_and_leave_nothing(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            with tempfile.TemporaryDirectory() as scratch:
                words = [RUN, "--", "sh", "-c", "echo up; sleep 1000"]
                environment = {**os.environ, "TMPDIR": scratch}
                with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=environment) as p:
                    self.assertEqual(p.stdout.readline(), b"up\n")
                    p.send_signal(number)
                    self.assertEqual(p.wait(30), code)
                self.assertEqual(os.listdir(scratch), [])
                self.assertFalse(any(scratch in words for words in commands()), "QEMU is still there")

    def test_qemu_does_not_outlive_a_bench_that_is_killed(self):
        with tempfile.TemporaryDirectory() as scratch:
            words = [RUN, "--", "sh", "-c", "echo up; sleep 1000"]
            environment = {**os.environ, "TMPDIR": scratch}
            with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=environment) as p:
                p.stdout.readline()
                p.kill()
            deadline = time.monotonic() + 10
            while any(scratch in words for words in commands()) and time.monotonic() < deadline:
                time.sleep(0.05)
            self.assertFalse(any(scratch in words for words in commands()))


class ControlLine(Guest):
    def test_the_monitor_answers(self):
        out = self.ok(shell("vmctl hmp info pci; vmctl qmp '{\"execute\": \"query-status\"}'; ! vmctl qmp '{}'"))
        pci, status, refused = (json.loads(line) for line in out.splitlines())
        self.assertIn("1b36:0010", pci["return"])
        self.assertTrue(status["return"]["running"])
        self.assertIn("error", refused)

    def test_a_drive_can_be_unplugged_and_come_back(self):
        text = """
            vmctl hmp device_del nvme0
            while [ -e /sys/bus/pci/devices/$VM_BDF ]; do usleep 10000; done
            [ ! -e /dev/nvme0 ] && echo gone
            # Linux lets go of a drive a moment before QEMU does.
            until vmctl hmp device_add nvme,id=again,bus=rp0,serial=AGAIN,drive=drive0 | grep -qx '{"return": ""}'; do
                usleep 10000
            done
            until grep -qsx live /sys/class/nvme/nvme0/state; do usleep 10000; done
            cat /sys/class/nvme/nvme0/serial"""
        self.ok(shell(text, "--no-bind"), "gone", "AGAIN *")

    def test_a_drive_can_vanish_from_the_bus(self):
        # The controller's version register, read through its BAR: with the root port's memory window closed
        # nothing answers any more. QEMU then reads zeros where real hardware reads ones.
        text = """
            device=/sys/bus/pci/devices/$VM_BDF
            port=$(readlink -f $device/..)
            read -r bar _ <$device/resource
            command() { printf "$2" | dd of=$1/config bs=1 seek=4 conv=notrunc 2>/dev/null; }
            command $device '\\006'
            devmem $((bar + 8)) 32
            command $port '\\004'
            devmem $((bar + 8)) 32"""
        out = self.ok(shell(text, "--driver", "none"))
        self.assertEqual(out.split(), ["0x00010400", "0x00000000"])


class Drivers(Guest):
    def test_vfio_pci_has_the_drive_for_type1_and_for_iommufd(self):
        text = """
            echo "driver $(basename $(readlink /sys/bus/pci/devices/$VM_BDF/driver))"
            [ -c /dev/vfio/$VM_GROUP ] && echo group
            [ -c /dev/iommu ] && [ -c /dev/vfio/devices/$VM_CDEV ] && echo cdev
            grep -qw vfio_iommu_type1 /proc/modules && echo type1
            dmesg | grep -c 'Host address width' """
        for option in ([], ["--boot"]):
            self.ok(shell(text, *option), "driver vfio-pci", "group", "cdev", "type1", "1")

    def test_the_kernel_s_driver_has_the_drive(self):
        text = 'echo "driver $(basename $(readlink /sys/bus/pci/devices/$VM_BDF/driver))"; ls /dev/nvme0n1'
        self.ok(shell(text, "--no-bind"), "driver nvme", "/dev/nvme0n1")

    def test_nobody_has_the_drive(self):
        text = "[ ! -e /sys/bus/pci/devices/$VM_BDF/driver ]; cat /sys/bus/pci/devices/$VM_BDF/driver_override"
        self.ok(shell(text, "--driver", "none"), r"\(null\)")

    def test_there_can_be_no_drive(self):
        self.ok(
            shell('echo "${VM_BDF-none}"; ! grep -l 0x010802 /sys/bus/pci/devices/*/class', "--nvme", "none"), "none"
        )

    def test_the_older_lane_has_type1_only(self):
        text = """
            uname -r
            echo "driver $(basename $(readlink /sys/bus/pci/devices/$VM_BDF/driver))"
            [ -c /dev/vfio/$VM_GROUP ] && [ ! -e /dev/iommu ] && [ ! -e /dev/vfio/devices ] && echo group
            echo "cdev '$VM_CDEV'"
            dmesg | grep -o 'Host address width.*' """
        expected = ("6\\.1\\..*", "driver vfio-pci", "group", "cdev ''", "Host address width 39")
        self.ok(shell(text, "--lane", "6.1"), *expected)
        self.assertEqual(run("--lane", "6.1", "--nvme", "bogus=1", "--", "true").returncode, 2)

    def test_vfio_takes_a_drive_without_an_iommu(self):
        self.ok(shell("ls /dev/vfio; ls /sys/class/iommu", "--iommu", "none", "--bind"), "noiommu-0")

    def test_a_virtio_iommu_can_take_the_place_of_intel_s(self):
        self.ok(
            shell("ls /sys/bus/virtio/drivers/virtio_iommu; echo group $VM_GROUP", "--iommu", "virtio"),
            "virtio.*",
            "group .+",
        )

    def test_an_access_that_the_iommu_refuses_is_seen(self):
        # Enable the controller with queues at addresses that nobody mapped, and ring the admin doorbell.
        text = """
            device=/sys/bus/pci/devices/$VM_BDF
            read -r bar _ <$device/resource
            printf '\006' | dd of=$device/config bs=1 seek=4 conv=notrunc 2>/dev/null
            put() { devmem $((bar + $1)) 32 $2; }
            put 0x24 0x001f001f; put 0x28 0x100000; put 0x2c 0; put 0x30 0x200000; put 0x34 0
            put 0x14 0x00460001
            until [ $(($(devmem $((bar + 0x1c)) 32) & 1)) = 1 ]; do usleep 10000; done
            put 0x1000 1
            until [ $(($(devmem $((bar + 0x1c)) 32) & 2)) = 2 ]; do usleep 10000; done
            echo fatal"""
        done = shell(text, "--driver", "none")
        self.ok(done, "fatal")
        self.assertIn("the IOMMU refused accesses", done.stderr)
        self.assertEqual(shell(text, "--driver", "none", "--forbid-dma-faults").returncode, 125)

    def test_the_kernel_s_own_drivers_can_bypass_the_iommu(self):
        self.ok(shell("cat /sys/kernel/iommu_groups/$VM_GROUP/type", "--iommu-pt", "--no-bind"), "identity")


class Drives(Guest):
    def test_several_are_numbered_in_their_order(self):
        text = """
            for n in 0 1 2; do cat /sys/class/nvme/nvme$n/serial /sys/block/nvme${n}n1/size; done
            echo "$VM_BDFS" """
        options = ["--no-bind", "--drive", "64M", "--drive", "32M,serial=SECOND", "--drive", "null:1G"]
        out = self.ok(shell(text, *options), "0000:01:00.0 0000:02:00.0 0000:03:00.0")
        self.assertEqual(out.split()[:6], ["VM0000", "131072", "SECOND", "65536", "VM0002", "2097152"])

    def test_blocks_and_largest_transfer_are_as_asked(self):
        text = "cat /sys/block/nvme0n1/queue/logical_block_size /sys/block/nvme0n1/queue/max_hw_sectors_kb"
        out = self.ok(shell(text, "--no-bind", "--lba", "4096", "--mdts", "4"))
        self.assertEqual(out.split(), ["4096", "64"])

    def test_a_drive_can_have_several_namespaces(self):
        options = ["--no-bind", "--namespace", "64M", "--namespace", "null:64M,logical_block_size=4096"]
        # The kernel names them in the order in which it happens to find them.
        text = "for b in /sys/block/nvme0n*; do echo $(cat $b/nsid $b/queue/logical_block_size); done | sort"
        self.assertEqual(self.ok(shell(text, *options)), "1 512\n2 4096\n")

    def test_an_image_of_ours_keeps_what_was_written(self):
        with tempfile.NamedTemporaryFile() as image:
            image.truncate(8 << 20)
            text = "seq 100000 | dd of=/dev/nvme0n1 bs=4k oflag=direct conv=sync 2>/dev/null"
            self.ok(shell(text, "--no-bind", "--drive", f"file:{image.name}"))
            written = "".join(f"{n}\n" for n in range(1, 100001)).encode()
            found = hashlib.sha256(Path(image.name).read_bytes()[: len(written)]).hexdigest()
            self.assertEqual(found, hashlib.sha256(written).hexdigest())


class Faults(Guest):
    """The recipes of the README."""

    def test_a_media_error(self):
        backend = "driver=blkdebug,image.driver=null-co,image.size=1G,image.read-zeroes=on"
        error = "inject-error.0.event=none,inject-error.0.iotype=read,inject-error.0.sector=4096,inject-error.0.errno=5"
        text = """
            dd if=/dev/nvme0n1 of=/dev/null bs=512 skip=4095 count=1 iflag=direct
            ! dd if=/dev/nvme0n1 of=/dev/null bs=512 skip=4096 count=1 iflag=direct
            dmesg | grep -o 'sct 0x2 / sc 0x81' """
        qemu = f"--qemu-arg=-drive if=none,id=bad,{backend},{error}"
        self.ok(shell(text, "--no-bind", "--drive", "id:bad", qemu), "sct 0x2 / sc 0x81")

    def test_a_slow_drive_that_gets_fast(self):
        group = "-object throttle-group,id=limits,x-bps-total=1048576"
        backend = "driver=throttle,throttle-group=limits,file.driver=null-co,file.size=1G,file.read-zeroes=on"
        text = """
            read_4_mib() { dd if=/dev/nvme0n1 of=/dev/null bs=64k count=64 iflag=direct 2>/dev/null; }
            now() { cut -d. -f1 /proc/uptime; }
            before=$(now); read_4_mib; echo slow $(($(now) - before >= 2))
            vmctl qmp '{"execute":"qom-set","arguments":{"path":"/objects/limits","property":"limits","value":{"bps-total":0}}}'
            read_4_mib; vmctl qmp '{"execute":"qom-get","arguments":{"path":"/objects/limits","property":"limits"}}' """
        qemu = f"--qemu-arg={group} -drive if=none,id=slow,{backend}"
        self.ok(shell(text, "--no-bind", "--drive", "id:slow", qemu), "slow 1", '.*"bps-total": 0,.*')

    def test_a_pcie_error(self):
        text = """
            vmctl hmp pcie_aer_inject_error rp0 SDN
            until dmesg | grep -o 'restart after slot reset'; do usleep 100000; done"""
        qemu = "--qemu-arg=-global ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off"
        self.ok(shell(text, "--no-bind", qemu), "restart after slot reset")

    def test_a_smart_warning(self):
        text = """
            vmctl qmp '{"execute":"qom-set","arguments":{"path":"/machine/peripheral/nvme0","property":"smart_critical_warning","value":4}}'
            nvme smart-log /dev/nvme0 | grep ^critical_warning"""
        self.ok(shell(text, "--no-bind", "--with", "nvme-cli"), "critical_warning.*0x4")

    def test_a_weak_slot(self):
        text = "cd $(readlink -f /sys/bus/pci/devices/$VM_BDF/..); cat max_link_speed max_link_width"
        self.ok(shell(text, "--port", "x-speed=2_5,x-width=1"), "2.5 GT/s PCIe", "1")

    def test_a_group_that_is_not_viable(self):
        text = 'cd /sys/bus/pci/devices; for d in $VM_BDFS; do basename "$(readlink -f $d/iommu_group)"; done | uniq -d'
        drives = ["--drive", "1G,multifunction=on,addr=0.0", "--drive", "1G,bus=rp0,addr=0.1"]
        self.ok(shell(text, "--boot", *drives), "[0-9]+")


class Tools(Guest):
    def test_file_systems_and_device_mapper(self):
        text = """
            mkfs.ext4 -q /dev/nvme0n1
            mount /dev/nvme0n1 /mnt; echo kept >/mnt/file; umount /mnt
            mount /dev/nvme0n1 /mnt; cat /mnt/file; umount /mnt
            dmsetup create half --table '0 1000 linear /dev/nvme0n1 0'
            dmsetup table"""
        options = ["--no-bind", "--with", "e2fsprogs,dmsetup", "--module", "dm-mod"]
        self.ok(shell(text, *options), "kept", "half: 0 1000 linear .*")

    def test_a_raid_over_two_drives(self):
        text = """
            mdadm --create /dev/md0 --run --assume-clean --metadata=1.2 --level=1 --raid-devices=2 /dev/nvme[01]n1
            grep ^md0 /proc/mdstat"""
        options = ["--no-bind", "--drive", "64M", "--drive", "64M", "--with", "mdadm", "--module", "raid1"]
        self.ok(shell(text, *options), "md0 : active raid1 .*")

    def test_fio_and_nvme_cli(self):
        text = """
            fio --name=x --filename=/dev/nvme0n1 --rw=randread --bs=4k --direct=1 --ioengine=io_uring --iodepth=8 \
                --io_size=1M --output-format=terse >/tmp/fio; cut -d';' -f3,5 /tmp/fio
            nvme id-ctrl /dev/nvme0 | grep '^sn'"""
        self.ok(shell(text, "--no-bind", "--with", "fio,nvme-cli"), "x;0", "sn +: VM0000 *")


class Instructions(Guest):
    def test_counts_between_marks_repeat_to_the_digit(self):
        source = """
            static void mark(void) { __asm__ volatile(".byte 0x0f,0x1f,0x80\\n.long 0x4c420005"); }
            int main(void) {
                for (int i = 0; i < 3; i++) {
                    mark();
                    __asm__ volatile(".rept 100\\nnop\\n.endr");
                    __asm__ volatile(".byte 0x0f,0x1f,0x80\\n.long 0x4c430005");
                }
            }"""
        with tempfile.TemporaryDirectory() as folder:
            program, counts = f"{folder}/marked", f"{folder}/counts"
            compiler = ["gcc", "-O2", "-static", "-x", "c", "-", "-o", program]
            subprocess.run(compiler, input=source, text=True, check=True)
            self.ok(run("--icount-plugin", counts, "--", program))
            found = [json.loads(line) for line in Path(counts).read_text().splitlines()]
        self.assertEqual(found, [{"id": 5, "vcpu": 0, "user": 101, "kernel": 0}] * 3)


def commands():
    """The command lines of all running processes."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            yield file.read_bytes().replace(b"\0", b" ").decode(errors="replace")


def main():
    """Run all tests, or those whose names contain a word given; two at a time."""
    tests = []

    def collect(suite):
        for test in suite:
            if isinstance(test, unittest.TestSuite):
                collect(test)
            elif not sys.argv[1:] or any(word in test.id() for word in sys.argv[1:]):
                tests.append(test)

    collect(unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"]))
    lock, failures = threading.Lock(), []

    def one(test):
        result, before = unittest.TestResult(), time.monotonic()
        test.run(result)
        bad = result.failures + result.errors
        with lock:
            print(f"{'FAILED' if bad else 'ok    '} {time.monotonic() - before:5.1f} s  {test.id()[9:]}", flush=True)
            failures.extend(bad)

    with ThreadPoolExecutor(max_workers=2) as workers:
        list(workers.map(one, tests))
    for test, words in failures:
        print(f"\n{test.id()}\n{words}")
    print(f"{len(tests) - len(failures)} passed, {len(failures)} failed")
    return 1 if failures or not tests else 0


if __name__ == "__main__":
    sys.exit(main())
