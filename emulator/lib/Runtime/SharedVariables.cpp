//===- SharedVariables.cpp - Variables in shared memory -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SharedVariables.h"

#include <algorithm>

using namespace mlir::kvcache::emulator;

SharedVariables::SharedVariables(const KVCacheEmulatedKernel &kernel,
                                 uint32_t bytes, bool hasRedZones)
    : end(bytes), zoneBytes(hasRedZones ? KVCacheRedZoneBytes : 0),
      dynamicPlace(kernel.dynamicSharedOffset + kernel.dynamicSharedShift) {
  int64_t last = 0;
  for (int64_t i = 0; i < kernel.numSharedVariables; ++i) {
    const KVCacheSharedVariable &variable = kernel.sharedVariables[i];
    int64_t most = std::max<int64_t>(bytes - variable.offset, 0);
    variables.push_back({variable.name, variable.offset + variable.shift,
                         std::min(variable.bytes, most), variable.shift});
    last = variables.back().place + variables.back().bytes;
  }
  if (hasRedZones)
    end = last + zoneBytes;
}

/// The last variable that begins at a place or before it.
const SharedVariables::Variable *
SharedVariables::findBefore(int64_t place) const {
  auto next = std::upper_bound(
      variables.begin(), variables.end(), place,
      [](int64_t place, const Variable &v) { return place < v.place; });
  return next == variables.begin() ? nullptr : &*std::prev(next);
}

const SharedVariables::Variable *
SharedVariables::findNearest(int64_t place) const {
  const Variable *before = findBefore(place);
  if (before && place < before->place + before->bytes)
    return before;
  const Variable *next = before ? before + 1 : variables.data();
  if (next == variables.data() + variables.size())
    return before;
  bool isNearNext =
      !before || next->place - place < place - before->place - before->bytes;
  return isNearNext ? next : before;
}

bool SharedVariables::contains(int64_t place, int64_t bytes) const {
  if (!zoneBytes)
    return place >= 0 && bytes >= 0 && bytes <= int64_t{end} - place;
  const Variable *variable = findBefore(place);
  return variable && bytes >= 0 &&
         bytes <= variable->place + variable->bytes - place;
}

std::string SharedVariables::describe(int64_t place) const {
  const Variable *variable = findNearest(place);
  if (!variable)
    return "byte " + std::to_string(place) + " of shared memory";
  return "byte " + std::to_string(place - variable->place) + " of shared @" +
         variable->name;
}

std::string SharedVariables::describeSize(int64_t place) const {
  const Variable *variable = findNearest(place);
  return "which has " + std::to_string(variable ? variable->bytes : end) +
         " bytes";
}

uint32_t SharedVariables::getOffset(uint32_t place) const {
  const Variable *variable = findBefore(place);
  return variable ? place - variable->shift : place;
}

std::string SharedVariables::describeOffset(uint32_t offset) const {
  auto found = std::find_if(
      variables.rbegin(), variables.rend(),
      [&](const Variable &v) { return v.place - v.shift <= offset; });
  return describe(found == variables.rend() ? offset : offset + found->shift);
}
