"""Attention with every pair of options that the op admits compiles for a chip."""

import itertools
import random

import pytest

import kvcache
from kvcache import KVCacheParams, KVCacheQuantizationConfig
from kvcache.ops.operations import Build

# Elements, scales, elements of a group, zero points, and queries.
FORMATS = [
    ("bf16", None, None, None, "bf16"),
    ("f16", None, None, None, "f16"),
    ("f8E4M3FN", None, None, None, "bf16"),
    ("f8E4M3FN", "f8E8M0FNU", 640, None, "f16"),
    ("i8", "f32", 16, None, "bf16"),
    ("i4", "f16", 7, "f16", "bf16"),
    ("f4E2M1FN", "f8E4M3FN", 16, None, "f16"),
    ("f32", None, None, None, "f32"),
]
SPLITS = {"split_tokens": 64, "max_splits": 4}
AXES = {
    "format": FORMATS,
    "head_dim": [16, 34, 80, 112, 128, 192, 240, 256, 272, 288, 512, 576],
    "value_dim": [lambda size: size, lambda size: size // 32 * 16 or 16, lambda size: max(size - 16, 2)],
    "is_mla": [False, True],
    "group": [1, 8, 64],
    "tokens": [{}, SPLITS, {**SPLITS, "split_rows": 5}, {"rows": True, "causal": False}, {"window": 31}],
    "tile_rows": [None, 0, 16, 32, 64, 128],
    "swap_operands": [None, True, False],
    "chip": ["sm_80", "sm_90a", "sm_100a", "sm_120a"],
}
MOST = 150


def is_admitted(row):
    """Whether (C10) and (C11) of the op admit the options together."""
    (dtype, *_), size, get_value, is_mla, _, _, rows, swap, chip = row
    value = get_value(size)
    most = (640, 512) if is_mla else (256, 256)
    has_tiles = (
        dtype != "f32" and size % 16 == 0 and size <= most[0] and value <= most[1]
        and value % (32 if value > 256 else 16) == 0
    )
    fits_rows = swap is None or (rows in (None, 16, 32) if swap else rows != 0)
    can_swap = not swap or chip != "sm_90a" or (has_tiles and value % 64 == 0)
    return (not rows or (has_tiles and not (is_mla and rows > 32))) and fits_rows and can_swap


def cover_pairs():
    """Choices of each axis, such that all pairs of two that the op admits appear.

    Also returns choices with each pair that the op doesn't admit.
    """
    draw = random.Random(0)
    sizes = [len(choices) for choices in AXES.values()]
    places = list(itertools.combinations(range(len(sizes)), 2))
    missing = {(i, j, a, b) for i, j in places for a in range(sizes[i]) for b in range(sizes[j])}

    def pairs(row):
        return {(i, j, row[i], row[j]) for i, j in places}

    rows, refused = [], []
    while missing:
        i, j, a, b = pair = min(missing)
        missing.remove(pair)
        candidates = [[draw.randrange(size) for size in sizes] for _ in range(100)]
        for row in candidates:
            row[i], row[j] = a, b
        admitted = [row for row in candidates if is_admitted(get_choices(row))]
        if not admitted:
            refused.append(get_choices(candidates[0]))
            continue
        best = max(admitted, key=lambda row: len(pairs(row) & missing))
        missing -= pairs(best)
        rows.append(get_choices(best))
    return rows, refused


def get_choices(row):
    return [choices[number] for choices, number in zip(AXES.values(), row)]


def get_source(row):
    (dtype, scale, granularity, zero_point, query), size, get_value, is_mla, group, tokens, rows, swap, _ = row
    config = scale and KVCacheQuantizationConfig(scale, granularity, zero_point)
    params = KVCacheParams(
        dtype, 1, size, page_size=16, total_num_layers=1, is_mla=is_mla, kvcache_quant_config=config
    )
    return kvcache.ops.attention(
        params, group, dtype=query, value_dim=get_value(size), tile_rows=rows, swap_operands=swap, **tokens
    ).write_source(row[-1])


@pytest.mark.slow
def test_each_pair_of_options_compiles(monkeypatch):
    # Nothing is compiled for the CPU.
    def make(kind, spec, *_, **__):
        return kind(kind.write(spec, kind.mutates), Build("cpu"), spec)

    monkeypatch.setattr(kvcache.ops, "make", make)
    rows, refused = cover_pairs()
    assert MOST // 2 < len(rows) <= MOST
    faults = []
    for row in rows:
        try:
            kvcache.compile(get_source(row), row[-1], opt_level=0)
        except kvcache.CompileError as error:
            faults.append((row, str(error)))
    assert faults == []
    for row in refused:
        with pytest.raises((kvcache.CompileError, ValueError), match="expects ('(tile_rows|config)' to|no field but)"):
            kvcache.compile(get_source(row), row[-1], opt_level=0)
