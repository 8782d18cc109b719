// Registers that say where a thread is, how much there is, and when.

// DEFINE: %{libs} = %kvcache_emulator,%kvcache_runtime,%mlir_lib_dir/libmlir_c_runner_utils.so
// RUN: kvcache-opt %s --kvcache-to-emulator="chip=sm_90a" | mlir-runner -e main -entry-point-result=void -shared-libs=%{libs} | FileCheck %s --match-full-lines

// CHECK:      lane 5, warp 1, masks 20 3f 1f ffffffe0 ffffffc0
// CHECK-NEXT: block 1 of 2, cluster 1 of 2, rank 0 of 1
// CHECK-NEXT: multiprocessor 3 of 132, 64 warps, grid 0
// CHECK-NEXT: shared 4096, dynamic 4096, environment 0
// CHECK-NEXT: time goes on: 1 1
// CHECK-NOT:  {{.+}}

module attributes {gpu.container_module} {

gpu.module @kernels {
  gpu.func @registers() kernel {
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %ctaid = nvvm.read.ptx.sreg.ctaid.x : i32
    %ctaidy = nvvm.read.ptx.sreg.ctaid.y : i32
    %c37 = arith.constant 37 : i32
    %c1 = arith.constant 1 : i32
    %isThread = arith.cmpi eq, %tid, %c37 : i32
    %isBlock = arith.cmpi eq, %ctaid, %c1 : i32
    %isRow = arith.cmpi eq, %ctaidy, %c1 : i32
    %isHere = arith.andi %isBlock, %isRow : i1
    %is = arith.andi %isThread, %isHere : i1
    cf.cond_br %is, ^print, ^end
  ^print:
    %lane = nvvm.read.ptx.sreg.laneid : i32
    %warp = nvvm.read.ptx.sreg.warpid : i32
    %eq = nvvm.read.ptx.sreg.lanemask.eq : i32
    %le = nvvm.read.ptx.sreg.lanemask.le : i32
    %lt = nvvm.read.ptx.sreg.lanemask.lt : i32
    %ge = nvvm.read.ptx.sreg.lanemask.ge : i32
    %gt = nvvm.read.ptx.sreg.lanemask.gt : i32
    gpu.printf "lane %d, warp %d, masks %x %x %x %x %x\n", %lane, %warp, %eq, %le, %lt, %ge, %gt : i32, i32, i32, i32, i32, i32, i32
    %nctaid = nvvm.read.ptx.sreg.nctaid.x : i32
    %clusterid = nvvm.read.ptx.sreg.clusterid.x : i32
    %nclusterid = nvvm.read.ptx.sreg.nclusterid.x : i32
    %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
    %nrank = nvvm.read.ptx.sreg.cluster.nctarank : i32
    gpu.printf "block %d of %d, cluster %d of %d, rank %d of %d\n", %ctaid, %nctaid, %clusterid, %nclusterid, %rank, %nrank : i32, i32, i32, i32, i32, i32
    %smid = nvvm.read.ptx.sreg.smid : i32
    %nsmid = nvvm.read.ptx.sreg.nsmid : i32
    %nwarpid = nvvm.read.ptx.sreg.nwarpid : i32
    %gridid = nvvm.read.ptx.sreg.gridid : i32
    gpu.printf "multiprocessor %d of %d, %d warps, grid %d\n", %smid, %nsmid, %nwarpid, %gridid : i32, i32, i32, i32
    %total = nvvm.read.ptx.sreg.total.smem.size : i32
    %dynamic = nvvm.read.ptx.sreg.dynamic.smem.size : i32
    %environment = nvvm.read.ptx.sreg.envreg7 : i32
    gpu.printf "shared %d, dynamic %d, environment %d\n", %total, %dynamic, %environment : i32, i32, i32
    %before = nvvm.read.ptx.sreg.clock64 : i64
    %timeBefore = nvvm.read.ptx.sreg.globaltimer : i64
    %clock = nvvm.read.ptx.sreg.clock : i32
    %low = nvvm.read.ptx.sreg.globaltimer.lo : i32
    %after = nvvm.read.ptx.sreg.clock64 : i64
    %timeAfter = nvvm.read.ptx.sreg.globaltimer : i64
    %isLater = arith.cmpi sge, %after, %before : i64
    %isTimeLater = arith.cmpi sge, %timeAfter, %timeBefore : i64
    %later = arith.extui %isLater : i1 to i32
    %timeLater = arith.extui %isTimeLater : i1 to i32
    gpu.printf "time goes on: %d %d\n", %later, %timeLater : i32, i32
    nvvm.pmevent id = 3
    cf.br ^end
  ^end:
    gpu.return
  }
}

func.func @main() {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %bytes = arith.constant 4096 : i32
  gpu.launch_func @kernels::@registers blocks in (%c2, %c2, %c1) threads in (%c64, %c1, %c1)
      dynamic_shared_memory_size %bytes
  return
}

}
