//===- WrapParallelBodies.cpp - Bodies as regions -------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/GPU/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_WRAPPARALLELBODIES
#include "kvcache/GPU/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;

namespace {

struct WrapParallelBodies
    : kvcache::impl::WrapParallelBodiesBase<WrapParallelBodies> {
  void runOnOperation() override {
    getOperation()->walk([](scf::ParallelOp loop) {
      WalkResult nested = loop.getBody()->walk(
          [](scf::ParallelOp) { return WalkResult::interrupt(); });
      if (nested.wasInterrupted())
        return;
      if (isKernel(loop))
        warnOfSingleThreads(loop);
      // What is reduced is a result of the body.
      if (loop.getNumResults() == 0)
        wrap(loop);
    });
  }

private:
  /// Whether a loop, which has none inside, becomes a kernel on its own.
  static bool isKernel(scf::ParallelOp loop) {
    return loop->getParentOfType<func::FuncOp>() &&
           !loop->getParentOfType<scf::ParallelOp>() &&
           !loop->getParentOfType<gpu::LaunchOp>();
  }

  /// A grid without a block is legal, and hardly ever meant.
  static void warnOfSingleThreads(scf::ParallelOp loop) {
    loop.emitWarning("makes a kernel with blocks of one thread: the block is "
                     "an 'scf.parallel' inside this one, which "
                     "'canonicalize' merges into it where nothing else is");
  }

  static void wrap(scf::ParallelOp loop) {
    Block *body = loop.getBody();
    OpBuilder builder = OpBuilder::atBlockTerminator(body);
    auto region =
        scf::ExecuteRegionOp::create(builder, loop.getLoc(), TypeRange());
    Block *inner = builder.createBlock(&region.getRegion());
    inner->getOperations().splice(inner->end(), body->getOperations(),
                                  body->begin(), region->getIterator());
    builder.setInsertionPointToEnd(inner);
    scf::YieldOp::create(builder, loop.getLoc());
  }
};

} // namespace
