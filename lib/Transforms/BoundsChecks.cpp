//===- BoundsChecks.cpp - Check every access at run time ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/IR/AttentionOps.h"
#include "kvcache/IR/SelectionOps.h"
#include "kvcache/IR/SplitOps.h"
#include "kvcache/IR/WholeCacheOps.h"
#include "kvcache/Transforms/Passes.h"
#include "kvcache/Transforms/RuntimeVerification.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_BOUNDSCHECKS
#include "kvcache/Transforms/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

namespace {

struct BoundsChecks : kvcache::impl::BoundsChecksBase<BoundsChecks> {
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation()->walk([&](Operation *op) {
      if (isa_and_present<KVCacheDialect>(op->getDialect()))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      if (isa<AppendOp, AttentionOp, GatherOp, CopyOp, CopyPagesOp,
              IndexScoresOp, MergeSplitsOp, MergeStatesOp, PoolOp, RemapRowsOp,
              TopRowsOp>(op)) {
        op->emitOpError("expects 'kvcache-expand-ops' to run before "
                        "'kvcache-bounds-checks'");
        return signalPassFailure();
      }
      OpBuilder builder(op);
      numChecks += insertRuntimeChecks(builder, op->getLoc(), op);
    }
  }
};

} // namespace
