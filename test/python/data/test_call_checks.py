"""Tests that all ways to call an operation agree: with the extension's checks, with Python's, and bound to a step.

Each case changes one argument, or the contents of an array of the step. Calls must end with the same bytes, or raise the
same exception.
"""

import concurrent.futures
import contextlib
import dataclasses
import functools
import re

import hostile_arrays
import ml_dtypes
import numpy as np
import pytest
from hostile_arrays import draw_numbers, draw_sizes, draw_view

import kvcache
from kvcache import KVCacheParams, KVCacheQuantizationConfig, StepInputs

BF16 = np.dtype(ml_dtypes.bfloat16)
HEADS, WIDTH, QUERY_HEADS, TOTAL = 2, 32, 4, 5
PARAMS = KVCacheParams(BF16, HEADS, WIDTH, page_size=4, total_num_layers=2)
FP8 = KVCacheParams("f8E4M3FN", HEADS, WIDTH, page_size=4, total_num_layers=2)
SCALED = KVCacheParams(
    "i8", HEADS, WIDTH, page_size=4, total_num_layers=2, kvcache_quant_config=KVCacheQuantizationConfig("f32", WIDTH)
)
ROPE = {"norm": WIDTH, "query_norm": WIDTH, "rope": WIDTH, "query_heads": QUERY_HEADS}


def draw(rng, *shape):
    return rng.standard_normal(shape).astype(BF16)


def make_step(params=PARAMS, separate=False, table="dense"):
    rng = np.random.default_rng(0)
    shape, dtype = (4, HEADS, WIDTH), np.dtype(params.storage_dtype)
    lut = {"lut": np.array([[5, 2], [7, 0]], np.int32)}
    if table == "csr":
        lut = {"lut": np.array([4, 5, 2, 7, 0], np.int32), "indptr": np.array([1, 3, 5], np.int32)}
    if table == "rows":
        lut = {"lut": np.array([[7, 0], [3, 3], [5, 2]], np.int32), "table_rows": np.array([2, 0], np.int32)}
    if separate:
        cache = {
            name: [draw(rng, 8, *shape).astype(dtype) for _ in range(2)] for name in ("keys", "values")
        }
    else:
        cache = {"blocks": draw(rng, 8, 2, 2, *shape).astype(dtype)}
        if params is SCALED:
            cache["scales"] = np.ones((8, 2, 2, 4, HEADS, 1), np.float32)
    return StepInputs.of(
        **cache, **lut, lengths=np.array([5, 0], np.int32), row_offsets=np.array([0, 2, TOTAL], np.int32)
    )


def make_append(**more):
    rng = np.random.default_rng(1)
    return {"keys": draw(rng, TOTAL, HEADS, WIDTH), "values": draw(rng, TOTAL, HEADS, WIDTH), **more}


def make_full():
    rng = np.random.default_rng(2)
    fused = draw(rng, TOTAL, QUERY_HEADS + 2 * HEADS, WIDTH)
    return {
        "queries": fused[:, :QUERY_HEADS],
        "keys": fused[:, QUERY_HEADS : QUERY_HEADS + HEADS],
        "values": fused[:, QUERY_HEADS + HEADS :],
        "norm": draw(rng, WIDTH),
        "query_norm": draw(rng, WIDTH),
        "rope": rng.standard_normal((7, WIDTH)).astype(np.float32),
    }


def make_slots():
    given = make_full()
    slots = np.array([20, 3, -1, 0, 31], np.int64)
    return {**given, "slots": slots, "positions": np.array([6, 0, 5, 1, 2], np.int32)}


def make_attention(**more):
    rng = np.random.default_rng(3)
    return {
        "q": draw(rng, TOTAL, QUERY_HEADS, WIDTH),
        "out": np.zeros((TOTAL, QUERY_HEADS, WIDTH), BF16),
        "lse": np.zeros((TOTAL, QUERY_HEADS), np.float32),
        "scale": 0.25,
        **more,
    }


def make_workspace():
    """A workspace aligned to 16 bytes."""
    size = make_operation("attention, workspace").workspace_size(2)
    memory = np.zeros(size + 16, np.int8)
    return memory[(start := -memory.ctypes.data % 16) : start + size]


@functools.cache
def make_operation(name):
    append, attend = kvcache.ops.append, functools.partial(kvcache.ops.attention, query_heads=QUERY_HEADS)
    return {
        "append": lambda: append(PARAMS),
        "append, separate rows": lambda: append(PARAMS, separate=True, table="rows"),
        "append, csr": lambda: append(PARAMS, table="csr"),
        "append, rope": lambda: append(PARAMS, **ROPE),
        "append, slots": lambda: append(PARAMS, **ROPE, slots="i64", positions="i32"),
        "append, scaled": lambda: append(SCALED, dtype="bf16"),
        "append, static": lambda: append(FP8, static_scales=True, dtype="bf16"),
        "attention": lambda: attend(PARAMS),
        "attention, separate csr": lambda: attend(PARAMS, separate=True, table="csr"),
        "attention, options": lambda: attend(PARAMS, sinks=True, mask=True, kv_lengths=True, causal=False),
        "attention, rows": lambda: attend(PARAMS, rows=True),
        "attention, static": lambda: attend(FP8, static_scales=True, dtype="bf16"),
        "attention, splits": lambda: attend(PARAMS, split_tokens=64),
        "attention, workspace": lambda: attend(PARAMS, split_tokens=64),
        "attention, fp8": lambda: attend(FP8, dtype="f8E4M3FN", out_dtype="f8E5M2", static_scales=True),
        "attention, unsigned": lambda: attend(
            PARAMS, score=lambda s, b, h, q, k, factors: s * factors[b, h], arrays={"factors": "uint32[?, ?]"}
        ),
        "attention, score": lambda: attend(
            PARAMS, score=lambda s, b, h, q, k, slopes: s + slopes[h] * (k - q), arrays={"slopes": f"f32[{QUERY_HEADS}]"}
        ),
    }[name]()


MASK = np.full((TOTAL, 1), 7, np.int32)
CALLS = {
    "append": (make_step, make_append),
    "append, separate rows": (functools.partial(make_step, separate=True, table="rows"), make_append),
    "append, csr": (functools.partial(make_step, table="csr"), make_append),
    "append, rope": (make_step, make_full),
    "append, slots": (make_step, make_slots),
    "append, scaled": (functools.partial(make_step, SCALED), make_append),
    "append, static": (
        functools.partial(make_step, FP8),
        lambda: make_append(key_scale=0.5, value_scale=np.array([1, 2], np.float32)),
    ),
    "attention": (make_step, make_attention),
    "attention, separate csr": (functools.partial(make_step, separate=True, table="csr"), make_attention),
    "attention, options": (
        make_step,
        lambda: make_attention(
            sinks=np.ones(QUERY_HEADS, np.float32), mask=MASK.copy(), kv_lengths=np.array([7, 3], np.int32), lse=None
        ),
    ),
    "attention, rows": (
        make_step,
        lambda: make_attention(rows=np.array([[20, -1], [3, 31], [0, 1], [2, 3], [-1, -1]], np.int32)),
    ),
    "attention, static": (
        functools.partial(make_step, FP8),
        lambda: make_attention(key_scale=2, value_scale=0.5),
    ),
    "attention, splits": (make_step, make_attention),
    "attention, workspace": (make_step, lambda: make_attention(workspace=make_workspace())),
    "attention, fp8": (
        functools.partial(make_step, FP8),
        lambda: make_attention(
            q=draw(np.random.default_rng(3), TOTAL, QUERY_HEADS, WIDTH).astype(ml_dtypes.float8_e4m3fn),
            out=np.zeros((TOTAL, QUERY_HEADS, WIDTH), ml_dtypes.float8_e5m2),
            key_scale=2, value_scale=0.5, out_scale=0.25,
        ),
    ),
    "attention, unsigned": (make_step, lambda: make_attention(factors=np.ones((2, QUERY_HEADS), np.uint32))),
    "attention, score": (make_step, lambda: make_attention(slopes=np.ones(QUERY_HEADS, np.float32))),
}


def change_array(array):
    """Arrays that an argument can't be, or can, in place of an array."""
    yield "none", None
    yield "list", array.tolist()
    yield "number", 1.5
    yield "wide", array.astype(np.float64)
    yield "other type", array.astype(np.int16)
    yield "fewer rows", array[:-1]
    yield "no rows", array[:0]
    yield "more rows", np.concatenate([array, array])
    yield "more dimensions", array[None]
    yield "fewer dimensions", array.ravel()
    yield "no dimensions", array.ravel()[:1].reshape(())
    yield "more elements", np.concatenate([array, array], -1)
    yield "gaps in rows", np.concatenate([array, array], -1)[..., ::2]
    yield "gaps between rows", np.concatenate([array, array])[::2]
    yield "backwards", array[::-1]
    yield "misaligned", np.frombuffer(b"x" + array.tobytes(), np.uint8)[1:].view(array.dtype).reshape(array.shape)
    frozen = array.copy()
    frozen.flags.writeable = False
    yield "read-only", frozen
    yield "masked", np.ma.masked_array(array)
    swapped = array.astype(array.dtype.newbyteorder()) if array.dtype != BF16 else array.astype(">f4")
    yield "other byte order", swapped
    if array.dtype.kind in "iu":
        for number in np.array([-1, -(2**31), 8, 32, 40, 2**31 - 1]).astype(array.dtype):
            changed = array.copy()
            changed.flat[0] = number
            yield f"first {number}", changed
            changed = array.copy()
            changed.flat[-1] = number
            yield f"last {number}", changed


def change_number(number):
    yield from ((str(value), value) for value in (None, True, 1, np.float32(0.5), float("nan"), float("inf"), "1", [1.0]))


def list_changes(given):
    """Changes of one argument, and arrays that share memory."""
    yield "", {}
    for name, value in given.items():
        changes = change_array(value) if isinstance(value, np.ndarray) else change_number(value)
        if value is None:
            changes = [("rows", np.zeros((TOTAL, QUERY_HEADS), np.float32)), ("1", 1)]
        yield from ((f"{name}: {text}", {name: changed}) for text, changed in changes)
    arrays = [name for name, value in given.items() if isinstance(value, np.ndarray)]
    for name in arrays:
        for other in arrays:
            if name != other and given[name].size >= given[other].size and given[name].dtype == given[other].dtype:
                shared = np.ascontiguousarray(given[name]).ravel()[: given[other].size].reshape(given[other].shape)
                whole = shared.base if shared.base is not None else shared
                yield f"{name} and {other} share", {name: whole.reshape(given[name].shape), other: shared}
    yield "unknown", {"unknown": np.zeros(3)}
    yield "positions", {"positions": np.zeros(TOTAL, np.int32)}
    yield "device", {"device": 1}
    yield "device as bool", {"device": False}


def list_steps(step):
    """Changes of a step in place, and other steps."""
    for name, values in (
        ("lengths", (-1, 4, 6, 7, 2**31 - 1)),
        ("row_offsets", (-1, 0, 3, 6, 2**31 - 1)),
        ("table_index", (-1, 0, 1, 2, 3, 9)),
    ):
        array = getattr(step, name)
        for place in range(0 if array is None else len(array)):
            for value in values:

                def change(step, name=name, place=place, value=value):
                    getattr(step, name)[place] = value
                    return step

                yield f"{name}[{place}] = {value}", change
    yield "no table", lambda step: dataclasses.replace(step, lut=None, lengths=None, row_offsets=None, _placed_offsets=None)
    yield "one sequence", lambda step: dataclasses.replace(step, lengths=step.lengths[:1])
    yield "narrow table", lambda step: dataclasses.replace(step, lut=step.lut[..., :1])
    yield "table of no dimensions", lambda step: dataclasses.replace(step, lut=np.zeros((), np.int32))
    yield "table of three dimensions", lambda step: dataclasses.replace(step, lut=np.zeros((2, 2, 2), np.int32))
    yield "lengths of no dimensions", lambda step: dataclasses.replace(step, lengths=np.zeros((), np.int32))
    yield "offsets of floats", lambda step: dataclasses.replace(step, _placed_offsets=step.row_offsets.astype(np.float32))
    yield "other form", lambda step: make_step(separate=not step.is_separate)
    yield "other table", lambda step: make_step(separate=step.is_separate, table="csr" if step.table != "csr" else "rows")
    yield "no step", lambda step: step.lengths

    def freeze(step):
        for tensor in (*step.blocks, *step.key_blocks, *step.value_blocks):
            tensor.flags.writeable = False
        return step

    yield "read-only cache", freeze


LAYERS = [0, 1, 2, -1, True, 1.0, None, np.int32(1), 2**70, "0"]


@contextlib.contextmanager
def without_extension(operation):
    checked = operation._checked
    operation.__dict__["_checked"] = None
    try:
        yield
    finally:
        operation.__dict__["_checked"] = checked


def list_memory(step, given):
    tensors = (*step.blocks, *step.scales, *step.key_blocks, *step.value_blocks) if isinstance(step, StepInputs) else ()
    return [array.tobytes() for array in (*tensors, *given.values()) if isinstance(array, np.ndarray)]


def run(call, step, given):
    """The bytes after a call, or its exception."""
    try:
        call()
    except Exception as error:
        return type(error), re.sub(r"(address|at) 0x\w+", r"\1", str(error))
    return list_memory(step, given)


def call_all(operation, make, layer=1):
    """The results of each way to call; ``make`` makes the step and the arguments anew."""
    step, given = make()
    with without_extension(operation):
        yield run(lambda: operation(step, layer, **given), step, given)
    step, given = make()
    yield run(lambda: operation(step, layer, **given), step, given)
    step, given = make()
    yield run(lambda: operation.bind(step, layer)(**given), step, given)
    step, given = make()
    yield run(lambda: operation.bind(step, layer, **given)(), step, given)
    step, given = make()
    names = [name for name in operation.positional if name in given]
    if names != list(operation.positional[: len(names)]):
        return
    first = [given[name] for name in names]
    others = {name: value for name, value in given.items() if name not in names}
    yield run(lambda: operation.bind(step, layer, **others)(*first), step, given)


def count_changes(name):
    _, make = CALLS[name]
    return len(list(list_changes(make())))


@pytest.mark.parametrize("name", CALLS)
def test_calls_with_another_argument_agree(name):
    operation = make_operation(name)
    make_inputs, make_given = CALLS[name]
    texts = [text for text, _ in list_changes(make_given())]
    results = {}
    for number, text in enumerate(texts):

        def make(number=number):
            given = make_given()
            (changes,) = (changes for i, (_, changes) in enumerate(list_changes(given)) if i == number)
            return make_inputs(), {**given, **changes}

        expected, *found = call_all(operation, make)
        for way, result in enumerate(found):
            is_unknown = isinstance(expected, tuple) and expected[0] is TypeError and "unexpected" in expected[1]
            if is_unknown and isinstance(result, tuple):
                assert result[0] is TypeError
                continue
            assert result == expected, (text, way)
        results[text] = expected
    assert isinstance(results[""], list)
    assert sum(isinstance(result, tuple) for result in results.values()) > 20


@pytest.mark.parametrize("name", CALLS)
def test_calls_with_another_step_agree(name):
    operation = make_operation(name)
    make_inputs, make_given = CALLS[name]
    for number, (text, _) in enumerate(list_steps(make_inputs())):

        def make(number=number):
            step = make_inputs()
            (change,) = (change for i, (_, change) in enumerate(list_steps(step)) if i == number)
            return change(step), make_given()

        expected, *found = call_all(operation, make)
        for way, result in enumerate(found):
            assert result == expected, (text, way)
    for layer in LAYERS:
        expected, *found = call_all(operation, lambda: (make_inputs(), make_given()), layer)
        for way, result in enumerate(found):
            assert result == expected, (layer, way)


@pytest.mark.parametrize("name", CALLS)
def test_the_extension_calls_what_is_right(name):
    """Calls of the usual kind need no Python, also of slices of a fused projection."""
    make_inputs, make_given = CALLS[name]
    operation, given = make_operation(name), make_given()
    values = [given.get(parameter) for parameter in operation._kinds]
    assert operation._checked(make_inputs(), 1, *values)


STEP_ARRAYS = "lengths", "lut", "row_offsets", "table_index"


def draw_call(rng, make_inputs, make_given):
    """A step and the arguments of a call, of which one or two are drawn."""
    step, given = make_inputs(), make_given()
    for _ in range(int(rng.integers(1, 3))):
        arrays = [name for name, value in given.items() if isinstance(value, np.ndarray)]
        step_names = [name for name in STEP_ARRAYS if isinstance(getattr(step, name), np.ndarray)]
        if rng.random() < 0.3:
            name = str(rng.choice(step_names))
            # A page that the cache lacks is undefined.
            change = rng.choice([draw_view, draw_sizes, *([draw_numbers] if name != "lut" else [])])
            array = change(rng, getattr(step, name))
            placed = {"_placed_offsets": array} if name == "row_offsets" else {}
            step = dataclasses.replace(step, **{name: array}, **placed)
        else:
            name = str(rng.choice(arrays))
            given[name] = hostile_arrays.draw(rng, given[name])
    return step, given


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", CALLS)
def test_calls_with_random_arrays_agree(name, seed):
    operation = make_operation(name)
    for number in range(25):

        def make(number=number):
            return draw_call(np.random.default_rng((seed, number)), *CALLS[name])

        expected, *found = call_all(operation, make)
        for way, result in enumerate(found):
            assert result == expected, (number, way)


@pytest.mark.parametrize("name", ["keys", "lengths", "lut", "row_offsets"])
@pytest.mark.parametrize("rows", [0, 1, 2, 4, 8])
def test_calls_agree_on_arrays_that_are_resized_in_place(name, rows):
    append = make_operation("append")

    def resize(step, given):
        array = given.get(name, getattr(step, name, None))
        array.resize((rows, *array.shape[1:]), refcheck=False)

    step, given = make_step(), {key: value.copy() for key, value in make_append().items()}
    bound = append.bind(step, 1, **given)
    resize(step, given)
    found = run(bound, step, given)
    step, given = make_step(), {key: value.copy() for key, value in make_append().items()}
    resize(step, given)
    with without_extension(append):
        assert run(lambda: append(step, 1, **given), step, given) == found


def test_calls_agree_on_a_table_that_loses_a_dimension():
    append = make_operation("append")
    results = []
    for is_native in (True, False):
        step, given = dataclasses.replace(make_step(), lut=np.array([[5], [7]], np.int32)), make_append()
        step.lengths[:] = 1, 0
        with contextlib.nullcontext() if is_native else without_extension(append):
            append(step, 1, **given)
            step.lut.shape = (2,)
            results.append(run(lambda: append(step, 1, **given), step, given))
    assert results[0] == results[1]
    assert "expects 2 dimensions" in results[0][1]


def test_threads_share_a_bound_call():
    step, attend = make_step(), make_operation("attention, splits")
    bound = attend.bind(step, 1, scale=0.25)
    queries = [draw(np.random.default_rng(seed), TOTAL, QUERY_HEADS, WIDTH) for seed in range(8)]
    wanted = [np.zeros_like(q) for q in queries]
    for q, out in zip(queries, wanted):
        bound(q, out=out)

    def work(q):
        out = np.zeros_like(q)
        for _ in range(50):
            bound(q, out=out)
        return out

    with concurrent.futures.ThreadPoolExecutor(len(queries)) as pool:
        for found, out in zip(pool.map(work, queries), wanted):
            np.testing.assert_array_equal(found, out)


def test_a_bound_call_sees_changes_of_the_step():
    step, given = make_step(), make_append()
    bound = make_operation("append").bind(step, 1)
    bound(given["keys"], given["values"])
    np.testing.assert_array_equal(step.blocks[0][2, 0, 1, 1], given["keys"][0])
    step.lut[0, 1] = 6
    bound(given["keys"], values=given["values"])
    np.testing.assert_array_equal(step.blocks[0][6, 0, 1, 1], given["keys"][0])
    step.lengths[0] = 7
    with pytest.raises(ValueError, match="sequence 0 to have at most 8 tokens, .* got 9"):
        bound(given["keys"], given["values"])
    step.lengths[0] = 5
    step.lut[0, 1] = 8
    checked = kvcache.ops.append(PARAMS, bounds_checks=True).bind(step, 1)
    with pytest.raises(kvcache.CheckError, match="sequence 0 has page 8 for tokens from 4 on, and layer 1 has pages 0 to 7"):
        checked(given["keys"], given["values"])
    step.blocks[0].flags.writeable = False
    with pytest.raises(ValueError, match="'blocks'. expects a writeable array"):
        bound(given["keys"], given["values"])


def test_bound_calls_take_arguments_once():
    step, given = make_step(), make_append()
    append = make_operation("append")
    with pytest.raises(TypeError, match="the operation has no argument 'key'"):
        append.bind(step, 1, key=given["keys"])
    with pytest.raises(TypeError, match="multiple values"):
        append.bind(step, 1, keys=given["keys"])(given["keys"], given["values"])
    with pytest.raises(TypeError, match="multiple values"):
        append.bind(step, 1)(given["keys"], given["values"], values=given["values"])
    with pytest.raises(TypeError, match="unexpected keyword"):
        append.bind(step, 1)(given["keys"], given["values"], out=given["values"])
    with pytest.raises(TypeError, match="missing"):
        append.bind(step, 1)()
    attend = make_operation("attention").bind(step, 1, scale=0.25)
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'out'"):
        attend(make_attention()["q"])
