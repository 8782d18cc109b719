// Ops that LLVM's back end ends the process on, for every chip.

// RUN: kvcache-opt %s --split-input-file --verify-diagnostics --kvcache-to-ptx=chip=sm_120a
// RUN: kvcache-opt %s --split-input-file --verify-diagnostics --kvcache-to-emulator=chip=sm_90

gpu.module @kernels {
  llvm.func @tan(%x: f32) -> f32 attributes {nvvm.kernel} {
    // expected-error @below {{'llvm.intr.tan' op has no instruction in PTX for 'f32'; ops of the math dialect call libdevice instead}}
    %r = llvm.intr.tan(%x) : (f32) -> f32
    llvm.return %r : f32
  }
}

// -----

gpu.module @kernels {
  llvm.func @tanh(%x: vector<2xf16>) -> vector<2xf16> {
    %r = llvm.intr.tanh(%x) {fastmathFlags = #llvm.fastmath<afn>} : (vector<2xf16>) -> vector<2xf16>
    // expected-error @below {{'llvm.intr.tanh' op has only an approximation in PTX, which the fast-math flag 'afn' allows}}
    %s = llvm.intr.tanh(%r) : (vector<2xf16>) -> vector<2xf16>
    llvm.return %s : vector<2xf16>
  }
}

// -----

gpu.module @kernels {
  llvm.func @exp2(%x: f32, %y: f64) -> f64 {
    %r = llvm.call_intrinsic "llvm.exp2.f32"(%x) : (f32) -> f32
    // expected-error @below {{'llvm.call_intrinsic' op has no instruction in PTX for 'f64'}}
    %s = llvm.call_intrinsic "llvm.exp2"(%y) : (f64) -> f64
    llvm.return %s : f64
  }
}

// -----

gpu.module @kernels {
  llvm.func @other_target() {
    // expected-error @below {{calls an intrinsic of another target than NVPTX: "llvm.amdgcn.s.barrier"}}
    llvm.call_intrinsic "llvm.amdgcn.s.barrier"() : () -> ()
    llvm.return
  }
}

// -----

gpu.module @kernels {
  llvm.func @wide_float(%x: f64) -> f128 {
    // expected-error @below {{'llvm.fpext' op has a result of 'f128', but PTX has floats of at most 64 bits}}
    %r = llvm.fpext %x : f64 to f128
    llvm.return %r : f128
  }
}

// -----

gpu.module @kernels {
  llvm.func @address_space(%p: !llvm.ptr) -> !llvm.ptr<99> {
    // expected-error @below {{has a result of '!llvm.ptr<99>', but PTX has no such address space}}
    %r = llvm.addrspacecast %p : !llvm.ptr to !llvm.ptr<99>
    llvm.return %r : !llvm.ptr<99>
  }
}

// -----

gpu.module @kernels {
  llvm.func @wide_integer(%x: vector<2xi128>) -> vector<2xf32> {
    // expected-error @below {{converts 'i128', but PTX converts at most 64 bits}}
    %r = llvm.uitofp %x : vector<2xi128> to vector<2xf32>
    llvm.return %r : vector<2xf32>
  }
}

// -----

gpu.module @kernels {
  llvm.func @scope(%p: !llvm.ptr<1>) {
    %r = llvm.load %p atomic syncscope("device") acquire {alignment = 4 : i64} : !llvm.ptr<1> -> i32
    // expected-error @below {{expects the scope 'singlethread', 'block', 'cluster', 'device' or none, got 'agent'}}
    llvm.fence syncscope("agent") seq_cst
    llvm.return
  }
}

// -----

gpu.module @kernels {
  llvm.func @wide_atomic(%p: !llvm.ptr<1>, %x: i128) {
    // expected-error @below {{is sequentially consistent, which PTX has for at most 64 bits}}
    %r = llvm.atomicrmw xchg %p, %x seq_cst : !llvm.ptr<1>, i128
    llvm.return
  }
}

// -----

gpu.module @kernels {
  memref.global @memrefs : memref<4xf32, #gpu.address_space<workgroup>>
  // expected-error @below {{is in no function of its module}}
  %m = memref.get_global @memrefs : memref<4xf32, #gpu.address_space<workgroup>>
  gpu.func @kernel() kernel {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  llvm.func @other()
  llvm.func @personality(...) -> i32
  llvm.func @exceptions() attributes {personality = @personality} {
    // expected-error @below {{'llvm.invoke' op is for exceptions, which PTX doesn't have}}
    llvm.invoke @other() to ^end unwind ^failed : () -> ()
  ^end:
    llvm.return
  ^failed:
    %pad = llvm.landingpad cleanup : !llvm.struct<(ptr, i32)>
    llvm.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @below {{'llvm.func' op is for exceptions, which PTX doesn't have}}
  llvm.func @handler() attributes {personality = @nowhere} {
    llvm.return
  }
}

// -----

gpu.module @kernels {
  llvm.func internal @"its own"(%x: i32) -> i32 {
    llvm.return %x : i32
  }
  // expected-error @below {{'llvm.func' op expects a name of letters, digits, '_' and '$', not starting with a digit}}
  llvm.func @"for others"(%x: i32) -> i32 {
    llvm.return %x : i32
  }
}

// -----

// The type of B is missing: upstream's verifier asks for that of A alone.
gpu.module @kernels {
  llvm.func @product(%a: i32, %b: i32, %c: i32) {
    // expected-error @below {{'nvvm.mma.sync' op has no instruction in PTX for its shape, layouts, types ('multiplicandAPtxType' and 'multiplicandBPtxType' among them) and operator together}}
    %d = "nvvm.mma.sync"(%a, %a, %b, %c, %c, %c, %c) <{b1Op = #nvvm.mma_b1op<xor_popc>, layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, multiplicandAPtxType = #nvvm.mma_type<b1>, operandSegmentSizes = array<i32: 2, 1, 4>, shape = #nvvm.shape<m = 16, n = 8, k = 128>}> : (i32, i32, i32, i32, i32, i32, i32) -> !llvm.struct<(i32, i32, i32, i32)>
    llvm.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @below {{'llvm.mlir.global' op has an initial value, but PTX has those only in global and constant memory}}
  llvm.mlir.global internal @word(5 : i32) {addr_space = 3 : i32} : i32
}

// -----

gpu.module @kernels {
  // expected-error @below {{'llvm.mlir.global' op has an initial value, but PTX has those only in global and constant memory}}
  llvm.mlir.global internal @word() {addr_space = 3 : i32} : i32 {
    %five = llvm.mlir.constant(5 : i32) : i32
    llvm.return %five : i32
  }
}

// -----

gpu.module @kernels {
  llvm.func @scalable(%x: i32) -> i32 {
    // expected-error @below {{'llvm.mlir.constant' op has a result of 'vector<[4]xi32>', but PTX has no vectors of unknown size}}
    %ones = llvm.mlir.constant(dense<1> : vector<[4]xi32>) : vector<[4]xi32>
    %zero = llvm.mlir.constant(0 : i32) : i32
    %first = llvm.extractelement %ones[%zero : i32] : vector<[4]xi32>
    llvm.return %first : i32
  }
}

// -----

gpu.module @kernels {
  llvm.func @wait(%id: i32, %threads: i32) -> i32 {
    // expected-error @below {{'nvvm.barrier' op has a result, but no reduction}}
    %r = "nvvm.barrier"(%id, %threads) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (i32, i32) -> i32
    llvm.return %r : i32
  }
}

// -----

gpu.module @kernels {
  llvm.func @assembly(%x: vector<4xi32>) {
    // expected-error @below {{'nvvm.inline_ptx' op has a register of 'vector<4xi32>', but PTX has those of scalars, and of vectors of 32 bits}}
    nvvm.inline_ptx "x" ro(%x : vector<4xi32>)
    llvm.return
  }
}

// -----

gpu.module @kernels {
  llvm.func @outputs(%x: i32) -> !llvm.struct<(i32, i32)> {
    // expected-error @below {{'llvm.inline_asm' op has a result of '!llvm.struct<(i32, i32)>', but 1 outputs in its constraints}}
    %r = llvm.inline_asm "mov.b32 $0, $1;", "=r,r" %x : (i32) -> !llvm.struct<(i32, i32)>
    llvm.return %r : !llvm.struct<(i32, i32)>
  }
}

// -----

gpu.module @kernels {
  llvm.func @text(%x: i32) {
    llvm.inline_asm has_side_effects "nanosleep.u32 $0; mov.u32 $$r, ${0}; // ${:uid} ${0:c} $(a$|b$)", "r" %x : (i32) -> ()
    // expected-error @below {{'llvm.inline_asm' op expects an operand such as $0 or ${0}, or $$ for the character, at '${0$x};'}}
    llvm.inline_asm has_side_effects "nanosleep.u32 ${0$x};", "r" %x : (i32) -> ()
    llvm.return
  }
}

// -----

gpu.module @kernels {
  llvm.func @character(%x: i32) {
    // expected-error @below {{'llvm.inline_asm' op expects an operand such as $0 or ${0}, or $$ for the character, at '$r, $0;'}}
    llvm.inline_asm has_side_effects "mov.u32 $r, $0;", "r" %x : (i32) -> ()
    llvm.return
  }
}

// -----

gpu.module @kernels {
  llvm.func @variants(%x: i32) {
    // expected-error @below {{'llvm.inline_asm' op expects an operand such as $0 or ${0}, or $$ for the character, at '$(b$)$)'}}
    llvm.inline_asm has_side_effects "$(a$|$(b$)$)", "r" %x : (i32) -> ()
    llvm.return
  }
}

// -----

gpu.module @kernels {
  llvm.func @name(%x: i32) {
    // expected-error @below {{'llvm.inline_asm' op expects an operand such as $0 or ${0}, or $$ for the character, at '${:number}'}}
    llvm.inline_asm has_side_effects "// ${:number}", "r" %x : (i32) -> ()
    llvm.return
  }
}

// -----

gpu.module @kernels {
  llvm.func @end(%x: i32) {
    // expected-error @below {{'llvm.inline_asm' op expects an operand such as $0 or ${0}, or $$ for the character, at '$'}}
    llvm.inline_asm has_side_effects "// $0 $", "r" %x : (i32) -> ()
    llvm.return
  }
}
