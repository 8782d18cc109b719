"""Checks of kvcache.ops.attention against the model on the bytes of the cache."""

import numpy as np
from model import attend

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
    "int4-halves": ("i4", 32, "bf16"),
    "nvfp4": ("f4E2M1FN", 16, "bf16"),
    "mxfp4": ("f4E2M1FN", 32, "f32"),
    # A scale for each head of a token.
    "fp8-token": ("f8E4M3FN", 640, "bf16"),
    "int8-token": ("i8", 640, "f32"),
    "int4-token": ("i4", 640, "bf16"),
    # TensorRT-LLM's: only static scales.
    "int8-static": ("i8", None, "bf16"),
}
# Those of other formats are f32. Zero points are like scales.
SCALES = {"nvfp4": "f8E4M3FN", "mxfp4": "f8E8M0FNU", "fp8-token": "f8E8M0FNU", "int4-halves": "f16"}
ROUNDING = {"f32": 3e-6, "bf16": 2**-8, "f16": 2**-11}  # of outputs, relative to values

LENGTHS, NEW = (5, 0, 33, 2, 16), (1, 27, 1, 0, 8)
FEW, FEW_NEW = (37, 0, 70), (1, 5, 2)  # for emulated chips
CHIPS = ["emulator:sm_80", "emulator:sm_90a", "emulator:sm_100a"]
# Splits of 12 tokens, at most 4 of them, for sequences of 1 and 2 new tokens.
SPLITS = {"split_tokens": 12, "max_splits": 4, "split_rows": 2}
# Each option, and some together.
OPTIONS = [
    {"causal": False},
    {"window": 7},
    {"window": 1},
    {"chunk": 8},
    {"chunk": 1},
    {"causal": False, "chunk": 7},
    {"window": 9, "chunk": 16, "sinks": True},
    {"soft_cap": 3.0},
    {"soft_cap": 65536.0},
    {"sinks": True},
    {"causal": False, "window": 5, "soft_cap": 20.0, "sinks": True},
    {"value_dim": 48},
    {"causal": False, "mask": True},
    {"mask": True, "window": 9, "sinks": True},
]


def make_params(format_="f32", heads=2, head_dim=64, page_size=16, mla=False):
    dtype, granularity, _ = FORMATS[format_]
    scale = SCALES.get(format_, "f32")
    zero_point = scale if dtype == "i4" else None
    config = KVCacheQuantizationConfig(scale, granularity, zero_point) if granularity else None
    return KVCacheParams(
        dtype, heads, head_dim, page_size=page_size, total_num_layers=LAYERS,
        kvcache_quant_config=config, is_mla=mla,
    )


def randomize(manager):
    """Fills a cache with random elements and scales: append rejects tokens that share scales."""
    rng = np.random.default_rng(6)
    for tensor in manager.blocks:
        tensor[...] = rng.integers(-128, 128, tensor.shape).astype(np.int8).view(tensor.dtype)
    for tensor in manager.scales:
        tensor[...] = rng.uniform(0.01, 0.03, tensor.shape).astype(tensor.dtype)


def needs_static(params):
    return params.dtype_shorthand == "i8" and not params.kvcache_quant_config


def ones_as_scales(params):
    return dict.fromkeys(["key_scale"] if params.is_mla else ["key_scale", "value_scale"], 1.0)


def fill(params, dtype, lengths, new, seed=0):
    """Makes a manager with random rows of sequences, and the inputs of their new tokens."""
    page = params.page_size
    pages = sum((length + more) // page + 1 for length, more in zip(lengths, new))
    manager = PagedKVCacheManager(
        params, max_batch_size=len(lengths), max_seq_len=512, num_pages=pages
    )
    is_sealed = params.kvcache_quant_config and params.kvcache_quant_config.token_granularity > 1
    append = (lambda *_: randomize(manager)) if is_sealed or needs_static(params) else kvcache.ops.append(params, dtype=dtype)

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
    """The keys and values [role, batch, longest, heads, head_dim] in f64."""
    is_static = needs_static(params)
    gather = kvcache.ops.gather(params, dtype="f32", static_scales=is_static)
    shape = len(inputs.requests), longest, params.n_kv_heads_per_device, params.head_dim
    roles = [np.zeros(shape, np.float32) for _ in range(1 if params.is_mla else 2)]
    gather(inputs, LAYER, *roles, **(ones_as_scales(params) if is_static else {}))
    return np.array(roles, np.float64)


def run(params, dtype, inputs, group, options, scale, seed=1, extra=2, **arrays):
    """Returns queries, outputs, lse and sinks, with ``extra`` rows of padding after the batch."""
    rng = np.random.default_rng(seed)
    heads = group * params.n_kv_heads_per_device
    total = len(inputs.tokens)
    kind = kvcache.dtypes.dtype(dtype)
    q = (2 * rng.standard_normal((total + extra, heads, params.head_dim))).astype(kind)
    out_kind = kvcache.dtypes.dtype(options.get("out_dtype") or dtype)
    out = np.full((total + extra, heads, options.get("value_dim") or params.head_dim), 7, out_kind)
    lse = np.full((total + extra, heads), 7, np.float32)
    sinks = (3 * rng.standard_normal(heads)).astype(np.float32) if options.get("sinks") else None
    if needs_static(params) and not options.get("static_scales"):
        options, arrays = {**options, "static_scales": True}, arrays | ones_as_scales(params)
    attend = kvcache.ops.attention(params, heads, dtype=dtype, **options)
    attend(inputs, LAYER, q, out=out, lse=lse, scale=scale, sinks=sinks, **arrays)
    assert (out[total:] == 7).all() and (lse[total:] == 7).all()
    return q[:total], out[:total], lse[:total], sinks


def close(out, wanted, bound):
    return np.abs(out.astype(np.float64) - wanted).max() <= bound


def close_lse(lse, wanted, polynomials=False):
    """Returns whether lse are equal where no token is seen, and else within a bound.

    With polynomials, a power is within 2^-13, and so is the sum of several.
    """
    finite = np.isfinite(wanted)
    assert (lse[~finite] == -np.inf).all()
    if not finite.any():
        return True
    bound = 3e-6 * max(np.abs(wanted[finite]).max(), 1) + polynomials * 2**-13
    return np.abs(lse[finite] - wanted[finite]).max() <= bound


def random_mask(new):
    """Draws a mask: words [total, words] of a batch, and the bits [n, n] of each sequence."""
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


def is_nvfp4(params):
    """Returns whether groups of 16 elements have scales of f8E4M3FN, with which the elements are numbers of f16."""
    config, name = params.kvcache_quant_config, kvcache.dtypes.mlir_name
    return bool(config) and (name(params.dtype), name(config.scale_dtype)) == ("f4E2M1FN", "f8E4M3FN")


def dequantizes_in_registers(params, dtype, sizes, options):
    """Returns whether elements of 8 or 4 bits are dequantized in registers, to f16."""
    config = params.kvcache_quant_config
    granularity = config and config.quantization_granularity
    if is_nvfp4(params):
        return (
            not params.is_mla and options.get("tile_rows") in (16, 32) and not options.get("swap_operands")
            and all(size in (64, 128, 256) for size in sizes)
        )
    name = kvcache.dtypes.mlir_name(params.dtype)
    columns = 32 if name in ("f4E2M1FN", "i4") else 16  # of a product
    return (
        name in ("f8E4M3FN", "f8E5M2", "i8", "f4E2M1FN", "i4")
        and not params.is_mla
        and not (config and not config.zero_point_dtype and kvcache.dtypes.mlir_name(config.scale_dtype) in ("f16", "bf16"))
        and not options.get("swap_operands")
        and options.get("tile_rows") in (16, 32)
        and all(size % (32 if size <= 128 else 64) == 0 for size in sizes)
        and (dtype != "bf16" or params.head_dim & (params.head_dim - 1) == 0)
        and (not granularity or all(granularity >= size or granularity % columns == size % granularity == 0
            and size // granularity <= (4 if size <= 128 else 1) for size in sizes))
    )


def tile_type(params, dtype, target, options):
    """The compute type of tensor cores, if they compute the operation."""
    sizes = params.head_dim, options.get("value_dim") or params.head_dim
    if target == "cpu" or dtype == "f32":
        return None
    if options.get("split_tokens") and not options.get("tile_rows") and not params.is_mla:
        return None
    if dequantizes_in_registers(params, dtype, sizes, options):
        return None
    most = (640, 512) if params.is_mla else (256, 256)
    is_possible = options.get("tile_rows") != 0 and all(
        size % 16 == 0 and size <= limit for size, limit in zip(sizes, most)
    )
    return kvcache.dtypes.dtype("bf16" if dtype.startswith("f8") else dtype) if is_possible else None


def round_as_tiles(roles, params, dtype, compute_type):
    """Rounds elements of 8 bits or less to the compute type of tensor cores."""
    if params.dtype in ("f32", "bf16", "f16") or not compute_type:
        return
    config = params.kvcache_quant_config
    has_token_scales = (
        config and config.quantization_granularity >= params.head_dim and not config.zero_point_dtype
    )
    for number, role in enumerate(roles):
        # Scales of tokens are multiplied by scores, and by probabilities unless these are f16.
        is_weighed = number or params.is_mla
        if not has_token_scales or (is_weighed and compute_type == np.float16):
            role[...] = role.astype(compute_type)


def get_rounding(params, dtype, options):
    """The rounding of outputs, of probabilities times scales where these become f16, and of powers by polynomials."""
    sizes = params.head_dim, options.get("value_dim") or params.head_dim
    is_scaled = params.kvcache_quant_config and not is_nvfp4(params) and dequantizes_in_registers(params, dtype, sizes, options)
    # The distance of a value from its zero point is at most twice the largest value.
    distance = 2 if is_scaled and params.kvcache_quant_config.zero_point_dtype else 1
    return ROUNDING[dtype] + (distance * ROUNDING["f16"] if is_scaled else 0) + has_polynomials(options) * 2**-13


def has_polynomials(options):
    """Whether a share of the powers are polynomials."""
    config = options.get("config")
    return bool(config) and config.schedule == "roles"


def check(params, dtype, lengths, new, group, target="cpu", extra=2, **options):
    _, inputs = fill(params, dtype, lengths, new)
    scale = options.pop("scale", params.head_dim**-0.5)
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
    q, out, lse, sinks = run(params, dtype, inputs, group, {**options, "target": target}, scale, extra=extra, **arrays)
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
        wanted, wanted_lse = attend(
            q[rows], keys, values, scale,
            *(given_options[name] for name in names), sinks, bits and bits[b],
            options.get("chunk"),
        )
        assert close(out[rows], wanted, get_rounding(params, dtype, options) * np.abs(values).max())
        assert close_lse(lse[rows], wanted_lse, has_polynomials(options))


def check_sparse(params, dtype, group, target, lengths=(5, 0, 33), new=(1, 27, 2), columns=21, **options):
    """Compares rows by id with the rows of gather, with -1 between them."""
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
    # The first row sees nothing, since an id of -1 may alias its page.
    for other in set(range(manager.blocks[0].shape[0])) - set(inputs.lut[1:].flat):
        for tensor in manager.scales or manager.blocks:
            tensor[other] = 127 if tensor.dtype.kind == "i" else np.nan
    q, out, lse, sinks = run(
        params, dtype, inputs, group, {**options, "rows": True, "target": target}, 0.125, rows=ids
    )
    if params.is_mla or group >= 8 or options.get("tile_rows"):
        compute_type = tile_type(params, dtype, target, {"tile_rows": 16, **options})
        round_as_tiles(roles, params, dtype, compute_type)
    size = options.get("value_dim") or params.head_dim
    for row, b in enumerate(batch):
        seen = tokens[row][tokens[row] >= 0]
        wanted, wanted_lse = attend(
            q[row : row + 1], roles[0, b, seen], roles[-1, b, seen, :, :size], 0.125,
            causal=False, soft_cap=options.get("soft_cap"), sinks=sinks,
        ) if len(seen) or sinks is not None else (0, np.full((1, q.shape[1]), -np.inf))
        assert close(out[row], np.asarray(wanted), ROUNDING[dtype] * np.abs(roles[-1]).max())
        assert close_lse(lse[row : row + 1], wanted_lse)
