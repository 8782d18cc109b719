//===- FragmentOps.cpp - Matrices in registers ----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/IR/FragmentOps.h"
#include "kvcache/IR/Formats.h"
#include "kvcache/IR/MatrixOps.h"
#include "kvcache/IR/PipeOps.h"

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

//===----------------------------------------------------------------------===//
// fragment_load, fragment_store
//===----------------------------------------------------------------------===//

/// The part of a tile that is a fragment.
static MatrixPart getPart(TypedValue<TileType> tile, FragmentType fragment,
                          Value row, Value column, bool isTransposed = false) {
  constexpr int64_t rows = 8, bytes = 16;
  int64_t sides[] = {fragment.getRows(), fragment.getColumns()};
  int64_t size = tile.getType().getLayout().elementBytes;
  return {"tile",
          tile,
          Major::K,
          row,
          column,
          rows,
          std::max<int64_t>(bytes / size, 1),
          sides[isTransposed],
          sides[!isTransposed]};
}

MatrixPart FragmentLoadOp::getPart() {
  MatrixPart part =
      ::getPart(getTile(), getType(), getTileRow(), getTileColumn());
  if (getRepeated())
    part.rows = part.rowUnit = 1;
  return part;
}
MatrixPart FragmentStoreOp::getPart() {
  return ::getPart(getTile(), getValue().getType(), getTileRow(),
                   getTileColumn(), getTransposed());
}

static LogicalResult verifyAccess(Operation *op, FragmentType fragment,
                                  TypedValue<TileType> tile) {
  // (C1)
  Type element = fragment.getElementType();
  if (!fragment.hasColumns() || element != tile.getType().getElementType() ||
      element.getIntOrFloatBitWidth() % 8 != 0)
    return op->emitOpError("expects a fragment of two dimensions with the "
                           "elements of the tile, whole bytes, got ")
           << fragment << " and " << tile.getType();
  return success();
}

LogicalResult FragmentLoadOp::verify() {
  if (failed(verifyAccess(*this, getType(), getTile())))
    return failure();
  // (C3)
  if (getRepeated() && !LayoutDigits::get(getType()).isAccumulator())
    return emitOpError("expects an accumulator for 'repeated', got ")
           << getType();
  if (getPaired() && getType().getLayout() != FragmentLayout::MmaA16Pairs)
    return emitOpError("expects mma_a16_pairs for 'paired', got ") << getType();
  return getPart().verifySize(*this); // (C2)
}
LogicalResult FragmentStoreOp::verify() {
  if (failed(verifyAccess(*this, getValue().getType(), getTile())))
    return failure();
  return getPart().verifySize(*this);
}

//===----------------------------------------------------------------------===//
// fragment_mma
//===----------------------------------------------------------------------===//

TypedValue<TileType> FragmentMmaOp::getTileA() {
  return dyn_cast<TypedValue<TileType>>(getA());
}

int64_t FragmentMmaOp::getSizeK() {
  if (auto fragment = dyn_cast<FragmentType>(getA().getType()))
    return fragment.getColumns();
  return MmaOp::getSizeK(getTileA().getType(), getMajorA(), getK());
}

SmallVector<MatrixPart, 2> FragmentMmaOp::getParts() {
  SmallVector<MatrixPart, 2> parts{MatrixPart::get("b", getB(), getMajorB(),
                                                   getBRow(), getBColumn(),
                                                   getSizeN(), getSizeK())};
  if (!isWgmma())
    parts.front().columnUnit =
        kColumnBytes / getB().getType().getLayout().elementBytes;
  if (TypedValue<TileType> tile = getTileA())
    parts.push_back(MatrixPart::get("a", tile, getMajorA(), getARow(),
                                    getAColumn(), getType().getRows(),
                                    getSizeK()));
  return parts;
}

bool FragmentMmaOp::dequantizes() {
  return !isWgmma() && getB().getType().getLayout().elementBytes == 1;
}

/// (C1) and (C2)
static LogicalResult verifyA(FragmentMmaOp op) {
  auto fragment = dyn_cast<FragmentType>(op.getA().getType());
  if (bool(op.getARow()) == bool(fragment))
    return op.emitOpError("expects 'a_row' and 'a_column' if 'a' is a tile, "
                          "and only then");
  if (!fragment)
    return success();
  if (op.getK() || op.getMajorA() != Major::K)
    return op.emitOpError("expects no 'k' and no 'major_a', because 'a' is a "
                          "fragment");
  FragmentLayout layout = fragment.getLayout();
  if (op.isTransposed())
    return op.emitOpError("expects 'a' to be a tile for wgmma_acc_t, got ")
           << fragment;
  bool hasPairs = op.dequantizes() && op.getMajorB() == Major::K;
  FragmentLayout syncLayout =
      hasPairs ? FragmentLayout::MmaA16Pairs : FragmentLayout::MmaA16;
  bool isOperand = op.isWgmma() ? layout == FragmentLayout::WgmmaA16 ||
                                      layout == FragmentLayout::WgmmaA8
                                : layout == syncLayout;
  if (isOperand && fragment.hasColumns())
    return success();
  return op.emitOpError("expects 'a' to be ")
         << (op.isWgmma() ? "wgmma_a16 or wgmma_a8"
                          : stringifyFragmentLayout(syncLayout))
         << " of two dimensions, got " << fragment;
}

/// (C5) and (C7)
static LogicalResult verifySyncElements(FragmentMmaOp op, Type a) {
  Type b = op.getB().getType().getElementType(),
       sum = op.getType().getElementType();
  if (op.dequantizes()) {
    if (a.isF16() && sum.isF32() &&
        (hasUse(b, FormatUse::FP8) || b.isSignlessInteger(8)))
      return success();
    return op.emitOpError("expects f16, f8E4M3FN, f8E5M2 or i8, and f32, as "
                          "element types, got ")
           << a << ", " << b << " and " << sum;
  }
  if ((a.isBF16() || a.isF16()) && b == a && sum.isF32())
    return success();
  return op.emitOpError("expects bf16 or f16 twice, and f32, as element types, "
                        "got ")
         << a << ", " << b << " and " << sum;
}

/// (C5) and (C7)
static LogicalResult verifySync(FragmentMmaOp op) {
  auto a = dyn_cast<FragmentType>(op.getA().getType());
  if (!a)
    return op.emitOpError("expects 'a' to be a fragment: only wgmma reads A "
                          "from tiles");
  if (failed(verifySyncElements(op, a.getElementType())))
    return failure();
  FragmentLayout layout = op.dequantizes() && op.getMajorB() == Major::MN
                              ? FragmentLayout::MmaAccPairs
                              : FragmentLayout::MmaAcc;
  if (op.getType().getLayout() != layout)
    return op.emitOpError("expects the result to be ")
           << stringifyFragmentLayout(layout) << ", got " << op.getType();
  constexpr int64_t step = 16;
  if (op.getSizeN() % step == 0)
    return success();
  return op.emitOpError("expects the result to have a multiple of ")
         << step << " columns, got " << op.getSizeN();
}

LogicalResult FragmentMmaOp::verify() {
  // (C3)
  if (Value sum = getAccumulator(); sum && sum.getType() != getType() &&
                                    sum.getType() != getType().getComplete())
    return emitOpError("expects 'accumulator' to be ")
           << getType().getComplete() << " or " << getType() << ", got "
           << sum.getType();
  if (failed(verifyA(*this)))
    return failure();
  if (!isWgmma())
    return failure(failed(verifySync(*this)) ||
                   failed(getParts().front().verifySize(*this))); // (C6)
  // (C4)
  auto fragment = dyn_cast<FragmentType>(getA().getType());
  WgmmaProduct product{fragment ? fragment.getElementType()
                                : getTileA().getType().getElementType(),
                       getB().getType().getElementType(),
                       getType().getElementType(),
                       isTransposed() ? getType().getRows() : getSizeN(),
                       getSizeK(),
                       getMajorA(),
                       getMajorB()};
  return product.verify(*this, getParts());
}

//===----------------------------------------------------------------------===//
// fragment_wait
//===----------------------------------------------------------------------===//

LogicalResult FragmentWaitOp::inferReturnTypes(
    MLIRContext *, std::optional<Location>, ValueRange operands, DictionaryAttr,
    OpaqueProperties, RegionRange, SmallVectorImpl<Type> &types) {
  for (Type type : operands.getTypes()) {
    auto product = dyn_cast<InFlightType>(type);
    if (!product)
      return failure();
    types.push_back(product.getComplete());
  }
  return success();
}

LogicalResult FragmentWaitOp::verify() {
  if (getProducts().empty())
    return emitOpError("expects a product");
  auto layouts = llvm::map_range(getProducts().getTypes(), [](Type type) {
    return cast<InFlightType>(type).getLayout();
  });
  if (!llvm::all_equal(layouts)) // (C1)
    return emitOpError("expects products of one instruction");
  if (getPending() && !isWgmmaAcc(*layouts.begin())) // (C2)
    return emitOpError("expects no 'pending' for products of mma.sync, got ")
           << getPending();
  return success();
}

LogicalResult ScheduleFenceOp::verify() {
  FragmentType type = getSums().getType();
  if (!type.hasColumns() && type.getElementType().isF32()) // (C1)
    return success();
  return emitOpError("expects one dimension and f32, got ") << type;
}
