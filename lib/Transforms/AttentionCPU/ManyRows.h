//===- ManyRows.h - Attention of many rows on a CPU -------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_MANYROWS_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_MANYROWS_H

#include "RowLanes.h"
#include "TokenTile.h"

namespace mlir::kvcache {

/// Shares of the rows of a sequence and a head that threads compute. The blocks
/// of a share are far apart, so that causal ones take as long.
constexpr int64_t kRowShares = 4;

/// Attention of the rows of a sequence that share a head of the cache, in
/// blocks: row `r` is query head `r mod group` of token `r / group`.
///
/// Rows are lanes of vectors, so scores are computed transposed, S^T = K Q^T,
/// and so are outputs, O^T = V^T P^T. Maxima and sums of rows then need no
/// exchange of lanes, and elements of keys and values are broadcast from
/// memory. A lane has the same bits whatever other lanes have.
class ManyRows {
public:
  explicit ManyRows(const HostAttention &attention);

  /// Computes every `kRowShares`-th block of the `count` rows of `rows` for a
  /// head, from block `share` on.
  void compute(const QueryRows &rows, Value head, Value count,
               Value share) const;

private:
  const HostAttention &attention;
  TokenTile tile;
  RowLanes memory;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_MANYROWS_H
