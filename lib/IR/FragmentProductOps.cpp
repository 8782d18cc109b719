//===- FragmentProductOps.cpp - Products of fragments and tiles -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/IR/FragmentProductOps.h"
#include "kvcache/IR/Formats.h"
#include "kvcache/IR/MatrixOps.h"

using namespace mlir;
using namespace mlir::kvcache;

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
  if (getPacked()) {
    parts.front().columns /= kPacked;
    if (getScales())
      parts.front().columnUnit = parts.front().columns; // (C15)
  }
  if (TypedValue<TileType> tile = getTileA())
    parts.push_back(MatrixPart::get("a", tile, getMajorA(), getARow(),
                                    getAColumn(), getType().getRows(),
                                    getSizeK()));
  return parts;
}

bool FragmentMmaOp::dequantizes() {
  return !isWgmma() && !getPacked() &&
         getB().getType().getLayout().elementBytes == 1;
}

/// The layout of A of `mma.sync`.
static FragmentLayout getSyncLayout(FragmentMmaOp op) {
  bool isKMajor = op.getMajorB() == Major::K;
  if (op.getPacked())
    return isKMajor ? FragmentLayout::MmaA16Quads : FragmentLayout::MmaA16;
  return op.getPaired() || (op.dequantizes() && isKMajor)
             ? FragmentLayout::MmaA16Pairs
             : FragmentLayout::MmaA16;
}

/// The layout of D of `mma.sync`.
static FragmentLayout getSyncAccLayout(FragmentMmaOp op) {
  if (op.getMajorB() == Major::K)
    return FragmentLayout::MmaAcc;
  if (op.getPacked())
    return FragmentLayout::MmaAccQuads;
  return op.dequantizes() ? FragmentLayout::MmaAccPairs
                          : FragmentLayout::MmaAcc;
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
  FragmentLayout syncLayout = getSyncLayout(op);
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

/// (C5), (C8) and (C13)
static LogicalResult verifySyncElements(FragmentMmaOp op, Type a) {
  Type b = op.getB().getType().getElementType(),
       sum = op.getType().getElementType();
  if (op.getPacked()) {
    if (a.isF16() && b.isSignlessInteger(8) && sum.isF32())
      return success();
    return op.emitOpError("expects f16, i8 and f32 as element types with "
                          "'packed', got ")
           << a << ", " << b << " and " << sum;
  }
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

/// (C5), (C8) and (C13)
static LogicalResult verifySync(FragmentMmaOp op) {
  auto a = dyn_cast<FragmentType>(op.getA().getType());
  if (!a)
    return op.emitOpError("expects 'a' to be a fragment: only wgmma reads A "
                          "from tiles");
  if (failed(verifySyncElements(op, a.getElementType())))
    return failure();
  FragmentLayout layout = getSyncAccLayout(op);
  if (op.getType().getLayout() != layout)
    return op.emitOpError("expects the result to be ")
           << stringifyFragmentLayout(layout) << ", got " << op.getType();
  constexpr int64_t step = 16;
  if (op.getSizeN() % step == 0)
    return success();
  return op.emitOpError("expects the result to have a multiple of ")
         << step << " columns, got " << op.getSizeN();
}

/// (C13) and (C14)
static LogicalResult verifyPacked(FragmentMmaOp op) {
  Type packed = op.getPacked().value_or(Type());
  bool isFloat = isa_and_present<Float4E2M1FNType>(packed);
  if (bool(op.getScales()) != bool(op.getScalesRow()) ||
      (op.getScales() && !isFloat))
    return op.emitOpError(
        "expects 'scales' and 'scales_row' together, and only "
        "with 'packed' of f4E2M1FN");
  if (!packed || ((isFloat || packed.isSignlessInteger(4)) && !op.isWgmma()))
    return success();
  return op.emitOpError(
             "expects 'packed' to be f4E2M1FN or i4, for mma.sync, got ")
         << packed << " and " << op.getType();
}

/// (C14) and (C15)
static LogicalResult verifyScales(FragmentMmaOp op) {
  TypedValue<TileType> scales = op.getScales();
  if (!scales)
    return success();
  TileType type = scales.getType(), b = op.getB().getType();
  int64_t elements = b.getColumns() * FragmentMmaOp::kPacked,
          rows = op.getParts().front().rows,
          columns = elements / FragmentMmaOp::kGroup;
  if (!type.getElementType().isF16() || type.getSwizzle() != Swizzle::None ||
      type.getRows() < rows || type.getColumns() < columns)
    return op.emitOpError("expects 'scales' to be a tile of f16 without a "
                          "swizzle, with at least ")
           << rows << " rows and " << columns << " columns, got " << type;
  constexpr int64_t most = 8 * FragmentMmaOp::kPackedColumns;
  int64_t size = op.countRowElements();
  if (llvm::isPowerOf2_64(size) && size >= FragmentMmaOp::kPackedColumns &&
      size <= most && elements % size == 0)
    return success();
  return op.emitOpError("expects a row of 32, 64, 128 or 256 elements of a b "
                        "with 'scales', which divide those of its tile, got ")
         << size << " of " << elements;
}

/// (C9)
static LogicalResult verifyOrder(FragmentMmaOp op) {
  if ((!op.getRowsFirst() && !op.getPaired()) ||
      (!op.isWgmma() && !op.dequantizes() && !op.getPacked() &&
       op.getMajorB() == Major::K))
    return success();
  return op.emitOpError("expects '")
         << (op.getPaired() ? "paired" : "rows_first")
         << "' only for a k_major 'b' of mma.sync with elements of 16 bits, "
            "got "
         << op.getB().getType();
}

LogicalResult FragmentMmaOp::verify() {
  // (C3)
  if (Value sum = getAccumulator(); sum && sum.getType() != getType() &&
                                    sum.getType() != getType().getComplete())
    return emitOpError("expects 'accumulator' to be ")
           << getType().getComplete() << " or " << getType() << ", got "
           << sum.getType();
  if (failed(verifyPacked(*this)) || failed(verifyA(*this)) ||
      failed(verifyOrder(*this)))
    return failure();
  if (!isWgmma())
    return failure(failed(verifySync(*this)) ||
                   failed(getParts().front().verifySize(*this)) || // (C6)
                   failed(verifyScales(*this)));
  if (getThread()) // (C7)
    return emitOpError(
        "expects no 'thread', because 'a' and 'b' have no places "
        "of a thread: warpgroups multiply");
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
    // The verifier reports other operands.
    auto product = dyn_cast<InFlightType>(type);
    types.push_back(product ? product.getComplete() : type);
  }
  return success();
}

LogicalResult FragmentWaitOp::verify() {
  if (getProducts().empty())
    return emitOpError("expects a product");
  auto isWgmma = llvm::map_range(getProducts().getTypes(), [](Type type) {
    return isWgmmaAcc(cast<InFlightType>(type).getLayout());
  });
  if (!llvm::all_equal(isWgmma)) // (C1)
    return emitOpError("expects all products to be of wgmma, or all of "
                       "mma.sync");
  if (getPending() && !*isWgmma.begin()) // (C2)
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
