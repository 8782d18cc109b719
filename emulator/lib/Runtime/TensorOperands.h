//===- TensorOperands.h - Matrices of tcgen05 -------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_RUNTIME_TENSOROPERANDS_H
#define KVCACHE_LIB_EMULATOR_RUNTIME_TENSOROPERANDS_H

#include "Sanitizer.h"
#include "TensorInstruction.h"
#include "kvcache/TMA/MatrixDescriptor.h"

#include <array>
#include <cstdint>
#include <vector>

namespace mlir::kvcache::emulator {

class Block;
struct Thread;

/// A matrix in the shared memory of a block, which tcgen05 finds by a
/// descriptor: of M or N rows of K, or of rows to copy.
struct SharedMatrix {
  static constexpr uint32_t kUnitBytes = tma::MatrixDescriptor::kUnitBytes;

  Block *block = nullptr;
  TensorElement element;
  bool isTransposed = false, isNegated = false;
  uint32_t rows = 0, rowBytes = kTensorRowBytes;

  /// Where its units of 16 bytes are in the shared memory of the cluster: line
  /// by line, of rows, or of columns if it is transposed.
  std::vector<uint32_t> units;
  /// For each granule, a bit for each uninitialized byte; empty if there are
  /// none. And the origin of the poison.
  std::vector<uint16_t> unwritten;
  uint32_t origin = 0;

  /// Finds the units. Fails as an error of the thread for a descriptor of
  /// another matrix, or one that leaves its array.
  void locate(const Thread &thread, const KVCacheSite *site,
              const char *operand, uint64_t descriptor);
  /// The thread is going to read the matrix, by the asynchronous proxy.
  Sanitizer::Copy issueRead(Thread &thread, const KVCacheSite *site);

  const char *getUnit(size_t unit) const;
  int64_t countBytes() const {
    return static_cast<int64_t>(units.size()) * kUnitBytes;
  }
  uint32_t countUnitsOfLine() const {
    return (getLineBytes() + kUnitBytes - 1) / kUnitBytes;
  }

private:
  uint32_t getLineBytes() const {
    return isTransposed ? rows * element.bits / 8 : rowBytes;
  }
  uint32_t countLines() const { return isTransposed ? element.countK() : rows; }
};

/// A matrix as numbers: of each row those along K, and the origin of its
/// poison, or 0.
struct TensorFactor {
  std::vector<std::array<double, kMostTensorK>> numbers;
  std::vector<uint32_t> origins;

  explicit TensorFactor(uint32_t rows) : numbers(rows), origins(rows) {}

  /// The elements of a matrix, as rows from `first` on.
  void read(const SharedMatrix &matrix, uint32_t first = 0);
};

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_TENSOROPERANDS_H
