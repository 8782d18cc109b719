"""A source that tests compile, and the tools that assemble it."""

import re
import subprocess

import kvcache
import pytest
from kvcache.compilation import toolchain
from places import OPT


def has_tool(name):
    try:
        return toolchain.find_tool(name).exists()
    except kvcache.ToolchainError:
        return False


needs_ptxas = pytest.mark.skipif(not has_tool("ptxas"), reason="needs ptxas")
needs_nvdisasm = pytest.mark.skipif(not has_tool("nvdisasm"), reason="needs nvdisasm")
needs_tools = pytest.mark.skipif(not (has_tool("ptxas") and has_tool("nvdisasm")), reason="needs ptxas and nvdisasm")


def check_assembled(source, chip, folder, messages=()):
    """Checks that ptxas assembles the kernels without spills.

    Except for ``messages``, it reports no injected waits and fences, and no serialization (C7510 to
    C7519).
    """
    options = [f"--kvcache-to-ptx=chip={chip}", "--emit-ptx"]
    result = subprocess.run([OPT, "-", *options], input=source, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    path = folder / "kernels.ptx"
    path.write_text(result.stdout)
    command = [toolchain.find_tool("ptxas"), "-v", f"-arch={chip}", path, "-o", folder / "kernels.cubin"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    spills = re.findall(r"(\d+) bytes spill stores, (\d+) bytes spill loads", result.stderr)
    assert spills and set(spills) == {("0", "0")}
    assert set(re.findall(r"\((C75\d+)\)", result.stderr)) == set(messages)


GATHER = """
#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!blocks = memref<?x2x?x64x8x128xbf16>

gpu.module @kernels {
  gpu.func @gather(%blocks: !blocks, %lengths: memref<?xi32>, %table: memref<?x?xi32>,
                   %out: memref<?x8xbf16>, %layer: i32) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %zero = arith.constant 0 : i32
    %c0 = arith.constant 0 : index
    %l = arith.index_castui %layer : i32 to index
    %c = kvcache.paged_collection %blocks, %lengths, %table, %zero, %zero
           : !blocks, memref<?xi32>, memref<?x?xi32> -> !collection
    %k = kvcache.paged_view key %c[%l] : !collection
    %b = gpu.block_id x
    %t = gpu.thread_id x
    %v = kvcache.load %k[%b, %c0, %t, %c0] : !cache -> vector<8xbf16>
    vector.store %v, %out[%t, %c0] : memref<?x8xbf16>, vector<8xbf16>
    gpu.return
  }
  gpu.func @fill(%out: memref<32xf32>, %flag: i8, %value: f32)
      workgroup(%shared: memref<32xf32, #gpu.address_space<workgroup>>) kernel {
    %t = gpu.thread_id x
    memref.store %value, %shared[%t] : memref<32xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %zero = arith.constant 0 : index
    %first = memref.load %shared[%zero] : memref<32xf32, #gpu.address_space<workgroup>>
    memref.store %first, %out[%t] : memref<32xf32>
    gpu.return
  }
}
"""


def identity(*types):
    """A module with a function that returns its arguments."""
    values = ", ".join(f"%a{i}" for i in range(len(types)))
    arguments = ", ".join(f"%a{i}: {type}" for i, type in enumerate(types))
    results = ", ".join(types)
    returned = f"return {values} : {results}" if types else "return"
    return f"func.func @identity({arguments}) -> ({results}) {{ {returned} }}"


CHECKED = """
#kv = #kvcache.params<num_heads = 2, head_size = 8>
!collection = !kvcache.paged_collection<f32, #kv, page_size = 4>
!cache = !kvcache.paged<f32, #kv, page_size = 4>
func.func @row(%blocks: memref<?x2x?x4x2x8xf32>, %lengths: memref<?xi32>,
               %table: memref<?x?xi32>, %b: index, %t: index) -> index {
  %zero = arith.constant 0 : i32
  %c0 = arith.constant 0 : index
  %c = kvcache.paged_collection %blocks, %lengths, %table, %zero, %zero
         : memref<?x2x?x4x2x8xf32>, memref<?xi32>, memref<?x?xi32> -> !collection
  %k = kvcache.paged_view key %c[%c0] : !collection
  %r = kvcache.row_index %k[%b, %t] : !cache
  return %r : index
}
"""
