//===- Emulator.cpp - The library of the emulator -------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emulator.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <dlfcn.h>

using namespace mlir::kvcache::python;

/// The path of the library beside the one that this code is in.
static llvm::SmallString<256> getPath() {
  llvm::SmallString<256> path(
      "libkvcache_emulator" KVCACHE_SHARED_LIBRARY_SUFFIX);
  Dl_info info;
  if (!dladdr(reinterpret_cast<void *>(&Emulator::get), &info))
    return path;
  llvm::SmallString<256> beside(llvm::sys::path::parent_path(info.dli_fname));
  llvm::sys::path::append(beside, path);
  return beside;
}

Emulator::Emulator(void *handle)
    : handle(handle), takeMeterFunction(reinterpret_cast<const char *(*)()>(
                          lookup("kvcacheEmulatorTakeMeter"))) {}

llvm::Expected<const Emulator *> Emulator::get() {
  static void *const handle = dlopen(getPath().c_str(), RTLD_NOW | RTLD_LOCAL);
  static const char *const error = handle ? nullptr : dlerror();
  if (!handle)
    return llvm::createStringError(
        "the emulator can't be loaded: " +
        llvm::Twine(error ? error : "unknown error"));
  static const Emulator &emulator = *new Emulator(handle);
  if (!emulator.takeMeterFunction)
    return llvm::createStringError(llvm::Twine(getPath()) +
                                   " is of another version than this package");
  return &emulator;
}

void *Emulator::lookup(llvm::StringRef function) const {
  return dlsym(handle, function.str().c_str());
}
