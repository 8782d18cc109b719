# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tuning files: the fastest config of each shape of attention on GPUs of one model.

A file is JSON that people can read and review. It is written under another name and
then renamed, with the entries that other processes have added meanwhile. The compiler
reads it in ``kvcache-plan-attention``.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._version import __version__
from ..checks import check_path
from ..devices.gpu_timer import Model, find_models
from ..errors import TuningError
from . import store

FORMAT = "kvcache-tuning"
VERSION = 1
_VARIABLE = "KVCACHE_TUNING"
_OFF = "off"
_OWNER = ("gpu", "chip", "driver")
"""The fields that name the GPUs that a file is for."""

Entry = Mapping[str, Any]
"""The config of a shape, and how it was found."""


@dataclass(frozen=True)
class TuningFile:
    """The contents of a tuning file.

    Attributes:
        gpu: The model of the GPUs, as the driver names it.
        chip: The chip that kernels are compiled for.
        driver: The version of the driver.
        shapes: The entries by the shapes of ops, as ``plan_attention`` returns them.
    """

    gpu: str
    chip: str
    driver: str
    shapes: Mapping[str, Entry]

    def find_difference(self, model: Model) -> str:
        """Describes how the GPUs of the file differ from a model; empty if not at all."""
        for name in _OWNER:
            own, other = getattr(self, name), getattr(model, name)
            if own != other:
                return f"is for {name} {own!r}, and this GPU has {other!r}"
        return ""


def read(path: Path) -> TuningFile:
    """Reads a file.

    Raises ``TuningError`` if it is damaged or of another version, and ``OSError`` if it
    can't be read.
    """
    return _parse(path, path.read_bytes())


def _parse(path: Path, contents: bytes) -> TuningFile:
    try:
        fields = json.loads(contents)
    except ValueError as error:
        raise TuningError(f"tuning file {str(path)!r} is damaged: {error}") from None
    if not isinstance(fields, dict) or fields.get("format") != FORMAT:
        raise TuningError(f"{str(path)!r} is no tuning file")
    if fields.get("version") != VERSION:
        raise TuningError(
            f"tuning file {str(path)!r} has version {fields.get('version')!r}, and kvcache "
            f"{__version__} reads version {VERSION}"
        )
    for name in _OWNER:
        if not isinstance(fields.get(name), str):
            raise TuningError(f"tuning file {str(path)!r} is damaged: it has no {name!r}")
    shapes: Any = fields.get("shapes")
    is_right = isinstance(shapes, dict) and all(
        isinstance(entry, dict) and isinstance(entry.get("config"), dict)
        for entry in shapes.values()
    )
    if not is_right:
        raise TuningError(
            f"tuning file {str(path)!r} is damaged: expects 'shapes' with a 'config' each"
        )
    return TuningFile(fields["gpu"], fields["chip"], fields["driver"], shapes)


# --- Writing --------------------------------------------------------------------------


def check_writable(path: Path, model: Model) -> None:
    """Raises ``TuningError`` for a file that entries of a model can't be added to."""
    if not path.exists():
        return
    if difference := read(path).find_difference(model):
        raise TuningError(f"tuning file {str(path)!r} {difference}")


def merge(path: Path, model: Model, shape: str, entry: Entry) -> None:
    """Adds an entry to a file, which is made if it is missing.

    Kernels that failed in earlier runs stay in the entry. Raises as ``check_writable``
    does, and leaves the file as it is then.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _locked(path.parent):
        check_writable(path, model)
        shapes = dict(read(path).shapes) if path.exists() else {}
        failed = {**shapes.get(shape, {}).get("failed", {}), **entry["failed"]}
        shapes[shape] = {**entry, "failed": failed}
        owner = {name: getattr(model, name) for name in _OWNER}
        header = {"format": FORMAT, "version": VERSION, "kvcache": __version__}
        _replace(path, {**header, **owner, "shapes": dict(sorted(shapes.items()))})


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keeps other processes from merging into files of a folder."""
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):  # some network file systems have no locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _replace(path: Path, contents: Mapping[str, Any]) -> None:
    text = json.dumps(contents, indent=1, allow_nan=False) + "\n"
    with store.replacing(path, f".{path.name}-") as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())
        os.fchmod(file.fileno(), 0o644)


# --- Finding --------------------------------------------------------------------------


def find_path(model: Model | None) -> Path | None:
    """The file for GPUs of a model; None if there can be none.

    ``KVCACHE_TUNING`` names a file, or a folder with a file for each model, or is
    ``off``. By default, it is a folder of the store of compiled code.
    """
    given = os.environ.get(_VARIABLE)
    if given == _OFF:
        return None
    if given and not Path(given).is_dir():
        return Path(given)
    base = store.find_folder()
    if model is None or (not given and base is None):
        return None
    folder = Path(given) if given else Path(base or "", "tuning")
    return folder / make_name(model)


def make_name(model: Model) -> str:
    """The name of the file for a model in a folder of such files."""
    words = (re.sub(r"[^\w.]+", "-", getattr(model, name)) for name in _OWNER)
    return f"{'_'.join(words)}.json"


def find(chips: str) -> Path | None:
    """Returns the tuning file for kernels of chips, which are separated by commas.

    None if there are several chips or models of GPUs, if there is no file, or with a
    warning if it can't be used. Without a GPU of the chip, only a file that
    ``KVCACHE_TUNING`` names is used.
    """
    if not chips or "," in chips or not _has_files():
        return None
    models = {model for model in find_models() if model.chip == chips}
    if len(models) > 1:
        return None
    model = next(iter(models), None)
    path = find_path(model)
    is_named = path == Path(os.environ.get(_VARIABLE) or "")
    if path is None or not (path.exists() or is_named):
        return None
    if reason := _find_fault(path, model, chips):
        warnings.warn(f"no tuning is used: {reason}", RuntimeWarning, stacklevel=2)
        return None
    return path


def _has_files() -> bool:
    """Whether there may be a file. A process that forks later must not ask the driver."""
    if given := os.environ.get(_VARIABLE):
        return given != _OFF
    base = store.find_folder()
    return base is not None and Path(base, "tuning").is_dir()


def _find_fault(path: Path, model: Model | None, chip: str) -> str:
    """Describes why a file can't be used; empty if it can."""
    try:
        file = read(path)
    except (TuningError, OSError) as error:
        return str(error)
    if model and (difference := file.find_difference(model)):
        return f"tuning file {str(path)!r} {difference}"
    if file.chip != chip:
        return f"tuning file {str(path)!r} is for chip {file.chip!r}, and kernels are for {chip!r}"
    return ""


def take(path: str | os.PathLike[str] | None) -> Path | None:
    """Returns a file that an argument names.

    Raises ``TypeError`` for no path, and as ``read`` does.
    """
    if path is None:
        return None
    check_path(tuning=path)
    file = Path(os.fsdecode(path)).absolute()
    read(file)
    return file


def describe(path: Path | None) -> str:
    """Returns a digest of a file's contents; empty without a file.

    Raises ``OSError`` if it can't be read.
    """
    return hashlib.sha256(path.read_bytes()).hexdigest() if path else ""


def add_tuning(passes: str, chips: str, path: Path | None) -> str:
    """Returns a pipeline, preceded by the choice of configs from a tuning file."""
    if path is None:
        return passes
    name = os.fsdecode(path)
    quote = next((mark for mark in "\"'" if mark not in name), None)
    if quote is None or "{" in name or "}" in name:
        raise ValueError(
            f"expects 'tuning' without braces and without both quotes in its name, got {name!r}"
        )
    plan = f"kvcache-plan-attention{{chip={chips} tuning={quote}{name}{quote}}}"
    return f"{plan},{passes}"
