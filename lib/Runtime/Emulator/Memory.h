//===- Memory.h - Global memory that kernels may access ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_RUNTIME_EMULATOR_MEMORY_H
#define KVCACHE_LIB_RUNTIME_EMULATOR_MEMORY_H

#include "kvcache/Emulator/ABI.h"

#include <cstdint>
#include <optional>
#include <string>

namespace mlir::kvcache::emulator {

/// The memory of the device: what the host has allocated or registered. One for
/// the process, used by all its threads.
class Memory {
public:
  static Memory &get();

  /// Device memory, aligned to 256 bytes, which holds nothing until somebody
  /// writes it; managed memory counts as written. Null if there is none left.
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
  /// Likewise a copy, which copies what is known of the source.
  void noteHostCopy(void *to, const void *from, int64_t bytes);

  /// A kernel begins: what earlier ones wrote is as if it always was there.
  void beginLaunch();

  /// What is wrong with an access with the flags of `kvcacheEmulatorAccess` by
  /// the block of a launch, such as "reads 16 bytes at byte 4096 of an
  /// allocation of 4096 bytes"; none if nothing is. Notes what is written.
  std::optional<std::string> access(const void *pointer, int64_t bytes,
                                    uint32_t flags);

  //===--- Tensor and bulk copies ---===//

  /// The same, of a copy, which must not read what a thread wrote in the same
  /// launch without a proxy fence.
  std::optional<std::string> accessByCopy(const void *pointer, int64_t bytes,
                                          uint32_t flags);
};

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_RUNTIME_EMULATOR_MEMORY_H
