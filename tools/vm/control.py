"""The host's end of the control line: what init.sh and the command in the guest say, and the answers.

A test inside the guest can pull its own drive out, raise a SMART warning or switch a fault on, by writing a
line `hmp COMMAND` or `qmp {JSON}` to `$VM_CTL` and reading one line of JSON.
"""

from __future__ import annotations

import json
import socket
import time
from dataclasses import dataclass
from typing import Any

from qmp import Qmp, QmpError


@dataclass
class Report:
    """What the guest has said so far."""

    ready: bool = False
    up: str | None = None
    """Set when the command starts: what the guest is."""
    dma_faults: int = 0
    """How many accesses of a device the IOMMU refused (the kernel's log holds back when there are many)."""
    exit_code: int | None = None
    failure: str | None = None

    def take(self, line: str) -> bool:
        """Note a line that reports something; whether it was one."""
        word, _, rest = line.partition(" ")
        if word == "ready":
            self.ready = True
        elif word == "up":
            self.up = rest
        elif word == "dma-faults" and rest.isdigit():
            self.dma_faults = int(rest)
        elif word == "exit" and rest.isdigit():
            self.exit_code = int(rest)
        elif word == "failed":
            self.failure = rest
        else:
            return False
        return True

    @property
    def finished(self) -> bool:
        """Whether the guest has nothing more to say."""
        return self.exit_code is not None or self.failure is not None


class ControlLine:
    """Reads lines from the guest and answers them."""

    def __init__(self, connection: socket.socket, qmp: Qmp) -> None:
        self._file = connection.makefile("rwb", buffering=0)
        self._qmp = qmp
        self.report = Report()

    def serve_until_ready(self) -> None:
        """Return when the guest waits for its payload, or is gone."""
        while not self.report.ready and not self.report.finished and self._serve_line():
            pass

    def serve_until_finished(self) -> None:
        """Return when the command has ended, or the guest is gone."""
        while not self.report.finished and self._serve_line():
            pass

    def go(self) -> None:
        """Let the guest take its payload and run the command. Its clock stood still while it was saved."""
        self._file.write(b"go %d\n" % time.time())

    def _serve_line(self) -> bool:
        try:
            line = self._file.readline()
            if not line:
                return False
            text = line.decode("utf-8", "replace").strip()
            if text and not self.report.take(text):
                self._file.write(json.dumps(self.answer(text)).encode() + b"\n")
        except OSError:
            return False
        return True

    def answer(self, text: str) -> dict[str, Any]:
        """QEMU's answer to a request."""
        kind, _, rest = text.partition(" ")
        try:
            if kind == "hmp" and rest:
                return self._qmp.human(rest)
            if kind == "qmp":
                request = json.loads(rest)
                return self._qmp.execute(request["execute"], request.get("arguments"))
        except (QmpError, ValueError, KeyError, TypeError, AttributeError) as error:
            return {"error": {"desc": f"{type(error).__name__}: {error}"}}
        return {"error": {"desc": f"not understood: {text[:80]}"}}
