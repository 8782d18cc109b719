//===- WrapParallelBodies.cpp - Bodies as regions
//----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Pipelines/Pipelines.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_WRAPPARALLELBODIES
#include "kvcache/Pipelines/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;

namespace {

struct WrapParallelBodies
    : kvcache::impl::WrapParallelBodiesBase<WrapParallelBodies> {
  void runOnOperation() override {
    getOperation()->walk([](scf::ParallelOp loop) {
      WalkResult nested = loop.getBody()->walk(
          [](scf::ParallelOp) { return WalkResult::interrupt(); });
      // What is reduced is a result of the body.
      if (!nested.wasInterrupted() && loop.getNumResults() == 0)
        wrap(loop);
    });
  }

private:
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
