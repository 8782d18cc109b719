//===- GlobalShadow.h - What has been written of global memory --*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_RUNTIME_EMULATOR_GLOBALSHADOW_H
#define KVCACHE_LIB_RUNTIME_EMULATOR_GLOBALSHADOW_H

#include <cstdint>
#include <memory>
#include <mutex>

namespace mlir::kvcache::emulator {

/// Knows of each byte of the address space whether it has been written, and
/// whether a launch has written it. Takes memory, as much as it stands for,
/// only where somebody has written. All threads may use it at once.
class GlobalShadow {
public:
  /// Who writes.
  enum class Writer : uint8_t { Host, Kernel, Copy };

  GlobalShadow();

  /// Notes a write. Launches are numbered from 1.
  void write(uintptr_t begin, uint64_t bytes, Writer writer, uint32_t launch);
  /// Nobody has written the bytes any more.
  void forget(uintptr_t begin, uint64_t bytes);
  /// The bytes at `to` have been written where those at `from` have.
  void copy(uintptr_t to, uintptr_t from, uint64_t bytes);

  /// The first byte that nobody has written, or the end.
  uintptr_t findMissing(uintptr_t begin, uint64_t bytes) const;
  /// The first byte that the launch has written, or the end; `byKernel` if
  /// writes by copies don't matter.
  uintptr_t findWritten(uintptr_t begin, uint64_t bytes, uint32_t launch,
                        bool byKernel) const;

private:
  /// Of 4 bytes that are aligned: a bit for each that has been written, a bit
  /// for each that the last launch to write any has written, whether copies
  /// wrote in it, and the number of that launch. Numbers come again after
  /// 2^23 launches.
  using Word = uint32_t;
  static constexpr uint32_t kWordBytes = 4, kWrittenShift = 4, kLaunchShift = 9;
  static constexpr Word kByteMask = 0xf, kByCopy = 1 << 8;

  static constexpr uint32_t kAddressBits = 48, kChunkBits = 26;

  static Word stamp(Word old, Word bytes, Writer writer, uint32_t launch);
  static Word getWritten(Word word, uint32_t launch, bool byKernel);

  /// The word of an address; null where nobody has written.
  const Word *find(uintptr_t address) const;
  Word *get(uintptr_t address);
  Word *addChunk(uintptr_t number);
  template <typename Update>
  void update(uintptr_t begin, uint64_t bytes, Update update);
  void fill(uintptr_t begin, uintptr_t end, Word value);
  template <typename Visitor>
  void forEachPart(uintptr_t begin, uintptr_t end, Visitor visit) const;
  template <typename Select>
  uintptr_t findFirst(uintptr_t begin, uint64_t bytes, Select select) const;

  /// By the upper bits of an address.
  Word **chunks;
  std::mutex mutex;
};

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_RUNTIME_EMULATOR_GLOBALSHADOW_H
