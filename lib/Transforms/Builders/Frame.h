//===- Frame.h - Blocks, threads and rows of an expanded op -----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_BUILDERS_FRAME_H
#define KVCACHE_LIB_TRANSFORMS_BUILDERS_FRAME_H

#include "kvcache/Support/IndexBuilder.h"
#include "kvcache/Target/Chip.h"
#include "kvcache/Target/HostMma.h"

#include "mlir/IR/Value.h"

namespace mlir::kvcache {

/// Threads of a warp.
constexpr int64_t kWarp = 32;

/// A size of a memref.
struct Size {
  StringRef name;
  Value memref;
  int64_t position = 0;
};

/// The features that all chips of a kernel share, none if the chips are
/// unknown, or those of a CPU.
struct Target {
  Feature features = Feature::None;
  /// Shared memory of a block.
  int64_t sharedBytes = 0;
  /// Bits of a CPU's vector registers.
  int64_t vectorBits = 0;
  /// Threads of a CPU that share loops.
  int64_t threads = 1;
  /// The widest matrix instructions of a CPU.
  HostMma mma = HostMma::FMA;

  explicit Target(ArrayRef<const Chip *> chips);

  /// Returns the target of these names of chips, or reports an unknown one at
  /// `op`.
  static FailureOr<Target> lookup(Operation *op, ArrayRef<std::string> names);

  bool has(Feature wanted) const { return (features & wanted) == wanted; }
};

/// Builds the loops around the accesses of an op: on a GPU a grid of blocks of
/// threads, on the CPU loops.
class Frame : public IndexBuilder {
public:
  /// A frame for `op`, before it.
  Frame(OpBuilder &builder, Operation *op, bool isGPU, bool hasChecks,
        const Target &target);

  /// Runs `body` in parallel with the multiples of each step below its end. On
  /// a GPU, a block takes one such index, and `forThreads` is all that `body`
  /// builds. Blocks that differ in index `alongX`, by default the last one, are
  /// beside each other, and a grid may have 2^31 of them, but 65,535 along
  /// other dimensions. Returns the loop.
  Operation *forBlocks(ArrayRef<Value> ends, ArrayRef<int64_t> steps,
                       function_ref<void(ValueRange)> body,
                       std::optional<unsigned> alongX = std::nullopt) const;

  /// With checks, `index` is below the first size of each memref that is given.
  /// `what` says what it is of the memref with that name.
  void checkFirst(Value index, StringRef what,
                  ArrayRef<std::pair<StringRef, Value>> memrefs) const;
  /// With checks, `index` is below a size of the memref of this name.
  void checkIndex(Value index, StringRef what, StringRef name, Value memref,
                  int64_t position) const;
  /// With checks, a size of one memref is at most one of another, if both are
  /// given. `what` says what the sizes count.
  void checkSize(StringRef what, const Size &size, const Size &most) const;
  /// With checks on a GPU, a memref and its rows are as aligned as accesses by
  /// vectors require. The address of nothing and the stride of a single row
  /// may be anything.
  void checkAlignment(StringRef name, Value memref) const;

  /// Runs `body` with each index below `sizes`, the last varying fastest: on a
  /// GPU in the threads of a block, on the CPU in loops.
  void forThreads(ArrayRef<int64_t> sizes,
                  function_ref<void(ValueRange)> body) const;

  /// The number of a thread in its block, by its numbers in `forThreads`. If
  /// there are two, the second is below `lanes`.
  Value getThreadId(ValueRange thread, int64_t lanes) const;

  /// Runs `body` in parallel with each sequence, the multiples of `step` below
  /// `tokens`, and each thread as `forThreads` does. On a GPU, these are blocks
  /// along the x of a grid.
  void forTokens(Value batch, Value tokens, int64_t step,
                 ArrayRef<int64_t> threads,
                 function_ref<void(Value, Value, ValueRange)> body) const;

  /// Runs `body` with `first, first + step, …` below `end`; without a loop if
  /// one is enough.
  void forEach(Value first, int64_t end, int64_t step,
               function_ref<void(Value)> body) const;

  /// The size of a dimension of a memref.
  Value dim(Value memref, int64_t position) const;
  /// Loads an unsigned number as an index.
  Value loadNumber(Value memref, ValueRange indices) const;
  /// Loads a signed number as an index.
  Value loadSigned(Value memref, ValueRange indices) const;
  /// The page size of a cache: a constant where its type says it.
  Value getPageSize(Value cache) const;
  /// The last index below `end` that `isPast` does not hold for, by a binary
  /// search. It is false for 0, and true after an index that it is true for.
  Value findLast(Value end, function_ref<Value(Value)> isPast) const;
  /// The sequence of a row below `row_offsets[batch]`.
  Value findSequence(Value rowOffsets, Value row) const;
  /// The number of sequences, whose rows are [batch + 1] numbers.
  Value countSequences(Value rowOffsets) const;
  /// `row_offsets[batch]`, the number of rows that are no padding.
  Value countRows(Value rowOffsets) const;

  /// Floats that a thread computes with at once, of heads with so many, between
  /// memory of these types: on a GPU 16 bytes of the widest, so that neighbours
  /// access whole sectors, unless a head then took more than a warp. On the
  /// CPU, some vector registers of them.
  int64_t getFloatsAtOnce(int64_t headSize, ArrayRef<Type> types) const;

  /// The heads that a thread loads before it stores one: a divisor of `heads`
  /// that is at most the hint of the op or, without one, `most`. 1 on the CPU.
  int64_t getHeadsInFlight(int64_t heads, int64_t most) const;

  const bool isGPU;
  /// Whether rules that the bounds of accesses do not cover are checked.
  const bool hasChecks;
  const Target target;
  /// Threads of a block, at most, unless those of one head are more.
  const int64_t blockThreads;

private:
  void orderLaunches() const;

  /// The hint of the op.
  std::optional<int64_t> headsPerThread;
};

/// Runs `body` if the condition is not null and holds, or is null.
void runIfGiven(const Frame &frame, Value condition, function_ref<void()> body);

/// How the elements of a head are divided: into units, which are stored at
/// once, and those into pieces, which are loaded and computed at once.
struct Split {
  int64_t piece = 1;
  int64_t unit = 1;
  /// Units of a head: the threads that share it on a GPU.
  int64_t lanes = 0;
  /// Neighbouring threads that share a scale; 1 if each has scales of its own.
  int64_t lanesPerGroup = 1;

  /// Threads of a block along `heads` heads, of which they all take as many.
  /// The block has at most `blockThreads` threads, unless one head has more.
  int64_t getHeadThreads(int64_t heads, int64_t blockThreads) const;
};

/// Divides a head for accesses of about `width` elements. Pieces do not cross
/// multiples of `boundary`. With a granularity, units have whole groups, or a
/// power of two of threads share a group, of which each has a multiple of
/// `leastShare` elements; none do if that is 0.
Split splitHead(int64_t headSize, int64_t boundary, int64_t width,
                int64_t granularity = 0, int64_t leastShare = 0);

/// The largest divisor of `number` that is at most `most`, at least 1.
int64_t getDivisorUpTo(int64_t number, int64_t most);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_BUILDERS_FRAME_H
