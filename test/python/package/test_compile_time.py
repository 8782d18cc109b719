"""Tests that the cost of a compilation is linear in its source, without measuring seconds."""

import os
import resource
import subprocess
import sys

import pytest
from edits import edit
from places import OPT

import kvcache

HEAD = """
#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
gpu.module @kernels {
"""

KERNEL = """
gpu.func @{name}(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                 %max_seq: i32, %max_cache: i32, %layer: index)
    kernel attributes {{known_block_size = array<i32: 16, 8, 1>}} {{
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %collection = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache
      : memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !collection
  %keys = kvcache.paged_view key %collection[%layer] : !collection
  %b = gpu.block_id y
  %t = gpu.block_id x
  %h = gpu.thread_id y
  %lane = gpu.thread_id x
  %d = arith.muli %lane, %c8 : index
  {body}
  gpu.return
}}
"""

MOVE = """
  %i{i} = arith.constant {i} : index
  %t{i} = arith.addi %t, %i{i} : index
  %u{i} = arith.addi %t{i}, %c16 : index
  %v{i} = kvcache.load %keys[%b, %h, %t{i}, %d] : !cache -> vector<8xbf16>
  kvcache.store %v{i}, %keys[%b, %h, %u{i}, %d] : vector<8xbf16>, !cache
"""


def write_kernel(name: str, moves: int) -> str:
    return KERNEL.format(name=name, body="".join(MOVE.format(i=i) for i in range(moves)))


def compile_to_ptx(*kernels: str) -> list[str]:
    """The lines of the PTX of a module with these kernels."""
    module = kvcache.compile(HEAD + "".join(kernels) + "}", target="sm_90a")
    return next(iter(module.kernels.values())).ptx.splitlines()


def count(lines: list[str], instruction: str) -> int:
    return sum(instruction in line for line in lines)


@pytest.mark.parametrize("moves", [2, 20, 200])
def test_moves_in_a_kernel_have_equal_instruction_counts(moves):
    lines = compile_to_ptx(write_kernel("kernel", moves))
    assert count(lines, "st.global.v4.b32") == moves
    assert count(lines, "ld.global.v4.b32") == moves
    assert len(lines) < 60 + 40 * moves


def test_kernels_of_a_module_have_equal_instruction_counts():
    alone = compile_to_ptx(write_kernel("k0", 1))
    together = compile_to_ptx(*(write_kernel(f"k{i}", 1) for i in range(20)))
    assert count(together, ".entry") == 20
    assert count(together, "st.global") == 20 * count(alone, "st.global")
    assert len(together) <= 20 * len(alone)


def test_a_long_straight_line_stays_one():
    """Long blocks are split for LLVM's back end, and merged again after it."""
    moves = 300
    lines = compile_to_ptx(write_kernel("kernel", moves))
    assert count(lines, "st.global.v4.b32") == count(lines, "ld.global.v4.b32") == moves
    assert count(lines, "bra") == 0
    assert not any(line.startswith("$L") for line in lines)


FUNCTION = """
func.func @{name}(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                  %max_seq: i32, %max_cache: i32, %b: index, %h: index, %t: index, %d: index) {{
  %c16 = arith.constant 16 : index
  %collection = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache
      : memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !collection
  %keys = kvcache.paged_view key %collection[%b] : !collection
  {body}
  return
}}
"""


def limit_seconds():
    """Ends compilations of quadratic time: minutes instead of seconds."""
    resource.setrlimit(resource.RLIMIT_CPU, (30, 30))


@pytest.mark.long
def test_checks_of_a_long_host_function_take_little_memory(tmp_path):
    """A branch for each check took 16 GB."""
    body = "".join(MOVE.format(i=i) for i in range(1000))
    source = tmp_path / "function.mlir"
    types = edit(HEAD, ("gpu.module @kernels {", ""))
    source.write_text(types + FUNCTION.format(name="f", body=body))
    command = [OPT, source, "--kvcache-bounds-checks", "--kvcache-to-cpu", "-o", os.devnull]
    # The memory of a process includes that of its parent before the fork.
    small = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    run = subprocess.run(
        [sys.executable, "-c", small, *command],
        preexec_fn=limit_seconds,
        check=True,
        capture_output=True,
        text=True,
    )
    assert int(run.stdout) < 300 * 1024


def test_checks_of_a_long_kernel_take_linear_time(tmp_path):
    """A search for a free name of each message took hours."""
    check = '    gpu.printf "%lld is bad {i}\\n", %i : index\n    cf.assert %holds, "bad {i}"\n'
    checks = "".join(check.format(i=i) for i in range(4000))
    source = tmp_path / "kernel.mlir"
    source.write_text(
        "gpu.module @kernels {\n  gpu.func @checked(%i: index, %holds: i1) kernel {\n"
        f"{checks}    gpu.return\n  }}\n}}\n"
    )
    pipeline = "builtin.module(gpu.module(kvcache-kernels-to-nvvm))"
    command = [OPT, source, f"--pass-pipeline={pipeline}", "-o", tmp_path / "lowered.mlir"]
    subprocess.run(command, preexec_fn=limit_seconds, check=True)
    lowered = (tmp_path / "lowered.mlir").read_text()
    assert lowered.count("call @__assertfail") == lowered.count("call @vprintf") == 4000
    assert lowered.count("llvm.alloca") == 1
