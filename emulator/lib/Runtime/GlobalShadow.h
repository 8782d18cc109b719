//===- GlobalShadow.h - What has been written of global memory --*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_RUNTIME_GLOBALSHADOW_H
#define KVCACHE_LIB_EMULATOR_RUNTIME_GLOBALSHADOW_H

#include <cstdint>
#include <memory>
#include <mutex>

namespace mlir::kvcache::emulator {

/// Stores for each byte of the address space whether it is initialized. Uses
/// memory, an eighth of that, only where a byte has been written.
/// All threads may use it at once.
class GlobalShadow {
public:
  GlobalShadow();

  void write(uintptr_t begin, uint64_t bytes);
  /// Makes the bytes uninitialized.
  void forget(uintptr_t begin, uint64_t bytes);
  /// The bytes at `to` have been written where those at `from` have.
  void copy(uintptr_t to, uintptr_t from, uint64_t bytes);

  /// The first uninitialized byte, or the end.
  uintptr_t findMissing(uintptr_t begin, uint64_t bytes) const;

private:
  /// A bit for each of 32 aligned bytes: whether it has been written.
  using Word = uint32_t;
  static constexpr uint32_t kWordBytes = 32;

  static constexpr uint32_t kAddressBits = 48, kChunkBits = 26;

  /// The word of an address; null where no byte has been written.
  const Word *find(uintptr_t address) const;
  Word *get(uintptr_t address);
  Word *addChunk(uintptr_t number);
  template <typename Update>
  void update(uintptr_t begin, uint64_t bytes, Update update);

  /// By the upper bits of an address.
  Word **chunks;
  std::mutex mutex;
};

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_GLOBALSHADOW_H
