//===- Reports.cpp - The text of errors in a block ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Block.h"
#include "Memory.h"
#include "Sanitizer.h"

#include <algorithm>
#include <sstream>

using namespace mlir::kvcache;
using namespace mlir::kvcache::emulator;

//===----------------------------------------------------------------------===//
// Of blocks
//===----------------------------------------------------------------------===//

static std::string describePlace(const uint32_t (&place)[3]) {
  std::ostringstream os;
  os << "(" << place[0] << ", " << place[1] << ", " << place[2] << ")";
  return os.str();
}

std::string Block::describe(const Thread &thread) {
  return "thread " + describePlace(thread.tid);
}

std::string Block::describe() const { return "block " + describePlace(ctaid); }

std::string Block::describe(uint64_t number) const {
  uint64_t row = number / grid->blocks[0];
  return "block " +
         describePlace({static_cast<uint32_t>(number % grid->blocks[0]),
                        static_cast<uint32_t>(row % grid->blocks[1]),
                        static_cast<uint32_t>(row / grid->blocks[1])});
}

std::string Block::describe(const KVCacheSite *site) {
  return std::string(site->op) + " at " + site->location;
}

std::string Block::describe(const Thread &thread, const KVCacheSite *site,
                            const std::string &message) const {
  return std::string(site->location) + ": " + site->op + ": " +
         describe(thread) + " of " + describe() + " " + message;
}

std::string emulator::listRanges(const std::vector<uint32_t> &sorted) {
  std::vector<std::string> ranges;
  for (size_t begin = 0, end = 0; begin < sorted.size(); begin = end) {
    for (end = begin + 1;
         end < sorted.size() && sorted[end] == sorted[end - 1] + 1; ++end)
      ;
    std::string text = std::to_string(sorted[begin]);
    if (end - begin > 1)
      text += " to " + std::to_string(sorted[end - 1]);
    ranges.push_back(text);
  }
  std::string text;
  for (size_t i = 0; i < ranges.size(); ++i)
    text += (i == 0 ? "" : i + 1 == ranges.size() ? " and " : ", ") + ranges[i];
  return text;
}

std::string Block::describeDeadlock() const {
  struct Group {
    const KVCacheSite *site;
    const Waitable *what;
    std::vector<uint32_t> threads;
  };
  std::vector<Group> groups;
  std::vector<uint32_t> ended;
  for (uint32_t i = 0; i < numThreads; ++i) {
    const Thread &thread = threads[i];
    if (thread.hasEnded) {
      ended.push_back(i);
      continue;
    }
    auto found =
        std::find_if(groups.begin(), groups.end(), [&](const Group &g) {
          return g.site == thread.waitsAt && g.what == thread.waitsFor;
        });
    if (found == groups.end())
      found = groups.insert(found, {thread.waitsAt, thread.waitsFor, {}});
    found->threads.push_back(i);
  }
  std::string text = "deadlock: no thread of " + describe() + " can go on";
  auto name = [](const std::vector<uint32_t> &which) {
    return (which.size() == 1 ? "thread " : "threads ") + listRanges(which);
  };
  for (const Group &group : groups)
    text += "\n  " + name(group.threads) +
            (group.threads.size() == 1 ? " waits in " : " wait in ") +
            describe(group.site) + " for " + group.what->describe();
  if (!ended.empty())
    text += "\n  " + name(ended) +
            (ended.size() == 1 ? " has ended" : " have ended");
  return text;
}

//===----------------------------------------------------------------------===//
// Of accesses and copies
//===----------------------------------------------------------------------===//

const char *Sanitizer::getVerb(Kind kind, bool isVolatile) {
  const char *verbs[] = {"reads", "writes", "atomically reads",
                         "atomically updates"};
  if (isVolatile)
    return verbs[isWrite(kind)];
  return verbs[static_cast<int>(kind)];
}

std::string Sanitizer::describe(const Access &access) const {
  return std::string(access.copy ? "issues a copy that " : "") +
         getVerb(access.kind, access.isVolatile) + " " +
         std::to_string(access.bytes) + " bytes at " +
         describePlace(access.begin, access.isGlobal);
}

std::string Sanitizer::describePlace(uint64_t begin, bool isGlobal) const {
  return isGlobal ? Memory::get().describe(begin) : block.describeShared(begin);
}

std::string Sanitizer::describe(const CopyState &copy) const {
  return "a copy issued by " + Block::describe(block.threads[copy.issuer]) +
         " in " + Block::describe(copy.site);
}

std::string Sanitizer::describeAccess(const Cell &cell, Kind kind) const {
  return Block::describe(block.threads[cell.who]) + " " +
         getVerb(kind, cell.isVolatile) + " in " +
         Block::describe(cell.getSite());
}

/// How a copy is in the way.
std::string Sanitizer::describeConflict(const CopyState &copy,
                                        Relation relation) const {
  constexpr char unordered[] = ", without order between them (a race)";
  std::string text = describe(copy);
  bool isAsync = copy.proxy == Proxy::Async;
  if (relation == Relation::InFlight && copy.isWrite && copy.isGlobal)
    return text + " may still write: nobody has waited for more than its reads "
                  "(wait_group without .read)";
  if (relation == Relation::InFlight && copy.isWrite)
    return text + " has in flight: " +
           (isAsync ? "its barrier has not completed"
                    : "nobody has waited for it");
  if (relation == Relation::InFlight)
    return text + " still reads: they are used again before the wait for it";
  text += copy.isWrite ? " has written" : " has read";
  if (relation == Relation::Unfenced)
    return text + ", without a proxy fence between them (fence.proxy.async)";
  if (copy.end.event.who < block.size())
    return text + unordered;
  return text + ", but the thread has not waited for its barrier";
}

std::string Sanitizer::describeConflict(const Access &access, const Cell &cell,
                                        Kind kind) const {
  Relation relation = relate(access, cell, kind);
  if (cell.isCopy())
    return describeConflict(copies[cell.clock], relation);
  return describeAccess(cell, kind) +
         (relation == Relation::Unfenced
              ? " without a proxy fence between them (fence.proxy.async)"
              : " without order between them (a race)");
}

/// `mask` has the bytes that something is wrong with.
std::string Sanitizer::describe(const Access &access, uint64_t index,
                                uint16_t mask, const std::string &what) const {
  uint64_t first = index * kGranuleBytes + __builtin_ctz(mask);
  std::string message = describe(access) + ", which " + what;
  if (first != access.begin)
    message +=
        "; the first of these bytes is " +
        (access.isGlobal ? Memory::get().describeByte(first, access.begin)
                         : block.describeShared(first));
  return block.describe(access.thread, access.site, message);
}

void Sanitizer::fail(const Access &access, uint64_t index, uint16_t mask,
                     const std::string &what) const {
  block.fail(describe(access, index, mask, what));
}
