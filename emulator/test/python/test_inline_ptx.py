# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions of inline PTX compute what the PTX ISA says, on data and against NumPy."""

import ml_dtypes
import numpy as np
import pytest

import kvcache

RANDOM = np.random.default_rng(3)
A, B, C = RANDOM.integers(0, 1 << 32, (3, 32), dtype=np.uint64).astype(np.uint32)
A[:4] = 0, 1, 0x80000000, 0xFFFFFFFF
B[:4] = 0xFFFFFFFF, 0x80000000, 1, 0
X, Y, Z = RANDOM.standard_normal((3, 32)).astype(np.float32) * 8
X[:3] = 0.0, -0.0, np.inf
M = 0xFFFFFFFF
BF16, F16, E4M3 = ml_dtypes.bfloat16, np.float16, ml_dtypes.float8_e4m3fn


def signed(x):
    return x.astype(np.int32)


def wide(x):
    return x.astype(np.uint64)


def low(x):
    return x.astype(np.uint64).astype(np.uint32)


def bits(x):
    return x.astype(np.float32).view(np.uint32)


def pack(high, low, dtype):
    integer = np.dtype(f"u{np.dtype(dtype).itemsize}")
    shift = 8 * integer.itemsize
    parts = [wide(x.astype(dtype).view(integer)) for x in (high, low)]
    return (parts[0] << shift | parts[1]).astype(np.uint32)


def pick_bytes():
    whole = wide(B) << 32 | wide(A)
    number = sum(
        (whole >> (8 * (C >> 4 * i & 7)).astype(np.uint64) & 255) << 8 * i
        for i in range(4)
    )
    signs = sum(
        np.where(number >> (8 * i + 7) & 1, 255, 0).astype(np.uint64) << 8 * i
        for i in range(4)
    )
    takes_sign = sum((wide(C) >> 4 * i + 3 & 1) * 255 << 8 * i for i in range(4))
    return low(number & ~takes_sign | signs & takes_sign)


def shift_left(x, amount):
    return np.where(amount > 31, 0, x << np.minimum(amount, 31)).astype(np.uint32)


# Instructions with the result $0 and the operands $1, $2 and $3: a, b and c, or x, y
# and z; and the bits of the result.
INTEGERS = {
    "add.u32 $0, $1, $2;": A + B,
    "sub.s32 $0, $1, $2;": A - B,
    "mul.lo.u32 $0, $1, $2;": A * B,
    "mul.hi.u32 $0, $1, $2;": low(wide(A) * wide(B) >> 32),
    "mul.hi.s32 $0, $1, $2;": low(
        signed(A).astype(np.int64) * signed(B).astype(np.int64) >> 32
    ),
    "mad.lo.s32 $0, $1, $2, $3;": A * B + C,
    "mad.hi.u32 $0, $1, $2, $3;": low((wide(A) * wide(B) >> 32) + wide(C)),
    "{.reg .u64 w; .reg .u32 l; mul.wide.u32 w, $1, $2; mov.b64 {l, $0}, w;}": low(
        wide(A) * wide(B) >> 32
    ),
    "{.reg .u64 w; mov.b64 w, {$1, $2}; shr.u64 w, w, 16; cvt.u32.u64 $0, w;}": low(
        (wide(B) << 32 | wide(A)) >> 16
    ),
    "min.s32 $0, $1, $2;": np.minimum(signed(A), signed(B)),
    "max.u32 $0, $1, $2;": np.maximum(A, B),
    "and.b32 $0, $1, $2;": A & B,
    "or.b32 $0, $1, 0xFF;": A | 0xFF,
    "not.b32 $0, $1;": ~A,
    "neg.s32 $0, $1;": -A,
    "abs.s32 $0, $1;": np.abs(signed(A)),
    "lop3.b32 $0, $1, $2, $3, 0x96;": A ^ B ^ C,
    "lop3.b32 $0, $1, $2, $3, 0xca;": (A & B) | (~A & C),
    "prmt.b32 $0, $1, $2, $3;": pick_bytes(),
    "popc.b32 $0, $1;": np.bitwise_count(A),
    "activemask.b32 $0;": 1 << np.arange(32),
    "clz.b32 $0, $1;": np.array([32 - int(a).bit_length() for a in A]),
    "brev.b32 $0, $1;": np.array([int(f"{a:032b}"[::-1], 2) for a in A]),
    "{.reg .u32 n; and.b32 n, $2, 63; shl.b32 $0, $1, n;}": shift_left(A, B & 63),
    "shr.s32 $0, $1, 40;": signed(A) >> 31,
    "shr.u32 $0, $1, 40;": A * 0,
    "{.reg .pred p; setp.lt.s32 p, $1, $2; selp.b32 $0, $1, $3, p;}": np.where(
        signed(A) < signed(B), A, C
    ),
    "{.reg .pred p, q; setp.gt.u32 p|q, $1, $2; selp.u32 $0, 1, 0, q;}": A <= B,
    "{.reg .pred p; setp.ne.u32 p, $1, 0; setp.lo.and.u32 p, $1, $2, p; "
    "selp.u32 $0, 7, 8, p;}": np.where((A != 0) & (A < B), 7, 8),
    "mov.b32 $0, 5; {.reg .pred p; setp.ge.u32 p, $1, $2; @p add.u32 $0, $0, $1;}": (
        np.where(A >= B, A + 5, 5)
    ),
    "{.reg .u32 c; add.cc.u32 c, $1, $2; addc.u32 $0, $3, 0;}": C
    + (wide(A) + wide(B) >> 32).astype(np.uint32),
    "{.reg .u32 l; mad.lo.cc.u32 l, $1, $2, $3; madc.hi.u32 $0, $1, $2, 0;}": low(
        wide(A) * wide(B) + wide(C) >> 32
    ),
    "{.reg.u32 l; sub.cc.u32 l, $1, $2; subc.u32 $0, $3, 0;}": C
    - (A < B).astype(np.uint32),
    "bfind.u32 $0, $1;": np.array([int(a).bit_length() - 1 for a in A]),
    "bfind.shiftamt.s32 $0, $1;": np.array(
        [31 - i if (i := (int(a) ^ -(int(a) >> 31) & M).bit_length() - 1) >= 0 else -1
         for a in A]
    ),
    "shf.l.wrap.b32 $0, $1, $2, $3;": low(
        (wide(B) << 32 | wide(A)) << (wide(C) & 31) >> 32
    ),
    "shf.r.clamp.b32 $0, $1, $2, 40;": B,
    "dp4a.s32.u32 $0, $1, $2, $3;": (
        A.view(np.int8).astype(np.int32) * B.view(np.uint8)
    ).reshape(32, 4).sum(1)
    + signed(C),
    # The number of halvings of $1 & 255 until nothing is left.
    "{.reg .u32 n; .reg .pred p; and.b32 n, $1, 255; mov.u32 $0, 0; NEXT: "
    "setp.eq.u32 p, n, 0; @p bra DONE; shr.u32 n, n, 1; add.u32 $0, $0, 1; "
    "bra.uni NEXT; DONE: }": np.array([(int(a) & 255).bit_length() for a in A]),
    "mov.u32 $0, %laneid;": np.arange(32),
    "{.reg .b16 l, h; mov.b32 {l, h}, $1; mov.b32 $0, {h, l};}": A << 16 | A >> 16,
    "cvt.u32.u8 $0, $1;": A & 255,
    "cvt.s32.s8 $0, $1;": A.astype(np.int8).astype(np.int32),
    "cvt.rn.f32.s32 $0, $1;": bits(signed(A)),
    "cvt.rn.f32.u32 $0, $1;": bits(A),
}

FLOATS = {
    "add.f32 $0, $1, $2;": bits(X + Y),
    "sub.rn.f32 $0, $1, $2;": bits(X - Y),
    "mul.f32 $0, $1, 0f40000000;": bits(X * 2),
    "fma.rn.f32 $0, $1, $2, $3;": bits(
        X.astype(np.float64) * Y.astype(np.float64) + Z.astype(np.float64)
    ),
    "max.f32 $0, $1, $2;": bits(np.maximum(X, Y)),
    "neg.f32 $0, $1;": bits(-X),
    "abs.f32 $0, $1;": bits(np.abs(X)),
    "cvt.rni.f32.f32 $0, $1;": bits(np.rint(X)),
    "cvt.rzi.s32.f32 $0, $2;": Y.astype(np.int32),
    "set.lt.u32.f32 $0, $1, $2;": np.where(X < Y, M, 0),
    "{.reg .b32 p, q; cvt.rn.f16x2.f32 p, $2, $3; cvt.rn.f16x2.f32 q, $3, $2; "
    "set.gt.f16x2.f16x2 $0, p, q;}": pack(
        (Y.astype(F16) > Z.astype(F16)), (Z.astype(F16) > Y.astype(F16)), F16
    ),
    "{.reg .pred p; setp.geu.f32 p, $1, $2; selp.b32 $0, 1, 0, p;}": X >= Y,
    "cvt.rn.bf16x2.f32 $0, $2, $3;": pack(Y, Z, BF16),
    "cvt.rn.f16x2.f32 $0, $2, $3;": pack(Y, Z, F16),
    "{.reg .b16 p; cvt.rn.satfinite.e4m3x2.f32 p, $2, $3; cvt.u32.u16 $0, p;}": pack(
        Y, Z, E4M3
    ),
    "{.reg .b16 p; cvt.rn.satfinite.e4m3x2.f32 p, $2, $3; "
    "cvt.rn.f16x2.e4m3x2 $0, p;}": pack(Y.astype(E4M3), Z.astype(E4M3), F16),
    "{.reg .b32 p; cvt.rn.f16x2.f32 p, $2, $3; add.f16x2 $0, p, p;}": pack(
        Y.astype(F16) * F16(2), Z.astype(F16) * F16(2), F16
    ),
    "{.reg .b16 h; cvt.rn.f16.f32 h, $2; cvt.f32.f16 $0, h;}": bits(Y.astype(F16)),
    "{.reg .f64 d; cvt.f64.f32 d, $2; mul.f64 d, d, 0d4008000000000000; "
    "cvt.rn.f32.f64 $0, d;}": bits(Y.astype(np.float64) * 3),
}


def run(instructions, constraint, operands):
    """Lane t stores the result of instruction i at [i, t]."""
    names = ["a", "b", "c"]
    loads, bodies = [], []
    kind = "float" if constraint == "f" else "i32"
    for name in names:
        loads += [
            f"%p{name} = getelementptr i32, ptr addrspace(1) %{name}, i32 %t",
            f"%{name}0 = load {kind}, ptr addrspace(1) %p{name}",
        ]
    given = ", ".join(f"{kind} %{name}0" for name in names)
    for i, text in enumerate(instructions):
        bodies += [
            f'%r{i} = call i32 asm "{text}", "=r,{",".join([constraint] * 3)}"({given})',
            f"%i{i} = add i32 %t, {32 * i}",
            f"%q{i} = getelementptr i32, ptr addrspace(1) %out, i32 %i{i}",
            f"store i32 %r{i}, ptr addrspace(1) %q{i}",
        ]
    lines = "\n  ".join(loads + bodies)
    source = f"""
target triple = "nvptx64-nvidia-cuda"
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
define ptx_kernel void @kernel(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %c, ptr addrspace(1) %out) {{
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  {lines}
  ret void
}}
"""
    out = np.zeros((len(instructions), 32), np.uint32)
    kernel = kvcache.emulate(source, "sm_90a", opt_level=0).kernel("kernel")
    kernel.launch(1, 32, *operands, out)
    return dict(zip(instructions, out, strict=True))


@pytest.mark.parametrize(
    ("expected", "constraint", "operands"),
    [(INTEGERS, "r", (A, B, C)), (FLOATS, "f", (X, Y, Z))],
    ids=["integers", "floats"],
)
def test_instructions(expected, constraint, operands):
    computed = run(list(expected), constraint, operands)
    for text, result in expected.items():
        wanted = np.asarray(result).astype(np.int64).astype(np.uint32)
        np.testing.assert_array_equal(computed[text], wanted, err_msg=text)


SPACES = "global", "shared", "shared.cluster", "local"


def test_spaces():
    """Tests the spaces of pointers to global and shared memory, and to a variable.

    PTX asks for them, and functions with names of LLVM.
    """
    lines, number = [], 0
    for pointer in "global", "shared", "local":
        for space in SPACES:
            ptx = space.replace(".", "::")
            lines += [
                f"%s{number} = call i1 @llvm.nvvm.isspacep.{space}(ptr %{pointer})",
                f"%z{number} = zext i1 %s{number} to i32",
                f'%r{number} = call i32 asm "{{.reg .pred p; isspacep.{ptx} p, $1; '
                f'selp.u32 $0, 2, 0, p;}}", "=r,l"(ptr %{pointer})',
                f"%v{number} = or i32 %z{number}, %r{number}",
                f"%q{number} = getelementptr i32, ptr addrspace(1) %out, i32 {number}",
                f"store i32 %v{number}, ptr addrspace(1) %q{number}",
            ]
            number += 1
    declared = "\n".join(f"declare i1 @llvm.nvvm.isspacep.{space}(ptr)" for space in SPACES)
    body = "\n  ".join(lines)
    source = f"""
target triple = "nvptx64-nvidia-cuda"
@memory = internal addrspace(3) global [64 x i32] undef
{declared}
define ptx_kernel void @kernel(ptr addrspace(1) %out) {{
  %global = addrspacecast ptr addrspace(1) %out to ptr
  %shared = addrspacecast ptr addrspace(3) @memory to ptr
  %local = alloca i32
  {body}
  ret void
}}
"""
    out = np.zeros((3, 4), np.uint32)
    kvcache.emulate(source, "sm_90a", opt_level=0).kernel("kernel").launch(1, 1, out)
    np.testing.assert_array_equal(out, 3 * np.array([[1, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]]))
