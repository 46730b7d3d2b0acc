"""Debian packages without installing them.

The bench needs a QEMU, kernels and tools of known versions whatever the machine runs. They come from Debian
through the machine's own apt, but into a private apt root: own sources list, own package lists and an empty
list of installed packages. Nothing of the machine's package state is read or changed, root is not needed, and
because nothing counts as installed, apt brings every library along. The result is a `Root`: a folder whose
programs run on any x86-64 Linux through the folder's own dynamic loader.

The mirror is the one the machine already uses (`NVMETAL_VM_MIRROR` overrides it, and is needed where the
machine has no Debian sources, such as on Ubuntu).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from collections.abc import Sequence

from cache import Cache
from messages import BenchError, say

RELEASE = "bookworm"
BACKPORTS = "bookworm-backports"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
LIBRARY_FOLDERS = ("lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu")
DEBIAN_SUITES = {
    *("oldoldstable", "oldstable", "stable", "testing", "unstable", "sid"),
    *("bullseye", "bookworm", "trixie", "forky", "duke"),
}

APT_CONFIGURATION = """\
Dir::Etc::sourcelist "{apt}/sources.list";
Dir::Etc::sourceparts "{apt}/none";
Dir::State "{apt}/state";
Dir::State::lists "{apt}/state/lists";
Dir::State::status "{apt}/state/status";
Dir::Cache "{apt}/cache";
Dir::Cache::archives "{apt}/cache/archives";
// One user, one lock of our own: no sandbox user who could not read the folder, no lock of the system's dpkg.
APT::Sandbox::User "root";
Debug::NoLocking "true";
APT::Architecture "amd64";
APT::Architectures {{ "amd64"; }};
Acquire::Languages "none";
Acquire::Retries "3";
#clear Acquire::IndexTargets::deb::DEP-11;
#clear Acquire::IndexTargets::deb::DEP-11-icons;
#clear Acquire::IndexTargets::deb::DEP-11-icons-small;
#clear Acquire::IndexTargets::deb::DEP-11-icons-hidpi;
#clear Acquire::IndexTargets::deb::DEP-11-icons-large;
#clear Acquire::IndexTargets::deb::DEP-11-icons-large-hidpi;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Post-Invoke;
"""


class Root:
    """A folder of unpacked packages with all their libraries."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def loader(self) -> Path:
        """The folder's own dynamic loader."""
        return self.path / "lib64/ld-linux-x86-64.so.2"

    def library_folders(self) -> list[Path]:
        """Every folder that holds libraries; some packages keep theirs in a folder of their own."""
        found = []
        for name in LIBRARY_FOLDERS:
            folder = self.path / name
            if folder.is_dir():
                found.append(folder)
                found.extend(sorted(f for f in folder.iterdir() if f.is_dir() and any(f.glob("lib*.so*"))))
        return found

    def command(self, program: str) -> list[str]:
        """How to run one of the folder's programs (a path below the folder) on this machine."""
        path = self.path / program
        if not self.loader.exists():
            return [str(path)]
        folders = ":".join(str(f) for f in self.library_folders())
        return [str(self.loader), "--library-path", folders, str(path)]

    def libraries_of(self, program: Path) -> list[Path]:
        """The shared libraries that PROGRAM of this folder loads."""
        folders = ":".join(str(f) for f in self.library_folders())
        listing = subprocess.run(
            [str(self.loader), "--library-path", folders, "--list", str(program)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ).stdout
        return [Path(p) for p in re.findall(r"=> (/\S+) \(0x", listing)]

    def files_of(self, package: str) -> list[str]:
        """The paths that PACKAGE brought, below the folder."""
        listing = self.path / "packages" / package
        if not listing.exists():
            raise BenchError(f"{self.path.name} does not hold the package {package}")
        return listing.read_text().splitlines()


class Archive:
    """Debian's archive, through a private apt root in the cache."""

    def __init__(self, cache: Cache) -> None:
        self.cache = cache
        self.folder = cache.directory / "apt"
        self._fresh = False

    def unpack_with_dependencies(self, packages: Sequence[str], suite: str, into: Path) -> None:
        """Put PACKAGES and all they depend on into the folder INTO."""
        self._unpack(["install", "--download-only", "--no-install-recommends", "-y"], packages, suite, into)

    def unpack(self, packages: Sequence[str], suite: str, into: Path) -> None:
        """Put PACKAGES alone into the folder INTO. A name may carry `=VERSION`."""
        self._unpack(["download"], packages, suite, into)

    def field(self, package: str, suite: str, name: str) -> str:
        """One field of PACKAGE's description, such as `Version` or `Depends`."""
        with self.cache.lock("apt"):
            self._refresh()
            text = self._apt("apt-cache", "-o", f"APT::Default-Release={suite}", "--no-all-versions", "show", package)
        found = re.search(rf"^{name}: (.*)$", text, re.MULTILINE)
        if not found:
            raise BenchError(f"{suite} has no package {package} with a field {name}")
        return found.group(1)

    def _unpack(self, verb: Sequence[str], packages: Sequence[str], suite: str, into: Path) -> None:
        with self.cache.lock("apt"):
            self._refresh()
            debs = into / "debs"
            (debs / "partial").mkdir(parents=True)
            say(f"fetching {' '.join(packages)} ({suite})")
            self._apt("apt-get", "-q", "-t", suite, "-o", f"Dir::Cache::archives={debs}", *verb, *packages, cwd=debs)
        listings = into / "packages"
        listings.mkdir(exist_ok=True)
        for deb in sorted(debs.glob("*.deb")):
            run(["dpkg-deb", "-x", str(deb), str(into)])
            name = run(["dpkg-deb", "-f", str(deb), "Package"]).strip()
            contents = subprocess.run(["dpkg-deb", "--fsys-tarfile", str(deb)], stdout=subprocess.PIPE, check=True)
            names = subprocess.run(["tar", "-t"], input=contents.stdout, stdout=subprocess.PIPE, check=True).stdout
            (listings / name).write_text("".join(f"{n[2:]}\n" for n in names.decode().splitlines() if n[2:]))
        shutil.rmtree(debs)

    def _refresh(self) -> None:
        """Bring the package lists up to date, once per run."""
        if self._fresh:
            return
        for tool in ("apt-get", "apt-cache", "dpkg-deb"):
            if not shutil.which(tool):
                raise BenchError(f"{tool} is missing: the bench takes its parts from Debian's packages")
        for name in ("none", "state/lists/partial", "cache/archives/partial"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / "state/status").write_text("")
        signed = f"[arch=amd64 signed-by={KEYRING}]" if KEYRING.exists() else "[arch=amd64]"
        base = mirror()
        suites = "".join(f"deb {signed} {base} {suite} main\n" for suite in (RELEASE, BACKPORTS))
        (self.folder / "sources.list").write_text(suites)
        (self.folder / "apt.conf").write_text(APT_CONFIGURATION.format(apt=self.folder))
        say("reading Debian's package lists (into the cache; the machine's own are left alone)")
        self._apt("apt-get", "-q", "update")
        self._fresh = True

    def _apt(self, tool: str, *arguments: str, cwd: Path | None = None) -> str:
        return run([tool, "-c", str(self.folder / "apt.conf"), *arguments], cwd=cwd)


def mirror() -> str:
    """The Debian mirror to use: the one given, else the first that the machine's own apt knows."""
    given = os.environ.get("NVMETAL_VM_MIRROR")
    if given:
        return given
    targets = run(
        ["apt-get", "indextargets", "--no-release-info", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)"]
        + ["Created-By: Packages"]
    )
    found = choose_mirror(targets)
    if not found:
        raise BenchError(
            "this machine's apt has no Debian source to take the mirror from: "
            "set NVMETAL_VM_MIRROR to a Debian mirror's URL (and install debian-archive-keyring)"
        )
    return found


def choose_mirror(targets: str) -> str | None:
    """From apt's index targets (`URI SUITE COMPONENT` a line), the first full mirror of Debian."""
    for line in targets.splitlines():
        uri, suite, component = (line.split() + ["", "", ""])[:3]
        if component == "main" and suite.split("-")[0] in DEBIAN_SUITES and "security" not in suite:
            return uri
    return None


def run(command: Sequence[str], cwd: Path | None = None) -> str:
    """Run a host program and return what it printed; a failure carries the end of its own words."""
    done = subprocess.run(
        command,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        env={**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"},
    )
    if done.returncode:
        words = (done.stderr.strip() or done.stdout.strip())[-2000:]
        raise BenchError(f"{' '.join(command[:6])} ... failed with {done.returncode}:\n{words}")
    return done.stdout


def host_compiler() -> str:
    """The compiler to use: the kernel's own version where there is one. Installed through apt by root."""
    missing = [tool for tool in ("make", "gcc", "strip") if not shutil.which(tool)]
    if missing:
        packages = ["make", "gcc", "libc6-dev", "binutils"]
        if os.geteuid() != 0:
            raise BenchError(f"{', '.join(missing)} missing: apt-get install {' '.join(packages)}")
        say(f"installing {' '.join(packages)} with apt, to build with")
        run(["apt-get", "-q", "update"])
        run(["apt-get", "-qy", "install", "--no-install-recommends", *packages])
    return "gcc-12" if shutil.which("gcc-12") else "gcc"
