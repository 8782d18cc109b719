//===- Registers.h - The number of registers, emulated ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_EMULATOR_REGISTERS_H
#define KVCACHE_EMULATOR_REGISTERS_H

#include "kvcache/Emulator/ABI.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/// setmaxnreg: the warp has `count` registers for each thread from here on. An
/// increase waits until the block has enough free registers, which other warps
/// have given back.
void kvcacheEmulatorSetMaxRegisters(KVCacheThread *thread,
                                    const KVCacheSite *site, uint32_t count,
                                    uint32_t isIncrease);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif // KVCACHE_EMULATOR_REGISTERS_H
