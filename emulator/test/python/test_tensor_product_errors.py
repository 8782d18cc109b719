"""Errors of block scales, copies to tensor memory and pairs of blocks, one for each rule.

A right kernel of `tensor_products` is changed in one place. Kernels that are unusual, and right,
pass.
"""

import dataclasses
import re

import pytest
from edits import edit
from tensor_products import COMMITS, Case, write_program
from test_tensor_products import NVFP4, call

import kvcache

MX = Case("mxf8f6f4", "e4m3", "e4m3", "f32", 128, 64, block=32)
PLAIN = Case("f16", "bf16", "bf16", "f32", 128, 64)
PAIR = dataclasses.replace(PLAIN, m=256, blocks=2)
FOLDED = dataclasses.replace(NVFP4, n=64, blocks=2)

COPY_OF_A = re.search(r"nvvm\.tcgen05\.cp %to_a[^\n]*\n", write_program([MX.kernel]))[0]
WAIT = """    nvvm.mbarrier.try_wait.parity %bar, %zero, %zero : !llvm.ptr<3>, i32, i32
    nvvm.tcgen05.fence #nvvm.tcgen05_fence<after>
"""
SYNC = """    nvvm.cluster.arrive
    nvvm.cluster.wait
"""
LAST_SYNC = """    nvvm.tcgen05.fence #nvvm.tcgen05_fence<before>
    nvvm.cluster.arrive
    nvvm.cluster.wait
    nvvm.tcgen05.fence #nvvm.tcgen05_fence<after>
    scf.if %is_first {
      nvvm.tcgen05.dealloc"""
ONE_COMMIT = "nvvm.tcgen05.commit %bar {group = #nvvm.cta_group<cta_2>} : !llvm.ptr<3>\n"


def change_instruction(bits):
    changed = f"""
        %bits_to_change = arith.constant {bits} : i32
        %changed = arith.xori %instruction, %bits_to_change : i32
"""
    return {"        %at_a = llvm.add": changed + "        %at_a = llvm.add", "%at_b, %instruction": "%at_b, %changed"}


def check(case, edits):
    text = edit(write_program([case.kernel]), *edits.items())
    call(case, kvcache.jit(text, target="emulator:sm_100a", opt_level=0))


INSTRUCTION = "tcgen05.mma.block_scale: thread (0, 0, 0) of block (0, 0, 0) expects the instruction descriptor to have "
DESCRIPTORS = {
    "scale id": (dataclasses.replace(NVFP4, block=32, format="ue8m0", steps=1), 1 << 29, "a scale id of A that is a multiple of 2, the number of scales of a row, got 1"),
    "scale id of four": (NVFP4, 2 << 4, "a scale id of B that is a multiple of 4, the number of scales of a row, got 2"),
    "scale format": (MX, 1 << 23, "scales of format ue8m0 for kind mxf8f6f4 with blocks of 32, got ue4m3"),
    "reserved bit": (MX, 1 << 3, "0 for bit 3, which is reserved, got 1"),
    "size of K": (NVFP4, 1 << 31, "0 for the size of K, because the emulator does not support 96, got 1"),
    "64 rows": (MX, 12 << 24, "an M of 128, got 64"),
    "type": (NVFP4, 2 << 7, "types of A and B that kind mxf4nvf4 has, got code 3"),
}


@pytest.mark.parametrize("name", DESCRIPTORS)
def test_instruction_descriptors(name):
    case, bits, message = DESCRIPTORS[name]
    bits -= (bits >> 31) << 32
    with pytest.raises(kvcache.CheckError, match=re.escape(INSTRUCTION + message)):
        check(case, change_instruction(bits))


@pytest.mark.parametrize(
    ("case", "bits", "message"),
    [
        (PAIR, 20 << 24, "an M of 128 or 256, got 64"),
        (PAIR, 1 << 17, "an N from 16 to 256 in steps of 16, got 72"),
        (dataclasses.replace(PLAIN, kind="f8f6f4", a="e4m3", b="e4m3", n=48, transposed=(False, True)), 7 << 17, "an N from 16 to 256 in steps of 16, got 8"),
        (dataclasses.replace(PAIR, kind="i8", a="s8", b="s8", d="s32"), 2 << 17, "an N from 32 to 256 in steps of 32, got 80"),
    ],
    ids=["rows", "columns", "transposed bytes", "integers"],
)
def test_shapes(case, bits, message):
    with pytest.raises(kvcache.CheckError, match=re.escape(message)):
        check(case, change_instruction(bits))


# Places and order

EDITS = {
    # Copies
    "copy to a lane": (
        MX,
        {"        nvvm.tcgen05.cp %to_a": """
        %lane_4 = arith.constant 262144 : i32
        %at_lane = llvm.getelementptr %to_a[%lane_4] : (!llvm.ptr<6>, i32) -> !llvm.ptr<6>, i8
        nvvm.tcgen05.cp %at_lane"""},
        r"tcgen05.cp: thread .* accesses 4 columns of 1 lane at lane 128, .* which has 128 lanes",
    ),
    "copy from another array": (
        MX,
        {"%units_of_factor = arith.constant 256": "%units_of_factor = arith.constant 520"},
        r"tcgen05.cp: thread .* uses 16 bytes at byte \d+ of shared @scales",
    ),
    "copy with a wide swizzle": (
        MX,
        {"0x0000400800000000": "0x2000400800000000"},
        r"tcgen05.cp: thread .* has a descriptor of the source with the swizzle of units of 32 bytes",
    ),
    "source written without a fence": (
        MX,
        {"    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async>}\n": ""},
        r"tcgen05.(cp|mma.*): thread .* reads 16 bytes at byte \d+ of shared @(scales|a), which .* without a proxy fence",
    ),
    "source written in flight": (
        MX,
        {WAIT: "    %scales_i64 = arith.index_cast %scales_index : index to i64\n    %source = llvm.inttoptr %scales_i64 : i64 to !llvm.ptr<3>\n    scf.if %is_issuer {\n      llvm.store %zero, %source : i32, !llvm.ptr<3>\n    }\n" + WAIT},
        r"llvm.store: thread .* writes 4 bytes at byte 0 of shared @scales, which a .* issued by .* in nvvm.tcgen05.cp at .* still reads",
    ),
    "load of what is copied": (
        MX,
        {WAIT: "    nvvm.barrier0\n    %too_early = nvvm.tcgen05.ld %tensor_scales {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : vector<4xi32>\n" + WAIT,
         "    %tensor_words = ": "    %tensor_scales = llvm.getelementptr %tensor_d[320] : (!llvm.ptr<6>) -> !llvm.ptr<6>, i8\n    %tensor_words = "},
        r"tcgen05.ld: thread .* reads lane \d+, column 320 of tensor memory, which was written in nvvm.tcgen05.cp at .* and that may still be in flight",
    ),
    # Scales
    "scales of one warp only": (
        MX,
        {"cp %to_a, %from_a {shape = #nvvm.tcgen05_cp_shape<shape_32x128b>, multicast = #nvvm.tcgen05_cp_multicast<warpx4>":
         "cp %to_a, %from_a {shape = #nvvm.tcgen05_cp_shape<shape_4x256b>, multicast = #nvvm.tcgen05_cp_multicast<none>"},
        r"depends on words which were uninitialized when nvvm.tcgen05.mma.block_scale at .* read them; the first is lane \d+, column 32\d of tensor memory",
    ),
    "scales at a lane": (
        MX,
        {"%at_scales_a, %at_scales_b": "%at_lane, %at_scales_b", "        %s = ": """
        %lane_1 = arith.constant 65536 : i32
        %at_lane = llvm.getelementptr %at_scales_a[%lane_1] : (!llvm.ptr<6>, i32) -> !llvm.ptr<6>, i8
        %s = """},
        r"expects the scales of A to begin at lane 0, got lane 1, column 320 of tensor memory",
    ),
    "scales after the last column": (
        MX,
        {"%tensor_scales_b = llvm.getelementptr %tensor[352]": "%tensor_scales_b = llvm.getelementptr %tensor[511]", "%numWords = arith.constant 4": "%numWords = arith.constant 0"},
        r"accesses 1 column of 32 lanes at lane 0, column 512 of tensor memory",
    ),
    # Pairs
    "peer that may not have begun": (
        PAIR,
        {"<async>}\n    nvvm.tcgen05.fence #nvvm.tcgen05_fence<before>\n" + SYNC: "<async>}\n    nvvm.tcgen05.fence #nvvm.tcgen05_fence<before>\n    nvvm.barrier0\n"},
        r"tcgen05.mma: thread .* accesses shared memory of block \(1, 0, 0\), which may not have begun yet",
    ),
    "blocks without a pair": (
        PAIR,
        {"clusters in (%blocks, %c1, %c1)": "clusters in (%c1, %c1, %c1)"},
        r"tcgen05.alloc: thread .* is for a pair of blocks: block \(0, 0, 0\) has rank 0 in its cluster, of 1 block",
    ),
    "different columns": (
        PAIR,
        {"nvvm.tcgen05.alloc %slot, %columns": "%fewer = arith.shrui %columns, %cluster_rank_of_alloc : i32\n      nvvm.tcgen05.alloc %slot, %fewer",
         "    %c32 = arith.constant 32 : index\n    %t": "    %c32 = arith.constant 32 : index\n    %cluster_rank_of_alloc = nvvm.read.ptx.sreg.cluster.ctarank : i32\n    %t"},
        r"tcgen05.alloc: thread .* allocates (256|512) columns together with block .*, which allocates (256|512)",
    ),
    "allocation by one block": (
        PAIR,
        {"    scf.if %is_first {\n      nvvm.tcgen05.alloc": """
    %of_alloc = nvvm.read.ptx.sreg.cluster.ctarank : i32
    %no = llvm.mlir.constant(0 : i32) : i32
    %is_odd = llvm.icmp "ne" %of_alloc, %no : i32
    scf.if %is_odd {
      nvvm.cluster.arrive
      nvvm.cluster.wait
    }
    scf.if %is_first {
      nvvm.tcgen05.alloc"""},
        r"deadlock(.|\n)*for columns of tensor memory, of which 0 of 512 are allocated, together with block \(1, 0, 0\), none of whose warps has executed an allocation",
    ),
    "peer reads without a wait": (
        PAIR,
        {WAIT: "    scf.if %is_rank_0 {\n" + WAIT.split("\n")[0] + "\n    }\n    nvvm.tcgen05.fence #nvvm.tcgen05_fence<after>\n"},
        r"tcgen05.ld: thread .* of block \(1, 0, 0\) reads lane \d+, column \d+ of tensor memory, which was written in nvvm.tcgen05.mma at .* by thread \(0, 0, 0\) of block \(0, 0, 0\), and that may still be in flight",
    ),
    "commit to one block": (
        PAIR,
        {"nvvm.tcgen05.commit %bar, multicast_mask = %both {group = #nvvm.cta_group<cta_2>} : !llvm.ptr<3>, i16\n": ONE_COMMIT},
        r"deadlock(.|\n)*for the mbarrier at byte 0 of shared @bar of block \(1, 0, 0\), in phase 0, which has 0 of 1 arrivals",
    ),
    "commit outside of the cluster": (
        PAIR,
        {"constant(3 : i16)": "constant(7 : i16)"},
        r"tcgen05.commit: thread .* commits with a multicast mask that has bit 2: the cluster has 2 blocks",
    ),
    "commit to no block": (
        PAIR,
        {"constant(3 : i16)": "constant(0 : i16)"},
        r"tcgen05.commit: thread .* commits with a multicast mask of 0, to no block",
    ),
    "commit before the barrier is initialized": (
        PAIR,
        {"    scf.if %is_thread_0 {\n      nvvm.mbarrier.init": "    scf.if %is_issuer {\n      nvvm.mbarrier.init"},
        r"uses the mbarrier at byte 0 of shared @bar of block \(1, 0, 0\), which is not initialized",
    ),
    "arrival at a block that does not wait": (
        PAIR,
        {"      nvvm.tcgen05.commit %bar, multicast": """
      %bar2 = llvm.getelementptr %bar[1] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i64
      nvvm.tcgen05.commit %bar2, multicast_mask = %both {group = #nvvm.cta_group<cta_2>} : !llvm.ptr<3>, i16
      nvvm.tcgen05.commit %bar, multicast""",
         "      nvvm.mbarrier.init": """
      %second = llvm.getelementptr %bar[1] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i64
      nvvm.mbarrier.init %second, %one : !llvm.ptr<3>, i32
      nvvm.mbarrier.init"""},
        r"tcgen05.commit: thread .* has an arrival at the mbarrier at byte 8 of shared @bar of block \(1, 0, 0\) in flight when block \(1, 0, 0\) ends",
    ),
    "upper lanes without scales": (
        FOLDED,
        {"shape_64x128b>, multicast = #nvvm.tcgen05_cp_multicast<warpx2_01_23>": "shape_4x256b>, multicast = #nvvm.tcgen05_cp_multicast<none>"},
        r"depends on words which were uninitialized when nvvm.tcgen05.mma.block_scale at .* read them; the first is lane \d+, column 3\d\d of tensor memory",
    ),
}


@pytest.mark.parametrize("name", EDITS)
def test_errors(name):
    case, edits, message = EDITS[name]
    with pytest.raises(kvcache.CheckError) as error:
        check(case, edits)
    assert re.search(message, str(error.value)), error.value


RIGHT = {
    # CUTLASS's main loops copy scales of the next tile over those that products read.
    "copy over what a product reads": (MX, {COMMITS[1]: COPY_OF_A.replace("%to_a", "%tensor_scales_a").replace("%from_a", "%descriptor") + COMMITS[1]}),
    # The wait for the commit orders the products of the other block.
    "blocks that end alone": (PAIR, {LAST_SYNC: LAST_SYNC.replace(SYNC, "    nvvm.barrier0\n")}),
    "products by the odd block": (PAIR, {"%is_issuer = arith.andi %is_thread_0, %is_rank_0": "%is_odd = arith.cmpi eq, %rank, %c1 : index\n    %is_issuer = arith.andi %is_thread_0, %is_odd"}),
    # The other block's threads acquire an arrival of a thread that has waited.
    "wait by one block": (
        PAIR,
        {COMMITS[2].strip().splitlines()[1].strip() + "\n": ONE_COMMIT,
         WAIT: "    scf.if %is_rank_0 {\n" + WAIT.splitlines()[0] + "\n    }\n" + SYNC + WAIT.splitlines()[1] + "\n"},
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_unusual_kernels(name):
    check(*RIGHT[name])
