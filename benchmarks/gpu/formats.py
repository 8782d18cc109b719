"""bf16 and fp8 as NumPy has them without other packages: their bits, in uint16 and uint8."""

import numpy as np

E4M3_MAX = 448.0
_E4M3_BIAS, _E4M3_MANTISSA = 7, 3


def bf16_to_f32(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def f32_to_bf16(values: np.ndarray) -> np.ndarray:
    """Rounds to nearest, ties to even. The values are finite."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def _decode_e4m3(code: int) -> float:
    sign = -1.0 if code & 0x80 else 1.0
    exponent, mantissa = (code >> _E4M3_MANTISSA) & 15, code & 7
    if code & 0x7F == 0x7F:
        return float("nan")
    if exponent == 0:
        return sign * mantissa * 2.0 ** (1 - _E4M3_BIAS - _E4M3_MANTISSA)
    return sign * (8 + mantissa) * 2.0 ** (exponent - _E4M3_BIAS - _E4M3_MANTISSA)


_E4M3_VALUES = np.array([_decode_e4m3(code) for code in range(256)], np.float32)


def e4m3_to_f32(codes: np.ndarray) -> np.ndarray:
    return _E4M3_VALUES[codes]


def f32_to_e4m3(values: np.ndarray) -> np.ndarray:
    """Rounds to nearest, ties to even, and saturates. The values are finite."""
    size = np.minimum(np.abs(values), np.float32(E4M3_MAX))
    # Below the smallest normal number the distance from a number to the next stays what it is there.
    exponent = np.frexp(np.maximum(size, np.float32(2.0 ** (1 - _E4M3_BIAS))))[1] - 1
    steps = np.rint(np.ldexp(size, _E4M3_MANTISSA - exponent)).astype(np.int32)
    # Eight steps more than an exponent has are the first number of the next one.
    code = steps + ((exponent + _E4M3_BIAS - 1) << _E4M3_MANTISSA)
    return (code | np.where(np.signbit(values), 0x80, 0)).astype(np.uint8)


def e4m3_order(codes: np.ndarray) -> np.ndarray:
    """Integers in the order of the values, one for each step from a number to the next."""
    size = (codes & 0x7F).astype(np.int16)
    return np.where(codes & 0x80, -size, size)
