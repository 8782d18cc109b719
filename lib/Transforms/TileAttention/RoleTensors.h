//===- RoleTensors.h - Tensor memory of two query tiles ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_ROLETENSORS_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_ROLETENSORS_H

#include "../Builders/Frame.h"

#include "kvcache/IR/TensorMemoryOps.h"

#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"

namespace mlir::kvcache {

/// An edge from a role to another one. Scores of a tile of keys are there when
/// the accumulator has the tiles before it. Probs are there when the
/// accumulator is scaled. The accumulator has all tiles.
enum class RoleEdge { Scores, Probs, Acc };

/// The tensor memory of two query tiles, and the barriers between the warp that
/// starts their products and the warpgroups that compute their softmax. Probs
/// replace the scores that they are computed from.
class RoleTensors {
public:
  static constexpr int64_t kQueryTiles = 2, kRowsOfTile = 128;

  /// For tiles of so many keys, values of so many elements, and probs of a
  /// type.
  RoleTensors(const Frame &frame, int64_t keys, int64_t values, FloatType prob)
      : frame(frame), keys(keys), values(values), prob(prob) {}

  /// Allocates tensor memory and barriers. All threads have to meet before a
  /// role waits.
  void allocate(Value thread);

  /// The tiles of a query tile, by its number.
  TypedValue<TmemTileType> getScores(Value number) const;
  TypedValue<TmemTileType> getProbs(Value number) const;
  TypedValue<TmemTileType> getAcc(Value number) const;

  /// Leaves products that this thread has started, when they are done.
  void commit(RoleEdge edge, Value number) const;
  /// Leaves what the threads of a warpgroup have stored. `lane` is that of the
  /// thread in its warp.
  void arrive(RoleEdge edge, Value number, Value lane) const;
  /// Waits for what is left for the time `use`, from 0 on: a tile of keys.
  void wait(RoleEdge edge, Value number, Value use) const;

private:
  /// The barrier of an edge of a query tile.
  Value getBarrier(RoleEdge edge, Value number) const;
  /// Columns of both query tiles that one of them has.
  TypedValue<TmemTileType> view(Value both, Value number, int64_t columns,
                                TmemTileType type) const;

  const Frame &frame;
  int64_t keys, values;
  FloatType prob;
  Value scores, accs;
  TypedValue<nvgpu::MBarrierGroupType> barriers;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_ROLETENSORS_H
