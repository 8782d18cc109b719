"""Tests of latent rows whose queries or keys are in two arrays, against f64 NumPy.

Rows of FlashMLA are written and read by NumPy and ml_dtypes: a scale is the largest magnitude of a group over 448.
"""

import dataclasses

import ml_dtypes
import numpy as np
import pytest
from attention_checks import FEW, FEW_NEW, ROUNDING, SPLITS, close, close_lse
from devices import CHIPS
from model import attend

import kvcache
from kvcache import KVCacheParams, Layout, StepInputs

BF16, E4M3 = np.dtype(ml_dtypes.bfloat16), np.dtype(ml_dtypes.float8_e4m3fn)
SM_80, SM_90A, SM_100A, SM_120A = (f"emulator:{chip}" for chip in (*CHIPS, "sm_120a"))
GRANULARITY = {"V3.2": 128, "V4": 64}


@dataclasses.dataclass
class Cache:
    """A cache with random rows.

    Attributes:
        params: The parameters of whole rows, or of their content.
        rope: The parameters of the rope, or None for whole rows.
        memory: The bytes of pages, of which each tensor is a view.
        tensors: The tensors, as arguments of ``StepInputs.of``.
        rows: The elements of all rows [pages, tokens, elements], f64.
    """

    params: KVCacheParams
    rope: KVCacheParams | None
    memory: np.ndarray
    tensors: dict
    rows: np.ndarray


def quantize(values, granularity):
    """Elements and f32 scales of values [..., elements]."""
    groups = values.astype(np.float32).reshape(*values.shape[:-1], -1, granularity)
    scales = np.abs(groups).max(-1) / np.float32(448)
    scales = np.where(scales > 0, scales, np.float32(1))
    return (groups / scales[..., None]).reshape(values.shape).astype(E4M3), scales


def decode(views, granularity):
    """The elements of all rows, f64 [pages, tokens, elements]."""
    content, scales, rope = (views[name].array[:, :, 0].astype(np.float64) for name in ("content", "scales", "rope"))
    return np.concatenate([content * scales.repeat(granularity, -1), rope], -1)


def make_fields(name, page_size, pages, rng):
    layout = Layout.from_name(f"FlashMLA-{name}")
    memory = np.zeros((pages, layout.page_bytes(page_size) + layout.page_unit), np.uint8)
    views = layout.views(memory, page_size)
    width = views["content"].array.shape[-1]
    elements, scales = quantize(rng.standard_normal((pages, page_size, 1, width)), layout.granularity)
    if name == "V4":
        scales = np.exp2(np.ceil(np.log2(scales)))
    views["content"].array[...], views["rope"].array[...] = elements, rng.standard_normal((pages, page_size, 1, 64))
    views["scales"].array[...] = scales.astype(views["scales"].array.dtype)
    params, rope = kvcache.row_params(layout, page_size)
    tensors = {"keys": views["content"].array, "key_scales": views["scales"].array, "values": views["rope"].array}
    return Cache(params, rope, memory, tensors, decode(views, layout.granularity))


def make_tensors(dtype, content, rope, page_size, pages, rng):
    """A tensor of each part, as FlashInfer has them."""
    kind = kvcache.dtypes.dtype(dtype)
    parts = [rng.standard_normal((pages, page_size, 1, size)).astype(kind) for size in (content, rope)]
    params = [KVCacheParams(dtype, 1, size, page_size=page_size, total_num_layers=1, is_mla=True) for size in (content, rope)]
    rows = np.concatenate(parts, -1)[:, :, 0].astype(np.float64)
    return Cache(*params, parts[0], {"keys": parts[0], "values": parts[1]}, rows)


def make_rows(dtype, size, page_size, pages, rng):
    blocks = rng.standard_normal((pages, 1, 1, page_size, 1, size)).astype(kvcache.dtypes.dtype(dtype))
    params = KVCacheParams(dtype, 1, size, page_size=page_size, total_num_layers=1, is_mla=True)
    return Cache(params, None, blocks, {"blocks": blocks}, blocks[:, 0, 0, :, 0].astype(np.float64))


def make_cache(form, page_size, pages, rng):
    kind, *sizes = form.split()
    if kind in GRANULARITY:
        return make_fields(kind, page_size, pages, rng)
    sizes = [int(size) for size in sizes]
    dtype, is_pair = kind.removesuffix("-pair"), kind.endswith("-pair")
    make = make_tensors if is_pair else make_rows
    return make(dtype, *(sizes if is_pair else [sum(sizes)]), page_size, pages, rng)


def make_queries(rng, total, heads, sizes, dtype, order):
    """Arrays of queries with elements of ``sizes``: slices of fused rows, or with heads outside of tokens."""
    kind = kvcache.dtypes.dtype(dtype)
    if order == "fused":
        fused = (2 * rng.standard_normal((total, heads, sum(sizes) + 16))).astype(kind)
        return np.split(fused[..., : sum(sizes)], np.cumsum(sizes)[:-1], -1)
    return [(2 * rng.standard_normal((heads, total, size))).astype(kind).swapaxes(0, 1) for size in sizes]


def fill_unseen(cache, table, totals, new, window, ids):
    """Fills all rows of the cache that no query sees with NaN."""
    seen = np.zeros(cache.rows.shape[:2], bool)
    if ids is not None:
        seen.reshape(-1)[ids[ids >= 0]] = True
    for b, total in enumerate(totals if ids is None else []):
        tokens = np.arange(max(total - new[b] + 1 - window, 0) if window else 0, total)
        seen[table[b, tokens // seen.shape[1]], tokens % seen.shape[1]] = True
    for tensor in cache.tensors.values():
        tensor[~seen] = np.nan


def check(
    form, dtype, heads, target, query_rope=None, value_dim=None, order="fused", lengths=FEW, new=FEW_NEW, page_size=16,
    rows=False, **options,
):  # fmt: skip
    rng = np.random.default_rng(5)
    totals = [length + more for length, more in zip(lengths, new)]
    columns = max(totals) // page_size + 1
    pages = len(lengths) * columns + 1
    cache = make_cache(form, page_size, pages, rng)
    table = rng.permutation(pages)[: len(lengths) * columns].astype(np.int32).reshape(-1, columns)
    entries = {"lut": table}
    if options.get("table") == "csr":
        entries = {"lut": table.ravel(), "indptr": np.arange(len(table) + 1, dtype=np.int32) * columns}
    inputs = StepInputs.of(
        **cache.tensors, **entries, lengths=np.array(lengths, np.int32),
        row_offsets=np.cumsum((0, *new)).astype(np.int32),
    )
    size = cache.rows.shape[-1]
    content = cache.params.head_dim - (0 if cache.rope else query_rope or 0)
    value_dim, total = value_dim or min(content, 512), sum(new)
    sizes = [size - query_rope, query_rope] if query_rope else [size]
    arrays = make_queries(rng, total + 2, heads, sizes, dtype, order) if query_rope else [
        (2 * rng.standard_normal((total + 2, heads, size))).astype(kvcache.dtypes.dtype(dtype))
    ]
    out_dtype = options.get("out_dtype", "bf16" if dtype.startswith("f8") else dtype)
    out = np.full((total + 2, heads, value_dim), 7, kvcache.dtypes.dtype(out_dtype))
    lse = np.full((total + 2, heads), 7, np.float32)
    scale, more = size**-0.5, {"q_rope": arrays[1]} if query_rope else {}
    ids = None
    if rows:
        ids = np.full((total + 2, 21), -1, np.int32)
        for row in range(total):
            tokens = rng.permutation(pages * page_size)[: rng.integers(0, 21)]
            ids[row, rng.permutation(21)[: len(tokens)]] = tokens
        more["rows"] = ids
    if cache.rope:
        fill_unseen(cache, table, totals, new, options.get("window"), None if ids is None else ids[:total])
    operation = kvcache.ops.attention(
        cache.params, heads, dtype=dtype, target=target, value_dim=value_dim, query_rope=query_rope,
        separate=cache.rope is not None, rope_params=cache.rope, rows=rows, **options,
    )
    operation(inputs, 0, arrays[0], out=out, lse=lse, scale=scale, **more)
    assert (out[total:] == 7).all() and (lse[total:] == 7).all()
    keys = cache.rows
    uses_tiles = target != "cpu" and dtype != "f32" and options.get("tile_rows") != 0 and size % 16 == 0
    if cache.params.kvcache_quant_config and uses_tiles:
        keys = keys.astype(BF16).astype(np.float64)
    q = np.concatenate(arrays, -1)
    for b, (length, count) in enumerate(zip(lengths, new)):
        first = sum(new[:b])
        seen = keys[table[b]].reshape(-1, 1, size)[: length + count]
        if rows:
            for row in range(first, first + count):
                some = keys.reshape(-1, 1, size)[ids[row][ids[row] >= 0]]
                compare(q[row : row + 1], some, value_dim, scale, out[row], lse[row], out_dtype, {"causal": False})
            continue
        part = slice(first, first + count)
        given = {name: options[name] for name in ("causal", "window", "soft_cap") if name in options}
        compare(q[part], seen, value_dim, scale, out[part], lse[part], out_dtype, given)


def compare(q, keys, value_dim, scale, out, lse, dtype, options):
    if not len(keys):
        assert not out.any() and (lse == -np.inf).all()
        return
    wanted, wanted_lse = attend(q, keys, keys[..., :value_dim], scale, **options)
    assert close(out, wanted.reshape(out.shape), ROUNDING[dtype] * np.abs(keys).max())
    assert close_lse(lse, wanted_lse.reshape(lse.shape))


# --- Queries in two arrays -----------------------------------------------------------------


@pytest.mark.parametrize(
    "form, dtype, heads, target, rope, options",
    [
        ("f32 32 16", "f32", 3, "cpu", 16, {}),
        ("bf16 512 64", "bf16", 16, "cpu", 64, {"order": "heads"}),
        ("f16 40 9", "f16", 2, "cpu", 9, {"window": 5}),  # a border that no vector ends at
        ("f32 32 16", "f32", 3, SM_80, 16, {"order": "heads"}),
        ("f32 40 24", "f32", 1, SM_90A, 24, {**SPLITS}),
        ("bf16 48 16", "bf16", 5, SM_80, 16, {"order": "heads", "window": 20}),
        ("bf16 64 64", "f8E4M3FN", 16, SM_80, 64, {}),
        ("f16 48 32", "f16", 16, SM_90A, 32, {**SPLITS}),
        ("bf16 128 64", "bf16", 16, SM_90A, 64, {"order": "heads", "swap_operands": False}),
        ("bf16 64 16", "bf16", 64, SM_100A, 16, {"order": "heads", **SPLITS}),
        ("bf16 64 16", "bf16", 8, SM_120A, 16, {"soft_cap": 3.0}),
        ("bf16 56 8", "bf16", 4, SM_90A, 8, {}),  # half a tile of 16 elements
    ],
)  # fmt: skip
def test_queries_in_two_arrays(form, dtype, heads, target, rope, options):
    check(form, dtype, heads, target, rope, **options)


@pytest.mark.parametrize("target", [SM_80, SM_90A, SM_100A, SM_120A])
def test_kernels_of_one_and_two_arrays_have_one_configuration(target):
    """A second array of queries changes no choice of tiles."""
    chip = target.partition(":")[2]
    params = KVCacheParams("bf16", 1, 576, page_size=64, total_num_layers=1, is_mla=True)
    plans = []
    for rope in (None, 64):
        operation = kvcache.ops.attention(params, 128, value_dim=512, query_rope=rope, target="cpu")
        kernels = operation.compile(chip).kernels.values()
        plans.append([kernel.ptx.count(name) for kernel in kernels for name in ("wgmma.mma", "tcgen05.mma", "mma.sync")])
    assert plans[0] == plans[1] and any(plans[0])


# --- Rows of fields ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "form, dtype, heads, target, rope, options",
    [
        ("V3.2", "f32", 2, "cpu", None, {}),
        ("V3.2", "bf16", 16, "cpu", 64, {"order": "heads", "window": 30}),
        ("V4", "bf16", 3, "cpu", None, {}),
        ("V3.2", "bf16", 16, "cpu", 64, {"rows": True}),
        ("V3.2", "f32", 2, SM_90A, None, {"lengths": (20,), "new": (2,)}),
        ("V3.2", "bf16", 4, SM_80, 64, {"lengths": (20,), "new": (2,)}),
        ("V4", "bf16", 16, SM_80, None, {"lengths": (20,), "new": (2,), "value_dim": 448}),
        ("V3.2", "bf16", 16, SM_90A, 64, {"lengths": (70, 3), "new": (1, 1), **SPLITS}),
        ("V3.2", "bf16", 16, SM_90A, 64, {"lengths": (20,), "new": (2,), "swap_operands": False}),
        ("V3.2", "f8E4M3FN", 64, SM_90A, 64, {"lengths": (20,), "new": (1,)}),
        ("V3.2", "bf16", 64, SM_100A, 64, {"lengths": (20,), "new": (1,), "window": 9}),
        ("V3.2", "bf16", 16, SM_120A, 64, {"lengths": (20,), "new": (2,)}),
        ("V3.2", "bf16", 16, SM_90A, 64, {"lengths": (20,), "new": (2,), "rows": True, "page_size": 8}),
        ("V3.2", "bf16", 16, SM_90A, 64, {"lengths": (150, 90), "new": (1, 1), "window": 70, "page_size": 64, **SPLITS}),
        ("V3.2", "bf16", 4, SM_80, None, {"lengths": (40,), "new": (2,), "window": 30, "page_size": 64}),
        ("V4", "bf16", 64, SM_100A, 64, {"lengths": (90,), "new": (1,), "window": 70, "page_size": 64, "value_dim": 384}),
        ("V4", "f8E4M3FN", 16, SM_90A, None, {"lengths": (20,), "new": (2,), "rows": True, "page_size": 1}),
        ("V4", "bf16", 16, SM_120A, None, {"lengths": (33,), "new": (1,), "page_size": 3, "value_dim": 448}),
        ("V3.2", "bf16", 2, SM_80, None, {"lengths": (20,), "new": (1,), "tile_rows": 0}),
        ("bf16-pair 48 16", "bf16", 5, SM_80, 16, {}),
        ("bf16-pair 48 16", "bf16", 5, "cpu", 16, {"table": "csr"}),
        ("V3.2", "bf16", 16, SM_90A, None, {"lengths": (20, 3), "new": (1, 1), "table": "csr"}),
        ("bf16-pair 64 16", "bf16", 16, SM_90A, None, {**SPLITS}),
        ("f16-pair 40 9", "f16", 2, "cpu", 5, {}),
        ("f32-pair 40 24", "f32", 3, SM_90A, 8, {}),
    ],
)  # fmt: skip
def test_keys_in_two_tensors(form, dtype, heads, target, rope, options):
    check(form, dtype, heads, target, rope, **options)


# --- Append --------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["cpu", SM_80, SM_90A])
@pytest.mark.parametrize("by", ["table", "slots"])
@pytest.mark.parametrize("name", GRANULARITY)
def test_append_to_rows_of_fields(name, by, target):
    """Bytes are those of vLLM's ``concat_and_cache_ds_mla``, but for the scale of zeros."""
    rng = np.random.default_rng(3)
    cache = make_fields(name, 4, 6, rng)
    granularity, content = GRANULARITY[name], cache.params.head_dim
    model, layout = cache.memory.copy(), Layout.from_name(f"FlashMLA-{name}")
    latent = (rng.standard_normal((6, 1, content)) * np.exp2(rng.integers(-20, 8, (6, 1, 1)))).astype(BF16)
    latent[0, :, :granularity] = 0
    rope = rng.standard_normal((6, 1, 80)).astype(BF16)[..., 8:72]
    table = np.array([[4, 1], [0, 3]], np.int32)
    slots = np.array([18, 19, 4, 1, -1, 2]) if by == "slots" else np.array([18, 19, 4, 0, 1, 2])
    inputs = StepInputs.of(
        **cache.tensors, lut=table, lengths=np.array([2, 0], np.int32), row_offsets=np.array([0, 3, 6], np.int32)
    )
    more = {"slots": "i64"} if by == "slots" else {}
    power_of_two = name == "V4"
    append = kvcache.ops.append(
        cache.params, target, "bf16", power_of_two=power_of_two, separate=True, rope_params=cache.rope, **more
    )
    given = {"slots": slots} if by == "slots" else {}
    append(inputs, 0, latent, latent_rope=rope, **given)
    views = layout.views(model, 4)
    for row, slot in enumerate(slots):
        if slot < 0:
            continue
        place = slot // 4, slot % 4, 0
        elements, scales = quantize(latent[row, 0], granularity)
        if power_of_two:
            amax = np.abs(latent[row, 0].astype(np.float32).reshape(-1, granularity)).max(-1)
            scales = np.exp2(np.ceil(np.log2(np.maximum(amax / np.float32(448), np.float32(1e-4)))))
            elements = (latent[row, 0].astype(np.float32) / scales.repeat(granularity)).astype(E4M3)
        views["content"].array[place], views["rope"].array[place] = elements, rope[row, 0]
        views["scales"].array[place] = scales.astype(views["scales"].array.dtype)
    np.testing.assert_array_equal(cache.memory, model)


def test_append_norms_and_ropes_both_tensors():
    rng = np.random.default_rng(9)
    cache = make_tensors("f32", 32, 16, 4, 3, rng)
    latent, rope = rng.standard_normal((2, 1, 32)).astype(np.float32), rng.standard_normal((2, 1, 16)).astype(np.float32)
    weights, angles = rng.standard_normal(32).astype(np.float32), rng.standard_normal((8, 4))
    table = np.concatenate([np.cos(angles), np.sin(angles)], -1).astype(np.float32)
    inputs = StepInputs.of(
        **cache.tensors, lut=np.array([[2, 1]], np.int32), lengths=np.array([3], np.int32),
        row_offsets=np.array([0, 2], np.int32),
    )
    append = kvcache.ops.append(
        cache.params, dtype="f32", norm=32, rope=8, rope_begin=36, interleaved=True, separate=True, rope_params=cache.rope
    )
    append(inputs, 0, latent, latent_rope=rope, norm=weights, rope=table)
    normed = latent * weights / np.sqrt((latent.astype(np.float64) ** 2).mean(-1, keepdims=True) + 1e-6)
    turned = rope.astype(np.float64)
    pairs = turned[..., 4:12:2] + 1j * turned[..., 5:12:2]
    pairs = pairs * np.exp(1j * angles[3:5, None])
    turned[..., 4:12:2], turned[..., 5:12:2] = pairs.real, pairs.imag
    for row, place in enumerate([(2, 3), (1, 0)]):
        np.testing.assert_allclose(cache.tensors["keys"][place], normed[row], atol=1e-5)
        np.testing.assert_allclose(cache.tensors["values"][place], turned[row], atol=1e-5)


# --- Errors --------------------------------------------------------------------------------

LATENT = KVCacheParams("bf16", 1, 32, page_size=4, total_num_layers=1, is_mla=True)
ROPE = KVCacheParams("bf16", 1, 16, page_size=4, total_num_layers=1, is_mla=True)
PAIR = {"separate": True, "rope_params": ROPE}


@pytest.mark.parametrize("function, options, message", [
    ("attention", {"query_rope": 32}, "'query_rope' to be .* 31, got 32"),
    ("attention", {"query_rope": 0}, "'query_rope' to be .*, got 0"),
    ("attention", {"rope_params": ROPE}, "expects 'rope_params' only with 'separate'"),
    ("attention", {**PAIR, "static_scales": True}, "expects a cache with scales .* for 'static_scales', got bf16"),
    ("append", {**PAIR, "query_heads": 4, "rope": 8, "rope_begin": 32}, "expects no 'query_heads' with 'rope_params'"),
    ("append", {**PAIR, "latent_rope": 8}, r"'latent_rope' to be 'head_dim' of 'rope_params' \(16\), got 8"),
    ("append", {**PAIR, "rope": 8, "rope_begin": 31}, "in elements 32 to 48 of a row, got 31 to 39"),
    ("append", {"separate": True, "rope_params": KVCacheParams("f8E4M3FN", 1, 16, page_size=4, total_num_layers=1, is_mla=True)},
     "expects 'rope_params' of f32, f16 or bf16 without scales, got !kvcache.paged<f8E4M3FN"),
    ("append", {"separate": True, "rope_params": KVCacheParams("bf16", 1, 16, page_size=8, total_num_layers=1, is_mla=True)},
     r"'page_size' of 'rope_params' to be that of 'params' \(4\), got 8"),
    ("append", {"separate": True, "rope_params": KVCacheParams("bf16", 1, 16, page_size=4, total_num_layers=1)},
     "expects 'rope_params' only for a latent cache, and latent themselves"),
])  # fmt: skip
def test_wrong_options_are_errors(function, options, message):
    arguments = {"query_heads": 4, "value_dim": 32} if function == "attention" else {}
    with pytest.raises(ValueError, match=message):
        getattr(kvcache.ops, function)(LATENT, **arguments, **options)


def test_wrong_arguments_of_row_params_are_errors():
    with pytest.raises(TypeError, match="'layout' to be .*RowLayout"):
        kvcache.row_params(Layout.from_name("NHD"), 64)
    with pytest.raises(ValueError, match="'page_size' to be positive, got 0"):
        kvcache.row_params(Layout.from_name("FlashMLA-V4"), 0)


def test_query_rope_needs_a_latent_cache():
    with pytest.raises(ValueError, match="expects 'query_rope' only for a latent cache"):
        kvcache.ops.attention(KVCacheParams("bf16", 1, 32, page_size=4, total_num_layers=1), 4, query_rope=8)


@pytest.mark.parametrize("change, message", [
    ({"q_rope": None}, "expects 'q_rope', as the operation was made with it"),
    ({"q_rope": (2, 4, 8)}, "'q_rope'"),
    ({"q_rope": (1, 4, 16)}, "expects 'q_rope' to have a row for each of 2 new tokens, got 1"),
    ({"q": (2, 4, 48)}, "'q'"),
    ({"values": None}, "expects inputs with 'values'"),
    ({"values": (2, 4, 1, 16)}, r"'values' to have the pages and tokens of 'keys', \[3, 4\], got \[2, 4\]"),
    ({"values": (3, 4, 1, 8)}, "rope_blocks"),
])  # fmt: skip
def test_wrong_arrays_are_errors(change, message):
    sizes = {"q": (2, 4, 32), "q_rope": (2, 4, 16), "keys": (3, 4, 1, 32), "values": (3, 4, 1, 16)} | change
    arrays = {name: None if size is None else np.zeros(size, BF16) for name, size in sizes.items()}
    tensors = {name: arrays.pop(name) for name in ("keys", "values") if arrays[name] is not None}
    arrays.pop("values", None)
    attention = kvcache.ops.attention(LATENT, 4, value_dim=32, query_rope=16, **PAIR)
    with pytest.raises((TypeError, ValueError), match=message):
        inputs = StepInputs.of(
            **tensors, lut=np.array([[2, 1]], np.int32), lengths=np.array([3], np.int32),
            row_offsets=np.array([0, 2], np.int32),
        )
        attention(inputs, 0, arrays.pop("q"), out=np.zeros((2, 4, 32), BF16), scale=1.0, **arrays)
