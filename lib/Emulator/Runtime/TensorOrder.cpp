//===- TensorOrder.cpp - Order of accesses of tensor memory --------------===//
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

TensorOrder::ThreadState &TensorOrder::getThread(uint32_t number) {
  if (threads.size() < block.size())
    threads.resize(block.size());
  return threads[number];
}

uint32_t TensorOrder::getNumber(const Thread &thread) const {
  return block.getNumber(thread);
}

TensorOrder::WarpState &TensorOrder::getWarp(uint32_t warp) {
  if (warp >= warps.size())
    warps.resize(block.size() / kWarpSize + 1);
  return warps[warp];
}

//===----------------------------------------------------------------------===//
// What threads do
//===----------------------------------------------------------------------===//

uint32_t TensorOrder::issue(const Thread &thread, TensorOp op) {
  getThread(getNumber(thread));
  WarpState &warp = getWarp(thread.warp);
  if (op == TensorOp::Load)
    return ++warp.loads;
  if (op == TensorOp::Store)
    return ++warp.stores;
  if (op == TensorOp::Dealloc)
    return 0;
  return ++getThread(getNumber(thread)).issued;
}

void TensorOrder::wait(uint32_t number, TensorOp op) {
  WarpState &warp = getWarp(number);
  if (op == TensorOp::Load)
    warp.waitedLoads = warp.loads;
  else
    warp.waitedStores = warp.stores;
}

bool TensorOrder::hasWaited(uint32_t warp, TensorOp op, uint32_t number) const {
  const WarpState &state = warps[warp];
  return number <=
         (op == TensorOp::Load ? state.waitedLoads : state.waitedStores);
}

TensorOrder::Publication
TensorOrder::getPublication(const Thread &thread) const {
  const WarpState &warp = warps[thread.warp];
  return {warp.waitedLoads,
          warp.waitedStores,
          threads[getNumber(thread)].issued,
          0,
          {}};
}

void TensorOrder::fenceBefore(const Thread &thread) {
  ThreadState &state = getThread(getNumber(thread));
  getWarp(thread.warp);
  Publication now = getPublication(thread);
  if (!state.fences.empty()) {
    const Publication &last = state.fences.back();
    if (last.loads == now.loads && last.stores == now.stores &&
        last.issued == now.issued)
      return;
  }
  now.event = {thread.index, block.sanitizer.getClock(thread)};
  state.fences.push_back(now);
}

void TensorOrder::fenceAfter(const Thread &thread) {
  getThread(getNumber(thread)).known = block.sanitizer.getKnown(thread);
}

TensorOrder::Commit TensorOrder::commit(const Thread &thread) const {
  if (thread.warp >= warps.size())
    return {getNumber(thread), 0, 0, 0};
  Publication now = getPublication(thread);
  return {getNumber(thread), now.loads, now.stores, now.issued};
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
         event.clock <= threads[getNumber(thread)].known.get(event.who);
}

/// Whether the thread knows of something that tells what is looked for; the
/// last ones first, which most often do.
template <typename Predicate>
bool TensorOrder::isPublished(uint32_t publisher, const Thread &thread,
                              Predicate tells) const {
  auto isAny = [&](const std::vector<Publication> &publications) {
    return std::any_of(publications.rbegin(), publications.rend(),
                       [&](const auto &one) {
                         return tells(one) && isKnown(thread, one.event);
                       });
  };
  const ThreadState &state = threads[publisher];
  return isAny(state.fences) || isAny(state.commits);
}

/// PTX ISA, "Pipelined tcgen05 Instructions".
bool TensorOrder::keepsOrder(const TensorAccess &before) const {
  const TensorAccess &after = accesses.back();
  using Op = TensorOp;
  switch (after.op) {
  case Op::Multiply:
    return before.op == Op::Copy || before.op == Op::CopyOfFour ||
           before.op == Op::Shift ||
           (before.op == Op::Multiply &&
            before.accumulator == after.accumulator);
  case Op::Shift:
    return before.op == Op::Multiply;
  case Op::CopyOfFour:
    return before.op == Op::Shift;
  default:
    return false;
  }
}

std::optional<std::string>
TensorOrder::findProblem(const TensorAccess &before,
                         const Thread &thread) const {
  uint32_t warp = before.thread / kWarpSize;
  if (!before.isOfWarp()) {
    if (keepsOrder(before) &&
        (before.thread == getNumber(thread) ||
         isPublished(before.thread, thread,
                     [&](const auto &p) { return p.issued >= before.number; })))
      return std::nullopt;
    if (isPublished(before.thread, thread,
                    [&](const auto &p) { return p.done >= before.number; }))
      return std::nullopt;
    if (isComplete(before.thread, before.number))
      return " has completed: the thread has not waited for its commit, or has "
             "no fence behind the wait (tcgen05.fence after)";
    return " may still be in flight: no commit of its thread has completed "
           "(tcgen05.commit)";
  }
  bool isLoad = before.op == TensorOp::Load;
  if (!hasWaited(warp, before.op, before.number))
    return std::string(" may still be in flight: its warp has not waited for "
                       "it (tcgen05.wait ") +
           (isLoad ? "load)" : "store)");
  auto tells = [&](const Publication &one) {
    return (isLoad ? one.loads : one.stores) >= before.number;
  };
  if (warp == thread.warp)
    return std::nullopt;
  uint32_t end = std::min((warp + 1) * kWarpSize, block.size());
  for (uint32_t index = warp * kWarpSize; index < end; ++index)
    if (isPublished(index, thread, tells))
      return std::nullopt;
  return " has not been made known to the thread, by a fence (tcgen05.fence "
         "before), a synchronization and another fence (tcgen05.fence after)";
}

/// All lanes of a warp must know what was before.
std::optional<std::string>
TensorOrder::findProblem(const TensorAccess &before) const {
  const TensorAccess &after = accesses.back();
  uint32_t end = after.isOfWarp() ? after.thread + kWarpSize : after.thread + 1;
  for (uint32_t i = after.thread; i < std::min(end, block.size()); ++i)
    if (auto problem = findProblem(before, block.getThread(i)))
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

std::string TensorOrder::describe(const TensorAccess &access) const {
  std::string who = access.isOfWarp()
                        ? "warp " + std::to_string(access.thread / kWarpSize)
                        : Block::describe(block.getThread(access.thread));
  return Block::describe(access.site) + " by " + who;
}

TensorOrder::History TensorOrder::advance(History history, bool isWrite,
                                          uint32_t lane, uint32_t column) {
  const TensorAccess &access = accesses.back();
  uint32_t number = accesses.size() - 1;
  auto check = [&](uint32_t before, const char *verb) {
    if (before == 0 || before == number)
      return;
    if (auto problem = findProblem(accesses[before]))
      block.fail(block.getThread(access.thread), access.site,
                 std::string(isWrite ? "writes" : "reads") + " lane " +
                     std::to_string(lane) + ", column " +
                     std::to_string(column) + " of tensor memory, which " +
                     verb + " " + describe(accesses[before]) + ", and that" +
                     *problem);
  };
  Accesses next = histories[history];
  check(next.write, "was written in");
  if (isWrite) {
    for (uint32_t before : next.reads)
      check(before, "was read in");
    return written[history] = add({number, {}});
  }
  auto isBehind = [&](uint32_t before) {
    return before == number || !findProblem(accesses[before]);
  };
  next.reads.erase(
      std::remove_if(next.reads.begin(), next.reads.end(), isBehind),
      next.reads.end());
  if (next.write != number)
    next.reads.push_back(number);
  return read[history] = add(std::move(next));
}
