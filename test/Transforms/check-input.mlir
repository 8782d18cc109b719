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

func.func private @callee(%x: i32)
func.func @call(%x: i32) {
  // expected-error @below {{'func.call' op becomes 'llvm.call': Invalid attribute `CConv` in property conversion: 3 : i8}}
  func.call @callee(%x) {CConv = 3 : i8} : (i32) -> ()
  return
}

// -----

func.func private @callee(%x: i32)
func.func @call_with_segments(%x: i32) {
  // expected-error @below {{'func.call' op becomes 'llvm.call': size mismatch in attribute conversion: 3 vs 2}}
  func.call @callee(%x) {operandSegmentSizes = array<i32: 1, 1, 1>} : (i32) -> ()
  return
}

// -----

// expected-error @below {{'func.func' op becomes 'llvm.func': Invalid attribute `linkage` in property conversion: 3 : i8}}
func.func @function(%x: i32) attributes {linkage = 3 : i8} {
  return
}

// -----

gpu.module @kernels {
  // expected-error @below {{'gpu.func' op becomes 'llvm.func': Invalid attribute `visibility_` in property conversion: 3 : i8}}
  gpu.func @kernel(%x: i32) kernel attributes {visibility_ = 3 : i8} {
    gpu.return
  }
}
