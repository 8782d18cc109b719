"""Tests of scripts/images.py: lines of Dockerfiles mean what Docker's reference says, and others are errors."""

import hashlib
import re
import subprocess
import sys

import pytest
from places import ROOT

sys.path.append(str(ROOT / "scripts"))
import images  # noqa: E402


@pytest.fixture
def build(tmp_path, monkeypatch, capsys):
    """Runs the lines of a Dockerfile, without a chroot; returns the output of its commands, or the error."""
    root = tmp_path / "root"
    root.mkdir()
    outputs = []

    def run(command, **_):
        assert command[0] == "chroot"
        outputs.append(subprocess.run(command[2:], capture_output=True, text=True, check=True).stdout)

    monkeypatch.setattr(images, "make_root", lambda *_: None)
    monkeypatch.setattr(images, "run", run)

    def build(*lines, options=()):
        outputs.clear()
        file = tmp_path / "context/Dockerfile"
        file.parent.mkdir(exist_ok=True)
        file.write_text("".join(f"{line}\n" for line in lines))
        status = images.main([str(file), str(root), "--context", str(file.parent), *options])
        return "".join(outputs) if status == 0 else capsys.readouterr().err

    return build


@pytest.mark.parametrize("lines, options, output", [
    # Docker's reference, "Understand how ARG and FROM interact"
    (["ARG A=1", "FROM debian:12", "RUN echo =$A="], [], "=="),
    (["ARG A=1", "FROM debian:12", "ARG A", "RUN echo =$A="], [], "=1="),
    (["ARG A=1", "FROM debian:12", "ARG A=2", "RUN echo =$A="], [], "=2="),
    (["ARG A=1", "FROM debian:12", "ARG A=2", "RUN echo =$A="], ["--build-arg", "A=3"], "=3="),
    (["ARG A=1", "FROM debian:12", "RUN echo =$A="], ["--build-arg", "A=3"], "=="),
    (["ARG V=12", "FROM debian:${V}-slim", "RUN echo =$V="], [], "=="),
    # "Using ARG variables": those of ENV have precedence, and CMD gets none.
    (["FROM debian:12", "ARG A=1", "ENV A=2", "RUN echo =$A="], [], "=2="),
    (["FROM debian:12", "ARG A=1", "ENV B=$A-${A}-$C", "RUN echo =$B="], [], "=1-1-="),
    (["FROM debian:12", "ARG A=1", 'CMD ["sh", "-c", "echo =$A="]'], [], "=="),
    (["FROM debian:12", "ARG A", "RUN env | grep -c ^A= || true"], [], "0"),
    (["FROM debian:12", "RUN A=1 && echo =$A= && echo ${A:-2}"], [], "=1=\n1"),
    (["FROM debian:12", "# a comment", "RUN echo a \\", "  # another one", "  b"], [], "a b"),
    (["FROM debian:12", 'RUN ["echo", "$A"]'], [], "$A"),
    (["FROM debian:12", "CMD false; echo a"], [], "a"),
])  # fmt: skip
def test_variables_are_those_of_docker(build, lines, options, output):
    assert build(*lines, options=options) == output + "\n"


@pytest.mark.parametrize("lines, message", [
    (["FROM debian:12", "RUN cat <<EOF", "hello", "EOF"], "a line without a here-document, got 'RUN cat <<EOF'"),
    (["FROM debian:12", "RUN <<-'END' sh"], "a line without a here-document, got 'RUN <<-'END' sh'"),
    (["FROM debian:12", "EOF"], "expects an instruction with arguments, got 'EOF'"),
    (["RUN true"], "expects FROM before RUN"),
    (["FROM debian:12", "FROM debian:13"], "expects one FROM, got another: 'debian:13'"),
    (["FROM debian:11"], "expects debian:12, debian:13, ubuntu:24.04, got 'debian:11'"),
    (["FROM ubuntu:24.04-slim"], "expects debian:12, debian:13, ubuntu:24.04, got 'ubuntu:24.04-slim'"),
    (["FROM debian:12", "ADD a b"], "expects ARG, FROM, RUN, COPY, ENV, WORKDIR or CMD, got ADD"),
    (["FROM debian:12", "RUN --mount=type=cache,target=/x true"], "expects a command without options, got '--mount"),
    (["FROM debian:12", "ENV A 1"], "expects NAME=VALUE, got 'A'"),
    (["FROM debian:12", "WORKDIR /${A:-x}"], "expects $NAME or ${NAME}, got '${A:-x}'"),
])  # fmt: skip
def test_unsupported_lines_are_errors(build, lines, message):
    error = build(*lines)
    assert error.startswith("error: ") and message in error


def test_wrong_build_argument_is_an_error(build):
    assert "expects NAME=VALUE, got 'PYTHON'" in build("FROM debian:12", options=["--build-arg", "PYTHON"])


@pytest.mark.parametrize("image, arguments", [
    ("debian:12", "bookworm FOLDER http://x/debian"), ("debian:13-slim", "trixie FOLDER http://x/debian"),
    ("ubuntu:24.04", "--components=main,universe --keyring=KEYS noble FOLDER http://archive.ubuntu.com/ubuntu gutsy"),
])
def test_releases_have_an_archive_each(tmp_path, monkeypatch, image, arguments):
    """The keys of Ubuntu are those of the package with the checksum."""
    commands, contents = [], b"keys"
    monkeypatch.setattr(images, "run", commands.append)
    monkeypatch.setattr(images.shutil, "copytree", lambda *_, **__: None)
    monkeypatch.setattr(images.shutil, "copy", lambda *_: None)
    monkeypatch.setattr(images, "copy_sources", lambda *_: None)
    monkeypatch.setattr(images, "UBUNTU_KEYS_SHA256", hashlib.sha256(contents).hexdigest())
    monkeypatch.setattr(images.urllib.request, "urlretrieve", lambda _, path: path.write_bytes(contents))
    images.Image(tmp_path, images.BuildContext(tmp_path), "http://x/debian", {}).do("FROM", image)
    assert (tmp_path / "etc/apt/apt.conf.d/zz-docker-clean").exists()
    words = " ".join(commands[-1]).replace(str(tmp_path), "FOLDER")
    words = re.sub(r"=\S+/usr/share/keyrings/ubuntu-archive-keyring.gpg", "=KEYS", words)
    assert words.replace("/usr/share/debootstrap/scripts/", "") == f"debootstrap --variant=minbase {arguments}"
    if image.startswith("ubuntu"):
        monkeypatch.setattr(images, "UBUNTU_KEYS_SHA256", "0")
        with pytest.raises(images.ImageError, match="to have the SHA-256 0, got [0-9a-f]{64}"):
            images.make_root("noble", tmp_path, "")


def test_slim_images_have_licenses_alone(tmp_path, monkeypatch):
    """As those of Docker, which keep no archives of packages either."""
    archive = tmp_path / "var/cache/apt/archives/a.deb"
    kept = [tmp_path / name for name in ("usr/share/doc/a/copyright", "usr/share/zoneinfo/UTC", "usr/bin/a")]
    removed = [tmp_path / f"usr/share/{name}" for name in ("doc/a/NEWS", "doc/b/deep/copyright", "man/man1/a.1", "locale/de/a.mo")]
    for path in [archive, *kept, *removed]:
        images.write(path, "text")
    images.make_slim(tmp_path)
    assert [path.exists() for path in [*kept, *removed]] == [True] * 3 + [False] * 4
    rules = (tmp_path / "etc/dpkg/dpkg.cfg.d/docker").read_text().splitlines()
    assert "path-exclude /usr/share/man/*" in rules and rules[-1] == "path-include /usr/share/doc/*/copyright"
    images.keep_no_archives(tmp_path)
    assert not archive.exists() and "archives/*.deb" in (tmp_path / "etc/apt/apt.conf.d/zz-docker-clean").read_text()


@pytest.mark.parametrize("limit, error", [("7", ""), ("6", "expects an image of at most 6 MB, got 7")])
def test_images_have_a_limit(build, tmp_path, limit, error):
    (tmp_path / "root/zeros").write_bytes(bytes(6_500_000))
    assert error in build("FROM debian:12", "CMD true", options=["--limit", limit])


# --- COPY ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def context(tmp_path):
    for name in ("a.txt", "b.txt", "dist/x.whl", "dist/x.log", "dist/deep/y.whl"):
        path = tmp_path / "context" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path / "context"


@pytest.mark.parametrize("words, files", [
    ("a.txt /to/", {"to/a.txt": "a.txt"}),
    ("a.txt /to", {"to": "a.txt"}),
    ("a.txt to", {"work/to": "a.txt"}),
    ("/a.txt .", {"work/a.txt": "a.txt"}),
    ("*.txt /to/", {"to/a.txt": "a.txt", "to/b.txt": "b.txt"}),
    ("dist /to", {"to/x.whl": "dist/x.whl", "to/x.log": "dist/x.log", "to/deep/y.whl": "dist/deep/y.whl"}),
    ("dist/*.whl a.txt /to/", {"to/x.whl": "dist/x.whl", "to/a.txt": "a.txt"}),
    ("--chown=1:1 a.txt /to/", "expects COPY without options, got --chown=1:1"),
    ("--from=debian:12 /etc/passwd /to/", "expects COPY without options, got --from=debian:12"),
    ("*.txt /to", "expects a target that ends in / for 2 files, got '/to'"),
    ("a.txt", "expects COPY to have a source and a target, got 'a.txt'"),
    ("../x /to/", "expects a pattern of files in the context, without .. and **, got '../x'"),
    ("c.txt /to/", "expects a file 'c.txt' in the context"),
])
def test_copy(build, context, tmp_path, words, files):
    error = build("FROM debian:12", "WORKDIR /work", f"COPY {words}", "WORKDIR /", "CMD true")
    if isinstance(files, str):
        assert files in error
    else:
        root = tmp_path / "root"
        assert {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()} == files


@pytest.mark.parametrize("lines, found", [
    ([], "a.txt b.txt dist/deep/y.whl dist/x.log dist/x.whl"),
    (["*"], ""),
    (["*", "!dist/*.whl"], "dist/x.whl"),
    (["*", "!dist"], "dist/deep/y.whl dist/x.log dist/x.whl"),
    (["!dist", "*"], ""),
    (["# *", "/dist/", ""], "a.txt b.txt"),
    (["**/*.whl", "!**/x.whl"], "a.txt b.txt dist/x.log dist/x.whl"),
    (["*.whl"], "a.txt b.txt dist/deep/y.whl dist/x.log dist/x.whl"),
    (["[^a].txt", "dist/x.???"], "a.txt dist/deep/y.whl"),
    (["dist/**"], "a.txt b.txt"),
])
@pytest.mark.parametrize("name", ["Dockerfile.dockerignore", ".dockerignore"])
def test_ignore_file_leaves_files_out(context, tmp_path, lines, found, name):
    (context / name).write_text("\n".join(lines))
    read = images.BuildContext.read(context, context / "Dockerfile")
    files = {path.relative_to(context).as_posix() for path in read.find_files(context)}
    assert files - {name} == set(found.split())


def test_copy_of_an_ignored_file_is_an_error(build, context):
    (context / "Dockerfile.dockerignore").write_text("*\n!dist/*.whl\n")
    assert "expects a file 'a.txt' in the context, which its ignore file" in build("FROM debian:12", "COPY a.txt /to/")


# --- Mounts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("failure, unmounted", [(None, 2), (0, 0), (1, 1), (2, 1), (3, 2)])
def test_mounts_end_after_an_error(tmp_path, monkeypatch, failure, unmounted):
    """Each command fails in turn; it is the mount or the propagation of /proc, and then those of /dev."""
    for name in ("proc", "dev"):
        (tmp_path / name).mkdir()
    commands, mounts = [], set()

    def run(command):
        if len(commands) == failure:
            commands.append(command)
            raise KeyboardInterrupt
        commands.append(command)
        if command[:2] == ["mount", "--rbind"]:
            mounts.add(command[-1])
        if command[0] == "umount":
            mounts.remove(command[-1])

    monkeypatch.setattr(images, "run", run)
    monkeypatch.setattr(images.os.path, "ismount", lambda path: str(path) in mounts)
    try:
        with images.mounted(tmp_path):
            assert len(mounts) == 2
    except KeyboardInterrupt:
        assert failure is not None
    assert not mounts and sum(command[0] == "umount" for command in commands) == unmounted
