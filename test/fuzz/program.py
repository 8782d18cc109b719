"""Programs that are written twice as they grow: as MLIR, and as what it means.

A `Block` collects lines of text and the steps that do the same to a `State`, over the
NumPy model of the data tests. An addition to one needs an addition to the other.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from bodies import lanes
from model import FORMATS
from quantization import ELEMENTS, RESULTS, SCALES

MASK = (1 << 64) - 1

# How values of each type are logged and compared. 4-bit ones are logged as bytes.
LOGGED = {**RESULTS, **SCALES, **ELEMENTS, **FORMATS}


def uint_of(dtype):
    if dtype in ("index", "f64"):
        return np.dtype(np.uint64)
    return np.dtype(np.uint8) if dtype == "f4E2M1FN" else LOGGED[dtype].uint


@dataclass
class Lanes:
    """A scalar or a vector: encodings, and which of them may be any NaN."""

    bits: np.ndarray
    any_nan: np.ndarray | None = None

    @staticmethod
    def rounded(values, dtype):
        """Values of f64 as lanes of a type: a NaN may be any."""
        is_nan = np.isnan(values)
        return Lanes(LOGGED[dtype].encode(np.where(is_nan, 0, values)), is_nan)


class State:
    """The values of a function while its steps run, and the logs it writes."""

    def __init__(self, values, logs):
        self.values = dict(values)
        self.logs = logs

    def __getitem__(self, name):
        return self.values[name]

    def __setitem__(self, name, value):
        self.values[name] = value

    def assign(self, targets, sources):
        """Gives the values of `sources` to `targets`, all at once."""
        values = [self.values[name] for name in sources]
        self.values.update(zip(targets, values, strict=True))


@dataclass
class Block:
    """Text, and the steps with the same meaning."""

    lines: list[str] = field(default_factory=list)
    steps: list[Callable] = field(default_factory=list)

    def add(self, text, step=None):
        self.lines.extend(text.splitlines())
        if step:
            self.steps.append(step)

    def run(self, state):
        for step in self.steps:
            step(state)

    @property
    def text(self):
        return "".join(f"  {line}\n" for line in self.lines)


@dataclass(frozen=True)
class Index:
    """An index value below ``bound``; without one it may be anything."""

    name: str
    bound: int | None = None


@dataclass
class Scope:
    """What the next op may use. Values are lists by type: (lanes, element type)."""

    indices: list[Index] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    caches: list[str] = field(default_factory=list)
    scales: list[str] = field(default_factory=list)
    values: dict[tuple[int, str], list[str]] = field(default_factory=dict)
    # Loops around, with the bound of their counter, innermost last.
    counters: list[Index] = field(default_factory=list)

    def nested(self):
        return Scope(
            list(self.indices),
            list(self.flags),
            list(self.caches),
            list(self.scales),
            {type: list(names) for type, names in self.values.items()},
            list(self.counters),
        )

    def add_value(self, width, dtype, name):
        self.values.setdefault((width, dtype), []).append(name)


class Logs:
    """The memory that functions leave: an array of each element type.

    Functions get their places when they are generated.
    """

    def __init__(self):
        self.sizes = {}

    def reserve(self, dtype, count):
        """The first of ``count`` new places."""
        first = self.sizes.get(dtype, 0)
        self.sizes[dtype] = first + count
        return first

    def parameters(self):
        return [f"log_{dtype}: memref<?x{logged(dtype)}>" for dtype in sorted(self.sizes)]

    def allocate(self):
        return {dtype: LogArray(dtype, size) for dtype, size in self.sizes.items()}


def logged(dtype):
    """The element type of a log: indices and floats as they are, 4-bit ones as bytes."""
    return "i8" if dtype == "f4E2M1FN" else dtype


class LogArray:
    def __init__(self, dtype, size):
        self.dtype = dtype
        self.bits = np.zeros(size, uint_of(dtype))
        self.any_nan = np.zeros(size, bool)

    def write(self, place, value):
        count = value.bits.size
        self.bits[place : place + count] = value.bits
        self.any_nan[place : place + count] = False if value.any_nan is None else value.any_nan

    def differences(self, found):
        """Places at which ``found`` is wrong."""
        wrong = (found != self.bits) & ~self.any_nan
        if self.any_nan.any():
            wrong |= self.any_nan & ~LOGGED[self.dtype].is_nan(found)
        return np.flatnonzero(wrong)


def type_of(width, dtype):
    return lanes(width, dtype)
