//===- Grid.cpp - The blocks of a launch over the cores ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Grid.h"
#include "../Support/Support.h"
#include "Block.h"
#include "Memory.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <mutex>
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

  void run(Block &block) {
    // Blocks that come before one with an error still run, so that the error
    // that is reported is always the same.
    for (uint64_t index = next++; index < end; index = next++)
      if (std::optional<std::string> error = runBlock(block, index))
        note(index, *error);
  }

  std::optional<std::string> takeError() { return std::move(error); }

private:
  std::optional<std::string> runBlock(Block &block, uint64_t index) {
    uint64_t row = index / grid.blocks[0];
    const uint32_t place[3] = {static_cast<uint32_t>(index % grid.blocks[0]),
                               static_cast<uint32_t>(row % grid.blocks[1]),
                               static_cast<uint32_t>(row / grid.blocks[1])};
    return block.run(grid, place);
  }

  void note(uint64_t index, const std::string &message) {
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

/// The cores to use: KVCACHE_EMULATOR_THREADS, or all.
static uint64_t getNumWorkers() {
  uint64_t count = std::thread::hardware_concurrency();
  if (const char *text = runtime::getEnvironment("KVCACHE_EMULATOR_THREADS"))
    count = std::strtoull(text, nullptr, 10);
  return std::max<uint64_t>(count, 1);
}

std::optional<std::string> emulator::run(const Grid &grid) {
  // Never destroyed: a launch may be running when the process ends.
  static BlockPool &pool = *new BlockPool;
  Memory::get().beginLaunch();
  Work work(grid);
  auto runWorker = [&] {
    std::unique_ptr<Block> block = pool.take();
    work.run(*block);
    pool.giveBack(std::move(block));
  };
  std::vector<std::thread> workers;
  for (uint64_t i = 1, e = std::min(getNumWorkers(), grid.numBlocks()); i < e;
       ++i)
    workers.emplace_back(runWorker);
  runWorker();
  for (std::thread &worker : workers)
    worker.join();
  return work.takeError();
}
