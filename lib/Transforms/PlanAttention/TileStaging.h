//===- TileStaging.h - How elements of caches become tiles ------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_PLANATTENTION_TILESTAGING_H
#define KVCACHE_LIB_TRANSFORMS_PLANATTENTION_TILESTAGING_H

#include "kvcache/IR/AttentionOps.h"

namespace mlir::kvcache {

/// Whether copies bring tiles of a cache of the op as products need them.
bool areTilesCopied(AttentionOp op, Value cache);
/// Whether copies bring tiles of keys or values as products need them.
bool isAnyCopied(AttentionOp op);
/// Whether copies bring all tiles as products need them.
bool areAllCopied(AttentionOp op);
/// Whether copies could bring raw elements, which threads convert.
bool canStageRaw(AttentionOp op, Value cache);
/// Whether elements of a cache have 4 bits.
bool isPacked(Value cache);
/// Whether warps that dequantize in registers multiply each element by its
/// scale, and not products: those of NVFP4.
bool areElementsScaled(Value cache);
/// The groups of elements with scales of their own, which products with so many
/// elements of a row are multiplied by; 0 if there are none.
int64_t countProductGroups(Value cache, int64_t size);
/// Whether warps can dequantize a row in registers, which copies bring.
bool canDequantizeInRegisters(Value cache, int64_t size);
/// Whether tiles have elements without the scales of their tokens.
bool areTilesUnscaled(AttentionOp op, Value cache);

/// Elements of 16 bits that a thread stores into a tile at once.
constexpr int64_t kGranule = 8;

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_PLANATTENTION_TILESTAGING_H
