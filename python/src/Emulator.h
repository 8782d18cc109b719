//===- Emulator.h - The library of the emulator -----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_PYTHON_EMULATOR_H
#define KVCACHE_PYTHON_EMULATOR_H

#include "kvcache/Emulator/Emulator.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace mlir::kvcache::python {

/// libkvcache_emulator.so, which lies beside this extension. It stays loaded,
/// and its names are not visible to others.
class Emulator {
public:
  /// The library, which is loaded by the first call.
  static llvm::Expected<const Emulator *> get();

  /// The address of a function; null if there is none.
  void *lookup(llvm::StringRef function) const;

  /// What the launches of this thread since the last call have asked of
  /// memory, as JSON.
  std::string takeMeter() const { return takeMeterFunction(); }

private:
  explicit Emulator(void *handle);

  void *handle;
  decltype(&kvcacheEmulatorTakeMeter) takeMeterFunction;
};

} // namespace mlir::kvcache::python

#endif // KVCACHE_PYTHON_EMULATOR_H
