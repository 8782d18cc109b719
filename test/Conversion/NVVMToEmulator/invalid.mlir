// RUN: kvcache-opt %s --convert-nvvm-to-emulator --split-input-file --verify-diagnostics

// expected-error @below {{'gpu.module' op expects one target from the table of chips}}
gpu.module @no_target {
}

// -----

gpu.module @assembly [#nvvm.target<chip = "sm_90a">] {
  llvm.func @kernel() attributes {nvvm.kernel} {
    // expected-error @below {{'llvm.inline_asm' op has no lowering for the emulator}}
    llvm.inline_asm has_side_effects "bar.sync 0;", "" : () -> ()
    llvm.return
  }
}

// -----

gpu.module @tensor_memory [#nvvm.target<chip = "sm_100a">] {
  llvm.func @kernel(%address: !llvm.ptr<3>, %columns: i32) attributes {nvvm.kernel} {
    // expected-error @below {{'nvvm.tcgen05.alloc' op has no lowering for the emulator}}
    nvvm.tcgen05.alloc %address, %columns : !llvm.ptr<3>, i32
    llvm.return
  }
}

// -----

gpu.module @unknown_function [#nvvm.target<chip = "sm_90a">] {
  llvm.func @somewhere(i32)
  llvm.func @kernel(%x: i32) attributes {nvvm.kernel} {
    // expected-error @below {{'llvm.call' op of @somewhere has no lowering for the emulator}}
    llvm.call @somewhere(%x) : (i32) -> ()
    llvm.return
  }
}

// -----

gpu.module @unknown_intrinsic [#nvvm.target<chip = "sm_90a">] {
  llvm.func @kernel(%x: i32) attributes {nvvm.kernel} {
    // expected-error @below {{'llvm.call_intrinsic' op of llvm.nvvm.sust.b.1d.i32.trap has no lowering for the emulator}}
    llvm.call_intrinsic "llvm.nvvm.sust.b.1d.i32.trap"(%x, %x, %x) : (i32, i32, i32) -> ()
    llvm.return
  }
}

// -----

gpu.module @indirect [#nvvm.target<chip = "sm_90a">] {
  llvm.func @kernel(%f: !llvm.ptr) attributes {nvvm.kernel} {
    // expected-error @below {{'llvm.call' op through a pointer has no lowering for the emulator}}
    llvm.call %f() : !llvm.ptr, () -> ()
    llvm.return
  }
}
