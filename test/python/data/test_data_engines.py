"""Tests of the tensors of engines, written and read through their types.

Written values need no rounding: the largest code of each group is that of its dtype, and its scale is a power of two.
So a tensor must contain these codes and scales at the engine's places, and nothing else may change.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest
from devices import jit, spread
from programs import place

BF16, E4M3 = np.dtype(ml_dtypes.bfloat16), np.dtype(ml_dtypes.float8_e4m3fn)
PAGES, TOKENS, HEADS, WIDTH, LAYERS = 8, 4, 2, 64, 2
PARAMS = f"#kvcache.params<num_heads = {HEADS}, head_size = {WIDTH}>"
TABLE = np.array([[6, 3], [1, 4]], np.uint32)
TENSOR = (PAGES, TOKENS, HEADS, WIDTH)


@dataclass(frozen=True)
class Role:
    """Keys or values of a layer.

    ``view`` and ``scales`` make [page, token, head, element] of the engine's tensors, and
    ``scales_at`` the scales of a head's token, if no such array has them.
    """

    view: Callable
    scales: Callable | None = None
    scales_at: Callable | None = None
    said: str = ""


@dataclass(frozen=True)
class Engine:
    """The shapes and dtypes of the tensors of an engine, and their types."""

    tensors: tuple
    roles: tuple[Role, ...]
    said: str = ""
    dtype: str = "bf16"
    granularity: int = 0
    page_size: int = TOKENS
    table: str = "dense"

    def get_type(self, role):
        options = "".join(f", {text}" for text in (self.said, role.said) if text)
        return (
            f"!kvcache.paged<{self.dtype}, {PARAMS}, page_size = {self.page_size}{options},"
            f" table = {self.table}>"
        )

    def make_tensors(self):
        """Tensors with random bytes."""
        rng = np.random.default_rng(1)
        sizes = (int(np.prod(shape)) * dtype.itemsize for shape, dtype in self.tensors)
        return [
            place(rng.integers(0, 256, size, np.uint8)).view(dtype).reshape(shape)
            for size, (shape, dtype) in zip(sizes, self.tensors)
        ]

    def lookup(self):
        """The table in the engine's form, and its index."""
        if self.table == "csr":
            return np.r_[np.uint32([9, 9]), TABLE.ravel()], np.array([2, 4, 6], np.uint32)
        if self.table == "dense":
            return (TABLE,)
        # A row for each request of the engine, with the place of each token.
        rows = np.full((7, 16), 99, np.uint32)
        tokens = np.arange(2 * TOKENS)
        for row, pages in zip((5, 2), TABLE):
            rows[row, tokens] = pages[tokens // TOKENS] * TOKENS + tokens % TOKENS
        return rows, np.array([5, 2], np.uint32)


def vllm(order, said):
    """A permutation of a logical tensor with keys and values side by side."""
    sizes = {"L": LAYERS, "B": PAGES, "H": HEADS, "N": TOKENS, "C": 2 * WIDTH}
    to_logical = [order.index(letter) for letter in "LBNHC"]

    def take(tensors, start):
        return tensors[0].transpose(to_logical)[1, ..., start : start + WIDTH]

    roles = tuple(Role(functools.partial(take, start=start)) for start in (0, WIDTH))
    return Engine((([sizes[letter] for letter in order], BF16),), roles, f"layout = {said}")


def place_after_heads(dtype, numpy):
    """Scales after the elements of each head."""

    def take(tensors):
        return tensors[0][..., :WIDTH].view(numpy).transpose(0, 2, 1, 3)

    def take_scales(tensors):
        return tensors[0][..., WIDTH:].view(np.float32).transpose(0, 2, 1, 3)

    pitch = WIDTH + 4
    return Engine(
        (((PAGES, HEADS, TOKENS, pitch), np.dtype(np.uint8)),),
        (Role(take, take_scales),),
        f"scale = f32, granularity = {WIDTH}, layout = [token = {pitch}, head = {TOKENS * pitch}], "
        f"scale_layout = [token = {pitch // 4}, head = {TOKENS * pitch // 4}]",
        dtype,
        WIDTH,
    )


def place_after_pages():
    """Scales after the elements of each page."""
    elements, scales = TOKENS * HEADS * WIDTH, TOKENS * HEADS * 4
    return Engine(
        (((PAGES, elements + scales), np.dtype(np.uint8)),),
        (
            Role(
                lambda tensors: tensors[0][:, :elements].view(E4M3).reshape(TENSOR),
                lambda tensors: tensors[0][:, elements:]
                .view(np.float32)
                .reshape(*TENSOR[:3], 1),
            ),
        ),
        f"scale = f32, granularity = {WIDTH}",
        "f8E4M3FN",
        WIDTH,
    )


def nvfp4():
    """FlashInfer's scales: those of keys in rows, and those of values of four tokens in columns."""
    groups = WIDTH // 16
    shape = (PAGES, HEADS, TOKENS)

    def take(tensors, number):
        return tensors[number].transpose(0, 2, 1, 3)

    def value_scales_at(tensors, page, token, head):
        blocks = tensors[3][page, head].reshape(TOKENS // 4, groups, 4)
        return blocks[token // 4, :, token % 4]

    linear = "scale_layout = hnd"
    columns = f"scale_layout = [token = {groups}, head = {TOKENS * groups}, interleave = 4]"
    pages = ((*shape, WIDTH // 2), np.dtype(np.int8))
    scales = ((*shape, groups), E4M3)
    return Engine(
        (pages, pages, scales, scales),
        tuple(
            Role(
                functools.partial(take, number=number),
                functools.partial(take, number=2 + number),
                scales_at,
                said,
            )
            for number, (scales_at, said) in enumerate(
                [(None, linear), (value_scales_at, columns)]
            )
        ),
        "scale = f8E4M3FN, granularity = 16, layout = hnd",
        "f4E2M1FN",
        16,
    )


def make_single(shape, take, **options):
    """An engine whose keys and values are in one tensor."""
    roles = tuple(Role(functools.partial(take, role=role)) for role in (0, 1))
    return Engine(((shape, BF16),), roles, **options)


def apart(shape, take, **options):
    """An engine with a tensor of keys and another of values."""
    roles = tuple(Role(lambda tensors, role=role: take(tensors[role])) for role in (0, 1))
    return Engine(((shape, BF16),) * 2, roles, **options)


SIDE_BY_SIDE = f"[token = {2 * WIDTH}, head = {2 * TOKENS * WIDTH}]"
BY_TOKENS = f"[token = {2 * HEADS * WIDTH}, head = {2 * WIDTH}]"
OPEN = f"[token = {2 * WIDTH}, head = ?]"
ENGINES = {
    "MAX": make_single(
        (PAGES, 2, LAYERS, *TENSOR[1:]), lambda tensors, role: tensors[0][:, role, 1]
    ),
    "vLLM of one role": apart((LAYERS, *TENSOR), lambda tensor: tensor[1]),
    "vLLM LBHNC": vllm("LBHNC", SIDE_BY_SIDE),
    "vLLM LBNHC": vllm("LBNHC", BY_TOKENS),
    "vLLM LHBNC": vllm("LHBNC", OPEN),
    "vLLM BLHNC": vllm("BLHNC", SIDE_BY_SIDE),
    "vLLM BLNHC": vllm("BLNHC", BY_TOKENS),
    "vLLM BHLNC": vllm("BHLNC", OPEN),
    "FlashInfer NHD": make_single(
        (PAGES, 2, *TENSOR[1:]), lambda tensors, role: tensors[0][:, role], table="csr"
    ),
    "FlashInfer HND": make_single(
        (PAGES, 2, HEADS, TOKENS, WIDTH),
        lambda tensors, role: tensors[0][:, role].transpose(0, 2, 1, 3),
        said="layout = hnd",
        table="csr",
    ),
    "TensorRT-LLM": apart(
        (PAGES, HEADS, TOKENS, WIDTH),
        lambda tensor: tensor.transpose(0, 2, 1, 3),
        said="layout = hnd",
    ),
    "SGLang": apart(
        (PAGES * TOKENS, HEADS, WIDTH),
        lambda tensor: tensor[:, None],
        page_size=1,
        table="rows",
    ),
    "SGLang pages": apart(
        (PAGES * TOKENS, HEADS, WIDTH), lambda tensor: tensor.reshape(TENSOR)
    ),
    "vLLM fp8_per_token_head": place_after_heads("f8E4M3FN", E4M3),
    "vLLM int8_per_token_head": place_after_heads("i8", np.dtype(np.int8)),
    "vLLM scales in pages": place_after_pages(),
    "FlashInfer NVFP4": nvfp4(),
}


# Programs


def write_memref(array, dtype, is_open):
    sizes = "x".join(str(size) for size in array.shape[1:])
    token, head = (stride // array.itemsize for stride in array.strides[1:3])
    return f"memref<?x{sizes}x{dtype}, strided<[?, {token}, {'?' if is_open else head}, 1], offset: ?>>"


FUNCTIONS = """
func.func @{op}_{number}(%pages: {pages}, {scales_parameter}%lengths: memref<?xi32>, %table: {table},
    {index_parameter}%io: memref<?x{lane}>, %b: index, %h: index, %t: index) {{
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i32
  %k = kvcache.paged_cache %pages, %lengths, %table{index}, %zero, %zero{scales}
      : {pages}, memref<?xi32>, {table}{index_type}{scales_type} -> {type}
{body}
  return
}}
"""
AT = "%k[%b, %h, %t, %c0]"


def bodies(engine, type):
    lane = "f32" if engine.granularity else "bf16"
    vector, store = f"vector<{WIDTH}x{lane}>", (
        "store_quantized" if engine.granularity else "store"
    )
    yield "write", f"""  %v = vector.load %io[%c0] : memref<?x{lane}>, {vector}
  kvcache.{store} %v, {AT} : {vector}, {type}"""
    yield "read", f"""  %v = kvcache.load {AT} : {type} -> {vector}
  vector.store %v, %io[%c0] : memref<?x{lane}>, {vector}"""


@functools.cache
def compiled(name, target):
    engine, text = ENGINES[name], ""
    tensors = engine.make_tensors()
    has_index, has_scales = engine.table != "dense", engine.granularity > 0
    for number, role in enumerate(engine.roles):
        type = engine.get_type(role)
        scales = (
            write_memref(role.scales(tensors), type.split("scale = ")[1].split(",")[0], False)
            if has_scales
            else ""
        )
        for op, body in bodies(engine, type):
            text += FUNCTIONS.format(
                op=op,
                number=number,
                body=body,
                type=type,
                lane="f32" if has_scales else "bf16",
                pages=write_memref(
                    role.view(tensors), stored_name(engine), "head = ?" in type
                ),
                table=(
                    "memref<?xi32>"
                    if engine.table == "csr"
                    else "memref<?x?xi32, strided<[?, 1]>>"
                ),
                scales=" scales %scales" if has_scales else "",
                scales_type=f", {scales}" if has_scales else "",
                scales_parameter=f"%scales: {scales}, " if has_scales else "",
                index=" index %index" if has_index else "",
                index_type=" index memref<?xi32>" if has_index else "",
                index_parameter="%index: memref<?xi32>, " if has_index else "",
            )
    return jit(text, target)


def stored_name(engine):
    return "i8" if engine.dtype == "f4E2M1FN" else engine.dtype


# Values


LARGEST = {"f8E4M3FN": 448, "i8": 127, "f4E2M1FN": 6}


def draw(engine, rng):
    """The values of a head, their stored codes, and their scales."""
    if not engine.granularity:
        values = rng.normal(size=WIDTH).astype(BF16)
        return values, values, None
    largest = LARGEST[engine.dtype]
    codes = rng.integers(-6, 7, (WIDTH // engine.granularity, engine.granularity))
    codes[np.abs(codes) == 5] = 4  # no number of four bits
    codes[:, rng.integers(engine.granularity)] = largest
    scales = np.exp2(rng.integers(-4, 4, len(codes))).astype(np.float32)
    values = (codes * scales[:, None]).astype(np.float32).ravel()
    if engine.dtype == "f4E2M1FN":
        nibbles = codes.ravel().astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
        return (
            values,
            (nibbles[::2] | nibbles[1::2] << 4).view(np.int8),
            scales.astype(E4M3),
        )
    return (
        values,
        codes.ravel().astype(E4M3 if engine.dtype == "f8E4M3FN" else np.int8),
        scales,
    )


def put(engine, role, tensors, place_, codes, scales):
    page, token, head = place_
    if engine.page_size == 1:
        page, token = page * TOKENS + token, 0
    role.view(tensors)[page, token, head] = codes
    if scales is not None:
        at = (
            role.scales_at(tensors, page, token, head)
            if role.scales_at
            else role.scales(tensors)[page, token, head]
        )
        at[...] = scales


@pytest.mark.parametrize(("name", "target"), spread(ENGINES, with_cpu=True))
def test_tensors_of_engines(name, target):
    engine, program = ENGINES[name], compiled(name, target)
    rng = np.random.default_rng(2)
    tensors = engine.make_tensors()
    model = [tensor.copy() for tensor in tensors]
    lengths = np.zeros(len(TABLE), np.uint32)
    for number, role in enumerate(engine.roles):
        arrays = [role.view(tensors), *([role.scales(tensors)] if role.scales else [])]
        arguments = (*arrays, lengths, *engine.lookup())
        for b, t, h in ((0, 0, 1), (1, 2 * TOKENS - 1, 0), (0, TOKENS + 2, 1)):
            values, codes, scales = draw(engine, rng)
            program.call(f"write_{number}", *arguments, values, b, h, t)
            put(engine, role, model, (TABLE[b, t // TOKENS], t % TOKENS, h), codes, scales)
            for got, expected in zip(tensors, model):
                np.testing.assert_array_equal(got.view(np.uint8), expected.view(np.uint8))
            read = np.zeros_like(values)
            program.call(f"read_{number}", *arguments, read, b, h, t)
            np.testing.assert_array_equal(read.view(np.uint8), values.view(np.uint8))
