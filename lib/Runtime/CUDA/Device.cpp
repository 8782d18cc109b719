//===- Device.cpp - The C ABI over the CUDA driver ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Runtime/Device.h"
#include "Driver.h"
#include "Modules.h"
#include "kvcache/Runtime/Support.h"

#include <cstring>

using namespace mlir::kvcache;
using namespace mlir::kvcache::runtime;
using namespace mlir::kvcache::runtime::cuda;

//===----------------------------------------------------------------------===//
// Modules and launches
//===----------------------------------------------------------------------===//

int32_t kvcacheModuleLoad(const KVCacheBinary *binary, void **module) {
  const Driver *driver = enterDriver();
  if (!driver)
    return kFailure;
  Module *loaded;
  if (int32_t status = ModuleTable::get().load(*driver, *binary, loaded))
    return status;
  *module = loaded;
  return kSuccess;
}

int32_t kvcacheModuleUnload(const KVCacheBinary *binary) {
  return ModuleTable::get().unload(*binary);
}

int32_t kvcacheKernelLoad(const KVCacheKernel *kernel) {
  void *module;
  if (int32_t status = kvcacheModuleLoad(kernel->binary, &module))
    return status;
  return static_cast<Module *>(module)->load(kernel->name, kernel->sharedBytes);
}

int32_t kvcacheLaunch(void *module, const char *kernel,
                      const KVCacheLaunch *launch, void **params,
                      const int64_t *paramBytes, int64_t numParams) {
  if (!enterDriver())
    return kFailure;
  return static_cast<Module *>(module)->launch(kernel, *launch, params,
                                               paramBytes, numParams);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Runs `allocate(driver, &address)` unless the size is 0.
template <typename Allocate>
static int32_t allocateMemory(int64_t bytes, void **pointer,
                              Allocate allocate) {
  if (int32_t status = checkBytes(bytes))
    return status;
  *pointer = nullptr;
  if (bytes == 0)
    return kSuccess;
  const Driver *driver = enterDriver();
  if (!driver)
    return kFailure;
  CUdeviceptr address;
  if (int32_t status = allocate(*driver, &address))
    return status;
  *pointer = reinterpret_cast<void *>(address);
  return kSuccess;
}

int32_t kvcacheMemAlloc(int64_t bytes, void **pointer) {
  return allocateMemory(
      bytes, pointer, [&](const Driver &driver, CUdeviceptr *address) {
        return driver.check(driver.cuMemAlloc(address, bytes), "cuMemAlloc",
                            (std::to_string(bytes) + " bytes").c_str());
      });
}

int32_t kvcacheMemAllocManaged(int64_t bytes, void **pointer) {
  return allocateMemory(
      bytes, pointer, [&](const Driver &driver, CUdeviceptr *address) {
        return driver.check(
            driver.cuMemAllocManaged(address, bytes, CU_MEM_ATTACH_GLOBAL),
            "cuMemAllocManaged", (std::to_string(bytes) + " bytes").c_str());
      });
}

int32_t kvcacheMemFree(void *pointer) {
  if (!pointer)
    return kSuccess;
  const Driver *driver = enterDriver();
  if (!driver)
    return kFailure;
  return driver->check(driver->cuMemFree(toAddress(pointer)), "cuMemFree");
}

/// Runs `run(driver)` unless the size is 0.
template <typename Run> static int32_t runOnBytes(int64_t bytes, Run run) {
  if (int32_t status = checkBytes(bytes))
    return status;
  if (bytes == 0)
    return kSuccess;
  const Driver *driver = enterDriver();
  if (!driver)
    return kFailure;
  return run(*driver);
}

int32_t kvcacheMemCopy(void *to, const void *from, int64_t bytes,
                       void *stream) {
  return runOnBytes(bytes, [&](const Driver &driver) {
    return driver.check(driver.cuMemcpyAsync(toAddress(to), toAddress(from),
                                             bytes,
                                             static_cast<CUstream>(stream)),
                        "cuMemcpyAsync");
  });
}

int32_t kvcacheMemSet(void *pointer, uint8_t value, int64_t bytes,
                      void *stream) {
  return runOnBytes(bytes, [&](const Driver &driver) {
    return driver.check(driver.cuMemsetD8Async(toAddress(pointer), value, bytes,
                                               static_cast<CUstream>(stream)),
                        "cuMemsetD8Async");
  });
}

//===----------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------===//

int32_t kvcacheStreamCreate(void **stream) {
  return createStream(stream, CU_STREAM_DEFAULT);
}

int32_t kvcacheStreamDestroy(void *stream) {
  const Driver *driver = enterDriver();
  if (!driver)
    return kFailure;
  return driver->check(driver->cuStreamDestroy(static_cast<CUstream>(stream)),
                       "cuStreamDestroy");
}

int32_t kvcacheStreamSynchronize(void *stream) {
  const Driver *driver = enterDriver();
  if (!driver)
    return kFailure;
  return driver->check(
      driver->cuStreamSynchronize(static_cast<CUstream>(stream)),
      "cuStreamSynchronize");
}

int32_t kvcacheStreamIsCapturing(void *stream) {
  const Driver *driver = enterDriver();
  return driver && driver->isCapturing(static_cast<CUstream>(stream));
}

static thread_local void *scopeStream = nullptr;

/// Makes a context of the device current, unless the current one is.
static int32_t enterDevice(const Driver &driver, int32_t device,
                           CUcontext current) {
  CUdevice currentDevice;
  if (current) {
    if (int32_t status = driver.check(driver.cuCtxGetDevice(&currentDevice),
                                      "cuCtxGetDevice"))
      return status;
    if (device < 0 || device == currentDevice)
      return kSuccess;
  }
  CUcontext context;
  if (int32_t status = getPrimaryContext(driver, device, context))
    return status;
  return driver.check(driver.cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

int32_t kvcacheScopeEnter(int32_t device, void *stream, KVCacheScope *outer) {
  const Driver *driver = getDriver();
  if (!driver)
    return kFailure;
  CUcontext current = nullptr;
  if (int32_t status =
          driver->check(driver->cuCtxGetCurrent(&current), "cuCtxGetCurrent"))
    return status;
  if (int32_t status = enterDevice(*driver, device, current))
    return status;
  *outer = {current, scopeStream};
  scopeStream = stream;
  return kSuccess;
}

void kvcacheScopeLeave(const KVCacheScope *outer) {
  scopeStream = outer->stream;
  CUcontext current = nullptr;
  const Driver *driver = getDriver();
  // A thread that had no context keeps the one that it has got.
  if (driver && outer->context &&
      driver->cuCtxGetCurrent(&current) == CUDA_SUCCESS &&
      current != outer->context)
    driver->cuCtxSetCurrent(static_cast<CUcontext>(outer->context));
}

void *kvcacheScopeStream() { return scopeStream; }

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

int32_t kvcacheDeviceCount(int32_t *count) {
  const Driver *driver = getDriver();
  if (!driver)
    return kFailure;
  return driver->check(driver->cuDeviceGetCount(count), "cuDeviceGetCount");
}

int32_t kvcacheDeviceCapability(int32_t device, int32_t *capability) {
  const Driver *driver = getDriver();
  if (!driver)
    return kFailure;
  CUdevice handle;
  if (int32_t status =
          driver->check(driver->cuDeviceGet(&handle, device), "cuDeviceGet"))
    return status;
  return getComputeCapability(*driver, handle, *capability);
}

//===----------------------------------------------------------------------===//
// TMA descriptors
//===----------------------------------------------------------------------===//

/// Returns an element type of this size. Copies do not compute, so only the
/// size matters.
static CUtensorMapDataType getDataType(int64_t elementBytes) {
  switch (elementBytes) {
  case 1:
    return CU_TENSOR_MAP_DATA_TYPE_UINT8;
  case 2:
    return CU_TENSOR_MAP_DATA_TYPE_UINT16;
  case 4:
    return CU_TENSOR_MAP_DATA_TYPE_UINT32;
  default:
    return CU_TENSOR_MAP_DATA_TYPE_UINT64;
  }
}

static CUtensorMapSwizzle getSwizzle(tma::Swizzle swizzle) {
  switch (swizzle) {
  case tma::Swizzle::None:
    return CU_TENSOR_MAP_SWIZZLE_NONE;
  case tma::Swizzle::Span32:
    return CU_TENSOR_MAP_SWIZZLE_32B;
  case tma::Swizzle::Span64:
    return CU_TENSOR_MAP_SWIZZLE_64B;
  case tma::Swizzle::Span128:
    return CU_TENSOR_MAP_SWIZZLE_128B;
  }
  return CU_TENSOR_MAP_SWIZZLE_NONE;
}

static CUtensorMapL2promotion getL2Promotion(int64_t bytes) {
  switch (bytes) {
  case 64:
    return CU_TENSOR_MAP_L2_PROMOTION_L2_64B;
  case 128:
    return CU_TENSOR_MAP_L2_PROMOTION_L2_128B;
  case 256:
    return CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
  default:
    return CU_TENSOR_MAP_L2_PROMOTION_NONE;
  }
}

static CUresult encodeTiled(const Driver &driver,
                            const tma::Descriptor &descriptor, void *bytes) {
  constexpr int maxRank = tma::TensorMap::kMaxRank;
  const tma::TensorMap &map = descriptor.map;
  uint64_t dims[maxRank] = {}, strideBytes[maxRank] = {};
  uint32_t box[maxRank] = {}, elementStrides[maxRank] = {};
  for (int dim = 0; dim < map.rank; ++dim) {
    dims[dim] = map.dims[dim];
    box[dim] = static_cast<uint32_t>(map.box[dim]);
    elementStrides[dim] = 1;
    // The driver does not take the innermost stride, which is 1.
    if (dim > 0)
      strideBytes[dim - 1] = map.strides[dim] * map.elementBytes;
  }
  uint64_t address = descriptor.base + static_cast<uint64_t>(map.offset);
  return driver.cuTensorMapEncodeTiled(
      bytes, getDataType(map.elementBytes), map.rank,
      reinterpret_cast<void *>(address), dims, strideBytes, box, elementStrides,
      CU_TENSOR_MAP_INTERLEAVE_NONE, getSwizzle(map.swizzle),
      getL2Promotion(descriptor.l2Promotion),
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

int32_t kvcacheTensorMapEncode(const KVCacheTensorMap *map, void *descriptor) {
  std::optional<tma::Descriptor> wanted = getDescriptor(*map, descriptor);
  if (!wanted)
    return kFailure;
  const Driver *driver = enterDriver();
  if (!driver)
    return kFailure;
  int capability;
  if (int32_t status = getComputeCapability(*driver, capability))
    return status;
  if (capability < 90) {
    std::memset(descriptor, 0, tma::kDescriptorBytes);
    return kSuccess;
  }
  if (!driver->cuTensorMapEncodeTiled)
    return fail("the CUDA driver lacks cuTensorMapEncodeTiled: expects one for "
                "CUDA 12.0 or newer");
  return driver->check(encodeTiled(*driver, *wanted, descriptor),
                       "cuTensorMapEncodeTiled");
}
