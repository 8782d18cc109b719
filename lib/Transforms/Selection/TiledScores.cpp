//===- TiledScores.cpp - Index scores on tensor cores ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TiledScores.h"

#include "../Attention/SequenceTiles.h"
#include "../Builders/DeviceMath.h"
#include "../Builders/Heads.h"
#include "../TileAttention/FragmentBuilder.h"
#include "KeyConverter.h"
#include "RowPosition.h"

#include "kvcache/IR/FragmentRowOps.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// The keys of a warp in a tile: fragments that begin at `entries`, the groups
/// of each, and scales of these groups, or of tokens. Scales may be null.
struct WarpKeys {
  SmallVector<Value> entries, groups, scales;
};

/// A block scores some tiles of entries for some rows of a sequence. A warp
/// loads its keys of a tile into registers once. For each row, it multiplies
/// them by the queries of 16 heads at a time, and adds up what these give. Keys
/// are the rows of fragments, so all heads of a key are in four lanes.
class TiledScorer {
public:
  TiledScorer(IndexScoresOp op, const Frame &frame, const KeyTiles &tiles,
              Value thread)
      : op(op), frame(frame), f(frame), b(frame.builder, frame.loc),
        tiles(tiles), stage(op, frame, tiles), work{thread} {}

  /// Scores entries from one on for a tile of the rows of all sequences.
  void scoreBlock(const SequenceTiles &rowTiles, Value tile, Value firstEntry);

private:
  /// The entries that a row of the block sees.
  Value countEntries(Value i) {
    return frame.div(frame.add(work.visible, i), op.getWidth());
  }
  /// Finds the entries of the block: those that rows see and columns have.
  void findEntries(Value firstEntry);

  void scoreTiles();
  /// Scores `count` tiles, which copies bring or warps convert.
  void scoreCopiedTiles(Value count);
  void scoreConvertedTiles(Value count);
  /// The first entry of a tile.
  Value getFirstEntry(Value number) {
    return frame.add(work.begin, frame.mul(number, tiles.countKeys()));
  }
  /// Begins to load the keys of a tile: finds entries, and loads scales.
  WarpKeys beginKeys(Value firstEntry);
  /// Loads the groups of each fragment of keys.
  SmallVector<Value> loadKeys(Value tile);
  /// Loads the scales of elements `d` of the keys of a fragment; null without
  /// scales.
  Value loadScales(Value firstEntry, int64_t d);
  /// Scores keys for all rows.
  void scoreKeys(const WarpKeys &keys);
  /// Multiplies a fragment of keys by the queries of 16 heads of a row, from
  /// one on, with the scales of groups.
  Value multiply(const WarpKeys &keys, int64_t fragment, Value row,
                 int64_t head);
  /// Multiplies a product by the scales of its group, and adds it to a sum,
  /// which may be null.
  Value addScaled(Value product, Value keyScales, Value queryScales, Value sum);
  /// Adds the scores of 16 heads of a row, from one on, to `sums`.
  SmallVector<Value> addHeads(const WarpKeys &keys, ValueRange sums, Value row,
                              int64_t head);
  void storeScores(Value sums, Value scales, Value firstEntry, Value row);

  FragmentType getAcc() {
    return FragmentType::get(op.getContext(),
                             {KeyTiles::kKeys, KeyTiles::kHeads}, f.f32,
                             FragmentLayout::MmaAcc, /*partial=*/false);
  }
  /// The first key of a fragment of the warp in its tile.
  Value getFirstKey(int64_t fragment);

  IndexScoresOp op;
  const Frame &frame;
  DeviceMath f;
  FragmentBuilder b;
  KeyTiles tiles;
  ScoreStage stage;
  ScoreWork work;
};

} // namespace

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

void TiledScorer::scoreBlock(const SequenceTiles &rowTiles, Value tile,
                             Value firstEntry) {
  stage.allocate();
  int64_t rows = tiles.countRows();
  SequenceTile found = rowTiles.find(tile);
  Value after = frame.loadNumber(op.getRowOffsets(),
                                 frame.add(found.sequence, frame.index(1)));
  work.sequence = found.sequence;
  work.row = frame.add(frame.loadNumber(op.getRowOffsets(), found.sequence),
                       frame.mul(found.number, rows));
  frame.runIf(frame.below(work.row, after), [&] {
    work.count = frame.min(frame.sub(after, work.row), frame.index(rows));
    findEntries(firstEntry);
    frame.runIf(frame.below(work.begin, work.end), [&] { scoreTiles(); });
  });
}

void TiledScorer::findEntries(Value firstEntry) {
  Value last = frame.sub(work.count, frame.index(1));
  IndexQueries(op, frame).checkRow(frame.add(work.row, last));
  PositionOperands operands{op.getCache(), op.getRowOffsets(), op.getLengths()};
  work.visible =
      RowPosition::find(frame, operands, work.row, work.sequence).visible;
  Value entries = countEntries(last), columns = frame.dim(op.getScores(), 1);
  checkColumns(frame, op.getScores(), entries);
  work.begin = firstEntry;
  Value end = frame.add(
      firstEntry, frame.index(KeyTiles::kTilesOfBlock * tiles.countKeys()));
  work.end = frame.min(end, frame.min(entries, columns));
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

void TiledScorer::scoreTiles() {
  int64_t keys = tiles.countKeys();
  Value entries = frame.sub(work.end, work.begin);
  Value count = frame.div(frame.add(entries, frame.index(keys - 1)), keys);
  if (tiles.hasConvertedKeys)
    scoreConvertedTiles(count);
  else
    scoreCopiedTiles(count);
}

void TiledScorer::scoreCopiedTiles(Value count) {
  int64_t ahead = KeyTiles::kStages - 1;
  for (int64_t i = 0; i < ahead; ++i)
    stage.copyTile(work, frame.index(i), count);
  stage.storeRows(work);
  gpu::BarrierOp::create(frame.builder, frame.loc);
  frame.loop(frame.index(0), count, frame.index(1), [&](Value number) {
    stage.copyTile(work, frame.add(number, frame.index(ahead)), count);
    WarpKeys keys = beginKeys(getFirstEntry(number));
    SmallVector<Type> types(tiles.countFragments() * tiles.groups,
                            tiles.getFragment());
    keys.groups = b.consumeAll(stage.getPipe(), number, types,
                               [&](Value tile) { return loadKeys(tile); });
    scoreKeys(keys);
  });
}

void TiledScorer::scoreConvertedTiles(Value count) {
  KeyConverter converter(op, frame, tiles, work);
  SmallVector<Value> first = converter.load(work.begin);
  stage.storeRows(work);
  gpu::BarrierOp::create(frame.builder, frame.loc);
  scf::ForOp::create(
      frame.builder, frame.loc, frame.index(0), count, frame.index(1), first,
      [&](OpBuilder &, Location, Value number, ValueRange loaded) {
        WarpKeys keys = beginKeys(getFirstEntry(number));
        converter.store(loaded, stage.getKeys());
        Value next = frame.add(number, frame.index(1));
        SmallVector<Value> ahead = converter.load(getFirstEntry(next));
        keys.groups = loadKeys(stage.getKeys());
        scoreKeys(keys);
        scf::YieldOp::create(frame.builder, frame.loc, ahead);
      });
}

void TiledScorer::scoreKeys(const WarpKeys &keys) {
  int64_t fragments = tiles.countFragments();
  frame.loop(frame.index(0), work.count, frame.index(1), [&](Value row) {
    SmallVector<Value> sums(fragments, b.splat(getAcc(), f.constant(0)));
    for (int64_t head = 0; head < tiles.heads; head += KeyTiles::kHeads)
      sums = addHeads(keys, sums, row, head);
    for (auto [i, sum] : llvm::enumerate(sums)) {
      Value scales = tiles.hasConvertedKeys ? Value() : keys.scales[i];
      storeScores(sum, scales, keys.entries[i], row);
    }
  });
}

Value TiledScorer::getFirstKey(int64_t fragment) {
  Value warp = frame.div(work.thread, kWarp);
  return frame.mul(
      frame.add(frame.mul(warp, tiles.countFragments()), frame.index(fragment)),
      KeyTiles::kKeys);
}

WarpKeys TiledScorer::beginKeys(Value firstEntry) {
  WarpKeys keys;
  int64_t groups = tiles.hasConvertedKeys ? tiles.groups : 1;
  for (int64_t i = 0; i < tiles.countFragments(); ++i) {
    keys.entries.push_back(frame.add(firstEntry, getFirstKey(i)));
    for (int64_t group = 0; group < groups; ++group)
      keys.scales.push_back(
          loadScales(keys.entries.back(), group * tiles.countElements()));
  }
  return keys;
}

SmallVector<Value> TiledScorer::loadKeys(Value tile) {
  SmallVector<Value> keys;
  for (int64_t i = 0; i < tiles.countFragments(); ++i)
    for (int64_t d = 0; d < tiles.size; d += tiles.countElements())
      keys.push_back(
          b.load(tiles.getFragment(), tile, getFirstKey(i), frame.index(d)));
  return keys;
}

Value TiledScorer::loadScales(Value firstEntry, int64_t d) {
  if (!cast<CacheTypeInterface>(op.getCache().getType()).isQuantized())
    return {};
  Value last = frame.sub(work.end, frame.index(1));
  return b.map(b.splat(getAcc().getRowType(), f.constant(1)),
               [&](ValueRange place) {
                 Value entry = frame.min(place[1], last);
                 return loadScale(frame, op.getCache(),
                                  {work.sequence, entry, Value()},
                                  frame.index(0), frame.index(d));
               },
               {firstEntry, Value()});
}

Value TiledScorer::multiply(const WarpKeys &keys, int64_t fragment, Value row,
                            int64_t head) {
  Value query = frame.add(frame.mul(row, tiles.heads), frame.index(head));
  Value sum;
  for (int64_t group = 0; group < tiles.groups; ++group) {
    int64_t number = fragment * tiles.groups + group;
    Value product = b.wait(FragmentMmaOp::create(
        frame.builder, frame.loc, FragmentBuilder::getInFlight(getAcc()),
        keys.groups[number], /*a_row=*/Value(), /*a_column=*/Value(),
        stage.getQueries(), query, frame.index(group * tiles.countElements()),
        /*accumulator=*/Value(), /*thread=*/Value(), /*scales=*/Value(),
        /*scales_row=*/Value(), /*k=*/IntegerAttr(), Major::K, Major::K,
        /*rows_first=*/false,
        /*paired=*/tiles.dequantizes(), /*packed=*/TypeAttr()));
    Value queryScales;
    if (Value scales = stage.getScales())
      queryScales =
          b.load(getAcc(), scales,
                 frame.add(frame.mul(row, tiles.groups), frame.index(group)),
                 frame.index(head), LoadForm::Repeated);
    Value keyScales = tiles.hasConvertedKeys ? keys.scales[number] : Value();
    sum = addScaled(product, keyScales, queryScales, sum);
  }
  return sum;
}

Value TiledScorer::addScaled(Value product, Value keyScales, Value queryScales,
                             Value sum) {
  if (keyScales)
    product = b.multiply(product, keyScales);
  if (!queryScales && !sum)
    return product;
  SmallVector<Value> operands{product};
  for (Value operand : {queryScales, sum})
    if (operand)
      operands.push_back(operand);
  return b.map(operands, [&](ValueRange element) -> Value {
    if (!queryScales)
      return f.add(element[0], element[1]);
    return sum ? f.fma(element[0], element[1], element[2])
               : f.mul(element[0], element[1]);
  });
}

SmallVector<Value> TiledScorer::addHeads(const WarpKeys &keys, ValueRange sums,
                                         Value row, int64_t head) {
  Value factors;
  if (Value weights = stage.getWeights())
    factors =
        b.load(getAcc(), weights, row, frame.index(head), LoadForm::Repeated);
  SmallVector<Value> added;
  for (auto [i, sum] : llvm::enumerate(sums)) {
    Value product = multiply(keys, i, row, head);
    SmallVector<Value> operands{product, sum};
    if (factors)
      operands.push_back(factors);
    added.push_back(b.map(operands, [&](ValueRange element) -> Value {
      Value score = element[0];
      if (op.getRelu())
        score = arith::MaximumFOp::create(frame.builder, frame.loc, score,
                                          f.constant(0));
      return factors ? f.fma(element[2], score, element[1])
                     : f.add(score, element[1]);
    }));
  }
  return added;
}

void TiledScorer::storeScores(Value sums, Value scales, Value firstEntry,
                              Value row) {
  FragmentType type = getAcc().getRowType();
  Value scores = b.reduce(Reduction::AddF, sums, /*init=*/Value(), type);
  if (scales)
    scores = b.multiply(scores, scales);
  auto store = StoreRowsOp::create(frame.builder, frame.loc, scores, firstEntry,
                                   /*column=*/Value(), op.getScores(),
                                   /*thread=*/Value(), IntegerAttr());
  OpBuilder::InsertionGuard guard(frame.builder);
  Block *body = frame.builder.createBlock(
      &store.getBody(), {}, frame.builder.getIndexType(), {frame.loc});
  Value entry = body->getArgument(0);
  Value end = frame.min(work.end, countEntries(row));
  YieldOp::create(
      frame.builder, frame.loc,
      ValueRange{frame.add(work.row, row), entry, frame.below(entry, end)});
}

void kvcache::tileIndexScores(IndexScoresOp op, const Frame &frame,
                              const KeyTiles &tiles) {
  SequenceTiles rowTiles(frame, op.getRowOffsets(), tiles.countRows());
  int64_t entries = KeyTiles::kTilesOfBlock * tiles.countKeys();
  frame.forBlocks(
      {rowTiles.count(frame.dim(op.getQ(), 0)), frame.dim(op.getScores(), 1)},
      {1, entries},
      [&](ValueRange block) {
        frame.forThreads({KeyTiles::kThreads}, [&](ValueRange thread) {
          TiledScorer(op, frame, tiles, thread[0])
              .scoreBlock(rowTiles, block[0], block[1]);
        });
      },
      /*alongX=*/0);
}
