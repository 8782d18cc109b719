// Errors on which LLVM ends the process say what was compiled, without a
// backtrace, and leave no output.

// RUN: rm -f %t
// RUN: not kvcache-opt %s --kvcache-to-ptx="chip=sm_80" --emit-ptx -o %t 2>&1 | FileCheck %s --implicit-check-not=Stack
// RUN: not ls %t
// RUN: not --crash kvcache-opt %s --kvcache-to-ptx=chip=sm_90 --abort-on-llvm-errors 2>&1 | FileCheck %s --check-prefix=TRACE

// Errors that LLVM would print before it exits, too.
// RUN: sed 's/bogus $5/bogus $0/; s/"r"/"{eax}"/' %s > %t.mlir
// RUN: not kvcache-opt %t.mlir --kvcache-to-ptx=chip=sm_90 2>&1 | FileCheck %s --check-prefix=DIAGNOSTIC

// CHECK:      fatal-errors.mlir:[[#@LINE+4]]:1: error: LLVM can't compile 'kernels' for sm_80: Invalid $ operand number
// TRACE:      error: LLVM can't compile 'kernels' for sm_90: Invalid $ operand number
// TRACE:      'kernels' for sm_90
// DIAGNOSTIC: :[[#]]:1: error: LLVM can't compile 'kernels' for sm_90: couldn't allocate input reg for constraint '{eax}'
gpu.module @kernels {
  llvm.func @kernel(%i: i32) attributes {nvvm.kernel} {
    llvm.inline_asm has_side_effects asm_dialect = att "bogus $5;", "r" %i : (i32) -> ()
    llvm.return
  }
}
