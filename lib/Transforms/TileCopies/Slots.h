//===- Slots.h - Tiles of the slots of a pipe -------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILECOPIES_SLOTS_H
#define KVCACHE_LIB_TRANSFORMS_TILECOPIES_SLOTS_H

#include "kvcache/IR/PipeOps.h"
#include "kvcache/Support/IndexBuilder.h"

namespace mlir::kvcache {

/// The memory of the slots of a pipe: one allocation for each of its tiles,
/// which holds that tile of all slots.
class Slots {
public:
  /// Allocates the memory at the pipe.
  explicit Slots(PipeOp pipe);

  /// The tiles of slot `slot`.
  SmallVector<Value> getTiles(const IndexBuilder &b, Value slot) const;

private:
  PipeType type;
  SmallVector<Value> memory;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILECOPIES_SLOTS_H
