//===- OtherLaunches.cpp - Clusters and launches before and after ---------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Block.h"
#include "Cluster.h"

using namespace mlir::kvcache;
using namespace mlir::kvcache::emulator;

std::string Cluster::EarlierLaunch::describe() const {
  return "the end of the launch before";
}

void Cluster::waitForEarlier(const Thread &thread, const KVCacheSite *site) {
  if (!grid->isAhead)
    return;
  Thread &waiter = threads[thread.index];
  while (grid->isAhead) {
    waiter.waitsFor = &earlier;
    waiter.waitsAt = site;
    earlier.waiters.push_back(&waiter);
    suspend(waiter);
  }
  if (mustStop)
    stopAt(waiter);
}

void Cluster::startDependents(Thread &thread) {
  if (std::exchange(thread.block->hasStartedDependents, true))
    return;
  sanitizer.startDependents(thread);
  bool isLast = number + 1 == grid->numClusters();
  mustStop = ++numStarting == numActive && grid->stopsForDependents && isLast;
  if (mustStop && !grid->isAhead)
    stopAt(thread);
}

void Cluster::stopAt(Thread &thread) {
  mustStop = false;
  stops = true;
  runnable.push_front(&thread);
  thread.fiber->suspend();
}

void Cluster::giveWay(Thread &thread) {
  noteProgress();
  givingWay = &thread;
  thread.fiber->suspend();
}

void Cluster::stop() {
  stops = false;
  scheduler.suspend();
  if (earlier.waiters.empty())
    return;
  if (std::optional<std::string> error = sanitizer.checkAhead())
    fail(*error);
  wake(earlier);
}
