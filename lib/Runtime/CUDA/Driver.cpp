//===- Driver.cpp - The CUDA driver, opened at run time -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Driver.h"

#include "Failures.h"
#include "kvcache/Runtime/Support.h"

#include <atomic>
#include <cstdlib>
#include <dlfcn.h>
#include <map>
#include <mutex>

using namespace mlir::kvcache::runtime;
using namespace mlir::kvcache::runtime::cuda;

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// Whether a kernel has failed, which the next call of the driver reports, and
/// every later one.
static bool isErrorOfKernel(CUresult result) {
  return result == CUDA_ERROR_ILLEGAL_ADDRESS || result == CUDA_ERROR_ASSERT ||
         (result >= CUDA_ERROR_HARDWARE_STACK_ERROR &&
          result <= CUDA_ERROR_LAUNCH_FAILED);
}

int32_t Driver::check(CUresult result, const char *call,
                      const char *subject) const {
  if (result == CUDA_SUCCESS)
    return kSuccess;
  std::string message = call;
  if (subject)
    message += std::string(" of ") + subject;
  const char *name = nullptr, *text = nullptr;
  cuGetErrorName(result, &name);
  cuGetErrorString(result, &text);
  message += ": " + (name ? std::string(name)
                          : "CUDA error " + std::to_string(result));
  if (text)
    message += std::string(": ") + text;
  if (isErrorOfKernel(result)) {
    message += " (by a kernel that was launched before";
    if (result == CUDA_ERROR_ASSERT)
      if (std::string failure = getLastFailure(); !failure.empty())
        message += "; its check says: " + failure;
    message += ")";
  }
  return fail(message);
}

bool Driver::isCapturing(CUstream stream) const {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  // The default stream is never captured, and asking for it may fail.
  return stream && cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

//===----------------------------------------------------------------------===//
// Opening
//===----------------------------------------------------------------------===//

namespace {
/// Finds functions in the library of the driver.
class Finder {
public:
  explicit Finder(void *library)
      : library(library), getProcAddress(reinterpret_cast<GetProcAddress>(
                              dlsym(library, "cuGetProcAddress_v2"))) {}

  /// Returns the function `name` of CUDA `version`, or else the exported
  /// function.
  void *find(const char *name, const char *exported, int version) const {
    void *address = nullptr;
    if (getProcAddress &&
        getProcAddress(name, &address, version, /*flags=*/0, nullptr) ==
            CUDA_SUCCESS &&
        address)
      return address;
    return dlsym(library, exported);
  }

private:
  using GetProcAddress = CUresult (*)(const char *name, void **address,
                                      int version, uint64_t flags, int *status);
  void *library;
  GetProcAddress getProcAddress;
};

/// A driver, or the reason for its absence.
struct Opened {
  Driver driver;
  std::string error;
};
} // namespace

static Opened openDriver() {
  Opened opened;
  const char *name = getEnvironment("KVCACHE_CUDA_DRIVER");
  if (!name)
    name = "libcuda.so.1";
  void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *reason = dlerror();
    opened.error = "no CUDA driver: tried to open " + std::string(name) + ": " +
                   (reason ? reason : "unknown error") +
                   " (KVCACHE_CUDA_DRIVER may name another library)";
    return opened;
  }

  Finder finder(library);
  Driver &driver = opened.driver;
  std::string missing;
#define CUDA_NEW_FUNCTION(NAME, EXPORTED, VERSION, PARAMETERS)                 \
  driver.NAME = reinterpret_cast<decltype(driver.NAME)>(                       \
      finder.find(#NAME, EXPORTED, VERSION));
#define CUDA_FUNCTION(NAME, EXPORTED, VERSION, PARAMETERS)                     \
  CUDA_NEW_FUNCTION(NAME, EXPORTED, VERSION, PARAMETERS)                       \
  if (!driver.NAME)                                                            \
    missing += " " EXPORTED;
#include "Functions.def"
  if (!missing.empty()) {
    opened.error = "no CUDA driver: " + std::string(name) + " lacks" + missing;
    return opened;
  }

  if (driver.check(driver.cuInit(0), "cuInit"))
    opened.error = kvcacheGetLastError();
  return opened;
}

//===----------------------------------------------------------------------===//
// Contexts
//===----------------------------------------------------------------------===//

static int32_t getDeviceNumber(int &number) {
  number = 0;
  const char *value = getEnvironment("KVCACHE_CUDA_DEVICE");
  if (!value)
    return kSuccess;
  char *end = nullptr;
  number = static_cast<int>(std::strtol(value, &end, 10));
  if (*end != 0 || number < 0)
    return fail("expects KVCACHE_CUDA_DEVICE to be the number of a device, "
                "got '" +
                std::string(value) + "'");
  return kSuccess;
}

int32_t cuda::getPrimaryContext(const Driver &driver, int number,
                                CUcontext &context) {
  static std::mutex mutex;
  static std::map<int, CUcontext> contexts;
  if (number < 0)
    if (int32_t status = getDeviceNumber(number))
      return status;
  std::lock_guard<std::mutex> lock(mutex);
  CUcontext &retained = contexts[number];
  if (!retained) {
    std::string subject = "device " + std::to_string(number);
    CUdevice device;
    if (int32_t status = driver.check(driver.cuDeviceGet(&device, number),
                                      "cuDeviceGet", subject.c_str()))
      return status;
    if (int32_t status =
            driver.check(driver.cuDevicePrimaryCtxRetain(&retained, device),
                         "cuDevicePrimaryCtxRetain", subject.c_str()))
      return status;
  }
  context = retained;
  return kSuccess;
}

static int32_t makeContextCurrent(const Driver &driver) {
  CUcontext context = nullptr;
  if (int32_t status =
          driver.check(driver.cuCtxGetCurrent(&context), "cuCtxGetCurrent"))
    return status;
  if (context)
    return kSuccess;
  if (int32_t status = getPrimaryContext(driver, /*device=*/-1, context))
    return status;
  return driver.check(driver.cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

const Driver *cuda::getDriver() {
  // Never destroyed, because modules may be unloaded at exit.
  static std::atomic<const Driver *> driver{nullptr};
  if (const Driver *opened = driver.load(std::memory_order_acquire))
    return opened;
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  if (!driver) {
    Opened opened = openDriver();
    if (!opened.error.empty()) {
      fail(opened.error);
      return nullptr;
    }
    driver = new Driver(opened.driver);
  }
  return driver;
}

const Driver *cuda::enterDriver() {
  const Driver *driver = getDriver();
  return driver && !makeContextCurrent(*driver) ? driver : nullptr;
}

int32_t cuda::createStream(void **stream, CUstream_flags flags) {
  const Driver *driver = enterDriver();
  if (!driver)
    return kFailure;
  CUstream created;
  if (int32_t status = driver->check(driver->cuStreamCreate(&created, flags),
                                     "cuStreamCreate"))
    return status;
  *stream = created;
  return kSuccess;
}

int32_t cuda::getComputeCapability(const Driver &driver, int &capability) {
  CUdevice device;
  if (int32_t status =
          driver.check(driver.cuCtxGetDevice(&device), "cuCtxGetDevice"))
    return status;
  return getComputeCapability(driver, device, capability);
}

int32_t cuda::getComputeCapability(const Driver &driver, CUdevice device,
                                   int &capability) {
  int major, minor;
  if (int32_t status = driver.check(
          driver.cuDeviceGetAttribute(
              &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device),
          "cuDeviceGetAttribute"))
    return status;
  if (int32_t status = driver.check(
          driver.cuDeviceGetAttribute(
              &minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device),
          "cuDeviceGetAttribute"))
    return status;
  capability = major * 10 + minor;
  return kSuccess;
}
