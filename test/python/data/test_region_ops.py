"""Tests that ops of a region of kvcache.attention are computed alike on all targets, against NumPy."""

import math

import numpy as np
import pytest
from attention_checks import CHIPS, fill, make_params
from region_programs import Regions, attend

# Each op takes %x of f32, which is not 0, and %i of i32, and gives %y of f32 or %n of i32.
FLOATS = {
    "absf": abs, "acos": lambda x: np.arccos(x / 64), "asin": lambda x: np.arcsin(x / 64), "asinh": np.arcsinh,
    "atan": np.arctan, "cbrt": np.cbrt, "ceil": np.ceil, "cos": np.cos, "cosh": lambda x: np.cosh(x / 64),
    "acosh": lambda x: np.arccosh(x * x + 1), "atanh": lambda x: np.arctanh(x / 64),
    "sin": np.sin, "sinh": lambda x: np.sinh(x / 64), "erf": np.vectorize(math.erf),
    "erfc": lambda x: np.vectorize(math.erfc)(x / 64), "exp": lambda x: np.exp(x / 64),
    "exp2": lambda x: np.exp2(x / 64), "expm1": lambda x: np.expm1(x / 64), "floor": np.floor,
    "log": lambda x: np.log(x * x + 1), "log10": lambda x: np.log10(x * x + 1),
    "log1p": lambda x: np.log1p(x * x + 1), "log2": lambda x: np.log2(x * x + 1),
    "rsqrt": lambda x: 1 / np.sqrt(x * x + 1), "sqrt": lambda x: np.sqrt(x * x + 1), "tan": lambda x: np.tan(x / 64),
    "tanh": np.tanh, "roundeven": np.round, "round": lambda x: np.trunc(x + np.copysign(0.5, x)), "trunc": np.trunc,
}  # fmt: skip
SMALL = "acos asin atanh cosh sinh erfc exp exp2 expm1 tan".split()
POSITIVE = "acosh log log10 log1p log2 rsqrt sqrt".split()
PAIRS = {
    "arith.addf": np.add, "arith.subf": np.subtract, "arith.mulf": np.multiply, "arith.divf": np.divide,
    "arith.remf": np.fmod, "arith.maximumf": np.maximum, "arith.minimumf": np.minimum, "arith.maxnumf": np.fmax,
    "arith.minnumf": np.fmin, "math.copysign": np.copysign, "math.atan2": np.arctan2,
}  # fmt: skip
INTEGERS = {
    "addi": np.add, "subi": np.subtract, "muli": np.multiply, "divsi": lambda i, j: np.trunc(i / j),
    "ceildivsi": lambda i, j: np.ceil(i / j), "floordivsi": np.floor_divide, "remsi": np.fmod,
    "andi": np.bitwise_and, "ori": np.bitwise_or, "xori": np.bitwise_xor, "maxsi": np.maximum, "minsi": np.minimum,
}  # fmt: skip
UNSIGNED = {
    "divui": np.floor_divide, "ceildivui": lambda i, j: -(-i // j), "remui": np.remainder,
    "maxui": np.maximum, "minui": np.minimum, "shli": lambda i, j: i << j, "shrsi": lambda i, j: i >> j,
    "shrui": lambda i, j: i >> j,
}  # fmt: skip
COUNTS = {"absi": abs, "ctpop": int.bit_count, "ctlz": lambda i: 32 - i.bit_length(), "cttz": lambda i: (i & -i).bit_length() - 1}
CLASSES = {"isfinite": np.isfinite, "isinf": np.isinf, "isnan": np.isnan, "isnormal": np.isfinite}
BASES = (2, -2, 3, -3, 1, -1)


def narrow(x, bits):
    """Rounds the mantissa to a number of bits."""
    scale = np.exp2(bits - np.frexp(x)[1])
    return np.round(x * scale) / scale


def power(base, exponent):
    """The power of integers in 32 bits, rounded toward zero."""
    if exponent < 0:
        return base ** (-exponent % 2) if base in (1, -1) else 0
    return (base**exponent + 2**31) % 2**32 - 2**31


def make_cases():
    """Returns the lines and the model of each op, by name."""
    cases = {}
    for name, model in FLOATS.items():
        operand = "%small" if name in SMALL else "%positive" if name in POSITIVE else "%x"
        cases[f"math.{name}"] = (f"%y = math.{name} {operand} : f32", lambda x, i, model=model: model(x))
    for name, model in PAIRS.items():
        cases[name] = (f"%y = {name} %x, %half : f32", lambda x, i, model=model: model(x, -2.5))
    for name, model in INTEGERS.items():
        cases[f"arith.{name}"] = (f"%n = arith.{name} %i, %c3 : i32", lambda x, i, model=model: model(i, 3))
    for name, model in UNSIGNED.items():
        cases[f"arith.{name}"] = (f"%n = arith.{name} %u, %c3 : i32", lambda x, i, model=model: model(abs(i), 3))
    for name, model in COUNTS.items():
        line = f"%n = math.{name} {'%i' if name == 'absi' else '%odd'} : i32"
        cases[f"math.{name}"] = (
            line, lambda x, i, name=name, model=model: np.array([model(int(v if name == "absi" else 2 * abs(v) + 2)) for v in i])
        )
    for name, model in CLASSES.items():
        line = f"%flag = math.{name} %x : f32\n%y = arith.select %flag, %x, %half : f32"
        cases[f"math.{name}"] = (line, lambda x, i, model=model: np.where(model(x), x, -2.5))
    for base in BASES:
        line = f"%base = arith.constant {base} : i32\n%n = math.ipowi %base, %i : i32"
        cases[f"math.ipowi of {base}"] = (line, lambda x, i, base=base: np.array([power(base, int(v)) for v in i]))
    return cases | MORE


MORE = {
    "arith.negf": ("%y = arith.negf %x : f32", lambda x, i: -x),
    "math.clampf": ("%y = math.clampf %x to [%half, %seven] : f32", lambda x, i: np.clip(x, -2.5, 7)),
    "math.fma": ("%y = math.fma %x, %half, %seven : f32", lambda x, i: x * -2.5 + 7),
    "math.fpowi": ("%y = math.fpowi %x, %c3 : f32, i32", lambda x, i: x**3),
    "math.powf": ("%y = math.powf %positive, %half : f32", lambda x, i: (x * x + 1) ** -2.5),
    "math.sincos": ("%sin, %cos = math.sincos %x : f32\n%y = arith.addf %sin, %cos : f32", lambda x, i: np.sin(x) + np.cos(x)),
    "arith.addui_extended": ("%n, %o = arith.addui_extended %u, %c3 : i32, i1", lambda x, i: abs(i) + 3),
    "arith.mulsi_extended": ("%l, %n = arith.mulsi_extended %i, %c3 : i32", lambda x, i: np.where(i < 0, -1, 0)),
    "arith.mului_extended": ("%l, %n = arith.mului_extended %i, %c3 : i32", lambda x, i: np.where(i < 0, 2, 0)),
    "arith.fptosi": ("%n = arith.fptosi %x : f32 to i32", lambda x, i: np.trunc(x)),
    "arith.fptoui": ("%n = arith.fptoui %positive : f32 to i32", lambda x, i: np.trunc(x * x + 1)),
    "arith.uitofp": ("%y = arith.uitofp %u : i32 to f32", lambda x, i: abs(i)),
    "arith.bitcast": ("%b = arith.bitcast %x : f32 to i32\n%y = arith.bitcast %b : i32 to f32", lambda x, i: x),
    "arith.extsi": ("%w = arith.extsi %i : i32 to i64\n%y = arith.sitofp %w : i64 to f32", lambda x, i: i),
    "arith.extui": ("%w = arith.extui %u : i32 to i64\n%y = arith.sitofp %w : i64 to f32", lambda x, i: abs(i)),
    "arith.trunci": ("%w = arith.trunci %i : i32 to i8\n%n = arith.extsi %w : i8 to i32", lambda x, i: i),
    "arith.index_castui": ("%w = arith.index_castui %u : i32 to index\n%n = arith.index_cast %w : index to i32", lambda x, i: abs(i)),
    "arith.cmpf": ("%w = arith.cmpf ult, %x, %seven : f32\n%y = arith.select %w, %x, %seven : f32", lambda x, i: np.minimum(x, 7)),
    "f16": ("%w = arith.truncf %x : f32 to f16\n%y = arith.extf %w : f16 to f32", lambda x, i: narrow(x, 11)),
    "bf16": ("%w = arith.truncf %x : f32 to bf16\n%y = arith.extf %w : bf16 to f32", lambda x, i: narrow(x, 8)),
    "f8E4M3FN": ("%w = arith.truncf %x : f32 to f8E4M3FN\n%y = arith.extf %w : f8E4M3FN to f32", lambda x, i: narrow(x, 4)),
    "f64": ("%w = arith.extf %small : f32 to f64\n%v = math.exp %w : f64\n%y = arith.truncf %v : f64 to f32", lambda x, i: np.exp(x / 64)),
    "index.divs": ("%w = index.floordivs %j, %three\n%n = arith.index_cast %w : index to i32", lambda x, i: i // 3),
    "affine.apply": ("%w = affine.apply affine_map<(a) -> (a mod 7 + a floordiv 3)>(%j)\n%n = arith.index_cast %w : index to i32", lambda x, i: i % 7 + i // 3),
    "scf.for": ("%y = scf.for %k = %three to %seven_index step %three iter_args(%e = %x) -> (f32) {\n%d = arith.addf %e, %x : f32\nscf.yield %d : f32 }", lambda x, i: 3 * x),
    "vector": ("%w = vector.broadcast %x : f32 to vector<4xf32>\n%v = math.absf %w : vector<4xf32>\n%y = vector.reduction <add>, %v : vector<4xf32> into f32", lambda x, i: 4 * abs(x)),
    "ub.poison": ("%w = ub.poison : f32\n%t = arith.constant true\n%y = arith.select %t, %x, %w : f32", lambda x, i: x),
}  # fmt: skip

VALUES = """
  %x = memref.load %floats[%sequence] : memref<?xf32>
  %i = memref.load %integers[%sequence] : memref<?xi32>
  %j = arith.index_cast %i : i32 to index
  %u = math.absi %i : i32
  %c2 = arith.constant 2 : i32
  %c3 = arith.constant 3 : i32
  %three = arith.constant 3 : index
  %seven_index = arith.constant 7 : index
  %twice = arith.muli %u, %c2 : i32
  %odd = arith.addi %twice, %c2 : i32
  %half = arith.constant -2.5 : f32
  %seven = arith.constant 7.0 : f32
  %one = arith.constant 1.0 : f32
  %small_factor = arith.constant 0.015625 : f32
  %small = arith.mulf %x, %small_factor : f32
  %square = arith.mulf %x, %x : f32
  %positive = arith.addf %square, %one : f32
"""


def write_region(cases):
    """A region whose score of head h is the result of op h."""
    text = VALUES + "%score = scf.index_switch %head -> f32\n"
    for number, (lines, _) in enumerate(cases.values()):
        convert = "" if "%y" in lines else "%y = arith.sitofp %n : i32 to f32\n"
        text += f"case {number} {{\n{lines}\n{convert}scf.yield %y : f32\n}}\n"
    return text + "default {\nscf.yield %x : f32\n}\nkvcache.yield %score : f32\n"


@pytest.mark.parametrize("target", ["cpu", *CHIPS[:2]])
def test_ops_of_regions_have_one_meaning(target):
    """The logarithm of one token's sum is its score."""
    cases = make_cases()
    integers = np.array([-31, -6, -3, -1, 0, 1, 2, 5, 9, 30], np.int32)
    floats = np.array([-31.7, -6.5, -2.5, -0.3, 0.4, 1.5, 2.5, 6.2, 11.1, 30.9], np.float32)
    params = make_params("f32", len(cases), 16)
    _, inputs = fill(params, "f32", (0,) * len(floats), (1,) * len(floats))
    types = {"floats": "memref<?xf32>", "integers": "memref<?xi32>"}
    arrays = {"floats": floats, "integers": integers}
    regions = Regions(None, write_region(cases), types=types)
    _, _, lse, _ = attend(params, "f32", inputs, 1, regions, arrays, {}, target)
    wrong = []
    for number, (name, (_, model)) in enumerate(cases.items()):
        expected = np.asarray(model(floats.astype(np.float64), integers.astype(np.int64)), np.float64)
        if not np.allclose(lse[:, number], expected, rtol=4e-6, atol=2e-6):
            wrong.append((name, lse[:, number], expected))
    assert not wrong
