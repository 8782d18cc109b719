//===- Accesses.cpp - Loads and stores of threads -------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Block.h"
#include "Grid.h"
#include "Memory.h"

using namespace mlir::kvcache::emulator;

void kvcacheEmulatorAccess(KVCacheThread *self, const KVCacheSite *site,
                           const void *pointer, int64_t bytes,
                           int64_t alignment, uint32_t flags) {
  Thread &thread = Thread::get(self);
  Block &block = *thread.block;
  if (flags & KVCacheAccessAtomic)
    block.spin(thread, site);
  if (thread.fiber->contains(pointer))
    return;
  block.checkAlignment(thread, site, pointer, alignment);
  if (block.isShared(pointer)) {
    uint32_t offset = block.getSharedOffset(thread, site, pointer, bytes);
    block.sanitizer.access(thread, site, {offset, static_cast<uint32_t>(bytes)},
                           flags);
    block.meter.accessShared(thread, site, offset, bytes, flags);
    return;
  }
  if (block.getGrid().module->isSanitized)
    if (std::optional<std::string> error =
            Memory::get().access(pointer, bytes, flags))
      block.fail(thread, site, *error);
  block.meter.accessGlobal(thread, site, reinterpret_cast<uintptr_t>(pointer),
                           bytes, flags);
}
