//===- CPUTileProduct.cpp - Products of rows and a tile -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CPUTileProduct.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

ValueRange CPUTileProduct::multiplyKeys(const CPURow &row, int64_t first,
                                        ValueRange sums) const {
  int64_t columns = shape.columns;
  auto loop = scf::ForOp::create(
      frame.builder, frame.loc, frame.index(0),
      frame.index(shape.sizes.keySize), frame.index(shape.keyLanes), sums,
      [&](OpBuilder &, Location, Value d, ValueRange carried) {
        SmallVector<Value> keys, next;
        for (int64_t j = first; j < first + columns; ++j)
          keys.push_back(tile.loadKey(j, d));
        for (int64_t k = 0; k < shape.together; ++k) {
          Value q = memory.loadQuery(row, k, d);
          for (auto [j, key] : llvm::enumerate(keys))
            next.push_back(f.fma(q, key, carried[k * columns + j]));
        }
        scf::YieldOp::create(frame.builder, frame.loc, next);
      });
  return loop.getResults();
}

Value CPUTileProduct::extract(Value vector, int64_t i) const {
  return vector::ExtractOp::create(frame.builder, frame.loc, vector, i);
}

SmallVector<Value> CPUTileProduct::selectSeen(Value flags, int64_t first,
                                              SmallVector<Value> values) const {
  Value none = f.constant(f.vectorOf(shape.valueLanes), 0);
  for (auto [j, value] : llvm::enumerate(values))
    value = f.select(extract(flags, first + j), value, none);
  return values;
}

void CPUTileProduct::addToRow(const CPURow &row, int64_t k, Value d,
                              bool isFirst, Value shrinks, ValueRange factors,
                              ValueRange values) const {
  Value inBlock = frame.add(row.inBlock, frame.index(k));
  Value sum = memory.loadAcc(inBlock, d);
  if (isFirst)
    sum = f.mul(sum, f.splat(extract(shrinks, k), shape.valueLanes));
  for (auto [factor, value] : llvm::zip_equal(factors, values))
    sum = f.fma(factor, value, sum);
  memory.storeAcc(sum, inBlock, d);
}

void CPUTileProduct::addValues(const CPURow &row, int64_t first,
                               const Weights &weights) const {
  int64_t together = shape.together, end = first + shape.columns;
  SmallVector<SmallVector<Value>> factors(together);
  for (int64_t k = 0; k < together; ++k)
    for (int64_t j = first; j < end; ++j)
      factors[k].push_back(
          f.splat(extract(weights.rows[k], j), shape.valueLanes));
  ArrayRef<Value> isSeen = weights.isSeen;
  bool haveOneMask = llvm::all_equal(isSeen);
  frame.loop(frame.index(0), frame.index(shape.sizes.valueSize),
             frame.index(shape.valueLanes), [&](Value d) {
               SmallVector<Value> all;
               for (int64_t j = first; j < end; ++j)
                 all.push_back(tile.loadValue(j, d));
               if (!isSeen.empty() && haveOneMask)
                 all = selectSeen(isSeen.front(), first, all);
               for (int64_t k = 0; k < together; ++k)
                 addToRow(row, k, d, /*isFirst=*/first == 0, weights.shrinks,
                          factors[k],
                          haveOneMask ? all
                                      : selectSeen(isSeen[k], first, all));
             });
}
