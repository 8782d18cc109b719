"""Prints kernels with every conversion of narrow floats, as scalars and as vectors."""

NARROW = {"f8E4M3FN": 8, "f8E5M2": 8, "f6E2M3FN": 6, "f6E3M2FN": 6, "f4E2M1FN": 4, "f8E8M0FNU": 8}
WIDE = ("f16", "bf16", "f32", "f64")

LOAD = """\
    %b{n} = vector.load %bytes[%c0] : memref<?xi8>, vector<{n}xi8>
{truncate}    %v{n} = arith.bitcast %{bits_of}{n} : vector<{n}xi{bits}> to vector<{n}x{narrow}>
"""
TRUNCATE = """\
    %i{n} = arith.trunci %b{n} : vector<{n}xi8> to vector<{n}xi{bits}>
"""
SCALAR = """\
    %s_{wide} = arith.extf %s : {narrow} to {wide}
    memref.store %s_{wide}, %{wide}[%c0] : memref<?x{wide}>
"""
VECTOR = """\
    %v{n}_{wide} = arith.extf %v{n} : vector<{n}x{narrow}> to vector<{n}x{wide}>
    vector.store %v{n}_{wide}, %{wide}[%c0] : memref<?x{wide}>, vector<{n}x{wide}>
    %l{n}_{wide} = vector.load %{wide}[%c0] : memref<?x{wide}>, vector<{n}x{wide}>
    %t{n}_{wide} = arith.truncf %l{n}_{wide} : vector<{n}x{wide}> to vector<{n}x{narrow}>
    %ti{n}_{wide} = arith.bitcast %t{n}_{wide} : vector<{n}x{narrow}> to vector<{n}xi{bits}>
{extend}    vector.store %{bytes_of}{n}_{wide}, %bytes[%c0] : memref<?xi8>, vector<{n}xi8>
"""
EXTEND = """\
    %tb{n}_{wide} = arith.extui %ti{n}_{wide} : vector<{n}xi{bits}> to vector<{n}xi8>
"""


def write_kernel(narrow, bits):
    """A kernel that converts one, three and eight elements to each wide type, and vectors back."""
    given = {
        "narrow": narrow,
        "bits": bits,
        "bits_of": "b" if bits == 8 else "i",
        "bytes_of": "ti" if bits == 8 else "tb",
    }
    truncate, extend = ("", "") if bits == 8 else (TRUNCATE, EXTEND)
    parameters = ", ".join(["%bytes: memref<?xi8>", *(f"%{wide}: memref<?x{wide}>" for wide in WIDE)])
    text = f"  gpu.func @{narrow}({parameters}) kernel {{\n    %c0 = arith.constant 0 : index\n"
    for n in (1, 3, 8):
        text += LOAD.format(n=n, truncate=truncate.format(n=n, **given), **given)
    text += f"    %s = vector.extract %v1[0] : {narrow} from vector<1x{narrow}>\n"
    for wide in WIDE:
        text += SCALAR.format(wide=wide, **given)
        for n in (3, 8):
            text += VECTOR.format(n=n, wide=wide, extend=extend.format(n=n, wide=wide, **given), **given)
    return text + "    gpu.return\n  }\n"


if __name__ == "__main__":
    kernels = "".join(write_kernel(narrow, bits) for narrow, bits in NARROW.items())
    print(f"gpu.module @kernels {{\n{kernels}}}")
