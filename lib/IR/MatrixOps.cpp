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

static int64_t getElementBytes(Type operand) {
  return getElementType(operand).getIntOrFloatBitWidth() / 8;
}

int64_t MmaOp::getSizeK() {
  if (auto fragment = dyn_cast<VectorType>(getA().getType()))
    return 2 * fragment.getNumElements();
  if (std::optional<uint64_t> k = getK())
    return static_cast<int64_t>(*k);
  tma::TileLayout layout = getTileA().getType().getLayout();
  return getMajorA() == Major::K ? layout.columns : layout.rows;
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

/// (C2) and (C3)
static LogicalResult verifyResult(MmaOp op) {
  Type a = getElementType(op.getA().getType()),
       b = getElementType(op.getB().getType()),
       result = op.getType().getElementType();
  if (!hasProduct(a, b, result))
    return op.emitOpError("expects bf16, bf16 and f32, f16, f16 and f32 or "
                          "f16, f8E4M3FN or f8E5M2 twice and f32 or f16, or "
                          "i8, i8 and i32 as element types, got ")
           << a << ", " << b << " and " << result;
  constexpr int64_t largest = 256, alike = 32;
  int64_t n = op.getSizeN();
  int64_t step = a.isInteger(8) && n > alike ? 16 : 8;
  if (n > largest || n % step != 0)
    return op.emitOpError("expects 'result' to have n / 2 lanes, where n is a "
                          "multiple of ")
           << step << " from 8 to " << largest << ", got "
           << op.getType().getNumElements();
  return success();
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

/// (C1) and (C6)
static LogicalResult verifyA(MmaOp op) {
  bool isTile = op.getTileA() != nullptr;
  if (bool(op.getARow()) != isTile)
    return op.emitOpError(
        "expects 'a_row' and 'a_column' if 'a' is a tile, and "
        "only then");
  if (!isTile && op.getK())
    return op.emitOpError("expects no 'k', because 'a' is a fragment");
  constexpr int64_t stepBytes = MatrixPart::kStepBytes;
  int64_t step = stepBytes / getElementBytes(op.getA().getType());
  int64_t k = op.getSizeK();
  if (k % step == 0)
    return success();
  if (!isTile)
    return op.emitOpError("expects 'a' to have a multiple of ")
           << step / 2 << " lanes, got " << k / 2;
  return op.emitOpError("expects 'k' to be a multiple of ")
         << step << " (" << stepBytes << " bytes), got " << k;
}

/// (C4)
static LogicalResult verifyMajors(MmaOp op) {
  if (!op.getTileA() && op.getMajorA() != Major::K)
    return op.emitOpError("expects 'major_a' to be k_major, because 'a' is a "
                          "fragment");
  for (auto [name, major, type] :
       {std::tuple("major_a", op.getMajorA(), op.getA().getType()),
        std::tuple("major_b", op.getMajorB(), Type(op.getB().getType()))})
    if (major == Major::MN && getElementBytes(type) != 2)
      return op.emitOpError("expects '")
             << name << "' to be k_major, because elements of "
             << getElementType(type) << " do not have 16 bits";
  return success();
}

LogicalResult MmaOp::verify() {
  if (failed(verifyResult(*this)) || failed(verifyMajors(*this)) ||
      failed(verifyA(*this)))
    return failure();
  for (const MatrixPart &part : getParts())
    if (failed(part.verify(*this))) // (C5) and (C7)
      return failure();
  return success();
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
