//===- FailureRecord.h - What a kernel says before it traps -----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// After a kernel has trapped, the driver gives no memory of the device back. So
// a failed check writes its message to memory of the host first. Compiled
// modules with checks have a variable for the address of that memory.
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_RUNTIME_FAILURERECORD_H
#define KVCACHE_RUNTIME_FAILURERECORD_H

#include <cstdint>

namespace mlir::kvcache {

/// The variable: an i64, which is 0 until the runtime sets it.
inline constexpr char kFailureRecordVariable[] = "kvcache_failure_record";

/// The record that the first thread with a failed check writes.
struct FailureRecord {
  static constexpr int kTextBytes = 1024;

  /// Not 0 when the rest is complete.
  uint32_t isComplete;
  uint32_t line;
  /// End with a zero; longer ones are cut.
  char message[kTextBytes];
  char file[kTextBytes];
};

} // namespace mlir::kvcache

#endif // KVCACHE_RUNTIME_FAILURERECORD_H
