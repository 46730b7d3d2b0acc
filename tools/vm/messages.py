"""What the bench says to the person who runs it, and how it gives up.

Everything goes to standard error: standard output belongs to the command in the guest.
"""

from __future__ import annotations

import sys


class BenchError(Exception):
    """The bench cannot go on. The text says why and, where there is one, the remedy."""

    def __init__(self, message: str, code: int = 126) -> None:
        super().__init__(message)
        self.code = code


class Refused(BenchError):
    """What was asked for does not work: an option, or a device QEMU does not take."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code=2)


def say(message: str) -> None:
    """Tell the person what is going on."""
    print(f"vm: {message}", file=sys.stderr, flush=True)
