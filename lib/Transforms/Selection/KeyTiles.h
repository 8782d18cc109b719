//===- KeyTiles.h - Tiles of index keys for tensor cores --------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_SELECTION_KEYTILES_H
#define KVCACHE_LIB_TRANSFORMS_SELECTION_KEYTILES_H

#include "../Builders/Frame.h"
#include "kvcache/IR/FragmentLayout.h"
#include "kvcache/IR/SelectionOps.h"

namespace mlir::kvcache {

/// The sizes of a kernel that scores tiles of index keys on tensor cores.
struct KeyTiles {
  /// The threads of a block.
  static constexpr int64_t kThreads = 128;
  /// The keys of a fragment, and the heads of a product.
  static constexpr int64_t kKeys = 16, kHeads = 16;
  /// The slots of the pipe that copies fill.
  static constexpr int64_t kStages = 3;
  /// The tiles that a block scores, at most.
  static constexpr int64_t kTilesOfBlock = 8;

  /// The sizes for an op; none if threads score columns without tensor cores.
  static std::optional<KeyTiles> choose(IndexScoresOp op);

  /// A tile as the cache stores its elements, or as warps convert them.
  TileType key;
  /// The elements of products.
  FloatType lane;
  int64_t heads, size;
  /// The groups of elements that have scales: each is a product of its own. 1
  /// without such scales.
  int64_t groups;
  /// Whether keys are MXFP4, which warps convert.
  bool hasConvertedKeys;

  /// Whether elements are widened in registers.
  bool dequantizes() const { return key.getElementType() != lane; }
  int64_t countKeys() const { return key.getRows(); }
  /// The fragments of a tile that a warp has.
  int64_t countFragments() const {
    return countKeys() * kWarp / kThreads / kKeys;
  }
  /// The elements of a product.
  int64_t countElements() const { return size / groups; }
  /// The keys of a warp in registers: 16 rows of a left operand.
  FragmentType getFragment() const {
    return FragmentType::get(lane.getContext(), {kKeys, countElements()}, lane,
                             dequantizes() ? FragmentLayout::MmaA16Pairs
                                           : FragmentLayout::MmaA16,
                             /*partial=*/false);
  }
  /// The query rows of a block, at most: all heads of each.
  int64_t countRows() const;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_SELECTION_KEYTILES_H
