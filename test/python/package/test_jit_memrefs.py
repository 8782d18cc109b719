"""Tests of kvcache.jit: arrays as memrefs, and arrays that don't fit."""

import ml_dtypes
import numpy as np
import pytest
from edits import edit

import kvcache

COPY = """
func.func @copy(%from: memref<?x{type}>, %to: memref<?x{type}>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %from, %c0 : memref<?x{type}>
  scf.for %i = %c0 to %n step %c1 {{
    %v = memref.load %from[%i] : memref<?x{type}>
    memref.store %v, %to[%i] : memref<?x{type}>
  }}
  return
}}
"""


def element(memref, rank=1):
    """A module with a function that reads an element of a memref of i32."""
    indices = ", ".join(f"%i{dim}" for dim in range(rank))
    arguments = "".join(f", %i{dim}: index" for dim in range(rank))
    return f"""
func.func @element(%m: {memref}{arguments}) -> i32 {{
  %v = memref.load %m[{indices}] : {memref}
  return %v : i32
}}
"""


@pytest.mark.parametrize(
    "type, dtype",
    [
        ("i1", np.bool_),
        ("i8", np.int8),
        ("i8", np.uint8),
        ("i16", np.int16),
        ("i16", np.uint16),
        ("i32", np.int32),
        ("i32", np.uint32),
        ("i64", np.int64),
        ("i64", np.uint64),
        ("index", np.int64),
        ("f16", np.float16),
        ("bf16", ml_dtypes.bfloat16),
        ("f32", np.float32),
        ("f64", np.float64),
        ("f8E4M3FN", ml_dtypes.float8_e4m3fn),
        ("f8E5M2", ml_dtypes.float8_e5m2),
        ("f8E8M0FNU", ml_dtypes.float8_e8m0fnu),
    ],
)
def test_arrays_keep_their_bits(type, dtype):
    size = np.dtype(dtype).itemsize
    values = np.arange(1 << min(8 * size, 16), dtype=f"u{size}")
    if type == "i1":
        values &= 1
    source = values.view(dtype)
    target = np.zeros_like(source)
    kvcache.jit(COPY.format(type=type)).call("copy", source, target)
    assert source.tobytes() == target.tobytes()


def test_strides_come_from_the_array():
    program = kvcache.jit(element("memref<?x?xi32, strided<[?, ?], offset: ?>>", 2))
    base = np.arange(24, dtype=np.int32).reshape(4, 6)
    for array in (base, base.T, base[1:, ::2], base[::-1, ::-3], base[:1, 2:]):
        for i, j in np.ndindex(array.shape):
            assert program.call("element", array, i, j) == array[i, j]


def test_static_strides_are_checked():
    program = kvcache.jit(element("memref<?x4xi32, strided<[8, 2]>>", 2))
    base = np.arange(24, dtype=np.int32).reshape(3, 8)
    assert program.call("element", base[:, ::2], 2, 3) == 22
    message = "expects a stride of 8 elements in dimension 0 .* got 4"
    with pytest.raises(ValueError, match=message):
        program.call("element", np.zeros((3, 4), np.int32), 0, 0)


def test_static_offset_is_before_the_array():
    program = kvcache.jit(element("memref<4xi32, strided<[1], offset: 2>>"))
    assert program.call("element", np.arange(4, dtype=np.int32), 3) == 3


def test_identity_layout_needs_contiguous_arrays():
    program = kvcache.jit(element("memref<?x4xi32>", 2))
    array = np.arange(16, dtype=np.int32).reshape(4, 4)
    assert program.call("element", array, 3, 1) == 13
    with pytest.raises(ValueError, match="expects a C-contiguous array for memref<"):
        program.call("element", array.T, 0, 0)


def test_strides_of_single_elements_do_not_matter():
    array = np.arange(64, dtype=np.int32).reshape(4, 16)[2:3, 3:7]
    packed = kvcache.jit(element("memref<?x?xi32>", 2))
    assert packed.call("element", array, 0, 2) == array[0, 2]
    strided = kvcache.jit(element("memref<?x4xi32, strided<[99, 1]>>", 2))
    assert strided.call("element", array, 0, 3) == array[0, 3]


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
@pytest.mark.parametrize("layout", ["", ", strided<[7, ?]>"])
def test_empty_arrays(shape, layout):
    type = f"memref<?x?xi32{layout}>"
    program = kvcache.jit(f"""
func.func @sizes(%m: {type}) -> (index, index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.dim %m, %c0 : {type}
  %b = memref.dim %m, %c1 : {type}
  return %a, %b : index, index
}}
""")
    assert program.call("sizes", np.zeros(shape, np.int32)) == shape


def test_rank_zero():
    program = kvcache.jit("""
func.func @increment(%m: memref<i32>) {
  %v = memref.load %m[] : memref<i32>
  %c1 = arith.constant 1 : i32
  %w = arith.addi %v, %c1 : i32
  memref.store %w, %m[] : memref<i32>
  return
}
""")
    array = np.array(41, np.int32)
    program.call("increment", array)
    assert array == 42


@pytest.mark.parametrize(
    "array, error, message",
    [
        (
            np.zeros((2, 3), np.float32),
            TypeError,
            "array of int32 or uint32 .* float32",
        ),
        (np.zeros((2, 3), ">i4"), TypeError, "int32 in another byte order"),
        ([[1, 2, 3]], TypeError, "expects an array for .*, got list"),
        (None, TypeError, "got NoneType"),
        (7, TypeError, r"expects an array of .*, got an int \(7\)"),
        (np.int32(7), TypeError, r"got an int \(7\)"),
        (np.zeros((2, 3), "S3"), TypeError, "array of numbers .* got one of bytes24"),
        (
            np.zeros(3, np.int32),
            ValueError,
            r"expects 2 dimensions .* 1 \(shape \(3,\)\)",
        ),
        (
            np.zeros((2, 4), np.int32),
            ValueError,
            "expects size 3 in dimension 1 .* got 4",
        ),
    ],
)
def test_wrong_arrays(array, error, message):
    program = kvcache.jit(element("memref<?x3xi32>", 2), filename="wrong.mlir")
    with pytest.raises(error, match=message) as raised:
        program.call("element", array, 0, 0)
    assert str(raised.value).startswith("element: argument 0 ('m') expects ")
    assert "memref<?x3xi32>" in str(raised.value)


def test_unaligned_arrays():
    memory = np.zeros(17, np.uint8)[1:].view(np.int32)
    with pytest.raises(ValueError, match="expects data at a multiple of 4 bytes"):
        kvcache.jit(element("memref<?xi32>")).call("element", memory, 0)


def test_cache_blocks_are_aligned_for_wide_accesses():
    program = kvcache.jit("""
#kv = #kvcache.params<num_heads = 1, head_size = 4>
!collection = !kvcache.paged_collection<f32, #kv, page_size = 1>
!cache = !kvcache.paged<f32, #kv, page_size = 1>
func.func @length(%blocks: memref<?x2x?x1x1x4xf32>, %lengths: memref<?xi32>,
                  %table: memref<?x?xi32>) -> index {
  %zero = arith.constant 0 : i32
  %c0 = arith.constant 0 : index
  %c = kvcache.paged_collection %blocks, %lengths, %table, %zero, %zero
         : memref<?x2x?x1x1x4xf32>, memref<?xi32>, memref<?x?xi32> -> !collection
  %k = kvcache.paged_view key %c[%c0] : !collection
  %n = kvcache.cache_length %k[%c0] : !cache
  return %n : index
}
func.func @call(%blocks: memref<?x2x4x1x1x4xf32>, %lengths: memref<?xi32>,
                %table: memref<?x?xi32>) -> index {
  %cast = memref.cast %blocks : memref<?x2x4x1x1x4xf32> to memref<?x2x?x1x1x4xf32>
  %n = call @length(%cast, %lengths, %table)
         : (memref<?x2x?x1x1x4xf32>, memref<?xi32>, memref<?x?xi32>) -> index
  return %n : index
}
""")
    memory = np.zeros(64, np.float32)
    aligned = -memory.ctypes.data // 4 % 4
    lengths, table = np.array([5], np.uint32), np.zeros((1, 1), np.uint32)
    shape = (1, 2, 4, 1, 1, 4)
    blocks = memory[aligned:][:32].reshape(shape)
    misaligned = memory[aligned + 1 :][:32].reshape(shape)
    for name in "length", "call":
        assert program.call(name, blocks, lengths, table) == 5
        with pytest.raises(ValueError, match="multiple of 16 bytes"):
            program.call(name, misaligned, lengths, table)


def test_read_only_arrays():
    array = np.arange(4, dtype=np.int32)
    array.flags.writeable = False
    with pytest.raises(
        ValueError, match="expects a writeable array .* {llvm.readonly}"
    ):
        kvcache.jit(element("memref<?xi32>")).call("element", array, 2)
    marked = edit(element("memref<?xi32>"), ("%m: memref<?xi32>", "%m: memref<?xi32> {llvm.readonly}"))
    assert kvcache.jit(marked).call("element", array, 2) == 2
