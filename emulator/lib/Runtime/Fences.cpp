//===- Fences.cpp - Fences of threads, and order of launches --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Block.h"
#include "kvcache/Emulator/Synchronization.h"
#include "kvcache/TMA/Encoding.h"

using namespace mlir::kvcache;
using namespace mlir::kvcache::emulator;

void kvcacheEmulatorFence(KVCacheThread *self, const KVCacheSite *,
                          uint32_t kind) {
  Thread &thread = Thread::get(self);
  Block &block = *thread.block;
  bool isOfShared =
      kind == KVCacheFenceAsync || kind == KVCacheFenceAsyncShared;
  if (isOfShared)
    block.sanitizer.fenceProxy(thread, Space::Shared);
  if (kind == KVCacheFenceAsync || kind == KVCacheFenceAsyncGlobal)
    block.sanitizer.fenceProxy(thread, Space::Global);
  if (kind == KVCacheFenceMBarrierInit)
    block.mbarriers.fenceInits(thread);
  if (kind != KVCacheFenceAsyncGlobal)
    block.cluster.initFences.noteFence(thread, isOfShared);
}

void kvcacheEmulatorFenceMemory(KVCacheThread *self, const KVCacheSite *site,
                                uint32_t flags) {
  kvcacheEmulatorFence(self, site, KVCacheFenceMemory);
  Thread &thread = Thread::get(self);
  thread.block->sanitizer.fence(thread, flags);
}

void kvcacheEmulatorFenceTensorMap(KVCacheThread *self, const KVCacheSite *site,
                                   const void *tensorMap, int32_t bytes) {
  Thread &thread = Thread::get(self);
  Block &block = *thread.block;
  // PTX ISA, "membar, fence": the size is 128, in global memory.
  if (bytes != tma::kDescriptorBytes)
    block.fail(thread, site,
               "expects a size of 128 bytes, got " + std::to_string(bytes));
  if (block.cluster.isShared(tensorMap))
    block.fail(thread, site, "expects an address in global memory");
  block.checkAlignment(thread, site, tensorMap, tma::kDescriptorAlignment);
}

void kvcacheEmulatorWaitForLaunches(KVCacheThread *self,
                                    const KVCacheSite *site) {
  Thread &thread = Thread::get(self);
  thread.block->cluster.waitForEarlier(thread, site);
  thread.block->sanitizer.acquireEarlier(thread);
}

void kvcacheEmulatorStartDependents(KVCacheThread *self, const KVCacheSite *) {
  Thread &thread = Thread::get(self);
  thread.block->cluster.startDependents(thread);
}
