//===- Bodies.h - The choice of a function's body -----------------*- C -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A saved library has several bodies of each function, for the levels of
// processors in CPULevels.def. The function chooses one when it is called
// first.
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_RUNTIME_BODIES_H
#define KVCACHE_RUNTIME_BODIES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The code of a function for a level.
typedef struct KVCacheBody {
  /// The level's name in CPULevels.def.
  const char *level;
  /// The code, with the type of a wrapper of TVM-FFI.
  int32_t (*call)(void *self, const void *args, int32_t numArgs, void *result);
} KVCacheBody;

/// Returns the body of the highest level that the processor and its operating
/// system support, except one that is slow here. A level with tiles asks for
/// their permission, as kvcacheRequestTiles does. The environment variable
/// KVCACHE_CPU names the highest level that is used; it is read once. Returns
/// null after an error was set as by kvcacheCallTVMFFI: ValueError for a
/// variable that names no level, kvcache.TargetError if no level is supported.
__attribute__((visibility("default"))) const KVCacheBody *
kvcacheSelectBody(const KVCacheBody *bodies, int32_t count);

/// Returns the name of the level whose body kvcacheSelectBody prefers here.
/// Null if KVCACHE_CPU names no level, and on an architecture without levels.
__attribute__((visibility("default"))) const char *kvcacheGetCPULevel(void);

#ifdef __cplusplus
}
#endif

#endif // KVCACHE_RUNTIME_BODIES_H
