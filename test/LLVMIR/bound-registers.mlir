// RUN: kvcache-opt %s --pass-pipeline="builtin.module(gpu.module(kvcache-bound-registers))" | FileCheck %s
// RUN: kvcache-opt %s --kvcache-to-ptx="chip=sm_90a" --emit-ptx | FileCheck %s --check-prefix=PTX

// Upstream's analysis of ranges takes a register without a range for
// unreachable: what depends on it would be folded.

// CHECK-LABEL: gpu.func @first_lanes
// CHECK:         nvvm.read.ptx.sreg.laneid range <i32, 0, 2147483647> : i32
// CHECK:         nvvm.read.ptx.sreg.tid.x range <i32, 0, 64> : i32

// PTX-LABEL: .entry first_lanes
// PTX:         mov.u32 {{.*}}, %laneid;
// PTX:         selp.b32
gpu.module @kernels {
  gpu.func @first_lanes(%out: memref<64xi32>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %lane = nvvm.read.ptx.sreg.laneid : i32
    %thread = nvvm.read.ptx.sreg.tid.x range <i32, 0, 64> : i32
    %c3 = arith.constant 3 : i32
    %zero = arith.constant 0 : i32
    %is_first = arith.cmpi ult, %lane, %c3 : i32
    %x = arith.addi %lane, %c3 : i32
    %y = arith.select %is_first, %x, %zero : i32
    %i = arith.index_cast %thread : i32 to index
    memref.store %y, %out[%i] : memref<64xi32>
    gpu.return
  }
}
