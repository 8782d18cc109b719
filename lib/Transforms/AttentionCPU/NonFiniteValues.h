//===- NonFiniteValues.h - Values that are no numbers -----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_NONFINITEVALUES_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_NONFINITEVALUES_H

#include "RowLanes.h"
#include "TokenTile.h"

namespace mlir::kvcache {

/// Moves infinities and NaNs of `values` into `nonFinite`, both pairs of
/// [rows, size], for rows [0, count). Each becomes 0 in `values`, so that rows
/// that do not see it have the same bits whatever it is.
void separateNonFinite(const Frame &frame, Value values, Value nonFinite,
                       Value count);

/// Adds the non-finite values of tokens [begin, end) of a tile times the
/// probabilities of a panel, for the rows that see them.
void addNonFinite(const HostAttention &attention, const RowLanes &memory,
                  const Panel &panel, const TokenTile &tile, Value begin,
                  Value end);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_NONFINITEVALUES_H
