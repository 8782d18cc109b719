//===- MatrixOps.cpp - Products of tiles ----------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/IR/MatrixOps.h"
#include "kvcache/IR/Formats.h"

using namespace mlir;
using namespace mlir::kvcache;

static Type getElementType(Type operand) {
  if (auto tile = dyn_cast<TileType>(operand))
    return tile.getElementType();
  return cast<VectorType>(operand).getElementType();
}

int64_t MmaOp::getSizeK() {
  if (auto fragment = dyn_cast<VectorType>(getA().getType()))
    return 2 * fragment.getNumElements();
  return getSizeK(getTileA().getType(), getMajorA(), getK());
}

int64_t MmaOp::getSizeK(TileType a, Major major, std::optional<uint64_t> k) {
  if (k)
    return static_cast<int64_t>(*k);
  return major == Major::K ? a.getColumns() : a.getRows();
}

SmallVector<MatrixPart, 2> MmaOp::getParts() {
  SmallVector<MatrixPart, 2> parts{MatrixPart::get("b", getB(), getMajorB(),
                                                   getBRow(), getBColumn(),
                                                   getSizeN(), getSizeK())};
  if (TypedValue<TileType> tile = getTileA())
    parts.push_back(MatrixPart::get("a", tile, getMajorA(), getARow(),
                                    getAColumn(), kM, getSizeK()));
  return parts;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// PTX ISA, "wgmma.mma_async": the types of multiplicands and accumulators.
static bool hasProduct(Type a, Type b, Type result) {
  auto isFP8 = [](Type type) { return hasUse(type, FormatUse::FP8); };
  if (isFP8(a) && isFP8(b))
    return result.isF32() || result.isF16();
  if (a != b)
    return false;
  if (a.isF16())
    return result.isF32() || result.isF16();
  return (a.isBF16() && result.isF32()) ||
         (a.isSignlessInteger(8) && result.isSignlessInteger(32));
}

static int64_t countBytes(Type element) {
  return element.getIntOrFloatBitWidth() / 8;
}

static LogicalResult verifySizes(Operation *op, const WgmmaProduct &product) {
  constexpr int64_t largest = WgmmaProduct::kMostColumns;
  int64_t step = WgmmaProduct::getColumnStep(product.a, product.n);
  if (product.n > largest || product.n % step != 0)
    return op->emitOpError("expects n, the columns of the product, to be a "
                           "multiple of ")
           << step << ", at most " << largest << ", got " << product.n;
  constexpr int64_t stepBytes = MatrixPart::kStepBytes;
  step = stepBytes / countBytes(product.a);
  if (product.k % step == 0)
    return success();
  return op->emitOpError("expects k, the columns of A, to be a multiple of ")
         << step << " (" << stepBytes << " bytes), got " << product.k;
}

LogicalResult WgmmaProduct::verify(Operation *op,
                                   ArrayRef<MatrixPart> parts) const {
  if (!hasProduct(a, b, result))
    return op->emitOpError("expects bf16, bf16 and f32, f16, f16 and f32 or "
                           "f16, f8E4M3FN or f8E5M2 twice and f32 or f16, or "
                           "i8, i8 and i32 as element types, got ")
           << a << ", " << b << " and " << result;
  for (auto [name, major, type] :
       {std::tuple("major_a", majorA, a), std::tuple("major_b", majorB, b)})
    if (major == Major::MN && countBytes(type) != 2)
      return op->emitOpError("expects '")
             << name << "' to be k_major, because elements of " << type
             << " do not have 16 bits";
  if (failed(verifySizes(op, *this)))
    return failure();
  for (const MatrixPart &part : parts)
    if (failed(part.verify(op)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// mma
//===----------------------------------------------------------------------===//

/// (C1), and what (C4) and (C6) say of a fragment.
static LogicalResult verifyA(MmaOp op) {
  bool isTile = op.getTileA() != nullptr;
  if (bool(op.getARow()) != isTile)
    return op.emitOpError(
        "expects 'a_row' and 'a_column' if 'a' is a tile, and "
        "only then");
  if (!isTile && op.getK())
    return op.emitOpError("expects no 'k', because 'a' is a fragment");
  if (!isTile && op.getMajorA() != Major::K)
    return op.emitOpError("expects 'major_a' to be k_major, because 'a' is a "
                          "fragment");
  return success();
}

LogicalResult MmaOp::verify() {
  if (failed(verifyA(*this)))
    return failure();
  // (C2) to (C7)
  WgmmaProduct product{getElementType(getA().getType()),
                       getB().getType().getElementType(),
                       getType().getElementType(),
                       getSizeN(),
                       getSizeK(),
                       getMajorA(),
                       getMajorB()};
  return product.verify(*this, getParts());
}

//===----------------------------------------------------------------------===//
// mma_wait
//===----------------------------------------------------------------------===//

LogicalResult MmaWaitOp::inferReturnTypes(MLIRContext *,
                                          std::optional<Location>,
                                          ValueRange operands, DictionaryAttr,
                                          OpaqueProperties, RegionRange,
                                          SmallVectorImpl<Type> &types) {
  llvm::append_range(types, operands.getTypes());
  return success();
}
