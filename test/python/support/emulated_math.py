"""Functions of numbers for the emulator, and numbers to test them."""

import ml_dtypes
import numpy as np

import kvcache

TARGET = "emulator:sm_100a"

FORMATS = {
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f6E2M3FN": ml_dtypes.float6_e2m3fn,
    "f6E3M2FN": ml_dtypes.float6_e3m2fn,
    "f4E2M1FN": ml_dtypes.float4_e2m1fn,
}
BF16 = ml_dtypes.bfloat16


def build(body, inputs, output):
    """Makes a function with out[i] = %y, which `body` computes from %x0[i], %x1[i] and so on."""
    params = "".join(f"%a{i}: memref<?x{type}>, " for i, type in enumerate(inputs))
    loads = "\n".join(
        f"    %x{i} = memref.load %a{i}[%i] : memref<?x{type}>" for i, type in enumerate(inputs)
    )
    return f"""
func.func @run({params}%out: memref<?x{output}>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : memref<?x{output}>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {{
{loads}
{body}
    memref.store %y, %out[%i] : memref<?x{output}>
  }}
  return
}}
"""


def run(body, inputs, output, *arrays, dtype=None, target=TARGET):
    program = kvcache.jit(build(body, inputs, output), target=target)
    out = np.zeros(len(arrays[0]), dtype or np.dtype(output.replace("i", "int")))
    program.call("run", *(np.ascontiguousarray(array) for array in arrays), out)
    return out


def f32_samples():
    """Lists all numbers of f16 and bf16, midpoints of the formats with their neighbours, and numbers of all sizes."""
    every = np.arange(1 << 16, dtype=np.uint16)
    parts = [every.view(np.float16).astype(np.float32), every.view(BF16).astype(np.float32)]
    for dtype in FORMATS.values():
        bits = ml_dtypes.finfo(dtype).bits
        numbers = np.arange(1 << bits, dtype=np.uint8).view(dtype).astype(np.float32)
        numbers = np.unique(numbers[np.isfinite(numbers)])
        halves = (numbers[1:] + numbers[:-1]) / 2
        for sign in (-np.inf, np.inf):
            parts.append(np.nextafter(halves, np.float32(sign)))
        parts.append(halves)
    rng = np.random.default_rng(1)
    parts.append(rng.integers(0, 1 << 32, 1 << 13, np.uint32).view(np.float32))
    parts.append(rng.normal(scale=100, size=1 << 13).astype(np.float32))
    values = np.concatenate(parts)
    return values[: len(values) // 2 * 2]


F32 = f32_samples()


def as_bits(values):
    return np.ascontiguousarray(values, np.float32).view(np.int32)


def encode(values, name):
    """PTX ISA, cvt.satfinite."""
    dtype = FORMATS[name]
    largest = np.float32(ml_dtypes.finfo(dtype).max)
    numbers = np.where(np.isnan(values), np.float32(0), np.clip(values, -largest, largest))
    codes = numbers.astype(dtype).view(np.uint8)
    nan = np.array([largest]).astype(dtype).view(np.uint8)[0]
    return np.where(np.isnan(values), 0x7F if "f8" in name else nan, codes).astype(np.uint8)
