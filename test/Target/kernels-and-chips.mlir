// RUN: kvcache-opt %s --kvcache-to-ptx=chip=sm_80,sm_100a --emit-ptx-module="*" --emit-ptx-chip="*" | FileCheck %s
// RUN: kvcache-opt %s "--kvcache-to-ptx=chip=sm_80,sm_100a opt-level=1" | FileCheck %s --check-prefix=BINARY

// RUN: not kvcache-opt %s --kvcache-to-ptx=chip=sm_80,sm_100a --emit-ptx 2>&1 | FileCheck %s --check-prefix=SEVERAL
// RUN: not kvcache-opt %s --kvcache-to-ptx=chip=sm_80,sm_100a --emit-ptx-module=other 2>&1 | FileCheck %s --check-prefix=CHIPS
// RUN: not kvcache-opt %s --kvcache-to-ptx=chip=sm_80 --emit-ptx-module=others --emit-ptx-chip=sm_90 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: kvcache-opt %s --kvcache-to-ptx=chip=sm_80,sm_100a --emit-ptx-module=other --emit-ptx-chip=sm_100a -o %t.ptx
// RUN: FileCheck %s --input-file=%t.ptx --check-prefix=ONE
// RUN: %if ptxas %{ %toolkit/bin/ptxas -arch=sm_100a %t.ptx -o %t.cubin %}
// RUN: kvcache-opt %s --kvcache-to-ptx=chip=sm_80,sm_100a --emit-ptx --emit-ptx-chip=sm_120a | FileCheck %s --check-prefix=CHIP

// ptxas takes one module, for one chip.

// SEVERAL: kernels-and-chips.mlir:[[#]]:1: error: expects the kernels of one module for one chip, got 'own' for sm_89, 'own' for sm_120a, 'other' for sm_80, 'other' for sm_100a: choose by '--emit-ptx-module' and '--emit-ptx-chip'
// CHIPS:   error: expects the kernels of one module for one chip, got 'other' for sm_80, 'other' for sm_100a:
// NONE:    error: has no kernels of module 'others' for chip 'sm_90', but of 'own' for sm_89, 'own' for sm_120a, 'other' for sm_80
// ONE-COUNT-1: .version
// ONE-NOT:     .version
// CHIP:        .target sm_120a
// CHIP-NOT:    .target

// Targets on a module win; another module is compiled for every chip of the
// option. All kernels of a module are in each of its objects.

// CHECK:         .version 8.4
// CHECK:         .target sm_89
// CHECK:         .visible .entry first(
// CHECK:         .visible .entry second(
// CHECK:         .version 8.8
// CHECK:         .target sm_120a
// CHECK:         .visible .entry first(
// CHECK:         .visible .entry second(
// CHECK:         .version 8.0
// CHECK:         .target sm_80
// CHECK:         .visible .entry first(
// CHECK:         .version 8.8
// CHECK:         .target sm_100a
// CHECK:         .visible .entry first(

// One binary for a module, with an object for a chip; its level of optimization
// is that of the target.

// BINARY-NOT:    gpu.module
// BINARY:        gpu.binary @own [#gpu.object<#nvvm.target<O = 3, chip = "sm_89", features = "+ptx84">
// BINARY-SAME:     kvcache.kernels = [{name = "first", parameters = [{name = "arg0", offset = 0 : i64, size = 8 : i64, type = !llvm.ptr}]}, {name = "second", parameters = [{name = "n", offset = 0 : i64, size = 8 : i64, type = index}]}]
// BINARY-SAME:     #gpu.object<#nvvm.target<O = 3, chip = "sm_120a", features = "+ptx88">
// BINARY:        gpu.binary @other [#gpu.object<#nvvm.target<O = 1, chip = "sm_80", features = "+ptx80">
// BINARY-SAME:     #gpu.object<#nvvm.target<O = 1, chip = "sm_100a", features = "+ptx88", verifyTarget = false>
// BINARY-NOT:    gpu.binary
// BINARY:        gpu.launch_func @own::@first
// BINARY:        gpu.launch_func @other::@first

module attributes {gpu.container_module} {
  gpu.module @own [#nvvm.target<O = 3, chip = "sm_89">, #nvvm.target<O = 3, chip = "sm_120a">] {
    gpu.func @first(%m: memref<8xf32>) kernel {
      gpu.return
    }
    gpu.func @second(%n: index {kvcache.name = "n"}) kernel {
      gpu.return
    }
  }
  gpu.module @other {
    gpu.func @first(%m: memref<8xf32>) kernel {
      gpu.return
    }
  }
  func.func @launch(%m: memref<8xf32>, %i: index) {
    gpu.launch_func @own::@first blocks in (%i, %i, %i) threads in (%i, %i, %i) args(%m : memref<8xf32>)
    gpu.launch_func @other::@first blocks in (%i, %i, %i) threads in (%i, %i, %i) args(%m : memref<8xf32>)
    return
  }
}
