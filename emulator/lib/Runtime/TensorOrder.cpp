//===- TensorOrder.cpp - Order of accesses of tensor memory ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorOrder.h"
#include "Block.h"

#include <algorithm>

using namespace mlir::kvcache::emulator;

void TensorOrder::begin() {
  threads.clear();
  warps.clear();
  accesses.assign(1, {});
  histories.assign(1, {});
  numbers.clear();
}

TensorOrder::ThreadState &TensorOrder::getThread(uint32_t index) {
  if (threads.size() < cluster.size())
    threads.resize(cluster.size());
  return threads[index];
}

uint32_t TensorOrder::getWarpNumber(const Thread &thread) const {
  uint32_t warpsOfBlock = (thread.block->size() + kWarpSize - 1) / kWarpSize;
  return thread.block->rank * warpsOfBlock + thread.warp;
}

TensorOrder::WarpState &TensorOrder::getWarp(const Thread &thread) {
  uint32_t number = getWarpNumber(thread);
  if (number >= warps.size())
    warps.resize(number + 1);
  return warps[number];
}

//===----------------------------------------------------------------------===//
// What threads do
//===----------------------------------------------------------------------===//

uint32_t TensorOrder::issue(const Thread &thread, TensorOp op) {
  ThreadState &state = getThread(thread.index);
  WarpState &warp = getWarp(thread);
  if (op == TensorOp::Load)
    return ++warp.loads;
  if (op == TensorOp::Store)
    return ++warp.stores;
  if (op == TensorOp::Dealloc)
    return 0;
  return ++state.issued;
}

void TensorOrder::wait(const Thread &thread, TensorOp op) {
  WarpState &warp = getWarp(thread);
  if (op == TensorOp::Load)
    warp.waitedLoads = warp.loads;
  else
    warp.waitedStores = warp.stores;
}

bool TensorOrder::hasWaited(const Thread &thread, TensorOp op,
                            uint32_t number) const {
  const WarpState &state = warps[getWarpNumber(thread)];
  return number <=
         (op == TensorOp::Load ? state.waitedLoads : state.waitedStores);
}

TensorOrder::Publication
TensorOrder::getPublication(const Thread &thread) const {
  const WarpState &warp = warps[getWarpNumber(thread)];
  return {
      warp.waitedLoads, warp.waitedStores, threads[thread.index].issued, 0, {}};
}

void TensorOrder::fenceBefore(const Thread &thread) {
  ThreadState &state = getThread(thread.index);
  getWarp(thread);
  Publication now = getPublication(thread);
  if (!state.fences.empty()) {
    const Publication &last = state.fences.back();
    if (last.loads == now.loads && last.stores == now.stores &&
        last.issued == now.issued)
      return;
  }
  now.event = {thread.index, cluster.sanitizer.getClock(thread)};
  state.fences.push_back(now);
}

void TensorOrder::fenceAfter(const Thread &thread) {
  getThread(thread.index).known = cluster.sanitizer.getSeen(thread);
}

TensorOrder::Commit TensorOrder::commit(const Thread &thread) const {
  if (getWarpNumber(thread) >= warps.size())
    return {thread.index, 0, 0, 0};
  Publication now = getPublication(thread);
  return {thread.index, now.loads, now.stores, now.issued};
}

void TensorOrder::complete(const Commit &commit, const Order::Event &event) {
  getThread(commit.thread)
      .commits.push_back(
          {commit.loads, commit.stores, commit.others, commit.others, event});
}

bool TensorOrder::isComplete(uint32_t thread, uint32_t number) const {
  const std::vector<Publication> &commits = threads[thread].commits;
  return std::any_of(commits.begin(), commits.end(),
                     [&](const auto &commit) { return commit.done >= number; });
}

//===----------------------------------------------------------------------===//
// Relations
//===----------------------------------------------------------------------===//

bool TensorOrder::isKnown(const Thread &thread,
                          const Order::Event &event) const {
  return event.who == thread.index ||
         event.clock <= threads[thread.index].known.get(event.who);
}

/// Whether the thread is ordered after a publication that is looked for; the
/// last ones first, which most often are.
template <typename Predicate>
bool TensorOrder::isPublished(uint32_t publisher, const Thread &thread,
                              Predicate isPublic) const {
  auto isAny = [&](const std::vector<Publication> &publications) {
    return std::any_of(publications.rbegin(), publications.rend(),
                       [&](const auto &one) {
                         return isPublic(one) && isKnown(thread, one.event);
                       });
  };
  const ThreadState &state = threads[publisher];
  return isAny(state.fences) || isAny(state.commits);
}

/// The index after the last thread of a warp whose first one this is.
static uint32_t getEndOfWarp(const Thread &first) {
  uint32_t rest = first.block->size() - first.block->getNumber(first);
  return first.index + std::min(rest, kWarpSize);
}

/// PTX ISA, "Pipelined tcgen05 Instructions". It does not order copies after
/// products and copies, but the main loops of CUTLASS with block scales rely on
/// their order (sm100_blockscaled_mma_warpspecialized.hpp). Those of attention
/// rely on a product that overwrites the A that products before it read
/// (sm100_fmha_fwd_mainloop_tma_warpspecialized.hpp).
bool TensorOrder::keepsOrder(const TensorAccess &before,
                             bool isOverwritten) const {
  const TensorAccess &after = accesses.back();
  using Op = TensorOp;
  bool isAfterCopy = before.op == Op::Copy || before.op == Op::CopyOfFour;
  switch (after.op) {
  case Op::Multiply:
    return isAfterCopy || before.op == Op::Shift ||
           (before.op == Op::Multiply &&
            (isOverwritten || before.accumulator == after.accumulator));
  case Op::Shift:
    return before.op == Op::Multiply;
  case Op::Copy:
    return isAfterCopy || before.op == Op::Multiply;
  case Op::CopyOfFour:
    return isAfterCopy || before.op == Op::Multiply || before.op == Op::Shift;
  default:
    return false;
  }
}

std::optional<std::string>
TensorOrder::findProblem(const TensorAccess &before, bool isOverwritten,
                         const Thread &thread) const {
  if (!before.isOfWarp()) {
    if (keepsOrder(before, isOverwritten) &&
        (before.thread == thread.index ||
         isPublished(before.thread, thread,
                     [&](const auto &p) { return p.issued >= before.number; })))
      return std::nullopt;
    if (isPublished(before.thread, thread,
                    [&](const auto &p) { return p.done >= before.number; }))
      return std::nullopt;
    if (isComplete(before.thread, before.number))
      return " has completed: the thread has not waited for its commit, or has "
             "no fence after the wait (tcgen05.fence after)";
    return " may still be in flight: no commit of its thread has completed "
           "(tcgen05.commit)";
  }
  bool isLoad = before.op == TensorOp::Load;
  const Thread &first = cluster.threads[before.thread];
  if (!hasWaited(first, before.op, before.number))
    return std::string(" may still be in flight: its warp has not waited for "
                       "it (tcgen05.wait ") +
           (isLoad ? "load)" : "store)");
  auto isPublic = [&](const Publication &one) {
    return (isLoad ? one.loads : one.stores) >= before.number;
  };
  if (getWarpNumber(first) == getWarpNumber(thread))
    return std::nullopt;
  for (uint32_t index = before.thread; index < getEndOfWarp(first); ++index)
    if (isPublished(index, thread, isPublic))
      return std::nullopt;
  return " is not ordered before the access by a fence (tcgen05.fence before), "
         "a synchronization and another fence (tcgen05.fence after)";
}

/// All lanes of a warp must be ordered after earlier accesses.
std::optional<std::string> TensorOrder::findProblem(const TensorAccess &before,
                                                    bool isOverwritten) const {
  const TensorAccess &after = accesses.back();
  uint32_t end = after.isOfWarp() ? getEndOfWarp(cluster.threads[after.thread])
                                  : after.thread + 1;
  for (uint32_t i = after.thread; i < end; ++i)
    if (auto problem = findProblem(before, isOverwritten, cluster.threads[i]))
      return problem;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

void TensorOrder::begin(const TensorAccess &access) {
  accesses.push_back(access);
  read.clear();
  written.clear();
}

TensorOrder::History TensorOrder::add(Accesses next) {
  auto [found, isNew] = numbers.try_emplace(next, histories.size());
  if (isNew)
    histories.push_back(std::move(next));
  return found->second;
}

std::string TensorOrder::describe(const TensorAccess &access,
                                  const Thread &other) const {
  const Thread &thread = cluster.threads[access.thread];
  std::string who = Block::describe(thread, other);
  if (access.isOfWarp()) {
    who = "warp " + std::to_string(thread.warp);
    if (thread.block != other.block)
      who += " of " + thread.block->describe();
  }
  return Block::describe(access.site) + " by " + who;
}

TensorOrder::History TensorOrder::advance(History history, bool isWrite,
                                          const TensorPlace &place) {
  const TensorAccess &access = accesses.back();
  const Thread &thread = cluster.threads[access.thread];
  uint32_t number = accesses.size() - 1;
  auto check = [&](uint32_t before, bool wasRead) {
    if (before == 0 || before == number)
      return;
    const char *verb = wasRead ? "was read in" : "was written in";
    if (auto problem = findProblem(accesses[before], isWrite && wasRead))
      cluster.fail(thread, access.site,
                   std::string(isWrite ? "writes " : "reads ") +
                       place.block->tensorMemory.describe(
                           place.lane << 16 | place.column, thread) +
                       ", which " + verb + " " +
                       describe(accesses[before], thread) + ", and that" +
                       *problem);
  };
  Accesses next = histories[history];
  check(next.write, /*wasRead=*/false);
  if (isWrite) {
    for (uint32_t before : next.reads)
      check(before, /*wasRead=*/true);
    return written[history] = add({number, {}});
  }
  auto isAfter = [&](uint32_t before) {
    return before == number ||
           !findProblem(accesses[before], /*isOverwritten=*/false);
  };
  next.reads.erase(
      std::remove_if(next.reads.begin(), next.reads.end(), isAfter),
      next.reads.end());
  if (next.write != number)
    next.reads.push_back(number);
  return read[history] = add(std::move(next));
}
