//===- MBarriers.h - mbarriers of a block -----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_RUNTIME_MBARRIERS_H
#define KVCACHE_LIB_EMULATOR_RUNTIME_MBARRIERS_H

#include "kvcache/Emulator/ABI.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace mlir::kvcache::emulator {

class Block;
class MBarrier;
struct Thread;

/// The mbarriers in a block's shared memory, by their offsets.
class MBarriers {
public:
  explicit MBarriers(Block &block);
  ~MBarriers();

  void begin();
  /// The end of the block: fails if bytes are still expected or in flight.
  void end();

  /// The barrier at an address of shared memory. Fails as an error of `thread`
  /// if there can't be one, or if it is not initialized.
  MBarrier &get(const Thread &thread, const KVCacheSite *site,
                const void *pointer);
  /// Finds the barrier of a tensor or bulk copy, which must be recorded in it.
  MBarrier &getForCopy(const Thread &thread, const KVCacheSite *site,
                       const void *pointer);

  /// The thread fences the mbarriers that it has initialized.
  void fenceInits(const Thread &thread);

  void init(Thread &thread, const KVCacheSite *site, const void *pointer,
            int64_t count);
  void invalidate(Thread &thread, const KVCacheSite *site, const void *pointer);

private:
  MBarrier &at(const Thread &thread, const KVCacheSite *site,
               const void *pointer);

  Block &block;
  /// Null where no barrier has been, by offset in units of 8 bytes; those of
  /// earlier blocks have been reset.
  std::vector<std::unique_ptr<MBarrier>> barriers;
  /// The barriers of this block.
  std::vector<MBarrier *> used;
};

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_MBARRIERS_H
