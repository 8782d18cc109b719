//===- BlockArray.h - Numbers in the memory of a block ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_BUILDERS_BLOCKARRAY_H
#define KVCACHE_LIB_TRANSFORMS_BUILDERS_BLOCKARRAY_H

#include "Frame.h"

namespace mlir::kvcache {

/// Numbers of 32 bits that the threads of a block share.
class BlockArray {
public:
  BlockArray(const Frame &frame, int64_t size);

  Value load(Value place) const;
  void store(Value number, Value place) const;
  /// Adds 1 to a number, to which other threads may add at once.
  void increment(Value place) const;

private:
  const Frame &frame;
  int64_t size;
  Value tile;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_BUILDERS_BLOCKARRAY_H
