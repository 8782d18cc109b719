//===- CopyQueue.h - The copies that a thread waits for ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_RUNTIME_EMULATOR_COPYQUEUE_H
#define KVCACHE_LIB_RUNTIME_EMULATOR_COPYQUEUE_H

namespace mlir::kvcache::emulator {

/// The copies of a thread that it waits for by groups: those by cp.async, and
/// bulk copies to global memory.
class CopyQueue {
public:
  void clear() {}
};

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_RUNTIME_EMULATOR_COPYQUEUE_H
