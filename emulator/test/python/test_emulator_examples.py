"""Every example, as each chip runs it, on the emulator against NumPy."""

import re
import sys

import ml_dtypes
import model
import numpy as np
import pytest
from devices import TARGETS, with_launcher
from edits import edit
from places import EXAMPLES

import kvcache

sys.path.insert(0, str(EXAMPLES))

import reference  # noqa: E402

BF16 = np.dtype(ml_dtypes.bfloat16)
PAGE_SIZE, HEADS, HEAD_SIZE, LAYERS, LAYER = 64, 8, 128, 2, 1
LENGTHS = np.array([130, 64, 0, 1], np.uint32)
STEP = [3, 0, 2, 64]  # tokens to append to each
SCALE = HEAD_SIZE**-0.5
PAGES = 12

each_target = pytest.mark.parametrize("target", TARGETS)


def random_bits(rng, shape, dtype=BF16):
    nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return rng.integers(0, 256, nbytes, np.uint8).view(dtype).reshape(shape)


def random_numbers(rng, shape, dtype=BF16):
    return rng.standard_normal(shape, np.float32).astype(dtype)


def page_table(rng):
    """Pages for the lengths and for what is appended; the last one is the null page."""
    counts = -(-(LENGTHS.astype(int) + STEP) // PAGE_SIZE)
    table = np.full((len(LENGTHS), 5), PAGES - 1, np.uint32)
    pages = iter(rng.permutation(PAGES - 1))
    for row, count in zip(table, counts):
        row[:count] = [next(pages) for _ in range(count)]
    return table


def offsets(counts):
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32)


def assert_same_bits(a, b):
    np.testing.assert_array_equal(a.view(np.uint8), b.view(np.uint8))


def source(name):
    """The example without its forms for the CPU, which would not find arrays in the memory of a GPU."""
    text = (EXAMPLES / f"{name}.mlir").read_text()
    return re.sub(r"^func\.func (private )?@\w+_cpu\(.*?^\}\n", "", text, flags=re.DOTALL | re.MULTILINE)


class Caches:
    """A bf16 cache, and fp8 ones with a scale for each head and for each group."""

    def __init__(self, seed=1, make=random_bits):
        rng = self.rng = np.random.default_rng(seed)
        shape = PAGES, 2, LAYERS, PAGE_SIZE, HEADS
        self.table = page_table(rng)
        self.blocks = make(rng, (*shape, HEAD_SIZE))
        self.fp8 = make(rng, (*shape, HEAD_SIZE), reference.FP8)
        self.scales = {
            groups: np.exp2(rng.integers(-3, 3, (*shape, groups))).astype(np.float32)
            for groups in (1, 4)
        }

    def arguments(self, blocks, max_seq, scales=None):
        more = () if scales is None else (scales,)
        maxima = int(max_seq), int(LENGTHS.max())
        return blocks, LENGTHS, self.table, *maxima, *more, LAYER


@each_target
@pytest.mark.parametrize(
    ("example", "function"), [("quickstart", "copy_keys"), ("gather", "gather_keys")]
)
def test_contiguous_keys(target, example, function):
    caches = Caches()
    tokens = 133 if example == "gather" else 64
    out = random_bits(caches.rng, (len(LENGTHS), tokens, HEADS, HEAD_SIZE))
    program = kvcache.jit(EXAMPLES / f"{example}.mlir", target=target, opt_level=0)
    program.call(function, *caches.arguments(caches.blocks, 1), out)
    lengths = LENGTHS if example == "gather" else np.full_like(LENGTHS, tokens)
    expected = reference.gather(
        caches.blocks, lengths, caches.table, LAYER, reference.KEYS, tokens
    )
    assert_same_bits(out, expected)


@each_target
def test_append(target):
    caches = Caches()
    rows = offsets(STEP)
    new = [random_bits(caches.rng, (int(rows[-1]), HEADS, HEAD_SIZE)) for _ in range(2)]
    expected = caches.blocks.copy()
    reference.append(expected, LENGTHS, caches.table, LAYER, *new, rows)
    program = kvcache.jit(EXAMPLES / "append.mlir", target=target, opt_level=0)
    program.call("append", *caches.arguments(caches.blocks, max(STEP)), *new, rows)
    assert_same_bits(caches.blocks, expected)


@each_target
@pytest.mark.parametrize("groups", [1, 4])
def test_append_fp8(target, groups):
    caches = Caches()
    scales = caches.scales[groups]
    rows = offsets(STEP)
    new = [random_numbers(caches.rng, (int(rows[-1]), HEADS, HEAD_SIZE)) for _ in range(2)]
    new[0][0, 0, 5] = np.nan
    new[1][1] = 0
    expected, expected_scales = caches.fp8.copy(), scales.copy()
    cache = expected, expected_scales, LENGTHS, caches.table, LAYER
    reference.append_quantized(*cache, *new, rows)
    arguments = *caches.arguments(caches.fp8, max(STEP), scales), *new, rows
    if groups == 1:
        text = with_launcher(source("append_fp8"), "append_per_token", (16, 8))
        program = kvcache.jit(text, target=target, opt_level=0)
        program.call("launch", *arguments, max(STEP), len(LENGTHS))
    else:
        program = kvcache.jit(source("append_fp8"), target=target, opt_level=0)
        program.call("append_per_group", *arguments)
    is_nan = np.isnan(expected_scales)
    np.testing.assert_array_equal(scales, expected_scales)
    is_nan = np.repeat(is_nan, HEAD_SIZE // groups, axis=-1)
    assert_same_bits(np.where(is_nan, 0, caches.fp8), np.where(is_nan, 0, expected))


def check_attention(target, name, kernel, arguments, rng, expect, group=4):
    q = random_numbers(rng, (len(LENGTHS), group * HEADS, HEAD_SIZE))
    out = random_bits(rng, q.shape)
    text = with_launcher(source(name), kernel, (128, 1))
    program = kvcache.jit(text, target=target, opt_level=0)
    program.call("launch", *arguments, SCALE, q, out, HEADS, len(LENGTHS))
    expected = expect(q)
    error = np.abs(out.astype(np.float64) - expected)
    # What rounding weights and the result to bf16 costs.
    assert (error <= 2.0**-7 * np.abs(expected) + 4e-3).all(), error.max()
    assert not out[LENGTHS == 0].any()


@each_target
def test_attention(target):
    caches = Caches(make=random_numbers)
    cache = caches.blocks, LENGTHS, caches.table, LAYER, SCALE
    check_attention(
        *(target, "attention", "attention"),
        caches.arguments(caches.blocks, 1),
        caches.rng,
        lambda q: reference.attention(*cache, q),
    )


@each_target
@pytest.mark.parametrize("groups", [1, 4])
def test_attention_fp8(target, groups):
    caches = Caches(make=random_numbers)
    scales = caches.scales[groups]
    cache = caches.fp8, LENGTHS, caches.table, LAYER, SCALE
    kernel = "attention_per_token" if groups == 1 else "attention_per_group"
    check_attention(
        *(target, "attention_fp8", kernel),
        caches.arguments(caches.fp8, 1, scales),
        caches.rng,
        lambda q: reference.attention(*cache, q, scales),
    )


@each_target
@pytest.mark.parametrize("group", [4, 8])
def test_attention_on_tensor_cores(target, group):
    """Tiles in flight, in 96 KB of dynamic shared memory."""
    caches = Caches(make=random_numbers)
    cache = caches.blocks, LENGTHS, caches.table, LAYER, SCALE
    check_attention(
        *(target, "attention_pipe", "attention_pipe"),
        caches.arguments(caches.blocks, 1),
        caches.rng,
        lambda q: reference.attention(*cache, q),
        group,
    )


def attend_latent(program, heads=64):
    """Runs attention for sequences that end in a tile, are empty, fill one, and have one token; compares it with f64."""
    rng = np.random.default_rng(1)
    blocks = random_numbers(rng, (7, 1, 2, 64, 1, 576))
    lengths = np.array([150, 0, 64, 1], np.uint32)
    table = np.array([[3, 1, 4], [0, 0, 0], [5, 0, 0], [6, 0, 0]], np.uint32)
    q = random_numbers(rng, (len(lengths), heads, 576))
    out = np.full((len(lengths), heads, 512), 7, BF16)
    program.call("launch", blocks, lengths, table, 1, 150, 1, SCALE, q, out, heads // 64, len(lengths))
    for b, length in enumerate(lengths):
        rows = blocks[table[b], 0, 1].reshape(-1, 1, 576)[:length]
        (expected,), _ = model.attend(q[b : b + 1], rows, rows[..., :512], SCALE)
        np.testing.assert_allclose(out[b].astype(np.float64), expected, atol=0.01)
    return out


def latent_source():
    return with_launcher(source("mla_pipe"), "mla_pipe", (384, 1))


def test_latent_attention_with_producer_warps():
    attend_latent(kvcache.jit(latent_source(), target="emulator:sm_90a", opt_level=0))


def pair_source():
    return with_launcher(source("mla_pair"), "mla_pair", (128, 1))


def test_latent_attention_by_pairs_of_thread_blocks():
    attend_latent(kvcache.jit(pair_source(), target="emulator:sm_100a", opt_level=0), heads=128)


@pytest.mark.slow
def test_prompts_with_two_warpgroups_in_turns():
    """Schedules change no bit. Sequences have tokens in the cache or not, one has no new ones, and blocks have no rows."""
    text = source("attention_pingpong")
    scheduled = "{kvcache.schedule = #kvcache.schedule<ping_pong>}"
    out = attend_to_prompts(text)
    assert_same_bits(attend_to_prompts(edit(text, ("ping_pong>}", "pipelined>}"))), out)
    assert_same_bits(attend_to_prompts(edit(text, (scheduled, ""))), out)


def attend_to_prompts(text):
    """Runs attention_pingpong, and compares it with f64."""
    rng = np.random.default_rng(1)
    cached, new = np.array([0, 100, 64, 200, 0], np.uint32), np.array([70, 33, 0, 1, 129], np.uint32)
    row_offsets = offsets(new)
    table = rng.permutation(25).reshape(5, 5).astype(np.uint32)
    blocks = random_numbers(rng, (25, 2, LAYERS, PAGE_SIZE, HEADS, HEAD_SIZE))
    q = random_numbers(rng, (row_offsets[-1], 4 * HEADS, HEAD_SIZE))
    out = np.full_like(q, 7)
    program = kvcache.jit(with_launcher(text, "attention_pingpong", (384, 1)), target="emulator:sm_90a", opt_level=0)
    tiles = -(-int(new.max()) // 32)
    program.call(
        "launch", blocks, cached, table, 129, 329, LAYER, row_offsets, SCALE, q, out, HEADS * tiles, len(new)
    )
    for b, (first, last) in enumerate(zip(row_offsets, row_offsets[1:])):
        keys, values = blocks[table[b], :, LAYER].astype(np.float64).swapaxes(0, 1).reshape(2, -1, HEADS, HEAD_SIZE)
        for i, row in enumerate(q[first:last].astype(np.float64)):
            seen = int(cached[b]) + i + 1
            scores = np.einsum("nge,tne->ngt", row.reshape(HEADS, 4, HEAD_SIZE), keys[:seen]) * SCALE
            weights = np.exp(scores - scores.max(2, keepdims=True))
            expected = np.einsum("ngt,tne->nge", weights / weights.sum(2, keepdims=True), values[:seen])
            np.testing.assert_allclose(
                out[first + i].astype(np.float64), expected.reshape(-1, HEAD_SIZE), atol=0.02
            )
    return out


@pytest.mark.long
def test_attention_to_many_tokens():
    """Many tiles go through a pipe of two: those that have arrived take no more room."""
    tokens, rng = 16384, np.random.default_rng(0)
    blocks = random_numbers(rng, (PAGES, 2, 1, PAGE_SIZE, HEADS, HEAD_SIZE))
    table = rng.integers(0, PAGES, (1, tokens // PAGE_SIZE), np.uint32)
    lengths = np.array([tokens], np.uint32)
    q = random_numbers(rng, (1, 4 * HEADS, HEAD_SIZE))
    out = np.zeros_like(q)
    text = with_launcher(source("attention_pipe"), "attention_pipe", (128, 1))
    program = kvcache.jit(text, target="emulator:sm_80")
    program.call("launch", blocks, lengths, table, 1, tokens, 0, SCALE, q, out, 1, 1)
    expected = reference.attention(blocks, lengths, table, 0, SCALE, q)[:, :4]
    np.testing.assert_allclose(out[:, :4].astype(np.float64), expected, atol=4e-3)
    assert not out[:, 4:].any()


# --- TMA by hand ----------------------------------------------------------------------


def copy_page(source, target="emulator:sm_90a"):
    """Runs the example; returns what it wrote and what it should have written."""
    blocks = random_numbers(np.random.default_rng(0), (3, 2, 1, 64, 8, 128))
    out = np.zeros((64, 128), BF16)
    page, head = 2, 5
    program = kvcache.jit(source, target=target, filename="tma_by_hand.mlir")
    nothing = np.zeros(1, np.uint32), np.zeros((1, 1), np.uint32)
    program.call("copy_page", blocks, *nothing, page, head, out)
    return out, blocks[page, 0, 0, :, head]


@pytest.mark.parametrize("target", TARGETS[1:])
def test_tma_by_hand(target):
    assert_same_bits(*copy_page(source("tma_by_hand"), target))


@pytest.mark.parametrize("chip", ["sm_80", "sm_89"])
def test_tma_by_hand_needs_a_chip_that_has_it(chip):
    with pytest.raises(kvcache.CompileError, match=f"requires sm_90.*{chip}"):
        kvcache.compile(EXAMPLES / "tma_by_hand.mlir", target=chip)


def documented_mistakes():
    """Lines of the example with what stands there instead, and the reports."""
    text = (EXAMPLES.parent / "emulator/docs/copies-and-matrices.md").read_text()
    pattern = r"```diff\n(?P<diff>.*?)```\n+```text\n(?P<report>.*?)```"
    for match in re.finditer(pattern, text, re.DOTALL):
        lines = match["diff"].splitlines()
        removed = [line[1:].strip() for line in lines if line.startswith("-")]
        added = [line[1:].strip() for line in lines if line.startswith("+")]
        yield removed, added, match["report"]


MISTAKES = list(documented_mistakes())


def test_mistakes_are_documented():
    assert len(MISTAKES) == 3


@pytest.mark.parametrize(("removed", "added", "report"), MISTAKES)
def test_mistakes_are_reported_as_documented(removed, added, report):
    lines = source("tma_by_hand").splitlines()
    (place,) = (i for i, line in enumerate(lines) if line.strip() == removed[0])
    assert len(removed) == 1 and len(added) <= 1
    # A line that is missing leaves the numbers of the others as they are.
    lines[place] = added[0] if added else ""
    with pytest.raises(kvcache.CheckError) as error:
        copy_page("\n".join(lines))
    assert " ".join(str(error.value).split()) == " ".join(report.split())
