//===- ElementAccess.cpp - Loads and stores of a view ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ElementAccess.h"

#include "kvcache/IR/CacheShape.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

/// The largest power of two that divides the bytes of an access and of a head,
/// the strides in a page, and the alignment of pages: what every address it may
/// have is a multiple of.
static llvm::Align getAccessAlignment(Operation *op, const Bundle &cache,
                                      int64_t lanes) {
  CacheTypeInterface type = cache.getCacheType();
  int64_t bytes = type.getStorageType().getIntOrFloatBitWidth() / 8;
  uint64_t alignment = getPageAlignment(
      cast<AccessOpInterface>(op).getAccessedCache(),
      /*isScales=*/isa<ScalesType>(type), getBaseAlignment(op));
  for (int64_t stored :
       {lanes / type.getLanesPerStored(), type.getStoredLanesPerHead()})
    alignment = llvm::MinAlign(alignment, stored * bytes);
  return llvm::Align(getInPageAlignment(type, alignment));
}

ElementAccess::ElementAccess(Bundle cache, const AccessIndices &indices)
    : cache(cache), indices(indices),
      position(cache.getElement(indices.batch, indices.head, indices.token,
                                indices.element, indices.page)) {}

ElementAccess ElementAccess::getZeroPoints() const {
  ElementAccess zeroPoints = *this;
  int64_t scales = cache.getCacheType().getStoredLanesPerHead();
  zeroPoints.position = cache.add(position, cache.index(scales));
  return zeroPoints;
}

ElementAccess ElementAccess::getRow(int64_t offset) const {
  ElementAccess row = *this;
  row.position = cache.add(position, cache.index(offset * cache.getRowPitch()));
  return row;
}

bool ElementAccess::isContiguous(int64_t lanes) const {
  return lanes == 1 || cache.getCacheType().getInterleave() == 1;
}

Value ElementAccess::getPosition(int64_t lane) const {
  int64_t distance = lane * cache.getCacheType().getElementsPerLane();
  return cache.getElement(indices.batch, indices.head, indices.token,
                          cache.add(indices.element, cache.index(distance)),
                          indices.page);
}

Value ElementAccess::loadLanes(VectorType type) const {
  SmallVector<Value> loaded;
  for (int64_t lane = 0; lane < type.getNumElements(); ++lane)
    loaded.push_back(memref::LoadOp::create(
        cache.builder, cache.loc, cache.getBlocks(), getPosition(lane)));
  return vector::FromElementsOp::create(cache.builder, cache.loc, type, loaded);
}

void ElementAccess::storeLanes(Value value) const {
  for (int64_t lane = 0; lane < getNumLanes(value.getType()); ++lane)
    memref::StoreOp::create(
        cache.builder, cache.loc,
        vector::ExtractOp::create(cache.builder, cache.loc, value, lane),
        cache.getBlocks(), getPosition(lane));
}

Value ElementAccess::loadStored(Operation *op, int64_t lanes,
                                bool nontemporal) const {
  CacheTypeInterface type = cache.getCacheType();
  auto stored =
      VectorType::get(lanes / type.getLanesPerStored(), type.getStorageType());
  return vector::LoadOp::create(cache.builder, cache.loc, stored,
                                cache.getBlocks(), position, nontemporal,
                                getAccessAlignment(op, cache, lanes));
}

void ElementAccess::storeStored(Operation *op, Value stored,
                                bool nontemporal) const {
  int64_t lanes =
      getNumLanes(stored.getType()) * cache.getCacheType().getLanesPerStored();
  vector::StoreOp::create(cache.builder, cache.loc, stored, cache.getBlocks(),
                          position, nontemporal,
                          getAccessAlignment(op, cache, lanes));
}

Value ElementAccess::load(Operation *op, Type type, bool nontemporal) const {
  auto vector = dyn_cast<VectorType>(type);
  if (!vector)
    return memref::LoadOp::create(cache.builder, cache.loc, cache.getBlocks(),
                                  position, nontemporal);
  if (!isContiguous(vector.getNumElements()))
    return loadLanes(vector);
  Value loaded = loadStored(op, vector.getNumElements(), nontemporal);
  // Pairs of 4-bit elements are stored as bytes, the first one low.
  if (loaded.getType() == type)
    return loaded;
  return vector::BitCastOp::create(cache.builder, cache.loc, vector, loaded);
}

void ElementAccess::store(Operation *op, Value value, bool nontemporal) const {
  CacheTypeInterface type = cache.getCacheType();
  if (!isa<VectorType>(value.getType())) {
    memref::StoreOp::create(cache.builder, cache.loc, value, cache.getBlocks(),
                            position, nontemporal);
    return;
  }
  int64_t lanes = getNumLanes(value.getType());
  if (!isContiguous(lanes)) {
    storeLanes(value);
    return;
  }
  if (type.getStorageType() != type.getElementType())
    value = vector::BitCastOp::create(
        cache.builder, cache.loc,
        VectorType::get(lanes / type.getLanesPerStored(),
                        type.getStorageType()),
        value);
  storeStored(op, value, nontemporal);
}

Value ElementAccess::getTile(MemRefType tile) const {
  auto [buffer, start] = cache.takeApart(cache.get(PartKind::Blocks));
  Value offset = cache.add(start, position);
  MLIRContext *context = tile.getContext();
  return memref::ReinterpretCastOp::create(
      cache.builder, cache.loc, tile, buffer, OpFoldResult(offset),
      getAsIndexOpFoldResult(context, tile.getShape()),
      getAsIndexOpFoldResult(context, {cache.getRowPitch(), 1}));
}
