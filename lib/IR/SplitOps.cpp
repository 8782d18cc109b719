//===- SplitOps.cpp - Splits of attention ---------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpSyntax.h"
#include "WholeCacheRules.h"

#include "kvcache/IR/PipeOps.h"
#include "kvcache/IR/SplitOps.h"

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// workspace_size
//===----------------------------------------------------------------------===//

WorkspaceShape WorkspaceSizeOp::getShape() {
  SplitAttr split = getSplitAttr();
  return WorkspaceShape::get(static_cast<int64_t>(getQueryHeads()),
                             static_cast<int64_t>(getValueSize()),
                             split ? split
                                   : SplitAttr::getDefault(getContext()));
}

LogicalResult WorkspaceSizeOp::verify() {
  if (failed(verifyNoEarlierAttributes(
          *this, {"split_tokens", "max_splits", "split_rows"}, "'split'")))
    return failure();
  return verifyWorkspaceBytes(*this, getShape());
}

//===----------------------------------------------------------------------===//
// merge_splits
//===----------------------------------------------------------------------===//

SplitAttr MergeSplitsOp::getSplitOrDefault() {
  SplitAttr split = getSplitAttr();
  return split ? split : SplitAttr::getDefault(getContext());
}

/// (C1).
static LogicalResult verifyOutputs(MergeSplitsOp op) {
  MemRefType out = op.getOut().getType();
  int64_t heads = out.getDimSize(1), elements = out.getDimSize(2);
  if (ShapedType::isDynamic(heads) || ShapedType::isDynamic(elements))
    return op.emitOpError("expects 'out' to have static sizes of heads and "
                          "elements, got ")
           << out;
  if (heads == 0 || elements == 0)
    return op.emitOpError("expects 'out' to have heads and elements, got ")
           << out;
  if (failed(verifyDense(op, "out", out, heads, elements)))
    return failure();
  for (auto [name, value] : {NamedValue("lse", op.getLse()),
                             NamedValue("max_logits", op.getMaxLogits()),
                             NamedValue("sinks", op.getSinks())})
    if (value && cast<MemRefType>(value.getType()).getShape().back() != heads)
      return op.emitOpError() << "expects '" << name << "' to have " << heads
                              << " heads, got " << value.getType();
  return verifyCommonSize(
      op, "rows", {{op.getOut(), 0}, {op.getLse(), 0}, {op.getMaxLogits(), 0}});
}

/// (C3).
static LogicalResult verifyValueScale(MergeSplitsOp op) {
  auto scale = dyn_cast_if_present<MemRefType>(
      op.getValueScale() ? op.getValueScale().getType() : Type());
  if (!scale)
    return success();
  int64_t heads = op.getOut().getType().getDimSize(1);
  int64_t own = scale.getDimSize(0);
  if (!ShapedType::isDynamic(own) && own > 0 && heads % own == 0)
    return success();
  return op.emitOpError() << "expects 'value_scale' to have a static number of "
                          << "heads that divides those of 'out' (" << heads
                          << "), got " << scale;
}

LogicalResult MergeSplitsOp::verify() {
  if (failed(verifyOutputs(*this)) ||
      failed(verifySplitMemory(*this, getWorkspace(), getRowOffsets(), getOut(),
                               getSplitOrDefault())) ||
      failed(verifyValueScale(*this)) ||
      failed(verifyScaleOfRows(*this, "out_scale", getOutScale(), "out",
                               getOut())))
    return failure();
  // (C11)
  if (failed(verifyElementsApart(*this, {{"out", getOut()},
                                         {"lse", getLse()},
                                         {"max_logits", getMaxLogits()}})) ||
      failed(verifyApart(*this, {"lse", getLse()},
                         {{"max_logits", getMaxLogits()}})))
    return failure();
  // (C5)
  if (getSinklessLse() && !getSinks())
    return emitOpError("expects 'sinkless_lse' only with 'sinks'");
  // (C6)
  if (getExponentBias().isFinite())
    return success();
  return emitOpError("expects 'exponent_bias' to be finite, got ")
         << getExponentBiasAttr();
}

LogicalResult MergeSplitsOp::verifyRegions() {
  // (C7)
  Block &body = getCount().front();
  SmallVector<Type> types(4, IndexType::get(getContext()));
  if (body.getArgumentTypes() != TypeRange(types))
    return emitOpError() << "expects the region 'count' to take (" << types
                         << "), got (" << body.getArgumentTypes() << ")";
  auto yield = body.empty() ? YieldOp() : dyn_cast<YieldOp>(body.back());
  if (!yield)
    return emitOpError(
        "expects the region 'count' to end with 'kvcache.yield'");
  if (yield.getOperandTypes() != TypeRange(types).take_front(1))
    return emitOpError() << "expects the region 'count' to yield ("
                         << types.front() << "), got ("
                         << yield.getOperandTypes() << ")";
  // (C8), (C10)
  return verifyPortableRegion(getCount(), *this,
                              {{"out", getOut()},
                               {"lse", getLse()},
                               {"max_logits", getMaxLogits()},
                               {"workspace", getWorkspace()}},
                              /*readsCaches=*/true);
}

//===----------------------------------------------------------------------===//
// merge_states
//===----------------------------------------------------------------------===//

void MergeStatesOp::getEffects(Effects &effects) {
  addWholeCacheEffects(*this, /*readsCache=*/false, /*writesCache=*/false,
                       effects);
}

void MergeStatesOp::build(OpBuilder &b, OperationState &state, Value splits,
                          Value lses, Value out, Value lse) {
  build(b, state, getTensorTypes({out, lse}), splits, lses, out, lse,
        /*out_scale=*/Value(), IntegerAttr());
}

LogicalResult MergeStatesOp::verify() {
  auto out = cast<ShapedType>(getOut().getType());
  int64_t heads = out.getDimSize(1), elements = out.getDimSize(2);
  if (ShapedType::isDynamic(heads) || ShapedType::isDynamic(elements))
    return emitOpError("expects 'out' to have static sizes of heads and "
                       "elements, got ")
           << out;
  if (failed(verifyDense(*this, "out", out, heads, elements)) ||
      failed(
          verifyDense(*this, "splits", getSplits().getType(), heads, elements)))
    return failure();
  for (auto [name, value] :
       {NamedValue("lses", getLses()), NamedValue("lse", getLse())})
    if (cast<ShapedType>(value.getType()).getShape().back() != heads)
      return emitOpError() << "expects '" << name << "' to have " << heads
                           << " heads, got " << value.getType();
  // (C3)
  if (failed(verifyScaleOfRows(*this, "out_scale", getOutScale(), "out",
                               getOut())))
    return failure();
  if (failed(verifyCommonSize(*this, "splits",
                              {{getSplits(), 0}, {getLses(), 0}})) ||
      failed(verifyCommonSize(
          *this, "rows",
          {{getSplits(), 1}, {getLses(), 1}, {getOut(), 0}, {getLse(), 0}})))
    return failure();
  // (C4)
  if (failed(
          verifyElementsApart(*this, {{"out", getOut()}, {"lse", getLse()}})))
    return failure();
  return verifyResults(*this);
}
