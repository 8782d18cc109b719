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
#include <cstring>
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

std::string Block::describe(const Thread &thread, const Thread &other) {
  std::string text = describe(thread);
  return thread.block == other.block ? text
                                     : text + " of " + thread.block->describe();
}

std::string Grid::describeCluster(uint64_t number) const {
  const uint32_t sides[3] = {blocks[0] / cluster[0], blocks[1] / cluster[1],
                             blocks[2] / cluster[2]};
  uint64_t row = number / sides[0];
  return (numClusterBlocks() == 1 ? "block " : "cluster ") +
         describePlace({static_cast<uint32_t>(number % sides[0]),
                        static_cast<uint32_t>(row % sides[1]),
                        static_cast<uint32_t>(row / sides[1])});
}

std::string Block::describe(const KVCacheSite *site) {
  return std::string(site->op) + " at " + site->location;
}

std::string Block::describe(const Thread &thread, const KVCacheSite *site,
                            const std::string &message) {
  return std::string(site->location) + ": " + site->op + ": " +
         describe(thread) + " of " + thread.block->describe() + " " + message;
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

std::string Cluster::describeDeadlock() const {
  struct Group {
    const Block *block;
    const KVCacheSite *site;
    const Waitable *what;
    std::vector<uint32_t> threads;
  };
  std::vector<Group> groups;
  // Those that have ended come last.
  std::vector<Group> ended;
  for (uint32_t i = 0; i < numThreads; ++i) {
    const Thread &thread = threads[i];
    std::vector<Group> &list = thread.hasEnded ? ended : groups;
    Group own{thread.block, nullptr, nullptr, {}};
    if (!thread.hasEnded) {
      own.site = thread.waitsAt;
      own.what = thread.waitsFor;
    }
    auto found = std::find_if(list.begin(), list.end(), [&](const Group &g) {
      return g.block == own.block && g.site == own.site && g.what == own.what;
    });
    if (found == list.end())
      found = list.insert(found, own);
    found->threads.push_back(i % grid->numThreads());
  }
  std::string text = "deadlock: no thread of " + describe() + " can continue";
  auto name = [&](const Group &group) {
    const std::vector<uint32_t> &which = group.threads;
    return (which.size() == 1 ? "thread " : "threads ") + listRanges(which) +
           (numActive == 1 ? "" : " of " + group.block->describe());
  };
  for (const Group &group : groups)
    text += "\n  " + name(group) +
            (group.threads.size() == 1 ? " waits in " : " wait in ") +
            Block::describe(group.site) + " for " + group.what->describe();
  for (const Group &group : ended)
    text += "\n  " + name(group) +
            (group.threads.size() == 1 ? " has ended" : " have ended");
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

/// The noun for an operation in flight: tensor cores work asynchronously, like
/// copies.
static const char *getNoun(const KVCacheSite *site) {
  return std::strstr(site->op, "mma") ? "product" : "copy";
}

std::string Sanitizer::describe(const Access &access) const {
  return (access.copy
              ? std::string("issues a ") + getNoun(access.site) + " that "
              : "") +
         getVerb(access.kind, access.isVolatile) + " " +
         std::to_string(access.bytes) + " bytes at " +
         describePlace(access.begin, access.isGlobal);
}

std::string Sanitizer::describePlace(uint64_t begin, bool isGlobal) const {
  return isGlobal ? Memory::get().describe(begin)
                  : cluster.describeShared(begin);
}

std::string Sanitizer::describe(const CopyState &copy,
                                const Thread &other) const {
  return std::string("a ") + getNoun(copy.site) + " issued by " +
         Block::describe(cluster.threads[copy.issuer], other) + " in " +
         Block::describe(copy.site);
}

/// Describes an access that is not ordered after one of a thread.
std::string Sanitizer::describeUnordered(uint32_t who,
                                         const Access &access) const {
  std::string text = " without order between them (a race)";
  return cluster.threads[who].block == access.thread.block
             ? text
             : text + ": only synchronization with the scope of the cluster "
                      "orders threads of different blocks";
}

/// How a copy is in the way.
std::string Sanitizer::describeConflict(const CopyState &copy,
                                        const Access &access,
                                        Relation relation) const {
  std::string text = describe(copy, access.thread);
  bool isAsync = copy.proxy == Proxy::Async;
  if (relation == Relation::InFlight && copy.isWrite && copy.isGlobal)
    return text + " may still write: no wait for its writes has completed "
                  "(wait_group without .read)";
  if (relation == Relation::InFlight && copy.isWrite)
    return text + " has in flight: " +
           (isAsync ? "its barrier has not completed"
                    : "no wait for it has completed");
  if (relation == Relation::InFlight)
    return text + " still reads: no wait for it has completed";
  text += copy.isWrite ? " has written" : " has read";
  if (relation == Relation::Unfenced)
    return text + ", without a proxy fence between them (fence.proxy.async)";
  if (copy.end.event.who < cluster.size())
    return text + "," + describeUnordered(copy.end.event.who, access);
  return text + ", but the thread has not waited for its barrier";
}

std::string Sanitizer::describeConflict(const Access &access, const Cell &cell,
                                        Kind kind) const {
  Relation relation = relate(access, cell, kind);
  if (cell.isCopy())
    return describeConflict(copies[cell.clock], access, relation);
  return Block::describe(cluster.threads[cell.who], access.thread) + " " +
         getVerb(kind, cell.isVolatile) + " in " +
         Block::describe(cell.getSite()) +
         (relation == Relation::Unfenced
              ? " without a proxy fence between them (fence.proxy.async)"
              : describeUnordered(cell.who, access));
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
                         : cluster.describeShared(first));
  return Block::describe(access.thread, access.site, message);
}

void Sanitizer::fail(const Access &access, uint64_t index, uint16_t mask,
                     const std::string &what) const {
  cluster.fail(describe(access, index, mask, what));
}
