"""Tests of operators of kvcache.torch, called directly and under torch.compile, on the CPU."""

import numpy as np
import pytest
import torch

import kvcache
import kvcache.torch

LAYERS = 2
PARAMS = kvcache.KVCacheParams("f32", 2, 16, page_size=4, total_num_layers=LAYERS)
PUT = """
func.func @put(%cache: memref<?x4xf32>, %layer: index, %x: memref<4xf32>, %factor: f32) {
  %c0 = arith.constant 0 : index
  %v = vector.load %x[%c0] : memref<4xf32>, vector<4xf32>
  %factors = vector.broadcast %factor : f32 to vector<4xf32>
  %y = arith.mulf %v, %factors : vector<4xf32>
  vector.store %y, %cache[%layer, %c0] : memref<?x4xf32>, vector<4xf32>
  return
}
func.func @sum(%x: memref<?xf32>) -> f32 {
  %c0 = arith.constant 0 : index
  %v = memref.load %x[%c0] : memref<?xf32>
  return %v : f32
}
func.func @vectors(%x: vector<4xf32>) { return }
func.func @fixed(%x: memref<?xf32> {llvm.readonly}) { return }
"""


program = kvcache.jit(PUT, opt_level=0)
put = kvcache.torch.op(program, "put", mutates=["cache"])
append = kvcache.torch.op(kvcache.ops.append(PARAMS))
attend = kvcache.torch.op(kvcache.ops.attention(PARAMS, 4))


class Step(torch.nn.Module):
    """Attention layers of a decode step over one cache."""

    def __init__(self):
        super().__init__()
        self.qkv = torch.nn.ModuleList(torch.nn.Linear(32, 8 * 16) for _ in range(LAYERS))
        self.out = torch.nn.ModuleList(torch.nn.Linear(4 * 16, 32) for _ in range(LAYERS))

    def forward(self, x, blocks, lengths, lut, max_seq, max_cache, rows):
        cache = blocks, lengths, lut, max_seq, max_cache
        for layer, (qkv, out) in enumerate(zip(self.qkv, self.out)):
            q, k, v = qkv(x).view(-1, 8, 16).split([4, 2, 2], dim=1)
            append(*cache, layer, k.contiguous(), v.contiguous(), rows)
            y = torch.empty_like(q, memory_format=torch.contiguous_format)
            attend(*cache, layer, q.contiguous(), rows, y, q.new_empty(0, 4), 0.25)
            x = x + out(y.reshape(-1, 64))
        return x


def step_arguments(new, lengths):
    batch = len(lengths)
    return (
        torch.randn(batch * new, 32),
        torch.tensor(lengths, dtype=torch.int32),
        torch.randperm(batch * 4).int().view(batch, 4),
        new,
        max(lengths),
        torch.arange(0, batch * new + 1, new, dtype=torch.int32),
    )


STEPS = [(1, [3, 5]), (1, [4, 6, 2]), (4, [5, 7, 3]), (2, [9])]


@pytest.mark.parametrize("backend, dynamic", [("inductor", None), ("aot_eager", False), ("aot_eager", True)])
def test_compiled_step_changes_the_cache_in_place(backend, dynamic):
    torch.manual_seed(0)
    torch._dynamo.reset()
    step = Step().requires_grad_(False)
    compiled = torch.compile(step, fullgraph=True, dynamic=dynamic, backend=backend)
    cache = torch.randn(13, *PARAMS.shape_per_block)
    same = cache.clone()
    address = cache.data_ptr()
    for new, lengths in STEPS:
        x, *arguments = step_arguments(new, lengths)
        wanted = step(x, same, *arguments)
        torch.testing.assert_close(compiled(x, cache, *arguments), wanted, rtol=1e-5, atol=1e-6)
        assert cache.data_ptr() == address
        torch.testing.assert_close(cache, same, rtol=1e-5, atol=1e-6)


def test_compiled_step_gives_the_cache_itself_to_the_function():
    """Operators get the address of the caller's cache, without a copy.

    Backends other than Inductor may copy."""
    seen = []
    library = torch.library.Library("kvcache_test", "FRAGMENT")
    library.define("look(Tensor(a!) cache, SymInt layer) -> ()")
    library.impl("look", lambda cache, layer: seen.append((cache.data_ptr(), layer)), "CPU")
    torch.library.register_fake("kvcache_test::look", lambda cache, layer: None, lib=library)

    def step(cache, x):
        for layer in range(LAYERS):
            put(cache, layer, x, layer + 1.0)
            torch.ops.kvcache_test.look(cache, layer)

    torch._dynamo.reset()
    cache = torch.zeros(3, 4)
    torch.compile(step, fullgraph=True)(cache, torch.ones(4))
    assert seen == [(cache.data_ptr(), 0), (cache.data_ptr(), 1)]
    assert cache[:, 0].tolist() == [1, 2, 0]


@pytest.mark.parametrize("dynamic", [None, True])
def test_layers_as_numbers(dynamic):
    torch._dynamo.reset()
    compiled = torch.compile(
        lambda cache, x, i: put(cache, i, x, 2.0), fullgraph=True, backend="aot_eager", dynamic=dynamic
    )
    cache = torch.zeros(6, 4)
    for i in range(6):
        compiled(cache, torch.full((4,), i + 1.0), i)
    assert cache[:, 0].tolist() == [2, 4, 6, 8, 10, 12]


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize(
    "view", [lambda c, i: c[i:], lambda c, i: c[0:3], lambda c, i: c.view(-1, 4), lambda c, i: c.split(2)[1]]
)
def test_tracing_refuses_views(view, dynamic):
    torch._dynamo.reset()
    compiled = torch.compile(
        lambda cache, x, i: put(view(cache, i), 0, x, 1.0), fullgraph=True, backend="aot_eager", dynamic=dynamic
    )
    cache = torch.zeros(6, 4)
    with pytest.raises(torch._dynamo.exc.TorchRuntimeError, match="'cache'.*pass the whole cache"):
        compiled(cache, torch.ones(4), 1)
    assert not cache.any()
    put(view(cache, 1), 0, torch.ones(4), 1.0)  # not compiled, it is right
    assert cache.sum() == 4


def test_views_from_outside_are_refused():
    torch._dynamo.reset()
    compiled = torch.compile(lambda cache, x: put(cache, 0, x, 1.0), fullgraph=True, backend="aot_eager")
    for view in (torch.zeros(6, 4)[2:], torch.zeros(6, 4)[:2]):
        with pytest.raises(torch._dynamo.exc.TorchRuntimeError, match="pass the whole cache"):
            compiled(view, torch.ones(4))


def test_pages_of_a_manager():
    memory = kvcache.ArrayMemory(torch)
    manager = kvcache.PagedKVCacheManager(PARAMS, max_batch_size=2, max_seq_len=32, num_pages=8, memory=memory)
    manager.claim("a", np.arange(5))
    inputs = manager.inputs(["a"])
    keys, values = torch.randn(2, 5, 2, 16)
    torch._dynamo.reset()
    compiled = torch.compile(append, fullgraph=True, backend="aot_eager")
    compiled(*inputs.collection(), 1, keys, values, torch.from_numpy(inputs.row_offsets))
    page = int(inputs.lut[0, 1].to(torch.int64))
    torch.testing.assert_close(manager.blocks[0][page, 0, 1, 0], keys[4])


def test_opcheck():
    x, *arguments = step_arguments(2, [3, 5])
    rows = arguments.pop()
    cache = torch.randn(9, *PARAMS.shape_per_block), *arguments
    keys, values = torch.randn(2, 4, 2, 16)
    torch.library.opcheck(append, (*cache, 1, keys, values, rows))
    q = torch.randn(4, 4, 16)
    torch.library.opcheck(attend, (*cache, 1, q, rows, q.clone(), torch.empty(4, 4), 0.25))


def test_one_operator_for_equal_arguments():
    again = kvcache.jit(PUT, opt_level=0)
    assert kvcache.torch.op(again, "put", mutates=["cache"]) is put
    other = kvcache.torch.op(kvcache.jit(PUT, opt_level=1), "put", mutates=["cache"])
    assert other is not put
    assert str(put._schema).endswith("(Tensor(a0!) cache, SymInt layer, Tensor x, float factor) -> ()")


@pytest.mark.parametrize(
    "name, mutates, error, message",
    [
        ("put", None, ValueError, "expects 'mutates'"),
        ("put", ["caches"], ValueError, "'mutates' has caches; the arrays of put are cache, x"),
        ("sum", ["x"], ValueError, "without results, sum has 1"),
        ("fixed", ["x"], ValueError, r"argument 0 \('x'\) is read-only"),
        ("vectors", [], TypeError, r"argument 0 \('x'\) is a vector<4xf32>"),
        ("no", [], ValueError, "there is no function 'no'"),
        (None, [], ValueError, "'name' to be one of a function"),
    ],
)
def test_wrong_functions(name, mutates, error, message):
    with pytest.raises(error, match=message):
        kvcache.torch.op(program, name, mutates=mutates)


def test_functions_of_emulated_chips():
    emulated = kvcache.jit(PUT, target="emulator:sm_90a", opt_level=0)
    with pytest.raises(ValueError, match="for target 'cpu', got one for 'emulator:sm_90a'"):
        kvcache.torch.op(emulated, "put", mutates=["cache"])
    with pytest.raises(TypeError, match="'function' to be a JitModule"):
        kvcache.torch.op(PUT, "put", mutates=["cache"])


def test_wrong_arguments():
    with pytest.raises(ValueError, match="outside of autograd"):
        put(torch.zeros(4, 4, requires_grad=True), 0, torch.ones(4), 1.0)
    with pytest.raises(TypeError, match="an array of float32"):
        put(torch.zeros(4, 4, dtype=torch.float64), 0, torch.ones(4), 1.0)
