//===- AsyncCopies.cpp - Copies by threads (cp.async) ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AsyncCopies.h"
#include "Grid.h"
#include "Memory.h"
#include "kvcache/Emulator/AsyncCopies.h"

#include <cstring>
#include <sstream>

using namespace mlir::kvcache::emulator;

namespace mlir::kvcache::emulator {

/// One cp.async of a thread.
struct AsyncCopy {
  Thread *thread;
  const KVCacheSite *site;
  const void *from;
  SharedRange to;
  /// The bytes to write, of which the first `sourceBytes` are in `from`.
  char data[16];
  uint32_t sourceBytes;
  Sanitizer::Copy handle = 0;
  bool isDone = false;

  void write() const {
    std::memcpy(thread->block->shared + to.offset, data, to.bytes);
  }
  /// Writes what the copy has read, which must be there still.
  void deliver();
};

} // namespace mlir::kvcache::emulator

void AsyncCopy::deliver() {
  if (std::memcmp(data, from, sourceBytes) != 0) {
    std::ostringstream os;
    os << "has copied " << sourceBytes << " bytes from 0x" << std::hex
       << reinterpret_cast<uintptr_t>(from)
       << ", which have changed while the copy was in flight";
    thread->block->fail(*thread, site, os.str());
  }
  write();
  isDone = true;
}

static bool isSanitized(const Thread &thread) {
  return thread.block->getGrid().module->isSanitized;
}

//===----------------------------------------------------------------------===//
// Issue
//===----------------------------------------------------------------------===//

static void checkSource(const Thread &thread, const KVCacheSite *site,
                        const void *from, uint32_t bytes) {
  if (bytes == 0 || !isSanitized(thread))
    return;
  if (std::optional<std::string> error =
          Memory::get().access(from, bytes, KVCacheAccessRead))
    thread.block->fail(thread, site, *error);
}

void kvcacheEmulatorCopyAsync(KVCacheThread *self, const KVCacheSite *site,
                              void *to, const void *from, int32_t bytes,
                              int32_t sourceBytes) {
  Thread &thread = Thread::get(self);
  Block &block = *thread.block;
  if (static_cast<uint32_t>(sourceBytes) > static_cast<uint32_t>(bytes))
    block.fail(thread, site,
               "expects a source of at most " + std::to_string(bytes) +
                   " bytes, got " +
                   std::to_string(static_cast<uint32_t>(sourceBytes)));
  block.checkAlignment(thread, site, to, bytes);
  block.checkAlignment(thread, site, from, bytes);
  AsyncCopy copy{&thread, site, from, {}, {}, 0};
  copy.to = {block.getSharedOffset(thread, site, to, bytes),
             static_cast<uint32_t>(bytes)};
  copy.sourceBytes = sourceBytes;
  checkSource(thread, site, from, sourceBytes);
  std::memcpy(copy.data, from, sourceBytes);
  block.meter.copyAsync(thread, site, reinterpret_cast<uintptr_t>(from),
                        sourceBytes, copy.to.offset, bytes);
  if (!isSanitized(thread))
    return copy.write();
  copy.handle =
      block.sanitizer.issueWrite(thread, site, copy.to, Proxy::Generic);
  poison(block, copy.to);
  thread.copies.asyncCopies.add(std::make_shared<AsyncCopy>(copy));
}

//===----------------------------------------------------------------------===//
// Waiting
//===----------------------------------------------------------------------===//

void kvcacheEmulatorCopyAsyncCommit(KVCacheThread *self, const KVCacheSite *) {
  Thread &thread = Thread::get(self);
  if (isSanitized(thread))
    thread.copies.asyncCopies.commit();
}

void kvcacheEmulatorCopyAsyncWait(KVCacheThread *self, const KVCacheSite *,
                                  int32_t count) {
  Thread &thread = Thread::get(self);
  thread.copies.asyncCopies.wait(count, /*keep=*/false, [&](AsyncCopy &copy) {
    if (copy.isDone)
      return;
    copy.deliver();
    thread.block->sanitizer.complete(copy.handle, thread);
  });
}

/// The copies are done, which those learn that wait for the barrier.
static void deliver(const CopyGroups<AsyncCopy>::Group &copies,
                    MBarrier &barrier, Thread &thread) {
  Sanitizer &sanitizer = thread.block->sanitizer;
  for (const std::shared_ptr<AsyncCopy> &copy : copies) {
    // The thread itself has waited for it before, and tells what it knows.
    if (copy->isDone) {
      sanitizer.release(thread, barrier.getKnowledge());
      continue;
    }
    copy->deliver();
    sanitizer.complete(copy->handle, barrier.getKnowledge());
  }
}

void kvcacheEmulatorCopyAsyncArrive(KVCacheThread *self,
                                    const KVCacheSite *site,
                                    const void *pointer, int32_t isCounted) {
  Thread &thread = Thread::get(self);
  Block &block = *thread.block;
  MBarrier &barrier = block.mbarriers.get(thread, site, pointer);
  if (!isCounted)
    barrier.addArrival(thread, site);
  if (!isSanitized(thread))
    return barrier.arriveByCopies(thread, site);
  barrier.beginCopy(thread, site, 0);
  block.defer(barrier, [copies = thread.copies.asyncCopies.getAll(), &barrier,
                        &thread, site] {
    deliver(copies, barrier, thread);
    barrier.endCopy(thread, site, 0);
    barrier.arriveByCopies(thread, site);
  });
}

void CopyQueue::end(Thread &thread) {
  const Block &block = *thread.block;
  for (const std::shared_ptr<AsyncCopy> &copy : asyncCopies.getAll())
    if (!copy->isDone)
      block.fail(thread, copy->site,
                 "has a copy of " + std::to_string(copy->to.bytes) +
                     " bytes in flight when the block ends");
  for (const std::shared_ptr<BulkStore> &store : bulkStores.getAll()) {
    if (!store->hasRead)
      block.fail(thread, store->box.site,
                 "has a copy of " + std::to_string(store->box.range.bytes) +
                     " bytes in flight, which reads shared memory, when the "
                     "block ends");
    store->finish();
  }
}
