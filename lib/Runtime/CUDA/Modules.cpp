//===- Modules.cpp - Loaded modules and their kernels ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Modules.h"
#include "Images.h"
#include "kvcache/Runtime/Support.h"

using namespace mlir::kvcache::runtime;
using namespace mlir::kvcache::runtime::cuda;

/// Fails while the stream of the scope is captured: the driver loads no code
/// then, and the capture would be lost.
static int32_t checkNotCapturing(const Driver &driver,
                                 const std::string &what) {
  if (!driver.isCapturing(static_cast<CUstream>(kvcacheScopeStream())))
    return kSuccess;
  return fail(what +
              " is not loaded, and its stream is being captured: expects "
              "a call or 'load' before the capture");
}

//===----------------------------------------------------------------------===//
// Module
//===----------------------------------------------------------------------===//

std::unique_ptr<Module> Module::load(const Driver &driver, CUcontext context,
                                     const KVCacheBinary &binary) {
  int capability;
  if (checkNotCapturing(driver, "module @" + std::string(binary.name)) ||
      getComputeCapability(driver, capability))
    return nullptr;
  const KVCacheImage *image = selectImage(binary, capability);
  if (!image)
    return nullptr;

  // The messages of the driver's assembler about PTX.
  char log[4096] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER,
                            CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, reinterpret_cast<void *>(sizeof(log))};
  CUmodule handle;
  std::string subject =
      "module @" + std::string(binary.name) + " for " + image->chip;
  if (driver.check(
          driver.cuModuleLoadDataEx(&handle, image->data, 2, options, values),
          "cuModuleLoadDataEx", subject.c_str())) {
    log[sizeof(log) - 1] = 0;
    if (*log)
      fail(kvcacheGetLastError() + std::string("\n") + log);
    return nullptr;
  }
  FailureRecord *failureRecord;
  if (addFailureRecord(driver, handle, subject.c_str(), failureRecord)) {
    driver.cuModuleUnload(handle);
    return nullptr;
  }
  return std::make_unique<Module>(driver, context, handle, binary.name,
                                  failureRecord);
}

int32_t Module::unload() const {
  CUcontext current;
  // A destroyed context has already unloaded its modules, and so has the driver
  // at exit.
  if (driver.cuCtxGetCurrent(&current) != CUDA_SUCCESS ||
      driver.cuCtxSetCurrent(context) != CUDA_SUCCESS)
    return kSuccess;
  CUresult result = driver.cuModuleUnload(handle);
  if (failureRecord)
    removeFailureRecord(driver, failureRecord);
  driver.cuCtxSetCurrent(current);
  if (result == CUDA_ERROR_CONTEXT_IS_DESTROYED)
    return kSuccess;
  return driver.check(result, "cuModuleUnload", ("module @" + name).c_str());
}

int32_t Module::lookUp(const char *kernelName, Kernel &kernel) const {
  std::string subject = "kernel " + getKernelName(name, kernelName);
  if (int32_t status = checkNotCapturing(driver, subject))
    return status;
  if (int32_t status = driver.check(
          driver.cuModuleGetFunction(&kernel.function, handle, kernelName),
          "cuModuleGetFunction", subject.c_str()))
    return status;
  if (int32_t status = driver.check(
          driver.cuFuncGetAttribute(
              &kernel.sharedLimit,
              CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel.function),
          "cuFuncGetAttribute", subject.c_str()))
    return status;
  if (!driver.cuFuncGetParamInfo)
    return kSuccess;
  kernel.paramBytes.emplace();
  // The first index that the driver rejects is the number of parameters.
  size_t offset, bytes;
  while (driver.cuFuncGetParamInfo(kernel.function, kernel.paramBytes->size(),
                                   &offset, &bytes) == CUDA_SUCCESS)
    kernel.paramBytes->push_back(bytes);
  return kSuccess;
}

int32_t Module::prepare(const char *kernelName, int sharedBytes,
                        const Kernel *&kernel) {
  std::lock_guard<std::mutex> lock(mutex);
  auto found = kernels.find(kernelName);
  if (found == kernels.end()) {
    Kernel added;
    if (int32_t status = lookUp(kernelName, added))
      return status;
    found = kernels.emplace(kernelName, std::move(added)).first;
  }
  Kernel &entry = found->second;
  kernel = &entry;
  if (sharedBytes <= entry.sharedLimit)
    return kSuccess;
  std::string subject = std::to_string(sharedBytes) +
                        " bytes of shared memory for kernel " +
                        getKernelName(name, kernelName);
  if (int32_t status = driver.check(
          driver.cuFuncSetAttribute(
              entry.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
              sharedBytes),
          "cuFuncSetAttribute", subject.c_str()))
    return status;
  entry.sharedLimit = sharedBytes;
  return kSuccess;
}

static int32_t checkParams(const Kernel &kernel, const std::string &name,
                           const int64_t *paramBytes, int64_t numParams) {
  if (!kernel.paramBytes)
    return kSuccess;
  int64_t expected = static_cast<int64_t>(kernel.paramBytes->size());
  if (numParams < expected)
    return fail("kernel " + name + " has " + std::to_string(expected) +
                " parameters, got " + std::to_string(numParams));
  for (int64_t i = 0; i < expected; ++i) {
    int64_t bytes = static_cast<int64_t>((*kernel.paramBytes)[i]);
    if (paramBytes[i] != bytes)
      return fail("parameter " + std::to_string(i) + " of kernel " + name +
                  " has " + std::to_string(bytes) + " bytes, got " +
                  std::to_string(paramBytes[i]));
  }
  return kSuccess;
}

int32_t Module::load(const char *kernelName, int64_t sharedBytes) {
  const Kernel *kernel;
  return prepare(kernelName, static_cast<int>(sharedBytes), kernel);
}

CUresult Module::start(const Kernel &kernel, const KVCacheLaunch &launch,
                       void **params) const {
  auto side = [](int64_t value) { return static_cast<unsigned>(value); };
  const int64_t (&grid)[3] = launch.grid, (&block)[3] = launch.block,
                (&cluster)[3] = launch.cluster;
  auto *stream = static_cast<CUstream>(launch.stream);
  CUlaunchAttribute attributes[2] = {};
  unsigned count = 0;
  if (cluster[0]) {
    CUlaunchAttribute &attribute = attributes[count++];
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    for (int i = 0; i < 3; ++i)
      attribute.clusterDim[i] = side(cluster[i]);
  }
  if (launch.isProgrammatic) {
    CUlaunchAttribute &attribute = attributes[count++];
    attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attribute.isProgrammatic = 1;
  }
  if (count == 0)
    return driver.cuLaunchKernel(kernel.function, side(grid[0]), side(grid[1]),
                                 side(grid[2]), side(block[0]), side(block[1]),
                                 side(block[2]), side(launch.sharedBytes),
                                 stream, params, /*extra=*/nullptr);
  CUlaunchConfig config = {{side(grid[0]), side(grid[1]), side(grid[2])},
                           {side(block[0]), side(block[1]), side(block[2])},
                           side(launch.sharedBytes),
                           stream,
                           attributes,
                           count};
  return driver.cuLaunchKernelEx(&config, kernel.function, params,
                                 /*extra=*/nullptr);
}

int32_t Module::launch(const char *kernelName, const KVCacheLaunch &launch,
                       void **params, const int64_t *paramBytes,
                       int64_t numParams) {
  std::string fullName = getKernelName(name, kernelName);
  if (int32_t status = checkLaunch(fullName, launch))
    return status;
  int sharedBytes = static_cast<int>(launch.sharedBytes);
  const Kernel *kernel;
  if (int32_t status = prepare(kernelName, sharedBytes, kernel))
    return status;
  if (int32_t status = checkParams(*kernel, fullName, paramBytes, numParams))
    return status;
  if (isEmpty(launch))
    return kSuccess;
  bool hasAttributes = launch.cluster[0] || launch.isProgrammatic;
  if (hasAttributes && !driver.cuLaunchKernelEx)
    return fail("the CUDA driver lacks cuLaunchKernelEx, which clusters and "
                "programmatic launches need: expects one for CUDA 12.0 or "
                "newer");
  return driver.check(start(*kernel, launch, params),
                      hasAttributes ? "cuLaunchKernelEx" : "cuLaunchKernel",
                      ("kernel " + fullName).c_str());
}

//===----------------------------------------------------------------------===//
// ModuleTable
//===----------------------------------------------------------------------===//

ModuleTable &ModuleTable::get() {
  // Never destroyed, because compiled code may unload its modules at exit.
  static ModuleTable &table = *new ModuleTable();
  return table;
}

int32_t ModuleTable::load(const Driver &driver, const KVCacheBinary &binary,
                          Module *&module) {
  CUcontext context;
  if (int32_t status =
          driver.check(driver.cuCtxGetCurrent(&context), "cuCtxGetCurrent"))
    return status;
  // Hold the lock during loading, so that other threads wait instead of loading
  // the module again.
  std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<Module> &entry = modules[{&binary, context}];
  if (!entry)
    entry = Module::load(driver, context, binary);
  module = entry.get();
  return module ? kSuccess : kFailure;
}

int32_t ModuleTable::unload(const KVCacheBinary &binary) {
  std::lock_guard<std::mutex> lock(mutex);
  int32_t status = kSuccess;
  auto it = modules.lower_bound({&binary, nullptr});
  for (; it != modules.end() && it->first.first == &binary;
       it = modules.erase(it))
    if (it->second && it->second->unload())
      status = kFailure;
  return status;
}
