//===- Blocks.h - Threads of a block, and their barriers --------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILECOPIES_BLOCKS_H
#define KVCACHE_LIB_TRANSFORMS_TILECOPIES_BLOCKS_H

#include "kvcache/Support/IndexBuilder.h"
#include "kvcache/Target/Chip.h"

#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"

#include <optional>

namespace mlir::kvcache {

/// The threads that take part in something: number `thread` of `count`.
struct Threads {
  Value thread, count;
};

/// The lanes that together issue tensor copies: one of them does it, but all
/// compute where the copies are from.
struct Issuer {
  /// How many lanes share the computations: 32, or 1 where the block has fewer
  /// threads, or an unknown number.
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
};

/// Gives the value of lane `lane` of the warp for `value`, an i32, as an index.
/// All lanes take part.
Value getFromLane(const IndexBuilder &b, Value value, Value lane);

/// An mbarrier of a group.
struct Barrier {
  TypedValue<nvgpu::MBarrierGroupType> group;
  Value index;
};

/// Waits until the phase of this parity, an i32, is complete. If `isCluster`,
/// threads of other blocks have arrived at it.
void emitWait(const IndexBuilder &b, Barrier barrier, Value parity,
              const Chip &chip, bool isCluster = false);
/// Arrives once.
void emitArrive(const IndexBuilder &b, Barrier barrier);
/// Arrives once at the barrier at the same place of another block of the
/// cluster, by its rank, or of this one.
void emitArriveAtBlock(const IndexBuilder &b, Barrier barrier, Value rank);
/// Synchronizes all threads of all blocks of the cluster.
void emitClusterBarrier(const IndexBuilder &b);
/// Whether code in `op` multiplies tiles, which reads them by the asynchronous
/// proxy as copies do.
bool hasProducts(Operation *op);
/// Makes writes to shared memory that are ordered before visible to the copies
/// and products that come after it.
void emitProxyFence(const IndexBuilder &b);
/// Makes writes to global memory that are ordered before visible to the copies
/// that this thread issues. PTX ISA, "Causality order": a fence anywhere
/// between both will do; here one thread executes it, for the writes of all.
void emitGlobalProxyFence(const IndexBuilder &b);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILECOPIES_BLOCKS_H
