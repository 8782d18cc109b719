//===- ClusterMerge.h - The merge of splits in a cluster --------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_CLUSTERMERGE_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_CLUSTERMERGE_H

#include "../Attention/SplitStates.h"
#include "TileRows.h"

namespace mlir::kvcache {

/// The merge of the splits of a block's rows in its cluster, whose block p
/// computes split p. Each block keeps its split in shared memory, and merges a
/// share of the elements of all rows.
class ClusterMerge {
public:
  explicit ClusterMerge(const TileRows &block);

  /// Allocates the tile of a block's split.
  void allocate();
  /// The tile: a row of it has the accumulator of a row, and its state.
  Value getTile() const { return tile; }

  /// Merges the first `count` blocks' splits. All threads of the cluster call
  /// it. `bias` is that of `storeMerged`.
  void merge(Value count, float bias) const;

private:
  void syncCluster() const;
  /// Loads elements of a row of a split. A split after the last adds nothing.
  SplitState load(int64_t split, Value row, Value d, Value count) const;

  const TileRows &block;
  const Frame &frame;
  SplitAdder adder;
  Value tile;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_CLUSTERMERGE_H
