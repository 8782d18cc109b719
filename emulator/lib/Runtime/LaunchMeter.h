//===- LaunchMeter.h - What a launch asks of memory -------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_RUNTIME_LAUNCHMETER_H
#define KVCACHE_LIB_EMULATOR_RUNTIME_LAUNCHMETER_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace mlir::kvcache::emulator {

struct Grid;

/// The instructions that are counted one by one.
enum class CopyKind : uint8_t {
  AsyncCopy, ///< cp.async, by a thread
  TensorLoad,
  TensorGather4,
  TensorStore,
  TensorScatter4,
  BulkLoad,
  BulkStore,
  Prefetch,
  TensorMemoryCopy ///< tcgen05.cp
};
inline constexpr size_t kNumCopyKinds = 9;

/// Products that read matrices in shared memory.
enum class ProductKind : uint8_t {
  Warpgroup,   ///< wgmma
  TensorMemory ///< tcgen05.mma
};
inline constexpr size_t kNumProductKinds = 2;

/// The counters of a block or of a launch.
struct MeterTotals {
  struct Traffic {
    uint64_t bytes = 0, sectors = 0;
    void add(uint64_t moreBytes, uint64_t moreSectors) {
      bytes += moreBytes;
      sectors += moreSectors;
    }
  };
  struct Copies {
    uint64_t count = 0;
    int64_t globalBytes = 0, sharedBytes = 0;
    void add(uint64_t more, int64_t moreGlobal, int64_t moreShared) {
      count += more;
      globalBytes += moreGlobal;
      sharedBytes += moreShared;
    }
  };
  struct Products {
    uint64_t count = 0, operations = 0;
    int64_t sharedBytes = 0;
    void add(uint64_t more, uint64_t moreOperations, int64_t moreShared) {
      count += more;
      operations += moreOperations;
      sharedBytes += moreShared;
    }
  };
  struct Phases {
    uint64_t phases = 0;
    int64_t bytes = 0;
    void add(uint64_t more, int64_t moreBytes) {
      phases += more;
      bytes += moreBytes;
    }
  };

  Traffic globalRead, globalWritten;
  /// Instructions of warps, and the passes through the banks that they take.
  uint64_t globalRequests = 0, sharedRequests = 0, sharedWavefronts = 0;
  /// Passes that are more than one for the threads that go together.
  uint64_t bankConflicts = 0;
  /// By kind.
  Copies copies[kNumCopyKinds];
  Products products[kNumProductKinds];
  /// By the offset of the mbarrier in shared memory, without red zones.
  std::map<uint32_t, Phases> barriers;

  /// The passes of threads that go through the banks together.
  void addPasses(uint64_t passes) {
    sharedWavefronts += passes;
    bankConflicts += passes - 1;
  }
  void add(const MeterTotals &other);
};

/// Counts what a launch asks of memory.
class LaunchMeter {
public:
  /// A block has ended. From any thread.
  void add(const MeterTotals &block);

  /// The launch has ended: prints its table if the environment asks for it, and
  /// keeps the numbers for `kvcacheEmulatorTakeMeter` of this thread.
  void finish(const Grid &grid) const;

private:
  std::mutex mutex;
  MeterTotals totals;
};

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_LAUNCHMETER_H
