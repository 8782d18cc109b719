// RUN: kvcache-opt %s --pass-pipeline="builtin.module(gpu.module(kvcache-check-instructions))" --split-input-file --verify-diagnostics

gpu.module @ampere [#nvvm.target<chip = "sm_80">] {
  llvm.func @bulk_copy() {
    // expected-error @below {{'nvvm.cp.async.bulk.commit.group' op requires sm_90 or newer for TMA, but the target is sm_80}}
    nvvm.cp.async.bulk.commit.group
    llvm.return
  }
}

// -----

gpu.module @hopper [#nvvm.target<chip = "sm_90a">] {
  llvm.func @bulk_copy() {
    nvvm.cp.async.bulk.commit.group
    llvm.return
  }
}

// -----

// Without a target, there is no chip that could lack one.

gpu.module @any_chip {
  llvm.func @bulk_copy() {
    nvvm.cp.async.bulk.commit.group
    llvm.return
  }
}
