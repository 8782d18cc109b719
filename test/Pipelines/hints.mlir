// RUN: split-file %s %t

// Errors of unknown names have the nearest one, if there is one.

// RUN: not kvcache-opt %t/op.mlir 2>&1 | FileCheck %s --check-prefix=OP
// RUN: not kvcache-opt %t/generic.mlir 2>&1 | FileCheck %s --check-prefix=GENERIC
// RUN: not kvcache-opt %t/other.mlir 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: not kvcache-opt %t/reduction.mlir --kvcache-to-ptz 2>&1 | FileCheck %s --check-prefix=PASS
// RUN: not kvcache-opt %t/reduction.mlir "--pass-pipeline=builtin.module(kvcache-to-ptz)" 2>&1 | FileCheck %s --check-prefix=PASS

// OP:        op.mlir:1:18: error: custom op 'kvcache.atention' is unknown; did you mean 'kvcache.attention'?
// GENERIC:   error: unregistered operation 'kvcache.lod' found in dialect {{.*}}; did you mean 'kvcache.load'?
// OTHER:     error: custom op 'kvcache.completely_different' is unknown
// OTHER-NOT: did you mean
// PASS:      {{[Dd]}}id you mean '{{(--)?}}kvcache-to-ptx'?

// An error has no op after it, unless the command line asks for it.

// RUN: not kvcache-opt %t/reduction.mlir --kvcache-kernels-to-nvvm 2>&1 | FileCheck %s --check-prefix=REDUCTION --implicit-check-not="see current operation"
// RUN: not kvcache-opt %t/reduction.mlir --kvcache-kernels-to-nvvm --mlir-print-op-on-diagnostic 2>&1 | FileCheck %s --check-prefix=NOTE

// REDUCTION: reduction.mlir:3:10: error: 'gpu.all_reduce' op has no lowering here for its types and attributes
// NOTE:      note: see current operation

// Kernels alone leave nothing for the CPU, which is a warning.

// RUN: kvcache-opt %t/reduction.mlir --kvcache-to-cpu 2>&1 | FileCheck %s --check-prefix=EMPTY
// RUN: kvcache-opt %t/host.mlir --kvcache-to-cpu 2>&1 | FileCheck %s --check-prefix=HOST --implicit-check-not=warning

// EMPTY: reduction.mlir:1:1: warning: has no code for the CPU, where no 'gpu.module' runs
// HOST: llvm.func @f

// RUN: not kvcache-opt %t/threads.mlir --kvcache-to-cpu 2>&1 | FileCheck %s --check-prefix=THREADS

// THREADS: error: 'gpu.subgroup_reduce' op can't run on the CPU: reduce by an 'scf.parallel' loop with 'init'

//--- op.mlir
func.func @f() { kvcache.atention return }

//--- generic.mlir
"kvcache.lod"() : () -> ()

//--- other.mlir
func.func @f() { kvcache.completely_different return }

//--- reduction.mlir
gpu.module @m {
  gpu.func @k(%x: f32) kernel {
    %m = gpu.all_reduce add %x {} : (f32) -> f32
    gpu.return
  }
}

//--- host.mlir
gpu.module @m {
  gpu.func @k() kernel {
    gpu.return
  }
}
func.func @f() {
  return
}

//--- threads.mlir
func.func @f(%x: f32) -> f32 {
  %m = gpu.subgroup_reduce add %x : (f32) -> f32
  return %m : f32
}
