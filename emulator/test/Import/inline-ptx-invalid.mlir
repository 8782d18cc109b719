// RUN: kvcache-opt %s --pass-pipeline="builtin.module(gpu.module(kvcache-expand-inline-ptx))" --split-input-file --verify-diagnostics

gpu.module @kernels {
llvm.func @unknown(%a: i32) -> i32 {
  // expected-error @+1 {{instruction 'vadd4.u32.u32.u32' of inline PTX has no lowering}}
  %x = llvm.inline_asm "vadd4.u32.u32.u32 $0, $1, $1, $1;", "=r,r" %a : (i32) -> i32
  llvm.return %x : i32
}
}

// -----

gpu.module @kernels {
llvm.func @unknown_modifier(%p: !llvm.ptr<1>) -> i32 {
  // expected-error @+1 {{instruction 'ld.global.mmio.b32' of inline PTX with '.mmio' has no lowering}}
  %x = llvm.inline_asm "ld.global.mmio.b32 $0, [$1];", "=r,l" %p : (!llvm.ptr<1>) -> i32
  llvm.return %x : i32
}
}

// -----

gpu.module @kernels {
llvm.func @no_end(%a: i32) {
  // expected-error @+1 {{inline PTX expects a ';' before 'mov.b32'}}
  llvm.inline_asm has_side_effects "mov.b32 $0, 1 mov.b32 $0, 2;", "r" %a : (i32) -> ()
  llvm.return
}
}

// -----

gpu.module @kernels {
llvm.func @undeclared(%a: i32) {
  // expected-error @+1 {{inline PTX uses 'p', which is not declared}}
  llvm.inline_asm has_side_effects "setp.ne.b32 p, $0, 0;", "r" %a : (i32) -> ()
  llvm.return
}
}

// -----

gpu.module @kernels {
llvm.func @no_label() {
  // expected-error @+1 {{inline PTX branches to 'NOWHERE', which is not a label of it}}
  llvm.inline_asm has_side_effects "bra NOWHERE;", "" : () -> ()
  llvm.return
}
}

// -----

gpu.module @kernels {
llvm.func @branch_without_target() {
  // expected-error @+1 {{inline PTX expects a label before ';'}}
  llvm.inline_asm has_side_effects "bra.uni;", "" : () -> ()
  llvm.return
}
}

// -----

gpu.module @kernels {
llvm.func @endless() {
  // expected-error @+1 {{inline PTX never ends}}
  llvm.inline_asm has_side_effects "L: bra L;", "" : () -> ()
  llvm.return
}
}

// -----

gpu.module @kernels {
llvm.func @open_brace() {
  // expected-error @+1 {{inline PTX expects a '}'}}
  llvm.inline_asm has_side_effects "{ membar.gl;", "" : () -> ()
  llvm.return
}
}

// -----

gpu.module @kernels {
llvm.func @directive() {
  // expected-error @+1 {{inline PTX has the unknown directive '.shared'}}
  llvm.inline_asm has_side_effects ".shared .b32 x;", "" : () -> ()
  llvm.return
}
}

// -----

gpu.module @kernels {
llvm.func @modifier(%a: i32) {
  // expected-error @+1 {{inline PTX has an operand with a modifier, '${0:x}'}}
  llvm.inline_asm has_side_effects "nanosleep.u32 ${0:x};", "r" %a : (i32) -> ()
  llvm.return
}
}

// -----

gpu.module @kernels {
llvm.func @constraints(%a: i32) {
  // expected-error @+1 {{inline PTX has constraints that have no lowering: '=*m,r'}}
  llvm.inline_asm has_side_effects "mov.b32 $0, $1;", "=*m,r" %a : (i32) -> ()
  llvm.return
}
}

// -----

gpu.module @kernels {
llvm.func @too_many(%a: i32) {
  // expected-error @+1 {{inline PTX uses the operand '$1', and there are 1}}
  llvm.inline_asm has_side_effects "nanosleep.u32 $1;", "r" %a : (i32) -> ()
  llvm.return
}
}

// -----

gpu.module @kernels {
llvm.func @operands(%a: i32) -> i32 {
  // expected-error @+1 {{instruction 'add.s32' of inline PTX expects 3 operands, got 2}}
  %x = llvm.inline_asm "add.s32 $0, $1;", "=r,r" %a : (i32) -> i32
  llvm.return %x : i32
}
}

// -----

gpu.module @kernels {
llvm.func @size(%to: !llvm.ptr<3>, %from: !llvm.ptr<1>) {
  // expected-error @+1 {{instruction 'cp.async.ca.shared.global' of inline PTX copies 12 bytes, and can copy 4, 8 or 16}}
  llvm.inline_asm has_side_effects "cp.async.ca.shared.global [$0], [$1], 12;", "r,l" %to, %from : (!llvm.ptr<3>, !llvm.ptr<1>) -> ()
  llvm.return
}
}

// -----

gpu.module @kernels {
llvm.func @register(%a: i32) -> i32 {
  // expected-error @+1 {{instruction 'mov.u32' of inline PTX reads %total_smem_size, which has no lowering}}
  %x = llvm.inline_asm "mov.u32 $0, %total_smem_size;", "=r" : () -> i32
  llvm.return %x : i32
}
}

// -----

gpu.module @kernels {
llvm.func @scale(%d: i64, %is: i1, %c: f32) -> !llvm.struct<(f32, f32, f32, f32)> {
  // expected-error @+1 {{instruction 'wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16' of inline PTX whose scale of D is not a constant has no lowering}}
  %w = llvm.inline_asm has_side_effects "@$5 wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {$0,$1,$2,$3}, $4, $4, $5, 1, 1, 0, 0;", "=f,=f,=f,=f,l,b,0,1,2,3" %d, %is, %c, %c, %c, %c : (i64, i1, f32, f32, f32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
  llvm.return %w : !llvm.struct<(f32, f32, f32, f32)>
}
}
