"""What a program needs to run in the guest.

The command comes from this machine, so it takes this machine's libraries along, at their own places. A tool of
`--with` comes from Debian with Debian's libraries, which may be others: each such package lives in a folder
`/opt/PACKAGE` of its own, and a one-line script in `/opt/bin` starts each of its programs through that
folder's dynamic loader.
"""

from __future__ import annotations

import posixpath
import re
import shlex
import subprocess
from pathlib import Path
from typing import Callable

from debian import Root
from messages import Refused

ELF = b"\x7fELF"
PROGRAM_FOLDERS = ("bin", "sbin", "usr/bin", "usr/sbin")

Add = Callable[[str, bytes, int], None]
"""Takes a file for the guest: its place, its contents, its mode."""


def add_from_host(program: Path, place: str, add: Add) -> None:
    """A file of this machine, and the shared libraries it needs when it is a program."""
    try:
        data = program.read_bytes()
    except OSError as error:
        raise Refused(f"{program}: {error.strerror}") from error
    add(place, data, program.stat().st_mode & 0o7777)
    if data.startswith(ELF):
        for library in host_libraries(program):
            add(str(library), library.read_bytes(), 0o755)


def host_libraries(program: Path) -> list[Path]:
    """The libraries, and the dynamic loader, of a program of this machine; none when it is static."""
    # ldd exits with 1 for a static program.
    listing = subprocess.run(["ldd", str(program)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    missing = re.findall(r"(\S+) => not found", listing.stdout)
    if missing:
        raise Refused(f"{program} needs {', '.join(missing)}, which this machine does not have")
    return [Path(p) for p in re.findall(r"(/\S+) \(0x", listing.stdout)]


def add_package(root: Root, package: str, add: Add) -> None:
    """The programs and settings of a Debian package, from the folder it was unpacked into."""
    home = f"/opt/{package}"
    libraries: dict[str, Path] = {}
    for name in root.files_of(package):
        file = root.path / name
        if not file.is_file():
            continue
        if name.startswith("etc/"):
            add(f"/{name}", file.read_bytes(), 0o644)
        elif posixpath.dirname(name) in PROGRAM_FOLDERS:
            base = posixpath.basename(name)
            data = file.read_bytes()
            if data.startswith(ELF):
                # A link such as mkfs.ext4 becomes a script that passes the name on; the program is there once.
                program = f"{home}/bin/{file.resolve().name}"
                add(program, data, 0o755)
                libraries.update((library.name, library) for library in root.libraries_of(file))
                add(f"/opt/bin/{base}", starter(home, base, program), 0o755)
            else:
                add(f"/opt/bin/{base}", data, 0o755)
    for base, library in libraries.items():
        add(f"{home}/lib/{base}", library.read_bytes(), 0o755)
    add(f"{home}/lib/{root.loader.name}", root.loader.read_bytes(), 0o755)


def starter(home: str, name: str, program: str) -> bytes:
    """A script that runs PROGRAM under NAME with the libraries of HOME."""
    loader = f"{home}/lib/ld-linux-x86-64.so.2"
    words = ["exec", loader, "--argv0", name, "--library-path", f"{home}/lib", program]
    return f'#!/bin/sh\n{shlex.join(words)} "$@"\n'.encode()
