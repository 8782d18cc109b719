//===- AsyncCopies.cpp - Copies by threads (cp.async) ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AsyncCopies.h"
#include "Grid.h"
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
  /// The sanitizer's handles of the bytes written, and of the bytes read.
  Sanitizer::Copy handle = 0, source = Sanitizer::kNoCopy;
  bool isDone = false;
  Order::End end = {};

  void write() const {
    std::memcpy(thread->block->cluster.shared + to.offset, data, to.bytes);
  }
  /// Writes the bytes that the copy has read, which must not have changed.
  /// Publishes its end in `into`, or to the thread.
  template <typename IntoT> void deliver(IntoT &into);
};

} // namespace mlir::kvcache::emulator

template <typename IntoT> void AsyncCopy::deliver(IntoT &into) {
  if (std::memcmp(data, from, sourceBytes) != 0) {
    std::ostringstream os;
    os << "has copied " << sourceBytes << " bytes from 0x" << std::hex
       << reinterpret_cast<uintptr_t>(from)
       << ", which have changed while the copy was in flight";
    thread->block->fail(*thread, site, os.str());
  }
  write();
  isDone = true;
  Sanitizer &sanitizer = thread->block->sanitizer;
  end = sanitizer.complete(handle, into);
  sanitizer.complete(source, end);
}

//===----------------------------------------------------------------------===//
// Issue
//===----------------------------------------------------------------------===//

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
  Unwritten unwritten;
  if (sourceBytes > 0)
    copy.source = block.sanitizer.issueGlobalRead(
        thread, site, {{from, copy.sourceBytes}}, Proxy::Generic, unwritten);
  std::memcpy(copy.data, from, sourceBytes);
  block.meter.copyAsync(thread, site, reinterpret_cast<uintptr_t>(from),
                        sourceBytes, copy.to.offset, bytes);
  if (!thread.block->isSanitized())
    return copy.write();
  copy.handle =
      block.sanitizer.issueWrite(thread, site, copy.to, Proxy::Generic);
  poison(block, copy.to);
  if (unwritten.origin) {
    std::vector<char> isPoisoned(bytes);
    for (const Unwritten::Byte &byte : unwritten.bytes)
      isPoisoned[byte.offset] = 1;
    block.sanitizer.poisonShared(copy.to, isPoisoned.data(), unwritten.origin);
  }
  thread.copies.asyncCopies.add(std::make_shared<AsyncCopy>(copy));
}

//===----------------------------------------------------------------------===//
// Waiting
//===----------------------------------------------------------------------===//

void kvcacheEmulatorCopyAsyncCommit(KVCacheThread *self, const KVCacheSite *) {
  Thread &thread = Thread::get(self);
  if (thread.block->isSanitized())
    thread.copies.asyncCopies.commit();
}

void kvcacheEmulatorCopyAsyncWait(KVCacheThread *self, const KVCacheSite *,
                                  int32_t count) {
  Thread &thread = Thread::get(self);
  thread.copies.asyncCopies.wait(count, /*keep=*/false, [&](AsyncCopy &copy) {
    if (!copy.isDone)
      copy.deliver(thread);
  });
}

namespace {
/// An arrival at an mbarrier that comes when all copies before are done. It
/// publishes only these copies, no accesses of the thread.
struct CopyArrival {
  MBarrier &barrier;
  Thread &thread;
  const KVCacheSite *site;
  /// The ends of those that are done already, and the others.
  Clocks done;
  CopyGroups<AsyncCopy>::Group pending;

  void deliver() const {
    Sanitizer &sanitizer = thread.block->sanitizer;
    ReleaseClock &clocks = barrier.getReleaseClock();
    sanitizer.releaseCopies(done, clocks);
    for (const std::shared_ptr<AsyncCopy> &copy : pending)
      if (copy->isDone)
        sanitizer.releaseCopy(copy->end, clocks);
      else
        copy->deliver(clocks);
    barrier.endCopy(thread, site, 0);
    barrier.arriveByCopies(thread, site);
  }
};
} // namespace

void kvcacheEmulatorCopyAsyncArrive(KVCacheThread *self,
                                    const KVCacheSite *site,
                                    const void *pointer, int32_t isCounted) {
  Thread &thread = Thread::get(self);
  Block &block = *thread.block;
  MBarrier &barrier = block.mbarriers.get(thread, site, pointer);
  if (!isCounted)
    barrier.addArrival(thread, site);
  if (!thread.block->isSanitized())
    return barrier.arriveByCopies(thread, site);
  CopyGroups<AsyncCopy> &copies = thread.copies.asyncCopies;
  copies.forgetDone();
  barrier.beginCopy(thread, site, 0);
  block.defer(barrier,
              [arrival = CopyArrival{barrier, thread, site,
                                     block.sanitizer.getCopies(thread),
                                     copies.getAll()}] { arrival.deliver(); });
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
