//===- Accesses.cpp - Loads and stores of threads -------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Block.h"

using namespace mlir::kvcache::emulator;

namespace {
struct Access {
  const void *pointer;
  int64_t bytes, alignment;
  uint32_t flags;
};
} // namespace

static Poison accessShared(Thread &thread, const KVCacheSite *site,
                           const Access &access) {
  Block &block = *thread.block;
  const Block &owner = block.getOwner(thread, site, access.pointer);
  uint32_t offset =
      owner.getSharedOffset(thread, site, access.pointer, access.bytes);
  block.cluster.lifetime.note(thread, site, owner);
  Poison poison = block.sanitizer.access(
      thread, site, {offset, static_cast<uint32_t>(access.bytes)}, access.flags,
      block.cluster.mayRewrite() ? access.pointer : nullptr);
  block.meter.accessShared(thread, site, offset, access.bytes, access.flags,
                           access.alignment);
  return poison;
}

static Poison accessGlobal(Thread &thread, const KVCacheSite *site,
                           const Access &access) {
  Block &block = *thread.block;
  Poison poison = block.sanitizer.accessGlobal(thread, site, access.pointer,
                                               access.bytes, access.flags);
  block.meter.accessGlobal(thread, site,
                           reinterpret_cast<uintptr_t>(access.pointer),
                           access.bytes, access.flags, access.alignment);
  return poison;
}

static Poison accessAny(Thread &thread, const KVCacheSite *site,
                        const Access &access) {
  const Block &block = *thread.block;
  bool isShared =
      block.isShared(access.pointer) ||
      (block.cluster.numBlocks() > 1 && block.cluster.isShared(access.pointer));
  if (isShared)
    return accessShared(thread, site, access);
  return accessGlobal(thread, site, access);
}

static Poison accessAtomically(Thread &thread, const KVCacheSite *site,
                               const Access &access) {
  Sanitizer &sanitizer = thread.block->sanitizer;
  sanitizer.acquireAtomic(thread, site, access.pointer, access.flags);
  Poison poison = accessAny(thread, site, access);
  sanitizer.releaseAtomic(thread, access.pointer, access.flags);
  return poison;
}

void kvcacheEmulatorAccess(KVCacheThread *self, const KVCacheSite *site,
                           const void *pointer, int64_t bytes,
                           int64_t alignment, uint32_t flags) {
  Thread &thread = Thread::get(self);
  Block &block = *thread.block;
  constexpr uint32_t strong = KVCacheAccessAtomic | KVCacheAccessVolatile;
  if (flags & strong)
    block.spin(thread, site);
  bool poisons = flags & KVCacheAccessPoisons;
  if (poisons)
    thread.setPoison({});
  // A masked lane accesses nothing, and its pointer may be anything.
  if (bytes == 0)
    return;
  if (thread.fiber->contains(pointer))
    return accessStack(thread, site, pointer, bytes, flags);
  block.checkAlignment(thread, site, pointer, alignment);
  Access access{pointer, bytes, alignment, flags};
  Poison poison = flags & strong ? accessAtomically(thread, site, access)
                                 : accessAny(thread, site, access);
  if (poisons && poison.origin)
    thread.setPoison(poison);
}
