//===- VerifyIR.cpp - The verifier as a pass ------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Transforms/Passes.h"

#include "mlir/IR/Verifier.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_VERIFYIR
#include "kvcache/Transforms/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;

namespace {

struct VerifyIR : kvcache::impl::VerifyIRBase<VerifyIR> {
  void runOnOperation() override {
    if (failed(verify(getOperation())))
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
