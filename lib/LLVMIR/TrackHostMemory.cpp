//===- TrackHostMemory.cpp - Memory that failed calls free ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/LLVMIR/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/SymbolTable.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_TRACKHOSTMEMORY
#include "kvcache/LLVMIR/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;

namespace {

struct TrackHostMemory : kvcache::impl::TrackHostMemoryBase<TrackHostMemory> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    // Others may run without libkvcache_runtime.
    if (!symbols.lookup("kvcacheCallTVMFFI"))
      return;
    for (auto [name, tracked] : {std::pair("malloc", "kvcacheHostAlloc"),
                                 {"free", "kvcacheHostFree"}}) {
      auto function = symbols.lookup<LLVM::LLVMFuncOp>(name);
      if (function && function.isExternal() &&
          failed(symbols.rename(function, tracked)))
        return signalPassFailure();
    }
  }
};

} // namespace
