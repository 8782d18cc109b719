//===- fake-cuda.cpp - A CUDA driver that prints its calls ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Written from the CUDA Driver API and not from our declarations of it.
// Environment variables:
//
//   FAKE_CUDA_CAPABILITY  of the only device, major * 10 + minor; 90
//   FAKE_CUDA_VERSION     of the driver; 12080
//   FAKE_CUDA_PARAMS      sizes of every kernel's parameters; "8,4,128"
//   FAKE_CUDA_CONTEXT     "own": threads start with a context of their own
//   FAKE_CUDA_FAIL        "cuMemAlloc=2": the function fails with this error
//
//===----------------------------------------------------------------------===//

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

using Result = int;
using Address = unsigned long long;

static std::string getOption(const char *name, const char *otherwise) {
  const char *value = std::getenv(name);
  return value ? value : otherwise;
}

/// The error that `function` is to fail with, or 0.
static Result getError(const std::string &function) {
  std::string failing = getOption("FAKE_CUDA_FAIL", "");
  size_t end = failing.find('=');
  return end != std::string::npos && failing.substr(0, end) == function
             ? std::stoi(failing.substr(end + 1))
             : 0;
}

/// Prints a call in one piece, and gives the result of it.
template <typename... Values>
static Result print(const char *function, const char *format,
                    Values... values) {
  std::string line = std::string(function) + "(" + format + ")\n";
  std::printf(line.c_str(), values...);
  return getError(function);
}

//===----------------------------------------------------------------------===//
// Errors, devices and contexts
//===----------------------------------------------------------------------===//

static const struct {
  Result error;
  const char *name, *text;
} kErrors[] = {
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
};

EXPORT Result cuGetErrorName(Result error, const char **name) {
  *name = nullptr;
  for (const auto &known : kErrors)
    if (known.error == error)
      *name = known.name;
  return *name ? 0 : 1;
}

EXPORT Result cuGetErrorString(Result error, const char **text) {
  *text = nullptr;
  for (const auto &known : kErrors)
    if (known.error == error)
      *text = known.text;
  return *text ? 0 : 1;
}

EXPORT Result cuInit(unsigned flags) { return print("cuInit", "%u", flags); }

EXPORT Result cuDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  return print("cuDeviceGet", "%d", ordinal);
}

EXPORT Result cuDeviceGetAttribute(int *value, int attribute, int) {
  int capability = std::stoi(getOption("FAKE_CUDA_CAPABILITY", "90"));
  if (attribute != 75 && attribute != 76)
    return 1;
  *value = attribute == 75 ? capability / 10 : capability % 10;
  return 0;
}

static char primaryContext, ownContext;
static thread_local void *currentContext =
    getOption("FAKE_CUDA_CONTEXT", "") == "own" ? &ownContext : nullptr;

static const char *getName(void *context) {
  return context == &primaryContext ? "primary"
         : context == &ownContext   ? "own"
                                    : "none";
}

EXPORT Result cuDevicePrimaryCtxRetain(void **context, int device) {
  *context = &primaryContext;
  return print("cuDevicePrimaryCtxRetain", "%d", device);
}

EXPORT Result cuCtxGetCurrent(void **context) {
  *context = currentContext;
  return 0;
}

EXPORT Result cuCtxSetCurrent(void *context) {
  currentContext = context;
  return 0;
}

EXPORT Result cuCtxGetDevice(int *device) {
  *device = 0;
  return currentContext ? 0 : 201;
}

//===----------------------------------------------------------------------===//
// Modules and launches
//===----------------------------------------------------------------------===//

namespace {
struct Module {
  std::string text;
};
struct Function {
  std::string name;
  int sharedLimit = 48 * 1024 - 1024;
};
} // namespace

/// The images of the tests are text, behind the magic number of their kind.
static std::string readImage(const void *image) {
  const char *text = static_cast<const char *>(image);
  if (!std::memcmp(text, "\177ELF", 4))
    return std::string("cubin ") + (text + 4);
  const unsigned char fatBinary[] = {0x50, 0xed, 0x55, 0xba};
  if (!std::memcmp(text, fatBinary, 4))
    return std::string("fat binary ") + (text + 4);
  return std::string("PTX ") + text;
}

EXPORT Result cuModuleLoadDataEx(void **module, const void *image,
                                 unsigned numOptions, int *options,
                                 void **values) {
  auto *loaded = new Module{readImage(image)};
  *module = loaded;
  Result result = print("cuModuleLoadDataEx", "%s, %s context",
                        loaded->text.c_str(), getName(currentContext));
  // CU_JIT_ERROR_LOG_BUFFER and its size.
  if (result && numOptions == 2 && options[0] == 5 && options[1] == 6)
    std::snprintf(static_cast<char *>(values[0]),
                  reinterpret_cast<uintptr_t>(values[1]), "%s",
                  "ptxas fatal : no such thing");
  return result;
}

EXPORT Result cuModuleUnload(void *module) {
  Result result = print("cuModuleUnload", "%s, %s context",
                        static_cast<Module *>(module)->text.c_str(),
                        getName(currentContext));
  delete static_cast<Module *>(module);
  return result;
}

EXPORT Result cuModuleGetFunction(void **function, void *module,
                                  const char *name) {
  *function = new Function{name};
  return print("cuModuleGetFunction", "%s, %s",
               static_cast<Module *>(module)->text.c_str(), name);
}

EXPORT Result cuFuncGetAttribute(int *value, int attribute, void *function) {
  if (attribute != 8) // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    return 1;
  *value = static_cast<Function *>(function)->sharedLimit;
  return 0;
}

EXPORT Result cuFuncSetAttribute(void *function, int attribute, int value) {
  static_cast<Function *>(function)->sharedLimit = value;
  return print("cuFuncSetAttribute", "%s, %d, %d",
               static_cast<Function *>(function)->name.c_str(), attribute,
               value);
}

static std::vector<size_t> getParamBytes() {
  std::vector<size_t> sizes;
  std::string text = getOption("FAKE_CUDA_PARAMS", "8,4,128");
  for (const char *at = text.c_str(); *at;) {
    char *end;
    sizes.push_back(std::strtoul(at, &end, 10));
    at = *end == ',' ? end + 1 : end;
  }
  return sizes;
}

static Result getParamInfo(void *, size_t index, size_t *offset, size_t *size) {
  std::vector<size_t> sizes = getParamBytes();
  if (index >= sizes.size())
    return 1;
  *offset = 0;
  *size = sizes[index];
  return 0;
}

EXPORT Result cuLaunchKernel(void *function, unsigned gridX, unsigned gridY,
                             unsigned gridZ, unsigned blockX, unsigned blockY,
                             unsigned blockZ, unsigned sharedBytes,
                             void *stream, void **params, void **extra) {
  std::string values;
  size_t index = 0;
  for (size_t size : getParamBytes()) {
    uint64_t value = 0;
    std::memcpy(&value, params[index++], size < 8 ? size : 8);
    values += ", " + std::to_string(value) + ":" + std::to_string(size);
  }
  const auto &kernel = *static_cast<Function *>(function);
  if (static_cast<int>(sharedBytes) > kernel.sharedLimit || extra)
    return 1;
  return print("cuLaunchKernel", "%s, %ux%ux%u, %ux%ux%u, %u, %s%s",
               kernel.name.c_str(), gridX, gridY, gridZ, blockX, blockY, blockZ,
               sharedBytes, stream ? "stream" : "null", values.c_str());
}

//===----------------------------------------------------------------------===//
// Memory and streams
//===----------------------------------------------------------------------===//

static Address allocate(size_t bytes) {
  return reinterpret_cast<uintptr_t>(std::calloc(1, bytes));
}

EXPORT Result cuMemAlloc_v2(Address *address, size_t bytes) {
  *address = allocate(bytes);
  return print("cuMemAlloc", "%zu", bytes);
}

EXPORT Result cuMemAllocManaged(Address *address, size_t bytes,
                                unsigned flags) {
  *address = allocate(bytes);
  return print("cuMemAllocManaged", "%zu, %u", bytes, flags);
}

EXPORT Result cuMemFree_v2(Address address) {
  std::free(reinterpret_cast<void *>(address));
  return print("cuMemFree", "%s", address ? "memory" : "null");
}

EXPORT Result cuMemcpyAsync(Address to, Address from, size_t bytes,
                            void *stream) {
  std::memcpy(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from),
              bytes);
  return print("cuMemcpyAsync", "%zu, %s", bytes, stream ? "stream" : "null");
}

EXPORT Result cuMemsetD8Async(Address address, unsigned char value,
                              size_t bytes, void *stream) {
  std::memset(reinterpret_cast<void *>(address), value, bytes);
  return print("cuMemsetD8Async", "%d, %zu, %s", value, bytes,
               stream ? "stream" : "null");
}

static char stream;

EXPORT Result cuStreamCreate(void **created, unsigned flags) {
  *created = &stream;
  return print("cuStreamCreate", "%u", flags);
}

EXPORT Result cuStreamDestroy_v2(void *destroyed) {
  return print("cuStreamDestroy", "%s",
               destroyed == &stream ? "stream" : "null");
}

EXPORT Result cuStreamSynchronize(void *waited) {
  return print("cuStreamSynchronize", "%s",
               waited == &stream ? "stream" : "null");
}

//===----------------------------------------------------------------------===//
// TMA descriptors
//===----------------------------------------------------------------------===//

template <typename T> static std::string join(const T *values, unsigned count) {
  std::string text;
  for (unsigned i = 0; i < count; ++i)
    text += (i > 0 ? " " : "") + std::to_string(values[i]);
  return text;
}

static Result encodeTiled(void *descriptor, int type, uint32_t rank,
                          void *address, const uint64_t *dims,
                          const uint64_t *strides, const uint32_t *box,
                          const uint32_t *elementStrides, int interleave,
                          int swizzle, int promotion, int fill) {
  std::memset(descriptor, 0xab, 128);
  return print("cuTensorMapEncodeTiled",
               "type %d, rank %u, address %p, dims %s, strides %s, box %s, "
               "element strides %s, interleave %d, swizzle %d, promotion %d, "
               "fill %d",
               type, rank, address, join(dims, rank).c_str(),
               join(strides, rank - 1).c_str(), join(box, rank).c_str(),
               join(elementStrides, rank).c_str(), interleave, swizzle,
               promotion, fill);
}

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

/// Knows the newer functions only, which are not exported.
EXPORT Result cuGetProcAddress_v2(const char *symbol, void **address,
                                  int version, uint64_t, int *) {
  static const struct {
    const char *symbol;
    int since;
    void *address;
  } kFunctions[] = {
      {"cuTensorMapEncodeTiled", 12000, reinterpret_cast<void *>(&encodeTiled)},
      {"cuFuncGetParamInfo", 12040, reinterpret_cast<void *>(&getParamInfo)},
  };
  int driverVersion = std::stoi(getOption("FAKE_CUDA_VERSION", "12080"));
  *address = nullptr;
  if (version > driverVersion)
    return 1;
  for (const auto &function : kFunctions)
    if (!std::strcmp(function.symbol, symbol) && version >= function.since)
      *address = function.address;
  return 0;
}
