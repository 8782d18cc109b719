//===- PairedRuns.cpp - Queries for keys of 8 and 4 bits ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PairedRuns.h"

#include "kvcache/IR/TileOps.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <array>

using namespace mlir;
using namespace mlir::kvcache;

void kvcache::storePairedRun(const Frame &frame, Value elements, Value tile,
                             Value row, Value d) {
  // Elements 0, 1, 4 and 5 of 16 are columns 0 to 3, and elements 2, 3, 6 and 7
  // are 8 to 11; elements 8 to 15 follow these.
  constexpr int64_t half = kRun / 2;
  const std::array<std::array<int64_t, half>, 2> orders = {
      {{0, 1, 4, 5}, {2, 3, 6, 7}}};
  Value inPair = frame.rem(d, 2 * kRun);
  Value first = frame.add(frame.sub(d, inPair), frame.div(inPair, 2));
  for (auto [i, order] : llvm::enumerate(orders)) {
    Value some = vector::ShuffleOp::create(frame.builder, frame.loc, elements,
                                           elements, ArrayRef<int64_t>(order));
    TileStoreOp::create(frame.builder, frame.loc, some, tile, row,
                        frame.add(first, frame.index(i * kRun)));
  }
}

void kvcache::storeQuadRun(const Frame &frame, Value elements, Value tile,
                           Value row, Value d) {
  // Elements i and i + 4 of a run are columns 8 i and 8 i + 1 of 32; runs
  // follow each other.
  constexpr int64_t half = kRun / 2;
  Value inQuad = frame.rem(d, half * kRun);
  Value first = frame.add(frame.sub(d, inQuad), frame.div(inQuad, half));
  for (int64_t i = 0; i < half; ++i) {
    Value some =
        vector::ShuffleOp::create(frame.builder, frame.loc, elements, elements,
                                  ArrayRef<int64_t>{i, i + half});
    TileStoreOp::create(frame.builder, frame.loc, some, tile, row,
                        frame.add(first, frame.index(i * kRun)));
  }
}
