//===- TensorMemory.cpp - The tensor memory of a block --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorMemory.h"
#include "Block.h"
#include "Grid.h"

#include <algorithm>
#include <cstring>

using namespace mlir::kvcache::emulator;

/// The event for which warps wait that need more columns than are free.
struct TensorMemory::Freed : Waitable {
  explicit Freed(const TensorMemory &memory) : memory(memory) {}

  std::string describe() const override {
    uint32_t used = 0;
    for (const Allocation &allocation : memory.allocations)
      used += allocation.columns;
    std::string text = "columns of tensor memory, of which " +
                       std::to_string(used) + " of 512 are allocated";
    const Request *first =
        memory.requests.empty() ? nullptr : memory.requests.front().get();
    if (first && first->peer && first->peer->requests.empty())
      text += ", together with " + first->peer->block.describe() +
              ", none of whose warps has executed an allocation";
    return text;
  }

  const TensorMemory &memory;
};

TensorMemory::TensorMemory(Block &block)
    : block(block), freed(std::make_unique<Freed>(*this)) {}

TensorMemory::~TensorMemory() = default;

void TensorMemory::begin() {
  freed->waiters.clear();
  if (!isUsed())
    return;
  allocations.clear();
  requests.clear();
  numAllocs = lastColumns = 0;
  isRelinquished = false;
}

std::string TensorMemory::describe(uint32_t address) {
  return "lane " + std::to_string(address >> 16) + ", column " +
         std::to_string(address & 0xffff) + " of tensor memory";
}

std::string TensorMemory::describe(uint32_t address,
                                   const Thread &thread) const {
  std::string text = describe(address);
  return thread.block == &block ? text : text + " of " + block.describe();
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

bool TensorMemory::isFree(uint32_t first, uint32_t columns) const {
  return std::none_of(
      allocations.begin(), allocations.end(), [&](const Allocation &one) {
        return first < one.column + one.columns && one.column < first + columns;
      });
}

/// The last free columns, so that a kernel which assumes the first fails; where
/// a seed asks for it, any.
int64_t TensorMemory::findColumns(uint32_t columns,
                                  const TensorMemory &peer) const {
  std::vector<uint32_t> free;
  for (uint32_t first = 0; first < kColumns; first += columns)
    if (isFree(first, columns) && peer.isFree(first, columns))
      free.push_back(first);
  if (free.empty())
    return -1;
  if (!block.isSanitized())
    return free.front();
  return block.getGrid().seed ? free[block.getRandom()() % free.size()]
                              : free.back();
}

void TensorMemory::give(Request &request, uint32_t column) {
  allocations.push_back(
      {column, request.columns, &request.thread, request.site});
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    for (uint32_t i = 0; i < request.columns; ++i)
      // A NaN in every format of floats.
      at(lane, column + i) = {~0u, ~0u, 0, 0, false};
  uint32_t offset = block.getSharedOffset(request.thread, request.site,
                                          request.to, sizeof(column));
  block.sanitizer.access(request.thread, request.site, {offset, sizeof(column)},
                         KVCacheAccessWrite);
  std::memcpy(request.to, &column, sizeof(column));
  request.isDone = true;
  requests.pop_front();
  block.wake(*freed);
}

/// "tcgen05.alloc": the warps of a pair execute the same instruction.
void TensorMemory::checkEqual(const Request &request,
                              const Request &other) const {
  if (request.columns != other.columns)
    block.fail(request.thread, request.site,
               "allocates " + std::to_string(request.columns) +
                   " columns together with " + other.thread.block->describe() +
                   ", which allocates " + std::to_string(other.columns) +
                   " in " + Block::describe(other.site));
}

/// Serves the first request, if there are enough columns, and of a pair the
/// other block requests them too.
bool TensorMemory::serve(Request &request) {
  TensorMemory &peer = request.peer ? *request.peer : *this;
  if (peer.requests.empty())
    return false;
  std::shared_ptr<Request> other = peer.requests.front();
  checkEqual(request, *other);
  int64_t column = findColumns(request.columns, peer);
  if (column < 0)
    return false;
  give(request, column);
  if (&peer != this)
    peer.give(*other, column);
  return true;
}

void TensorMemory::serve() {
  while (!requests.empty()) {
    std::shared_ptr<Request> first = requests.front();
    if (!serve(*first))
      return;
  }
}

std::shared_ptr<TensorMemory::Request>
TensorMemory::allocate(Thread &thread, const KVCacheSite *site, void *to,
                       uint32_t columns, bool isOfPair) {
  checkColumns(thread, site, columns);
  block.checkAlignment(thread, site, to, sizeof(uint32_t));
  block.getSharedOffset(thread, site, to, sizeof(uint32_t));
  if (isRelinquished)
    block.fail(thread, site,
               "allocates tensor memory after the block has relinquished the "
               "right to (tcgen05.relinquish_alloc_permit)");
  if (numAllocs > 0 && columns > lastColumns)
    block.fail(thread, site,
               "allocates " + std::to_string(columns) +
                   " columns after an allocation of " +
                   std::to_string(lastColumns) +
                   ": the number must not grow from one to the next");
  reserve();
  ++numAllocs;
  lastColumns = columns;
  Block *peer = isOfPair ? &block.getPeer(thread, site) : nullptr;
  auto request = std::make_shared<Request>(
      Request{thread, site, to, columns, peer ? &peer->tensorMemory : nullptr});
  requests.push_back(request);
  serve();
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
               "deallocates " + std::to_string(columns) + " columns at " +
                   describe(address) + ", " +
                   (found == allocations.end()
                        ? "where no allocation begins"
                        : "where " + std::to_string(found->columns) +
                              " columns were allocated"));
  if (block.isSanitized()) {
    TensorOrder &order = block.cluster.tensorOrder;
    order.begin({site, TensorOp::Dealloc, thread.index,
                 order.issue(thread, TensorOp::Dealloc)});
    touch({0, address, kLanes, columns}, /*isWrite=*/true);
  }
  allocations.erase(found);
  serve();
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
          describe(region.lane << 16 | region.column, thread);
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
  TensorOrder &order = block.cluster.tensorOrder;
  for (uint32_t lane = region.lane; lane < region.lane + region.lanes; ++lane)
    for (uint32_t i = 0; i < region.columns; ++i) {
      TensorWord &word = at(lane, region.column + i);
      word.history =
          order.touch(word.history, isWrite, {&block, lane, region.column + i});
    }
}

//===----------------------------------------------------------------------===//
// The end of the block
//===----------------------------------------------------------------------===//

void TensorMemory::end() {
  if (!allocations.empty()) {
    const Allocation &first = allocations.front();
    block.fail(*first.thread, first.site,
               "leaves " + std::to_string(first.columns) +
                   " columns of tensor memory allocated when the block ends "
                   "(tcgen05.dealloc)");
  }
}
