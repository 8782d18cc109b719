"""Runs the lines of a Dockerfile without Docker, in a folder with an empty Debian or Ubuntu.

`FROM` becomes a root folder of debootstrap, `RUN` a command in a chroot, and
`COPY` a copy from the context. At the end the command of `CMD` runs, or the given
ones. A Dockerfile with another instruction is an error.
"""

import argparse
import contextlib
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from build_context import BuildContext

ROOT = Path(__file__).resolve().parent.parent
RELEASES = {"debian:12": "bookworm", "debian:13": "trixie", "ubuntu:24.04": "noble"}
DEBIAN_RELEASES = [release for image, release in RELEASES.items() if image.startswith("debian:")]
UBUNTU_ARCHIVE = "http://archive.ubuntu.com/ubuntu"
# Debian has no package with the keys of Ubuntu. This one is part of 24.04, so it stays in the archive.
UBUNTU_KEYS = f"{UBUNTU_ARCHIVE}/pool/main/u/ubuntu-keyring/ubuntu-keyring_2023.11.28.1_all.deb"
UBUNTU_KEYS_SHA256 = "36de43b15853ccae0028e9a767613770c704833f82586f28eb262f0311adb8a8"
PATHS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# What this machine needs to reach the archives of Debian and PyPI, such as a proxy or certificates.
NETWORK_FILES = ("etc/resolv.conf", "etc/pip.conf", "etc/apt/apt.conf.d", "etc/ssl/certs", "usr/local/share/ca-certificates")
NETWORK_VARIABLES = re.compile(r"(pip|https?|no|all|ssl|requests|curl)_\w+", re.IGNORECASE)
# Images of Docker keep no archives of packages.
CLEAN = """DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb"; };
APT::Update::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb"; };
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
"""
# Slim ones have no translations, and no documentation but licenses.
SLIM_FOLDERS = [f"usr/share/{name}" for name in ("doc", "info", "linda", "lintian", "locale", "man")]
LICENSES = "usr/share/doc/*/copyright"
VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\}|)")
HEREDOC = re.compile(r"(?:^|\s)\d*<<-?[\"']?\w")


class ImageError(RuntimeError):
    """The error of a line of a Dockerfile; the message has the line."""


def parse(path: Path) -> list[tuple[str, str]]:
    """The instructions of a Dockerfile and their arguments.

    Raises:
        ImageError: A line has no arguments, or begins a here-document.
    """
    text = re.sub(r"^[ \t]*#.*\n?", "", path.read_text(), flags=re.MULTILINE)
    text = re.sub(r"\\[ \t]*(\n|\Z)", " ", text)
    found = []
    for line in filter(str.strip, text.splitlines()):
        name, *rest = line.split(maxsplit=1)
        if not rest:
            raise ImageError(f"expects an instruction with arguments, got '{line}'")
        if HEREDOC.search(rest[0]):
            raise ImageError(f"expects a line without a here-document, got '{line}'")
        found.append((name, rest[0]))
    return found


def parse_command(text: str) -> list[str]:
    """The command of RUN or CMD: a list in JSON, or a line for the shell."""
    try:
        words = json.loads(text)
    except ValueError:
        words = None
    if isinstance(words, list) and all(isinstance(word, str) for word in words):
        return words
    if text.startswith("--"):
        raise ImageError(f"expects a command without options, got '{text}'")
    return ["/bin/sh", "-c", text]


def parse_pairs(text: str) -> dict[str, str]:
    """The values of NAME=VALUE … by their names."""
    words = shlex.split(text)
    if wrong := [word for word in words if "=" not in word]:
        raise ImageError(f"expects NAME=VALUE, got '{wrong[0]}'")
    return dict(word.split("=", 1) for word in words)


def run(command: Sequence[str], **options) -> None:
    subprocess.run(command, check=True, **options)


class Image:
    """A root folder, in which instructions of a Dockerfile run.

    Attributes:
        folder: The folder.
        context: The files that COPY can read.
        archive: The archive of Debian; empty for that of debootstrap.
        arguments: The values that replace defaults of ARG.
    """

    def __init__(self, folder: Path, context: BuildContext, archive: str, arguments: Mapping[str, str]) -> None:
        self.folder = folder
        self.context = context
        self.archive = archive
        self.arguments = arguments
        self.has_root = False
        self.global_values: dict[str, str] = {}
        self.values: dict[str, str] = {}
        self.variables = {"PATH": PATHS, "HOME": "/root", "LANG": "C.UTF-8"}
        self.variables |= {name: value for name, value in os.environ.items() if NETWORK_VARIABLES.fullmatch(name)}
        self.place = "/"
        self.command: list[str] = []

    def do(self, name: str, rest: str) -> None:
        """Runs an instruction."""
        name = name.upper()
        done = getattr(self, f"do_{name.lower()}", None)
        if done is None:
            raise ImageError(f"expects ARG, FROM, RUN, COPY, ENV, WORKDIR or CMD, got {name}")
        if not self.has_root and name not in ("ARG", "FROM"):
            raise ImageError(f"expects FROM before {name}")
        # The shell expands the variables of commands.
        done(rest if name in ("RUN", "CMD") else self.expand(rest))

    def expand(self, text: str) -> str:
        """Replaces variables; those without a value are empty."""
        values = self.values | self.variables if self.has_root else self.global_values

        def replace(match: re.Match[str]) -> str:
            name = match[1] or match[2]
            if not name:
                raise ImageError(f"expects $NAME or ${{NAME}}, got '{text[match.start() :]}'")
            return values.get(name, "")

        return VARIABLE.sub(replace, text)

    def do_arg(self, rest: str) -> None:
        """Defines values: before FROM for FROM alone, and after it for the lines that follow."""
        for word in shlex.split(rest):
            name, equals, default = word.partition("=")
            given = {name: default} if equals else self.global_values
            value = self.arguments.get(name, given.get(name))
            if value is not None:
                (self.values if self.has_root else self.global_values)[name] = value

    def do_from(self, rest: str) -> None:
        if self.has_root:
            raise ImageError(f"expects one FROM, got another: '{rest}'")
        release = RELEASES.get(re.sub(r"^(debian:\d+)-slim$", r"\1", rest))
        if release is None:
            raise ImageError(f"expects {', '.join(RELEASES)}, got '{rest}'")
        make_root(release, self.folder, self.archive)
        if rest.endswith("-slim"):
            make_slim(self.folder)
        self.has_root = True

    def do_run(self, rest: str) -> None:
        self.run(parse_command(rest), self.values)

    def do_copy(self, rest: str) -> None:
        *patterns, target = shlex.split(rest)
        if options := [word for word in patterns if word.startswith("--")]:
            raise ImageError(f"expects COPY without options, got {options[0]}")
        if not patterns:
            raise ImageError(f"expects COPY to have a source and a target, got '{rest}'")
        sources = [path for pattern in patterns for path in self.find_sources(pattern)]
        destination = self.folder / os.path.join(self.place, target).lstrip("/")
        is_folder = target.endswith("/") or destination.is_dir() or any(path.is_dir() for path in sources)
        if not is_folder and len(sources) > 1:
            raise ImageError(f"expects a target that ends in / for {len(sources)} files, got '{target}'")
        for source in sources:
            for path in self.context.find_files(source):
                name = path.relative_to(source) if source.is_dir() else path.name
                file = destination / name if is_folder else destination
                file.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, file)

    def find_sources(self, pattern: str) -> list[Path]:
        """The files and folders of the context that match a pattern of COPY."""
        parts = Path(pattern.lstrip("/")).parts
        if ".." in parts or "**" in parts:
            raise ImageError(f"expects a pattern of files in the context, without .. and **, got '{pattern}'")
        found = [self.context.folder] if not parts else sorted(self.context.folder.glob("/".join(parts)))
        found = [path for path in found if self.context.find_files(path)]
        if not found:
            raise ImageError(f"expects a file '{pattern}' in the context, which its ignore file does not leave out")
        return found

    def do_env(self, rest: str) -> None:
        self.variables |= parse_pairs(rest)

    def do_workdir(self, rest: str) -> None:
        self.place = os.path.join(self.place, rest)
        (self.folder / self.place.lstrip("/")).mkdir(parents=True, exist_ok=True)

    def do_cmd(self, rest: str) -> None:
        self.command = parse_command(rest)

    def run(self, command: Sequence[str], values: Mapping[str, str] | None = None) -> None:
        """Runs a command in the folder as its root, with /proc and /dev; variables of ENV replace values of ARG."""
        with mounted(self.folder):
            environment = [f"{name}={value}" for name, value in {**(values or {}), **self.variables}.items()]
            moved = ["/bin/sh", "-c", 'cd "$0" && exec "$@"', self.place, *command]
            run(["chroot", str(self.folder), "/usr/bin/env", "-i", *environment, *moved])


@contextlib.contextmanager
def mounted(folder: Path) -> Iterator[None]:
    """Mounts /proc and /dev in a folder; both are unmounted after it, also after an error in between."""
    with contextlib.ExitStack() as stack:
        for target in (folder / name for name in ("proc", "dev")):
            if target.is_dir():
                stack.callback(unmount, target)
                run(["mount", "--rbind", f"/{target.name}", str(target)])
                run(["mount", "--make-rslave", str(target)])
        yield


def unmount(target: Path) -> None:
    """Unmounts a folder, unless its mount has failed."""
    if os.path.ismount(target):
        run(["umount", "--lazy", "--recursive", str(target)])


def make_root(release: str, folder: Path, archive: str) -> None:
    """Makes a folder with a minimal Debian or Ubuntu, which can reach the archives that this machine uses.

    Args:
        release: The name of the release.
        folder: The folder.
        archive: The archive of Debian; empty for that of debootstrap.
    """
    command = ["debootstrap", "--variant=minbase"]
    if release in DEBIAN_RELEASES:
        run([*command, release, str(folder), *filter(None, [archive])])
        copy_sources(release, folder)
    else:
        with ubuntu_keys() as keys:
            # All releases of Ubuntu have this script; an older debootstrap lacks the name of a newer release.
            more = ["--components=main,universe", f"--keyring={keys}", release, str(folder), UBUNTU_ARCHIVE]
            run([*command, *more, "/usr/share/debootstrap/scripts/gutsy"])
    for name in NETWORK_FILES:
        source, target = Path("/", name), folder / name
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True, ignore_dangling_symlinks=True)
        elif source.exists():
            shutil.copy(source, target)
    keep_no_archives(folder)


def keep_no_archives(folder: Path) -> None:
    """Removes the archives of packages, and those of later packages after they are installed."""
    for archive in folder.glob("var/cache/apt/archives/*.deb"):
        archive.unlink()
    write(folder / "etc/apt/apt.conf.d/zz-docker-clean", CLEAN)


def make_slim(folder: Path) -> None:
    """Removes documentation and translations, and leaves out those of later packages."""
    lines = [*(f"path-exclude /{name}/*" for name in SLIM_FOLDERS), f"path-include /{LICENSES}"]
    write(folder / "etc/dpkg/dpkg.cfg.d/docker", "".join(f"{line}\n" for line in lines))
    licenses = set(folder.glob(LICENSES))
    for path in [path for name in SLIM_FOLDERS for path in (folder / name).rglob("*")]:
        if path not in licenses and (path.is_symlink() or path.is_file()):
            path.unlink()


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@contextlib.contextmanager
def ubuntu_keys() -> Iterator[Path]:
    """Downloads the keys that sign the archive of Ubuntu."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder, "keys.deb")
        try:
            urllib.request.urlretrieve(UBUNTU_KEYS, package)
        except OSError as error:
            raise ImageError(f"expects {UBUNTU_KEYS} within reach: {error}") from None
        found = hashlib.sha256(package.read_bytes()).hexdigest()
        if found != UBUNTU_KEYS_SHA256:
            raise ImageError(f"expects {UBUNTU_KEYS} to have the SHA-256 {UBUNTU_KEYS_SHA256}, got {found}")
        run(["dpkg-deb", "--extract", str(package), folder])
        yield Path(folder, "usr/share/keyrings/ubuntu-archive-keyring.gpg")


def copy_sources(release: str, folder: Path) -> None:
    """Copies the list of this machine's archives of Debian, for another release."""
    sources = Path("/etc/apt/sources.list.d/debian.sources")
    if sources.exists():
        text = sources.read_text()
        (folder / "etc/apt/sources.list").unlink(missing_ok=True)
        release_of_text = re.compile("|".join(DEBIAN_RELEASES))
        (folder / "etc/apt/sources.list.d/debian.sources").write_text(release_of_text.sub(release, text))


def copy_repository(folder: Path) -> None:
    """Copies the tracked files as they are in the working tree."""
    names = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, check=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)


def measure(folder: Path) -> int:
    """Megabytes of a folder, without those of mounts in it."""
    command = ["du", "-sxB", "1000000", "--apparent-size", str(folder)]
    return int(subprocess.run(command, capture_output=True, check=True, text=True).stdout.split()[0])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("scripts/check-images", description=__doc__.splitlines()[0])
    parser.add_argument("dockerfile", type=Path)
    parser.add_argument("folder", type=Path, help="an empty folder, which becomes the image's root")
    parser.add_argument("--context", type=Path, default=ROOT, help="the folder of COPY's files (default: the repository)")
    parser.add_argument("--build-arg", action="append", default=[], metavar="NAME=VALUE", help="a value of ARG")
    parser.add_argument("--command", action="append", default=[], metavar="TEXT", help="run this instead of CMD")
    parser.add_argument("--source", metavar="PATH", help="copy what git tracks here into this folder of the image")
    parser.add_argument("--limit", type=int, default=sys.maxsize, metavar="MB", help="the largest image")
    parser.add_argument("--archive", default="", metavar="URL", help="the archive of Debian (default: that of debootstrap)")
    options = parser.parse_args(arguments)
    try:
        context = BuildContext.read(options.context.resolve(), options.dockerfile)
        image = Image(options.folder, context, options.archive, parse_pairs(shlex.join(options.build_arg)))
        for name, rest in parse(options.dockerfile):
            print(f"{name} {rest}", flush=True)
            image.do(name, rest)
        if options.source:
            copy_repository(options.folder / options.source.lstrip("/"))
        for command in [["/bin/sh", "-ec", text] for text in options.command] or [image.command]:
            image.run(command)
        size = measure(options.folder)
        print(f"{size} MB")
        if size > options.limit:
            raise ImageError(f"expects an image of at most {options.limit} MB, got {size}")
    except ImageError as error:
        print(f"error: {options.dockerfile}: {error}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        print(f"error: {options.dockerfile}: status {error.returncode} of: {shlex.join(error.cmd)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
