"""Tests of append, gather, copy, copy_pages, merge_states and remap_rows on data.

The model is NumPy on the same bytes: rows are placed by the lookup table.
"""

import dataclasses
import functools
import re

import ml_dtypes
import numpy as np
import pytest
from devices import spread
from whole_caches import (
    CPU,
    FORMATS_OF_CACHES,
    SHARED_BY_TOKENS,
    STATIC_SCALES,
    TARGETS,
    as_uint,
    decode_rows,
    encode_rows,
    make_cache,
    make_params,
    random_rows,
)

import kvcache


def find_slots(inputs, tokens_of):
    """The page and offset of each new row: tokens from a sequence's length on."""
    places = []
    for b, (length, new) in enumerate(tokens_of):
        places += [(b, length + i) for i in range(new)]
    return places


def check_appended(manager, inputs, tokens_of, layer, rows_by_role, before, power_of_two=False, statics=(None, None), least_amax=False):
    params = manager.params
    expected = [as_uint(tensor.copy()) for tensor in before]
    for role, rows in enumerate(rows_by_role):
        elements, scales = encode_rows(params, np.asarray(rows, np.float32), power_of_two, statics[role], least_amax)
        for row, (b, t) in enumerate(find_slots(inputs, tokens_of)):
            page, offset = inputs.lut[b, t // params.page_size], t % params.page_size
            expected[0][page, role, layer, offset] = elements[row]
            if scales is not None:
                expected[1][page, role, layer, offset] = scales[row]
    for tensor, wanted in zip((*manager.blocks, *manager.scales), expected):
        np.testing.assert_array_equal(as_uint(tensor), wanted)


APPENDS = [
    *((name, "") for name in FORMATS_OF_CACHES),
    *((name, "power_of_two") for name in ("fp8-token", "fp8-uneven", "int8", "mxfp4", "mla-fp8")),
    ("fp8-token", "least_amax"),
    *((name, "static_scales") for name in ("fp8", "fp8-uneven", "int8", "int8-static", "nvfp4", "mla-fp8")),
]


@pytest.mark.parametrize(("case", "target"), spread(APPENDS, with_cpu=True))
def test_append(case, target):
    name, option = case
    static, least_amax = option == "static_scales", option == "least_amax"
    power_of_two = least_amax or option == "power_of_two"
    manager, inputs, tokens_of = make_cache(name)
    append = kvcache.ops.append(
        manager.params, target=target, power_of_two=power_of_two, static_scales=static, least_amax=least_amax
    )
    total = sum(new for _, new in tokens_of)
    dtype = manager.params.dtype_shorthand
    dtype = dtype if dtype in ("bf16", "f16", "f32") else "bf16"
    rows = [random_rows(manager.params, total + 2, dtype, seed) for seed in (1, 2)]
    if least_amax:  # Both bounds are above the scales of some rows.
        rows = [row * np.geomspace(1e-6, 1, len(row))[:, None, None].astype(row.dtype) for row in rows]
    if manager.params.is_mla:
        rows = rows[:1]
    before = [tensor.copy() for tensor in (*manager.blocks, *manager.scales)]
    statics = static_scales(manager.params) if static else {}
    append(inputs, 1, *rows, **statics)
    check_appended(
        manager, inputs, tokens_of, 1, [r[:total] for r in rows], before, power_of_two,
        [*statics.values(), None, None], least_amax,
    )


def static_scales(params):
    """The arguments of an operation: a factor for each head of keys, and of values."""
    heads = params.n_kv_heads_per_device
    roles = ("key",) if params.is_mla else ("key", "value")
    return {f"{role}_scale": STATIC_SCALES[i : i + heads] for i, role in enumerate(roles)}


@pytest.mark.parametrize("target", [CPU, "emulator:sm_90a"])
@pytest.mark.parametrize(
    ("name", "ragged", "static"),
    [
        *((name, False, False) for name in FORMATS_OF_CACHES | SHARED_BY_TOKENS),
        *((name, True, False) for name in ("bf16", "f16", "fp8-uneven", "nvfp4", "mla")),
        *((name, True, True) for name in ("fp8", "fp8-uneven", "int8", "int8-static", "nvfp4", "mla-fp8")),
    ],
)
def test_gather(name, ragged, static, target, monkeypatch):
    manager, inputs, tokens_of = make_cache(name)
    monkeypatch.setattr(kvcache.StepInputs, "totals", None)  # as where the host has no lengths
    params = manager.params
    gather = kvcache.ops.gather(params, target, "f32", ragged=ragged, static_scales=static)
    longest = 40
    # Ragged: too little room for a sequence, too much, and three rows of padding.
    offsets = np.array([0, 4, 4 + longest, 4 + longest + 5], np.int32)
    rows = (offsets[-1] + 3,) if ragged else (len(tokens_of), longest)
    shape = *rows, params.n_kv_heads_per_device, params.head_dim
    outs = [np.full(shape, 7, np.float32) for _ in range(1 if params.is_mla else 2)]
    statics = static_scales(params) if static else {}
    gather(inputs, 1, *outs, output_offsets=offsets if ragged else None, **statics)
    factors = [*statics.values(), None, None]
    for role, out in enumerate(outs):
        if ragged:
            assert (out[offsets[-1] :] == 7).all()
        for b, (length, new) in enumerate(tokens_of):
            got = out[offsets[b] : offsets[b + 1]] if ragged else out[b]
            wanted = read_tokens(manager, inputs.lut[b], length + new, role, factors[role])
            shown = min(len(wanted), len(got))
            np.testing.assert_array_equal(got[:shown], wanted[:shown])
            assert not got[shown:].any()


def test_gather_finds_the_sequence_of_any_block(monkeypatch):
    """Tests pages of eight tokens; none, one, a power of two, and others per sequence."""
    manager, inputs, _ = make_cache("f32-small")
    monkeypatch.setattr(kvcache.StepInputs, "totals", None)  # as where the host has no lengths
    on_cpu, on_chip = (
        kvcache.ops.gather(manager.params, target, "f32", block_threads=32) for target in (CPU, "emulator:sm_90a")
    )
    for longest in (0, 1, 9, 24, 33, 56, 64, 100, 1000):
        wanted, got = np.full((2, 2, 3, longest, 1, 16), 7, np.float32)
        on_cpu(inputs, 1, *wanted)
        on_chip.bind(inputs, 1)(*got)
        np.testing.assert_array_equal(got, wanted)


def read_tokens(manager, table, count, role, static):
    """The tokens of a sequence in layer 1, f32 [count, heads, head size].

    Elements come from the bytes: decoding is the inverse of append.
    """
    config = manager.params.kvcache_quant_config
    t = np.arange(count)
    pages, offsets = table[t // manager.params.page_size], t % manager.params.page_size
    elements, scales = manager.blocks[0][pages, role, 1, offsets], None
    if config:
        scales = manager.scales[0][pages, role, 1, offsets // config.token_granularity]
    return decode_rows(manager.params, elements, scales, static)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ["bf16", "f16", "fp8-uneven", "nvfp4", "int4-group", "kivi", "mla-fp8"])
def test_copy_pages(name, target):
    manager, inputs, _ = make_cache(name)
    before = [tensor.copy() for tensor in (*manager.blocks, *manager.scales)]
    pairs = np.array([[3, 40], [-1, 5], [0, 41], [7, -1], [3, 42]], np.int32)
    kvcache.ops.copy_pages(manager.params, target=target)(inputs, pairs)
    for tensor, expected in zip((*manager.blocks, *manager.scales), before):
        for source, to in [(3, 40), (0, 41), (3, 42)]:
            expected[to] = expected[source]
        np.testing.assert_array_equal(as_uint(tensor), as_uint(expected))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("apart", [0, 2])
def test_merge_states(apart, dtype, target):
    """Rows may be interleaved with others of the same memory."""
    rng = np.random.default_rng(0)
    heads, size, total, parts = 6, 64, 5, 3
    merge = kvcache.ops.merge_states(heads, size, target=target, dtype=dtype)
    element = kvcache.dtypes.dtype(dtype)
    outs = rng.standard_normal((parts, total, heads + apart, size)).astype(element)[:, :, :heads]
    lses = rng.normal(0, 30, (parts, total, heads + apart)).astype(np.float32)[:, :, apart:]
    lses[1, 2] = -np.inf
    outs[1, 2] = np.nan  # is not read
    lses[:, 3, 4] = -np.inf
    lses[0, 1], lses[2, 3, 4] = np.inf, np.inf  # as other kernels say that there are no keys
    outs[0, 1] = np.nan
    all_out = np.full((total, heads + apart, size), 7, element)
    all_lse = np.full((total, heads + apart), 7, np.float32)
    out, lse = all_out[:, apart:], all_lse[:, :heads]
    merge(outs, lses, out, lse)
    assert (all_out[:, :apart] == 7).all() and (all_lse[:, heads:] == 7).all()
    wide = np.where(np.isinf(lses)[..., None], 0, outs.astype(np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        empty = np.where(lses == np.inf, -np.inf, lses)
        wanted = np.logaddexp.reduce(empty.astype(np.float64), axis=0)
        weights = np.where(np.isinf(wanted), 0, np.exp(empty - wanted))
    np.testing.assert_allclose(lse, wanted, rtol=1e-6, atol=1e-6)
    tolerance = 1e-5 if dtype == "f32" else 1e-2
    expected = (weights[..., None] * wide).sum(0)
    np.testing.assert_allclose(out.astype(np.float64), expected, rtol=tolerance, atol=tolerance)
    assert lse[3, 4] == -np.inf and not out[3, 4].astype(np.float32).any()


def test_one_operation_for_equal_arguments():
    params = make_params("bf16")
    assert kvcache.ops.append(params) is kvcache.ops.append(make_params("bf16"))
    assert kvcache.ops.append(params, dtype="f32") is not kvcache.ops.append(params)
    assert "kvcache.append" in kvcache.ops.append(params).source
    assert kvcache.ops.append(params).functions == ("append",)
    kernels = kvcache.ops.append(params).compile("sm_90a").kernels
    assert len(kernels) == 1


def test_static_scales_are_numbers_or_arrays_and_given_as_made():
    params = make_params("fp8")
    manager, inputs, tokens_of = make_cache("fp8")
    rows = [random_rows(params, sum(new for _, new in tokens_of), "bf16", seed) for seed in (1, 2)]
    append = kvcache.ops.append(params, static_scales=True)
    append(inputs, 0, *rows, key_scale=0.5, value_scale=np.float32(2))
    number_blocks = manager.blocks[0].copy()
    append(inputs, 0, *rows, key_scale=np.full(2, 0.5, np.float32), value_scale=np.full(2, 2, np.float32))
    np.testing.assert_array_equal(as_uint(number_blocks), as_uint(manager.blocks[0]))
    with pytest.raises(ValueError, match="expects 'value_scale', as"):
        append(inputs, 0, *rows, key_scale=0.5)
    with pytest.raises(ValueError, match="expects no 'key_scale', as"):
        kvcache.ops.append(params)(inputs, 0, *rows, key_scale=0.5)
    with pytest.raises(ValueError, match="latent cache takes no 'value_scale'"):
        kvcache.ops.append(make_params("mla-fp8"), static_scales=True)(
            inputs, 0, rows[0], key_scale=1, value_scale=1
        )
    with pytest.raises(ValueError, match="with scales and no zero points, or of fp8"):
        kvcache.ops.gather(make_params("bf16"), static_scales=True)
    with pytest.raises(ValueError, match="expects 'static_scales' for a cache of i8 without scales"):
        kvcache.ops.append(make_params("int8-static"))
    with pytest.raises(ValueError, match="expects no 'output_offsets', as"):
        kvcache.ops.gather(params)(inputs, 0, *rows, output_offsets=np.zeros(4, np.int32))
    for wrong in (np.nan, -np.inf, True, np.float32("inf"), 1e39, -(10**400)):
        with pytest.raises(ValueError, match="expects 'value_scale' to be a finite number.*, got"):
            append(inputs, 0, *rows, key_scale=1, value_scale=wrong)
        with pytest.raises(ValueError, match="expects 'scale' to be a finite number.*, got"):
            kvcache.ops.attention(params, 2)(inputs, 0, rows[0], out=rows[0].copy(), scale=wrong)
    for wrong in (np.nextafter(65536, np.inf), -1e20):
        with pytest.raises(ValueError, match=f"expects 'scale' to be from -65536 to 65536, got .*{re.escape(str(wrong))}"):
            kvcache.ops.attention(params, 2)(inputs, 0, rows[0], out=rows[0].copy(), scale=wrong)
    for zero in (0, 0.0, -0.0):
        with pytest.raises(ValueError, match=f"expects 'value_scale' to be a divisor other than 0, got {zero}"):
            append(inputs, 0, *rows, key_scale=1, value_scale=zero)
    kvcache.ops.attention(params, 2, static_scales=True)(
        inputs, 0, rows[0], out=rows[0].copy(), scale=65536, key_scale=-0.0, value_scale=0
    )


def test_conversions_reject_caches_of_unsigned_elements():
    params = kvcache.KVCacheParams("uint8", 2, 32, page_size=4, total_num_layers=1)
    message = "expects a cache of signed elements, got uint8"
    for make in (kvcache.ops.append, kvcache.ops.gather):
        with pytest.raises(ValueError, match=message):
            make(params, static_scales=True)
    with pytest.raises(ValueError, match=message):
        kvcache.ops.attention(params, 2, static_scales=True)
    assert kvcache.ops.copy_pages(params).functions == ("copy_pages",)  # which converts none


@pytest.mark.parametrize("name", ["append", "gather", "attention", "copy_pages"])
def test_bounds_checks_find_pages_that_do_not_exist(name):
    manager, inputs, tokens_of = make_cache("f32")
    options = {"query_heads": 2} if name == "attention" else {}
    operation = getattr(kvcache.ops, name)(manager.params, **options, bounds_checks=True)
    wrong = dataclasses.replace(inputs, lut=np.full_like(inputs.lut, 1000))
    rows = [random_rows(manager.params, sum(new for _, new in tokens_of), "f32", seed) for seed in (1, 2)]

    def call(inputs, page):
        if name == "append":
            operation(inputs, 1, *rows)
        elif name == "gather":
            operation(inputs, 1, *(np.zeros((len(tokens_of), 40, 2, 32), np.float32) for _ in range(2)))
        elif name == "attention":
            operation(inputs, 1, rows[0], out=rows[1], scale=1.0)
        else:
            operation(inputs, np.array([[page, 3]], np.int32))

    call(inputs, 5)
    with pytest.raises(kvcache.CheckError, match="page id.* 1000 is not in"):
        call(wrong, 1000)


def call_with_hints(name, hints):
    """Runs an operation with hints on an emulated chip; returns changes, and threads of its blocks."""
    manager, inputs, tokens_of = make_cache("int8")
    params, target = manager.params, "emulator:sm_90a"
    total = sum(new for _, new in tokens_of)
    rng, call = np.random.default_rng(3), None
    if name == "merge_states":
        operation = kvcache.ops.merge_states(6, 128, target, "f32", **hints)
        changed = [np.zeros((total, 6, 128), np.float32), np.zeros((total, 6), np.float32)]
        arguments = *(rng.standard_normal((2, *out.shape)).astype(np.float32) for out in changed), *changed
    else:
        options = {"query_heads": 6, "query_norm": 128} if name == "append" else {}
        operation = getattr(kvcache.ops, name)(params, target, **options, **hints)
        changed = [*manager.blocks, *manager.scales]
        if name == "append":
            changed += [rng.standard_normal((total, 6, 128)).astype(ml_dtypes.bfloat16)]
            rows = [random_rows(params, total, "bf16", seed) for seed in (1, 2)]
            arguments = inputs, 1, *rows, changed[-1]
            call = functools.partial(operation, query_norm=np.ones(128, ml_dtypes.bfloat16))
        elif name == "gather":
            changed = [np.full((len(tokens_of), 40, 2, 128), 7, ml_dtypes.bfloat16) for _ in range(2)]
            arguments = inputs, 1, *changed
        else:
            arguments = inputs, np.array([[3, 40], [0, 41]], np.int32)
    assert all(f"{hint} = {value}" in operation.source for hint, value in hints.items())
    operation.__dict__["program"] = kvcache.jit(operation.source, target=target, meter=True)
    (call or operation)(*arguments)
    (launch,) = operation.program.launches
    return [as_uint(array) for array in changed], int(np.prod(launch.block))


@pytest.mark.parametrize(
    ("name", "threads"),
    [("append", (32, 96)), ("gather", (32, 1024)), ("copy_pages", (16, 16)), ("merge_states", (32, 192))],
)
def test_tiling_hints_change_launches_but_no_bits(name, threads):
    """16 threads share a head of keys or queries, 8 a page, and 32 a state."""
    wanted, _ = call_with_hints(name, {})
    for hint, count in zip((32, 1024), threads):
        heads = {"heads_per_thread": 1} if name == "gather" else {}
        changed, got = call_with_hints(name, {"block_threads": hint, **heads})
        assert got == count
        for array, before in zip(changed, wanted):
            np.testing.assert_array_equal(array, before)


def test_wrong_tiling_hints():
    params = make_params("bf16")
    for operation in (kvcache.ops.append, kvcache.ops.gather, kvcache.ops.copy_pages):
        for hint in (0, 48, 1056):
            with pytest.raises(ValueError, match=f"'block_threads' to be a multiple of 32 from 32 to 1024, got {hint}"):
                operation(params, block_threads=hint)
    with pytest.raises(ValueError, match="'block_threads' to be a multiple of 32 from 32 to 1024, got 33"):
        kvcache.ops.merge_states(8, 64, block_threads=33)
    for hint in (0, 33):
        with pytest.raises(ValueError, match=f"'heads_per_thread' to be from 1 to 32, got {hint}"):
            kvcache.ops.gather(params, heads_per_thread=hint)
    with pytest.raises(TypeError, match="'block_threads' to be an integer, got True"):
        kvcache.ops.append(params, block_threads=True)


def test_wrong_operations():
    with pytest.raises(ValueError, match="expects 'dtype' to be one of f32, f16, bf16, got i8"):
        kvcache.ops.append(make_params("bf16"), dtype="i8")
    for name, got in (("fp8", "no scales"), ("fp8-group", "f16"), ("nvfp4", "f8E4M3FN")):
        with pytest.raises(ValueError, match=f"with 'power_of_two', got {got}"):
            kvcache.ops.append(make_params(name), power_of_two=True)
    with pytest.raises(ValueError, match="expects 'least_amax' only with 'power_of_two'"):
        kvcache.ops.append(make_params("fp8-token"), least_amax=True)
    with pytest.raises(TypeError, match="expects 'params' to be a KVCacheParams"):
        kvcache.ops.gather("bf16")
    with pytest.raises(ValueError, match="expects 'heads' to be positive"):
        kvcache.ops.merge_states(0, 64)
    manager, inputs, _ = make_cache("bf16")
    with pytest.raises(TypeError, match="expects 'inputs' to be a StepInputs"):
        kvcache.ops.append(manager.params)(None, 0, None, None)


@pytest.mark.parametrize("chip", ["sm_80", "sm_90a", "sm_100a", "sm_120a"])
def test_operations_assemble_without_spills(chip):
    params = make_params("bf16")
    operations = [
        kvcache.ops.append(params), kvcache.ops.gather(params),
        kvcache.ops.append(make_params("nvfp4")), kvcache.ops.copy_pages(make_params("fp8-group")),
        kvcache.ops.merge_states(32, 128),
    ]
    for operation in operations:
        (kernel,) = operation.compile(chip, "cubin").kernels.values()
        assert kernel.spill_bytes == 0 and kernel.stack_bytes == 0
