# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The processors that code for the CPU is made for."""

from __future__ import annotations

from dataclasses import dataclass

from .. import _native

WIDEST = {"avx512f", "avx512bw", "avx512vl", "fma"}
"""The features for vectors of 512 bits."""

_WIDE = {"avx2", "fma"}
NATIVE = "native"


@dataclass(frozen=True)
class Level:
    """A kind of processors that run the same code.

    Attributes:
        name: A level of CPULevels.def; empty for all processors of an architecture.
        vector_bits: The bits of vector registers that loops use.
        has_fma: Whether there are fused multiply-adds.
        mma: The matrix instructions, as ``kvcache-expand-ops`` names them.
        threads: The most threads of a loop.
    """

    name: str
    vector_bits: int
    has_fma: bool
    mma: str = "fma"
    threads: int = 1

    @property
    def expansion(self) -> str:
        """The options of ``kvcache-expand-ops``."""
        return f"vector-bits={self.vector_bits} mma={self.mma} threads={self.threads}"

    @property
    def options(self) -> str:
        """The options of ``kvcache-to-cpu``."""
        return f"{self.expansion} fma={int(self.has_fma)}"


def find_levels() -> tuple[Level, ...]:
    """Returns the levels of this architecture, from the lowest on."""
    levels = tuple(Level(*level) for level in _native.extension().cpu_levels())
    return levels or (Level("", 128, True),)


def find_features() -> set[str]:
    """Returns this processor's features, up to the level in ``KVCACHE_CPU``.

    Names are LLVM's. Raises ``ValueError`` if ``KVCACHE_CPU`` names no level.
    """
    _, _, features = _native.extension().host()
    return set(features.split("+"))


def make_host_level(features: set[str]) -> Level:
    """Returns a level with what a processor of these features has."""
    (lowest, *_) = find_levels()
    vector_bits = lowest.vector_bits
    if features >= _WIDE:
        vector_bits = 512 if features >= WIDEST else 256
    return Level("", vector_bits, lowest.has_fma or "fma" in features)


def choose_levels(cpu: str | None) -> tuple[Level, ...]:
    """Returns the levels of a library's bodies, from the lowest on.

    Args:
        cpu: A level, ``"native"`` for the fastest level of this processor, or None for
            all levels.

    Raises:
        ValueError: There is no such level.
    """
    levels = find_levels()
    if cpu is None:
        return levels
    wanted = _native.extension().cpu_level() if cpu == NATIVE else cpu
    chosen = tuple(level for level in levels if level.name == wanted)
    if chosen and isinstance(cpu, str) and cpu:
        return chosen
    names = ", ".join(level.name for level in levels if level.name)
    raise ValueError(
        f"expects 'cpu' to be one of {', '.join(filter(None, (NATIVE, names)))}, got "
        f"{cpu!r}"
    )
