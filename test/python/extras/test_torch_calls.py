"""Tests of calls with tensors of PyTorch."""

import functools

import ml_dtypes
import numpy as np
import pytest

import kvcache

torch = pytest.importorskip("torch")

ADD = """
func.func @add(%x: memref<?x{type}{layout}>, %n: index) -> {type} {{
  %c0 = arith.constant 0 : index
  %v = memref.load %x[%n] : memref<?x{type}{layout}>
  memref.store %v, %x[%c0] : memref<?x{type}{layout}>
  return %v : {type}
}}
"""


def add(type_, layout=""):
    return kvcache.jit(ADD.format(type=type_, layout=layout), opt_level=0)


@pytest.mark.parametrize(
    "type_, dtype",
    [
        ("f32", torch.float32),
        ("f16", torch.float16),
        ("bf16", torch.bfloat16),
        ("f8E4M3FN", torch.float8_e4m3fn),
        ("f8E5M2", torch.float8_e5m2),
        ("f8E8M0FNU", torch.float8_e8m0fnu),
        ("i8", torch.int8),
        ("i64", torch.int64),
    ],
)
def test_tensors_of_each_type(type_, dtype):
    tensor = torch.tensor([1.0, 2.0, 4.0]).to(dtype)
    program = add(type_)
    for call in (lambda *args: program.call("add", *args), program.function("add")):
        assert call(tensor, 2) == 4
        assert tensor[0].to(torch.float32) == 4


def test_packed_values_are_bytes():
    bits = torch.tensor([0x21, 0x43], dtype=torch.uint8)
    assert add("i8").call("add", bits.view(torch.float4_e2m1fn_x2), 1) == 0x43
    with pytest.raises(TypeError, match="float4_e2m1fn for .*, got one of float4_e2m1fnx2"):
        kvcache.jit("func.func @f(%x: memref<?xf4E2M1FN>) { return }").call(
            "f", bits.view(torch.float4_e2m1fn_x2)
        )


def test_strides_and_offsets():
    tensor = torch.arange(8, dtype=torch.float32)
    program = add("f32", ", strided<[?]>")
    assert program.call("add", tensor[1::2], 3) == 7 and tensor[1] == 7
    assert program.call("add", tensor[3:4].expand(5), 4) == 3
    with pytest.raises(ValueError, match="expects a C-contiguous array"):
        add("f32").call("add", tensor[1::2], 0)


@pytest.mark.parametrize("call", ["first", "again"])
@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: torch.zeros(2, requires_grad=True), "requires a gradient"),
        (lambda: torch.nn.Parameter(torch.zeros(2)), "requires a gradient"),
        (lambda: torch.zeros(2, dtype=torch.complex64).conj().imag, "a negated view"),
        (lambda: torch.zeros(2, dtype=torch.complex64).conj(), "a conjugate view"),
    ],
)
def test_memory_that_is_not_the_value(make, message, call):
    program = add("f32", ", strided<[?]>")
    if call == "again":  # PyTorch's tensor type is registered by then
        program.call("add", torch.zeros(2), 0)
    with pytest.raises((ValueError, TypeError), match=f"{message}|complex64"):
        program.call("add", make(), 0)


def test_tensors_and_arrays_together():
    program = kvcache.jit("""
func.func @copy(%from: memref<?xbf16>, %to: memref<?xbf16>) {
  memref.copy %from, %to : memref<?xbf16> to memref<?xbf16>
  return
}
""")
    source = np.arange(4, dtype=ml_dtypes.bfloat16)
    target = torch.zeros(4, dtype=torch.bfloat16)
    program.call("copy", source, target)
    assert target.tolist() == [0, 1, 2, 3]

STEP = {
    "lengths": np.array([3, 0]),
    "lut": np.array([[1, 2, 0], [3, 0, 0]]),
    "row_offsets": np.array([0, 2, 3]),
}
STEP_PARAMS = kvcache.KVCacheParams("f32", 2, 8, page_size=4, total_num_layers=1)


def append_step(convert):
    blocks = np.zeros((4, *STEP_PARAMS.shape_per_block), np.float32)
    tables = {name: convert(table) for name, table in STEP.items()}
    inputs = kvcache.StepInputs.of(blocks=blocks, **tables)
    rows = np.random.default_rng(0).standard_normal((2, 3, 2, 8)).astype(np.float32)
    kvcache.ops.append(STEP_PARAMS)(inputs, 0, *rows)
    return blocks, inputs


CONVERSIONS = {
    "int64": torch.from_numpy,
    "int32": lambda table: torch.from_numpy(table).int(),
    "uint32": lambda table: torch.from_numpy(table.astype(np.uint32)),
    "slice": lambda table: torch.from_numpy(np.repeat(table, 2, -1))[..., ::2],
    "int32 slice": lambda table: torch.from_numpy(np.repeat(table, 2, -1)).int()[..., ::2],
}


@pytest.mark.parametrize("name", CONVERSIONS)
def test_step_inputs_read_tensors_as_arrays(name):
    expected, _ = append_step(lambda table: table.astype(np.int32))
    blocks, inputs = append_step(CONVERSIONS[name])
    np.testing.assert_array_equal(blocks, expected)
    assert inputs.positions.tolist() == [3, 4, 0]
    assert inputs.collection()[3:5] == (2, 3)
    assert inputs.lut.dtype == (torch.uint32 if name == "uint32" else torch.int32)


@pytest.mark.parametrize(
    ("lengths", "message"),
    [([-1, 0], "got -1 for sequence 0"), ([0, 12], "sequence 1 to have at most 12 tokens, .* got 13")],
)
def test_step_inputs_check_tensors_of_the_host(lengths, message):
    def convert(table):
        return torch.tensor(lengths if table is STEP["lengths"] else table)

    with pytest.raises(ValueError, match=message):
        append_step(convert)


def test_outputs_in_slices_of_one_tensor():
    """Rows of slices lie between each other; those of the last call have a head in common."""
    _, inputs = append_step(torch.from_numpy)
    attend = kvcache.ops.attention(STEP_PARAMS, 2)
    fused = torch.zeros(3, 6, 8)
    attend(inputs, 0, fused[:, :2], out=fused[:, 2:4], scale=1.0)
    for out in (fused[:, :2], fused[:, 1:3]):
        with pytest.raises(ValueError, match="'out' to share no memory with 'q'"):
            attend(inputs, 0, fused[:, :2], out=out, scale=1.0)


@pytest.mark.parametrize("name", ["blocks", *STEP])
def test_memory_of_a_bound_step_may_move_and_end(name):
    """A call reads the addresses of tensors again: their storage may move, and have no memory."""
    tables = {each: torch.from_numpy(table).int() for each, table in STEP.items()}
    given = {"blocks": torch.zeros(4, *STEP_PARAMS.shape_per_block), **tables}
    inputs = kvcache.StepInputs.of(**given)
    append = kvcache.ops.append(STEP_PARAMS)
    rows = torch.randn(2, 3, 2, 8)
    calls = append.bind(inputs, 0), functools.partial(append, inputs, 0), functools.partial(append, inputs, 0, device=0)
    calls[0](*rows)
    wanted = given["blocks"].clone()
    storage, address = given[name].untyped_storage(), given[name].data_ptr()
    storage.resize_(storage.nbytes() + (1 << 25))
    assert given[name].data_ptr() != address
    assert inputs.totals.tolist() == [5, 1]
    for call in calls:
        given["blocks"].zero_()
        call(*rows)
        assert given["blocks"].equal(wanted)
    storage.resize_(0)
    for call in calls:
        with pytest.raises((TypeError, ValueError), match=f"{name}.*memory.*a null address"):
            call(*rows)


def free(tensor):
    copy = tensor.clone()
    copy.untyped_storage().resize_(0)
    return copy


@pytest.mark.parametrize("is_bound", [False, True])
@pytest.mark.parametrize(
    "make, message",
    [
        (free, "'keys'. expects memory for its elements .*, got a null address"),
        (lambda new: new.requires_grad_(), "requires a gradient"),
        (lambda new: torch.nn.Parameter(new), "requires a gradient"),
        (lambda new: torch.complex(new, new).conj().imag, "a negated view"),
        (lambda new: new.to("meta"), "expects 'keys' to be a dense array with its elements in memory, got a meta tensor"),
        (lambda new: new.to_sparse(), "expects 'keys' to be a dense array with its elements in memory, got a sparse tensor"),
        (lambda new: new.half(), "expects an array of float32 .*, got one of float16"),
        (lambda new: new[:1], "'keys' to have a row for each of 2 new tokens, got 1"),
        (lambda new: new.transpose(1, 2), "'keys'"),
        (lambda new: torch.nn.Parameter(new, requires_grad=False), None),
        (lambda new: new.numpy(), None),
        (lambda new: torch.cat([new, new])[::2], None),
    ],
)
def test_operations_take_tensors_whose_memory_is_their_value(make, message, is_bound):
    params = kvcache.KVCacheParams("f32", 2, 16, page_size=4, total_num_layers=1)
    blocks = torch.zeros(3, 2, 1, 4, 2, 16)
    step = kvcache.StepInputs.of(
        blocks=blocks,
        lengths=torch.tensor([1], dtype=torch.int32),
        lut=torch.tensor([[2]], dtype=torch.int32),
        row_offsets=torch.tensor([0, 2], dtype=torch.int32),
    )
    new = torch.arange(64.0).reshape(2, 2, 16)
    append = kvcache.ops.append(params)
    call = append.bind(step, 0) if is_bound else lambda *given: append(step, 0, *given)
    call(new, new)  # PyTorch's tensor type is registered by then
    assert torch.equal(blocks[2, 0, 0, 1], new[0])
    blocks.zero_()
    if message is None:
        call(make(new.clone()), new)
        assert torch.equal(blocks[2, 1, 0, 1:3], new)
        return
    with pytest.raises((ValueError, TypeError), match=message):
        call(make(new.clone()), new)
    assert not blocks.any()


# --- Operations ------------------------------------------------------------------------------------------------------


def draw_tensor(rng, tensor):
    """A tensor in place of another one: of other strides, sizes, dtypes, devices and kinds."""
    other = torch.stack([tensor, tensor], -1)
    changes = [
        lambda: other.permute(-1, *range(tensor.dim()))[0],
        lambda: tensor[:1].expand(tensor.shape),
        lambda: tensor[:-1],
        lambda: tensor[:0],
        lambda: tensor[None].expand(*([1] * 9), *tensor.shape),
        lambda: tensor.to(torch.float64),
        lambda: tensor.to(torch.complex64).imag if tensor.is_floating_point() else tensor,
        lambda: tensor.to("meta"),
        lambda: free(tensor),
        lambda: tensor.to_sparse(),
        lambda: tensor.clone().requires_grad_() if tensor.is_floating_point() else tensor,
        lambda: torch.nn.Parameter(tensor.clone(), requires_grad=False),
        lambda: torch._neg_view(tensor) if tensor.is_floating_point() else tensor,
        lambda: tensor.view(torch.int16) if tensor.element_size() == 2 else tensor,
        lambda: torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage(), 0, tensor.shape, tensor.stride()),
        lambda: tensor.numpy() if tensor.dtype != torch.bfloat16 else None,
    ]
    return changes[rng.integers(len(changes))]()


def make_call():
    torch.manual_seed(0)
    params = kvcache.KVCacheParams("bf16", 2, 32, page_size=4, total_num_layers=1)
    step = kvcache.StepInputs.of(
        blocks=torch.zeros(8, 2, 1, 4, 2, 32, dtype=torch.bfloat16), lengths=torch.tensor([3, 0], dtype=torch.int32),
        lut=torch.tensor([[5, 2], [7, 0]], dtype=torch.int32), row_offsets=torch.tensor([0, 2, 5], dtype=torch.int32),
    )
    keys, values = torch.randn(2, 5, 2, 32).bfloat16()
    queries = torch.randn(5, 4, 32).bfloat16()
    slots = torch.tensor([20, 3, -1, 0, 31], dtype=torch.int32)
    return params, step, {"keys": keys, "values": values, "queries": queries, "slots": slots, "rope": torch.randn(9, 32),
                          "positions": torch.tensor([3, 4, 0, 1, 2], dtype=torch.int32)}


@pytest.mark.parametrize("seed", range(150))
def test_calls_with_random_tensors_agree(seed):
    """Calls with the extension's checks, bound or not, end as those with Python's do."""
    def run(way):
        rng = np.random.default_rng(seed)
        params, step, given = make_call()
        append = kvcache.ops.append(params, rope=32, query_heads=4, slots="i32", positions="i32")
        name = str(rng.choice([*given]))
        given[name] = draw_tensor(rng, given[name])
        checked = append._checked
        try:
            if way == "Python":
                append.__dict__["_checked"] = None
            (append.bind(step, 0) if way == "bound" else lambda **rows: append(step, 0, **rows))(**given)
        except Exception as error:
            return type(error), str(error).partition(", got")[0]
        finally:
            append.__dict__["_checked"] = checked
        return step.blocks[0].view(torch.int16).tolist()

    wanted = run("Python")
    assert run("direct") == wanted
    assert run("bound") == wanted
