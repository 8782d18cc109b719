//===- Shadow.cpp - The last accesses of shared memory --------------------===//
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
    std::fill_n(cells, capacity, Cell{0, Cell::kFree, 0, 0, 0});
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
