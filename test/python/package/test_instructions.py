"""Tests of instructions written by hand: every chip compiles them or names the missing feature."""

import functools
import itertools
import os
import re
import subprocess
import threading

import kvcache
import pytest
from compiled import has_tool
from kvcache.compilation.toolchain import find_tool
from matrix_instructions import list_matrix_instructions
from places import OPT

PARAMETERS = """%s: !llvm.ptr<3>, %c: !llvm.ptr<7>, %g: !llvm.ptr<1>, %p: !llvm.ptr, %t: !llvm.ptr<6>,
  %i: i32, %l: i64, %h: i16, %f: f32, %d: f64, %b: i1, %v4: vector<4xi32>, %hh: vector<2xf16>, %bb: vector<2xbf16>,
  %f4: vector<4xf32>, %i8x2: vector<2xi8>, %i8x4: vector<4xi8>"""

# Each instruction is on one of these.
NEWEST = ("sm_90a", "sm_100a", "sm_120")
OTHERS = [
    *("sm_80", "sm_90"),
    *(
        pytest.param(chip, marks=pytest.mark.slow)
        for chip in "sm_89 sm_100f sm_103a sm_120a".split()
    ),
]

REGISTERS = """clusterid.x cluster.ctaid.x cluster.nctaid.x cluster.ctarank cluster.nctarank nclusterid.x
  tid.x laneid warpid smid clock clock64 globaltimer lanemask.eq dynamic.smem.size total.smem.size aggr.smem.size""".split()

# The operands of each are in its name or in the section of the PTX ISA.
OPS = """
nvvm.barrier id = %i number_of_threads = %i
nvvm.barrier.arrive id = %i number_of_threads = %i
nvvm.bar.warp.sync %i : i32
nvvm.breakpoint
nvvm.cluster.arrive {aligned}
nvvm.cluster.arrive.relaxed
nvvm.cluster.wait
nvvm.clusterlaunchcontrol.try.cancel %s, %s
nvvm.clusterlaunchcontrol.try.cancel multicast, %s, %s
nvvm.convert.bf16x2.to.f8x2 %bb {rnd = #nvvm.fp_rnd_mode<rz>} : vector<2xbf16> -> i16 (f8E8M0FNU)
nvvm.convert.f16x2.to.f8x2 %hh : vector<2xf16> -> i16 (f8E4M3FN)
nvvm.convert.f32x2.to.f8x2 %f, %f {rnd = #nvvm.fp_rnd_mode<rn>, sat = #nvvm.sat_mode<satfinite>} : i16 (f8E4M3FN)
nvvm.convert.f32x2.to.f8x2 %f, %f {rnd = #nvvm.fp_rnd_mode<rp>} : i16 (f8E8M0FNU)
nvvm.convert.f32x2.to.f6x2 %f, %f : i16 (f6E2M3FN)
nvvm.convert.f32x2.to.f4x2 %f, %f : i8 (f4E2M1FN)
nvvm.convert.f8x2.to.f16x2 %i8x2 : vector<2xi8> (f8E4M3FN)-> vector<2xf16>
nvvm.convert.f8x2.to.bf16x2 %i8x2 : vector<2xi8> (f8E8M0FNU)-> vector<2xbf16>
nvvm.convert.f6x2.to.f16x2 %i8x2 : vector<2xi8> (f6E2M3FN)-> vector<2xf16>
nvvm.convert.f32x2.to.f16x2 %f, %f {rnd = #nvvm.fp_rnd_mode<rn>} : vector<2xf16>
nvvm.convert.f32x2.to.f16x2 %f, %f, %i {rnd = #nvvm.fp_rnd_mode<rs>} : vector<2xf16>
nvvm.convert.f32x2.to.bf16x2 %f, %f {rnd = #nvvm.fp_rnd_mode<rn>} : vector<2xbf16>
nvvm.convert.f32x2.to.bf16x2 %f, %f, %i {rnd = #nvvm.fp_rnd_mode<rs>} : vector<2xbf16>
nvvm.convert.f32x4.to.f8x4 %f4, %i : vector<4xf32> -> vector<4xi8> (f8E4M3FN)
nvvm.convert.f32x4.to.f6x4 %f4, %i : vector<4xf32> -> vector<4xi8> (f6E2M3FN)
nvvm.convert.f32x4.to.f4x4 %f4, %i : vector<4xf32> -> i16 (f4E2M1FN)
nvvm.convert.float.to.tf32 %f {rnd = #nvvm.fp_rnd_mode<rna>}
nvvm.convert.float.to.tf32 %f {rnd = #nvvm.fp_rnd_mode<rn>}
nvvm.convert.float.to.tf32 %f {rnd = #nvvm.fp_rnd_mode<rz>, relu = true}
nvvm.convert.float.to.tf32 %f {rnd = #nvvm.fp_rnd_mode<rna>, sat = #nvvm.sat_mode<satfinite>}
nvvm.convert.float.to.tf32 %f {rnd = #nvvm.fp_rnd_mode<rn>, sat = #nvvm.sat_mode<satfinite>}
nvvm.cp.async.shared.global %s, %g, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
nvvm.cp.async.commit.group
nvvm.cp.async.mbarrier.arrive %s {noinc = true} : !llvm.ptr<3>
nvvm.cp.async.wait.group 0
nvvm.cp.async.bulk.commit.group
nvvm.cp.async.bulk.wait_group 0
nvvm.cp.async.bulk.prefetch %g, %i : !llvm.ptr<1>
nvvm.cp.async.bulk.global.shared.cta %g, %s, %i : !llvm.ptr<1>, !llvm.ptr<3>
nvvm.cp.async.bulk.global.shared.cta %g, %s, %i byte_mask = %h : !llvm.ptr<1>, !llvm.ptr<3>
nvvm.cp.async.bulk.shared.cluster.global %c, %g, %s, %i : !llvm.ptr<7>, !llvm.ptr<1>
nvvm.cp.async.bulk.shared.cluster.global %c, %g, %s, %i multicast_mask = %h : !llvm.ptr<7>, !llvm.ptr<1>
nvvm.cp.async.bulk.shared.cluster.global %s, %g, %s, %i : !llvm.ptr<3>, !llvm.ptr<1>
nvvm.cp.async.bulk.shared.cluster.shared.cta %c, %s, %s, %i : !llvm.ptr<7>, !llvm.ptr<3>
nvvm.cp.async.bulk.tensor.shared.cluster.global %c, %p, %s, box[%i, %i] : !llvm.ptr<7>, !llvm.ptr
nvvm.cp.async.bulk.tensor.shared.cluster.global %c, %p, %s, box[%i, %i] multicast_mask = %h : !llvm.ptr<7>, !llvm.ptr
nvvm.cp.async.bulk.tensor.shared.cluster.global %c, %p, %s, box[%i, %i] {group = #nvvm.cta_group<cta_1>} : !llvm.ptr<7>, !llvm.ptr
nvvm.cp.async.bulk.tensor.shared.cluster.global %c, %p, %s, box[%i, %i] {group = #nvvm.cta_group<cta_2>} : !llvm.ptr<7>, !llvm.ptr
nvvm.cp.async.bulk.tensor.shared.cluster.global %s, %p, %s, box[%i, %i] {isCTAOnly = true} : !llvm.ptr<3>, !llvm.ptr
nvvm.cp.async.bulk.tensor.shared.cluster.global %c, %p, %s, box[%i, %i, %i, %i, %i] {mode = #nvvm.tma_load_mode<tile_gather4>} : !llvm.ptr<7>, !llvm.ptr
nvvm.cp.async.bulk.tensor.shared.cluster.global %s, %p, %s, box[%i, %i, %i, %i, %i] {isCTAOnly = true, mode = #nvvm.tma_load_mode<tile_gather4>} : !llvm.ptr<3>, !llvm.ptr
nvvm.cp.async.bulk.tensor.shared.cluster.global %c, %p, %s, box[%i, %i, %i] im2col[%h] {mode = #nvvm.tma_load_mode<im2col>} : !llvm.ptr<7>, !llvm.ptr
nvvm.cp.async.bulk.tensor.shared.cluster.global %c, %p, %s, box[%i, %i, %i] im2col[%h, %h] {mode = #nvvm.tma_load_mode<im2col_w>} : !llvm.ptr<7>, !llvm.ptr
nvvm.cp.async.bulk.tensor.shared.cluster.global %c, %p, %s, box[%i, %i, %i] im2col[%h, %h] {mode = #nvvm.tma_load_mode<im2col_w_128>} : !llvm.ptr<7>, !llvm.ptr
nvvm.cp.async.bulk.tensor.shared.cluster.global %s, %p, %s, box[%i, %i, %i] im2col[%h, %h] {isCTAOnly = true, mode = #nvvm.tma_load_mode<im2col_w>} : !llvm.ptr<3>, !llvm.ptr
nvvm.cp.async.bulk.tensor.prefetch %p, box[%i, %i] : !llvm.ptr
nvvm.cp.async.bulk.tensor.prefetch %p, box[%i, %i, %i, %i, %i] {mode = #nvvm.tma_load_mode<tile_gather4>} : !llvm.ptr
nvvm.cp.async.bulk.tensor.prefetch %p, box[%i, %i, %i] im2col[%h] {mode = #nvvm.tma_load_mode<im2col>} : !llvm.ptr
nvvm.cp.async.bulk.tensor.prefetch %p, box[%i, %i, %i] im2col[%h, %h] {mode = #nvvm.tma_load_mode<im2col_w>} : !llvm.ptr
nvvm.cp.async.bulk.tensor.prefetch %p, box[%i, %i, %i] im2col[%h, %h] {mode = #nvvm.tma_load_mode<im2col_w_128>} : !llvm.ptr
nvvm.cp.async.bulk.tensor.global.shared.cta %p, %s, box[%i, %i] : !llvm.ptr, !llvm.ptr<3>
nvvm.cp.async.bulk.tensor.global.shared.cta %p, %s, box[%i, %i, %i, %i, %i] {mode = #nvvm.tma_store_mode<tile_scatter4>} : !llvm.ptr, !llvm.ptr<3>
nvvm.cp.async.bulk.tensor.global.shared.cta %p, %s, box[%i, %i, %i] {mode = #nvvm.tma_store_mode<im2col>} : !llvm.ptr, !llvm.ptr<3>
nvvm.cp.async.bulk.tensor.reduce %p, %s, box[%i, %i] {redKind = #nvvm.tma_redux_kind<add>} : !llvm.ptr, !llvm.ptr<3>
nvvm.dot.accumulate.4way %i8x4 <signed>, %i8x4 <signed>, %i : vector<4xi8>, vector<4xi8>
nvvm.elect.sync -> i1
nvvm.exit
nvvm.fence.mbarrier.init
nvvm.fence.proxy {kind = #nvvm.proxy_kind<alias>}
nvvm.fence.proxy {kind = #nvvm.proxy_kind<async>}
nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.global>}
nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cluster>}
nvvm.fence.proxy.acquire #nvvm.mem_scope<cta> %p, %n
nvvm.fence.proxy.release #nvvm.mem_scope<gpu>
nvvm.fence.proxy.sync_restrict {order = #nvvm.mem_order<acquire>}
nvvm.fence.sync_restrict {order = #nvvm.mem_order<release>}
nvvm.fence.sc.cluster
nvvm.griddepcontrol wait
nvvm.griddepcontrol launch_dependents
nvvm.ldmatrix %s {num = 4 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
nvvm.ldmatrix %s {num = 1 : i32, layout = #nvvm.mma_layout<col>, shape = #nvvm.ld_st_matrix_shape<m = 16, n = 16>, eltType = #nvvm.ld_st_matrix_elt_type<b8>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32)>
nvvm.ldmatrix %s {num = 1 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 16>, eltType = #nvvm.ld_st_matrix_elt_type<b8x16.b6x16_p32>} : (!llvm.ptr<3>) -> i32
nvvm.stmatrix %s, %i {layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : !llvm.ptr<3>, i32
nvvm.stmatrix %s, %i {layout = #nvvm.mma_layout<col>, shape = #nvvm.ld_st_matrix_shape<m = 16, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b8>} : !llvm.ptr<3>, i32
nvvm.mapa %s, %i : !llvm.ptr<3> -> !llvm.ptr<7>
nvvm.mapa %p, %i : !llvm.ptr -> !llvm.ptr
nvvm.match.sync any %i, %i : i32 -> i32
nvvm.mbarrier.init %s, %i : !llvm.ptr<3>, i32
nvvm.mbarrier.inval %s : !llvm.ptr<3>
nvvm.mbarrier.arrive %s : !llvm.ptr<3> -> i64
nvvm.mbarrier.arrive %s, %i : !llvm.ptr<3> -> i64
nvvm.mbarrier.arrive %s {relaxed = true} : !llvm.ptr<3> -> i64
nvvm.mbarrier.arrive %s {scope = #nvvm.mem_scope<cluster>} : !llvm.ptr<3> -> i64
nvvm.mbarrier.arrive %c {scope = #nvvm.mem_scope<cluster>} : !llvm.ptr<7>
nvvm.mbarrier.arrive.nocomplete %s, %i : !llvm.ptr<3>, i32 -> i64
nvvm.mbarrier.arrive.expect_tx %s, %i : !llvm.ptr<3>, i32 -> i64
nvvm.mbarrier.arrive_drop %s : !llvm.ptr<3> -> i64
nvvm.mbarrier.arrive_drop %s, %i : !llvm.ptr<3> -> i64
nvvm.mbarrier.arrive_drop.nocomplete %s, %i : !llvm.ptr<3>, i32 -> i64
nvvm.mbarrier.arrive_drop.expect_tx %s, %i : !llvm.ptr<3>, i32 -> i64
nvvm.mbarrier.expect_tx %s, %i : !llvm.ptr<3>, i32
nvvm.mbarrier.complete_tx %s, %i : !llvm.ptr<3>, i32
nvvm.mbarrier.test.wait %s, %l : !llvm.ptr<3>, i64 -> i1
nvvm.mbarrier.test.wait %s, %i : !llvm.ptr<3>, i32 -> i1
nvvm.mbarrier.test.wait %s, %l {scope = #nvvm.mem_scope<cluster>} : !llvm.ptr<3>, i64 -> i1
nvvm.mbarrier.try_wait %s, %l : !llvm.ptr<3>, i64 -> i1
nvvm.mbarrier.try_wait %s, %i {scope = #nvvm.mem_scope<cluster>} : !llvm.ptr<3>, i32 -> i1
nvvm.mbarrier.try_wait.parity %s, %i, %i : !llvm.ptr<3>, i32, i32
nvvm.memory.barrier #nvvm.mem_scope<gpu>
nvvm.memory.barrier #nvvm.mem_scope<cluster>
nvvm.nanosleep %i
nvvm.pmevent id = 1
nvvm.prefetch level = L1, %p : !llvm.ptr
nvvm.prefetch level = L2, evict_priority = evict_last, %g : !llvm.ptr<1>
nvvm.prefetch tensormap, %p : !llvm.ptr
nvvm.redux.sync add %i, %i : i32 -> i32
nvvm.redux.sync fmin %f, %i : f32 -> f32
nvvm.redux.sync fmax %f, %i {nan = true, abs = true} : f32 -> f32
nvvm.setmaxregister increase 240
nvvm.shfl.sync bfly %i, %i, %i, %i : i32 -> i32
nvvm.vote.sync ballot %i, %b -> i32
nvvm.st.bulk %p, size = %l : !llvm.ptr
nvvm.st.bulk %s, size = %l : !llvm.ptr<3>
nvvm.wgmma.fence.aligned
nvvm.wgmma.commit.group.sync.aligned
nvvm.wgmma.wait.group.sync.aligned 0
nvvm.tcgen05.alloc %s, %i : !llvm.ptr<3>, i32
nvvm.tcgen05.dealloc %t, %i : !llvm.ptr<6>, i32
nvvm.tcgen05.relinquish_alloc_permit
nvvm.tcgen05.fence #nvvm.tcgen05_fence<before>
nvvm.tcgen05.wait #nvvm.tcgen05_wait<load>
nvvm.tcgen05.commit %s : !llvm.ptr<3>
nvvm.tcgen05.commit %s {group = #nvvm.cta_group<cta_2>} : !llvm.ptr<3>
nvvm.tcgen05.shift %t : !llvm.ptr<6>
nvvm.tcgen05.cp %t, %l {shape = #nvvm.tcgen05_cp_shape<shape_128x256b>}
nvvm.tcgen05.cp %t, %l {shape = #nvvm.tcgen05_cp_shape<shape_128x256b>, srcFormat = #nvvm.tcgen05_cp_src_fmt<b4x16_p64>}
nvvm.tcgen05.ld %t {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : vector<4xi32>
nvvm.tcgen05.st %t, %v4 {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : vector<4xi32>
nvvm.tcgen05.mma %t, %l, %l, %i, %b {kind = #nvvm.tcgen05_mma_kind<f16>, ctaGroup = #nvvm.cta_group<cta_1>} : (!llvm.ptr<6>, i64, i64, i32, i1)
nvvm.tcgen05.mma %t, %l, %l, %i, %b {kind = #nvvm.tcgen05_mma_kind<i8>, ctaGroup = #nvvm.cta_group<cta_1>} : (!llvm.ptr<6>, i64, i64, i32, i1)
nvvm.tcgen05.mma.ws %t, %l, %l, %i, %b {kind = #nvvm.tcgen05_mma_kind<f16>} : (!llvm.ptr<6>, i64, i64, i32, i1)
nvvm.tcgen05.mma.block_scale %t, %l, %l, %i, %b, %t, %t {kind = #nvvm.block_scale_kind<mxf4>, ctaGroup = #nvvm.cta_group<cta_1>} : (!llvm.ptr<6>, i64, i64, i32, i1, !llvm.ptr<6>, !llvm.ptr<6>)
nvvm.tcgen05.mma.block_scale %t, %l, %l, %i, %b, %t, %t {kind = #nvvm.block_scale_kind<mxf4nvf4>, ctaGroup = #nvvm.cta_group<cta_1>, blockScale = #nvvm.tcgen05_mma_block_scale<block16>} : (!llvm.ptr<6>, i64, i64, i32, i1, !llvm.ptr<6>, !llvm.ptr<6>)
nvvm.mma.sync A[%i, %i] B[%i] C[%f, %f, %f, %f] {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, multiplicandAPtxType = #nvvm.mma_type<bf16>, multiplicandBPtxType = #nvvm.mma_type<bf16>, shape = #nvvm.shape<m = 16, n = 8, k = 8>} : (i32, i32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
nvvm.mma.sp.sync A[%hh, %hh] B[%hh, %hh] C[%hh, %hh] sparseMetadata[%i] selector[%o] {multiplicandAPtxType = #nvvm.mma_type<f16>, multiplicandBPtxType = #nvvm.mma_type<f16>, shape = #nvvm.shape<m = 16, n = 8, k = 16>} : (vector<2xf16>, vector<2xf16>, vector<2xf16>) -> !llvm.struct<(vector<2xf16>, vector<2xf16>)>
nvvm.mma.sp.sync A[%hh, %hh] B[%hh, %hh] C[%hh, %hh] sparseMetadata[%i] selector[%o] {orderedMetadata, multiplicandAPtxType = #nvvm.mma_type<f16>, multiplicandBPtxType = #nvvm.mma_type<f16>, shape = #nvvm.shape<m = 16, n = 8, k = 16>} : (vector<2xf16>, vector<2xf16>, vector<2xf16>) -> !llvm.struct<(vector<2xf16>, vector<2xf16>)>
llvm.fence syncscope("cluster") seq_cst
llvm.fence syncscope("device") acq_rel
llvm.load %c : !llvm.ptr<7> -> i32
llvm.load %g atomic syncscope("cluster") acquire {alignment = 4 : i64} : !llvm.ptr<1> -> i32
llvm.atomicrmw fadd %g, %f syncscope("cluster") monotonic : !llvm.ptr<1>, f32
llvm.atomicrmw fadd %g, %bb monotonic : !llvm.ptr<1>, vector<2xbf16>
llvm.load %t : !llvm.ptr<6> -> i32
llvm.call_intrinsic "llvm.exp2"(%hh) : (vector<2xf16>) -> vector<2xf16>
llvm.intr.tanh(%f) {fastmathFlags = #llvm.fastmath<afn>} : (f32) -> f32
llvm.call_intrinsic "llvm.nvvm.mma.m16n8k32.row.col.f32.e4m3.e4m3.f32"(%i, %i, %i, %i, %i, %i, %f, %f, %f, %f) : (i32, i32, i32, i32, i32, i32, f32, f32, f32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
llvm.call_intrinsic "llvm.nvvm.barrier.cluster.arrive"() : () -> ()
llvm.call_intrinsic "llvm.nvvm.fence.mbarrier_init.release.cluster"() : () -> ()
llvm.call_intrinsic "llvm.nvvm.griddepcontrol.wait"() : () -> ()
llvm.call_intrinsic "llvm.nvvm.setmaxnreg.inc.sync.aligned.u32"(%n) : (i32) -> ()
llvm.call_intrinsic "llvm.nvvm.redux.sync.fmin"(%f, %i) : (f32, i32) -> f32
llvm.call_intrinsic "llvm.nvvm.tcgen05.wait.ld"() : () -> ()
llvm.call_intrinsic "llvm.nvvm.wgmma.fence.sync.aligned"() : () -> ()
llvm.call_intrinsic "llvm.nvvm.ff.to.e4m3x2.rn"(%f, %f) : (f32, f32) -> i16
llvm.call_intrinsic "llvm.nvvm.f2tf32.rn"(%f) : (f32) -> i32
llvm.call_intrinsic "llvm.nvvm.mapa.shared.cluster"(%s, %i) : (!llvm.ptr<3>, i32) -> !llvm.ptr<7>
llvm.call_intrinsic "llvm.nvvm.elect.sync"(%i) : (i32) -> !llvm.struct<(i32, i1)>
"""


def find_result(op: str) -> str | None:
    """The type of an op's result, from its text; None for an op without results."""
    if "-> ()" in op or op.startswith("nvvm.tcgen05"):
        return None
    if "->" in op:
        return re.sub(r" \(f\w+\)$", "", op.rsplit("->", 1)[1].strip())
    if op.startswith("nvvm.read"):
        return op.rsplit(" ", 1)[1]
    if "tf32" in op or op.startswith("nvvm.dot"):
        return "i32"
    if op.startswith("nvvm.convert"):
        return re.search(r" : (\S+)", op)[1]
    return None


def write_module(op: str, name: str = "kernel") -> str:
    """Writes a kernel with an op, whose result is used."""
    result = find_result(op)
    line = f"%r = {op}\n    llvm.store %r, %p : {result}, !llvm.ptr" if result else op
    undefined = f"%z = llvm.mlir.undef : {result}" if "%z" in op else ""
    return f"""gpu.module @m {{
  llvm.func @{name}({PARAMETERS}) attributes {{nvvm.kernel, nvvm.maxnreg = 64 : i32}} {{
    %n = llvm.mlir.constant(128 : i32) : i32
    %o = llvm.mlir.constant(0 : i32) : i32
    {undefined}
    {line}
    llvm.return
  }}
}}
"""


@functools.cache
def list_ops() -> list[str]:
    wide = ("clock64", "globaltimer")
    registers = [
        f"nvvm.read.ptx.sreg.{r} : {'i64' if r in wide else 'i32'}" for r in REGISTERS
    ]
    return [*OPS.strip().splitlines(), *registers, *list_matrix_instructions()]


def compile_all(chip: str, pipeline: str, *options: str) -> str:
    """The output of kvcache-opt for all modules, one by one: compiled, or an error.

    LLVM's back end would end the process, and Python would lose a thread.
    """
    modules = [write_module(op, f"kernel_{i}") for i, op in enumerate(list_ops())]
    run = subprocess.run(
        [OPT, "-", "--split-input-file", f"--kvcache-to-{pipeline}=chip={chip}", *options],
        input="// -----\n".join(modules),
        capture_output=True,
        text=True,
    )
    assert run.returncode in (0, 1), run.stderr[-2000:]
    assert "custom op" not in run.stderr
    assert "LLVM can't compile" not in run.stderr
    for line in run.stderr.splitlines():
        if "error:" in line and "Failed creating" not in line:
            assert re.match(r"within split at \S+ offset \S+ error: |\S+:\d+:\d+: error: ", line)
    return run.stdout


@pytest.mark.long
@pytest.mark.parametrize("chip", ["sm_80", *NEWEST])
def test_the_emulator_has_every_instruction_or_says_so(chip):
    compile_all(chip, "emulator")


HEADER = re.compile(r"^\.(version|target|address_size) .*$", re.MULTILINE)


def assemble(texts: str, chip: str, folder) -> str:
    """The output of ptxas for the kernels in several texts of PTX."""
    header = "\n".join(line[0] for line in itertools.islice(HEADER.finditer(texts), 3))
    path = folder / "kernels.ptx"
    path.write_text(header + "\n" + HEADER.sub("", texts))
    command = [find_tool("ptxas"), "-O0", f"-arch={chip}", path, "-o", os.devnull]
    return subprocess.run(command, capture_output=True, text=True).stderr


def compile_to_ptx(chip: str, folder) -> str:
    """The PTX of all instructions of the chip, which ptxas assembles."""
    texts = compile_all(chip, "ptx", "--emit-ptx")
    assert texts.count(".entry") > 90
    if has_tool("ptxas"):
        assert "error" not in assemble(texts, chip, folder)
    return texts


@pytest.mark.long
@pytest.mark.parametrize("chip", OTHERS)
def test_every_instruction_compiles_or_is_an_error(chip, tmp_path):
    compile_to_ptx(chip, tmp_path)


@pytest.mark.slow
def test_some_chip_compiles_each_instruction(tmp_path):
    """Each of the lines above tests an instruction, not an error in its text."""
    compiled = "".join(compile_to_ptx(chip, tmp_path) for chip in NEWEST)
    missing = [
        op for i, op in enumerate(list_ops()) if f".entry kernel_{i}(" not in compiled and "<b1>" not in op
    ]
    assert missing == []


def test_an_instruction_that_the_chip_lacks_keeps_the_thread():
    before = threading.active_count()
    source = write_module("nvvm.fence.proxy {kind = #nvvm.proxy_kind<async>}")
    with pytest.raises(
        kvcache.CompileError,
        match="'nvvm.fence.proxy' op requires sm_90 or newer, but the target is sm_80",
    ):
        kvcache.compile(source, target="sm_80")
    assert threading.active_count() == before
