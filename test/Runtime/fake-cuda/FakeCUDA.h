//===- FakeCUDA.h - The parts of the stand-in driver ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A CUDA driver that records its calls, written from the CUDA Driver API and
// not from our declarations of it. Work on streams waits for a
// synchronization, so that work on a wrong stream is missed.
//
// Environment variables:
//
//   FAKE_CUDA_CAPABILITY  of the devices, major * 10 + minor; 90
//   FAKE_CUDA_DEVICES     their number; 1
//   FAKE_CUDA_VERSION     of the driver; 12080
//   FAKE_CUDA_PARAMS      sizes of the parameters of kernels whose image is not
//                         PTX; "8,4,128"
//   FAKE_CUDA_CONTEXT     "own": threads start with a context of their own
//   FAKE_CUDA_ELAPSED     milliseconds between any two events, such as "nan"
//   FAKE_CUDA_FAIL        "cuMemAlloc=2": the function fails with this error
//   FAKE_CUDA_QUIET       "1": calls are kept for fakeCudaTakeCalls, and not
//                         printed
//   FAKE_CUDA_EMULATOR    libkvcache_emulator.so, which has the memory and runs
//                         the kernels of fakeCudaAddKernel
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_TEST_RUNTIME_FAKECUDA_H
#define KVCACHE_TEST_RUNTIME_FAKECUDA_H

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace fake {

using Result = int;
using Address = unsigned long long;

enum : Result {
  kSuccess = 0,
  kInvalidValue = 1,
  kInvalidContext = 201,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kAssert = 710,
  kLaunchFailed = 719,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901,
  kCaptureImplicit = 906
};

/// Held by every function that changes anything.
extern std::recursive_mutex mutex;
using Lock = std::lock_guard<std::recursive_mutex>;

//===--- Calls ---===//

std::string getOption(const char *name, const char *otherwise);

/// Records a line in one piece.
void record(const std::string &line);

/// The error that a function is to fail with, or that a kernel has left; else
/// success.
Result getError(const std::string &function);

inline std::string format(const char *text) { return text; }
template <typename... Values>
std::string format(const char *text, Values... values) {
  char line[4096];
  std::snprintf(line, sizeof(line), text, values...);
  return line;
}

/// Records a call, and gives its result.
template <typename... Values>
Result print(const char *function, const char *text, Values... values) {
  record(std::string(function) + "(" + format(text, values...) + ")\n");
  return getError(function);
}

/// Notes that a call broke a rule: see fakeCudaGuard.
void violate(const std::string &what);

/// For what a captured call must not do, such as "allocates". Fails while a
/// stream is captured, and is noted while calls are guarded.
Result forbid(const char *function, const char *what);

/// Checks work on a stream: an error for one of another context, or not of the
/// guard's.
Result checkStream(const char *function, void *stream);

/// Lets kernels and their errors be forgotten.
void setKernelError(Result error, const std::string &message);

//===--- Contexts ---===//

/// The context of a thread; its name and its device.
void *getCurrentContext();
const char *getContextName(void *context);
int getDevice(void *context);

//===--- Streams ---===//

using Work = std::function<void()>;

/// The context that a stream belongs to; null for the default stream.
void *getContextOfStream(void *stream);
/// "null" or "stream".
const char *getStreamName(void *stream);
/// Adds work to a stream, or to the graph that it is captured in.
Result enqueue(void *stream, Work work);
/// Does all work of a stream.
void drain(void *stream);
void drainAll();
/// Whether any stream is captured; makes its graph unusable.
bool invalidateCaptures();
void resetStreams();

//===--- Memory ---===//

/// Memory of a device, which is the host's here.
Result allocate(Address *address, size_t bytes);

//===--- The emulator ---===//

/// The start of KVCacheLaunch, up to the fields that the emulator reads.
struct Launch {
  int64_t grid[3], block[3], sharedBytes;
  void *stream;
  int64_t cluster[3], isProgrammatic;
};

/// KVCacheTensorMap.
struct TensorMap {
  void *base;
  int64_t dims[5], strides[5], box[5], offset;
  int32_t rank, elementBytes, swizzle, l2Promotion;
};

/// Functions of libkvcache_emulator.so; null without it.
struct Emulator {
  int32_t (*launch)(void *, const char *, const Launch *, void **,
                    const int64_t *, int64_t);
  int32_t (*synchronize)(void *);
  int32_t (*load)(const void *, void **);
  int32_t (*allocate)(int64_t, void **);
  int32_t (*free)(void *);
  int32_t (*copy)(void *, const void *, int64_t, void *);
  int32_t (*set)(void *, uint8_t, int64_t, void *);
  int32_t (*encode)(const TensorMap *, void *);
  void (*registerMemory)(const void *, int64_t);
  void (*unregisterMemory)(const void *);
  const char *(*getLastError)();
};
const Emulator *getEmulator();

/// The function of this library; null if there is none.
void *lookup(const char *name);

} // namespace fake

#endif // KVCACHE_TEST_RUNTIME_FAKECUDA_H
