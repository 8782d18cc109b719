//===- Memory.h - Global memory that kernels may access ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_RUNTIME_MEMORY_H
#define KVCACHE_LIB_EMULATOR_RUNTIME_MEMORY_H

#include "GlobalShadow.h"
#include "kvcache/Emulator/ABI.h"

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <shared_mutex>
#include <string>
#include <utility>

namespace mlir::kvcache::emulator {

/// The memory of the device: what the host has allocated or registered. One for
/// the process, used by all its threads.
class Memory {
public:
  static Memory &get();

  /// Device memory, aligned to 256 bytes, which is uninitialized;
  /// managed memory counts as written. Null if there is none left.
  void *allocate(int64_t bytes, bool isManaged);
  /// False for what is not the beginning of an allocation.
  bool free(void *pointer);

  /// Memory of the host, or a variable of a module, that kernels may access
  /// like managed memory until it is unregistered as often as registered.
  void add(const void *pointer, int64_t bytes, bool isInitialized = true,
           bool isConstant = false);
  void remove(const void *pointer);

  /// Notes a write by the host (a copy or memset of the C ABI).
  void noteHostWrite(void *pointer, int64_t bytes);
  /// Likewise a copy, which also copies which bytes are initialized.
  void noteHostCopy(void *to, const void *from, int64_t bytes);

  //===--- Kernels ---===//

  /// Whether an access with the flags of `kvcacheEmulatorAccess` is in memory
  /// of the device that may be written, if it writes. Says whether all of the
  /// memory around it counts as written.
  bool mayAccess(const void *pointer, int64_t bytes, uint32_t flags,
                 bool &isInitialized) const;
  /// Describes an access that is not allowed, such as "reads 16 bytes at byte
  /// 4096 of an allocation of 4096 bytes".
  std::string describeWrong(const void *pointer, int64_t bytes,
                            uint32_t flags) const;
  /// The first byte that neither the host nor a block that has ended has
  /// written, or the end.
  uintptr_t findMissing(uintptr_t address, uint64_t bytes) const {
    return shadow.findMissing(address, bytes);
  }
  /// Notes what a block has written.
  void noteWrite(uintptr_t address, uint64_t bytes);

  /// The memory around an address.
  std::optional<std::pair<uintptr_t, uintptr_t>>
  findRange(uintptr_t address) const;
  /// Such as "byte 16 of an allocation of 64 bytes".
  std::string describe(uintptr_t address) const;
  /// Describes an address in the memory around another one.
  std::string describeByte(uintptr_t address, uintptr_t around) const;

private:
  /// Memory that the host has allocated or registered.
  struct Range {
    uintptr_t begin = 0, end = 0;
    /// How often it is registered.
    uint64_t count = 0;
    bool isInitialized = false, isConstant = false;

    uint64_t size() const { return end - begin; }
    bool contains(uintptr_t address, uint64_t bytes) const {
      return begin <= address && address < end && bytes <= end - address;
    }
  };
  using Ranges = std::map<uintptr_t, Range>;
  struct RecentRanges;

  const Range *findAllocation(uintptr_t address, uint64_t bytes) const;
  const Range *findRegistered(uintptr_t address, uint64_t bytes) const;
  const Range *find(uintptr_t address, uint64_t bytes) const;
  std::optional<Range> lookup(uintptr_t address, uint64_t bytes) const;
  const Range *lookupRecent(uintptr_t address, uint64_t bytes,
                            bool writes) const;
  const Range *lookupAndKeep(RecentRanges &recent, uintptr_t address,
                             uint64_t bytes) const;
  void keepFreed(const Range &range);

  std::string describeOutside(uintptr_t address, uint64_t bytes,
                              uint32_t flags) const;
  const Range *findFreed(uintptr_t address) const;
  const Range *findNear(uintptr_t address) const;

  mutable std::shared_mutex mutex;
  /// By where they begin. What is registered may overlap: views of one array.
  Ranges allocations, registered;
  /// The bytes of the largest that was ever registered, which limits how far
  /// before an address the range can begin that holds it.
  uint64_t largestRegistered = 0;
  /// Address space that is not allocated again for a while.
  std::deque<Range> freed;
  /// Changes when ranges do: what a thread remembers of them is then old.
  std::atomic<uint64_t> version{1};
  GlobalShadow shadow;
};

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_MEMORY_H
