//===- Append.cpp - Expand kvcache.append ---------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Builders/Heads.h"
#include "../Builders/ScaleRow.h"
#include "ExpandOps.h"
#include "RowMath.h"

#include "kvcache/IR/CheckOps.h"
#include "kvcache/IR/QueryOps.h"
#include "kvcache/Support/EarlyValues.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// How the threads of a block share the heads of a row.
struct Part {
  Split split;
  int64_t heads = 0;
  /// Threads along the heads, which all take the same number of them.
  int64_t headThreads = 1;
  /// Heads that a thread stores together; 1 on a GPU.
  int64_t headsAtOnce = 1;

  int64_t getThreads() const { return headThreads * split.lanes; }
  /// Whether each thread has the same elements of both.
  bool hasThreadsOf(const Part &other) const {
    return headThreads == other.headThreads &&
           split.lanes == other.split.lanes && heads == other.heads;
  }
};

/// The share of a thread in a part.
struct Share {
  Value head;
  /// Null on the CPU, where one thread has all units of a head.
  Value lane;
  /// Null if all threads of the block have a share. The others compute what
  /// another thread does, since all threads of a warp exchange values, and
  /// store nothing.
  Value hasOwn;
};

/// The expansion of one op: a block of threads for each row.
class Appender {
public:
  Appender(AppendOp op, const Frame &frame)
      : op(op), frame(frame), builder(frame.builder), loc(frame.loc),
        type(cast<CacheTypeInterface>(op.getKeyCache().getType())) {
    planParts();
    planScales(keyScales, op.getKeyCache(), keyPart);
    if (op.getValueCache())
      planScales(valueScales, op.getValueCache(), valuePart);
  }

  void expand() {
    Value rows = frame.dim(op.getKeys(), 0);
    frame.checkFirst(frame.index(0), "number",
                     {{"row_offsets", op.getRowOffsets()}});
    frame.forBlocks({rows}, {1}, [&](ValueRange block) {
      frame.forThreads(threads, [&](ValueRange thread) {
        for (ScaleRow *scales : getScales())
          scales->allocate();
        appendRow(block[0], thread);
      });
    });
  }

private:
  //===--------------------------------------------------------------------===//
  // Plan
  //===--------------------------------------------------------------------===//

  static int64_t getSize(Value memref, int64_t position) {
    return memref ? cast<MemRefType>(memref.getType()).getDimSize(position) : 0;
  }

  static Type getElementType(Value memref) {
    return cast<MemRefType>(memref.getType()).getElementType();
  }

  /// Where pieces of keys or queries end: at borders of norm, rope or inputs.
  int64_t getBoundary(int64_t border, Value weights) {
    int64_t boundary = std::gcd(border, getSize(weights, 0));
    if (!op.getRope())
      return boundary;
    int64_t columns = getSize(op.getRope(), 1);
    boundary = std::gcd(boundary, op.getInterleaved() ? columns : columns / 2);
    return std::gcd(boundary, static_cast<int64_t>(op.getRopeBegin()));
  }

  /// Adds the threads of a part to those of a block: [heads, lanes] where all
  /// parts have the same, otherwise whole warps, which any part divides.
  void addThreads(const Part &part) {
    if (!frame.isGPU)
      return;
    SmallVector<int64_t> wanted = {part.headThreads, part.split.lanes};
    if (threads.empty() || threads == wanted)
      threads = wanted;
    else
      threads = {std::max(
          static_cast<int64_t>(llvm::alignTo(part.getThreads(), 32)),
          static_cast<int64_t>(llvm::alignTo(llvm::product_of(threads), 32)))};
  }

  Part planPart(int64_t heads, const Split &split) {
    Part part{split, heads, split.getHeadThreads(heads, frame.blockThreads)};
    addThreads(part);
    return part;
  }

  Part planPart(CacheTypeInterface cache, Value rows, Value scale,
                int64_t boundary) {
    int64_t width = frame.getFloatsAtOnce(
        cache.getHeadSize(), {getElementType(rows), cache.getElementType()});
    Part part = planPart(cache.getNumHeads(),
                         splitForStore(frame, cache, boundary, width));
    // Heads may have divisors of their own.
    if (!scale || !isa<MemRefType>(scale.getType()))
      part.headsAtOnce =
          countHeadsAtOnce(frame, cache, part.split, getElementType(rows));
    return part;
  }

  void planParts() {
    int64_t border = op.getLatentRope() ? getSize(op.getLatentRope(), 2) : 0;
    keyPart = planPart(type, op.getKeys(), op.getKeyScale(),
                       getBoundary(border, op.getNorm()));
    if (Value values = op.getValueCache())
      valuePart = planPart(cast<CacheTypeInterface>(values.getType()),
                           op.getValues(), op.getValueScale(), 0);
    if (Value queries = op.getQueries()) {
      int64_t size = getSize(queries, 2);
      queryPart = planPart(
          getSize(queries, 1),
          splitHead(size, getBoundary(0, op.getQueryNorm()),
                    frame.getFloatsAtOnce(size, getElementType(queries))));
    }
  }

  void planScales(std::optional<ScaleRow> &scales, Value cache,
                  const Part &part) {
    scales.emplace(frame, cache, /*firstHead=*/0, part.heads,
                   llvm::product_of(threads), part.split);
    if (!scales->isNeeded())
      scales.reset();
  }

  /// The scales that the threads of a block put together.
  SmallVector<ScaleRow *> getScales() {
    SmallVector<ScaleRow *> all;
    for (std::optional<ScaleRow> *scales : {&keyScales, &valueScales})
      if (*scales)
        all.push_back(&**scales);
    return all;
  }

  Share getShare(const Part &part, ValueRange thread) {
    if (!frame.isGPU)
      return {frame.index(0), Value(), Value()};
    if (thread.size() == 2)
      return {thread[0], thread[1], Value()};
    int64_t lanes = part.split.lanes;
    Value id = thread[0], hasOwn;
    if (part.getThreads() < threads.front()) {
      hasOwn = frame.below(id, frame.index(part.getThreads()));
      id = frame.min(id, frame.index(part.getThreads() - 1));
    }
    return {frame.div(id, frame.index(lanes)),
            frame.rem(id, frame.index(lanes)), hasOwn};
  }

  //===--------------------------------------------------------------------===//
  // Rows
  //===--------------------------------------------------------------------===//

  void appendRow(Value row, ValueRange thread) {
    Value rows = frame.countRows(op.getRowOffsets());
    frame.runIf(frame.below(row, rows), [&] {
      frame.checkFirst(row, "row",
                       {{"values", op.getValues()},
                        {"latent_rope", op.getLatentRope()},
                        {"slots", op.getSlots()},
                        {"queries", op.getQueries()},
                        {"query_out", op.getQueryOut()}});
      SmallVector<Value> positions = loadPositions(row);
      if (op.getSlots()) {
        checkPositions(positions);
        computeQueries(row, positions, thread);
        Value slot = frame.loadSigned(op.getSlots(), row);
        frame.runIf(frame.less(frame.index(-1), slot), [&] {
          checkSlot(row, slot);
          appendToCaches(row, getPlaceOfRow(frame, op.getKeyCache(), slot),
                         positions, thread);
        });
        return;
      }
      Value b = frame.findSequence(op.getRowOffsets(), row);
      Value i = frame.sub(row, frame.loadNumber(op.getRowOffsets(), b));
      Value length = CacheLengthOp::create(builder, loc, op.getKeyCache(), b);
      Value token = frame.add(length, i);
      if (positions.empty())
        positions.push_back(token);
      checkPositions(positions);
      computeQueries(row, positions, thread);
      appendToCaches(row, {b, token, Value()}, positions, thread);
    });
  }

  /// The position of a row on each axis; none if its token says it.
  SmallVector<Value> loadPositions(Value row) {
    Value positions = op.getPositions();
    if (!positions)
      return {};
    int64_t rank = cast<MemRefType>(positions.getType()).getRank();
    frame.checkIndex(row, "row", "positions", positions, rank - 1);
    if (rank == 1)
      return {frame.loadNumber(positions, row)};
    SmallVector<Value> loaded;
    for (int64_t axis = 0; axis < getSize(positions, 0); ++axis)
      loaded.push_back(frame.loadNumber(positions, {frame.index(axis), row}));
    return loaded;
  }

  void checkPositions(ArrayRef<Value> positions) {
    if (!op.getRope())
      return;
    for (Value position : positions)
      frame.checkFirst(position, "position", {{"rope", op.getRope()}});
  }

  /// No row before this one has the same slot.
  void checkSlot(Value row, Value slot) {
    if (!frame.hasChecks)
      return;
    frame.loop(frame.index(0), row, frame.index(1), [&](Value other) {
      Value isSame = frame.equal(frame.loadSigned(op.getSlots(), other), slot);
      Value bound =
          arith::SelectOp::create(builder, loc, isSame, frame.index(0),
                                  frame.add(slot, frame.index(1)));
      CheckOp::create(builder, loc, slot, bound, "slot of two rows");
    });
  }

  Rope getRope(ArrayRef<Value> positions) {
    if (!op.getRope())
      return {};
    return {op.getRope(),
            positions,
            op.getRopeAxes().value_or(ArrayRef<int64_t>()),
            static_cast<int64_t>(op.getRopeBegin()),
            getSize(op.getRope(), 1),
            op.getInterleaved()};
  }

  Norm getNorm(Value weights) {
    return {weights, getSize(weights, 0), op.getEpsilon().convertToFloat()};
  }

  /// Runs `body` with each head of a thread, or with the first of those that
  /// are stored together.
  void forHeads(const Part &part, ValueRange thread,
                function_ref<void(const Share &)> body) {
    Share share = getShare(part, thread);
    frame.forEach(share.head, part.heads,
                  frame.isGPU ? part.headThreads : part.headsAtOnce,
                  [&](Value head) {
                    // Rows and caches do not overlap.
                    if (!frame.isGPU)
                      markIndependent(head);
                    body({head, share.lane, share.hasOwn});
                  });
  }

  /// Runs `body` with the first element of each unit of a thread.
  void forUnits(const Part &part, Value lane, function_ref<void(Value)> body) {
    Value unit = frame.index(part.split.unit);
    if (lane)
      return body(frame.mul(lane, unit));
    frame.forEach(frame.index(0), part.split.lanes, 1,
                  [&](Value id) { body(frame.mul(id, unit)); });
  }

  /// The values of a unit.
  Value computeUnit(const HeadMath &math, Value d, const Split &split) {
    SmallVector<Value> pieces;
    for (int64_t offset = 0; offset < split.unit; offset += split.piece)
      pieces.push_back(
          math.compute(offset ? frame.add(d, frame.index(offset)) : d));
    return FloatBuilder(frame.builder, frame.loc).join(pieces);
  }

  //===--------------------------------------------------------------------===//
  // Inputs
  //===--------------------------------------------------------------------===//

  /// Loads elements of a latent row, of which the last are an input of their
  /// own.
  Value loadKey(Value row, Value head, Value d, int64_t count) {
    if (!op.getLatentRope())
      return loadDense(frame, op.getKeys(), {row, head}, d, count);
    Value border = frame.index(getSize(op.getKeys(), 2));
    Type f32 = builder.getF32Type();
    return frame.selectIf(
        frame.below(d, border),
        [&] {
          return convertLanes(
              frame, loadDense(frame, op.getKeys(), {row, head}, d, count),
              f32);
        },
        [&] {
          return convertLanes(frame,
                              loadDense(frame, op.getLatentRope(), {row, head},
                                        frame.sub(d, border), count),
                              f32);
        });
  }

  /// Norms and ropes the queries of a row, in place or into `query_out`.
  void computeQueries(Value row, ArrayRef<Value> positions, ValueRange thread) {
    Value queries = op.getQueries();
    if (!queries || (!op.getQueryNorm() && !op.getRope() && !op.getQueryOut()))
      return;
    Norm norm = getNorm(op.getQueryNorm());
    Rope rope = getRope(positions);
    forHeads(queryPart, thread, [&](const Share &share) {
      auto load = [&](Value d, int64_t count) {
        return loadDense(frame, queries, {row, share.head}, d, count);
      };
      HeadMath math(frame, load, norm, rope, getSize(queries, 2),
                    queryPart.split, share.lane);
      if (op.getQueryOut())
        storeQuantized(math, row, share);
      else
        storeInPlace(math, queries, row, share);
    });
  }

  /// Stores a thread's share of a head, divided by the scale of queries.
  void storeQuantized(const HeadMath &math, Value row, const Share &share) {
    FloatBuilder f(builder, loc);
    Value scale = loadStaticScale(frame, op.getQueryScale(), share.head);
    forUnits(queryPart, share.lane, [&](Value d) {
      Value unit = convertLanes(frame, computeUnit(math, d, queryPart.split),
                                builder.getF32Type());
      if (scale)
        unit = f.div(unit, f.broadcast(scale, unit));
      runIfGiven(frame, share.hasOwn, [&] {
        storeDense(frame, unit, op.getQueryOut(), {row, share.head}, d);
      });
    });
  }

  /// All threads of a head read it before any writes it.
  void storeInPlace(const HeadMath &math, Value queries, Value row,
                    const Share &share) {
    const Split &split = queryPart.split;
    if (share.lane) {
      Value d = frame.mul(share.lane, frame.index(split.unit));
      Value values = math.compute(d);
      gpu::BarrierOp::create(builder, loc);
      runIfGiven(frame, share.hasOwn, [&] {
        storeDense(frame, values, queries, {row, share.head}, d);
      });
      gpu::BarrierOp::create(builder, loc);
      return;
    }
    SmallVector<std::pair<Value, Value>> units;
    for (int64_t unit = 0; unit < split.lanes; ++unit) {
      Value d = frame.index(unit * split.unit);
      units.push_back({d, math.compute(d)});
    }
    for (auto [d, values] : units)
      storeDense(frame, values, queries, {row, share.head}, d);
  }

  /// Prefetches the heads from one on of a later row of keys or values. On a
  /// CPU, the instructions of a quantization fill its window, so that loads of
  /// the next rows would wait for them.
  void prefetchHeads(Value rows, Value row, Value head, const Part &part) {
    constexpr int64_t bytesAhead = 4096;
    auto memref = cast<MemRefType>(rows.getType());
    int64_t size = memref.getDimSize(2);
    int64_t rowBits = part.heads * size * memref.getElementTypeBitWidth();
    int64_t rowsAhead = llvm::divideCeil(bytesAhead * 8, rowBits);
    Value last = frame.sub(frame.dim(rows, 0), frame.index(1));
    Value later = frame.min(frame.add(row, frame.index(rowsAhead)), last);
    for (int64_t i = 0; i < part.headsAtOnce; ++i)
      prefetchRow(frame, rows, {later, frame.add(head, frame.index(i))},
                  frame.index(0), size, /*locality=*/3);
  }

  void appendToCaches(Value row, const Place &place, ArrayRef<Value> positions,
                      ValueRange thread) {
    appendElements(row, place, positions, thread);
    if (getScales().empty())
      return;
    gpu::BarrierOp::create(builder, loc);
    for (ScaleRow *scales : getScales())
      scales->store(place, frame.getThreadId(thread, threads.back()));
  }

  /// Appends the heads of a thread, with the scales that it stores itself.
  void appendElements(Value row, const Place &place, ArrayRef<Value> positions,
                      ValueRange thread) {
    Norm norm = getNorm(op.getNorm());
    Rope rope = getRope(positions);
    bool prefetches = !frame.isGPU && type.isQuantized();
    auto forKeys = [&](const Share &share, StoreHead store) {
      if (prefetches)
        prefetchHeads(op.getKeys(), row, share.head, keyPart);
      auto load = [&](Value head, Value d, int64_t count) {
        return loadKey(row, head, d, count);
      };
      appendHeads(load, norm, rope,
                  {op.getKeyCache(), op.getKeyScale(), keyScales}, keyPart,
                  place, share, store);
    };
    auto forValues = [&](const Share &share, StoreHead store) {
      if (prefetches)
        prefetchHeads(op.getValues(), row, share.head, valuePart);
      auto load = [&](Value head, Value d, int64_t count) {
        return loadDense(frame, op.getValues(), {row, head}, d, count);
      };
      appendHeads(load, Norm{}, Rope{},
                  {op.getValueCache(), op.getValueScale(), valueScales},
                  valuePart, place, share, store);
    };
    auto storeAtOnce = [](function_ref<void()> store) { store(); };
    if (frame.isGPU && op.getValues() && keyPart.hasThreadsOf(valuePart)) {
      // Loads of both are in flight before anything is stored.
      forHeads(keyPart, thread, [&](const Share &share) {
        forKeys(share, [&](function_ref<void()> storeKeys) {
          forValues(share, [&](function_ref<void()> storeValues) {
            storeKeys();
            storeValues();
          });
        });
      });
      return;
    }
    forHeads(keyPart, thread,
             [&](const Share &share) { forKeys(share, storeAtOnce); });
    if (op.getValues())
      forHeads(valuePart, thread,
               [&](const Share &share) { forValues(share, storeAtOnce); });
  }

  /// Is given what stores a unit of a head that was loaded and computed.
  using StoreHead = function_ref<void(function_ref<void()>)>;

  /// A cache with its static scale, and the scales that threads put together.
  struct Target {
    Value cache, scale;
    const std::optional<ScaleRow> &scales;
  };

  /// Loads elements of a head from `d` on.
  using LoadOfHead = function_ref<Value(Value head, Value d, int64_t count)>;

  /// Appends a head of a thread, or those that are stored together.
  void appendHeads(LoadOfHead load, const Norm &norm, const Rope &rope,
                   const Target &target, const Part &part, const Place &place,
                   const Share &share, StoreHead store) {
    Value cache = target.cache;
    int64_t size = cast<CacheTypeInterface>(cache.getType()).getHeadSize();
    SmallVector<Value> heads = {share.head};
    for (int64_t i = 1; i < part.headsAtOnce; ++i)
      heads.push_back(frame.add(share.head, frame.index(i)));
    StoreOptions options{share.hasOwn, op.getPowerOfTwo(), op.getLeastAmax(),
                         loadStaticScale(frame, target.scale, share.head),
                         target.scales ? &*target.scales : nullptr};
    SmallVector<std::function<Value(Value, int64_t)>> loads;
    for (Value head : heads)
      loads.push_back([&load, head](Value d, int64_t count) {
        return load(head, d, count);
      });
    std::vector<HeadMath> maths;
    for (const auto &loadHead : loads)
      maths.emplace_back(frame, loadHead, norm, rope, size, part.split,
                         share.lane);
    forUnits(part, share.lane, [&](Value d) {
      auto units = llvm::map_to_vector(maths, [&](const HeadMath &math) {
        return computeUnit(math, d, part.split);
      });
      store([&] {
        Value joined = FloatBuilder(frame.builder, frame.loc).join(units);
        storeElements(frame, joined, cache, place, heads, d, part.split,
                      options);
      });
    });
  }

  AppendOp op;
  Frame frame;
  OpBuilder &builder;
  Location loc;
  CacheTypeInterface type;
  Part keyPart, valuePart, queryPart;
  /// Threads of a block; none on the CPU.
  SmallVector<int64_t> threads;
  std::optional<ScaleRow> keyScales, valueScales;
};

} // namespace

void kvcache::expand(AppendOp op, const Frame &frame) {
  Appender(op, frame).expand();
}
