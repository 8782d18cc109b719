//===- HostMmaBuilder.h - Products of a panel of rows -----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_HOSTMMABUILDER_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_HOSTMMABUILDER_H

#include "RowLanes.h"

namespace mlir::kvcache {

/// Builds the matrix instructions of a CPU: `acc += lhs * rhs`, where a row of
/// `rhs` and of `acc` is a vector of rows of attention.
///
/// | kind | rows of lhs | depth           | lhs              | rhs            |
/// | ---- | ----------- | --------------- | ---------------- | -------------- |
/// | fma  | 1           | an f32          | a broadcast f32  | a vector       |
/// | dot  | 1           | a pair of bf16  | a broadcast pair | a vector       |
/// | amx  | 16          | 16 pairs        | a tile           | a tile         |
class HostMmaBuilder {
public:
  HostMmaBuilder(const Frame &frame, HostMma kind)
      : frame(frame), lanes(frame), kind(kind) {}

  /// Rows of `lhs`, and its columns, of one instruction.
  int64_t getRows() const { return kind == HostMma::AMX ? kLanes : 1; }
  int64_t getDepth() const { return kind == HostMma::AMX ? kLanes : 1; }
  /// Instructions along `lhs`, at most, for so many along `rhs`, and the most
  /// of those, whose accumulators are in registers at once: 32 or 16 vectors,
  /// or 8 tiles.
  int64_t getMostRows(int64_t vectors) const;
  int64_t getMostVectors() const;

  /// Loads `lhs` from these indices on. Only tiles need its rows to be rows of
  /// memory.
  Value loadLhs(Value memory, ValueRange indices) const;
  /// Loads `rhs` and `acc` from row `row` of a vector of rows on.
  Value loadRhs(Value memory, Value vector, Value row) const;
  Value loadAcc(Value memory, Value vector, Value row) const;
  Value getZero() const;
  void storeAcc(Value acc, Value memory, Value vector, Value row) const;
  Value multiply(Value lhs, Value rhs, Value acc) const;

private:
  Value loadTile(Type element, Value memory, ValueRange indices) const;

  const Frame &frame;
  LaneBuilder lanes;
  HostMma kind;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_HOSTMMABUILDER_H
