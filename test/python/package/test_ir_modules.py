"""Tests of modules as values in Python."""

import pickle
from pathlib import Path

import pytest
from edits import edit
from places import ROOT

import kvcache
from kvcache import CompileError
from kvcache.ir import Argument, Attribute, Module, PagedCacheType, ParamsAttr, Type

KV = ParamsAttr(num_heads=8, head_size=128)
KV_TEXT = "#kvcache.params<num_heads = 8, head_size = 128>"
PAGED = PagedCacheType("bf16", KV, page_size=64)
SOURCE = f"""
#kv = {KV_TEXT}
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
func.func @get(%cache: !cache, %token: index) -> (index, !cache) {{
  return %token, %cache : index, !cache
}}
gpu.module @kernels {{
  gpu.func @copy(%memory: memref<4xf32>) kernel {{
    gpu.return
  }}
}}
func.func private @outside(i32)
"""


def test_functions_of_a_module():
    get, kernel, outside = Module.parse(SOURCE).functions
    assert get.name == "get"
    assert get.arguments == (
        Argument("cache", PAGED),
        Argument("token", Type.parse("index")),
    )
    assert get.results == (Type.parse("index"), PAGED)
    assert isinstance(get.results[1], PagedCacheType)
    assert kernel.name == "kernels::copy"
    assert kernel.arguments == (Argument("memory", Type.parse("memref<4xf32>")),)
    assert kernel.results == ()
    assert (outside.name, outside.arguments[0].name) == ("outside", "")


def test_path_omits_the_outermost_module():
    nested = "module @a { module @b { func.func private @f() } module { func.func private @g() } }"
    assert [function.name for function in Module.parse(nested).functions] == ["b::f", "g"]


def test_modules_round_trip_through_text_and_bytecode(tmp_path):
    module = Module.parse(SOURCE)
    assert 'kvcache.name = "cache"' in str(module)
    path = tmp_path / "module.mlirbc"
    path.write_bytes(module.bytecode())
    assert path.read_bytes().startswith(b"ML\xefR")
    for other in (str(module), str(module).encode(), module.bytecode(), path):
        parsed = Module.parse(other)
        assert str(parsed) == str(module)
        assert parsed.functions == module.functions


def test_bytecode_of_a_module_compiles_as_its_source():
    path = ROOT / "examples/gather.mlir"
    (expected,) = kvcache.compile(path).kernels.values()
    (kernel,) = kvcache.compile(Module.parse(path).bytecode()).kernels.values()
    assert kernel.parameters == expected.parameters
    assert kernel.ptx == expected.ptx


def test_texts_mean_nothing_to_each_other():
    """A name has one meaning in a context of MLIR."""
    for body in ("ptr", "i32"):
        text = f'!llvm.struct<"node", ({body})>'
        assert str(Type.parse(text)) == text
        (function,) = Module.parse(f"func.func private @f({text})").functions
        assert function.arguments[0].type == Type.parse(text)
    resource = Attribute.parse("dense_resource<name> : tensor<1xi8>")
    assert pickle.loads(pickle.dumps(resource)) == resource


def test_types_outlive_their_module():
    types = [
        argument.type
        for _ in range(3)
        for argument in Module.parse(SOURCE).functions[0].arguments
    ]
    assert types[0] == types[2] == types[4] == PAGED


@pytest.mark.parametrize(
    "source, line, message",
    [
        ("func.func @f() {", 1, "expected"),
        ("\nfunc.func @f() -> i32 {\n  return\n}", 3, "'func.return' op has 0 operands"),
        (edit(f"func.func @f(%a: {PAGED}", ("bf16", "i128")), 1, "an element type of f64"),
        ("(" * 2000, 1, "the source is nested more than 1000 deep"),
        (b"ML\xefR", 0, "bytecode"),
    ],
)
def test_sources_with_errors(source, line, message):
    with pytest.raises(CompileError, match=message) as caught:
        Module.parse(source, "kernel.mlir")
    first = caught.value.diagnostics[0]
    assert first.line == line
    assert first.filename == "kernel.mlir"


def test_parse_rejects_other_sources():
    with pytest.raises(TypeError, match="expects MLIR text, bytes or a path as source"):
        Module.parse(3)
    with pytest.raises(FileNotFoundError):
        Module.parse(Path("/nowhere.mlir"))


def test_an_array_of_indices_is_an_error():
    with pytest.raises(ValueError, match="no elements of type 'index'"):
        Attribute.parse("array<index: 1>")
    assert str(Attribute.parse("array<i64: 1>")) == "array<i64: 1>"


def test_crash_of_upstreams_verifiers_is_an_error():
    product = """
func.func @product(%a: vector<2xf16>, %c: f32) {
  %d = "nvvm.mma.sync"(%a, %a, %c) <{layoutA = #nvvm.mma_layout<row>,
      layoutB = #nvvm.mma_layout<col>, operandSegmentSizes = array<i32: 1, 1, 1>,
      shape = #nvvm.shape<m = 16, n = 8, k = 16>}>
      : (vector<2xf16>, vector<2xf16>, f32) -> !llvm.struct<(f32, f32, f32, f32)>
  return
}
"""
    for parse in (Module.parse, kvcache.jit, kvcache.compile):
        with pytest.raises(CompileError, match="3:8: error: 'nvvm.mma.sync' op expects"):
            parse(product)
