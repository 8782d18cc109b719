//===- TileLoop.h - Loops over tiles of keys and values ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_SCHEDULES_TILELOOP_H
#define KVCACHE_LIB_TRANSFORMS_SCHEDULES_TILELOOP_H

#include "kvcache/IR/FragmentOps.h"
#include "kvcache/IR/FragmentProductOps.h"
#include "kvcache/IR/PipeOps.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::kvcache {

/// Fails with the reason for a remark.
inline LogicalResult refuse(std::string &reason, StringRef why) {
  reason = why.str();
  return failure();
}

/// A consumption of a tile by one product, which its region waits for.
struct TileProduct {
  ConsumeOp consume;
  FragmentMmaOp product;
  FragmentWaitOp wait;

  Block &getBody() { return consume.getBody().front(); }

  /// Returns the product of a consumption, or why it is of another form.
  static FailureOr<TileProduct> match(ConsumeOp consume, std::string &reason);
};

/// A branch that tiles [from, to) do not take. A bound is null where there is
/// none.
struct TileMask {
  scf::IfOp branch;
  Value from, to;
};

/// A loop over tiles: scores, everything else, and pv.
struct TileLoop {
  scf::ForOp loop;
  TileProduct qk, pv;
  /// The number of the accumulator among what the loop carries.
  unsigned accumulator = 0;
  /// The ops between the carried accumulator and PV, which scale it.
  SetVector<Operation *> scaling;
  /// All other ops except PV, in order.
  SmallVector<Operation *> others;
  /// Values of the others that PV uses.
  SetVector<Value> taken;
  /// Branches on the number of the tile among the others.
  SmallVector<TileMask> masks;
  /// The share of the sum of exponentials, or null.
  Value rowSum;

  Block &getBody() { return *loop.getBody(); }
  Value getAccumulator() { return loop.getRegionIterArgs()[accumulator]; }

  /// Returns the loop, or why it has another form.
  static FailureOr<TileLoop> match(scf::ForOp loop, std::string &reason);

private:
  LogicalResult findProducts(std::string &reason);
  LogicalResult findScaling(std::string &reason);
  LogicalResult checkBody(std::string &reason);
  bool writesProductTile(Operation *op);
  void findTaken();
  void findRowSum();
  void findMasks();
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_SCHEDULES_TILELOOP_H
