// RUN: kvcache-opt %s --split-input-file --verify-diagnostics --kvcache-check-input
// RUN: kvcache-opt %s --split-input-file --verify-diagnostics --kvcache-to-cpu
// RUN: kvcache-opt %s --split-input-file --verify-diagnostics --kvcache-to-emulator=chip=sm_90a
// RUN: kvcache-opt %s --split-input-file --verify-diagnostics --kvcache-to-ptx=chip=sm_90a

// What verifiers accept and upstream's passes can't take is an error at its place, and pipelines begin with it.

func.func @dimension(%n: index) -> index {
  %c-3 = arith.constant -3 : index
  %m = memref.alloca(%n) : memref<?xf32>
  // expected-error @below {{'memref.dim' op expects a dimension below the rank (1), got -3}}
  %d = memref.dim %m, %c-3 : memref<?xf32>
  return %d : index
}

// -----

gpu.module @kernels {
  llvm.func @personality(...) -> i32
  llvm.func @invoke() attributes {personality = @personality} {
    // expected-error @below {{'llvm.invoke' op calls no function: it has neither the name of one nor an operand}}
    "llvm.invoke"()[^next, ^unwind] <{op_bundle_sizes = array<i32>, operandSegmentSizes = array<i32: 0, 0, 0, 0>}> : () -> ()
  ^next:
    llvm.return
  ^unwind:
    %pad = llvm.landingpad cleanup : !llvm.struct<(ptr, i32)>
    llvm.return
  }
}

// -----

func.func private @f()
// expected-error @below {{'gpu.alloc' op is in no function of its module}}
%memory = gpu.alloc() : memref<256xi32>

// -----

gpu.module @kernels {
  // expected-error @below {{'gpu.barrier' op is in no function of its module}}
  gpu.barrier
}

// -----

func.func private @f()
// expected-error @below {{'scf.execute_region' op is in no function of its module}}
scf.execute_region {
  scf.yield
}

// -----

func.func @last(%n: index) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %last = scf.parallel (%i) = (%c0) to (%n) step (%c1) init (%c0) -> index {
    scf.reduce(%i : index) {
    ^bb0(%before: index, %now: index):
      // expected-error @below {{'scf.reduce.return' op has no lowering for an argument of the reduction: expects a value that an op computes}}
      scf.reduce.return %now : index
    }
  }
  return %last : index
}
