# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The options of a compilation for this process."""

from __future__ import annotations

from dataclasses import replace

from .. import _native
from ..checks import check_size
from ..compilation import processors
from ..devices import cuda
from ..errors import TargetError
from . import matrix

_MOST_THREADS = 4096
_PIPELINES = {
    "": "kvcache-to-cpu",
    "emulator": "kvcache-to-emulator",
    "cuda": "kvcache-to-ptx",
}


def parse_target(target: str) -> tuple[str, str]:
    """Returns the device, which is empty for the CPU, and the chips to compile for."""
    name = target if isinstance(target, str) else ""
    if name == "cpu":
        return "", ""
    if name == "cuda":
        return "cuda", ",".join(cuda.find_chips())
    from ..compilation.compiler import chips

    device, colon, chip = name.partition(":")
    if not colon or device not in ("cuda", "emulator"):
        raise ValueError(
            f"unknown target {target!r}; known are 'cpu', 'cuda', 'cuda:<chip>' and "
            "'emulator:<chip>'"
        )
    if chip not in (known := chips()):
        raise ValueError(
            f"unknown chip {chip!r} in target {target!r}; known are {', '.join(known)}"
        )
    return device, chip


def check_only(known: str, target: str, **options: object) -> None:
    """Raises ``ValueError`` for an option that is given and that the target lacks."""
    for name, value in options.items():
        if value is not None:
            raise ValueError(
                f"{name!r} has no meaning for target {target!r}, only for {known!r}"
            )


def parse_switch(name: str, value: bool | None, default: bool) -> bool:
    """Returns a switch, or its default. Raises ``ValueError`` for no bool."""
    return default if value is None else _native.check_switch(name, value)


def parse_threads(threads: int | None) -> int:
    """Returns the number of threads. Raises ``TargetError`` without an OpenMP library."""
    if threads is None:
        return 1
    check_size(_MOST_THREADS, threads=threads)
    if threads > 1 and not _native.extension().has_threads():
        raise TargetError(
            f"{threads} threads need an OpenMP library, and there is none: install "
            "libgomp.so.1 (package libgomp1), libomp.so or libiomp5.so"
        )
    return int(threads)


def choose_host_level(opt_level: int, threads: int = 1) -> processors.Level:
    """Returns a level with what this processor and this process have."""
    features = processors.find_features()
    level = replace(processors.make_host_level(features), threads=threads)
    if level.vector_bits == 512:
        level = replace(level, mma=matrix.choose_mma(features, opt_level))
    return level


def describe_passes(
    device: str,
    bounds_checks: bool,
    chip: str,
    options: str,
    level: processors.Level | None = None,
) -> str:
    """Returns the pipeline to LLVM for a device, or for a processor.

    Args:
        device: The device, as ``parse_target`` returns it.
        bounds_checks: Whether the code checks its accesses.
        chip: The chips of the device.
        options: The options of the device's pipeline.
        level: The processors that run the code, for the CPU.
    """
    if level:
        options = f"{options} {level.options}"
    # Declared and unused functions need no definition.
    passes = f"symbol-dce,{_PIPELINES[device]}{{{options}}}"
    if level:
        return _native.add_checks(passes, bounds_checks, level.expansion)
    return _native.add_checks_on_chips(passes, bounds_checks, [chip])
