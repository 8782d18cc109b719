"""Tests of the masks and statistics of kvcache.ops.attention on every kind of kernel, against f64 NumPy."""

import functools
import re
from dataclasses import dataclass, field, replace

import model
import numpy as np
import pytest
from attention_checks import (
    FORMATS,
    LAYER,
    ROUNDING,
    close,
    close_lse,
    dense,
    fill,
    make_params,
    round_as_tiles,
    tile_type,
)
from host_mma import use_mma
from pairs import take_turns
from programs import run_passes

import kvcache
from kvcache.compilation import processors

# Rows of several thread blocks, a decode step over several tiles, and a cache without tokens before.
LENGTHS, NEW = (30, 0, 131), (70, 9, 1)
SPLITS = {"split_tokens": 48, "max_splits": 3, "split_rows": 16}


@dataclass(frozen=True)
class Kernel:
    """A kind of kernel: a target, a format, a cache, and options that choose it.

    With ``split_for``, the pipeline starts after kvcache-split-attention for this chip. With
    ``mma``, a CPU has these matrix instructions.
    """

    target: str
    format_: str = "bf16"
    group: int = 4
    mla: bool = False
    options: dict = field(default_factory=dict)
    split_for: str | None = None
    mma: str | None = None


def chip(number):
    return f"emulator:sm_{number}"


KERNELS = {
    "cpu": Kernel("cpu", "f32"),
    "cpu-splits": Kernel("cpu", "f32", options=SPLITS, split_for="sm_80"),
    "cpu-splits-f16": Kernel("cpu", "f16", options={"tile_rows": 16, **SPLITS}, split_for="sm_90a"),
    "dot": Kernel("cpu", mma="dot"),
    "dot-scaled": Kernel("cpu", "fp8-token", 8, mma="dot"),
    "tiles": Kernel("cpu", mma="tiles"),
    "tiles-latent": Kernel("cpu", group=16, mla=True, options={"value_dim": 48}, mma="tiles"),
    "warps": Kernel(chip("80"), "f32", 3),
    "split-warps": Kernel(chip("120a"), "f32", options=SPLITS),
    "mma_sync": Kernel(chip("80"), options={"tile_rows": 64}),
    "split-mma_sync": Kernel(chip("120a"), "f16", options={"tile_rows": 16, **SPLITS}),
    "persistent": Kernel(
        chip("80"), options={"tile_rows": 16, **SPLITS, "scheduled_blocks": 3}, split_for="sm_80"
    ),
    "dequantized": Kernel(chip("90a"), "fp8-scaled", 8, options={"tile_rows": 16, **SPLITS}),
    "ping_pong": Kernel(
        chip("90a"), options={"config": kvcache.AttentionConfig(rows=128, schedule="ping_pong")}
    ),
    "pipelined": Kernel(
        chip("90a"), "f16", options={"config": kvcache.AttentionConfig(rows=64, schedule="pipelined")}
    ),
    "wgmma": Kernel(
        chip("90a"), "f16", options={"config": kvcache.AttentionConfig(rows=64, schedule="prefetch")}
    ),
    "swap_ab": Kernel(chip("90a"), group=16, mla=True, options={"value_dim": 48, **SPLITS}),
    "tcgen05": Kernel(chip("100a"), "f16"),
}


def draw_bits(rows, tokens):
    return [np.random.default_rng(7).random((n, t)) < 0.3 for n, t in zip(rows, tokens)]


def pack_bits(bits):
    """Packs [rows, tokens] of each sequence as int32 [total, words]."""
    words = -(-max(each.shape[1] for each in bits) // 32)
    wide = [np.pad(each, ((0, 0), (0, 32 * words - each.shape[1]))) for each in bits]
    packed = np.packbits(np.concatenate(wide), axis=1, bitorder="little")
    return np.ascontiguousarray(packed).view(np.int32)


def use_bits(rows, tokens):
    bits = draw_bits(rows, tokens)
    bits[0][3] = False  # a row that sees nothing
    bits[0][:2] = True
    return {"mask": pack_bits(bits)}, bits


def use_cached_bits_alone(rows, tokens):
    """No bits for the new tokens of the longest sequence, which no row sees then."""
    bits = [np.ones((n, t), bool) for n, t in zip(rows, tokens)]
    bits[2][:, 130:] = False
    words = pack_bits([each[:, :96] for each in bits])
    return {"mask": words}, [each & (np.arange(each.shape[1]) < 96) for each in bits]


def see(ranges, tokens):
    """The tokens that rows of ranges [rows, n, 2] see, [rows, tokens]."""
    t = np.arange(tokens)
    return ((ranges[..., :1] <= t) & (t < ranges[..., 1:])).any(axis=1)


def join(ranges, tokens):
    return {"ranges": np.concatenate(ranges).astype(np.int32)}, [
        see(each, t) for each, t in zip(ranges, tokens)
    ]


def use_documents(rows, tokens):
    """Documents of 37 tokens; a begin below 0 and ends after the sequence are clipped."""
    positions = [t - n + np.arange(n) for n, t in zip(rows, tokens)]
    begins = [each // 37 * 37 for each in positions]
    ranges = [np.stack([begin - 5 * (begin == 0), begin + 37], -1)[:, None] for begin in begins]
    ranges[0][5:9] = [[[40, 11]], [[0, -(2**31)]], [[2**31 - 1, -(2**31)]], [[2**31 - 1, 2**31 - 1]]]  # empty ones
    return join(ranges, tokens)


def use_prefixes(rows, tokens):
    """Streaming attention: 4 tokens, and the last 11; rows near the begin have one range, or none."""
    ranges = []
    for n, t in zip(rows, tokens):
        end = t - n + np.arange(n) + 1
        first = np.minimum(4, end)
        begin = np.maximum(end - 11, first)
        ranges.append(np.stack([np.stack([0 * end, first], -1), np.stack([begin, end], -1)], 1))
    ranges[0][6] = 0, 0
    return join(ranges, tokens)


def use_blocks(rows, tokens):
    """Blocks of 16 tokens, other ones for every 32 rows, with empty ranges at the end."""
    rng = np.random.default_rng(3)
    ranges = []
    for n, t in zip(rows, tokens):
        each = np.full((n, 5, 2), t + 16)
        for row in range(0, n, 32):
            blocks = np.sort(rng.permutation(-(-t // 16))[:5])
            each[row : row + 32, : len(blocks)] = 16 * blocks[:, None] + (0, 16)
        ranges.append(each)
    return join(ranges, tokens)


# Options of the operation, and a function of rows and tokens of sequences: arrays and what rows see.
MASKS = {
    "whole_mask": ({"mask": True, "whole_mask": True, "causal": False}, use_bits),
    "causal_whole_mask": (
        {"mask": True, "whole_mask": True, "window": 50, "sinks": True},
        use_bits,
    ),
    "bits_of_few": ({"mask": True, "whole_mask": True, "causal": False}, use_cached_bits_alone),
    "documents": ({"ranges": 1}, use_documents),
    "both_ways": ({"ranges": 1, "causal": False, "soft_cap": 4.0}, use_documents),
    "streaming": ({"ranges": 2}, use_prefixes),
    "streaming_window": ({"ranges": 2, "window": 8, "sinks": True}, use_prefixes),
    "blocks": ({"ranges": 5, "causal": False}, use_blocks),
    "causal_blocks": ({"ranges": 5, "chunk": 60}, use_blocks),
}


@functools.cache
def make_cache(format_, mla):
    params = make_params(format_, 1 if mla else 2, 64, 16, mla)
    _, inputs = fill(params, FORMATS[format_][2], LENGTHS, NEW)
    return params, inputs


def split(source, chip):
    """The IR after kvcache-split-attention, with the names that calls give arguments by."""
    passes = f"kvcache-plan-attention{{chip={chip}}},kvcache-split-attention"
    names = re.findall(r"%(\w+): ", re.search(r"func\.func @attention\((.*?)\) \{", source, re.DOTALL)[1])
    text = run_passes(source, passes)
    assert "kvcache.merge_splits" in text
    return re.sub(r"%arg(\d+)\b", lambda m: f"%{names[int(m[1])]}" if int(m[1]) < len(names) else m[0], text)


def check_kernel(kernel, options, use=None, lengths=None):
    """Compares all results of a call with the model. ``lengths`` are given tokens of sequences."""
    params, inputs = make_cache(kernel.format_, kernel.mla)
    dtype = FORMATS[kernel.format_][2]
    options = {**kernel.options, **options}
    tokens = [length + new for length, new in zip(LENGTHS, NEW)] if lengths is None else list(lengths)
    arrays, visible = ({}, [None] * 3) if use is None else use(NEW, tokens)
    if lengths is not None:
        options["kv_lengths"], arrays["kv_lengths"] = True, np.array(lengths, np.int32)
    heads, total = kernel.group * params.n_kv_heads_per_device, sum(NEW)
    rng = np.random.default_rng(1)
    kind = kvcache.dtypes.dtype(dtype)
    q = (2 * rng.standard_normal((total, heads, 64))).astype(kind)
    out = np.full((total, heads, options.get("value_dim") or 64), 7, kind)
    lse, largest = np.full((total, heads), 7, np.float32), np.full((total, heads), 7, np.float32)
    if options.get("sinks"):
        arrays["sinks"] = (3 * rng.standard_normal(heads)).astype(np.float32)
    if options.get("max_logits"):
        arrays["max_logits"] = largest
    attend = kvcache.ops.attention(params, heads, dtype=dtype, target=kernel.target, **options)
    if kernel.split_for:
        source = split(attend.source, kernel.split_for)
        attend.__dict__["program"] = kvcache.jit(source, target=kernel.target, opt_level=0)
    if kernel.mma:
        attend = use_mma(attend, kernel.mma)
    attend(inputs, LAYER, q, out=out, lse=lse, scale=0.125, **arrays)
    roles = dense(params, inputs, 132)
    round_as_tiles(roles, params, dtype, tile_type(params, dtype, kernel.target, options))
    limits = {name: options.get(name) for name in ("window", "soft_cap", "chunk")}
    limits["causal"] = options.get("causal", True)
    for b, seen in enumerate(visible):
        rows = slice(*map(int, inputs.row_offsets[b : b + 2]))
        keys, values = roles[0, b, : tokens[b]], roles[-1, b, : tokens[b], :, : out.shape[-1]]
        if not tokens[b]:
            assert not out[rows].any()
            continue
        sinks = arrays.get("sinks")
        wanted, wanted_lse = model.attend(
            q[rows], keys, values, 0.125, sinks=sinks, visible=seen, **limits
        )
        assert close(out[rows], wanted, ROUNDING[dtype] * np.abs(values).max())
        if options.get("sinkless_lse"):
            _, wanted_lse = model.attend(q[rows], keys, values, 0.125, visible=seen, **limits)
        assert close_lse(lse[rows], np.where(np.isfinite(wanted_lse), wanted_lse, -np.inf))
        if options.get("max_logits"):
            scores = model.masked_scores(q[rows], keys, 0.125, visible=seen, **limits)
            assert close_lse(largest[rows], scores.max(-1))


@pytest.mark.parametrize("kernel, mask", take_turns(KERNELS, MASKS, 4))
def test_masks(kernel, mask):
    options, use = MASKS[mask]
    check_kernel(KERNELS[kernel], options, use)


@pytest.mark.parametrize("options", [
    {"max_logits": True}, {"max_logits": True, "sinks": True, "sinkless_lse": True, "soft_cap": 3.0, "window": 9},
], ids=["plain", "sinks"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_statistics(kernel, options):
    """The maxima are those of scores, and the logarithm without the sink is that of scores alone."""
    check_kernel(KERNELS[kernel], options)


@pytest.mark.parametrize("bits", [128, 256])
def test_vectors_of_other_processors(monkeypatch, bits):
    """With fewer registers, loops have other shapes: of many rows, and of few."""
    monkeypatch.setattr(processors, "make_host_level", lambda features: processors.Level("", bits, True))
    kernel = replace(KERNELS["cpu"], format_="bf16", options={})
    for name in ("causal_whole_mask", "streaming_window"):
        options, use = MASKS[name]
        # Options of no other test: operations are remembered.
        check_kernel(kernel, {**options, "chunk": 300 + bits}, use)


FEW_TOKENS = {
    "causal": {}, "window": {"window": 5, "sinks": True}, "chunk": {"causal": False, "chunk": 3},
    "causal_chunk": {"chunk": 7, "max_logits": True}, "mask": {"causal": False, "mask": True, "whole_mask": True},
}  # fmt: skip


@pytest.mark.parametrize("kernel, name", take_turns(KERNELS, FEW_TOKENS, 2))
def test_more_rows_than_tokens(kernel, name):
    """Rows before token 0 see nothing by ``causal`` and ``chunk``; a sequence may have no tokens."""
    options = FEW_TOKENS[name]
    check_kernel(KERNELS[kernel], options, use_bits if "mask" in options else None, lengths=(10, 0, 120))


@pytest.mark.long
def test_ranges_and_region():
    """A row sees the tokens that its ranges and the region ``mask`` admit."""

    def is_even(sequence, head, query, key):
        return key % 2 == 0

    def use(rows, tokens):
        arrays, visible = use_prefixes(rows, tokens)
        return arrays, [seen & (np.arange(seen.shape[1]) % 2 == 0) for seen in visible]

    for name in ("cpu", "warps", "mma_sync", "ping_pong"):
        check_kernel(KERNELS[name], {"ranges": 2, "mask": is_even}, use)


@pytest.mark.parametrize("kernel", ["cpu", "warps", "dequantized", "converted"])
def test_ranges_after_the_end(kernel):
    """No token of a page is read that nothing has written: the emulator would report it."""

    def use(rows, tokens):
        return join([np.full((n, 1, 2), (t + 1, t + 99)) for n, t in zip(rows, tokens)], tokens)

    converted = Kernel(chip("90a"), "fp8-scaled", 8, options={"tile_rows": 64})
    check_kernel({**KERNELS, "converted": converted}[kernel], {"ranges": 1, "causal": False}, use)


def count_copied(target, options, ranges, tokens=512):
    """The bytes of tiles that a prompt of one block of 64 rows copies for one head of 64 elements."""
    params = kvcache.KVCacheParams("bf16", 1, 64, page_size=64, total_num_layers=1)
    attend = kvcache.ops.attention(
        params, 4, dtype="bf16", causal=False, ranges=ranges.shape[1], kv_lengths=True, **options
    )
    program = kvcache.jit(attend.source, target=target, meter=True, opt_level=0)
    blocks = np.zeros((-(-tokens // 64), 2, 1, 64, 1, 64), kvcache.dtypes.dtype("bf16"))
    q = np.zeros((len(ranges), 4, 64), blocks.dtype)
    out, lse = np.zeros_like(q), np.zeros((len(ranges), 4), np.float32)
    table = np.arange(len(blocks), dtype=np.uint32)[None]
    offsets, lengths = np.array([0, len(ranges)], np.int32), np.array([tokens], np.int32)
    program.call(
        "attention", blocks, np.zeros(1, np.uint32), table, tokens, tokens, 0, q, offsets, out, lse, 0.125,
        lengths, ranges.astype(np.int32),
    )
    (launch,) = program.launches
    return sum(copies.global_bytes for copies in launch.copies.values())


def count_seen(ranges, keys):
    """The bytes of tiles of ``keys`` tokens with a token that some row sees, up to the last one."""
    seen = see(ranges, ranges.max()).any(axis=0)
    first = np.flatnonzero(seen)[0] // 64 * 64
    starts = [start for start in range(first, len(seen), keys) if seen[start : start + keys].any()]
    return sum(min(start + keys, len(seen)) - start for start in starts) * 2 * 64 * 2


@pytest.mark.long
@pytest.mark.parametrize("kernel, keys", [("mma_sync", 64), ("ping_pong", 128), ("wgmma", 64), ("tcgen05", 64)])
def test_ranges_bound_what_is_read(kernel, keys):
    """Tiles that no row of a thread block sees are not copied."""
    target, options = KERNELS[kernel].target, KERNELS[kernel].options
    document = np.tile([[[130, 180]]], (16, 1, 1))
    blocks = np.tile([[[0, 64], [256, 320], [320, 320]]], (16, 1, 1))
    shifted = blocks.copy()
    shifted[7, 2] = 400, 448
    every = np.tile([[[0, 100], [100, 512]]], (16, 1, 1))
    for ranges in (document, blocks, shifted, every):
        assert count_copied(target, options, ranges) == count_seen(ranges, keys)
    for begin in (499, 500, 504):  # the last token, and what is in its page after it
        after = np.tile([[[begin, 600]]], (16, 1, 1))
        copied = count_copied(target, options, after, tokens=500)
        assert copied == (count_seen(np.minimum(after, 500), keys) if begin < 500 else 0)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["mma_sync", "ping_pong"])
def test_ranges_of_more_tiles_than_a_list_has(kernel):
    """A list has the first 1,024 tiles that rows see, and all later ones."""
    chosen, tokens = KERNELS[kernel], 1027 * 128
    params = kvcache.KVCacheParams("bf16", 1, 16, page_size=128, total_num_layers=1)
    rng = np.random.default_rng(2)
    blocks = rng.standard_normal((tokens // 128, 2, 1, 128, 1, 16)).astype(kvcache.dtypes.dtype("bf16"))
    inputs = kvcache.StepInputs.of(
        blocks=[blocks], lut=np.arange(len(blocks), dtype=np.uint32)[None],
        lengths=np.array([tokens - 3], np.uint32), row_offsets=np.array([0, 3], np.uint32),
    )
    ranges = np.array([[[5, 40], [131000, 131100]], [[64, 128], [tokens - 20, tokens]], [[0, 0], [131072, 131073]]])
    attend = kvcache.ops.attention(
        params, 4, dtype="bf16", causal=False, ranges=2, target=chosen.target, **chosen.options
    )
    q = rng.standard_normal((3, 4, 16)).astype(blocks.dtype)
    out, lse = np.zeros_like(q), np.zeros((3, 4), np.float32)
    attend(inputs, 0, q, out=out, lse=lse, scale=0.25, ranges=ranges.astype(np.int32))
    keys, values = (blocks[:, role, 0].reshape(tokens, 1, 16) for role in (0, 1))
    wanted, wanted_lse = model.attend(q, keys, values, 0.25, causal=False, visible=see(ranges, tokens))
    assert close(out, wanted, ROUNDING["bf16"] * np.abs(values.astype(np.float64)).max())
    assert close_lse(lse, wanted_lse)


@pytest.mark.parametrize("target", ["cpu", chip("90a")])
@pytest.mark.parametrize("ranges, message", [
    ([[0, 9], [4, 12]], "distance of a range of 'ranges' from the one before"),
    ([[3, 2], [4, 12]], "length of a range of 'ranges'"),
    ([[-(2**31), 2**31 - 1], [2**31 - 1, 2**31 - 1]], None),
])
def test_checks_report_ranges_that_are_not_sorted(target, ranges, message):
    params, inputs = make_cache("f32", False)
    options = {"ranges": 2, "causal": False}
    attend = kvcache.ops.attention(params, 4, **options)
    program = kvcache.jit(attend.source, target=target, bounds_checks=True, opt_level=0)
    q = np.ones((80, 4, 64), np.float32)
    all_ranges = np.zeros((80, 2, 2), np.int32)
    all_ranges[11] = ranges
    arguments = (
        *inputs.collection(0), LAYER, q, inputs.row_offsets.view(np.int32), np.zeros_like(q),
        np.zeros((80, 4), np.float32), 0.1, all_ranges,
    )
    if message is None:
        return program.call("attention", *arguments)
    with pytest.raises(kvcache.CheckError, match=message):
        program.call("attention", *arguments)


def test_calls_reject_wrong_masks_and_ranges():
    params, inputs = make_cache("f32", False)
    q, out = np.ones((80, 4, 64), np.float32), np.ones((80, 4, 64), np.float32)

    def call(options, **arrays):
        attend = kvcache.ops.attention(params, 4, **options)
        for _ in range(2):  # the second call is one that the extension checks
            attend(inputs, LAYER, q, out=out, scale=0.1, **arrays)

    ranges = np.zeros((80, 2, 2), np.int32)
    call({"ranges": 2}, ranges=ranges)
    unsorted = ranges.copy()
    unsorted[79, 1] = -1, 5
    largest = np.zeros((80, 4), np.float32)
    for options, arrays, message in (
        ({"ranges": 2}, {"ranges": unsorted}, "expects the ranges of a row to be sorted, got end 0 and next begin -1 in row 79"),
        ({"ranges": 2}, {"ranges": np.flip(unsorted, 1) + [[3, 1], [9, 9]]},
         "expects the ranges of a row to be sorted, got begin 3 and end 1 in row 0"),
        ({"ranges": 2}, {"ranges": ranges[:79]}, "'ranges' .*80.*79"),
        ({"ranges": 2}, {}, "ranges"),
        ({}, {"ranges": ranges}, "ranges"),
        ({"max_logits": True}, {}, "max_logits"),
        ({"max_logits": True}, {"max_logits": largest[:79]}, "'max_logits' .*80.*79"),
        ({"max_logits": True}, {"max_logits": largest, "lse": largest}, "share"),
        ({"sinkless_lse": True}, {}, "expects 'sinkless_lse' only with 'sinks'"),
        ({"whole_mask": True}, {}, "expects 'whole_mask' only with 'mask=True'"),
        ({"ranges": 0}, {}, "'ranges'"),
        ({"ranges": 2, "rows": True}, {}, "expects no 'window', 'chunk', 'mask' or 'ranges' with 'rows'"),
    ):
        with pytest.raises(ValueError, match=message):
            call(options, **arrays)
    with pytest.raises((TypeError, ValueError), match="ranges"):
        call({"ranges": 3}, ranges=ranges)
    with pytest.raises(TypeError, match="ranges"):
        call({"ranges": 2}, ranges=ranges.astype(np.int64))
