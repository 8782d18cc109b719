"""Runs the lines of a Dockerfile without Docker, in a folder with an empty Debian.

`FROM debian:N` becomes a root folder of debootstrap, `RUN` a command in a chroot, and
`COPY` a copy from the repository. At the end the command of `CMD` runs, or the given
ones. A Dockerfile with another instruction is an error.
"""

import argparse
import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RELEASES = {"12": "bookworm", "13": "trixie"}
PATHS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# What this machine needs to reach the archives of Debian and PyPI, such as a proxy or certificates.
NETWORK_FILES = ("etc/resolv.conf", "etc/pip.conf", "etc/apt/apt.conf.d", "etc/ssl/certs", "usr/local/share/ca-certificates")
NETWORK_VARIABLES = re.compile(r"(pip|https?|no|all|ssl|requests|curl)_\w+", re.IGNORECASE)


class ImageError(RuntimeError):
    """The error of a line of a Dockerfile; the message has the line."""


def parse(path: Path) -> list[tuple[str, str]]:
    """The instructions of a Dockerfile and their arguments."""
    text = re.sub(r"^#.*\n", "", path.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    pairs = (line.split(maxsplit=1) for line in text.splitlines() if line.strip())
    return [(name, rest) for name, rest in pairs]


def run(command: Sequence[str], **options) -> None:
    subprocess.run(command, check=True, **options)


class Image:
    """A root folder, in which instructions of a Dockerfile run."""

    def __init__(self, folder: Path, archive: str, arguments: Mapping[str, str]) -> None:
        self.folder = folder
        self.archive = archive
        self.arguments = arguments
        self.values: dict[str, str] = {}
        self.variables = {"PATH": PATHS, "HOME": "/root", "LANG": "C.UTF-8"}
        self.variables |= {name: value for name, value in os.environ.items() if NETWORK_VARIABLES.fullmatch(name)}
        self.place = "/"
        self.command: list[str] = []

    def do(self, name: str, rest: str) -> None:
        """Runs an instruction."""
        done = getattr(self, f"do_{name.lower()}", None)
        if done is None:
            raise ImageError(f"expects ARG, FROM, RUN, COPY, ENV, WORKDIR or CMD, got {name}")
        done(re.sub(r"\$\{(\w+)\}", lambda match: self.values.get(match[1], match[0]), rest))

    def do_arg(self, rest: str) -> None:
        name, _, default = rest.partition("=")
        self.values[name] = self.arguments.get(name, default)

    def do_from(self, rest: str) -> None:
        release = re.fullmatch(r"debian:(\d+)(-slim)?", rest)
        if not release or release[1] not in RELEASES:
            raise ImageError(f"expects 'debian:12' or 'debian:13', got '{rest}'")
        make_root(RELEASES[release[1]], self.folder, self.archive)

    def do_run(self, rest: str) -> None:
        self.run(["/bin/sh", "-ec", rest])

    def do_copy(self, rest: str) -> None:
        *patterns, target = shlex.split(rest)
        folder = self.folder / target.lstrip("/")
        folder.mkdir(parents=True, exist_ok=True)
        for pattern in patterns:
            found = sorted(ROOT.glob(pattern))
            if not found:
                raise ImageError(f"expects a file '{pattern}' in the repository")
            for path in found:
                shutil.copy(path, folder)

    def do_env(self, rest: str) -> None:
        self.variables |= dict(word.split("=", 1) for word in shlex.split(rest))

    def do_workdir(self, rest: str) -> None:
        (self.folder / rest.lstrip("/")).mkdir(parents=True, exist_ok=True)
        self.place = rest

    def do_cmd(self, rest: str) -> None:
        self.command = json.loads(rest)

    def run(self, command: Sequence[str]) -> None:
        """Runs a command in the folder as its root, with /proc and /dev."""
        with mounted(self.folder):
            environment = [f"{name}={value}" for name, value in self.variables.items()]
            moved = ["/bin/sh", "-c", 'cd "$0" && exec "$@"', self.place, *command]
            run(["chroot", str(self.folder), "/usr/bin/env", "-i", *environment, *moved])


@contextlib.contextmanager
def mounted(folder: Path) -> Iterator[None]:
    places = [name for name in ("proc", "dev") if (folder / name).is_dir()]
    for name in places:
        run(["mount", "--rbind", f"/{name}", str(folder / name)])
        run(["mount", "--make-rslave", str(folder / name)])
    try:
        yield
    finally:
        for name in places:
            run(["umount", "--lazy", "--recursive", str(folder / name)])


def make_root(release: str, folder: Path, archive: str) -> None:
    """Makes a folder with a minimal Debian, which can reach the archives that this machine uses."""
    run(["debootstrap", "--variant=minbase", release, str(folder), *filter(None, [archive])])
    for name in NETWORK_FILES:
        source, target = Path("/", name), folder / name
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True, ignore_dangling_symlinks=True)
        elif source.exists():
            shutil.copy(source, target)
    sources = Path("/etc/apt/sources.list.d/debian.sources")
    if sources.exists():
        text = sources.read_text()
        (folder / "etc/apt/sources.list").unlink(missing_ok=True)
        release_of_text = re.compile("|".join(RELEASES.values()))
        (folder / "etc/apt/sources.list.d/debian.sources").write_text(release_of_text.sub(release, text))


def copy_repository(folder: Path) -> None:
    """Copies the tracked files as they are in the working tree."""
    names = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, check=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("scripts/check-images", description=__doc__.splitlines()[0])
    parser.add_argument("dockerfile", type=Path)
    parser.add_argument("folder", type=Path, help="an empty folder, which becomes the image's root")
    parser.add_argument("--build-arg", action="append", default=[], metavar="NAME=VALUE", help="a value of ARG")
    parser.add_argument("--command", action="append", default=[], metavar="TEXT", help="run this instead of CMD")
    parser.add_argument("--source", metavar="PATH", help="copy what git tracks here into this folder of the image")
    parser.add_argument("--archive", default="", metavar="URL", help="the archive of Debian (default: debootstrap's)")
    options = parser.parse_args(arguments)
    image = Image(options.folder, options.archive, dict(text.split("=", 1) for text in options.build_arg))
    try:
        for name, rest in parse(options.dockerfile):
            print(f"{name} {rest}", flush=True)
            image.do(name, rest)
        if options.source:
            copy_repository(options.folder / options.source.lstrip("/"))
        for command in [["/bin/sh", "-ec", text] for text in options.command] or [image.command]:
            image.run(command)
        size = subprocess.run(["du", "-sm", "--one-file-system", str(options.folder)], capture_output=True, text=True)
        print(f"{size.stdout.split()[0]} MB")
    except ImageError as error:
        print(f"error: {options.dockerfile}: {error}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        print(f"error: {options.dockerfile}: status {error.returncode} of: {shlex.join(error.cmd)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
