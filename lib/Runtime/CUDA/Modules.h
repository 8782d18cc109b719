//===- Modules.h - Loaded modules and their kernels -------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_RUNTIME_CUDA_MODULES_H
#define KVCACHE_RUNTIME_CUDA_MODULES_H

#include "Driver.h"
#include "kvcache/Runtime/Device.h"

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mlir::kvcache::runtime::cuda {

/// A kernel, and what its launches need.
struct Kernel {
  CUfunction function = nullptr;
  /// Bytes of dynamic shared memory that a launch may have at present.
  int sharedLimit = 0;
  /// Sizes of the parameters, where the driver tells them.
  std::optional<std::vector<size_t>> paramBytes;
};

/// A module in a context. The handle that compiled code has is its address.
class Module {
public:
  Module(const Driver &driver, CUcontext context, CUmodule handle,
         std::string name)
      : driver(driver), context(context), handle(handle),
        name(std::move(name)) {}

  /// Loads the image of `binary` for the current device into `context`, which
  /// is current. Null, and the last error set, if that fails.
  static std::unique_ptr<Module> load(const Driver &driver, CUcontext context,
                                      const KVCacheBinary &binary);

  /// To be called once, and nothing after it.
  int32_t unload() const;

  int32_t launch(const char *kernelName, const KVCacheLaunch &launch,
                 void **params, const int64_t *paramBytes, int64_t numParams);

private:
  /// Finds the kernel, and sets it up for launches with `sharedBytes`.
  int32_t prepare(const char *kernelName, int sharedBytes,
                  const Kernel *&kernel);
  int32_t lookUp(const char *kernelName, Kernel &kernel) const;

  const Driver &driver;
  CUcontext context;
  CUmodule handle;
  std::string name;
  std::mutex mutex;
  /// A kernel stays where it is when others are added.
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

#endif // KVCACHE_RUNTIME_CUDA_MODULES_H
