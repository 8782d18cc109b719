//===- RegisterEmulator.h - The emulator, where built -----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_TOOLS_REGISTEREMULATOR_H
#define KVCACHE_TOOLS_REGISTEREMULATOR_H

#ifdef KVCACHE_WITH_EMULATOR
#include "kvcache/Emulator/Pipelines.h"
#endif

namespace mlir::kvcache {

/// Registers the emulator's passes and pipelines in tools that have it: builds
/// with KVCACHE_ENABLE_EMULATOR.
inline void registerEmulatorIfBuilt() {
#ifdef KVCACHE_WITH_EMULATOR
  registerEmulator();
#endif
}

} // namespace mlir::kvcache

#endif // KVCACHE_TOOLS_REGISTEREMULATOR_H
