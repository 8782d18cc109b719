"""Tests that the examples compile well for every chip, and the README works as written."""

import os
import re
import subprocess
import sys

import pages
import pytest
from edits import edit
from places import ROOT

import kvcache

EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.mlir"))
WITH_TILES = {"attention_op", "key_tile", "sparse_mla", "attention_pipe", "attention_pingpong", "mla_pipe", "mla_pair", "tma_by_hand"}  # test_examples_tiles.py
WITH_TENSORS = {"decode_tensors"}  # data/test_tensor_programs.py
README = pages.read("README.md")


@pytest.mark.parametrize("chip", ["sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a"])
@pytest.mark.parametrize("example", sorted(set(EXAMPLES) - WITH_TILES - WITH_TENSORS))
def test_examples_assemble_with_wide_accesses_and_no_spills(example, chip):
    program = kvcache.compile(ROOT / "examples" / f"{example}.mlir", target=chip)
    assert program.kernels
    for kernel in program.kernels.values():
        assert kernel.spill_bytes == 0 and kernel.stack_bytes == 0
        assert re.search(r"\bld\.global\.nc\.v[48]\.b32\b", kernel.ptx)
        assert ".local" not in kernel.ptx
        assert not re.search(r"\b(ld|st)\.global\S*\.[bsu]8\b", kernel.ptx)
        assert len(kernel.parameters) <= 27


def test_readme_shows_the_quickstart():
    (kernel,) = pages.fences(README, "mlir")
    assert kernel == (ROOT / "examples/quickstart.mlir").read_text()


def test_docs_show_the_step_on_tensors():
    shown = pages.fences(pages.read("docs/how-to/ops-in-mlir.md"), "mlir")
    assert sum(("\n" + text) in (ROOT / "examples/decode_tensors.mlir").read_text() for text in shown) == 1


@pytest.mark.parametrize(("chip", "copies"), [("sm_80", "cp.async.cg"), ("sm_90a", "cp.async.bulk.shared"), ("sm_100a", "gather4")])
def test_how_to_names_the_gather_of_each_chip(chip, copies):
    _, gather, _ = pages.fences(pages.read("docs/how-to/copy-tiles.md"), "mlir")
    types, function = gather.split("func.func private")
    kernel = edit(function, ("return", "gpu.return"),
                  ("%tile: !tile) {", "%out: memref<64x576xi8>) kernel {\n  %tile = kvcache.alloc_tile : !tile"))
    (compiled,) = kvcache.compile(f"{types}gpu.module @kernels {{ gpu.func{kernel} }}", target=chip).kernels.values()
    assert compiled.ptx.count(copies) == (16 if chip == "sm_100a" else 1)


@pytest.mark.slow
def test_demo_agrees_with_numpy():
    result = subprocess.run(
        [sys.executable, ROOT / "examples/demo.py", "--quick", "--chips", "sm_90a", "--verbose"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert result.returncode == 0, result.stdout + result.stderr
    first, *tables = result.stdout.splitlines()
    assert re.fullmatch(
        r"\d+ kernels for 1 chip, none spills, all \d+ results agree with NumPy's \(.* s\)", first
    )
    assert tables
