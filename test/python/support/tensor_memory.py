"""Kernels in tensor memory, and the places of the words of their operands.

The layouts are from the PTX ISA's figures, independent of the emulator.
"""

import itertools
from string import Template

import numpy as np

LANES, COLUMNS = 128, 512

# A kernel of `threads` threads with the columns at %base, between an allocation and its
# deallocation. %warp_address is the first lane of the thread's warp. %rank is the number of the
# thread block in its cluster: one of a pair, or a single one.
KERNEL = """
  gpu.func @{name}({parameters}) kernel {{
    %slot = llvm.mlir.addressof @slot : !llvm.ptr<3>
    %columns = llvm.mlir.constant({columns} : i32) : i32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %t = gpu.thread_id x
    %warp = arith.divui %t, %c32 : index
    %is_first = arith.cmpi eq, %warp, %c0 : index
    scf.if %is_first {{
      nvvm.tcgen05.alloc %slot, %columns {{{group}}} : !llvm.ptr<3>, i32
      nvvm.tcgen05.relinquish_alloc_permit {{{group}}}
    }}
    nvvm.barrier0
    %base = llvm.load %slot : !llvm.ptr<3> -> i32
    %tensor = llvm.inttoptr %base : i32 to !llvm.ptr<6>
    %c4 = arith.constant 4 : index
    %c21 = arith.constant 21 : i32
    %quarter = arith.remui %warp, %c4 : index
    %quarter_i32 = arith.index_cast %quarter : index to i32
    %first_lane = arith.shli %quarter_i32, %c21 : i32
    %warp_address = arith.addi %base, %first_lane : i32
    %cluster_rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
    %rank = arith.index_cast %cluster_rank : i32 to index
    {body}
    nvvm.tcgen05.fence #nvvm.tcgen05_fence<before>
    {sync}
    nvvm.tcgen05.fence #nvvm.tcgen05_fence<after>
    scf.if %is_first {{
      nvvm.tcgen05.dealloc %tensor, %columns {{{group}}} : !llvm.ptr<6>, i32
    }}
    gpu.return
  }}
"""

MODULE = """
module attributes {{gpu.container_module}} {{
gpu.module @kernels {{
  llvm.mlir.global internal @slot() {{addr_space = 3 : i32, alignment = 8 : i64}} : !llvm.array<4 x i32>
  {kernels}
}}
{functions}
}}
"""

FUNCTION = """
func.func @{name}({parameters}) {{
  %c1 = arith.constant 1 : index
  %blocks = arith.constant {blocks} : index
  %threads = arith.constant {threads} : index
  gpu.launch_func @kernels::@{name} clusters in (%blocks, %c1, %c1) blocks in (%blocks, %c1, %c1)
      threads in (%threads, %c1, %c1) args({parameters})
  return
}}
"""


# The barrier of the threads of a thread block, or of both of a pair.
SYNCS = {1: "nvvm.barrier0", 2: "nvvm.cluster.arrive\n    nvvm.cluster.wait"}
# Makes the writes of all threads visible to the issuing thread, and initializes the mbarrier %bar.
READY = Template("""
    %one = arith.constant 1 : i32
    %zero = arith.constant 0 : i32
    %is_thread_0 = arith.cmpi eq, %t, %c0 : index
    %is_rank_0 = arith.cmpi eq, %rank, %c0 : index
    %is_issuer = arith.andi %is_thread_0, %is_rank_0 : i1
    scf.if %is_thread_0 {
      nvvm.mbarrier.init %bar, %one : !llvm.ptr<3>, i32
    }
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async>}
    nvvm.tcgen05.fence #nvvm.tcgen05_fence<before>
    $sync
    nvvm.tcgen05.fence #nvvm.tcgen05_fence<after>""")


def make_ready(blocks):
    return READY.substitute(sync=SYNCS[blocks]).strip()


def write_kernel(name, parameters, columns, body, blocks=1):
    is_pair = blocks == 2
    return KERNEL.format(
        name=name,
        parameters=parameters,
        columns=columns,
        body=body,
        group="group = #nvvm.cta_group<cta_2>" if is_pair else "",
        sync=SYNCS[blocks],
    )


def write_function(name, parameters, threads=128, blocks=1):
    return FUNCTION.format(name=name, parameters=parameters, threads=threads, blocks=blocks)


def write_module(kernels, functions):
    return MODULE.format(kernels="\n".join(kernels), functions="\n".join(functions))


# Loads and stores

# The registers per lane for x1.
REGISTERS = {"16x64b": 1, "16x128b": 2, "16x256b": 4, "32x32b": 1, "16x32bx2": 1}
WIDTHS = {"16x64b": 2, "16x128b": 4, "16x256b": 8, "32x32b": 1, "16x32bx2": 1}


def list_places(shape, count):
    """The lane and column of the word of each of `count` registers of each lane of a warp.

    PTX ISA, "Matrix fragments for shape": rows of a repetition go to groups of threads.
    """
    places = np.zeros((32, count, 2), int)
    for thread, register in itertools.product(range(32), range(count)):
        if shape == "32x32b":
            place = thread, register
        elif shape == "16x32bx2":
            place = thread % 16, register  # of either half
        elif shape == "16x64b":
            # Threads 0 and 1 begin rows 0 and 8; two neighbours of a row are two threads apart.
            place = (thread >> 2) | (thread & 1) << 3, (thread >> 1 & 1) + 2 * register
        else:
            # Four threads share a row, 32 or 64 bits each; rows 8 to 15 have the next ones.
            words = {"16x128b": 1, "16x256b": 2}[shape]
            repetition, rest = divmod(register, 2 * words)
            half, word = divmod(rest, words)
            place = thread // 4 + 8 * half, repetition * 4 * words + thread % 4 * words + word
        places[thread, register] = place
    return places
