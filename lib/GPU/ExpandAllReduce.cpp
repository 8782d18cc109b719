//===- ExpandAllReduce.cpp - Reductions by shuffles and shared memory -----===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Combiners.h"
#include "kvcache/GPU/Passes.h"
#include "kvcache/Support/Threads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/GPU/Utils/GPUUtils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_EXPANDALLREDUCE
#include "kvcache/GPU/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

namespace {

constexpr int64_t kWarpSize = 32;
constexpr int64_t kMaxWarps = 32;

/// Replaces a reduction over the threads of a block.
class AllReduceBuilder {
public:
  AllReduceBuilder(gpu::GPUFuncOp kernel, gpu::AllReduceOp op)
      : kernel(kernel), op(op), builder(op), loc(op.getLoc()), b(builder, loc),
        type(op.getType()) {}

  void run() {
    Value thread = getThread(b);
    Value threads = countThreads(b);
    Value lane = b.rem(thread, kWarpSize), warp = b.div(thread, kWarpSize);
    Value warpSize = b.index(kWarpSize);
    Value warps = arith::CeilDivUIOp::create(builder, loc, threads, warpSize);
    Value rest = b.sub(threads, b.mul(warp, kWarpSize));
    Value warpResult = reduceWarp(b.min(rest, warpSize));

    // Warps may still read the results of the last execution.
    Value partials = addPartials();
    gpu::BarrierOp::create(builder, loc);
    b.runIf(b.equal(lane, b.index(0)), [&] {
      memref::StoreOp::create(builder, loc, warpResult, partials, warp);
    });
    gpu::BarrierOp::create(builder, loc);
    op.replaceAllUsesWith(combinePartials(partials, warps));
    op.erase();
  }

private:
  /// Combines the values of the first `lanes` threads of a warp. The first
  /// thread has the result.
  Value reduceWarp(Value lanes) {
    Type i32 = builder.getI32Type();
    Value width = arith::IndexCastUIOp::create(builder, loc, i32, lanes);
    Value value = op.getValue();
    for (int32_t distance = kWarpSize / 2; distance > 0; distance /= 2) {
      auto [other, isValid] = shuffleDown(value, distance, width);
      auto combine = scf::IfOp::create(builder, loc, TypeRange(type), isValid,
                                       /*withElseRegion=*/true);
      builder.setInsertionPointToEnd(combine.thenBlock());
      scf::YieldOp::create(builder, loc, combineValues(value, other));
      builder.setInsertionPointToEnd(combine.elseBlock());
      scf::YieldOp::create(builder, loc, value);
      builder.setInsertionPoint(op);
      value = combine.getResult(0);
    }
    return value;
  }

  /// The value of the thread at a distance, and whether there is one. Shuffles
  /// are of 32 or 64 bits.
  std::pair<Value, Value> shuffleDown(Value value, int32_t distance,
                                      Value width) {
    unsigned bits = type.getIntOrFloatBitWidth();
    Type integer = builder.getIntegerType(bits);
    Type wide = builder.getIntegerType(bits <= 32 ? 32 : 64);
    if (type != integer)
      value = arith::BitcastOp::create(builder, loc, integer, value);
    if (integer != wide)
      value = arith::ExtUIOp::create(builder, loc, wide, value);
    Value offset = b.i32(distance);
    auto shuffle = gpu::ShuffleOp::create(builder, loc, value, offset, width,
                                          gpu::ShuffleMode::DOWN);
    Value result = shuffle.getShuffleResult();
    if (integer != wide)
      result = arith::TruncIOp::create(builder, loc, integer, result);
    if (type != integer)
      result = arith::BitcastOp::create(builder, loc, type, result);
    return {result, shuffle.getValid()};
  }

  Value combineValues(Value lhs, Value rhs) {
    if (std::optional<gpu::AllReduceOperation> operation = op.getOp())
      return vector::makeArithReduction(
          builder, loc, gpu::convertReductionKind(*operation), lhs, rhs);
    return inlineCombiner(builder, op.getBody().front(), lhs, rhs);
  }

  Value addPartials() {
    auto space = gpu::AddressSpaceAttr::get(
        builder.getContext(), gpu::GPUDialect::getWorkgroupAddressSpace());
    return kernel.addWorkgroupAttribution(
        MemRefType::get({kMaxWarps}, type, MemRefLayoutAttrInterface(), space),
        loc);
  }

  /// Combines the values of all warps, in every thread and in one order.
  Value combinePartials(Value partials, Value warps) {
    Value first = memref::LoadOp::create(builder, loc, partials, b.index(0));
    auto loop =
        scf::ForOp::create(builder, loc, b.index(1), warps, b.index(1), first);
    builder.setInsertionPointToStart(loop.getBody());
    Value next =
        memref::LoadOp::create(builder, loc, partials, loop.getInductionVar());
    Value combined = combineValues(loop.getRegionIterArg(0), next);
    scf::YieldOp::create(builder, loc, combined);
    builder.setInsertionPoint(op);
    return loop.getResult(0);
  }

  gpu::GPUFuncOp kernel;
  gpu::AllReduceOp op;
  OpBuilder builder;
  Location loc;
  IndexBuilder b;
  Type type;
};

struct ExpandAllReduce : kvcache::impl::ExpandAllReduceBase<ExpandAllReduce> {
  void runOnOperation() override {
    SmallVector<std::pair<gpu::GPUFuncOp, gpu::AllReduceOp>> reductions;
    WalkResult result = getOperation().walk([&](gpu::AllReduceOp op) {
      auto kernel = op->getParentOfType<gpu::GPUFuncOp>();
      if (failed(check(kernel, op)))
        return WalkResult::interrupt();
      reductions.push_back({kernel, op});
      return WalkResult::advance();
    });
    if (result.wasInterrupted() || failed(checkClusters()))
      return signalPassFailure();
    for (auto [kernel, op] : reductions)
      AllReduceBuilder(kernel, op).run();
  }

private:
  /// Checks that reductions of a warp stay in it: upstream's patterns, which
  /// lower them later, shuffle beyond it without an error.
  LogicalResult checkClusters() {
    WalkResult result = getOperation().walk([](gpu::SubgroupReduceOp op) {
      uint64_t lanes =
          uint64_t(op.getClusterSize().value_or(1)) * op.getClusterStride();
      if (lanes <= kWarpSize)
        return WalkResult::advance();
      op.emitOpError("expects the size of a cluster times its stride to be at "
                     "most 32, the threads of a warp, got ")
          << lanes;
      return WalkResult::interrupt();
    });
    return failure(result.wasInterrupted());
  }

  static LogicalResult check(gpu::GPUFuncOp kernel, gpu::AllReduceOp op) {
    if (!kernel)
      return op.emitOpError("expects to be in a 'gpu.func'");
    bool isReachedByAll = op->getBlock() == &kernel.getBody().front();
    if (!op.getUniform() && !isReachedByAll)
      return op.emitOpError("expects 'uniform' in control flow: all threads of "
                            "a block reduce together");
    if (op.getType().getIntOrFloatBitWidth() > 64)
      return op.emitOpError("expects a value of at most 64 bits, got ")
             << op.getType();
    if (!op.getOp() && !op.getBody().hasOneBlock())
      return op.emitOpError("expects a body of one block");
    return success();
  }
};

} // namespace
