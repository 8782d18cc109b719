//===- Meter.h - What kernels ask of memory ---------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_RUNTIME_EMULATOR_METER_H
#define KVCACHE_LIB_RUNTIME_EMULATOR_METER_H

#include "kvcache/Emulator/ABI.h"

#include <cstdint>

namespace mlir::kvcache::emulator {

class Block;
struct Thread;

/// The instructions that are counted one by one.
enum class CopyKind : uint8_t {
  AsyncCopy, ///< cp.async, by a thread
  TensorLoad,
  TensorGather4,
  TensorStore,
  TensorScatter4,
  BulkLoad,
  BulkStore,
  Prefetch
};

/// Counts what one block asks of memory. Nothing happens when it is off.
class Meter {
public:
  void begin(bool isOn, const Block &block);
  /// What is not counted yet, since other lanes of a warp may follow, is
  /// counted, and all goes to the launch.
  void end();

  /// An access by one thread, as part of one instruction of its warp.
  void accessGlobal(const Thread &thread, const KVCacheSite *site,
                    uint64_t address, int64_t bytes, uint32_t flags);
  void accessShared(const Thread &thread, const KVCacheSite *site,
                    uint32_t offset, int64_t bytes, uint32_t flags);
  /// A row of 16 bytes of a matrix of ldmatrix or stmatrix: 8 go together.
  void accessMatrixRow(const Thread &thread, const KVCacheSite *site,
                       uint32_t matrix, uint32_t offset, uint32_t flags);

  /// One copy instruction. The bytes in global memory are those that are in
  /// bounds.
  void copy(CopyKind kind, int64_t globalBytes, int64_t sharedBytes);
  /// Global memory that a copy reads or writes in one piece, for its sectors.
  void copyGlobal(uint64_t address, int64_t bytes, bool isWrite);

  /// A phase of the mbarrier at `offset` has completed, for which so many bytes
  /// were expected.
  void completePhase(uint32_t offset, int64_t bytes);

private:
  bool isOn = false;
};

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_RUNTIME_EMULATOR_METER_H
