//===- PipeBarriers.h - Barriers of the slots of a pipe ------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILECOPIES_PIPEBARRIERS_H
#define KVCACHE_LIB_TRANSFORMS_TILECOPIES_PIPEBARRIERS_H

#include "Blocks.h"
#include "KernelSetup.h"

#include "kvcache/IR/TileOps.h"

namespace mlir::kvcache {

/// The barriers of a pipe: for each slot, one that says it is full, and one
/// that says it is empty. Every use of a slot is a phase of both.
class PipeBarriers {
public:
  PipeBarriers(PipeType type, const Chip *chip)
      : stages(type.getStages()), chip(chip) {}

  using Count = function_ref<Value(const BlockBuilder &b)>;
  /// Creates them, to expect `arrivals` that fill a slot and `releases` that
  /// free it. If `isCluster`, threads of other blocks free slots, too.
  void create(KernelSetup &setup, bool isCluster, Count arrivals,
              Count releases);

  /// The slot of a tile.
  Value getSlot(const IndexBuilder &b, Value index) const;
  Barrier getFull(const IndexBuilder &b, Value index) const;
  Barrier getEmpty(const IndexBuilder &b, Value index) const;

  void waitUntilFull(const IndexBuilder &b, Value index) const;
  void waitUntilEmpty(const IndexBuilder &b, Value index) const;

private:
  Value getParity(const IndexBuilder &b, Value index, int64_t ahead) const;

  int64_t stages;
  const Chip *chip;
  bool isOfCluster = false;
  TypedValue<nvgpu::MBarrierGroupType> barriers;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILECOPIES_PIPEBARRIERS_H
