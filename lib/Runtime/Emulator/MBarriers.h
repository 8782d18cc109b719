//===- MBarriers.h - mbarriers of a block -----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_RUNTIME_EMULATOR_MBARRIERS_H
#define KVCACHE_LIB_RUNTIME_EMULATOR_MBARRIERS_H

#include <cstdint>

namespace mlir::kvcache::emulator {

class Block;
struct Thread;

/// The mbarriers in a block's shared memory, by their offsets.
class MBarriers {
public:
  explicit MBarriers(Block &block) : block(block) {}

  void begin();
  /// The end of the block: fails if bytes are still expected or in flight.
  void end();

private:
  Block &block;
};

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_RUNTIME_EMULATOR_MBARRIERS_H
