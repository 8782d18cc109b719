"""Scores and masks as functions of NumPy: the same functions on arrays are the model, in f64."""

import numpy as np
import pytest
from attention_checks import CHIPS, FEW, FEW_NEW, LAYER, ROUNDING, SPLITS, close, close_lse, dense, fill, make_params, round_as_tiles, run, tile_type
from score_functions import alibi, capped, causal, dilated, documents_causal, global_window, prefix_lm

import kvcache

HEADS, GROUP = 2, 4
QUERY_HEADS = HEADS * GROUP
LONGEST = 80
RNG = np.random.default_rng(3)


def relative(s, sequence, head, query, key, bias):
    return s + bias[head, np.clip(query - key, 0, 31)]


def scaled_by_head(s, sequence, head, query, key):
    return np.where(head % 2 == 0, s, s / 2)


def stream(sequence, head, query, key):
    return np.where(head < 4, key <= query, (key <= query) & (key // 16 == query // 16))


def nothing(sequence, head, query, key):
    return (key < 0) | (query < 0)


SLOPES = 2.0 ** -np.arange(1, QUERY_HEADS + 1, dtype=np.float32)
BIAS = RNG.normal(size=(QUERY_HEADS, 32)).astype(np.float32)
PREFIXES = np.array([20, 3, 60, 0], np.int64)
DOCUMENTS = np.sort(RNG.integers(0, 5, (4, LONGEST)), axis=1).astype(np.int32)
# The functions, their arrays, and other options.
CASES = {
    "alibi": (alibi, None, {"slopes": ("f32[8]", SLOPES)}, {}),
    "cap": (capped, None, {}, {}),
    "relative": (relative, None, {"bias": ("f32[?, 32]", BIAS)}, {}),
    "heads": (scaled_by_head, global_window, {}, {"causal": False, "sinks": True}),
    "causal": (None, causal, {}, {"causal": False}),
    "prefix": (None, prefix_lm, {"prefixes": ("i64[?]", PREFIXES)}, {"causal": False}),
    "documents": (alibi, documents_causal, {"slopes": ("f32[?]", SLOPES), "documents": ("i32[?, ?]", DOCUMENTS)}, {"causal": False}),
    "window": (None, global_window, {}, {}),
    "dilated": (capped, dilated, {}, {"soft_cap": 30.0, "window": 40}),
    "stream": (None, stream, {}, {"causal": False}),
    "nothing": (None, nothing, {}, {}),
}  # fmt: skip


def model(q, keys, values, scale, sequence, options, sinks, score, mask, arrays):
    """Computes attention of the last rows of a sequence; functions get whole arrays."""
    new, query_heads, _ = q.shape
    tokens, heads, _ = keys.shape
    keys, values = (x.repeat(query_heads // heads, axis=1) for x in (keys, values))
    scores = np.einsum("ihe,the->iht", q, keys) * scale
    if options.get("soft_cap"):
        scores = options["soft_cap"] * np.tanh(scores / options["soft_cap"])
    query = (tokens - new + np.arange(new))[:, None, None]
    head, key = np.arange(query_heads)[:, None], np.arange(tokens)
    places = np.broadcast_arrays(np.int64(sequence), head, query, key)

    def call(function, *first):
        names = function.__code__.co_varnames[len(first) + 4 : function.__code__.co_argcount]
        with np.errstate(all="ignore"):
            return function(*first, *places, *(arrays[name] for name in names))

    seen = np.ones(scores.shape, bool)
    if options.get("causal", True):
        seen &= key <= query
    if options.get("window"):
        seen &= key > query - options["window"]
    if score:
        scores = call(score, scores)
    if mask:
        seen &= call(mask)
    scores = np.where(seen, scores, -np.inf)
    logits = scores
    if sinks is not None:
        logits = np.concatenate([scores, np.broadcast_to(sinks[:, None], (new, query_heads, 1))], -1)
    largest = np.maximum(logits.max(-1, keepdims=True), -1e9)
    total = np.exp(logits - largest).sum(-1, keepdims=True)
    out = np.einsum("iht,the->ihe", np.exp(scores - largest) / np.maximum(total, 1e-300), values)
    with np.errstate(divide="ignore"):
        return out, (largest + np.log(total))[..., 0]


def check(case, params, dtype, lengths, new, target="cpu", **more):
    score, mask, specs, options = CASES[case]
    options = {**options, **more, "target": target}
    arrays = {name: array for name, (_, array) in specs.items()}
    functions = {"score": score, "mask": mask} if mask else {"score": score}
    made = {**options, **functions, "arrays": {name: spec for name, (spec, _) in specs.items()}}
    _, inputs = fill(params, dtype, lengths, new)
    scale = params.head_dim**-0.5
    group = QUERY_HEADS // params.n_kv_heads_per_device
    q, out, lse, sinks = run(params, dtype, inputs, group, made, scale, **arrays)
    sizes = [(length, more) for length, more in zip(lengths, new) if more]
    roles = dense(params, inputs, max(map(sum, sizes)))
    round_as_tiles(roles, params, dtype, tile_type(params, dtype, target, options))
    value_dim = options.get("value_dim") or params.head_dim
    for b, (length, more) in enumerate(sizes):
        rows = slice(*map(int, inputs.row_offsets[b : b + 2]))
        keys, values = roles[0, b, : length + more], roles[-1, b, : length + more, :, :value_dim]
        want, want_lse = model(
            q[rows].astype(np.float64), keys, values, scale, b, options, sinks, score, mask, arrays
        )
        assert close(out[rows], want, 2 * ROUNDING[dtype] * np.abs(values).max())
        assert close_lse(lse[rows], want_lse)


@pytest.mark.parametrize("case", CASES)
def test_function_on_cpu_equals_numpy(case):
    check(case, make_params(), "f32", (5, 0, 33, 2), (1, 27, 1, 8))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("chip", range(3))
def test_function_on_chip_equals_numpy(case, chip):
    """Each case with and without splits, on warps and on tensor cores."""
    number = list(CASES).index(case) + chip
    splits = SPLITS if number % 2 else {}
    format_ = ("bf16", "f16", "f32")[number % 3]
    check(case, make_params(format_), format_, FEW, FEW_NEW, CHIPS[chip], **splits)


@pytest.mark.parametrize(
    ("format_", "options"),
    [
        ("bf16", {"tile_rows": 128}),
        ("bf16", {"tile_rows": 16, "swap_operands": True}),
        ("bf16", {"tile_rows": 16, **SPLITS}),
        ("fp8", {"tile_rows": 16, **SPLITS}),
        ("int8-token", {"tile_rows": 32}),
        ("fp8-scaled", {"tile_rows": 64}),
    ],
)
@pytest.mark.parametrize("chip", [1, 2])
def test_function_in_each_kind_of_kernel_equals_numpy(format_, options, chip):
    dtype = "bf16" if format_ == "bf16" else "f16"
    check("documents", make_params(format_, head_dim=64), dtype, FEW, FEW_NEW, CHIPS[chip], **options)


@pytest.mark.parametrize("target", ["cpu", *CHIPS])
def test_function_of_latent_cache_equals_numpy(target):
    params = make_params("bf16", 1, 192, mla=True)
    check("alibi", params, "bf16", (20,), (2,), target, value_dim=128)


def attend(params, **options):
    return kvcache.ops.attention(params, QUERY_HEADS, **options)


def test_changed_constant_compiles_again():
    params = make_params()
    made = [attend(params, score=lambda s, b, h, q, k, cap=cap: cap * np.tanh(s / cap)) for cap in (2, 2, 3)]
    assert made[0] is made[1] and made[0] is not made[2]


def test_arrays_of_a_call_are_checked():
    params = make_params()
    _, inputs = fill(params, "f32", (5,), (1,))
    q = np.zeros((1, QUERY_HEADS, params.head_dim), np.float32)
    attention = attend(params, score=alibi, arrays={"slopes": "f32[8]"})

    def call(**arrays):
        attention(inputs, LAYER, q, out=np.empty_like(q), scale=1.0, **arrays)

    call(slopes=SLOPES)
    with pytest.raises(ValueError, match="expects 'slopes', as the operation was made with it"):
        call()
    with pytest.raises(TypeError, match="got an unexpected array 'bias'"):
        call(slopes=SLOPES, bias=BIAS)
    with pytest.raises((TypeError, ValueError), match="slopes"):
        call(slopes=SLOPES[:7].copy())
    with pytest.raises((TypeError, ValueError), match="slopes"):
        call(slopes=SLOPES.astype(np.float64))
    signed = attend(params, mask=prefix_lm, arrays={"prefixes": "uint32[?]"})
    with pytest.raises(TypeError, match="expects 'prefixes' to be of uint32, got int32"):
        signed(inputs, LAYER, q, out=np.empty_like(q), scale=1.0, prefixes=np.int32([1]))
    with pytest.raises(TypeError, match="expects 'prefixes' to be of uint32, got uint64"):
        signed(inputs, LAYER, q, out=np.empty_like(q), scale=1.0, prefixes=np.uint64([1]))
    with pytest.raises(ValueError, match="expects 'prefixes' to have elements"):
        signed(inputs, LAYER, q, out=np.empty_like(q), scale=1.0, prefixes=np.uint32([]))


def test_arguments_that_functions_exclude_are_rejected():
    for mask in (None, "causal", 1):
        with pytest.raises(TypeError, match=f"expects 'mask' to be a function, True or False, got {mask!r}"):
            attend(make_params(), mask=mask)
    with pytest.raises(ValueError, match="expects no functions of scores and masks with 'rows'"):
        attend(make_params(), score=capped, rows=True)
    with pytest.raises(ValueError, match="expects another name of an array than 'q'"):
        attend(make_params(), score=lambda s, b, h, i, k, q: s + q[k], arrays={"q": "f32[4]"})


