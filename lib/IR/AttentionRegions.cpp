//===- AttentionRegions.cpp - The regions of attention --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RegionRules.h"

#include "kvcache/IR/AttentionOps.h"
#include "kvcache/IR/PipeOps.h"

using namespace mlir;
using namespace mlir::kvcache;

/// The region whose first argument has a type; null if there is none.
template <typename TypeT> static Region *findModifier(AttentionOp op) {
  for (Region &region : op.getModifiers())
    if (region.getNumArguments() && isa<TypeT>(region.getArgument(0).getType()))
      return &region;
  return nullptr;
}
Region *AttentionOp::getScoreRegion() { return findModifier<FloatType>(*this); }
Region *AttentionOp::getMaskRegion() { return findModifier<IndexType>(*this); }

/// (C13).
static LogicalResult verifyModifierTypes(AttentionOp op) {
  MutableArrayRef<Region> regions = op.getModifiers();
  Builder builder(op.getContext());
  SmallVector<Type> types(4, builder.getIndexType());
  auto verifyTypes = [&](StringRef name, Region *region,
                         Type result) -> LogicalResult {
    if (region->getArgumentTypes() != TypeRange(types))
      return op.emitOpError()
             << "expects the region '" << name << "' to take (" << types
             << "), got (" << region->getArgumentTypes() << ")";
    if (!llvm::hasSingleElement(*region))
      return op.emitOpError()
             << "expects the region '" << name << "' to have one block, got "
             << region->getBlocks().size();
    Block &block = region->front();
    auto yield = block.empty() ? YieldOp() : dyn_cast<YieldOp>(block.back());
    if (!yield)
      return op.emitOpError() << "expects the region '" << name
                              << "' to end with 'kvcache.yield'";
    if (yield.getOperandTypes() == TypeRange(result))
      return success();
    return op.emitOpError()
           << "expects the region '" << name << "' to yield (" << result
           << "), got (" << yield.getOperandTypes() << ")";
  };
  Region *score = op.getScoreRegion(), *mask = op.getMaskRegion();
  SmallVector<Region *> expected;
  for (Region *region : {score, mask})
    if (region)
      expected.push_back(region);
  if (!llvm::equal(expected, llvm::make_pointer_range(regions)))
    return op.emitOpError("expects at most two regions: one whose first "
                          "argument is an f32, and then one whose first is an "
                          "index");
  if (mask && failed(verifyTypes("mask", mask, builder.getI1Type())))
    return failure();
  types.insert(types.begin(), builder.getF32Type());
  return score ? verifyTypes("score", score, builder.getF32Type()) : success();
}

LogicalResult AttentionOp::verifyRegions() {
  if (getModifiers().empty())
    return success();
  if (failed(verifyModifierTypes(*this)))
    return failure();
  // (C17)
  if (getRows())
    return emitOpError(
        "expects no regions with 'rows', whose tokens have no positions");
  // (C14), (C15), (C16)
  return success(llvm::all_of(getModifiers(), [&](Region &region) {
    return succeeded(verifyPortableRegion(region, *this,
                                          {{"out", getOut()},
                                           {"lse", getLse()},
                                           {"max_logits", getMaxLogits()},
                                           {"workspace", getWorkspace()}},
                                          /*readsCaches=*/false));
  }));
}
