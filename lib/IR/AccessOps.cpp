//===- AccessOps.cpp - Loads, stores and tiles of a cache -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TableRange.h"

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// What loads, stores and tiles have in common
//===----------------------------------------------------------------------===//

#define KVCACHE_DEFINE_ACCESS(OpTy)                                            \
  TypedValue<CacheTypeInterface> OpTy::getAccessedCache() {                    \
    return getCache();                                                         \
  }                                                                            \
  Value OpTy::getAccessedBatch() { return getBatch(); }                        \
  Value OpTy::getAccessedHead() { return getHead(); }                          \
  Value OpTy::getAccessedToken() { return getToken(); }                        \
  Value OpTy::getAccessedElement() { return getElement(); }                    \
  std::optional<MutableOperandRange> OpTy::getPageOperand() {                  \
    return getPageMutable();                                                   \
  }                                                                            \
  bool OpTy::readsTable() { return !getPage(); }

KVCACHE_DEFINE_ACCESS(LoadOp)
KVCACHE_DEFINE_ACCESS(StoreOp)
KVCACHE_DEFINE_ACCESS(BlockTileOp)

#undef KVCACHE_DEFINE_ACCESS

int64_t LoadOp::getAccessedWidth() { return getNumLanes(getType()); }
int64_t LoadOp::getAccessedTokens() { return 1; }

int64_t StoreOp::getAccessedWidth() {
  return getNumLanes(getValue().getType());
}
int64_t StoreOp::getAccessedTokens() { return 1; }

int64_t BlockTileOp::getAccessedWidth() {
  CacheTypeInterface cache = getCache().getType();
  return getType().getDimSize(1) * cache.getHeadSize() /
         cache.getStoredHeadSize();
}
int64_t BlockTileOp::getAccessedTokens() { return getType().getDimSize(0); }

/// Checks that an access has at most as many lanes as a head has elements, and
/// whole bytes of a 4-bit cache.
static LogicalResult verifyWidth(Operation *op, StringRef name, Type type,
                                 CacheTypeInterface cache) {
  if (getNumLanes(type) > cache.getHeadSize())
    return op->emitOpError("expects '")
           << name << "' to have at most head_size (" << cache.getHeadSize()
           << ") lanes, got " << getNumLanes(type);
  if (cache.getElementType() != cache.getStorageType() &&
      getNumLanes(type) % 2 != 0)
    return op->emitOpError("expects '")
           << name << "' to have an even number of lanes of "
           << cache.getElementType() << ", got " << getNumLanes(type);
  return success();
}

//===----------------------------------------------------------------------===//
// LoadOp
//===----------------------------------------------------------------------===//

LogicalResult LoadOp::verify() {
  CacheTypeInterface cache = getCache().getType();
  Type lane = getLaneType(getType());
  // (C1)
  bool converts = isa<Float64Type, Float32Type, Float16Type, BFloat16Type,
                      Float8E4M3FNType, Float8E5M2Type>(lane);
  if (lane != cache.getElementType() &&
      !(converts && isa<FloatType>(cache.getElementType())))
    return emitOpError("expects 'result' to have the cache's element type (")
           << cache.getElementType()
           << "), or f64, f32, f16, bf16, f8E4M3FN or f8E5M2, got " << lane;
  // (C2)
  if (failed(verifyWidth(*this, "result", getType(), cache)))
    return failure();
  // (C3)
  if (cache.isQuantized())
    return emitOpError("expects 'cache' not to be quantized, got ")
           << getCache().getType();
  return success();
}

//===----------------------------------------------------------------------===//
// StoreOp
//===----------------------------------------------------------------------===//

LogicalResult StoreOp::verify() {
  CacheTypeInterface cache = getCache().getType();
  // (C1)
  Type lane = getLaneType(getValue().getType());
  if (lane != cache.getElementType())
    return emitOpError("expects 'value' to have the cache's element type (")
           << cache.getElementType() << "), got " << lane;
  // (C2)
  return verifyWidth(*this, "value", getValue().getType(), cache);
}

//===----------------------------------------------------------------------===//
// BlockTileOp
//===----------------------------------------------------------------------===//

Speculation::Speculatability BlockTileOp::getSpeculatability() {
  return speculateIf(getPage() ||
                     areEntriesInRange(getCache(), getBatch(), getToken(),
                                       getAccessedTokens()));
}

LogicalResult BlockTileOp::verify() {
  CacheTypeInterface cache = getCache().getType();
  MemRefType tile = getType();
  // (C1)
  int64_t row = cache.getNumHeads() * cache.getStoredHeadSize();
  auto layout =
      StridedLayoutAttr::get(getContext(), ShapedType::kDynamic, {row, 1});
  if (!tile.hasStaticShape() || tile.getMemorySpace() ||
      tile.getElementType() != cache.getStorageType() ||
      tile.getLayout() != layout)
    return emitOpError("expects 'tile' to be a memref with static sizes, "
                       "element type ")
           << cache.getStorageType() << " and layout " << layout << ", got "
           << tile;
  int64_t tokens = tile.getDimSize(0);
  if (tokens == 0 || tile.getDimSize(1) == 0)
    return emitOpError("expects 'tile' to have at least one token and one "
                       "column, got ")
           << tile;
  // (C2)
  if (tile.getDimSize(1) > cache.getStoredHeadSize())
    return emitOpError("expects 'tile' to have at most ")
           << cache.getStoredHeadSize() << " columns, got "
           << tile.getDimSize(1);
  // (C3)
  if (cache.isPaged() && cache.getPageSize() % tokens != 0)
    return emitOpError("expects page_size (")
           << cache.getPageSize()
           << ") to be a multiple of the tokens of 'tile', got " << tokens;
  return success();
}
