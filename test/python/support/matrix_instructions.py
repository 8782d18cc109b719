"""Matrix instructions of the NVVM dialect, one line of text each."""

# The register of an element, and the tests' value of its type.
REGISTERS = {"f16": "vector<2xf16>", "f32": "f32", "f64": "f64"}
VALUES = {"vector<2xf16>": "%hh", "f32": "%f", "f64": "%d", "i32": "%i"}

# m, n, k, the type of A and B and their registers, and the types of C with theirs: PTX ISA,
# "Matrix Fragments for mma".
MMA = """
8 8 4 f16 2 2 f16 4 f32 8
16 8 8 f16 2 1 f16 2 f32 4
16 8 16 f16 4 2 f16 2 f32 4
16 8 8 bf16 2 1 f32 4
16 8 16 bf16 4 2 f32 4
16 8 4 tf32 2 1 f32 4
16 8 8 tf32 4 2 f32 4
8 8 4 f64 1 1 f64 2
8 8 16 s8 1 1 s32 2
16 8 16 s8 2 1 s32 4
16 8 32 u8 4 2 s32 4
8 8 32 s4 1 1 s32 2
16 8 32 u4 2 1 s32 4
16 8 64 s4 4 2 s32 4
8 8 128 b1 1 1 s32 2
16 8 128 b1 2 1 s32 4
16 8 256 b1 4 2 s32 4
"""

# The rows for wmma, where a fragment has one type: "Matrix Fragments for WMMA".
WMMA = """
16 16 16 f16 8 8 f16 4 f32 8
32 8 16 f16 8 8 f16 4 f32 8
8 32 16 f16 8 8 f16 4 f32 8
16 16 16 s8 2 2 s32 8
32 8 16 u8 4 1 s32 8
8 32 16 s8 1 4 s32 8
16 16 8 tf32 4 4 f32 8
8 8 4 f64 1 1 f64 2
"""

# The largest and the smallest n of wgmma, by k and the types.
WGMMA = "16 f16 f16,16 f16 f32,16 bf16 f32,8 tf32 f32,32 e4m3 f16,32 e5m2 f32,32 s8 s32,256 b1 s32"


def register(element):
    return REGISTERS.get(element, "i32")


def list_values(type, count):
    return ", ".join([VALUES[type]] * count)


def struct(type, count):
    return f"!llvm.struct<({', '.join([type] * count)})>"


def read_rows(table):
    """Reads a table: shape, A and B, and C of each row and type of C."""
    for m, n, k, element, a, b, *accumulators in map(str.split, table.strip().splitlines()):
        for c, count in zip(accumulators[::2], accumulators[1::2]):
            yield (int(m), int(n), int(k)), (element, int(a), int(b)), (c, int(count))


def write_mma(shape, multiplicands, accumulator):
    (m, n, k), (element, a, b), (c, count) = shape, multiplicands, accumulator
    ab, cd = register(element), register(c)
    attributes = [f"shape = #nvvm.shape<m = {m}, n = {n}, k = {k}>"]
    attributes += [f"layout{x} = #nvvm.mma_layout<{y}>" for x, y in (("A", "row"), ("B", "col"))]
    if ab == "i32":
        attributes += [f"multiplicand{x}PtxType = #nvvm.mma_type<{element}>" for x in "AB"]
    if element == "b1":
        attributes.append("b1Op = #nvvm.mma_b1op<xor_popc>")
    elif c == "s32":
        attributes.append("intOverflowBehavior = #nvvm.mma_int_overflow<satfinite>")
    return (
        f"nvvm.mma.sync A[{list_values(ab, a)}] B[{list_values(ab, b)}] C[{list_values(cd, count)}] "
        f"{{{', '.join(attributes)}}} : ({ab}, {ab}, {cd}) -> {struct(cd, count)}"
    )


def write_wmma(shape, multiplicands, accumulator):
    """Writes a load of A, the MMA, and a store."""
    (m, n, k), (element, a, b), (c, count) = shape, multiplicands, accumulator
    ab, cd = register(element), register(c)
    size = f"k = {k} : i32, m = {m} : i32, n = {n} : i32"
    row = "layout = #nvvm.mma_layout<row>"
    # The dialect's load never returns a single integer.
    loaded = ab if a == 1 else struct(ab, a)
    if loaded != "i32":
        yield (
            f"nvvm.wmma.load %p, %i {{eltype = #nvvm.mma_type<{element}>, frag = #nvvm.mma_frag<a>, "
            f"{row}, {size}}} : (!llvm.ptr) -> {loaded}"
        )
    values = ", ".join(list_values(*pair) for pair in ((ab, a), (ab, b), (cd, count)))
    types = ", ".join([ab] * (a + b) + [cd] * count)
    yield (
        f"nvvm.wmma.mma {values} {{eltypeA = #nvvm.mma_type<{element}>, eltypeB = #nvvm.mma_type<{c}>, "
        f"layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, {size}}} "
        f": ({types}) -> {struct(cd, count)}"
    )
    yield (
        f"nvvm.wmma.store %p, %i, {list_values(cd, count)} {{eltype = #nvvm.mma_type<{c}>, {row}, {size}}} "
        f": !llvm.ptr, {', '.join([cd] * count)}"
    )


def write_wgmma(k, element, c, n):
    count = n // 4 if c == "f16" else n // 2
    result = struct("vector<2xf16>" if c == "f16" else register(c), count)
    scale, layouts = "#nvvm.wgmma_scale_in<one>", ("row", "col")
    a, b = (f"{x} [<{element}>, {scale}, <{layout}>]" for x, layout in zip("AB", layouts))
    sat = ", <satfinite>" if c == "s32" and element != "b1" else ""
    return (
        f"nvvm.wgmma.mma_async %l, %l, %z, #nvvm.shape<m = 64, n = {n}, k = {k}>, "
        f"D [<{c}>, #nvvm.wgmma_scale_out<one>{sat}], {a}, {b} : {result} -> {result}"
    )


def list_matrix_instructions():
    for row in read_rows(MMA):
        yield write_mma(*row)
    for row in read_rows(WMMA):
        yield from write_wmma(*row)
    for row in WGMMA.split(","):
        k, element, c = row.split()
        for n in (8, 256):
            yield write_wgmma(int(k), element, c, n)
