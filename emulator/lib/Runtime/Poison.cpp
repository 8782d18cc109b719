//===- Poison.cpp - Uninitialized values ----------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Emulator/Poison.h"
#include "Block.h"

#include <algorithm>
#include <cstring>

using namespace mlir::kvcache::emulator;

uint32_t Origins::add(const Origin &origin) {
  // A kernel that reads ever more of such bytes must not take all memory.
  constexpr size_t most = 1 << 16;
  auto [found, isNew] =
      numbers.try_emplace({origin.site, origin.begin, origin.variableBytes}, 0);
  if (!isNew)
    return found->second;
  if (origins.size() == most)
    return found->second = most;
  origins.push_back(origin);
  return found->second = origins.size();
}

//===----------------------------------------------------------------------===//
// Reads
//===----------------------------------------------------------------------===//

void Sanitizer::notePoison(const Access &access, uint64_t index,
                           uint16_t missing) {
  constexpr uint64_t last = 63;
  for (uint32_t rest = missing; rest; rest &= rest - 1) {
    uint64_t byte = index * kGranuleBytes + __builtin_ctz(rest);
    poison.mask |= uint64_t{1} << std::min(byte - access.begin, last);
  }
  if (poison.origin)
    return;
  poison.origin = getStoredOrigin(access, index, missing);
  if (!poison.origin)
    poison.origin = origins.add(
        {access.site, index * kGranuleBytes + __builtin_ctz(missing),
         access.isGlobal, hasCopies && !access.isGlobal});
}

/// A copy to global memory may leave out bytes of what it reads, which need
/// not be initialized.
void Sanitizer::checkUsed(const Access &access,
                          const std::vector<char> &isUsed) {
  forEachGranule(
      access.begin, isUsed.size(), [&](uint64_t index, uint16_t mask) {
        uint16_t missing = mask & ~getGranule(index).initialized;
        for (uint32_t rest = missing; rest; rest &= rest - 1) {
          uint32_t bit = __builtin_ctz(rest);
          if (!isUsed[index * kGranuleBytes + bit - access.begin])
            missing &= ~(1u << bit);
        }
        if (missing)
          fail(access, index, missing, describeMissing(access, index, missing));
      });
}

/// The origin of what poisoned values have been stored to, or 0.
uint32_t Sanitizer::getStoredOrigin(const Access &access, uint64_t index,
                                    uint16_t missing) const {
  auto found = access.isGlobal ? stored.end() : stored.find(index);
  return found != stored.end() && (found->second.mask & missing)
             ? found->second.origin
             : 0;
}

//===----------------------------------------------------------------------===//
// Stores
//===----------------------------------------------------------------------===//

void Sanitizer::poisonShared(SharedRange range, const char *bytes,
                             uint32_t origin) {
  if (!isOn)
    return;
  for (uint32_t i = 0; i < range.bytes; ++i) {
    if (!bytes[i])
      continue;
    uint32_t index = (range.offset + i) / kGranuleBytes;
    uint16_t bit = 1u << (range.offset + i) % kGranuleBytes;
    getGranule(index).initialized &= ~bit;
    StoredPoison &here = stored[index];
    here.mask |= bit;
    here.origin = origin;
  }
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

std::string Sanitizer::describeOrigin(uint32_t number) const {
  const Origins::Origin &origin = origins.get(number);
  if (origin.isTensor)
    return "depends on words which were uninitialized when " +
           Block::describe(origin.site) + " read them; the first is " +
           TensorMemory::describe(origin.begin);
  return std::string("depends on bytes which were uninitialized") +
         (origin.mayArrive ? ", and for which no copy had been issued," : "") +
         " when " + Block::describe(origin.site) + " read them; the first is " +
         (origin.variableBytes
              ? Variables::describe(origin.begin, origin.variableBytes)
              : describePlace(origin.begin, origin.isGlobal));
}

std::string Sanitizer::describeMissing(const Access &access, uint64_t index,
                                       uint16_t missing) const {
  if (uint32_t origin = getStoredOrigin(access, index, missing))
    return "hold a value that " + describeOrigin(origin);
  return hasCopies ? "are uninitialized, and for which no copy has been issued"
                   : "are uninitialized";
}

void Sanitizer::failUse(const Thread &thread, const KVCacheSite *site,
                        const std::string &use, uint32_t origin) const {
  cluster.fail(thread, site, use + " a value that " + describeOrigin(origin));
}

//===----------------------------------------------------------------------===//
// Functions of compiled code
//===----------------------------------------------------------------------===//

void Thread::setPoison(const Poison &read) {
  origin = read.origin;
  if (!origin) {
    static constexpr char none[KVCachePoisonBytes] = {};
    poison = none;
    return;
  }
  for (uint32_t i = 0; i < KVCachePoisonBytes; ++i)
    poisonedBytes[i] = read.mask >> i & 1 ? -1 : 0;
  poison = poisonedBytes;
}

void kvcacheEmulatorUse(KVCacheThread *self, const KVCacheSite *site,
                        uint32_t origin, uint32_t use) {
  if (!origin)
    return;
  static const char *const uses[] = {"branches on", "computes an address from",
                                     "uses", "passes to a function"};
  const Thread &thread = Thread::get(self);
  thread.block->sanitizer.failUse(thread, site, uses[use], origin);
}

uint32_t kvcacheEmulatorReadUnwritten(KVCacheThread *self,
                                      const KVCacheSite *site,
                                      const void *unwritten, int64_t bytes,
                                      int64_t offset, int64_t size) {
  const auto *first = static_cast<const char *>(unwritten);
  const void *found = std::memchr(first, -1, bytes);
  if (!found)
    return 0;
  offset += static_cast<const char *>(found) - first;
  return Thread::get(self).block->sanitizer.addOrigin(site, offset, size);
}

void kvcacheEmulatorStorePoison(KVCacheThread *self, const KVCacheSite *site,
                                const void *pointer, int64_t bytes,
                                const void *poison, uint32_t origin) {
  if (!origin)
    return;
  const Thread &thread = Thread::get(self);
  Block &block = *thread.block;
  if (!block.cluster.isShared(pointer))
    block.sanitizer.failUse(
        thread, site,
        thread.fiber->contains(pointer)
            ? "stores to a variable whose address is passed on"
            : "stores to global memory",
        origin);
  auto offset = static_cast<uint32_t>(static_cast<const char *>(pointer) -
                                      block.cluster.shared);
  block.sanitizer.poisonShared({offset, static_cast<uint32_t>(bytes)},
                               static_cast<const char *>(poison), origin);
}
