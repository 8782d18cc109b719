//===- Cluster.cpp - Blocks that run together, and their schedule ---------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Block.h"
#include "kvcache/Runtime/Support.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <new>
#include <numeric>
#include <sys/mman.h>
#include <utility>

using namespace mlir::kvcache;
using namespace mlir::kvcache::emulator;

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

void Cluster::fail(const Thread &thread, const KVCacheSite *site,
                   const std::string &message) const {
  fail(Block::describe(thread, site, message));
}

void Cluster::fail(const std::string &message) const {
  error = message;
  // Nothing on this stack is needed any more. From a thread to the schedule,
  // from there to the one who runs the cluster.
  current->suspend();
  std::abort();
}

//===----------------------------------------------------------------------===//
// Waiting
//===----------------------------------------------------------------------===//

void Cluster::suspend(Thread &thread) {
  if (numStarted < numThreads || runnable.empty())
    return thread.fiber->suspend();
  // The schedule would do no more than that.
  Thread &next = *takeRunnable();
  if (&next == &thread)
    return;
  current = next.fiber;
  thread.fiber->switchTo(*next.fiber);
}

void Cluster::wait(Thread &thread, const KVCacheSite *site, Waitable &what) {
  thread.waitsFor = &what;
  thread.waitsAt = site;
  what.waiters.push_back(&thread);
  suspend(thread);
  // Other threads may run here and end the wait.
  tick(thread, site);
}

bool Cluster::poll(Thread &thread, const KVCacheSite *site, Waitable &what) {
  thread.polls = true;
  wait(thread, site, what);
  thread.polls = false;
  return !std::exchange(thread.pollsInVain, false);
}

void Cluster::wake(Waitable &what) {
  for (Thread *thread : what.waiters) {
    thread->waitsFor = nullptr;
    runnable.push_back(thread);
  }
  what.waiters.clear();
  noteProgress();
}

void Cluster::defer(Waitable &target, std::function<void()> work) {
  if (grid->module->isSanitized)
    deferred.push_back({&target, std::move(work)});
  else
    work();
}

bool Cluster::spin(Thread &thread, const KVCacheSite *site) {
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
void Cluster::checkSpins(const Thread &thread, const KVCacheSite *site) {
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

void Cluster::checkTime(const Thread &thread, const KVCacheSite *site) {
  if (isInterrupted())
    fail(thread, site, "is interrupted (SIGINT)");
  // It may wait for what the launch before has yet to do.
  waitForEarlier(thread, site);
  // Or for what other blocks have yet to do.
  sanitizer.giveWay(thread);
  double now = getTime();
  // Most blocks never look at the clock.
  if (timeOfTick == 0)
    timeOfTick = now;
  if (now - timeOfTick > grid->mostSeconds)
    fail(thread, site,
         "loops without end, or its block uses more than " +
             std::to_string(grid->mostSeconds) +
             " seconds of a processor (KVCACHE_EMULATOR_TIMEOUT)");
}

//===----------------------------------------------------------------------===//
// Ends
//===----------------------------------------------------------------------===//

void Cluster::exit(Thread &thread) {
  finish(thread);
  // The stack is not needed any more: it starts anew.
  freeFibers.push_back(thread.fiber);
  suspend(thread);
  std::abort();
}

//===----------------------------------------------------------------------===//
// Schedule
//===----------------------------------------------------------------------===//

void Cluster::finish(Thread &thread) {
  thread.hasEnded = true;
  --live;
  noteProgress();
  thread.block->noteExit(thread);
  barrier.noteExit(thread);
}

/// Runs threads that have not begun, one after another, on a fiber.
void Cluster::runThreads(void *argument) {
  Cluster &cluster = *static_cast<Cluster *>(argument);
  Fiber *fiber = cluster.current;
  while (cluster.numStarted < cluster.numThreads) {
    Thread &thread = cluster.threads[cluster.order[cluster.numStarted++]];
    thread.fiber = fiber;
    cluster.tick(thread, &cluster.grid->kernel->site);
    cluster.grid->kernel->entry(&thread, cluster.grid->params);
    cluster.finish(thread);
  }
  cluster.freeFibers.push_back(fiber);
  fiber->suspend();
}

void Cluster::resume(Fiber &fiber) {
  current = &fiber;
  fiber.resume();
  current = &scheduler;
}

void Cluster::addFiber() {
  try {
    fibers.push_back(std::make_unique<Fiber>(stackBytes, fibers.size()));
  } catch (const std::bad_alloc &) {
    fail("out of memory: " + std::to_string(stackBytes) +
         " bytes for the stack of a thread, of which " + describe() + " has " +
         std::to_string(fibers.size()));
  }
  freeFibers.push_back(fibers.back().get());
}

void Cluster::startNext() {
  if (freeFibers.empty())
    addFiber();
  Fiber &fiber = *freeFibers.back();
  freeFibers.pop_back();
  fiber.start(runThreads, this);
  resume(fiber);
}

bool Cluster::deliverOne() {
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

bool Cluster::releasePolls() {
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
void Cluster::schedule(void *argument) {
  Cluster &cluster = *static_cast<Cluster *>(argument);
  while (!cluster.error && cluster.live > 0) {
    cluster.runNext();
    if (cluster.stops)
      cluster.stop();
    if (cluster.givingWay)
      cluster.scheduler.suspend();
  }
  if (!cluster.error)
    cluster.sanitizer.end();
  cluster.scheduler.suspend();
}

void Cluster::runNext() {
  if (Thread *thread = std::exchange(givingWay, nullptr))
    return resume(*thread->fiber);
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

Thread *Cluster::takeRunnable() {
  if (grid->seed)
    std::swap(runnable.front(), runnable[random() % runnable.size()]);
  Thread *thread = runnable.front();
  runnable.pop_front();
  return thread;
}

//===----------------------------------------------------------------------===//
// Fences of mbarriers
//===----------------------------------------------------------------------===//

void InitFences::noteFence(const Thread &thread, bool isOfProxy) {
  Fences &last = fences[thread.index];
  last.any = ++time;
  if (isOfProxy)
    last.proxy = time;
}

bool InitFences::isFenced(const Thread &initThread, uint64_t initTime,
                          const Thread &issuer) const {
  return fences[initThread.index].any > initTime ||
         fences[issuer.index].proxy > initTime;
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

struct Cluster::SharedMemory {
  ~SharedMemory() {
    std::free(blockMemory);
    if (clusterMemory)
      munmap(clusterMemory, kMappedBytes);
  }

  /// The shared memory of one block, and its size.
  char *blockMemory = nullptr;
  size_t capacity = 0;
  /// The shared memory of the largest cluster.
  void *clusterMemory = nullptr;
  static constexpr size_t kMappedBytes = size_t{runtime::kMaxClusterBlocks}
                                         << kSpanBits;

  /// Shared memory is aligned as tiles with swizzles require.
  char *reserveOne(size_t bytes) {
    constexpr size_t alignment = 1024;
    if (bytes > capacity || !blockMemory) {
      std::free(blockMemory);
      capacity = (bytes / alignment + 1) * alignment;
      blockMemory =
          static_cast<char *>(std::aligned_alloc(alignment, capacity));
      if (!blockMemory)
        throw std::bad_alloc();
    }
    return blockMemory;
  }

  char *reserveMany() {
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    if (!clusterMemory) {
      void *memory = mmap(nullptr, kMappedBytes, PROT_READ | PROT_WRITE, flags,
                          /*fd=*/-1, /*offset=*/0);
      if (memory == MAP_FAILED)
        throw std::bad_alloc();
      clusterMemory = memory;
    }
    return static_cast<char *>(clusterMemory);
  }
};

void Cluster::reserveShared() {
  const SharedVariables &variables = grid->sharedVariables;
  size_t bytes = variables.redZoneBytes() + variables.size();
  char *begin =
      numActive == 1 ? memory->reserveOne(bytes) : memory->reserveMany();
  shared = begin + variables.redZoneBytes();
}

void Cluster::fillShared() {
  const SharedVariables &variables = grid->sharedVariables;
  size_t bytes = variables.redZoneBytes() + variables.size();
  char *begin = shared - variables.redZoneBytes();
  // Uninitialized memory is a NaN in every format of floats.
  for (uint32_t rank = 0; rank < numActive; ++rank)
    std::memset(begin + rank * size_t{kSpanBytes}, 0xff, bytes);
}

Block *Cluster::findBlock(const void *pointer) const {
  int64_t place = static_cast<const char *>(pointer) - shared +
                  grid->sharedVariables.redZoneBytes();
  int64_t rank = place >> kSpanBits;
  if (rank < 0 || rank >= numActive || !blocks[rank]->isShared(pointer))
    return nullptr;
  return blocks[rank].get();
}

std::string Cluster::describeShared(uint32_t place) const {
  std::string text = grid->sharedVariables.describe(place & (kSpanBytes - 1));
  return numActive == 1
             ? text
             : text + " of " + blocks[place >> kSpanBits]->describe();
}

//===----------------------------------------------------------------------===//
// Begin and end
//===----------------------------------------------------------------------===//

/// For the functions of this library and of the C library that a kernel calls,
/// and for frames in which the host keeps vectors of hundreds of elements. Only
/// what is used takes memory.
static constexpr size_t kStackBytes = 1 << 20;

Cluster::Cluster()
    : scheduler(kStackBytes), memory(std::make_unique<SharedMemory>()) {}

Cluster::~Cluster() = default;

void Cluster::reserveStacks(size_t localBytes) {
  size_t bytes = kStackBytes + 2 * localBytes;
  if (bytes > stackBytes)
    fibers.clear();
  stackBytes = std::max(stackBytes, bytes);
  freeFibers.clear();
  for (const std::unique_ptr<Fiber> &fiber : fibers)
    freeFibers.push_back(fiber.get());
}

void Cluster::prepareBlocks() {
  while (blocks.size() < numActive)
    blocks.push_back(std::make_unique<Block>(*this, blocks.size()));
  reserveShared();
  while (threads.size() < numThreads)
    threads.emplace_back();
  for (uint32_t rank = 0; rank < numActive; ++rank)
    blocks[rank]->prepare();
  isPrepared = true;
}

void Cluster::beginBlocks() {
  if (!isPrepared)
    prepareBlocks();
  fillShared();
  for (uint32_t rank = 0; rank < numActive; ++rank) {
    uint32_t ctaid[3];
    grid->getPlace(number, rank, ctaid);
    blocks[rank]->begin(ctaid);
  }
}

void Cluster::begin(const Grid &newGrid, uint64_t newNumber) {
  grid = &newGrid;
  number = newNumber;
  numActive = grid->numClusterBlocks();
  numThreads = live = grid->numThreads() * numActive;
  reserveStacks(grid->kernel->localBytes);

  error.reset();
  runnable.clear();
  deferred.clear();
  earlier.waiters.clear();
  stops = mustStop = false;
  givingWay = nullptr;
  hasProgress = true;
  numStarting = 0;
  numTicks = numSpins = 0;
  timeOfTick = 0;
  numStarted = 0;
  beginBlocks();
  order.resize(numThreads);
  std::iota(order.begin(), order.end(), 0);
  random.seed(grid->seed + number);
  if (grid->seed)
    std::shuffle(order.begin(), order.end(), random);

  sanitizer.begin(isSanitized(), grid->shadow, number);
  lifetime.begin();
  barrier.begin();
  initFences.begin(numThreads);
  tensorOrder.begin();
  tensorQueue.begin();
  scheduler.start(schedule, this);
}

bool Cluster::goOn() {
  if (error || live == 0)
    return true;
  current = &scheduler;
  scheduler.resume();
  return error || live == 0;
}

std::optional<std::string> Cluster::finish() {
  if (auto conflict = sanitizer.finish(error.has_value()))
    error = conflict;
  for (uint32_t rank = 0; rank < numActive; ++rank)
    blocks[rank]->meter.end();
  return error;
}
