//===- TensorMemory.h - The tensor memory of a block ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_RUNTIME_TENSORMEMORY_H
#define KVCACHE_LIB_EMULATOR_RUNTIME_TENSORMEMORY_H

#include "Sanitizer.h"
#include "TensorOrder.h"
#include "kvcache/Emulator/TensorMemory.h"

#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace mlir::kvcache::emulator {

class Block;
struct Thread;

/// A rectangle of tensor memory.
struct TensorRegion {
  uint32_t lane, column, lanes, columns;
};

/// A word of tensor memory.
struct TensorWord {
  uint32_t value;
  /// The bits that are poisoned, and where the poison comes from; unwritten
  /// words are.
  uint32_t poison, origin;
  TensorOrder::History history;
  bool isWritten;
};

/// The tensor memory of a block: its allocations and its words. PTX ISA,
/// "Tensor Memory". A block runs as if it were alone on its multiprocessor,
/// with all columns.
class TensorMemory {
public:
  static constexpr uint32_t kLanes = 128, kColumns = 512;
  /// The lanes that a warp can access.
  static constexpr uint32_t kLanesOfQuarter = 32;

  explicit TensorMemory(Block &block);
  ~TensorMemory();

  void begin();
  /// The end of the block: fails if columns are allocated.
  void end();

  /// Whether the block has ever allocated columns.
  bool isUsed() const { return numAllocs > 0; }

  //===--- Allocation ---===//

  /// A warp that requests columns, and gets their address in shared memory.
  struct Request {
    Thread &thread;
    const KVCacheSite *site;
    void *to;
    uint32_t columns;
    /// The tensor memory of the other block of a pair, which allocates the same
    /// columns at the same time; null without a pair.
    TensorMemory *peer;
    bool isDone = false;
  };
  std::shared_ptr<Request> allocate(Thread &thread, const KVCacheSite *site,
                                    void *to, uint32_t columns, bool isOfPair);
  void wait(Thread &thread, const KVCacheSite *site, const Request &request);
  void deallocate(Thread &thread, const KVCacheSite *site, uint32_t address,
                  uint32_t columns);
  void relinquish() { isRelinquished = true; }

  //===--- Words ---===//

  TensorWord &at(uint32_t lane, uint32_t column) {
    return words[lane * kColumns + column];
  }
  /// The word at a place, which is in bounds and allocated; its poison shows
  /// whether it is initialized.
  const TensorWord &read(const KVCacheSite *site, uint32_t lane,
                         uint32_t column);
  void write(uint32_t lane, uint32_t column, uint32_t value, uint32_t poison,
             uint32_t origin);

  /// Fails unless the region is in bounds and in columns that are allocated.
  void check(const Thread &thread, const KVCacheSite *site,
             const TensorRegion &region) const;
  /// Checks that the access which has begun (`TensorOrder::begin`) is ordered
  /// after others of these words.
  void touch(const TensorRegion &region, bool isWrite);

  /// The address that compiled code has as a pointer.
  static uint32_t toAddress(const void *pointer) {
    return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(pointer));
  }
  /// "lane 3, column 5 of tensor memory".
  static std::string describe(uint32_t address);
  /// Describes an address, with the block unless it is the thread's.
  std::string describe(uint32_t address, const Thread &thread) const;

private:
  struct Allocation {
    uint32_t column, columns;
    const Thread *thread;
    const KVCacheSite *site;
  };
  struct Freed;

  void reserve();
  void serve();
  bool serve(Request &request);
  void give(Request &request, uint32_t column);
  void checkEqual(const Request &request, const Request &other) const;
  bool isFree(uint32_t first, uint32_t columns) const;
  int64_t findColumns(uint32_t columns, const TensorMemory &peer) const;
  const Allocation *findAllocation(uint32_t column) const;
  void checkColumns(const Thread &thread, const KVCacheSite *site,
                    uint32_t columns) const;

  Block &block;
  std::unique_ptr<TensorWord[]> words;
  std::vector<Allocation> allocations;
  std::deque<std::shared_ptr<Request>> requests;
  std::unique_ptr<Freed> freed;
  uint32_t numAllocs = 0, lastColumns = 0;
  bool isRelinquished = false;
};

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_TENSORMEMORY_H
