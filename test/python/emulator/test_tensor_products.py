"""tcgen05.mma of every kind against products in f64, with operands placed by the ISA's layouts.

Where elements go is written down here from the PTX ISA's "Canonical Layouts" and "Data Path
Layout Organization", and the bits of descriptors from its tables.
"""

import dataclasses
import functools

import ml_dtypes
import numpy as np
import pytest
import tensor_memory
from tensor_memory import FUNCTION, KERNEL

import kvcache

# Elements by their names: NumPy's type, bits, and the code in the instruction descriptor.
ELEMENTS = {
    "f16": (np.float16, 16, 0),
    "bf16": (ml_dtypes.bfloat16, 16, 1),
    "tf32": (np.float32, 32, 2),
    "e4m3": (ml_dtypes.float8_e4m3fn, 8, 0),
    "e5m2": (ml_dtypes.float8_e5m2, 8, 1),
    "e2m3": (ml_dtypes.float6_e2m3fn, 6, 3),
    "e3m2": (ml_dtypes.float6_e3m2fn, 6, 4),
    "e2m1": (ml_dtypes.float4_e2m1fn, 4, 5),
    "u8": (np.uint8, 8, 0),
    "s8": (np.int8, 8, 1),
}
RESULTS = {"f16": 0, "f32": 1, "s32": 2}
# The codes of swizzles in descriptors of tcgen05, and the bytes of a row of the pattern.
SWIZZLES = {"none": (0, 16), "32": (6, 32), "64": (4, 64), "128": (2, 128), "128/32": (1, 128)}


@dataclasses.dataclass(frozen=True)
class Case:
    kind: str
    a: str
    b: str
    d: str
    m: int
    n: int
    swizzle: str = "none"
    transposed: tuple[bool, bool] = (False, False)
    tensor_a: bool = False
    accumulates: bool = True
    negated: tuple[bool, bool] = (False, False)
    saturates: bool = False
    scale: int = 0
    lane: int = 0
    steps: int = 2

    @property
    def k(self):
        """Elements of K of one instruction: 32 bytes."""
        return 256 // max(ELEMENTS[self.a][1], 8)

    @property
    def instruction(self):
        bits = RESULTS[self.d] << 4 | ELEMENTS[self.a][2] << 7 | ELEMENTS[self.b][2] << 10
        bits |= self.saturates << 3 | self.negated[0] << 13 | self.negated[1] << 14
        bits |= self.transposed[0] << 15 | self.transposed[1] << 16
        return bits | self.n >> 3 << 17 | self.m >> 4 << 24


# Bits of the ISA's tables, as CUTLASS's headers compute them on the host.
@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (Case("f16", "bf16", "bf16", "f32", 128, 128), 0x08200490),
        (Case("f16", "bf16", "bf16", "f32", 128, 128, transposed=(False, True)), 0x08210490),
        (Case("f8f6f4", "e4m3", "e4m3", "f32", 128, 256), 0x08400010),
    ],
)
def test_golden_instruction_descriptors(case, expected):
    assert case.instruction == expected


def make_descriptor(start, leading, stride, swizzle):
    code = SWIZZLES[swizzle][0]
    return start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | 1 << 46 | code << 61


def test_golden_matrix_descriptor():
    assert make_descriptor(0, 16, 1024, "128") == 0x4000404000010000


# Operands in shared memory


def to_bytes(values, element):
    """Lines of elements as bytes; of less than 8 bits 16 elements begin 16 bytes."""
    dtype, bits, _ = ELEMENTS[element]
    values = np.ascontiguousarray(values.astype(dtype))
    if bits >= 8:
        return values.view(np.uint8).reshape(len(values), -1)
    codes = values.view(np.uint8).reshape(len(values), -1, 16).astype(object)
    words = sum(codes[:, :, i] << bits * i for i in range(16))
    lines = [b"".join(word.to_bytes(16, "little") for word in line) for line in words]
    return np.array([list(line) for line in lines], np.uint8)


@dataclasses.dataclass
class Placed:
    """A tile in shared memory, and the descriptors of its steps along K."""

    memory: np.ndarray
    descriptors: list[int]


def place(values, element, swizzle, transposed, steps):
    """Rows of K elements; transposed, the rows are contiguous, not K."""
    rows, span = len(values), SWIZZLES[swizzle][1]
    lines = to_bytes(values.T if transposed else values, element)
    units = lines.shape[1] // 16
    if transposed:
        atom = 4 if swizzle == "128/32" else 8
        chunk = atom * span  # of `atom` lines of a span
        chunks = -(-16 * units // span)
        leading, stride = (chunk * chunks, chunk) if swizzle == "none" else (chunk, chunk * chunks)

        def find(line, byte):
            return line // atom * chunk * chunks + byte // span * chunk + line % atom * span + byte % span

        starts = [find(i * len(lines) // steps, 0) for i in range(steps)]
    else:
        stride = 8 * span
        leading = rows * 16 if swizzle == "none" else 16

        def find(line, byte):
            return byte // span * rows * span + line * span + byte % span

        starts = [find(0, 32 * i) for i in range(steps)]
    memory = np.zeros(MEMORY, np.uint8)
    for line, byte in np.ndindex(len(lines), units):
        at = find(line, 16 * byte)
        if swizzle == "128/32":
            at ^= (at >> 7 & 3) << 5
        else:
            at ^= (at >> 7 & (span // 16 - 1)) << 4
        memory[at : at + 16] = lines[line, 16 * byte : 16 * byte + 16]
    descriptors = [make_descriptor(start, leading, stride, swizzle) for start in starts]
    return Placed(memory, descriptors)


# Operands in tensor memory


def get_lanes(m, first):
    """The lanes of rows: of 64 rows, 16 in each quarter of the lanes."""
    rows = np.arange(m)
    return first + (rows % 16 + rows // 16 * 32 if m == 64 else rows)


# Kernels

MEMORY = 1 << 16
TILE = f"memref<{MEMORY}xi8, #gpu.address_space<workgroup>>"
BYTES, LONGS = f"memref<{MEMORY}xi8>", "memref<8xi64>"
PARAMETERS = (
    f"%a: {BYTES}, %b: {BYTES}, %descriptors_a: {LONGS}, %descriptors_b: {LONGS}, "
    "%words_a: memref<128x32xi32>, %d: memref<128x256xi32>, %place: i32, %instruction: i32, "
    "%accumulates: i32, %steps: index, %mask: memref<4xi32>"
)
PRODUCT = """
    %a_tile = memref.get_global @a : {tile}
    %b_tile = memref.get_global @b : {tile}
    %a_index = memref.extract_aligned_pointer_as_index %a_tile : {tile} -> index
    %b_index = memref.extract_aligned_pointer_as_index %b_tile : {tile} -> index
    %a_i64 = arith.index_cast %a_index : index to i64
    %b_i64 = arith.index_cast %b_index : index to i64
    %a_shared = llvm.inttoptr %a_i64 : i64 to !llvm.ptr<3>
    %b_shared = llvm.inttoptr %b_i64 : i64 to !llvm.ptr<3>
    %bar = llvm.mlir.addressof @bar : !llvm.ptr<3>
    %c16 = arith.constant 16 : index
    %c2048 = arith.constant 2048 : index
    %size = arith.constant 65536 : index
    %byte = arith.muli %t, %c16 : index
    scf.for %i = %byte to %size step %c2048 {{
      %i_i32 = arith.index_cast %i : index to i32
      %from_a = vector.load %a[%i] : {bytes}, vector<16xi8>
      %from_b = vector.load %b[%i] : {bytes}, vector<16xi8>
      %to_a = llvm.getelementptr %a_shared[%i_i32] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
      %to_b = llvm.getelementptr %b_shared[%i_i32] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
      llvm.store %from_a, %to_a {{alignment = 16 : i64}} : vector<16xi8>, !llvm.ptr<3>
      llvm.store %from_b, %to_b {{alignment = 16 : i64}} : vector<16xi8>, !llvm.ptr<3>
    }}
    %half = arith.constant 128 : index
    %tensor_d = llvm.inttoptr %warp_address : i32 to !llvm.ptr<6>
    %tensor_d2 = llvm.getelementptr %tensor_d[128] : (!llvm.ptr<6>) -> !llvm.ptr<6>, i8
    %tensor_words = llvm.getelementptr %tensor_d[256] : (!llvm.ptr<6>) -> !llvm.ptr<6>, i8
    %before = vector.load %d[%t, %c0] : memref<128x256xi32>, vector<128xi32>
    %before2 = vector.load %d[%t, %half] : memref<128x256xi32>, vector<128xi32>
    %words = vector.load %words_a[%t, %c0] : memref<128x32xi32>, vector<32xi32>
    nvvm.tcgen05.st %tensor_d, %before {{shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>}} : vector<128xi32>
    nvvm.tcgen05.st %tensor_d2, %before2 {{shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>}} : vector<128xi32>
    nvvm.tcgen05.st %tensor_words, %words {{shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>}} : vector<32xi32>
    nvvm.tcgen05.wait #nvvm.tcgen05_wait<store>
    %is_issuer = arith.cmpi eq, %t, %c0 : index
    %one = arith.constant 1 : i32
    %zero = arith.constant 0 : i32
    scf.if %is_issuer {{
      nvvm.mbarrier.init %bar, %one : !llvm.ptr<3>, i32
    }}
    nvvm.fence.proxy {{kind = #nvvm.proxy_kind<async>}}
    nvvm.tcgen05.fence #nvvm.tcgen05_fence<before>
    nvvm.barrier0
    nvvm.tcgen05.fence #nvvm.tcgen05_fence<after>
    scf.if %is_issuer {{
      %four = llvm.mlir.constant(4 : i64) : i64
      %a_units = llvm.lshr %a_i64, %four : i64
      %b_units = llvm.lshr %b_i64, %four : i64
      %d_address = arith.addi %base, %place : i32
      %to = llvm.inttoptr %d_address : i32 to !llvm.ptr<6>
      %lane_bits = arith.constant -65536 : i32
      %lanes = arith.andi %place, %lane_bits : i32
      %disabled = vector.load %mask[%c0] : memref<4xi32>, vector<4xi32>
      scf.for %i = %c0 to %steps step %c1 {{
        %da = memref.load %descriptors_a[%i] : {longs}
        %db = memref.load %descriptors_b[%i] : {longs}
        %at_a = llvm.add %da, %a_units : i64
        %at_b = llvm.add %db, %b_units : i64
        %is_later = arith.cmpi ne, %i, %c0 : index
        %is_added = arith.cmpi ne, %accumulates, %zero : i32
        %adds = arith.ori %is_later, %is_added : i1
        %i_i32 = arith.index_cast %i : index to i32
        %eight = arith.constant 8 : i32
        %c256 = arith.constant 256 : i32
        %column = arith.muli %i_i32, %eight : i32
        %words_column = arith.addi %column, %c256 : i32
        %words_base = arith.addi %base, %words_column : i32
        %words_address = arith.addi %words_base, %lanes : i32
        %at_words = llvm.inttoptr %words_address : i32 to !llvm.ptr<6>
        {scale_constant}
        nvvm.tcgen05.mma %to, {operand_a}, %at_b, %instruction, %adds {scale} mask = %disabled
            {{kind = #nvvm.tcgen05_mma_kind<{kind}>, ctaGroup = #nvvm.cta_group<cta_1>}}
            : (!llvm.ptr<6>, {type_a}, i64, i32, i1, {scale_type}vector<4xi32>)
      }}
      nvvm.tcgen05.commit %bar : !llvm.ptr<3>
    }}
    nvvm.mbarrier.try_wait.parity %bar, %zero, %zero : !llvm.ptr<3>, i32, i32
    nvvm.tcgen05.fence #nvvm.tcgen05_fence<after>
    %after = nvvm.tcgen05.ld %tensor_d {{shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>}} : vector<128xi32>
    %after2 = nvvm.tcgen05.ld %tensor_d2 {{shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>}} : vector<128xi32>
    nvvm.tcgen05.wait #nvvm.tcgen05_wait<load>
    vector.store %after, %d[%t, %c0] : memref<128x256xi32>, vector<128xi32>
    vector.store %after2, %d[%t, %half] : memref<128x256xi32>, vector<128xi32>
"""
SHARED = f"""
  memref.global "private" @a : {TILE} = uninitialized {{alignment = 1024}}
  memref.global "private" @b : {TILE} = uninitialized {{alignment = 1024}}
  llvm.mlir.global internal @bar() {{addr_space = 3 : i32, alignment = 8 : i64}} : !llvm.array<2 x i64>
"""
SCALES = {"f16": (0, 3), "tf32": (0, 3), "f8f6f4": (0,), "i8": (0,)}


def get_name(kind, tensor_a, scale):
    return f"{kind}_{'tensor' if tensor_a else 'shared'}_{scale}"


@functools.cache
def write_program():
    kernels, functions = [SHARED], []
    for kind, scales in SCALES.items():
        for tensor_a in (False, True):
            for scale in scales:
                name = get_name(kind, tensor_a, scale)
                body = PRODUCT.format(
                    bytes=BYTES,
                    tile=TILE,
                    longs=LONGS,
                    kind=kind,
                    operand_a="%at_words" if tensor_a else "%at_a",
                    type_a="!llvm.ptr<6>" if tensor_a else "i64",
                    scale_constant=f"%s = llvm.mlir.constant({scale} : i64) : i64",
                    scale="scale = %s" if scale else "",
                    scale_type="i64, " if scale else "",
                )
                kernels.append(KERNEL.format(name=name, parameters=PARAMETERS, columns=512, body=body))
                functions.append(FUNCTION.format(name=name, parameters=PARAMETERS, threads=128))
    return tensor_memory.write_module(kernels, functions)


@functools.cache
def compile(sanitize):
    return kvcache.jit(
        write_program(), target="emulator:sm_100a", opt_level=0, sanitize=sanitize
    )


# Data


def make_values(rng, element, shape):
    dtype = ELEMENTS[element][0]
    if np.issubdtype(dtype, np.integer):
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    return rng.standard_normal(shape).astype(np.float32).astype(dtype)


def to_f64(values, element):
    """The numbers that a product has of elements; of tf32 without the low bits."""
    if element == "tf32":
        values = (values.view(np.uint32) & ~np.uint32(0x1FFF)).view(np.float32)
    return values.astype(np.float64)


def encode_words(values, d):
    if d == "f16":
        return values.astype(np.float16).view(np.uint16).astype(np.int32)
    return values.astype(np.float32 if d == "f32" else np.int32).view(np.int32)


def decode_words(words, d):
    if d == "f16":
        return words.astype(np.uint16).view(np.float16).astype(np.float64)
    return words.view(np.float32 if d == "f32" else np.int32).astype(np.float64)


def run(case, sanitize=True, mask=(0, 0, 0, 0)):
    rng = np.random.default_rng(3)
    k = case.k * case.steps
    a = make_values(rng, case.a, (case.m, k))
    b = make_values(rng, case.b, (case.n, k))
    c = rng.standard_normal((case.m, case.n)) if case.d != "s32" else rng.integers(
        -(1 << 31), 1 << 31, (case.m, case.n)
    ) if case.saturates else rng.integers(-9, 9, (case.m, case.n))
    placed_a = place(a, case.a, case.swizzle, case.transposed[0], case.steps)
    placed_b = place(b, case.b, case.swizzle, case.transposed[1], case.steps)
    lanes, column = get_lanes(case.m, case.lane), 256 - case.n
    words_a = np.zeros((128, 32), np.int32)
    if case.tensor_a:
        words_a[lanes, : 8 * case.steps] = to_bytes(a, case.a).view(np.int32)
    d = rng.integers(0, 1 << 30, (128, 256), dtype=np.int32)
    columns = slice(column, column + case.n)
    d[lanes, columns] = encode_words(c, case.d)
    before = d.copy()
    descriptors = [
        np.array(p.descriptors + [0] * (8 - case.steps), np.uint64).view(np.int64)
        for p in (placed_a, placed_b)
    ]
    compile(sanitize).call(
        get_name(case.kind, case.tensor_a, case.scale),
        placed_a.memory.view(np.int8),
        placed_b.memory.view(np.int8),
        *descriptors,
        words_a,
        d,
        case.lane << 16 | column,
        case.instruction,
        int(case.accumulates),
        case.steps,
        np.array(mask, np.uint32).view(np.int32),
    )
    signs = [-1.0 if negated else 1.0 for negated in case.negated]
    added = decode_words(before[lanes, columns], case.d) if case.accumulates else 0
    for step in range(case.steps):
        part = slice(step * case.k, (step + 1) * case.k)
        product = (signs[0] * to_f64(a[:, part], case.a)) @ (signs[1] * to_f64(b[:, part], case.b)).T
        added = added * 2.0**-case.scale + product
    expected = added
    if case.saturates:
        expected = np.clip(expected, -(1 << 31), (1 << 31) - 1)
    is_on = np.array([not mask[lane // 32] >> lane % 32 & 1 for lane in lanes])
    tolerance = {"f16": 4e-3, "f32": 1e-5, "s32": 0}[case.d]
    np.testing.assert_allclose(
        decode_words(d[lanes, columns], case.d)[is_on], expected[is_on], tolerance, tolerance * 20
    )
    untouched = np.ones((128, 256), bool)
    untouched[lanes[is_on], columns] = False
    np.testing.assert_array_equal(d[untouched], before[untouched])


KINDS = [
    Case("f16", "bf16", "bf16", "f32", 128, 128),
    Case("f16", "f16", "f16", "f16", 64, 8),
    Case("tf32", "tf32", "tf32", "f32", 128, 64),
    Case("i8", "s8", "u8", "s32", 128, 48),
    Case("i8", "u8", "s8", "s32", 64, 24, saturates=True),
    *[
        Case("f8f6f4", a, b, "f32", 128, 32)
        for a, b in zip(("e4m3", "e5m2", "e2m3", "e3m2", "e2m1"), ("e2m1", "e4m3", "e5m2", "e2m3", "e3m2"))
    ],
    Case("f8f6f4", "e4m3", "e4m3", "f16", 64, 256),
]


@pytest.mark.parametrize("case", KINDS, ids=str)
def test_kinds(case):
    run(case)


@pytest.mark.parametrize("swizzle", ["none", "32", "64", "128"])
@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize(("kind", "element"), [("f16", "bf16"), ("f8f6f4", "e4m3")])
def test_layouts(kind, element, swizzle, transposed):
    steps = 2 if swizzle == "32" else 4
    run(Case(kind, element, element, "f32", 128, 128, swizzle, transposed, steps=steps))


@pytest.mark.parametrize("n", [32, 256])
def test_transposed_words(n):
    run(Case("tf32", "tf32", "tf32", "f32", 64, n, "128/32", (True, True)))


@pytest.mark.parametrize(
    ("kind", "a", "d"),
    [("f16", "bf16", "f32"), ("tf32", "tf32", "f32"), ("f8f6f4", "e5m2", "f32"), ("i8", "s8", "s32")],
)
@pytest.mark.parametrize(("m", "lane"), [(128, 0), (64, 0), (64, 16)])
def test_a_in_tensor_memory(kind, a, d, m, lane):
    run(Case(kind, a, a, d, m, 64, tensor_a=True, lane=lane))


@pytest.mark.parametrize(
    "change",
    [
        {"accumulates": False},
        {"scale": 3},
        {"negated": (True, False)},
        {"negated": (False, True)},
        {"m": 64, "lane": 16},
    ],
    ids=str,
)
def test_options(change):
    case = Case("f16", "f16", "f16", "f32", 128, 64)
    run(dataclasses.replace(case, **change))


def test_disabled_lanes():
    run(Case("f16", "bf16", "bf16", "f32", 128, 32), mask=(0x80000001, 0, 0xFFFF, 0))


def test_without_the_sanitizer():
    run(Case("f16", "bf16", "bf16", "f32", 128, 256, "128", steps=4), sanitize=False)
