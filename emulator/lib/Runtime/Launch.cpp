//===- Launch.cpp - A launch over the cores -------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Launch.h"
#include "Block.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <mutex>
#include <new>
#include <random>
#include <system_error>
#include <thread>

using namespace mlir::kvcache;
using namespace mlir::kvcache::emulator;

namespace {

/// Clusters keep their stacks from one launch to the next.
class ClusterPool {
public:
  std::unique_ptr<Cluster> take() {
    std::lock_guard<std::mutex> lock(mutex);
    if (clusters.empty())
      return std::make_unique<Cluster>();
    std::unique_ptr<Cluster> cluster = std::move(clusters.back());
    clusters.pop_back();
    return cluster;
  }

  /// Does nothing with a null cluster.
  void giveBack(std::unique_ptr<Cluster> cluster) {
    if (!cluster)
      return;
    cluster->leave();
    std::lock_guard<std::mutex> lock(mutex);
    clusters.push_back(std::move(cluster));
  }

private:
  std::mutex mutex;
  std::vector<std::unique_ptr<Cluster>> clusters;
};

/// Never destroyed: a launch may be running when the process ends.
ClusterPool &getPool() {
  static ClusterPool &pool = *new ClusterPool;
  return pool;
}

/// Begins with a cluster by its number.
void begin(const Grid &grid, std::unique_ptr<Cluster> &cluster,
           uint64_t index) {
  if (!cluster)
    cluster = getPool().take();
  cluster->begin(grid, index);
}

/// The state that the workers of a launch share.
class Work {
public:
  /// The clusters from `first` on.
  Work(const Grid &grid, uint64_t first) : grid(grid), next(first) {}

  void run() {
    std::unique_ptr<Cluster> cluster;
    // Clusters that come before one with an error still run, so that the error
    // that is reported is always the same.
    while (std::optional<uint64_t> index = takeNext())
      runOne(*index, [&] {
        begin(grid, cluster, *index);
        return goOnAndFinish(cluster);
      });
    getPool().giveBack(std::move(cluster));
  }

  /// Runs some clusters in turns, in one thread of the host: each goes on to
  /// its next atomic access of global memory. Those in `begun` come first.
  void runTogether(std::vector<std::unique_ptr<Cluster>> begun) {
    std::mt19937_64 random(grid.seed);
    std::vector<Running> running;
    for (std::unique_ptr<Cluster> &cluster : begun)
      running.push_back({running.size(), std::move(cluster)});
    for (uint64_t turn = 0; !error; ++turn) {
      while (running.size() < grid.numTogether) {
        std::optional<uint64_t> index = takeNext();
        if (!index)
          break;
        running.push_back({*index, nullptr});
      }
      if (running.empty())
        return;
      auto chosen =
          running.begin() + (grid.seed ? random() : turn) % running.size();
      if (runTurn(*chosen))
        continue;
      getPool().giveBack(std::move(chosen->cluster));
      running.erase(chosen);
    }
    for (Running &each : running)
      getPool().giveBack(std::move(each.cluster));
  }

  /// Goes on with a cluster that has begun.
  void goOn(std::unique_ptr<Cluster> &cluster, uint64_t index) {
    runOne(index, [&] { return goOnAndFinish(cluster); });
  }

  std::optional<std::string> takeError() { return std::move(error); }
  std::unique_ptr<Cluster> takeStopped() { return std::move(stopped); }

private:
  /// A cluster that runs together with others, null before it has begun.
  struct Running {
    uint64_t index;
    std::unique_ptr<Cluster> cluster;
  };

  /// Whether the cluster has only given way.
  bool runTurn(Running &running) {
    bool hasGivenWay = false;
    runOne(running.index, [&] {
      if (!running.cluster)
        begin(grid, running.cluster, running.index);
      std::optional<std::string> error;
      hasGivenWay = goOnOnce(running.cluster, error);
      return error;
    });
    return hasGivenWay;
  }

  /// The next cluster; none if there is none, or none that matters any more.
  /// One that is not run has had its turn.
  std::optional<uint64_t> takeNext() {
    uint64_t index = next++;
    if (index < end && !isInterrupted())
      return index;
    if (hasTurns() && index < grid.numClusters())
      grid.shadow->endTurn(index);
    return std::nullopt;
  }

  /// Takes the cluster if it stops. Whether it has only given way.
  bool goOnOnce(std::unique_ptr<Cluster> &cluster,
                std::optional<std::string> &error) {
    if (cluster->goOn())
      error = cluster->finish();
    else if (cluster->hasGivenWay())
      return true;
    else
      stopped = std::move(cluster);
    return false;
  }

  std::optional<std::string> goOnAndFinish(std::unique_ptr<Cluster> &cluster) {
    std::optional<std::string> error;
    while (goOnOnce(cluster, error))
      ;
    return error;
  }

  /// Whether clusters wait for the end of those with lower numbers.
  bool hasTurns() const { return grid.shadow && !grid.shadow->isTogether(); }

  void runOne(uint64_t index,
              const std::function<std::optional<std::string>()> &goOn) {
    std::optional<std::string> error;
    try {
      error = goOn();
    } catch (const std::bad_alloc &) {
      error = "out of memory for a block of " +
              std::to_string(grid.numThreads()) + " threads with " +
              std::to_string(grid.sharedBytes) + " bytes of shared memory";
    }
    if (error)
      note(index, *error);
    bool hasStopped = index + 1 == grid.numClusters() && stopped;
    if (hasTurns() && !hasStopped)
      grid.shadow->endTurn(index);
  }

  void note(uint64_t index, const std::string &message) {
    if (grid.shadow)
      grid.shadow->stop(index);
    std::lock_guard<std::mutex> lock(mutex);
    if (index >= end)
      return;
    end = index;
    error = message;
  }

  const Grid &grid;
  std::atomic<uint64_t> next, end{grid.numClusters()};
  std::mutex mutex;
  std::optional<std::string> error;
  /// Only the last cluster stops.
  std::unique_ptr<Cluster> stopped;
};

} // namespace

/// Starts threads of the host that help, or fewer if there are no more.
static std::vector<std::thread> startWorkers(uint64_t count,
                                             const std::function<void()> &run) {
  std::vector<std::thread> workers;
  try {
    for (uint64_t i = 0; i < count; ++i)
      workers.emplace_back(run);
  } catch (const std::system_error &) {
  }
  return workers;
}

Launch::Launch(const Grid &given) : grid(given) {
  for (int64_t i = 0; i < grid.kernel->numParams; ++i) {
    int64_t bytes = grid.kernel->paramBytes[i];
    values.push_back(std::make_unique<std::byte[]>(bytes));
    std::memcpy(values.back().get(), given.params[i], bytes);
    params.push_back(values.back().get());
  }
  grid.params = params.data();
  grid.meter = &meter;
  grid.stopsForDependents = grid.kernel->startsDependents;
}

Launch::~Launch() { getPool().giveBack(std::move(stopped)); }

/// Runs clusters until they wait for the launch before: how many, the seed
/// says.
std::vector<std::unique_ptr<Cluster>> Launch::runAhead() {
  constexpr uint64_t mostClusters = 4;
  std::mt19937_64 random(grid.seed);
  uint64_t count = grid.seed ? random() % (mostClusters + 1) : 1;
  std::vector<std::unique_ptr<Cluster>> clusters(
      std::min(count, grid.numClusters()));
  grid.isAhead = true;
  for (size_t index = 0; index < clusters.size(); ++index) {
    begin(grid, clusters[index], index);
    clusters[index]->goOn();
  }
  grid.isAhead = false;
  return clusters;
}

std::optional<std::string> Launch::runClusters(Launch *before) {
  std::vector<std::unique_ptr<Cluster>> ahead;
  if (before && before->stopped)
    ahead = runAhead();
  if (before) {
    if (std::optional<std::string> error = before->finish())
      return "in the launch of " + before->grid.name + " before: " + *error;
    if (shadow && before->shadow)
      shadow->absorb(std::move(*before->shadow));
  }
  Work work(grid, ahead.size());
  if (shadow && shadow->isTogether()) {
    work.runTogether(std::move(ahead));
    stopped = work.takeStopped();
    return work.takeError();
  }
  for (size_t index = 0; index < ahead.size(); ++index) {
    work.goOn(ahead[index], index);
    getPool().giveBack(std::move(ahead[index]));
  }
  auto runWorker = [&] { work.run(); };
  std::vector<std::thread> workers = startWorkers(
      std::min(grid.numWorkers, grid.numClusters()) - 1, runWorker);
  runWorker();
  for (std::thread &worker : workers)
    worker.join();
  stopped = work.takeStopped();
  return work.takeError();
}

std::optional<std::string> Launch::end(std::optional<std::string> error) {
  if (!error && isInterrupted())
    error = "is interrupted (SIGINT)";
  if (!error && shadow && grid.isProgrammatic && !shadow->hasAnyWaited())
    error = std::string(grid.kernel->site.location) + ": kernel " + grid.name +
            " has a programmatic launch, and none of its threads waits for "
            "the launch before (griddepcontrol.wait): later launches may "
            "begin before that has ended";
  if (grid.module->isMetered)
    meter.finish(grid);
  return error;
}

std::optional<std::string> Launch::run(Launch *before) {
  InterruptScope scope;
  if (grid.module->isSanitized)
    grid.shadow = &shadow.emplace(
        grid, before && before->shadow ? &*before->shadow : nullptr);
  std::optional<std::string> error = runClusters(before);
  return stopped && !error ? std::nullopt : end(std::move(error));
}

std::optional<std::string> Launch::finish() {
  if (!stopped)
    return std::nullopt;
  InterruptScope scope;
  Work work(grid, grid.numClusters());
  std::unique_ptr<Cluster> cluster = std::move(stopped);
  work.goOn(cluster, grid.numClusters() - 1);
  getPool().giveBack(std::move(cluster));
  return end(work.takeError());
}
