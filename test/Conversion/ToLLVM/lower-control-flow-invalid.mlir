// RUN: kvcache-opt %s --kvcache-lower-control-flow --split-input-file --verify-diagnostics

// A module has one block.

module {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @+1 {{'scf.for' op is in no function of its module}}
  scf.for %i = %c0 to %c1 step %c1 {
  }
}

// -----

gpu.module @kernels {
  %holds = arith.constant true
  // expected-error @+1 {{'scf.if' op is in no function of its module}}
  scf.if %holds {
  }
}
