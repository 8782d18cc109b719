"""Tests of kvcache.compile: kernels, their parameters, targets and options."""

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from compiled import GATHER
from edits import edit

import kvcache
from kvcache import Parameter

# Nested parallel loops become a kernel: two of them, both under the same name.
LOOPS = """
func.func @double(%a: memref<64x128xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  scf.parallel (%i) = (%c0) to (%c64) step (%c1) {
    scf.parallel (%j) = (%c0) to (%c128) step (%c1) {
      %v = memref.load %a[%i, %j] : memref<64x128xf32>
      %w = arith.addf %v, %v : f32
      memref.store %w, %a[%i, %j] : memref<64x128xf32>
    }
  }
  scf.parallel (%i) = (%c0) to (%c64) step (%c1) {
    scf.parallel (%j) = (%c0) to (%c128) step (%c1) {
      %v = memref.load %a[%i, %j] : memref<64x128xf32>
      %w = arith.mulf %v, %v : f32
      memref.store %w, %a[%i, %j] : memref<64x128xf32>
    }
  }
  return
}
"""


# Kernels


def test_kernels():
    module = kvcache.compile(GATHER)
    assert list(module.kernels) == ["gather", "fill"]
    assert module.chips == ("sm_90a",)
    gather = module.kernels["gather"]
    assert gather is module.kernel("gather") is module.kernel("gather", "sm_90a")
    assert (gather.name, gather.chip, gather.module) == ("gather", "sm_90a", "kernels")
    assert gather.block_size == (128, 1, 1)
    assert module.kernels["fill"].block_size is None
    assert gather.descriptors == ()
    assert ".target sm_90a" in gather.ptx and ".entry gather(" in gather.ptx
    assert gather.ptx.endswith("}\n")


def test_parameters_have_names_and_places():
    gather, fill = kvcache.compile(GATHER).kernels.values()
    assert fill.parameters == (
        Parameter("out", "!llvm.ptr", 8, 0),
        Parameter("flag", "i8", 1, 8),
        Parameter("value", "f32", 4, 12),
    )
    names = [parameter.name for parameter in gather.parameters]
    places = {
        name: names.index(name)
        for name in ("blocks", "lengths", "table", "out", "layer")
    }
    assert sorted(places.values()) == list(places.values())
    assert (
        len(names)
        == len(set(names))
        == gather.ptx.split(".entry fill")[0].count(".param .u")
    )
    for name in ("blocks", "lengths", "table", "out"):
        assert gather.parameters[places[name]].type == "!llvm.ptr"


# Kernels may be written for LLVM, with names that are PTX's.
HAND_WRITTEN = """
gpu.module @kernels {
  llvm.func @f(%pointer: !llvm.ptr, %byte: i8,
               %map: !llvm.ptr {llvm.byval = !llvm.array<128 x i8>, llvm.align = 64 : i64},
               %value: f32, %pair: !llvm.struct<(i32, i64)>, %lanes: vector<4xf32>)
      attributes {nvvm.kernel, nvvm.reqntid = array<i32: 64, 2>} {
    llvm.return
  }
  llvm.func @empty() attributes {nvvm.kernel} {
    llvm.return
  }
}
"""


def test_parameters_of_kernels_by_hand():
    f, empty = kvcache.compile(HAND_WRITTEN).kernels.values()
    assert f.block_size == (64, 2, 1)
    assert f.parameters == (
        Parameter("f_param_0", "!llvm.ptr", 8, 0),
        Parameter("f_param_1", "i8", 1, 8),
        Parameter("f_param_2", "!llvm.array<128 x i8>", 128, 64),
        Parameter("f_param_3", "f32", 4, 192),
        Parameter("f_param_4", "!llvm.struct<(i32, i64)>", 16, 200),
        Parameter("f_param_5", "vector<4xf32>", 16, 224),
    )
    assert ".param .align 64 .b8 f_param_2[128]" in f.ptx
    assert (empty.parameters, empty.block_size) == ((), None)


def test_repr_shows_the_launch():
    module = kvcache.compile(GATHER)
    assert "fill(out: !llvm.ptr, flag: i8, value: f32) for sm_90a" in repr(module)
    assert "block_size=(128, 1, 1)" in repr(module.kernels["gather"])
    assert (
        repr(kvcache.compile("module {}"))
        == "<kvcache.CompiledModule for no chip: no kernels>"
    )


def test_kernels_of_one_name():
    module = kvcache.compile(LOOPS)
    assert len(module.kernels) == 2
    for name, kernel in module.kernels.items():
        assert name in (kernel.name, f"{kernel.module}::{kernel.name}")
        assert module.kernel(name) is kernel


def test_unknown_kernel():
    with pytest.raises(
        ValueError, match="no kernel 'nothing'; the module has gather, fill"
    ):
        kvcache.compile(GATHER).kernel("nothing")
    with pytest.raises(ValueError, match="no kernel 'gather' for sm_80"):
        kvcache.compile(GATHER).kernel("gather", "sm_80")


# Targets and options


@pytest.mark.parametrize(
    "target",
    [
        "sm_80,sm_100a",
        "sm_80, sm_100a",
        ["sm_80", "sm_100a"],
        ("sm_80", "sm_100a", "sm_80"),
    ],
)
def test_several_chips(target):
    module = kvcache.compile(GATHER, target)
    assert module.chips == ("sm_80", "sm_100a")
    assert set(module.kernels) == {
        (n, c) for n in ("gather", "fill") for c in module.chips
    }
    for chip in module.chips:
        kernel = module.kernel("gather", chip)
        assert kernel.chip == chip and f".target {chip}" in kernel.ptx
        assert kernel.parameters == module.kernel("gather", "sm_80").parameters
    with pytest.raises(ValueError, match="expects 'chip', one of sm_80, sm_100a"):
        module.kernel("gather")


def test_targets_of_the_source_come_first():
    named = edit(GATHER, ("@kernels {", '@kernels [#nvvm.target<chip = "sm_120a">] {'))
    assert kvcache.compile(named, "sm_80").chips == ("sm_120a",)


@pytest.mark.parametrize("chip", kvcache.chips())
def test_every_chip(chip):
    assert f".target {chip}" in kvcache.compile(GATHER, chip).kernels["gather"].ptx


@pytest.mark.parametrize(
    "target", ["sm_70", "", "SM_90A", "sm_90a,", "gfx942", ["sm_90a", ""], []]
)
def test_unknown_chips(target):
    with pytest.raises(
        ValueError, match="unknown chip .* known are sm_80|at least one chip"
    ):
        kvcache.compile(GATHER, target)


def test_unknown_format():
    with pytest.raises(
        ValueError, match="'format' to be one of ptx, cubin, fatbin, got 'sass'"
    ):
        kvcache.compile(GATHER, format="sass")


@pytest.mark.parametrize("level", [0, 3])
def test_optimization_levels(level):
    assert (
        ".entry gather"
        in kvcache.compile(GATHER, opt_level=level).kernels["gather"].ptx
    )


def test_wrong_optimization_level():
    with pytest.raises(
        ValueError, match="expects 'opt_level' to be 0, 1, 2 or 3, got 4"
    ):
        kvcache.compile(GATHER, opt_level=4)


def test_bounds_checks_trap_with_the_source_line():
    kernel = kvcache.compile(
        GATHER, filename="gather.mlir", bounds_checks=True
    ).kernels["gather"]
    assert "__assertfail" in kernel.ptx or "trap" in kernel.ptx
    # Strings are arrays of bytes in PTX.
    arrays = re.findall(r"\.b8 [^=]*= \{([^}]*)\}", kernel.ptx)
    texts = [bytes(map(int, array.split(","))).decode() for array in arrays]
    assert any("gather.mlir:19:10: " in text for text in texts)


def test_errors_carry_diagnostics(tmp_path):
    path = tmp_path / "wrong.mlir"
    path.write_text(edit(GATHER, ("!cache -> vector<8xbf16>", "!cache -> vector<7xbf16>")))
    with pytest.raises(kvcache.CompileError) as raised:
        kvcache.compile(path)
    assert raised.value.diagnostics[0].filename == str(path)
    assert raised.value.diagnostics[0].line > 0


@pytest.mark.parametrize(
    "op, message",
    [
        ('inline_asm has_side_effects "bogus $5;", "r" %i : (i32) -> ()', "Invalid . operand number"),
        ('inline_asm has_side_effects "", "{eax}" %i : (i32) -> ()', "couldn't allocate"),
        ('call_intrinsic "llvm.prefetch"(%p, %i, %i, %i) : (!llvm.ptr, i32, i32, i32) -> ()', "immarg"),
    ],
)
def test_errors_on_which_llvm_ends_the_process_are_errors(op, message):
    source = f"""
gpu.module @kernels {{
  llvm.func @wait(%i: i32, %p: !llvm.ptr) attributes {{gpu.kernel, nvvm.kernel}} {{
    llvm.{op}
    llvm.return
  }}
}}
"""
    expected = f"LLVM can't compile 'kernels' for sm_80: {message}"
    for _ in range(3):
        with pytest.raises(kvcache.CompileError, match=expected):
            kvcache.compile(source, "sm_80")
    assert kvcache.compile(GATHER, "sm_80").kernels


def make_text_module(name, text):
    """A module whose only kernel is inline PTX."""
    return f"""
gpu.module @{name} {{
  llvm.func @kernel_of_{name}(%i: i32) attributes {{gpu.kernel, nvvm.kernel}} {{
    llvm.inline_asm has_side_effects "{text}", "r" %i : (i32) -> ()
    llvm.return
  }}
}}
"""


@pytest.mark.parametrize("wrong", range(3))
def test_modules_compiled_in_threads_report_fatal_errors(wrong):
    texts = ["bogus $5;" if number == wrong else "fine $0;" for number in range(3)]
    source = "".join(make_text_module(f"m{number}", text) for number, text in enumerate(texts))
    for _ in range(3):
        with pytest.raises(kvcache.CompileError, match=f"LLVM can't compile 'm{wrong}' for sm_80: Invalid"):
            kvcache.compile(source, "sm_80")


def test_modules_compiled_in_threads_report_all_fatal_errors_as_one():
    source = "".join(make_text_module(f"m{number}", "bogus $5;") for number in range(3))
    with pytest.raises(kvcache.CompileError, match="LLVM can't compile 'm[012]' for sm_80: Invalid"):
        kvcache.compile(source, "sm_80")


def test_modules_compiled_in_threads_keep_order():
    source = "".join(make_text_module(f"m{number}", f"instruction{number} $0;") for number in range(8))
    objects = kvcache.compile(source, ["sm_80", "sm_90"]).kernels
    for (name, _), kernel in objects.items():
        assert f"instruction{name.removeprefix('kernel_of_m')} %r" in kernel.ptx
    assert len(objects) == 16


def test_sources_without_kernels():
    assert not kvcache.compile("func.func @f() { return }").kernels


SHARED_PIPELINE = """
import kvcache
kernel = "gpu.module @kernels { llvm.func @empty() attributes {nvvm.kernel} { llvm.return } }"
loops = """ + repr(LOOPS) + """
for source in kernel, loops, kernel, loops:
    assert kvcache.compile(source, "sm_90a").kernels
"""


def test_a_pipeline_serves_sources_of_other_dialects():
    """The first source of the process needs fewer dialects than the second one."""
    subprocess.run([sys.executable, "-c", SHARED_PIPELINE], check=True)


def test_compiling_in_threads():
    chips = kvcache.chips()[:8]
    with ThreadPoolExecutor(4) as pool:
        modules = list(pool.map(lambda chip: kvcache.compile(GATHER, chip), chips))
    assert [module.chips for module in modules] == [(chip,) for chip in chips]


def test_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+", kvcache.__version__)
