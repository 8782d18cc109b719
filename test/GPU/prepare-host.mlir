// RUN: split-file %s %t
// RUN: kvcache-opt %t/host.mlir --kvcache-prepare-host | FileCheck %t/host.mlir --check-prefixes=CHECK,HOST
// RUN: kvcache-opt %t/host.mlir "--kvcache-prepare-host=has-device=true c-wrappers=false" | FileCheck %t/host.mlir --check-prefixes=CHECK,DEVICE
// RUN: kvcache-opt %t/invalid.mlir --kvcache-prepare-host --split-input-file --verify-diagnostics --allow-unregistered-dialect

//--- host.mlir
// HOST-NOT:     gpu.module
// DEVICE:       gpu.module @kernels
// CHECK-LABEL:  func.func @public_function(
// CHECK-NOT:      kvcache.name
// HOST-SAME:      attributes {llvm.emit_c_interface}
// DEVICE-NOT:     llvm.emit_c_interface
// CHECK:        func.func private @declaration(memref<4xf32>) attributes {llvm.emit_c_interface}
// CHECK:        func.func private @private_function(
// CHECK-NOT:      llvm.emit_c_interface
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%m: memref<4xf32>) kernel {
      gpu.return
    }
  }
  func.func @public_function(%m: memref<4xf32> {kvcache.name = "m"}) {
    return
  }
  func.func private @declaration(%m: memref<4xf32>)
  func.func private @private_function(%m: memref<4xf32>) {
    return
  }
}

//--- invalid.mlir
func.func @unregistered_op() {
  // expected-error @below {{unregistered operation 'other.op' has no lowering}}
  "other.op"() : () -> ()
  return
}

// -----

func.func @launch(%n: index) {
  // expected-error @below {{'gpu.launch' op can't run on the CPU: write the kernel as nested 'scf.parallel' loops}}
  gpu.launch blocks(%a, %b, %c) in (%d = %n, %e = %n, %f = %n)
             threads(%g, %h, %k) in (%l = %n, %m = %n, %o = %n) {
    gpu.terminator
  }
  return
}

// -----

func.func @memory_of_a_device() {
  // expected-error @below {{'gpu.alloc' op can't run on the CPU: use 'memref.alloc' and 'memref.dealloc'}}
  %m = gpu.alloc() : memref<4xf32>
  return
}
