//===- QuantizationOps.cpp - Quantize and dequantize ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Accesses.h"

#include "kvcache/IR/Formats.h"
#include "kvcache/IR/QuantizationOps.h"

using namespace mlir;
using namespace mlir::kvcache;

KVCACHE_DEFINE_INDICES(LoadQuantizedOp)
KVCACHE_DEFINE_PAGE(LoadQuantizedOp)
KVCACHE_DEFINE_INDICES(StoreQuantizedOp)
KVCACHE_DEFINE_PAGE(StoreQuantizedOp)

//===----------------------------------------------------------------------===//
// QuantizeOp and DequantizeOp
//===----------------------------------------------------------------------===//

/// Checks that two values have the same number of lanes.
static LogicalResult verifySameLanes(Operation *op, StringRef name, Type type,
                                     StringRef otherName, Type other) {
  if (getNumLanes(type) == getNumLanes(other) &&
      isa<VectorType>(type) == isa<VectorType>(other))
    return success();
  return op->emitOpError("expects '")
         << name << "' to have the lanes of '" << otherName << "' (" << other
         << "), got " << type;
}

/// Checks that the number of lanes is a multiple of the number of scales.
static LogicalResult verifyGroups(Operation *op, StringRef name, Type type,
                                  Type scale) {
  if (getNumLanes(type) % getNumLanes(scale) == 0)
    return success();
  return op->emitOpError("expects the lanes of '")
         << name << "' to be a multiple of those of 'scale' ("
         << getNumLanes(scale) << "), got " << getNumLanes(type);
}

/// Whether several threads share a group, and exchange values.
static bool isSpread(QuantizeOp op) { return op.getLanes().value_or(1) > 1; }

void QuantizeOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  if (!isSpread(*this))
    return;
  effects.emplace_back(MemoryEffects::Read::get());
  effects.emplace_back(MemoryEffects::Write::get());
}

Speculation::Speculatability QuantizeOp::getSpeculatability() {
  return isSpread(*this) ? Speculation::NotSpeculatable
                         : Speculation::Speculatable;
}

/// Checks (C5) of `quantize`: zero points of integers of 4 bits.
static LogicalResult verifyZeroPoint(QuantizeOp op) {
  Type lane = getLaneType(op.getQuantized().getType());
  Type scale = op.getScale().getType();
  Value zeroPoint = op.getZeroPoint();
  if (!hasUse(lane, FormatUse::ZeroPoint)) {
    if (zeroPoint)
      return op.emitOpError("expects 'zero_point' only with values of ")
             << listFormats(FormatUse::ZeroPoint) << ", got " << lane;
    return success();
  }
  if (!zeroPoint)
    return op.emitOpError("expects 'zero_point' with values of ")
           << listFormats(FormatUse::ZeroPoint);
  if (zeroPoint.getType() != scale)
    return op.emitOpError("expects 'zero_point' to have the type of 'scale' (")
           << scale << "), got " << zeroPoint.getType();
  if (op.getTensorScale() || op.getPowerOfTwo())
    return op.emitOpError("expects neither 'tensor_scale' nor 'power_of_two' "
                          "with 'zero_point'");
  return success();
}

LogicalResult QuantizeOp::verify() {
  Type value = getValue().getType();
  Type quantized = getQuantized().getType(), scale = getScale().getType();
  // (C1)
  if (failed(verifySameLanes(*this, "quantized", quantized, "value", value)))
    return failure();
  if (getLaneType(quantized).getIntOrFloatBitWidth() < 8 &&
      getNumLanes(quantized) % 2 != 0)
    return emitOpError(
               "expects 'quantized' to have an even number of lanes of ")
           << getLaneType(quantized) << ", got " << getNumLanes(quantized);
  // (C2)
  if (failed(verifyGroups(*this, "value", value, scale)))
    return failure();
  // (C3)
  if (std::optional<int64_t> lanes = getLanes()) {
    constexpr int64_t warp = 32;
    if (*lanes < 1 || *lanes > warp || !llvm::isPowerOf2_64(*lanes))
      return emitOpError("expects 'lanes' to be a power of two from 1 to ")
             << warp << ", got " << *lanes;
    if (getNumLanes(scale) != 1)
      return emitOpError("expects 'scale' to be one scale with 'lanes', got ")
             << scale;
  }
  // (C4)
  if (failed(verifyLeastAmax(*this, getLeastAmax(), getPowerOfTwo())))
    return failure();
  if (getPowerOfTwo() && failed(verifyPowerOfTwo(*this, getLaneType(scale))))
    return failure();
  // (C5)
  return verifyZeroPoint(*this);
}

LogicalResult DequantizeOp::verify() {
  Type quantized = getQuantized().getType(), scale = getScale().getType();
  // (C1)
  if (failed(
          verifySameLanes(*this, "result", getType(), "quantized", quantized)))
    return failure();
  // (C2)
  return verifyGroups(*this, "quantized", quantized, scale);
}

//===----------------------------------------------------------------------===//
// LoadQuantizedOp
//===----------------------------------------------------------------------===//

int64_t LoadQuantizedOp::getAccessedWidth() { return getNumLanes(getType()); }

LogicalResult LoadQuantizedOp::verify() {
  // (C1)
  PagedCacheType cache = getCache().getType();
  if (getLaneType(getType()) != cache.getElementType())
    return emitOpError("expects 'result' to have the cache's element type (")
           << cache.getElementType() << "), got " << getLaneType(getType());
  // (C2)
  return verifyWidth(*this, "result", getType(), cache);
}

//===----------------------------------------------------------------------===//
// StoreQuantizedOp
//===----------------------------------------------------------------------===//

int64_t StoreQuantizedOp::getAccessedWidth() {
  auto vector = dyn_cast<VectorType>(getValue().getType());
  return vector ? vector.getShape().back() : 1;
}

int64_t StoreQuantizedOp::getAccessedTokens() {
  return getNumLanes(getValue().getType()) / getAccessedWidth();
}

bool StoreQuantizedOp::accessesScales() {
  return getCache().getType().isQuantized();
}

std::optional<MutableOperandRange> StoreQuantizedOp::getScalePageOperand() {
  if (!accessesScales())
    return std::nullopt;
  return getScalePageMutable();
}

/// Checks (C3): a cache without scales, which only `tensor_scale` scales.
static LogicalResult verifyStaticScale(StoreQuantizedOp op) {
  CacheTypeInterface cache = op.getCache().getType();
  if (cache.isQuantized())
    return success();
  if (cache.getElementType().getIntOrFloatBitWidth() > 8 ||
      !cache.convertsElements())
    return op.emitOpError("expects 'cache' to have scales, floats of 8 bits or "
                          "i8, got ")
           << cache;
  if (!op.getTensorScale())
    return op.emitOpError("expects 'tensor_scale' for a cache without scales, "
                          "got ")
           << cache;
  if (op.getScalePage())
    return op.emitOpError("expects 'scale_page' only for a cache with scales, "
                          "got ")
           << cache;
  return success();
}

/// Checks (C6): rows of the tokens that share scales.
static LogicalResult verifyRows(StoreQuantizedOp op) {
  int64_t tokens = op.getCache().getType().getTokenGranularity();
  Type value = op.getValue().getType();
  auto vector = dyn_cast<VectorType>(value);
  bool hasRows = vector && vector.getRank() == 2;
  if (hasRows == (tokens > 1) && op.getAccessedTokens() == tokens)
    return success();
  if (tokens == 1)
    return op.emitOpError("expects 'value' to have the elements of one token, "
                          "got ")
           << value;
  return op.emitOpError("expects 'value' to have a row for each of the ")
         << tokens << " tokens that share scales, got " << value;
}

LogicalResult StoreQuantizedOp::verify() {
  CacheTypeInterface cache = getCache().getType();
  if (failed(verifyStaticScale(*this)) || failed(verifyRows(*this)))
    return failure();
  // (C1), (C2)
  int64_t lanes = getAccessedWidth();
  if (failed(verifyWidth(*this, "value",
                         VectorType::get(lanes, cache.getElementType()),
                         cache)))
    return failure();
  // (C5)
  if (failed(verifyTensorScale(*this, getTensorScale(), cache)) ||
      failed(verifyLeastAmax(*this, getLeastAmax(), getPowerOfTwo())) ||
      (getPowerOfTwo() && failed(verifyPowerOfTwo(*this, cache))))
    return failure();
  if (cache.isQuantized() && lanes % cache.getGranularity() != 0 &&
      lanes != cache.getHeadSize())
    return emitOpError("expects 'value' to have a multiple of granularity (")
           << cache.getGranularity() << ") or head_size ("
           << cache.getHeadSize() << ") lanes, got " << lanes;
  return success();
}
