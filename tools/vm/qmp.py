"""QEMU's machine protocol: one JSON object a line, over a socket that QEMU was started with."""

from __future__ import annotations

import json
import socket
import threading
from typing import Any


class QmpError(Exception):
    """QEMU refused a command, or went away."""


class Qmp:
    """A connection. Commands from several threads take turns; events are not kept."""

    def __init__(self, connection: socket.socket) -> None:
        self._lock = threading.Lock()
        self._file = connection.makefile("rwb")
        self._greeted = False

    def execute(self, command: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a command and return QEMU's whole answer, with `return` or `error` in it."""
        with self._lock:
            try:
                if not self._greeted:
                    self._receive()
                    self._exchange("qmp_capabilities", {})
                    self._greeted = True
                return self._exchange(command, arguments or {})
            except (OSError, ValueError) as error:
                raise QmpError(f"QEMU went away: {error}") from error

    def call(self, command: str, **arguments: Any) -> Any:
        """Send a command and return its result; a refusal is an error."""
        answer = self.execute(command, {name.replace("_", "-"): value for name, value in arguments.items()})
        if "error" in answer:
            raise QmpError(answer["error"].get("desc", str(answer["error"])))
        return answer["return"]

    def human(self, line: str) -> dict[str, Any]:
        """A command of the human monitor. QEMU answers with text, whether it worked or not."""
        return self.execute("human-monitor-command", {"command-line": line})

    def _exchange(self, command: str, arguments: dict[str, Any]) -> dict[str, Any]:
        self._file.write(json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n")
        self._file.flush()
        while True:
            answer = self._receive()
            if "return" in answer or "error" in answer:
                return answer

    def _receive(self) -> dict[str, Any]:
        line = self._file.readline()
        if not line:
            raise OSError("end of the connection")
        answer: dict[str, Any] = json.loads(line)
        return answer
