//===- Grid.cpp - The blocks of a launch over the cores ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Grid.h"
#include "Block.h"
#include "LaunchShadow.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

using namespace mlir::kvcache;
using namespace mlir::kvcache::emulator;

namespace {

/// Blocks keep their stacks from one launch to the next.
class BlockPool {
public:
  std::unique_ptr<Block> take() {
    std::lock_guard<std::mutex> lock(mutex);
    if (blocks.empty())
      return std::make_unique<Block>();
    std::unique_ptr<Block> block = std::move(blocks.back());
    blocks.pop_back();
    return block;
  }

  void giveBack(std::unique_ptr<Block> block) {
    std::lock_guard<std::mutex> lock(mutex);
    blocks.push_back(std::move(block));
  }

private:
  std::mutex mutex;
  std::vector<std::unique_ptr<Block>> blocks;
};

/// What the workers of a launch share.
class Work {
public:
  explicit Work(const Grid &grid) : grid(grid) {}

  void run(BlockPool &pool) {
    std::unique_ptr<Block> block;
    // Blocks that come before one with an error still run, so that the error
    // that is reported is always the same.
    while (std::optional<uint64_t> index = takeNext())
      runOne(pool, block, *index);
    if (block)
      pool.giveBack(std::move(block));
  }

  std::optional<std::string> takeError() { return std::move(error); }

private:
  /// The next block; none if there is none, or none that matters any more. One
  /// that is not run has had its turn.
  std::optional<uint64_t> takeNext() {
    uint64_t index = next++;
    if (index < end && !isInterrupted())
      return index;
    if (grid.shadow && index < grid.numBlocks())
      grid.shadow->endTurn(index);
    return std::nullopt;
  }

  void runOne(BlockPool &pool, std::unique_ptr<Block> &block, uint64_t index) {
    if (std::optional<std::string> error = runBlock(pool, block, index))
      note(index, *error);
    if (grid.shadow)
      grid.shadow->endTurn(index);
  }

  std::optional<std::string>
  runBlock(BlockPool &pool, std::unique_ptr<Block> &block, uint64_t index) {
    uint64_t row = index / grid.blocks[0];
    const uint32_t place[3] = {static_cast<uint32_t>(index % grid.blocks[0]),
                               static_cast<uint32_t>(row % grid.blocks[1]),
                               static_cast<uint32_t>(row / grid.blocks[1])};
    try {
      if (!block)
        block = pool.take();
      return block->run(grid, place);
    } catch (const std::bad_alloc &) {
      return "out of memory for a block of " +
             std::to_string(grid.numThreads()) + " threads with " +
             std::to_string(grid.sharedBytes) + " bytes of shared memory";
    }
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
  std::atomic<uint64_t> next{0}, end{grid.numBlocks()};
  std::mutex mutex;
  std::optional<std::string> error;
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

std::optional<std::string> emulator::run(const Grid &launch) {
  // Never destroyed: a launch may be running when the process ends.
  static BlockPool &pool = *new BlockPool;
  InterruptScope scope;
  Grid grid = launch;
  std::optional<LaunchShadow> shadow;
  if (grid.module->isSanitized)
    grid.shadow = &shadow.emplace(grid);
  Work work(grid);
  auto runWorker = [&] { work.run(pool); };
  std::vector<std::thread> workers =
      startWorkers(std::min(grid.numWorkers, grid.numBlocks()) - 1, runWorker);
  runWorker();
  for (std::thread &worker : workers)
    worker.join();
  std::optional<std::string> error = work.takeError();
  if (!error && isInterrupted())
    error = "is interrupted (SIGINT)";
  return error;
}
