//===- Bodies.cpp - The choice of a function's body -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Runtime/Bodies.h"
#include "Call.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

using namespace mlir::kvcache;
using namespace mlir::kvcache::runtime;

namespace {
struct Level {
  std::string name;
  bool isSupported;
};

/// The names of the levels that bodies may have here, from the lowest on.
struct Levels {
  std::vector<std::string> usable;
  /// The error of a variable that names no level.
  std::string error;
};
} // namespace

static std::vector<Level> detectLevels() {
#if defined(__x86_64__)
  __builtin_cpu_init();
#endif
  return {
#define KVCACHE_CPU_LEVEL(name, vectorBits, hasFMA, isSupported)               \
  {name, static_cast<bool>(isSupported)},
#include "kvcache/Runtime/CPULevels.def"
  };
}

/// Finds the levels up to the one that KVCACHE_CPU names.
static Levels findLevels() {
  const char *limit = std::getenv("KVCACHE_CPU");
  bool isLimited = limit && *limit;
  Levels levels;
  std::string known;
  for (const auto &[name, isSupported] : detectLevels()) {
    known += (known.empty() ? "" : ", ") + name;
    if (isSupported)
      levels.usable.push_back(name);
    if (isLimited && name == limit)
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

extern "C" const KVCacheBody *kvcacheSelectBody(const KVCacheBody *bodies,
                                                int32_t count) {
  const Levels &levels = getLevels();
  if (!levels.error.empty()) {
    raise("ValueError", levels.error);
    return nullptr;
  }
  const KVCacheBody *end = bodies + count;
  const KVCacheBody *found = std::find_if(bodies, end, [&](const auto &body) {
    return std::count(levels.usable.begin(), levels.usable.end(), body.level);
  });
  if (found != end)
    return found;
  raise("kvcache.TargetError",
        std::string("expects a processor with the features of ") +
            bodies[count - 1].level + ", got one with those of " +
            (levels.usable.empty() ? "no level" : levels.usable.back()));
  return nullptr;
}

extern "C" const char *kvcacheGetCPULevel(void) {
  const Levels &levels = getLevels();
  bool isFound = levels.error.empty() && !levels.usable.empty();
  return isFound ? levels.usable.back().c_str() : nullptr;
}
