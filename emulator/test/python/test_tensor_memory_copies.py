"""tcgen05.cp of every shape: words of tensor memory against rows of shared memory.

Where rows go is written down from the Copy_Traits of CUTLASS (SM100_UTCCP_...), which have
the figures of the PTX ISA as layouts.
"""

import functools
from string import Template

import numpy as np
import pytest
import tensor_memory
from tensor_operands import MEMORY, place
from tensor_products import COMMITS, SHARED

import kvcache

# Shape and multicast: the rows and their bytes, and for each lane of tensor memory its row.
LANES = np.arange(128)
SHAPES = {
    ("128x256b", "none"): (128, 32, LANES),
    ("4x256b", "none"): (4, 32, np.where(LANES % 32 == 0, LANES // 32, -1)),
    ("128x128b", "none"): (128, 16, LANES),
    ("64x128b", "warpx2_02_13"): (64, 16, LANES % 64),
    ("64x128b", "warpx2_01_23"): (64, 16, LANES // 64 * 32 + LANES % 32),
    ("32x128b", "warpx4"): (32, 16, LANES % 32),
}
COLUMNS = 32

BODY = Template("""
    %tile = memref.get_global @a : memref<${memory}xi8, #gpu.address_space<workgroup>>
    %index = memref.extract_aligned_pointer_as_index %tile : memref<${memory}xi8, #gpu.address_space<workgroup>> -> index
    %bar = llvm.mlir.addressof @bar : !llvm.ptr<3>
    %size = arith.constant ${memory} : index
    %first = arith.muli %rank, %size : index
    %units = func.call @fill(%bytes, %first, %index, %size) : (memref<?xi8>, index, index, index) -> i64
    %tensor_words = llvm.inttoptr %warp_address : i32 to !llvm.ptr<6>
    %before = vector.load %words[%rank, %t, %c0] : memref<${blocks}x128x32xi32>, vector<32xi32>
    nvvm.tcgen05.st %tensor_words, %before {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : vector<32xi32>
    nvvm.tcgen05.wait #nvvm.tcgen05_wait<store>
    $ready
    scf.if %is_issuer {
      %address = arith.addi %base, %place : i32
      %to = llvm.inttoptr %address : i32 to !llvm.ptr<6>
      %from = arith.addi %descriptor, %units : i64
      nvvm.tcgen05.cp %to, %from {shape = #nvvm.tcgen05_cp_shape<shape_$shape>, multicast = #nvvm.tcgen05_cp_multicast<$multicast>, group = #nvvm.cta_group<cta_$blocks>}
      $commit
    }
    nvvm.mbarrier.try_wait.parity %bar, %zero, %zero : !llvm.ptr<3>, i32, i32
    nvvm.tcgen05.fence #nvvm.tcgen05_fence<after>
    %after = nvvm.tcgen05.ld %tensor_words {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : vector<32xi32>
    nvvm.tcgen05.wait #nvvm.tcgen05_wait<load>
    vector.store %after, %words[%rank, %t, %c0] : memref<${blocks}x128x32xi32>, vector<32xi32>
""")


def write_program(blocks):
    kernels, functions = [SHARED], []
    parameters = f"%bytes: memref<?xi8>, %words: memref<{blocks}x128x32xi32>, %descriptor: i64, %place: i32"
    for shape, multicast in SHAPES:
        name = f"copy_{shape}_{multicast}"
        body = BODY.substitute(
            memory=MEMORY,
            blocks=blocks,
            ready=tensor_memory.make_ready(blocks),
            commit=COMMITS[blocks],
            shape=shape,
            multicast=multicast,
        )
        kernels.append(tensor_memory.write_kernel(name, parameters, COLUMNS, body, blocks))
        functions.append(tensor_memory.write_function(name, parameters, blocks=blocks))
    return tensor_memory.write_module(kernels, functions)


@functools.cache
def compile(blocks):
    return kvcache.jit(write_program(blocks), target="emulator:sm_100a", opt_level=0)


@pytest.mark.parametrize("blocks", [1, 2])
@pytest.mark.parametrize("swizzle", ["none", "32", "128"])
@pytest.mark.parametrize("form", SHAPES, ids="-".join)
def test_copies(form, swizzle, blocks):
    rows, width, sources = SHAPES[form]
    rng = np.random.default_rng(5)
    # Where rows have fewer bytes than what is between them, the copy takes the first ones.
    values = rng.integers(0, 256, (blocks, max(rows, 8), 32), dtype=np.uint8)
    placed = [place(part, "u8", swizzle, False, 1) for part in values]
    words = rng.integers(0, 1 << 31, (blocks, 128, COLUMNS), dtype=np.int32)
    column, lane = 5, 3 if form[0] == "4x256b" else 0
    expected = words.copy()
    written = np.flatnonzero(sources >= 0)
    copied = values[:, sources[written], :width].copy().view(np.int32)
    expected[:, written + lane, column : column + width // 4] = copied
    memory = np.concatenate([part.memory for part in placed]).view(np.int8)
    compile(blocks).call(
        f"copy_{form[0]}_{form[1]}", memory, words, placed[0].descriptors[0], lane << 16 | column
    )
    np.testing.assert_array_equal(words, expected)
