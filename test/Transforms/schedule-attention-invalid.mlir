// RUN: kvcache-opt %s --kvcache-schedule-attention --split-input-file --verify-diagnostics

func.func @other_op(%n: index) {
  // expected-error @below {{'arith.addi' op expects 'kvcache.schedule' to be a schedule of an 'scf.for'}}
  %m = arith.addi %n, %n {kvcache.schedule = #kvcache.schedule<pipelined>} : index
  return
}

// -----

func.func @other_attribute(%n: index) {
  // expected-error @below {{'scf.for' op expects 'kvcache.schedule' to be a schedule of an 'scf.for'}}
  scf.for %i = %n to %n step %n {
  } {kvcache.schedule = "pipelined"}
  return
}
