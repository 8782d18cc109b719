//===- SharedVariables.h - Variables in shared memory -----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_RUNTIME_SHAREDVARIABLES_H
#define KVCACHE_LIB_EMULATOR_RUNTIME_SHAREDVARIABLES_H

#include "kvcache/Emulator/ABI.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mlir::kvcache::emulator {

/// Where the variables of a kernel are in the shared memory of its blocks. A
/// place counts the bytes from its beginning, red zones included, where
/// accesses are checked. A variable then must not be left by an access.
class SharedVariables {
public:
  SharedVariables() = default;
  /// For a launch with so many bytes in a block, dynamic ones included.
  SharedVariables(const KVCacheEmulatedKernel &kernel, uint32_t bytes,
                  bool hasRedZones);

  /// The bytes of a block's memory, red zones included; the one before
  /// the first variable is before place 0.
  uint32_t size() const { return end; }
  uint32_t redZoneBytes() const { return zoneBytes; }
  /// Where dynamic shared memory begins.
  uint32_t getDynamicPlace() const { return dynamicPlace; }

  /// Whether all bytes at a place may be accessed.
  bool contains(int64_t place, int64_t bytes) const;
  /// Such as "byte 64 of shared @part_a"; in a red zone of the variable that is
  /// nearer.
  std::string describe(int64_t place) const;
  /// Describes the variable of a place, such as "which has 64 bytes".
  std::string describeSize(int64_t place) const;
  /// The offset of a place on a chip, and a description of such an offset.
  uint32_t getOffset(uint32_t place) const;
  std::string describeOffset(uint32_t offset) const;

private:
  struct Variable {
    const char *name;
    int64_t place, bytes, shift;
  };

  const Variable *findBefore(int64_t place) const;
  const Variable *findNearest(int64_t place) const;

  std::vector<Variable> variables;
  uint32_t end = 0, zoneBytes = 0, dynamicPlace = 0;
};

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_SHAREDVARIABLES_H
