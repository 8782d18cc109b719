"""Tests that need a GPU: PyTorch, CuPy and JAX, streams, graphs and errors."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from fill import FILL
from places import EXAMPLES

import kvcache
import kvcache.torch

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

PARAMS = kvcache.KVCacheParams("bf16", 2, 64, page_size=16, total_num_layers=2)
KERNEL = """
gpu.module @kernels {
  gpu.func @write(%x: memref<?xf32>, %value: f32) kernel {
    %t = gpu.global_id x
    memref.store %value, %x[%t] : memref<?xf32>
    gpu.return
  }
}
"""


class Step:
    """The arguments of a decode step, and its results."""

    def __init__(self, lengths=(40, 0, 63), seed=0):
        torch.manual_seed(seed)
        batch = len(lengths)
        self.blocks = torch.randn(4 * batch, *PARAMS.shape_per_block).bfloat16()
        self.lengths = torch.tensor(lengths, dtype=torch.int32)
        self.table = torch.randperm(4 * batch).int().view(batch, 4)
        self.offsets = torch.arange(batch + 1, dtype=torch.int32)
        self.keys, self.values = torch.randn(2, batch, 2, 64).bfloat16()
        self.queries = torch.randn(batch, 8, 64).bfloat16()
        self.out = torch.zeros_like(self.queries)
        self.lse = torch.zeros(batch, 8)

    def to(self, device):
        moved = object.__new__(Step)
        moved.__dict__ = {name: tensor.to(device, copy=True) for name, tensor in vars(self).items()}
        return moved

    @property
    def cache(self):
        return self.blocks, self.lengths, self.table, 1, 64, 1

    def run(self, append, attend, *workspace):
        append(*self.cache, self.keys, self.values, self.offsets)
        attend(*self.cache, self.queries, self.offsets, self.out, self.lse, 0.125, *workspace)

    def check(self, other):
        assert torch.equal(self.blocks.cpu(), other.blocks)
        assert (self.out.cpu().float() - other.out.float()).abs().max() < 0.02
        torch.testing.assert_close(self.lse.cpu(), other.lse, rtol=1e-3, atol=1e-3)


def functions(target, **options):
    append = kvcache.ops.append(PARAMS, target=target)
    attend = kvcache.ops.attention(PARAMS, 8, target=target, **options)
    return append.program.function("append"), attend.program.function("attention")


@pytest.fixture(scope="module")
def wanted():
    step = Step()
    step.run(*functions("cpu"))
    return step


def test_a_step_on_a_stream(wanted):
    step, stream = Step().to("cuda"), torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(10_000_000)
        step.run(*functions("cuda"))
    stream.synchronize()
    step.check(wanted)


def test_graph_of_a_split_step_replays(wanted):
    operation = kvcache.ops.attention(PARAMS, 8, target="cuda", split_tokens=16, max_splits=4)
    append, attend = functions("cuda", split_tokens=16, max_splits=4)
    step = Step((0, 0, 0)).to("cuda")
    workspace = torch.zeros(operation.workspace_size(3), dtype=torch.int8, device="cuda")
    step.run(append, attend, workspace)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step.run(append, attend, workspace)
    for lengths in ((40, 0, 63), (15, 16, 17)):
        other = Step(lengths)
        for name, tensor in vars(other).items():
            getattr(step, name).copy_(tensor)
        graph.replay()
        torch.cuda.synchronize()
        other.run(*functions("cpu"))
        step.check(other)
        assert not workspace[:16].any()


def test_operations_with_their_workspace(wanted):
    step = Step().to("cuda")
    inputs = kvcache.StepInputs.of(
        blocks=step.blocks, lengths=step.lengths, lut=step.table, row_offsets=step.offsets,
        max_seq_length=1, max_cache_length=64,
    )
    kvcache.ops.append(PARAMS, target="cuda")(inputs, 1, step.keys, step.values)
    attend = kvcache.ops.attention(PARAMS, 8, target="cuda", split_tokens=16, max_splits=4)
    attend(inputs, 1, step.queries, out=step.out, lse=step.lse, scale=0.125)
    step.check(wanted)


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_operators_of_torch(backend, wanted):
    append = kvcache.torch.op(kvcache.ops.append(PARAMS, target="cuda"))
    attend = kvcache.torch.op(kvcache.ops.attention(PARAMS, 8, target="cuda"))
    step = Step().to("cuda")

    @torch.compile(backend=backend, fullgraph=True)
    def run(blocks, lengths, table, keys, values, queries, offsets, out, lse):
        cache = blocks, lengths, table, 1, 64, 1
        append(*cache, keys * 1, values * 1, offsets)
        attend(*cache, queries, offsets, out, lse, 0.125)

    run(step.blocks, step.lengths, step.table, step.keys, step.values, step.queries, step.offsets, step.out, step.lse)
    step.check(wanted)


def test_a_library_and_a_kernel(tmp_path):
    import tvm_ffi

    program = kvcache.jit(FILL, "cuda")
    x = torch.zeros(40, device="cuda")
    program.save_library(tmp_path / "fill.so")
    tvm_ffi.load_module(tmp_path / "fill.so").fill(x, 1.5)
    assert (x == 1.5).all()
    kernel = kvcache.compile(KERNEL, "sm_80").kernel("write")
    given = {"x": x, "x.size0": 40, "value": 2.5}
    arguments = [given[parameter.name] for parameter in kernel.parameters]
    kernel.launch(5, 8, *arguments)
    assert (x == 2.5).all()
    kernel.launch(2, 8, *arguments[:-1], 3.5, programmatic=True, cluster=2)
    assert x.tolist() == [3.5] * 16 + [2.5] * 24


def test_arrays_of_cupy_and_jax():
    program = kvcache.jit(FILL, "cuda")
    cupy = pytest.importorskip("cupy")
    x = cupy.zeros(40, cupy.float32)
    with cupy.cuda.Stream(non_blocking=True) as stream:
        program.call("fill", x, 2.5, stream=stream)
        stream.synchronize()
    assert (x == 2.5).all()
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    jax = pytest.importorskip("jax")
    y = jax.numpy.zeros(40, jax.numpy.float32)
    program.function("fill")(y, 3.5)
    torch.cuda.synchronize()
    assert (np.asarray(y) == 3.5).all()


def test_arrays_of_the_host_are_copied():
    program = kvcache.jit(FILL, "cuda")
    x = np.zeros(40, np.float32)
    program.call("fill", x[8:16], 2.5, copy_host_arrays=True)
    assert (x == np.where(np.arange(40) // 8 == 1, 2.5, 0)).all()
    with pytest.raises(ValueError, match="got memory of the CPU"):
        program.call("fill", torch.zeros(40), 1.0)


def test_swaps_of_a_manager():
    memory = kvcache.CUDAMemory(torch, device="cuda")
    params = kvcache.KVCacheParams(
        "bf16", 2, 64, page_size=16, total_num_layers=2,
        enable_prefix_caching=True, enable_kvcache_swapping_to_host=True, host_kvcache_swap_space_gb=0.01,
    )
    manager = kvcache.PagedKVCacheManager(
        params, max_batch_size=2, max_seq_len=64, num_pages=5, memory=memory
    )
    append = kvcache.ops.append(PARAMS, target="cuda")
    manager.claim("a", np.arange(50))
    inputs = manager.inputs(["a"])
    keys, values = torch.randn(2, 50, 2, 64, device="cuda").bfloat16()
    for layer in range(2):
        append(inputs, layer, keys, values)
    manager.step(["a"])
    manager.swap_out("a")
    manager.claim("b", np.arange(100, 150))
    inputs = manager.inputs(["b"])
    for layer in range(2):
        append(inputs, layer, values, keys)
    manager.step(["b"])
    manager.release("b")
    manager.swap_in("a")
    manager.grow("a", [1])
    inputs = manager.inputs(["a"])
    gather = kvcache.ops.gather(PARAMS, target="cuda")
    read = [torch.zeros(1, 51, 2, 64, dtype=torch.bfloat16, device="cuda") for _ in range(2)]
    gather(inputs, 1, *read)
    assert torch.equal(read[0][0, :50], keys) and torch.equal(read[1][0, :50], values)


TRAPS = """
import sys, torch, kvcache
program = kvcache.jit(open(sys.argv[1]).read(), "cuda", filename="append.mlir", bounds_checks=True)
zeros = lambda *shape, dtype: torch.zeros(shape, dtype=dtype, device="cuda")
blocks = zeros(6, 2, 2, 64, 8, 128, dtype=torch.bfloat16)
table = torch.tensor([[77, 0]], dtype=torch.int32, device="cuda")
rows = zeros(2, 4, 8, 128, dtype=torch.bfloat16)
offsets = torch.tensor([0, 4], dtype=torch.int32, device="cuda")
args = blocks, zeros(1, dtype=torch.int32), table, 4, 4, 1, *rows, offsets
program.call("append", *args)
try:
    torch.cuda.synchronize()
except Exception as error:
    print("synchronize:", str(error).splitlines()[0])
try:
    program.call("append", *args)
except kvcache.CheckError as error:
    print("CheckError:", error)
"""


def test_a_kernel_that_traps():
    command = [sys.executable, "-c", TRAPS, str(EXAMPLES / "append.mlir")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    text = done.stdout + done.stderr
    assert "its check says" in done.stdout and "page id is out of range" in done.stdout, text
    assert "77 is not in [0, 6)" in text, text
