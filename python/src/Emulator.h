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
#include "llvm/ADT/ArrayRef.h"
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
  friend class RegisteredMemory;

  explicit Emulator(void *handle);

  void *handle;
  decltype(&kvcacheEmulatorRegister) registerFunction;
  decltype(&kvcacheEmulatorRegisterConstant) registerConstantFunction;
  decltype(&kvcacheEmulatorUnregister) unregisterFunction;
  decltype(&kvcacheEmulatorTakeMeter) takeMeterFunction;
};

/// Bytes of the host that kernels may access.
struct MemoryRange {
  uint64_t address, bytes, isConstant;
};

/// Lets kernels access memory of the host while the object lives.
class RegisteredMemory {
public:
  RegisteredMemory(const Emulator &emulator,
                   llvm::ArrayRef<MemoryRange> ranges);
  ~RegisteredMemory();
  RegisteredMemory(const RegisteredMemory &) = delete;
  RegisteredMemory &operator=(const RegisteredMemory &) = delete;

private:
  const Emulator &emulator;
  llvm::ArrayRef<MemoryRange> ranges;
};

} // namespace mlir::kvcache::python

#endif // KVCACHE_PYTHON_EMULATOR_H
