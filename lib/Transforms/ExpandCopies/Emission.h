//===- Emission.h - What copies into tiles are made of ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_EXPANDCOPIES_EMISSION_H
#define KVCACHE_LIB_TRANSFORMS_EXPANDCOPIES_EMISSION_H

#include "Choice.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"

namespace mlir::kvcache {

/// Builds index arithmetic at a place.
class IndexBuilder {
public:
  IndexBuilder(OpBuilder &builder, Location loc) : builder(builder), loc(loc) {}

  Value index(int64_t value) const;
  Value i32(int64_t value) const;
  Value add(Value lhs, Value rhs) const;
  Value sub(Value lhs, Value rhs) const;
  Value mul(Value lhs, Value rhs) const;
  Value div(Value lhs, Value rhs) const;
  Value rem(Value lhs, Value rhs) const;
  Value min(Value lhs, Value rhs) const;
  Value max(Value lhs, Value rhs) const;
  Value equal(Value lhs, Value rhs) const;
  /// Unsigned.
  Value below(Value lhs, Value rhs) const;
  /// Signed.
  Value less(Value lhs, Value rhs) const;
  Value toI32(Value value) const;

  /// `then()` where the condition holds, else `otherwise()`: of one type.
  Value selectIf(Value condition, function_ref<Value()> then,
                 function_ref<Value()> otherwise) const;
  /// Runs `body` where the condition holds.
  void runIf(Value condition, function_ref<void()> body) const;
  /// Runs `body` with each of `first, first + step, …` below `end`.
  void loop(Value first, Value end, Value step,
            function_ref<void(Value)> body) const;

  OpBuilder &builder;
  Location loc;
};

/// The threads that take part in something: number `thread` of `count`.
struct Threads {
  Value thread, count;
};

/// The lanes that together issue tensor copies: one of them does it, but all
/// compute where the copies are from.
struct Issuer {
  /// 32, or 1 in a block of fewer threads.
  int64_t numLanes;
  /// This lane, and whether it issues.
  Value lane, isElected;
};

/// The threads of a block, as code in it sees them.
class BlockBuilder : public IndexBuilder {
public:
  BlockBuilder(OpBuilder &builder, Location loc) : IndexBuilder(builder, loc) {}

  /// The threads in a warp.
  static constexpr int64_t kWarp = 32;

  /// All threads, x fastest; on the CPU the one that there is.
  Threads getAll() const;
  /// The threads of the block, if they are known to be so many.
  static std::optional<int64_t> getKnownSize(Operation *op);

  /// Runs `body` in the first warp, with its lanes.
  void runInFirstWarp(function_ref<void(Threads lanes)> body) const;
  /// Runs `body` in the lanes that issue copies.
  void runInIssuer(function_ref<void(const Issuer &issuer)> body) const;

private:
  Value isFirstWarp() const;
};

/// An mbarrier of a group.
struct Barrier {
  TypedValue<nvgpu::MBarrierGroupType> group;
  Value index;
};

/// Waits until the phase of this parity, an i32, is complete.
void emitWait(const IndexBuilder &b, Barrier barrier, Value parity,
              const Chip &chip);
/// Arrives once.
void emitArrive(const IndexBuilder &b, Barrier barrier);
/// Makes writes of this thread to shared memory visible to the copies that come
/// after it.
void emitProxyFence(const IndexBuilder &b);

/// The bytes that fill the tile of a copy.
int64_t getTileBytes(Operation *copy);

// Each does the work of a copy at its place, and leaves the copy there. Some
// complete for the thread itself, some with its `cp.async` groups, and some on
// a barrier that counts bytes.

/// By loads and stores of the threads.
void emitPlain(OpBuilder &builder, Operation *copy, Threads threads);
/// By cp.async of the threads.
void emitAsyncCopy(OpBuilder &builder, Operation *copy, const Choice &choice,
                   Threads threads);
/// By bulk copies of single rows, in the lanes of a warp. The barrier learns of
/// their bytes here: those of rows that don't exist, which are zeroed by
/// stores, don't count.
void emitBulkRows(OpBuilder &builder, Operation *copy, Threads lanes,
                  Barrier barrier);
/// By tensor copies of the issuer. They complete `getTileBytes`.
void emitTensorCopies(OpBuilder &builder, Operation *copy, const Choice &choice,
                      Value descriptor, Barrier barrier, const Issuer &issuer);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_EXPANDCOPIES_EMISSION_H
