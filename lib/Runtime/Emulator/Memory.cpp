//===- Memory.cpp - Global memory that kernels may access -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Memory.h"
#include "kvcache/Runtime/Emulator.h"

#include <cstdlib>

using namespace mlir::kvcache::emulator;

Memory &Memory::get() {
  static Memory &memory = *new Memory;
  return memory;
}
void *Memory::allocate(int64_t bytes, bool) {
  void *p = nullptr;
  return posix_memalign(&p, 256, bytes) ? nullptr : p;
}
bool Memory::free(void *pointer) {
  std::free(pointer);
  return true;
}
void Memory::add(const void *, int64_t, bool, bool) {}
void Memory::remove(const void *) {}
void Memory::noteHostWrite(void *, int64_t) {}
void Memory::noteHostCopy(void *, const void *, int64_t) {}
void Memory::beginLaunch() {}
std::optional<std::string> Memory::access(const void *, int64_t, uint32_t) {
  return std::nullopt;
}
std::optional<std::string> Memory::accessByCopy(const void *, int64_t,
                                                uint32_t) {
  return std::nullopt;
}

void kvcacheEmulatorRegister(const void *pointer, int64_t bytes) {
  if (bytes > 0)
    Memory::get().add(pointer, bytes);
}

void kvcacheEmulatorUnregister(const void *pointer) {
  Memory::get().remove(pointer);
}
