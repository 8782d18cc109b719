//===- PromptKernel.cpp - Attention as loops over fragments ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PromptKernel.h"

#include "../ExpandOps/WarpgroupCores.h"
#include "OnlineSoftmax.h"
#include "TileScores.h"

#include "kvcache/IR/TileOps.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Registers of the threads of roles.
constexpr int64_t kProducerRegisters = 40, kConsumerRegisters = 232;
/// The named barrier of the threads that multiply.
constexpr int64_t kBarrier = 1;

/// A block computes as many query rows as its plan has: some tokens of a
/// sequence, for some heads of a group each. Each warpgroup has 64 of the rows
/// as fragments. A warpgroup of its own copies tiles of keys and values into
/// pipes.
class PromptKernel {
public:
  PromptKernel(AttentionOp op, const Frame &frame, const TilePlan &plan)
      : op(op), frame(frame), plan(plan), block(op, frame, plan),
        b(frame.builder, frame.loc),
        keys(frame, op, op.getKeyCache(), block.keySize, plan),
        values(frame, op, op.getValues(), block.valueSize, plan),
        scoreType(getFragment(plan.tokens, getF32(), FragmentLayout::WgmmaAcc)),
        accType(
            getFragment(block.valueSize, getF32(), FragmentLayout::WgmmaAcc)),
        weightType(getFragment(plan.tokens, values.getLane(),
                               FragmentLayout::WgmmaA16)) {}

  void emit() {
    block.forTiles(
        getProducers() + plan.countThreads(), [] {},
        [&](const TileWork &work) { emitRoles(work); });
  }

private:
  /// The difference of a row's largest score and the exponent that its weights
  /// are relative to.
  float getBias() const { return values.getLane().isF16() ? kHalfBias : 0; }
  FloatType getF32() const { return frame.builder.getF32Type(); }
  FragmentType getFragment(int64_t columns, Type element,
                           FragmentLayout layout) const {
    return FragmentType::get(frame.builder.getContext(),
                             {kRowsOfWarpgroup, columns}, element, layout,
                             /*partial=*/false);
  }
  static InFlightType getInFlight(FragmentType type) {
    return InFlightType::get(type.getContext(), type.getShape(),
                             type.getElementType(), type.getLayout());
  }

  /// Threads that do nothing but copy tiles.
  int64_t getProducers() const { return plan.countProducerWarps() * kWarp; }

  //===--------------------------------------------------------------------===//
  // Roles
  //===--------------------------------------------------------------------===//

  // ptxas grants registers to roles only outside of branches: a block after
  // the last row has no tiles in place of a branch.
  void emitRoles(const TileWork &work) {
    block.findSequence(work);
    block.findRows(work);
    block.clampRows();
    allocate();
    block.findTokens();
    tiles = block.findTiles(getProducers() + plan.countThreads());
    Value hasRows = frame.below(frame.index(0), block.count);
    tiles = arith::SelectOp::create(frame.builder, frame.loc, hasRows, tiles,
                                    frame.index(0));
    stageQueries();
    Value produces = frame.below(block.thread, frame.index(getProducers()));
    frame.runIf(
        produces, [&] { copyTiles(); },
        [&] { attend(frame.sub(block.thread, frame.index(getProducers()))); });
  }

  void allocate() {
    queries = AllocTileOp::create(
        frame.builder, frame.loc,
        TensorCores::getTile(keys.getLane(), plan.rows, block.keySize),
        IntegerAttr());
    keys.allocate();
    values.allocate();
    if (block.list)
      block.list->allocate();
    setRegisters();
  }

  /// Gives registers to the threads that multiply. In a block with few threads,
  /// each has as many as it can use.
  void setRegisters() {
    constexpr int64_t few = 2 * kWarpgroup;
    if (getProducers() + plan.countThreads() <= few)
      return;
    auto pipe = keys.getPipe().getDefiningOp<PipeOp>();
    pipe.setProducerRegisters(kProducerRegisters);
    pipe.setConsumerRegisters(kConsumerRegisters);
  }

  //===--------------------------------------------------------------------===//
  // Tiles
  //===--------------------------------------------------------------------===//

  void copyTiles() {
    frame.loop(frame.index(0), tiles, frame.index(1), [&](Value tile) {
      for (const TiledCache *side : {&keys, &values})
        side->copy(tile, tile, block.getToken(tile), block.tokens);
    });
  }

  /// Stores the rows of the block into the tile of queries. Those that are not
  /// there are zeros.
  void stageQueries() {
    constexpr int64_t unit = 8;
    int64_t units = block.keySize / unit;
    Type type = VectorType::get(unit, keys.getLane());
    Value count = frame.mul(block.count, block.packed);
    frame.loop(
        block.thread, frame.index(plan.rows * units),
        frame.index(getProducers() + plan.countThreads()), [&](Value number) {
          Value row = frame.div(number, units);
          Value d = frame.mul(frame.rem(number, units), unit);
          Value elements = frame.selectIf(
              frame.below(row, count), [&] { return loadQuery(row, d, unit); },
              [&]() -> Value {
                return arith::ConstantOp::create(
                    frame.builder, frame.loc, frame.builder.getZeroAttr(type));
              });
          TileStoreOp::create(frame.builder, frame.loc, elements, queries, row,
                              d);
        });
    WarpgroupCores(frame).emitFence();
    gpu::BarrierOp::create(frame.builder, frame.loc);
  }

  Value loadQuery(Value blockRow, Value d, int64_t count) {
    auto [i, queryHead] = block.getRow(blockRow);
    Value row = frame.add(block.rows.first, i);
    block.checkRow(row);
    Value elements =
        loadJoined(frame, block.getQueries(), {row, queryHead}, d, count);
    elements = convertLanes(frame, elements, keys.getLane());
    if (!TileScores::areProducts(op))
      return elements;
    Value sign =
        math::CopySignOp::create(frame.builder, frame.loc, block.f.constant(1),
                                 TileScores::getFactor(block, queryHead));
    sign = convertLanes(frame, sign, keys.getLane());
    return block.f.mul(elements, block.f.broadcast(sign, elements));
  }

  //===--------------------------------------------------------------------===//
  // Products
  //===--------------------------------------------------------------------===//

  /// `number` is that of the thread among those that multiply.
  void attend(Value number) {
    thread = number;
    firstRow = frame.mul(frame.div(thread, kWarpgroup), kRowsOfWarpgroup);
    TileScores scores(block, scoreType, firstRow);
    OnlineSoftmax softmax(block.f, scores.getFactor(), getBias());
    SoftmaxState none = softmax.begin(accType);
    auto loop = scf::ForOp::create(
        frame.builder, frame.loc, frame.index(0), tiles, frame.index(1),
        none.getValues(),
        [&](OpBuilder &, Location, Value tile, ValueRange all) {
          SoftmaxState state(all);
          addTile(tile, scores, softmax, state);
          scf::YieldOp::create(frame.builder, frame.loc, state.getValues());
        });
    loop->setAttr("kvcache.schedule",
                  ScheduleAttr::get(frame.builder.getContext(), plan.schedule));
    storeResults(softmax, SoftmaxState(loop.getResults()));
  }

  void addTile(Value tile, const TileScores &scores,
               const OnlineSoftmax &softmax, SoftmaxState &state) {
    Value token = block.getToken(tile);
    Value products =
        b.consume(keys.getPipe(), tile, scoreType, [&](Value keyTile) {
          Value zero = frame.index(0);
          Value started = FragmentMmaOp::create(
              frame.builder, frame.loc, getInFlight(scoreType), queries,
              firstRow, zero, keyTile, zero, zero, /*accumulator=*/Value(),
              frame.builder.getI64IntegerAttr(block.keySize));
          return wait(started);
        });
    Value weights =
        softmax.addScores(scores.apply(products, tile, token), state);
    Value left =
        ToOperandOp::create(frame.builder, frame.loc, weightType, weights);
    state.acc =
        b.consume(values.getPipe(), tile, accType, [&](Value valueTile) {
          values.clearUnseen(thread, valueTile, block.getToken(tile),
                             block.tokens, kBarrier);
          Value zero = frame.index(0);
          return wait(FragmentMmaOp::create(
              frame.builder, frame.loc, getInFlight(accType), left,
              /*a_row=*/Value(), /*a_column=*/Value(), valueTile, zero, zero,
              state.acc, /*k=*/IntegerAttr(), Major::K, Major::MN));
        });
  }

  Value wait(Value product) {
    return FragmentWaitOp::create(frame.builder, frame.loc, product,
                                  /*pending=*/0)
        .getResult(0);
  }

  //===--------------------------------------------------------------------===//
  // Results
  //===--------------------------------------------------------------------===//

  void storeResults(const OnlineSoftmax &softmax, const SoftmaxState &state) {
    Value reference = softmax.getReference(state),
          total = softmax.getTotal(state);
    auto mapSums =
        [&](function_ref<Value(const RowSum &, Value queryHead)> compute) {
          return b.map({reference, total},
                       [&](ValueRange row) {
                         Value queryHead = block.getRow(row[2]).second;
                         return compute({row[0], row[1], block.f.constant(1)},
                                        queryHead);
                       },
                       {firstRow, Value()});
        };
    Value quotient = mapSums([&](const RowSum &scores, Value queryHead) {
      return block.getQuotient(block.addSink(scores, queryHead), queryHead);
    });
    auto out = cast<MemRefType>(op.getOut().getType());
    constexpr int64_t run = 2;
    storeRows(
        b.multiply(state.acc, quotient), op.getOut(), frame.index(0),
        frame.builder.getI64IntegerAttr(getDenseAlignment(frame, out, run)));
    auto storeStatistic = [&](Value fragment, Value memref) {
      storeRows(fragment, memref, /*column=*/Value(), /*alignment=*/{});
    };
    if (op.getLse())
      storeStatistic(mapSums([&](const RowSum &scores, Value queryHead) {
                       RowSum sum = block.addSink(scores, queryHead);
                       return block.getLogarithm(block.getLseSum(scores, sum));
                     }),
                     op.getLse());
    if (op.getMaxLogits())
      storeStatistic(mapSums([&](const RowSum &scores, Value) {
                       return block.getLargestScore(scores, getBias());
                     }),
                     op.getMaxLogits());
  }

  /// Stores the rows that are there, as many as the memref has.
  void storeRows(Value fragment, Value memref, Value column,
                 IntegerAttr alignment) {
    auto store = StoreRowsOp::create(frame.builder, frame.loc, fragment,
                                     firstRow, column, memref, alignment);
    OpBuilder::InsertionGuard guard(frame.builder);
    Block *body = frame.builder.createBlock(
        &store.getBody(), {}, frame.builder.getIndexType(), {frame.loc});
    Value blockRow = body->getArgument(0);
    auto [i, queryHead] = block.getRow(blockRow);
    Value row = frame.add(block.rows.first, i);
    Value isStored =
        frame.below(blockRow, frame.mul(block.count, block.packed));
    if (memref != op.getOut())
      isStored = arith::AndIOp::create(frame.builder, frame.loc, isStored,
                                       frame.below(row, frame.dim(memref, 0)));
    YieldOp::create(frame.builder, frame.loc,
                    ValueRange{row, queryHead, isStored});
  }

  AttentionOp op;
  Frame frame;
  TilePlan plan;
  TileRows block;
  FragmentBuilder b;
  TiledCache keys, values;
  FragmentType scoreType, accType, weightType;
  /// The tile of queries, and the number of tiles of keys.
  Value queries, tiles;
  /// The thread among those that multiply, and the first row of its warpgroup
  /// in the block.
  Value thread, firstRow;
};

} // namespace

void kvcache::tilePrompt(AttentionOp op, const Frame &frame,
                         const TilePlan &plan) {
  PromptKernel(op, frame, plan).emit();
}
