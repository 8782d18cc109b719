//===- Device.h - What compiled host code asks of a device ----------*- C
//-*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled host code doesn't know what it runs on: several libraries implement
// these functions, of which a program links or loads one.
//
//   libkvcache_cuda.so   NVIDIA GPUs, by the CUDA driver
//   libkvcache_trace.so  a dry run: memory of the host, and a description of
//                        every launch on stdout
//
// Environment variables of libkvcache_cuda.so:
//   KVCACHE_CUDA_DRIVER  the driver's library, in place of libcuda.so.1
//   KVCACHE_CUDA_DEVICE  the number of the device, in place of 0, for threads
//                        that have no current context
// and of libkvcache_trace.so:
//   KVCACHE_TRACE_CHIP   the chip whose image is taken, in place of the first
//
// All functions may be called from any thread. Each returns 0 on success; any
// other status is a failure, and kvcacheGetLastError() says of what. Work on
// streams goes on after a function returns, and what fails then is reported by
// a later call.
//
// A thread's current CUDA context is the one that its calls use. A thread
// without one gets the primary context of the device.
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_RUNTIME_DEVICE_H
#define KVCACHE_RUNTIME_DEVICE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/// The message of the last call of this thread that failed, or an empty one. It
/// is valid until another call of this thread fails.
const char *kvcacheGetLastError(void);

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

/// The code of a module for one chip.
typedef struct KVCacheImage {
  /// Such as "sm_90a".
  const char *chip;
  /// A cubin, a fat binary, or PTX text that ends in a zero byte.
  const void *data;
  /// Bytes of data.
  int64_t size;
} KVCacheImage;

/// The code of a module for any number of chips.
typedef struct KVCacheBinary {
  /// The module's, for messages.
  const char *name;
  const KVCacheImage *images;
  int64_t numImages;
} KVCacheBinary;

/// Loads the image that fits the device best: one for exactly this architecture
/// (sm_90a), for its family (sm_100f), for its compute capability or the next
/// lower one of the same major version (sm_90), and last PTX, in text or in a
/// fat binary, of any lower one.
///
/// A binary is known by its address, and loaded once per context: later calls
/// give the same module. The binary must live, with all that it points to,
/// until it is unloaded or the process ends. The module belongs to the library.
int32_t kvcacheModuleLoad(const KVCacheBinary *binary, void **module);

/// Unloads a binary from all contexts. Its kernels must have ended, and its
/// modules are not valid any more. Nothing happens if it is not loaded.
int32_t kvcacheModuleUnload(const KVCacheBinary *binary);

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

typedef struct KVCacheLaunch {
  /// Blocks of the grid and threads of a block in x, y and z. A grid without
  /// blocks is no error: nothing runs.
  int64_t grid[3], block[3];
  /// Dynamic shared memory of a block, in bytes, as much as the device has.
  int64_t sharedBytes;
  /// Null for the default stream.
  void *stream;
} KVCacheLaunch;

/// Launches a kernel of a module, and doesn't wait for it. The context that the
/// module was loaded in is current.
///
/// `params` holds the addresses of the parameters, whose values are copied
/// before this returns, and `paramBytes` their sizes. Parameters behind those
/// that the kernel has are ignored, since the kernels of several chips share a
/// launch; a size that is not the kernel's is an error, where the driver can
/// tell (from CUDA 12.4 on).
int32_t kvcacheLaunch(void *module, const char *kernel,
                      const KVCacheLaunch *launch, void **params,
                      const int64_t *paramBytes, int64_t numParams);

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Allocates memory of the device, aligned to 256 bytes. 0 bytes give null. The
/// caller frees it.
int32_t kvcacheMemAlloc(int64_t bytes, void **pointer);

/// Allocates memory that the host and the device can access, likewise.
int32_t kvcacheMemAllocManaged(int64_t bytes, void **pointer);

/// Frees memory of either kind. Nothing happens for null.
int32_t kvcacheMemFree(void *pointer);

/// Copies between any two places, of the host or of a device: the pointers tell
/// which. Both must stay as they are until the stream gets there.
int32_t kvcacheMemCopy(void *to, const void *from, int64_t bytes, void *stream);

/// Sets bytes to a value, in the order of the stream.
int32_t kvcacheMemSet(void *pointer, uint8_t value, int64_t bytes,
                      void *stream);

//===----------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------===//

/// Makes a stream, which the caller destroys. It and the default stream wait
/// for each other's work.
int32_t kvcacheStreamCreate(void **stream);

/// Destroys a stream. Its work still runs to its end.
int32_t kvcacheStreamDestroy(void *stream);

/// Waits until the work of a stream has ended; null for the default stream.
int32_t kvcacheStreamSynchronize(void *stream);

//===----------------------------------------------------------------------===//
// TMA descriptors
//===----------------------------------------------------------------------===//

/// A tensor in memory of the device, and the box of it that one copy moves.
/// Dimensions are innermost first; elements out of bounds read as zeros.
/// Entries from rank on are not read.
typedef struct KVCacheTensorMap {
  /// Of the cache view; not null.
  void *base;
  /// Elements, from 1 to 2^31.
  int64_t dims[5];
  /// Elements. The first is 1; the others are multiples of 16 bytes below 2^40.
  int64_t strides[5];
  /// Elements, from 1 to 256. The first is a multiple of 16 bytes, and the span
  /// of the swizzle if there is one.
  int64_t box[5];
  /// Bytes from the base to the tensor, which starts at a multiple of 16 bytes.
  int64_t offset;
  /// From 1 to 5.
  int32_t rank;
  /// 1, 2, 4 or 8.
  int32_t elementBytes;
  /// The span in bytes: 32, 64 or 128, or 0 for none.
  int32_t swizzle;
  /// What a miss brings into L2, in bytes: 64, 128 or 256, or 0 for no more
  /// than asked.
  int32_t l2Promotion;
} KVCacheTensorMap;

/// Writes a descriptor, as a kernel takes it: 128 bytes at a multiple of 64. A
/// map that breaks a limit above is an error on every device. On a GPU without
/// TMA the bytes are zeros, which its kernels don't read.
int32_t kvcacheTensorMapEncode(const KVCacheTensorMap *map, void *descriptor);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif // KVCACHE_RUNTIME_DEVICE_H
