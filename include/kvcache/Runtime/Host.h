//===- Host.h - C functions for errors of compiled host code ------*- C -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_RUNTIME_HOST_H
#define KVCACHE_RUNTIME_HOST_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Reports a failed run-time check, and does not return. `format` is a printf
/// format for two `long long` arguments: the value and the exclusive upper
/// bound. libkvcache_runtime.so prints the message and exits with status 1. A
/// program may define the function itself to change this.
__attribute__((visibility("default"), noreturn)) void
kvcacheCheckFailed(const char *format, int64_t value, int64_t bound);

/// Reports a failed call of a function of Device.h, and does not return.
/// `where` is the source location and the operation, such as `gather.mlir:12:3:
/// launch of @kernels::@gather`. `message` is the result of
/// `kvcacheGetLastError`. libkvcache_runtime.so prints `where: message`.
__attribute__((visibility("default"), noreturn)) void
kvcacheDeviceFailed(const char *where, const char *message);

/// Prints to the standard output by a printf format, and flushes it.
__attribute__((visibility("default"), format(printf, 1, 2))) void
kvcachePrint(const char *format, ...);

/// `malloc` and `free`. A failed call through TVM-FFI frees the memory that it
/// has allocated by them, because compiled code does not get to its own end.
__attribute__((visibility("default"))) void *kvcacheHostAlloc(size_t bytes);
__attribute__((visibility("default"))) void kvcacheHostFree(void *memory);

/// Notes that an allocation of device memory, of this status, has put its
/// pointer at `pointer`: a failed call through TVM-FFI frees it by `free`.
__attribute__((visibility("default"))) void
kvcacheHostNoteDeviceAlloc(int32_t status, void *const *pointer,
                           int32_t (*free)(void *));
/// Notes that device memory is about to be freed.
__attribute__((visibility("default"))) void
kvcacheHostNoteDeviceFree(void *pointer);

/// Calls `body(context, begin, end)` until the calls have had each of
/// `iterations` once, from at most so many threads of OpenMP: of the library
/// that the process has loaded, or of libgomp.so.1, libomp.so or libiomp5.so.
/// Without one, and in a process that was forked from one with threads, the
/// caller's thread runs all. A check that fails ends the loop: the message is
/// that of the first in the order of iterations.
__attribute__((visibility("default"))) void
kvcacheParallelFor(int64_t iterations, int32_t threads,
                   void (*body)(void *context, int64_t begin, int64_t end),
                   void *context);
/// Whether there is a library of OpenMP: 1 or 0.
__attribute__((visibility("default"))) int32_t kvcacheHasThreads(void);

/// Asks the kernel for the tile registers of AMX, for all threads of this
/// process and processes that it forks. Returns whether it may use them. The
/// kernel refuses while a thread has a signal stack too small to save them.
__attribute__((visibility("default"))) int32_t kvcacheRequestTiles(void);

#ifdef __cplusplus
}
#endif

#endif // KVCACHE_RUNTIME_HOST_H
