"""Functions of NumPy that are traced to ops, against the same functions on arrays."""

import math

import ml_dtypes
import numpy as np
import pytest

import kvcache
from kvcache.ops.score_regions import trace_regions
from kvcache.ops.traced_functions import convert
from kvcache.ops.tracing import Trace, Traced, TracedArray

TYPES = {"float": "f32", "int": "index", "bool": "i1"}
DTYPES = {"float": np.float32, "int": np.int64, "bool": np.bool_}


def run(function, kinds, *arrays, tables=None):
    """Compiles a function of numbers for the CPU, and calls it for each element of arrays."""
    trace = Trace("v")
    tables = tables or {}
    names = [f"x{i}" for i in range(len(kinds))]
    values = [Traced(trace, f"%{name}", kind) for name, kind in zip(names, kinds)]
    traced = {name: TracedArray(trace, name, *spec) for name, (spec, _) in tables.items()}
    result = trace.lift(function(*values, **traced))
    memrefs = {f"a{i}": f"memref<?x{TYPES[kind]}>" for i, kind in enumerate(kinds)}
    arguments = {**memrefs, **{name: table.type for name, table in traced.items()}}
    out = f"memref<?x{TYPES[result.kind]}>"
    loads = [
        f"%x{i} = memref.load %a{i}[%i] : {type}" for i, type in enumerate(memrefs.values())
    ]
    source = f"""
func.func @run({", ".join(f"%{name}: {type}" for name, type in arguments.items())}, %out: {out}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : {out}
  scf.for %i = %c0 to %n step %c1 {{
    {chr(10).join([*loads, *trace.lines])}
    memref.store {result.name}, %out[%i] : {out}
  }}
  return
}}"""
    got = np.zeros(len(arrays[0]), DTYPES[result.kind])
    kvcache.jit(source, opt_level=0).call("run", *arrays, *(array for _, array in tables.values()), got)
    return got


FLOATS = np.float32([0, -0.0, 1, -1, 0.5, 1.5, 2.5, -2.5, 3.25, -7.75, 1e-3, 100, np.inf, -np.inf, np.nan])
INTEGERS = np.array([0, 1, -1, 2, -2, 3, 5, -7, 8, 100, -129, 2**31, -(2**33), 12345], np.int64)
BOOLS = np.array([False, True])

UNARY = {
    "float": [
        np.abs, np.negative, np.positive, np.square, np.sign, np.floor, np.ceil, np.trunc, np.rint, np.round,
        np.exp, np.exp2, np.expm1, np.tanh, np.sin, np.cos, np.isnan, np.isinf, np.isfinite, np.logical_not,
        lambda x: np.log(np.abs(x)), lambda x: np.log2(np.abs(x)), lambda x: np.log10(np.abs(x)),
        lambda x: np.log1p(np.abs(x)), lambda x: np.sqrt(np.abs(x)), lambda x: np.tan(x), lambda x: x**2,
        lambda x: np.clip(x, -1, 2), lambda x: np.clip(x, None, a_max=1), lambda x: 2 - x, lambda x: 3 / x, lambda x: x // 2, lambda x: x % 3,
    ],
    "int": [
        np.abs, np.negative, np.square, np.sign, np.floor, np.invert, np.logical_not, lambda x: x**3, lambda x: x / 4,
        lambda x: x // 3, lambda x: x % 3, lambda x: x // -3, lambda x: x % -3, lambda x: x >> 2, lambda x: x << 1,
        lambda x: x & 6, lambda x: x | 6, lambda x: x ^ 6, lambda x: np.clip(x, -1, 2), lambda x: abs(x) % 4,
        lambda x: np.exp2(np.minimum(x, 10)), lambda x: x.astype(np.float32), lambda x: x.astype(bool),
    ],
    "bool": [
        np.invert, np.logical_not, lambda x: x + 1, lambda x: x * 2.5, lambda x: x | True, lambda x: x & False,
        lambda x: x.astype(int), lambda x: x.astype(np.float32), lambda x: np.square(x).astype(float),
    ],
}  # fmt: skip
VALUES = {"float": FLOATS, "int": INTEGERS, "bool": BOOLS}


def check(got, want):
    assert got.dtype.kind == np.asarray(want).dtype.kind
    if got.dtype.kind == "f":
        want = want.astype(np.float32)
        finite = np.isfinite(want)
        np.testing.assert_array_equal(got[~finite], want[~finite])
        zeros = want == 0
        np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(want[zeros]))
        np.testing.assert_allclose(got[finite], want[finite], rtol=1e-5, atol=1e-6)
    else:
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("kind", UNARY)
def test_function_of_one_number_equals_numpy(kind):
    values = VALUES[kind]
    for number, function in enumerate(UNARY[kind]):
        with np.errstate(all="ignore"):
            want = function(values)
        got = run(function, [kind], values)
        try:
            check(got, want)
        except AssertionError as error:
            raise AssertionError(f"function {number} of {kind}") from error


BINARY = [
    np.add, np.subtract, np.multiply, np.true_divide, np.floor_divide, np.remainder, np.minimum, np.maximum,
    np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal,
    np.logical_and, np.logical_or, np.logical_xor, lambda x, y: np.where(x > y, x, y),
]  # fmt: skip


@pytest.mark.parametrize("kinds", [("float", "float"), ("float", "int"), ("int", "int"), ("bool", "int")])
@pytest.mark.parametrize("number", range(len(BINARY)))
def test_function_of_two_numbers_equals_numpy(kinds, number):
    function = BINARY[number]
    x, y = (grid.ravel() for grid in np.meshgrid(*(VALUES[kind] for kind in kinds)))
    x, y = x.copy(), y.copy()
    if kinds[1] == "int":
        y[np.abs(y) > 2**31] = 77
    with np.errstate(all="ignore"):
        want = function(x.astype(np.float64) if "float" in kinds and kinds[0] == "int" else x, y)
    check(run(function, kinds, x, y), np.asarray(want))


def test_elements_of_arrays_are_clamped_and_converted():
    specs = {
        "a": (("f32", (5,)), np.arange(5, dtype=np.float32)),
        "b": (("bf16", (None,)), np.arange(7).astype(ml_dtypes.bfloat16)),
        "c": (("ui8", (None, 4)), (np.arange(12, dtype=np.uint8) + 200).reshape(3, 4)),
        "d": (("i1", (2,)), np.array([True, False])),
        "e": (("i16", (6,)), np.arange(-3, 3, dtype=np.int16)),
    }

    def function(x, a, b, c, d, e):
        return np.where(d[x % 2], a[x] + b[x + 1], c[x // 4, 0 - x]) + e[x] * a.shape[0] + b.shape[0]

    x = np.arange(-10, 20, dtype=np.int64)

    def clamp(index, size):
        return np.clip(index, 0, size - 1)

    a, b, c, d, e = (array for _, array in specs.values())
    left = a[clamp(x, 5)] + b[clamp(x + 1, 7)].astype(np.float32)
    right = c[clamp(x // 4, 3), clamp(-x, 4)].astype(np.float32)
    want = np.where(d[x % 2], left, right) + e[clamp(x, 6)] * 5 + 7
    np.testing.assert_array_equal(run(function, ["int"], x, tables=specs), want.astype(np.float32))


@pytest.mark.parametrize("divisor", [-1, 1, 2, 7, -7, 2**62, -(2**63)])
def test_quotient_of_the_least_integer_equals_numpy(divisor):
    values = np.array([-(2**63), -(2**63) + 1, -1, 0, 2**63 - 1], np.int64)
    with np.errstate(all="ignore"):
        want = values // np.int64(divisor)
    np.testing.assert_array_equal(run(lambda x: x // divisor, ["int"], values), want)
    divisors = np.full_like(values, divisor)
    np.testing.assert_array_equal(run(lambda x, y: x // y, ["int", "int"], values, divisors), want)


def test_remainder_of_every_integer_is_in_bounds():
    # 1 - 2**63 is a multiple of 7, so the quotient of -(2**63) is one less. An index of -1 is read if it is not.
    values = np.array([-(2**63), -(2**63) + 1, -1, 0, 2**63 - 1], np.int64)
    table = np.arange(10, 17, dtype=np.float32)
    got = run(lambda x, t: t[x % 7], ["int"], values, tables={"t": (("f32", (7,)), table)})
    np.testing.assert_array_equal(got, table[values % 7])


def test_float_to_integer_has_result_for_every_number():
    values = np.float32([1.9, -1.9, np.nan, np.inf, -np.inf, 3e38])
    got = run(lambda x: x.astype(np.int64), ["float"], values)
    np.testing.assert_array_equal(got, [1, -1, 2**62, 2**62, -(2**62), 2**62])


def causal(sequence, head, query, key):
    return key <= query


def test_regions_hold_each_expression_once():
    regions = trace_regions(lambda s, b, h, q, k: (k - q) * s + (k - q), causal, None, ())
    assert regions.text.count("arith.subi") == 1
    assert regions.text.index("score {") < regions.text.index("mask {")


WRONG = {
    "if": (lambda s, b, h, q, k: s if k > q else 0, "use numpy.where in place of 'if'"),
    "and": (lambda s, b, h, q, k: s * (k > q and k < 5), "use numpy.where"),
    "unknown": (lambda s, b, h, q, k: np.arctan(s), "numpy.arctan can't be traced; possible are absolute, add"),
    "reduce": (lambda s, b, h, q, k: np.add.reduce(s), "numpy.add.reduce can't be traced"),
    "sum": (lambda s, b, h, q, k: np.sum(s), "numpy.sum can't be traced"),
    "array": (lambda s, b, h, q, k: s + np.ones(3), "name arrays in 'arrays'"),
    "index": (lambda s, b, h, q, k: s + np.ones(3)[k], "valid indices: name arrays in 'arrays'"),
    "out": (lambda s, b, h, q, k: np.add(s, 1, out=s), "takes no out here"),
    "slice": (lambda s, b, h, q, k, t: s + t[0:2], "expects integers as indices of 't'"),
    "rank": (lambda s, b, h, q, k, t: s + t[0, 1], "expects 1 indices of 't', got 2"),
    "float index": (lambda s, b, h, q, k, t: s + t[s], "expects integers as indices of 't', got a float"),
    "bounds": (lambda s, b, h, q, k, t: s + t[4], "index 4 is out of bounds for 't'"),
    "whole": (lambda s, b, h, q, k, t: s + t, "expects elements of 't': index it"),
    "bools": (lambda s, b, h, q, k: (k > q) + (k < q), "got two bools: use & and | in place of add"),
    "large": (lambda s, b, h, q, k: k + 2**70, "expects integers of 64 bits"),
    "none": (lambda s, b, h, q, k: None, "expects a number as the result, got NoneType"),
    "tuple": (lambda s, b, h, q, k: (s, s), "expects a number as the result, got tuple"),
    "keyword": (lambda s, b, h, q, k: np.clip(s, 0, max=1), "numpy.clip takes (a, a_min, a_max) here"),
    "few": (lambda s, b, h, q, k: np.where(k), "numpy.where takes (condition, x, y) here"),
    "decimals": (lambda s, b, h, q, k: np.round(s, 2), "expects no decimals"),
    "modulus": (lambda s, b, h, q, k: pow(k, 2, 3), "pow takes no modulus here: use %"),
    "math": (lambda s, b, h, q, k: math.exp(s), "use functions of NumPy in place of those of Python and 'math'"),
    "round": (lambda s, b, h, q, k: round(s), "use functions of NumPy in place"),
    "range": (lambda s, b, h, q, k: sum(range(k)), "use functions of NumPy in place"),
    "list": (lambda s, b, h, q, k: [1, 2][k], "and named arrays in place of lists"),
    "dict": (lambda s, b, h, q, k: {1: 2}[k], "and named arrays in place of lists"),
    "method": (lambda s, b, h, q, k: s.clip(0, 1), "a traced value has no 'clip': use functions of NumPy"),
    "array equal": (lambda s, b, h, q, k, t: np.where(t == 3, s, 0), "expects elements of 't': index it"),
    "array unequal": (lambda s, b, h, q, k, t: np.where(t != 3, s, 0), "expects elements of 't': index it"),
    "array in": (lambda s, b, h, q, k, t: s * (k in t), "expects elements of 't': index it"),
    "array sum": (lambda s, b, h, q, k, t: t + 1, "expects elements of 't': index it"),
    "array function": (lambda s, b, h, q, k, t: np.where(k > q, t, s), "expects elements of 't': index it"),
    "array method": (lambda s, b, h, q, k, t: t.sum(), "a named array has no 'sum': index it"),
    "complex": (lambda s, b, h, q, k: s.astype(np.complex64), "expects bool, int64, float32 or float64, got complex64"),
    "uint32": (lambda s, b, h, q, k: (k * 3).astype(np.uint32), "got uint32: numbers have no other types here"),
    "float16": (lambda s, b, h, q, k: s.astype("float16"), "got float16"),
    "exponent": (lambda s, b, h, q, k: k**q, "expects a constant exponent"),
}


@pytest.mark.parametrize("name", WRONG)
def test_function_that_cannot_be_traced_names_line_and_reason(name):
    function, message = WRONG[name]
    arrays = {"t": "f32[4]"} if "t" in function.__code__.co_varnames else None
    with pytest.raises(TypeError) as error:
        trace_regions(function, None, arrays, ())
    assert message in str(error.value)
    assert f"{__file__}:{function.__code__.co_firstlineno}: in 'score'" in str(error.value)


def test_mask_returns_bool():
    with pytest.raises(TypeError, match="in 'mask': expects a bool as the result, got int"):
        trace_regions(None, lambda b, h, q, k: k - q, None, ())


def test_value_of_another_function_is_rejected():
    kept = []
    trace_regions(lambda s, b, h, q, k: kept.append(np.exp(s)) or s, None, None, ())
    for function in (lambda s, b, h, q, k: np.sin(s) + kept[0], lambda s, b, h, q, k: kept[0] * 2):
        with pytest.raises(TypeError, match="got a value of another function: compute it again in this one"):
            trace_regions(function, None, None, ())


@pytest.mark.parametrize(
    ("arrays", "error", "message"),
    [
        ({"t": "f32"}, ValueError, "expects the type of 't' as in 'f32\\[32\\]'"),
        ({"t": 3}, ValueError, "got 3"),
        ({"t": "f32[-1]"}, ValueError, "expects the sizes of 't' to be positive or '\\?'"),
        ({"t": "f32[\u0663]"}, ValueError, "expects the sizes of 't' to be positive or '\\?'"),
        ({"t": "f32[0]"}, ValueError, "expects the sizes of 't' to be positive and below 2\\^31"),
        ({"t": "f32[65536, 65536, 65536, 65536]"}, ValueError, "expects fewer than 2\\^60 elements of 't'"),
        ({"t": "uint64[4]"}, ValueError, "integers below 2\\^63"),
        (["t"], TypeError, "expects 'arrays' to be a dict of types, got \\['t'\\]"),
        ({"t": "f8E4M3FN[4]"}, ValueError, "expects elements of 't' to be bools, integers below 2\\^63 or floats"),
        ({"q": "f32[4]"}, ValueError, "expects another name of an array than 'q'"),
        ({"score_s": "f32[4]"}, ValueError, "expects another name of an array than 'score_s'"),
        ({"mask_0": "f32[4]"}, ValueError, "expects another name of an array than 'mask_0'"),
        ({"a b": "f32[4]"}, ValueError, "expects names in 'arrays'"),
        ({"\u00e9": "f32[4]"}, ValueError, "expects ASCII names in 'arrays'"),
        ({"t": "f32[4]", "u": "f32[4]"}, ValueError, "expects 'u' of 'arrays' to be a parameter"),
        ({}, ValueError, "a parameter of 'score' after s, sequence, head, query, key, in 'arrays'"),
    ],
)
def test_array_without_possible_type_is_rejected(arrays, error, message):
    with pytest.raises(error, match=message):
        trace_regions(lambda s, b, h, query, k, t: s + t[k], None, arrays, ("q",))


def test_function_takes_named_parameters():
    with pytest.raises(TypeError, match="expects 'mask' to take sequence, head, query, key, and arrays by name"):
        trace_regions(None, lambda head, key: key > 0, None, ())
    for score in (3, False):
        with pytest.raises(TypeError, match=f"expects 'score' to be a function, got {score}"):
            trace_regions(score, None, None, ())
    for score in (np.add, dict):
        with pytest.raises(TypeError, match="expects 'score' to be a function of Python, got <"):
            trace_regions(score, None, None, ())


def test_converts_to_the_kind_of_the_result():
    trace = Trace("v")
    value = trace.constant(3)
    assert convert(value, "float").kind == "float" and convert(value, "int") is value
