//===- TensorMemory.cpp - The tensor memory of a block -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorMemory.h"
#include "Block.h"
#include "Grid.h"
#include "MBarrier.h"

#include <algorithm>
#include <cstring>

using namespace mlir::kvcache::emulator;

/// What warps wait for that want more columns than there are.
struct TensorMemory::Freed : Waitable {
  explicit Freed(const TensorMemory &memory) : memory(memory) {}

  std::string describe() const override {
    uint32_t used = 0;
    for (const Allocation &allocation : memory.allocations)
      used += allocation.columns;
    return "columns of tensor memory, of which " + std::to_string(used) +
           " of 512 are allocated";
  }

  const TensorMemory &memory;
};

TensorMemory::TensorMemory(Block &block)
    : order(block), block(block), freed(std::make_unique<Freed>(*this)) {}

TensorMemory::~TensorMemory() = default;

void TensorMemory::begin() {
  order.begin();
  freed->waiters.clear();
  commits.clear();
  if (!isUsed())
    return;
  allocations.clear();
  requests.clear();
  numAllocs = lastColumns = 0;
  isRelinquished = false;
  inFlight.clear();
  happened.clear();
  ends.clear();
}

std::string TensorMemory::describe(uint32_t address) {
  return "lane " + std::to_string(address >> 16) + ", column " +
         std::to_string(address & 0xffff) + " of tensor memory";
}

//===----------------------------------------------------------------------===//
// Allocation
//===----------------------------------------------------------------------===//

void TensorMemory::reserve() {
  if (!words)
    words = std::make_unique<TensorWord[]>(kLanes * kColumns);
}

void TensorMemory::checkColumns(const Thread &thread, const KVCacheSite *site,
                                uint32_t columns) const {
  constexpr uint32_t least = 32;
  if (columns < least || columns > kColumns || (columns & (columns - 1)))
    block.fail(thread, site,
               "expects the number of columns to be a power of two from 32 to "
               "512, got " +
                   std::to_string(columns));
}

/// The last free columns, so that a kernel which assumes the first fails; where
/// a seed asks for it, any.
int64_t TensorMemory::findColumns(uint32_t columns) const {
  std::vector<uint32_t> free;
  for (uint32_t first = 0; first < kColumns; first += columns)
    if (std::none_of(allocations.begin(), allocations.end(),
                     [&](const Allocation &one) {
                       return first < one.column + one.columns &&
                              one.column < first + columns;
                     }))
      free.push_back(first);
  if (free.empty())
    return -1;
  if (!block.isSanitized())
    return free.front();
  return block.getGrid().seed ? free[block.getRandom()() % free.size()]
                              : free.back();
}

bool TensorMemory::tryAllocate(Request &request) {
  int64_t column = findColumns(request.columns);
  if (column < 0)
    return false;
  uint32_t address = column;
  allocations.push_back(
      {address, request.columns, &request.thread, request.site});
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    for (uint32_t i = 0; i < request.columns; ++i)
      // A NaN in every format of floats.
      at(lane, address + i) = {~0u, ~0u, 0, 0, false};
  uint32_t offset = block.getSharedOffset(request.thread, request.site,
                                          request.to, sizeof(address));
  block.sanitizer.access(request.thread, request.site,
                         {offset, sizeof(address)}, KVCacheAccessWrite);
  std::memcpy(request.to, &address, sizeof(address));
  request.isDone = true;
  return true;
}

std::shared_ptr<TensorMemory::Request>
TensorMemory::allocate(Thread &thread, const KVCacheSite *site, void *to,
                       uint32_t columns) {
  checkColumns(thread, site, columns);
  block.checkAlignment(thread, site, to, sizeof(uint32_t));
  block.getSharedOffset(thread, site, to, sizeof(uint32_t));
  if (isRelinquished)
    block.fail(thread, site,
               "allocates tensor memory after the block has given up the right "
               "to (tcgen05.relinquish_alloc_permit)");
  if (numAllocs > 0 && columns > lastColumns)
    block.fail(thread, site,
               "allocates " + std::to_string(columns) +
                   " columns behind an allocation of " +
                   std::to_string(lastColumns) +
                   ": the number must not grow from one to the next");
  reserve();
  ++numAllocs;
  lastColumns = columns;
  auto request = std::make_shared<Request>(Request{thread, site, to, columns});
  if (!requests.empty() || !tryAllocate(*request))
    requests.push_back(request);
  return request;
}

void TensorMemory::wait(Thread &thread, const KVCacheSite *site,
                        const Request &request) {
  while (!request.isDone)
    block.wait(thread, site, *freed);
}

const TensorMemory::Allocation *
TensorMemory::findAllocation(uint32_t column) const {
  auto found = std::find_if(
      allocations.begin(), allocations.end(),
      [&](const Allocation &one) { return column - one.column < one.columns; });
  return found == allocations.end() ? nullptr : &*found;
}

void TensorMemory::deallocate(Thread &thread, const KVCacheSite *site,
                              uint32_t address, uint32_t columns) {
  checkColumns(thread, site, columns);
  auto found = std::find_if(
      allocations.begin(), allocations.end(),
      [&](const Allocation &one) { return one.column == address; });
  if (found == allocations.end() || found->columns != columns)
    block.fail(thread, site,
               "gives back " + std::to_string(columns) + " columns at " +
                   describe(address) + ", " +
                   (found == allocations.end()
                        ? "where no allocation begins"
                        : "where " + std::to_string(found->columns) +
                              " columns were allocated"));
  if (block.isSanitized()) {
    order.begin({site, TensorOp::Dealloc, block.getNumber(thread),
                 order.issue(thread, TensorOp::Dealloc)});
    touch({0, address, kLanes, columns}, /*isWrite=*/true);
  }
  allocations.erase(found);
  while (!requests.empty() && tryAllocate(*requests.front()))
    requests.pop_front();
  block.wake(*freed);
}

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

const TensorWord &TensorMemory::read(const KVCacheSite *site, uint32_t lane,
                                     uint32_t column) {
  TensorWord &word = at(lane, column);
  if (!word.isWritten && block.isSanitized())
    word.origin = block.sanitizer.addTensorOrigin(site, lane << 16 | column);
  return word;
}

void TensorMemory::write(uint32_t lane, uint32_t column, uint32_t value,
                         uint32_t poison, uint32_t origin) {
  TensorWord &word = at(lane, column);
  word.value = value;
  word.poison = origin ? poison : 0;
  word.origin = origin;
  word.isWritten = true;
}

void TensorMemory::check(const Thread &thread, const KVCacheSite *site,
                         const TensorRegion &region) const {
  std::string what = "accesses ";
  what += std::to_string(region.columns) +
          (region.columns == 1 ? " column of " : " columns of ") +
          std::to_string(region.lanes) +
          (region.lanes == 1 ? " lane at " : " lanes at ") +
          describe(region.lane << 16 | region.column);
  if (region.lane + region.lanes > kLanes ||
      region.column + region.columns > kColumns)
    block.fail(thread, site, what + ", which has 128 lanes of 512 columns");
  for (uint32_t i = 0; i < region.columns;) {
    const Allocation *allocation = findAllocation(region.column + i);
    if (!allocation)
      block.fail(thread, site,
                 what + ", of which column " +
                     std::to_string(region.column + i) + " is not allocated");
    i = allocation->column + allocation->columns - region.column;
  }
}

void TensorMemory::touch(const TensorRegion &region, bool isWrite) {
  if (!block.isSanitized())
    return;
  for (uint32_t lane = region.lane; lane < region.lane + region.lanes; ++lane)
    for (uint32_t i = 0; i < region.columns; ++i) {
      TensorWord &word = at(lane, region.column + i);
      word.history =
          order.touch(word.history, isWrite, lane, region.column + i);
    }
}

//===----------------------------------------------------------------------===//
// What is in flight
//===----------------------------------------------------------------------===//

void TensorMemory::issue(Thread &thread, const KVCacheSite *site,
                         uint32_t number, std::vector<Sanitizer::Copy> reads,
                         std::function<void()> work) {
  block.noteProgress();
  if (!block.isSanitized())
    return work();
  inFlight.push_back(
      {&thread, site, number, std::move(reads), std::move(work)});
}

void TensorMemory::commit(Thread &thread, const KVCacheSite *site,
                          MBarrier &barrier) {
  if (!block.isSanitized())
    return barrier.arriveByCopies(thread, site);
  barrier.beginCopy(thread, site, 0);
  auto commit = std::make_shared<Commit>(Commit{&barrier, &thread, site,
                                                order.commit(thread),
                                                numHappened + inFlight.size()});
  commits.push_back(commit);
  block.defer(barrier, [this, commit] { deliver(*commit); });
}

void TensorMemory::deliver(Commit &commit) {
  for (; numHappened < commit.numIssued; ++numHappened) {
    inFlight.front().work();
    inFlight.front().work = nullptr;
    happened.push_back(std::move(inFlight.front()));
    inFlight.pop_front();
  }
  Sanitizer &sanitizer = block.sanitizer;
  Knowledge &knowledge = commit.barrier->getKnowledge();
  Order::End end = sanitizer.completeCommit(knowledge);
  ends.resize(block.size());
  Clocks &known = ends[block.getNumber(*commit.thread)];
  auto isDone = [&](const InFlight &one) {
    if (one.thread != commit.thread || one.number > commit.known.others)
      return false;
    for (Sanitizer::Copy read : one.reads)
      sanitizer.complete(read, end);
    return true;
  };
  happened.erase(std::remove_if(happened.begin(), happened.end(), isDone),
                 happened.end());
  sanitizer.releaseCopies(known, knowledge);
  known.raise(end.event.who, end.event.clock);
  order.complete(commit.known, end.event);
  commit.isDone = true;
  commits.erase(std::find_if(commits.begin(), commits.end(),
                             [&](const std::shared_ptr<Commit> &one) {
                               return one.get() == &commit;
                             }));
  MBarrier &barrier = *commit.barrier;
  barrier.endCopy(*commit.thread, commit.site, 0);
  barrier.arriveByCopies(*commit.thread, commit.site);
}

/// Commits that nobody waits for are no error where others tell of the same.
void TensorMemory::end() {
  for (const InFlight *one : {happened.empty() ? nullptr : &happened.front(),
                              inFlight.empty() ? nullptr : &inFlight.front()})
    if (one)
      block.fail(*one->thread, one->site,
                 "is in flight when the block ends: nobody has waited for a "
                 "commit of the thread behind it (tcgen05.commit)");
  for (const std::shared_ptr<Commit> &commit : commits)
    commit->barrier->endCopy(*commit->thread, commit->site, 0);
  if (!allocations.empty()) {
    const Allocation &first = allocations.front();
    block.fail(*first.thread, first.site,
               "has allocated " + std::to_string(first.columns) +
                   " columns of tensor memory that nobody has given back when "
                   "the block ends (tcgen05.dealloc)");
  }
}
