//===- PairKernel.cpp - Latent attention of two thread blocks -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PairKernel.h"

#include "../PlanAttention/ExponentBias.h"
#include "GroupExchange.h"
#include "OnlineSoftmax.h"
#include "PairTensors.h"
#include "TilePipe.h"
#include "TileScores.h"
#include "WorkItems.h"

#include "kvcache/IR/CopyOps.h"
#include "kvcache/IR/FragmentTileOps.h"
#include "kvcache/IR/PipeOps.h"
#include "kvcache/IR/TileOps.h"

#include <numeric>

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Columns of the accumulator that a thread has in registers at once: beside
/// the scores of a tile, and at the end.
constexpr int64_t kRescaledColumns = 32, kStoredColumns = 64;

/// Both blocks of a pair have 64 query rows of a latent cache each, of the same
/// tokens. For scores, a block copies half of the tokens of a tile, and for
/// outputs half of the elements of all values. A thread has a row, with half of
/// its tokens and values: the other half is 64 threads further.
class PairKernel {
public:
  PairKernel(AttentionOp op, const Frame &frame, const AttentionConfig &config)
      : frame(frame), kernel(op, frame, config), block(kernel),
        b(frame.builder, frame.loc), items(kernel, block),
        shape(op, op.getKeyCache(), block.getSizes().keySize, config),
        queries(block, shape.lane, countThreads(config)),
        tensors(this->frame, *config.keys, block.getSizes().valueSize) {}

  void emit() {
    items.emit(countThreads(block.getConfig()),
               {[&](Value) { allocate(); }, [&] { return attendTokens(); },
                [&](const RowStates &states, WorkItemCode::Store store) {
                  storeColumns(states, store);
                }});
  }

private:
  int64_t getHalfTokens() const { return *block.getConfig().keys / 2; }
  int64_t getHalfValues() const { return block.getSizes().valueSize / 2; }
  FragmentType getFragment(int64_t columns) const {
    return FragmentType::get(
        frame.builder.getContext(), {TmemTileType::kMemoryLanes, columns},
        frame.builder.getF32Type(), FragmentLayout::TmemRow, /*partial=*/false);
  }

  void allocate() {
    queries.allocate();
    Type tiles[] = {
        getMatrixTile(shape.lane, getHalfTokens(), block.getSizes().keySize),
        getMatrixTile(shape.lane, *block.getConfig().keys, getHalfValues())};
    pipe = PipeOp::create(frame.builder, frame.loc,
                          PipeType::get(frame.builder.getContext(),
                                        *block.getConfig().stages, tiles,
                                        /*producers=*/0));
    // A thread's probs are in the row of its number, which is that of its row
    // for the first half of the tokens, and 64 more for the second half.
    probs = AllocTileOp::create(
        frame.builder, frame.loc,
        getMatrixTile(shape.lane, TmemTileType::kMemoryLanes, getHalfTokens()),
        IntegerAttr());
    rowNumbers =
        allocateRowNumbers(frame, /*lines=*/1, TmemTileType::kMemoryLanes);
  }

  /// The sums of the block's tokens. The accumulator is in tensor memory.
  RowStates attendTokens() {
    const TileWork &work = block.rows.work;
    rank = frame.rem(frame.div(work.firstHead, kRowsOfWarpgroup), 2);
    half = frame.div(work.thread, kRowsOfWarpgroup);
    firstRow = frame.sub(frame.index(0), frame.mul(half, kRowsOfWarpgroup));
    tiles = block.findTiles(countThreads(block.getConfig()));
    for (int64_t tile = 0; tile < *block.getConfig().stages; ++tile)
      copy(frame.index(tile));
    tensors.allocate(work.thread, rank);
    items.storeQueries(queries, tiles, /*isAsyncRead=*/true);
    TileScores scores(block, b, getFragment(getHalfTokens()), firstRow);
    float bias = getExponentBias(block.getOp(), block.getConfig());
    OnlineSoftmax softmax(
        b, DeviceMath(frame), scores.getFactor(), bias, /*scratch=*/Value(),
        /*hasPolynomials=*/false,
        [&](Reduction kind, Value rows) { return joinHalves(kind, rows); });
    SoftmaxState state = softmax.forTiles(
        softmax.beginRows(scores.getType()), tiles, Schedule::Pair,
        [&](Value tile, SoftmaxState &state) {
          addTile(tile, scores, softmax, state);
          copy(frame.add(tile, frame.index(*block.getConfig().stages)));
        });
    return {{}, softmax.getReference(state), softmax.getRowSum(state), bias};
  }

  /// Combines a number of each row with that of the other half.
  Value joinHalves(Reduction kind, Value rows) const {
    storeRowNumbers(frame, b, rows, rowNumbers, frame.index(0));
    gpu::BarrierOp::create(frame.builder, frame.loc);
    return b.map(rows,
                 [&](ValueRange place) -> Value {
                   Value other = frame.rem(
                       frame.add(place[1], frame.index(kRowsOfWarpgroup)),
                       TmemTileType::kMemoryLanes);
                   Value number = TileLoadOp::create(
                       frame.builder, frame.loc, frame.builder.getF32Type(),
                       rowNumbers, frame.index(0), other);
                   if (kind == Reduction::AddF)
                     return DeviceMath(frame).add(place[0], number);
                   return DeviceMath(frame).larger(place[0], number);
                 },
                 {frame.index(0), Value()});
  }

  //===--------------------------------------------------------------------===//
  // Tiles
  //===--------------------------------------------------------------------===//

  /// Starts the copies of a tile, if there is one.
  void copy(Value tile) const {
    OpBuilder &builder = frame.builder;
    frame.runIf(frame.below(tile, tiles), [&] {
      auto produce = ProduceOp::create(builder, frame.loc, pipe, tile);
      OpBuilder::InsertionGuard guard(builder);
      Block *body = createPipeBody(produce.getBody());
      TileTokens tokens = block.getTokens(tile);
      Value firstKey = frame.mul(rank, getHalfTokens());
      copyRows(tokens, firstKey, frame.index(0), getHalfTokens(),
               body->getArgument(0));
      copyRows(tokens, frame.index(0), frame.mul(rank, getHalfValues()),
               *block.getConfig().keys, body->getArgument(1));
      YieldOp::create(builder, frame.loc);
    });
  }

  /// Copies elements of a tile's tokens, from some of each on.
  void copyRows(const TileTokens &tokens, Value first, Value column,
                int64_t count, Value target) const {
    OpBuilder &builder = frame.builder;
    const TiledTokens &all = tokens.tokens;
    Value token = frame.add(tokens.first, first);
    Value left = arith::MaxSIOp::create(
        builder, frame.loc, frame.sub(all.all.to, token), frame.index(0));
    AsyncLoadTileOp::create(
        builder, frame.loc, shape.cache, all.batch, all.head, token, column,
        left, target, /*descriptor=*/Value(), /*zeros=*/Value(),
        builder.getI64IntegerAttr(std::gcd(all.alignment, count)),
        CopyKindAttr(), /*multicast=*/false, shape.hint);
  }

  Block *createPipeBody(Region &region) const {
    ArrayRef<Type> types = cast<PipeType>(pipe.getType()).getTiles();
    SmallVector<Location> locs(types.size(), frame.loc);
    return frame.builder.createBlock(&region, {}, types, locs);
  }

  void addTile(Value tile, const TileScores &scores,
               const OnlineSoftmax &softmax, SoftmaxState &state) const {
    SmallVector<Value> before = state.getValues();
    auto consume = ConsumeOp::create(frame.builder, frame.loc,
                                     TypeRange(ValueRange(before)), pipe, tile);
    OpBuilder::InsertionGuard guard(frame.builder);
    Block *body = createPipeBody(consume.getBody());
    SoftmaxState next(before);
    // Both blocks have their keys, and have read the scores before.
    tensors.syncPair();
    tensors.multiplyRows(queries.getTile(), body->getArgument(0));
    Value products = TmemLoadOp::create(frame.builder, frame.loc,
                                        scores.getType(), tensors.getScores(),
                                        frame.index(0), /*half=*/Value());
    Value token =
        frame.add(block.getToken(tile), frame.mul(half, getHalfTokens()));
    LazyProbs added =
        softmax.addScoresLazily(scores.apply(products, tile, token),
                                getExponentSlack(block.getOp()), next);
    storeProbs(added, tile);
    // Both blocks have their probs, and have scaled their accumulators.
    tensors.syncPair();
    tensors.addColumns(probs, body->getArgument(1), hasSums(tile));
    YieldOp::create(frame.builder, frame.loc, next.getValues());
    state = SoftmaxState(consume.getResults());
  }

  /// Scales the accumulator where a row grows, and stores the probs.
  void storeProbs(const LazyProbs &added, Value tile) const {
    Value zero = frame.index(0);
    FragmentStoreOp::create(frame.builder, frame.loc,
                            b.truncate(added.probs, shape.lane), probs, zero,
                            zero, b.getThread(), /*transposed=*/false);
    emitAsyncFence(frame);
    Value grows = WarpAnyOp::create(frame.builder, frame.loc, added.grows);
    Value isScaled =
        arith::AndIOp::create(frame.builder, frame.loc, grows, hasSums(tile));
    frame.runIf(isScaled, [&] {
      tensors.forColumns(kRescaledColumns, [&](Value column, int64_t count) {
        Value scaled = b.multiply(loadAcc(column, count), added.rescale);
        TmemStoreOp::create(frame.builder, frame.loc, scaled, tensors.getAcc(),
                            column, /*half=*/Value());
      });
    });
  }

  /// Whether there are tiles before this one.
  Value hasSums(Value tile) const { return frame.below(frame.index(0), tile); }

  Value loadAcc(Value column, int64_t count) const {
    return TmemLoadOp::create(frame.builder, frame.loc, getFragment(count),
                              tensors.getAcc(), column, /*half=*/Value());
  }

  /// Stores the columns of the accumulator, which is 0 without tiles.
  void storeColumns(const RowStates &states, WorkItemCode::Store store) const {
    tensors.forColumns(kStoredColumns, [&](Value column, int64_t count) {
      Value acc = frame.selectIf(
          hasSums(tiles), [&] { return loadAcc(column, count); },
          [&] {
            return b.splat(getFragment(count), DeviceMath(frame).constant(0));
          });
      Value element = frame.add(frame.mul(half, getHalfValues()), column);
      store(FragmentResults(block, b, firstRow, element),
            {{acc}, states.reference, states.rowSum, states.bias});
    });
  }

  Frame frame;
  KernelContext kernel;
  TileRows block;
  FragmentBuilder b;
  WorkItems items;
  TileShape shape;
  QueryStage queries;
  PairTensors tensors;
  Value pipe, probs, rowNumbers;
  /// The block's number in its pair, the thread's half of tokens and values,
  /// the row of the block that fragments begin at, and the number of tiles.
  Value rank, half, firstRow, tiles;
};

} // namespace

void kvcache::tilePair(AttentionOp op, const Frame &frame,
                       const AttentionConfig &config) {
  PairKernel(op, frame, config).emit();
}
