//===- Bodies.cpp - The choice of a function's body -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Runtime/Bodies.h"
#include "Call.h"
#include "kvcache/Runtime/Host.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string>
#include <vector>

using namespace mlir::kvcache;
using namespace mlir::kvcache::runtime;

namespace {
/// A row of CPULevels.def. Only a level that is about to be used asks for its
/// permissions.
struct Level {
  const char *name;
  bool (*isSupported)();
  bool (*isFast)();
};

/// The levels that bodies may have, if this processor supports them.
struct Levels {
  /// The level to use last comes first.
  std::vector<Level> allowed;
  /// The error of a variable that names no level.
  std::string error;
};
} // namespace

static std::vector<Level> getAllLevels() {
#if defined(__x86_64__)
  __builtin_cpu_init();
#endif
  return {
#define KVCACHE_CPU_LEVEL(name, cpu, features, vectorBits, hasFMA, mma,        \
                          isSupported, isFast)                                 \
  {name, []() -> bool { return isSupported; }, []() -> bool { return isFast; }},
#include "kvcache/Runtime/CPULevels.def"
  };
}

/// Finds the levels up to the one that KVCACHE_CPU names. A slow one comes
/// before the lower one, unless the variable names it.
static Levels findLevels() {
  const char *limit = std::getenv("KVCACHE_CPU");
  bool isLimited = limit && *limit;
  Levels levels;
  std::string known;
  for (const Level &level : getAllLevels()) {
    known += (known.empty() ? "" : ", ") + std::string(level.name);
    bool isLimit = isLimited && std::string(level.name) == limit;
    bool isSlow = !isLimit && !level.isFast();
    levels.allowed.insert(std::prev(levels.allowed.end(), isSlow), level);
    if (isLimit)
      return levels;
  }
  if (isLimited)
    levels.error =
        "expects KVCACHE_CPU to be one of " + known + ", got '" + limit + "'";
  return levels;
}

static const Levels &getLevels() {
  static const Levels levels = findLevels();
  return levels;
}

/// Returns the body for a level; null if there is none.
static const KVCacheBody *findBody(const KVCacheBody *bodies, int32_t count,
                                   const Level &level) {
  const KVCacheBody *end = bodies + count;
  const KVCacheBody *found = std::find_if(bodies, end, [&](const auto &body) {
    return std::string(body.level) == level.name;
  });
  return found == end ? nullptr : found;
}

extern "C" const KVCacheBody *kvcacheSelectBody(const KVCacheBody *bodies,
                                                int32_t count) {
  const Levels &levels = getLevels();
  if (!levels.error.empty()) {
    raise("ValueError", levels.error);
    return nullptr;
  }
  for (size_t i = levels.allowed.size(); i-- > 0;) {
    const Level &level = levels.allowed[i];
    const KVCacheBody *body = findBody(bodies, count, level);
    if (body && level.isSupported())
      return body;
  }
  const char *found = kvcacheGetCPULevel();
  raise("kvcache.TargetError",
        std::string("expects a processor with the features of ") +
            bodies[count - 1].level + ", got one with those of " +
            (found ? found : "no level"));
  return nullptr;
}

extern "C" const char *kvcacheGetCPULevel(void) {
  const Levels &levels = getLevels();
  if (!levels.error.empty())
    return nullptr;
  auto found =
      std::find_if(levels.allowed.rbegin(), levels.allowed.rend(),
                   [](const Level &level) { return level.isSupported(); });
  return found == levels.allowed.rend() ? nullptr : found->name;
}
