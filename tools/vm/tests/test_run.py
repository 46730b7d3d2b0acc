"""How a guest's end becomes an exit code, and what the control line answers, with a QEMU made of sockets."""

import contextlib
import io
import json
import socket
import tempfile
import threading
import time
import unittest
from pathlib import Path

import support  # noqa: F401

import bench
import drives
import options
from control import ControlLine, Report
from qmp import Qmp, QmpError


class FakeGuest:
    """A guest that says what it is told to, and a QEMU that ends with a status."""

    def __init__(self, lines, status=0):
        ours, theirs = socket.socketpair()
        self.control = ControlLine(ours, qmp=None)
        theirs.sendall("".join(f"{line}\n" for line in lines).encode())
        theirs.shutdown(socket.SHUT_WR)
        self._sockets, self._status, self.output_lost = (ours, theirs), status, False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for end in self._sockets:
            end.close()

    def kill_at(self, deadline):
        return threading.Timer(0, lambda: None)

    def wait_for_own_end(self, seconds):
        return self._status


class ExitCodeTest(unittest.TestCase):
    def code(self, *starts, seconds=60.0, retries=2, extra=()):
        """The exit code when the guest starts as STARTS say; each is its lines and QEMU's status."""
        remaining = list(starts)
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()) as self.words:
            given = options.parse(["--retries", str(retries), *extra, "--", "x"])
            run = bench.Run(given, None, drives.Drives([], []), Path(folder), None, time.monotonic() + seconds)
            run.start = lambda extra: FakeGuest(*remaining.pop(0))
            code = run.result()
        self.left = len(remaining)
        return code

    def test_the_command_s_code_is_passed_on(self):
        for code in (0, 1, 7, 124, 125, 255):
            self.assertEqual(self.code((["ready", "up 1 s", f"exit {code}"],)), code)

    def test_a_guest_that_dies_before_the_command_is_started_again(self):
        good = (["ready", "up 1 s", "exit 3"],)
        self.assertEqual(self.code((["ready"], -6), ([], -11), good), 3)

    def test_a_guest_that_dies_while_the_command_runs_is_not(self):
        self.assertEqual(self.code((["ready", "up 1 s"], -6), (["ready", "up 1 s", "exit 0"],)), 125)
        self.assertEqual(self.left, 1)

    def test_starting_again_ends(self):
        self.assertEqual(self.code(([], -6), ([], -6), ([], -6), ([], -6)), 125)
        self.assertEqual(self.left, 1)
        self.assertEqual(self.code(([], -6), retries=0), 125)

    def test_a_power_off_is_a_death(self):
        self.assertEqual(self.code((["ready", "up 1 s"], 0)), 125)

    def test_arguments_that_qemu_refuses_are_a_usage_error(self):
        self.assertEqual(self.code(([], 1)), 2)

    def test_a_guest_that_cannot_run_the_command_says_why(self):
        self.assertEqual(self.code((["ready", "failed insmod vfio"],)), 125)
        self.assertIn("insmod vfio", self.words.getvalue())

    def test_after_the_time_limit_nothing_is_tried_again(self):
        self.assertEqual(self.code((["ready", "up 1 s"], -9), seconds=-1), 124)
        self.assertEqual(self.code(([], -9), seconds=-1), 124)

    def test_a_command_that_ended_in_time_keeps_its_code(self):
        self.assertEqual(self.code((["ready", "up 1 s", "exit 5"],), seconds=-1), 5)

    def test_dma_faults_are_told_and_can_be_forbidden(self):
        lines = ["ready", "up 1 s", "dma-faults 3", "exit 0"]
        self.assertEqual(self.code((lines,)), 0)
        self.assertIn("refused accesses of a device, at least 3", self.words.getvalue())
        self.assertEqual(self.code((lines,), extra=["--forbid-dma-faults"]), 125)


class ReportTest(unittest.TestCase):
    def test_only_reports_are_taken(self):
        report = Report()
        for line in ("hmp info pci", "exit", "exit x", "exit -1", "exit ", "readyy", ""):
            self.assertFalse(report.take(line), line)
        self.assertFalse(report.finished)
        self.assertTrue(report.take("exit 12"))
        self.assertTrue(report.finished)
        self.assertEqual(report.exit_code, 12)


class QmpTest(unittest.TestCase):
    """A QEMU that answers every command with its name, except `bad`, and says events in between."""

    def setUp(self):
        self.ours, theirs = socket.socketpair()
        self.addCleanup(self.ours.close)
        self.theirs = theirs
        thread = threading.Thread(target=self.serve, daemon=True)
        thread.start()
        self.addCleanup(thread.join, 5)
        self.addCleanup(lambda: self.ours.shutdown(socket.SHUT_RDWR))
        self.qmp = Qmp(self.ours)

    def serve(self):
        with self.theirs, self.theirs.makefile("rwb", buffering=0) as file:
            file.write(b'{"QMP": {}}\n')
            for line in file:
                asked = json.loads(line)
                if asked["execute"] == "quit":
                    return
                file.write(b'{"event": "STOP"}\n')
                if asked["execute"] == "bad":
                    file.write(b'{"error": {"class": "GenericError", "desc": "no"}}\n')
                else:
                    file.write(json.dumps({"return": asked}).encode() + b"\n")

    def test_events_are_passed_over(self):
        self.assertEqual(self.qmp.call("stop")["execute"], "stop")

    def test_names_of_arguments_get_their_dashes(self):
        self.assertEqual(self.qmp.call("x", max_bandwidth=1)["arguments"], {"max-bandwidth": 1})

    def test_a_refusal_is_an_error_with_qemu_s_words(self):
        with self.assertRaisesRegex(QmpError, "^no$"):
            self.qmp.call("bad")

    def test_a_qemu_that_goes_away_is_an_error(self):
        with self.assertRaises(QmpError):
            self.qmp.call("quit")

    def test_the_control_line_passes_requests_on(self):
        line = ControlLine(self.ours, self.qmp)
        self.assertEqual(
            line.answer("hmp info pci")["return"],
            {"execute": "human-monitor-command", "arguments": {"command-line": "info pci"}},
        )
        self.assertEqual(line.answer('qmp {"execute": "query-pci"}')["return"]["execute"], "query-pci")
        self.assertEqual(line.answer('qmp {"execute": "bad"}')["error"]["desc"], "no")

    def test_the_control_line_answers_nonsense_with_an_error(self):
        line = ControlLine(self.ours, self.qmp)
        for text in ("hmp", "hello", "qmp", "qmp {", "qmp []", "qmp {}", "qmp 7"):
            self.assertIn("error", line.answer(text), text)


if __name__ == "__main__":
    unittest.main()
