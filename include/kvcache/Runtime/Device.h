//===- Device.h - C functions of a device -------------------------*- C -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled host code calls these functions. Several libraries implement them; a
// program links or loads one of these libraries.
//
//   libkvcache_cuda.so   NVIDIA GPUs, through the CUDA driver
//   libkvcache_trace.so  dry run: allocates host memory, and prints every
//   launch
//                        to stdout
//
// Environment variables of libkvcache_cuda.so:
//   KVCACHE_CUDA_DRIVER  the library of the driver, instead of libcuda.so.1
//   KVCACHE_CUDA_DEVICE  the number of the device, instead of 0, for threads
//                        without a current context
// Environment variables of libkvcache_trace.so:
//   KVCACHE_TRACE_CHIP   the chip whose image is loaded, instead of the first
//
// All functions are thread-safe. Each returns 0 on success, and another status
// on failure; kvcacheGetLastError() returns the message. Work on streams
// continues after a function returns; a later call reports its failures.
//
// Calls use the current CUDA context of the thread. A thread without one gets
// the primary context of the device. kvcacheScopeEnter chooses another device.
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_RUNTIME_DEVICE_H
#define KVCACHE_RUNTIME_DEVICE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/// Returns the message of the last failed call of this thread, or an empty
/// message. It is valid until another call of this thread fails.
const char *kvcacheGetLastError(void);

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

/// The code of a module for one chip.
typedef struct KVCacheImage {
  /// The chip, such as "sm_90a".
  const char *chip;
  /// A cubin, a fat binary, or PTX text that ends with a zero byte.
  const void *data;
  /// The size of the data in bytes.
  int64_t size;
} KVCacheImage;

/// The code of a module for any number of chips.
typedef struct KVCacheBinary {
  /// The name of the module, for messages.
  const char *name;
  const KVCacheImage *images;
  int64_t numImages;
} KVCacheBinary;

/// Loads the image that fits the device best. In order of preference: an image
/// for exactly this architecture (sm_90a), for its family (sm_100f), for its
/// compute capability or the next lower one of the same major version (sm_90),
/// and PTX, as text or in a fat binary, of any lower compute capability.
///
/// The address identifies a binary. The library loads a binary once per
/// context; later calls return the same module. The binary and its data must
/// live until the binary is unloaded or the process ends. The library owns the
/// module.
int32_t kvcacheModuleLoad(const KVCacheBinary *binary, void **module);

/// Unloads a binary from all contexts, and invalidates its modules. Its kernels
/// must have ended. Does nothing if the binary is not loaded.
int32_t kvcacheModuleUnload(const KVCacheBinary *binary);

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

typedef struct KVCacheLaunch {
  /// Blocks of the grid and threads of a block in x, y and z. An empty grid is
  /// valid and runs no block.
  int64_t grid[3], block[3];
  /// Dynamic shared memory of a block in bytes, up to the limit of the device.
  int64_t sharedBytes;
  /// Null for the default stream.
  void *stream;
  /// Blocks of a cluster in x, y and z, which divide the sides of the grid.
  /// Zeros for a kernel that has no clusters, or that fixes their size itself.
  int64_t cluster[3];
  /// Not 0: blocks may start before earlier kernels of the stream have ended.
  /// The kernel waits for them with griddepcontrol.wait.
  int64_t isProgrammatic;
} KVCacheLaunch;

/// A kernel, and the dynamic shared memory of its launches in bytes: 0 where
/// that is not constant.
typedef struct KVCacheKernel {
  const KVCacheBinary *binary;
  const char *name;
  int64_t sharedBytes;
} KVCacheKernel;

/// The kernels that compiled host code launches, which it has as the constant
/// `kvcache_launched_kernels`.
typedef struct KVCacheKernels {
  const KVCacheKernel *kernels;
  int64_t numKernels;
} KVCacheKernels;

/// Prepares launches of a kernel in the current context: loads its module and
/// finds the kernel, which the driver refuses while it captures a stream. A
/// first launch does the same.
int32_t kvcacheKernelLoad(const KVCacheKernel *kernel);

/// Launches a kernel of a module, and does not wait for it. The current context
/// must be the one in which the module was loaded.
///
/// `params` has the addresses of the parameters, and `paramBytes` their sizes.
/// The function copies the values before it returns. It ignores additional
/// parameters at the end, because the kernels of several chips share a launch.
/// A wrong size is an error if the driver can detect it (from CUDA 12.4 on).
int32_t kvcacheLaunch(void *module, const char *kernel,
                      const KVCacheLaunch *launch, void **params,
                      const int64_t *paramBytes, int64_t numParams);

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Allocates device memory, aligned to 256 bytes. Returns null for 0 bytes. The
/// caller frees the memory.
int32_t kvcacheMemAlloc(int64_t bytes, void **pointer);

/// Allocates memory that host and device can access, with the same rules.
int32_t kvcacheMemAllocManaged(int64_t bytes, void **pointer);

/// Frees memory of either kind. Does nothing for null.
int32_t kvcacheMemFree(void *pointer);

/// Copies between memory of the host or of a device, which the pointers
/// identify. The caller must not change or free either memory until the stream
/// has executed the copy.
int32_t kvcacheMemCopy(void *to, const void *from, int64_t bytes, void *stream);

/// Sets bytes to a value, in stream order.
int32_t kvcacheMemSet(void *pointer, uint8_t value, int64_t bytes,
                      void *stream);

//===----------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------===//

/// Creates a stream, which the caller destroys. The stream and the default
/// stream wait for each other.
int32_t kvcacheStreamCreate(void **stream);

/// Destroys a stream. Its pending work still completes.
int32_t kvcacheStreamDestroy(void *stream);

/// Waits until the work of a stream has ended; null is the default stream.
int32_t kvcacheStreamSynchronize(void *stream);

/// Returns 1 while work of a stream is captured into a graph, and otherwise 0.
int32_t kvcacheStreamIsCapturing(void *stream);

/// The device and the stream of a thread's calls, to return to.
typedef struct KVCacheScope {
  void *context, *stream;
} KVCacheScope;

/// Chooses the device and the stream of the calls that this thread makes next.
/// The current context stays if it is of the device, or if `device` is
/// negative; else the primary context of the device becomes current. `outer`
/// receives what `kvcacheScopeLeave` returns to. On failure, nothing changes.
int32_t kvcacheScopeEnter(int32_t device, void *stream, KVCacheScope *outer);
void kvcacheScopeLeave(const KVCacheScope *outer);

/// Returns the stream of the current scope: null, the default stream, outside
/// of all scopes. Compiled host code launches on it.
void *kvcacheScopeStream(void);

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

/// Counts the devices. A device that runs on the host counts as one.
int32_t kvcacheDeviceCount(int32_t *count);

/// Sets `capability` to the compute capability of a device, 10 times the major
/// and once the minor version; to 0 for a device that has none.
int32_t kvcacheDeviceCapability(int32_t device, int32_t *capability);

//===----------------------------------------------------------------------===//
// TMA descriptors
//===----------------------------------------------------------------------===//

/// A tensor in device memory, and the box that one copy moves. Dimensions are
/// innermost first. Elements out of bounds read as zeros. Array entries from
/// `rank` on are ignored.
typedef struct KVCacheTensorMap {
  /// The base of the cache view; not null.
  void *base;
  /// Sizes in elements, from 1 to 2^31.
  int64_t dims[5];
  /// Strides in elements. The first is 1; the others are multiples of 16 bytes
  /// below 2^40.
  int64_t strides[5];
  /// Sides in elements, from 1 to 256. The first is a multiple of 16 bytes;
  /// with a swizzle, it is the span of the swizzle.
  int64_t box[5];
  /// Bytes from the base to the tensor, which starts at a multiple of 16 bytes.
  int64_t offset;
  /// The number of dimensions, from 1 to 5.
  int32_t rank;
  /// The size of an element: 1, 2, 4 or 8.
  int32_t elementBytes;
  /// The span of the swizzle in bytes: 32, 64 or 128, or 0 for none.
  int32_t swizzle;
  /// The bytes that a miss fetches into L2: 64, 128 or 256, or 0 for only the
  /// requested bytes.
  int32_t l2Promotion;
} KVCacheTensorMap;

/// Writes a descriptor, as a kernel takes it: 128 bytes with an alignment
/// of 64. A map that exceeds a limit above is an error on every device. On a
/// GPU without TMA, the bytes are zeros, because its kernels do not read them.
int32_t kvcacheTensorMapEncode(const KVCacheTensorMap *map, void *descriptor);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif // KVCACHE_RUNTIME_DEVICE_H
