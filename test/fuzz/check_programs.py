"""Runs modules of programs on the CPU and on emulated chips, and compares with the model."""

import random
from dataclasses import dataclass

import devices
import numpy as np
from generate import draw_arguments, generate
from model import ContinuousCache, PagedCache
from program import State
from programs import PIPELINES, place, random_encodings, run_passes
from quantized_programs import quantized_cache, tame

import kvcache

NUM_IDS = 32
# The logs are NumPy arrays of these types.
NUMPY = {"index": np.dtype(np.int64), "f4E2M1FN": np.dtype(np.int8)}


class Mismatch(Exception):
    """A target gave something else than the model."""


@dataclass
class Variant:
    """How a module is compiled."""

    target: str
    passes: tuple[str, ...] = ()
    options: tuple[tuple[str, object], ...] = ()

    def __str__(self):
        options = [f"{name}={value}" for name, value in self.options]
        return " ".join([self.target, *options, *self.passes])

    def compile(self, text):
        for pipeline in self.passes:
            text = run_passes(text, pipeline)
        return devices.jit(text, self.target, **dict(self.options))


def choose_variants(rng, seed, optimize=True):
    """The CPU in some way, and one of three chips, in turn: most of the time is theirs."""
    passes = PIPELINES[rng.choice(list(PIPELINES))] if rng.random() < 0.4 else ()
    options = {"opt_level": 2 if optimize and rng.random() < 0.1 else 0}
    if not passes and rng.random() < 0.2:
        # Passes before the checks may move an access to where it has no meaning.
        options["bounds_checks"] = True
    chip = devices.TARGETS[seed % len(devices.TARGETS)]
    return [Variant("cpu", passes, tuple(options.items())), Variant(chip)]


# Memory


def spread_out(rng, shape, sizes, tokens, packed, whole_rows):
    """Distances between pages, roles and layers, and what they span.

    They are multiples of 16 bytes, and of rows where tiles are copied.
    """
    order = [0, 1, 2] if packed else rng.sample(range(3), 3)
    counts = (sizes.pages, len(shape.roles), sizes.layers)
    step = int(np.lcm(shape.row, shape.alignment)) if whole_rows else shape.alignment
    distances, distance = [0, 0, 0], tokens * shape.row
    for dimension in reversed(order):
        if not packed:
            distance = -(-distance // step) * step
            distance += step * rng.choice((0, 0, 1, 2, 5))
        distances[dimension] = distance
        distance *= counts[dimension]
    return tuple(distances), distance


def make_cache(
    rng, shape, sizes, packed, whole_rows, table=None, encodings=random_encodings
):
    """A cache of random bits whose table names each page once."""
    numbers = np.random.default_rng(rng.getrandbits(32))
    tokens = shape.page_size or sizes.tokens
    distances, span = spread_out(rng, shape, sizes, tokens, packed, whole_rows)
    base = 0 if packed else shape.alignment * rng.randint(0, 2)
    memory = place(encodings(numbers, base + span, shape.dtype), offset=16)
    if table is None:
        table = make_table(numbers, shape, sizes)
    word = rng.choice((0, 1, 2**31, 2**32 - 1, rng.getrandbits(32)))
    make = PagedCache if shape.page_size else ContinuousCache
    return make(
        memory,
        base,
        (sizes.pages, len(shape.roles), sizes.layers, tokens, shape.heads, shape.head_size),
        distances,
        table,
        numbers.integers(0, 2**32, sizes.batch, dtype=np.uint32),
        word,
        rng.choice((0, word)),
    )


def make_table(numbers, shape, sizes):
    """Rows that begin at 32 bytes, as chips read up to 8 entries at once."""
    ids = numbers.permutation(sizes.pages).astype(np.uint32)
    if not shape.page_size:
        return ids[: sizes.batch].copy()
    ids = ids[: sizes.batch * sizes.columns].reshape(sizes.batch, sizes.columns)
    padded = place(np.full((sizes.batch, -(-sizes.columns // 8) * 8), 0xDEADBEEF, np.uint32), 32)
    padded[:, : sizes.columns] = ids
    return padded[:, : sizes.columns]


def make_any_cache(rng, module, whole_rows):
    shape, sizes = module.shape, module.sizes
    if not shape.quantization:
        return make_cache(rng, shape, sizes, module.packed, whole_rows)
    elements = make_cache(rng, shape.elements, sizes, module.packed, whole_rows)
    table = None if shape.own_table else elements.table

    def scales_of(numbers, count, _):
        return tame(numbers, count, shape.scale)

    scales = make_cache(
        rng, shape.scales, sizes, module.packed, whole_rows, table, scales_of
    )
    scales = scales.with_tables(scales.table, elements.lengths)
    return quantized_cache(shape, elements, scales)


def copy_cache(cache):
    """The same with memory of its own, at the same alignment."""
    from dataclasses import replace

    if hasattr(cache, "scales"):
        return replace(cache, elements=copy_cache(cache.elements), scales=copy_cache(cache.scales))
    return cache.with_memory(place(cache.memory, offset=16))


def make_ids(rng, module):
    """Encoded rows, some of which are not there."""
    rows = module.sizes.pages * (module.shape.page_size or module.sizes.tokens)
    ids = [
        rng.choice((-1, rows, 2**31 - 1, -(2**31))) if rng.random() < 0.2 else rng.randrange(rows)
        for _ in range(NUM_IDS)
    ]
    return np.array(ids, np.int32)


# Runs


@dataclass
class Expectation:
    """A program's arguments, and the memory that it leaves."""

    program: object
    before: object
    values: dict
    ids: np.ndarray
    after: object
    logs: dict

    def check(self, compiled, module):
        cache = copy_cache(self.before)
        logs = {
            dtype: np.zeros(log.bits.size, log.bits.dtype) for dtype, log in self.logs.items()
        }
        shape = module.shape
        arguments = (
            cache.arguments(shape) if shape.quantization else cache.arguments(shape.numpy)
        )
        compiled.call(
            self.program.name,
            *arguments,
            *(as_signed(value) for value in self.values.values()),
            self.ids.copy(),
            *(logs[dtype].view(numpy_of(dtype)) for dtype in sorted(logs)),
        )
        for dtype, log in self.logs.items():
            wrong = log.differences(logs[dtype])
            if wrong.size:
                at = int(wrong[0])
                raise Mismatch(
                    f"log_{dtype}[{at}] is {logs[dtype][at]:#x}, expected {log.bits[at]:#x}"
                )
        self.check_memory(cache)

    def check_memory(self, cache):
        pairs = [("elements", cache, self.after)]
        if hasattr(cache, "scales"):
            pairs = [
                (name, getattr(cache, name), getattr(self.after, name))
                for name in ("elements", "scales")
            ]
        for name, found, expected in pairs:
            wrong = np.flatnonzero(found.memory != expected.memory)
            if wrong.size:
                at = int(wrong[0])
                raise Mismatch(
                    f"{name}[{at}] is {found.memory[at]:#x}, expected {expected.memory[at]:#x}"
                )


def numpy_of(dtype):
    from programs import DTYPES
    from quantized_programs import QUANTIZED_DTYPES, SCALE_DTYPES

    return {**SCALE_DTYPES, **QUANTIZED_DTYPES, **DTYPES, **NUMPY}[dtype]


def as_signed(value):
    return value - (1 << 64) if value >> 63 else value


def expect(rng, module, program):
    """Runs a program on the model."""
    before = make_any_cache(rng, module, program.whole_rows)
    after = copy_cache(before)
    values, ids = draw_arguments(rng, program, module.sizes), make_ids(rng, module)
    logs = module.logs.allocate()
    state = State(values, logs)
    state["cache"], state["ids"] = after, ids
    for role, name in enumerate(("%k", "%v")[: len(module.shape.roles)]):
        state[name] = after.view(role, values["%layer"])
    with np.errstate(all="ignore"):
        program.body.run(state)
    return Expectation(program, before, values, ids, after, logs)


def check_module(seed, count, runs=2):
    """Generates a module and checks it; yields (variant, program, error) of each failure."""
    module = generate(seed, count)
    rng = random.Random(seed + 1)
    expected = [expect(rng, module, p) for p in module.programs for _ in range(runs)]
    for variant in choose_variants(rng, seed, "nontemporal" not in module.source.text):
        try:
            compiled = variant.compile(module.source.text)
        except (kvcache.CompileError, AssertionError) as error:
            yield variant, None, f"does not compile: {error}"
            continue
        for expectation in expected:
            try:
                expectation.check(compiled, module)
            except (Mismatch, kvcache.CheckError) as error:
                yield variant, expectation.program.name, str(error)
                break
