// RUN: kvcache-opt %s --kvcache-to-ptx="chip=sm_90a host=true" -o %t.mlir
// RUN: mlir-runner %t.mlir -e main -entry-point-result=void -shared-libs=%mlir_lib_dir/libmlir_c_runner_utils.so,%kvcache_trace,%kvcache_runtime | FileCheck %s

// Descriptors are values: functions take and return them, loops carry them, and
// what made them may make others in the meantime.

// CHECK: dims (64, 3)
// CHECK: dims (64, 4)
// CHECK: dims (64, 3)

// CHECK: dims (64, 5)
// CHECK: dims (64, 6)

// CHECK: dims (64, 1)
// CHECK: dims (64, 2)
// CHECK-NOT: dims

!desc = !kvcache.tma_tile<64x1xbf16>
!blocks = memref<16x64xbf16>

module attributes {gpu.container_module} {

gpu.module @kernels {
  gpu.func @show(%d: !desc) kernel {
    gpu.return
  }
}

func.func private @create(%blocks: !blocks, %rows: index) -> !desc attributes {no_inline} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %flat = memref.subview %blocks[0, 0] [1, 1] [1, 1] : !blocks to memref<bf16, strided<[]>>
  %d = kvcache.encode_tensor_map %flat sizes [%c64, %rows] strides [%c64] : memref<bf16, strided<[]>> -> !desc
  return %d : !desc
}

func.func private @show(%d: !desc) attributes {no_inline} {
  %c1 = arith.constant 1 : index
  gpu.launch_func @kernels::@show blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%d : !desc)
  return
}

func.func private @swap(%blocks: !blocks) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %a = call @create(%blocks, %c3) : (!blocks, index) -> !desc
  %b = call @create(%blocks, %c4) : (!blocks, index) -> !desc
  scf.for %i = %c0 to %c3 step %c1 iter_args(%x = %a, %y = %b) -> (!desc, !desc) {
    func.call @show(%x) : (!desc) -> ()
    scf.yield %y, %x : !desc, !desc
  }
  return
}

// The descriptor of the round before outlives the making of the next.
func.func private @lag(%blocks: !blocks) {
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %c6 = arith.constant 6 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %flat = memref.subview %blocks[0, 0] [1, 1] [1, 1] : !blocks to memref<bf16, strided<[]>>
  %first = call @create(%blocks, %c5) : (!blocks, index) -> !desc
  scf.for %rows = %c6 to %c8 step %c1 iter_args(%last = %first) -> (!desc) {
    %next = kvcache.encode_tensor_map %flat sizes [%c64, %rows] strides [%c64] : memref<bf16, strided<[]>> -> !desc
    func.call @show(%last) : (!desc) -> ()
    scf.yield %next : !desc
  }
  return
}

func.func private @choose(%blocks: !blocks, %condition: i1) attributes {no_inline} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %a = call @create(%blocks, %c1) : (!blocks, index) -> !desc
  %b = call @create(%blocks, %c2) : (!blocks, index) -> !desc
  %d = scf.if %condition -> (!desc) {
    scf.yield %a : !desc
  } else {
    scf.yield %b : !desc
  }
  cf.cond_br %condition, ^show(%d : !desc), ^other
^other:
  %e = arith.select %condition, %a, %d : !desc
  cf.br ^show(%e : !desc)
^show(%f: !desc):
  call @show(%f) : (!desc) -> ()
  return
}

func.func @main() {
  %true = arith.constant true
  %false = arith.constant false
  %blocks = memref.alloc() {alignment = 128} : !blocks
  call @swap(%blocks) : (!blocks) -> ()
  call @lag(%blocks) : (!blocks) -> ()
  call @choose(%blocks, %true) : (!blocks, i1) -> ()
  call @choose(%blocks, %false) : (!blocks, i1) -> ()
  memref.dealloc %blocks : !blocks
  return
}

}
