# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that Triton and clang have compiled run as NumPy computes, and public bugs of
other projects are found in kernels of ours that have the same mistake."""

import functools
import re

import numpy as np
import pytest
from foreign_kernels import CHECKS, check_append, check_matmul, random
from places import ROOT

import kvcache

KERNELS = ROOT / "test/python/support/kernels"


@functools.cache
def load(name, target, **options):
    return kvcache.emulate(KERNELS / name, target, opt_level=0, **options)


def shared_bytes(name):
    """Triton's kernels say in their first line what a launch must give them."""
    return int((KERNELS / name).read_text().split(maxsplit=2)[1])


# --- Triton ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "target", "options"),
    [
        ("append_sm90.llir", "sm_90a", {}),
        ("decode_sm80.llir", "sm_80", {}),
        ("matmul_sm90.llir", "sm_90a", {}),
        ("matmul_sm100.llir", "sm_100a", {"assume_fences": True}),
    ],
)
def test_triton(name, target, options):
    check = CHECKS[name.partition("_")[0]]
    check(load(name, target, **options), shared_bytes(name))


def test_open_scale():
    """Whether a wgmma adds the accumulators may be known only at run time."""
    name = "matmul_sm90.llir"
    text = (KERNELS / name).read_text()
    changed = re.sub(r"^(define .*{)$", r"\1\n  %adds = icmp ne i32 %3, 0", text, flags=re.M)
    changed = changed.replace("i1 true) #", "i1 %adds) #")
    assert changed.count("%adds") > 1
    check_matmul(kvcache.emulate(changed, "sm_90a", opt_level=0), shared_bytes(name))


def test_fences_that_triton_leaves_out():
    name = "matmul_sm100.llir"
    with pytest.raises(kvcache.CheckError, match="tcgen05.fence before"):
        check_matmul(load(name, "sm_100a"), shared_bytes(name))


def test_too_little_shared_memory():
    with pytest.raises(kvcache.CheckError, match="@global_smem, which has 0 bytes"):
        check_append(load("append_sm90.llir", "sm_90a"), shared_bytes=0)


LANES = """
target triple = "nvptx64-nvidia-cuda"
@tile = internal addrspace(3) global i32 undef
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
define ptx_kernel void @kernel() {{
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %group = lshr i32 %t, {0}
  store i32 %group, ptr addrspace(3) @tile
  ret void
}}
"""


def test_stores_of_the_same_value():
    """Lanes that have an element store it all, as Triton lets them."""
    kvcache.emulate(LANES.format(5), "sm_90a").kernel("kernel").launch(1, 32)
    with pytest.raises(kvcache.CheckError, match=r"without order between them \(a race\)"):
        kvcache.emulate(LANES.format(4), "sm_90a").kernel("kernel").launch(1, 32)


# --- Public bugs ----------------------------------------------------------------------


def cuda():
    return load("cuda_kernels.ll", "sm_90a")


def floats(*shape):
    return random(shape, np.float32)


def unwritten_values(module):
    """Values of which only the first 10 tokens are written."""
    values = module.empty((16, 32))
    module.write(values[:10], floats(10, 32))
    return values


ZEROS = functools.partial(np.zeros, dtype=np.float32)
BUGS = {
    "scratch_reuse": (
        lambda m: (1, 128, floats(256), ZEROS(2)),
        r"writes 4 bytes .* which thread .* reads .* without order between them \(a race\)",
    ),
    "partial_sums": (
        lambda m: (4, 32, floats(128), ZEROS(128), np.zeros(1, np.uint32), ZEROS(32)),
        r"block \(3, 0, 0\) reads 4 bytes .* which block \(0, 0, 0\) writes",
    ),
    "table_end": (
        lambda m: (1, 64, floats(96), np.arange(5, dtype=np.int32), 80, ZEROS(64)),
        "reads 4 bytes at byte 20 of an allocation of 20 bytes",
    ),
    "unwritten_values": (
        lambda m: (1, 32, floats(16), unwritten_values(m), 10, ZEROS(32)),
        "a value that depends on bytes which were uninitialized",
    ),
    "proxy_fence": (
        lambda m: (1, 128, floats(128), ZEROS(128)),
        r"without a proxy fence between them \(fence.proxy.async\)",
    ),
    "named_barrier": (
        lambda m: (1, 256, floats(128), ZEROS(128)),
        "deadlock.*\n.* for barrier 1, which has 128 of 256 threads",
    ),
    "partial_warp": (
        lambda m: (1, 40, floats(40), ZEROS(40)),
        "reads from lane 16 of its warp, which has ended or is not in the block",
    ),
    "padding_slot": (
        # No other array lies before these rows.
        lambda m: (3, 32, floats(96), np.array([1, 0, -1], np.int32), ZEROS((8, 32))[4:]),
        "writes 4 bytes at byte -128 of an allocation of 512 bytes",
    ),
    "live_mbarrier": (
        lambda m: (1, 32, floats(32), ZEROS(32)),
        "writes 4 bytes at byte 0 of shared .*, which is part of an mbarrier",
    ),
    "cluster_scope": (
        lambda m: (2, 32, floats(32), ZEROS(32)),
        r"of block \(1, 0, 0\), which thread .* writes .* without order between them",
    ),
}


@pytest.mark.parametrize("name", BUGS)
def test_bug(name):
    make, message = BUGS[name]
    module = cuda()
    cluster = 2 if name == "cluster_scope" else None
    with pytest.raises(kvcache.CheckError) as raised:
        module.kernel(name).launch(*make(module), cluster=cluster)
    assert re.search(message, str(raised.value)), raised.value
    assert "cuda_kernels.ll:" in str(raised.value)
    module.kernel(f"{name}_right").launch(*make(module), cluster=cluster)


def test_every_bug_is_in_the_table():
    page = (ROOT / "emulator/docs/find-a-bug-in-your-kernel.md").read_text()
    source = (KERNELS / "cuda_kernels.cu").read_text()
    kernels = cuda().kernels
    assert {k.removesuffix("_right") for k in kernels} == {*BUGS, "tensor_copy"}
    for project, kind, number in re.findall(
        r"^// --- (\S+) (issue|pull request) (\d+) ---$", source, re.MULTILINE
    ):
        place = "issues" if kind == "issue" else "pull"
        assert f"https://github.com/{project}/{place}/{number})" in page


# --- Arguments ------------------------------------------------------------------------


def copy_arguments():
    array = floats(8, 64)
    sums = ZEROS(64)
    return array, sums, kvcache.TensorMap(array, (32, 8)), (sums, 64, 0.5)


def test_structures():
    array, sums, tensor_map, output = copy_arguments()
    kernel = cuda().kernel("tensor_copy")
    assert [parameter.size for parameter in kernel.parameters] == [128, 16]
    kernel.launch(2, 32, tensor_map, output)
    np.testing.assert_allclose(sums, array.sum(0) / 2, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            lambda m, o: (m,),
            ValueError,
            r"tensor_copy has 2 parameters \(.*\), got 1 arguments",
        ),
        (
            lambda m, o: (m, o[:2]),
            ValueError,
            "parameter 1 expects 3 numbers and pointers for .*, got 2",
        ),
        (
            lambda m, o: (m, b"1234"),
            ValueError,
            "parameter 1 expects 16 bytes for .*, got 4",
        ),
        (
            lambda m, o: (m, 5),
            TypeError,
            r"parameter 1 expects bytes, a TensorMap or a tuple for .*, got int \(5\)",
        ),
        (
            lambda m, o: (m, (1.5, 64, 1.0)),
            TypeError,
            "parameter 1 expects an array or an address for",
        ),
        (
            lambda m, o: (m, (o[0], 2.5, 1.0)),
            TypeError,
            "parameter 1 expects an int for",
        ),
        (
            lambda m, o: (m, (o[0], 1 << 40, 1.0)),
            OverflowError,
            "parameter 1 expects an int of 32 bits for",
        ),
    ],
)
def test_wrong_arguments(arguments, error, message):
    _, _, tensor_map, output = copy_arguments()
    with pytest.raises(error, match=message):
        cuda().kernel("tensor_copy").launch(2, 32, *arguments(tensor_map, output))


def test_wrong_launches():
    module = cuda()
    kernel = module.kernel("proxy_fence_right")
    with pytest.raises(ValueError, match="there is no kernel 'nothing'; the module has"):
        module.kernel("nothing")
    with pytest.raises(ValueError, match="expects 'block': .* does not fix its size"):
        kernel.launch(1, None, floats(128), ZEROS(128))
    with pytest.raises(kvcache.CheckError, match="can have 1024 threads in a block"):
        kernel.launch(1, 2048, floats(128), ZEROS(128))
    with pytest.raises(kvcache.CheckError, match="reads 4 bytes at byte 400"):
        kernel.launch(1, 128, floats(100), ZEROS(128))
    constant = ZEROS(128)
    constant.flags.writeable = False
    with pytest.raises(kvcache.CheckError, match="writes 512 bytes"):
        kernel.launch(1, 128, floats(128), constant)


def test_wrong_tensor_maps():
    with pytest.raises(ValueError, match="a box of as many, got 2 and 1"):
        kvcache.TensorMap(floats(8, 64), (32,))
    with pytest.raises(ValueError, match="unknown swizzle '16b'"):
        kvcache.TensorMap(floats(8, 64), (32, 8), "16b")
    with pytest.raises(ValueError, match="expects strides of whole elements"):
        kvcache.TensorMap(floats(64, 8).T, (32, 8))
    with pytest.raises(ValueError, match="to be 0, 64, 128 or 256, got 32"):
        kvcache.TensorMap(floats(8, 64), (32, 8), l2_promotion=32)
    with pytest.raises(ValueError, match="tensor map: "):
        wide = kvcache.TensorMap(floats(8, 1024), (512, 8))
        cuda().kernel("tensor_copy").launch(2, 32, wide, (ZEROS(64), 64, 0.5))


def test_device_memory():
    module = cuda()
    array = module.empty((4, 8), np.int16)
    assert array.shape == (4, 8)
    assert array.ctypes.data % 256 == 0
    module.write(array[1:3], 7)
    assert (array[1:3] == 7).all()
    with pytest.raises(ValueError, match="expects contiguous rows of an array of 'empty'"):
        module.write(array[:, :2], 0)
    with pytest.raises(ValueError, match="expects contiguous rows of an array of 'empty'"):
        module.write(ZEROS(4), 0)


def test_meter():
    module = kvcache.emulate(
        KERNELS / "cuda_kernels.ll", "sm_90a", opt_level=0, sanitize=False, meter=True
    )
    module.kernel("proxy_fence_right").launch(1, 128, floats(128), ZEROS(128))
    (launch,) = module.launches
    assert launch.kernel == "@kernels::@proxy_fence_right"
    assert launch.global_bytes_read == 512
    assert launch.copies["bulk_store"].count == 1
    with pytest.raises(ValueError, match="nothing was counted"):
        cuda().launches  # noqa: B018, as it raises


def test_structures_without_a_layout():
    """Numbers are aligned as on a chip, also if the source doesn't say it."""
    source = """
    define ptx_kernel void @kernel({i32, i64} %x, <2 x float> %y, ptr addrspace(1) %out) {
      %a = extractvalue {i32, i64} %x, 1
      store i64 %a, ptr addrspace(1) %out
      ret void
    }
    """
    kernel = kvcache.emulate(source, "sm_90a", opt_level=0).kernel("kernel")
    out = np.zeros(1, np.int64)
    kernel.launch(1, 1, (7, 9), bytes(8), out)
    assert out == 9
    with pytest.raises(TypeError, match=r"parameter 1 expects bytes for vector<2xf32>"):
        kernel.launch(1, 1, (7, 9), (1.0,), out)


# --- Sources --------------------------------------------------------------------------

LLVM = """
target triple = "nvptx64-nvidia-cuda"
declare void @nowhere()
define ptx_kernel void @kernel(ptr addrspace(1) %p) {{
  {0}
  ret void
}}
"""


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            'call void asm sideeffect "vadd.s32.s32.s32 $0, 1, 2;", "r"(i32 0)',
            "k.ll:5:3: error: instruction 'vadd.s32.s32.s32' of inline PTX has no lowering",
        ),
        (
            "call void @nowhere()",
            "k.ll:5:3: error: 'llvm.call' op of @nowhere has no lowering for the emulator",
        ),
        ("%x = load i32, ptr undefined", "k.ll:5:22: error: expected value token"),
    ],
)
def test_wrong_sources(body, message):
    with pytest.raises(kvcache.CompileError) as raised:
        kvcache.emulate(LLVM.format(body), "sm_90a", "k.ll")
    assert message in str(raised.value)


def test_instruction_of_another_chip():
    body = 'call void asm sideeffect "griddepcontrol.wait;", ""()'
    with pytest.raises(kvcache.CompileError, match="k.ll:5:3: error: .*requires sm_90"):
        kvcache.emulate(LLVM.format(body), "sm_80", "k.ll")


def test_unknown_chip():
    with pytest.raises(ValueError, match="unknown chip 'sm_1'; known are sm_80"):
        kvcache.emulate(LLVM.format(""), "sm_1")


def test_mlir():
    """Kernels at the level of NVVM, with a target of their own."""
    module = kvcache.emulate(
        """
        gpu.module @own [#nvvm.target<chip = "sm_100a">] {
          llvm.func @lanes(%out: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>} {
            %lane = nvvm.read.ptx.sreg.laneid : i32
            %at = llvm.getelementptr %out[%lane] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
            llvm.store %lane, %at : i32, !llvm.ptr<1>
            llvm.return
          }
        }
        """,
        "sm_80",
    )
    out = np.zeros(32, np.int32)
    module.kernel("lanes").launch(1, None, out)
    assert (out == np.arange(32)).all()
    assert module.kernel("lanes").block_size == (32, 1, 1)
