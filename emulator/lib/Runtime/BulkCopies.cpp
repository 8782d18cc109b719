//===- BulkCopies.cpp - Copies by the asynchronous proxy ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AsyncCopies.h"
#include "Grid.h"
#include "kvcache/Emulator/AsyncCopies.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <sstream>

using namespace mlir::kvcache;
using namespace mlir::kvcache::emulator;

/// The bytes that a swizzle moves as a whole, and the granule of 1-D copies.
static constexpr uint32_t kUnitBytes = 16;

//===----------------------------------------------------------------------===//
// Boxes
//===----------------------------------------------------------------------===//

int64_t BoxCopy::countGlobalBytes() const {
  int64_t bytes = 0;
  for (const GlobalPiece &piece : pieces)
    bytes += piece.bytes;
  return bytes;
}

/// A mask leaves bytes alone, which others may access.
std::vector<GlobalRange> BoxCopy::getRanges(bool writes) const {
  constexpr uint32_t all = 0xffff;
  std::vector<GlobalRange> ranges;
  if (!getBlock().isSanitized())
    return ranges;
  for (const GlobalPiece &piece : pieces) {
    if (!writes || byteMask == all) {
      ranges.push_back({piece.address, piece.bytes});
      continue;
    }
    for (uint32_t i = 0; i < piece.bytes; ++i)
      if (byteMask >> i % kUnitBytes & 1)
        ranges.push_back({piece.address + i, 1});
  }
  return ranges;
}

Sanitizer::Copy BoxCopy::issueGlobalRead(Unwritten &unwritten) const {
  return getBlock().sanitizer.issueGlobalRead(
      *thread, site, getRanges(/*writes=*/false), Proxy::Async, unwritten);
}

Sanitizer::Copy BoxCopy::issueGlobalWrite() const {
  return getBlock().sanitizer.issueGlobalWrite(
      *thread, site, getRanges(/*writes=*/true), Proxy::Async);
}

void BoxCopy::meter(CopyKind kind, bool isWrite) const {
  Meter &meter = getBlock().meter;
  meter.copy(kind, countGlobalBytes(), range.bytes);
  for (const GlobalPiece &piece : pieces)
    meter.copyGlobal(reinterpret_cast<uintptr_t>(piece.address), piece.bytes,
                     isWrite);
}

std::vector<char> BoxCopy::readGlobal() const {
  std::vector<char> data(range.bytes);
  for (const GlobalPiece &piece : pieces)
    std::memcpy(data.data() + piece.place, piece.address, piece.bytes);
  return data;
}

void BoxCopy::writeGlobal(const std::vector<char> &data) const {
  constexpr uint32_t all = 0xffff;
  for (const GlobalPiece &piece : pieces) {
    const char *from = data.data() + piece.place;
    if (byteMask == all) {
      std::memcpy(piece.address, from, piece.bytes);
      continue;
    }
    for (uint32_t i = 0; i < piece.bytes; ++i)
      if (byteMask >> i % kUnitBytes & 1)
        piece.address[i] = from[i];
  }
}

/// Calls `f` with each unit of shared memory and its place in the box. PTX ISA,
/// "Tensors: Swizzling Modes": the pattern goes by the address.
template <typename F> void BoxCopy::forEachUnit(const F &f) const {
  char *shared = getBlock().cluster.shared;
  for (uint32_t place = 0; place < range.bytes; place += kUnitBytes) {
    uint32_t offset = range.offset + place;
    f(shared + (offset ^ (offset >> 7 & swizzleMask) << 4), place);
  }
}

/// Bytes of the box where they are in shared memory.
std::vector<char> BoxCopy::toShared(const std::vector<char> &box) const {
  std::vector<char> bytes(range.bytes);
  const char *begin = getBlock().cluster.shared + range.offset;
  forEachUnit([&](const char *unit, uint32_t place) {
    // Rows that are shorter than a swizzle may leave the range.
    auto offset = static_cast<uint64_t>(unit - begin);
    if (offset + kUnitBytes <= bytes.size())
      std::memcpy(bytes.data() + offset, box.data() + place, kUnitBytes);
  });
  return bytes;
}

std::vector<char> BoxCopy::getStored() const {
  std::vector<char> isStored(range.bytes);
  for (const GlobalPiece &piece : pieces)
    for (uint32_t i = 0; i < piece.bytes; ++i)
      isStored[piece.place + i] = byteMask >> i % kUnitBytes & 1;
  return toShared(isStored);
}

void BoxCopy::poison(const Unwritten &unwritten) const {
  if (!unwritten.origin)
    return;
  std::vector<char> isPoisoned(range.bytes);
  for (const Unwritten::Byte &byte : unwritten.bytes)
    isPoisoned[pieces[byte.range].place + byte.offset] = 1;
  getBlock().sanitizer.poisonShared(range, toShared(isPoisoned).data(),
                                    unwritten.origin);
}

std::vector<char> BoxCopy::readShared() const {
  std::vector<char> data(range.bytes);
  forEachUnit([&](const char *unit, uint32_t place) {
    std::memcpy(data.data() + place, unit, kUnitBytes);
  });
  return data;
}

void BoxCopy::writeShared(const std::vector<char> &data) const {
  forEachUnit([&](char *unit, uint32_t place) {
    std::memcpy(unit, data.data() + place, kUnitBytes);
  });
}

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

/// Fails if what the copy was to read is not there any more.
static void checkUnchanged(const BoxCopy &box, const std::vector<char> &data) {
  for (const GlobalPiece &piece : box.pieces)
    if (std::memcmp(data.data() + piece.place, piece.address, piece.bytes)) {
      std::ostringstream os;
      os << "has copied " << piece.bytes << " bytes from 0x" << std::hex
         << reinterpret_cast<uintptr_t>(piece.address)
         << ", which have changed while the copy was in flight";
      box.getBlock().fail(*box.thread, box.site, os.str());
    }
}

static void finishLoad(const BoxCopy &box, MBarrier &barrier) {
  uint32_t bytes = box.range.bytes;
  barrier.endCopy(*box.thread, box.site, bytes);
  barrier.complete(*box.thread, box.site, bytes);
}

/// Fills the destination of a copy in flight with a NaN of every format
/// of floats.
void emulator::poison(const Block &block, SharedRange range) {
  std::memset(block.cluster.shared + range.offset, 0xff, range.bytes);
}

/// The block of the cluster that the thread copies to, or the one of its own.
static Block &getTarget(const Thread &thread, const KVCacheSite *site,
                        const void *shared, const Block *barrierBlock,
                        bool isOfPair) {
  const Block &block = *thread.block;
  Block &owner = block.getOwner(thread, site, shared);
  bool isRight = !barrierBlock || barrierBlock == &owner ||
                 (isOfPair && (barrierBlock->rank ^ 1) == owner.rank);
  if (!isRight)
    block.fail(thread, site,
               "copies to shared memory of " + owner.describe() +
                   " with an mbarrier of " + barrierBlock->describe() +
                   ": both must be in one " + (isOfPair ? "pair" : "block"));
  return owner;
}

/// PTX ISA, "cp.async.bulk.tensor": of a pair, the barriers are those of the
/// blocks with the same last bit of the rank as the given one.
std::vector<Destination>
emulator::getDestinations(Thread &thread, const KVCacheSite *site,
                          const void *shared, const void *barrier,
                          int64_t bytes, int32_t mask, bool isOfPair) {
  Cluster &cluster = thread.block->cluster;
  if (isOfPair)
    thread.block->getGroup(thread, site, isOfPair);
  Block *barrierBlock = cluster.findBlock(barrier);
  Block &target = getTarget(thread, site, shared, barrierBlock, isOfPair);
  Block &origin = barrierBlock ? *barrierBlock : target;
  std::vector<Block *> blocks{&target};
  if (mask >= 0)
    blocks = target.getMasked(thread, site, mask, "copies");
  std::vector<Destination> destinations;
  for (Block *to : blocks) {
    uint32_t other = (to->rank & ~1u) | (origin.rank & 1);
    Block &of = isOfPair ? cluster.getBlock(other) : *to;
    MBarrier &barrierOf =
        of.mbarriers.getForCopy(thread, site, origin.translate(barrier, of));
    destinations.push_back(
        {to, &barrierOf,
         to->getSharedOffset(thread, site, target.translate(shared, *to),
                             bytes)});
  }
  return destinations;
}

/// Copies what has been read.
static void issueLoad(BoxCopy box, MBarrier &barrier,
                      std::shared_ptr<const std::vector<char>> data,
                      const Unwritten &unwritten, Sanitizer::Copy source) {
  const Block &block = box.getBlock();
  barrier.beginCopy(*box.thread, box.site, box.range.bytes);
  if (!block.isSanitized()) {
    box.writeShared(*data);
    return finishLoad(box, barrier);
  }
  Sanitizer::Copy handle = block.sanitizer.issueWrite(*box.thread, box.site,
                                                      box.range, Proxy::Async);
  box.poison(unwritten);
  block.defer(barrier, [box = std::move(box), data = std::move(data), handle,
                        source, &block, &barrier] {
    checkUnchanged(box, *data);
    box.writeShared(*data);
    block.sanitizer.complete(handle, barrier.getReleaseClock());
    block.sanitizer.complete(source, barrier.getReleaseClock());
    finishLoad(box, barrier);
  });
}

void emulator::issueLoads(const BoxCopy &box,
                          const std::vector<Destination> &destinations) {
  std::shared_ptr<const std::vector<char>> data;
  for (const Destination &to : destinations) {
    BoxCopy copy = box;
    copy.range.offset = to.offset;
    // Each destination completes for itself, and with it its reads.
    Unwritten unwritten;
    Sanitizer::Copy source = copy.issueGlobalRead(unwritten);
    if (!data)
      data = std::make_shared<std::vector<char>>(copy.readGlobal());
    issueLoad(std::move(copy), *to.barrier, data, unwritten, source);
  }
}

//===----------------------------------------------------------------------===//
// Stores
//===----------------------------------------------------------------------===//

void BulkStore::read() {
  if (hasRead)
    return;
  data = box.readShared();
  hasRead = true;
  box.getBlock().sanitizer.complete(handle, *box.thread);
}

void BulkStore::finish() {
  read();
  if (isDone)
    return;
  box.writeGlobal(data);
  box.getBlock().sanitizer.complete(destination, *box.thread);
  data.clear();
  isDone = true;
}

void emulator::issueStore(BoxCopy box) {
  Block &block = box.getBlock();
  if (!block.isSanitized())
    return box.writeGlobal(box.readShared());
  auto store = std::make_shared<BulkStore>(BulkStore{std::move(box)});
  const BoxCopy &issued = store->box;
  store->handle =
      block.sanitizer.issueRead(*issued.thread, issued.site, issued.range,
                                Proxy::Async, issued.getStored());
  store->destination = issued.issueGlobalWrite();
  issued.thread->copies.bulkStores.add(std::move(store));
}

void kvcacheEmulatorBulkCommit(KVCacheThread *self, const KVCacheSite *) {
  Thread &thread = Thread::get(self);
  if (thread.block->isSanitized())
    thread.copies.bulkStores.commit();
}

void kvcacheEmulatorBulkWait(KVCacheThread *self, const KVCacheSite *,
                             int32_t count, int32_t isRead) {
  Thread::get(self).copies.bulkStores.wait(count, /*keep=*/isRead,
                                           [&](BulkStore &store) {
                                             if (isRead)
                                               store.read();
                                             else
                                               store.finish();
                                           });
}

//===----------------------------------------------------------------------===//
// Copies of one dimension
//===----------------------------------------------------------------------===//

/// The copy of `bytes`, which too has to be a multiple of 16, between `global`
/// and `shared`, where it has no place yet. PTX ISA, "cp.async.bulk".
static BoxCopy makeBulkCopy(Thread &thread, const KVCacheSite *site,
                            const void *shared, const void *global,
                            int32_t bytes) {
  const Block &block = *thread.block;
  block.checkAlignment(thread, site, shared, kUnitBytes);
  block.checkAlignment(thread, site, global, kUnitBytes);
  // Sizes are unsigned.
  auto size = static_cast<uint32_t>(bytes);
  if (size % kUnitBytes != 0)
    block.fail(thread, site,
               "expects a size in multiples of 16 bytes, got " +
                   std::to_string(size));
  BoxCopy box{&thread, site, {0, size}, {}};
  if (size > 0)
    box.pieces.push_back(
        {static_cast<char *>(const_cast<void *>(global)), size, 0});
  return box;
}

void kvcacheEmulatorBulkLoad(KVCacheThread *self, const KVCacheSite *site,
                             void *to, const void *from, const void *barrier,
                             int32_t bytes, int32_t mask) {
  Thread &thread = Thread::get(self);
  BoxCopy box = makeBulkCopy(thread, site, to, from, bytes);
  std::vector<Destination> destinations =
      getDestinations(thread, site, to, barrier, box.range.bytes, mask);
  box.meter(CopyKind::BulkLoad, /*isWrite=*/false);
  issueLoads(box, destinations);
}

void kvcacheEmulatorBulkStore(KVCacheThread *self, const KVCacheSite *site,
                              void *to, const void *from, int32_t bytes,
                              uint32_t byteMask) {
  Thread &thread = Thread::get(self);
  BoxCopy box = makeBulkCopy(thread, site, from, to, bytes);
  box.range.offset =
      thread.block->getSharedOffset(thread, site, from, box.range.bytes);
  box.byteMask = byteMask;
  box.meter(CopyKind::BulkStore, /*isWrite=*/true);
  issueStore(std::move(box));
}

/// The source is read like global memory, by its address, but is shared: the
/// copy reads it until its barrier completes.
void kvcacheEmulatorBulkCopyShared(KVCacheThread *self, const KVCacheSite *site,
                                   void *to, const void *from,
                                   const void *barrier, int32_t bytes) {
  Thread &thread = Thread::get(self);
  Block &block = *thread.block;
  BoxCopy box = makeBulkCopy(thread, site, to, from, bytes);
  SharedRange source{block.getSharedOffset(thread, site, from, box.range.bytes),
                     box.range.bytes};
  Destination destination = getDestinations(thread, site, to, barrier,
                                            box.range.bytes, /*mask=*/-1)[0];
  box.range.offset = destination.offset;
  Sanitizer::Copy handle =
      block.sanitizer.issueRead(thread, site, source, Proxy::Async);
  auto data = std::make_shared<std::vector<char>>(box.readGlobal());
  issueLoad(std::move(box), *destination.barrier, std::move(data), {}, handle);
}

void kvcacheEmulatorBulkPrefetch(KVCacheThread *self, const KVCacheSite *site,
                                 const void *from, int32_t bytes) {
  Thread &thread = Thread::get(self);
  Block &block = *thread.block;
  block.checkAlignment(thread, site, from, kUnitBytes);
  auto size = static_cast<uint32_t>(bytes);
  if (size % kUnitBytes != 0)
    block.fail(thread, site,
               "expects a size in multiples of 16 bytes, got " +
                   std::to_string(size));
  block.meter.copy(CopyKind::Prefetch, size, 0);
  block.meter.copyGlobal(reinterpret_cast<uintptr_t>(from), size,
                         /*isWrite=*/false);
}
