//===- Clocks.cpp - Clocks of threads and of other blocks -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Order.h"

#include <algorithm>

using namespace mlir::kvcache::emulator;

//===----------------------------------------------------------------------===//
// Clocks
//===----------------------------------------------------------------------===//

static void raiseAll(std::vector<uint32_t> &into,
                     const std::vector<uint32_t> &from) {
  uint32_t *to = into.data();
  const uint32_t *values = from.data();
  for (size_t i = 0, e = std::min(into.size(), from.size()); i < e; ++i)
    to[i] = std::max(to[i], values[i]);
}

void Clocks::makeUnique(size_t size) {
  if (!values)
    values = std::make_shared<std::vector<uint32_t>>();
  else if (values.use_count() > 1)
    values = std::make_shared<std::vector<uint32_t>>(*values);
  if (values->size() < size)
    values->resize(size);
}

void Clocks::raise(uint32_t who, uint32_t clock) {
  if (get(who) >= clock)
    return;
  makeUnique(who + 1);
  (*values)[who] = clock;
}

void Clocks::join(const Clocks &other) {
  if (!other.values || values == other.values)
    return;
  if (!values)
    values = other.values;
  else
    join(*other.values);
}

void Clocks::join(const std::vector<uint32_t> &others) {
  makeUnique(others.size());
  raiseAll(*values, others);
}

void Clocks::joinFrom(uint32_t first, const Clocks &other) {
  if (!other.values)
    return;
  for (uint32_t who = first; who < other.values->size(); ++who)
    raise(who, (*other.values)[who]);
}

void Clocks::joinInto(std::vector<uint32_t> &others) const {
  if (values)
    raiseAll(others, *values);
}

//===----------------------------------------------------------------------===//
// Other blocks
//===----------------------------------------------------------------------===//

const OtherBlocks::BlockClocks *OtherBlocks::find(uint32_t block) const {
  uint32_t number = block / kChunkBlocks;
  if (!chunks || number >= chunks->size() || !(*chunks)[number])
    return nullptr;
  return &(*(*chunks)[number])[block % kChunkBlocks];
}

bool OtherBlocks::includes(uint32_t block, uint32_t who, uint32_t clock) const {
  const BlockClocks *known = find(block);
  return block < end || (known && clock <= known->seen.get(who));
}

bool OtherBlocks::hasFenced(uint32_t block, uint32_t who,
                            uint32_t clock) const {
  const BlockClocks *known = find(block);
  return block < end || (known && clock <= known->fenced.get(who));
}

void OtherBlocks::joinInto(uint32_t block, Clocks &seen, Clocks &fenced) const {
  const BlockClocks *known = find(block);
  if (!known)
    return;
  seen.join(known->seen);
  fenced.join(known->fenced);
}

void OtherBlocks::join(const OtherBlocks &other) {
  end = std::max(end, other.end);
  if (!other.chunks || chunks == other.chunks)
    return;
  if (!chunks) {
    chunks = other.chunks;
    return;
  }
  auto joined = std::make_shared<Chunks>(*chunks);
  joined->resize(std::max(joined->size(), other.chunks->size()));
  for (size_t i = 0; i < other.chunks->size(); ++i) {
    const std::shared_ptr<const Chunk> &theirs = (*other.chunks)[i];
    std::shared_ptr<const Chunk> &mine = (*joined)[i];
    if (!theirs || theirs == mine)
      continue;
    if (!mine) {
      mine = theirs;
      continue;
    }
    auto chunk = std::make_shared<Chunk>(*mine);
    for (uint32_t block = 0; block < kChunkBlocks; ++block) {
      (*chunk)[block].seen.join((*theirs)[block].seen);
      (*chunk)[block].fenced.join((*theirs)[block].fenced);
    }
    mine = std::move(chunk);
  }
  chunks = std::move(joined);
}

void OtherBlocks::add(uint32_t block, const Clocks &seen,
                      const Clocks &fenced) {
  uint32_t number = block / kChunkBlocks;
  auto joined =
      chunks ? std::make_shared<Chunks>(*chunks) : std::make_shared<Chunks>();
  if (joined->size() <= number)
    joined->resize(number + 1);
  std::shared_ptr<const Chunk> &old = (*joined)[number];
  auto chunk = old ? std::make_shared<Chunk>(*old) : std::make_shared<Chunk>();
  BlockClocks &clocks = (*chunk)[block % kChunkBlocks];
  clocks.seen.join(seen);
  clocks.fenced.join(fenced);
  old = std::move(chunk);
  chunks = std::move(joined);
}

void OtherBlocks::fenceProxy() {
  if (!chunks)
    return;
  auto fenced = std::make_shared<Chunks>(*chunks);
  for (std::shared_ptr<const Chunk> &chunk : *fenced) {
    auto isFenced = [](const BlockClocks &clocks) {
      return clocks.fenced.isSame(clocks.seen);
    };
    if (!chunk || std::all_of(chunk->begin(), chunk->end(), isFenced))
      continue;
    auto all = std::make_shared<Chunk>(*chunk);
    for (BlockClocks &clocks : *all)
      clocks.fenced = clocks.seen;
    chunk = std::move(all);
  }
  chunks = std::move(fenced);
}
