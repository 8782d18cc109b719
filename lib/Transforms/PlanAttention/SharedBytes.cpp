//===- SharedBytes.cpp - Shared memory of tiles ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SharedBytes.h"

#include "../Builders/Heads.h"
#include "AttentionSizes.h"
#include "TileSizes.h"
#include "TileStaging.h"

using namespace mlir;
using namespace mlir::kvcache;

/// The bytes of the scales of groups of a tile's tokens.
static int64_t countGroupScaleBytes(Value cache, int64_t size, int64_t tokens) {
  constexpr int64_t bytesOfScale = 4;
  return kScaledTiles * tokens * countScaleGroups(cache, size) * bytesOfScale;
}

/// The bytes of raw tiles of so many tokens, where rows are in two caches.
static int64_t countPairBytes(AttentionOp op, int64_t tokens, int64_t tiles) {
  int64_t ropeSize = op.getRopeSize(), size = op.getKeySize() - ropeSize;
  auto countBytes = [](Value cache, int64_t elements) {
    Type element = cast<CacheTypeInterface>(cache.getType()).getElementType();
    return elements * element.getIntOrFloatBitWidth() / 8;
  };
  return tiles * tokens *
             (countBytes(op.getKeyCache(), size) +
              countBytes(op.getRopeCache(), ropeSize)) +
         countGroupScaleBytes(op.getKeyCache(), size, tokens);
}

/// The bytes of the list of tiles that rows with several ranges see.
static int64_t countListBytes(AttentionOp op) {
  constexpr int64_t bytesOfNumber = 4;
  return hasGaps(op.getRanges()) ? bytesOfNumber * kListNumbers : 0;
}

/// The bytes that two warpgroups give each other: two numbers of each row. With
/// pairs, two threads of a row give each other one.
static int64_t countExchangeBytes(const AttentionConfig &config) {
  constexpr int64_t groups = 2, numbersOfRow = 2, bytesOfNumber = 4;
  if (isPair(config))
    return groups * *config.rows * bytesOfNumber;
  return config.schedule == Schedule::Seesaw
             ? groups * numbersOfRow * *config.rows * bytesOfNumber
             : 0;
}

/// The bytes of a split that other blocks of the cluster read.
static int64_t countSplitBytes(const AttentionShape &shape,
                               const AttentionConfig &config) {
  constexpr int64_t bytesOfNumber = 4;
  return mergesInCluster(config)
             ? *config.rows * countSplitColumns(shape.valueSize) * bytesOfNumber
             : 0;
}

/// The elements of queries and of tiles, if two blocks multiply together: half
/// of the tokens, and half of the elements of values.
static int64_t countPairElements(const AttentionShape &shape,
                                 const AttentionConfig &config) {
  return *config.rows * shape.keySize +
         *config.stages * *config.keys * (shape.keySize + shape.valueSize) / 2;
}

int64_t kvcache::countBytes(AttentionOp op, const AttentionShape &shape,
                            const AttentionConfig &config) {
  bool isLatent = shape.caches == Caches::Latent;
  int64_t tokenSize = shape.keySize + (isLatent ? 0 : shape.valueSize);
  int64_t elements =
      *config.rows * shape.keySize + *config.stages * *config.keys * tokenSize;
  if (isPair(config))
    elements = countPairElements(shape, config);
  if (isSwapAB(config) || isPair(config))
    elements += *config.rows * *config.keys;
  int64_t raw = op.getRopeCache()
                    ? countPairBytes(op, *config.keys, *config.rawStages)
                    : *config.rawStages * *config.keys * tokenSize;
  return 2 * elements + raw + countListBytes(op) + countExchangeBytes(config) +
         countSplitBytes(shape, config);
}

/// The bytes of a row that warps dequantize in registers, and of its scales for
/// each warp, in the tile in use and in the next: f32, also of zero points, or
/// f16 that elements are multiplied by.
static int64_t countRowBytes(Value cache, int64_t size) {
  return isPacked(cache) ? size / 2 : size;
}
static int64_t countRowScaleBytes(Value cache, int64_t size) {
  constexpr int64_t tiles = 2;
  int64_t numbers =
      cast<CacheTypeInterface>(cache.getType()).hasZeroPoints() ? 2 : 1;
  int64_t bytes = areElementsScaled(cache) ? 2 : 4;
  return tiles * countScaleGroups(cache, size) * numbers * bytes;
}

/// The bytes of queries and of raw tiles that warps multiply, with their
/// scales.
static int64_t countRawBytes(AttentionOp op, const AttentionShape &shape,
                             const AttentionConfig &config) {
  Value keys = op.getKeyCache(), values = op.getValues();
  int64_t rowBytes = countRowBytes(keys, shape.keySize) +
                     countRowBytes(values, shape.valueSize);
  int64_t scaleBytes = (countRowScaleBytes(keys, shape.keySize) +
                        countRowScaleBytes(values, shape.valueSize)) *
                       countThreads(config) / kWarp;
  return 2 * *config.rows * shape.keySize +
         *config.keys * (*config.stages * rowBytes + scaleBytes) +
         countListBytes(op) + countSplitBytes(shape, config);
}

int64_t kvcache::countSharedBytes(AttentionOp op, const AttentionShape &shape,
                                  const AttentionConfig &config) {
  return dequantizesInRegisters(config) ? countRawBytes(op, shape, config)
                                        : countBytes(op, shape, config);
}
