//===- Shadow.cpp - The last accesses of memory by a block ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Shadow.h"

#include <algorithm>

using namespace mlir::kvcache::emulator;

static uint32_t getLog(uint32_t capacity) { return __builtin_ctz(capacity); }

void CellPool::reset() {
  numUsedChunks = 0;
  numUsedCells = kChunkCells;
  large.clear();
  for (std::vector<Cell *> &arrays : free)
    arrays.clear();
}

Cell *CellPool::take(uint32_t capacity) {
  std::vector<Cell *> &arrays = free[getLog(capacity)];
  if (!arrays.empty()) {
    Cell *cells = arrays.back();
    arrays.pop_back();
    return cells;
  }
  if (capacity > kChunkCells) {
    large.push_back(std::make_unique<Cell[]>(capacity));
    return large.back().get();
  }
  if (numUsedCells + capacity > kChunkCells) {
    if (numUsedChunks == chunks.size())
      chunks.push_back(std::make_unique<Cell[]>(kChunkCells));
    ++numUsedChunks;
    numUsedCells = 0;
  }
  Cell *cells = &chunks[numUsedChunks - 1][numUsedCells];
  numUsedCells += capacity;
  return cells;
}

void CellPool::giveBack(Cell *cells, uint32_t capacity) {
  free[getLog(capacity)].push_back(cells);
}

void CellList::allocate(uint32_t numCells, CellPool &pool) {
  capacity = numCells <= kSmall / 2 ? kSmall / 2 : kSmall;
  while (numCells > kSmall && capacity < 3 * numCells)
    capacity *= 2;
  cells = pool.take(capacity);
  size = 0;
  if (isTable())
    std::fill_n(cells, capacity, Cell{0, Cell::kFree, 0, 0, 0, 0, 0, 0, 0});
}

void CellList::insert(const Cell &cell) {
  uint32_t i = size;
  if (isTable())
    for (i = getHome(cell); cells[i].who != Cell::kFree;
         i = (i + 1) & (capacity - 1))
      ;
  cells[i] = cell;
  ++size;
}

//===----------------------------------------------------------------------===//
// Granules of global memory
//===----------------------------------------------------------------------===//

void GranuleTable::reset() {
  ++run;
  numPages = 0;
  last = nullptr;
}

/// Where the page of a number is, or may be put.
size_t GranuleTable::getSlot(uint64_t number) const {
  size_t mask = slots.size() - 1;
  size_t i = (number * 0x9e3779b97f4a7c15u >> 32) & mask;
  while (slots[i].run == run && slots[i].number != number)
    i = (i + 1) & mask;
  return i;
}

const Granule *GranuleTable::find(uint64_t index) const {
  if (slots.empty())
    return nullptr;
  const Slot &slot = slots[getSlot(index / kPageGranules)];
  return slot.run == run ? &pages[slot.place]->granules[index % kPageGranules]
                         : nullptr;
}

void GranuleTable::grow() {
  constexpr size_t least = 256;
  slots.assign(std::max(least, 2 * slots.size()), {0, 0, run - 1});
  for (size_t place = 0; place < numPages; ++place) {
    uint64_t number = pages[place]->number;
    slots[getSlot(number)] = {number, static_cast<uint32_t>(place), run};
  }
}

GranuleTable::Page &GranuleTable::lookup(uint64_t number) {
  if (2 * numPages >= slots.size())
    grow();
  Slot &slot = slots[getSlot(number)];
  if (slot.run == run)
    return *pages[slot.place];
  if (numPages == pages.size())
    pages.push_back(std::make_unique<Page>());
  slot = {number, static_cast<uint32_t>(numPages), run};
  Page &page = *pages[numPages++];
  page.number = number;
  return page;
}
