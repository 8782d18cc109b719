//===- Exchanges.cpp - Values that lanes of a warp exchange ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Grid.h"
#include "WarpConvergence.h"
#include "kvcache/Emulator/Warps.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace mlir::kvcache::emulator;

//===----------------------------------------------------------------------===//
// Poison of what lanes exchange
//===----------------------------------------------------------------------===//

namespace {
/// The poisoned bits of a value, and their origin, or 0.
struct Exchanged {
  uint32_t bits = 0, origin = 0;
};
} // namespace

static Exchanged getExchanged(const WarpLane &lane) {
  return {lane.thread->exchangedPoison, lane.thread->origin};
}

static void setExchanged(WarpLane &lane, const Exchanged &value) {
  lane.thread->exchangedPoison = value.bits;
  lane.thread->origin = value.origin;
}

/// All results depend on the values of all lanes.
static void mixExchanged(WarpConvergence &convergence) {
  Exchanged mixed;
  convergence.forEach<WarpLane>([&](uint32_t, WarpLane &lane) {
    Exchanged value = getExchanged(lane);
    mixed = {mixed.bits | value.bits, std::max(mixed.origin, value.origin)};
  });
  convergence.forEach<WarpLane>(
      [&](uint32_t, WarpLane &lane) { setExchanged(lane, mixed); });
}

//===----------------------------------------------------------------------===//
// shfl.sync
//===----------------------------------------------------------------------===//

namespace {
struct ShuffleLane : WarpLane {
  uint32_t value, offset, clamp, kind;
  uint32_t result = 0;
  bool isInRange = false;
};
} // namespace

/// The lane that a lane reads from, itself where that is out of its segment.
/// (PTX ISA, "shfl.sync", Semantics.)
static uint32_t findSource(uint32_t number, ShuffleLane &lane) {
  int32_t self = number, offset = lane.offset & 0x1f, clamp = lane.clamp & 0x1f;
  int32_t segments = lane.clamp >> 8 & 0x1f;
  int32_t least = self & segments;
  int32_t most = least | (clamp & ~segments);
  int32_t source = self;
  switch (lane.kind) {
  case KVCacheShuffleUp:
    source = self - offset;
    break;
  case KVCacheShuffleDown:
    source = self + offset;
    break;
  case KVCacheShuffleBfly:
    source = self ^ offset;
    break;
  default:
    source = least | (offset & ~segments);
    break;
  }
  lane.isInRange =
      lane.kind == KVCacheShuffleUp ? source >= most : source <= most;
  return lane.isInRange ? source : number;
}

static void shuffle(Block &block, WarpConvergence &convergence) {
  bool isSanitized = block.isSanitized();
  Exchanged exchanged[kWarpSize] = {};
  convergence.forEach<ShuffleLane>([&](uint32_t number, ShuffleLane &lane) {
    uint32_t source = findSource(number, lane);
    if (convergence.has(source)) {
      ShuffleLane &other = convergence.get<ShuffleLane>(source);
      lane.result = other.value;
      exchanged[number] = getExchanged(other);
      return;
    }
    // What it reads is not defined.
    lane.result = lane.value;
    if (isSanitized)
      block.fail(*lane.thread, convergence.site,
                 "reads from lane " + std::to_string(source) +
                     " of its warp, which " +
                     (convergence.mask >> source & 1
                          ? "has ended or is not in the block"
                          : "is not in the mask " +
                                Warps::describeMask(convergence.mask)));
  });
  convergence.forEach<ShuffleLane>([&](uint32_t number, ShuffleLane &lane) {
    setExchanged(lane, exchanged[number]);
  });
}

uint32_t kvcacheEmulatorShuffle(KVCacheThread *self, const KVCacheSite *site,
                                uint32_t mask, uint32_t value, uint32_t offset,
                                uint32_t clamp, uint32_t kind,
                                uint32_t *isInRange) {
  Thread &thread = Thread::get(self);
  ShuffleLane lane;
  lane.value = value;
  lane.offset = offset;
  lane.clamp = clamp;
  lane.kind = kind;
  thread.block->warps.converge(thread, site, mask, shuffle, lane);
  if (isInRange)
    *isInRange = lane.isInRange;
  return lane.result;
}

//===----------------------------------------------------------------------===//
// vote.sync, match.sync
//===----------------------------------------------------------------------===//

/// All lanes get the lanes whose value is not 0.
static void vote(Block &, WarpConvergence &convergence) {
  mixExchanged(convergence);
  uint32_t ballot = 0;
  convergence.forEach<ValueLane>([&](uint32_t number, ValueLane &lane) {
    ballot |= uint32_t{lane.value != 0} << number;
  });
  convergence.forEach<ValueLane>(
      [&](uint32_t, ValueLane &lane) { lane.result = ballot; });
}

static void voteAll(Block &, WarpConvergence &convergence) {
  mixExchanged(convergence);
  bool all = true;
  convergence.forEach<ValueLane>(
      [&](uint32_t, ValueLane &lane) { all &= lane.value != 0; });
  convergence.forEach<ValueLane>(
      [&](uint32_t, ValueLane &lane) { lane.result = all; });
}

static void voteUni(Block &, WarpConvergence &convergence) {
  mixExchanged(convergence);
  bool any = false, all = true;
  convergence.forEach<ValueLane>([&](uint32_t, ValueLane &lane) {
    any |= lane.value != 0;
    all &= lane.value != 0;
  });
  convergence.forEach<ValueLane>(
      [&](uint32_t, ValueLane &lane) { lane.result = any == all; });
}

uint32_t kvcacheEmulatorVote(KVCacheThread *self, const KVCacheSite *site,
                             uint32_t mask, uint32_t predicate, uint32_t kind) {
  Thread &thread = Thread::get(self);
  ValueLane lane;
  lane.value = predicate;
  WarpWork work = kind == KVCacheVoteAll   ? voteAll
                  : kind == KVCacheVoteUni ? voteUni
                                           : vote;
  thread.block->warps.converge(thread, site, mask, work, lane);
  return kind == KVCacheVoteAny ? lane.result != 0 : lane.result;
}

namespace {
struct MatchLane : WarpLane {
  uint64_t value = 0;
  uint32_t result = 0;
};
} // namespace

static void matchAny(Block &, WarpConvergence &convergence) {
  mixExchanged(convergence);
  convergence.forEach<MatchLane>([&](uint32_t, MatchLane &lane) {
    convergence.forEach<MatchLane>([&](uint32_t number, MatchLane &other) {
      lane.result |= uint32_t{lane.value == other.value} << number;
    });
  });
}

uint32_t kvcacheEmulatorMatchAny(KVCacheThread *self, const KVCacheSite *site,
                                 uint32_t mask, uint64_t value) {
  Thread &thread = Thread::get(self);
  MatchLane lane;
  lane.value = value;
  thread.block->warps.converge(thread, site, mask, matchAny, lane);
  return lane.result;
}

static void matchAll(Block &, WarpConvergence &convergence) {
  mixExchanged(convergence);
  uint64_t first =
      convergence.get<MatchLane>(__builtin_ctz(convergence.reached)).value;
  uint32_t result = convergence.reached;
  convergence.forEach<MatchLane>([&](uint32_t, MatchLane &lane) {
    if (lane.value != first)
      result = 0;
  });
  convergence.forEach<MatchLane>(
      [&](uint32_t, MatchLane &lane) { lane.result = result; });
}

uint32_t kvcacheEmulatorMatchAll(KVCacheThread *self, const KVCacheSite *site,
                                 uint32_t mask, uint64_t value) {
  Thread &thread = Thread::get(self);
  MatchLane lane;
  lane.value = value;
  thread.block->warps.converge(thread, site, mask, matchAll, lane);
  return lane.result;
}

//===----------------------------------------------------------------------===//
// redux.sync
//===----------------------------------------------------------------------===//

namespace {
struct ReduceLane : WarpLane {
  uint32_t value = 0, kind = 0;
};

struct FloatLane : WarpLane {
  float value = 0;
  bool isMax = false, isAbs = false, keepsNaN = false;
};
} // namespace

static uint32_t combine(uint32_t a, uint32_t b, uint32_t kind) {
  int32_t signedA = a, signedB = b;
  switch (kind) {
  case KVCacheReduceAdd:
    return a + b;
  case KVCacheReduceAnd:
    return a & b;
  case KVCacheReduceOr:
    return a | b;
  case KVCacheReduceXor:
    return a ^ b;
  case KVCacheReduceMin:
    return std::min(signedA, signedB);
  case KVCacheReduceMax:
    return std::max(signedA, signedB);
  case KVCacheReduceUMin:
    return std::min(a, b);
  default:
    return std::max(a, b);
  }
}

static void reduce(Block &, WarpConvergence &convergence) {
  mixExchanged(convergence);
  uint32_t first = __builtin_ctz(convergence.reached);
  uint32_t result = convergence.get<ReduceLane>(first).value;
  convergence.forEach<ReduceLane>([&](uint32_t number, ReduceLane &lane) {
    if (number != first)
      result = combine(result, lane.value, lane.kind);
  });
  convergence.forEach<ReduceLane>(
      [&](uint32_t, ReduceLane &lane) { lane.value = result; });
}

uint32_t kvcacheEmulatorReduce(KVCacheThread *self, const KVCacheSite *site,
                               uint32_t mask, uint32_t value, uint32_t kind) {
  Thread &thread = Thread::get(self);
  ReduceLane lane;
  lane.value = value;
  lane.kind = kind;
  thread.block->warps.converge(thread, site, mask, reduce, lane);
  return lane.value;
}

/// Whether `a` is the one of both to keep; -0 is less than +0.
static bool isBetter(float a, float b, bool isMax) {
  if (a == b)
    return std::signbit(a) != isMax;
  return isMax ? a > b : a < b;
}

/// The NaN that instructions make (PTX ISA, "Floating-Point Instructions").
static float getCanonicalNaN() {
  constexpr uint32_t bits = 0x7fffffff;
  float nan;
  std::memcpy(&nan, &bits, sizeof(nan));
  return nan;
}

static void reduceFloats(Block &, WarpConvergence &convergence) {
  mixExchanged(convergence);
  const float nan = getCanonicalNaN();
  float result = nan;
  bool hasNaN = false;
  convergence.forEach<FloatLane>([&](uint32_t, FloatLane &lane) {
    float value = lane.isAbs ? std::fabs(lane.value) : lane.value;
    if (std::isnan(value))
      hasNaN |= lane.keepsNaN;
    else if (std::isnan(result) || isBetter(value, result, lane.isMax))
      result = value;
  });
  convergence.forEach<FloatLane>(
      [&](uint32_t, FloatLane &lane) { lane.value = hasNaN ? nan : result; });
}

float kvcacheEmulatorReduceF32(KVCacheThread *self, const KVCacheSite *site,
                               uint32_t mask, float value, uint32_t isMax,
                               uint32_t isAbs, uint32_t keepsNaN) {
  Thread &thread = Thread::get(self);
  FloatLane lane;
  lane.value = value;
  lane.isMax = isMax;
  lane.isAbs = isAbs;
  lane.keepsNaN = keepsNaN;
  thread.block->warps.converge(thread, site, mask, reduceFloats, lane);
  return lane.value;
}
