"""A running QEMU: started, listened to, and ended whatever happens.

The lines between host and guest are socket pairs made here and inherited by QEMU, so there are no paths to
clean up and no moment in which one side waits for the other to listen.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shlex
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path
from collections.abc import Sequence

from control import ControlLine
from machine import Machine
from messages import say
from qmp import Qmp

LINES = ("qmp", "control", "out", "err")
PR_SET_PDEATHSIG = 1
# How long a reader of ours may take for what is left when the guest has ended.
OUTPUT_SECONDS = 10


class Guest:
    """One QEMU process. Use it as a context manager: leaving kills it."""

    def __init__(self, machine: Machine, payload: Path, console: Path, extra: Sequence[str], verbose: bool) -> None:
        ours: dict[str, socket.socket] = {}
        theirs: dict[str, socket.socket] = {}
        for name in LINES:
            ours[name], theirs[name] = socket.socketpair()
        words = machine.start()
        for name in LINES:
            words += ["-chardev", f"socket,id={name},fd={theirs[name].fileno()}"]
        words += ["-chardev", f"file,id=console,path={console}"]
        words += ["-drive", f"if=none,id=payload,format=raw,read-only=on,file={payload}"]
        words += [*machine.hardware(), *machine.extra, *extra]
        if verbose:
            say(shlex.join(words))
        self._process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=2,
            pass_fds=[s.fileno() for s in theirs.values()],
            env={**os.environ, **machine.environment},
            start_new_session=True,
            preexec_fn=die_with_parent,
        )
        for end in theirs.values():
            end.close()
        self.qmp = Qmp(ours["qmp"])
        self.control = ControlLine(ours["control"], self.qmp)
        self._sockets = ours
        self.output_lost = False
        """Whether nobody reads what the command prints any more; the guest is then ended."""
        self._relays = [self._relay(ours["out"], 1), self._relay(ours["err"], 2)]

    def __enter__(self) -> Guest:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def kill_at(self, deadline: float) -> threading.Timer:
        """Kill the guest when the monotonic clock reaches DEADLINE; cancel the timer to call it off."""
        timer = threading.Timer(max(0.0, deadline - time.monotonic()), self.kill)
        timer.daemon = True
        timer.start()
        return timer

    def kill(self) -> None:
        """End QEMU at once."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    def end(self) -> int | None:
        """End QEMU and wait until all that the command printed is out. QEMU's exit status, if it ended itself."""
        own = self._process.poll()
        self.kill()
        self._process.wait()
        for thread in self._relays:
            thread.join(OUTPUT_SECONDS)
        for end in self._sockets.values():
            end.close()
        return own

    def _relay(self, source: socket.socket, descriptor: int) -> threading.Thread:
        """Copy all that comes from SOURCE to a descriptor of ours, until its end."""

        def copy() -> None:
            while data := receive(source):
                try:
                    while data:
                        data = data[os.write(descriptor, data) :]
                except OSError:
                    self.output_lost = True
                    self.kill()
                    return

        thread = threading.Thread(target=copy, daemon=True)
        thread.start()
        return thread

    def wait_for_own_end(self, seconds: float) -> int | None:
        """QEMU's exit status when it ends by itself within SECONDS."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None


def receive(source: socket.socket) -> bytes:
    """What has come, or nothing at the end."""
    try:
        return source.recv(1 << 16)
    except OSError:
        return b""


def die_with_parent() -> None:
    """In the child: be killed when the bench is, even when it is killed so that it cannot clean up."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
