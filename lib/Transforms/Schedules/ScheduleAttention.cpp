//===- ScheduleAttention.cpp - Overlap exponentials with products ---------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A loop of attention has two products in each iteration, QK and PV. Between
// them is everything else: masks, the softmax. The pass rotates the loop by
// one: an iteration starts QK of a tile and PV of the tile before, and computes
// everything else while PV is in flight.
//
// Tiles that take a branch, such as that of masks, have loops of their own, so
// that the loop of the other tiles has neither its code nor its registers.
//
//===----------------------------------------------------------------------===//

#include "TileLoop.h"
#include "UniformValues.h"

#include "kvcache/Support/IndexBuilder.h"
#include "kvcache/Support/Threads.h"
#include "kvcache/Transforms/Passes.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Remarks.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_SCHEDULEATTENTION
#include "kvcache/Transforms/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

namespace {

//===----------------------------------------------------------------------===//
// Turns
//===----------------------------------------------------------------------===//

/// Two warpgroups that start their products in turns: while one multiplies, the
/// other computes exponentials. A turn is a named barrier.
class Turns {
public:
  static constexpr int64_t kThreads = 128;

  /// `first` is the first of two barriers.
  Turns(const IndexBuilder &b, int64_t first) : b(b) {
    Value group = b.rem(b.div(getThread(b), kThreads), 2);
    isFirst = b.equal(group, b.index(0));
    Value ids[] = {b.i32(first), b.i32(first + 1)};
    mine = arith::SelectOp::create(b.builder, b.loc, isFirst, ids[0], ids[1]);
    other = arith::SelectOp::create(b.builder, b.loc, isFirst, ids[1], ids[0]);
    threads = b.i32(2 * kThreads);
  }

  /// The first warpgroup begins.
  void begin() {
    b.runIf(isFirst, [] {}, [&] { give(); });
  }
  void take() {
    NVVM::BarrierOp::create(b.builder, b.loc, TypeRange(), mine, threads,
                            /*reductionOp=*/{}, /*reductionPredicate=*/Value());
  }
  void give() {
    NVVM::BarrierArriveOp::create(b.builder, b.loc, other, threads);
  }
  /// Takes the turn that is left.
  void end() {
    b.runIf(isFirst, [&] { take(); });
  }

private:
  IndexBuilder b;
  Value isFirst, mine, other, threads;
};

//===----------------------------------------------------------------------===//
// Rotation
//===----------------------------------------------------------------------===//

class Rotation {
public:
  Rotation(TileLoop &tiles, FailureOr<int64_t> barrier)
      : tiles(tiles), loop(tiles.loop), builder(loop), loc(loop.getLoc()),
        b(builder, loc), barrier(barrier) {}

  /// Replaces the loop.
  void rotate() {
    auto guarded =
        scf::IfOp::create(builder, loc, loop.getResultTypes(),
                          b.less(loop.getLowerBound(), loop.getUpperBound()),
                          /*addThenBlock=*/true, /*addElseBlock=*/true);
    builder.setInsertionPointToStart(guarded.thenBlock());
    scf::YieldOp::create(builder, loc, emitTiles());
    builder.setInsertionPointToStart(guarded.elseBlock());
    scf::YieldOp::create(builder, loc, loop.getInitArgs());
    loop.replaceAllUsesWith(guarded.getResults());
    loop.erase();
  }

private:
  SmallVector<Value> emitTiles() {
    if (succeeded(barrier)) {
      turns.emplace(b, *barrier);
      turns->begin();
    }
    IRMapping first;
    first.map(loop.getInductionVar(), loop.getLowerBound());
    first.map(loop.getRegionIterArgs(), loop.getInitArgs());
    emitOthers(first, isBeforeScores);
    first.map(tiles.qk.consume.getResult(0),
              emitAlone(tiles.qk, loop.getLowerBound(), first,
                        /*inTurn=*/true));
    emitOthers(first, isAfterScores);
    scale(first);
    SmallVector<Value> carried = emitLoops(getCarried(first));
    Value last = b.sub(loop.getUpperBound(), b.index(1));
    IRMapping mapping;
    mapTaken(mapping, carried, last);
    Value acc = emitAlone(tiles.pv, last, mapping, /*inTurn=*/false);
    if (turns)
      turns->end();
    return getResults(carried, acc);
  }

  //===--------------------------------------------------------------------===//
  // Everything but products
  //===--------------------------------------------------------------------===//

  enum Place { isBeforeScores, isAfterScores };

  void emitOthers(IRMapping &mapping, Place place, bool isMasked = true) {
    for (Operation *op : tiles.others)
      if (op != tiles.qk.consume &&
          op->isBeforeInBlock(tiles.qk.consume) == (place == isBeforeScores))
        emitOther(op, mapping, isMasked);
  }

  /// Without masks, their branches are not taken.
  void emitOther(Operation *op, IRMapping &mapping, bool isMasked) {
    bool isMask = llvm::any_of(
        tiles.masks, [&](const TileMask &mask) { return mask.branch == op; });
    if (isMasked || !isMask) {
      builder.clone(*op, mapping);
      return;
    }
    Block &block = *cast<scf::IfOp>(op).elseBlock();
    for (Operation &nested : block.without_terminator())
      builder.clone(nested, mapping);
    for (auto [result, value] : llvm::zip_equal(
             op->getResults(), block.getTerminator()->getOperands()))
      mapping.map(result, mapping.lookupOrDefault(value));
  }

  void scale(IRMapping &mapping) {
    for (Operation &op : tiles.getBody())
      if (tiles.scaling.contains(&op))
        builder.clone(op, mapping);
  }

  /// Clones what precedes the product in a region.
  static void cloneBefore(OpBuilder &builder, TileProduct &tile,
                          IRMapping &mapping) {
    for (Operation &op : tile.getBody()) {
      if (&op == tile.product)
        break;
      builder.clone(op, mapping);
    }
  }

  //===--------------------------------------------------------------------===//
  // Carried values
  //===--------------------------------------------------------------------===//

  /// Returns the values that the rotated loop carries: those of the loop, with
  /// the scaled accumulator, and those that PV of the tile uses.
  SmallVector<Value> getCarried(const IRMapping &mapping) {
    SmallVector<Value> values;
    ValueRange yielded = tiles.getBody().getTerminator()->getOperands();
    for (auto [i, value] : llvm::enumerate(yielded))
      values.push_back(mapping.lookupOrDefault(
          i == tiles.accumulator ? tiles.pv.product.getAccumulator() : value));
    for (Value value : tiles.taken)
      values.push_back(mapping.lookupOrDefault(value));
    return values;
  }

  /// Maps the values that PV of a tile uses to carried values.
  void mapTaken(IRMapping &mapping, ValueRange carried, Value tile) {
    mapping.map(loop.getInductionVar(), tile);
    mapping.map(tiles.pv.product.getAccumulator(), carried[tiles.accumulator]);
    mapping.map(tiles.taken.getArrayRef(),
                carried.drop_front(loop.getNumResults()));
  }

  SmallVector<Value> getResults(ValueRange carried, Value acc) {
    SmallVector<Value> results(carried.take_front(loop.getNumResults()));
    results[tiles.accumulator] = acc;
    return results;
  }

  //===--------------------------------------------------------------------===//
  // Products
  //===--------------------------------------------------------------------===//

  /// Makes a consumption, whose region `emit` fills and gives the values of.
  SmallVector<Value>
  consume(ConsumeOp like, Value tile, TypeRange types,
          function_ref<SmallVector<Value>(ValueRange)> emit) {
    auto made = ConsumeOp::create(builder, loc, types, like.getPipe(), tile);
    Block &body = made.getBody().emplaceBlock();
    Block &from = like.getBody().front();
    body.addArguments(from.getArgumentTypes(),
                      SmallVector<Location>(from.getNumArguments(), loc));
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&body);
    SmallVector<Value> values = emit(body.getArguments());
    YieldOp::create(builder, loc, values);
    return made.getResults();
  }

  Value emitWait(Value product, int64_t pending) {
    return FragmentWaitOp::create(builder, loc, product, pending).getResult(0);
  }

  void take() {
    if (turns)
      turns->take();
  }
  void give() {
    if (turns)
      turns->give();
  }

  /// A product that nothing overlaps.
  Value emitAlone(TileProduct &tile, Value index, IRMapping &mapping,
                  bool inTurn) {
    return consume(tile.consume, index, tile.consume.getResultTypes(),
                   [&](ValueRange slots) -> SmallVector<Value> {
                     mapping.map(tile.getBody().getArguments(), slots);
                     cloneBefore(builder, tile, mapping);
                     if (inTurn)
                       take();
                     Value started =
                         builder.clone(*tile.product, mapping)->getResult(0);
                     if (inTurn)
                       give();
                     return {emitWait(started, /*pending=*/0)};
                   })
        .front();
  }

  /// The tiles after the first one: those before all masks, those that no mask
  /// takes, and the last ones.
  SmallVector<Value> emitLoops(SmallVector<Value> carried) {
    Value first = b.index(1), end = loop.getUpperBound();
    Value from, to;
    for (const TileMask &mask : tiles.masks) {
      if (mask.from)
        from = from ? b.max(from, mask.from) : mask.from;
      if (mask.to)
        to = to ? b.min(to, mask.to) : mask.to;
    }
    if (from) {
      from = b.min(b.max(from, first), end);
      carried = emitLoop(first, from, carried, /*isMasked=*/true);
      first = from;
    }
    if (!to)
      return emitLoop(first, end, carried, /*isMasked=*/false);
    to = b.min(b.max(to, first), end);
    carried = emitLoop(first, to, carried, /*isMasked=*/false);
    return emitLoop(to, end, carried, /*isMasked=*/true);
  }

  SmallVector<Value> emitLoop(Value first, Value end, ValueRange inits,
                              bool isMasked) {
    auto rotated = scf::ForOp::create(
        builder, loc, first, end, loop.getStep(), inits,
        [&](OpBuilder &, Location, Value tile, ValueRange carried) {
          Value before = b.sub(tile, b.index(1));
          SmallVector<Value> next =
              consume(tiles.pv.consume, before, carried.getTypes(),
                      [&](ValueRange slots) {
                        return emitTile(tile, before, carried, slots, isMasked);
                      });
          scf::YieldOp::create(builder, loc, next);
        });
    return rotated.getResults();
  }

  /// Emits QK of a tile and PV of the tile before, which is in flight until
  /// everything else is computed.
  SmallVector<Value> emitTile(Value tile, Value before, ValueRange carried,
                              ValueRange slots, bool isMasked) {
    IRMapping mapping, earlier;
    mapping.map(loop.getInductionVar(), tile);
    mapping.map(loop.getRegionIterArgs(),
                carried.take_front(loop.getNumResults()));
    mapTaken(earlier, carried, before);
    earlier.map(tiles.pv.getBody().getArguments(), slots);
    emitOthers(mapping, isBeforeScores, isMasked);

    SmallVector<Type> types(tiles.qk.consume.getResultTypes());
    types.push_back(tiles.pv.product.getType());
    SmallVector<Value> found =
        consume(tiles.qk.consume, tile, types,
                [&](ValueRange keys) -> SmallVector<Value> {
                  mapping.map(tiles.qk.getBody().getArguments(), keys);
                  cloneBefore(builder, tiles.qk, mapping);
                  cloneBefore(builder, tiles.pv, earlier);
                  take();
                  Value scores =
                      builder.clone(*tiles.qk.product, mapping)->getResult(0);
                  Value acc =
                      builder.clone(*tiles.pv.product, earlier)->getResult(0);
                  give();
                  return {emitWait(scores, /*pending=*/1), acc};
                });
    mapping.map(tiles.qk.consume.getResult(0), found[0]);

    emitOthers(mapping, isAfterScores, isMasked);
    if (tiles.rowSum)
      ScheduleFenceOp::create(builder, loc,
                              mapping.lookupOrDefault(tiles.rowSum));
    mapping.map(tiles.getAccumulator(), emitWait(found[1], /*pending=*/0));
    scale(mapping);
    return getCarried(mapping);
  }

  TileLoop &tiles;
  scf::ForOp loop;
  OpBuilder builder;
  Location loc;
  IndexBuilder b;
  FailureOr<int64_t> barrier;
  std::optional<Turns> turns;
};

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

remark::RemarkOpts getScheduleRemark() {
  return remark::RemarkOpts::name("schedule")
      .category("kvcache-schedule-attention");
}

/// The first of two named barriers that a kernel does not use; 0 is that of
/// `gpu.barrier`.
std::optional<int64_t> findBarriers(Operation *kernel) {
  constexpr int64_t count = 16;
  std::array<bool, count> used{true};
  bool isKnown = true;
  kernel->walk([&](Operation *op) {
    Value id;
    if (auto barrier = dyn_cast<NVVM::BarrierOp>(op))
      id = barrier.getBarrierId();
    else if (auto arrive = dyn_cast<NVVM::BarrierArriveOp>(op))
      id = arrive.getBarrierId();
    else
      return;
    std::optional<int64_t> number =
        id ? getConstantIntValue(id) : std::optional<int64_t>(0);
    if (number && *number >= 0 && *number < count)
      used[*number] = true;
    else
      isKnown = false;
  });
  for (int64_t first = 1; isKnown && first + 1 < count; ++first)
    if (!used[first] && !used[first + 1])
      return first;
  return std::nullopt;
}

/// Returns the first of two barriers for the turns of two warpgroups, or why
/// there are none.
FailureOr<int64_t> findTurns(TileLoop &tiles, std::string &reason) {
  auto kernel = tiles.loop->getParentOfType<gpu::GPUFuncOp>();
  std::optional<int64_t> threads;
  if (kernel && kernel.getKnownBlockSize())
    threads = llvm::product_of(*kernel.getKnownBlockSize(), int64_t(1));
  int64_t producers = 32 * tiles.qk.consume.getPipe().getType().getProducers();
  if (!threads || *threads - producers != 2 * Turns::kThreads)
    return refuse(reason, "the kernel has no two warpgroups of consumers");
  if (!tiles.qk.product.isWgmma())
    return refuse(reason, "warps multiply");
  if (!UniformValues().contains(tiles.loop.getUpperBound()))
    return refuse(reason, "warpgroups may have other numbers of tiles");
  if (std::optional<int64_t> barrier = findBarriers(kernel))
    return *barrier;
  return refuse(reason, "no two named barriers are free");
}

struct ScheduleAttention
    : kvcache::impl::ScheduleAttentionBase<ScheduleAttention> {
  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation()->walk([&](scf::ForOp loop) {
      if (loop->hasAttr(KVCacheDialect::kScheduleAttr))
        loops.push_back(loop);
    });
    if (loops.empty())
      return markAllAnalysesPreserved();
    for (scf::ForOp loop : loops)
      schedule(loop, cast<ScheduleAttr>(
                         loop->removeAttr(KVCacheDialect::kScheduleAttr)));
  }

private:
  /// A loop that can't have its schedule stays as it is.
  void schedule(scf::ForOp loop, ScheduleAttr given) {
    if (given.getValue() == Schedule::Prefetch ||
        given.getValue() == Schedule::Seesaw ||
        given.getValue() == Schedule::Roles ||
        given.getValue() == Schedule::Pair)
      return;
    std::string reason;
    FailureOr<TileLoop> tiles = TileLoop::match(loop, reason);
    if (failed(tiles)) {
      remark::missed(loop.getLoc(), getScheduleRemark())
          << "no products overlap" << remark::reason("{0}", reason);
      return;
    }
    if (!tiles->rowSum)
      remark::missed(loop.getLoc(), getScheduleRemark())
          << "exponentials may not overlap"
          << remark::reason("{0}", "the loop carries no sum of exponentials");
    FailureOr<int64_t> turns = failure();
    if (given.getValue() == Schedule::PingPong) {
      turns = findTurns(*tiles, reason);
      if (failed(turns))
        remark::missed(loop.getLoc(), getScheduleRemark())
            << "no turns" << remark::reason("{0}", reason);
    }
    remark::passed(loop.getLoc(), getScheduleRemark())
        << (succeeded(turns) ? "products overlap, in turns"
                             : "products overlap");
    Rotation(*tiles, turns).rotate();
    ++numScheduled;
  }
};

} // namespace
