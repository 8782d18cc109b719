//===- NarrowFloats.cpp - Lower conversions of narrow floats --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Conversion/NarrowFloats.h"
#include "Patterns.h"
#include "kvcache/Conversion/Passes.h"
#include "kvcache/Support/GreedyRewrite.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_NARROWFLOATS
#include "kvcache/Conversion/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

namespace {

struct NarrowFloatsPass : kvcache::impl::NarrowFloatsBase<NarrowFloatsPass> {
  using NarrowFloatsBase::NarrowFloatsBase;

  // Once, and not for each of a module's kernels.
  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet all(context);
    populateNarrowFloatsPatterns(all, lookupChip(chip));
    patterns = std::move(all);
    return success();
  }

  void runOnOperation() override {
    if (!chip.empty() && !lookupChip(chip)) {
      getOperation()->emitError(getUnknownChipMessage(chip));
      return signalPassFailure();
    }
    bool changed = false;
    if (failed(applyPatternsGreedily(getOperation(), patterns,
                                     getGreedyRewriteConfig(), &changed)))
      signalPassFailure();
    if (!changed)
      markAllAnalysesPreserved();
  }

private:
  FrozenRewritePatternSet patterns;
};

} // namespace

void kvcache::populateNarrowFloatsPatterns(RewritePatternSet &patterns,
                                           const Chip *fallback) {
  narrow::populateChipPatterns(patterns, fallback);
  narrow::populateIntegerPatterns(patterns);
  narrow::populateWidePatterns(patterns);
}
