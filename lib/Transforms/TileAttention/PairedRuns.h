//===- PairedRuns.h - Queries for keys of 8 bits ----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_PAIREDRUNS_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_PAIREDRUNS_H

#include "../Builders/Frame.h"

namespace mlir::kvcache {

/// Elements of a query that a thread stores at once.
constexpr int64_t kRun = 8;

/// Stores a run of 16-bit elements, from element `d` of a row on, into a tile
/// whose columns have the order of `paired` in `fragment_load`.
void storePairedRun(const Frame &frame, Value elements, Value tile, Value row,
                    Value d);
/// Likewise in the order for `mma_a16_quads`.
void storeQuadRun(const Frame &frame, Value elements, Value tile, Value row,
                  Value d);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_PAIREDRUNS_H
