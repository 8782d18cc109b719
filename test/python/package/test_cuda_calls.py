"""Tests that calls for CUDA with the extension's checks do what those with Python's do, on the stand-in driver."""

import contextlib
import dataclasses
import functools
import re

import ml_dtypes
import numpy as np
import pytest
import tvm_ffi
from exchanged import Framework
from standin import CHIP, DeviceArray, succeed
from streams import capture, synchronize

import kvcache
from kvcache import KVCacheParams, StepInputs

BF16 = np.dtype(ml_dtypes.bfloat16)
HEADS, WIDTH, QUERY_HEADS, PAGE, TOTAL = 2, 32, 4, 4, 5
PARAMS = KVCacheParams(BF16, HEADS, WIDTH, page_size=PAGE, total_num_layers=2)
FP8 = KVCacheParams("f8E4M3FN", HEADS, WIDTH, page_size=PAGE, total_num_layers=2)
FRAMEWORK = Framework()


def draw(seed, *shape, dtype=BF16):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def list_tables(table):
    if table == "csr":
        return {"lut": np.array([4, 5, 2, 7, 0], np.int32), "indptr": np.array([1, 3, 5], np.int32)}
    if table == "rows":
        return {"lut": np.array([[7, 0], [3, 3], [5, 2]], np.int32), "table_rows": np.array([2, 0], np.int32)}
    return {"lut": np.array([[5, 2], [7, 0]], np.int32)}


class Step:
    """The arrays of a step on the device: some of TVM-FFI, and the others of a framework."""

    def __init__(self, params=PARAMS, separate=False, table="dense", has_table=True, has_host_offsets=False):
        shape = (HEADS, WIDTH)
        dtype = np.dtype(params.storage_dtype)
        if separate:
            cache = {name: draw(0, 8, PAGE, *shape).astype(dtype) for name in ("keys", "values")}
        else:
            cache = {"blocks": draw(0, 8, 2, 2, PAGE, *shape).astype(dtype)}
        integers = list_tables(table) | {
            "lengths": np.array([3, 0], np.int32), "row_offsets": np.array([0, 2, TOTAL], np.int32)
        }
        self.memory = {name: DeviceArray(array) for name, array in (cache | integers).items()}
        tensors = {name: each.tensor() for name, each in self.memory.items()}
        given = {name: tensors[name] for name in cache}
        if has_table:
            given |= {name: FRAMEWORK.Tensor(tensors[name]) for name in integers}
            given |= {"max_seq_length": 3, "max_cache_length": 3}
        self.inputs = StepInputs.of(**given)
        if has_host_offsets:
            totals = np.array([5, 3], np.int64)
            self.inputs = dataclasses.replace(
                self.inputs, row_offsets=np.array([0, 2, TOTAL], np.uint32), _totals=totals
            )

    def list_bytes(self):
        return [each.numpy().tobytes() for each in self.memory.values()]


def make_append(**more):
    return {"keys": draw(1, TOTAL, HEADS, WIDTH), "values": draw(2, TOTAL, HEADS, WIDTH), **more}


def make_attention(**more):
    return {"q": draw(3, TOTAL, QUERY_HEADS, WIDTH), "out": draw(4, TOTAL, QUERY_HEADS, WIDTH), "scale": 0.25, **more}


def make_roped():
    slots = np.array([20, 3, -1, 0, 31], np.int64)
    rope = draw(5, 7, WIDTH, dtype=np.float32)
    return make_append(slots=slots, rope=rope, positions=np.array([6, 0, 5, 1, 2], np.int32))


@functools.cache
def make_operation(name):
    append = functools.partial(kvcache.ops.append, target=f"cuda:{CHIP}")
    attend = functools.partial(kvcache.ops.attention, query_heads=QUERY_HEADS, target=f"cuda:{CHIP}")
    return {
        "append": lambda: append(PARAMS),
        "append, separate rows": lambda: append(PARAMS, separate=True, table="rows"),
        "append, slots": lambda: append(PARAMS, rope=WIDTH, slots="i64", positions="i32"),
        "append, static": lambda: append(FP8, static_scales=True, dtype="bf16"),
        "attention": lambda: attend(PARAMS),
        "attention, separate csr": lambda: attend(PARAMS, separate=True, table="csr"),
        "attention, lengths": lambda: attend(PARAMS, kv_lengths=True, sinks=True, causal=False),
        "attention, splits": lambda: attend(PARAMS, split_tokens=16, max_splits=4),
        "attention, fp8": lambda: attend(FP8, static_scales=True, dtype="bf16", out_dtype="f8E5M2"),
        "attention, score": lambda: attend(
            PARAMS, score=lambda s, b, h, q, k, slopes: s + slopes[h] * (k - q), arrays={"slopes": f"f32[{QUERY_HEADS}]"}
        ),
    }[name]()


HEAD_NUMBERS = np.linspace(0.5, 1, QUERY_HEADS, dtype=np.float32)
CALLS = {
    "append": (Step, make_append),
    "append, separate rows": (functools.partial(Step, separate=True, table="rows"), make_append),
    "append, slots": (functools.partial(Step, has_table=False), make_roped),
    "append, static": (
        functools.partial(Step, FP8), lambda: make_append(key_scale=0.5, value_scale=np.array([1, 2], np.float32))
    ),
    "attention": (functools.partial(Step, has_host_offsets=True), make_attention),
    "attention, separate csr": (functools.partial(Step, separate=True, table="csr"), make_attention),
    "attention, lengths": (
        Step,
        lambda: make_attention(
            kv_lengths=np.array([7, 3], np.int32), sinks=HEAD_NUMBERS, lse=np.zeros((TOTAL, QUERY_HEADS), np.float32)
        ),
    ),
    "attention, splits": (Step, make_attention),
    "attention, fp8": (
        functools.partial(Step, FP8), lambda: make_attention(key_scale=2, value_scale=0.25, out_scale=0.5)
    ),
    "attention, score": (Step, lambda: make_attention(slopes=HEAD_NUMBERS)),
}


def place(given, dtypes):
    """The arrays of a call in the memory of the device, as tensors of the framework."""
    memory = {
        name: DeviceArray(value.astype(dtypes.get(name, value.dtype)))
        for name, value in given.items() if isinstance(value, np.ndarray)
    }
    return memory, given | {name: FRAMEWORK.Tensor(each.tensor()) for name, each in memory.items()}


@contextlib.contextmanager
def without_extension(operation):
    checked = operation._checked
    operation.__dict__["_checked"] = None
    try:
        yield
    finally:
        operation.__dict__["_checked"] = checked


def run(name, way, change=lambda step, given: None):
    """The bytes of the device after a call, or its exception."""
    make_step, make_given = CALLS[name]
    step, operation = make_step(), make_operation(name)
    memory, given = place(make_given(), {"out": ml_dtypes.float8_e5m2} if "fp8" in name else {})
    change(step, given)
    try:
        if way == "Python":
            with without_extension(operation):
                operation(step.inputs, step_layer(step), **given)
        elif way == "bound":
            operation.bind(step.inputs, step_layer(step))(**given)
        else:
            operation(step.inputs, step_layer(step), **given)
    except Exception as error:
        return type(error), re.sub(r"0x\w+", "", str(error))
    return step.list_bytes() + [each.numpy().tobytes() for each in memory.values()]


def step_layer(step):
    return 0 if step.inputs.is_separate else 1


@pytest.fixture
def emulate(driver):
    yield lambda name: driver.emulate(make_operation(name).source)
    FRAMEWORK.stream = 0


@pytest.mark.parametrize("name", CALLS)
def test_calls_agree(emulate, name):
    emulate(name)
    wanted = run(name, "Python")
    assert isinstance(wanted, list), wanted
    assert run(name, "direct") == wanted
    assert run(name, "bound") == wanted


@pytest.mark.parametrize("name", CALLS)
def test_the_extension_calls_what_is_right(emulate, name):
    emulate(name)
    make_step, make_given = CALLS[name]
    operation, step = make_operation(name), make_step()
    memory, given = place(make_given(), {"out": ml_dtypes.float8_e5m2} if "fp8" in name else {})
    values = [given.get(parameter) for parameter in operation._kinds]
    assert operation._checked(step.inputs, step_layer(step), *values)
    held = [getattr(value, "held", value) for value in values]  # tensors of TVM-FFI
    assert operation._checked(step.inputs, step_layer(step), *held)
    assert len(memory) == sum(value is not each for value, each in zip(values, held))


def list_changes(given):
    """Changes of the arguments of a call and of its step, by their names."""
    for name, value in given.items():
        if isinstance(value, np.ndarray):
            yield f"{name} on the host", lambda step, now, name=name, value=value: now.update({name: value})
            for text, change in {
                "less rows": lambda x: x[:-1],
                "more dimensions": lambda x: x[None],
                "other type": lambda x: x.astype(np.int16),
                "no rows": lambda x: x[:0],
            }.items():
                changed = change(value)
                yield f"{name}: {text}", lambda step, now, name=name, changed=changed: now.update(
                    {name: FRAMEWORK.Tensor(DeviceArray(changed).tensor())}
                )
        for other in (None, 1.5, float("nan"), "1"):
            yield f"{name} = {other}", lambda step, now, name=name, other=other: now.update({name: other})
        if isinstance(value, np.ndarray):
            yield f"{name} of another GPU", lambda step, now, name=name, value=value: now.update(
                {name: FRAMEWORK.Tensor(DeviceArray(value, device=1).tensor())}
            )

    def change_inputs(**changes):
        def change(step, now):
            if step.inputs.has_table:
                step.inputs = dataclasses.replace(step.inputs, **changes)

        return change

    for offsets in ([0, 2, 6], [1, 2, 5], [0, 6, 5], [0, 5]):
        yield f"host offsets {offsets}", change_inputs(row_offsets=np.array(offsets, np.uint32))
    for totals in ([9, 3], [5, 2**40], [8, 8]):
        yield f"totals {totals}", change_inputs(_totals=np.array(totals, np.int64))
    yield "lengths on the host", change_inputs(lengths=np.array([3, 0], np.int32))
    yield "one length", lambda step, now: change_inputs(
        lengths=FRAMEWORK.Tensor(DeviceArray(np.zeros(1, np.int32)).tensor())
    )(step, now)


@pytest.mark.parametrize("name", CALLS)
def test_calls_with_another_argument_agree(driver, emulate, name):
    emulate(name)
    _, make_given = CALLS[name]
    errors = 0
    with driver.idle():
        for text, change in list_changes(make_given()):
            wanted = run(name, "Python", change)
            for way in ("direct", "bound"):
                assert run(name, way, change) == wanted, (text, way)
            errors += isinstance(wanted, tuple)
    assert errors > 10


# --- Streams -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["append", "attention", "attention, splits"])
@pytest.mark.parametrize("way", ["Python", "direct", "bound"])
def test_work_is_on_the_current_stream_of_the_framework(driver, emulate, stream, name, way):
    from cuda.bindings import driver as bindings

    emulate(name)
    make_operation(name).program.load()
    run(name, way)  # makes the workspace of the default stream
    FRAMEWORK.stream = int(stream)
    step, operation = CALLS[name][0](), make_operation(name)
    memory, given = place(CALLS[name][1](), {})
    call = functools.partial(operation if way != "bound" else operation.bind(step.inputs, 1), **given)
    arguments = () if way == "bound" else (step.inputs, 1)
    with contextlib.ExitStack() as stack:
        if way == "Python":
            stack.enter_context(without_extension(operation))
        call(*arguments)  # makes the workspace of the stream
        with driver.rules(stream):
            call(*arguments)
        synchronize(stream)
        written = step.memory["blocks"] if name == "append" else memory["out"]
        wanted = written.numpy()
        with driver.rules(stream):
            graph = capture(stream, lambda: call(*arguments))
        for _ in range(2):
            succeed(bindings.cuMemsetD8Async(written.address, 0, wanted.nbytes, stream))
            succeed(bindings.cuGraphLaunch(graph, stream))
            synchronize(stream)
            found = written.numpy()
            if name == "append":
                found, now = found[5, 0, 1, 3], wanted[5, 0, 1, 3]
            else:
                now = wanted
            assert found.tobytes() == now.tobytes() and now.astype(np.float32).any()


@pytest.mark.parametrize("way", ["Python", "bound"])
def test_captured_scale_outlives_many_other_scales(driver, emulate, stream, way):
    from cuda.bindings import driver as bindings

    name = "append, static"
    emulate(name)
    step, operation = CALLS[name][0](), make_operation(name)
    _, given = place(make_append(value_scale=1), {})
    call = operation.bind(step.inputs, 1, **given)
    FRAMEWORK.stream = int(stream)
    with contextlib.ExitStack() as stack:
        if way == "Python":
            stack.enter_context(without_extension(operation))
            stack.enter_context(tvm_ffi.use_raw_stream(tvm_ffi.device("cuda", 0), int(stream)))
        # Each way has a scale of its own: a captured one stays.
        captured = {"Python": 0.75, "bound": 0.625}[way]
        call(key_scale=captured)
        synchronize(stream)
        blocks = step.memory["blocks"]
        wanted = blocks.numpy()
        graph = capture(stream, lambda: call(key_scale=captured))
        with driver.idle():
            for number in range(1, 1100):
                call(key_scale=1 + number / 2048)
        call(key_scale=64)
        synchronize(stream)
        assert blocks.numpy().tobytes() != wanted.tobytes()
        freed = [line for line in driver.calls() if line.startswith("cuMemFree")]
        assert freed, "scales that no graph uses are freed"
        succeed(bindings.cuGraphLaunch(graph, stream))
        synchronize(stream)
    assert blocks.numpy().tobytes() == wanted.tobytes()


def test_tensors_of_tvm_ffi_alone_use_its_stream(driver, emulate, stream):
    emulate("append")
    operation, step = make_operation("append"), Step()
    operation.program.load()
    given = {name: DeviceArray(value).tensor() for name, value in make_append().items()}
    inputs = StepInputs.of(
        **{name: each.tensor() for name, each in step.memory.items()}, max_seq_length=3, max_cache_length=3
    )
    values = [given.get(parameter) for parameter in operation._kinds]
    with tvm_ffi.use_raw_stream(tvm_ffi.device("cuda", 0), int(stream)), driver.rules(stream):
        assert operation._checked(inputs, 1, *values)


# --- Other frameworks ----------------------------------------------------------------------------------------------


def use_framework(**options):
    framework = Framework(**options)

    def change(step, given):
        given |= {name: framework.Tensor(value.held) for name, value in given.items() if hasattr(value, "held")}

    return change


@pytest.mark.parametrize("options", [{"absent": ["view"]}, {"absent": ["get_stream"]}, {"version": (2, 0)}], ids=str)
def test_tables_without_a_function_or_of_another_version(emulate, options):
    emulate("append")
    wanted = run("append", "direct")
    assert run("append", "direct", use_framework(**options)) == wanted


@pytest.mark.parametrize("failing", ["view", "get_stream"])
def test_functions_of_a_framework_that_fail_leave_the_call_to_python(emulate, failing):
    emulate("append")
    change = use_framework(failing=[failing])
    assert run("append", "direct", change) == run("append", "Python", change)
