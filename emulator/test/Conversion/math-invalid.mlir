// RUN: kvcache-opt %s --convert-nvvm-to-emulator --split-input-file --verify-diagnostics

gpu.module @rounding [#nvvm.target<chip = "sm_90a">] {
  llvm.func @kernel(%a: f32) attributes {nvvm.kernel} {
    // expected-error @below {{'llvm.call_intrinsic' op of llvm.nvvm.add.rz.f has no lowering for the emulator}}
    %x = llvm.call_intrinsic "llvm.nvvm.add.rz.f"(%a, %a) : (f32, f32) -> f32
    llvm.return
  }
}

// -----

gpu.module @types [#nvvm.target<chip = "sm_90a">] {
  llvm.func @kernel(%p: !llvm.ptr) attributes {nvvm.kernel} {
    // expected-error @below {{'llvm.call_intrinsic' op of llvm.nvvm.e4m3x2.to.f16x2.rn has no lowering for the emulator}}
    %x = llvm.call_intrinsic "llvm.nvvm.e4m3x2.to.f16x2.rn"(%p) : (!llvm.ptr) -> vector<2xf16>
    llvm.return
  }
}

// -----

gpu.module @operands [#nvvm.target<chip = "sm_90a">] {
  llvm.func @kernel(%a: f32) attributes {nvvm.kernel} {
    // expected-error @below {{'llvm.call_intrinsic' op of llvm.nvvm.fma.rn.f has no lowering for the emulator}}
    %x = llvm.call_intrinsic "llvm.nvvm.fma.rn.f"(%a) : (f32) -> f32
    llvm.return
  }
}

// -----

gpu.module @library [#nvvm.target<chip = "sm_90a">] {
  llvm.func @__nv_normcdff(f32) -> f32
  llvm.func @kernel(%a: f32) attributes {nvvm.kernel} {
    // expected-error @below {{'llvm.call' op of @__nv_normcdff has no lowering for the emulator}}
    %x = llvm.call @__nv_normcdff(%a) : (f32) -> f32
    llvm.return
  }
}

// -----

gpu.module @atomic [#nvvm.target<chip = "sm_90a">] {
  llvm.func @kernel(%p: !llvm.ptr, %v: vector<4xbf16>) attributes {nvvm.kernel} {
    // expected-error @below {{'llvm.atomicrmw' op on 'vector<4xbf16>' has no lowering for the emulator}}
    %x = llvm.atomicrmw fadd %p, %v monotonic : !llvm.ptr, vector<4xbf16>
    llvm.return
  }
}

// -----

gpu.module @print [#nvvm.target<chip = "sm_90a">] {
  llvm.func @vprintf(!llvm.ptr) -> i32
  llvm.func @kernel(%p: !llvm.ptr) attributes {nvvm.kernel} {
    // expected-error @below {{'llvm.call' op of @vprintf expects the operands (ptr, ptr) of the device's function}}
    %x = llvm.call @vprintf(%p) : (!llvm.ptr) -> i32
    llvm.return
  }
}

// -----

gpu.module @heap [#nvvm.target<chip = "sm_90a">] {
  llvm.func @malloc(i64) -> !llvm.ptr
  llvm.func @kernel(%bytes: i64) attributes {nvvm.kernel} {
    // expected-error @below {{'llvm.call' op of @malloc has no lowering for the emulator}}
    %x = llvm.call @malloc(%bytes) : (i64) -> !llvm.ptr
    llvm.return
  }
}

// -----

gpu.module @ptx [#nvvm.target<chip = "sm_90a">] {
  llvm.func @kernel() attributes {nvvm.kernel} {
    // expected-error @below {{'nvvm.inline_ptx' op has no lowering for the emulator}}
    nvvm.inline_ptx "membar.gl;"
    llvm.return
  }
}

// -----

gpu.module @registers [#nvvm.target<chip = "sm_90a">] {
  llvm.func @kernel() attributes {nvvm.kernel} {
    // expected-error @below {{new register size must be in between 24 to 256}}
    nvvm.setmaxregister increase 264
    llvm.return
  }
}
