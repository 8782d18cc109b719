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

static void accessShared(Thread &thread, const KVCacheSite *site,
                         const void *pointer, int64_t bytes, uint32_t flags) {
  Block &block = *thread.block;
  uint32_t offset = block.getSharedOffset(thread, site, pointer, bytes);
  block.sanitizer.access(thread, site, {offset, static_cast<uint32_t>(bytes)},
                         flags);
  block.meter.accessShared(thread, site, offset, bytes, flags);
}

static void accessGlobal(Thread &thread, const KVCacheSite *site,
                         const void *pointer, int64_t bytes, uint32_t flags) {
  Block &block = *thread.block;
  if (block.getGrid().module->isSanitized)
    if (std::optional<std::string> error =
            Memory::get().access(pointer, bytes, flags))
      block.fail(thread, site, *error);
  block.meter.accessGlobal(thread, site, reinterpret_cast<uintptr_t>(pointer),
                           bytes, flags);
}

static void access(Thread &thread, const KVCacheSite *site, const void *pointer,
                   int64_t bytes, uint32_t flags) {
  if (thread.block->isShared(pointer))
    accessShared(thread, site, pointer, bytes, flags);
  else
    accessGlobal(thread, site, pointer, bytes, flags);
}

static void accessAtomically(Thread &thread, const KVCacheSite *site,
                             const void *pointer, int64_t bytes,
                             uint32_t flags) {
  Sanitizer &sanitizer = thread.block->sanitizer;
  sanitizer.acquireAtomic(thread, pointer, flags);
  access(thread, site, pointer, bytes, flags);
  sanitizer.releaseAtomic(thread, pointer, flags);
}

void kvcacheEmulatorAccess(KVCacheThread *self, const KVCacheSite *site,
                           const void *pointer, int64_t bytes,
                           int64_t alignment, uint32_t flags) {
  Thread &thread = Thread::get(self);
  Block &block = *thread.block;
  if (flags & KVCacheAccessAtomic)
    block.spin(thread, site);
  // A masked lane accesses nothing, and its pointer may be anything.
  if (bytes == 0 || thread.fiber->contains(pointer))
    return;
  // Alignments are powers of two; a division takes longer than all the rest.
  if (reinterpret_cast<uintptr_t>(pointer) & (alignment - 1))
    block.checkAlignment(thread, site, pointer, alignment);
  if (flags & KVCacheAccessAtomic)
    accessAtomically(thread, site, pointer, bytes, flags);
  else
    access(thread, site, pointer, bytes, flags);
}
