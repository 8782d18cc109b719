//===- TensorQueue.cpp - Accesses of tensor memory in flight --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorQueue.h"
#include "Block.h"
#include "MBarrier.h"

#include <algorithm>

using namespace mlir::kvcache::emulator;

void TensorQueue::begin() {
  inFlight.clear();
  numHappened = 0;
  happened.clear();
  commits.clear();
  ends.clear();
}

void TensorQueue::issue(TensorWork work) {
  cluster.noteProgress();
  if (!cluster.isSanitized())
    return work.run();
  inFlight.push_back(std::move(work));
}

//===----------------------------------------------------------------------===//
// Commits
//===----------------------------------------------------------------------===//

void TensorQueue::commit(Thread &thread, const KVCacheSite *site,
                         MBarrier &barrier) {
  if (!cluster.isSanitized())
    return barrier.arriveByCopies(thread, site);
  barrier.beginCopy(thread, site, 0);
  auto commit = std::make_shared<Commit>(Commit{
      &barrier, &thread, site, cluster.tensorOrder.commit(thread),
      cluster.sanitizer.getSeenCopies(thread), numHappened + inFlight.size()});
  commits.push_back(commit);
  cluster.defer(barrier, [this, commit] { deliver(*commit); });
}

/// Completes the thread's work that the commit covers, with its reads.
void TensorQueue::completeReads(const Commit &commit, const Order::End &end) {
  auto isDone = [&](const TensorWork &work) {
    if (work.thread != commit.thread || work.number > commit.known.others)
      return false;
    for (Sanitizer::Copy read : work.reads)
      cluster.sanitizer.complete(read, end);
    return true;
  };
  happened.erase(std::remove_if(happened.begin(), happened.end(), isDone),
                 happened.end());
}

/// Accesses of other blocks end, and a thread of theirs must be ordered after
/// that before that block ends. A wait for the barrier orders it.
void TensorQueue::notePeers(const Commit &commit) {
  Thread &thread = *commit.thread;
  const Block &target = commit.barrier->getBlock();
  bool hasPeers = &target != thread.block;
  for (const TensorWork &work : happened) {
    if (work.thread != &thread || work.number > commit.known.others)
      continue;
    for (Block *block : work.blocks) {
      hasPeers |= block != thread.block;
      cluster.lifetime.note(thread, work.site, *block);
    }
  }
  cluster.lifetime.note(thread, commit.site, target);
  if (hasPeers)
    commit.barrier->notePlaces(thread);
}

void TensorQueue::deliver(Commit &commit) {
  for (; numHappened < commit.numIssued; ++numHappened) {
    inFlight.front().run();
    inFlight.front().run = nullptr;
    happened.push_back(std::move(inFlight.front()));
    inFlight.pop_front();
  }
  MBarrier &barrier = *commit.barrier;
  ReleaseClock &clocks = barrier.getReleaseClock();
  Order::End end = cluster.sanitizer.completeCommit(clocks);
  notePeers(commit);
  completeReads(commit, end);
  ends.resize(cluster.size());
  Clocks &known = ends[commit.thread->index];
  cluster.sanitizer.releaseCopies(known, clocks);
  cluster.sanitizer.releaseCopies(commit.copies, clocks);
  known.raise(end.event.who, end.event.clock);
  cluster.tensorOrder.complete(commit.known, end.event);
  commits.erase(std::find_if(commits.begin(), commits.end(),
                             [&](const std::shared_ptr<Commit> &one) {
                               return one.get() == &commit;
                             }));
  barrier.endCopy(*commit.thread, commit.site, 0);
  barrier.arriveByCopies(*commit.thread, commit.site);
}

//===----------------------------------------------------------------------===//
// The end of a block
//===----------------------------------------------------------------------===//

/// Commits to barriers of their own block that no thread waits for are no
/// error where others publish the same.
void TensorQueue::end(const Block &block) {
  auto check = [&](const TensorWork &work) {
    bool isOfBlock = std::find(work.blocks.begin(), work.blocks.end(),
                               &block) != work.blocks.end();
    if (isOfBlock || work.thread->block == &block)
      block.fail(
          *work.thread, work.site,
          "is in flight when " +
              (work.thread->block == &block ? "the block" : block.describe()) +
              " ends: no thread has waited for a later commit of the "
              "thread (tcgen05.commit)");
  };
  for (const TensorWork &work : happened)
    check(work);
  for (const TensorWork &work : inFlight)
    check(work);
  for (const std::shared_ptr<Commit> &commit : commits) {
    if (&commit->barrier->getBlock() != &block)
      continue;
    if (commit->thread->block != &block)
      block.fail(*commit->thread, commit->site,
                 "has an arrival at " + commit->barrier->getName() +
                     " in flight when " + block.describe() +
                     " ends: none of its threads waits for it");
    commit->barrier->endCopy(*commit->thread, commit->site, 0);
  }
}
