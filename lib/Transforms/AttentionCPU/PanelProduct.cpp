//===- PanelProduct.cpp - Products of a tile and a panel ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PanelProduct.h"

#include "HostMmaBuilder.h"
#include "NonFiniteValues.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <numeric>

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// A matrix of a tile of tokens, times one whose rows are vectors of rows.
struct PanelProduct {
  /// [rows, depth], or [depth, rows] if `isTransposed`.
  Value lhs;
  bool isTransposed;
  /// [vectors, depth, lanes], and its first vector.
  Value rhs, firstRhs;
  /// [vectors, rows, lanes], and its first vector.
  Value acc, firstAcc;
  /// Rows of `acc`, a multiple of some, and the depths that are multiplied.
  Value beginRow, endRow;
  int64_t rowMultiple;
  Value beginDepth, endDepth;
  /// Whether `acc` is uninitialized.
  bool isNew = false;
  /// Whether factors of -0 in `rhs` add nothing, whatever `lhs` is.
  bool skipsUnseen = false;
};

/// Computes a product for `vectors` vectors and `rows` rows of instructions at
/// once.
class ProductLoop {
public:
  ProductLoop(const HostMmaBuilder &mma, const Frame &frame,
              const PanelProduct &product, int64_t vectors)
      : mma(mma), frame(frame), product(product), vectors(vectors),
        rows(std::gcd(product.rowMultiple / mma.getRows(),
                      mma.getMostRows(vectors))) {}

  /// Computes all rows for some vectors before others, or all vectors for some
  /// rows.
  void run(Value count, bool hasRowsOutside) const {
    auto forRows = [&](function_ref<void(Value)> body) {
      frame.loop(product.beginRow, product.endRow,
                 frame.index(rows * mma.getRows()), body);
    };
    auto forVectors = [&](function_ref<void(Value)> body) {
      frame.loop(frame.index(0), count, frame.index(vectors), body);
    };
    if (hasRowsOutside)
      return forRows([&](Value row) {
        forVectors([&](Value vector) { multiply(row, vector); });
      });
    forVectors([&](Value vector) {
      forRows([&](Value row) { multiply(row, vector); });
    });
  }

private:
  void multiply(Value row, Value vector) const {
    SmallVector<Value> acc = add(row, vector, begin(row, vector));
    forEach([&](int64_t r, int64_t v, int64_t number) {
      mma.storeAcc(acc[number], product.acc,
                   getVector(product.firstAcc, vector, v), getRow(row, r));
    });
  }
  /// Calls `body` with the number of a row and of a vector, and that of both.
  void forEach(function_ref<void(int64_t, int64_t, int64_t)> body) const {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t v = 0; v < vectors; ++v)
        body(r, v, r * vectors + v);
  }
  Value getRow(Value row, int64_t r) const {
    return frame.add(row, frame.index(r * mma.getRows()));
  }
  Value getVector(Value first, Value vector, int64_t v) const {
    return frame.add(frame.add(first, vector), frame.index(v));
  }

  SmallVector<Value> begin(Value row, Value vector) const {
    SmallVector<Value> acc;
    forEach([&](int64_t r, int64_t v, int64_t) {
      acc.push_back(product.isNew
                        ? mma.getZero()
                        : mma.loadAcc(product.acc,
                                      getVector(product.firstAcc, vector, v),
                                      getRow(row, r)));
    });
    return acc;
  }

  SmallVector<Value> add(Value row, Value vector, ArrayRef<Value> acc) const {
    auto loop = scf::ForOp::create(
        frame.builder, frame.loc, product.beginDepth, product.endDepth,
        frame.index(mma.getDepth()), acc,
        [&](OpBuilder &, Location, Value depth, ValueRange carried) {
          SmallVector<Value> lhs, rhs, next;
          for (int64_t v = 0; v < vectors; ++v)
            rhs.push_back(mma.loadRhs(
                product.rhs, getVector(product.firstRhs, vector, v), depth));
          for (int64_t r = 0; r < rows; ++r) {
            SmallVector<Value> indices = {getRow(row, r), depth};
            if (product.isTransposed)
              std::swap(indices[0], indices[1]);
            lhs.push_back(mma.loadLhs(product.lhs, indices));
          }
          forEach([&](int64_t r, int64_t v, int64_t number) {
            next.push_back(addProduct(lhs[r], rhs[v], carried[number]));
          });
          scf::YieldOp::create(frame.builder, frame.loc, next);
        });
    return llvm::to_vector_of<Value>(loop.getResults());
  }

  Value addProduct(Value lhs, Value rhs, Value acc) const {
    Value next = mma.multiply(lhs, rhs, acc);
    if (!product.skipsUnseen)
      return next;
    FloatBuilder f(frame.builder, frame.loc);
    return f.select(isUnseen(frame, rhs), acc, next);
  }

  const HostMmaBuilder &mma;
  const Frame &frame;
  const PanelProduct &product;
  int64_t vectors, rows;
};

} // namespace

/// Computes a product for all vectors of a panel: those of a whole one some at
/// a time, others one by one.
static void multiply(const HostAttention &attention, const Panel &panel,
                     const PanelProduct &product) {
  const Frame &frame = attention.frame;
  HostMmaBuilder mma(frame, attention.mma);
  Value count = frame.div(panel.count, kLanes);
  // Tiles of all vectors stay in the first cache, and those of all rows do not.
  bool hasRowsOutside = attention.mma == HostMma::AMX;
  auto forVectors = [&](int64_t atOnce) {
    ProductLoop(mma, frame, product, atOnce).run(count, hasRowsOutside);
  };
  int64_t most = product.skipsUnseen ? 1 : mma.getMostVectors();
  if (most == 1)
    return forVectors(1);
  frame.runIf(
      frame.equal(count, frame.index(kPanelVectors)), [&] { forVectors(most); },
      [&] { forVectors(1); });
}

void kvcache::multiplyKeys(const HostAttention &attention,
                           const RowLanes &memory, const Panel &panel,
                           const TokenTile &tile, Value begin, Value end) {
  const Frame &frame = attention.frame;
  Value zero = frame.index(0);
  int64_t depth = attention.sizes.keySize / (attention.usesPairs() ? 2 : 1);
  PanelProduct product{tile.keys,
                       /*isTransposed=*/false,
                       memory.queries,
                       frame.div(panel.first, kLanes),
                       memory.scores,
                       zero,
                       begin,
                       end,
                       getTokenSteps(attention.mma),
                       zero,
                       frame.index(depth)};
  product.isNew = true;
  multiply(attention, panel, product);
}

void kvcache::addValues(const HostAttention &attention, const RowLanes &memory,
                        const Panel &panel, const TokenTile &tile, Value begin,
                        Value end, Value hasNonFinite) {
  const Frame &frame = attention.frame;
  int64_t size = attention.sizes.valueSize;
  bool isTile = attention.mma == HostMma::AMX;
  int64_t step = attention.usesPairs() ? 2 : 1;
  PanelProduct product{isTile ? tile.transposedValues : tile.values,
                       /*isTransposed=*/!isTile,
                       memory.scores,
                       frame.index(0),
                       memory.acc,
                       frame.div(panel.first, kLanes),
                       frame.index(0),
                       frame.index(size),
                       size,
                       frame.div(begin, step),
                       frame.div(end, step)};
  if (attention.usesPairs()) {
    multiply(attention, panel, product);
    frame.runIf(hasNonFinite, [&] {
      addNonFinite(attention, memory, panel, tile, begin, end);
    });
    return;
  }
  auto add = [&](bool skipsUnseen) {
    product.skipsUnseen = skipsUnseen;
    multiply(attention, panel, product);
  };
  // 0 times such a value is no 0.
  frame.runIf(hasNonFinite, [&] { add(true); }, [&] { add(false); });
}
