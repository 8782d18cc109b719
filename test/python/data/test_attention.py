"""kvcache.ops.attention against f64 NumPy on the same bytes."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kvcache
from kvcache import KVCacheParams, KVCacheQuantizationConfig, PagedKVCacheManager

LAYERS = 2
LAYER = 1

# Formats of caches: dtype, granularity of f32 scales, dtype of rows.
FORMATS = {
    "f32": ("f32", None, "f32"),
    "bf16": ("bf16", None, "bf16"),
    "f16": ("f16", None, "f16"),
    "fp8": ("f8E4M3FN", None, "f32"),
    "fp8-scaled": ("f8E4M3FN", 16, "bf16"),
    "int8": ("i8", 16, "f32"),
    "int4": ("i4", 16, "bf16"),
    "nvfp4": ("f4E2M1FN", 16, "bf16"),
    "mxfp4": ("f4E2M1FN", 32, "f32"),
    # A scale for each head of a token.
    "fp8-token": ("f8E4M3FN", 640, "bf16"),
    "int8-token": ("i8", 640, "f32"),
}
SCALES = {"nvfp4": "f8E4M3FN", "mxfp4": "f8E8M0FNU", "fp8-token": "f8E8M0FNU"}  # of other formats: f32
ROUNDING = {"f32": 3e-6, "bf16": 2**-8, "f16": 2**-11}  # of outputs, relative to values


def make_params(format_="f32", heads=2, head_dim=64, page_size=16, mla=False):
    dtype, granularity, _ = FORMATS[format_]
    zero_point = "f32" if dtype == "i4" else None
    scale = SCALES.get(format_, "f32")
    config = KVCacheQuantizationConfig(scale, granularity, zero_point) if granularity else None
    return KVCacheParams(
        dtype, heads, head_dim, page_size=page_size, total_num_layers=LAYERS,
        kvcache_quant_config=config, is_mla=mla,
    )


def randomize(manager):
    """Random elements and scales: append refuses tokens that share their scales."""
    rng = np.random.default_rng(6)
    for tensor in manager.blocks:
        tensor[...] = rng.integers(-128, 128, tensor.shape).astype(np.int8).view(tensor.dtype)
    for tensor in manager.scales:
        tensor[...] = rng.uniform(0.01, 0.03, tensor.shape).astype(tensor.dtype)


def fill(params, dtype, lengths, new, seed=0):
    """A manager with random rows of sequences, and the inputs of their new tokens."""
    page = params.page_size
    pages = sum((length + more) // page + 1 for length, more in zip(lengths, new))
    manager = PagedKVCacheManager(
        params, max_batch_size=len(lengths), max_seq_len=512, num_pages=pages
    )
    is_sealed = params.kvcache_quant_config and params.kvcache_quant_config.token_granularity > 1
    append = (lambda *_: randomize(manager)) if is_sealed else kvcache.ops.append(params, dtype=dtype)

    def write(requests):
        inputs = manager.inputs(requests)
        # Rows of the first sequence do not depend on the others.
        rng = np.random.default_rng([seed, inputs.lengths[0]])
        shape = len(inputs.tokens), 2, params.n_kv_heads_per_device, params.head_dim
        rows = rng.standard_normal(shape).astype(kvcache.dtypes.dtype(dtype))
        roles = np.ascontiguousarray(rows.swapaxes(0, 1))
        append(inputs, LAYER, *(roles[:1] if params.is_mla else roles))
        return inputs

    for request, length in enumerate(lengths):
        manager.claim(request, np.arange(length))
        if length:
            write([request])
            manager.step([request])
    for request, more in enumerate(new):
        manager.grow(request, np.arange(more))
    return manager, write([request for request, more in enumerate(new) if more])


def dense(params, inputs, longest):
    """Keys and values [role, batch, longest, heads, head_dim] in f64."""
    gather = kvcache.ops.gather(params, dtype="f32")
    shape = len(inputs.requests), longest, params.n_kv_heads_per_device, params.head_dim
    roles = [np.zeros(shape, np.float32) for _ in range(1 if params.is_mla else 2)]
    gather(inputs, LAYER, *roles)
    return np.array(roles, np.float64)


def model(q, keys, values, scale, causal, window, soft_cap, sinks, bits=None, chunk=None):
    """Attention of the last rows of a sequence: q [new, Hq, E], keys [tokens, H, E].

    ``bits``, where given, is [new, new]: which new tokens each row sees.
    """
    new, query_heads, _ = q.shape
    tokens, heads, _ = keys.shape
    keys, values = (x.repeat(query_heads // heads, axis=1) for x in (keys, values))
    scores = np.einsum("ihe,the->iht", q, keys) * scale
    if soft_cap is not None:
        scores = soft_cap * np.tanh(scores / soft_cap)
    own = tokens - new + np.arange(new)[:, None]
    t = np.arange(tokens)
    seen = np.ones((new, tokens), bool)
    if causal:
        seen &= t <= own
    if window is not None:
        seen &= t > own - window
    if chunk is not None:
        seen &= t // chunk == own // chunk
    if bits is not None:
        seen[:, tokens - new :] &= bits
    scores = np.where(seen[:, None], scores, -np.inf)
    logits = scores if sinks is None else np.concatenate(
        [scores, np.broadcast_to(sinks[:, None], (new, query_heads, 1))], -1
    )
    largest = np.maximum(logits.max(-1, keepdims=True), -1e9)  # -inf where none is seen
    total = np.exp(logits - largest).sum(-1, keepdims=True)
    out = np.einsum("iht,the->ihe", np.exp(scores - largest) / np.maximum(total, 1e-300), values)
    with np.errstate(divide="ignore"):
        return out, (largest + np.log(total))[..., 0]


def run(params, dtype, inputs, group, options, scale, seed=1, extra=2, **arrays):
    """Queries, outputs, lse and sinks; ``extra`` rows of padding behind the batch."""
    rng = np.random.default_rng(seed)
    heads = group * params.n_kv_heads_per_device
    total = len(inputs.tokens)
    kind = kvcache.dtypes.dtype(dtype)
    q = (2 * rng.standard_normal((total + extra, heads, params.head_dim))).astype(kind)
    out_kind = kvcache.dtypes.dtype(options.get("out_dtype") or dtype)
    out = np.full((total + extra, heads, options.get("value_dim") or params.head_dim), 7, out_kind)
    lse = np.full((total + extra, heads), 7, np.float32)
    sinks = (3 * rng.standard_normal(heads)).astype(np.float32) if options.get("sinks") else None
    attend = kvcache.ops.attention(params, heads, dtype=dtype, **options)
    attend(inputs, LAYER, q, out=out, lse=lse, scale=scale, sinks=sinks, **arrays)
    assert (out[total:] == 7).all() and (lse[total:] == 7).all()
    return q[:total], out[:total], lse[:total], sinks


def close(out, wanted, bound):
    return np.abs(out.astype(np.float64) - wanted).max() <= bound


def close_lse(lse, wanted):
    """Equal where nothing is seen, and else within a bound."""
    finite = np.isfinite(wanted)
    assert (lse[~finite] == -np.inf).all()
    if not finite.any():
        return True
    bound = 3e-6 * max(np.abs(wanted[finite]).max(), 1)
    return np.abs(lse[finite] - wanted[finite]).max() <= bound


def random_mask(new):
    """Words [total, words] of a batch, and the bits [n, n] of each sequence."""
    rng = np.random.default_rng(11)
    bits = [rng.random((n, n)) < 0.4 for n in new]
    words = np.zeros((sum(new) + 2, -(-max(new) // 32)), np.uint32)
    row = 0
    for each in bits:
        for line in each:
            for j in np.flatnonzero(line):
                words[row, j // 32] |= np.uint32(1 << (j % 32))
            row += 1
    return words.view(np.int32), bits


def tile_type(params, dtype, target, options):
    """The type that elements become for tensor cores, if they compute the operation."""
    sizes = params.head_dim, options.get("value_dim") or params.head_dim
    if target == "cpu" or dtype == "f32":
        return None
    if options.get("split_tokens") and not options.get("tile_rows") and not params.is_mla:
        return None
    most = (640, 512) if params.is_mla else (256, 256)
    is_possible = options.get("tile_rows") != 0 and all(
        size % 16 == 0 and size <= limit for size, limit in zip(sizes, most)
    )
    return kvcache.dtypes.dtype("bf16" if dtype.startswith("f8") else dtype) if is_possible else None


def round_as_tiles(roles, params, dtype, lane):
    """Rounds elements of 8 bits or less to the type that tensor cores take them in."""
    if params.dtype in ("f32", "bf16", "f16") or not lane:
        return
    config = params.kvcache_quant_config
    has_token_scales = (
        config and config.quantization_granularity >= params.head_dim and not config.zero_point_dtype
    )
    for number, role in enumerate(roles):
        # Scales of tokens are multiplied by scores, and by weights unless these are of f16.
        is_weighed = number or params.is_mla
        if not has_token_scales or (is_weighed and lane == np.float16):
            role[...] = role.astype(lane)


def check(params, dtype, lengths, new, group, target="cpu", **options):
    _, inputs = fill(params, dtype, lengths, new)
    scale = params.head_dim**-0.5
    arrays, bits = {}, None
    if options.get("mask"):
        arrays["mask"], bits = random_mask([more for more in new if more])
    statics = [1.0, 1.0]
    if options.get("static_scales"):
        statics = [np.float32(0.37), np.linspace(1, 2, params.n_kv_heads_per_device, dtype=np.float32)]
        arrays["key_scale"] = statics[0]
        if params.is_mla:
            statics[1] = statics[0]
        else:
            arrays["value_scale"] = statics[1]
    q, out, lse, sinks = run(params, dtype, inputs, group, {**options, "target": target}, scale, **arrays)
    sizes = [(length, more) for length, more in zip(lengths, new) if more]
    roles = dense(params, inputs, max(length + more for length, more in sizes))
    round_as_tiles(roles, params, dtype, tile_type(params, dtype, target, options))
    roles *= np.array([np.broadcast_to(each, roles.shape[3]) for each in statics])[
        : len(roles), None, None, :, None
    ]
    value_dim = options.get("value_dim") or params.head_dim
    names = "causal", "window", "soft_cap"
    given_options = {"causal": True, "window": None, "soft_cap": None, **options}
    for b, (length, more) in enumerate(sizes):
        rows = slice(*map(int, inputs.row_offsets[b : b + 2]))
        keys, values = roles[0, b, : length + more], roles[-1, b, : length + more, :, :value_dim]
        wanted, wanted_lse = model(
            q[rows].astype(np.float64), keys, values, scale,
            *(given_options[name] for name in names), sinks, bits and bits[b],
            options.get("chunk"),
        )
        assert close(out[rows], wanted, ROUNDING[dtype] * np.abs(values).max())
        assert close_lse(lse[rows], wanted_lse)


LENGTHS, NEW = (5, 0, 33, 2, 16), (1, 27, 1, 0, 8)
FEW, FEW_NEW = (37, 0, 70), (1, 5, 2)  # for emulated chips
CHIPS = ["emulator:sm_80", "emulator:sm_90a", "emulator:sm_100a"]
# Parts of 12 tokens, but at most 4 of them, for sequences of 1 and 2 new tokens.
SPLITS = {"split_tokens": 12, "max_splits": 4, "split_rows": 2}


@pytest.mark.usefixtures("optimized_operations")
@pytest.mark.parametrize("format_", FORMATS)
def test_formats(format_):
    check(make_params(format_), FORMATS[format_][2], LENGTHS, NEW, group=4)


@pytest.mark.parametrize("chip", range(3))
@pytest.mark.parametrize("number, format_, heads, group, head_dim, page_size, options", [
    (number, *each) for number, each in enumerate([
        ("bf16", 2, 4, 128, 16, {}),
        ("f32", 1, 3, 40, 3, {"causal": False, "mask": True}),
        ("f16", 1, 8, 192, 64, {"window": 20, "soft_cap": 3.0, "sinks": True}),
        ("fp8-scaled", 2, 2, 64, 4, {"value_dim": 32}),
        ("int8", 1, 1, 32, 16, {"chunk": 24}),
        ("nvfp4", 2, 4, 128, 16, {"window": 30}),
        ("mxfp4", 1, 2, 64, 4, {"sinks": True}),
        ("bf16", 2, 2, 64, 16, {"causal": False, "chunk": 36}),
    ])
])
def test_chips(number, format_, heads, group, head_dim, page_size, options, chip):
    """Each on all chips, whole on one or two of them and split on the others."""
    splits = SPLITS if (number + chip) % 2 else {}
    params = make_params(format_, heads, head_dim, page_size)
    check(params, FORMATS[format_][2], FEW, FEW_NEW, group, CHIPS[chip], **options, **splits)


@pytest.mark.parametrize("target, splits", [(CHIPS[0], {}), (CHIPS[1], SPLITS), (CHIPS[2], {})])
def test_latent_rows_on_chips(target, splits):
    params = make_params("bf16", 1, 576, mla=True)
    check(params, "bf16", (20,), (2,), 4, target, value_dim=512, **splits)


OPTIONS = [
    {"causal": False},
    {"window": 7},
    {"window": 1},
    {"chunk": 8},
    {"chunk": 1},
    {"causal": False, "chunk": 7},
    {"window": 9, "chunk": 16, "sinks": True},
    {"soft_cap": 3.0},
    {"sinks": True},
    {"causal": False, "window": 5, "soft_cap": 20.0, "sinks": True},
    {"value_dim": 48},
    {"causal": False, "mask": True},
    {"mask": True, "window": 9, "sinks": True},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_options(options):
    check(make_params(), "f32", LENGTHS, NEW, group=2, **options)


@pytest.mark.parametrize("dtype, zero_point, tokens", [("i4", "f16", 8), ("i8", None, 4)])
@pytest.mark.parametrize(
    "target, options", [("cpu", {}), (CHIPS[0], {}), (CHIPS[1], SPLITS), (CHIPS[2], {"window": 9, **SPLITS})]
)
def test_scales_of_channels(dtype, zero_point, tokens, target, options):
    """KIVI's keys, and 8-bit ones without zero points: whole groups of tokens."""
    config = KVCacheQuantizationConfig("f16", 1, zero_point, tokens)
    params = KVCacheParams(
        dtype, 2, 64, page_size=16, total_num_layers=LAYERS, kvcache_quant_config=config, enable_prefix_caching=False
    )
    check(params, "f32", (31, 8, 70), (1, 8, 2), 2, target, **options)


@pytest.mark.parametrize("format_", ["fp8", "fp8-scaled", "int8"])
@pytest.mark.parametrize(
    "mla, target, splits",
    [(False, "cpu", {}), (True, "cpu", {}), (False, CHIPS[2], SPLITS)],
)
def test_static_scales(format_, mla, target, splits):
    options = {"value_dim": 48, "static_scales": True, **splits}
    params = make_params(format_, 1 if mla else 2, mla=mla)
    check(params, FORMATS[format_][2], FEW, FEW_NEW, 3, target, **options)


@pytest.mark.parametrize(
    "format_, mla, dtype, out_dtype, target, splits",
    [
        ("fp8", False, "f8E4M3FN", "f8E4M3FN", "cpu", {}),
        ("fp8", False, "f8E4M3FN", "f8E4M3FN", CHIPS[0], {}),
        ("fp8", False, "f8E4M3FN", "f8E4M3FN", CHIPS[1], SPLITS),
        ("bf16", False, "f8E5M2", "bf16", CHIPS[2], {}),
        ("bf16", False, "f8E5M2", "bf16", CHIPS[0], SPLITS),
        ("f32", False, "f32", "f8E5M2", "cpu", {}),
        ("f32", False, "f32", "f8E5M2", CHIPS[2], SPLITS),
        ("bf16", True, "f8E4M3FN", "f8E4M3FN", "cpu", {}),
        ("bf16", True, "f8E4M3FN", "f8E4M3FN", CHIPS[0], {}),
        ("bf16", True, "f8E4M3FN", "f8E4M3FN", CHIPS[1], SPLITS),
    ],
)
def test_queries_and_outputs_of_fp8(format_, mla, dtype, out_dtype, target, splits):
    """A scale for each head or for all; outputs of the first head are too large."""
    params = make_params(format_, 1 if mla else 2, mla=mla)
    _, inputs = fill(params, FORMATS[format_][2], (37,), (2,))
    size = 48 if mla else 64
    options = {"value_dim": size, "out_dtype": out_dtype, "target": target, **splits}
    is_narrow, is_narrow_out = (name.startswith("f8") for name in (dtype, out_dtype))
    query_scale, out_scale = np.float32(0.3), np.array([1e-8, 0.01, 3, 0.5], np.float32)
    if dtype == "f8E5M2":
        query_scale = np.array([0.5, 2, 0.1, 0], np.float32)
    scales = {"query_scale": query_scale} if is_narrow else {}
    scales |= {"out_scale": out_scale} if is_narrow_out else {}
    group = 4 // params.n_kv_heads_per_device
    q, out, lse, _ = run(params, dtype, inputs, group, options, 0.125, **scales)
    keys, *values = dense(params, inputs, 39)
    values = (values[0] if values else keys)[0, ..., :size]
    factors = np.broadcast_to(query_scale if is_narrow else 1, 4)[:, None]
    wanted, wanted_lse = model(
        q.astype(np.float64) * factors, keys[0], values, 0.125, True, None, None, None
    )
    wanted /= out_scale[:, None] if is_narrow_out else 1
    info = ml_dtypes.finfo(kvcache.dtypes.dtype(out_dtype))
    largest = float(info.max)
    assert not is_narrow_out or (np.abs(out[:, 0].astype(float)) == largest).mean() > 0.9
    wanted = np.clip(wanted, -largest, largest)
    least = float(info.smallest_subnormal)
    bound = float(info.eps) / 2 * np.abs(wanted) + least / 2 + 3e-6 * np.abs(wanted).max(-1, keepdims=True)
    if tile_type(params, dtype, target, options):  # weights of bf16
        bound = bound + 1.1 * 2**-9 * np.abs(values).max() / (out_scale[:, None] if is_narrow_out else 1)
    assert (np.abs(out.astype(np.float64) - wanted) <= bound * 1.01).all()
    assert close_lse(lse, wanted_lse)


@pytest.mark.parametrize(
    "heads, group, head_dim, page_size", [(1, 1, 8, 3), (3, 5, 40, 4), (1, 40, 96, 1), (2, 2, 256, 64)]
)
def test_shapes(heads, group, head_dim, page_size):
    check(make_params("f32", heads, head_dim, page_size), "f32", LENGTHS, NEW, group)


@pytest.mark.parametrize("format_, rank, rope", [("f32", 32, 16), ("bf16", 512, 64)])
def test_latent_rows(format_, rank, rope):
    params = make_params(format_, 1, rank + rope, mla=True)
    check(params, format_, LENGTHS, NEW, group=16, value_dim=rank)


@pytest.mark.parametrize("targets", [["cpu"], CHIPS], ids=["cpu", "chips"])
@settings(max_examples=12, deadline=None, derandomize=True)
@given(st.data())
def test_any_combination(targets, data):
    draw = data.draw
    target = draw(st.sampled_from(targets))
    splits = draw(st.sampled_from([{}, SPLITS])) if targets is CHIPS else {}
    format_ = draw(st.sampled_from(sorted(FORMATS)))
    head_dim = (FORMATS[format_][1] or 16) * draw(st.integers(1, 6 if FORMATS[format_][1] != 32 else 3))
    params = make_params(format_, draw(st.integers(1, 3)), head_dim, draw(st.integers(1, 20)))
    batch = draw(st.integers(1, 4))
    lengths = draw(st.lists(st.integers(0, 60), min_size=batch, max_size=batch))
    new = draw(st.lists(st.integers(1, 20), min_size=batch, max_size=batch))
    check(
        params, FORMATS[format_][2], lengths, new, draw(st.integers(1, 6)), target, **splits,
        causal=draw(st.booleans()),
        window=draw(st.none() | st.integers(1, 40)),
        chunk=draw(st.none() | st.integers(1, 40)),
        soft_cap=draw(st.none() | st.floats(1, 60)),
        sinks=draw(st.booleans()),
        mask=draw(st.booleans()),
        value_dim=draw(st.none() | st.just(head_dim // 2)),
    )


@pytest.mark.parametrize(
    "options",
    [{}, {"target": CHIPS[1]}, {"target": CHIPS[1], **SPLITS, "split_rows": 70}],
    ids=str,
)
def test_rows_that_see_nothing(options):
    """Zeros and -inf without tokens; a mask of more tokens than one word has bits for."""
    params = make_params()
    _, inputs = fill(params, "f32", (0, 4), (70, 3))
    words = np.zeros((75, 3), np.int32)
    words[1, 2] = 1 << 5  # token 69 of the first sequence
    options = {"mask": True, "causal": False, **options}
    _, out, lse, _ = run(params, "f32", inputs, 2, options, 0.1, mask=words)
    assert not out[np.r_[0, 2:70]].any() and (lse[np.r_[0, 2:70]] == -np.inf).all()
    values = dense(params, inputs, 70)[1]
    np.testing.assert_array_equal(out[1], values[0, 69].astype(np.float32).repeat(2, axis=0))
    assert np.isfinite(lse[70:]).all()


def check_sparse(params, dtype, group, target, lengths=(5, 0, 33), new=(1, 27, 2), columns=21, **options):
    """Rows by id against the rows that gather gives, with -1 between them."""
    page = params.page_size
    manager, inputs = fill(params, dtype, lengths, new)
    roles = dense(params, inputs, max(map(sum, zip(lengths, new))))
    rng = np.random.default_rng(4)
    tokens = np.full((sum(new) + 2, columns), -1)
    batch = np.repeat(np.arange(len(new)), new)
    for row, b in enumerate(batch):
        count = min(rng.integers(1, columns), lengths[b] + new[b]) if row else 0
        places = rng.permutation(columns)[:count]
        tokens[row, places] = rng.permutation(lengths[b] + new[b])[:count]
    ids = np.full(tokens.shape, -1, np.int32)
    for row, b in enumerate(batch):
        t = tokens[row]
        ids[row] = np.where(t < 0, t, inputs.lut[b, np.maximum(t, 0) // page].astype(int) * page + t % page)
    # Of the first row, whose page an id of -1 may stand for, nothing is seen.
    for other in set(range(manager.blocks[0].shape[0])) - set(inputs.lut[1:].flat):
        for tensor in manager.scales or manager.blocks:
            tensor[other] = np.nan
    q, out, lse, sinks = run(
        params, dtype, inputs, group, {**options, "rows": True, "target": target}, 0.125, rows=ids
    )
    if params.is_mla or group >= 8 or options.get("tile_rows"):
        lane = tile_type(params, dtype, target, {"tile_rows": 16, **options})
        round_as_tiles(roles, params, dtype, lane)
    size = options.get("value_dim") or params.head_dim
    for row, b in enumerate(batch):
        seen = tokens[row][tokens[row] >= 0]
        wanted, wanted_lse = model(
            q[row : row + 1].astype(np.float64), roles[0, b, seen], roles[-1, b, seen, :, :size], 0.125,
            False, None, options.get("soft_cap"), sinks,
        ) if len(seen) or sinks is not None else (0, np.full((1, q.shape[1]), -np.inf))
        assert close(out[row], np.asarray(wanted), ROUNDING[dtype] * np.abs(roles[-1]).max())
        assert close_lse(lse[row : row + 1], wanted_lse)


@pytest.mark.parametrize("format_, options", [
    ("f32", {}), ("f32", {"soft_cap": 4.0, "sinks": True}), ("fp8-scaled", {}), ("int8", {"value_dim": 32}),
    ("int8-token", {}),
])
@pytest.mark.parametrize(
    "mla, target, splits",
    [(False, "cpu", {}), (True, "cpu", {}), (True, CHIPS[1], {}), (True, CHIPS[2], SPLITS)],
)
def test_sparse_rows(format_, options, mla, target, splits):
    heads, group = (1, 16) if mla else (2, 3)
    params = make_params(format_, heads, 64, page_size=4, mla=mla)
    options = {**({"value_dim": 48} if mla else {}), **options, **splits}
    check_sparse(params, FORMATS[format_][2], group, target, **options)


@pytest.mark.parametrize("targets", [["cpu"], CHIPS], ids=["cpu", "chips"])
@settings(max_examples=8, deadline=None, derandomize=True)
@given(st.data())
def test_any_combination_of_sparse_rows(targets, data):
    draw = data.draw
    format_ = draw(st.sampled_from(sorted(FORMATS)))
    head_dim = max(FORMATS[format_][1] or 16, 16) * draw(st.integers(1, 3)) if FORMATS[format_][1] != 640 else 80
    mla = draw(st.booleans())
    params = make_params(format_, 1 if mla else draw(st.integers(1, 2)), head_dim, draw(st.integers(1, 20)), mla)
    more = draw(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 5)), min_size=1, max_size=3))
    splits = draw(st.sampled_from([{}, SPLITS])) if targets is CHIPS else {}
    check_sparse(
        params, FORMATS[format_][2], draw(st.integers(1, 20)), draw(st.sampled_from(targets)),
        (3, *(length for length, _ in more)), (1, *(new for _, new in more)),
        columns=draw(st.integers(2, 70)),
        soft_cap=draw(st.none() | st.floats(1, 60)),
        sinks=draw(st.booleans()),
        value_dim=head_dim // 2 if mla else draw(st.none() | st.just(head_dim // 2)),
        **splits,
    )


@pytest.mark.parametrize("format_, target, options", [
    ("f32", "cpu", {}),
    ("f32", CHIPS[1], {}),
    ("f32", CHIPS[1], SPLITS),
    ("f32", "cpu", {"causal": False}),
    ("bf16", CHIPS[0], {"causal": False, "sinks": True}),
    ("bf16", CHIPS[2], {"causal": False, **SPLITS, "split_rows": 25}),
    ("fp8-scaled", CHIPS[1], {"causal": False, **SPLITS, "split_rows": 4, "tile_rows": 16}),
])
def test_lengths(format_, target, options):
    """Tokens that the caller counts: fewer or more than are pending, or those of an encoder."""
    params, dtype = make_params(format_), FORMATS[format_][2]
    _, inputs = fill(params, dtype, (40, 30, 9), (1, 2, 1))
    roles = dense(params, inputs, 41)
    is_cross = options.get("causal") is False
    tokens = np.array([17, 0, 10] if is_cross else [17, 32, 10], np.int32)
    counts = (25, 2, 3) if is_cross else (1, 2, 1)
    inputs = kvcache.StepInputs.of(
        blocks=inputs.blocks, scales=inputs.scales, lut=inputs.lut,
        lengths=np.full(3, 10**6 if is_cross else 40, np.uint32),
        row_offsets=np.cumsum((0, *counts)).astype(np.uint32),
    )
    attend = kvcache.ops.attention(params, 4, dtype=dtype, target=target, kv_lengths=True, **options)
    rng = np.random.default_rng(3)
    q = rng.standard_normal((sum(counts), 4, 64)).astype(kvcache.dtypes.dtype(dtype))
    out, lse = np.full_like(q, 7), np.full(q.shape[:2], 7, np.float32)
    sinks = np.linspace(-2, 2, 4, dtype=np.float32) if options.get("sinks") else None
    attend(inputs, LAYER, q, out=out, lse=lse, scale=0.1, sinks=sinks, kv_lengths=tokens)
    if format_ == "fp8-scaled":
        roles = roles.astype(ml_dtypes.bfloat16).astype(np.float64)
    for b, row in enumerate(map(int, inputs.row_offsets[:-1])):
        rows, each = slice(row, row + counts[b]), roles[:, b, : tokens[b]]
        if not tokens[b]:
            assert not out[rows].any() and (lse[rows] == (-np.inf if sinks is None else sinks)).all()
            continue
        wanted, wanted_lse = model(q[rows].astype(np.float64), *each, 0.1, not is_cross, None, None, sinks)
        assert close(out[rows], wanted, ROUNDING[dtype] * np.abs(each).max())
        assert close_lse(lse[rows], wanted_lse)


@pytest.mark.parametrize("target", ["cpu", CHIPS[1]])
@pytest.mark.parametrize(
    "fault, options, message",
    [
        ("page", {}, "page id"),
        ("table", {}, "lookup_table"),
        ("id", {"rows": True}, "page"),
        ("id", {"rows": True, "tile_rows": 16}, "page"),
        ("workspace", SPLITS, "number of bytes that attention needs of 'workspace'"),
        (None, {"rows": True, **SPLITS}, None),
    ],
)
def test_bounds_checks(target, fault, options, message):
    dtype = "bf16" if "tile_rows" in options else "f32"
    params = make_params(dtype)
    _, inputs = fill(params, dtype, (20, 30), (1, 1))
    attend = kvcache.ops.attention(params, 4, **options)
    program = kvcache.jit(attend.source, target=target, bounds_checks=True, opt_level=0)
    blocks, lengths, table, *sizes = inputs.collection(0)
    if fault == "page":
        table = table.copy()
        table[1, 0] = blocks.shape[0]
    elif fault == "table":
        table = table[:1]
    ids = np.array([[3, -1], [-2, blocks.shape[0] * 16 - (fault != "id")]], np.int32)
    size = attend.workspace_size(2) - (fault == "workspace") if options else 0
    workspace = (np.zeros(size, np.int8),) if "split_tokens" in options else ()
    q = np.ones((2, 4, 64), kvcache.dtypes.dtype(dtype))
    out, lse = np.zeros_like(q), np.zeros((2, 4), np.float32)
    more = (*workspace, ids) if options.get("rows") else workspace
    offsets = inputs.row_offsets.view(np.int32)
    arguments = blocks, lengths, table, *sizes, LAYER, q, offsets, out, lse, 0.1, *more
    if fault is None or (fault == "workspace" and target == "cpu"):
        return program.call("attention", *arguments)
    with pytest.raises(kvcache.CheckError, match=message):
        program.call("attention", *arguments)


@pytest.mark.parametrize("target", ["cpu", CHIPS[1]])
@pytest.mark.parametrize("splits", [{}, SPLITS], ids=["whole", "split"])
def test_values_that_are_not_seen(target, splits):
    """A NaN of a token that some rows do not see, beside tokens that they see."""
    params = make_params()
    manager, inputs = fill(params, "f32", (14,), (2,))
    _, before, _, _ = run(params, "f32", inputs, 2, {"target": target, **splits}, 0.1)
    page = inputs.lut[0, 0]
    manager.blocks[0][page, 1, LAYER, 15] = np.nan
    _, after, _, _ = run(params, "f32", inputs, 2, {"target": target, **splits}, 0.1)
    np.testing.assert_array_equal(before[0], after[0])
    assert np.isnan(after[1]).all()


@pytest.mark.parametrize("target", ["cpu", CHIPS[1]])
@pytest.mark.parametrize(
    "splits", [{}, {**SPLITS, "split_rows": 3}], ids=["whole", "split"]
)
def test_sinks_alone(target, splits):
    """The logarithm of a row that sees nothing is its sink, also if that is -inf."""
    params = make_params()
    _, inputs = fill(params, "f32", (0,), (3,))
    sinks = np.array([-np.inf, -1e35, 0, 7], np.float32)
    q = np.ones((3, 4, 64), np.float32)
    out, lse = np.ones_like(q), np.ones((3, 4), np.float32)
    attend = kvcache.ops.attention(
        params, 4, sinks=True, mask=True, target=target, **splits
    )
    mask = np.zeros((3, 1), np.int32)
    attend(inputs, LAYER, q, out=out, lse=lse, scale=0.1, sinks=sinks, mask=mask)
    assert not out.any()
    np.testing.assert_allclose(lse, sinks[None].repeat(3, 0), rtol=1e-6)


def test_other_tokens_do_not_matter():
    """Bytes of other layers, pages and unwritten tokens may be anything."""
    params = make_params()
    manager, inputs = fill(params, "f32", (5,), (3,))
    _, before, _, _ = run(params, "f32", inputs, 2, {}, 0.1)
    page = inputs.lut[0, 0]
    blocks = manager.blocks[0]
    kept = blocks[page, :, LAYER, :8].copy()
    blocks[...] = np.nan
    blocks[page, :, LAYER, :8] = kept
    _, after, _, _ = run(params, "f32", inputs, 2, {}, 0.1)
    np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("soft_cap", [None, 5.0])
def test_nan_stays_nan(soft_cap):
    params = make_params()
    manager, inputs = fill(params, "f32", (5,), (3,))
    manager.blocks[0][inputs.lut[0, 0], 0, LAYER, 6] = np.nan
    _, out, _, _ = run(params, "f32", inputs, 2, {"soft_cap": soft_cap}, 0.1)
    assert np.isfinite(out[0]).all() and np.isnan(out[1:]).all()


def test_large_scores():
    params = make_params()
    _, inputs = fill(params, "f32", (30,), (1,))
    q, out, lse, _ = run(params, "f32", inputs, 2, {}, scale=1000.0)
    roles = dense(params, inputs, 31)
    wanted, _ = model(q.astype(np.float64), *roles[:, 0], 1000.0, True, None, None, None)
    assert np.abs(out - wanted).max() < 0.02 and np.isfinite(lse).all()
