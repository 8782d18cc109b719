// RUN: kvcache-opt %s --split-input-file --verify-diagnostics --kvcache-to-cpu
// RUN: kvcache-opt %s --split-input-file --verify-diagnostics --kvcache-to-emulator=chip=sm_90
// RUN: kvcache-opt %s --split-input-file --verify-diagnostics --kvcache-to-ptx=chip=sm_90
// RUN: kvcache-opt %s --split-input-file --verify-diagnostics --kvcache-lower-launches
// RUN: kvcache-opt %s --split-input-file --verify-diagnostics --kvcache-track-host-memory

// Translation to LLVM IR leaves nested modules out.

llvm.func @kvcacheCallTVMFFI(!llvm.ptr, !llvm.ptr, !llvm.ptr, i32, !llvm.ptr) -> i32
// expected-error @+1 {{'builtin.module' op inside 'builtin.module' has no lowering: expects one 'builtin.module', with the 'gpu.module's in it}}
module {
  llvm.func @kvcacheMemFree(!llvm.ptr) -> i32
  llvm.func @release(%memory: !llvm.ptr) -> i32 {
    %status = llvm.call @kvcacheMemFree(%memory) : (!llvm.ptr) -> i32
    llvm.return %status : i32
  }
}
