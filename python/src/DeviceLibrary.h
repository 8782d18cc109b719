//===- DeviceLibrary.h - The libraries of devices ---------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_PYTHON_DEVICELIBRARY_H
#define KVCACHE_PYTHON_DEVICELIBRARY_H

#include "kvcache/Emulator/Emulator.h"
#include "kvcache/Runtime/Device.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace mlir::kvcache::python {

/// A library that implements kvcache/Runtime/Device.h, such as
/// libkvcache_emulator.so, and lies beside this extension. It stays loaded, and
/// its names are not visible to others.
class DeviceLibrary {
public:
  /// The library of a device, `emulator` or `cuda`, which the first call loads.
  static llvm::Expected<const DeviceLibrary *> get(llvm::StringRef device);

  /// The address of a function; null if there is none.
  void *lookup(llvm::StringRef function) const;

  /// Gives the memory traffic of this thread's launches since the last call, as
  /// JSON; empty except on the emulator.
  std::string takeMeter() const {
    return takeMeterFunction ? takeMeterFunction() : "";
  }

  decltype(&kvcacheModuleUnload) unloadModule;
  decltype(&kvcacheKernelLoad) loadKernel;
  decltype(&kvcacheScopeEnter) enterScope;
  decltype(&kvcacheScopeLeave) leaveScope;
  decltype(&kvcacheGetLastError) getLastError;

private:
  explicit DeviceLibrary(void *handle);

  /// Finds a function. Returns null, and makes the library invalid, without it.
  template <typename Function>
  void find(Function &function, llvm::StringRef name) {
    function = reinterpret_cast<Function>(lookup(name));
    isComplete &= function != nullptr;
  }

  void *handle;
  bool isComplete = true;
  decltype(&kvcacheEmulatorTakeMeter) takeMeterFunction;
};

} // namespace mlir::kvcache::python

#endif // KVCACHE_PYTHON_DEVICELIBRARY_H
