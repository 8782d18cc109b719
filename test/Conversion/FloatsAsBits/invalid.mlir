// RUN: kvcache-opt %s --split-input-file --verify-diagnostics --kvcache-floats-as-bits=bf16

// Each of these would compute on the bits, or show them.

func.func @sum(%x: vector<4xf8E5M2>) -> f8E5M2 {
  // expected-error @+1 {{'vector.reduction' op computes on 'f8E5M2', which has no lowering: extend to f32 first}}
  %0 = vector.reduction <add>, %x : vector<4xf8E5M2> into f8E5M2
  return %0 : f8E5M2
}

// -----

func.func @rows(%x: vector<4x4xf8E4M3FN>, %y: vector<4xf8E4M3FN>) -> vector<4xf8E4M3FN> {
  // expected-error @+1 {{'vector.multi_reduction' op computes on 'f8E4M3FN'}}
  %0 = vector.multi_reduction <mul>, %x, %y [0] : vector<4x4xf8E4M3FN> to vector<4xf8E4M3FN>
  return %0 : vector<4xf8E4M3FN>
}

// -----

func.func @products(%x: vector<4xf8E4M3FN>, %y: vector<4xf8E4M3FN>) -> vector<4x4xf8E4M3FN> {
  // expected-error @+1 {{'vector.outerproduct' op computes on 'f8E4M3FN'}}
  %0 = vector.outerproduct %x, %y : vector<4xf8E4M3FN>, vector<4xf8E4M3FN>
  return %0 : vector<4x4xf8E4M3FN>
}

// -----

func.func @sums(%x: vector<4xbf16>, %y: vector<bf16>) -> vector<4xbf16> {
  // expected-error @+1 {{'vector.scan' op computes on 'bf16'}}
  %0:2 = vector.scan <add>, %x, %y {inclusive = true, reduction_dim = 0 : i64} : vector<4xbf16>, vector<bf16>
  return %0#0 : vector<4xbf16>
}

// -----

func.func @print(%x: vector<4xf8E8M0FNU>) {
  // expected-error @+1 {{'vector.print' op computes on 'f8E8M0FNU'}}
  vector.print %x : vector<4xf8E8M0FNU>
  return
}

// -----

func.func @atomic_sum(%x: f8E4M3FN, %out: memref<4xf8E4M3FN>, %i: index) {
  // expected-error @+1 {{'memref.atomic_rmw' op computes on 'f8E4M3FN'}}
  %0 = memref.atomic_rmw addf %x, %out[%i] : (f8E4M3FN, memref<4xf8E4M3FN>) -> f8E4M3FN
  return
}

// -----

llvm.func @atomic_sums(%out: !llvm.ptr, %x: vector<4xbf16>) {
  // expected-error @+1 {{'llvm.atomicrmw' op computes on 'bf16'}}
  %0 = llvm.atomicrmw fadd %out, %x monotonic : !llvm.ptr, vector<4xbf16>
  llvm.return
}

// -----

func.func @llvm_sum(%x: bf16) -> bf16 {
  // expected-error @+1 {{'llvm.fadd' op computes on 'bf16'}}
  %0 = llvm.fadd %x, %x : bf16
  return %0 : bf16
}

// -----

gpu.module @kernels {
  gpu.func @over_lanes(%out: memref<4xf8E5M2>, %i: index) kernel {
    %x = memref.load %out[%i] : memref<4xf8E5M2>
    // expected-error @+1 {{'gpu.subgroup_reduce' op computes on 'f8E5M2'}}
    %sum = gpu.subgroup_reduce add %x : (f8E5M2) -> f8E5M2
    memref.store %sum, %out[%i] : memref<4xf8E5M2>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @over_the_block(%out: memref<4xf8E5M2>, %i: index) kernel {
    %x = memref.load %out[%i] : memref<4xf8E5M2>
    // expected-error @+1 {{'gpu.all_reduce' op computes on 'f8E5M2'}}
    %sum = gpu.all_reduce add %x {} : (f8E5M2) -> f8E5M2
    memref.store %sum, %out[%i] : memref<4xf8E5M2>
    gpu.return
  }
}

// -----

!tile = !kvcache.tile<64x64xf8E4M3FN, swizzle_64b>
func.func @not_lowered(%a: !tile, %b: !tile, %i: index) -> vector<4xf16> {
  // expected-error @+1 {{'kvcache.mma' op is not lowered, and would have integers in '!kvcache.tile<64x64xf8E4M3FN, swizzle_64b>'}}
  %d = kvcache.mma %a[%i, %i], %b[%i, %i] : !tile, !tile -> vector<4xf16>
  return %d : vector<4xf16>
}

// -----

func.func @not_lowered(%v: vector<8xf8E4M3FN>, %t: !kvcache.tmem_tile<64x32xf8E4M3FN>, %i: index) {
  // expected-error @+1 {{'kvcache.tmem_store' op is not lowered, and would have integers in 'vector<8xf8E4M3FN>'}}
  kvcache.tmem_store %v, %t[%i] : vector<8xf8E4M3FN>, !kvcache.tmem_tile<64x32xf8E4M3FN>
  return
}

// -----

func.func @not_lowered(%x: vector<4xf32>) -> (vector<4xf8E4M3FN>, f32) {
  // expected-error @+1 {{'kvcache.quantize' op is not lowered, and would have integers in 'vector<4xf8E4M3FN>'}}
  %y, %scale = kvcache.quantize %x : vector<4xf32> -> vector<4xf8E4M3FN>, f32
  return %y, %scale : vector<4xf8E4M3FN>, f32
}
