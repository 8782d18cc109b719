//===- Contexts.cpp - Devices and contexts --------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeCUDA.h"

using namespace fake;

static int getNumber(const char *option, const char *otherwise) {
  return std::stoi(getOption(option, otherwise));
}

EXPORT Result cuInit(unsigned flags) { return print("cuInit", "%u", flags); }

EXPORT Result cuDriverGetVersion(int *version) {
  *version = getNumber("FAKE_CUDA_VERSION", "12080");
  return kSuccess;
}

EXPORT Result cuDeviceGetCount(int *count) {
  *count = getNumber("FAKE_CUDA_DEVICES", "1");
  return kSuccess;
}

EXPORT Result cuDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  return print("cuDeviceGet", "%d", ordinal);
}

EXPORT Result cuDeviceGetName(char *name, int size, int) {
  std::snprintf(name, size, "stand-in");
  return kSuccess;
}

EXPORT Result cuDeviceTotalMem_v2(size_t *bytes, int) {
  *bytes = size_t{1} << 30;
  return kSuccess;
}

EXPORT Result cuDeviceGetUuid_v2(char *uuid, int device) {
  std::memset(uuid, device, 16);
  return kSuccess;
}

EXPORT Result cuDeviceGetAttribute(int *value, int attribute, int) {
  int capability = getNumber("FAKE_CUDA_CAPABILITY", "90");
  // Multiprocessors, bytes of L2, and those of shared memory are few.
  *value = attribute == 75   ? capability / 10
           : attribute == 76 ? capability % 10
           : attribute == 16 ? 4
           : attribute == 38 ? 1 << 12
           : attribute == 81 ? 228 << 10
                             : 0;
  return kSuccess;
}

//===----------------------------------------------------------------------===//
// Contexts
//===----------------------------------------------------------------------===//

constexpr int kMaxDevices = 8;
static char primaryContexts[kMaxDevices], ownContext;
static thread_local std::vector<void *> *stack = nullptr;

/// The contexts of a thread; the last one is current.
static std::vector<void *> &getStack() {
  if (!stack)
    stack = new std::vector<void *>{
        getOption("FAKE_CUDA_CONTEXT", "") == "own" ? &ownContext : nullptr};
  return *stack;
}

void *fake::getCurrentContext() { return getStack().back(); }

int fake::getDevice(void *context) {
  auto *primary = static_cast<char *>(context);
  return context == &ownContext ? 0
                                : static_cast<int>(primary - primaryContexts);
}

const char *fake::getContextName(void *context) {
  return context == &ownContext ? "own" : context ? "primary" : "none";
}

EXPORT Result cuDevicePrimaryCtxRetain(void **context, int device) {
  *context = &primaryContexts[device % kMaxDevices];
  return print("cuDevicePrimaryCtxRetain", "%d", device);
}

EXPORT Result cuDevicePrimaryCtxRelease_v2(int) { return kSuccess; }

EXPORT Result cuDevicePrimaryCtxGetState(int, unsigned *flags, int *active) {
  *flags = 0;
  *active = 1;
  return kSuccess;
}

EXPORT Result cuCtxGetCurrent(void **context) {
  *context = getCurrentContext();
  return kSuccess;
}

EXPORT Result cuCtxSetCurrent(void *context) {
  getStack().back() = context;
  return kSuccess;
}

EXPORT Result cuCtxPushCurrent_v2(void *context) {
  getStack().push_back(context);
  return kSuccess;
}

EXPORT Result cuCtxPopCurrent_v2(void **context) {
  *context = getCurrentContext();
  if (getStack().size() > 1)
    getStack().pop_back();
  else
    getStack().back() = nullptr;
  return kSuccess;
}

EXPORT Result cuCtxGetDevice(int *device) {
  if (!getCurrentContext())
    return kInvalidContext;
  *device = getDevice(getCurrentContext());
  return kSuccess;
}

EXPORT Result cuCtxGetId(void *context, unsigned long long *id) {
  *id = reinterpret_cast<uintptr_t>(context ? context : getCurrentContext());
  return kSuccess;
}

EXPORT Result cuCtxSynchronize() {
  Lock lock(mutex);
  if (Result result = forbid("cuCtxSynchronize", "synchronizes"))
    return result;
  drainAll();
  return print("cuCtxSynchronize", "");
}
