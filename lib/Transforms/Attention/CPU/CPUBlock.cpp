//===- CPUBlock.cpp - Rows that a core computes at once -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CPUBlock.h"

#include "../RowNormalizer.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <numeric>

using namespace mlir;
using namespace mlir::kvcache;

/// Vectors of products that are summed at once, of all rows together.
constexpr int64_t kVectors = 16;
/// Floats that are computed with at once.
constexpr int64_t kLanes = 16;
/// Bytes of the queries and sums of a block of rows.
constexpr int64_t kBlockBytes = 1 << 18;
/// Bytes of a token that are read one after the other, where it has as many.
constexpr int64_t kTokenBytes = 1 << 10;

static int64_t getKeyLanes(AttentionOp op, int64_t contentSize) {
  int64_t own = cast<MemRefType>(op.getQ().getType()).getDimSize(2);
  int64_t border = std::gcd(std::gcd(own, op.getKeySize()), contentSize);
  return getLanes(op.getKeyCache(), border, kLanes);
}

CPUShape::CPUShape(AttentionOp op)
    : sizes(op), keyLanes(getKeyLanes(op, sizes.contentSize)),
      valueLanes(getLanes(op.getValues(), sizes.valueSize, kLanes)),
      together(std::gcd(sizes.group, 4)),
      columns(std::min<int64_t>(8, kVectors / together)) {
  auto cache = cast<CacheTypeInterface>(op.getKeyCache().getType());
  int64_t bits = sizes.keySize * cache.getElementType().getIntOrFloatBitWidth();
  chunk = getDivisorUpTo(
      sizes.heads,
      std::max<int64_t>(llvm::divideCeil(8 * kTokenBytes, bits), 1));
  int64_t rows = kBlockBytes / (4 * (sizes.keySize + sizes.valueSize) * chunk);
  block = std::max(rows / together, int64_t(1)) * together;
}

Value kvcache::allocateFloats(const Frame &frame, ArrayRef<int64_t> shape) {
  OpBuilder &builder = frame.builder;
  return memref::AllocaOp::create(builder, frame.loc,
                                  MemRefType::get(shape, builder.getF32Type()),
                                  builder.getI64IntegerAttr(64));
}

void CPURowMemory::allocate() {
  int64_t rows = shape.chunk * shape.block;
  queries = allocateFloats(frame, {rows, shape.sizes.keySize});
  acc = allocateFloats(frame, {rows, shape.sizes.valueSize});
  maxima = allocateFloats(frame, rows);
  totals = allocateFloats(frame, rows);
}

static Value load(const Frame &frame, Value memref, int64_t lanes,
                  ValueRange indices) {
  auto type = VectorType::get(lanes, frame.builder.getF32Type());
  return vector::LoadOp::create(frame.builder, frame.loc, type, memref,
                                indices);
}

static void store(const Frame &frame, Value elements, Value memref,
                  ValueRange indices) {
  vector::StoreOp::create(frame.builder, frame.loc, elements, memref, indices);
}

Value CPURowMemory::loadQuery(const CPURow &row, int64_t k, Value d) const {
  Value inBlock = frame.add(row.inBlock, frame.index(k));
  return load(frame, queries, shape.keyLanes, {inBlock, d});
}

void CPURowMemory::storeQuery(Value elements, const CPURow &row,
                              Value d) const {
  store(frame, elements, queries, {row.inBlock, d});
}

Value CPURowMemory::loadAcc(Value inBlock, Value d) const {
  return load(frame, acc, shape.valueLanes, {inBlock, d});
}

void CPURowMemory::storeAcc(Value elements, Value inBlock, Value d) const {
  store(frame, elements, acc, {inBlock, d});
}

Value CPURowMemory::loadMaxima(const CPURow &first) const {
  return load(frame, maxima, shape.together, first.inBlock);
}

Value CPURowMemory::loadTotals(const CPURow &first) const {
  return load(frame, totals, shape.together, first.inBlock);
}

void CPURowMemory::storeMaxima(Value numbers, const CPURow &first) const {
  store(frame, numbers, maxima, first.inBlock);
}

void CPURowMemory::storeTotals(Value numbers, const CPURow &first) const {
  store(frame, numbers, totals, first.inBlock);
}

std::pair<Value, Value> CPURowMemory::loadState(const CPURow &row) const {
  auto loadNumber = [&](Value memref) -> Value {
    return memref::LoadOp::create(frame.builder, frame.loc, memref,
                                  row.inBlock);
  };
  Value max = loadNumber(maxima);
  return {max, loadNumber(totals)};
}

void CPURowMemory::clearState(const CPURow &row) const {
  DeviceMath f(frame);
  auto storeNumber = [&](float number, Value memref) {
    memref::StoreOp::create(frame.builder, frame.loc, f.constant(number),
                            memref, row.inBlock);
  };
  storeNumber(kLowest, maxima);
  storeNumber(0, totals);
}
