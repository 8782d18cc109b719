//===- Modules.h - Loaded modules and their kernels -------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_RUNTIME_CUDA_MODULES_H
#define KVCACHE_LIB_RUNTIME_CUDA_MODULES_H

#include "Driver.h"
#include "Failures.h"
#include "kvcache/Runtime/Device.h"

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mlir::kvcache::runtime::cuda {

/// A kernel, and the data for its launches.
struct Kernel {
  CUfunction function = nullptr;
  /// The current limit of dynamic shared memory of a launch, in bytes.
  int sharedLimit = 0;
  /// The sizes of the parameters, if the driver reports them.
  std::optional<std::vector<size_t>> paramBytes;
};

/// A module in a context. Its address is the handle for compiled code.
class Module {
public:
  Module(const Driver &driver, CUcontext context, CUmodule handle,
         std::string name, FailureRecord *failureRecord)
      : driver(driver), context(context), handle(handle), name(std::move(name)),
        failureRecord(failureRecord) {}

  /// Loads the image of `binary` for the current device into `context`, which
  /// must be current. On failure, returns null and sets the last error.
  static std::unique_ptr<Module> load(const Driver &driver, CUcontext context,
                                      const KVCacheBinary &binary);

  /// Unloads the module. Must be the last call.
  int32_t unload() const;

  /// Prepares launches of a kernel.
  int32_t load(const char *kernelName, int64_t sharedBytes);

  int32_t launch(const char *kernelName, const KVCacheLaunch &launch,
                 void **params, const int64_t *paramBytes, int64_t numParams);

private:
  /// Finds the kernel, and sets it up for launches with `sharedBytes`.
  int32_t prepare(const char *kernelName, int sharedBytes,
                  const Kernel *&kernel);
  int32_t lookUp(const char *kernelName, Kernel &kernel) const;
  CUresult start(const Kernel &kernel, const KVCacheLaunch &launch,
                 void **params) const;

  const Driver &driver;
  CUcontext context;
  CUmodule handle;
  std::string name;
  /// The record of a kernel's failed check; null without checks.
  FailureRecord *failureRecord;
  std::mutex mutex;
  /// The address of a kernel is stable when others are added.
  std::map<std::string, Kernel, std::less<>> kernels;
};

/// The modules of this process, by their binaries and contexts.
class ModuleTable {
public:
  static ModuleTable &get();

  int32_t load(const Driver &driver, const KVCacheBinary &binary,
               Module *&module);
  int32_t unload(const KVCacheBinary &binary);

private:
  std::mutex mutex;
  std::map<std::pair<const KVCacheBinary *, CUcontext>, std::unique_ptr<Module>>
      modules;
};

} // namespace mlir::kvcache::runtime::cuda

#endif // KVCACHE_LIB_RUNTIME_CUDA_MODULES_H
