//===- Calls.cpp - Records of calls, rules and errors ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeCUDA.h"

#include <dlfcn.h>
#include <map>

using namespace fake;

std::recursive_mutex fake::mutex;

static std::map<std::string, std::string> &getOptions() {
  static auto &options = *new std::map<std::string, std::string>;
  return options;
}

std::string fake::getOption(const char *name, const char *otherwise) {
  if (const char *value = std::getenv(name))
    return value;
  Lock lock(mutex);
  auto found = getOptions().find(name);
  return found == getOptions().end() ? otherwise : found->second;
}

/// Sets an option for this process, where the environment has no value.
EXPORT void fakeCudaSetOption(const char *name, const char *value) {
  Lock lock(mutex);
  getOptions()[name] = value;
}

//===----------------------------------------------------------------------===//
// Records
//===----------------------------------------------------------------------===//

static std::string calls, violations, taken;
static Result kernelError = kSuccess;

/// The rules of a call: no allocation, no synchronization, one stream, and one
/// context.
static struct {
  bool isActive;
  void *stream, *context;
} guard;

void fake::record(const std::string &line) {
  Lock lock(mutex);
  if (getOption("FAKE_CUDA_QUIET", "") == "1")
    calls += line;
  else
    std::printf("%s", line.c_str());
}

Result fake::getError(const std::string &function) {
  Lock lock(mutex);
  if (kernelError)
    return kernelError;
  std::string failing = getOption("FAKE_CUDA_FAIL", "");
  size_t end = failing.find('=');
  return end != std::string::npos && failing.substr(0, end) == function
             ? std::stoi(failing.substr(end + 1))
             : kSuccess;
}

void fake::violate(const std::string &what) {
  Lock lock(mutex);
  violations += what + "\n";
}

Result fake::forbid(const char *function, const char *what) {
  Lock lock(mutex);
  if (guard.isActive)
    violate(std::string(function) + " " + what);
  if (!invalidateCaptures())
    return kSuccess;
  violate(std::string(function) + " " + what + " during a capture");
  return kCaptureUnsupported;
}

Result fake::checkStream(const char *function, void *stream) {
  Lock lock(mutex);
  void *current = getCurrentContext();
  if (guard.isActive && stream != guard.stream)
    violate(std::string(function) + " works on another stream");
  if (guard.isActive && current != guard.context)
    violate(std::string(function) + " works in another context");
  if (!current)
    return kInvalidContext;
  void *context = getContextOfStream(stream);
  if (context && context != current)
    return kInvalidHandle;
  if (!context && invalidateCaptures()) {
    violate(std::string(function) + " works on the default stream during a "
                                    "capture");
    return kCaptureImplicit;
  }
  return kSuccess;
}

void fake::setKernelError(Result error, const std::string &message) {
  Lock lock(mutex);
  if (!kernelError)
    kernelError = error;
  // The driver writes the messages of kernels to the output of the process.
  std::fprintf(stderr, "%s\n", message.c_str());
}

/// Returns what was called since the last time, one call a line.
EXPORT const char *fakeCudaTakeCalls() {
  Lock lock(mutex);
  taken = std::move(calls);
  calls.clear();
  return taken.c_str();
}

/// From now on calls must neither allocate nor synchronize, and work on this
/// stream and in the current context.
EXPORT void fakeCudaGuard(void *stream) {
  Lock lock(mutex);
  guard = {true, stream, getCurrentContext()};
  violations.clear();
}

/// Ends the rules, and returns what broke them, one line each. Rules of
/// captures hold always.
EXPORT const char *fakeCudaTakeViolations() {
  Lock lock(mutex);
  guard = {};
  taken = std::move(violations);
  violations.clear();
  return taken.c_str();
}

/// Forgets everything but memory and modules.
EXPORT void fakeCudaReset() {
  Lock lock(mutex);
  guard = {};
  kernelError = kSuccess;
  calls.clear();
  violations.clear();
  resetStreams();
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

static const struct {
  Result error;
  const char *name, *text;
} kErrors[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "CUDA_ERROR_NOT_READY", "device not ready"},
    {710, "CUDA_ERROR_ASSERT", "device-side assert triggered"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
     "operation would make the legacy stream depend on a capturing blocking "
     "stream"},
};

EXPORT Result cuGetErrorName(Result error, const char **name) {
  *name = nullptr;
  for (const auto &known : kErrors)
    if (known.error == error)
      *name = known.name;
  return *name ? kSuccess : kInvalidValue;
}

EXPORT Result cuGetErrorString(Result error, const char **text) {
  *text = nullptr;
  for (const auto &known : kErrors)
    if (known.error == error)
      *text = known.text;
  return *text ? kSuccess : kInvalidValue;
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

void *fake::lookup(const char *name) {
  static void *const self = [] {
    Dl_info info;
    dladdr(reinterpret_cast<void *>(&cuGetErrorName), &info);
    return dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  }();
  return dlsym(self, name);
}

const Emulator *fake::getEmulator() {
  static const Emulator *const emulator = []() -> const Emulator * {
    std::string path = getOption("FAKE_CUDA_EMULATOR", "");
    void *library =
        path.empty() ? nullptr : dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library)
      return nullptr;
    auto *found = new Emulator;
    auto find = [&](auto &function, const char *name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
          dlsym(library, name));
    };
    find(found->launch, "kvcacheLaunch");
    find(found->synchronize, "kvcacheStreamSynchronize");
    find(found->load, "kvcacheModuleLoad");
    find(found->allocate, "kvcacheMemAlloc");
    find(found->free, "kvcacheMemFree");
    find(found->copy, "kvcacheMemCopy");
    find(found->set, "kvcacheMemSet");
    find(found->encode, "kvcacheTensorMapEncode");
    find(found->registerMemory, "kvcacheEmulatorRegister");
    find(found->unregisterMemory, "kvcacheEmulatorUnregister");
    find(found->getLastError, "kvcacheGetLastError");
    return found;
  }();
  return emulator;
}

/// Finds the newest version of a function, as drivers do for new programs.
EXPORT Result cuGetProcAddress_v2(const char *symbol, void **address,
                                  int version, uint64_t, int *status) {
  static const struct {
    const char *symbol;
    int since;
  } kNewFunctions[] = {{"cuTensorMapEncodeTiled", 12000},
                       {"cuFuncGetParamInfo", 12040},
                       {"cuLaunchKernelEx", 11060}};
  int driver = std::stoi(getOption("FAKE_CUDA_VERSION", "12080"));
  *address = nullptr;
  if (status)
    *status = 1; // CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND
  if (version > driver)
    return kInvalidValue;
  std::string name = symbol;
  for (const auto &known : kNewFunctions)
    if (name == known.symbol) {
      if (version < known.since)
        return kSuccess;
      // Programs that link by name don't get them.
      name = "fakeNew_" + name;
    }
  *address = lookup((name + "_v2").c_str());
  if (!*address)
    *address = lookup(name.c_str());
  if (*address && status)
    *status = 0;
  return kSuccess;
}

EXPORT Result cuGetProcAddress(const char *symbol, void **address, int version,
                               uint64_t flags) {
  return cuGetProcAddress_v2(symbol, address, version, flags, nullptr);
}
