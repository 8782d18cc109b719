//===- RowReads.cpp - Rows of matrices that warps read --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowReads.h"
#include "Sanitizer.h"

using namespace mlir::kvcache::emulator;

void RowReads::begin() {
  warps.clear();
  last.clear();
}

uint32_t RowReads::getNumber(uint32_t first) {
  Warp warp{first, {}, std::nullopt, std::nullopt};
  for (uint32_t lane = 0; lane < kWarpSize; ++lane)
    warp.clocks[lane] = order.getClock(first + lane);
  if (first >= last.size())
    last.resize(first + 1);
  std::optional<uint32_t> &number = last[first];
  if (number && warps[*number].clocks == warp.clocks)
    return *number;
  number = warps.size();
  warps.push_back(warp);
  return *number;
}

std::optional<Cell> RowReads::findUnknown(uint32_t thread, const Cell &cell,
                                          uint16_t mask) {
  Warp &warp = warps[cell.clock];
  if (warp.knownBy == thread)
    return std::nullopt;
  uint32_t width = getWidth(cell.row);
  for (uint32_t byte = 0; byte < kGranuleBytes; byte += width) {
    uint32_t bytes = ((1u << width) - 1) << byte & cell.mask & mask;
    uint32_t lane = getLane(cell.row, byte);
    if (!bytes || order.isAfter(thread, warp.first + lane, warp.clocks[lane]))
      continue;
    Cell laneCell = cell;
    laneCell.who = warp.first + lane;
    laneCell.clock = warp.clocks[lane];
    laneCell.mask = bytes;
    return laneCell;
  }
  bool isAfterAllReads = true;
  for (uint32_t lane = 0; lane < kWarpSize && isAfterAllReads; ++lane)
    isAfterAllReads =
        order.isAfter(thread, warp.first + lane, warp.clocks[lane]);
  if (isAfterAllReads)
    warp.knownBy = thread;
  return std::nullopt;
}

bool RowReads::isBeforeAll(const Cell &cell) const {
  const Warp &warp = warps[cell.clock];
  for (uint32_t lane = 0; lane < kWarpSize; ++lane)
    if (!order.isBeforeAll(warp.first + lane, warp.clocks[lane]))
      return false;
  return true;
}

bool RowReads::knowAll(uint32_t number, uint32_t row, const Order::End &end) {
  Warp &warp = warps[number];
  auto isSame = [&](const Order::End &other) {
    return other.event.who == end.event.who &&
           other.event.clock == end.event.clock && other.wait == end.wait;
  };
  if (warp.known && isSame(*warp.known))
    return true;
  for (uint32_t byte = 0; byte < kGranuleBytes; byte += getWidth(row))
    if (!order.isAfter(warp.first + getLane(row, byte), end))
      return false;
  for (uint32_t lane = 0; lane < kWarpSize; ++lane)
    if (!order.isAfter(warp.first + lane, end))
      return true;
  warp.known = end;
  return true;
}

//===----------------------------------------------------------------------===//
// The sanitizer
//===----------------------------------------------------------------------===//

/// Whether the lanes that read a row are ordered after all writes of it.
bool Sanitizer::isAfterWrites(const CellList &writes, uint32_t reads,
                              uint32_t row) const {
  return !writes.find(0xffff, [&](const Cell &cell) {
    Order::End end{{cell.who, cell.clock}};
    if (cell.isCopy()) {
      if (copies[cell.clock].isInFlight)
        return true;
      end = copies[cell.clock].end;
    }
    return !rowReads.knowAll(reads, row, end);
  });
}

bool Sanitizer::readRow(const Thread &first, uint32_t reads,
                        const KVCacheSite *site, uint32_t offset,
                        uint32_t row) {
  constexpr uint16_t all = 0xffff;
  Access access{first,
                site,
                offset,
                kGranuleBytes,
                Kind::Read,
                /*reads=*/true,
                /*isAsync=*/false,
                std::nullopt};
  uint32_t index = offset / kGranuleBytes;
  Granule &granule = getGranule(index);
  compact(access, granule);
  if (granule.initialized != all || granule.barrier ||
      !granule.atomics.isEmpty() || !isAfterWrites(granule.writes, reads, row))
    return false;
  Cell cell{};
  cell.clock = reads;
  cell.who = Cell::kLanes;
  cell.mask = all;
  cell.site = reinterpret_cast<uintptr_t>(site);
  cell.row = row;
  access.lanesCell = cell;
  note(access, granule, all);
  return true;
}
