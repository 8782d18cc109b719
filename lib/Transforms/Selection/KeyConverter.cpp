//===- KeyConverter.cpp - Keys of 4 bits as elements of products ----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KeyConverter.h"

#include "../Builders/Heads.h"

#include "kvcache/IR/QuantizationOps.h"
#include "kvcache/IR/TileOps.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

/// The elements that a thread loads at once, the words that have them, and the
/// elements that it stores at once.
constexpr int64_t kLoaded = 16, kWords = 2, kStored = 8;

SmallVector<Type> KeyConverter::getTypes() const {
  int64_t runs = tiles.countKeys() * tiles.size / kLoaded / KeyTiles::kThreads;
  return SmallVector<Type>(runs,
                           VectorType::get(kWords, frame.builder.getI32Type()));
}

ValuePair KeyConverter::getPlace(int64_t run) const {
  int64_t runs = tiles.size / kLoaded;
  Value warp = frame.div(work.thread, kWarp);
  Value lane = frame.rem(work.thread, kWarp);
  Value number = frame.add(lane, frame.index(run * kWarp));
  Value first = frame.mul(warp, tiles.countFragments() * KeyTiles::kKeys);
  return {frame.add(first, frame.div(number, runs)),
          frame.mul(frame.rem(number, runs), kLoaded)};
}

SmallVector<Value> KeyConverter::load(Value firstEntry) {
  auto cache = cast<CacheTypeInterface>(op.getCache().getType());
  Value last = frame.sub(work.end, frame.index(1));
  SmallVector<Value> loaded;
  for (auto [run, type] : llvm::enumerate(getTypes())) {
    auto [row, d] = getPlace(run);
    Value entry = frame.min(frame.add(firstEntry, row), last);
    Value elements = LoadQuantizedOp::create(
        frame.builder, frame.loc,
        VectorType::get(kLoaded, cache.getElementType()), op.getCache(),
        work.sequence, frame.index(0), entry, d, /*page=*/Value(),
        /*nontemporal=*/false);
    loaded.push_back(
        vector::BitCastOp::create(frame.builder, frame.loc, type, elements));
  }
  return loaded;
}

void KeyConverter::store(ValueRange loaded, Value tile) const {
  Type stored = Float4E2M1FNType::get(frame.builder.getContext());
  // The warp has loaded its rows of the last tile.
  NVVM::SyncWarpOp::create(frame.builder, frame.loc, frame.i32(-1));
  for (auto [run, words] : llvm::enumerate(loaded)) {
    auto [row, d] = getPlace(run);
    Value elements = vector::BitCastOp::create(
        frame.builder, frame.loc, VectorType::get(kLoaded, stored), words);
    elements =
        arith::ExtFOp::create(frame.builder, frame.loc,
                              VectorType::get(kLoaded, tiles.lane), elements);
    for (int64_t i = 0; i < kLoaded; i += kStored) {
      Value some = vector::ExtractStridedSliceOp::create(
          frame.builder, frame.loc, elements, i, kStored, 1);
      TileStoreOp::create(frame.builder, frame.loc, some, tile, row,
                          frame.add(d, frame.index(i)));
    }
  }
  NVVM::SyncWarpOp::create(frame.builder, frame.loc, frame.i32(-1));
}
