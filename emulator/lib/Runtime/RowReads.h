//===- RowReads.h - Rows of matrices that warps read ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_RUNTIME_ROWREADS_H
#define KVCACHE_LIB_EMULATOR_RUNTIME_ROWREADS_H

#include "Order.h"
#include "Shadow.h"
#include "Thread.h"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace mlir::kvcache::emulator {

/// Reads of rows of matrices by all lanes of a warp (ldmatrix). A row is a
/// granule, of which four lanes have four bytes each, or of a transposed matrix
/// eight lanes two bytes. One cell stands for all of them: it has the number of
/// the warp's clocks, and the row.
class RowReads {
public:
  explicit RowReads(const Order &order) : order(order) {}

  void begin();

  /// How rows have lanes: the row in its matrix of 8, and whether that is
  /// transposed.
  static uint32_t encode(uint32_t row, bool isTransposed) {
    return row % kRows | (isTransposed ? kTransposed : 0);
  }

  /// The number of what the lanes of a warp are about to read, which `first` is
  /// the first thread of.
  uint32_t getNumber(uint32_t first);
  uint32_t getFirst(uint32_t number) const { return warps[number].first; }

  /// The cell of a lane that has read some of these bytes, and that the thread
  /// is not ordered after, or nothing.
  std::optional<Cell> findUnknown(uint32_t thread, const Cell &cell,
                                  uint16_t mask);
  /// Whether all threads are ordered after the reads.
  bool isBeforeAll(const Cell &cell) const;
  /// Whether threads ordered after the later cell of two are ordered after the
  /// other one.
  bool isSameWarp(const Cell &cell, const Cell &later) const {
    return cell.row == later.row &&
           warps[cell.clock].first == warps[later.clock].first;
  }
  /// Whether all lanes that read the row are ordered after a write at its end.
  bool knowAll(uint32_t number, uint32_t row, const Order::End &end);

private:
  static constexpr uint32_t kRows = 8, kTransposed = 8;

  struct Warp {
    uint32_t first;
    std::array<uint32_t, kWarpSize> clocks;
    /// A thread that is ordered after all of these, and a write that all
    /// lanes are ordered after.
    std::optional<uint32_t> knownBy;
    std::optional<Order::End> known;
  };

  /// The lane that has a byte of a row.
  static uint32_t getLane(uint32_t row, uint32_t byte) {
    return row & kTransposed ? byte / 2 * 4 + row % kRows / 2
                             : row * 4 + byte / 4;
  }
  static uint32_t getWidth(uint32_t row) { return row & kTransposed ? 2 : 4; }

  const Order &order;
  std::vector<Warp> warps;
  /// By the number of a warp in the cluster: the last one, or none.
  std::vector<std::optional<uint32_t>> last;
};

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_ROWREADS_H
