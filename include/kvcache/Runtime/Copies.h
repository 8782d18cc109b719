//===- Copies.h - C functions for copies beside kernels -----------*- C -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Copies between a GPU and the host that run while kernels do, for page
// managers. Only libkvcache_cuda.so has these functions; what Device.h says of
// statuses, threads and contexts holds for them.
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_RUNTIME_COPIES_H
#define KVCACHE_RUNTIME_COPIES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/// Pins memory of the host, so that devices copy to and from it by themselves.
/// It must be unpinned before it is freed. Does nothing for 0 bytes.
int32_t kvcacheHostPin(void *memory, int64_t bytes);
int32_t kvcacheHostUnpin(void *memory);

/// Creates a stream that does not wait for the default stream, nor lets that
/// one wait. `kvcacheStreamDestroy` destroys it.
int32_t kvcacheCopyStreamCreate(void **stream);

typedef struct KVCacheCopy {
  void *to;
  const void *from;
  int64_t bytes;
} KVCacheCopy;

/// Begins copies on a stream, after all work that `other` has now; null is
/// the default stream. `event` receives an event for their end, which
/// `kvcacheCopiesEnd` frees. On failure, none of them is under way any more.
int32_t kvcacheCopiesBegin(void *stream, void *other, const KVCacheCopy *copies,
                           int64_t count, void **event);

/// Sets `hasEnded` to whether the copies before an event have ended. Does not
/// wait.
int32_t kvcacheCopiesQuery(void *event, int32_t *hasEnded);

/// Waits until the copies before an event have ended, and frees it, also on
/// failure.
int32_t kvcacheCopiesEnd(void *event);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif // KVCACHE_RUNTIME_COPIES_H
