//===- Shadow.h - The last accesses of memory by a block --------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_RUNTIME_SHADOW_H
#define KVCACHE_LIB_EMULATOR_RUNTIME_SHADOW_H

#include "kvcache/Emulator/ABI.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace mlir::kvcache::emulator {

/// The bytes that one granule of the shadow stands for: one bit of a mask each.
inline constexpr uint32_t kGranuleBytes = 16;

/// An access of some bytes of a granule that others may have to be ordered
/// with.
struct Cell {
  /// The clock of `who` at that time. For a copy, its number.
  uint32_t clock;
  /// The thread, `kCopy` or `kFree`.
  uint16_t who;
  /// The bytes; 0 if later accesses have taken the place of all.
  uint16_t mask;
  /// Where, with the 48 bits that addresses of a process have at most; null for
  /// a copy.
  uint64_t site : 48;
  /// Whether it writes; whether it is atomic for all of the device.
  uint64_t isWrite : 1;
  uint64_t isOfDevice : 1;
  /// Whether it is atomic only in that it is volatile.
  uint64_t isVolatile : 1;
  /// Whether it is atomic for all of the cluster, which has other blocks.
  uint64_t isOfCluster : 1;
  /// The row of a matrix that lanes read.
  uint64_t row : 4;

  /// A copy; a place of a table where no cell has ever been; the lanes of a
  /// warp (`RowReads`), whose number is the clock.
  static constexpr uint16_t kCopy = 0xffff, kFree = 0xfffe, kLanes = 0xfffd;

  bool isCopy() const { return who == kCopy; }
  bool isOfLanes() const { return who == kLanes; }
  const KVCacheSite *getSite() const {
    return reinterpret_cast<const KVCacheSite *>(static_cast<uintptr_t>(site));
  }
};

/// Calls `visit` with the index of each granule of a range and the mask of its
/// bytes.
template <typename Visitor>
void forEachGranule(uint64_t begin, uint64_t bytes, Visitor visit) {
  for (uint64_t end = begin + bytes; begin < end;) {
    uint64_t index = begin / kGranuleBytes;
    uint32_t first = begin % kGranuleBytes;
    uint32_t last =
        std::min<uint64_t>(end - index * kGranuleBytes, kGranuleBytes);
    visit(index, static_cast<uint16_t>((1u << last) - (1u << first)));
    begin = (index + 1) * kGranuleBytes;
  }
}

/// Gives arrays of cells, of powers of two, which all end together.
class CellPool {
public:
  void reset();
  Cell *take(uint32_t capacity);
  void giveBack(Cell *cells, uint32_t capacity);

private:
  static constexpr size_t kChunkCells = 1 << 14;

  std::vector<std::unique_ptr<Cell[]>> chunks;
  /// Arrays of more cells than a chunk has.
  std::vector<std::unique_ptr<Cell[]>> large;
  size_t numUsedChunks = 0, numUsedCells = kChunkCells;
  /// By the logarithm of the capacity.
  std::vector<Cell *> free[32];
};

/// Cells of one kind. Few are an array; many, as when all threads of a block
/// read the same, are a hash table by who accessed.
///
/// `Rules` are an access that is added or takes the place of cells, with
///   bool replaces(const Cell &cell)   whether order after the access implies
///                                     order after the cell
///   bool isObsolete(const Cell &cell) whether all threads are ordered after it
///   void forget(const Cell &cell)     it is dropped
class CellList {
public:
  bool isEmpty() const { return size == 0; }

  /// A cell with some of the bytes that is `wanted`, or null.
  template <typename Predicate>
  const Cell *find(uint16_t mask, Predicate wanted) const {
    for (uint32_t i = 0, e = getEnd(); i < e; ++i)
      if ((cells[i].mask & mask) && wanted(cells[i]))
        return &cells[i];
    return nullptr;
  }

  /// Calls `visit` with each cell.
  template <typename Visitor> void forEach(Visitor visit) const {
    for (uint32_t i = 0, e = getEnd(); i < e; ++i)
      if (cells[i].mask)
        visit(cells[i]);
  }

  template <typename Rules> void add(Cell cell, CellPool &pool, Rules &rules);

  /// Takes the bytes away from all cells.
  template <typename Rules>
  void strip(uint16_t mask, CellPool &pool, Rules &rules);

  /// Drops what is obsolete from a table, which takes long to look through.
  template <typename Rules> void compact(CellPool &pool, Rules &rules) {
    if (isTable())
      reserve(Cell{}, pool, rules);
  }

private:
  /// Up to this capacity the cells are an array.
  static constexpr uint32_t kSmall = 8;

  bool isTable() const { return capacity > kSmall; }
  uint32_t getEnd() const { return isTable() ? capacity : size; }
  bool isFull() const {
    return isTable() ? size + size / 2 >= capacity : size == capacity;
  }
  /// Threads have numbers in a row, which must not be neighbours here: who
  /// looks for the cells of one goes on to the next free place.
  uint32_t getHome(const Cell &cell) const {
    uint32_t key = cell.isCopy() ? cell.clock : cell.who;
    return (key * 0x9e3779b1u >> 8) & (capacity - 1);
  }

  template <typename Rules>
  static void stripFor(Cell &old, Cell &added, Rules &rules);
  template <typename Rules> void stripArray(Cell &added, Rules &rules);
  template <typename Rules> Cell *stripTable(Cell &added, Rules &rules);
  template <typename Rules>
  void reserve(const Cell &added, CellPool &pool, Rules &rules);
  void allocate(uint32_t numCells, CellPool &pool);
  void insert(const Cell &cell);

  Cell *cells = nullptr;
  /// In a table, with the cells that have no bytes left.
  uint32_t size = 0, capacity = 0;
};

/// The state of the bytes of a granule.
struct Granule {
  /// The block that this is about: for others it is as if it were new.
  uint32_t run = 0;
  /// Barriers of the whole block when the tables were compacted last.
  uint32_t numBarriers = 0;
  /// The initialized bytes, and those of mbarriers.
  uint16_t initialized = 0, barrier = 0;
  CellList reads, writes, atomics;
};

/// Granules by their place in the address space, in the order in which a block
/// has touched them.
class GranuleTable {
public:
  /// Granules that are neighbours.
  static constexpr uint32_t kPageGranules = 16;
  struct Page {
    uint64_t number;
    Granule granules[kPageGranules];
  };

  /// Forgets all. Their granules may still hold what is of earlier runs.
  void reset();
  Granule &get(uint64_t index) {
    return getPageOf(index).granules[index % kPageGranules];
  }
  /// Null where nothing has been touched.
  const Granule *find(uint64_t index) const;

  size_t size() const { return numPages; }
  const Page &getPage(size_t place) const { return *pages[place]; }

private:
  struct Slot {
    uint64_t number;
    uint32_t place, run;
  };

  Page &getPageOf(uint64_t index) {
    uint64_t number = index / kPageGranules;
    if (last && last->number == number)
      return *last;
    return *(last = &lookup(number));
  }
  Page &lookup(uint64_t number);
  size_t getSlot(uint64_t number) const;
  void grow();

  std::vector<std::unique_ptr<Page>> pages;
  size_t numPages = 0;
  std::vector<Slot> slots;
  uint32_t run = 0;
  Page *last = nullptr;
};

//===----------------------------------------------------------------------===//
// Lists of cells
//===----------------------------------------------------------------------===//

/// Takes the bytes away from an old cell that the new one stands for as well.
template <typename Rules>
void CellList::stripFor(Cell &old, Cell &added, Rules &rules) {
  if (old.who == added.who && old.clock == added.clock &&
      old.site == added.site && old.isWrite == added.isWrite &&
      old.isOfDevice == added.isOfDevice &&
      old.isOfCluster == added.isOfCluster && old.row == added.row) {
    added.mask |= old.mask;
    old.mask = 0;
  } else if ((old.mask & added.mask) && rules.replaces(old)) {
    old.mask &= ~added.mask;
    if (!old.mask)
      rules.forget(old);
  }
}

template <typename Rules> void CellList::stripArray(Cell &added, Rules &rules) {
  for (uint32_t i = 0; i < size;) {
    stripFor(cells[i], added, rules);
    if (cells[i].mask)
      ++i;
    else
      cells[i] = cells[--size];
  }
}

/// Looks at the cells of who accesses only. Returns a place for the new one
/// where an old one was, or null.
template <typename Rules>
Cell *CellList::stripTable(Cell &added, Rules &rules) {
  Cell *place = nullptr;
  for (uint32_t i = getHome(added); cells[i].who != Cell::kFree;
       i = (i + 1) & (capacity - 1)) {
    if (cells[i].mask && cells[i].who == added.who)
      stripFor(cells[i], added, rules);
    if (!cells[i].mask && !place)
      place = &cells[i];
  }
  return place;
}

/// Makes room. Cells that don't matter any more go first.
template <typename Rules>
void CellList::reserve(const Cell &added, CellPool &pool, Rules &rules) {
  Cell *oldCells = cells;
  uint32_t oldEnd = getEnd(), oldCapacity = capacity, numLeft = 0;
  for (uint32_t i = 0; i < oldEnd; ++i) {
    Cell &cell = oldCells[i];
    if (!cell.mask)
      continue;
    bool isAfter = !(cell.mask & ~added.mask) && rules.replaces(cell);
    if (isAfter || rules.isObsolete(cell)) {
      rules.forget(cell);
      cell.mask = 0;
      continue;
    }
    ++numLeft;
  }
  allocate(numLeft + 1, pool);
  for (uint32_t i = 0; i < oldEnd; ++i)
    if (oldCells[i].mask)
      insert(oldCells[i]);
  if (oldCells)
    pool.giveBack(oldCells, oldCapacity);
}

template <typename Rules>
void CellList::add(Cell cell, CellPool &pool, Rules &rules) {
  Cell *place = nullptr;
  if (isTable())
    place = stripTable(cell, rules);
  else
    stripArray(cell, rules);
  if (place) {
    *place = cell;
    return;
  }
  if (isFull())
    reserve(cell, pool, rules);
  insert(cell);
}

template <typename Rules>
void CellList::strip(uint16_t mask, CellPool &pool, Rules &rules) {
  if (isEmpty())
    return;
  uint32_t numLeft = 0;
  for (uint32_t i = 0; i < getEnd();) {
    Cell &cell = cells[i];
    bool wasLive = cell.mask != 0;
    cell.mask &= ~mask;
    if (wasLive && !cell.mask)
      rules.forget(cell);
    numLeft += cell.mask != 0;
    if (cell.mask || isTable())
      ++i;
    else
      cell = cells[--size];
  }
  if (numLeft > 0)
    return;
  pool.giveBack(cells, capacity);
  *this = {};
}

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_SHADOW_H
