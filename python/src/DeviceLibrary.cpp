//===- DeviceLibrary.cpp - The libraries of devices -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceLibrary.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <dlfcn.h>
#include <mutex>

using namespace mlir::kvcache::python;

/// The path of a library beside the one that this code is in.
static llvm::SmallString<256> getPath(llvm::StringRef device) {
  llvm::SmallString<256> path(
      ("libkvcache_" + device + KVCACHE_SHARED_LIBRARY_SUFFIX).str());
  Dl_info info;
  if (!dladdr(reinterpret_cast<void *>(&DeviceLibrary::get), &info))
    return path;
  llvm::SmallString<256> beside(llvm::sys::path::parent_path(info.dli_fname));
  llvm::sys::path::append(beside, path);
  return beside;
}

DeviceLibrary::DeviceLibrary(void *handle)
    : handle(handle), takeMeterFunction(reinterpret_cast<const char *(*)()>(
                          lookup("kvcacheEmulatorTakeMeter"))) {
  find(unloadModule, "kvcacheModuleUnload");
  find(loadKernel, "kvcacheKernelLoad");
  find(enterScope, "kvcacheScopeEnter");
  find(leaveScope, "kvcacheScopeLeave");
  find(getLastError, "kvcacheGetLastError");
}

llvm::Expected<const DeviceLibrary *>
DeviceLibrary::get(llvm::StringRef device) {
  static std::mutex mutex;
  // Never destroyed, because modules are unloaded at exit.
  static auto &libraries = *new llvm::StringMap<const DeviceLibrary *>;
  std::lock_guard<std::mutex> lock(mutex);
  const DeviceLibrary *&library = libraries[device];
  if (library)
    return library;
  llvm::SmallString<256> path = getPath(device);
  void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char *error = dlerror();
    return llvm::createStringError(
        "the library of the device can't be "
        "loaded: " +
        llvm::Twine(error ? error : "unknown error"));
  }
  std::unique_ptr<DeviceLibrary> loaded(new DeviceLibrary(handle));
  if (!loaded->isComplete)
    return llvm::createStringError(llvm::Twine(path) +
                                   " is of another version than this package");
  return library = loaded.release();
}

void *DeviceLibrary::lookup(llvm::StringRef function) const {
  return dlsym(handle, function.str().c_str());
}
