//===- HostDevice.cpp - Common functions of devices on the host -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The part of the C ABI that does not need a device: a stream is a number, and
// a descriptor is plain bytes.
//
//===----------------------------------------------------------------------===//

#include "kvcache/Runtime/Support.h"

#include <atomic>

using namespace mlir::kvcache;
using namespace mlir::kvcache::runtime;

//===----------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------===//

/// A stream is a number, from 1 on.
int32_t kvcacheStreamCreate(void **stream) {
  static std::atomic<uintptr_t> last;
  *stream = reinterpret_cast<void *>(++last);
  return kSuccess;
}

int32_t kvcacheStreamDestroy(void *) { return finishWork(); }

int32_t kvcacheStreamSynchronize(void *) { return finishWork(); }

int32_t kvcacheStreamIsCapturing(void *) { return 0; }

static thread_local void *scopeStream = nullptr;

int32_t kvcacheScopeEnter(int32_t, void *stream, KVCacheScope *outer) {
  *outer = {nullptr, scopeStream};
  scopeStream = stream;
  return kSuccess;
}

void kvcacheScopeLeave(const KVCacheScope *outer) {
  scopeStream = outer->stream;
}

void *kvcacheScopeStream() { return scopeStream; }

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

int32_t kvcacheDeviceCount(int32_t *count) {
  *count = 1;
  return kSuccess;
}

int32_t kvcacheDeviceCapability(int32_t, int32_t *capability) {
  *capability = 0;
  return kSuccess;
}

int32_t kvcacheKernelLoad(const KVCacheKernel *kernel) {
  void *module;
  return kvcacheModuleLoad(kernel->binary, &module);
}

//===----------------------------------------------------------------------===//
// TMA descriptors
//===----------------------------------------------------------------------===//

int32_t kvcacheTensorMapEncode(const KVCacheTensorMap *map, void *descriptor) {
  std::optional<tma::Descriptor> wanted = getDescriptor(*map, descriptor);
  if (!wanted)
    return kFailure;
  tma::encode(*wanted, descriptor);
  return kSuccess;
}
