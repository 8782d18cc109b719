//===- Variables.cpp - Variables of a thread that it may access -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Variables.h"
#include "Block.h"
#include "Grid.h"

#include <algorithm>

using namespace mlir::kvcache;
using namespace mlir::kvcache::emulator;

//===----------------------------------------------------------------------===//
// Variables
//===----------------------------------------------------------------------===//

void Variables::add(uintptr_t begin, uint64_t bytes, uintptr_t top) {
  uintptr_t end = begin + bytes;
  auto isGone = [=](const Variable &old) {
    return old.begin < top || (old.begin < end && begin < old.end);
  };
  variables.erase(std::remove_if(variables.begin(), variables.end(), isGone),
                  variables.end());
  variables.push_back({begin, end});
}

const Variables::Variable *Variables::find(uintptr_t begin,
                                           uint64_t bytes) const {
  for (const Variable &variable : variables)
    if (variable.begin <= begin && begin < variable.end &&
        bytes <= variable.end - begin)
      return &variable;
  return nullptr;
}

const Variables::Variable *Variables::findNear(uintptr_t address) const {
  constexpr uintptr_t near = 64;
  for (const Variable &variable : variables)
    if (variable.begin - near <= address && address < variable.end + near)
      return &variable;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Functions of compiled code
//===----------------------------------------------------------------------===//

static std::string describeAccess(uint64_t bytes, uint32_t flags) {
  return std::string(flags & KVCacheAccessWrite ? "writes " : "reads ") +
         std::to_string(bytes) + " bytes at ";
}

static std::string describePlace(int64_t offset, int64_t size) {
  return "byte " + std::to_string(offset) + " of a variable of its own of " +
         std::to_string(size) + " bytes";
}

void emulator::accessStack(const Thread &thread, const KVCacheSite *site,
                           const void *pointer, uint64_t bytes,
                           uint32_t flags) {
  auto address = reinterpret_cast<uintptr_t>(pointer);
  if (!thread.block->isSanitized() || thread.variables.find(address, bytes))
    return;
  const Variables::Variable *near = thread.variables.findNear(address);
  thread.block->fail(
      thread, site,
      describeAccess(bytes, flags) +
          (near ? describePlace(static_cast<int64_t>(address - near->begin),
                                near->end - near->begin)
                : "an address of its stack where no variable is"));
}

void kvcacheEmulatorDeclareVariable(KVCacheThread *self, const KVCacheSite *,
                                    const void *pointer, int64_t bytes) {
  Thread::get(self).variables.add(
      reinterpret_cast<uintptr_t>(pointer), bytes,
      reinterpret_cast<uintptr_t>(__builtin_frame_address(0)));
}

void kvcacheEmulatorAccessVariable(KVCacheThread *self, const KVCacheSite *site,
                                   const void *pointer, int64_t bytes,
                                   const void *variable, int64_t size,
                                   uint32_t flags) {
  int64_t offset = reinterpret_cast<uintptr_t>(pointer) -
                   reinterpret_cast<uintptr_t>(variable);
  bool isInside =
      offset >= 0 && offset <= size && bytes >= 0 && bytes <= size - offset;
  if (isInside || bytes == 0)
    return;
  const Thread &thread = Thread::get(self);
  thread.block->fail(
      thread, site, describeAccess(bytes, flags) + describePlace(offset, size));
}

void kvcacheEmulatorReserveStack(KVCacheThread *self, const KVCacheSite *site,
                                 int64_t count, int64_t bytes) {
  Thread &thread = Thread::get(self);
  // For the functions of this library and of the C library.
  constexpr uint64_t reserve = 64 << 10;
  uint64_t room = thread.fiber->getRoom(__builtin_frame_address(0));
  uint64_t most = room > reserve ? room - reserve : 0;
  bool fits = bytes == 0 || static_cast<uint64_t>(count) <= most / bytes;
  if (room <= reserve || !fits)
    thread.block->fail(thread, site,
                       "has no more stack: functions call each other without "
                       "end, or variables are too large or too many");
}
