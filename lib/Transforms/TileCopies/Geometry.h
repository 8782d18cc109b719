//===- Geometry.h - Rows of a cache in memory and in a tile -----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILECOPIES_GEOMETRY_H
#define KVCACHE_LIB_TRANSFORMS_TILECOPIES_GEOMETRY_H

#include "kvcache/IR/KVCacheDialect.h"

namespace mlir::kvcache {

/// A power of two up to 16 that divides the address of every head of every row.
int64_t getRowAlignment(CacheTypeInterface cache);

/// The bytes of a row in a chunk of a tile.
int64_t getChunkRowBytes(const tma::TileLayout &layout);

/// The number of rows that one tensor copy moves: rows that surely lie in a
/// page together, or the single row of a row id. The page size must be static.
int64_t getBoxRows(TileCopyOpInterface copy);

/// The number of consecutive tokens of the tile that could lie in a page
/// together if the first token were a multiple of them.
int64_t getMostBoxRows(TileCopyOpInterface copy);

/// Whether the descriptor of a copy counts rows through all pages, so that
/// pages must lie a whole number of rows apart.
bool countsRowsOfAllPages(TileCopyOpInterface copy);

/// The tensor map of the boxes, or rows, that fill the tile.
tma::OpenTensorMap getTensorMap(TileCopyOpInterface copy);

/// An op that creates a descriptor of the copied view, by name.
struct DescriptorRequest {
  StringRef opName;
  DictionaryAttr attributes;

  bool operator==(const DescriptorRequest &other) const {
    return opName == other.opName && attributes == other.attributes;
  }
};

/// The request for the descriptor with the geometry of `getTensorMap`.
DescriptorRequest requestDescriptor(TileCopyOpInterface copy);

/// The request for a descriptor with boxes of the same bytes whose tensor
/// begins in the cache, for boxes of `getTensorMap` without a valid row; none
/// where all have one.
std::optional<DescriptorRequest> requestZeros(TileCopyOpInterface copy);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILECOPIES_GEOMETRY_H
