// RUN: split-file %s %t
// RUN: kvcache-opt %t/copy.mlir --kvcache-to-emulator="chip=sm_90a" | FileCheck %s
// RUN: kvcache-opt %t/copy.mlir --kvcache-to-emulator="chip=sm_90a,sm_80" | FileCheck %s --check-prefix=TWO
// RUN: not kvcache-opt %t/copy.mlir --kvcache-to-emulator 2>&1 | FileCheck %s --check-prefix=NO-CHIP
// RUN: not kvcache-opt %t/copy.mlir --kvcache-to-emulator="chip=sm_91" 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not kvcache-opt %t/gather4.mlir --kvcache-to-emulator="chip=sm_90a" 2>&1 | FileCheck %s --check-prefix=GATHER4
// RUN: kvcache-opt %t/gather4.mlir --kvcache-to-emulator="chip=sm_100a" | FileCheck %s --check-prefix=HAS-GATHER4

// Host code calls the device as it does for a GPU; what differs is the image.

// CHECK-DAG:   llvm.mlir.global internal constant @{{.*}}("emulator:sm_90a\00")
// CHECK-DAG:   llvm.mlir.global internal constant @copy_kernel() {{.*}} : !llvm.struct<(ptr, ptr, i64)>
// CHECK-DAG:   llvm.mlir.global internal constant @copy_kernel_emulated()
// CHECK-LABEL: llvm.func @copy(
// CHECK:         llvm.mlir.addressof @copy_kernel
// CHECK:         llvm.call @kvcacheModuleLoad
// CHECK:         llvm.call @kvcacheLaunch
// CHECK-NOT:   gpu.
// CHECK-NOT:   nvvm.

// TWO-DAG:   constant @{{.*}}("emulator:sm_90a\00")
// TWO-DAG:   constant @{{.*}}("emulator:sm_80\00")
// TWO-DAG:   constant @copy_kernel_images() {{.*}} : !llvm.array<2 x struct<(ptr, ptr, i64)>>

// NO-CHIP: error: 'gpu.module' op expects a target: '#nvvm.target' on the module, or the pipeline option 'chip'
// UNKNOWN: error: 'gpu.module' op unknown chip 'sm_91'
// GATHER4: gather4.mlir:[[#]]:{{[0-9]+}}: error: 'nvvm.cp.async.bulk.tensor.shared.cluster.global' op {{.*}}gather4{{.*}}sm_90a
// HAS-GATHER4: llvm.call @kvcacheEmulator

//--- copy.mlir

func.func @copy(%in: memref<?x32xf32>, %out: memref<?x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %n = memref.dim %in, %c0 : memref<?x32xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    scf.parallel (%j) = (%c0) to (%c32) step (%c1) {
      %x = memref.load %in[%i, %j] : memref<?x32xf32>
      memref.store %x, %out[%i, %j] : memref<?x32xf32>
    }
  }
  return
}

//--- gather4.mlir

gpu.module @kernels {
  llvm.func @gather(%to: !llvm.ptr<3>, %map: !llvm.ptr, %barrier: !llvm.ptr<3>, %c: i32)
      attributes {gpu.kernel, nvvm.kernel} {
    nvvm.cp.async.bulk.tensor.shared.cluster.global %to, %map, %barrier, box[%c, %c, %c, %c, %c]
        {isCTAOnly = true, mode = #nvvm.tma_load_mode<tile_gather4>} : !llvm.ptr<3>, !llvm.ptr
    llvm.return
  }
}
