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

std::optional<uint64_t>
Variables::Variable::findUnwritten(uintptr_t address, uint64_t bytes) const {
  if (unwritten.empty())
    return std::nullopt;
  auto first = unwritten.begin() + (address - begin);
  auto found = std::find(first, first + bytes, true);
  if (found == first + bytes)
    return std::nullopt;
  return found - unwritten.begin();
}

void Variables::Variable::write(uintptr_t address, uint64_t bytes) {
  if (unwritten.empty())
    return;
  auto first = unwritten.begin() + (address - begin);
  std::fill(first, first + bytes, false);
}

void Variables::Variable::copy(uintptr_t address, const Variable &from,
                               uintptr_t fromAddress, uint64_t bytes) {
  if (from.unwritten.empty())
    return write(address, bytes);
  unwritten.resize(size());
  auto first = from.unwritten.begin() + (fromAddress - from.begin);
  // The two may be parts of one that overlap.
  std::vector<bool> copied(first, first + bytes);
  std::copy(copied.begin(), copied.end(),
            unwritten.begin() + (address - begin));
}

void Variables::add(uintptr_t begin, uint64_t bytes, uintptr_t top,
                    bool isWritten) {
  uintptr_t end = begin + bytes;
  if (isWritten && find(begin, bytes))
    return;
  auto isGone = [=](const Variable &old) {
    return old.begin < top || (old.begin < end && begin < old.end);
  };
  variables.erase(std::remove_if(variables.begin(), variables.end(), isGone),
                  variables.end());
  variables.push_back(
      {begin, end, std::vector<bool>(isWritten ? 0 : bytes, true)});
}

Variables::Variable *Variables::find(uintptr_t begin, uint64_t bytes) {
  for (Variable &variable : variables)
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

std::string Variables::describe(int64_t offset, uint64_t size) {
  return "byte " + std::to_string(offset) + " of a variable of its own of " +
         std::to_string(size) + " bytes";
}

//===----------------------------------------------------------------------===//
// Functions of compiled code
//===----------------------------------------------------------------------===//

static std::string describeAccess(uint64_t bytes, uint32_t flags) {
  return std::string(flags & KVCacheAccessWrite ? "writes " : "reads ") +
         std::to_string(bytes) + " bytes at ";
}

/// An access of a variable that is declared, which it doesn't leave.
static void access(Thread &thread, const KVCacheSite *site,
                   Variables::Variable &variable, uintptr_t address,
                   uint64_t bytes, uint32_t flags) {
  if (flags & KVCacheAccessCopied)
    return;
  std::optional<uint64_t> unwritten;
  if (flags & KVCacheAccessRead)
    unwritten = variable.findUnwritten(address, bytes);
  if (unwritten && !(flags & KVCacheAccessPoisons))
    thread.block->fail(
        thread, site,
        describeAccess(bytes, flags) +
            Variables::describe(address - variable.begin, variable.size()) +
            ", which are uninitialized");
  if (unwritten) {
    Poison poison{0, thread.block->sanitizer.addOrigin(site, *unwritten,
                                                       variable.size())};
    for (uint64_t i = 0; i < std::min<uint64_t>(bytes, KVCachePoisonBytes); ++i)
      poison.mask |=
          uint64_t{variable.findUnwritten(address + i, 1).has_value()} << i;
    thread.setPoison(poison);
  }
  if (flags & KVCacheAccessWrite)
    variable.write(address, bytes);
}

void emulator::accessStack(Thread &thread, const KVCacheSite *site,
                           const void *pointer, uint64_t bytes,
                           uint32_t flags) {
  auto address = reinterpret_cast<uintptr_t>(pointer);
  if (!thread.block->isSanitized())
    return;
  if (Variables::Variable *variable = thread.variables.find(address, bytes))
    return access(thread, site, *variable, address, bytes, flags);
  const Variables::Variable *near = thread.variables.findNear(address);
  thread.block->fail(
      thread, site,
      describeAccess(bytes, flags) +
          (near ? Variables::describe(
                      static_cast<int64_t>(address - near->begin), near->size())
                : "an address of its stack where no variable is"));
}

void kvcacheEmulatorDeclareVariable(KVCacheThread *self, const KVCacheSite *,
                                    const void *pointer, int64_t bytes,
                                    int32_t isWritten) {
  Thread::get(self).variables.add(
      reinterpret_cast<uintptr_t>(pointer), bytes,
      reinterpret_cast<uintptr_t>(__builtin_frame_address(0)), isWritten);
}

void kvcacheEmulatorCopyVariable(KVCacheThread *self, const KVCacheSite *site,
                                 const void *to, const void *from,
                                 int64_t bytes) {
  Thread &thread = Thread::get(self);
  if (bytes == 0)
    return;
  auto source = reinterpret_cast<uintptr_t>(from);
  auto target = reinterpret_cast<uintptr_t>(to);
  Variables::Variable *read = thread.variables.find(source, bytes);
  Variables::Variable *written = thread.variables.find(target, bytes);
  if (read && written)
    written->copy(target, *read, source, bytes);
  else if (read)
    access(thread, site, *read, source, bytes, KVCacheAccessRead);
  else if (written)
    written->write(target, bytes);
}

void kvcacheEmulatorAccessVariable(KVCacheThread *self, const KVCacheSite *site,
                                   const void *pointer, int64_t bytes,
                                   const void *variable, int64_t size,
                                   uint32_t flags) {
  int64_t offset = reinterpret_cast<uintptr_t>(pointer) -
                   reinterpret_cast<uintptr_t>(variable);
  bool isInside =
      offset >= 0 && offset <= size && bytes >= 0 && bytes <= size - offset;
  Thread &thread = Thread::get(self);
  if (flags & KVCacheAccessPoisons)
    thread.setPoison({});
  if (bytes == 0)
    return;
  if (!isInside)
    thread.block->fail(thread, site,
                       describeAccess(bytes, flags) +
                           Variables::describe(offset, size));
  auto address = reinterpret_cast<uintptr_t>(pointer);
  if (Variables::Variable *declared =
          flags & KVCacheAccessDeclared ? thread.variables.find(address, bytes)
                                        : nullptr)
    access(thread, site, *declared, address, bytes, flags);
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
