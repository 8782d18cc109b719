//===- Block.cpp - The threads of a block and their schedule --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Block.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <numeric>
#include <sstream>
#include <utility>

using namespace mlir::kvcache;
using namespace mlir::kvcache::emulator;

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

void Block::fail(const Thread &thread, const KVCacheSite *site,
                 const std::string &message) const {
  fail(describe(thread, site, message));
}

void Block::fail(const std::string &message) const {
  error = message;
  // Nothing on this stack is needed any more. From a thread to the schedule,
  // from there to the one who runs the block.
  current->suspend();
  std::abort();
}

uint32_t Block::getSharedOffset(const Thread &thread, const KVCacheSite *site,
                                const void *pointer, int64_t bytes) const {
  int64_t place = static_cast<const char *>(pointer) - shared;
  const SharedVariables &variables = grid->sharedVariables;
  if (!variables.contains(place, bytes))
    fail(thread, site,
         "uses " + std::to_string(bytes) + " bytes at " +
             (isShared(pointer)
                  ? variables.describe(place) + ", " +
                        variables.describeSize(place)
                  : "an address outside of the block's shared memory, which "
                    "has " +
                        std::to_string(grid->sharedBytes) + " bytes"));
  return place;
}

void Block::failAlignment(const Thread &thread, const KVCacheSite *site,
                          const void *pointer, uint64_t alignment) const {
  std::ostringstream os;
  os << "wants an address at a multiple of " << alignment << " bytes, got ";
  if (isShared(pointer))
    os << describeShared(static_cast<const char *>(pointer) - shared);
  else
    os << "0x" << std::hex << reinterpret_cast<uintptr_t>(pointer);
  fail(thread, site, os.str());
}

//===----------------------------------------------------------------------===//
// Waiting
//===----------------------------------------------------------------------===//

void Block::suspend(Thread &thread) {
  if (numStarted < numThreads || runnable.empty())
    return thread.fiber->suspend();
  // The schedule would do no more than that.
  Thread &next = *takeRunnable();
  if (&next == &thread)
    return;
  current = next.fiber;
  thread.fiber->switchTo(*next.fiber);
}

void Block::wait(Thread &thread, const KVCacheSite *site, Waitable &what) {
  tick(thread, site);
  thread.waitsFor = &what;
  thread.waitsAt = site;
  what.waiters.push_back(&thread);
  suspend(thread);
}

bool Block::poll(Thread &thread, const KVCacheSite *site, Waitable &what) {
  thread.polls = true;
  wait(thread, site, what);
  thread.polls = false;
  return !std::exchange(thread.pollsInVain, false);
}

void Block::wake(Waitable &what) {
  for (Thread *thread : what.waiters) {
    thread->waitsFor = nullptr;
    runnable.push_back(thread);
  }
  what.waiters.clear();
  noteProgress();
}

void Block::defer(Waitable &target, std::function<void()> work) {
  if (grid->module->isSanitized)
    deferred.push_back({&target, std::move(work)});
  else
    work();
}

bool Block::spin(Thread &thread, const KVCacheSite *site) {
  tick(thread, site);
  checkSpins(thread, site);
  if (runnable.empty() && numStarted == numThreads)
    return false;
  runnable.push_back(&thread);
  suspend(thread);
  return true;
}

//===----------------------------------------------------------------------===//
// Time
//===----------------------------------------------------------------------===//

/// The seconds that this thread of the host has used of a processor.
static double getTime() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec + 1e-9 * time.tv_nsec;
}

/// A wait for other blocks may take time, but not all.
void Block::checkSpins(const Thread &thread, const KVCacheSite *site) {
  constexpr uint64_t period = 1 << 12;
  constexpr double mostSeconds = 4;
  if (hasProgress)
    numSpins = 0;
  hasProgress = false;
  if (++numSpins % period)
    return;
  double now = getTime();
  if (numSpins == period)
    timeOfSpin = now;
  else if (now - timeOfSpin > mostSeconds)
    fail(thread, site,
         "spins without end: nothing else has happened in the block for 4 "
         "seconds");
}

void Block::checkTime(const Thread &thread, const KVCacheSite *site) {
  if (isInterrupted())
    fail(thread, site, "is interrupted (SIGINT)");
  // It may wait for what the launch before has yet to do.
  waitForEarlier(thread, site);
  double now = getTime();
  // Most blocks never look at the clock.
  if (timeOfTick == 0)
    timeOfTick = now;
  if (now - timeOfTick > grid->mostSeconds)
    fail(thread, site,
         "comes here without end, or its block takes more than " +
             std::to_string(grid->mostSeconds) +
             " seconds of a processor (KVCACHE_EMULATOR_TIMEOUT)");
}

//===----------------------------------------------------------------------===//
// Other launches
//===----------------------------------------------------------------------===//

std::string Block::EarlierLaunch::describe() const {
  return "the end of the launch before";
}

void Block::waitForEarlier(const Thread &thread, const KVCacheSite *site) {
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

void Block::startDependents(Thread &thread) {
  if (std::exchange(hasStartedDependents, true))
    return;
  sanitizer.startDependents(thread);
  mustStop = grid->stopsForDependents && isLast();
  if (mustStop && !grid->isAhead)
    stopAt(thread);
}

void Block::stopAt(Thread &thread) {
  mustStop = false;
  stops = true;
  runnable.push_front(&thread);
  thread.fiber->suspend();
}

void Block::stop() {
  stops = false;
  scheduler.suspend();
  if (earlier.waiters.empty())
    return;
  if (std::optional<std::string> error = sanitizer.checkAhead())
    fail(*error);
  wake(earlier);
}

//===----------------------------------------------------------------------===//
// Ends
//===----------------------------------------------------------------------===//

void Block::exit(Thread &thread) {
  finish(thread);
  // The stack is not needed any more: it starts anew.
  freeFibers.push_back(thread.fiber);
  suspend(thread);
  std::abort();
}

//===----------------------------------------------------------------------===//
// Schedule
//===----------------------------------------------------------------------===//

void Block::finish(Thread &thread) {
  thread.hasEnded = true;
  --live;
  noteProgress();
  warps.noteExit(thread);
  barriers.noteExit(thread);
}

/// What a fiber does: it runs threads that have not begun, one after another.
void Block::runThreads(void *argument) {
  Block &block = *static_cast<Block *>(argument);
  Fiber *fiber = block.current;
  while (block.numStarted < block.numThreads) {
    Thread &thread = block.threads[block.order[block.numStarted++]];
    thread.fiber = fiber;
    block.tick(thread, &block.grid->kernel->site);
    block.grid->kernel->entry(&thread, block.grid->params);
    block.finish(thread);
  }
  block.freeFibers.push_back(fiber);
  fiber->suspend();
}

void Block::resume(Fiber &fiber) {
  current = &fiber;
  fiber.resume();
  current = &scheduler;
}

void Block::addFiber() {
  try {
    fibers.push_back(std::make_unique<Fiber>(stackBytes));
  } catch (const std::bad_alloc &) {
    fail("out of memory: " + std::to_string(stackBytes) +
         " bytes for the stack of a thread, of which " + describe() + " has " +
         std::to_string(fibers.size()));
  }
  freeFibers.push_back(fibers.back().get());
}

void Block::startNext() {
  if (freeFibers.empty())
    addFiber();
  Fiber &fiber = *freeFibers.back();
  freeFibers.pop_back();
  fiber.start(runThreads, this);
  resume(fiber);
}

bool Block::deliverOne() {
  std::vector<size_t> ready;
  for (size_t i = 0; i < deferred.size(); ++i)
    if (!deferred[i].target->waiters.empty())
      ready.push_back(i);
  if (ready.empty())
    return false;
  size_t chosen = ready[random() % ready.size()];
  std::function<void()> work = std::move(deferred[chosen].work);
  deferred.erase(deferred.begin() + chosen);
  noteProgress();
  work();
  return true;
}

bool Block::releasePolls() {
  if (!hasProgress)
    return false;
  hasProgress = false;
  bool any = false;
  for (uint32_t i = 0; i < numThreads; ++i) {
    Thread &thread = threads[i];
    if (!thread.waitsFor || !thread.polls)
      continue;
    std::vector<Thread *> &waiters = thread.waitsFor->waiters;
    waiters.erase(std::find(waiters.begin(), waiters.end(), &thread));
    thread.waitsFor = nullptr;
    thread.pollsInVain = true;
    runnable.push_back(&thread);
    any = true;
  }
  return any;
}

/// Runs threads until all have ended, or one has failed.
void Block::schedule(void *argument) {
  Block &block = *static_cast<Block *>(argument);
  while (!block.error && block.live > 0) {
    block.runNext();
    if (block.stops)
      block.stop();
  }
  if (!block.error)
    block.end();
  block.scheduler.suspend();
}

void Block::runNext() {
  if (numStarted < numThreads)
    return startNext();
  if (!runnable.empty()) {
    Thread &thread = *takeRunnable();
    return resume(*thread.fiber);
  }
  if (deliverOne())
    return;
  stops = !earlier.waiters.empty();
  if (!stops && !releasePolls())
    fail(describeDeadlock());
}

Thread *Block::takeRunnable() {
  if (grid->seed)
    std::swap(runnable.front(), runnable[random() % runnable.size()]);
  Thread *thread = runnable.front();
  runnable.pop_front();
  return thread;
}

//===----------------------------------------------------------------------===//
// Begin and end
//===----------------------------------------------------------------------===//

/// For the functions of this library and of the C library that a kernel calls,
/// and for frames in which the host keeps vectors of hundreds of elements. Only
/// what is used takes memory.
static constexpr size_t kStackBytes = 1 << 20;

Block::Block() : scheduler(kStackBytes) {}

Block::~Block() { std::free(sharedBegin); }

/// Shared memory is aligned as tiles with swizzles want it.
void Block::reserveShared() {
  constexpr size_t alignment = 1024;
  const SharedVariables &variables = grid->sharedVariables;
  size_t bytes = variables.redZoneBytes() + variables.size();
  if (bytes > sharedCapacity || !sharedBegin) {
    std::free(sharedBegin);
    sharedCapacity = (bytes / alignment + 1) * alignment;
    sharedBegin =
        static_cast<char *>(std::aligned_alloc(alignment, sharedCapacity));
    if (!sharedBegin)
      throw std::bad_alloc();
  }
  shared = sharedBegin + variables.redZoneBytes();
  // What nobody has written is a NaN in every format of floats.
  std::memset(sharedBegin, 0xff, bytes);
}

void Block::reserveStacks(size_t localBytes) {
  size_t bytes = kStackBytes + 2 * localBytes;
  if (bytes > stackBytes)
    fibers.clear();
  stackBytes = std::max(stackBytes, bytes);
  freeFibers.clear();
  for (const std::unique_ptr<Fiber> &fiber : fibers)
    freeFibers.push_back(fiber.get());
}

void Block::beginThread(uint32_t index) {
  Thread &thread = threads[index];
  const uint32_t (&sides)[3] = grid->threads;
  uint32_t row = index / sides[0];
  const uint32_t tid[3] = {index % sides[0], row % sides[1], row / sides[1]};
  std::copy_n(tid, 3, thread.tid);
  std::copy_n(sides, 3, thread.ntid);
  std::copy_n(ctaid, 3, thread.ctaid);
  std::copy_n(grid->blocks, 3, thread.nctaid);
  thread.lane = index % kWarpSize;
  thread.warp = index / kWarpSize;
  thread.shared = shared;
  thread.dynamicShared = shared + grid->sharedVariables.getDynamicPlace();
  thread.sharedBytes = grid->sharedBytes;
  thread.dynamicSharedBytes = grid->dynamicSharedBytes;
  thread.block = this;
  thread.index = index;
  thread.hasEnded = thread.polls = thread.pollsInVain = false;
  thread.waitsFor = nullptr;
  thread.variables.clear();
  thread.copies.clear();
  thread.fiber = nullptr;
  thread.exchangedPoison = 0;
  thread.setPoison({});
}

void Block::begin(const Grid &newGrid, const uint32_t (&place)[3]) {
  grid = &newGrid;
  std::copy_n(place, 3, ctaid);
  numThreads = live = grid->numThreads();
  reserveShared();
  reserveStacks(grid->kernel->localBytes);

  error.reset();
  runnable.clear();
  deferred.clear();
  earlier.waiters.clear();
  stops = hasStartedDependents = mustStop = false;
  hasProgress = true;
  numTicks = numSpins = 0;
  timeOfTick = 0;
  numStarted = 0;
  while (threads.size() < numThreads)
    threads.emplace_back();
  for (uint32_t index = 0; index < numThreads; ++index)
    beginThread(index);
  order.resize(numThreads);
  std::iota(order.begin(), order.end(), 0);
  uint64_t number =
      (uint64_t{place[2]} * grid->blocks[1] + place[1]) * grid->blocks[0] +
      place[0];
  random.seed(grid->seed + number);
  if (grid->seed)
    std::shuffle(order.begin(), order.end(), random);

  const KVCacheEmulatedModule &module = *grid->module;
  sanitizer.begin(module.isSanitized, numThreads, grid->sharedVariables.size(),
                  grid->shadow, number);
  meter.begin(module.isMetered, *this);
  barriers.begin();
  mbarriers.begin();
  warps.begin();
  scheduler.start(schedule, this);
}

/// What must not be left over. On the fiber of the schedule.
void Block::end() {
  for (uint32_t index = 0; index < numThreads; ++index)
    if (!threads[index].copies.isEmpty())
      threads[index].copies.end(threads[index]);
  mbarriers.end();
  sanitizer.end();
}

bool Block::goOn() {
  if (error || live == 0)
    return true;
  current = &scheduler;
  scheduler.resume();
  return error || live == 0;
}

std::optional<std::string> Block::finish() {
  if (auto conflict = sanitizer.finish(error.has_value()))
    error = conflict;
  meter.end();
  return error;
}
