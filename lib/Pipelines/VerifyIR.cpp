//===- VerifyIR.cpp - The verifier as a pass ------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VerifyIR.h"

#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace {

struct VerifyIR : PassWrapper<VerifyIR, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(VerifyIR)

  StringRef getName() const override { return "VerifyIR"; }
  StringRef getArgument() const override { return "kvcache-verify"; }
  StringRef getDescription() const override {
    return "Verify all ops, whether or not the pass manager does";
  }
  void runOnOperation() override {
    if (failed(verify(getOperation())))
      signalPassFailure();
  }
};

} // namespace

std::unique_ptr<Pass> kvcache::createVerifyIR() {
  return std::make_unique<VerifyIR>();
}
