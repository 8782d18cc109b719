//===- HostProcessor.cpp - The processor that code is made for ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HostProcessor.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/X86TargetParser.h"

#include <cstdlib>

using namespace mlir;
using namespace mlir::kvcache::python;

ArrayRef<CPULevel> kvcache::python::getCPULevels() {
  static const std::vector<CPULevel> levels = {
#define KVCACHE_CPU_LEVEL(name, cpu, features, vectorBits, hasFMA, mma,        \
                          isSupported, isFast)                                 \
  {name, cpu, features, vectorBits, hasFMA, mma},
#include "kvcache/Runtime/CPULevels.def"
  };
  return levels;
}

const CPULevel *kvcache::python::findCPULevel(StringRef name) {
  const CPULevel *found =
      llvm::find_if(getCPULevels(),
                    [&](const CPULevel &level) { return level.name == name; });
  return found == getCPULevels().end() ? nullptr : found;
}

llvm::SmallVector<StringRef> CPULevel::splitFeatures() const {
  llvm::SmallVector<StringRef> split;
  features.split(split, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  return split;
}

std::string HostProcessor::joinFeatures() const {
  std::string joined;
  for (const auto &[feature, isUsed] : features)
    if (isUsed)
      joined += "+" + feature;
  return joined;
}

/// The features of a level, with those that they imply.
static llvm::StringMap<bool> getLevelFeatures(const CPULevel &level) {
  llvm::SmallVector<StringRef> features;
  llvm::X86::getFeaturesForCPU(level.cpu, features);
  llvm::append_range(features, level.splitFeatures());
  // The list leaves out what all 64-bit code has.
  features.append({"64bit", "sse2"});
  llvm::StringMap<bool> all;
  for (StringRef feature : features) {
    all[feature] = true;
    llvm::X86::updateImpliedFeatures(feature, /*Enabled=*/true, all);
  }
  return all;
}

/// Turns off the features that a level does not have.
static void limitFeatures(HostProcessor &host, const CPULevel &level) {
  llvm::StringMap<bool> allowed = getLevelFeatures(level);
  for (auto &[feature, isUsed] : host.features)
    isUsed = isUsed && allowed.lookup(feature);
  host.name = level.cpu.str();
}

llvm::Expected<HostProcessor> kvcache::python::detectHostProcessor() {
  HostProcessor host{llvm::sys::getHostCPUName().str(), {}};
  for (const auto &feature : llvm::sys::getHostCPUFeatures())
    host.features.emplace_back(feature.first().str(), feature.second);
  llvm::sort(host.features);
  const char *limit = std::getenv("KVCACHE_CPU");
  if (!limit || !*limit || getCPULevels().empty())
    return host;
  if (const CPULevel *level = findCPULevel(limit)) {
    limitFeatures(host, *level);
    return host;
  }
  auto names = llvm::map_range(
      getCPULevels(), [](const CPULevel &level) { return level.name; });
  return llvm::createStringError("expects KVCACHE_CPU to be one of " +
                                 llvm::join(names, ", ") + ", got '" + limit +
                                 "'");
}
