//===- PanelProduct.h - Products of a tile and a panel ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_PANELPRODUCT_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_PANELPRODUCT_H

#include "RowLanes.h"
#include "TokenTile.h"

namespace mlir::kvcache {

/// Computes scores of tokens [begin, end) of a tile for the rows of a panel.
/// Both are multiples of `getTokenSteps`.
void multiplyKeys(const HostAttention &attention, const RowLanes &memory,
                  const Panel &panel, const TokenTile &tile, Value begin,
                  Value end);

/// Adds the values of tokens [begin, end) of a tile times the probabilities of
/// a panel. Where some values are not finite, probabilities of -0 add nothing.
void addValues(const HostAttention &attention, const RowLanes &memory,
               const Panel &panel, const TokenTile &tile, Value begin,
               Value end, Value hasNonFinite);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_PANELPRODUCT_H
