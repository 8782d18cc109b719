//===- Block.cpp - A block of a cluster -----------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Block.h"

#include <algorithm>
#include <sstream>

using namespace mlir::kvcache;
using namespace mlir::kvcache::emulator;

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

uint32_t Block::getSharedOffset(const Thread &thread, const KVCacheSite *site,
                                const void *pointer, int64_t bytes) const {
  int64_t place = static_cast<const char *>(pointer) - shared;
  const SharedVariables &variables = getGrid().sharedVariables;
  if (variables.contains(place, bytes))
    return static_cast<uint32_t>(place) | rank << Cluster::kSpanBits;
  std::string text = "uses " + std::to_string(bytes) + " bytes at ";
  const Block *owner = cluster.findBlock(pointer);
  if (owner == this)
    text += variables.describe(place) +
            (cluster.numBlocks() > 1 ? " of " + describe() : "") + ", " +
            variables.describeSize(place);
  else if (owner)
    text +=
        variables.describe(static_cast<const char *>(pointer) - owner->shared) +
        " of " + owner->describe() +
        ", where the instruction requires shared memory of the thread's own "
        "block";
  else
    text += "an address outside of the block's shared memory, which has " +
            std::to_string(getGrid().sharedBytes) + " bytes";
  fail(thread, site, text);
}

void Block::failAlignment(const Thread &thread, const KVCacheSite *site,
                          const void *pointer, uint64_t alignment) const {
  std::ostringstream os;
  os << "expects an address at a multiple of " << alignment << " bytes, got ";
  if (cluster.isShared(pointer))
    os << describeShared(static_cast<const char *>(pointer) - cluster.shared);
  else
    os << "0x" << std::hex << reinterpret_cast<uintptr_t>(pointer);
  fail(thread, site, os.str());
}

Block &Block::getOwner(const Thread &thread, const KVCacheSite *site,
                       const void *pointer) const {
  Block *owner = cluster.numBlocks() > 1 ? cluster.findBlock(pointer) : nullptr;
  if (!owner || owner == this)
    return cluster.getBlock(rank);
  cluster.lifetime.check(thread, site, *owner);
  return *owner;
}

Block &Block::getPeer(const Thread &thread, const KVCacheSite *site) const {
  uint32_t other = rank ^ 1;
  if (other >= cluster.numBlocks())
    fail(thread, site,
         "is for a pair of blocks: " + describe() + " has rank " +
             std::to_string(rank) + " in its cluster, of " +
             std::to_string(cluster.numBlocks()) +
             (cluster.numBlocks() == 1 ? " block" : " blocks"));
  return cluster.getBlock(other);
}

std::vector<Block *> Block::getGroup(const Thread &thread,
                                     const KVCacheSite *site,
                                     bool isPair) const {
  if (!isPair)
    return {thread.block};
  Block &peer = getPeer(thread, site);
  cluster.lifetime.check(thread, site, peer);
  Block &own = cluster.getBlock(rank);
  return rank < peer.rank ? std::vector<Block *>{&own, &peer}
                          : std::vector<Block *>{&peer, &own};
}

std::vector<Block *> Block::getMasked(const Thread &thread,
                                      const KVCacheSite *site, int32_t mask,
                                      const std::string &verb) const {
  uint32_t numBlocks = cluster.numBlocks();
  if (mask == 0)
    fail(thread, site, verb + " with a multicast mask of 0, to no block");
  if (mask >> numBlocks)
    fail(thread, site,
         verb + " with a multicast mask that has bit " +
             std::to_string(31 - __builtin_clz(mask)) + ": the cluster has " +
             std::to_string(numBlocks) +
             (numBlocks == 1 ? " block" : " blocks"));
  std::vector<Block *> blocks;
  for (uint32_t other = 0; other < numBlocks; ++other) {
    if (!(mask >> other & 1))
      continue;
    Block &block = cluster.getBlock(other);
    if (&block != thread.block)
      cluster.lifetime.check(thread, site, block);
    blocks.push_back(&block);
  }
  return blocks;
}

//===----------------------------------------------------------------------===//
// Begin and end
//===----------------------------------------------------------------------===//

Block::Block(Cluster &cluster, uint32_t rank)
    : cluster(cluster), rank(rank), sanitizer(cluster.sanitizer) {}

void Block::prepareThread(Thread &thread, uint32_t number,
                          const uint32_t (&tid)[3]) {
  const Grid &grid = getGrid();
  std::copy_n(tid, 3, thread.tid);
  std::copy_n(grid.threads, 3, thread.ntid);
  std::copy_n(grid.blocks, 3, thread.nctaid);
  thread.lane = number % kWarpSize;
  thread.warp = number / kWarpSize;
  thread.shared = shared;
  thread.dynamicShared = shared + grid.sharedVariables.getDynamicPlace();
  thread.sharedBytes = grid.sharedBytes;
  thread.dynamicSharedBytes = grid.dynamicSharedBytes;
  thread.cluster = &place;
  thread.block = this;
  thread.index = rank * size() + number;
  thread.variables.clear();
  thread.copies.clear();
}

void Block::prepare() {
  numThreads = getGrid().numThreads();
  shared = cluster.shared + rank * size_t{Cluster::kSpanBytes};
  uint32_t tid[3] = {};
  for (uint32_t number = 0; number < numThreads; ++number) {
    prepareThread(getThread(number), number, tid);
    for (int side = 0; side < 3 && ++tid[side] == getGrid().threads[side];
         ++side)
      tid[side] = 0;
  }
}

void Block::beginThread(Thread &thread) {
  std::copy_n(ctaid, 3, thread.ctaid);
  thread.hasEnded = thread.polls = thread.pollsInVain = false;
  thread.waitsFor = nullptr;
  // Launches of many short threads take much of their time here, and these are
  // empty where nothing is checked.
  if (isSanitized()) {
    thread.variables.clear();
    thread.copies.clear();
  }
  thread.fiber = nullptr;
  thread.exchangedPoison = 0;
  thread.numWgmmaFences = 0;
  thread.setPoison({});
}

void Block::begin(const uint32_t (&newPlace)[3]) {
  const Grid &grid = getGrid();
  std::copy_n(newPlace, 3, ctaid);
  live = numThreads;
  hasStartedDependents = false;
  place = {};
  for (int side = 0; side < 3; ++side) {
    uint32_t blocks = place.nctaid[side] = grid.cluster[side];
    place.clusterid[side] = ctaid[side];
    place.nclusterid[side] = grid.blocks[side];
    // Divisions are slow, and there is nothing to divide without clusters.
    if (blocks == 1)
      continue;
    place.ctaid[side] = ctaid[side] % blocks;
    place.clusterid[side] /= blocks;
    place.nclusterid[side] /= blocks;
  }
  place.rank = rank;
  place.numBlocks = cluster.numBlocks();
  place.shared = cluster.shared;
  auto thread = cluster.threads.begin() + rank * numThreads;
  for (uint32_t number = 0; number < numThreads; ++number)
    beginThread(*thread++);
  meter.begin(grid.module->isMetered, *this);
  barriers.begin();
  mbarriers.begin();
  warps.begin();
  tensorMemory.begin();
  warpgroups.begin();
  registers.begin();
}

void Block::end() {
  // Where nothing is checked, no thread has any.
  uint32_t numCopying = isSanitized() ? size() : 0;
  for (uint32_t number = 0; number < numCopying; ++number)
    if (Thread &thread = getThread(number); !thread.copies.isEmpty())
      thread.copies.end(thread);
  cluster.tensorQueue.end(*this);
  tensorMemory.end();
  warpgroups.end();
  registers.end();
  mbarriers.end();
  sanitizer.endBlock(*this);
  cluster.lifetime.checkEnd(*this);
}
