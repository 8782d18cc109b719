// RUN: kvcache-opt %s --kvcache-to-ptx="chip=sm_90a host=true" | FileCheck %s --implicit-check-not=gpu. --implicit-check-not="kvcache."
// RUN: kvcache-opt %s --kvcache-to-ptx="chip=sm_90a" | FileCheck %s --check-prefix=KEPT
// RUN: kvcache-opt %s --kvcache-to-ptx="chip=sm_90a host=true" | mlir-translate --mlir-to-llvmir | FileCheck %s --check-prefix=TRANSLATED

// With `host` everything is LLVM: the kernel a constant, its launch a call, and
// what the host itself does with a cache the same as on the CPU. Every function
// has a C wrapper.

// CHECK:       llvm.mlir.global internal constant @scale_kernel()
// CHECK-LABEL: llvm.func @scale(
// CHECK-SAME:      attributes {llvm.emit_c_interface}
// CHECK:         llvm.call @kvcacheModuleLoad
// CHECK:         llvm.cond_br
// CHECK:         llvm.call @kvcacheDeviceFailed
// CHECK:         llvm.call @kvcacheLaunch
// CHECK:         llvm.call @kvcacheStreamSynchronize
// CHECK:       llvm.func @_mlir_ciface_scale(
// CHECK-LABEL: llvm.func @read(
// CHECK:         llvm.load
// CHECK:       llvm.func @_mlir_ciface_read(

// KEPT-DAG:    gpu.binary @scale_kernel
// KEPT-DAG:    gpu.launch_func @scale_kernel::@scale_kernel
// KEPT-DAG:    func.func @read(

// TRANSLATED-DAG: @scale_kernel = internal constant { ptr, ptr, i64 } { ptr @{{.*}}, ptr @scale_kernel_images, i64 1 }
// TRANSLATED-DAG: @scale_kernel_images = internal constant [1 x { ptr, ptr, i64 }] [{ ptr, ptr, i64 } { ptr @{{.*}}, ptr @scale_kernel_sm_90a, i64 {{[0-9]+}} }]
// TRANSLATED-DAG: @scale_kernel_sm_90a = internal constant [{{[0-9]+}} x i8] c"//{{.*}}.target sm_90a{{.*}}\00", align 16

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>

func.func @scale(%m: memref<?x128xbf16>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    scf.parallel (%j) = (%c0) to (%c128) step (%c1) {
      %x = memref.load %m[%i, %j] : memref<?x128xbf16>
      %y = arith.addf %x, %x : bf16
      memref.store %y, %m[%i, %j] : memref<?x128xbf16>
    }
  }
  return
}

func.func @read(%c: !collection, %b: index, %t: index) -> f32 {
  %c0 = arith.constant 0 : index
  %k = kvcache.paged_view key %c[%c0] : !collection
  %x = kvcache.load %k[%b, %c0, %t, %c0] : !kvcache.paged<bf16, #kv, page_size = 64> -> f32
  return %x : f32
}
