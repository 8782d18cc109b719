//===- FragmentOps.cpp - Matrices in registers ----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/IR/FragmentOps.h"

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// reduce
//===----------------------------------------------------------------------===//

/// (C3)
static bool canCombine(Reduction kind, Type type) {
  switch (kind) {
  case Reduction::AddF:
  case Reduction::MaxNumF:
  case Reduction::MinNumF:
  case Reduction::MaximumF:
  case Reduction::MinimumF:
    return type.isF16() || type.isBF16() || type.isF32();
  case Reduction::AddI:
  case Reduction::MaxSI:
  case Reduction::MinSI:
    return type.isSignlessInteger();
  }
  llvm_unreachable("not a reduction");
}

/// (C5)
static LogicalResult verifyScratch(ReduceOp op) {
  FragmentType source = op.getSource().getType();
  const auto &digits = LayoutDigits::get(source);
  bool isNeeded = digits.hasSharedRows() && !op.getType().getPartial();
  TypedValue<TileType> scratch = op.getScratch();
  if (isNeeded != bool(scratch))
    return op.emitOpError("expects 'scratch' if warps share the rows of a "
                          "result that is not partial, and only then, got ")
           << op.getType();
  if (!scratch && op.getThread())
    return op.emitOpError("expects no 'thread' without 'scratch'");
  if (!scratch)
    return success();
  auto needed =
      TileType::get(op.getContext(), digits.countWarps(), source.getRows(),
                    source.getElementType(), Swizzle::None);
  if (scratch.getType() == needed)
    return success();
  return op.emitOpError("expects 'scratch' to be ")
         << needed << ", got " << scratch.getType();
}

LogicalResult ReduceOp::verify() {
  FragmentType source = getSource().getType(), result = getType();
  // (C1)
  if (!source.hasColumns() && !source.getPartial())
    return emitOpError(
               "expects 'source' to have columns or to be partial, got ")
           << source;
  if (source.getRowType(result.getPartial()) != result)
    return emitOpError("expects a number for each row of ")
           << source << ", got " << result;
  if (source.getPartial() && result.getPartial()) // (C2)
    return emitOpError("expects a result that is not partial, because 'source' "
                       "is");
  // (C3)
  Type element = source.getElementType();
  if (!canCombine(getKind(), element))
    return emitOpError("expects 'kind' to combine elements of ")
           << element << ", got " << stringifyReduction(getKind());
  if (!result.getPartial() && element.getIntOrFloatBitWidth() != 32)
    return emitOpError("expects elements of 32 bits, or a partial result, got ")
           << element;
  if (getInit() && !result.getPartial() && !isIdempotent()) // (C4)
    return emitOpError("expects no 'init', which each lane would add: '")
           << stringifyReduction(getKind())
           << "' has one only for a partial result";
  return verifyScratch(*this);
}

void ReduceOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  if (!getScratch())
    return;
  effects.emplace_back(MemoryEffects::Write::get(), &getScratchMutable()[0]);
  effects.emplace_back(MemoryEffects::Read::get(), &getScratchMutable()[0]);
}

Speculation::Speculatability ReduceOp::getSpeculatability() {
  return getScratch() ? Speculation::NotSpeculatable
                      : Speculation::Speculatable;
}

bool ReduceOp::isIdempotent() {
  return getKind() != Reduction::AddF && getKind() != Reduction::AddI;
}

LogicalResult WarpAnyOp::verify() {
  FragmentType type = getFlags().getType();
  if (!type.hasColumns() && !type.getPartial() &&
      type.getElementType().isSignlessInteger(1)) // (C1)
    return success();
  return emitOpError("expects one dimension and i1, not partial, got ") << type;
}

//===----------------------------------------------------------------------===//
// to_operand
//===----------------------------------------------------------------------===//

LogicalResult ToOperandOp::verify() {
  FragmentType source = getSource().getType(), result = getType();
  // (C1)
  const auto &from = LayoutDigits::get(source);
  const auto &to = LayoutDigits::get(result);
  bool isSamePlace =
      source.hasColumns() && source.getShape() == result.getShape() &&
      from.isAccumulator() && !to.isAccumulator() && from.warp == to.warp &&
      from.lane == to.lane &&
      LayoutDigits::getPlaces(source) == LayoutDigits::getPlaces(result);
  if (!isSamePlace)
    return emitOpError("expects an accumulator, and an operand whose threads "
                       "have the same elements, got ")
           << source << " and " << result;
  // (C2)
  Type given = source.getElementType(), rounded = result.getElementType();
  if (!isa<FloatType>(rounded) || (!given.isF32() && given != rounded))
    return emitOpError("expects floats, of the source f32 or those of the "
                       "result, got ")
           << given << " and " << rounded;
  return success();
}
