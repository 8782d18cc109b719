//===- Meter.cpp - What kernels ask of memory -----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Meter.h"
#include "Block.h"
#include "Grid.h"

#include <algorithm>
#include <cstdio>

using namespace mlir::kvcache::emulator;

/// The unit in which L2 and memory answer.
static constexpr uint64_t kSectorBytes = 32;

/// Shared memory. CUDA C++ Programming Guide, "Shared Memory".
static constexpr uint32_t kNumBanks = 32, kBankBytes = 4;

static constexpr size_t kMatrixRows = 8;

/// Flags of streams, above those of accesses: the rows of a matrix, and which.
static constexpr uint32_t kIsMatrix = 1 << 8, kMatrixShift = 9;

/// The executions of an instruction by some lanes of a warp that others may
/// join later. Far more than lanes lead each other by in practice.
static constexpr size_t kMaxRequests = 1 << 16;

/// The requests that are kept for the next block.
static constexpr size_t kMaxFreeRequests = 1 << 12;

//===----------------------------------------------------------------------===//
// Begin and end
//===----------------------------------------------------------------------===//

/// PTX ISA, "ld", "st": .v8.b32 and .v4.b64 in .global.
static int64_t getMaxGlobalBytes(const std::string &chip) {
  int number = 0;
  return std::sscanf(chip.c_str(), "sm_%d", &number) == 1 && number >= 100 ? 32
                                                                           : 16;
}

void Meter::begin(bool on, const Block &block) {
  isOn = on;
  if (!isOn)
    return;
  launch = block.getGrid().meter;
  maxGlobalBytes = getMaxGlobalBytes(block.getGrid().chip);
  totals = {};
  warps.resize((block.size() + kWarpSize - 1) / kWarpSize);
  for (size_t i = 0; i < warps.size(); ++i) {
    uint32_t numLanes = std::min<uint32_t>(block.size() - i * kWarpSize, 32);
    warps[i].allLanes = ~uint32_t{0} >> (32 - numLanes);
    warps[i].numStreams = 0;
    warps[i].last = nullptr;
  }
}

void Meter::end() {
  if (!isOn)
    return;
  for (Warp &warp : warps)
    for (size_t i = 0; i < warp.numStreams; ++i) {
      Stream &stream = *warp.streams[i];
      while (!stream.requests.empty())
        countFirst(stream);
      if (!stream.rows.empty())
        countRows(stream, stream.flags >> kMatrixShift);
    }
  freeRequests.resize(std::min(freeRequests.size(), kMaxFreeRequests));
  if (launch)
    launch->add(totals);
}

//===----------------------------------------------------------------------===//
// Instructions of warps
//===----------------------------------------------------------------------===//

Meter::Stream &Meter::addStream(Warp &warp, const KVCacheSite *site,
                                uint32_t flags) {
  if (warp.numStreams == warp.streams.size())
    warp.streams.push_back(std::make_unique<Stream>());
  Stream &stream = *warp.streams[warp.numStreams++];
  stream.site = site;
  stream.flags = flags;
  stream.first = 0;
  std::fill_n(stream.numByLane, 32, 0);
  stream.rows.clear();
  stream.successor = nullptr;
  return stream;
}

/// All lanes come by in the same order, mostly.
Meter::Stream &Meter::getStream(Warp &warp, const KVCacheSite *site,
                                uint32_t flags) {
  auto isWanted = [&](const Stream &stream) {
    return stream.site == site && stream.flags == flags;
  };
  Stream *last = warp.last;
  if (last && last->successor && isWanted(*last->successor))
    return *(warp.last = last->successor);
  auto end = warp.streams.begin() + warp.numStreams;
  auto found = std::find_if(warp.streams.begin(), end, [&](const auto &stream) {
    return isWanted(*stream);
  });
  warp.last = found == end ? &addStream(warp, site, flags) : found->get();
  if (last)
    last->successor = warp.last;
  return *warp.last;
}

/// The execution that the lane takes part in; null if it is counted already.
Meter::Request *Meter::getRequest(Stream &stream, uint32_t lane) {
  uint64_t number = stream.numByLane[lane]++;
  if (number < stream.first)
    return nullptr;
  if (number - stream.first == stream.requests.size()) {
    if (stream.requests.size() == kMaxRequests)
      countFirst(stream);
    if (freeRequests.empty())
      freeRequests.push_back(std::make_unique<Request>());
    stream.requests.push_back(std::move(freeRequests.back()));
    freeRequests.pop_back();
  }
  return stream.requests[number - stream.first].get();
}

void Meter::countFirst(Stream &stream) {
  std::unique_ptr<Request> request = std::move(stream.requests.front());
  stream.requests.pop_front();
  ++stream.first;
  count(request->accesses, stream.flags);
  request->lanes = 0;
  request->accesses.clear();
  freeRequests.push_back(std::move(request));
}

void Meter::access(const Thread &thread, const KVCacheSite *site,
                   const Access &access, uint32_t flags) {
  Warp &warp = warps[thread.warp];
  Stream &stream = getStream(warp, site, flags);
  Request *request = getRequest(stream, thread.lane);
  if (!request)
    return count({access}, flags);
  request->accesses.push_back(access);
  request->lanes |= uint32_t{1} << thread.lane;
  if (request->lanes != warp.allLanes)
    return;
  // An earlier one may lack lanes that have gone another way: then this one
  // stays in its place, with nothing left to count.
  count(request->accesses, flags);
  request->accesses.clear();
  while (!stream.requests.empty() &&
         stream.requests.front()->lanes == warp.allLanes)
    countFirst(stream);
}

/// The bytes of the pieces that instructions access.
static uint8_t getUnit(int64_t alignment, int64_t maxBytes) {
  return std::clamp<int64_t>(alignment, 1, maxBytes);
}

void Meter::accessGlobal(const Thread &thread, const KVCacheSite *site,
                         uint64_t address, int64_t bytes, uint32_t flags,
                         int64_t alignment) {
  if (!isOn)
    return;
  access(thread, site,
         {address, bytes, static_cast<uint8_t>(thread.lane),
          getUnit(alignment, maxGlobalBytes),
          /*isShared=*/false},
         flags);
}

void Meter::accessShared(const Thread &thread, const KVCacheSite *site,
                         uint32_t offset, int64_t bytes, uint32_t flags,
                         int64_t alignment) {
  if (!isOn)
    return;
  access(thread, site,
         {offset, bytes, static_cast<uint8_t>(thread.lane),
          getUnit(alignment, kMaxBytes),
          /*isShared=*/true},
         flags);
}

void Meter::accessMatrixRow(const Thread &thread, const KVCacheSite *site,
                            uint32_t matrix, uint32_t offset, uint32_t flags) {
  if (!isOn)
    return;
  Stream &stream = getStream(warps[thread.warp], site,
                             flags | kIsMatrix | matrix << kMatrixShift);
  stream.rows.push_back({offset, kMaxBytes, 0, kMaxBytes, /*isShared=*/true});
  if (stream.rows.size() == kMatrixRows)
    countRows(stream, matrix);
}

//===----------------------------------------------------------------------===//
// Counting
//===----------------------------------------------------------------------===//

void Meter::count(const std::vector<Access> &accesses, uint32_t flags) {
  int64_t numPieces = 0;
  for (const Access &access : accesses)
    if (access.bytes > numPieces * access.unit)
      numPieces = (access.bytes + access.unit - 1) / access.unit;
  for (int64_t i = 0; i < numPieces; ++i) {
    globalPieces.clear();
    sharedPieces.clear();
    for (const Access &access : accesses) {
      int64_t done = i * access.unit;
      if (done >= access.bytes)
        continue;
      Access &piece =
          (access.isShared ? sharedPieces : globalPieces).emplace_back(access);
      piece.address += done;
      piece.bytes = std::min<int64_t>(access.bytes - done, access.unit);
    }
    if (!globalPieces.empty())
      countGlobal(globalPieces, flags);
    if (!sharedPieces.empty())
      countShared(sharedPieces);
  }
}

/// Leaves each number once. Mostly they are sorted already.
static void makeUnique(std::vector<uint64_t> &numbers) {
  if (!std::is_sorted(numbers.begin(), numbers.end()))
    std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

void Meter::countGlobal(const std::vector<Access> &pieces, uint32_t flags) {
  units.clear();
  uint64_t bytes = 0;
  for (const Access &piece : pieces) {
    bytes += piece.bytes;
    uint64_t last = (piece.address + piece.bytes - 1) / kSectorBytes;
    for (uint64_t i = piece.address / kSectorBytes; i <= last; ++i)
      units.push_back(i);
  }
  makeUnique(units);
  ++totals.globalRequests;
  if (flags & KVCacheAccessRead)
    totals.globalRead.add(bytes, units.size());
  if (flags & KVCacheAccessWrite)
    totals.globalWritten.add(bytes, units.size());
}

/// Passes through the banks: as many as the bank has words that has most. A
/// word that several threads access counts once.
uint64_t Meter::countPasses(const Access *begin, const Access *end) {
  units.clear();
  for (const Access *piece = begin; piece != end; ++piece) {
    uint64_t last = (piece->address + piece->bytes - 1) / kBankBytes;
    for (uint64_t i = piece->address / kBankBytes; i <= last; ++i)
      units.push_back(i);
  }
  makeUnique(units);
  uint64_t wordsOfBank[kNumBanks] = {}, most = 0;
  for (uint64_t word : units)
    most = std::max(most, ++wordsOfBank[word % kNumBanks]);
  return most;
}

/// 4 bytes of each thread go through the banks at once for the whole warp, 8
/// bytes for half a warp, 16 for a quarter.
void Meter::countShared(const std::vector<Access> &pieces) {
  int64_t bytes = 0;
  for (const Access &piece : pieces)
    bytes = std::max(bytes, piece.bytes);
  uint32_t numLanes = bytes <= 4 ? 32 : bytes <= 8 ? 16 : 8;
  sharedByLane.assign(pieces.begin(), pieces.end());
  std::sort(sharedByLane.begin(), sharedByLane.end(),
            [](const Access &a, const Access &b) { return a.lane < b.lane; });
  ++totals.sharedRequests;
  const Access *end = sharedByLane.data() + sharedByLane.size();
  for (const Access *begin = sharedByLane.data(), *next; begin != end;
       begin = next) {
    next = std::find_if(begin, end, [&](const Access &piece) {
      return piece.lane / numLanes != begin->lane / numLanes;
    });
    totals.addPasses(countPasses(begin, next));
  }
}

void Meter::countRows(Stream &stream, uint32_t matrix) {
  if (matrix == 0)
    ++totals.sharedRequests;
  totals.addPasses(
      countPasses(stream.rows.data(), stream.rows.data() + stream.rows.size()));
  stream.rows.clear();
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

void Meter::copyAsync(const Thread &thread, const KVCacheSite *site,
                      uint64_t address, int64_t sourceBytes, uint32_t offset,
                      int64_t bytes) {
  copy(CopyKind::AsyncCopy, sourceBytes, bytes);
  accessGlobal(thread, site, address, sourceBytes, KVCacheAccessRead);
  accessShared(thread, site, offset, bytes, KVCacheAccessWrite);
}

void Meter::copy(CopyKind kind, int64_t globalBytes, int64_t sharedBytes) {
  if (isOn)
    totals.copies[static_cast<size_t>(kind)].add(1, globalBytes, sharedBytes);
}

void Meter::multiply(ProductKind kind, uint32_t m, uint32_t n, uint32_t k,
                     int64_t sharedBytes) {
  if (isOn)
    totals.products[static_cast<size_t>(kind)].add(1, uint64_t{2} * m * n * k,
                                                   sharedBytes);
}

void Meter::copyGlobal(uint64_t address, int64_t bytes, bool isWrite) {
  if (!isOn || bytes <= 0)
    return;
  uint64_t sectors =
      (address + bytes - 1) / kSectorBytes - address / kSectorBytes + 1;
  (isWrite ? totals.globalWritten : totals.globalRead).add(bytes, sectors);
}

void Meter::completePhase(uint32_t offset, int64_t bytes) {
  if (isOn)
    totals.barriers[offset].add(1, bytes);
}
