//===- sanitizer.cpp - The sanitizer and a model of it agree --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random programs of a few threads and few bytes: the sanitizer must find an
// error at the step where a model that forgets nothing finds the first one. The
// model keeps all accesses, and for each thread the set of those that happened
// before.
//
//===----------------------------------------------------------------------===//

#include "Block.h"
#include "Grid.h"

#include <array>
#include <bitset>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

using namespace mlir::kvcache::emulator;

namespace {

constexpr uint32_t kNumSteps = 400, kNumBytes = 48, kNumReleaseClocks = 3;
using Set = std::bitset<2 * kNumSteps>;

struct Step {
  enum Op {
    Access,
    Release,
    Acquire,
    Clear,
    SynchronizeAll,
    SynchronizeSome,
    Fence,
    Issue,
    Complete,
    CompleteThread,
    ReleaseCopies
  } op;
  uint32_t thread;
  SharedRange range;
  /// Flags of an access; of a copy whether it writes.
  uint32_t flags;
  Proxy proxy;
  uint32_t clocks;
  /// Which of the copies in flight, which threads synchronize, and which memory
  /// a fence is for.
  uint32_t choice;

  /// All accesses here are of shared memory.
  Space getSpace() const { return choice % 3 ? Space::Shared : Space::Global; }
};

//===----------------------------------------------------------------------===//
// Model
//===----------------------------------------------------------------------===//

struct Model {
  struct Event {
    uint32_t thread;
    SharedRange range;
    bool isWrite, isAtomic, isAsync, isInFlight;
    /// The accesses that the thread had acquired.
    Set before;
  };
  struct Facts {
    Set seen, fenced;

    void join(const Facts &other) {
      seen |= other.seen;
      fenced |= other.fenced;
    }
  };

  explicit Model(uint32_t numThreads)
      : threads(numThreads), ended(numThreads) {}

  static bool touches(const Event &event, uint32_t byte) {
    return byte - event.range.offset < event.range.bytes;
  }

  /// Whether a copy that the thread is ordered after has overwritten what
  /// an access left: then the thread is ordered after the access, too.
  bool isOverwritten(size_t old, uint32_t byte, const Set &seen) const {
    for (size_t i = old + 1; i < events.size(); ++i)
      if (seen[i] && events[i].isWrite && events[i].before[old] &&
          touches(events[i], byte))
        return true;
    return false;
  }

  bool isOrdered(const Event &event, uint32_t byte, const Facts &facts) const {
    for (size_t i = 0; i < events.size(); ++i) {
      const Event &old = events[i];
      if (!touches(old, byte) || !(old.isWrite || event.isWrite) ||
          (old.isAtomic && event.isAtomic))
        continue;
      bool isFenced =
          !event.isAsync || old.isAsync || !old.isWrite || facts.fenced[i];
      if (!old.isInFlight && facts.seen[i] && isFenced)
        continue;
      if (old.isInFlight || !isOverwritten(i, byte, facts.seen))
        return false;
    }
    return true;
  }

  /// False for an error.
  bool add(Event event, bool reads) {
    for (uint32_t i = 0; i < event.range.bytes; ++i)
      if (reads && !initialized[event.range.offset + i])
        return false;
    Facts &facts = threads[event.thread];
    for (uint32_t i = 0; i < event.range.bytes; ++i)
      if (!isOrdered(event, event.range.offset + i, facts))
        return false;
    event.before = facts.seen;
    for (uint32_t i = 0; i < event.range.bytes; ++i)
      if (event.isWrite)
        initialized[event.range.offset + i] = true;
    if (event.isInFlight)
      flying.push_back(events.size());
    else
      facts.seen[events.size()] = true;
    events.push_back(event);
    return true;
  }

  size_t takeCopy(uint32_t choice) {
    size_t place = choice % flying.size(), event = flying[place];
    flying.erase(flying.begin() + place);
    events[event].isInFlight = false;
    return event;
  }

  void synchronize(const std::vector<uint32_t> &which) {
    Facts facts;
    for (uint32_t thread : which)
      facts.join(threads[thread]);
    for (uint32_t thread : which)
      threads[thread] = facts;
  }

  std::vector<Event> events;
  std::vector<size_t> flying;
  std::vector<Facts> threads;
  /// The copies by each thread itself that have completed.
  std::vector<Set> ended;
  std::array<Facts, kNumReleaseClocks> clocks;
  /// Copies that have completed on what this belongs to, in all phases.
  std::array<Set, kNumReleaseClocks> copies;
  std::bitset<kNumBytes> initialized;
};

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

/// A random program, which the model runs as it grows, and which ends with the
/// first step that the model takes for wrong.
class Program {
public:
  explicit Program(uint64_t seed) : random(seed), model(chooseThreads()) {
    // How many wrong steps are left out before one is taken.
    uint32_t patience = 1 << random() % 12;
    // The bytes have values, and all are ordered after it: otherwise little is
    // right.
    if (random() % 4)
      initialize();
    while (steps.size() < kNumSteps && !isWrong) {
      Step step = choose();
      Model before = model;
      if (!apply(step)) {
        if (random() % patience) {
          model = std::move(before);
          continue;
        }
        isWrong = true;
      }
      steps.push_back(step);
    }
  }

  void run(Block &block) const {
    std::array<ReleaseClock, kNumReleaseClocks> clocks;
    std::vector<Sanitizer::Copy> flying;
    for (numRun = 0; numRun < steps.size(); ++numRun)
      runStep(block, steps[numRun], clocks, flying);
    for (Sanitizer::Copy copy : flying)
      block.sanitizer.complete(copy, block.cluster.threads[0]);
  }

  uint32_t getNumThreads() const { return model.threads.size(); }
  const std::vector<Step> &getSteps() const { return steps; }

  bool isWrong = false;
  /// Steps that have been run without an error.
  mutable size_t numRun = 0;

private:
  uint32_t chooseThreads() {
    const uint32_t counts[] = {2, 3, 4, 33, 70};
    return counts[random() % 5];
  }

  void initialize() {
    steps.push_back({Step::Access,
                     0,
                     {0, kNumBytes},
                     KVCacheAccessWrite,
                     Proxy::Generic,
                     0,
                     0});
    steps.push_back({Step::SynchronizeAll, 0, {0, 0}, 0, Proxy::Generic, 0, 0});
    for (const Step &step : steps)
      apply(step);
  }

  Step choose() {
    Step step{};
    const Step::Op ops[] = {
        Step::Access,         Step::Access,         Step::Access,
        Step::Access,         Step::Access,         Step::Access,
        Step::Access,         Step::Access,         Step::Release,
        Step::Release,        Step::Acquire,        Step::Acquire,
        Step::Clear,          Step::SynchronizeAll, Step::SynchronizeSome,
        Step::Fence,          Step::Issue,          Step::Complete,
        Step::CompleteThread, Step::ReleaseCopies};
    step.op = ops[random() % std::size(ops)];
    if (model.flying.empty() &&
        (step.op == Step::Complete || step.op == Step::CompleteThread))
      step.op = Step::Access;
    step.thread = random() % model.threads.size();
    step.range.bytes = 1 << random() % (step.op == Step::Issue ? 6 : 5);
    step.range.offset =
        random() % (kNumBytes / step.range.bytes) * step.range.bytes;
    const uint32_t kinds[] = {KVCacheAccessRead,
                              KVCacheAccessRead,
                              KVCacheAccessWrite,
                              KVCacheAccessRead | KVCacheAccessWrite |
                                  KVCacheAccessAtomic,
                              KVCacheAccessRead | KVCacheAccessAtomic,
                              KVCacheAccessWrite | KVCacheAccessAtomic};
    step.flags = kinds[random() % (step.op == Step::Issue ? 3 : 6)];
    step.proxy = random() % 2 ? Proxy::Async : Proxy::Generic;
    step.clocks = random() % kNumReleaseClocks;
    step.choice = random() % (1 << 30);
    return step;
  }

  static std::vector<uint32_t> getThreads(const Step &step, uint32_t count) {
    std::vector<uint32_t> which;
    for (uint32_t i = 0; i < count; ++i)
      if (step.op == Step::SynchronizeAll || (step.choice >> i % 29) & 1)
        which.push_back(i);
    return which;
  }

  bool apply(const Step &step);
  static void runStep(Block &block, const Step &step,
                      std::array<ReleaseClock, kNumReleaseClocks> &clocks,
                      std::vector<Sanitizer::Copy> &flying);

  std::mt19937_64 random;
  Model model;
  std::vector<Step> steps;
};

bool Program::apply(const Step &step) {
  Model::Facts &thread = model.threads[step.thread];
  Model::Facts &clocks = model.clocks[step.clocks];
  bool writes = step.flags & KVCacheAccessWrite;
  bool reads = step.flags & KVCacheAccessRead;
  switch (step.op) {
  case Step::Access:
    return model.add({step.thread,
                      step.range,
                      writes,
                      (step.flags & KVCacheAccessAtomic) != 0,
                      false,
                      false,
                      {}},
                     reads);
  case Step::Issue:
    return model.add({step.thread,
                      step.range,
                      writes,
                      false,
                      step.proxy == Proxy::Async,
                      true,
                      {}},
                     reads);
  case Step::Complete: {
    size_t copy = model.takeCopy(step.choice);
    model.copies[step.clocks][copy] = true;
    clocks.seen |= model.copies[step.clocks];
    // A thread that acquires a copy acquires those that completed there before.
    if (!model.events[copy].isAsync)
      model.ended[model.events[copy].thread] |= model.copies[step.clocks];
    return true;
  }
  case Step::CompleteThread: {
    size_t copy = model.takeCopy(step.choice);
    thread.seen[copy] = true;
    if (!model.events[copy].isAsync)
      model.ended[step.thread][copy] = true;
    return true;
  }
  case Step::ReleaseCopies:
    clocks.seen |= model.ended[step.thread];
    return true;
  case Step::Release:
    clocks.join(thread);
    return true;
  case Step::Acquire:
    thread.join(clocks);
    return true;
  case Step::Clear:
    clocks = {};
    return true;
  case Step::SynchronizeAll:
  case Step::SynchronizeSome:
    model.synchronize(getThreads(step, model.threads.size()));
    return true;
  case Step::Fence:
    if (step.getSpace() == Space::Shared)
      thread.fenced = thread.seen;
    return true;
  }
  return true;
}

void Program::runStep(Block &block, const Step &step,
                      std::array<ReleaseClock, kNumReleaseClocks> &clocks,
                      std::vector<Sanitizer::Copy> &flying) {
  static const KVCacheSite site = {"step", "program"};
  Sanitizer &sanitizer = block.sanitizer;
  Thread &thread = block.cluster.threads[step.thread];
  auto takeCopy = [&] {
    size_t place = step.choice % flying.size();
    Sanitizer::Copy copy = flying[place];
    flying.erase(flying.begin() + place);
    return copy;
  };
  switch (step.op) {
  case Step::Access:
    sanitizer.access(thread, &site, step.range, step.flags);
    return;
  case Step::Issue:
    flying.push_back(
        step.flags & KVCacheAccessWrite
            ? sanitizer.issueWrite(thread, &site, step.range, step.proxy)
            : sanitizer.issueRead(thread, &site, step.range, step.proxy));
    return;
  case Step::Complete:
    sanitizer.complete(takeCopy(), clocks[step.clocks]);
    return;
  case Step::CompleteThread:
    sanitizer.complete(takeCopy(), thread);
    return;
  case Step::ReleaseCopies:
    return sanitizer.releaseCopies(sanitizer.getCopies(thread),
                                   clocks[step.clocks]);
  case Step::Release:
    return sanitizer.release(thread, clocks[step.clocks]);
  case Step::Acquire:
    return sanitizer.acquire(thread, clocks[step.clocks]);
  case Step::Clear:
    return clocks[step.clocks].clear();
  case Step::SynchronizeAll:
  case Step::SynchronizeSome: {
    std::vector<Thread *> threads;
    for (uint32_t index : getThreads(step, block.size()))
      threads.push_back(&block.cluster.threads[index]);
    return sanitizer.synchronize(threads);
  }
  case Step::Fence:
    return sanitizer.fenceProxy(thread, step.getSpace());
  }
}

} // namespace

//===----------------------------------------------------------------------===//
// Comparison
//===----------------------------------------------------------------------===//

/// The first thread runs the whole program, in place of all.
static void runKernel(KVCacheThread *self, void **params) {
  Thread &thread = Thread::get(self);
  if (thread.index == 0)
    static_cast<const Program *>(*params)->run(*thread.block);
}

/// Returns whether the sanitizer and the model agree.
static bool compare(Cluster &cluster, uint64_t seed) {
  Program program(seed);
  KVCacheEmulatedKernel kernel = {};
  kernel.entry = runKernel;
  const KVCacheSharedVariable memory = {"memory", 0, kNumBytes, 0};
  kernel.sharedVariables = &memory;
  kernel.numSharedVariables = 1;
  KVCacheEmulatedModule module = {};
  module.isSanitized = 1;
  void *params[] = {&program};
  Grid grid;
  grid.module = &module;
  grid.kernel = &kernel;
  grid.params = params;
  std::fill_n(grid.blocks, 3, 1);
  std::fill_n(grid.threads, 3, 1);
  grid.threads[0] = program.getNumThreads();
  grid.sharedBytes = kNumBytes;
  grid.sharedVariables =
      SharedVariables(kernel, kNumBytes, /*hasRedZones=*/true);
  cluster.begin(grid, /*number=*/0);
  cluster.goOn();
  std::optional<std::string> error = cluster.finish();
  cluster.leave();

  size_t wanted = program.getSteps().size() - program.isWrong;
  if (program.numRun == wanted && error.has_value() == program.isWrong)
    return true;
  std::printf("program %llu: %zu steps are right, the sanitizer took %zu%s%s\n",
              static_cast<unsigned long long>(seed), wanted, program.numRun,
              error ? ": " : "", error ? error->c_str() : "");
  return false;
}

int main(int argc, char **argv) {
  uint64_t numPrograms = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 2000;
  Cluster cluster;
  uint64_t numWrong = 0;
  for (uint64_t seed = 0; seed < numPrograms; ++seed)
    numWrong += !compare(cluster, seed);
  std::printf("%llu programs, %llu differences\n",
              static_cast<unsigned long long>(numPrograms),
              static_cast<unsigned long long>(numWrong));
  return numWrong != 0;
}
